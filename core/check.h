/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check of long payloads. wire.c computes that of short ones inline: a call costs as much.
 */
#ifndef MRD_CORE_CHECK_H
#define MRD_CORE_CHECK_H

#include <stddef.h>
#include <stdint.h>

/* Returns the low 32 bits of XXH3-64. */
uint32_t mrd_check_long(const void *data, size_t len);

#endif
