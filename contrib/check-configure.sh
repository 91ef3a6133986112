#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that configure refuses what is missing or does not fit, each time with
# one sentence that names the cause and the remedy.
# usage: contrib/check-configure.sh [BUILD-FOLDER]
#   BUILD-FOLDER  a configured folder, whose settings are the good ones
set -euo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
top=$ST_TOP
build=$(cd "${1:-$ST_BUILD}" && pwd)
source=$(st_value "$build" UCX_SOURCE_DIR)
release=$(st_value "$build" ST_UCX_VERSION)
temp=$(mktemp -d)
# shellcheck disable=SC2064 # the name of now is meant
trap "rm -rf '$temp'" EXIT
status=0
count=0

# A folder with the .pc files of this machine except those named.
pc_without()
{
    local dir=$1 file name
    shift
    mkdir -p "$dir"
    for file in $(pkg-config --variable pc_path pkg-config | tr : ' '); do
        [ -d "$file" ] && ln -sf "$file"/*.pc "$dir/" 2>/dev/null
    done
    for name in "$@"; do
        rm -f "$dir/$name.pc"
    done
}

# What configure finds and says; it makes no files of it.
# Usage: run_configure NAME [VARIABLE=VALUE...] [OPTION...]
run_configure()
{
    local name=$1
    shift
    mkdir -p "$temp/$name"
    (cd "$temp/$name" && cp "$temp/cache" config.cache &&
     "$tree/configure" --no-create --cache-file=config.cache \
         --with-ucx-source="$source" "$@" >log 2>&1)
}

# Usage: refuses NAME REGEX ARGUMENT...: configure must fail with one line that
# matches.
refuses()
{
    local name=$1 regex=$2 line
    shift 2
    count=$((count + 1))
    if run_configure "$name" "$@"; then
        echo "$name: configure accepts it"
        status=1
        return
    fi
    line=$(grep '^configure: error:' "$temp/$name/log" || true)
    if ! [[ $line =~ $regex ]] || [ "$(tail -n 1 "$temp/$name/log")" != "$line" ]
    then
        echo "$name: expected one line with \"$regex\", configure ended with:"
        tail -n 4 "$temp/$name/log"
        status=1
    fi
}

# Usage: accepts NAME ARGUMENT...
accepts()
{
    local name=$1
    shift
    count=$((count + 1))
    if ! run_configure "$name" "$@"; then
        echo "$name: configure refuses it:"
        tail -n 4 "$temp/$name/log"
        status=1
    fi
}

# Usage: warns NAME REGEX ARGUMENT...: configure must succeed, with one warning,
# which matches.
warns()
{
    local name=$1 regex=$2 lines
    shift 2
    accepts "$name" "$@"
    lines=$(grep '^configure: WARNING:' "$temp/$name/log" || true)
    if ! [[ $lines =~ $regex ]] || [ "$(wc -l <<<"$lines")" -ne 1 ]; then
        echo "$name: expected one warning with \"$regex\", there is: $lines"
        status=1
    fi
}

# A folder like the installed UCX, of another version, with a source tree "src".
# Usage: other_ucx DIR VERSION
other_ucx()
{
    local dir=$1 major minor patch
    IFS=. read -r major minor patch <<<"$2"
    mkdir -p "$dir/include/uct/api" "$dir/bin" "$dir/src/src/uct/base"
    printf '#define UCT_VERNO_%s %d\n' \
        MAJOR "$major" MINOR "$minor" PATCH "$patch" \
        >"$dir/include/uct/api/version.h"
    ln -s "$(pkg-config --variable=libdir ucx)" "$dir/lib"
    printf '#!/bin/sh\n"%s" "$@" | sed "s/%s/%s/"\n' \
        "$(pkg-config --variable=prefix ucx)/bin/ucx_info" \
        "${release//./\\.}" "$2" >"$dir/bin/ucx_info"
    chmod +x "$dir/bin/ucx_info"
    : >"$dir/src/src/uct/base/uct_iface.h"
    printf 'define([ucx_ver_%s], %d)\n' major "$major" minor "$minor" \
        >"$dir/src/configure.ac"
}

# Where configure is called
tree=$top
# The compiler's checks are run once; what is looked for here is not cached
: > "$temp/cache"
run_configure plain
grep -vE 'ac_cv_env_|ac_cv_(path|prog)_(ac_ct_)?(MPI|PKG)' \
    "$temp/plain/config.cache" > "$temp/cache"

# What was linked for another folder goes, and is linked again
(cd "$temp/plain" && ./config.status libdir) >/dev/null 2>&1
: > "$temp/plain/linked.la"
accepts plain --prefix="$temp/elsewhere"
(cd "$temp/plain" && ./config.status libdir) >/dev/null 2>&1
if [ -e "$temp/plain/linked.la" ]; then
    echo "plain: configured for another prefix, it keeps its libraries"
    status=1
fi

pc_without "$temp/pc-ucx" ucx
refuses no-ucx 'install the package libucx-dev' \
    PKG_CONFIG_LIBDIR="$temp/pc-ucx"
refuses wrong-ucx 'headers are missing in /nonexistent' \
    --with-ucx=/nonexistent
mkdir "$temp/prefix"
ln -s "$(pkg-config --variable=includedir ucx)" "$temp/prefix/include"
ln -s "$(pkg-config --variable=libdir ucx)" "$temp/prefix/lib"
refuses no-ucx_info 'install the package ucx-utils' \
    --with-ucx="$temp/prefix"
refuses no-source 'run contrib/get-ucx-source.sh' \
    --with-ucx-source=/nonexistent

mkdir -p "$temp/other/src/uct/base"
: > "$temp/other/src/uct/base/uct_iface.h"
printf 'define([ucx_ver_major], 1)\ndefine([ucx_ver_minor], 99) # next\n' \
    > "$temp/other/configure.ac"
refuses mismatch "UCX $release is installed.*of version 1\\.99" \
    --with-ucx-source="$temp/other"
: > "$temp/other/configure.ac"
refuses no-version 'both must be of one minor version' \
    --with-ucx-source="$temp/other"

pc_without "$temp/pc-fabric" libfabric
refuses no-libfabric 'install the package libfabric-dev' \
    PKG_CONFIG_LIBDIR="$temp/pc-fabric"
refuses wrong-libfabric 'no libfabric in /nonexistent' \
    --with-libfabric=/nonexistent
printf 'Name: libfabric\nDescription: old\nVersion: 1.10.0\n' \
    > "$temp/pc-fabric/libfabric.pc"
refuses old-libfabric 'libfabric is too old' \
    PKG_CONFIG_LIBDIR="$temp/pc-fabric"

pc_without "$temp/pc-mpi" ompi-c
refuses no-mpi 'install the package libopenmpi-dev' \
    PKG_CONFIG_LIBDIR="$temp/pc-mpi" MPICC=/nonexistent
refuses wrong-mpi 'MPI is missing' --with-mpi=/nonexistent
printf '#!/bin/sh\nexit 1\n' > "$temp/mpicc"
chmod +x "$temp/mpicc"
refuses other-mpi "is not OpenMPI's, nor MPICH's" \
    PKG_CONFIG_LIBDIR="$temp/pc-mpi" MPICC="$temp/mpicc"
refuses no-mpirun 'install the package openmpi-bin' MPIRUN=/nonexistent

pc_without "$temp/pc-cunit" cunit
refuses no-cunit 'install the package libcunit1-dev' \
    PKG_CONFIG_LIBDIR="$temp/pc-cunit"
refuses bad-sanitizer 'cannot build with --enable-sanitizer=nonsense' \
    --enable-sanitizer=nonsense

newest=$(sed -n 's/^m4_define(\[ST_UCX_RUN_MINOR\], \[\(.*\)\])$/\1/p' \
             "$top/config/m4/ucx.m4")
other_ucx "$temp/newest" "1.$newest.1"
accepts newest-ucx --with-ucx="$temp/newest" \
    --with-ucx-source="$temp/newest/src"
if grep '^configure: WARNING:' "$temp/newest-ucx/log"; then
    echo "newest-ucx: there is a warning of a version that was run"
    status=1
fi
other_ucx "$temp/newer" "1.$((newest + 1)).0"
warns newer-ucx "UCX 1\\.$((newest + 1))\\.0 is newer than 1\\.$newest, " \
    --with-ucx="$temp/newer" --with-ucx-source="$temp/newer/src"
other_ucx "$temp/next" 2.0.0
warns next-ucx "UCX 2\\.0\\.0 is newer than 1\\.$newest, " \
    --with-ucx="$temp/next" --with-ucx-source="$temp/next/src"

accepts without-mpi PKG_CONFIG_LIBDIR="$temp/pc-mpi" MPICC=/nonexistent \
    --without-mpi
accepts without-cunit PKG_CONFIG_LIBDIR="$temp/pc-cunit" --without-cunit
accepts without-cxiemu --without-cxiemu
refuses blank-prefix 'takes no blank in the names of folders' \
    --prefix="$temp/a blank"
refuses 'blank build' 'takes no blank in the names of folders'
ln -s "$top" "$temp/a blank"
tree="$temp/a blank"
refuses blank-source 'takes no blank in the names of folders'
tree=$top
refuses disable-shared 'leave --disable-shared out' --disable-shared
accepts gpu-prefixes --with-rocm=/opt/rocm --with-cuda=/usr/local/cuda

echo "$count configurations"
exit $status
