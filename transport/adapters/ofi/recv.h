/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the application posts receives by.
 */
#ifndef MRD_OFI_RECV_H
#define MRD_OFI_RECV_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

ssize_t mrd_ofi_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
                     void *context);
ssize_t mrd_ofi_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                      fi_addr_t src, void *context);
ssize_t mrd_ofi_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags);
ssize_t mrd_ofi_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
                      uint64_t tag, uint64_t ignore, void *context);
ssize_t mrd_ofi_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                       fi_addr_t src, uint64_t tag, uint64_t ignore, void *context);
ssize_t mrd_ofi_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags);

#endif
