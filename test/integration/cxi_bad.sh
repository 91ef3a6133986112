#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a card of the provider cxi lacks: the transport says it, with what to set,
# and programs end with an error or go another way.
# usage: cxi_bad.sh service | launcher | counters | entries | file | down_trig |
#                   down_host | down_mpi | monitor
# Runs on an emulated card of its own, as contrib/own-card.sh gives one; ST_BUILDDIR
# in the environment is the build folder.
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
run=$top/contrib/ucx-st-run
# The NIC draws nothing
export CASSINI_SEED=0
# Seconds that a program has: none needs them on a machine that does little else
limit=120
tries=0
out=

fail()
{
    echo "cxi_bad.sh: $*" >&2
    echo "$out" >&2
    exit 1
}

# Runs a program of the build folder with settings, and keeps its status and what
# it says. It has a card of its own: mpirun may end before ranks that it killed, and
# the first process of a card fixes what all have.
# Usage: try [VARIABLE=VALUE...] COMMAND...
try()
{
    rc=0
    tries=$((tries + 1))
    out=$(CASSINI_NIC="bad-$$-$tries" \
          env -C "${ST_BUILDDIR:?}" timeout -k 10 $limit env "$@" 2>&1) || rc=$?
    case $rc in
    124|137) fail "$* does not end in $limit seconds" ;;
    134|139) fail "$* aborts" ;;
    esac
    echo "$out"
}

# Usage: try_info OPTIONS [VARIABLE=VALUE...]
try_info()
{
    local options=$1
    shift
    try "$@" "$run" -q src/tools/ucx_st_info "$options"
}

# Usage: try_mpi [VARIABLE=VALUE...]
try_mpi()
{
    try "$@" "$run" -q mpirun -n 2 test/integration/mpi_plain p2p
}

# Each argument is a part of the output, as a regular expression.
has()
{
    local text
    for text; do
        grep -qE -e "$text" <<<"$out" || fail "no \"$text\""
    done
}

# There is no device for a reason: ucx_st_info and a program of MPI that may use
# nothing else end with an error and say it; with other transports the program
# runs.  Usage: no_device REASON [VARIABLE=VALUE...]
no_device()
{
    local reason=$1
    shift
    try_info -dl "$@"
    [ $rc -eq 1 ] || fail "ucx_st_info with $* ends with $rc, not 1"
    has "ERROR .*$reason" "^#   no device: .*$reason" \
        '^# Lane trig: off: ' 'transport cxi_trig is off'
    try_mpi "$@"
    [ $rc -ne 0 ] || fail "a program of MPI works with $*"
    has "ERROR .*$reason"
    for transports in tcp posix; do
        try_mpi UCX_TLS=cxi_trig,$transports,self "$@"
        [ $rc -eq 0 ] || fail "with $transports a program of MPI ends with $rc"
        has "$reason" '^mpi_plain: 0 checks failed'
    done
}

