#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program that is written in Fortran, if there is one.
# usage: fortran.sh RANKS PROGRAM
# shellcheck disable=SC2154 # test/run.py sets these
set -uo pipefail

if [ ! -x "$builddir/$2" ]; then
    echo "skipped: built without Fortran"
    exit 77
fi
exec "$ST_RUN" -q mpirun -n "$1" "$2"
