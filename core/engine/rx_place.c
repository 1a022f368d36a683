/* SPDX-License-Identifier: BSD-2-Clause */
/* Received parts: placement, ABORTs, refusals. */
#include "core/engine/rx_place.h"

#include <assert.h>
#include <string.h>

#include "core/engine/complete.h"
#include "core/engine/message.h"
#include "core/engine/query.h"
#include "core/engine/receive.h"
#include "core/engine/request.h"
#include "core/engine/respond.h"
#include "core/engine/rnr.h"
#include "core/engine/rx_bind.h"
#include "core/engine/rx_flow.h"
#include "core/engine/txq.h"
#include "core/sge.h"

enum {
    RESOURCES_RETRY_USEC = 100, /* the delay before a retry; the sender doubles it each time */
    /* A second ack at the end of a message of so many bytes costs next to nothing. */
    VERY_LONG_BYTES = 256 << 10,
};

/* ------------------------------------------------------------------------------- whole messages */

/* A request is executed if there is room for its response; in ordered mode in its turn. */
static uint8_t place_request(struct mrd_engine *e, struct mrd_peer *peer,
                             const struct mrd_wire_part *part)
{
    struct mrd_response *response;
    struct mrd_bound b;
    bool old;
    uint8_t code = mrd_rx_bind(e, peer, part, &b, &old);

    if (code || old)
        return code;
    response = mrd_respond_admit(e, peer, b.qp, part);
    if (!b.flow) {
        mrd_respond_begin(e, response);
        return MRD_RX_TAKEN;
    }
    b.entry->response = response;
    response->entry = b.entry;
    peer->uses.turns++;
    mrd_rx_end_message(e, &b, &(struct mrd_wc){.status = MRD_WC_SUCCESS});
    return MRD_RX_TAKEN;
}

/* As mrd_slot_scatter(), but upwards. Rare: inlined, it costs its callers registers. */
static __attribute__((noinline)) void copy_up(const struct mrd_sge *sge, uint32_t num_sge,
                                              uint32_t offset, const uint8_t *payload, uint32_t len)
{
    struct iovec iov[MRD_SGE_MAX];
    unsigned n = mrd_sge_pieces(sge, num_sge, offset, len, iov);

    for (unsigned i = 0; i < n; i++) {
        mrd_last_bytes_copy_up(iov[i].iov_base, payload, (uint32_t)iov[i].iov_len);
        payload += iov[i].iov_len;
    }
}

/* Bytes of a message go into its receive, or its request: upwards where the program polls. */
static inline void copy_in(const struct mrd_engine *e, const struct mrd_sge *sge, uint32_t num_sge,
                           uint32_t offset, const uint8_t *payload, uint32_t len)
{
    if (mrd_mr_polls_list(&e->objects.mrs, sge, num_sge))
        copy_up(sge, num_sge, offset, payload, len);
    else
        mrd_slot_scatter(sge, num_sge, offset, payload, len);
}

/* The bytes of a RESPONSE, from byte `offset` on. */
static void place_answer(const struct mrd_engine *e, const struct mrd_msg *request, uint32_t offset,
                         const uint8_t *payload, uint32_t len)
{
    uint64_t value;

    if (request->wr.op != MRD_OP_READ) {
        value = mrd_wire_get_u64(payload);
        payload = (const uint8_t *)&value;
    }
    copy_in(e, request->wr.sge, request->wr.num_sge, offset, payload, len);
}

/* Does the target want the end of this message in its turn? */
static bool ends_in_order(const struct mrd_bound *b, uint8_t op)
{
    return op == MRD_OP_WRITE && b->flow && b->qp->pub.order == MRD_ORDER_DATA;
}

