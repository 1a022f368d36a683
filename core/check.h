/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of long payloads. Those that are short, wire.c computes inline: a call costs as much as
 * the hash.
 */
#ifndef MRD_CORE_CHECK_H
#define MRD_CORE_CHECK_H

#include <stddef.h>
#include <stdint.h>

/* The low 32 bits of XXH3-64. */
uint32_t mrd_check_long(const void *data, size_t len);

#endif
