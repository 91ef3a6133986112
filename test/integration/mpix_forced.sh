#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A binding that is asked for and cannot be had is refused, and the message says
# why. So does that of an error that ends the job; and beside a text there is no
# line of UCX.
# usage: mpix_forced.sh
# Needs builddir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

# Usage: refused BINDING REGEX [VARIABLE=VALUE...]
refused()
{
    local binding=$1 regex=$2 out
    shift 2
    if out=$(env "$@" MPIX_QUEUE_BINDING="$binding" "$ST_RUN" -q mpirun -n 1 \
             "${builddir:?}/test/integration/mpix_comms" 2>&1); then
        echo "mpix_forced.sh: $binding is accepted" >&2
        exit 1
    fi
    grep -q "MPIX_Queue_init: $regex" <<<"$out" || {
        echo "$out" >&2
        echo "mpix_forced.sh: no message \"$regex\" for $binding" >&2
        exit 1
    }
}

# The text is this library's: OpenMPI 4.1 loses its own now and then.
fatal()
{
    local out regex="mpix_queue: rank 0: error: MPIX_Enqueue_recv: "
    if out=$(env MPIX_QUEUE_THREAD_MULTIPLE=n "$ST_RUN" mpirun -n 1 \
             "${builddir:?}/test/integration/compat_comm" 2>&1); then
        echo "mpix_forced.sh: the job did not end" >&2
        exit 1
    fi
    grep -q "^$regex" <<<"$out" || {
        echo "$out" >&2
        echo "mpix_forced.sh: no text \"$regex\"" >&2
        exit 1
    }
}

# Refusals, which name requests.
quiet()
{
    local out
    out=$("$ST_RUN" mpirun -n 1 "${builddir:?}/test/integration/mpix_once" \
          refused 2>&1) || exit 1
    ! grep "UCX  ERROR.* operation 0x" <<<"$out" || {
        echo "mpix_forced.sh: a line of UCX beside a text" >&2
        exit 1
    }
}

fatal
quiet
refused ucx "MPI does not run over pml/ucx" OMPI_MCA_pml=ob1
refused other "MPIX_QUEUE_BINDING is none of ucx, mpi and auto"