/* Bytes of a write, all or those that its part tells. */
static void place_write(const struct mrd_engine *e, const struct mrd_bound *b,
                        const struct mrd_wire_part *part, const uint8_t *payload)
{
    uint32_t len = part->len;
    uint8_t *to = (uint8_t *)(uintptr_t)(part->addr + part->offset);
    bool upwards = len && mrd_mr_polls_rkey(&e->objects.mrs, part->rkey);

    if (ends_in_order(b, part->op)) {
        b->entry->last.rkey = part->rkey;
        len = mrd_last_bytes_keep(&b->entry->last, part->addr, part->total, part->offset, payload,
                                  len);
        upwards |= !(part->flags & MRD_PART_MULTI);
    }
    if (upwards)
        mrd_last_bytes_copy_up(to, payload, len);
    else if (len)
        memcpy(to, payload, len);
}

static uint8_t place_small(struct mrd_engine *e, struct mrd_peer *peer,
                           const struct mrd_wire_part *part, const uint8_t *payload)
{
    struct mrd_bound b;
    struct mrd_wc wc;
    bool old;
    uint8_t code = mrd_rx_bind(e, peer, part, &b, &old);

    if (code || old)
        return code;
    if (b.request)
        place_answer(e, b.request, 0, payload, part->len);
    else if (part->op == MRD_OP_SEND)
        copy_in(e, b.recv->sge, b.recv->num_sge, 0, payload, part->len);
    else if (part->len)
        place_write(e, &b, part, payload);
    wc = mrd_rx_wc(peer, part->op, part->flags, part->len, part->imm, part->src_qpn);
    mrd_rx_end_message(e, &b, &wc);
    return MRD_RX_TAKEN;
}

/* ------------------------------------------------------------------------------------- segments */

/* The first packet of a message came. *slot: its record; NULL: it was refused, or came before. */
static uint8_t begin_slot(struct mrd_engine *e, struct mrd_peer *peer,
                          const struct mrd_wire_part *part, struct mrd_slot **slot)
{
    struct mrd_slots *slots = &peer->rx->slots;
    struct mrd_slot *s = NULL;
    struct mrd_bound b;
    bool old = false;
    uint8_t code;

    if (*slot) /* the sender uses the slot for another message: it gave this one up */
        mrd_rx_fail_slot(e, peer, *slot, MRD_SLOT_CLOSED, MRD_WC_REM_ABORT_ERR);
    *slot = NULL;
    if (mrd_pool_share(slots->pool, slots->num_open))
        s = mrd_slots_open(slots, part->id);
    code = s ? mrd_rx_bind(e, peer, part, &b, &old) : MRD_REFUSE_RESOURCES;
    if (code || old) {
        if (s)
            mrd_slots_end(slots, s, MRD_SLOT_CLOSED);
        else
            mrd_slots_shut(slots, part->id);
        return code;
    }
    s->op = part->op;
    s->flags = part->flags;
    s->total = part->total;
    s->src_qpn = part->src_qpn;
    s->dst_qpn = part->dst_qpn;
    s->rkey = part->rkey;
    s->addr = part->addr;
    s->token = part->token;
    s->imm = part->imm;
    s->bound = b;
    if (b.request)
        b.request->request.slot = s;
    if (b.flow) {
        b.entry->state = MRD_REORDER_OPEN;
        mrd_flow_rx_insert(b.flow, b.entry);
    }
    *slot = s;
    return MRD_RX_TAKEN;
}

/* Where a message goes that names no memory: into its receive, or into its request. */
struct scatter {
    const struct mrd_sge *sge;
    uint32_t num_sge;
    const struct mrd_pd *pd; /* whose keys cover it */
};

static struct scatter scatter_of(const struct mrd_slot *slot)
{
    const struct mrd_bound *b = &slot->bound;

    if (b->request)
        return (struct scatter){b->request->wr.sge, b->request->wr.num_sge, b->qp->pub.pd};
    if (b->recv)
        return (struct scatter){b->recv->sge, b->recv->num_sge, b->qp->recvq->pd};
    return (struct scatter){NULL, 0, NULL};
}

