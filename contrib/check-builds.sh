#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the project as distributions and users do: with their flags and
# compilers, as another user, and as packages. Each is a function row_NAME.
# shellcheck disable=SC2317 # which is called by its name
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/check-builds.sh [--build FOLDER] --list | NAME...

    --list    print the names of the builds, a line each
    --build FOLDER  a configured folder, whose settings are used (default: build)

A build is made in FOLDER/checks/NAME, and installed to FOLDER/checks/prefix-NAME.
Both are removed if all is as it should be.
The status is 77 if a build cannot be made here; the last line says why.
STEOF
}

skip()
{
    echo "$*"
    exit 77
}

# Skips where a command is missing.  Usage: need COMMAND PACKAGE
need()
{
    type -P "$1" >/dev/null || skip "$1 is not installed (package $2)"
}

fail()
{
    echo "$*"
    exit 1
}

# What configure finds here is what it found for the good folder, with other
# flags, too; but for what differs names, if it is set.
same_features()
{
    local name
    for name in HAVE_MPI_TRUE HAVE_MPI_HOOK_TRUE HAVE_MPI_FORTRAN_TRUE \
                ST_FABRIC_VERSION ST_UCX_VERSION SCDOC; do
        [ "$name" = "${differs:-}" ] ||
            [ "$(st_value "$work" "$name")" = "$(st_value "$build" "$name")" ] ||
            fail "configure finds other than in $build: $name is" \
                 "\"$(st_value "$work" "$name")\""
    done
}

# Configures, without the tests.  Usage: configure_with OPTION...
configure_with()
{
    st_logged configure st_in "$work" "$ST_TOP/configure" --enable-werror \
        --with-ucx-source="$source" --prefix="$prefix" --without-cunit \
        "$@" || fail "configure failed"
    same_features
}

# The same, and makes all without a warning.  Usage: make_with OPTION...
make_with()
{
    configure_with "$@"
    st_logged make make -C "$work" -j"$(nproc)" || fail "make failed"
    ! grep 'warning: ' "$work/make.log" || fail "make warns"
}

# Two ranks greet each other.  Usage: greets [VARIABLE=VALUE...] COMMAND...
greets()
{
    local out
    [ -z "$(st_value "$build" HAVE_MPI_TRUE)" ] || return 0
    out=$(timeout 120 env "$@" 2>&1)
    grep 'hello from rank 1' <<<"$out" ||
        fail "two ranks do not greet each other by $*: $out"
}

# The build's own example, run from the build folder.
greets_in_build()
{
    greets ST_BUILDDIR="$work" "$ST_TOP/contrib/ucx-st-run" "$mpirun" -n 2 \
        "$work/examples/st_hello"
}

# Copies the sources, without what builds have left.  Usage: copy_sources FOLDER
copy_sources()
{
    mkdir -p "$1"
    tar -C "$ST_TOP" -cf - --exclude=./.git --exclude=./.deps \
        --exclude='./build*' --exclude=./debian --exclude=./autom4te.cache . |
        tar -C "$1" -xf -
}

# What configure says of what is missing or does not fit.
row_configure()
{
    "$ST_TOP/contrib/check-configure.sh" "$build"
}

# Link-time optimization.
row_lto()
{
    make_with CFLAGS='-O2 -flto=auto -ffat-lto-objects' \
        FCFLAGS='-O2 -flto=auto -ffat-lto-objects'
    "$ST_TOP/contrib/check-install.sh" "$work"
}

# What Debian hardens with, and _FORTIFY_SOURCE=3, which others have.
row_hardening()
{
    local file flags elf
    need dpkg-buildflags dpkg-dev
    flags=$(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --export=sh)
    eval "${flags//_FORTIFY_SOURCE=2/_FORTIFY_SOURCE=3}"
    make_with
    "$ST_TOP/contrib/check-install.sh" "$work" || exit 1
    for file in "$prefix"/lib/lib*.so.0 "$prefix"/bin/ucx_st_*; do
        elf=$(readelf -dhlW "$file")
        [[ $elf =~ FLAGS.*NOW ]] || fail "$file binds late"
        [[ $elf == *GNU_RELRO* ]] || fail "$file has no relro"
        [[ $elf =~ Type:\ *DYN ]] || fail "$file has no PIE"
    done
    elf=$(readelf --dyn-syms -W "$prefix/lib/libucp_st.so.0")
    [[ $elf == *__memcpy_chk* ]] || fail "no copy of libucp_st is fortified"
}

# The header that the Fortran module needs is GCC's, so there is none.
row_clang()
{
    local differs=HAVE_MPI_FORTRAN_TRUE
    need clang clang
    make_with CC=clang CXX=clang++
    greets_in_build
}

