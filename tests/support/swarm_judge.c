/* SPDX-License-Identifier: BSD-2-Clause */
/* What each completion may be, and what must be true of memory when it comes. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/engine.h"
#include "core/last_bytes.h"
#include "tests/support/payload.h"
#include "tests/support/swarm.h"
#include "transport/context.h"

enum { POLL_BURST = 8, GUARD_BYTES = 64 };

static uint32_t number_of(const struct swarm *s, const struct swarm_message *m)
{
    return (uint32_t)(m - s->message);
}

bool swarm_holds(const struct swarm *s, const struct swarm_message *m, const uint8_t *at)
{
    return payload_mismatch(at, m->len, s->seed, number_of(s, m)) == m->len;
}

bool swarm_may_have_come(const struct swarm *s, const struct swarm_message *m)
{
    size_t at = payload_mismatch(m->target, m->len, s->seed, number_of(s, m));
    bool waits =
        s->qp[m->from_qp].order != MRD_ORDER_NONE && s->qp[m->to_qp].order == MRD_ORDER_DATA;

    return at == m->len || (waits && at >= m->len - mrd_last_bytes_len(m->len));
}

/* The QP that the message was for takes messages no more, or its life is over. */
static bool target_is_gone(const struct swarm *s, const struct swarm_message *m)
{
    const struct swarm_qp *to = &s->qp[m->to_qp];

    return !to->qp || to->error;
}

static bool window_is_gone(const struct swarm *s, const struct swarm_message *m)
{
    const struct swarm_qp *to = &s->qp[m->to_qp];
    const struct swarm_host *h = &s->host[to->host];

    return m->target && (to->life != h->life || !h->context || !h->window[m->window].mr);
}

/* ---------------------------------------------------------------------------------------- sends */

static bool send_may_be(struct swarm *s, const struct swarm_message *m, enum mrd_wc_status status)
{
    const struct swarm_qp *from = &s->qp[m->from_qp], *to = &s->qp[m->to_qp];

    switch (status) {
    case MRD_WC_SUCCESS:
        return m->flaw == SWARM_SOUND;
    case MRD_WC_LOC_PROT_ERR:
        return m->lost_mr;
    case MRD_WC_WR_FLUSH_ERR:
        return from->error;
    case MRD_WC_REM_INV_REQ_ERR:
        return m->flaw == SWARM_BAD_QPN || m->flaw == SWARM_BAD_QKEY || m->flaw == SWARM_TOO_LONG ||
               target_is_gone(s, m);
    case MRD_WC_REM_ACCESS_ERR:
        if (swarm_is_request(m) &&
            (to->life != s->host[to->host].life || !s->host[to->host].context))
            return true;
        return m->flaw == SWARM_BAD_RKEY || m->flaw == SWARM_BAD_RANGE || window_is_gone(s, m);
    case MRD_WC_REM_OP_ERR:
        return target_is_gone(s, m) || window_is_gone(s, m) || to->memory_gone;
    case MRD_WC_RETRY_EXC_ERR:
        return swarm_is_excused(s, from->host, to->host) || swarm_has_moved(s, m);
    case MRD_WC_RNR_RETRY_EXC_ERR:
        return s->config.rnr_limited;
    default:
        return false;
    }
}

/* Can no other message be taken for this one, of which its receive tells only the bytes? */
static bool is_unmistakable(const struct swarm_message *m)
{
    return m->opcode == MRD_WR_SEND_WITH_IMM || m->opcode == MRD_WR_RDMA_WRITE_WITH_IMM ||
           m->len >= 2 * sizeof(uint64_t);
}

/* Overwrites the target of a write, the application's again: later copies must not change it. */
static void take_target(struct swarm_message *m)
{
    memset(m->target, SWARM_TAKEN, m->len);
    m->taken = true;
}

static void check_placed(struct swarm *s, struct swarm_message *m, const char *when)
{
    size_t at = payload_mismatch(m->target, m->len, s->seed, number_of(s, m));

    swarm_check(s, at == m->len, "message %u (%u bytes): byte %zu is not in place %s",
                number_of(s, m), m->len, at, when);
    m->placed = true;
}

