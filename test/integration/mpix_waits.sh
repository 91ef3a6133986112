#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs whose two or three ranks do not fit: the library says once what waits for the
# other rank and what that one has done, and tells whoever asks. Then the late
# rank goes on, and the program ends. What still waits at MPI_Finalize it says then.
# usage: mpix_waits.sh trig|direct|host|finalize
# Needs builddir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

lane=${1:?usage: mpix_waits.sh trig|direct|host|finalize}
case $lane in
direct) export UCX_ST_LANES=direct UCX_TLS=posix,self ;;
host)   export UCX_ST_LANES=host ;;
esac
export UCX_ST_WARN_TIME=300ms

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail()
{
    echo "mpix_waits.sh: $*" >&2
    cat "$dir/out" >&2
    exit 1
}

# Waits until the output has the line, as a regular expression, or the program,
# whose process is given, ends.
# Usage: until_line REGEX PROCESS
until_line()
{
    until grep -qE -e "$1" "$dir/out"; do
        kill -0 "$2" 2>/dev/null || fail "no line \"$1\""
        sleep 0.05
    done
}

# Runs a case until both ranks have said the lines that are expected of them;
# each once. Of rank 0 ucx_st_info tells the same.
# Usage: [ranks=N] run CASE LINE...
ranks=2
run()
{
    local name=$1 line program pid out rc=0
    shift
    rm -f "$dir/go"
    "$ST_RUN" mpirun -n "$ranks" "${builddir:?}/test/integration/mpix_waits" "$name" \
        "$dir/go" >"$dir/out" 2>&1 &
    program=$!
    for line; do
        until_line "$line" $program
    done
    pid=$(sed -n 's/.*pid \([0-9]*\)$/\1/p' "$dir/out")
    out=$("$ST_RUN" "$builddir/src/tools/ucx_st_info" -p "$pid") ||
        fail "$name: ucx_st_info -p $pid"
    grep -qE -e "^$1" <<<"$out" || fail "$name: not in the answer: $out"
    touch "$dir/go"
    wait $program || rc=$?
    [ $rc -eq 0 ] || fail "$name ends with $rc"
    for line; do
        [ "$(grep -cE -e "$line" "$dir/out")" -eq 1 ] ||
            fail "$name: not once: \"$line\""
    done
    echo "ok $name"
}

test_finalize()
{
    local line rc=0
    UCX_ST_STATS=y "$ST_RUN" mpirun -n 2 "${builddir:?}/test/integration/mpix_waits" \
        finalize "$dir/go" >"$dir/out" 2>&1 || rc=$?
    # MPICH 4.0 ends plain programs so, too, that do not free a window
    if [ $rc -ne 0 ] && grep -q HYDRA <<<"$(mpirun --version)"; then
        grep -q "Assertion \`region->refcount == 0' failed" "$dir/out" && rc=0
    fi
    [ $rc -eq 0 ] || fail "finalize ends with $rc"
    for line in 'rank 0: warning: a stream waits for MPIX_Win_post_stream of rank 1 ' \
                'rank 0: warning: an access epoch of a stream is open ' \
                'rank 1: warning: a stream waits for MPIX_Win_complete_stream of rank 0 ' \
                'rank 1: warning: an epoch is open, .* MPIX_Win_complete_stream of rank 0 '
    do
        [ "$(grep -cE "mpix_queue: $line.*at MPI_Finalize" "$dir/out")" -eq 1 ] ||
            fail "finalize: not once: \"$line\""
    done
    grep -qE "^waits_for rank 0: a queue $waited: MPIX_Win_post_stream of rank 1 " \
        "$dir/out" || fail "finalize: not in the counts"
    echo "ok finalize"
}

waited='has waited for [0-9.]+ s'
[ "$lane" != finalize ] || { test_finalize; exit; }
nothing='rank 1 has announced nothing to this process: .*, waits in an earlier '
nothing+='one \(give all requests to one MPIX_Matchall\), '
case $lane in
trig) word='lane trig does not know whether the peer has started it' ;;
*)    word='the peer has not started it' ;;
esac

run forget \
    "rank 0: matching $waited: receive of 4 bytes .*from rank 1, tag 9; $nothing"
run tags \
    "rank 0: matching $waited: receive of 4 bytes .*from rank 1, tag 9; \
the peer has announced: a send of 4 bytes, tag 0" \
    "rank 1: matching $waited: send of 4 bytes .*to rank 0, tag 0; \
the peer has announced: a receive of 4 bytes, tag 9"
run order \
    "rank 0: matching $waited: send of 4 bytes .*to rank 1, tag 9; \
the peer has announced: a send of 4 bytes, tag 9 \(the same direction: " \
    "rank 1: matching $waited: send of 4 bytes .*to rank 0, tag 9; \
the peer has announced: a send of 4 bytes, tag 9 \(the same direction: "
ranks=3 run ring \
    "rank 0: matching $waited: send of 4 bytes .*to rank 1, tag 9; $nothing"
run plain \
    "rank 0: matching $waited: send of 4 bytes .*to rank 1, tag 9; $nothing"
run start \
    "rank 0: a queue $waited: receive of 4 bytes .*from rank 1, tag 9, use 1, \
on lane $lane; $word"
run host \
    "rank 0: the host $waited: receive of 4 bytes .*from rank 1, tag 9, use 1, \
on lane $lane; $word"
run once \
    "rank 0: MPIX_Enqueue_recv $waited: receive of 1 elements from any source, \
tag 9"
run only \
    "rank 0: a message $waited: receive 1 of a FIFO, of 4 bytes from rank 1, \
tag 9, of a communicator that is for queues only: the peer has not enqueued \
its half"
run window \
    "rank 0: a queue $waited: MPIX_Win_complete_stream of rank 1 of a window"
test_finalize
