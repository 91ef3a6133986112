#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compiles the examples for GPUs by the compilers that are there, for the host
# and for a GPU; and the kernels of those that start messages by clang, without an
# SDK. Nothing is run.
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
top=$ST_TOP

usage()
{
    cat <<STEOF
usage: contrib/check-gpu.sh

Compiles examples/gpu/*.cpp by hipcc and by nvcc, where they and MPI's compiler
are there, and examples/gpu/st_device_kernels.h by clang to PTX text, without
local memory, and that by ptxas. The status is 77 if there is neither.
STEOF
}

case ${1:-} in
-h|--help) usage; exit 0 ;;
"") ;;
*) usage >&2; exit 2 ;;
esac

PATH=$PATH:/opt/rocm/bin:/usr/local/cuda/bin
if ! mpi=$(mpicc -show 2>/dev/null); then
    echo "there is no mpicc"
    exit 77
fi
options=(-I"$top/examples/gpu" -I"$top/contrib/openmpi/mpix_queue"
         -I"$top/src/ucp/st/api" -I"$top/src/ucs_ext/api")
for word in $mpi; do
    case $word in -I*) options+=("$word") ;; esac
done
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
found=no
rc=0

# Usage: compile COMMAND...
compile()
{
    "$@" "${options[@]}" >"$out/log" 2>&1 && return
    echo "failed: $*"
    cat "$out/log"
    rc=1
}

for source in "$top"/examples/gpu/*.cpp; do
    if command -v hipcc >/dev/null; then
        found=yes
        # gfx90a: MI200, the newest that Debian 12's compiler knows of its kind
        compile hipcc --offload-arch=gfx90a -c "$source" -o "$out/object"
    fi
    if command -v nvcc >/dev/null; then
        found=yes
        compile nvcc -x cu -c "$source" -o "$out/object"
    fi
done
kernels=$top/examples/gpu/st_device_kernels.h
if command -v clang >/dev/null; then
    found=yes
    compile st_ptx clang "$kernels" "$out/ptx"
    for arch in gfx90a gfx1030; do
        compile clang -x hip --offload-arch=$arch -nogpuinc -nogpulib \
            --cuda-device-only -O2 -Wall -Wextra -Werror "$kernels" \
            -o "$out/code"
    done
    for arch in sm_75 sm_90; do
        if command -v ptxas >/dev/null; then
            ptxas -arch=$arch "$out/ptx" -o "$out/code" || rc=1
        fi
    done
fi
if [ $found = no ]; then
    echo "there is neither hipcc, nor nvcc, nor clang"
    exit 77
fi
exit $rc
