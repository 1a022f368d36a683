/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies into memory that a GPU looks into meanwhile. */
#ifndef MRD_NCCL_COPY_H
#define MRD_NCCL_COPY_H

#include <stddef.h>

/*
 * Lines of NCCL's protocols LL and LL128 end in a flag: LL's are 8 bytes, of which 4 are the flag,
 * LL128's 128 bytes, the last 8. Whoever sees the flag takes the data for there. So bytes are
 * stored upwards, 8 at a time, and the last 8 of each 128 after the other 120. `to` is a multiple of 8,
 * or no lines are in it.
 */
void copy_lines(void *to, const void *from, size_t len);

#endif
