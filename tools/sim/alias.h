/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A long buffer whose bytes are few: the same pages of memory again and again.
 *
 * Experiments move gigabytes that nobody reads. Where all of them are the same 64 KiB, copying and
 * hashing them does not push what is being measured out of the caches.
 */
#ifndef SIMX_ALIAS_H
#define SIMX_ALIAS_H

#include <stddef.h>

/* At least `bytes` long, zeroed; NULL: no memory. */
void *simx_alias_alloc(size_t bytes);
/* With the same `bytes`; NULL is allowed. */
void simx_alias_free(void *buffer, size_t bytes);

#endif
