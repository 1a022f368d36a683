/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serial number arithmetic (RFC 1982): compares numbers that wrap, if less than half the
 * space apart.
 */
#ifndef MRD_CORE_SEQ_H
#define MRD_CORE_SEQ_H

#include <stdbool.h>
#include <stdint.h>

static inline bool mrd_seq_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static inline bool mrd_seq16_before(uint16_t a, uint16_t b)
{
    return (int16_t)(uint16_t)(a - b) < 0;
}

#endif
