#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the project on libfabric's provider cxi: over the emulated Cassini of
# test/cassini or, between two nodes, over real ones.
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/run-on-cxi.sh [--libfabric PREFIX] [--card DIR] [--no-deps]
                             [--quick] [--jobs N] [--list] [PATTERN...]
       contrib/run-on-cxi.sh [--libfabric PREFIX] --hardware
                             [--hosts HOST,HOST | --launch COMMAND] [...]

Builds the project in build-cxi-VERSION/ against a libfabric, 1.21 or later,
that has been built with the provider cxi, and runs the tests of test/plan.ini
that are for it (keys "cxi" and "hardware"), over the emulated NIC test/cassini: a
card of its own for each test, in a namespace that has the network device which
the provider looks for. A test fails, too, if the NIC tells at its end that
something was left open. The NIC draws order and lateness at random, from
CASSINI_SEED or from a seed that is printed at first; 0 draws nothing. Ends with
"N passed, N failed". Output is in build-cxi-VERSION/test-logs.

    --libfabric PREFIX  where it is installed; else it is CXI_LIBFABRIC in the
                        environment, or what pkg-config finds, and the status is
                        77 where that one has no provider cxi
    --card DIR          a folder with another libcxi.so.1
    --no-deps           install and download nothing
    --quick             a tenth of the random programs, kills and iterations
    --jobs N            so many processes at a time
    --list              print the names of the tests, run none
    PATTERN             run only the tests whose names match

    --hardware          no emulated NIC: a first acceptance test between two
                        nodes with Slingshot cards, described in
                        docs/slingshot.md. The folder must be one that both
                        nodes have. Under Slurm it runs srun within the job;
    --hosts HOST,HOST   elsewhere OpenMPI's mpirun between these. One node suffices
                        for the tests '*-cxi*/*'
    --launch COMMAND    srun with options, such as 'srun --mpi=pmix
                        --network=res_tles=512'

The status is 0 if nothing failed.
STEOF
}

prefix=
card=
deps=yes
list=no
tier=cxi
hosts=
launch=
words=()
patterns=()
while [ $# -gt 0 ]; do
    case $1 in
    --libfabric|--card|--hosts|--launch)
        [ -n "${2:-}" ] || { usage >&2; exit 2; }
        case $1 in
        --libfabric) prefix=$2 ;;
        --card) card=$2 ;;
        --hosts) hosts=$2 ;;
        --launch) launch=$2 ;;
        esac
        shift
        ;;
    --no-deps) deps=no ;;
    --quick) words+=(--percent 10) ;;
    --list) list=yes ;;
    --hardware) tier=hardware ;;
    --jobs)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
        words+=(--jobs "$2")
        shift
        ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) patterns+=("$1") ;;
    esac
    shift
done
if { [ $tier = cxi ] && [ -n "$hosts$launch" ]; } ||
   { [ -n "$hosts" ] && [ -n "$launch" ]; }; then
    usage >&2
    exit 2
fi

# Checks and builds what it runs on
set_up()
{
    local lacks rc=1 other=
    if [ -z "$prefix" ]; then
        rc=77
        other=' (CXI_LIBFABRIC names another one)'
        prefix=${CXI_LIBFABRIC:-$(pkg-config --variable=prefix libfabric \
                                      2>/dev/null)}
    fi
    lacks=$(st_cxi_lacks "${prefix:-/usr}")
    [ -z "$lacks" ] || { echo "${0##*/}: $lacks$other" >&2; exit $rc; }
    prefix=$(realpath "$prefix")
    libdir=$(st_fabric_libdir "$prefix")
    version=$(st_fabric "$libdir" --modversion)
    export ST_BUILD=$ST_TOP/build-cxi-$version
    if [ $deps = yes ]; then
        (st_install_packages "${ST_BUILD_PACKAGES[@]}") || exit 1
        (st_ucx_source) || exit 1
    fi
    # The card below libfabric is not there yet. With that, ld leaves out a
    # library of which a weak symbol is used, and then misses the symbol.
    st_build "$ST_BUILD" build --with-libfabric="$prefix" \
        LDFLAGS="-Wl,--allow-shlib-undefined -Wl,--no-as-needed" || exit 1
}

