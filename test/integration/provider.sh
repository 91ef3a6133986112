#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric's own programs over the provider cxiemu, loaded as a module.
# usage: provider.sh info | pingpong MODE [fi_pingpong's arguments...]
#        provider.sh run|dir PROGRAM [ARGUMENTS...] [NAME=VALUE...]
#        provider.sh bad_dir
# "run" is for programs of the build folder; the settings are FI_CXIEMU_NAME. "dir"
# is the same with a directory in which processes find each other.
# The build folder is ST_BUILDDIR, or the current one.
set -uo pipefail

export FI_PROVIDER_PATH=${ST_BUILDDIR:-.}/src/prov/cxiemu/.libs
temp=$(mktemp -d)
# shellcheck disable=SC2064 # the name of now is meant
trap "rm -rf '$temp'" EXIT

need()
{
    command -v "$1" >/dev/null && return
    echo "skipped: $1 is not installed"
    exit 77
}

# The provider is there, under its own name only, and for reliable datagrams
# only.
info()
{
    need fi_info
    fi_info -p cxiemu > "$temp/info" || { cat "$temp/info"; exit 1; }
    cat "$temp/info"
    grep -qx 'provider: cxiemu' "$temp/info" || exit 1
    if grep -E '^provider:' "$temp/info" | grep -qvx 'provider: cxiemu'; then
        echo "fi_info shows other names, too"
        exit 1
    fi
    if grep -E '^ *type:' "$temp/info" | grep -qv FI_EP_RDM; then
        echo "fi_info shows other endpoint types, too"
        exit 1
    fi
    fi_info -p cxi > "$temp/cxi" 2>&1
    if grep -q cxiemu "$temp/cxi"; then
        echo "cxiemu answers to the name cxi"
        exit 1
    fi
    fi_info -e > "$temp/env"
    for variable in MODE SEED ORDER DWQ_ENTRIES CNTRS DEVICES TX_SIZE CMA CMA_MIN \
                    TRAP DOORBELL_POLL LEAKS DELAY FAIL AGAIN SERVICE VANISH DIR; do
        grep -q "FI_CXIEMU_$variable" "$temp/env" ||
            { echo "fi_info -e does not show FI_CXIEMU_$variable"; exit 1; }
    done
}

# Two processes; the control port is one that is likely to be free, and another
# one if it is not.
pingpong()
{
    local port rc=1 server try
    need fi_pingpong
    export FI_CXIEMU_MODE=${1%-no-cma}
    [ "$1" = "$FI_CXIEMU_MODE" ] || export FI_CXIEMU_CMA=0
    shift
    for try in 1 2 3; do
        port=$((20000 + (RANDOM % 20000)))
        fi_pingpong -p cxiemu -e rdm -B $port "$@" \
            > "$temp/server" 2>&1 </dev/null &
        server=$!
        # Until the server listens, a client ends at once with a refusal
        while kill -0 $server 2>/dev/null; do
            rc=0
            fi_pingpong -p cxiemu -e rdm -P $port "$@" 127.0.0.1 \
                > "$temp/client" 2>&1 </dev/null || rc=$?
            grep -q 'Connection refused' "$temp/client" || break
        done
        [ $rc -eq 0 ] || kill $server 2>/dev/null
        wait $server || rc=$?
        # Only for a port that somebody else has
        grep -q 'Address already in use' "$temp/server" || break
        echo "attempt $try: port $port is taken"
    done
    cat "$temp/client" "$temp/server"
    [ $rc -eq 0 ] && ! grep -qiE 'error|mismatch|fail' "$temp/client"
}

run()
{
    local word program=$1 arguments=()
    shift
    for word in "$@"; do
        case $word in
        [A-Z]*=*) export "FI_CXIEMU_${word?}" ;;
        *) arguments+=("$word") ;;
        esac
    done
    "${ST_BUILDDIR:-.}/$program" "${arguments[@]}"
}

# What is left when the program has ended: what a process left that was killed
# before is gone.
dir()
{
    local left
    export FI_CXIEMU_DIR=$temp
    touch "$temp/4000000.7" "$temp/4000000.name" || exit 1
    run "$@" || return
    left=$(cd "$temp" && echo *)
    [ "$left" = "4000000.name processes" ] && return
    echo "in the directory are $left"
    return 1
}

# A directory that others could write to, or that is none
bad_dir()
{
    local bad
    need fi_info
    mkdir -m 750 "$temp/group"
    mkdir -m 700 "$temp/own"
    ln -s own "$temp/link"
    touch "$temp/file"
    FI_CXIEMU_DIR=$temp/own fi_info -p cxiemu >"$temp/info" || return
    for bad in none group link file; do
        ! FI_CXIEMU_DIR=$temp/$bad FI_LOG_LEVEL=warn fi_info -p cxiemu \
            >"$temp/info" 2>&1 || { echo "$bad is accepted"; return 1; }
        grep "FI_CXIEMU_DIR=$temp/$bad makes no sense: Directory, of this user" \
            "$temp/info" || { cat "$temp/info"; return 1; }
    done
}

case ${1:-} in
info) info ;;
run) shift; run "$@" ;;
dir) shift; dir "$@" ;;
bad_dir) bad_dir ;;
pingpong) shift; pingpong "$@" ;;
*) sed -n 's/^# usage/usage/p' "$0" >&2; exit 2 ;;
esac
