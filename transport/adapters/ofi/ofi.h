/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libfabric provider "mrd": reliable datagram endpoints (FI_EP_RDM) over mrd's public API.
 *
 * Objects are libfabric's, one struct each: fabric, domain, endpoint, address vector (AV),
 * completion queue (CQ), counter, event queue (EQ), memory region (MR), poll set. An endpoint has a
 * context of mrd of its own, and so an address; everything else belongs to a domain.
 *
 * Files, from the top. A file calls none above it: tests/unit/floors.txt.
 *
 *   prov.c fabric.c ep.c cm.c context.c  what libfabric opens: fabrics, domains, endpoints
 *   send.c recv.c rma.c atomic.c  what endpoints post by; they alone make progress by themselves
 *   thread.c progress.c  completions, messages and events of endpoints, and who takes them
 *   atomic_target.c apply.c  atomics for peers
 *   remote.c key.c keys.c  remote memory, and the keys that peers name theirs by
 *   report.c errors.c  what the application is told of its operations
 *   match.c pull.c rx_end.c  messages meet receives: queue.c index.c rx.c
 *   transfer.c message.c op.c iov.c  operations, by work requests; wire.h  what messages say
 *   peer.c hint.c  peers of an endpoint, and what to try if one is not reached
 *   mr.c poll.c cq.c cntr.c av.c eq.c  regions, poll sets, queues, counters, addresses
 *   wait.c    what sleeps: descriptors
 *   info.c check.c ends.c iface.c links.c addr.c  getinfo
 *   params.c log.c nosys.c  parameters, the log, operations that there are not
 *
 * Locking: one mutex a domain, mrd_ofi_lock(); it covers all objects of the domain. EQs and fabrics
 * have their own. Functions named here expect the lock to be held unless they say otherwise.
 * Results: 0 or a count, or a negative FI_ error number.
 */
#ifndef MRD_OFI_H
#define MRD_OFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "core/list.h"
#include "mrd/mrd.h"
#include "transport/adapters/ofi/wire.h"

enum {
    MRD_OFI_RMA_IOV_MAX = 8, /* remote ranges of an RMA operation */
    MRD_OFI_HEAD_BYTES = 40, /* before each message: wire.h */
    MRD_OFI_INJECT_BYTES = MRD_INLINE_BYTES_MAX - MRD_OFI_HEAD_BYTES,
    MRD_OFI_QUEUE = 1024, /* operations of a queue by default, each way */
    MRD_OFI_QUEUE_MAX = 1 << 16,
    MRD_OFI_CQ = 1024, /* entries of a completion queue by default */
};

#endif
