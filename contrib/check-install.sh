#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs a build into a folder of DESTDIR, and moves that to its prefix, which
# must not exist; in both places it builds programs with what is there, as users
# do: by pkg-config and by CMake. In the prefix it runs them, and looks for
# documents, examples, benchmarks and manual pages. Nothing may run from the build
# folder meanwhile, as libtool links the libraries again.
# usage: contrib/check-install.sh BUILD-FOLDER [VARIABLE=VALUE...] (of make)
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
top=$ST_TOP
build=$(cd "${1:?no build folder}" && pwd) || exit 1
shift
temp=$(mktemp -d)
# shellcheck disable=SC2064 # the name of now is meant
trap "rm -rf '$temp'" EXIT
status=0
count=0
unset LD_LIBRARY_PATH

# Runs a command, which must succeed and say what matches.
# Usage: expect WHAT REGEX COMMAND...
expect()
{
    local what=$1 regex=$2 out rc=0
    shift 2
    count=$((count + 1))
    out=$("$@" 2>&1) || rc=$?
    if [ $rc -ne 0 ] || ! [[ $out =~ $regex ]]; then
        echo "$what: status $rc, expected \"$regex\":"
        tail -n 20 <<<"$out"
        status=1
    fi
}

# Installs, without a warning.  Usage: install_to DESTDIR [VARIABLE=VALUE...]
install_to()
{
    local out
    if ! out=$(make -s -C "$build" install DESTDIR="$1" "${@:2}" 2>&1); then
        echo "make install:"
        tail -n 20 <<<"$out"
        exit 1
    fi
    count=$((count + 1))
    if grep -iE 'warning: |remember to run|has not been installed' <<<"$out"; then
        echo "make install warns"
        status=1
    fi
}

# Compiles with a package's flags.  Usage: compile PACKAGE OUTPUT COMPILER SOURCE
# shellcheck disable=SC2317 # called by expect
compile()
{
    local package=$1 output=$2 flags
    shift 2
    flags=$(PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags --libs "$package") ||
        return 1
    # shellcheck disable=SC2086 # words
    "$@" $flags -o "$output"
}

# The program finds all its libraries, without LD_LIBRARY_PATH if it is empty;
# prints them.  Usage: finds_all PROGRAM
# shellcheck disable=SC2317 # called by expect
finds_all()
{
    local out
    out=$(env LD_LIBRARY_PATH="$loader_path" ldd "$1") || return 1
    ! grep 'not found' <<<"$out" || return 1
    echo "$out"
}

# The same; prints those of ours, and there are some.
# Usage: finds_libraries PROGRAM
# shellcheck disable=SC2317 # called by expect
finds_libraries()
{
    local out
    out=$(finds_all "$1") || { echo "$out"; return 1; }
    grep -F "$libdir/lib" <<<"$out"
}

# Builds with pkg-config, into the folder programs.  Usage: by_pkg_config WHAT
by_pkg_config()
{
    local what=$1 dir
    dir=$(mktemp -d "$temp/XXXXXX")
    programs=$dir
    expect "$what, ucx-st" '' compile ucx-st "$dir/lanes" cc "$temp/lanes.c"
    expect "$what, ucx-st" 'libucp_st' finds_libraries "$dir/lanes"
    [ -e "$libdir/libmpix_queue.so" ] || return 0
    expect "$what, ucx-st-mpi" '' compile ucx-st-mpi "$dir/hello" mpicc \
        "$top/examples/st_hello.c"
    expect "$what, ucx-st-mpi" 'libmpix_queue' finds_libraries "$dir/hello"
    [ -n "$root" ] || {
        # Its stream is of the host
        expect "$what, ucx-st-mpicc" '' "$prefix/bin/ucx-st-mpicc" --api hpe \
            -Dmpix_test_stream=MPIX_Host_stream_create \
            "$top/test/integration/compat_hpe.c" -o "$dir/hpe"
        expect "$what, ucx-st-mpicc" 'libmpix_queue' finds_libraries "$dir/hpe"
        expect "$what, ucx-st-mpicc" '' "$prefix/bin/ucx-st-mpicc" --api mpich \
            "$top/examples/st_mpich.c" -o "$dir/mpich"
        expect "$what, ucx-st-mpicc" '' "$prefix/bin/ucx-st-mpicc" --api libmp \
            "$temp/libmp.c" -o "$dir/libmp"
    }
    [ -e "$libdir/libmpix_queue_f08.so" ] || return 0
    expect "$what, ucx-st-f08" '' compile ucx-st-f08 "$dir/ring" mpifort \
        -J "$dir" "$top/examples/st_ring.f90"
    expect "$what, ucx-st-f08" 'libmpix_queue' finds_libraries "$dir/ring"
}

