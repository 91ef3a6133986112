#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An emulated Cassini of its own for what runs on libfabric's provider cxi.
set -uo pipefail

usage()
{
    cat <<STEOF
usage: contrib/own-card.sh [--probe] --libfabric LIBDIR --card DIR
                           COMMAND [ARGUMENT...]

Runs a command with the libfabric of folder LIBDIR over the emulated card of
folder DIR, a libcxi.so.1, in a mount namespace where /sys/class/net has the
network device that the provider looks for: one that is up and whose PCI
address is the card's; and a /dev/shm of its own. All processes of the command
are on one card; another call has another card. If the status of the command is
0, and the card tells at its end that something was left open, the status is 1.

    --probe  only tell whether such a namespace may be made here

In the environment, ST_CARD_PCI has the PCI addresses of the devices (default
0000:3b:00.0), and ST_CARD_LEAKS=no lets everything stay open.
STEOF
}

# The network devices of the card, beside those that there are
make_devices()
{
    local address device number=0 copy
    copy=$(mktemp -d) || return 1
    cp -a /sys/class/net/. "$copy/" 2>/dev/null
    mount -t tmpfs tmpfs /sys/class/net || return 1
    cp -a "$copy/." /sys/class/net/
    rm -rf "$copy"
    for address in ${ST_CARD_PCI:-0000:3b:00.0}; do
        device=/sys/class/net/hsn$number
        mkdir -p "$device" || return 1
        ln -s "../../../$address" "$device/device"
        echo up >"$device/operstate"
        echo 1 >"$device/carrier"
        echo 200000 >"$device/speed"
        # A locally administered address that was set
        echo 3 >"$device/addr_assign_type"
        printf '02:00:00:00:00:%02x\n' $((number + 18)) >"$device/address"
        number=$((number + 1))
    done
}

# Usage: run_inside LIBDIR CARD COMMAND...
run_inside()
{
    local libdir=$1 card=$2 rc=0 leaks
    shift 2
    make_devices || exit 1
    # Processes that share a card share its entries, by a file there
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit 1
    leaks=$(mktemp) || exit 1
    # The card's own pthread_sigmask() is to come before libc's
    env LD_LIBRARY_PATH="$card:$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        LD_PRELOAD="$card/libcxi.so.1${LD_PRELOAD:+:$LD_PRELOAD}" \
        FI_MR_CACHE_MONITOR="${FI_MR_CACHE_MONITOR:-disabled}" \
        CASSINI_NIC="own-$$" CASSINI_LEAKS="$leaks" "$@" || rc=$?
    if [ -s "$leaks" ] && [ "${ST_CARD_LEAKS:-yes}" = yes ]; then
        echo "own-card.sh: the card was left with:"
        head -n 50 "$leaks"
        [ $rc -ne 0 ] || rc=1
    fi
    rm -f "$leaks"
    exit $rc
}

case ${1:-} in
-h|--help) usage; exit 0 ;;
--inside) shift; run_inside "$@" ;;
esac
namespace=(unshare --mount --propagation private)
[ "$(id -u)" -eq 0 ] || namespace+=(--map-root-user)
if [ "${1:-}" = --probe ]; then
    exec "${namespace[@]}" mount -t tmpfs tmpfs /sys/class/net
fi
libdir=
card=
while [ $# -gt 0 ]; do
    case $1 in
    --libfabric) libdir=${2:-}; shift 2 ;;
    --card) card=${2:-}; shift 2 ;;
    -*) usage >&2; exit 2 ;;
    *) break ;;
    esac
done
if [ $# -eq 0 ] || [ ! -d "$libdir" ] || [ ! -e "$card/libcxi.so.1" ]; then
    usage >&2
    exit 2
fi
exec "${namespace[@]}" "${BASH_SOURCE[0]}" --inside "$libdir" "$card" "$@"
