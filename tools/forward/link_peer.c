/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that a link talks to. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tools/forward/link_state.h"

static void draw_session(struct link_peer *peer)
{
    do {
        if (getrandom(&peer->own, sizeof(peer->own), 0) != sizeof(peer->own))
            peer->own++; /* not reached: getrandom(2) does not fail for so few bytes */
    } while (peer->own == 0);
}

static void learn_id(struct link_peer *peer)
{
    struct mrd_peer_attr attr;

    if (mrd_query_peer(peer->ah, &attr, sizeof(attr)) == 0)
        peer->id = attr.peer_id;
}

bool link_peer_is(struct link_peer *peer, uint32_t id)
{
    if (peer->id != id)
        learn_id(peer);
    return peer->id == id;
}

bool link_is_from(struct link_peer *peer, const struct mrd_wc *wc)
{
    return peer->qpn == wc->src_qp && link_peer_is(peer, wc->peer_id);
}

static struct link_peer *peer_add(struct link *link, struct mrd_ah *ah, uint32_t qpn,
                                  uint32_t session)
{
    struct link_peer *peer = ah ? calloc(1, sizeof(*peer)) : NULL;

    if (!peer) {
        int error = errno;

        if (ah)
            (void)mrd_destroy_ah(ah);
        errno = error;
        return NULL;
    }
    *peer = (struct link_peer){
        .ah = ah, .qpn = qpn, .session = session, .uses = 1, .next = link->peers};
    mrd_list_init(&peer->waiting);
    mrd_list_init(&peer->held);
    draw_session(peer);
    (void)mrd_query_ah(ah, peer->address, sizeof(peer->address));
    link->peers = peer;
    return peer;
}

struct link_peer *link_peer_open(struct link *link, const char *address)
{
    return peer_add(link, mrd_create_ah(link->pd, address), MRD_FIRST_QP_NUM, 0);
}

/* The spare descriptor serves for an answer when there are none for streams. */
static struct mrd_ah *ah_of(struct link *link, const struct mrd_wc *wc)
{
    struct mrd_ah *ah = mrd_create_ah_from_wc(link->pd, wc);
    int error = errno;

    if (ah || (error != EMFILE && error != ENFILE) || link->spare_fd < 0)
        return ah;
    close(link->spare_fd);
    ah = mrd_create_ah_from_wc(link->pd, wc);
    error = errno;
    link->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    errno = error;
    return ah;
}

struct link_peer *link_peer_of(struct link *link, const struct mrd_wc *wc, uint32_t session)
{
    struct link_peer *peer = link->peers;

    while (peer && !(peer->session == session && link_is_from(peer, wc)))
        peer = peer->next;
    if (peer) {
        peer->uses++;
        return peer;
    }
    peer = peer_add(link, ah_of(link, wc), wc->src_qp, session);
    if (peer)
        peer->id = wc->peer_id;
    return peer;
}

void link_renew(struct link *link, uint32_t id)
{
    for (struct link_peer *peer = link->peers; peer; peer = peer->next) {
        if (link_peer_is(peer, id))
            draw_session(peer);
    }
}

bool link_knows(const struct link *link, const struct mrd_wc *wc, uint32_t own)
{
    for (struct link_peer *peer = link->peers; peer; peer = peer->next) {
        if (peer->own == own && link_is_from(peer, wc))
            return true;
    }
    return false;
}

void link_peer_watch(struct link_peer *peer)
{
    if (!peer->watched)
        peer->watched = mrd_watch_peer(peer->ah, 1) == 0;
    learn_id(peer);
}

void link_peer_release(struct link *link, struct link_peer *peer)
{
    struct link_peer **at = &link->peers;

    assert(peer->uses > 0);
    if (--peer->uses > 0)
        return;
    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    if (peer->watched)
        (void)mrd_watch_peer(peer->ah, 0);
    (void)mrd_destroy_ah(peer->ah);
    free(peer);
}