# Errors that GCC 14 has by default.
row_gcc14()
{
    local name flags=
    for name in declaration-missing-parameter-type implicit-function-declaration \
                implicit-int incompatible-pointer-types int-conversion \
                return-mismatch; do
        ! ${CC:-gcc} -Werror="$name" -x c -fsyntax-only /dev/null 2>/dev/null ||
            flags+=" -Werror=$name"
    done
    make_with CFLAGS="-O2$flags"
    greets_in_build
}

# A program with our libraries inside, and those of others shared: the transport
# is there, too, which nothing calls by name.
row_static()
{
    local flags
    [ -z "$(st_value "$build" HAVE_MPI_TRUE)" ] || skip "there is no MPI"
    make_with --enable-static
    st_logged install make -C "$work" install || fail "make install failed"
    flags="-I$prefix/include -L$prefix/lib -l:libmpix_queue.a"
    flags+=" -l:libucp_st.a -l:libuct_cxitrig.a -l:libucs_ext.a"
    flags+=" $(pkg-config --libs ucx libfabric) -ldl -lm"
    # shellcheck disable=SC2086 # words
    mpicc "$ST_TOP/examples/st_hello.c" $flags -o "$work/hello" ||
        fail "mpicc failed"
    ! ldd "$work/hello" | grep -E 'libmpix|libuc._' ||
        fail "the libraries are not inside"
    greets OMPI_MCA_pml=ucx OMPI_MCA_opal_common_ucx_tls=any \
        OMPI_MCA_opal_common_ucx_devices=any OMPI_ALLOW_RUN_AS_ROOT=1 \
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        UCX_CXI_TRIG_PROVIDER=cxiemu UCX_TLS=cxi_trig,self "$mpirun" -n 2 \
        "$work/hello"
}

