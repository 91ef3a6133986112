#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the two commands of README.md in a fresh, minimal Debian system.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage()
{
    cat <<STEOF
usage: contrib/check-fresh.sh [--dir DIR] [--keep] [--suite NAME]
                              [--ucx-source TREE]
                              [--only quickstart|run-tests] [-- ARGUMENT...]

Makes a minimal Debian system in a temporary folder with debootstrap, copies a
clean clone of HEAD into it, and runs in it, by chroot in a private mount
namespace, both commands of README.md:
    ./contrib/quickstart.sh     (again with --prefix; and what it says last)
    ./contrib/run-tests.sh
Removes the folder at the end. Needs root, debootstrap, git and about 3 GB.

    --dir DIR     make the system in a new folder in DIR (default: \$TMPDIR)
    --keep        keep the folder, and say where it is
    --suite NAME  another Debian release than bookworm
    --ucx-source TREE  take UCX's private headers from this source tree, where
                  the archive has none of the release's version
    --only NAME   run one of the commands only
    ARGUMENT      of run-tests.sh, such as --all

ST_MPI=mpich in the environment takes MPICH instead of OpenMPI.
STEOF
}

die()
{
    echo "check-fresh.sh: $*" >&2
    exit 1
}

# The archive of the machine's own apt configuration that has a Debian release,
# or else its archive of another release: archives have them all.
# shellcheck disable=SC2016 # the dollars are of apt-get
find_mirror()
{
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' \
            'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
            2>/dev/null |
        awk -v suite="$suite" '
            $3 != "main" { next }
            $2 == suite { found = $1; exit }
            other == ""  { other = $1 }
            END { print found != "" ? found : other }'
}

# Copies the parts of the machine's network and apt configuration that decide
# how the archive is reached: names, proxies, certificates.
copy_access()
{
    local file
    for file in /etc/resolv.conf /etc/hosts; do
        [ ! -e "$file" ] || cp -L "$file" "$root$file"
    done
    apt-config dump | grep -E '^Acquire::(http|https|ftp)::' \
        > "$root/etc/apt/apt.conf.d/90access" || true
    if [ -d /usr/local/share/ca-certificates ]; then
        mkdir -p "$root/usr/local/share"
        cp -rL /usr/local/share/ca-certificates "$root/usr/local/share/"
    fi
    if [ -d /etc/apt/auth.conf.d ]; then
        cp -rL /etc/apt/auth.conf.d/. "$root/etc/apt/auth.conf.d/"
    fi
}

# Copies the given source tree of UCX to where configure looks for its version.
copy_ucx_source()
{
    local version
    version=$(sed -nE 's/^define\(\[ucx_ver_(major|minor|patch)\], *([0-9]+)\).*/\2/p' \
                  "$ucx_source/configure.ac" | paste -sd .)
    mkdir -p "$root/ucx-st/.deps"
    cp -rL "$ucx_source" "$root/ucx-st/.deps/ucx-$version"
}

# Becomes a command of the tree in the system.  The mounts exist in a namespace
# of their own, so that they vanish with the command, whatever happens.
enter_system()
{
    # shellcheck disable=SC2016 # for the shell in the namespace
    exec unshare --mount --pid --fork --kill-child --propagation private \
        bash -c '
            set -e
            root=$1; shift
            mount -t proc proc "$root/proc"
            mount --rbind /dev "$root/dev"
            mount --rbind /sys "$root/sys"
            exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
                PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" \
                no_proxy="${no_proxy:-}" ST_MPI="${ST_MPI:-openmpi}" \
                bash -c "cd /ucx-st && exec \"\$@\"" - "$@"
        ' - "$root" "$@"
}

# Never removes a tree in which something is mounted.
clean_up()
{
    local rc=$?
    trap - EXIT
    if [ -n "$runner" ]; then
        # Takes all that runs in the system with it
        kill -KILL "$runner" 2>/dev/null || true
        wait "$runner" 2>/dev/null || true
    fi
    if [ -n "${work:-}" ] && [ -d "$work" ]; then
        if grep -qF " $work/" /proc/self/mounts; then
            echo "check-fresh.sh: something is mounted in $work; it stays" >&2
        elif [ $keep = yes ]; then
            echo "kept: $work"
        else
            rm -rf --one-file-system "$work"
        fi
    fi
    exit $rc
}

