/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_emu_none.c - a build without the emulated card.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_emu.h"


const uct_cxi_trig_prov_t *const uct_cxi_trig_emu = NULL;
