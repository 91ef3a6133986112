#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs UCX's own test suite on the transport.
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

test_limit=300   # Seconds that a test may take; UCX's suite ends itself then
batch_limit=1800 # That a process may take, should it not
batch_size=40    # Tests of a process
known_file=$ST_TOP/test/ucx-gtest-known.txt
# What UCX's own connection managers do, and what takes minutes to say no more
# than its neighbours; with sockets times say nothing
left_out='*/test_ucp_sockaddr*:*.stress_connect*'
left_out_sockets='*.envelope*:*_tag_perf.*'
# Wait for the last of many puts into one word, so need puts in order, for which
# there is a setting
ordered=/test_uct_perf

usage()
{
    cat <<STEOF
usage: contrib/run-ucx-gtest.sh [--no-deps] [--nic NIC]... [--tl TRANSPORT]
                                [--filter PATTERN] [--jobs N] [--list]
                                [--configured DIR] [--build-dir DIR] [--help]

Builds the tests of UCX's transport interface and of UCP from the source of the
installed UCX, links them with the installed libraries, and runs them on the
transport. Prints what fails, for each NIC a line "NIC: N passed, N failed,
N known, N skipped", and at its end their sum. Those that are known to fail,
with transports of UCX too, are in test/ucx-gtest-known.txt. A test may take
$test_limit s. Objects, and the tests' output by NIC, go into build-gtest/.

    --no-deps         install and download nothing
    --nic NIC         only strict, fast or sockets; may be repeated
    --tl TRANSPORT    tcp or posix instead of cxi_trig, to compare with
    --filter PATTERN  only the tests whose names match (a bash pattern)
    --jobs N          so many at a time (default: one a processor)
    --list            print the names of the tests, run none
    --configured DIR  another folder than build, which was configured by hand
                      for another UCX (--with-ucx, --with-ucx-source)
    --build-dir DIR   another folder than build-gtest

The status is 0 if nothing failed but what is known.
STEOF
}

deps=yes
nics=()
tl=cxi_trig
filter='*'
places=$(nproc)
list=no
dir=$ST_TOP/build-gtest
options= # Of configure, as a shell reads them
while [ $# -gt 0 ]; do
    case $1 in
    --no-deps) deps=no ;;
    --nic)
        [[ ${2:-} =~ ^(strict|fast|sockets)$ ]] || { usage >&2; exit 2; }
        nics+=("$2")
        shift
        ;;
    --tl)
        [[ ${2:-} =~ ^(cxi_trig|tcp|posix)$ ]] || { usage >&2; exit 2; }
        tl=$2
        shift
        ;;
    --filter) filter=${2:?--filter needs a pattern}; shift ;;
    --jobs)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
        places=$2
        shift
        ;;
    --list) list=yes ;;
    --configured)
        ST_BUILD=$(realpath -e "${2:?--configured needs a folder}") &&
            options=$("$ST_BUILD/config.status" --config) || exit 2
        shift
        ;;
    --build-dir) dir=$(realpath -m "${2:?--build-dir needs a folder}"); shift ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
