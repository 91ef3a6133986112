#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the benchmarks report of the lanes that moved their messages.
# usage: bench.sh trig|host|mixed|kernel|service|compare RANKS PROGRAM [OPTION...] |
#                 mbw RANKS VARIANTS [OPTION...] | cost|wrt [OPTION...] |
#                 numbers | all | fails | counts | once | figures | nodes
#   trig   the network card moves everything: deferred writes fired are messages
#          times uses, and the report's counts say so
#   host   the same of the host lane, where it is asked for
#   mixed  a thread moves some although the card is to: that is said, and an
#          error
#   kernel  on streams of a GPU its kernels move everything on the direct lane,
#          each call of starts by one of them, and no thread has a part in it
#   service  there threads move everything
#   compare  all that GPUs are compared with is measured, on stand-ins of NCCL and
#          NVSHMEM, but for MPI on such memory, and it is said why that is not
#   mbw    st_mbw tells the rate of each of these variants, on the direct lane,
#          and that this is what one-sided ones go over
#   cost   st_cost measures what it is to, on all lanes
#   wrt    st_wrt does, for 1 to 4 streams of the kind that --stream says
#   numbers  what is no number, or too large or small, is refused by name
#   all    run-all runs everything once, and its file, tables and plots have it
#   fails  it tells what failed, and keeps the rest
#   figures  paper-figure tells what can be made, makes it by mpirun and by what
#          stands for srun, and refuses the rest; its table names what there is
#   nodes  run-all runs over two nodes, which are namespaces of this machine
#   counts  what uses take is what docs/performance.md says, and a document with
#          another count is found out
#   once   messages that are used once, for queues only, take what it says
# Needs srcdir, builddir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

# A card for each process: what one holds is not shared
export FI_CXIEMU_SERVICE=own

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

fail()
{
    echo "bench.sh: $*" >&2
    sed 's/^/    /' "$temp/out" >&2
    exit 1
}

# Runs a program with a report; sets rc.
run_program()
{
    rc=0
    "$@" --json "$temp/json" >"$temp/out" 2>&1 || rc=$?
    cat "$temp/out"
    command -v python3 >/dev/null ||
        { echo "skipped: python3 is not installed"; exit 77; }
    python3 -m json.tool "$temp/json" >"$temp/pretty" || fail "this is no JSON"
}

# Usage: run_ranks RANKS PROGRAM [OPTION...]
run_ranks()
{
    local ranks=$1 program=$2
    shift 2
    run_program "$ST_RUN" -q mpirun -n "$ranks" \
        "${builddir:?}/bench/$program" "$@"
}

# The values of a count, one for each process, are so many and match.
# Usage: expect_counts NUMBER NAME REGEX
expect_counts()
{
    local found
    found=$(grep -cE "^            \"$2\": ($3),?$" "$temp/pretty")
    [ "$found" -eq "$1" ] ||
        fail "$found of $1 processes report $2 of the form $3"
}

# Each message was one deferred write, and those that were split have as many
# more as that took.
expect_all_fired()
{
    local name
    local -A count
    for name in messages deferred_writes_fired chunks operations_proxied; do
        count[$name]=$(sed -n "s/.*\"$name\":\([0-9]*\)[,}].*/\1/p" \
            "$temp/json" | head -n 1)
        [ -n "${count[$name]}" ] || fail "the report has no $name"
    done
    [ "${count[messages]}" -gt 0 ] || fail "no messages"
    [ $((count[deferred_writes_fired] - count[chunks])) -eq \
        "${count[messages]}" ] ||
        fail "${count[messages]} messages, but" \
            "${count[deferred_writes_fired]} deferred writes fired," \
            "${count[chunks]} of them further parts"
    [ "${count[operations_proxied]}" -eq 0 ] || fail "operations are proxied"
}

expect_quiet()
{
    [ "$rc" -eq 0 ] || fail "status $rc"
    ! grep -q 'WARNING' "$temp/out" || fail "it warns"
}

test_trig()
{
    run_ranks "$@"
    expect_quiet
    expect_counts "$1" trig_starts '[1-9][0-9]*'
    expect_all_fired
    expect_counts "$1" host_starts 0
    expect_counts "$1" proxied 0
}