/* Asked for each packet, because the memory may be deregistered at any time. */
static bool slot_memory_valid(const struct mrd_engine *e, struct mrd_slot *slot)
{
    const struct mrd_mrs *mrs = &e->objects.mrs;
    struct scatter list;

    if (slot->memory_seen == mrs->removals)
        return true;
    list = scatter_of(slot);
    if (slot->op != MRD_OP_WRITE)
        return mrd_mr_list_stays(mrs, list.pd, list.sge, list.num_sge, MRD_ACCESS_LOCAL_WRITE,
                                 &slot->memory_seen);
    if (mrd_mr_remote(mrs, slot->bound.qp->pub.pd, slot->rkey, slot->addr, slot->total,
                      MRD_ACCESS_REMOTE_WRITE) != MRD_MR_OK)
        return false;
    slot->memory_seen = mrs->removals;
    return true;
}

uint32_t mrd_rx_place_at(struct mrd_engine *e, struct mrd_slot *slot, uint32_t offset,
                         uint8_t **place)
{
    struct scatter list = scatter_of(slot);
    uint32_t end = slot->total, in_entry;
    struct iovec iov;

    if (!slot_memory_valid(e, slot))
        return 0;
    if (ends_in_order(&slot->bound, slot->op))
        end -= mrd_last_bytes_len(slot->total);
    if (offset >= end)
        return 0;
    if (slot->op == MRD_OP_WRITE) {
        if (mrd_mr_polls_rkey(&e->objects.mrs, slot->rkey))
            return 0;
        *place = (uint8_t *)(uintptr_t)(slot->addr + offset);
        return end - offset;
    }
    if (mrd_mr_polls_list(&e->objects.mrs, list.sge, list.num_sge))
        return 0;
    mrd_sge_pieces(list.sge, list.num_sge, offset, 1, &iov);
    *place = iov.iov_base;
    in_entry = mrd_sge_rest(list.sge, list.num_sge, offset);
    return in_entry < end - offset ? in_entry : end - offset;
}

/* Has the segment bytes, and do they lie within its message? */
static bool is_within(const struct mrd_wire_part *part)
{
    return part->len && part->offset <= part->total && part->len <= part->total - part->offset;
}

uint32_t mrd_rx_place_new(struct mrd_engine *e, struct mrd_peer *peer,
                          const struct mrd_wire_part *part, uint8_t **place)
{
    const struct mrd_slots *slots = &peer->rx->slots;
    struct mrd_bound b;

    if (part->op != MRD_OP_WRITE || part->flags & MRD_PART_ORDERED || !is_within(part) ||
        !mrd_pool_share(slots->pool, slots->num_open) ||
        mrd_rx_judge(e, peer, part, 0, &b) != MRD_RX_TAKEN ||
        mrd_mr_polls_rkey(&e->objects.mrs, part->rkey))
        return 0;
    *place = (uint8_t *)(uintptr_t)(part->addr + part->offset);
    return part->total - part->offset;
}

static uint8_t place_segment(struct mrd_engine *e, struct mrd_peer *peer,
                             const struct mrd_wire_part *part, uint32_t psn, const uint8_t *payload,
                             enum mrd_place_end *end)
{
    struct mrd_slot *slot;
    enum mrd_slot_verdict verdict = mrd_slots_judge(&peer->rx->slots, part->id, &slot);
    uint8_t code;

