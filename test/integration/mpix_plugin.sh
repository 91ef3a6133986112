#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that knows nothing of MPI loads a shared object with MPI and this
# library in it.
# usage: mpix_plugin.sh local|global|python|late|passed
# Needs builddir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

dir=${builddir:?}/test/integration
library=$builddir/contrib/openmpi/mpix_queue/.libs/libmpix_queue.so.0
object=$dir/.libs/mpix_plugin.so
case ${1:?usage: mpix_plugin.sh local|global|python|late|passed} in
local|global) run=("$dir/mpix_load" "$1" "$object") ;;
python)
    run=(python3 -c
         'import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).plugin_main())'
         "$object")
    ;;
late) run=("$dir/mpix_late" "$library") ;;
passed)
    # The library comes after MPI and before libucp
    mpi=$(ldd "$dir/mpix_late" | awk '$1 ~ /^libmpi\.so/ { print $1 }')
    [ -n "$mpi" ] || { echo "skipped: the binding ucx is for OpenMPI"; exit 77; }
    run=(env "LD_PRELOAD=$mpi $library" "$dir/mpix_late" "$library" ucx)
    ;;
*) echo "mpix_plugin.sh: no such way: $1" >&2; exit 2 ;;
esac
exec "$ST_RUN" -q mpirun -n 2 "${run[@]}"
