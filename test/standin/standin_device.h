/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_device.h - what ucs_gstream_device.h names, of a device that is a
 * stand-in: its memory is looked up for each access.
 */
#ifndef STANDIN_DEVICE_H_
#define STANDIN_DEVICE_H_

#define UCS_GSTREAM_FUNC static inline
#define UCS_GSTREAM_KERNEL static void
#define UCS_GSTREAM_THREAD() standin_thread()
#define UCS_GSTREAM_BLOCK() standin_block()
#define UCS_GSTREAM_LOAD(_address) standin_kernel_load(_address)
#define UCS_GSTREAM_STORE(_address, _value) \
    standin_kernel_store(_address, _value)
#define UCS_GSTREAM_ADD(_address, _value) standin_kernel_add(_address, _value)
#define UCS_GSTREAM_GET(_type, _address) \
    ({ _type _got; standin_kernel_get(&_got, _address, sizeof(_got)); _got; })
#define UCS_GSTREAM_PUT(_type, _address, _value) \
    ({ _type _put = (_value); \
       standin_kernel_put(_address, &_put, sizeof(_put)); })
#define UCS_GSTREAM_FENCE() __sync_synchronize()
#define UCS_GSTREAM_SYNC() standin_sync()
#define UCS_GSTREAM_PAUSE() standin_kernel_pause()

#endif
