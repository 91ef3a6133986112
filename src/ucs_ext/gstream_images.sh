#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints gstream_images.c: what a runtime of GPUs loads, or compiles, as bytes.
# usage: gstream_images.sh SOURCE-FOLDER [CLANG]
set -e
src=$1
clang=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Devices of AMD's since the MI50; a compiler knows those up to its own time
archs="gfx906 gfx908 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1101 gfx1200 gfx1201"

# Usage: amd FILE OPTION...
amd()
{
    file=$1
    shift
    "$clang" -x hip "$@" -nogpuinc -nogpulib --cuda-device-only -O2 \
        "$src/gstream_kernels.cu" -o "$file" 2>"$work/log"
}

# Usage: bytes NAME, of standard input; with a zero behind
bytes()
{
    echo "const unsigned char $1[] = {"
    od -An -v -tu1 | sed 's/  *\([0-9]\)/\1/; s/  */,/g; s/$/,/'
    echo "0};"
}

options=
for arch in $archs; do
    if [ -n "$clang" ] && amd /dev/null "--offload-arch=$arch" -fsyntax-only; then
        options="$options --offload-arch=$arch"
    fi
done
# shellcheck disable=SC2086
if [ -z "$options" ] || ! amd "$work/objects" $options; then
    options=
    : >"$work/objects"
fi

echo "/* By gstream_images.sh; code objects:${options:- none} */"
echo '#include "gstream_module.h"'
bytes gstream_image_ptx <"$src/gstream_kernels.ptx"
bytes gstream_image_objects <"$work/objects"
cat "$src/api/ucs_gstream_device.h" "$src/api/ucs_gstream_pair_device.h" \
    "$src/gstream_kernels.h" "$src/gstream_kernels.cu" |
    sed '/^#include/d' | bytes gstream_image_source
