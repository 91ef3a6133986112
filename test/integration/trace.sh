#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the trace of two ranks tells (UCX_ST_TRACE), and what st-trace-merge
# makes of it and of files that are no traces.
# usage: trace.sh faces LANE | rma LANE | once | plot | refused | files
#   faces    every start, wait and message of st_faces is there
#   rma      every put and get of st_mbw is there
#   once     which way each message that is used once went, and why; and the
#            counts of that
#   plot     st-trace-plot draws that
#   refused  a file that cannot be written is an error
#   files    files that are no traces, or not whole
# Needs builddir, srcdir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

# No message is to be left to another lane for want of entries
export FI_CXIEMU_SERVICE=own

merge=${srcdir:?}/contrib/st-trace-merge
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

fail()
{
    echo "trace.sh: $*" >&2
    [ ! -e "$temp/out" ] || tail -n 40 "$temp/out" | sed 's/^/    /' >&2
    exit 1
}

command -v python3 >/dev/null ||
    { echo "skipped: python3 is not installed"; exit 77; }

# Usage: expect STATUS|error REGEX COMMAND...
expect()
{
    local want=$1 regex=$2 rc=0
    shift 2
    "$@" >"$temp/out" 2>&1 || rc=$?
    [ "$want" != error ] || [ $rc -eq 0 ] || want=$rc
    [ "$rc" = "$want" ] || fail "\"$*\" ends with $rc instead of $want"
    [ -z "$regex" ] || grep -qE -e "$regex" "$temp/out" ||
        fail "\"$*\" does not say \"$regex\""
}

# Runs two ranks with a trace each.
run_faces()
{
    local rc=0
    UCX_ST_TRACE=$temp/rank.%p UCX_ST_STATS=y "$ST_RUN" -q mpirun -n 2 \
        "${builddir:?}/bench/st_faces" --grid 2x1x1 --trials 1 --middle 1 \
        --inner 3 >"$temp/run" 2>&1 || rc=$?
    cat "$temp/run"
    return $rc
}

# A count of both ranks' statistics, added up.
total()
{
    awk -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }' "$temp/run"
}

# A number of entries of the joined trace that a condition of Python holds for.
count_entries()
{
    python3 -c 'import json, sys
entries = json.load(open(sys.argv[1]))["traceEvents"]
print(sum(bool(eval(sys.argv[2])) for e in entries if e["ph"] != "M"))' \
        "$temp/joined" "$1"
}

# Usage: expect_entries NUMBER CONDITION
expect_entries()
{
    local found
    found=$(count_entries "$2") || fail "cannot look for $2"
    [ "$found" -eq "$1" ] || fail "$found entries instead of $1 with $2"
}

test_faces()
{
    local lane=$1 starts variants=3 ranks=2 inner=3 runs
    export UCX_ST_LANES=$lane
    run_faces || fail "st_faces fails"
    starts=$(total starts)
    [ "$starts" -gt 0 ] || fail "no start is counted"
    expect 0 "processes=2 .* dropped=0 arrows=$((starts / 2)) without_end=0 \
without_beginning=0 starts=$starts waits=$(total waits)\$" \
        "$merge" --check -o "$temp/joined" "$temp"/rank.*
    cat "$temp/out"
    # Spans of calls: a warm-up and a trial of each variant
    runs=$((2 * variants * ranks))
    expect_entries $((runs * inner)) \
        "e.get('name') == 'faces_kernel_interior' and e['cat'] == 'kernel'"
    expect_entries $((runs * inner / variants)) \
        "e.get('name') == 'MPI_Waitall' and e['cat'] == 'host'"
    expect_entries "$starts" \
        "e.get('cat') == 'start' and e['args']['lane'] == '$lane'"
    if [ "$lane" = trig ]; then
        expect_entries "$(total writes_fired)" "e.get('name') == 'done' and \
e['args']['entry'] == 'write'"
        expect_entries "$(total atomics_fired)" "e.get('name') == 'done' and \
e['args']['entry'] == 'word'"
    else
        expect_entries "$starts" "e['ph'] == 'b' and e['cat'] == 'data'"
    fi
}