    if (verdict == MRD_SLOT_DROP)
        return MRD_RX_TAKEN;
    if (!is_within(part))
        return MRD_REFUSE_INVALID;
    if (verdict == MRD_SLOT_BEGIN) {
        code = begin_slot(e, peer, part, &slot);
        if (!slot)
            return code;
    } else if (!mrd_slot_agrees(slot, part)) {
        mrd_rx_fail_slot(e, peer, slot, MRD_SLOT_CLOSED, MRD_WC_REM_ABORT_ERR);
        return MRD_REFUSE_INVALID;
    }
    if (!slot_memory_valid(e, slot)) {
        code = slot->op == MRD_OP_WRITE ? MRD_REFUSE_ACCESS : MRD_REFUSE_OPERATION;
        mrd_rx_fail_slot(e, peer, slot, MRD_SLOT_CLOSED, MRD_WC_LOC_PROT_ERR);
        return code;
    }
    if (payload && slot->op == MRD_OP_WRITE)
        place_write(e, &slot->bound, part, payload);
    else if (payload)
        copy_in(e, scatter_of(slot).sge, scatter_of(slot).num_sge, part->offset, payload,
                part->len);
    mrd_slot_came(slot, part, psn);
    slot->got += part->len;
    if (slot->got == slot->total) {
        struct mrd_bound b = slot->bound;
        struct mrd_wc wc =
            mrd_rx_wc(peer, slot->op, slot->flags, slot->total, slot->imm, slot->src_qpn);

        *end = slot->total >= VERY_LONG_BYTES ? MRD_PLACE_END_VERY_LONG : MRD_PLACE_END_LONG;
        mrd_slots_end(&peer->rx->slots, slot, MRD_SLOT_CLOSED);
        mrd_rx_end_message(e, &b, &wc);
    }
    return MRD_RX_TAKEN;
}

/* ---------------------------------------------------------------------------------------- ABORT */

static void abort_slot(struct mrd_engine *e, struct mrd_peer *peer,
                       const struct mrd_wire_part *part)
{
    struct mrd_slot *slot;

    if (mrd_slots_judge(&peer->rx->slots, part->id, &slot) == MRD_SLOT_DROP)
        return;
    if (slot)
        mrd_rx_fail_slot(e, peer, slot, MRD_SLOT_CLOSED, MRD_WC_REM_ABORT_ERR);
    /* Also where nothing came of it: a late packet must not begin the message. */
    mrd_slots_shut(&peer->rx->slots, part->id);
}

/* There will be no response to the request of that token. */
static void abort_request(struct mrd_engine *e, struct mrd_peer *peer, uint32_t token)
{
    struct mrd_msg *request = mrd_msg_find_request(e, peer, token);

    if (request)
        mrd_msg_cancel(e, request, MRD_WC_REM_OP_ERR);
}

/*
 * Returns MRD_RX_TAKEN, or MRD_REFUSE_QPN for an ordered message to a queue pair that is gone: its
 * sender then knows that nothing behind it is delivered. To execute an ABORT twice does no harm.
 */
static uint8_t place_abort(struct mrd_engine *e, struct mrd_peer *peer,
                           const struct mrd_wire_part *part)
{
    struct mrd_qp_impl *qp = mrd_qp_find(&e->objects.qps, part->dst_qpn);
    bool has_rsn = part->attempt; /* of an ABORT: 1 if the message would consume a receive */
    struct mrd_flow_rx *flow;
    uint32_t msn, rsn;
    uint8_t code;

    if (part->flags & MRD_PART_MULTI)
        abort_slot(e, peer, part);
    if (part->flags & MRD_PART_IMM)
        abort_request(e, peer, part->imm);
    if (!(part->flags & MRD_PART_ORDERED))
        return MRD_RX_TAKEN;
    code = mrd_rx_check_source(qp, peer, part->src_qpn);
    if (code == MRD_REFUSE_QPN)
        return code;
    flow = mrd_rx_open_flow(e, peer, qp, part, &msn, &rsn);
    if (flow && mrd_flow_rx_judge(flow, msn, has_rsn, rsn) == MRD_MSN_NEW)
        mrd_rx_skip_message(e, flow, msn, has_rsn, rsn);
    return MRD_RX_TAKEN;
}

static void place_close(struct mrd_engine *e, struct mrd_peer *peer,
                        const struct mrd_wire_part *part)
{
    struct mrd_qp_impl *qp = mrd_qp_find(&e->objects.qps, part->dst_qpn);

    if (qp && part->flags & MRD_PART_ORDERED)
        mrd_rx_close_flow(e, peer, qp, part);
}

