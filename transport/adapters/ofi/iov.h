/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of buffers.
 */
#ifndef MRD_OFI_IOV_H
#define MRD_OFI_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Copies between a list and memory, `offset` bytes into the list. Returns how many bytes. */
size_t mrd_ofi_iov_read(const struct iovec *iov, uint32_t num, uint64_t offset, void *to,
                        size_t len);
size_t mrd_ofi_iov_write(const struct iovec *iov, uint32_t num, uint64_t offset, const void *from,
                         size_t len);
uint64_t mrd_ofi_iov_bytes(const struct iovec *iov, size_t num);

#endif
