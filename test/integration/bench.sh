#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the benchmarks report of the lanes that moved their messages.
# usage: bench.sh trig|host|mixed RANKS PROGRAM [OPTION...] |
#                 mbw RANKS VARIANTS [OPTION...] | cost|wrt [OPTION...] |
#                 numbers | all | places | floor | fails
#   trig   the network card moves everything, and the report's counts say so
#   host   the same of the host lane, where it is asked for
#   mixed  a thread moves some although the card is to: that is said, and an
#          error
#   mbw    st_mbw tells the rate of each of these variants, on the direct lane,
#          and that this is what one-sided ones go over
#   cost   st_cost measures what it is to, on all lanes
#   wrt    st_wrt does, for 1 to 4 streams
#   numbers  what is no number, or too large or small, is refused by name
#   all    run-all runs everything once, and its file, tables and plots have it
#   places it tells near cores from far ones
#   floor  long messages are compared with MPI of other runs by way of the floor
#   fails  it tells what failed, and keeps the rest
# Needs srcdir, builddir and ST_RUN in the environment, as run.sh sets them.
set -uo pipefail

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
    run_program "$ST_RUN" mpirun -n "$ranks" "${builddir:?}/bench/$program" "$@"
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

# All processes have something of one of these counts.
# Usage: expect_some NUMBER NAME...
expect_some()
{
    local number=$1 name
    shift
    for name; do
        [ "$(grep -cE "^            \"$name\": [1-9]" "$temp/pretty")" -ne \
            "$number" ] || return 0
    done
    fail "not all of $number processes report one of: $*"
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
    expect_some "$1" writes_fired coalesced
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
    FI_CXIEMU_DWQ_ENTRIES=16 run_ranks "$@"
    [ "$rc" -ne 0 ] || fail "it succeeds"
    grep -qE 'rank [0-9]+: WARNING: the trig lane is asked for' "$temp/out" ||
        fail "it does not warn"
    expect_counts "$1" host_starts '[1-9][0-9]*'
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
    run_program "$ST_RUN" "${builddir:?}/bench/st_cost" "$@"
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
    # The card cannot hold so many: that is said
    expect_row '[12][0-9][0-9]' match-trig limit
    grep -qE 'match-trig .*; of 10000: no resource' "$temp/out" ||
        fail "no limit of the card"
    expect_row 10000 match-host limit
}

test_wrt()
{
    local streams who how
    run_program "${builddir:?}/bench/st_wrt" --streams 4 "$@"
    expect_quiet
    for streams in 1 2 4; do
        for who in own group-1 group-2; do
            for how in poll sleep; do
                expect_row "$streams" "$who-$how" median_us min_us max_us \
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
    refused st_wrt streams trials count
    refused st_trig max trials count
    refused st_ucx max trials count
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
    python3 -c "import json, sys
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
    'st_pingpong', 'st_faces', 'st_mbw', 'st_cost', 'st_wrt', 'st_trig',
    'st_ucx'}
for run in all['runs']:
    assert 'error' not in run and run['report']['rows']
    assert run['load_before'] >= 0 and run['load_after'] >= 0
    assert 0 <= run['stolen_percent'] <= 100
    assert run['environment'].items() >= all['settings'][run['setting']].items()
assert all['machine']['cores'] > 0 and all['quick']"
    expect_file "ratios are not the largest of those to MPI" "import statistics
points = {}
for run in all['runs']:
    for row in run['report']['rows'] if run['bench'] == 'st_pingpong' else ():
        points.setdefault((run['memory'], row['size']), {}).setdefault(
            (run['lane'], run['mpi']), {})[row['variant']] = row
assert {memory for memory, _ in points} == {'malloc', 'mpi'}
figures = {((figure['memory'], figure['size']), figure['series']): figure
           for figure in all['figures'] if figure['bench'] == 'st_pingpong'}
def line(rows):
    return statistics.median(time for row in rows.values()
                             for trial in row['trials']
                             for time in trial['line_ns'])
