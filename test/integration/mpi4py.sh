#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The example in Python, with the first interpreter that has mpi4py.
set -uo pipefail

for python in python3 /usr/bin/python3; do
    if "$python" -c 'import mpi4py' 2>/dev/null; then
        exec "$ST_RUN" -q mpirun -n 3 "$python" \
            "${srcdir:?}/examples/st_ring.py"
    fi
done
echo "mpi4py is not installed"
exit 77
