#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is to be seen over nodes alone: that one is lost, and which lanes there are.
# usage: nodes.sh cut|kill TEST | lanes INSIDE BETWEEN
# Runs in contrib/own-nodes.sh. Needs builddir, srcdir and ST_RUN in the
# environment, as test/run.py sets them.
set -uo pipefail

nodes=${srcdir:?}/contrib/own-nodes.sh
program=${builddir:?}/src/tools/ucx_st_perftest
server=
client=

fail()
{
    echo "nodes.sh: $*" >&2
    exit 1
}

# Starts a side on a node, with the settings that ssh does not pass on.
# Usage: start_side NODE OPTION...
start_side()
{
    local settings
    mapfile -t settings < <(env | grep -E '^(UCX|FI)_')
    exec "$nodes" --on "$1" env "${settings[@]@Q}" \
        "$ST_RUN" -q "$program" "${@:2}" 2>&1
}

# How many have come from node2
packets()
{
    sed -n 's/^ *node2: *[0-9]* *\([0-9]*\) .*/\1/p' /proc/net/dev
}

# Hundredths of a second that both sides took of the processors
ticks()
{
    cat /proc/[0-9]*/stat 2>/dev/null |
        awk '$2 == "(ucx_st_perftest)" { n += $14 + $15 } END { print n + 0 }'
}

# Waits for a side: it says that its peer failed, and ends with the status 3.
# Usage: expect_error SIDE FD PID
expect_error()
{
    local rc=0 text
    text=$(cat <&"$2")
    echo "$1: $text"
    wait "$3" || rc=$?
    [ $rc -eq 3 ] || fail "the $1 ends with status $rc instead of 3"
    grep -q 'peer failed: ' <<<"$text" || fail "the $1 names no failed peer"
}

# A node is lost while ucx_st_perftest runs between it and another one: the other
# side, and the lost one if it lives, end with an error.
# Usage: test_lost cut|kill TEST
test_lost()
{
    local node line=
    # TCP gives up after a second, else after 15 minutes
    for node in node1 node2; do
        "$nodes" --on $node 'cd /proc/sys/net/ipv4 && echo 1 | tee tcp_retries2 tcp_syn_retries' ||
            fail "the settings of $node stay as they are"
    done
    exec {from_server}< <(start_side node2 -p 0)
    server=$!
    read -r line <&"$from_server"
    [[ $line =~ ^Waiting\ for\ a\ client\ on\ port\ ([0-9]+)$ ]] ||
        fail "the server says \"$line\""
    exec {from_client}< <(start_side node1 node2 -p "${BASH_REMATCH[1]}" \
        -t "$2" -n 100000000 -w 1000 --trials 1)
    client=$!
    # The sides make their pairs with some hundred packets at most. Those of the
    # emulated card send none.
    until [[ $(packets) -gt 5000 || $(ticks) -gt 200 ]]; do
        kill -0 "$client" ||
            fail "the client ends too early: $(cat <&"$from_client")"
    done
    "$nodes" "--$1" node2 || fail "no node is lost"
    SECONDS=0
    expect_error client "$from_client" "$client"
    [ "$1" != cut ] || expect_error server "$from_server" "$server"
    echo "node2 is lost ($1): told after $SECONDS s"
}

# Of four ranks each has two neighbours on the other node, and one on its own.
# Usage: test_lanes INSIDE BETWEEN
test_lanes()
{
    local out
    out=$(UCX_ST_STATS=y "$ST_RUN" -q mpirun -n 4 examples/st_halo 2>&1) ||
        fail "st_halo fails: $out"
    grep '^summary: ' <<<"$out"
    [ "$(grep -c "^summary: 600 starts:.* lane $1 200,.* lane $2 400[,;]" \
        <<<"$out")" -eq 4 ] || fail "four ranks use other lanes: $out"
}

case ${1:-} in
cut|kill) test_lost "$@" ;;
lanes) test_lanes "$2" "$3" ;;
*)
    sed -n 's/^# \(usage\)/\1/p' "$0" >&2
    exit 2
    ;;
esac
