#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Mixed MPI traffic over the transport, built with AddressSanitizer.
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/run-mpi-asan.sh [--no-deps] [--nic NIC] [--ranks N]
                               [--seconds N] [--seed N] [--build-dir DIR]
                               [--help]

Builds into build-asan-mpi/ with AddressSanitizer and UBSan, and runs mpi_plain
mixed there for some time, all of whose messages and one-sided operations go
over cxi_trig. All data is checked; at the end leaks are reported. Those of
OpenMPI that test/lsan.supp names do not count.

    --no-deps        install and download nothing
    --nic NIC        strict, fast (default) or sockets
    --ranks N        ranks of MPI (default 4)
    --seconds N      how long (default 1800)
    --seed N         of the order of what is done (default: the time)
    --build-dir DIR  another folder than build-asan-mpi

The status is 0 if there was no error and no leak.
STEOF
}

deps=yes
nic=fast
ranks=4
seconds=1800
seed=$(date +%s)
dir=$ST_TOP/build-asan-mpi

# Usage: need_number OPTION VALUE
need_number()
{
    [[ $2 =~ ^[1-9][0-9]{0,9}$ ]] || { usage >&2; exit 2; }
}

while [ $# -gt 0 ]; do
    case $1 in
    --no-deps) deps=no ;;
    --nic)
        [[ " ${ST_NICS[*]} " == *" ${2:-none} "* ]] || { usage >&2; exit 2; }
        nic=$2
        shift
        ;;
    --ranks)   need_number "$1" "${2:-}"; ranks=$2; shift ;;
    --seconds) need_number "$1" "${2:-}"; seconds=$2; shift ;;
    --seed)    need_number "$1" "${2:-}"; seed=$2; shift ;;
    --build-dir) dir=$(realpath -m "${2:?--build-dir needs a folder}"); shift ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

set_up()
{
    if [ $deps = yes ]; then
        (st_install_packages "${ST_BUILD_PACKAGES[@]}") || return 1
        (st_ucx_source) || return 1
    fi
    st_build "$dir" asan-mpi --enable-sanitizer=address,undefined \
        CFLAGS='-O1 -g' || return 1
    st_logged asan-mpi-tests make -C "$dir/test/integration" mpi_plain
}

cd "$ST_TOP" || exit 1
set_up || exit 1
st_loopback
st_nic "$nic"
export ST_BUILDDIR=$dir UCX_TLS=cxi_trig,self OMPI_MCA_osc=ucx
# The transport is preloaded, before the sanitizer's library
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:verify_asan_link_order=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export LSAN_OPTIONS=suppressions=$ST_TOP/test/lsan.supp
rc=0
timeout -k 10 $((seconds + 300)) "${ST_NET[@]}" contrib/ucx-st-run -q \
    mpirun -n "$ranks" "$dir/test/integration/mpi_plain" mixed "$seconds" "$seed" || rc=$?
if [ $rc -ne 0 ]; then
    echo "run-mpi-asan: status $rc, seed $seed"
    exit 1
fi
echo "run-mpi-asan: $ranks ranks, $seconds s, $nic, seed $seed: no error, no leak"
