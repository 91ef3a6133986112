#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A ring of ranks in Python, with mpi4py, on a host stream.

Each rank adds one to what came from the left and sends it to the right, a
hundred times; the host enqueues everything and waits once.

    contrib/ucx-st-run mpirun -n 4 /usr/bin/python3 examples/st_ring.py

Debian's mpi4py (package python3-mpi4py) is for Debian's python3, which need not be
the first one in PATH.
"""
import ctypes
import sys

# Before mpi4py, which is to call MPI through it
lib = ctypes.CDLL("libmpix_queue.so.0", mode=ctypes.RTLD_GLOBAL)
try:
    from mpi4py import MPI
except ImportError:
    sys.exit(f"{sys.executable} has no mpi4py: Debian's package python3-mpi4py "
             "is for /usr/bin/python3")

STEPS = 100
HOST = 0  # MPIX_QUEUE_HOST


def call(name, *args):
    """Calls a function of the library; its error becomes an exception."""
    code = getattr(lib, name)(*args)
    if code != MPI.SUCCESS:
        raise MPI.Exception(code)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def add_one(_):
    """A kernel: runs in the stream's thread."""
    out[0] = came[0] + 1


comm = MPI.COMM_WORLD
comm.Set_errhandler(MPI.ERRORS_RETURN)
rank, size = comm.rank, comm.size
out = memoryview(bytearray(8)).cast("q")
came = memoryview(bytearray(8)).cast("q")

stream, queue = ctypes.c_void_p(), ctypes.c_void_p()
call("MPIX_Host_stream_create", ctypes.byref(stream))
call("MPIX_Queue_init", HOST, stream, ctypes.byref(queue))

requests = [comm.Recv_init(came, (rank - 1) % size, tag=0),
            comm.Send_init(out, (rank + 1) % size, tag=0)]
# The handles of MPI behind mpi4py's objects
handle = ctypes.c_void_p if MPI._sizeof(MPI.Request) == 8 else ctypes.c_int
both = (handle * 2)(*[handle.from_address(MPI._addressof(r)).value
                      for r in requests])
call("MPIX_Matchall", 2, both, None)

for _ in range(STEPS):
    call("MPIX_Host_stream_launch", stream, add_one, None)
    call("MPIX_Enqueue_startall", queue, 2, both)
    call("MPIX_Enqueue_waitall", queue, 2, both)
call("MPIX_Queue_wait", queue)
call("MPIX_Host_stream_synchronize", stream)

print(f"rank {rank}: {came[0]}")
assert came[0] == STEPS
for request in requests:
    request.Free()
call("MPIX_Queue_free", ctypes.byref(queue))
call("MPIX_Host_stream_free", ctypes.byref(stream))
