/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a message follow from (seed, message), so a receiver knows what it should hold. */
#ifndef MRD_TESTS_SUPPORT_PAYLOAD_H
#define MRD_TESTS_SUPPORT_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void payload_fill(uint8_t *buf, size_t len, uint64_t seed, uint64_t message);
/* Index of the first wrong byte; len: all are right. */
size_t payload_mismatch(const uint8_t *buf, size_t len, uint64_t seed, uint64_t message);
/* The same for a message of which only parts may have arrived: a byte may also be `blank`. */
size_t payload_mismatch_partial(const uint8_t *buf, size_t len, uint64_t seed, uint64_t message,
                                uint8_t blank);
/* Are all bytes `value`? */
bool payload_is_blank(const uint8_t *buf, size_t len, uint8_t value);

#endif
