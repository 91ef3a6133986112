#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the project on libfabric's provider cxi: over the emulated Cassini of
# test/cassini or, between two nodes, over real ones.
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=contrib/common-tests.sh
. "$(dirname "${BASH_SOURCE[0]}")/common-tests.sh"

usage()
{
    cat <<STEOF
usage: contrib/run-on-cxi.sh --libfabric PREFIX [--card DIR] [--no-deps]
                             [--quick] [--jobs N] [--list] [PATTERN...]
       contrib/run-on-cxi.sh --libfabric PREFIX --hardware
                             [--hosts HOST,HOST | --launch COMMAND] [...]

Builds the project in build-cxi-VERSION/ against a libfabric, 1.21 or later,
that has been built with the provider cxi, and runs on that provider:

    bad/*              cards that lack something, or fail: what is said, and how
                       programs end
    provider/*         the suites that judge cxiemu, now cxi: the two agree
    unit-cxi/*         the unit suites of the transport and of ucp_st.h
    unit-cxi-open/*    memory of devices that processors reach, on lane trig
    unit-cxi-host/*    those of ucp_st.h on the lane host
    progress/*         P1 to P10 on 2 to 8 ranks
    random/*           5,000 random programs (P6), and some with few slots for
                       events
    storm/*            storms of 200 kills; in some, the dead are unreachable
    bench/*            st_faces and st_pingpong; their data is checked, their
                       speed is not judged
    integration-cxi/*  OpenMPI's point to point, collectives and osc/ucx, UCX's
                       perftest, and what else tests.list has for all NICs

over the emulated NIC test/cassini, a card of its own for each test, in a
namespace that has the network device which the provider looks for. A test
fails, too, if the NIC tells at its end that something was left open. Except in
bad/* and bench/*, the NIC draws order and lateness at random, from CASSINI_SEED
or from a seed that is printed at first; 0 draws nothing. What can make no sense
on the provider is in test/cxi-known.txt, and is counted as skipped. Ends with
"N passed, N failed, N skipped". Output is in build-cxi-VERSION/test-logs.

    --libfabric PREFIX  where it is installed
    --card DIR          a folder with another libcxi.so.1
    --no-deps           install and download nothing
    --quick             a tenth of the random programs, kills and iterations
    --jobs N            so many at a time
    --list              print the names of the tests, run none
    PATTERN             run only the tests whose names match

    --hardware          no emulated NIC: a first acceptance test between two
                        nodes with Slingshot cards, described in
                        docs/slingshot.md. The folder must be one that both
                        nodes have. Under Slurm it runs srun within the job;
    --hosts HOST,HOST   elsewhere OpenMPI's mpirun between these
    --launch COMMAND    srun with options, such as 'srun --mpi=pmix
                        --network=res_tles=512'

The status is 0 if nothing failed.
STEOF
}

prefix=
card=
deps=yes
quick=no
list=no
hardware=no
hosts=
launch=
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
    --quick) quick=yes ;;
    --list) list=yes ;;
    --hardware) hardware=yes ;;
    --jobs)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
        places=$2
        shift
        ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) patterns+=("$1") ;;
    esac
    shift
done
if [ -z "$prefix" ] || { [ $hardware = no ] && [ -n "$hosts$launch" ]; } ||
   { [ -n "$hosts" ] && [ -n "$launch" ]; }; then
    usage >&2
    exit 2
fi

# What is left out, by the names of tests: a pattern and its reason
declare -A known=()
known_file=$ST_TOP/test/cxi-known.txt
# Kills, random programs, and percent of the iterations
kills=200
programs=5000
percent=100
ranks=(2 3 4 5 6 7 8)
if [ $quick = yes ]; then
    kills=20
    programs=500
    percent=10
    ranks=(2 4 8)
fi

read_known()
{
    local pattern reason
    while read -r pattern reason; do
        case $pattern in
        ''|'#'*) ;;
        *)
            [ -n "$reason" ] || st_die "$known_file: $pattern has no reason"
            known[$pattern]=$reason
            ;;
        esac
    done <"$known_file"
}

# Sets reason; false if a test is not left out.  Usage: is_known NAME
is_known()
{
    local pattern
    for pattern in "${!known[@]}"; do
        # shellcheck disable=SC2053 # a pattern is meant
        if [[ $1 == $pattern ]]; then
            reason=${known[$pattern]}
            return
        fi
    done
    return 1
}

# What the emulated NIC draws from: the same for all
if [ -z "${CASSINI_SEED:-}" ]; then
    CASSINI_SEED=$((RANDOM * 32768 + RANDOM + 1))
fi
[[ $CASSINI_SEED =~ ^(0|[1-9][0-9]*)$ ]] ||
    st_die "CASSINI_SEED is no number: $CASSINI_SEED"
seed=$CASSINI_SEED
export CASSINI_SEED

# As check_sized(), but for what is left out.
# Usage: try_sized PLACES NAME COMMAND...
try_sized()
{
    local size=$1 name=$2 reason
    shift 2
    wanted "$name" || return 0
    if [ $list = yes ]; then
        echo "$name"
    elif is_known "$name"; then
        echo "$reason" >"$(log_of "$name")"
        count "$name" 77 0 "$(log_of "$name")"
    else
        check_sized "$size" "$name" "$@"
    fi
}

# The arguments of a suite that leave out some of its cases, which are counted;
# none if all are to run.  Usage: cases_of NAME DIR; sets cases
cases_of()
{
    local name=$1 dir=$2 all=() tcase reason
    cases=()
    [[ " ${!known[*]}" == *" $name:"* ]] && [ $list = no ] || return 0
    mapfile -t all < <("${one[@]}" "$dir/${name#*/}" --list)
    for tcase in "${all[@]}"; do
        if is_known "$name:$tcase"; then
            echo "$reason" >"$(log_of "$name:$tcase")"
            count "$name:$tcase" 77 0 "$(log_of "$name:$tcase")"
        else
            cases+=(--case "$tcase")
        fi
    done
}