test_host()
{
    UCX_ST_LANES=host run_ranks "$@"
    expect_quiet
    expect_counts "$1" host_starts '[1-9][0-9]*'
    expect_counts "$1" proxied '[1-9][0-9]*'
    ! grep -q 'trig_starts' "$temp/pretty" || fail "there is a trig lane"
}

test_mixed()
{
    UCX_ST_LANES=trig,host FI_CXIEMU_DWQ_ENTRIES=16 run_ranks "$@"
    # Streams of GPUs do not reach the emulated card: a thread always moves
    if [[ " $* " == *' --stream host '* ]]; then
        [ "$rc" -ne 0 ] || fail "it succeeds"
    fi
    grep -qE 'rank [0-9]+: WARNING: the trig lane is asked for' "$temp/out" ||
        fail "it does not warn"
    expect_counts "$1" proxied '[1-9][0-9]*'
}

# Sums of a count over the processes.
# Usage: count_all NAME
count_all()
{
    sed -n "s/^            \"$1\": \([0-9]*\),\?\$/\1/p" "$temp/pretty" |
        awk '{ sum += $1 } END { print sum + 0 }'
}

# HIP's waits are kernels, too: at most one for each call
test_kernel()
{
    local starts launches
    UCX_ST_LANES=direct UCX_ST_DIRECT_GPU_TIER=kernel run_ranks "$@"
    expect_quiet
    expect_counts "$1" direct_starts '[1-9][0-9]*'
    expect_counts "$1" proxied 0
    expect_counts "$1" staged 0
    expect_counts "$1" copies 0
    expect_counts "$1" wakeups 0
    [ "$(grep -c '"wakeups_per_use": 0.0,' "$temp/pretty")" -gt 0 ] ||
        fail "wake-ups of a use are not told to be none"
    ! grep -q '"verified":false' "$temp/json" || fail "data is wrong"
    starts=$(count_all start_cmds)
    launches=$(count_all launches)
    [ "$starts" -gt 0 ] || fail "there are no starts"
    if [[ " $* " == *' --stream cuda '* ]]; then
        [ "$launches" -eq "$starts" ] ||
            fail "$launches kernels for $starts calls of starts"
    else
        if [ "$launches" -le "$starts" ] || [ "$launches" -gt $((2 * starts)) ]
        then
            fail "$launches kernels for $starts calls of starts, and waits"
        fi
    fi
}

test_service()
{
    UCX_ST_LANES=direct UCX_ST_DIRECT_GPU_TIER=service run_ranks "$@"
    expect_quiet
    expect_counts "$1" proxied '[1-9][0-9]*'
    ! grep -q '"verified":false' "$temp/json" || fail "data is wrong"
}

test_compare()
{
    local variant
    LD_LIBRARY_PATH=${builddir:?}/test/standin/comm:$LD_LIBRARY_PATH \
        UCX_ST_LANES=direct run_ranks "$@"
    expect_quiet
    ! grep -q '"verified":false' "$temp/json" || fail "data is wrong"
    for variant in mpi st st-ready nccl nvshmem; do
        expect_row '[0-9]*' "$variant" median_us
    done
    grep -q '^mpi-device is left out: MPI sends by UCX, which has no' \
        "$temp/out" || fail "it does not say why there is no mpi-device"
}