/* -------------------------------------------------------------------------------------- packets */

static void place_refusal(struct mrd_engine *e, struct mrd_peer *peer,
                          const struct mrd_wire_part *part)
{
    struct mrd_send_state *tx = peer->tx;
    struct mrd_sent *rec;
    bool known = false; /* whom it names: a part that is not there proves nothing */

    if (!tx || tx->contact.epoch != part->epoch)
        return; /* it is about a space that is over, as is its work */
    rec = mrd_sent_get(&tx->sent, part->psn);
    for (unsigned i = 0; rec && i < part->num_entries; i++) {
        struct mrd_wire_refusal_entry entry;

        mrd_wire_get_refusal_entry(part, i, &entry);
        known |= mrd_msg_apply_refusal(e, peer, rec, &entry, part->rnr_usec);
    }
    if (known)
        mrd_msg_rest_taken(e, rec);
}

static void count_refusal(struct mrd_engine *e, uint8_t code)
{
    struct mrd_stats *s = &e->stats;
    uint64_t *const counter[] = {[MRD_REFUSE_RNR] = &s->rx_refuse_rnr,
                                 [MRD_REFUSE_RESOURCES] = &s->rx_refuse_resources,
                                 [MRD_REFUSE_QPN] = &s->rx_refuse_qpn,
                                 [MRD_REFUSE_QKEY] = &s->rx_refuse_qkey,
                                 [MRD_REFUSE_TOO_LONG] = &s->rx_refuse_too_long,
                                 [MRD_REFUSE_ACCESS] = &s->rx_refuse_access,
                                 [MRD_REFUSE_INVALID] = &s->rx_refuse_invalid,
                                 [MRD_REFUSE_OPERATION] = &s->rx_refuse_operation};

    s->tx_refusals++;
    (*counter[code])++;
}

static void refuse(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_head *head,
                   const struct mrd_wire_part *part, unsigned index, uint8_t code,
                   struct mrd_refusal **refusal)
{
    struct mrd_qp_impl *qp = mrd_qp_find(&e->objects.qps, part->dst_qpn);
    struct mrd_refusal *r = *refusal;
    uint32_t usec = 0;

    if (!r) {
        r = *refusal = mrd_pool_alloc(&e->refusals);
        peer->uses.refusals++;
        mrd_list_init(&r->node);
        r->epoch = head->epoch;
        r->psn = head->psn;
        r->rx_life = peer->space.life;
        r->num = 0;
        r->rnr_usec = 0;
    }
    if (code == MRD_REFUSE_RNR && qp) {
        usec = (uint32_t)(qp->rnr_timer_ns / MRD_USEC);
        mrd_rnr_add(e, peer, qp);
    }
    if (code == MRD_REFUSE_RESOURCES)
        usec = RESOURCES_RETRY_USEC;
    if (qp && part->op != MRD_OP_RESPONSE && code != MRD_REFUSE_RNR &&
        code != MRD_REFUSE_RESOURCES && code != MRD_REFUSE_QPN)
        mrd_event_refused(e, peer, qp);
    r->rnr_usec = usec > r->rnr_usec ? usec : r->rnr_usec;
    r->entry[r->num++] = (struct mrd_wire_refusal_entry){
        .index = (uint8_t)index, .code = code, .attempt = part->attempt, .id = part->id};
    count_refusal(e, code);
}

/*
 * Will the part be taken for sure? `index` parts before it may take receives, too. An ordered one
 * counts as doubtful.
 */
