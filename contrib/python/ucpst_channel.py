#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Channels for coroutines: an end is awaited as asyncio's streams are.

    channel = Channel(worker, ep, number, end)
    await channel.send(array)
    length = await channel.recv(array)

Arrays are numpy's, or any others whose bytes are one behind the other and may be
written. As a program it runs two objects in two processes that add one to a
field in turn, and checks the field:

    contrib/ucx-st-run contrib/python/ucpst_channel.py
"""
import asyncio
import ctypes
import os
import socket
import sys
from ctypes import byref, c_size_t, c_uint, c_uint64, c_void_p

OK, INPROGRESS = 0, 1
PAUSE = 0.0005  # Seconds, of a worker that has nothing to do

ucp = ctypes.CDLL("libucp.so.0", mode=ctypes.RTLD_GLOBAL)
ucs = ctypes.CDLL("libucs.so.0", mode=ctypes.RTLD_GLOBAL)
lib = ctypes.CDLL("libucp_st.so.0")
ucs.ucs_status_string.restype = ctypes.c_char_p
CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_int8, c_size_t)


class CtxParams(ctypes.Structure):
    """ucp_st_channel_ctx_params_t, with the layout that is the default."""
    _fields_ = [("field_mask", c_uint64), ("ucp_worker", c_void_p),
                ("layout", c_uint * 13), ("st_worker", c_void_p)]


class Params(ctypes.Structure):
    """ucp_st_channel_params_t."""
    _fields_ = [("field_mask", c_uint64), ("ep", c_void_p), ("id", c_uint64),
                ("end", c_uint), ("peer", c_void_p)]


class Msg(ctypes.Structure):
    """ucp_st_channel_msg_t."""
    _fields_ = [("buffer", c_void_p), ("length", c_size_t), ("cb", CALLBACK),
                ("arg", c_void_p)]


class Error(Exception):
    """A status of UCX other than UCS_OK."""


def check(status):
    """Has an error of UCX be an exception."""
    status = ctypes.c_int8(status).value
    if status < 0:
        raise Error(ucs.ucs_status_string(ctypes.c_int8(status)).decode())
    return status


def ucp_params(mask, *values):
    """The first fields of a structure of UCP's, and room for the others."""
    return (c_uint64 * 64)(mask, *values)


class Worker:
    """A UCP worker with a context of channels. It has to be run."""

    def __init__(self):
        version = [c_uint(), c_uint(), c_uint()]
        ucp.ucp_get_version(*map(byref, version))
        self.ucp, self.handle, self.ctx = c_void_p(), c_void_p(), c_void_p()
        check(ucp.ucp_init_version(version[0], version[1], ucp_params(1, 1),
                                   None, byref(self.ucp)))
        check(ucp.ucp_worker_create(self.ucp, ucp_params(0),
                                    byref(self.handle)))
        params = CtxParams(field_mask=1, ucp_worker=self.handle)
        check(lib.ucp_st_channel_ctx_create(byref(params), byref(self.ctx)))
        self.waiting = {}  # What callbacks and UCP need, by its number
        self.count = 0
        self.callback = CALLBACK(self.done)

    def address(self):
        """For connect() of other processes."""
        address, length = c_void_p(), c_size_t()
        check(ucp.ucp_worker_get_address(self.handle, byref(address),
                                         byref(length)))
        text = ctypes.string_at(address, length.value)
        ucp.ucp_worker_release_address(self.handle, address)
        return text

    def connect(self, address):
        """An endpoint for channels."""
        place = ctypes.create_string_buffer(address, len(address))
        ep = c_void_p()
        check(ucp.ucp_ep_create(self.handle,
                                ucp_params(1, ctypes.addressof(place)),
                                byref(ep)))
        return ep

    async def run(self):
        """Makes progress until it is cancelled."""
        while True:
            some = ucp.ucp_worker_progress(self.handle)
            some += lib.ucp_st_channel_progress(self.ctx)
            await asyncio.sleep(0 if some else PAUSE)

    def done(self, number, status, length):
        """A callback of the library, from progress."""
        future, _ = self.waiting.pop(number)
        if future.cancelled():
            return
        try:
            check(status)
            future.set_result(length)
        except Error as error:
            future.set_exception(error)

    async def begin(self, func, channel, array, *more):
        """Gives a message to a channel, and waits for it."""
        view = memoryview(array).cast("B")
        place = (ctypes.c_char * len(view)).from_buffer(view)
        future = asyncio.get_running_loop().create_future()
        self.count += 1
        number = self.count
        msg = Msg(ctypes.addressof(place), len(view), self.callback, number)
        self.waiting[number] = (future, place)
        status = ctypes.c_int8(func(channel, byref(msg), *more)).value
        if status != INPROGRESS:
            del self.waiting[number]
            check(status)
            return None
        return await future

    def close(self):
        """Behind the ends of its channels. Endpoints go with the worker."""
        while lib.ucp_st_channel_ctx_destroy(self.ctx) != OK:
            ucp.ucp_worker_progress(self.handle)
        ucp.ucp_worker_destroy(self.handle)
        ucp.ucp_cleanup(self.ucp)


class Channel:
    """An end of a channel."""

    def __init__(self, worker, ep, number, end):
        params = Params(7, ep, number, end, None)
        self.worker, self.handle = worker, c_void_p()
        check(lib.ucp_st_channel_create(worker.ctx, byref(params),
                                        byref(self.handle)))

    async def send(self, array):
        """Returns when the array may be changed."""
        await self.worker.begin(lib.ucp_st_channel_send, self.handle, array)

    async def recv(self, array):
        """Returns the bytes that came."""
        length = c_size_t()
        came = await self.worker.begin(lib.ucp_st_channel_recv, self.handle,
                                       array, byref(length))
        return length.value if came is None else came

    def close(self):
        """What waits on it ends with an error."""
        check(lib.ucp_st_channel_destroy(self.handle))


async def play(worker, channel, end, other, steps=20):
    """Adds one to what came, and sends it back."""
    import numpy
    loop = asyncio.get_running_loop()
    field = numpy.zeros(1000)
    runner = asyncio.create_task(worker.run())
    for step in range(steps):
        if step % 2 == end:
            field += 1
            await channel.send(field)
        else:
            assert await channel.recv(field) == field.nbytes
    assert (field == steps).all(), field
    await loop.sock_sendall(other, b"over")
    await loop.sock_recv(other, 16)  # The last message has come
    runner.cancel()


def main():
    """Two processes, which tell each other their addresses."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("numpy is missing (skipped)")
        sys.exit(77)
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    end = 1 if child == 0 else 0
    worker = Worker()
    ends[end].send(worker.address())
    channel = Channel(worker, worker.connect(ends[end].recv(1 << 16)), 7, end)
    ends[end].setblocking(False)
    asyncio.run(play(worker, channel, end, ends[end]))
    channel.close()
    worker.close()
    if child != 0:
        _, status = os.waitpid(child, 0)
        sys.exit(status != 0)


if __name__ == "__main__":
    main()