# Builds with CMake.  Usage: by_cmake WHAT PREFIX
by_cmake()
{
    local what=$1 prefix=$2 dir languages=C
    [ ! -e "$libdir/libmpix_queue_f08.so" ] || languages+=' Fortran'
    command -v cmake >/dev/null || { echo "(cmake is not installed)"; return 0; }
    dir=$(mktemp -d "$temp/XXXXXX")
    cat >"$dir/CMakeLists.txt" <<STEOF
cmake_minimum_required(VERSION 3.18)
project(programs $languages)
find_package(UcxSt 0.1 REQUIRED)
add_executable(lanes $temp/lanes.c)
target_link_libraries(lanes UcxSt::ucp_st)
if(TARGET UcxSt::mpix_queue)
    add_executable(hello $top/examples/st_hello.c)
    target_link_libraries(hello UcxSt::mpix_queue)
endif()
if(TARGET UcxSt::mpix_queue_f08)
    add_executable(ring $top/examples/st_ring.f90)
    target_link_libraries(ring UcxSt::mpix_queue_f08)
endif()
STEOF
    expect "$what, cmake" '' cmake -S "$dir" -B "$dir/b" \
        -DCMAKE_PREFIX_PATH="$prefix"
    expect "$what, cmake" '' cmake --build "$dir/b"
    expect "$what, cmake, ucp_st" 'libucp_st' finds_libraries "$dir/b/lanes"
    [ ! -e "$libdir/libmpix_queue.so" ] ||
        expect "$what, cmake, mpix_queue" 'libmpix_queue' finds_libraries \
            "$dir/b/hello"
    [ ! -e "$libdir/libmpix_queue_f08.so" ] ||
        expect "$what, cmake, mpix_queue_f08" 'libmpix_queue' finds_libraries \
            "$dir/b/ring"
    [ ! -e "$libdir/libmpix_queue.so" ] || by_cmake_more "$what" "$prefix"
}

# Projects of C++ alone, and those that find MPI themselves
by_cmake_more()
{
    local what=$1 prefix=$2 words dir
    for words in UcxSt::mpix_queue 'UcxSt::mpix_queue MPI::MPI_CXX'; do
        dir=$(mktemp -d "$temp/XXXXXX")
        cat >"$dir/main.cc" <<STEOF
#include <mpix_queue.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    return MPI_Finalize();
}
STEOF
        cat >"$dir/CMakeLists.txt" <<STEOF
cmake_minimum_required(VERSION 3.18)
project(programs CXX)
if("$words" MATCHES MPI::)
    find_package(MPI REQUIRED)
endif()
find_package(UcxSt 0.1 REQUIRED)
add_executable(main main.cc)
target_link_libraries(main $words)
STEOF
        expect "$what, cmake, $words" '' cmake -S "$dir" -B "$dir/b" \
            -DCMAKE_PREFIX_PATH="$prefix"
        expect "$what, cmake, $words" '' cmake --build "$dir/b"
    done
}

# Runs what was built.
run_programs()
{
    local run=(timeout 120 "$prefix/bin/ucx-st-run" -q) mpirun
    mpirun=$(st_value "$build" MPIRUN)
    expect "lanes runs" '' "${run[@]}" "$programs/lanes"
    [ ! -e "$programs/hello" ] ||
        expect "hello runs" 'hello from rank 1' "${run[@]}" "$mpirun" -n 2 \
            "$programs/hello"
    [ ! -e "$programs/hpe" ] ||
        expect "hpe runs" 'compat_hpe: 0 wrong' "${run[@]}" "$mpirun" -n 2 \
            "$programs/hpe"
    [ ! -e "$programs/mpich" ] ||
        expect "mpich runs" '1 of 1 ranks' "${run[@]}" "$mpirun" -n 2 \
            "$programs/mpich"
    [ ! -e "$programs/ring" ] ||
        expect "ring runs" 'used once: 201 of 201' "${run[@]}" "$mpirun" -n 2 \
            "$programs/ring"
}

