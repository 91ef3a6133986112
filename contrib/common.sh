# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the scripts of this folder share; they source it.

ST_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Another build folder, as contrib/coverage.sh has, may be in the environment
ST_BUILD=${ST_BUILD:-$ST_TOP/build}

# The packages of the MPI to build with: ST_MPI in the environment, which is for
# systems that have no other one. Debian's mpi4py is for OpenMPI, and brings it.
case ${ST_MPI:-openmpi} in
mpich) ST_MPI_PACKAGES=(libmpich-dev mpich) ST_MPI4PY=() ;;
*)     ST_MPI_PACKAGES=(libopenmpi-dev openmpi-bin)
       ST_MPI4PY=(python3-mpi4py) ;;
esac

# What a build needs, and what the tests need beyond it
# shellcheck disable=SC2034 # used by the scripts
ST_BUILD_PACKAGES=(autoconf automake libtool pkg-config make gcc g++ libc6-dev
                   libucx-dev ucx-utils libfabric-dev "${ST_MPI_PACKAGES[@]}"
                   libcunit1-dev dpkg-dev xz-utils scdoc)
# shellcheck disable=SC2034
ST_TEST_PACKAGES=(shellcheck codespell doxygen procps python3 libfabric-bin
                  spin iproute2 gfortran)
# What single tests are skipped without, or take less of
# shellcheck disable=SC2034
ST_OPTIONAL_PACKAGES=(python3-numpy python3-matplotlib "${ST_MPI4PY[@]}" clang lld
                      hipcc libamdhip64-dev
                      gcc-aarch64-linux-gnu libc6-dev-arm64-cross)

# Ends the script with a cause.
st_die()
{
    echo "${0##*/}: $*" >&2
    exit 1
}

st_say()
{
    echo "==> $*"
}

# Runs a command as root.
st_as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -- "$@"
    else
        st_die "needs root for \"$*\": run as root, install sudo, or use" \
               "--no-deps after installing the packages yourself"
    fi
}

# Runs a command with its output in build/NAME.log; on failure shows the end of
# it.  Usage: st_logged NAME COMMAND...
st_logged()
{
    local log=$ST_BUILD/$1.log rc=0
    shift
    mkdir -p "$ST_BUILD"
    # In a shell of its own: what ends it must not end the script
    ("$@") >"$log" 2>&1 || rc=$?
    if [ $rc -ne 0 ]; then
        echo "--- the end of $log:" >&2
        tail -n 30 "$log" >&2
        echo "---" >&2
    fi
    return $rc
}

# Prints those of the named packages that are not installed.
st_missing_packages()
{
    local package
    for package in "$@"; do
        if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" \
                2>/dev/null)" != installed ]; then
            echo "$package"
        fi
    done
}