static void judge_write(struct swarm *s, struct swarm_message *m)
{
    const struct swarm_qp *from = &s->qp[m->from_qp], *to = &s->qp[m->to_qp];

    if (m->status == MRD_WC_SUCCESS) {
        swarm_check(s, !m->late, "message %u: written after a later ordered message was delivered",
                    number_of(s, m));
        if (!m->taken)
            check_placed(s, m, "although the write succeeded");
        swarm_check(s, m->placed,
                    "message %u: the write succeeded, but was not in place before "
                    "its memory was deregistered",
                    number_of(s, m));
    }
    if (m->taken ||
        (m->opcode == MRD_WR_RDMA_WRITE_WITH_IMM && m->status == MRD_WC_SUCCESS && !m->received))
        return;
    /* After a flush nothing may be placed. A write to a peer that seemed unreachable may arrive. */
    if (m->status == MRD_WC_SUCCESS || !swarm_is_excused(s, from->host, to->host))
        take_target(m);
}

/* Ordered messages complete in order: unsignaled ones before a success have succeeded as well. */
static void judge_flow(struct swarm *s, struct swarm_message *m)
{
    uint32_t *completed = &s->completed[m->from_qp][m->to_qp];
    uint32_t number = number_of(s, m);

    /* A message to a QP number that does not exist is of another flow. */
    if (s->qp[m->from_qp].order == MRD_ORDER_NONE || m->flaw == SWARM_BAD_QPN)
        return;
    swarm_check(s, *completed <= number,
                "the send of ordered message %u completed after that of %u", number,
                *completed - 1);
    if (m->status != MRD_WC_SUCCESS)
        return;
    for (uint32_t i = *completed; i < number; i++) {
        struct swarm_message *earlier = &s->message[i];

        if (earlier->from_qp != m->from_qp || earlier->to_qp != m->to_qp || earlier->sent ||
            earlier->flaw == SWARM_BAD_QPN)
            continue;
        swarm_check(s, !earlier->signaled && earlier->flaw == SWARM_SOUND,
                    "ordered message %u succeeded, and %u is not complete", number, i);
        earlier->implied = true;
    }
    *completed = number + 1;
}

/*
 * Does its completion wait for that of a read or atomic before it? Or may it share a packet with
 * one that was refused, as what waits for a first contact does, whenever it was posted? Such a
 * packet is acked when the refusal has arrived. If the target closes, nobody tells the sender that
 * the message was received.
 */
static bool waits_for_request(const struct swarm *s, const struct swarm_message *m)
{
    bool ordered = s->qp[m->from_qp].order != MRD_ORDER_NONE;

    for (const struct swarm_message *other = s->message; other < s->message + s->num_messages;
         other++) {
        bool before =
            ordered && other < m && other->from_qp == m->from_qp && other->to_qp == m->to_qp;
        bool beside = !(other->sent && other->sent_ns < m->posted_ns) &&
                      s->qp[other->from_qp].host == s->qp[m->from_qp].host &&
                      s->qp[other->to_qp].host == s->qp[m->to_qp].host;

        if ((before || beside) && swarm_is_request(other) &&
            !(other->sent && other->status == MRD_WC_SUCCESS))
            return true;
    }
    return false;
}

static void judge_send(struct swarm *s, uint32_t index, const struct mrd_wc *wc)
{
    struct swarm_message *m = &s->message[index];
    const struct swarm_qp *to = &s->qp[m->to_qp];

    swarm_tell(s, "send %u: %s", index, mrd_wc_status_str(wc->status));
    swarm_check(s, send_may_be(s, m, wc->status),
                "message %u (opcode %d, %u bytes, flaw %d) from QP %u to QP %u: %s (vendor_err %u)",
                index, (int)m->opcode, m->len, (int)m->flaw, m->from_qp, m->to_qp,
                mrd_wc_status_str(wc->status), wc->vendor_err);
    swarm_check(s, !m->implied, "message %u: %s, but a later ordered one succeeded", index,
                mrd_wc_status_str(wc->status));
    swarm_check(s,
                wc->status != MRD_WC_RETRY_EXC_ERR || !m->received || !is_unmistakable(m) ||
                    s->config.profile != SWARM_CLOSING || waits_for_request(s, m),
                "message %u was received, no packet was ever lost, and its send failed", index);
    m->sent = true;
    m->sent_ns = mrd_sim_now(s->sim);
    m->status = wc->status;
    s->successes += wc->status == MRD_WC_SUCCESS;
    s->failures += wc->status != MRD_WC_SUCCESS;
    if (m->target)
        judge_write(s, m);
    if (swarm_is_request(m))
        swarm_judge_request(s, m);
    judge_flow(s, m);
    /*
     * A later life of the host may have received it, and not have been polled yet. One that is
     * stopped cannot be: there the end of the run shows.
     */
    if (wc->status == MRD_WC_SUCCESS && !to->qp && !s->host[to->host].resume_ns) {
        if (!swarm_match_arrived(s, m) && swarm_is_live(s, to->host))
            swarm_poll_host(s, to->host);
        swarm_check(
            s, swarm_match_arrived(s, m),
            "message %u (opcode %d, %u bytes) succeeded; QP %u, its target, was destroyed without "
            "having it",
            index, (int)m->opcode, m->len, m->to_qp);
    }
    swarm_check(s, wc->status != MRD_WC_REM_INV_REQ_ERR || !m->received || !is_unmistakable(m),
                "message %u was refused, although it arrived", index);
    if (wc->status == MRD_WC_RNR_RETRY_EXC_ERR)
        s->host[s->qp[m->from_qp].host].cancelled = true;
    swarm_free_source(s, m, true);
}