for key, runs in points.items():
    alone = runs[None, 'ob1']
    assert line(alone) > 0
    is_comparable = False
    for lane in ('direct', 'trig'):
        for variant in ('st', 'st-ready'):
            ratios = {}
            for mpi in ('posix', 'cma'):
                run = runs[lane, mpi]
                ratios[mpi] = [run[variant]['ratio']]
                lines = line(run), line(alone)
                if max(lines) <= 3 * min(lines):
                    ratios.setdefault('ob1', []).append(
                        run[variant]['median_us'] / alone['mpi']['median_us'])
            ratio, mpi = max((statistics.median(values), mpi)
                             for mpi, values in ratios.items())
            figure = figures[key, lane + ' ' + variant]
            assert ('ratio' in figure) == ('ob1' in ratios)
            if 'ratio' not in figure:
                continue
            is_comparable = True
            assert abs(figure['ratio']['median'] - ratio) < 1e-3
            assert figure['best'] == mpi
    assert ('ratio' in figures[key, 'floor']) == is_comparable
    assert not is_comparable or figures[key, 'floor']['ratio']['median'] > 0
    assert figures[key, 'mpi best']['time_us']['median'] == min(
        figures[key, 'mpi, ' + mpi]['time_us']['median']
        for mpi in ('posix', 'cma', 'ob1'))"
    expect_file "targets are not judged" "
judged = {target['what']: target for target in all['targets']
          if 'place' not in target}
assert {target['place'] for target in all['targets'] if 'place' in target} == (
    set(all['places']))
target = judged['direct, malloc, to 8 KiB: round trip / mpi']
found = [figure for figure in all['figures']
         if figure['bench'] == 'st_pingpong' and 'ratio' in figure and
         figure['memory'] == 'malloc' and figure['size'] <= 8192 and
         figure['series'] in ('direct st', 'direct st-ready')]
assert target['figures'] == len(found)
assert ('pass' in target) == (len(found) > 0)
if found: # none where MPI alone had cores elsewhere
    assert target['pass'] == (target['worst'] <= target['must'])
    assert target['floor'] in [
        figure['ratio']['median'] for figure in all['figures']
        if figure['series'] == 'floor' and figure['memory'] == 'malloc' and
        'ratio' in figure]
assert 'floor' not in judged['standard / ready send in the halo']
assert 'pass' not in judged['direct, malloc, 64 KiB: round trip / mpi']"
    grep -q '^quick: these figures are no results' "$temp/out" ||
        fail "it does not say that these are no results"
    if ! python3 -c 'import matplotlib' 2>"$temp/err"; then
        grep -q 'no plots were drawn .*package python3-matplotlib' \
            "$temp/out" || fail "it does not say what was not drawn"
        return
    fi
    for name in latency ratio faces mbw rma; do
        grep -q '</svg>' "$temp/all-$name.svg" || fail "no whole plot of $name"
        [ -s "$temp/all-$name.png" ] || fail "no picture of $name"
    done
}

# Trials with near and with far cores are told apart, and left out where cores
# were moved meanwhile
test_places()
{
    command -v python3 >/dev/null ||
        { echo "skipped: python3 is not installed"; exit 77; }
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="${srcdir:?}/bench" python3 -c "
import bench_results
MIB = 4 << 20
NEAR = {8: 0.15, 256 << 10: 17, MIB: 700}
FAR = {8: 0.6, 256 << 10: 31, MIB: 800}
LINES = {'near': (100, 130), 'far': (510, 480), 'moved': (130, 480)}
def trials(time, places):
    return [{'time_us': time * (9 if place == 'moved' else 1),
             'line_ns': LINES[place]} for place in places]
def run(number, lane, mpi, floors, factor, places):
    rows = [{'size': size, 'variant': variant, 'median_us': time * times,
             'ratio': times / 10, 'trials': trials(time * times, places[size])}
            for size, time in floors.items()
            for variant, times in (('raw', 1), ('mpi', 10), ('st', factor))]
    return {'bench': 'st_pingpong', 'round': number, 'lane': lane, 'mpi': mpi,
            'ranks': 2, 'memory': 'malloc', 'report': {'rows': rows}}
def all_ways(number, floors, factor, place):
    places = {size: [place, place, 'moved'] for size in floors}
    if place == 'moved': # in the midst of the run, to far ones
        places = {8: ['near', 'near', 'moved'], 256 << 10: 3 * ['moved'],
                  MIB: ['far', 'far', 'moved']}
    return [run(number, lane, mpi, floors, factor, places) for lane, mpi in (
        ('direct', 'posix'), ('direct', 'cma'), (None, 'ob1'))]
runs = (all_ways(1, NEAR, 2, 'near') + all_ways(2, FAR, 3, 'far') +
        all_ways(3, {**FAR, 8: 0.15}, 4, 'moved'))
assert bench_results.combine_places(all_ways(1, NEAR, 3, 'near')) == {}
places = bench_results.combine_places(runs)
assert list(places) == ['near', 'far']
found = {(place, figure['size']): (figure['ratio']['min'],
                                   figure['ratio']['max'])
         for place in places for figure in places[place]
         if figure['series'] == 'direct st'}
assert found['near', 8] == (.2, .4) and found['far', 8] == (.3, .3), found
assert found['near', MIB] == (.2, .2) and found['far', MIB] == (.3, .4), found
judged = {verdict.get('place'): verdict for verdict in bench_results.judge(
              bench_results.combine(runs), places)
          if verdict['what'] == 'direct, malloc, 256 KiB: round trip / mpi'}
assert judged['near']['worst'] == .2 and judged['far']['worst'] == .3, judged
assert judged[None]['figures'] == 1 and judged[None]['pass'], judged
assert judged[None]['floor'] == .1, judged
missing = [run for run in runs if run['mpi'] != 'ob1']
assert not any('ratio' in figure for figure in bench_results.combine(missing)
               if figure['series'] == 'direct st')" ||
        fail "places are not told apart"
}