# Usage: unit_suite PREFIX SUITE
unit_suite()
{
    local dir=$ST_BUILD/test/unit cases
    wanted "$1/$2" || return 0
    cases_of "$1/$2" "$dir"
    try_sized 1 "$1/$2" "${one[@]}" env -C "$dir" ST_BUILDDIR="$ST_BUILD" \
        srcdir="$ST_TOP/test/unit" "./$2" "${cases[@]}"
}

# Runs suites of unit tests that a make target prints.
# Usage: unit_suites PREFIX TARGET
unit_suites()
{
    local suite
    for suite in $(make -s -C "$ST_BUILD/test/unit" "$2" | tail -n 1); do
        unit_suite "$1" "$suite"
    done
}

# Cards that lack something, without a random order
bad()
{
    local name script=$ST_TOP/test/integration/cxi_bad.sh
    export CASSINI_SEED=0
    for name in $("$script" --list); do
        # Ranks that fail leave everything open
        [[ $name != down* ]] || export ST_CARD_LEAKS=no
        try_sized 2 "bad/$name" "${one[@]}" "$script" "$name"
        unset ST_CARD_LEAKS
    done
    CASSINI_SEED=$seed
}

unit_tests()
{
    # The provider forgets what it has mapped for work that it refuses. Before
    # libfabric 2.1 it lets writes overtake each other in spite of their order
    # where keys are optimized, which the transport's are not.
    ST_CARD_LEAKS=no FI_CXI_ENABLE_UNRESTRICTED_END_RO=0 \
        unit_suites provider print-cxi-tests
    unit_suites unit-cxi print-card-tests
    # Memory of devices that processors reach, and so the emulated NIC
    STANDIN_PROTECT=0 unit_suite unit-cxi-open test_st_gpu_trig
    st_lane host
    unit_suites unit-cxi-host print-lane-tests
    st_lane trig
}

# Usage: program NAME COMMAND...; the command is one of the build folder
program()
{
    local name=$1
    shift
    try_sized 1 "$name" "${one[@]}" "$ST_TOP/contrib/ucx-st-run" -q \
        "$ST_BUILD/$1" "${@:2}"
}

