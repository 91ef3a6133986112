#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that configure refuses what is missing or does not fit, each time with
# one sentence that names the cause and the remedy.
# usage: contrib/check-configure.sh [BUILD-FOLDER]
#   BUILD-FOLDER  a configured folder, whose settings are the good ones
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "${1:-$top/build}" && pwd)
source=$(sed -n 's/^S\["UCX_SOURCE_DIR"\]="\(.*\)"$/\1/p' \
             "$build/config.status")
release=$(sed -n 's/^S\["ST_UCX_VERSION"\]="\(.*\)"$/\1/p' \
              "$build/config.status")
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

# Usage: run_configure NAME [VARIABLE=VALUE...] [OPTION...]
run_configure()
{
    local name=$1
    shift
    mkdir -p "$temp/$name"
    (cd "$temp/$name" && cp "$temp/cache" config.cache &&
     "$top/configure" --cache-file=config.cache \
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

# The libraries and tools of a folder that was configured without the emulated
# card, with link-time optimization and what distributions harden with: they
# build and have none of the card, and ucx_st_info says that it was left out when
# it is named. They can be installed and used.
works_without_cxiemu()
{
    local dir=$temp/without-cxiemu out parts
    parts='src/ucs_ext src/uct/cxi_trig src/ucp/st src/tools'
    ! grep -q '^S\["HAVE_MPI_TRUE"\]=""' "$dir/config.status" ||
        parts+=' contrib/openmpi/mpix_queue'
    ! grep -q '^S\["HAVE_MPI_FORTRAN_TRUE"\]=""' "$dir/config.status" ||
        parts+=' contrib/openmpi/fortran'
    if ! make -C "$dir" -j"$(nproc)" SUBDIRS="$parts" >"$dir/make.log" 2>&1
    then
        echo "without-cxiemu: it does not build:"
        tail -n 4 "$dir/make.log"
        status=1
        return
    fi
    out=$(nm "$dir/src/uct/cxi_trig/.libs/libuct_cxitrig.so")
    if grep -q ' cxiemu_' <<<"$out"; then
        echo "without-cxiemu: the library has the card all the same"
        status=1
    fi
    out=$(UCX_CXI_TRIG_PROVIDER=cxiemu ST_BUILDDIR=$dir \
              "$top/contrib/ucx-st-run" -q "$dir/src/tools/ucx_st_info" -d 2>&1) ||
        true
    if ! [[ $out =~ \'cxiemu\'.*was\ left\ out\ of\ this\ build ]]; then
        echo "without-cxiemu: ucx_st_info does not say so:"
        echo "$out"
        status=1
    fi
    # Where it is not named that is no error, but a reason
    out=$(env -u UCX_CXI_TRIG_PROVIDER -u UCX_LOG_LEVEL ST_BUILDDIR="$dir" \
              "$top/contrib/ucx-st-run" -q "$dir/src/tools/ucx_st_info" -d 2>&1) ||
        true
    if [[ $out == *ERROR* ]] ||
       { [ ! -e /sys/class/cxi ] && [[ $out != *"has no emulated one"* ]]; }
    then
        echo "without-cxiemu: ucx_st_info logs an error, or gives no reason:"
        echo "$out"
        status=1
    fi
    "$top/contrib/check-install.sh" "$dir" SUBDIRS="$parts" || status=1
}

# The compiler's checks are run once; what is looked for here is not cached
: > "$temp/cache"
run_configure plain
grep -vE 'ac_cv_env_|ac_cv_(path|prog)_(ac_ct_)?(MPI|PKG)' \
    "$temp/plain/config.cache" > "$temp/cache"

# What was linked for another folder goes, and is linked again
: > "$temp/plain/linked.la"
accepts plain --prefix="$temp/elsewhere"
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
hardening='-fstack-protector-strong -Wformat -Werror=format-security'
accepts without-cxiemu --without-cxiemu --without-cunit \
    --prefix="$temp/installed" CPPFLAGS=-D_FORTIFY_SOURCE=2 \
    CFLAGS="-O1 -flto=auto $hardening" FCFLAGS=-O1 \
    LDFLAGS='-Wl,-z,relro -Wl,-z,now' && works_without_cxiemu
refuses blank-prefix 'takes no blank in the names of folders' \
    --prefix="$temp/a blank"
refuses 'blank build' 'takes no blank in the names of folders'
accepts gpu-prefixes --with-rocm=/opt/rocm --with-cuda=/usr/local/cuda

echo "$count configurations"
exit $status