/* ------------------------------------------------------------------------------------- receives */

static bool lost_window(const struct swarm *s, const struct swarm_qp *qp)
{
    for (uint32_t i = 0; i < SWARM_WINDOWS; i++) {
        if (!s->host[qp->host].window[i].mr)
            return true;
    }
    return false;
}

static bool receive_may_be(const struct swarm *s, const struct swarm_qp *qp,
                           enum mrd_wc_status status)
{
    switch (status) {
    case MRD_WC_SUCCESS:
        return true;
    case MRD_WC_LOC_LEN_ERR:
        return qp->oversized;
    case MRD_WC_LOC_PROT_ERR: /* or the window of a write was deregistered while it arrived */
        return qp->memory_gone || lost_window(s, qp);
    case MRD_WC_WR_FLUSH_ERR:
        return qp->error;
    case MRD_WC_REM_ABORT_ERR:
        return s->config.bad_requests || s->config.dereg > 0 || swarm_may_abort(s, qp->host);
    default:
        return false;
    }
}

/*
 * Messages may arrive at their QP, or at the one of that number in a later life of the host. What
 * was not sent when the host was given up waits for the peer that answers next (mrd(7), "The price
 * of first contact").
 */
bool swarm_is_for(const struct swarm *s, const struct swarm_message *m, uint32_t index)
{
    const struct swarm_qp *to = &s->qp[m->to_qp], *at = &s->qp[index];

    return m->to_qp == index || (to->host == at->host && to->num == at->num && at->life > to->life);
}

/* Finds the message of a receive without immediate data by its bytes. */
static struct swarm_message *match(struct swarm *s, const struct swarm_receive *r,
                                   const struct mrd_wc *wc)
{
    for (uint32_t i = 0; i < 2 * s->num_messages; i++) {
        bool later_life = i >= s->num_messages;
        struct swarm_message *m = &s->message[i % s->num_messages];

        if ((later_life ? swarm_is_for(s, m, r->qp) : m->to_qp == r->qp) &&
            m->opcode == MRD_WR_SEND && !m->received && m->len == wc->byte_len &&
            m->flaw == SWARM_SOUND && s->qp[m->from_qp].num == wc->src_qp &&
            swarm_holds(s, m, r->buf))
            return m;
    }
    swarm_check(s, false, "QP %u received %u bytes that no message holds", r->qp, wc->byte_len);
    return NULL;
}

static struct swarm_message *match_imm(struct swarm *s, const struct swarm_receive *r,
                                       const struct mrd_wc *wc)
{
    uint32_t index = ntohl(wc->imm_data);

    swarm_check(s, index < s->num_messages, "immediate data of no message: %u", index);

    struct swarm_message *m = &s->message[index];

    swarm_check(
        s,
        swarm_is_for(s, m, r->qp) && m->len == wc->byte_len && m->flaw == SWARM_SOUND &&
            s->qp[m->from_qp].num == wc->src_qp &&
            m->opcode ==
                (wc->opcode == MRD_WC_RECV ? MRD_WR_SEND_WITH_IMM : MRD_WR_RDMA_WRITE_WITH_IMM),
        "message %u (opcode %d, %u bytes, flaw %d, from QP %u to QP %u) arrived at QP %u as "
        "another: opcode %d, %u bytes, from QP number %u",
        index, (int)m->opcode, m->len, (int)m->flaw, m->from_qp, m->to_qp, r->qp, (int)wc->opcode,
        wc->byte_len, wc->src_qp);
    swarm_check(s, !m->received, "message %u arrived twice", index);
    if (!m->target)
        swarm_check(s, swarm_holds(s, m, r->buf), "message %u arrived with wrong bytes", index);
    return m;
}

/*
 * Did it fail so long ago that only who saw its packets, and sends them again, can have it delivered? What was
 * posted later waited for all other copies.
 */