# Usage: expect_row SIZE VARIANT MEMBER...
expect_row()
{
    local row member size=$1 variant=$2
    shift 2
    row=$(grep -E "^ +\{\"size\":$size,\"variant\":\"$variant\"," "$temp/json")
    [ -n "$row" ] || fail "no row $variant of size $size"
    for member; do
        [[ $row =~ \"$member\": ]] || fail "row $variant has no $member"
    done
}

# Usage: test_mbw RANKS VARIANTS [OPTION...]
test_mbw()
{
    local variant variants=$2
    UCX_ST_LANES=direct UCX_TLS=posix,self run_ranks "$1" st_mbw \
        --variants "$variants" --min 8 --max 8k --factor 1024 "${@:3}"
    expect_quiet
    expect_counts "$1" direct_starts '[1-9][0-9]*'
    grep -q '"one_sided_lane":"direct"' "$temp/json" || fail "another lane"
    for variant in ${variants//,/ }; do
        expect_row 8 "$variant" mb_per_s
        expect_row 8192 "$variant" mb_per_s
    done
    ! grep -q '"verified":false' "$temp/json" || fail "data is wrong"
}

test_cost()
{
    local lane
    run_program "$ST_RUN" -q "${builddir:?}/bench/st_cost" "$@"
    expect_quiet
    for lane in trig host both; do
        expect_row 0 idle-$lane percent_of_a_core
    done
    for lane in trig host; do
        expect_row 100 match-$lane us_per_pair malloc_bytes_per_pair limit
        expect_row 64 "start-send-$lane"
        expect_row 64 "waitall-recv-$lane"
    done
    expect_row 64 startall-send-trig beside_provider_ns
    expect_row 64 post-raw-send
    expect_counts 2 trig_starts '[1-9][0-9]*'
    expect_counts 2 host_starts '[1-9][0-9]*'
    # The card has no counters for so many, and holds no entries: that is said
    expect_row '[3-9][0-9][0-9]' match-trig limit
    grep -qE 'match-trig .*; of 10000: no resource beyond 0 entries' \
        "$temp/out" || fail "no limit of the card"
    expect_row 10000 match-host limit
}

test_wrt()
{
    local streams threads how
    run_program "${builddir:?}/bench/st_wrt" --streams 4 "$@"
    expect_quiet
    if [[ "$* " != *"--stream host "* ]]; then
        grep -qE '"stream_device":"(hip|cuda) stream \((HIP|CUDA) [0-9]+ on ' \
            "$temp/json" || fail "it does not say on what"
        for streams in 1 2 4; do
            expect_row "$streams" gpu-function median_us worst_us
            expect_row "$streams" gpu-store median_us worst_us
        done
        ! grep -q '"verified":false' "$temp/json" || fail "words are wrong"
        return
    fi
    for streams in 1 2 4; do
        for threads in own group-1 group-2; do
            for how in poll sleep; do
                expect_row "$streams" "$threads-$how" median_us min_us max_us \
                    ratio worst_us
            done
        done
    done
    ! grep -qE '"size":(0|[5-9]|3)' "$temp/json" || fail "too many rows"
    ! grep -q '"verified":false' "$temp/json" || fail "words are wrong"
}

# Usage: refused PROGRAM OPTION...
refused()
{
    local program=$1 option value rc
    shift
    for option; do
        for value in 0 -1 x 1x '' 1.5 99999999999999999999; do
            rc=0
            "${builddir:?}/bench/$program" "--$option" "$value" \
                >"$temp/out" 2>&1 || rc=$?
            [ "$rc" -eq 2 ] || fail "$program --$option '$value': status $rc"
            grep -qE "^$program: --$option: '$value' is not a number from [1-9]" \
                "$temp/out" || fail "$program --$option '$value': what is wrong?"
        done
    done
}

test_numbers()
{
    refused st_cost trials pairs ops idle
    refused st_wrt streams wait-us trials count
    refused st_trig max trials count
    refused st_ucx max trials count
    refused st_channel min max factor trials count
    refused st_growth peers groups pairs rounds
}

# Runs run-all with the options; sets rc.
run_everything()
{
    rc=0
    command -v python3 >/dev/null ||
        { echo "skipped: python3 is not installed"; exit 77; }
    "${srcdir:?}/bench/run-all" --build "$builddir" --quick \
        -o "$temp/all" "$@" >"$temp/out" 2>&1 || rc=$?
    cat "$temp/out"
}

# The program of Python finds what it is to in the file, as "all".
# Usage: expect_file WHAT PROGRAM
expect_file()
{
    python3 -c "import json, statistics, sys
all = json.load(open(sys.argv[1]))
$2" "$temp/all.json" >>"$temp/out" 2>&1 || fail "$1"
}

test_all()
{
    local name
    run_everything
    [ "$rc" -eq 0 ] || fail "status $rc"
    expect_file "not all ran, or settings or load are not told" "
assert {run['bench'] for run in all['runs']} == {
    'st_pingpong', 'st_faces', 'st_mbw', 'st_life', 'st_cg', 'st_cost', 'st_wrt',
    'st_trig', 'st_ucx', 'st_channel', 'st_jacobi3d'}
for run in all['runs']:
    assert 'error' not in run and run['report']['rows']
    assert run['load_before'] >= 0 and run['load_after'] >= 0
    assert 0 <= run['stolen_percent'] <= 100
    assert run['environment'].items() >= all['settings'][run['setting']].items()
assert all['machine']['cores'] > 0 and all['quick']"
    expect_file "ratios are not the largest of those to MPI" "
points = {}
for run in all['runs']:
    for row in run['report']['rows'] if run['bench'] == 'st_pingpong' else ():
        points.setdefault((run['memory'], row['size']), {}).setdefault(
            (run['lane'], run['mpi']), {})[row['variant']] = row['median_us']
assert {memory for memory, _ in points} == {'malloc', 'mpi'}
figures = {((figure['memory'], figure['size']), figure['series']): figure
           for figure in all['figures'] if figure['bench'] == 'st_pingpong'}
for key, runs in points.items():
    for variant in ('st', 'st-ready'):
        ratios = [(runs['direct', way][variant] / base, mpi)
                  for way in ('posix', 'cma') for base, mpi in (
                      (runs['direct', way]['mpi'], way),
                      (runs[None, 'ob1']['mpi'], 'ob1'))]
        means = {way: statistics.median(ratio for ratio, mpi in ratios
                                        if mpi == way) for _, way in ratios}
        figure = figures[key, 'direct ' + variant]
        assert abs(figure['ratio']['median'] - max(means.values())) < 1e-3
        assert figure['best'] == max(means, key=means.get)
        assert 'ratio' not in figures.get((key, 'trig ' + variant), ())
    assert figures[key, 'mpi best']['time_us']['median'] == min(
        figures[key, 'mpi, ' + mpi]['time_us']['median']
        for mpi in ('posix', 'cma', 'ob1'))
assert ('malloc', 8) in points and figures[('malloc', 8), 'trig st']"
    expect_file "targets are not judged" "
judged = {target['what']: target for target in all['targets']}
target = judged['direct, malloc, to 32 KiB: round trip / mpi']
found = [figure['ratio']['median'] for figure in all['figures']
         if figure['bench'] == 'st_pingpong' and 'ratio' in figure and
         figure['memory'] == 'malloc' and figure['size'] <= 32768 and
         figure['series'] in ('direct st', 'direct st-ready')]
assert target['figures'] == len(found) > 0
assert target['worst'] == max(found)
assert target['pass'] == (target['worst'] <= target['must'])
assert 'pass' not in judged['direct, malloc, 64 to 256 KiB: round trip / mpi']
# Counts are the same on every machine
for what, target in judged.items():
    assert not what.startswith('trig, ') or target['pass'], target"
    grep -q '^quick: these figures are no results' "$temp/out" ||
        fail "it does not say that these are no results"
    if ! python3 -c 'import matplotlib' 2>"$temp/err"; then
        grep -q 'no plots were drawn .*package python3-matplotlib' \
            "$temp/out" || fail "it does not say what was not drawn"
        return
    fi
    for name in latency ratio faces mbw rma channel channel-rate \
        jacobi3d; do
        grep -q '</svg>' "$temp/all-$name.svg" || fail "no whole plot of $name"
        [ -s "$temp/all-$name.png" ] || fail "no picture of $name"
    done
}

# Usage: launch STREAM
test_launch()
{
    local stream=$1 options=()
    [ "$stream" = host ] || options=(--stream "$stream")
    run_everything --bench faces,cost --launch "mpirun --oversubscribe" \
        "${options[@]}"
    [ "$rc" -eq 0 ] || fail "status $rc"
    expect_file "another launcher, card or stream" "
stream = '$stream'
assert all['card'] == 'cxiemu (emulated)' and all['stream'] == stream
assert {run['bench'] for run in all['runs']} == (
    {'st_faces', 'st_cost'} if stream == 'host' else {'st_faces'})
for run in all['runs']:
    if run['bench'] == 'st_faces':
        assert run['launcher'] == ['mpirun', '--oversubscribe', '-n', '2']
        assert run['report']['stream'].startswith(stream)"
}

test_fails()
{
    FI_CXIEMU_DWQ_ENTRIES=16 run_everything --bench faces
    [ "$rc" -eq 1 ] || fail "status $rc"
    grep -q '^run-all: st_faces, trig, ready, 2 ranks: status' "$temp/out" ||
        fail "it does not say what failed"
    expect_file "the file does not tell it, or not the rest" "
failed = [run['setting'] for run in all['runs'] if 'error' in run]
assert failed == 6 * ['trig']
assert len(all['runs']) == 12
assert any(figure['series'] == 'direct st' for figure in all['figures'])"
}

test_counts()
{
    command -v python3 >/dev/null ||
        { echo "skipped: python3 is not installed"; exit 77; }
    local document=${srcdir:?}/docs/performance.md
    unset FI_CXIEMU_SERVICE
    "$srcdir/bench/run-all" --build "${builddir:?}" --counts \
        --check "$document" >"$temp/out" 2>&1 || fail "status $?"
    cat "$temp/out"
    # What it printed last are the tables that were compared
    PYTHONPATH=$srcdir/bench python3 -B -c "import sys
import bench_uses
document = open(sys.argv[1], encoding='utf-8').read()
printed = open(sys.argv[2], encoding='utf-8').read()
made = [bench_uses.table_in(printed, bench_uses.line(head)) for head in
        (bench_uses.USES_HEAD, bench_uses.TOTALS_HEAD)]
assert [len(lines) for lines in made] == [10, 4]
bench_uses.compare(document, made)
for old, new in (('| 53 |', '| 54 |'), ('| 1840 |', '| 1841 |'),
                 (made[0][2] + '\\n', ''), (made[1][0], '')):
    other = document.replace(old, new, 1)
    assert other != document
    try:
        bench_uses.compare(other, made)
    except bench_uses.Differs:
        continue
    raise AssertionError(new)" "$document" "$temp/out" 2>"$temp/err" ||
        fail "another document passes: $(tail -n 1 "$temp/err")"
}

test_once()
{
    local variant stores words deferred
    export UCX_ST_LANES=trig MPIX_QUEUE_ONLY=y
    run_ranks 8 st_faces --grid 2x2x2 --trials 1 --middle 1 --inner 3 \
        --variants st-hpe,st-fifo,st-mpich,st-libmp
    expect_quiet
    while read -r variant stores words deferred; do
        grep -q "^| .$variant., .*| $stores | $words | $deferred |$" \
            "${srcdir:?}/docs/performance.md" || fail "$variant: not documented"
        grep -qE "^$variant +$stores\\.00 +$words\\.00 +$deferred\\.00 " \
            "$temp/out" || fail "$variant: other counts"
    done <<<"st-hpe 2 1 79
st-fifo 2 1 79
st-mpich 52 1 79
st-libmp 27 1 78"
    expect_counts 8 proxied 0
}

# Runs paper-figure with the options; expects a status and a text.
# Usage: expect_figure STATUS REGEX OPTION...
expect_figure()
{
    local want=$1 regex=$2 rc=0
    shift 2
    "${srcdir:?}/bench/paper-figure" --build "${builddir:?}" -o "$temp/all" "$@" \
        >"$temp/out" 2>&1 || rc=$?
    cat "$temp/out"
    [ $rc -eq "$want" ] || fail "paper-figure $*: status $rc"
    grep -qE "$regex" "$temp/out" || fail "paper-figure $*: no \"$regex\""
}

# In srun's place, by mpirun; it tells what it was asked
make_srun()
{
    cat >"$temp/srun" <<'STEOF'
#!/bin/bash
echo "srun $*" >>"${0%/*}/asked"
while :; do
    case $1 in
    --export=*) preload=${1##*LD_PRELOAD=}; shift ;;
    -n) ranks=$2; shift 2 ;;
    -N) shift 2 ;;
    -*) shift ;;
    *) exec mpirun --oversubscribe -x "LD_PRELOAD=$preload" -n "$ranks" "$@" ;;
    esac