test_rma()
{
    local lane=$1 name
    export UCX_ST_LANES=$lane
    [ "$lane" != direct ] || export UCX_TLS=posix,self
    UCX_ST_TRACE=$temp/rank.%p UCX_ST_STATS=y "$ST_RUN" -q mpirun -n 2 \
        "$builddir/bench/st_mbw" --variants put,get --min 64 --max 64 \
        --window 8 --iters 2 --trials 1 >"$temp/run" 2>&1 ||
        { cat "$temp/run"; fail "st_mbw fails"; }
    expect 0 '^processes=2 .* dropped=0' \
        "$merge" --check -o "$temp/joined" "$temp"/rank.*
    for name in put get; do
        [ "$(total "${name}s")" -gt 0 ] || fail "no $name is counted"
        expect_entries "$(total "${name}s")" "e.get('name') == '$name' and \
e['args']['bytes'] == 64 and e['args']['lane'] == '$lane' and \
int(e['args']['peer'], 16) != 0"
    done
}

# Usage: run_once [NAME=VALUE...]
run_once()
{
    rm -f "$temp"/rank.*
    env "$@" UCX_ST_TRACE="$temp/rank.%p" UCX_ST_STATS=y "$ST_RUN" -q mpirun \
        -n 2 "$builddir/test/integration/compat_hpe" >"$temp/run" 2>&1 ||
        { cat "$temp/run"; fail "compat_hpe fails"; }
    cat "$temp/run"
    expect 0 '^processes=2 .* dropped=0' \
        "$merge" --check -o "$temp/joined" "$temp"/rank.*
    expect_entries 16 "e.get('name') in ('give to MPI', 'match send', \
'match receive')"
}

# Usage: expect_total NAME NUMBER
expect_total()
{
    [ "$(total "$1")" -eq "$2" ] || fail "$1 is $(total "$1"), not $2"
}

test_once()
{
    local found
    run_once
    expect_entries 16 "e.get('name') == 'give to MPI' and \
e['args']['by'].endswith('the communicator is not for queues only') and \
e['args']['elements'] == 1 and e['args']['tag'] < 4"
    expect_total thread_msgs 16
    expect_total fifo_nic 0
    grep -q '^summary: 8 messages used once by MPI' "$temp/run" ||
        fail "no summary"
    run_once MPIX_QUEUE_ONLY=y
    expect_entries 16 "e['args'].get('by') == 'NIC'"
    expect_total fifo_nic 16
    expect_total trig_msgs 16
    expect_total fifos 16
    expect_total thread_msgs 0
    run_once MPIX_QUEUE_ONLY=y UCX_ST_LANES=host
    expect_entries 16 "e['args'].get('by', '').startswith('host, UCP')"
    expect_total fifo_ucp 16
    expect_total host_msgs 16
    # Counters for a few of them
    run_once MPIX_QUEUE_ONLY=y FI_CXIEMU_CNTRS=7
    found=$(total fifo_put_cntr)
    [ "$found" -gt 0 ] || fail "all have found a counter"
    expect_entries "$found" "e['args'].get('by') == 'host, put: no counter'"
    expect_total host_msgs "$found"
    expect_total fifo_nic $((16 - found))
}

test_plot()
{
    local text plot=${srcdir:?}/contrib/st-trace-plot
    python3 -c 'import matplotlib' 2>/dev/null ||
        { echo "skipped: this python3 has no matplotlib"; exit 77; }
    run_faces || fail "st_faces fails"
    expect 0 '^processes=2' "$merge" --check -o "$temp/joined" "$temp"/rank.*
    expect 0 '' "$plot" "$temp/joined" -o "$temp/plot.svg" \
        --panel Driven=mpi --panel Triggered=st --note 'A note'
    for text in 'rank 0, host' 'rank 1, stream 0' 'Driven: [0-9]* µs' \
                'Triggered: [0-9]* µs' 'wait for a message' 'A note'; do
        grep -q "$text" "$temp/plot.svg" || fail "no \"$text\" in the picture"
    done
    expect 1 'no number 4' "$plot" "$temp/joined" -o "$temp/plot.svg" \
        --panel a=mpi --step 4
    expect 1 'no span "nothing"' "$plot" "$temp/joined" -o "$temp/plot.svg" \
        --panel a=nothing
    expect 1 'is not what st-trace-merge makes' "$plot" "$temp/plot.svg" \
        -o "$temp/plot.svg" --panel a=mpi
    expect 1 'st-trace-plot: .*xyz' "$plot" "$temp/joined" \
        -o "$temp/plot.xyz" --panel a=mpi
}

