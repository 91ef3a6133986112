#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank of three dies during a match: the other two get an error.
# usage: mpix_death.sh exit|kill
# Needs builddir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

fail()
{
    echo "mpix_death.sh: $*" >&2
    exit 1
}

# In two steps: a grep that has found it ends mpirun by a signal
version=$(mpirun --version 2>/dev/null)
if grep -q HYDRA <<<"$version"; then
    echo "skipped: MPICH's mpirun ends all ranks when one dies"
    exit 77
fi

# Without recovery mpirun would kill the ranks that are to be looked at. With it
# mpirun's status tells nothing: the ranks' own lines count.
out=$("$ST_RUN" -q mpirun --enable-recovery -n 3 \
      "${builddir:?}/test/integration/mpix_death" \
      "${1:?usage: mpix_death.sh exit|kill}" 2>&1)
echo "$out"
for rank in 0 1; do
    grep -q "^mpix_death: rank $rank survives, 0 checks failed\$" <<<"$out" ||
        fail "rank $rank did not get its error"
done
