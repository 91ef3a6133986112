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
ST_OPTIONAL_PACKAGES=(python3-matplotlib "${ST_MPI4PY[@]}" clang
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

# Configures and builds into a folder.
# Usage: st_build DIR NAME-OF-LOG [CONFIGURE-OPTION...]
st_build()
{
    local dir=$1 name=$2
    shift 2
    if [ ! -x "$ST_TOP/configure" ] ||
       [ "$ST_TOP/configure.ac" -nt "$ST_TOP/configure" ]; then
        st_say "autogen.sh"
        st_logged autogen "$ST_TOP/autogen.sh" || return 1
    fi
    mkdir -p "$dir"
    if st_needs_configure "$dir"; then
        st_say "configure in ${dir#"$ST_TOP"/}"
        st_logged "$name-configure" st_in "$dir" "$ST_TOP/configure" "$@" ||
            return 1
        # What an older configuration built may have been built differently
        st_logged "$name-clean" make -C "$dir" clean || return 1
    fi
    st_say "make in ${dir#"$ST_TOP"/}"
    st_logged "$name-make" make -C "$dir" -j"$(nproc)"
}

# Runs a command in a folder.
st_in()
{
    cd "$1" && shift && "$@"
}

# The NICs that tests run on: the emulated one in its two modes, and the
# sockets provider. There is cxi, too, for contrib/run-on-cxi.sh.
# shellcheck disable=SC2034 # used by the scripts
ST_NICS=(strict fast sockets)

# Sets the environment for one of them, and what starts programs on it.
st_nic()
{
    export ST_NIC=$1
    ST_NET=()
    case $1 in
    strict|fast)
        export UCX_CXI_TRIG_PROVIDER=cxiemu FI_CXIEMU_MODE=$1 ST_DEVICE=cxiemu0
        unset UCX_NET_DEVICES
        ;;
    sockets)
        export UCX_CXI_TRIG_PROVIDER=sockets UCX_NET_DEVICES=lo ST_DEVICE=lo
        # shellcheck disable=SC2034 # used by the scripts
        ST_NET=("$ST_TOP/contrib/own-network.sh")
        ;;
    cxi)
        export UCX_CXI_TRIG_PROVIDER=cxi ST_DEVICE=${ST_CXI_DEVICE:-cxi0}
        unset UCX_NET_DEVICES
        # Without an emulated card it is the one of this node
        # shellcheck disable=SC2034 # used by the scripts
        [ -z "${ST_CXI_CARD:-}" ] ||
            ST_NET=("$ST_TOP/contrib/own-card.sh" --libfabric "$ST_CXI_LIBDIR"
                    --card "$ST_CXI_CARD")
        ;;
    *)
        st_die "there is no NIC \"$1\"; there are: ${ST_NICS[*]} cxi"
        ;;
    esac
}

# The lanes that suites of ucp_st run on: trig is what is chosen where nothing
# is said, and the other lanes are there for what it cannot serve.
# shellcheck disable=SC2034 # used by the scripts
ST_LANES=(trig host direct)

# Sets the environment for one of them.
st_lane()
{
    export ST_LANE=$1
    case $1 in
    trig) unset UCX_ST_LANES ;;
    host|direct) export UCX_ST_LANES=$1 ;;
    *) st_die "there is no lane \"$1\"; there are: ${ST_LANES[*]}" ;;
    esac
}

# Lets tests fork before they begin with UCX: its thread for the file system,
# where it has one, may hold locks then, and the child's ucp_init() waits for them
# without end (UCX 1.18).
st_forking()
{
    export UCX_VFS_ENABLE=n
}

# Gives streams of GPUs hardware queues of their own, unless the environment says
# how many there are: by default there are few, and streams that share one hold
# each other up.
st_gpu_queues()
{
    export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-32}
    export GPU_MAX_HW_QUEUES=${GPU_MAX_HW_QUEUES:-32}
}

# Keeps MPI on the loopback device, for tests and for the quick start.
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
