#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds with MPICH in a fresh, minimal Debian 12, and runs the tests of the MPI
# layer there: MPICH 4.0.
set -euo pipefail

usage()
{
    cat <<STEOF
usage: contrib/check-mpich.sh [--dir DIR] [--keep] [--ucx-source TREE]
                              [-- ARGUMENT...]

Makes a minimal Debian 12 system in a temporary folder and runs
./contrib/run-tests.sh in it, with the ARGUMENTs (default: the tests of the
MPI layer); see check-fresh.sh --help, of which these are options. Needs
root, debootstrap, git and about 3 GB.
STEOF
}

options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    -h|--help) usage; exit 0 ;;
    --keep) options+=("$1") ;;
    --dir|--ucx-source) options+=("$1" "${2:?$1 needs a folder}"); shift ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
# What uses the MPI layer. Left out is what MPICH 4.0 fails at by itself: MPI_Put
# (mpi_plain.rma), and MPI_Finalize over UCX's tcp (mpix_matrix.7 and .8,
# host.p5_tcp, compat_mpich.only_host, st_hpe.only_host).
[ $# -gt 0 ] ||
    set -- -- "program/"{compat_[!m],compat_mpis,mpi_steps,mpi4py}'*' \
        "program/compat_mpich."{'[!o]*',only,only_direct} \
        "program/mpix_"{'[!m]*','m[!a]*','match*','matrix.[!78]'} \
        "program/st_h"{'[!p]*',pe,pe.{'[!o]*',only,only_direct}} \
        "program/"{st_ri,st_win,st_readme,st_faces,st_pingpong}'*' \
        "program/"bench.{'*_hpe',cg.,life.}'*' \
        "program/"{host.,direct.}{'[chmt]',p5.,stream}'*' program/host.p.2 \
        "program/"{host.p5_shm,direct.faces,few_entries.,rails.}'*'
export ST_MPI=mpich
exec "$(dirname "${BASH_SOURCE[0]}")/check-fresh.sh" --only run-tests \
    "${options[@]}" "$@"