static bool is_taken(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_wire_part *part,
                     uint32_t index)
{
    struct mrd_qp_impl *qp;
    struct mrd_slot *slot;
    struct mrd_bound b;

    if (part->op == MRD_OP_ABORT && part->flags & MRD_PART_ORDERED) {
        qp = mrd_qp_find(&e->objects.qps, part->dst_qpn);
        return mrd_rx_check_source(qp, peer, part->src_qpn) != MRD_REFUSE_QPN;
    }
    if (mrd_wire_is_request(part->op))
        return false;
    if (part->op > MRD_OP_RESPONSE)
        return true;
    if (part->flags & MRD_PART_MULTI) {
        switch (mrd_slots_judge(&peer->rx->slots, part->id, &slot)) {
        case MRD_SLOT_DROP:
            return true;
        case MRD_SLOT_GO_ON:
            return part->len && mrd_slot_agrees(slot, part) && slot_memory_valid(e, slot);
        case MRD_SLOT_BEGIN:
            break;
        }
        if (!is_within(part) || !mrd_pool_share(peer->rx->slots.pool, peer->rx->slots.num_open))
            return false;
    }
    return !(part->flags & MRD_PART_ORDERED) &&
           mrd_rx_judge(e, peer, part, index, &b) == MRD_RX_TAKEN;
}

/* Does an earlier part of the packet answer the same request? */
static bool answers_again(const struct mrd_rx_in *in, unsigned index)
{
    if (in->part[index].op != MRD_OP_RESPONSE)
        return false;
    for (unsigned i = 0; i < index; i++) {
        if (in->part[i].op == MRD_OP_RESPONSE && in->part[i].token == in->part[index].token)
            return true;
    }
    return false;
}

static bool names_memory(const struct mrd_wire_part *part)
{
    return part->op == MRD_OP_WRITE || mrd_wire_is_request(part->op);
}

/*
 * A request of the peer was refused access. It is a guess unless it names a key that it was told, which
 * may be of a region that went meanwhile.
 */
static void count_guess(struct mrd_engine *e, struct mrd_peer *peer,
                        const struct mrd_wire_part *part)
{
    if (!names_memory(part) || mrd_mr_was_told(&e->objects.mrs, part->rkey))
        return;
    if (peer->guesses_ns < e->clock.now_ns)
        peer->guesses_ns = e->clock.now_ns;
    peer->guesses_ns += MRD_KEY_GUESS_NS;
}

/* It names wrong keys so often that it may be trying them: the user is told. */
static void tell_guess(struct mrd_engine *e, const struct mrd_peer *peer)
{
    e->stats.rx_drop_guesses++;
    if (!e->lives.keys_told_ns || e->clock.now_ns - e->lives.keys_told_ns >= MRD_KEY_EVENT_NS) {
        e->lives.keys_told_ns = e->clock.now_ns;
        mrd_event_add(e, peer, MRD_EVENT_PEER_WRONG_KEYS);
    }
}

/*
 * Are its guesses so many that nothing of the packet is to be done? What names memory by a right key is
 * not done either: else any number of guesses could be made until one is right.
 */
static bool is_guess(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_rx_in *in)
{
    if (peer->guesses_ns < e->clock.now_ns + MRD_KEY_GUESSES_NS)
        return false;
    for (unsigned i = 0; i < in->num_parts; i++)
        if (names_memory(&in->part[i])) {
            tell_guess(e, peer);
            return true;
        }
    return false;
}

/* Can a refusal be kept, or is none needed? Else the packet is dropped before anything is done. */
static bool has_room(struct mrd_engine *e, struct mrd_peer *peer, const struct mrd_rx_in *in)
{
    if (mrd_pool_share(&e->refusals, peer->uses.refusals))
        return true;
    for (unsigned i = 0; i < in->num_parts; i++) {
        if (answers_again(in, i) || !is_taken(e, peer, &in->part[i], i))
            return false;
    }
    return true;
}

enum mrd_place_verdict mrd_rx_place(struct mrd_engine *e, struct mrd_peer *peer,
                                    struct mrd_rx_in *in, struct mrd_refusal **refusal,
                                    enum mrd_place_end *end)
{
    const uint8_t *payload = in->packet->placed ? NULL : in->payload;

