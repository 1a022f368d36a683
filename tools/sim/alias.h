/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A long buffer that maps the same few pages of memory again and again.
 *
 * Experiments move gigabytes that no code reads. If all of them are the same 64 KiB, copying and
 * hashing them does not evict the measured data from the caches.
 */
#ifndef SIMX_ALIAS_H
#define SIMX_ALIAS_H

#include <stddef.h>

/* Returns at least `bytes` zeroed bytes, or NULL without memory. */
void *simx_alias_alloc(size_t bytes);
/* Takes the same `bytes`; NULL is allowed. */
void simx_alias_free(void *buffer, size_t bytes);

#endif
