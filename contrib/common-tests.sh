# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What scripts share that run many tests, some at a time, and count them; they
# source it behind common.sh.

# So many at a time, and the names of those that are asked for, as bash patterns:
# the options of the scripts
places=$(($(nproc) * 2))
patterns=()
# Seconds after which a test is ended: it hangs. A case of a unit test and an
# integration test have less, and say which they are.
limit=1800
# The value of SECONDS from which no test is started, if there is one
ends=
export ST_CUNIT_TIMEOUT=600 ST_LIMIT=600
passed=0
failed=0
skipped=0
failures=()
logs=$ST_BUILD/test-logs
# A file for lines NAME, STATUS, SECONDS and REASON of the tests, if one is named
results=
# What runs now: by process id, "NAME PLACES SECOND-OF-ITS-START"
declare -A running=()
taken=0

# Integration tests that make their streams as ST_TEST_STREAM says
# shellcheck disable=SC2034 # used by the scripts
stream_tests=(mpix_match.4 mpix_match.mpi mpix_types.2 mpix_batch.2
              mpix_batch.4 mpix_keep.2 mpix_halo.4 mpix_coll.3
              mpix_coll_use.2 mpix_host.2
              mpix_refuse.2 mpix_once.own mpix_lock.2 mpix_comms.ucx
              mpix_comms.mpi mpix_spawn.ucx mpix_spawn.mpi mpix_leave.3
              mpix_finalize.before mpix_finalize.pending mpix_finalize.chain
              mpix_death.kill mpix_matrix.3 mpix_p1.2 mpix_p2.2 mpix_p5.4
              mpix_p7.2 bench.stream.2 bench.stream_faces.2 bench.stream_wrt
              bench.stream_memory.2 bench.stream_memory_faces.2
              bench.stream_mixed bench.stream_hpe.2 bench.stream_hpe_faces.2
              perftest_st.stream)

# True if the test is asked for.
wanted()
{
    local pattern
    [ ${#patterns[@]} -gt 0 ] || return 0
    for pattern in "${patterns[@]}"; do
        # shellcheck disable=SC2254 # a pattern is meant
        case $1 in $pattern) return 0 ;; esac
    done
    return 1
}

# Counts a result and shows the end of the log of what failed.
# Usage: count NAME STATUS SECONDS LOG
count()
{
    local name=$1 rc=$2 seconds=$3 log=$4 reason=
    case $rc in
    0)
        passed=$((passed + 1))
        echo "ok    $name (${seconds} s)"
        ;;
    77)
        skipped=$((skipped + 1))
        # A program of MPI says it before mpirun has its say
        reason=$(sed -n 's/^SKIP: rank/rank/p' "$log" | tail -n 1)
        reason=${reason:-$(tail -n 2 "$log" | grep -v '^SKIP:' | tail -n 1)}
        echo "skip  $name: $reason"
        ;;
    *)
        failed=$((failed + 1))
        failures+=("$name")
        [ "$rc" -ne 124 ] || rc="$rc, out of time"
        echo "FAIL  $name (${seconds} s, status $rc)"
        sed 's/^/      | /' <(tail -n 30 "$log")
        echo "      | (all of it: $log)"
        ;;
    esac
    [ -z "$results" ] ||
        printf '%s\t%s\t%s\t%s\n' "$name" "${rc%%,*}" "$seconds" "$reason" \
            >>"$results"
}

log_of()
{
    echo "$logs/${1//\//_}.log"
}

# Ends the tests that run, when the script is ended: trap stop INT TERM.
stop()
{
    local pid
    trap - INT TERM
    for pid in "${!running[@]}"; do
        kill -- "$pid" 2>/dev/null
    done
    wait
    exit 1
}

# Waits until one of the running tests ends, and counts it.
reap()
{
    local pid name size start rc=0
    wait -n -p pid "${!running[@]}" || rc=$?
    read -r name size start <<<"${running[$pid]}"
    unset "running[$pid]"
    taken=$((taken - size))
    [ $rc -ne 137 ] || rc=124
    count "$name" $rc $((SECONDS - start)) "$(log_of "$name")"
}

# Until all have ended.
reap_all()
{
    while [ ${#running[@]} -gt 0 ]; do
        reap
    done
}

# Runs a test beside others, in the environment of now, once there are so many
# places; without waiting for its end.
# Usage: check_sized PLACES NAME COMMAND...
check_sized()
{
    local size=$1 name=$2
    shift 2
    wanted "$name" || return 0
    if [ -n "$ends" ] && [ "$SECONDS" -ge "$ends" ]; then
        echo "the time given for all was over" >"$(log_of "$name")"
        count "$name" 77 0 "$(log_of "$name")"
        return
    fi
    [ "$size" -le "$places" ] || size=$places
    while [ $((taken + size)) -gt "$places" ]; do
        reap
    done
    timeout -k 10 $limit "$@" >"$(log_of "$name")" 2>&1 </dev/null &
    running[$!]="$name $size $SECONDS"
    taken=$((taken + size))
}

# Usage: check NAME COMMAND...
check()
{
    check_sized 1 "$@"
}

# Builds the tests of a folder: unit or integration.
# Usage: tests_build DIR KIND
tests_build()
{
    timeout -k 10 $limit make -C "$1/test/$2" -j"$(nproc)" check TESTS=
}

# The same for this build; counts a failure.  Usage: build_tests KIND
build_tests()
{
    local log=$logs/$1-build.log start=$SECONDS
    if ! tests_build "$ST_BUILD" "$1" >"$log" 2>&1; then
        count "$1/build" 1 $((SECONDS - start)) "$log"
        return 1
    fi
}

# Runs the unit tests that a make target prints.
# Usage: unit_run DIR PREFIX TARGET
unit_run()
{
    local dir=$1 prefix=$2 target=$3 name
    for name in $(make -s -C "$dir/test/unit" "$target" | tail -n 1); do
        check "$prefix/$name" "${ST_NET[@]}" env -C "$dir/test/unit" \
            ST_BUILDDIR="$dir" srcdir="$ST_TOP/test/unit" "./$name"
    done
}

# The last lines: what failed, and the counts, of skipped ones where they are
# recorded or not 0. The status is 0 if nothing failed.
summary()
{
    local text="$passed passed, $failed failed"
    [ ${#failures[@]} -eq 0 ] || echo "failed: ${failures[*]}"
    { [ $skipped -eq 0 ] && [ -z "$results" ]; } || text+=", $skipped skipped"
    echo "$text"
    [ $failed -eq 0 ]
}
