#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints C arrays NAME_ptx, NAME_objects and NAME_source, which DECLARATIONS
# declares: what a runtime of GPUs loads, or compiles, as bytes. The source is
# SOURCE, a .cu, behind the HEADERs that it includes; beside it is its .ptx.
# usage: gstream_images.sh NAME DECLARATIONS CLANG|"" SOURCE HEADER...
set -e
name=$1
declarations=$2
clang=$3
source=$4
shift 4
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
        -ffp-contract=off "$work/source" -o "$file" 2>"$work/log"
}

# Usage: bytes NAME, of standard input; with a zero behind
bytes()
{
    echo "const unsigned char $1[] = {"
    od -An -v -tu1 | sed 's/  *\([0-9]\)/\1/; s/  */,/g; s/$/,/'
    echo "0};"
}

cat "$@" "$source" | sed '/^#include/d' >"$work/source"
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
echo "#include \"$declarations\""
bytes "${name}_ptx" <"${source%.cu}.ptx"
bytes "${name}_objects" <"$work/objects"
bytes "${name}_source" <"$work/source"