static bool is_replayed(const struct swarm *s, const struct swarm_message *m)
{
    return s->config.networks & SWARM_STRANGERS && m->sent && m->status != MRD_WC_SUCCESS &&
           mrd_sim_now(s->sim) - m->sent_ns > MRD_PACKET_LIFE_NS;
}

/* Checks that an ordered message overtook none of its flow, and earlier writes are in place. */
static void judge_order(struct swarm *s, const struct swarm_message *m)
{
    uint32_t *delivered = &s->delivered[m->from_qp][m->to_qp];
    uint32_t *looked_at = &s->looked_at[m->from_qp][m->to_qp];
    uint32_t number = number_of(s, m);

    if (s->qp[m->from_qp].order == MRD_ORDER_NONE || is_replayed(s, m))
        return;
    swarm_check(s, *delivered <= number, "ordered message %u came after %u", number,
                *delivered - 1);
    *delivered = number + 1;
    for (; *looked_at < number; ++*looked_at) {
        struct swarm_message *earlier = &s->message[*looked_at];

        if (earlier->from_qp != m->from_qp || earlier->to_qp != m->to_qp || earlier->sent ||
            earlier->taken || earlier->opcode != MRD_WR_RDMA_WRITE)
            continue;
        earlier->placed = swarm_holds(s, earlier, earlier->target);
        earlier->late = !earlier->placed; /* right only if the write fails */
    }
}

/* The host that sent the message of a completion. */
static uint32_t host_of(const struct swarm *s, uint32_t host, uint32_t peer_id)
{
    struct mrd_addr addr;

    assert_int_equal(
        mrd_engine_peer_addr(mrd_context_engine(s->host[host].context), peer_id, &addr), 0);
    return addr.port - 1;
}

/*
 * Judges a receive whose MR was deregistered while it was posted: the application has its memory
 * again. The receive fails, unless it had a whole ordered message that waited for earlier ones.
 */
static void judge_taken(struct swarm *s, struct swarm_receive *r, const struct mrd_wc *wc)
{
    swarm_check(s, payload_is_blank(r->buf, r->used_len, SWARM_USED),
                "a receive buffer of QP %u changed after its MR was deregistered", r->qp);
    r->taken = false;
    if (wc->status != MRD_WC_SUCCESS)
        return;
    if (wc->wc_flags & MRD_WC_WITH_IMM) {
        uint32_t number = ntohl(wc->imm_data);

        swarm_check(s,
                    number < s->num_messages && !s->message[number].received &&
                        s->message[number].to_qp == r->qp,
                    "QP %u received message %u", r->qp, number);
        s->message[number].received = true;
        return;
    }
    uint32_t from = host_of(s, s->qp[r->qp].host, wc->peer_id);

    for (uint32_t i = 0; i < s->num_messages; i++) {
        struct swarm_message *m = &s->message[i];

        if (m->to_qp != r->qp || m->opcode != MRD_WR_SEND || m->received ||
            m->len != wc->byte_len || s->qp[m->from_qp].order == MRD_ORDER_NONE ||
            s->qp[m->from_qp].num != wc->src_qp || s->qp[m->from_qp].host != from)
            continue;
        m->received = true;
        return;
    }
    swarm_check(s, false, "QP %u received %u bytes that no ordered message has", r->qp,
                wc->byte_len);
}

static void judge_delivery(struct swarm *s, struct swarm_receive *r, const struct mrd_wc *wc)
{
    struct swarm_message *m =
        wc->wc_flags & MRD_WC_WITH_IMM ? match_imm(s, r, wc) : match(s, r, wc);

    swarm_check(s, !m->sent || m->status != MRD_WC_REM_INV_REQ_ERR || !is_unmistakable(m),
                "message %u arrived, although its target refused it", number_of(s, m));
    s->qp[r->qp].owed += number_of(s, m) < s->drain_first;
    swarm_tell(s, "message %u is received", number_of(s, m));
    m->received = true;
    judge_order(s, m);
    if (m->target && !m->taken) {
        check_placed(s, m, "although its receive completed");
        if (m->sent)
            take_target(m);
    }
    if (!m->target)
        r->used_len = m->len;
    if (s->host[r->host].shared_returned)
        r->used_len = s->config.recv_bytes;
    if (r->used_len < s->config.recv_bytes)
        swarm_check(s, payload_is_blank(r->buf + r->used_len, GUARD_BYTES, SWARM_BLANK),
                    "message %u: bytes behind its end were written", number_of(s, m));
}

/*
 * An ordered write with immediate data that was acked when it arrived, and whose window was
 * deregistered before its turn came: its receive fails, which is all that is told of it.
 */
