#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh Debian machine to a verified stream-triggered halo exchange.
set -euo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/quickstart.sh [--no-deps] [--prefix DIR] [-v] [--help]

Installs what is missing (packages by apt-get, as root or with sudo; UCX's
private headers into .deps/), builds libraries, ucx_st_info and one benchmark
into build/, and runs a halo exchange with 26 neighbours (st_faces) on 2 ranks in two
ways, each checked against a serial computation:

    lane direct  the streams copy through shared memory, against host-driven
                 MPI in the same run
    lane trig    the network card moves the data, triggered by the streams; the
                 card is the emulated one, and its speed is not judged

Then it tells how to compile and run a program of yours. Ends with "quickstart: OK",
or with the cause and a non-zero status. Running it again repeats only what is
needed.

    --no-deps     install and download nothing
    --prefix DIR  build all for this folder, and install there after the runs; else
                  nothing is installed
    -v, --verbose show what the benchmark prints, which goes to
                  build/quickstart-LANE.log otherwise
STEOF
}

deps=yes
prefix=
verbose=no
while [ $# -gt 0 ]; do
    case $1 in
    --no-deps) deps=no ;;
    --prefix) [ $# -gt 1 ] || { usage >&2; exit 2; }; prefix=$2; shift ;;
    --prefix=*) prefix=${1#*=} ;;
    -v|--verbose) verbose=yes ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

# One failure, one cause, on the last line.
fail()
{
    echo "quickstart: FAILED: $*" >&2
    exit 1
}

if [ $deps = yes ]; then
    (st_install_packages "${ST_BUILD_PACKAGES[@]}") ||
        fail "the packages could not be installed"
    (st_ucx_source) || fail "UCX's private headers could not be fetched"
fi

if [ -n "$prefix" ]; then
    prefix=$(realpath -m -- "$prefix")
    # What was built for another folder cannot be installed into this one
    grep -qsxF "S[\"prefix\"]=\"$prefix\"" "$ST_BUILD/config.status" ||
        rm -f "$ST_BUILD/config.status"
fi
st_configure "$ST_BUILD" build ${prefix:+"--prefix=$prefix"} ||
    fail "it could not be configured; see the log above"
st_quick "$ST_BUILD"
st_make "$ST_BUILD" build quickstart "${make_quick[@]}" ||
    fail "the build failed; see the log above"

# On 2 ranks, with a report in quickstart.json.
# Usage: halo LANE [ARGUMENT-OF-ST_FACES...]
halo()
{
    local rc=0 by=(st_logged "quickstart-$1")

    [ $verbose = no ] || by=()
    "${by[@]}" timeout -k 10 300 "$ST_TOP/contrib/ucx-st-run" -q mpirun -n 2 \
        "$ST_BUILD/bench/st_faces" --grid 2x1x1 --block 1 --order 7 \
        --middle 1 --json "$ST_BUILD/quickstart.json" "${@:2}" || rc=$?
    case $rc in
    0)   ;;
    124|137) fail "the halo exchange did not end within 300 seconds" ;;
    *)   fail "the halo exchange ended with status $rc" ;;
    esac
}

# A count of the last report
count()
{
    sed -n "s/.*\"$1\":\([0-9]*\),.*/\1/p" "$ST_BUILD/quickstart.json"
}

# The time of an iteration of a variant, in the last report
time_us()
{
    sed -n "s/.*\"variant\":\"$1\",\"median_us\":\([0-9]*\.[0-9]\).*/\1/p" \
        "$ST_BUILD/quickstart.json"
}

st_loopback
export ST_BUILDDIR=$ST_BUILD
st_say "Halo exchange with 26 neighbours on 2 ranks, compared with a serial computation"
UCX_TLS=posix,self UCX_ST_LANES=direct halo direct --inner 100 --trials 5
echo "lane direct, shared memory: right; an iteration takes $(time_us st) us," \
     "driven by the host $(time_us mpi) us"

export UCX_CXI_TRIG_PROVIDER=cxiemu
UCX_TLS=cxi_trig,self UCX_ST_LANES=trig halo trig --inner 20 --variants st,st-ready
if [ "$(count messages)" != "$(count deferred_writes_fired)" ] ||
   [ "$(count operations_proxied)" != 0 ]; then
    fail "not every message was one deferred write of the card"
fi
echo "lane trig, emulated card: right; the card sent all $(count messages)" \
     "messages, triggered by the streams"

# The flags of a program, and what runs it
flags="-I$ST_TOP/contrib/openmpi/mpix_queue"
flags+=" -L$ST_BUILD/contrib/openmpi/mpix_queue/.libs -lmpix_queue"
run=$ST_TOP/contrib/ucx-st-run
if [ -n "$prefix" ]; then
    st_say "make install into $prefix"
    st_logged install make -C "$ST_BUILD" install ||
        fail "the installation failed; see the log above"
    flags="\$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs ucx-st-mpi)"
    run=$prefix/bin/ucx-st-run
fi
st_say "Compile and run a program of yours, such as this one (docs/mpi.md)"
echo "mpicc $ST_TOP/examples/st_hello.c $flags -o st_hello"
echo "$run mpirun -n 2 ./st_hello"
echo "quickstart: OK"