# The emulated card, and what starts a program on one of its own
emulate()
{
    if [ -n "$card" ]; then
        card=$(realpath "$card")
    else
        card=$ST_BUILD/test/cassini
        st_logged card-build make -C "$card" check ||
            st_die "the emulated NIC cannot be built"
    fi
    [ -e "$card/libcxi.so.1" ] || st_die "there is no libcxi.so.1 in $card"
    "$ST_TOP/contrib/own-card.sh" --probe ||
        st_die "no mount namespace may be made here: run as root, or allow" \
               "users to make namespaces"
    ST_CXI_LAUNCH=$(printf '%q ' "$ST_TOP/contrib/own-card.sh" \
                           --libfabric "$libdir" --card "$card")
    # What the emulated NIC draws from: the same for all
    export CASSINI_SEED=${CASSINI_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
    [[ $CASSINI_SEED =~ ^(0|[1-9][0-9]*)$ ]] ||
        st_die "CASSINI_SEED is no number: $CASSINI_SEED"
}

# Two nodes with cards; one is the one that this script runs on. Ranks of MPI are
# on both, programs without MPI on one.
hardware()
{
    words+=(--jobs 1)
    ST_AGAIN+=" --hardware${hosts:+ --hosts $hosts}${launch:+ --launch \"$launch\"}"
    if [ -n "$hosts" ]; then
        [[ $hosts == *,* ]] || [ ${#patterns[@]} -gt 0 ] ||
            st_die "--hosts needs two hosts: $hosts"
        export ST_MPIRUN="mpirun --host ${hosts//,/:8,}:8 --map-by node"
        ST_MPIRUN+=" -x ST_BUILDDIR"
        return
    fi
    [ -n "${SLURM_JOB_ID:-}" ] ||
        st_die "start it in a job of Slurm on two nodes, or name --hosts"
    [ "${SLURM_JOB_NUM_NODES:-2}" -ge 2 ] || [ ${#patterns[@]} -gt 0 ] ||
        st_die "the job has one node, two are needed (the tests '*-cxi*/*' need one)"
    launch="${launch:-srun --mpi=pmix} --cpu-bind=none"
    ST_CXI_LAUNCH="$launch -N 1 -n 1 -c ${SLURM_CPUS_ON_NODE:-1}"
    export ST_MPIRUN="$launch -N $((${SLURM_JOB_NUM_NODES:-2} == 1 ? 1 : 2))"
}

# The provider answers, over the card: else every test would fail.
check_provider()
{
    local out
    out=$(test/run.py --build "$ST_BUILD" --in unit-cxi \
          contrib/ucx-st-run -q "$ST_BUILD/src/tools/ucx_st_info" -d 2>&1)
    echo "$out"
    grep -q 'provider: cxi$' <<<"$out" ||
        st_die "the transport finds no device of the provider cxi"
}

cd "$ST_TOP" || exit 1
export ST_CXI_LAUNCH=
[ $list = no ] || exec test/run.py --tier $tier --list "${patterns[@]}"
set_up >&2
# Runs again what fails
export ST_AGAIN="contrib/run-on-cxi.sh --no-deps --libfabric $prefix"
if [ $tier = cxi ]; then
    emulate
else
    hardware
fi
check_provider >&2
st_say "libfabric $version"
[ $tier = hardware ] ||
    echo "seed $CASSINI_SEED: CASSINI_SEED=$CASSINI_SEED repeats it"
exec test/run.py --tier $tier --build "$ST_BUILD" "${words[@]}" \
    "${patterns[@]}"