# For machines that have a card.
row_without-cxiemu()
{
    local out info=(ST_BUILDDIR="$work" "$ST_TOP/contrib/ucx-st-run" -q
                    "$work/src/tools/ucx_st_info" -d)
    make_with --without-cxiemu
    out=$(nm "$work/src/uct/cxi_trig/.libs/libuct_cxitrig.so")
    ! grep ' cxiemu_' <<<"$out" || fail "the library has the card all the same"
    out=$(env UCX_CXI_TRIG_PROVIDER=cxiemu "${info[@]}" 2>&1)
    [[ $out =~ \'cxiemu\'.*was\ left\ out\ of\ this\ build ]] ||
        fail "ucx_st_info does not say that it was left out: $out"
    # Where it is not named that is no error, but a reason
    out=$(env -u UCX_CXI_TRIG_PROVIDER -u UCX_LOG_LEVEL "${info[@]}" 2>&1)
    [[ $out != *ERROR* ]] || fail "ucx_st_info logs an error: $out"
    [ -e /sys/class/cxi ] || [[ $out == *"has no emulated one"* ]] ||
        fail "ucx_st_info gives no reason: $out"
    "$ST_TOP/contrib/check-install.sh" "$work"
}

# A user without rights builds the sources in a folder of its own, installs what
# was not made yet, and runs it.
row_user()
{
    local user=(env) run
    run=("$temp/prefix/bin/ucx-st-run" "$mpirun" -n 2 "$temp/hello")
    if [ "$(id -u)" -eq 0 ]; then
        need setpriv util-linux
        user=(setpriv --reuid=65534 --regid=65534 --clear-groups
              env HOME="$temp" TMPDIR="$temp")
    fi
    copy_sources "$temp/sources"
    st_ucx_headers "$source" "$temp/ucx"
    mkdir "$temp/build"
    [ "$(id -u)" -ne 0 ] || chown -R 65534:65534 "$temp"
    st_logged configure st_in "$temp/build" "${user[@]}" ../sources/configure \
        --with-ucx-source="$temp/ucx" --prefix="$temp/prefix" \
        --without-cunit || fail "configure failed"
    st_logged install "${user[@]}" make -C "$temp/build" -j"$(nproc)" install ||
        fail "make install failed"
    "${user[@]}" "$temp/prefix/bin/ucx_st_info" -l || fail "ucx_st_info failed"
    [ -z "$(st_value "$build" HAVE_MPI_TRUE)" ] || return 0
    # shellcheck disable=SC2046 # words
    "${user[@]}" mpicc "$temp/sources/examples/st_hello.c" -o "$temp/hello" \
        $(PKG_CONFIG_PATH=$temp/prefix/lib/pkgconfig \
              pkg-config --cflags --libs ucx-st-mpi) || fail "mpicc failed"
    greets "${user[@]}" "${run[@]}"
    greets "${user[@]}" UCX_CXI_TRIG_PROVIDER=cxiemu UCX_TLS=cxi_trig,self \
        "${run[@]}"
}

# Installs packages over this system, in memory that goes with the command, and
# runs their test.  Usage: try_packages FILE...
try_packages()
{
    # shellcheck disable=SC2016 # for the shell in the namespace
    unshare --mount --propagation private bash -c '
        set -e
        mount -t tmpfs tmpfs "$1"
        cd "$1"
        mkdir upper work root
        mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" \
            overlay root
        for dir in dev proc sys; do
            mount --rbind /$dir root/$dir
        done
        cp -r "${@:2}" root/mnt
        chroot root sh -c "dpkg -i /mnt/*.deb && /mnt/tests/hello"
    ' - "$temp" "$@"
}

# Debian's packages: lintian finds no errors in them, and they can be used.
row_debian()
{
    local out
    need dh debhelper
    need lintian lintian
    copy_sources "$work/ucx-st"
    mkdir "$work/ucx-st/.deps"
    ln -s "$source" "$work/ucx-st/.deps/ucx-$(st_value "$build" ST_UCX_VERSION)"
    st_in "$work/ucx-st" contrib/packaging/make-debian.sh || exit 1
    st_logged build st_in "$work/ucx-st" dpkg-buildpackage -us -uc ||
        fail "dpkg-buildpackage failed"
    out=$(lintian --allow-root --fail-on error "$work"/*.changes 2>&1) ||
        fail "lintian: $out"
    echo "$out"
    if [ "$(id -u)" -eq 0 ]; then
        st_logged try try_packages "$work"/*.deb "$work/ucx-st/debian/tests" ||
            fail "the packages cannot be installed and used"
    else
        echo "(only root can try to install them)"
    fi
}

# RPM packages; what they need is not looked for, as no RPM has it here.
row_rpm()
{
    local ucx
    need rpmbuild rpm
    ucx=ucx-$(st_value "$build" ST_UCX_VERSION)
    st_ucx_headers "$source" "$work/$ucx"
    tar -C "$work" -czf "$work/$ucx.tar.gz" "$ucx"
    configure_with
    st_logged dist make -C "$work" dist || fail "make dist failed"
    st_logged build rpmbuild -ba --nodeps --define "_topdir $work/rpm" \
        --define "_sourcedir $work" --define 'mpi_prefix /usr' \
        "$ST_TOP/contrib/packaging/ucx-st.spec" || fail "rpmbuild failed"
    find "$work/rpm" -name '*.rpm' -printf '%f\n'
}

# Spack's recipe is Python, and configure has the options that it gives.
row_spack()
{
    local recipe=$ST_TOP/contrib/packaging/spack/packages/ucx_st/package.py
    local options
    need python3 python3
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' \
        "$recipe" || exit 1
    mapfile -t options < <(grep -oE -e '"--[a-z-]+' "$recipe" | tr -d '"')
    [ ${#options[@]} -gt 0 ] || fail "$recipe has no options"
    "$ST_TOP/configure" --enable-option-checking=fatal "${options[@]}" --help \
        >/dev/null
}

rows()
{
    compgen -A function row_ | sed 's/^row_//'
}

# Usage: check_row NAME
check_row()
{
    work=$build/checks/$1
    prefix=$build/checks/prefix-$1 # Of the build folder no file there may tell
    rm -rf "$work" "$prefix"
    mkdir -p "$work"
    temp=$(mktemp -d)
    # shellcheck disable=SC2064 # the name of now is meant
    trap "rm -rf '$temp'" EXIT
    ST_BUILD=$work # Where logs go
    "row_$1" || exit
    rm -rf "$work" "$prefix"
}

build=$ST_BUILD
names=()
while [ $# -gt 0 ]; do
    case $1 in
    --list) rows; exit 0 ;;
    --build) build=${2:-}; shift ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) names+=("$1") ;;
    esac
    shift
done
[ ${#names[@]} -gt 0 ] || { usage >&2; exit 2; }
for name in "${names[@]}"; do
    rows | grep -qxF -- "$name" || st_die "no build \"$name\" (see --list)"
done
[ -f "$build/config.status" ] || st_die "no configured folder: $build"
build=$(cd "$build" && pwd)
source=$(st_value "$build" UCX_SOURCE_DIR)
mpirun=$(st_value "$build" MPIRUN)
if [ -d /usr/lib/ccache ]; then
    export PATH=/usr/lib/ccache:$PATH
    export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$ST_TOP} CCACHE_NOHASHDIR=1
fi
st_loopback
# As on a user's machine
unset UCX_TLS UCX_CXI_TRIG_PROVIDER UCX_ST_LANES

skipped=0
status=0
for name in "${names[@]}"; do
    [ ${#names[@]} -eq 1 ] || st_say "$name"
    rc=0
    (check_row "$name") || rc=$?
    case $rc in
    0) ;;
    77) skipped=$((skipped + 1)) ;;
    *) status=1 ;;
    esac
done
[ $status -ne 0 ] || [ $skipped -lt ${#names[@]} ] || status=77
exit $status
