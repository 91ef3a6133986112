#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ucx_st_perftest between two processes, what it refuses, and what a side says
# whose peer dies.
# usage: perftest_st.sh measure|direct [OPTION...] |
#                       die server|client TESTS POINT... |
#                       stop server|client | spoil server|client | setup |
#                       options | differ | strangers | silent | port |
#                       stream host|hip|cuda |
#                       report hip|cuda FILE [OPTION...]
# Needs builddir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

program=${builddir:?}/src/tools/ucx_st_perftest
temp=$(mktemp -d)
server=
client=
port=

fail()
{
    echo "perftest_st.sh: $*" >&2
    for file in "$temp"/server "$temp"/client; do
        [ ! -e "$file" ] || sed "s|^|${file##*/}: |" "$file" >&2
    done
    exit 1
}

# Ends what a failed test leaves behind.
clean_up()
{
    local pid
    for pid in $server $client; do
        kill -KILL "$pid" 2>/dev/null
    done
    rm -rf "$temp"
}
trap clean_up EXIT

# Starts a server on any port; sets server and port.
start_server()
{
    local line=
    rm -f "$temp/port"
    mkfifo "$temp/port"
    "$ST_RUN" -q "$program" -p 0 "$@" >"$temp/port" 2>"$temp/server" &
    server=$!
    exec 3<"$temp/port"
    read -r line <&3
    [[ $line =~ ^Waiting\ for\ a\ client\ on\ port\ ([0-9]+)$ ]] ||
        fail "the server says \"$line\""
    port=${BASH_REMATCH[1]}
}

# Starts a client; sets client.
start_client()
{
    "$ST_RUN" -q "$program" 127.0.0.1 -p "$port" "$@" >"$temp/client" 2>&1 &
    client=$!
}

# Starts both, one of them with an option more.
# Usage: start_pair server|client OPTION CLIENT-OPTION...
start_pair()
{
    local own
    read -ra own <<<"$2"
    if [ "$1" = server ]; then
        start_server "${own[@]}"
        start_client "${@:3}"
    else
        start_server
        start_client "${@:3}" "${own[@]}"
    fi
}

# Waits for the client; its status is client_rc.
wait_client()
{
    client_rc=0
    wait "$client" || client_rc=$?
    client=
}

run_client()
{
    start_client "$@"
    wait_client
}

# Waits for the server; its status is server_rc.
wait_server()
{
    server_rc=0
    wait "$server" || server_rc=$?
    server=
}

# Usage: expect_status SERVER CLIENT
expect_status()
{
    [ "$server_rc" -eq "$1" ] ||
        fail "the server ends with status $server_rc instead of $1"
    [ "$client_rc" -eq "$2" ] ||
        fail "the client ends with status $client_rc instead of $2"
}

# Usage: expect_text server|client REGEX
expect_text()
{
    grep -qE -e "$2" "$temp/$1" || fail "no line of the $1 with \"$2\""
}

# All data is right, and the report is JSON with what it has to have.
test_measure()
{
    local json=$temp/report.json key tests
    start_server
    run_client --check --json "$json" "$@"
    wait_server
    cat "$temp/client"
    expect_status 0 0
    tests=$(grep -cE '^ *[0-9]+ +(st|tag)_.* right$' "$temp/client")
    [ "$tests" -gt 0 ] || fail "no result"
    # The emulated Cassini says what it draws from
    ! grep -qv '^cassini: seed ' "$temp/server" || fail "the server complains"
    command -v python3 >/dev/null ||
        { echo "skipped: python3 is not installed"; exit 77; }
    python3 -m json.tool "$json" >"$temp/pretty" || fail "this is no JSON"
    for key in bench provider device stream ranks ucx_tls cores rows stats; do
        grep -qE "^    \"$key\": " "$temp/pretty" || fail "no $key in the JSON"
    done
    [ "$(grep -c '"verified": true' "$temp/pretty")" -eq "$tests" ] ||
        fail "the JSON has other rows than the table"
    for key in starts waits matches proxied errors; do
        [ "$(grep -cE "^            \"$key\": [0-9]+,?$" "$temp/pretty")" -eq 2 ] ||
            fail "the JSON has not both sides' $key"
    done
}

test_direct()
{
    export UCX_ST_LANES=direct UCX_TLS=tcp,posix,self
    test_measure "$@"
    expect_text client ' st_lat .* direct +right$'
}

# One side kills itself; the other one says so, by status and text.
# Usage: test_die_at SIDE TESTS POINT
test_die_at()
{
    local side=$1 tests=$2 point=$3 other=client
    start_pair "$side" "--die-at $point" -t "$tests" -n 100 -w 10 --trials 1
    wait_client
    wait_server
    if [ "$side" = server ]; then
        expect_status 137 3
    else
        other=server
        expect_status 3 137
    fi
    # It is the operation that fails, not only the connection
    expect_text "$other" \
        "peer failed: .* \\(operation: .*${tests%%,*}, 8 bytes, .*\\)\$"
    echo "the $side dies at $point: $(grep 'peer failed' "$temp/$other")"
}

