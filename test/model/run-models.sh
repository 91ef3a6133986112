#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks the protocol models of models.list with spin.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage()
{
    cat <<STEOF
usage: run-models.sh [--exhaustive] [--only NAME] [--jobs N] [--limit SECONDS]
                     [--trail] [--list] [--help]

Has spin search all states of each model of models.list and compares what it
finds with what is expected there: nothing, or a certain error first.

    --exhaustive     with the larger bounds
    --only NAME      only the models whose names match this bash pattern
    --jobs N         so many at a time (default: one a processor, at most 2)
    --limit SECONDS  for each model (default: 900; exhaustive: 1200)
    --trail          show what leads to the error
    --list           print the names of the models

The status is 0 if all is as expected, 77 if spin or gcc is not installed.
STEOF
}

mode=bounded
only=
jobs=$(nproc)
[ "$jobs" -le 2 ] || jobs=2
limit=
trail=no
list=no
while [ $# -gt 0 ]; do
    case $1 in
    --exhaustive) mode=exhaustive ;;
    --trail) trail=yes ;;
    --list) list=yes ;;
    --only|--jobs|--limit)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        case $1 in
        --only) only=$2 ;;
        --jobs) jobs=$2 ;;
        --limit) limit=$2 ;;
        esac
        shift
        ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
if [ $mode = exhaustive ]; then
    limit=${limit:-1200}
    depth=1000000
    memory=12000
    table=26
    optimize=-O2
else
    limit=${limit:-900}
    depth=100000
    memory=2000
    table=20
    optimize=-O0
fi

# Prints "NAME|FILE|OPTIONS|EXPECTED|BOUNDED|EXHAUSTIVE" of each wanted model.
rows()
{
    local row
    sed -e '/^ *#/d' -e '/^ *$/d' -e 's/ *| */|/g' -e 's/^ *//' \
        -e 's/ *$//' "$here/models.list" |
    while IFS= read -r row; do
        # shellcheck disable=SC2254 # a pattern is meant
        case ${row%%|*} in ${only:-*}) echo "$row" ;; esac
    done
}

# Runs a command within the time limit; if this shell is ended, it ends the
# command.
limited()
{
    local child rc=0
    # In our process group, so that what ends the group ends it too
    timeout --foreground -k 5 "$limit" "$@" &
    child=$!
    # shellcheck disable=SC2064 # the child of now is meant
    trap "kill $child; exit 1" TERM
    wait $child || rc=$?
    trap - TERM
    return $rc
}

# Prints what a search has found: "sound", the property that is violated,
# "deadlock", "livelock", or a sentence about what went wrong.
# Usage: verdict STATUS LOG
verdict()
{
    local rc=$1 log=$2 name
    if [ "$rc" -eq 124 ] || [ "$rc" -eq 137 ]; then
        echo "did not end within $limit seconds"
    elif name=$(grep -m 1 -oP 'assertion violated .*?!\(\K\w+' "$log"); then
        echo "$name"
    elif grep -q '^pan:1: invalid end state' "$log"; then
        echo deadlock
    elif grep -q '^pan:1: non-progress cycle' "$log"; then
        echo livelock
    elif grep -qE '^(pan: )?error: max search depth' "$log"; then
        echo "was cut off at depth $depth"
    elif grep -qE 'out of memory|MEMLIM' "$log"; then
        echo "was cut off at $memory MB"
    elif [ "$rc" -ne 0 ] || grep -q 'Search not completed' "$log" ||
         ! grep -q 'errors: 0$' "$log"; then
        echo "the search failed: $(grep -m 1 -E '^(pan|spin)' "$log")"
    elif grep -q '"finished = 1"' "$log"; then
        echo "is sound only because no run gets to its end"
    else
        echo sound
    fi
}

# Builds and runs the checker of a model in the present folder; what it printed
# is in log.  Usage: search FILE EXPECTED OPTION...
search()
{
    local file=$1 expected=$2 options=() run=("-m$depth" "-w$table")
    shift 2
    case " $* " in
    *" -DNP "*) options=(-DNP -DNFAIR=3); run+=(-l -f) ;;
    *) options=(-DSAFETY) ;;
    esac
    # The shortest way to an error is the one to look at, and it does not depend
    # on the order of a depth-first search
    if [ "$expected" != sound ] && [ "${options[0]}" = -DSAFETY ]; then
        options+=(-DBFS)
    fi
    [ $mode = bounded ] || options+=(-DCOLLAPSE)
    spin -a "$@" "$file" > log 2>&1 &&
        limited gcc "$optimize" -w "${options[@]}" -DMEMLIM=$memory -o pan \
            pan.c >> log 2>&1 || return
    limited ./pan "${run[@]}" > log 2>&1
}

