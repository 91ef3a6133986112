#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nodes of its own for what runs over several: namespaces of this machine.
set -uo pipefail

usage()
{
    cat <<STEOF
usage: contrib/own-nodes.sh NODES COMMAND [ARGUMENT...]
       contrib/own-nodes.sh --on NODE COMMAND [ARGUMENT...]
       contrib/own-nodes.sh --kill NODE
       contrib/own-nodes.sh --cut NODE

Runs a command, which mpirun of OpenMPI is or starts, over so many nodes: node1,
node2 and so on. A node is namespaces of this machine: of network, host name,
mounts, System V's memory and PIDs, with a /dev/shm and a /tmp of its own; all
else, as the boot's id, is the machine's. The nodes have a network, eth0 in each,
10.77.0.0/24, and a directory in common by which emulated cards reach each other
(FI_CXIEMU_DIR). The command runs beside them, in their network. mpirun starts its
daemons on the nodes, and puts ranks on them in turn. All that is made here is
held by processes in a PID namespace of the command, and gone when it ends or is
killed. It needs root; where namespaces may not be made, the status is 77.

In the command:

    --on NODE    run a command on a node, with this folder and the variables
                 that name what is tested, and no others: as ssh does
    --cut NODE   take down the link of a node, which is not told
    --kill NODE  the same, and end the node, as if its power failed
STEOF
}

die()
{
    echo "own-nodes.sh: $*" >&2
    exit 1
}

# Sets pid: of the process that holds a node's namespaces.
find_node()
{
    [[ " ${ST_NODES:-} " =~ \ $1=([0-9]+)\  ]] ||
        die "there is no node ${1:-}, but: ${ST_NODES:-none}"
    pid=${BASH_REMATCH[1]}
}

# Usage: enter PID COMMAND...
enter()
{
    nsenter --target "$1" --net --uts --ipc --mount \
        --pid="/proc/$1/ns/pid_for_children" "${@:2}"
}

# What ssh does for mpirun: its command is one for a shell.
on_node()
{
    local pid name words=()
    find_node "$1"
    while IFS= read -r name; do
        words+=("$name=${!name}")
    done < <(compgen -e | grep -E '^(ST_.*|srcdir|builddir|HOME|PATH|SHELL)$')
    enter "$pid" --wd="$PWD" env -i "${words[@]}" bash -c "${*:2}"
}

# The first process of a node
run_node()
{
    hostname "$1" || exit 1
    local card
    exec {card}</dev/shm/card || exit 1
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit 1
    { mkdir -m 700 /dev/shm/card &&
        mount --no-canonicalize --bind /proc/self/fd/$card /dev/shm/card; } || exit 1
    [ -z "$ST_NODES_TMP" ] || mount -t tmpfs tmpfs /tmp || exit 1
    set_network || exit 1
    echo ready
    sleep infinity &
    wait
}

# As contrib/own-network.sh has it
set_network()
{
    ip link set lo up &&
        echo 4096 8388608 33554432 >/proc/sys/net/ipv4/tcp_rmem
}

# Usage: make_node NUMBER; adds to ST_NODES
make_node()
{
    local name=node$1 line='' fd
    exec {fd}< <(exec unshare --net --uts --ipc --mount --propagation private \
                     --pid --mount-proc --fork --kill-child \
                     "${BASH_SOURCE[0]}" --node "$name")
    read -r line <&"$fd"
    [ "$line" = ready ] || die "$name cannot be made"
    { ip link add "$name" master bridge type veth peer name eth0 netns $! &&
        ip link set "$name" up &&
        enter $! ip address add "10.77.0.$1/24" dev eth0 &&
        enter $! ip link set eth0 up; } || die "$name gets no network"
    echo "10.77.0.$1 $name" >>/dev/shm/hosts
    echo "$name slots=8" >>/dev/shm/hostfile
    ST_NODES+=" $name=$!"
}

# The first process of the command's namespaces
run_inside()
{
    local nodes=$1 i
    shift
    trap 'exit 143' TERM INT HUP
    # Where the sources are in /tmp the nodes share that
    ST_NODES_TMP=yes
    [[ $(realpath "${BASH_SOURCE[0]}") != /tmp/* && $PWD/ != /tmp/* ]] ||
        ST_NODES_TMP=
    export ST_NODES='' ST_NODES_TMP
    { mount -t tmpfs -o mode=1777 tmpfs /dev/shm && set_network &&
        echo '127.0.0.1 localhost' >/dev/shm/hosts &&
        mount --bind /dev/shm/hosts /etc/hosts && mkdir -m 700 /dev/shm/card &&
        hostname head &&
        ip link add bridge type bridge &&
        ip address add 10.77.0.254/24 dev bridge &&
        ip link set bridge up; } || die "no network can be made"
    for ((i = 1; i <= nodes; ++i)); do
        make_node "$i"
    done
    export FI_CXIEMU_DIR=/dev/shm/card
    export OMPI_MCA_plm_rsh_agent="${BASH_SOURCE[0]} --on"
    export OMPI_MCA_orte_default_hostfile=/dev/shm/hostfile
    export OMPI_MCA_rmaps_base_mapping_policy=node
    export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
    export OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
    "$@" &
    wait $!
}

case ${1:-} in
-h|--help) usage; exit 0 ;;
--on) shift; on_node "$@"; exit ;;
--cut) find_node "${2:-}"; ip link set "$2" down; exit ;;
--kill) find_node "${2:-}"; ip link set "$2" down; kill -KILL "$pid"; exit ;;
--node) run_node "$2"; exit ;;
--inside) shift; run_inside "$@"; exit ;;
esac
if ! [[ ${1:-} =~ ^[1-9]$ ]] || [ $# -lt 2 ]; then
    usage >&2
    exit 2
fi
namespace=(unshare --net --uts --ipc --mount --pid --fork --kill-child
           --propagation private --mount-proc)
if [ "$(id -u)" -ne 0 ] ||
   ! "${namespace[@]}" ip link add type veth 2>/dev/null; then
    echo "skipped: namespaces for nodes may not be made here: run as root"
    exit 77
fi
exec "${namespace[@]}" "$(realpath "${BASH_SOURCE[0]}")" --inside "$@"
