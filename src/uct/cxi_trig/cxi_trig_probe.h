/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_probe.h - whether domains that a provider describes open.
 */
#ifndef UCT_CXI_TRIG_PROBE_H_
#define UCT_CXI_TRIG_PROBE_H_

#include "cxi_trig_prov.h"


/**
 * Open each domain of the list and close it again; the list loses those that do
 * not open. @a fault, of @a max bytes: why the first of them does not, and what
 * to do; empty if all open.
 */
void uct_cxi_trig_probe(const uct_cxi_trig_prov_t *prov, struct fi_info **list,
                        char *fault, size_t max);

#endif
