/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Zeroed memory of which only the pages that are touched are taken.
 *
 * A context's tables have room for all peers and messages it may ever have: most of their pages are
 * never touched. calloc() maps large blocks only until the first of them is freed. From then on it
 * takes them from the heap and clears them, and clearing touches every page. So large blocks are
 * mapped here, and unmapped when they are released.
 */
#ifndef MRD_TRANSPORT_ZEROED_H
#define MRD_TRANSPORT_ZEROED_H

#include <stddef.h>

enum { MRD_ZEROED_MAP_BYTES = 128 << 10 }; /* blocks from here on are mapped */

/* Zeroed memory for any type; NULL: there is none. */
void *mrd_zeroed_alloc(size_t bytes);
/* `bytes` as they were allocated; `ptr` may be NULL. */
void mrd_zeroed_release(void *ptr, size_t bytes);

#endif
