#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a pack of what was built, and runs the tests and benchmarks of streams of
# GPUs from it on a machine that has a GPU and nothing else.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/common.sh
. "$here/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/gpu-check.sh --pack FILE [--build DIR]
       contrib/gpu-check.sh --run DIR|FILE [--standin hip|cuda] [--quick]
                            [--jobs N] [--limit SECONDS] [--for SECONDS]
                            [--out DIR] [PATTERN...]
       contrib/gpu-check.sh --try hip|cuda [--build DIR] [PATTERN...]

--pack, where the project is built with its tests: writes a tar of the programs
and of the libraries that they need, with OpenMPI, UCX, libfabric and these
scripts, but without those of libc and of the GPUs' runtimes.

--run, on a machine with a GPU: runs the unit tests, programs of MPI, programs
that must not deadlock, storms and benchmarks of such a pack on the streams of
each runtime of GPUs that is there (tier gpu of test/plan.ini), each with a time
limit, and ends with "N passed, N failed". It needs Python 3.8 or later, bash,
coreutils, grep, sed, awk, tar, gzip and the driver. The script lies in the pack,
too: gpu-check/contrib/gpu-check.sh.

    --standin R  on our stand-in for that runtime, not on a GPU; with cuda, on
                 streams of HIP over it, too
    --quick      a few of each kind, to see whether the pack works
    --jobs N     so many processes at a time (default: one a processor, at most
                 4 on a GPU, else 8). Processes take turns on a GPU, and it has
                 room for few that have many hardware queues
    --limit N    ends a test after N seconds (default: 900)
    --for N      starts no test after N seconds: what is left counts as skipped
    --out DIR    for results.json, results.md and logs (gpu-check-results)
    PATTERN      only those whose names match one of these, as 'gpu-*-cuda-host/*'

--try makes a pack, runs --quick from it on a stand-in, and removes it.

The status is 0 if nothing failed, 77 if there is no GPU (--try: no OpenMPI), 1
otherwise.
STEOF
}

# Libraries that are the machine's own: of libc, and of the GPUs' runtimes
own_libraries='(ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv|libutil'
own_libraries+='|libanl|libmvec|libnsl|libnss_.*|libcuda|libnvidia-.*|libcudart'
own_libraries+='|libamdhip64|libhsa-.*|libhsakmt|libamd_comgr|librocm.*)\.so.*'
# Those that the runtimes may need newer, or that need a newer libc than the rest:
# taken where the machine has none
shared_libraries='(libstdc\+\+|libgcc_s|libz|libzstd|liblzma|libnuma|libelf'
shared_libraries+='|libdrm.*|libudev|libpciaccess|libuuid|libxml2|libicu.*'
shared_libraries+='|libevent.*)\.so.*'

# Programs of the tests that run from a pack, below the build folder
pack_programs()
{
    "$ST_TOP/test/run.py" --no-build --tier gpu --list |
        sed -n 's,.*/\(test_[a-z0-9_]*\)$,test/unit/\1,p' | sort -u
    (cd "$build/test/integration" && ls) |
        grep -Ex 'mpix_[a-z0-9_]*|st_progress|st_storm|st_random' |
        sed 's,^,test/integration/,'
    printf '%s\n' bench/st_pingpong bench/st_faces bench/st_life bench/st_wrt \
        src/tools/ucx_st_info src/tools/ucx_st_perftest
}

# Copies a program; libtool's script stands for one in .libs.
# Usage: pack_program PROGRAM
pack_program()
{
    local from=$build/$1
    [ "$(head -c 4 "$from")" = $'\x7fELF' ] || from=${from%/*}/.libs/${from##*/}
    mkdir -p "$root/build/${1%/*}"
    cp -L "$from" "$root/build/$1"
}

# The libraries that files need, of those that are in no package of libc.
# Usage: pack_needed FILE...
pack_needed()
{
    LD_LIBRARY_PATH=$build_path ldd "$@" 2>/dev/null |
        awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -vE "/$own_libraries\$" | grep -vF "$build/"
}

# OpenMPI's and UCX's parts that are opened by name.
pack_modules()
{
    local dir
    dir=$(ompi_info --path pkglibdir --parsable | cut -d : -f 3)
    mkdir -p "$root/mpi/bin" "$root/mpi/lib/plugins" "$root/mpi/etc" \
        "$root/mpi/share" "$root/mpi/pmix" "$root/lib/ucx"
    cp -L "$dir"/*.so "$root/mpi/lib/plugins/"
    dir=$(ompi_info --path pkgdatadir --parsable | cut -d : -f 3)
    cp -rL "$dir/." "$root/mpi/share/"
    dir=$(ompi_info --path sysconfdir --parsable | cut -d : -f 3)
    cp -rL "$dir/." "$root/mpi/etc/"
    cp -L "$(command -v mpirun)" "$root/mpi/bin/mpirun"
    cp -L "$(command -v orted)" "$root/mpi/bin/orted"
    for dir in $(pack_needed "$root/mpi/lib/plugins"/*pmix*.so |
                     sed -n 's,/libpmix\.so.*,,p'); do
        dir=$(dirname "$(readlink -f "$dir/libpmix.so.2")")
        [ ! -d "$dir/pmix" ] || cp -L "$dir"/pmix/*.so "$root/mpi/pmix/"
    done
    dir=$(dirname "$(pack_needed "$root/build/bench/st_pingpong" \
        "$build/src/ucp/st/.libs/libucp_st.so" | grep -m 1 '/libucp\.so')")
    cp -L "$dir"/ucx/*.so.0 "$root/lib/ucx/" 2>/dev/null
}

# The libraries of the project, where ucx-st-run looks, and what all files need.
pack_libraries()
{
    local dir file libraries
    for dir in src/ucs_ext src/prov/cxiemu src/uct/cxi_trig src/ucp/st \
               contrib/openmpi/mpix_queue test/standin test/standin/forward; do
        [ -d "$build/$dir/.libs" ] || continue
        mkdir -p "$root/build/$dir/.libs"
        cp -a "$build/$dir"/.libs/*.so* "$root/build/$dir/.libs/"
        # With all symbols, which unit tests need
        [ ! -d "$build/$dir/unit/.libs" ] ||
            cp -a "$build/$dir"/unit/.libs/*.so* "$root/build/$dir/.libs/"
        for file in "$build/$dir"/*.so*; do
            [ ! -L "$file" ] || cp -a "$file" "$root/build/$dir/"
        done
    done
    cp "$build/test/standin/test_kernels.ptx" "$root/build/test/standin/"
    mkdir -p "$root/lib-shared"
    mapfile -t libraries < <(find "$root" -type f \
        \( -name '*.so*' -o -perm -100 \) -print | grep -v '\.sh$')
    for file in $(pack_needed "${libraries[@]}"); do
        if grep -qxE "$shared_libraries" <<<"${file##*/}"; then
            cp -L "$file" "$root/lib-shared/"
        else
            cp -L "$file" "$root/lib/"
        fi
    done
}

