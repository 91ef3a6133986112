#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs copies of a command at once, as one job: their processes share the
# entries of the emulated card's service. None may ever use more than there are:
# the queue of commands would stall.
# usage: shared.sh COPIES COMMAND...
# Needs builddir in the environment, as test/run.py sets it.
set -uo pipefail

copies=$1
shift
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# Not the "warn" of UCX: that is about lanes that are left off, which is right
export FI_CXIEMU_SERVICE=shared-$$ FI_LOG_LEVEL=warn FI_LOG_PROV=cxiemu
cd "${builddir:?}" || exit 1
pids=()
for ((i = 0; i < copies; ++i)); do
    "$@" >"$temp/$i" 2>&1 &
    pids+=($!)
done
failed=0
for ((i = 0; i < copies; ++i)); do
    rc=0
    wait "${pids[i]}" || rc=$?
    sed "s/^/$i: /" "$temp/$i" | grep -vE 'WARN|^$' | tail -n 60
    if [ $rc -ne 0 ]; then
        echo "shared.sh: copy $i ends with $rc" >&2
        failed=1
    fi
done
if grep -h 'stalls' "$temp"/*; then
    echo "shared.sh: more entries were used than there are" >&2
    failed=1
fi
exit $failed
