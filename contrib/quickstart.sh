#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh Debian machine to a verified stream-triggered halo exchange.
set -euo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/quickstart.sh [--no-deps] [--help]

Installs what is missing (packages by apt-get, as root or with sudo; UCX's
private headers into .deps/), builds into build/, and runs the main job: the
halo exchange st_faces on 4 ranks over the transport cxi_trig, checked against
a CPU reference, driven by the host (mpi) and triggered by streams (st,
st-ready). Ends with a table and "quickstart: OK", or with the cause and a
non-zero status. Running it again repeats only what is needed.

    --no-deps  install and download nothing
STEOF
}

deps=yes
for arg in "$@"; do
    case $arg in
    --no-deps) deps=no ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
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

st_build "$ST_BUILD" build || fail "the build failed; see the log above"

st_loopback
export UCX_TLS=cxi_trig,self ST_BUILDDIR=$ST_BUILD
st_say "Halo exchange: 4 ranks, UCX_TLS=$UCX_TLS"
rc=0
timeout -k 10 300 "$ST_TOP/contrib/ucx-st-run" mpirun -n 4 \
    "$ST_BUILD/bench/st_faces" --grid 2x2x1 --middle 1 --inner 10 \
    --json "$ST_BUILD/quickstart.json" || rc=$?
case $rc in
0)   ;;
124|137) fail "the halo exchange did not end within 300 seconds" ;;
*)   fail "the halo exchange ended with status $rc" ;;
esac
echo "quickstart: OK"
