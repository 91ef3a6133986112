#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the integration tests of tests.list, each within a time limit.
set -uo pipefail

usage()
{
    cat <<STEOF
usage: run.sh [--list] [--busy] [--build DIR] [--nic NIC] [NAME...]

Runs the named tests (default: all that are for the NIC) and prints one line for
each. With one name the status is that of the test: 0 passed, 77 skipped, 124
out of time: ST_LIMIT seconds (environment; default 600), which no test needs on
a machine that does little else.

    --list       print the names of the tests
    --busy       the same, and how many processors each test keeps busy: one for
                 each rank of MPI, "all" for what measures, else 1
    --build DIR  the build folder (default: build of the source tree)
    --nic NIC    strict or fast (the emulated NIC, default strict), sockets, or
                 cxi (for contrib/run-on-cxi.sh); ST_NIC in the environment says
                 the same

Each line of tests.list is
    NAME | CARDS | RANKS (of MPI) | COMMAND
CARDS are the NICs that it runs on unless it is named: one or more of strict,
fast, sockets and cxi, with commas, or all. mpirun starts the ranks; a script starts
them itself. The command runs in the build folder. Its environment has srcdir,
builddir, ST_RUN (the script ucx-st-run), ST_NIC and ST_DEVICE (the device in
UCX's terms). In it \$stream is what ST_TEST_STREAM says (environment): host, hip or
cuda; \$memory is device with the last two, else host.
STEOF
}

# Prints "NAME|CARDS|RANKS|COMMAND" of the named tests or, without names, of those
# that are for this NIC.
tests()
{
    sed -e '/^ *#/d' -e '/^ *$/d' -e 's/ *| */|/g' -e 's/^ *//' \
        "$srcdir/test/integration/tests.list" |
        awk -F '|' -v nic="$nic" -v names=" ${names[*]} " '
            names != "  " { if (index(names, " " $1 " ")) print; next }
            $2 == "all" || index("," $2 ",", "," nic ",")'
}

# Prints "NAME PROCESSORS" of each.
busy()
{
    local name ranks command
    while IFS='|' read -r name _ ranks command; do
        case $command in
        *bench*) ranks=all ;;
        esac
        echo "$name ${ranks/#0/1}"
    done < <(tests)
}

# Runs one test.  Usage: run_one RANKS COMMAND
run_one()
{
    local ranks=$1 command=$2 limit=${ST_LIMIT:-600} rc=0 memory=host
    local launch=("$ST_RUN" -q)
    [ "$ranks" -eq 0 ] || launch+=(mpirun -n "$ranks")
    case $command in
    *.sh*) launch=(bash) ;;
    esac
    command=${command//\$srcdir/$srcdir}
    command=${command//\$builddir/$builddir}
    command=${command//\$device/$ST_DEVICE}
    command=${command//\$stream/${ST_TEST_STREAM:-host}}
    [ "${ST_TEST_STREAM:-host}" = host ] || memory=device
    command=${command//\$memory/$memory}
    # shellcheck disable=SC2086 # the command is words
    (cd "$builddir" &&
     exec timeout -k 10 "$limit" "${ST_NET[@]}" "${launch[@]}" $command \
         </dev/null) || rc=$?
    [ $rc -ne 137 ] || rc=124
    [ $rc -ne 124 ] ||
        echo "did not end within $limit seconds: $command ($ranks ranks)"
    return $rc
}

srcdir=${srcdir:-$(dirname "${BASH_SOURCE[0]}")/../..}
# automake gives the folder of this script, others give the top
[ -f "$srcdir/test/integration/tests.list" ] || srcdir=$srcdir/../..
srcdir=$(cd "$srcdir" && pwd)
builddir=${ST_BUILDDIR:-$srcdir/build}
list=no
nic=${ST_NIC:-strict}
names=()
while [ $# -gt 0 ]; do
    case $1 in
    --list|--busy) list=${1#--} ;;
    --nic) shift; nic=${1:?--nic needs a name} ;;
    --build) shift; builddir=${1:?--build needs a folder} ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) names+=("$1") ;;
    esac
    shift
done
case $list in
list) tests | cut -d '|' -f 1; exit 0 ;;
busy) busy; exit 0 ;;
esac
if [ "${ST_INTEGRATION:-yes}" = no ]; then
    echo "skipped: ST_INTEGRATION=no"
    exit 77
fi

builddir=$(cd "$builddir" && pwd) || exit 1
export srcdir builddir
export ST_RUN=$srcdir/contrib/ucx-st-run ST_BUILDDIR=$builddir
# shellcheck source=contrib/common.sh
. "$srcdir/contrib/common.sh"
st_loopback
st_forking
st_gpu_queues
st_nic "$nic"
# On the card, also within a node, unless a test says otherwise
export UCX_TLS=${UCX_TLS-cxi_trig,self}

failed=0
ran=0
while IFS='|' read -r name _ ranks command; do
    ran=$((ran + 1))
    rc=0
    run_one "$ranks" "$command" || rc=$?
    case $rc in
    0)   echo "PASS: $name" ;;
    77)  echo "SKIP: $name" ;;
    124) echo "FAIL: $name (out of time)"; failed=$((failed + 1)) ;;
    *)   echo "FAIL: $name (status $rc)"; failed=$((failed + 1)) ;;
    esac
    [ ${#names[@]} -ne 1 ] || exit $rc
done < <(tests)
if [ $ran -eq 0 ]; then
    echo "run.sh: no such test: ${names[*]}" >&2
    exit 2
fi
[ $failed -eq 0 ]
