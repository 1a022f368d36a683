/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be found out about memory without the list of mappings, and how a check fails.
 *
 * msync() finds what is not mapped, and does nothing else. Whether memory can be read and written
 * is tried on its first and its last byte, so an inaccessible part in the middle goes unnoticed.
 */
#ifndef MRD_TRANSPORT_MEMORY_PROBE_H
#define MRD_TRANSPORT_MEMORY_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* mrd_memory_check() where nobody can be asked; length is not 0. */
int mrd_memory_probe(uintptr_t addr, size_t length, bool write);

/* Does reading this byte work? Nothing is read that the process could not read itself. */
bool mrd_memory_is_readable(uintptr_t at);

/* Returns -EFAULT with mrd_error_set(). */
int mrd_memory_fail(uintptr_t at, const char *why);

#endif
