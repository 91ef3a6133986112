/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_device_kernels.h - the kernels of st_halo_device.cpp and of
 * st_length_device.cpp, which start messages themselves.
 *
 * UCS_GSTREAM_KERNEL is extern "C" __global__ void, and UCS_GSTREAM_GET(type,
 * address) and _PUT(type, address, value) are a load and a store: written so
 * the text runs in this library's tests, without a GPU, too. A program of your
 * own has pointers. Compilers that are not for a GPU see the arguments alone.
 */
#ifndef ST_DEVICE_KERNELS_H_
#define ST_DEVICE_KERNELS_H_

#include <ucp_st_device.h>

/* Numbers in memory of the GPU, from an address on */
#define DEVICE_GET(_from, _i) \
    UCS_GSTREAM_GET(double, (_from) + sizeof(double) * (_i))
#define DEVICE_PUT(_to, _i, _value) \
    UCS_GSTREAM_PUT(double, (_to) + sizeof(double) * (_i), _value)


/* A rank's part of a rod: its neighbours have what is left and right of it. All
 * addresses are of the GPU's memory. */
typedef struct halo_args {
    unsigned long long cells; /* So many numbers, */
    unsigned long long next;  /* which are to be these */
    unsigned long long out;   /* Two: what is sent to the left and right */
    unsigned long long in;    /* Two: what has come from there */
    unsigned long long count;
    unsigned long long error; /* A number; set if a message fails */
    ucp_st_device_op_t send[2];
} halo_args_t;

#ifdef UCS_GSTREAM_FUNC
/* Sends what the neighbours need as soon as it is packed, computes what needs
 * nothing of theirs meanwhile, and waits until it may pack again. */
UCS_GSTREAM_KERNEL halo_inner(halo_args_t args)
{
    unsigned thread = UCS_GSTREAM_RANK();
    unsigned failed = 0;
    unsigned long long i;

    if (thread < 2) {
        DEVICE_PUT(args.out, thread,
                   DEVICE_GET(args.cells, thread * (args.count - 1)));
    }
    for (i = 0; i < 2; ++i) {
        failed |= ucp_st_device_start(args.send[i], UCP_ST_DEVICE_BLOCK);
    }
    for (i = thread + 1; i < args.count - 1; i += UCS_GSTREAM_SIZE()) {
        DEVICE_PUT(args.next, i, (DEVICE_GET(args.cells, i - 1) +
                                  DEVICE_GET(args.cells, i + 1)) / 2);
    }
    for (i = 0; (i < 2) && !failed; ++i) {
        failed |= ucp_st_device_wait(args.send[i], UCP_ST_DEVICE_BLOCK);
    }
    if (failed && (thread == 0)) {
        DEVICE_PUT(args.error, 0, failed);
    }
}

/* Behind the stream's wait for both receives */
UCS_GSTREAM_KERNEL halo_outer(halo_args_t args)
{
    unsigned thread = UCS_GSTREAM_RANK();
    unsigned long long i;

    if (thread == 0) {
        DEVICE_PUT(args.next, 0, (DEVICE_GET(args.in, 0) +
                                  DEVICE_GET(args.cells, 1)) / 2);
        DEVICE_PUT(args.next, args.count - 1,
                   (DEVICE_GET(args.cells, args.count - 2) +
                    DEVICE_GET(args.in, 1)) / 2);
    }
    UCS_GSTREAM_SYNC();
    for (i = thread; i < args.count; i += UCS_GSTREAM_SIZE()) {
        DEVICE_PUT(args.cells, i, DEVICE_GET(args.next, i));
    }
}
#endif


/* Numbers of which those that are large are sent: how many, the GPU alone
 * knows. */
typedef struct length_args {
    unsigned long long numbers;
    unsigned long long count;
    unsigned long long message; /* Room for all of them */
    unsigned long long result;  /* Three numbers: what a call gave, how many
                                   numbers there were, and their sum */
    double             limit;
    ucp_st_device_op_t op;
} length_args_t;

#ifdef UCS_GSTREAM_FUNC
UCS_GSTREAM_KERNEL length_send(length_args_t args)
{
    unsigned long long found = 0;
    unsigned long long i;
    ucp_st_device_status_t status;

    if (UCS_GSTREAM_RANK() != 0) {
        return; /* One thread is enough here */
    }
    for (i = 0; i < args.count; ++i) {
        double number = DEVICE_GET(args.numbers, i);

        if (number > args.limit) {
            DEVICE_PUT(args.message, found, number);
            ++found;
        }
    }
    status = ucp_st_device_start_length(args.op, found * sizeof(double),
                                        UCP_ST_DEVICE_THREAD);
    if (status == UCP_ST_DEVICE_OK) {
        status = ucp_st_device_wait(args.op, UCP_ST_DEVICE_THREAD);
    }
    DEVICE_PUT(args.result, 0, status);
    DEVICE_PUT(args.result, 1, (double)found);
}

/* Behind the stream's wait for the message */
UCS_GSTREAM_KERNEL length_receive(length_args_t args)
{
    unsigned long long length = 0;
    double sum                = 0;
    unsigned long long i;
    ucp_st_device_status_t status;

    if (UCS_GSTREAM_RANK() != 0) {
        return;
    }
    status = ucp_st_device_length(args.op, &length);
    for (i = 0; i < length / sizeof(double); ++i) {
        sum += DEVICE_GET(args.message, i);
    }
    DEVICE_PUT(args.result, 0, status);
    DEVICE_PUT(args.result, 1, (double)(length / sizeof(double)));
    DEVICE_PUT(args.result, 2, sum);
}
#endif

#endif