# Usage: has_files WHAT FOLDER FILE...
has_files()
{
    local what=$1 dir=$2 file
    shift 2
    count=$((count + 1))
    [ $# -gt 0 ] || { echo "$what: there are none"; status=1; }
    for file in "$@"; do
        [ -s "$dir/$file" ] || { echo "$what: no $dir/$file"; status=1; }
    done
}

# What is there beside libraries and headers.
has_the_rest()
{
    local programs program pages
    cd "$top" || return
    has_files documents "$prefix/share/doc/ucx-st" README.md NEWS LICENSE \
        docs/*.md docs/images/*.png
    has_files examples "$prefix/share/doc/ucx-st" examples/*.{c,f90,py} \
        examples/*/*
    has_files programs "$prefix/bin" ucx-st-run ucx_st_info ucx_st_perftest \
        st-trace-advise st-trace-merge st-trace-plot
    mapfile -t programs < <(find "$build/bench" -maxdepth 1 -type f \
                                -perm -u+x -name 'st_*' -printf '%f\n')
    has_files benchmarks "$prefix/libexec/ucx-st" "${programs[@]}"
    for program in "${programs[@]}"; do
        expect "$program" '' finds_all "$prefix/libexec/ucx-st/$program"
    done
    [ -n "$(st_value "$build" SCDOC)" ] || { echo "(scdoc is not installed)"; return; }
    mapfile -t pages < <(find docs/man -name '*.scd' -printf '%f\n' |
                             sed -n 's|^\(.*\.\(.\)\)\.scd$|man\2/\1|p')
    [ -z "$(st_value "$build" HAVE_CXIEMU_TRUE)" ] ||
        mapfile -t pages < <(printf '%s\n' "${pages[@]}" | grep -v cxiemu)
    has_files pages "$prefix/share/man" "${pages[@]}" man3/MPIX_Queue_init.3 \
        man3/ucp_st_worker_create.3
}

# Nothing that was installed names the build folder, but for what debuggers read.
# shellcheck disable=SC2317 # called by expect
forgets_build()
{
    local file
    ! grep -rIF "$build" "$prefix" || return 1
    while IFS= read -r file; do
        ! readelf -d "$file" 2>/dev/null | grep -F "$build" || return 1
    done < <(find "$prefix/bin" "$prefix/lib" "$prefix/libexec" -type f)
}

cat >"$temp/libmp.c" <<'STEOF'
#include <mp.h>
int main(void)
{
    int version;
    return mp_query_param(MP_PARAM_VERSION, &version) != MP_SUCCESS;
}
STEOF
cat >"$temp/lanes.c" <<'STEOF'
#include <ucp_st.h>
int main(void)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    ucp_st_lanes_attr_t attr;
    return ucp_st_lanes_query(&params, &attr) != UCS_OK;
}
STEOF

prefix=$(st_value "$build" prefix)
[ ! -e "$prefix" ] || { echo "$prefix exists"; exit 1; }
root=$temp/dest
install_to "$root" "$@"
libdir=$root$prefix/lib
# It is not yet where the programs look for it
loader_path=$libdir
export PKG_CONFIG_PATH=$libdir/pkgconfig
by_pkg_config "DESTDIR"
by_cmake "DESTDIR" "$root$prefix"

mkdir -p "$(dirname "$prefix")"
mv "$root$prefix" "$prefix"
root=
libdir=$prefix/lib
loader_path=
export PKG_CONFIG_PATH=$libdir/pkgconfig
by_pkg_config "prefix"
# Without what tests set: as on a user's machine
unset UCX_TLS UCX_CXI_TRIG_PROVIDER
st_loopback
run_programs
by_cmake "prefix" "$prefix"
has_the_rest
expect "the build folder" '' forgets_build
# Threads may run on in them when nobody uses them any more
while IFS= read -r file; do
    expect "$file stays loaded" NODELETE readelf -d "$file"
done < <(find "$libdir" -type f -name '*.so*')
expect "static flags" '-lucp_st.*-lfabric' pkg-config --static --libs ucx-st
[ ! -e "$libdir/libmpix_queue.so" ] ||
    expect "static flags" '-lmpix_queue.*-lucp_st.*-lfabric' \
        pkg-config --static --libs ucx-st-mpi

echo "$count checks"
exit $status
