/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_emu.h - the emulated card, an object of this library that a build
 * may leave out.
 */
#ifndef UCT_CXI_TRIG_EMU_H_
#define UCT_CXI_TRIG_EMU_H_

#include "cxi_trig_prov.h"

/** libfabric's name of the provider, and its number in addresses. */
#define UCT_CXI_TRIG_EMU_NAME "cxiemu"
#define UCT_CXI_TRIG_EMU_ID   4

/** The provider, whose entry points need no loader and no environment; NULL in
 *  a build that has left it out (configure --without-cxiemu). */
extern const uct_cxi_trig_prov_t *const uct_cxi_trig_emu;

#endif