done
STEOF
    chmod +x "$temp/srun"
}

test_figures()
{
    command -v python3 >/dev/null ||
        { echo "skipped: python3 is not installed"; exit 77; }
    expect_figure 0 '^[3-9][0-9] figures: all right' --check
    expect_figure 0 '^003-5 +in part .*Round trip' --list
    grep -q '^  *streams and memory of the host, not of a GPU; ' "$temp/out" ||
        fail "it does not say what is less"
    grep -A 1 '^002-17 *no ' "$temp/out" | grep -q 'no benchmark yet: there is no' ||
        fail "it does not say why it cannot be made"
    expect_figure 77 '^paper-figure: 002-17 cannot be made here: no benchmark' 002-17
    expect_figure 77 'needs a card that is not emulated' 001-4
    expect_figure 77 'needs 2 ranks: there are processors' --per-node 1 003-5
    expect_figure 0 '^st-ready +256 B .* 0.51..0.88 .text.; 0.58 .data.' --quick 003-5
    cp "$temp/all-003-5.json" "$temp/all.json"
    expect_file "values are not what the runs say" "
times = {(run['round'], row['size'], row['variant']): row['median_us']
         for run in all['runs'] for row in run['report']['rows']}
assert len(all['runs']) == 2 and all['quick'] and all['less']
assert {value['series'] for value in all['values']} == {'st', 'st-ready'}
for value in all['values']:
    ratios = [times[number, value['x'], value['series']] /
              times[number, value['x'], 'mpi'] for number in (1, 2)]
    assert abs(value['mean'] - statistics.mean(ratios)) < 1e-9
    assert abs(value['interval'] - 12.71 * abs(ratios[0] - ratios[1]) / 2) < 1e-6"
    sed -n '/^003-5:/,$p' "$temp/out" >"$temp/first"
    expect_figure 0 '^003-5' --from "$temp/all.json"
    sed -n '/^003-5:/,$p' "$temp/out" | cmp - "$temp/first" || fail "another table"
    expect_figure 0 '^metadata +2 .* 1.1..12.4 .text.' --quick --runs 1 \
        --per-node 2 002-15
    make_srun
    expect_figure 0 '^st +8 B' --quick --runs 1 --launch "$temp/srun --mpi=pmix" \
        --per-node 2 --memory mpi 003-5
    grep -qE '^srun --export=\S+ --mpi=pmix -n 2 -N 1 --ntasks-per-node=2 \S+pingpong .*--memory mpi ' \
        "$temp/asked" || fail "srun was asked for: $(cat "$temp/asked")"
    grep -q '^srun .* -N 1 -n 1 .*ucx_st_info' "$temp/asked" ||
        fail "the card was not looked for by srun"
}