test_die()
{
    local side=$1 tests=$2 point
    shift 2
    for point in "$@"; do
        test_die_at "$side" "$tests" "$point"
    done
}

# True when a process is stopped, and not on its way there.
is_stopped()
{
    [ "$(ps -o state= -p "$1")" = T ]
}

# A side that is stopped and goes on is slow, not dead.
test_stop()
{
    local stopped pid
    start_pair "$1" '--stop-at 250' -t st_lat,st_bw,tag_lat -n 100 -w 10 \
        --trials 1
    stopped=${!1}
    until is_stopped "$stopped"; do
        for pid in $server $client; do
            kill -0 "$pid" || fail "a side has ended"
        done
    done
    # Some intervals of looking after peers, in which neither ends
    ! timeout 2 tail -f /dev/null --pid="$client" ||
        fail "the client has ended without its peer"
    kill -0 "$server" || fail "the server has ended without its peer"
    kill -CONT "$stopped"
    wait_client
    wait_server
    expect_status 0 0
    expect_text "$1" 'ends or stops itself'
}

# A side sends wrong data: the check finds it.
test_spoil()
{
    local other=client
    [ "$1" = server ] || other=server
    start_pair "$1" --spoil -t st_lat,tag_lat,st_bibw --check -n 20 -s 100
    wait_client
    wait_server
    expect_status 2 2
    expect_text "$other" 'data error: st_lat, 100 bytes, .*: byte 50 is'
    expect_text "$other" 'data error: tag_lat'
    expect_text client ' WRONG$'
}

# A side that cannot be set up says so to the other one. No other lane is to
# help out.
test_setup()
{
    export UCX_ST_LANES=trig
    start_server
    UCX_TLS=self run_client -t st_lat
    wait_server
    expect_status 1 1
    expect_text client 'no st worker'
    expect_text server 'the client says: no st worker'
    start_server
    run_client -t st_bw,st_bibw -O 1024 -T 8
    wait_server
    expect_status 1 1
    expect_text client 'No resources.*take a smaller -O or -T'
    start_server
    run_client -t st_bw -O 1024 -T 64 -s 1g
    wait_server
    expect_status 1 1
    expect_text client 'MiB at each side, more than'
}

# Usage: refused REGEX OPTION...
refused()
{
    local regex=$1
    shift
    server_rc=0
    run_client_alone "$@"
    expect_status 0 1
    expect_text client "^ucx_st_perftest: .*$regex"
}

run_client_alone()
{
    client_rc=0
    "$program" "$@" >"$temp/client" 2>&1 || client_rc=$?
}

# What is wrong on the command line is refused before anything is tried.
test_options()
{
    refused 'not understood' -x
    refused 'not understood' --nonsense
    refused 'different tests' -t nonsense
    refused 'different tests' -t ''
    refused 'different tests' -t st_lat,st_lat
    refused 'no other memory' -m cuda
    refused '64 sizes' -s 8:4
    refused '64 sizes' -s 0:8
    refused '64 sizes' -s 2g
    refused '64 sizes' -s 1,,2
    refused '64 sizes' -s 1:2:1
    refused 'from 1 to' -n 0
    refused 'from 1 to' -O 0
    refused 'from 1 to' -T 65
    refused 'from 0 to' -w -1
    refused 'from 0 to 65535' -p 70000
    refused 'port 0 is for the server' localhost -p 0
    refused 'too many' localhost localhost
    refused 'option of the client' --json "$temp/report.json"
    refused 'cannot write' localhost --json /nonexistent/report.json
    refused 'match, start, wait' --die-at later
    refused 'match, start, wait' --die-at start --stop-at 1
    refused 'a time' --timeout soon
    refused 'processor' -c 0-1
    refused 'Invalid argument' -c 1023
    run_client_alone -h
    expect_status 0 0
    expect_text client '^ +st_rbw - '
    run_client_alone --version
    expect_text client '^ucx_st_perftest [0-9.]+$'
}

# Both sides name what differs between them.
test_differ()
{
    local side
    start_server -t st_lat -n 5 -s 8,16
    run_client -t st_lat -n 6 -s 8
    wait_server
    expect_status 1 1
    for side in server client; do
        expect_text $side '-n is 6 at the client and 5 at the server'
        expect_text $side '-s is 8 at the client and 8,16 at the server'
    done
    # What is the same is none
    start_server -s 8:32 --check -n 10
    run_client -t tag_lat -s 8,16,32 --check -n 10
    wait_server
    expect_status 0 0
    start_server --die-at 56
    run_client -t tag_lat -n 10 -w 1
    wait_server
    expect_status 1 1
    expect_text client '56 is never reached: there are 55 iterations'
}