# No service, one of another user, one that is off
service='no service of the card is for this user: start the program by a
launcher that makes one, and sets SLINGSHOT_SVC_IDS, _VNIS and _DEVICES, or
have one made \("cxi_service"\)'
service=${service//$'\n'/ }

test_service()
{
    local which
    for which in none denied off; do
        no_device "$service" CASSINI_SERVICE=$which
    done
}

# What a launcher says is not what the card has
test_launcher()
{
    no_device 'service 1 may .* be none for VNI 77, .*SLINGSHOT_\*' \
        SLINGSHOT_VNIS=77 SLINGSHOT_SVC_IDS=1 SLINGSHOT_DEVICES=cxi0
    no_device 'service 7 may be closed to this user, .*SLINGSHOT_\*' \
        SLINGSHOT_VNIS=10 SLINGSHOT_SVC_IDS=7 SLINGSHOT_DEVICES=cxi0
}

counters='service 1 has no counter left for this process
(more: srun --network=res_cts=N)'
counters=${counters//$'\n'/ }
counters=${counters//[()]/.}

# None; two, which are enough for two interfaces: of UCX's messages, and no more:
# the one of lane trig is the third
test_counters()
{
    no_device "$counters" CASSINI_CTS=0
    try_info -dl CASSINI_CTS=2
    [ $rc -eq 0 ] || fail "ucx_st_info ends with $rc, not 0"
    has '^#   Device: cxi0$' "ERROR .*$counters" \
        '^# Lane trig: off: .*No resources' '^# Lane host: on$'
    try_mpi CASSINI_CTS=2
    [ $rc -eq 0 ] || fail "a program of MPI ends with $rc"
    has '^mpi_plain: 0 checks failed'
    try CASSINI_CTS=2 "$run" -q mpirun -n 2 examples/st_hello
    [ $rc -ne 0 ] || fail "st_hello works with two counters"
    has "ERROR .*$counters" 'MPIX_Queue_init: '
    try CASSINI_CTS=8 "$run" -q mpirun -n 2 examples/st_hello
    [ $rc -eq 0 ] || fail "with eight counters st_hello ends with $rc"
    has '^got: .*rank 0' '^got: .*rank 1'
}

# The provider keeps 8
test_entries()
{
    local text
    text="lane 'trig': this process may use %u of the %u deferred-work entries \
that device cxi0 has for the job, and needs 16 .more entries: srun \
--network=res_tles=N; fewer processes a device: UCX_CXI_TRIG_NODE_PROCESSES."
    try_info -dl CASSINI_TLES=10
    [ $rc -eq 0 ] || fail "ucx_st_info ends with $rc, not 0"
    has '^# +deferred entries: 2, 2 of them free$' \
        "^# Lane trig: off: ${text//%u/2}\$" '^# Lane host: on$'
    try_info -dl CASSINI_TLES=4
    [ $rc -eq 0 ] || fail "ucx_st_info ends with $rc, not 0"
    has '^# +deferred entries: 0, 0 of them free$' '^# Lane host: on$'
    try CASSINI_TLES=10 "$run" -q mpirun -n 2 examples/st_hello
    [ $rc -eq 0 ] || fail "on lane host st_hello ends with $rc"
    has '^got: .*rank 0' '^got: .*rank 1'
    try CASSINI_TLES=10 UCX_ST_LANES=trig "$run" -q mpirun -n 2 examples/st_hello
    [ $rc -ne 0 ] || fail "st_hello works on lane trig with two entries"
    has 'ERROR .*this process may use .*res_tles=N'
    ! grep -q '^got:' <<<"$out" || fail "a message arrived"
}

# A card in /sys, as the driver lists it, and a /dev that can be changed
list_card()
{
    local dir name
    dir=$(mktemp -d)
    mkdir "$dir/net" "$dir/dev"
    cp -a /sys/class/net/. "$dir/net/"
    mount -t tmpfs tmpfs /sys/class
    mkdir -p /sys/class/net /sys/class/cxi/cxi0
    cp -a "$dir/net/." /sys/class/net/
    mount -t tmpfs tmpfs "$dir/dev"
    for name in /dev/*; do
        if [ -L "$name" ]; then
            cp -a "$name" "$dir/dev/"
        elif [ -d "$name" ]; then
            mkdir "$dir/$name"
            mount --rbind "$name" "$dir/$name"
        else
            touch "$dir/$name"
            mount --bind "$name" "$dir/$name"
        fi
    done
    mount --rbind "$dir/dev" /dev
    export CASSINI_FILE=/dev/cxi0
    # Root opens what others may not
    printf '#!/bin/sh\nexec setpriv %s "%s" "$@"\n' \
        --bounding-set=-dac_override,-dac_read_search "$run" >"$dir/run"
    chmod 755 "$dir/run"
    run=$dir/run
}

# The card's file is missing, then closed, then the link is down
test_file()
{
    list_card
    no_device '/dev/cxi0 is not there \(a container must be given it\)'
    install -m 000 /dev/null /dev/cxi0
    no_device 'this user may not open /dev/cxi0'
    chmod 600 /dev/cxi0
    echo down >/sys/class/net/hsn0/operstate
    no_device "libfabric sees none: its links must be up, and libfabric's \
provider 'cxi' be there, see \"fi_info -p cxi\""
    echo up >/sys/class/net/hsn0/operstate
    try_mpi
    [ $rc -eq 0 ] || fail "with the link up a program of MPI ends with $rc"
}

# The link goes down in the midst, early or late: hosts and streams do not wait
# for what cannot come, and calls of the library tell it. At times a check of
# data on a stream is the first that notices: after an error they are undefined.
# Usage: link_fails LANE
link_fails()
{
    local after told=0
    for after in 1 5 20 60 300 1000 2000; do
        # Ranks that fail leave everything open
        try CASSINI_LEAKS= CASSINI_DOWN=$after UCX_ST_LANES="$1" "$run" \
            test/integration/st_progress --limit 60 p1
        [ $rc -eq 1 ] || fail "down after $after: ends with $rc, not 1"
        has '^FAIL st_progress.p1 .*("Endpoint timeout", expected|byte 0 is wr)'
        ! grep -q '"Endpoint timeout"' <<<"$out" || told=$((told + 1))
    done
    [ $told -ge 4 ] || fail "only $told calls told that the link went down"
}

test_down_trig()
{
    link_fails trig
}

test_down_host()
{
    link_fails host
}

# Plain UCX under MPI is told, too, and ends with the rank whose send fails. MPI
# does not ask UCX for the loss of a peer from which it only receives: later, both
# may wait.
test_down_mpi()
{
    local after
    for after in 20 30; do
        try_mpi CASSINI_LEAKS= CASSINI_DOWN=$after
        [ $rc -ne 0 ] || fail "down after $after: a program of MPI works"
        has 'ERROR endpoint .* of cxi_trig has failed: Endpoint timeout'
    done
}

# libfabric's own monitor takes UCX's place where memory is unmapped
test_monitor()
{
    try_info -d FI_MR_CACHE_MONITOR=memhooks
    [ $rc -eq 0 ] || fail "ucx_st_info ends with $rc, not 0"
    has '^# +memory monitor: memhooks$' \
        "^# +UCX's memory cache: off: UCX does not notice that memory is unm" \
        '^# +Each message without a copy registers its memory anew:' \
        'FI_MR_CACHE_MONITOR=disabled, or kdreg2'
    try_info -d -u FI_MR_CACHE_MONITOR
    has '^# +memory monitor: default of libfabric, which is memhooks' \
        "^# +UCX's memory cache: off: "
    try_info -d FI_MR_CACHE_MONITOR=disabled
    has '^# +memory monitor: disabled$' "^# +UCX's memory cache: can work"
}

if [ "$(type -t "test_${1:-}")" = function ]; then
    "test_$1"
else
    fail "there is no test \"${1:-}\""
fi
