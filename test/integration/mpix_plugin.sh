#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that knows nothing of MPI loads a shared object with MPI and this
# library in it.
# usage: mpix_plugin.sh local|global|python|late
# Needs builddir and ST_RUN in the environment, as run.sh sets them.
set -uo pipefail

dir=${builddir:?}/test/integration
object=$dir/.libs/mpix_plugin.so
case ${1:?usage: mpix_plugin.sh local|global|python|late} in
local|global) run=("$dir/mpix_load" "$1" "$object") ;;
python)
    run=(python3 -c
         'import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).plugin_main())'
         "$object")
    ;;
late)
    run=("$dir/mpix_late"
         "$builddir/contrib/openmpi/mpix_queue/.libs/libmpix_queue.so.0")
    ;;
*) echo "mpix_plugin.sh: no such way: $1" >&2; exit 2 ;;
esac
exec "$ST_RUN" mpirun -n 2 "${run[@]}"
