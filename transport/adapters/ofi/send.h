/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the application sends messages by.
 */
#ifndef MRD_OFI_SEND_H
#define MRD_OFI_SEND_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

extern struct fi_ops_msg mrd_ofi_msg_ops;
extern struct fi_ops_tagged mrd_ofi_tagged_ops;

#endif
