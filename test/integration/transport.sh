#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The transport as the programs of other projects see it.
# usage: transport.sh listed | alone | default | hook | rails | shared |
#                     refused VARIABLE=VALUE REGEX |
#                     perftest [ucx_perftest-OPTION...] |
#                     every uct|ucp|sleep|ways |
#                     native REGEX [ucx_perftest-OPTION...] |
#                     apart | in_space OPTIONS COMMAND...
# Needs srcdir, builddir, ST_RUN and ST_DEVICE in the environment, as test/run.py
# sets them.
set -uo pipefail

fail()
{
    echo "transport.sh: $*" >&2
    exit 1
}

# Skips when a program of another package is not installed.
need()
{
    command -v "$1" >/dev/null && return
    echo "skipped: $1 is not installed (package ucx-utils)"
    exit 77
}

# ucx_info knows the transport and its device.
test_listed()
{
    local out
    need ucx_info
    out=$("$ST_RUN" -q ucx_info -d) || fail "ucx_info fails"
    grep -A 1 'Transport: cxi_trig' <<<"$out" | grep -q "Device: $ST_DEVICE\$" ||
        fail "ucx_info does not list cxi_trig on $ST_DEVICE"
    out=$(ucx_info -d)
    ! grep -q cxi_trig <<<"$out" ||
        fail "ucx_info lists cxi_trig without ucx-st-run"
}

# Every lane of every endpoint of an MPI program is on the transport.
test_alone()
{
    local out lanes
    out=$(UCX_LOG_LEVEL=info "$ST_RUN" -q mpirun -n 2 examples/st_hello 2>&1) ||
        fail "st_hello fails: $out"
    lanes=$(grep -aoE '(ep_cfg\[|cfg#)[0-9]+.*' <<<"$out" |
            grep -o '[a-z_0-9]*/[a-z_0-9]*' | sort -u)
    grep -qx "cxi_trig/$ST_DEVICE" <<<"$lanes" ||
        fail "no lane on cxi_trig: $lanes"
    ! grep -vxE "cxi_trig/$ST_DEVICE|self/memory0?" <<<"$lanes" ||
        fail "lanes on other transports"
}

# What ucx-st-run chooses: within a node streams copy through shared memory, and
# so do UCX's own messages.
test_default()
{
    local out
    unset UCX_TLS
    out=$("$ST_RUN" mpirun -n 4 bench/st_faces --grid 2x2x1 --block 1 \
          --order 3 --middle 1 --inner 5 --trials 1 2>&1) || fail "$out"
    echo "$out"
    grep -qxF 'ucx-st-run: lanes: direct, host; trig on an emulated card' \
        <<<"$out" || fail "no line with the lanes"
    grep -qE 'deferred writes fired = 0, copies = [1-9]' <<<"$out" ||
        fail "messages within a node are not on lane direct"
    out=$(UCX_LOG_LEVEL=info "$ST_RUN" -q mpirun -n 2 examples/st_hello 2>&1) ||
        fail "st_hello fails: $out"
    grep -aqE '(ep_cfg\[|cfg#).*tag\((sysv|posix)/memory' <<<"$out" ||
        fail "plain messages do not take shared memory: $out"
}

# A setting that takes the transport away is an error, not another way, where
# no other way is allowed.
test_refused()
{
    local out rc=0
    export UCX_ST_LANES=trig
    out=$(env "$1" "$ST_RUN" -q mpirun -n 2 examples/st_hello 2>&1) || rc=$?
    echo "$out"
    [ $rc -ne 0 ] || fail "st_hello works with $1"
    ! grep -q '^got:' <<<"$out" || fail "a message arrived with $1"
    grep -qE "$2" <<<"$out" || fail "no line with \"$2\""
}

# OpenMPI's component loads the transport into a program that knows nothing of
# it, and nothing else does.
test_hook()
{
    local out own component=${builddir:?}/contrib/openmpi/hook/.libs
    [ -e "$component/mca_hook_cxitrig.so" ] ||
        { echo "skipped: OpenMPI's headers of components are missing"; exit 77; }
    own=$(ompi_info --path pkglibdir --parsable | cut -d : -f 3) ||
        fail "ompi_info fails"
    export OMPI_MCA_pml=ucx OMPI_MCA_opal_common_ucx_tls=any \
        OMPI_MCA_opal_common_ucx_devices=any UCX_TLS=cxi_trig,self \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        OMPI_MCA_rmaps_base_oversubscribe=1
    ! mpirun -n 2 test/integration/mpi_plain p2p >/dev/null 2>&1 ||
        fail "the program runs without the component"
    export OMPI_MCA_mca_base_component_path=$component:$own
    out=$(mpirun -n 2 test/integration/mpi_plain p2p 2>&1) ||
        fail "the program fails: $out"
    echo "$out"
}

