/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The turn of a caller: it begins, the receive queue was empty, what is due; and news of the mover.
 */
#include "core/engine/answer.h"
#include "core/engine/message.h"
#include "core/engine/peer_state.h"
#include "core/engine/rx_ack.h"
#include "core/engine/timer.h"

void mrd_engine_begin(struct mrd_engine *e, uint64_t now_ns)
{
    /* Deadlines as they were before the call changes anything: they may prove a stall. */
    if (now_ns > e->timers.touched_ns + MRD_STALL_NS)
        mrd_timer_settle(e);
    mrd_clock_set(&e->clock, now_ns);
    e->calls.seq++;
}

void mrd_engine_drained(struct mrd_engine *e, uint64_t now_ns)
{
    struct mrd_node *n;

    mrd_clock_set(&e->clock, now_ns);
    mrd_timer_look(e);
    mrd_clock_empty(&e->clock);
    mrd_share_empty(&e->share);
    while ((n = mrd_list_pop(&e->turns.suspects))) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, suspect);

        if (peer->tx)
            mrd_rx_judge_losses(e, peer);
    }
}

void mrd_engine_expire(struct mrd_engine *e, uint64_t now_ns)
{
    mrd_clock_set(&e->clock, now_ns);
    mrd_timer_fire_due(e);
    mrd_peers_sweep(e);
}

uint64_t mrd_engine_deadline(struct mrd_engine *e)
{
    uint64_t at_ns, answers_ns = mrd_answer_due_ns(e);

    if (!mrd_list_empty(&e->turns.ready) || !answers_ns || e->turns.wants_path ||
        e->turns.wants_route)
        return 0;
    at_ns = mrd_timer_next_ns(e);
    return answers_ns < at_ns ? answers_ns : at_ns;
}

void mrd_engine_farewell(struct mrd_engine *e, uint64_t now_ns)
{
    mrd_clock_set(&e->clock, now_ns);
    e->lives.closing = true;
    for (struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);

        if (!peer->rx || e->clock.now_ns - peer->heard_ns > MRD_FAREWELL_NS)
            continue;
        peer->rx->rcv.now = true;
        mrd_tx_ready(e, peer);
    }
}

bool mrd_engine_wants_path(struct mrd_engine *e, uint32_t *peer_id, uint32_t *index)
{
    if (!e->turns.wants_path)
        return false;
    /* Who wants nothing goes to the end: the next call need not look at it. */
    for (uint32_t looks = e->peers.entries.used; looks; looks--) {
        struct mrd_node *n = e->peers.active.next;
        struct mrd_peer *p = mrd_container_of(n, struct mrd_peer, node);

        for (uint32_t i = 0; p->tx && i < p->tx->paths.num; i++) {
            if (!p->tx->paths.path[i].wants_ev)
                continue;
            *peer_id = p->id;
            *index = i;
            return true;
        }
        mrd_list_remove(n);
        mrd_list_append(&e->peers.active, n);
    }
    e->turns.wants_path = false;
    return false;
}

void mrd_engine_give_path(struct mrd_engine *e, uint32_t peer_id, uint32_t index, int path,
                          uint64_t now_ns)
{
    struct mrd_peer *p = mrd_peer_by_id(&e->peers, peer_id);

    mrd_clock_set(&e->clock, now_ns);
    if (!p || !p->tx || index >= p->tx->paths.num)
        return;
    if (path < 0) {
        mrd_path_keep(&p->tx->paths, index, e->clock.now_ns);
        p->tx->paths.path[index].wants_ev = false;
        return;
    }
    e->stats.paths_replaced++;
    mrd_path_replace(&p->tx->paths, index, (uint16_t)path);
}

bool mrd_engine_wants_route(struct mrd_engine *e, uint32_t *peer_id, struct mrd_addr *to)
{
    while (e->turns.wants_route) {
        const struct mrd_peer *p =
            mrd_peer_by_id(&e->peers, e->turns.route_of[--e->turns.wants_route]);

        if (!p) /* it went meanwhile */
            continue;
        *peer_id = p->id;
        *to = p->addr;
        return true;
    }
    return false;
}

void mrd_engine_give_route(struct mrd_engine *e, uint32_t peer_id, uint32_t payload_bytes,
                           bool one_way)
{
    struct mrd_peer *p = mrd_peer_by_id(&e->peers, peer_id);

    if (!p)
        return;
    p->one_way = one_way;
    if (payload_bytes > e->config.mover.payload_bytes)
        payload_bytes = e->config.mover.payload_bytes;
    if (payload_bytes)
        mrd_send_state_limit_payload(e, p, payload_bytes);
}

bool mrd_engine_other_source(struct mrd_engine *e, struct mrd_addr *to)
{
    while (e->turns.wants_source) {
        const struct mrd_peer *p =
            mrd_peer_by_id(&e->peers, e->turns.sourceless[--e->turns.wants_source]);

        if (!p) /* it went meanwhile */
            continue;
        *to = p->addr;
        return true;
    }
    return false;
}

void mrd_engine_tx_done(struct mrd_engine *e, uint64_t cookie, uint64_t now_ns)
{
    mrd_clock_set(&e->clock, now_ns);
    mrd_msg_end_read(e, (struct mrd_msg *)(uintptr_t)cookie);
}

void mrd_engine_tx_too_big(struct mrd_engine *e, const struct mrd_addr *to, uint32_t payload_bytes)
{
    struct mrd_peer *peer = mrd_peer_find(&e->peers, to);

    payload_bytes &= ~63u;
    if (peer && payload_bytes >= 64)
        mrd_send_state_too_big(e, peer, payload_bytes);
}

bool mrd_engine_tx_refused(struct mrd_engine *e, const struct mrd_addr *to, uint64_t now_ns)
{
    struct mrd_peer *peer = mrd_peer_find(&e->peers, to);
    struct mrd_tx_contact *contact;

    if (!peer || !peer->tx || mrd_peer_was_heard(peer))
        return false;
    mrd_clock_set(&e->clock, now_ns);
    e->stats.rx_nobody++;
    contact = &peer->tx->contact;
    if (!contact->refused)
        contact->refused_ns = now_ns;
    if (contact->refused < MRD_REFUSED_MIN)
        contact->refused++;
    if (contact->refused < MRD_REFUSED_MIN || now_ns - contact->refused_ns < MRD_REFUSED_NS)
        return false;
    mrd_peer_unreachable(e, peer);
    mrd_timer_touch(e, peer);
    return true;
}
