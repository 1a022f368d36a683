/* SPDX-License-Identifier: BSD-2-Clause */
/* The peers of an endpoint: by address, by fi_addr, and by the number that completions name. */
#ifndef MRD_OFI_PEER_H
#define MRD_OFI_PEER_H

#include "transport/adapters/ofi/addr.h"
#include "transport/adapters/ofi/keys.h"
#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_ep;
struct mrd_ofi_rx;

/* A context that messages go to or come from. */
struct mrd_ofi_peer {
    struct mrd_node by_addr; /* on a bucket of mrd_ofi_peers */
    union mrd_ofi_addr addr;
    struct mrd_ah *ah;
    char text[MRD_ADDRESS_MAX];
    fi_addr_t fi_addr;   /* as of... */
    uint32_t av_version; /* ...that state of the AV */
    /* While operations wait for an answer, mrd_ofi_op.answer_node, or receives for its messages, it
     * is watched. */
    struct mrd_node answers;
    struct mrd_node expected_node; /* on mrd_ofi_peers.expected */
    struct mrd_node receives;      /* for its messages only: mrd_ofi_rx.from_node, as posted */
    struct mrd_node heard_node;    /* on mrd_ofi_peers.heard */
    bool heard;                    /* a message came, or was acked */
    bool receives_ended;           /* when it was lost last: the application knows of that */
    bool watched;
    bool lost;                      /* and the user was told */
    struct mrd_node unwatched_node; /* on mrd_ofi_peers.unwatched: it could not be watched yet */
    struct mrd_ofi_keys keys;
};

/* What is remembered of a number that completions name a peer by. */
struct mrd_ofi_peer_id {
    uint32_t id;
    struct mrd_ofi_peer *peer;
};

struct mrd_ofi_peers {
    struct mrd_node *bucket;
    uint32_t num, num_buckets;
    struct mrd_ofi_peer **by_fi_addr; /* as of av_version; NULL: look it up */
    uint32_t num_by_fi_addr, av_version;
    struct mrd_ofi_peer_id *by_id; /* a power of two of slots; a newer one takes the place */
    uint32_t num_by_id;
    struct mrd_node unwatched; /* mrd_ofi_peer.unwatched_node */
    struct mrd_node expected;  /* mrd_ofi_peer.expected_node: receives wait for it, or did lately */
    struct mrd_node heard;     /* mrd_ofi_peer.heard_node: for the first time, and not noted yet */
    uint64_t swept_ns;         /* when those were looked through that did */
    uint32_t num_lost;         /* that the user was told of */
    bool hinted;               /* the user was told how to choose another interface */
};

int mrd_ofi_peers_init(struct mrd_ofi_ep *ep);
void mrd_ofi_peers_fini(struct mrd_ofi_ep *ep);
/*
 * Gets the peer of an fi_addr. 0; -FI_EINVAL: there is no such address, or it cannot be reached;
 * -FI_ENOMEM.
 */
int mrd_ofi_peer_get(struct mrd_ofi_ep *ep, fi_addr_t fi_addr, struct mrd_ofi_peer **peer);
/* The sender of a received message. NULL with errno: ENOENT: it is forgotten already; ENOMEM. */
struct mrd_ofi_peer *mrd_ofi_peer_of(struct mrd_ofi_ep *ep, uint32_t peer_id);
struct mrd_ofi_peer *mrd_ofi_peer_by_text(struct mrd_ofi_ep *ep, const char *text);
/* It does not answer: tells the user, once for each of a few peers. */
void mrd_ofi_peer_lost(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
/* Does anything wait for it? */
static inline bool mrd_ofi_peer_is_awaited(const struct mrd_ofi_peer *peer)
{
    return !mrd_list_empty(&peer->answers) || !mrd_list_empty(&peer->expected_node);
}

/*
 * A receive is posted that takes messages of this peer only. A peer that was heard of is watched
 * from then on: one that never was may have yet to start.
 */
void mrd_ofi_peer_expect(struct mrd_ofi_ep *ep, struct mrd_ofi_rx *rx);

/* Before operations wait for the peer, and after events so far are dealt with. */
void mrd_ofi_peer_watch(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
/* Ends that, unless something waits for it. */
void mrd_ofi_peer_watch_no_more(struct mrd_ofi_peer *peer);
/* Also if it seems to be watched already: the event that ended that may be lost. */
void mrd_ofi_peer_watch_again(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
/* Watches those that are to be, and from time to time no more those that nothing waits for. */
void mrd_ofi_peers_watch(struct mrd_ofi_ep *ep);

/* A message of it came, or it acked one: mrd_ofi_peers_note_heard() notes that, later. */
void mrd_ofi_peer_heard_first(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);
static inline void mrd_ofi_peer_heard(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer)
{
    if (!peer->heard)
        mrd_ofi_peer_heard_first(ep, peer);
}

/* Notes of which peers something was heard. Events so far are dealt with. */
void mrd_ofi_peers_note_heard(struct mrd_ofi_ep *ep);

/* Peers that something waits for: calls `f` for each. */
void mrd_ofi_peers_each_awaited(struct mrd_ofi_ep *ep,
                                void (*f)(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer));
/* Its fi_addr now; FI_ADDR_NOTAVAIL: it is not in the AV. */
fi_addr_t mrd_ofi_peer_fi_addr(const struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer);

#endif
