/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is memory there, before it is registered? What becomes of it later is the application's business.
 *
 * mrd_memory_open() once for each context, not in a simulation; mrd_memory_check() for each region.
 * Neither the bytes of a region count nor what else the process maps: the kernel is asked about the
 * first MRD_MEMORY_PARTS_MAX mappings that make up the region and about its end. One that cannot
 * answer (Linux before 6.11) is asked whether anything is unmapped, and the first and the last byte
 * are tried: see memory_probe.h.
 */
#ifndef MRD_TRANSPORT_MEMORY_H
#define MRD_TRANSPORT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MRD_MEMORY_PARTS_MAX = 8 };

/*
 * Opens what is asked about the mappings of this process, not of those that it forks. Returns a
 * descriptor, which the caller closes; -1: this kernel cannot be asked.
 */
int mrd_memory_open(void);

/*
 * 0: all of it can be read, and with `write` written, as far as was looked. -EFAULT with
 * mrd_error_set(): it cannot. `fd`: of mrd_memory_open(), also -1.
 */
int mrd_memory_check(int fd, const void *addr, size_t length, bool write);

#endif
