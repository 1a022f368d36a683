/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is memory there, before it is registered? The kernel's list of the process's mappings is asked,
 * so the cost grows with the number of mappings and not with the bytes. What becomes of the memory
 * later is the application's business.
 */
#ifndef MRD_TRANSPORT_MEMORY_H
#define MRD_TRANSPORT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * 0: all of it can be read, and with `write` written. -EFAULT with mrd_error_set(): it cannot. 0
 * also where the system does not tell, as without /proc.
 */
int mrd_memory_check(const void *addr, size_t length, bool write);

#endif