# "N states, depth N, N s", from the checker's log.
figures()
{
    sed -n -e 's/.*depth reached \([0-9]*\),.*/depth \1/p' \
        -e 's/^ *\([0-9]*\) states, stored.*/\1 states/p' \
        -e 's/^pan: elapsed time \(.*\) seconds/\1 s/p' "$1" |
        awk '{ a[NR] = $0 } END { print a[2] ", " a[1] ", " a[3] }'
}

# Checks one model; its result goes to a file with its name.
# Usage: check NAME FILE OPTIONS EXPECTED BOUNDED EXHAUSTIVE
check()
{
    local name=$1 file=$here/$2 expected=${4#broken: } bounds=$5 found rc=0
    local options
    if [ $mode = exhaustive ] && [ "$6" != = ]; then
        bounds=$6
    fi
    read -ra options <<< "$3 $bounds"
    mkdir "$temp/$name" && cd "$temp/$name" || return
    search "$file" "$expected" "${options[@]}" || rc=$?
    found=$(verdict $rc log)
    if [ "$found" = "$expected" ]; then
        echo ok > "$temp/result.$name"
        printf 'ok    %s: %s (%s)\n' "$name" "$4" "$(figures log)"
    else
        echo FAIL > "$temp/result.$name"
        printf 'FAIL  %s: %s; expected: %s\n%s\n' "$name" "$found" "$4" \
            "$(tail -n 15 log | sed 's/^/      | /')"
    fi
    if [ $trail = yes ] && mv ./*.trail trail 2>/dev/null; then
        spin -k trail -p -g "${options[@]}" "$file"
    fi
    rm -rf "${temp:?}/$name"
}

# The properties of a file, with deadlock and livelock as its sound models are
# searched for them.  Usage: properties FILE
properties()
{
    grep -oP '(?<!define )CHECK\(\K[a-z_]+' "$here/$1"
    awk -F'|' -v file="$1" '
        $2 == file && $4 == "sound" {
            print ($3 " " $5) ~ /-DNP( |$)/ ? "livelock" : "deadlock"
        }' "$temp/rows"
}

# A property that no broken variant violates may be one that cannot be violated.
check_properties()
{
    local file name missing
    while IFS= read -r file; do
        missing=
        for name in $(properties "$file" | sort -u); do
            grep -qF "|broken: $name|" <(grep -F "|$file|" "$temp/rows") ||
                missing+=" $name"
        done
        if [ -z "$missing" ]; then
            echo ok > "$temp/result.$file"
            echo "ok    $file: each property is violated by a broken variant"
        else
            echo FAIL > "$temp/result.$file"
            echo "FAIL  $file: no broken variant violates$missing"
        fi
    done < "$temp/files"
}

clean_up()
{
    local left
    mapfile -t left < <(jobs -p)
    [ ${#left[@]} -eq 0 ] || kill "${left[@]}" 2>/dev/null
    wait
    rm -rf "$temp"
}

if [ $list = yes ]; then
    rows | cut -d '|' -f 1
    exit 0
fi
for tool in spin gcc; do
    command -v $tool >/dev/null ||
        { echo "skipped: $tool is not installed"; exit 77; }
done
temp=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT TERM

rows > "$temp/rows"
cut -d '|' -f 2 "$temp/rows" | sort -u > "$temp/files"
[ -s "$temp/rows" ] || { echo "no model is called \"$only\"" >&2; exit 2; }
running=0
while IFS='|' read -r name file options expected bounded exhaustive; do
    if [ $running -ge "$jobs" ]; then
        wait -n
        running=$((running - 1))
    fi
    check "$name" "$file" "$options" "$expected" "$bounded" "$exhaustive" \
        </dev/null &
    running=$((running + 1))
done < "$temp/rows"
wait
total=$(wc -l < "$temp/rows")
if [ -z "$only" ]; then
    check_properties
    total=$((total + $(wc -l < "$temp/files")))
fi

passed=$(cat "$temp"/result.* | grep -c '^ok$')
failed=$(cat "$temp"/result.* | grep -c '^FAIL$')
if [ $((passed + failed)) -ne "$total" ]; then
    echo "some models gave no result" >&2
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