# P1 to P10 between processes of this node, and with few entries for all
progress()
{
    local number name share
    for name in p1 p2 p3 p4 p5 p7 p8 p9 p10; do
        [ $hardware = no ] || break
        # The provider keeps 8, and the rest is for all. P8 asks for the lane
        # trig, which takes 16 a process.
        export CASSINI_TLES=32
        [ $name != p8 ] || export CASSINI_TLES=80
        program "progress/few_$name.4" test/integration/st_progress \
            --ranks 4 --percent "$percent" --limit 120 "$name"
    done
    if [ $hardware = no ]; then
        export CASSINI_TLES=32
        program progress/few_p6.4 test/integration/st_random --ranks 4 \
            --max-uses 40 --limit 120 --seed 30000 --count $((programs / 10))
    fi
    export CASSINI_TLES=2048
    for number in "${ranks[@]}"; do
        share=$percent
        [ "$number" -le 4 ] || share=$(((percent + 4) / 5))
        for name in p1 p2 p3 p4 p5 p7 p8 p9 p10; do
            program "progress/$name.$number" test/integration/st_progress \
                --ranks "$number" --percent "$share" --limit 120 "$name"
        done
    done
    unset CASSINI_TLES
}

random()
{
    local part=$((programs / 10)) i
    for ((i = 0; i < 10; ++i)); do
        program "random/$i" test/integration/st_random --limit 120 \
            --seed $((20000 + (i * part))) --count "$part"
    done
    [ $hardware = no ] || return
    # Messages meet full queues, and are sent again
    CASSINI_EQ_SLOTS=8 program random/few_slots test/integration/st_random \
        --limit 120 --seed 26000 --count "$part"
}

storms()
{
    program storm/st test/integration/st_storm --kills "$kills"
    program storm/st_host test/integration/st_storm --lanes host \
        --kills "$kills"
    program storm/ucx test/integration/ucx_storm --kills "$kills"
    # As if the node had died: the network says that of its processes
    CASSINI_GONE=2 program storm/st_unreachable test/integration/st_storm \
        --kills "$kills"
}