# What is told of the pack where it runs; glibc is the newest version that any of
# its files names.
pack_facts()
{
    cat >"$root/pack.facts" <<STEOF
version=$(sed -n 's/^VERSION = //p' "$build/Makefile")
commit=$(git -C "$ST_TOP" rev-parse --short HEAD 2>/dev/null)
packed=$(date -u +%Y-%m-%d)
glibc=$(grep -aohr 'GLIBC_2\.[0-9]*' "$root/lib" "$root/mpi" "$root/build" |
    sort -uV | tail -n 1 | cut -d _ -f 2)
machine=$(uname -m)
mpi=$(ompi_info --version | head -n 1)
STEOF
}

# Makes the folder of a pack: $root.
pack()
{
    local name build_path
    if ! type -P ompi_info orted mpirun >/dev/null; then
        st_die "--pack needs OpenMPI with mpirun, orted and ompi_info"
    fi
    build=$(cd "$build" && pwd) || exit 1
    for name in test/unit/test_st_queue test/integration/mpix_match \
                test/standin/libcuda.so.1; do
        [ -e "$build/$name" ] ||
            st_die "$build/$name was not built: run \"make -C $build/${name%/*}" \
                   "check TESTS=\""
    done
    build_path=$build/src/ucs_ext/.libs:$build/src/uct/cxi_trig/.libs
    build_path+=:$build/src/ucp/st/.libs
    build_path+=:$build/contrib/openmpi/mpix_queue/.libs
    mkdir -p "$root"/{contrib,lib,test/unit,test/integration}
    cp "$here"/{gpu-check.sh,gpu-run.py,common.sh,ucx-st-run} "$root/contrib/"
    cp "$ST_TOP"/test/{run.py,plan.ini} "$root/test/"
    cp "$ST_TOP/test/unit/suites.list" "$root/test/unit/"
    cp "$ST_TOP"/test/integration/{tests.list,bench.sh,perftest_st.sh} \
        "$root/test/integration/"
    while read -r name; do
        pack_program "$name" || st_die "$name was not built"
    done < <(pack_programs)
    pack_modules
    pack_libraries
    pack_facts
}

# Usage: write_pack FILE
write_pack()
{
    pack
    tar -C "$temp" -cf - gpu-check | gzip -1 >"$1" || st_die "$1 was not written"
    st_say "$1: $(du -h "$1" | cut -f 1), for $(uname -m) with libc" \
        "$(sed -n 's/^glibc=//p' "$root/pack.facts") or later"
}

# Runs tests from a pack.  Usage: run DIR|FILE [OPTION...] [PATTERN...]
run()
{
    local dir=$1
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null ||
        st_die "--run needs Python 3.8 or later"
    if [ -f "$1" ]; then
        tar -C "$temp" -xzf "$1" || st_die "$1 cannot be unpacked"
        dir=$root
    fi
    [ -f "$dir/pack.facts" ] || st_die "$1 is no pack of --pack"
    "$dir/contrib/gpu-run.py" "${@:2}"
}

# Usage: try hip|cuda [PATTERN...]
try()
{
    type -P ompi_info >/dev/null || {
        echo "skipped: there is no ompi_info, of OpenMPI"
        exit 77
    }
    pack
    run "$root" --standin "$1" --quick --out "$temp/results" "${@:2}"
}

action=${1:-}
what=${2:-}
build=$ST_BUILD
case $action in
-h|--help) usage; exit 0 ;;
--run) ;;
--pack|--try)
    [ "${3:-}" != --build ] || { build=${4:-}; set -- "$1" "$2" "${@:5}"; }
    [ $# -eq 2 ] || [ "$action" = --try ] || { usage >&2; exit 2; }
    [ "$action" = --pack ] || [[ $what =~ ^(hip|cuda)$ ]] ||
        { usage >&2; exit 2; }
    ;;
*) usage >&2; exit 2 ;;
esac
[ -n "$what" ] || { usage >&2; exit 2; }
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
root=$temp/gpu-check
case $action in
--pack) write_pack "$what" ;;
--run) run "${@:2}" ;;
--try) try "${@:2}" ;;
esac
