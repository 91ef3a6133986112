#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# compat_win_hpe over windows that MPI makes of its own messages, without UCX:
# OpenMPI's osc/pt2pt, which its versions until 4.1 have.
# Needs builddir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

ompi_info 2>/dev/null | grep -q 'MCA osc: pt2pt ' ||
    { echo "skipped: this MPI has no osc/pt2pt"; exit 77; }
export OMPI_MCA_osc=pt2pt
exec "$ST_RUN" -q mpirun -n 2 "${builddir:?}/test/integration/compat_win_hpe"