[ ${#nics[@]} -gt 0 ] || nics=(strict fast sockets)
# The NIC is nothing to other transports
[ "$tl" = cxi_trig ] || nics=("${nics[0]}")

declare -A total=([passed]=0 [failed]=0 [known]=0 [skipped]=0)
known_patterns=()
running=0

# Prints a variable of the build.  Usage: configured NAME
configured()
{
    sed -n "s/^$1 = //p" "$ST_BUILD/src/uct/cxi_trig/Makefile"
}

# The suite sees UCX as it was built, but for the transports of InfiniBand: their
# structures it would need more libraries for.
build_suite()
{
    local config=$dir/config
    mkdir -p "$config"
    grep -vE '^#define HAVE_(IB|TL_DC|TL_RC|TL_UD) ' \
        "$ST_BUILD/ucx-config/config.h" >"$config/config.h.new"
    if cmp -s "$config/config.h.new" "$config/config.h"; then
        rm "$config/config.h.new"
    else
        mv "$config/config.h.new" "$config/config.h"
    fi
    st_say "UCX's tests in $dir"
    st_logged gtest-make nice -n 10 make -C "$dir" -j"$places" \
        -f "$ST_TOP/test/ucx-gtest.mk" CONFIG="$config" \
        HEADER="$ST_TOP/test/ucx-gtest.h" UCX="$(configured UCX_SOURCE_DIR)" \
        UCX_LIBS="$(configured UCX_LIBS)"
}

# Runs the suite in the environment of now, with the transport loaded.
suite()
{
    ulimit -c 0
    # It stays in the batch's process group, and leaves files of crashes where
    # it runs
    "$ST_TOP/test/run.py" --in "$group" \
        env LD_PRELOAD="$ST_BUILD/src/uct/cxi_trig/.libs/libuct_cxitrig.so.0" \
        timeout --foreground -k 10 $batch_limit \
        env -C "$dir" ./gtest -t $test_limit "$@" </dev/null
}

# Prints the names of the tests that are asked for.
list_tests()
{
    local name without=$left_out
    [ "$group" != program-sockets ] || without+=:$left_out_sockets
    suite --gtest_list_tests "--gtest_filter=$tl/*-$without" 2>/dev/null |
        awk '/^[^ ]/ { suite = $1 } /^ / { print suite $1 }' |
        while IFS= read -r name; do
            # shellcheck disable=SC2053 # a pattern is meant
            [[ $name != $filter ]] || echo "$name"
        done
}

# Prints "RESULT NAME" for the tests of which this is the output, the result
# "ended" for one that ended the process.
read_results()
{
    awk '
        $1 != "[" || $3 != "]" { next }
        $2 == "RUN"            { name = $4; result = "passed" }
        $2 == "SKIP"           { result = "skipped" }
        $2 == "OK"             { print result, name; name = "" }
        $2 == "FAILED" && name != "" { print "failed", name; name = "" }
        END                    { if (name != "") print "ended", name }' "$1"
}

# Runs the tests that a file names by one process, and by another one those
# after a test that ended it.  Usage: run_batch FILE; writes FILE.log, .results
run_batch()
{
    local file=$1 names last
    [ "${file##*.}" != zzz ] || export UCX_CXI_TRIG_ORDERING=strict
    mapfile -t names <"$file"
    : >"$file.results"
    while [ ${#names[@]} -gt 0 ]; do
        suite --gtest_filter="$(IFS=:; echo "${names[*]}")" >"$file.part" 2>&1
        cat "$file.part" >>"$file.log"
        last=$(read_results "$file.part" | tee -a "$file.results" | tail -n 1)
        if [ -z "$last" ]; then
            printf 'unstarted %s\n' "${names[@]}" >>"$file.results"
            break
        fi
        while [ ${#names[@]} -gt 0 ] && [ "${names[0]}" != "${last#* }" ]; do
            names=("${names[@]:1}")
        done
        names=("${names[@]:1}")
    done
    rm -f "$file.part"
}

# Runs all batches of a folder, some at a time.
run_batches()
{
    local file
    set -m # Process groups, so that stop() ends all of one
    for file in "$1"/batch.???; do
        if [ $running -ge "$places" ]; then
            wait -n
            running=$((running - 1))
        fi
        run_batch "$file" &
        running=$((running + 1))
    done
    wait
    running=0
    set +m
}

stop()
{
    local pid
    trap - INT TERM
    for pid in $(jobs -p); do
        kill -- "-$pid" 2>/dev/null
    done
    wait
    exit 1
}

read_known()
{
    local pattern reason
    while read -r pattern reason; do
        case $pattern in
        ''|'#'*) ;;
        *)
            [ -n "$reason" ] || st_die "$known_file: $pattern has no reason"
            known_patterns+=("$pattern")
            ;;
        esac
    done <"$known_file"
}

# True if a test is known to fail, at all, with a NIC or with this UCX.
# Usage: is_known NAME NIC
is_known()
{
    local pattern
    for pattern in "${known_patterns[@]}"; do
        # shellcheck disable=SC2053 # a pattern is meant
        [[ $1 == $pattern || $1@$2 == $pattern ||
           $1@$ucx_version == $pattern ]] && return 0
    done
    return 1
}

# Shows what a test has printed, but not more than that.
# Usage: show_failure RESULT NAME NIC LOG
show_failure()
{
    echo "FAIL  $2@$3 ($1)"
    awk -v name="$2" '
        $1 == "[" && $2 == "RUN" { of_it = ($4 == name) }
        of_it { print "      | " $0 }
        $1 == "[" && ($2 == "FAILED" || $2 == "OK") { of_it = 0 }' "$4" |
        head -n 25
    echo "      | (all of it: $4)"
}

# Counts the results of a NIC, prints what failed and the counts.
count_results()
{
    local nic=$1 out=$2 result name file
    local -A count=([passed]=0 [failed]=0 [known]=0 [skipped]=0)
    for file in "$out"/batch.???; do
        while read -r result name; do
            case $result in
            passed|skipped) ;;
            *)
                if is_known "$name" "$nic"; then
                    result=known
                else
                    show_failure "$result" "$name" "$nic" "$file.log"
                    result=failed
                fi
                ;;
            esac
            count[$result]=$((count[$result] + 1))
            total[$result]=$((total[$result] + 1))
        done <"$file.results"
    done
    echo "$nic: ${count[passed]} passed, ${count[failed]} failed," \
         "${count[known]} known, ${count[skipped]} skipped"
}

# Usage: run_nic NIC
run_nic()
{
    local nic=$1 out=$dir/$1 group=program-$1
    [ "$nic" != strict ] || group=program
    if [ $list = yes ]; then
        list_tests
        return
    fi
    rm -rf "$out"
    mkdir -p "$out"
    list_tests >"$out/tests"
    [ -s "$out/tests" ] || st_die "$nic: no test of $tl matches \"$filter\""
    st_say "$(wc -l <"$out/tests") tests of $tl, $nic"
    grep -v "$ordered" "$out/tests" |
        split -a 3 -l $batch_size - "$out/batch."
    ! grep "$ordered" "$out/tests" >"$out/ordered" ||
        cp "$out/ordered" "$out/batch.zzz"
    run_batches "$out"
    count_results "$nic" "$out"
}

set_up()
{
    if [ $deps = yes ]; then
        (st_install_packages "${ST_BUILD_PACKAGES[@]}") || return 1
        (st_ucx_source) || return 1
    fi
    eval "st_build \"\$ST_BUILD\" build $options" && build_suite
}

cd "$ST_TOP" || exit 1
read_known
set_up >&2 || exit 1
ucx_version=$(configured ST_UCX_VERSION)
trap stop INT TERM
unset UCX_TLS
export UCX_HANDLE_ERRORS=bt UCX_LOG_LEVEL=warn
# The sockets provider's threads are not to spin on cores that others need
export FI_SOCKETS_PE_WAITTIME=0
for nic in "${nics[@]}"; do
    run_nic "$nic"
done
if [ $list = no ]; then
    echo "${total[passed]} passed, ${total[failed]} failed," \
         "${total[known]} known, ${total[skipped]} skipped"
fi
[ "${total[failed]}" -eq 0 ]