test_floor()
{
    command -v python3 >/dev/null ||
        { echo "skipped: python3 is not installed"; exit 77; }
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="${srcdir:?}/bench" python3 -c "
import bench_floor
NEAR, FAR = (100, 130), (510, 480)
def trial(time, slow, line=NEAR):
    return {'time_us': time * slow, 'line_ns': line}
def run(setting, lane, slow, size, times, last=NEAR):
    # The memory is slower from trial to trial; in the last one cores are moved
    trials = [slow + i for i in range(12)]
    rows = [{'size': size, 'variant': variant, 'trials': [
        *(trial(time, slow) for slow in trials), trial(9 * time, 1, last)]}
            for variant, time in times.items()]
    return {'bench': 'st_pingpong', 'setting': setting, 'lane': lane,
            'memory': 'malloc', 'report': {'rows': rows}}
def all_ways(size):
    return [run('direct-posix', 'direct', 1, size,
                {'raw': 10, 'mpi': 20, 'st': 12}),
            run('trig-posix', 'trig', 5, size,
                {'raw': 10, 'mpi': 30, 'st': 16, 'st-ready': 14}, FAR),
            run('ob1', None, 70, size, {'raw': 10, 'mpi': 16})]
found = bench_floor.combine(all_ways(8 << 20))
assert [(figure['series'], figure['ratio'], figure['trials'])
        for figure in found] == [
    (series, {'median': ratio, 'low': ratio, 'high': ratio}, trials)
    for series, ratio, trials in (('direct st', .75, 13), ('trig st', 1, 12),
                                  ('trig st-ready', .875, 12))], found
assert all((figure['best'], figure['floor'], figure['place'], figure['size']) ==
           ('ob1', .625, 'near', 8 << 20) for figure in found), found
assert '0.750 (0.750-0.750)' in bench_floor.table(found)
assert bench_floor.combine(all_ways(4 << 20)) == []
broken = all_ways(8 << 20)
broken[2]['error'] = 'status 1'
assert {figure['best'] for figure in bench_floor.combine(broken)} == {
    'direct-posix'}
few = all_ways(8 << 20)
for row in few[0]['report']['rows']:
    del row['trials'][7:]
assert {figure['series'] for figure in bench_floor.combine(few)} == {
    'trig st', 'trig st-ready'}
values = [i / 100 for i in range(1, 101)]
assert bench_floor.spread(values, 1) == {
    'median': .505, 'low': .41, 'high': .61}, bench_floor.spread(values, 1)" ||
        fail "long messages are not compared by way of the floor"
}

test_fails()
{
    FI_CXIEMU_DWQ_ENTRIES=16 run_everything --bench faces
    [ "$rc" -eq 1 ] || fail "status $rc"
    grep -q '^run-all: st_faces, trig-posix, 2 ranks: status' "$temp/out" ||
        fail "it does not say what failed"
    expect_file "the file does not tell it, or not the rest" "
failed = [run['setting'] for run in all['runs'] if 'error' in run]
assert failed == 2 * ['trig-posix', 'trig-cma']
assert len(all['runs']) == 10
assert any(figure['series'] == 'direct st' for figure in all['figures'])"
}

case ${1:-} in
trig|host|mixed|mbw|cost|wrt|numbers|all|places|floor|fails) "test_$1" "${@:2}" ;;
*) fail "there is no test \"${1:-}\"" ;;
esac
