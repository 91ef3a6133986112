#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A network of its own for what runs on libfabric's sockets provider.
set -uo pipefail

usage()
{
    cat <<STEOF
usage: contrib/own-network.sh COMMAND [ARGUMENT...]

Runs a command in a network namespace that has nothing but a loopback device,
with receive buffers of TCP of 8 MiB instead of 128 KiB; where the system allows
no namespace, as it is, which is told.

The sockets provider looks at a header of 24 bytes without taking what there is
of it. Are there fewer, and is the rest of the buffer accounted to the large
segment that they came with, then TCP's window stays closed, and neither side
goes on. Larger buffers are not filled.
STEOF
}

case ${1:-} in
-h|--help) usage; exit 0 ;;
'') usage >&2; exit 2 ;;
--inside)
    shift
    ip link set lo up || exit 1
    echo 4096 8388608 33554432 >/proc/sys/net/ipv4/tcp_rmem ||
        echo "own-network.sh: the receive buffers stay as they are" >&2
    exec "$@"
    ;;
esac

namespace=(unshare --net)
[ "$(id -u)" -eq 0 ] || namespace+=(--map-root-user)
if ! "${namespace[@]}" ip link set lo up 2>/dev/null; then
    echo "own-network.sh: no network namespace may be made here" >&2
    exec "$@"
fi
exec "${namespace[@]}" "${BASH_SOURCE[0]}" --inside "$@"