# Nodes share the build folder, not /tmp. Without matplotlib there is no picture.
test_nodes()
{
    local rc=0
    command -v python3 >/dev/null ||
        { echo "skipped: python3 is not installed"; exit 77; }
    rm -rf "$temp"
    temp=$(mktemp -d -p "${builddir:?}")
    UCX_CXI_TRIG_PROVIDER=sockets "${srcdir:?}/contrib/own-nodes.sh" 2 \
        "$srcdir/bench/run-all" --build "$builddir" --quick -o "$temp/all" \
        --bench life --hosts node1,node2 >"$temp/out" 2>&1 || rc=$?
    cat "$temp/out"
    [ $rc -ne 77 ] || exit 77
    [ $rc -eq 0 ] || fail "status $rc"
    expect_file "it did not run over two nodes" "
assert all['card'] == 'sockets' and all['nodes'] == 2
assert [run['setting'] for run in all['runs']] == ['nodes-ucx', 'ofi']
for run in all['runs']:
    assert run['launcher'][1:] == ['-n', '2', '--host', 'node1:1,node2:1',
                                   '--map-by', 'ppr:1:node:oversubscribe']
    assert 'OMPI_MCA_oob_tcp_if_include' in run['environment']
    assert run['environment']['OMPI_MCA_oob_tcp_if_include'] != 'lo'
for rank in all['runs'][0]['report']['stats'].values():
    assert rank['trig_starts'] > 0
assert any(figure['series'] == 'nodes st' and figure['ratio']['median'] > 0
           for figure in all['figures'] if 'ratio' in figure)"
}

case ${1:-} in
trig|host|mixed|kernel|service|compare|mbw|cost|wrt|numbers|all|launch|fails|counts|once|\
figures|nodes) "test_$1" "${@:2}" ;;
*) fail "there is no test \"${1:-}\"" ;;
esac