    *refusal = NULL;
    *end = MRD_PLACE_END_NONE;
    if ((!in->num_parts &&
         !mrd_wire_get_parts(in->packet->data, &in->head, in->part, &in->num_parts)) ||
        !mrd_wire_parts_agree(in->part, in->num_parts, in->payload_len))
        return MRD_PLACE_MALFORMED;
    if (is_guess(e, peer, in))
        return MRD_PLACE_GUESS;
    if (!has_room(e, peer, in))
        return MRD_PLACE_NO_ROOM;
    for (unsigned i = 0; i < in->num_parts; i++) {
        const struct mrd_wire_part *part = &in->part[i];
        uint8_t code = MRD_RX_TAKEN;

        if (part->op == MRD_OP_REFUSAL) {
            place_refusal(e, peer, part);
        } else if (part->op == MRD_OP_READY) {
            if (peer->tx)
                mrd_txq_apply_ready(e, peer, part->src_qpn, part->receives);
        } else if (part->op == MRD_OP_ABORT) {
            code = place_abort(e, peer, part);
        } else if (part->op == MRD_OP_CLOSE) {
            place_close(e, peer, part);
        } else if (mrd_wire_is_request(part->op)) {
            code = place_request(e, peer, part);
            *end = MRD_PLACE_END_SMALL;
        } else if (part->op != MRD_OP_VOID && part->flags & MRD_PART_MULTI) {
            code = place_segment(e, peer, part, in->head.psn, payload, end);
        } else if (part->op != MRD_OP_VOID) {
            code = place_small(e, peer, part, payload);
            *end = MRD_PLACE_END_SMALL;
        }
        if (code == MRD_REFUSE_ACCESS && part->op != MRD_OP_RESPONSE)
            count_guess(e, peer, part);
        if (code)
            refuse(e, peer, &in->head, part, i, code, refusal);
        if (payload)
            payload += part->len;
    }
    if (!mrd_list_empty(&e->turns.responses))
        mrd_respond_run(e);
    return *refusal ? MRD_PLACE_REFUSED : MRD_PLACED;
}

bool mrd_rx_place_run(const struct mrd_engine *e, const struct mrd_run *run, uint32_t n)
{
    struct mrd_slot *slot = run->slot;

    if (!slot_memory_valid(e, slot))
        return false;
    mrd_slot_run_came(slot, &run->part, run->head.psn, n);
    slot->got += n * run->part.len;
    assert(slot->got < slot->total);
    return true;
}

static bool is_flushed(const struct mrd_qp_impl *qp, const struct mrd_qp_impl *only)
{
    return only ? qp == only : qp && qp->pub.state == MRD_QPS_ERR;
}

void mrd_rx_flush_qp(struct mrd_engine *e, struct mrd_qp_impl *only, enum mrd_wc_status status)
{
    for (struct mrd_node *n = e->peers.active.next; n != &e->peers.active; n = n->next) {
        struct mrd_peer *peer = mrd_container_of(n, struct mrd_peer, node);
        struct mrd_node *f, *next;

        for (f = peer->flows_rx.next; f != &peer->flows_rx; f = f->next) {
            struct mrd_flow_rx *flow = mrd_container_of(f, struct mrd_flow_rx, peer_node);

            if (is_flushed(flow->qp, only))
                mrd_rx_fail_flow(flow, status);
        }
        /* EMPTY: a later packet begins the message again and is refused, which tells its sender. */
        for (f = peer->rx ? peer->rx->slots.open.next : NULL; f && f != &peer->rx->slots.open;
             f = next) {
            struct mrd_slot *slot = mrd_container_of(f, struct mrd_slot, node);

            next = f->next;
            if (is_flushed(slot->bound.qp, only))
                mrd_rx_fail_slot(e, peer, slot, MRD_SLOT_EMPTY, status);
        }
        for (f = peer->flows_rx.next; f != &peer->flows_rx; f = next) {
            struct mrd_flow_rx *flow = mrd_container_of(f, struct mrd_flow_rx, peer_node);

            next = f->next;
            if (is_flushed(flow->qp, only))
                mrd_rx_free_flow(e, flow, status);
        }
    }
}
