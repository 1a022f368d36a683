/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of a message, from (seed, message) alone: any receiver can tell what a message should hold.
 */
#ifndef MRD_TESTS_SUPPORT_PAYLOAD_H
#define MRD_TESTS_SUPPORT_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void payload_fill(uint8_t *buf, size_t len, uint64_t seed, uint64_t message);
/* The first byte that is not what it should be; len: all are right. */
size_t payload_mismatch(const uint8_t *buf, size_t len, uint64_t seed, uint64_t message);
/* Likewise, where a byte may also still be `blank`: a message that came in part. */
size_t payload_mismatch_partial(const uint8_t *buf, size_t len, uint64_t seed, uint64_t message,
                                uint8_t blank);
/* Are all bytes `value`? */
bool payload_is_blank(const uint8_t *buf, size_t len, uint8_t value);

#endif
