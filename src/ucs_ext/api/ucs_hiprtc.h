/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_hiprtc.h
 * hipRTC: kernels for a device that the build had no code object for. The
 * library and the benchmarks have it.
 */
#ifndef UCS_HIPRTC_H_
#define UCS_HIPRTC_H_

#include <stddef.h>

/**
 * Compile kernels for the caller's current device.
 *
 * @param [in]  hip    HIP's library, by its name or path.
 * @param [in]  source Text that includes nothing.
 * @param [out] reason Why it cannot, but where memory is short.
 * @param [in]  size   Bytes of @a reason.
 *
 * @return The code, which is the caller's to free(), or NULL.
 */
void *ucs_hiprtc_compile(const char *hip, const char *source, char *reason,
                         size_t size);

#endif