# Tells what the command has installed of what the project builds upon.
# shellcheck disable=SC2016 # the dollars are of dpkg-query
show_versions()
{
    chroot "$root" dpkg-query -W -f '==> ${Package} ${Version}\n' \
        libucx-dev libfabric-dev libopenmpi-dev libmpich-dev 2>/dev/null || true
}

# Runs a command, shows its output and judges it.
# Usage: run_command LAST-LINE-REGEX SCRIPT [ARGUMENT...]
run_command()
{
    local regex=$1 script=$2 rc=0 last log=$work/${2##*/}.log start=$SECONDS
    shift
    echo "==> $*"
    : >"$log"
    enter_system "$@" >"$log" 2>&1 &
    runner=$!
    tail -n +1 -f --pid=$runner "$log"
    wait $runner || rc=$?
    runner=
    show_versions
    last=$(tail -n 1 "$log")
    [ $rc -eq 0 ] || die "$script ended with status $rc"
    [[ $last =~ $regex ]] || die "$script ended with: $last"
    echo "==> $script took $((SECONDS - start)) s"
}

# Runs quickstart.sh, and the two lines that it ends with: how to compile and run
# a program.  Usage: run_quickstart [ARGUMENT...]
run_quickstart()
{
    local lines
    run_command '^quickstart: OK$' ./contrib/quickstart.sh "$@"
    lines=$(tail -n 3 "$work/quickstart.sh.log" | head -n 2)
    run_command '^got: hello from rank [01]$' \
        bash -c "set -e; cd /tmp; $lines"
}

dir=${TMPDIR:-/tmp}
keep=no
suite=bookworm
ucx_source=
only=
arguments=()
runner=
while [ $# -gt 0 ]; do
    case $1 in
    --dir) dir=${2:?--dir needs a folder}; shift ;;
    --keep) keep=yes ;;
    --suite) suite=${2:?--suite needs a name}; shift ;;
    --ucx-source) ucx_source=${2:?--ucx-source needs a folder}; shift ;;
    --only) only=${2:?--only needs a name}; shift ;;
    -h|--help) usage; exit 0 ;;
    --) shift; arguments=("$@"); break ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

[ "$(id -u)" -eq 0 ] || die "needs root"
for tool in debootstrap git unshare chroot; do
    command -v $tool >/dev/null || die "$tool is missing; install it"
done
[ -d "$dir" ] || die "$dir: no such folder"
[ -z "$ucx_source" ] || [ -f "$ucx_source/src/uct/base/uct_iface.h" ] ||
    die "$ucx_source: no source tree of UCX"
mirror=$(find_mirror)
[ -n "$mirror" ] ||
    die "this machine's apt lists know no Debian archive"

trap clean_up EXIT
work=$(mktemp -d "$dir/ucx-st-fresh.XXXXXX")
root=$work/root
echo "==> A minimal $suite in $root"
debootstrap --variant=minbase "$suite" "$root" "$mirror" \
    > "$work/debootstrap.log" 2>&1 ||
    { tail -n 20 "$work/debootstrap.log" >&2
      die "debootstrap failed: does $mirror have $suite?"; }
copy_access
git clone -q --no-hardlinks "$top" "$root/ucx-st"
[ -z "$ucx_source" ] || copy_ucx_source
git -C "$root/ucx-st" log -1 --format='==> Commit %h: %s'

if [ "$only" != run-tests ]; then
    run_quickstart
    run_quickstart --no-deps --prefix /opt/ucx-st
fi
[ "$only" = quickstart ] ||
    run_command '^[0-9]+ passed, 0 failed(, .*)?$' ./contrib/run-tests.sh \
        "${arguments[@]}"
echo "check-fresh: OK"