# Programs of MPI on this node
bench()
{
    local grid
    export CASSINI_TLES=2048 CASSINI_SEED=0
    for grid in 2x1x1 4x1x1 2x2x1 2x2x2; do
        try_sized $((${grid//x/*})) "bench/faces.$grid" "${one[@]}" \
            "$ST_TOP/contrib/ucx-st-run" -q mpirun -n $((${grid//x/*})) \
            "$ST_BUILD/bench/st_faces" --grid $grid --trials 1 --middle 1 \
            --inner $((percent / 5))
    done
    try_sized 2 bench/pingpong "${one[@]}" "$ST_TOP/contrib/ucx-st-run" -q \
        mpirun -n 2 "$ST_BUILD/bench/st_pingpong" --max 1m --trials 1
    unset CASSINI_TLES
    CASSINI_SEED=$seed
}

integration()
{
    local name size run=$ST_TOP/test/integration/run.sh
    while read -r name size; do
        [ "$size" != all ] || size=$places
        # So that four ranks' uses need not wait for entries
        [[ $name == info.* ]] || export CASSINI_TLES=2048
        try_sized "$size" "integration-cxi/$name" "$run" --build "$ST_BUILD" \
            "$name"
        unset CASSINI_TLES
    done < <("$run" --busy --nic cxi | sort -s -k 2,2)
}

# The provider answers, over the card: else every test would fail.
check_provider()
{
    local out
    out=$(ST_BUILDDIR=$ST_BUILD UCX_TLS=cxi_trig,self \
          "${one[@]}" "$ST_TOP/contrib/ucx-st-run" -q \
          "$ST_BUILD/src/tools/ucx_st_info" -d 2>&1)
    echo "$out"
    grep -q 'provider: cxi$' <<<"$out" ||
        st_die "the transport finds no device of the provider cxi"
}

set_up()
{
    local lacks
    lacks=$(st_cxi_lacks "$prefix")
    [ -z "$lacks" ] || st_die "$lacks"
    prefix=$(realpath "$prefix")
    export ST_CXI_LIBDIR
    ST_CXI_LIBDIR=$(st_fabric_libdir "$prefix")
    version=$(st_fabric "$ST_CXI_LIBDIR" --modversion)
    ST_BUILD=$ST_TOP/build-cxi-$version
    logs=$ST_BUILD/test-logs
    mkdir -p "$logs"
    rm -f "$logs"/*.log
    if [ $deps = yes ]; then
        (st_install_packages "${ST_BUILD_PACKAGES[@]}") || exit 1
        (st_ucx_source) || exit 1
    fi
    # The card below libfabric is not there yet. With that, ld leaves out a
    # library of which a weak symbol is used, and then misses the symbol.
    st_build "$ST_BUILD" build --with-libfabric="$prefix" \
        LDFLAGS="-Wl,--allow-shlib-undefined -Wl,--no-as-needed" || exit 1
    build_tests unit && build_tests integration || exit 1
}

# The folder of the emulated card, made with the tests
find_card()
{
    local dir
    [ -z "$card" ] || { card=$(realpath "$card"); return; }
    make -C "$ST_BUILD/test/cassini" check >"$logs/card-build.log" 2>&1 ||
        st_die "the emulated NIC cannot be built: $logs/card-build.log"
    for dir in "$ST_BUILD"/test/cassini/.libs "$ST_BUILD"/test/cassini; do
        if [ -e "$dir/libcxi.so.1" ]; then
            card=$dir
            return
        fi
    done
    st_die "there is no libcxi.so.1 in $ST_BUILD/test/cassini"
}

# The emulated card, and what starts a program on one of its own
emulate()
{
    find_card
    export ST_CXI_CARD=$card
    st_nic cxi
    one=("${ST_NET[@]}")
    "$ST_TOP/contrib/own-card.sh" --probe ||
        st_die "no mount namespace may be made here: run as root, or allow" \
               "users to make namespaces"
}

# Two nodes with cards; one is the one that this script runs on.
hardware()
{
    export ST_CXI_CARD=
    if [ -n "$hosts" ]; then
        [[ $hosts == *,* ]] || st_die "--hosts needs two hosts: $hosts"
        one=()
    else
        [ -n "${SLURM_JOB_ID:-}" ] ||
            st_die "start it in a job of Slurm on two nodes, or name --hosts"
        [ "${SLURM_JOB_NUM_NODES:-2}" -ge 2 ] ||
            st_die "the job has one node, two are needed"
        read -r -a srun <<<"${launch:-srun --mpi=pmix}"
        one=("${srun[@]}" --cpu-bind=none -N 1 -n 1
             -c "${SLURM_CPUS_ON_NODE:-1}")
    fi
    places=1
    export OMPI_MCA_osc=ucx
    st_nic cxi
}

# Runs ranks of MPI over both nodes.
# Usage: on_nodes NAME RANKS COMMAND...; the command is one of the build folder
on_nodes()
{
    local name=$1 size=$2 run=$ST_TOP/contrib/ucx-st-run
    shift 2
    if [ -n "$hosts" ]; then
        try_sized 1 "$name" "$run" -q mpirun --host "${hosts//,/:8,}:8" \
            --map-by node -x ST_BUILDDIR -n "$size" "$ST_BUILD/$1" "${@:2}"
    else
        try_sized 1 "$name" "${srun[@]}" --cpu-bind=none -N 2 -n "$size" \
            "$run" -q "$ST_BUILD/$1" "${@:2}"
    fi
}

nodes()
{
    local size name
    on_nodes nodes/info 2 src/tools/ucx_st_info -d
    for size in 2 8; do
        while read -r name; do
            on_nodes "nodes/$name.$size" "$size" \
                test/integration/mpix_progress --percent "$percent" "$name"
        done < <("$ST_BUILD/test/integration/mpix_progress" --list)
        for name in p2p coll rma threads; do
            on_nodes "nodes/mpi_$name.$size" "$size" \
                test/integration/mpi_plain "$name"
        done
    done
    on_nodes nodes/pingpong 2 bench/st_pingpong --max 1m --trials 1
    on_nodes nodes/faces.2x1x1 2 bench/st_faces --grid 2x1x1 --trials 1
    on_nodes nodes/faces.2x2x2 8 bench/st_faces --grid 2x2x2 --trials 1
}

cd "$ST_TOP" || exit 1
read_known
set_up >&2
trap stop INT TERM
[ $hardware = yes ] || st_loopback
st_forking
st_lane trig
export UCX_TLS=cxi_trig,self ST_BUILDDIR=$ST_BUILD
srun=()
if [ $hardware = yes ]; then
    hardware
else
    emulate
fi
if [ $list = no ]; then
    check_provider >&2
    st_say "libfabric $version"
fi
if [ $hardware = no ]; then
    [ $list = yes ] || echo "seed $seed: CASSINI_SEED=$seed repeats it"
    bad
fi
unit_tests
progress
random
if [ $hardware = yes ]; then
    reap_all
    nodes
else
    storms
    integration
    bench
fi
reap_all
[ $list = yes ] || summary
