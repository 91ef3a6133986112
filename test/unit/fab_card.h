/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_card.h - a stand-in for libfabric's provider cxi: the emulated card under
 * its name. The program's fi_getinfo(), fi_fabric() and fi_version() stand in
 * front of libfabric's.
 */
#ifndef FAB_CARD_H_
#define FAB_CARD_H_

#include <stdint.h>


/** What libfabric has. Where tests run on cxi itself, it is that at first. */
typedef enum fab_card {
    FAB_CARD_REAL,   /**< Its own */
    FAB_CARD_NONE,   /**< No such provider */
    FAB_CARD_CLOSED, /**< One that lists a card, and opens no domain */
    FAB_CARD_OPEN
} fab_card_t;


/** Replace it, and undo that. */
void fab_card_set(fab_card_t card);
void fab_card_reset(void);

/** With what code domains are refused, and of which device; NULL: of all. */
void fab_card_refuse(int code, const char *device);

/** With what code domains refuse counters; 0: they do not. */
void fab_card_refuse_counters(int code);

/** The service that devices tell of; 0: none is for this user. */
void fab_card_set_service(unsigned service);

/** What it can keep in order; 0: all that the emulated card can. */
void fab_card_set_orders(uint64_t orders);

/** The version of libfabric. */
void fab_card_set_version(uint32_t version);

/** What the domain was opened with last. */
uint32_t fab_card_domain_class(void);
uint32_t fab_card_tx_class(void);

#endif
