#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs of docs/mpi.md give the same result, from that of MPI alone to that
# of streams.
set -uo pipefail

first=
for program in examples/mpi_steps/step?; do
    [ -x "$program" ] || continue
    result=$("$ST_RUN" -q mpirun -n 3 "$program") || exit 1
    echo "$program: $result"
    : "${first:=$result}"
    [ "$result" = "$first" ] || { echo "not as the first one"; exit 1; }
done
[ -n "$first" ]