test_refused()
{
    local hello=$builddir/examples/st_hello
    expect error 'UCX_ST_TRACE: cannot write /nonexistent/x' \
        env UCX_ST_TRACE=/nonexistent/x "$ST_RUN" -q mpirun -n 1 "$hello"
    # Both ranks have one name for their file
    expect error 'UCX_ST_TRACE: another process writes .*/one; %p in the name' \
        env UCX_ST_TRACE="$temp/one" "$ST_RUN" -q mpirun -n 2 "$hello"
}

# Usage: write_trace FILE RANK ENTRIES
write_trace()
{
    echo "{\"traceEvents\":[$3],\"otherData\":{\"format\":\"ucx-st-trace-1\",
        \"host\":\"h\",\"pid\":1,\"program\":\"p\",\"rank\":\"$2\",
        \"boot_id\":\"${boot:-b}\",\"realtime_offset_ns\":\"${offset:-0}\",
        \"recorded\":1,\"dropped\":0}}" >"$temp/$1"
}

span()
{
    echo "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"$1\",\"cat\":\"host\",
        \"ts\":$2,\"dur\":$3,\"args\":{}}"
}

arrow()
{
    echo "{\"ph\":\"$1\",\"pid\":1,\"tid\":1,\"cat\":\"message\",\"id\":\"$2\",
        \"ts\":$3,\"bp\":\"e\"}"
}

use()
{
    echo "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"$1\",\"cat\":\"$1\",
        \"ts\":$2,\"dur\":1,\"args\":{\"dir\":\"send\",\"op\":5,\"use\":$3,
        \"peer\":\"0x1\"}}"
}

test_files()
{
    expect 1 'No such file' "$merge" --check "$temp/none"
    printf '' >"$temp/empty"
    expect 1 'empty: is empty: its process has not ended yet, or was killed' \
        "$merge" --check "$temp/empty"
    echo '{"traceEvents":[' >"$temp/cut"
    expect 1 'cut: is no JSON' "$merge" --check "$temp/cut"
    echo '{"traceEvents":[]}' >"$temp/other"
    expect 1 'other: is no trace of UCX-ST' "$merge" --check "$temp/other"
    expect 2 'nothing to do' "$merge" "$temp/other"
    write_trace kind 0 '{"ph":"Z","pid":1,"tid":1}'
    expect 1 "event 0 is of kind 'Z'" "$merge" --check "$temp/kind"
    write_trace key 0 '{"ph":"X","pid":1,"tid":1,"name":"n"}'
    expect 1 'event 0 has no "cat"' "$merge" --check "$temp/key"

    write_trace good 1 "$(span a 10 20),$(span b 15 5),$(span c 40 1)"
    expect 0 'processes=1' "$merge" --check "$temp/good"
    write_trace overlap 0 "$(span a 10 20),$(span b 15 20)"
    expect 1 'span "b" ends 5000 ns after "a"' "$merge" --check \
        "$temp/good" "$temp/overlap"
    expect 0 'processes=1' "$merge" -o "$temp/joined" "$temp/overlap"

    write_trace sends 0 "$(span a 1 5),$(arrow s 0x1 2),$(arrow s 0x2 3)"
    write_trace receives 1 "$(span b 1 9),$(arrow f 0x1 8)"
    expect 1 '1 arrows have no end, 0 no beginning' "$merge" --check \
        "$temp/sends" "$temp/receives"
    write_trace twice 0 "$(arrow s 0x1 2),$(arrow s 0x1 3)"
    expect 1 'arrow 0x1 has 2 beginnings' "$merge" --check "$temp/twice" \
        "$temp/receives"

    write_trace use 0 "$(use start 1 1),$(use wait 2 1),$(use start 3 2)"
    expect 1 "1 uses have a start and no wait; one is use 2 of process 0's \
send 5" "$merge" --check "$temp/use"

    # Of two nodes: by the time of the day
    write_trace node0 0 "$(span a 1 5)"
    boot=c offset=3000 write_trace node1 1 "$(span b 1 5)"
    expect 0 'different clocks' "$merge" --check -o "$temp/joined" \
        "$temp/node1" "$temp/node0"
    expect_entries 1 "e['pid'] == 0 and e['name'] == 'a' and e['ts'] == 0"
    expect_entries 1 "e['pid'] == 1 and e['name'] == 'b' and e['ts'] == 3"
}

case ${1:-} in
faces|rma|once|plot|refused|files) "test_$1" "${@:2}" ;;
*) fail "there is no test \"${1:-}\"" ;;
esac