# Ends the server of pass_perftest, whatever happened.
stop_server()
{
    if kill -0 "$server" 2>/dev/null; then
        kill "$server"
    fi
    wait "$server" 2>/dev/null
}

# ucx_perftest passes a test between two processes, and prints a result.
# Usage: pass_perftest [OPTION...]
pass_perftest()
{
    # None that the kernel gives to whoever asks for any
    local port=$((10000 + $$ % 20000)) rc=1 out perftest=(ucx_perftest)
    # Built with MPI it takes itself for a part of an MPI program
    ! grep -q '^ *-P <' <<<"$(ucx_perftest -h 2>&1)" || perftest+=(-P 0)
    # Later versions want the server told of the device, too
    "$ST_RUN" -q "${perftest[@]}" -p $port -x cxi_trig -d "$ST_DEVICE" &
    server=$! # Global: the trap needs it
    trap stop_server EXIT
    # Until the server listens, a client ends at once with a refusal
    while kill -0 "$server" 2>/dev/null; do
        out=$("$ST_RUN" -q "${perftest[@]}" 127.0.0.1 -p $port -f "$@" 2>&1) &&
            rc=0
        grep -q 'Connection refused' <<<"$out" || break
    done
    echo "$out"
    [ $rc -eq 0 ] || fail "the client fails: $*"
    ! grep -q ' UCX *ERROR' <<<"$out" || fail "the client reports an error: $*"
    wait "$server" || fail "the server fails: $*"
    grep -qE '^Final:|^ *[0-9]+ +[0-9.]+' <<<"$out" || fail "no result: $*"
}

test_perftest()
{
    need ucx_perftest
    pass_perftest "$@"
}

# Prints the tests that ucx_perftest has, but those that a GPU's kernel starts
# (UCX 1.20).  Usage: perftest_names UCT|UCP
perftest_names()
{
    ucx_perftest -h 2>&1 | sed -nE "s/^ +([a-z_]+) - $1 .*/\1/p" |
        grep -vE '^ucp_put_(single|multi|partial)_'
}

# Passes a test with few messages, and counts it.
pass_one()
{
    local out
    count=$((count + 1))
    out=$(pass_perftest -n 50 -w 5 "$@" 2>&1) || fail "$out"
    echo "ok: $*"
}

# The ways to give a test of UCT its data, with a size for each; none for one
# that is not known here.
layouts_of()
{
    case $1 in
    am_*)  echo 'short:8 shortiov:16,16 bcopy:1000 zcopy:1000' ;;
    put_*) echo 'short:8 bcopy:1000 zcopy:65536' ;;
    get|get_*) echo 'bcopy:1000 zcopy:100000' ;;
    *)     echo 'short:4 short:8' ;;
    esac
}

# A receiver of a stream of puts waits for the last one, wherever it overtakes
# others: these are to keep their order.
test_every_uct()
{
    local name layout
    export UCX_CXI_TRIG_ORDERING=strict
    for name in $(perftest_names UCT); do
        for layout in $(layouts_of "$name"); do
            if [[ $name$layout = am_*zcopy* ]] && ! has_am_zcopy; then
                echo "left out: $name, zcopy: the card sends one piece"
                continue
            fi
            pass_one -t "$name" -x cxi_trig -d "$ST_DEVICE" \
                -D "${layout%:*}" -s "${layout#*:}"
        done
    done
}

# The card must send our header and the user's memory as one message.
has_am_zcopy()
{
    "$ST_RUN" -q ucx_info -d | sed -n '/Transport: cxi_trig/,/^$/p' |
        grep -q 'am_zcopy:'
}

test_every_ucp()
{
    local name size sizes
    for name in $(perftest_names UCP); do
        sizes='8 5000 1048576'
        [[ $name != ucp_*add && $name != ucp_*swap ]] || sizes='4 8'
        for size in $sizes; do
            pass_one -t "$name" -s "$size"
        done
    done
}

# Both sides sleep until something comes. Puts, gets and atomics wake nobody at
# their target, whatever the transport, so that ucx_perftest would sleep on.
test_every_sleep()
{
    local name
    for name in $(perftest_names UCP); do
        case $name in
        ucp_put_*|ucp_get|ucp_*add|ucp_*swap) ;;
        *) pass_one -t "$name" -E sleep -s 64 ;;
        esac
    done
}

