#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compiles the sources of the product for aarch64 without a warning, and looks for
# the fences in front of trigger pages. Links and runs nothing. The headers of UCX,
# libfabric and MPI are those of the build folder: they serve every 64-bit machine.
# usage: contrib/check-aarch64.sh [BUILD-FOLDER]
set -euo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
top=$ST_TOP
build=$(cd "${1:-$top/build}" && pwd)
[ -f "$build/config.status" ] || {
    echo "check-aarch64.sh: $build is not a configured build folder" >&2
    exit 1
}
tools=aarch64-linux-gnu

skip()
{
    echo "skipped: $*"
    exit 77
}

command -v $tools-gcc >/dev/null ||
    skip "$tools-gcc is not installed (package gcc-$tools)"
echo '#include <stdio.h>' | $tools-gcc -x c -fsyntax-only - 2>/dev/null ||
    skip "$tools-gcc has no C library (package libc6-dev-arm64-cross)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/include"

# The system's folder of headers has those of its own C library, too. Of that
# folder only these
for name in ucm ucp ucs uct rdma; do
    [ ! -d "/usr/include/$name" ] ||
        ln -s "/usr/include/$name" "$work/include/"
done
# The compiler has this one where it has Fortran
name=$($(st_value "$build" CC) -print-file-name=include/ISO_Fortran_binding.h)
[ ! -f "$name" ] || ln -s "$name" "$work/include/"

# As in config/common.am, and in the Makefile.am of the folders, for all of them
read -ra flags <<<"$(st_value "$build" BASE_CFLAGS) $(st_value "$build" UCX_CPPFLAGS) \
                $(st_value "$build" UCX_PRIVATE_CPPFLAGS) $(st_value "$build" FABRIC_CPPFLAGS)"
flags+=(-O2 -fPIC -D_GNU_SOURCE -DHAVE_CONFIG_H -DHAVE_CXIEMU=1
        "-I$build" "-I$build/ucx-config")
for dir in src/ucs_ext/api src/uct/cxi_trig/api src/ucp/st/api src/ucp/st \
           src/prov/cxiemu contrib/openmpi/mpix_queue; do
    flags+=("-I$top/$dir")
done
flags+=(-idirafter "$top/src/prov/cxiemu/api" -idirafter "$work/include")
folders=(src)
if [ -n "$(st_value "$build" MPI_LIBS)" ]; then
    read -ra mpi <<<"$(st_value "$build" MPI_CFLAGS)"
    flags+=("${mpi[@]/#-I/-isystem}")
    folders+=(contrib/openmpi)
fi

# The object of a source file.
object()
{
    echo "$work/${1//\//_}.o"
}

# Fails unless a fence for stores to a device is in front of the given
# instruction, with no other memory access between them.
# Usage: fenced FILE INSTRUCTION
fenced()
{
    $tools-objdump -d --no-show-raw-insn "$(object "$1")" |
        awk -v insn="$2" '
            $2 == "dmb" { armed = armed || $3 == "oshst"; next }
            armed && $2 == insn { found = 1 }
            $2 ~ /^(st|bl|ret|b$)/ { armed = 0 }
            END { exit !found }' || {
        echo "$1: no fence in front of the store to a trigger page ($2)"
        status=1
    }
}

cd "$top"
mapfile -t sources < <(find "${folders[@]}" -name '*.c' | sort)
printf '"%s"\n' "${flags[@]}" >"$work/flags"
status=0
for file in "${sources[@]}"; do
    printf '%s\0' "$file" "$(object "$file")"
done | xargs -0 -P "$(nproc)" -n 2 \
    sh -c "exec $tools-gcc @'$work/flags' -c \"\$0\" -o \"\$1\"" || status=1
if [ $status -eq 0 ]; then
    # A stream's own store, and the call of the provider, which makes one
    fenced src/ucs_ext/gstream_host.c stlr
    fenced src/uct/cxi_trig/cxi_trig_cntr.c blr
fi
echo "${#sources[@]} files compiled by $tools-gcc" \
     "$($tools-gcc -dumpfullversion)"
exit $status