# Installs what is missing of the named packages; calls apt for nothing else.
st_install_packages()
{
    local missing
    command -v apt-get >/dev/null ||
        st_die "this system has no apt-get: install the packages named in" \
               "contrib/common.sh in its own way and use --no-deps"
    mapfile -t missing < <(st_missing_packages "$@")
    if [ ${#missing[@]} -eq 0 ]; then
        st_say "Packages: all are installed"
        return
    fi
    st_say "Packages: installing ${missing[*]}"
    st_logged apt-update st_as_root apt-get -q update ||
        st_die "apt-get update failed"
    st_logged apt-install st_as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y -o DPkg::Lock::Timeout=300 \
        install --no-install-recommends "${missing[@]}" ||
        st_die "apt-get could not install ${missing[*]}"
}

# Fetches UCX's private headers unless they are there.
st_ucx_source()
{
    st_say "Private headers of UCX"
    st_logged ucx-source "$ST_TOP/contrib/get-ucx-source.sh" ||
        st_die "UCX's private headers could not be fetched"
}

# Copies what UCX's private headers are of a source of UCX.
# Usage: st_ucx_headers TREE FOLDER
st_ucx_headers()
{
    mkdir -p "$2"
    (cd "$1" && find src -name '*.h' -o -name '*.inl') |
        tar -C "$1" -cf - -T - configure.ac LICENSE | tar -C "$2" -xf -
}

# True when configure has to run again in folder $1.
st_needs_configure()
{
    [ ! -f "$1/Makefile" ] || [ ! -f "$1/config.status" ] ||
        [ "$ST_TOP/configure" -nt "$1/config.status" ]
}

# A value of a configured folder.  Usage: st_value DIR NAME
st_value()
{
    sed -n "s/^S\\[\"$2\"\\]=\"\\(.*\\)\"\$/\\1/p" "$1/config.status"
}

# Makes configure, if need be.
st_autogen()
{
    if [ ! -x "$ST_TOP/configure" ] ||
       [ "$ST_TOP/configure.ac" -nt "$ST_TOP/configure" ]; then
        st_say "autogen.sh"
        st_logged autogen "$ST_TOP/autogen.sh"
    fi
}

# Configures a folder where that is needed.
# Usage: st_configure DIR NAME-OF-LOG [CONFIGURE-OPTION...]
st_configure()
{
    local dir=$1 name=$2 is_new=yes
    shift 2
    st_autogen || return 1
    mkdir -p "$dir"
    [ ! -f "$dir/Makefile" ] || is_new=no
    if st_needs_configure "$dir"; then
        st_say "configure in ${dir#"$ST_TOP"/}"
        st_logged "$name-configure" st_in "$dir" "$ST_TOP/configure" "$@" ||
            return 1
        # What an older configuration built may have been built differently
        [ $is_new = yes ] || st_logged "$name-clean" make -C "$dir" clean || return 1
    fi
}

# Builds in a configured folder.  Usage: st_make DIR NAME-OF-LOG [TARGET]
st_make()
{
    st_say "make in ${1#"$ST_TOP"/}"
    st_logged "$2-make" make -C "$1" -j"$(nproc)" "${@:3}"
}

# PTX text of kernels, without an SDK: a CUDA that is there is not looked at. Fails
# if one uses local memory, too.  Usage: st_ptx CLANG SOURCE OUTPUT [OPTION...]
st_ptx()
{
    "$1" -x cuda --cuda-gpu-arch=sm_70 --cuda-path=/nonexistent -nocudainc \
        -nocudalib --cuda-device-only -O2 -Wall -Wextra -Werror -S "$2" -o "$3" \
        "${@:4}" || return 1
    if grep -n '\.local' "$3"; then
        echo "a kernel of $2 uses local memory"
        return 1
    fi
}

# Sets make_quick, what make is told to take less time where little is built, and
# make_quick_tests, where it makes the tests' own programs. What make builds there
# without them fits to it.  Usage: st_quick DIR
st_quick()
{
    make_quick=()
    # shellcheck disable=SC2016 # make's variables
    ! grep -qx build_old_libs=no "$1/libtool" || make_quick=(
        'LIBTOOL=$(top_srcdir)/config/compile-quick.sh $(top_builddir)/libtool')
    make_quick_tests=("${make_quick[@]}")
    [ "$(st_value "$1" CFLAGS)" != "-g -O2" ] || make_quick_tests+=("CFLAGS=-g1 -O1")
}

# Configures and builds into a folder.
# Usage: st_build DIR NAME-OF-LOG [CONFIGURE-OPTION...]
st_build()
{
    st_configure "$@" && st_make "$1" "$2"
}

# Builds for tests into a folder; 77 if programs built so do not start here.
# Usage: st_build_for_tests DIR NAME [CONFIGURE-OPTION...]
st_build_for_tests()
{
    local probe rc=0 list=
    [[ ${3:-} != --enable-sanitizer=* ]] || list=${3#*=}
    if [ -n "$list" ]; then
        probe=$(mktemp)
        echo 'int main(void) { return 0; }' |
            gcc -x c "-fsanitize=$list" -o "$probe" - && "$probe" || rc=77
        rm -f "$probe"
        [ $rc -eq 0 ] || {
            echo "a program built with -fsanitize=$list does not start here"
            return $rc
        }
    fi
    st_configure "$@" && st_quick "$1" &&
        st_make "$1" "$2" ${list:+libraries} "${make_quick[@]}"
}

# Builds tests of a folder: all, or those that are named.
# Usage: st_make_tests DIR unit|integration [NAME...]
st_make_tests()
{
    local dir=$1/test/$2
    st_quick "$1"
    shift 2
    make -C "${dir%/*}/standin" check TESTS= "${make_quick_tests[@]}" &&
    if [ $# -eq 0 ]; then
        # The folder integration has no list of TESTS
        ST_INTEGRATION=no make -C "$dir" -j"$(nproc)" check TESTS= \
            "${make_quick_tests[@]}"
    else
        # What the programs load by itself is no target of theirs
        [ "${dir##*/}" != unit ] || set -- "$@" check_data
        make -C "$dir" -j"$(nproc)" "${make_quick_tests[@]}" "$@"
    fi
}

# Runs a command in a folder.
st_in()
{
    cd "$1" && shift && "$@"
}

# Keeps MPI on the loopback device.
st_loopback()
{
    export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
    # What starts the programs of OpenMPI 5 takes no loopback device by name
    export PMIX_MCA_ptl_tcp_if_include=lo
}

# The folder of a libfabric's libraries.  Usage: st_fabric_libdir PREFIX
st_fabric_libdir()
{
    local dir
    for dir in "$1"/lib64 "$1"/lib "$1"/lib/*/; do
        if [ -f "$dir/pkgconfig/libfabric.pc" ]; then
            echo "${dir%/}"
            return
        fi
    done
    return 1
}

# Asks pkg-config of a libfabric.  Usage: st_fabric LIBDIR OPTION
st_fabric()
{
    PKG_CONFIG_PATH=$1/pkgconfig pkg-config "$2" libfabric
}

# Prints what keeps a libfabric from being one with the provider cxi, 1.21 or
# later; nothing if it is one.  Usage: st_cxi_lacks PREFIX
st_cxi_lacks()
{
    local libdir library
    libdir=$(st_fabric_libdir "$1") || {
        echo "there is no libfabric in $1: it has no lib/pkgconfig/libfabric.pc"
        return
    }
    st_fabric "$libdir" --atleast-version=1.21 || {
        echo "libfabric $(st_fabric "$libdir" --modversion) in $1 is too old:" \
             "its provider cxi is needed, of 1.21 or later"
        return
    }
    # Built in, or a module
    for library in "$libdir/libfabric.so.1" "$libdir/libfabric/libcxi-fi.so"; do
        ! grep -aqsF libcxi.so.1 "$library" || return 0
    done
    echo "libfabric in $1 has no provider cxi: configure it with --enable-cxi"
}