# Other ways to send and receive.
test_every_ways()
{
    local name
    for name in tag_lat tag_bw; do
        pass_one -t $name -D iov,contig -s 64,64
        pass_one -t $name -D iov,iov -s 64,64
        pass_one -t $name -C
        pass_one -t $name -U
        pass_one -t $name -T 2 -M multi
    done
    for name in stream_lat stream_bw; do
        pass_one -t $name -r recv_data -s 1000
    done
    for name in thread_spinlock thread_mutex signal; do
        pass_one -t am_lat -x cxi_trig -d "$ST_DEVICE" -A $name
    done
}

# Every test that the installed ucx_perftest has passes.
test_every()
{
    need ucx_perftest
    count=0
    "test_every_$1"
    [ $count -ge 8 ] || fail "only $count tests"
    echo "$count tests passed"
}

# UCP's report of its protocols tells that it takes the transport's operations,
# rather than messages that do the same.
test_native()
{
    local regex=$1 out
    shift
    need ucx_perftest
    # Versions of UCX have two words for it
    [ "$regex" != atomic ] || regex='(offload|atomic)'
    out=$(UCX_PROTO_ENABLE=y UCX_PROTO_INFO=y "$0" perftest "$@") ||
        fail "the test fails: $out"
    echo "$out"
    grep -qE "$regex.*cxi_trig/$ST_DEVICE" <<<"$out" ||
        fail "no line with \"$regex\""
}

# UCP spreads long messages over both devices of a node that has two, takes the
# one that it is told to, and says so if there is none of the name.
test_rails()
{
    local device out
    export FI_CXIEMU_DEVICES=2 ST_DEVICE=cxiemu1
    test_native 'rendezvous.* 50% on cxi_trig/cxiemu0 and 50% on ' -t tag_bw \
        -n 20 -w 2 -s 1048576
    for device in cxiemu0 cxiemu1; do
        export UCX_NET_DEVICES=$device ST_DEVICE=$device
        out=$(test_native 'rendezvous zero-copy read' -t tag_bw -n 20 -w 2 \
              -s 1048576) || fail "UCX_NET_DEVICES=$device: $out"
        [ "$(grep -o 'cxi_trig/[a-z0-9]*' <<<"$out" | sort -u)" = \
          "cxi_trig/$device" ] || fail "not on $device alone: $out"
    done
    out=$(UCX_NET_DEVICES=nosuch0 UCX_TLS=cxi_trig "$ST_RUN" -q ucx_info \
          -e -u t 2>&1)
    grep -qE "'nosuch0' is not available.*'cxiemu0'\(cxi_trig\)" <<<"$out" ||
        fail "no word of the device that is missing: $out"
    grep -q 'ERROR no usable transports/devices' <<<"$out" ||
        fail "no error: $out"
}

# Beside UCX's shared memory the emulated card carries no message: the cores that
# copy for both are the same.
test_shared()
{
    local protocols out
    need ucx_perftest
    export UCX_TLS=cxi_trig,sm,self UCX_CXI_TRIG_STATS=y
    for protocols in n y; do
        out=$(UCX_PROTO_ENABLE=$protocols "$0" perftest -t tag_bw -n 20 -w 2 \
              -s 1048576 2>&1) || fail "the test fails: $out"
        grep -q '^get_zcopy_bytes 0$' <<<"$out" || fail "no counts: $out"
        ! grep -E '^(am|put|get)_.*[1-9]' <<<"$out" ||
            fail "the card carries messages (UCX_PROTO_ENABLE=$protocols)"
    done
}

# Starts a command, if it is the second rank's in a namespace of its own.
test_in_space()
{
    local options=$1
    shift
    [ "${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}" = 1 ] || exec "$@"
    # shellcheck disable=SC2086 # several options
    exec unshare $options "$@"
}

# Ranks in two user namespaces: cxi_trig and the lanes direct and trig know from
# the start that they do not reach the other one, the reason is said, and UCX and
# lane host take another way.
test_apart()
{
    local out tls
    unshare -U -r true 2>/dev/null ||
        { echo "skipped: no user namespaces for this user"; exit 77; }
    for tls in cxi_trig,tcp,self cxi_trig,tcp,sm,self tcp,sm,self; do
        out=$(UCX_TLS=$tls UCX_ST_STATS=y "$ST_RUN" mpirun -n 2 "$0" in_space \
              '-U -r' examples/st_hello 2>&1) || fail "st_hello fails: $out"
        grep -q 'in another user namespace' <<<"$out" || fail "no reason: $out"
        [ "$(grep -c '^host_starts [1-9]' <<<"$out")" -eq 2 ] ||
            fail "not on lane host: $out"
    done
    echo "$out"
}

what=${1:-}
case $what in
listed|alone|default|refused|hook|perftest|every|native|rails|shared|apart|\
in_space)
    shift
    "test_$what" "$@"
    ;;
*) sed -n 's/^# usage/usage/p' "$0" >&2; exit 2 ;;
esac
