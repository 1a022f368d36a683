/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/recv.h"

#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/match.h"
#include "transport/adapters/ofi/peer.h"
#include "transport/adapters/ofi/progress.h"
#include "transport/adapters/ofi/queue.h"
#include "transport/adapters/ofi/rx.h"
#include "transport/adapters/ofi/wire.h"

struct receive {
    const struct iovec *iov;
    size_t num_iov;
    fi_addr_t src;
    uint64_t tag, ignore;
    bool tagged;
    void *context;
    uint64_t flags;
};

static ssize_t fill(struct mrd_ofi_ep *ep, const struct receive *r, struct mrd_ofi_rx *rx)
{
    rx->context = r->context;
    rx->flags = r->flags;
    rx->tagged = r->tagged;
    rx->tag = r->tag;
    rx->ignore = r->ignore;
    if (mrd_ofi_rx_set_iov(&ep->rx.pool, rx, r->iov, r->num_iov))
        return -FI_ENOMEM;
    if (!(ep->info->caps & FI_DIRECTED_RECV) || r->src == FI_ADDR_UNSPEC)
        return 0;
    return mrd_ofi_peer_get(ep, r->src, &rx->from);
}

/* It gets a message that is there, or waits for one. */
static int match(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx)
{
    struct mrd_ofi_unexpected *u = mrd_ofi_match_unexpected(ep, rx);

    /* Earlier failures of the peer do not apply to this receive; what it sent before them does. */
    if (!u && rx->from && rx->from->heard && mrd_ofi_take_events(ep))
        u = mrd_ofi_match_unexpected(ep, rx);
    return mrd_ofi_match_receive(ep, rx, u);
}

static ssize_t post(struct mrd_ofi_ep *ep, const struct receive *r)
{
    struct mrd_ofi_rx *rx;
    ssize_t error;

    if (!ep->enabled)
        return -FI_EOPBADSTATE;
    if (r->num_iov > MRD_OFI_IOV_MAX || (r->flags & FI_MULTI_RECV && r->num_iov != 1))
        return -FI_EINVAL;
    rx = mrd_ofi_rx_alloc(&ep->rx.pool);
    if (!rx)
        return -FI_ENOMEM;
    error = fill(ep, r, rx);
    if (!error && r->flags & FI_CLAIM)
        error = mrd_ofi_match_claimed(ep, rx, r->context);
    else if (!error)
        error = match(ep, rx);
    if (error)
        mrd_ofi_rx_release(&ep->rx.pool, rx);
    return error;
}

static ssize_t receive(struct fid_ep *fid, const struct receive *r)
{
    struct mrd_ofi_ep *ep = mrd_container_of(fid, struct mrd_ofi_ep, fid);
    ssize_t result;

    mrd_ofi_lock(ep->domain);
    result = post(ep, r);
    mrd_ofi_progress_end_turn(ep);
    mrd_ofi_unlock(ep->domain);
    return result;
}

/* The flags of a call that names none. */
static uint64_t usual_flags(struct fid_ep *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_ep, fid)->rx.flags;
}

/* Those of a call that names some: without selective completion all are reported. */
static uint64_t named_flags(struct fid_ep *fid, uint64_t flags)
{
    return flags |
           (mrd_container_of(fid, struct mrd_ofi_ep, fid)->rx.selective ? 0 : FI_COMPLETION);
}

/* ------------------------------------------------------------------------------------- untagged */

ssize_t mrd_ofi_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                      fi_addr_t src, void *context)
{
    (void)desc;
    return receive(fid, &(struct receive){.iov = iov,
                                          .num_iov = count,
                                          .src = src,
                                          .context = context,
                                          .flags = usual_flags(fid)});
}

ssize_t mrd_ofi_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
                     void *context)
{
    struct iovec iov = {buf, len};

    return mrd_ofi_recvv(fid, &iov, &desc, 1, src, context);
}

ssize_t mrd_ofi_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
    if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))
        return -FI_EBADFLAGS; /* only tagged messages are searched for */
    return receive(fid, &(struct receive){.iov = msg->msg_iov,
                                          .num_iov = msg->iov_count,
                                          .src = msg->addr,
                                          .context = msg->context,
                                          .flags = named_flags(fid, flags)});
}

/* --------------------------------------------------------------------------------------- tagged */

ssize_t mrd_ofi_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
                       fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
    (void)desc;
    return receive(fid, &(struct receive){.iov = iov,
                                          .num_iov = count,
                                          .src = src,
                                          .tag = tag,
                                          .ignore = ignore,
                                          .tagged = true,
                                          .context = context,
                                          .flags = usual_flags(fid) & ~FI_MULTI_RECV});
}

ssize_t mrd_ofi_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
                      uint64_t tag, uint64_t ignore, void *context)
{
    struct iovec iov = {buf, len};

    return mrd_ofi_trecvv(fid, &iov, &desc, 1, src, tag, ignore, context);
}

static ssize_t peek_or_discard(struct mrd_ofi_ep *ep, const struct fi_msg_tagged *msg,
                               uint64_t flags)
{
    ssize_t result = -FI_EOPBADSTATE;

    mrd_ofi_lock(ep->domain);
    if (ep->enabled && !ep->rx.cq) {
        result = -FI_ENOCQ; /* what is found is told there */
    } else if (ep->enabled) {
        mrd_ofi_ep_progress(ep);
        result = flags & FI_PEEK ? mrd_ofi_match_peek(ep, msg, flags)
                                 : mrd_ofi_match_claimed(ep, NULL, msg->context);
        mrd_ofi_progress_end_turn(ep);
    }
    mrd_ofi_unlock(ep->domain);
    return result;
}

ssize_t mrd_ofi_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
    struct mrd_ofi_ep *ep = mrd_container_of(fid, struct mrd_ofi_ep, fid);

    if (flags & (FI_PEEK | FI_DISCARD))
        return peek_or_discard(ep, msg, flags);
    return receive(fid, &(struct receive){.iov = msg->msg_iov,
                                          .num_iov = msg->iov_count,
                                          .src = msg->addr,
                                          .tag = msg->tag,
                                          .ignore = msg->ignore,
                                          .tagged = true,
                                          .context = msg->context,
                                          .flags = named_flags(fid, flags) & ~FI_MULTI_RECV});
}