static void judge_landless(struct swarm *s, const struct swarm_receive *r, const struct mrd_wc *wc)
{
    uint32_t number = ntohl(wc->imm_data);

    if (wc->status != MRD_WC_LOC_PROT_ERR || !(wc->wc_flags & MRD_WC_WITH_IMM) ||
        number >= s->num_messages)
        return;

    struct swarm_message *m = &s->message[number];

    if (m->to_qp == r->qp && m->target && !s->host[r->host].window[m->window].mr &&
        s->qp[m->from_qp].order != MRD_ORDER_NONE)
        m->received = true;
}

/* The QP of that number in the host's present life, which shares its receives. */
static uint32_t qp_of(struct swarm *s, uint32_t host, uint32_t num)
{
    for (uint32_t i = 0; i < s->num_qps; i++) {
        const struct swarm_qp *qp = &s->qp[i];

        if (qp->host == host && qp->life == s->host[host].life && qp->num == num && qp->shared)
            return i;
    }
    swarm_check(s, false, "host %u: a shared receive completed at QP number %u", host, num);
    return 0;
}

static void judge_receive(struct swarm *s, uint32_t index, const struct mrd_wc *wc)
{
    struct swarm_receive *r = &s->receive[index];
    struct swarm_qp *qp = &s->qp[r->qp];

    qp->receives--;
    if (qp->shared) {
        s->host[r->host].shared_posted--;
        r->qp = qp_of(s, r->host, wc->qp_num);
        qp = &s->qp[r->qp];
    }
    qp->owed += wc->status != MRD_WC_SUCCESS && s->drain_first > 0;
    if (wc->status != MRD_WC_SUCCESS)
        swarm_tell(s, "a receive of QP %u: %s", r->qp, mrd_wc_status_str(wc->status));
    swarm_check(s, receive_may_be(s, qp, wc->status), "a receive of QP %u: %s", r->qp,
                mrd_wc_status_str(wc->status));
    r->posted = false;
    s->host[r->host].unposted[s->host[r->host].num_unposted++] = index;
    judge_landless(s, r, wc);
    if (r->taken && !(wc->status == MRD_WC_SUCCESS && wc->opcode == MRD_WC_RECV_RDMA_WITH_IMM)) {
        judge_taken(s, r, wc);
        return;
    }
    r->taken = false;
    if (wc->status == MRD_WC_SUCCESS)
        judge_delivery(s, r, wc);
    else
        r->used_len = s->config.recv_bytes; /* it may hold a part of a message */
    memset(r->buf, SWARM_USED, r->used_len);
}

/* Takes and judges completions. Returns their number. */
static unsigned poll_cq(struct swarm *s, uint32_t host, struct mrd_cq *cq)
{
    struct mrd_wc wc[POLL_BURST];
    int n = mrd_poll_cq(cq, POLL_BURST, wc);

    swarm_check(s, n >= 0, "poll_cq: %s", mrd_last_error());
    for (int i = 0; i < n; i++) {
        const struct ledger_wr *wr = ledger_complete(&s->ledger, host, s->host[host].life, &wc[i]);

        if (wr->queue == LEDGER_RECV)
            judge_receive(s, wr->object, &wc[i]);
        else
            judge_send(s, wr->object, &wc[i]);
    }
    return (unsigned)n;
}

void swarm_poll_host(struct swarm *s, uint32_t host)
{
    struct swarm_host *h = &s->host[host];
    struct mrd_async_event event;

    /* Until both queues are empty at once: then no completion of a QP destroyed next is left. */
    while (poll_cq(s, host, h->send_cq) + poll_cq(s, host, h->recv_cq) > 0)
        continue;
    while (mrd_get_async_event(h->context, &event) == 0) {
        uint32_t peer = (uint32_t)strtoul(event.address + strlen("sim:"), NULL, 10);

        bool of_stranger = s->stranger && peer >= s->config.sim.hosts;

        swarm_tell(s, "host %u: %s: %s", host, mrd_event_type_str(event.event_type), event.address);
        swarm_check(s,
                    of_stranger || (strncmp(event.address, "sim:", 4) == 0 &&
                                    peer < s->config.sim.hosts && swarm_may_be_told(s, host, peer)),
                    "host %u: %s: %s", host, mrd_event_type_str(event.event_type), event.address);
        mrd_ack_async_event(&event);
    }
}

void swarm_poll_all(struct swarm *s)
{
    for (uint32_t host = 0; host < s->config.sim.hosts; host++) {
        if (swarm_is_live(s, host))
            swarm_poll_host(s, host);
    }
}