# Something else connects to the server.
# Usage: stranger REGEX COMMAND...; the command's output is sent.
stranger()
{
    local regex=$1
    shift
    start_server
    exec 4<>"/dev/tcp/127.0.0.1/$port"
    "$@" >&4
    tr -d '\0' <&4 >"$temp/client"
    exec 4>&-
    client_rc=0
    wait_server
    expect_status 1 0
    expect_text server "$regex"
}

# The begin of a greeting: 12 bytes that say what follows, then the protocol and
# the version in 28 bytes.
hello()
{
    printf '\x55\x73\x50\x74\0\0\0\0\0\0\0\x20\0\0\0\x01%s' "$1"
    head -c $((28 - ${#1})) /dev/zero
}

test_strangers()
{
    local own
    stranger 'the client is no ucx_st_perftest' \
        printf 'GET / HTTP/1.0\r\n\r\n'
    stranger 'versions differ: the client is ucx_st_perftest 9.9.9 ' hello 9.9.9
    own=$("$program" --version)
    expect_text server "9\\.9\\.9 .*, the server ${own##* } "
    expect_text client "9\\.9\\.9 .*, the server ${own##* } "
    # Goes at once
    start_server
    exec 4<>"/dev/tcp/127.0.0.1/$port"
    exec 4>&-
    client_rc=0
    wait_server
    expect_status 1 0
    expect_text server 'ended the connection before it said what it is'
    # A server that is something else
    command -v python3 >/dev/null ||
        { echo "skipped: python3 is not installed"; exit 77; }
    mkfifo "$temp/other"
    python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
c = s.accept()[0]
c.sendall(b"220 ready\r\n" * 9)
c.recv(9999)' >"$temp/other" &
    server=$!
    read -r port <"$temp/other"
    run_client -t tag_lat
    wait_server
    expect_status 0 1
    expect_text client 'the server is no ucx_st_perftest'
}

# A client that says nothing: the server ends all the same.
test_silent()
{
    start_server
    exec 4<>"/dev/tcp/127.0.0.1/$port"
    client_rc=0
    wait_server
    exec 4>&-
    expect_status 1 0
    expect_text server 'did not come within 10 s'
}

# No server, and two of them.
test_port()
{
    start_server
    kill -KILL "$server"
    wait_server
    run_client
    expect_status 137 1
    expect_text client 'Connection refused'
    start_server
    run_client_alone -p "$port"
    server_rc=0
    expect_status 0 1
    expect_text client "cannot listen on port $port: Address already in use"
    run_client -t tag_lat -n 10
    wait_server
    expect_status 0 0
}

# Streams of a type, and messages in their devices; those of the host have none.
# Usage: test_stream host|hip|cuda
test_stream()
{
    start_server --stream "$1"
    run_client --stream "$1" -m device -t st_lat -n 20 -w 2 --trials 1
    wait_server
    if [ "$1" = host ]; then
        expect_status 1 1
        expect_text client '^ucx_st_perftest: .*-m device needs --stream hip or'
        return
    fi
    expect_status 0 0
    start_server --stream "$1"
    run_client --stream "$1" -m device -t st_lat,tag_lat
    wait_server
    expect_status 1 1
    expect_text client '^ucx_st_perftest: .*-m device: tag_lat has no messages'
    start_server --stream "$1"
    run_client --stream "$1" -m device --check -t st_lat,st_bw -s 8,100k \
        -n 20 -w 2 --trials 2
    wait_server
    expect_status 0 0
    [ "$(grep -cE '^ *[0-9]+ +st_.* right$' "$temp/client")" -eq 4 ] ||
        fail "data is wrong"
    expect_text client ", $1 stream \\((HIP|CUDA) [0-9]+ on "
    start_server --stream "$1"
    run_client --stream "$1" -m device --check --spoil -t st_lat -n 5 -w 2 \
        --trials 1
    wait_server
    expect_status 2 2
}

# Keeps what is measured on streams of a type.
# Usage: test_report hip|cuda FILE [OPTION...]
test_report()
{
    start_server --stream "$1"
    run_client --stream "$1" --check --json "${@:2}"
    wait_server
    cat "$temp/client"
    expect_status 0 0
}

what=${1:-}
case $what in
measure|direct|die|stop|spoil|setup|options|differ|strangers|silent|port|stream|\
report)
    shift
    "test_$what" "$@"
    ;;
*)
    sed -n '/^# usage/,/^# Needs/s/^# \(usage\|  \)/\1/p' "$0" >&2
    exit 2
    ;;
esac
