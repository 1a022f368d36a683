/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts the swarm's messages and receives. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/payload.h"
#include "tests/support/swarm.h"

enum {
    GUARD_BYTES = 64,
    SEND_PIECES_MAX = 4,
    RECV_PIECES_MAX = 3,
    INLINE_BYTES = 256,
    SMALL_BYTES = 64,
    /* Shorter messages cannot be told apart by their bytes: most carry immediate data. */
    NAMED_BYTES = 8,
    MIB = 1 << 20,
    WRONG_QKEY = 1 << 20, /* added to a qkey: no queue pair has the result */
    /* Per thousand of the requests: one with another context's handle goes first. */
    FOREIGN = 20,
};

static size_t padded(size_t len)
{
    return (len + GUARD_BYTES + 15) / 16 * 16;
}

/* ------------------------------------------------------------------------------------- messages */

/* Draws a length: mostly small, rarely several MiB; at most what the seed may still send. */
static uint32_t draw_len(struct swarm *s)
{
    uint32_t dice = swarm_below(s, 1000);
    uint32_t len;

    if (s->config.len_max > 0)
        len = s->config.len_min + swarm_below(s, s->config.len_max - s->config.len_min + 1);
    else if (dice < 60)
        len = 0;
    else if (dice < 450)
        len = 1 + swarm_below(s, 64);
    else if (dice < 700)
        len = swarm_below(s, 5000);
    else if (dice < 970)
        len = swarm_below(s, 64 << 10);
    else if (dice < 995)
        len = swarm_below(s, 512 << 10);
    else
        len = swarm_below(s, 4 * MIB);
    if (len > s->config.bytes_left)
        len = (uint32_t)s->config.bytes_left;
    return len;
}

static bool is_write(enum mrd_wr_opcode opcode)
{
    return opcode == MRD_WR_RDMA_WRITE || opcode == MRD_WR_RDMA_WRITE_WITH_IMM;
}

/* Draws a flaw that fits the opcode, if the seed has bad requests. */
static enum swarm_flaw draw_flaw(struct swarm *s, enum mrd_wr_opcode opcode)
{
    if (!s->config.bad_requests || !swarm_chance(s, s->config.flawed))
        return SWARM_SOUND;
    if (swarm_chance(s, 300))
        return SWARM_BAD_QPN;
    if (is_write(opcode))
        return swarm_chance(s, 500) ? SWARM_BAD_RKEY : SWARM_BAD_RANGE;
    return swarm_chance(s, 500) ? SWARM_BAD_QKEY : SWARM_TOO_LONG;
}

/* Draws a QP of a host; SWARM_NO_QP if the host is closed or the slot drawn is empty. */
static int draw_qp(struct swarm *s, uint32_t host)
{
    if (!s->host[host].context)
        return SWARM_NO_QP;
    return s->host[host].qp[swarm_below(s, s->config.slots)];
}

static void draw_message(struct swarm *s, struct swarm_message *m)
{
    bool has_imm = s->config.numbered || swarm_chance(s, 500);

    if (swarm_chance(s, s->config.sends))
        m->opcode = has_imm ? MRD_WR_SEND_WITH_IMM : MRD_WR_SEND;
    else
        m->opcode = swarm_chance(s, 500) ? MRD_WR_RDMA_WRITE_WITH_IMM : MRD_WR_RDMA_WRITE;
    m->len = draw_len(s);
    m->flaw = draw_flaw(s, m->opcode);
    m->signaled = swarm_chance(s, 850);
    m->is_inline = m->len <= INLINE_BYTES && swarm_chance(s, 300);
    m->window = swarm_below(s, SWARM_WINDOWS);
    if (!is_write(m->opcode) && m->flaw != SWARM_TOO_LONG && m->len > s->config.recv_bytes)
        m->len = swarm_below(s, s->config.recv_bytes + 1);
    if (m->flaw == SWARM_TOO_LONG)
        m->len = s->config.recv_bytes + 1 + swarm_below(s, 5000);
    /* An empty write touches no memory, so nothing can be wrong with its address. */
    if ((m->flaw == SWARM_BAD_RKEY || m->flaw == SWARM_BAD_RANGE) && m->len == 0)
        m->flaw = SWARM_SOUND;
    if (m->opcode == MRD_WR_SEND && m->len < NAMED_BYTES &&
        (s->qp[m->from_qp].order != MRD_ORDER_NONE || swarm_chance(s, 800)))
        m->opcode = MRD_WR_SEND_WITH_IMM;
    if (m->flaw == SWARM_TOO_LONG)
        m->is_inline = m->is_inline && m->len <= INLINE_BYTES;
    if (s->config.requests && swarm_chance(s, s->config.requests))
        swarm_draw_request(s, m);
}

static void make_source(struct swarm *s, struct swarm_message *m, uint64_t number)
{
    struct swarm_host *h = &s->host[s->qp[m->from_qp].host];

    if (s->config.own_buffers) {
        m->source = malloc(m->len ? m->len : 1);
        assert_non_null(m->source);
        if (!m->is_inline && m->len > 0) {
            m->mr = mrd_reg_mr(h->pd, m->source, m->len,
                               swarm_is_request(m) ? MRD_ACCESS_LOCAL_WRITE : 0);
            swarm_check(s, m->mr, "reg_mr: %s", mrd_last_error());
        }
    } else {
        m->source = h->source + h->source_used;
        h->source_used += padded(m->len);
    }
    payload_fill(m->source, m->len, s->seed, number);
}

static uint32_t cut_source(struct swarm *s, const struct swarm_message *m, struct mrd_sge *sges)
{
    uint32_t lkey = m->mr ? m->mr->lkey : s->host[s->qp[m->from_qp].host].source_mr->lkey;
    uint32_t most = m->opcode > MRD_WR_RDMA_READ ? 1 : SEND_PIECES_MAX;
    uint32_t pieces = 1 + swarm_below(s, most), at = 0;

    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t len = i + 1 == pieces ? m->len - at : swarm_below(s, m->len - at + 1);

        sges[i] = (struct mrd_sge){(uintptr_t)m->source + at, len, lkey};
        at += len;
    }
    return pieces;
}

static void aim(struct swarm *s, struct swarm_message *m, struct mrd_send_wr *wr)
{
    const struct swarm_qp *to = &s->qp[m->to_qp];

    wr->ud.ah = s->host[s->qp[m->from_qp].host].ah[to->host];
    wr->ud.remote_qpn = to->num + (m->flaw == SWARM_BAD_QPN ? 100000 : 0);
    wr->ud.remote_qkey = to->qkey ^ (m->flaw == SWARM_BAD_QKEY ? WRONG_QKEY : 0);
    if (swarm_is_request(m))
        swarm_aim_request(s, m, wr);
    if (!is_write(m->opcode))
        return;

    struct swarm_window *window = &s->host[to->host].window[m->window];

    m->target = window->memory + window->used;
    wr->wr.rdma.remote_addr = (uintptr_t)m->target;
    wr->wr.rdma.rkey = window->rkey + (m->flaw == SWARM_BAD_RKEY);
    if (m->flaw == SWARM_BAD_RANGE) /* its last byte is just before the window */
        wr->wr.rdma.remote_addr = (uintptr_t)window->memory - m->len;
}

/* A post may fail only because a queue or table is full; the message drawn is then forgotten. */
static void check_refusal(struct swarm *s, const struct swarm_message *m, int ret)
{
    const struct swarm_host_config *host = &s->config.host[s->qp[m->from_qp].host];
    bool may_again = host->max_flows > 0 || host->max_peers > 0;

    swarm_check(s, ret == -ENOMEM || (ret == -EAGAIN && may_again),
                "post_send of %u bytes: %s (%d)", m->len, mrd_last_error(), ret);
}

/* Accounts for a posted message; its place at the target is its own from now on. */
static void settle_posted(struct swarm *s, struct swarm_message *m)
{
    struct swarm_host *to = &s->host[s->qp[m->to_qp].host];

    if (m->target)
        to->window[m->window].used += padded(m->len);
    if (m->flaw == SWARM_TOO_LONG)
        s->qp[m->to_qp].oversized = true;
    if (m->is_inline)
        swarm_free_source(s, m, true);
    s->posted_len += m->len;
    s->config.bytes_left -= m->len < s->config.bytes_left ? m->len : s->config.bytes_left;
    s->num_messages++;
}

/* Posts with a handle of another context, which must be refused although its address is right. */
static void try_foreign_handle(struct swarm *s, const struct swarm_message *m,
                               struct mrd_send_wr wr)
{
    const struct swarm_qp *from = &s->qp[m->from_qp];
    const struct swarm_host *other = &s->host[swarm_below(s, s->config.sim.hosts)];
    struct mrd_send_wr *bad_wr;

    if (!other->context || other == &s->host[from->host])
        return;
    wr.ud.ah = other->ah[s->qp[m->to_qp].host];

    int ret = mrd_post_send(from->qp, &wr, &bad_wr);

    swarm_check(s, ret == -EINVAL, "post_send to a handle of another context: %s (%d)",
                mrd_last_error(), ret);
}

/* A queue pair that was made in MRD_QPS_INIT takes messages from now on, and may send. */
static void begin_qp(struct swarm *s, uint32_t index)
{
    const struct mrd_qp_attr attr = {.qp_state = MRD_QPS_RTS};
    struct mrd_qp *qp = s->qp[index].qp;

    if (qp->state != MRD_QPS_INIT)
        return;
    swarm_tell(s, "QP %u takes messages", index);
    assert_int_equal(mrd_modify_qp(qp, &attr, MRD_QP_STATE), 0);
}

void swarm_begin_qps(struct swarm *s)
{
    for (uint32_t i = 0; i < s->num_qps; i++) {
        if (s->qp[i].qp)
            begin_qp(s, i);
    }
}

/* Posts the message that was drawn. 0 or what mrd_post_send() returned. */
static int post(struct swarm *s, struct swarm_message *m)
{
    const struct swarm_qp *from = &s->qp[m->from_qp];
    struct mrd_sge sges[SEND_PIECES_MAX];
    struct mrd_send_wr wr = {.sg_list = sges}, *bad_wr;

    begin_qp(s, m->from_qp);
    m->posted_ns = mrd_sim_now(s->sim);
    make_source(s, m, s->num_messages);
    aim(s, m, &wr);
    wr.num_sge = (int)cut_source(s, m, sges);
    wr.opcode = m->opcode;
    wr.imm_data = htonl(s->num_messages);
    wr.send_flags =
        (m->signaled ? (unsigned)MRD_SEND_SIGNALED : 0u) |
        (m->is_inline ? (unsigned)MRD_SEND_INLINE : 0u) |
        (s->config.fences && swarm_chance(s, s->config.fences) ? (unsigned)MRD_SEND_FENCE : 0u) |
        (swarm_chance(s, 100) ? (unsigned)MRD_SEND_SOLICITED : 0u);
    wr.wr_id = m->wr_id = ledger_post(&s->ledger, &(struct ledger_wr){.host = from->host,
                                                                      .life = from->life,
                                                                      .qp_num = from->num,
                                                                      .object = s->num_messages,
                                                                      .queue = LEDGER_SEND,
                                                                      .opcode = m->opcode,
                                                                      .signaled = m->signaled});

    if (s->config.bad_requests && swarm_chance(s, FOREIGN))
        try_foreign_handle(s, m, wr);

    int ret = mrd_post_send(from->qp, &wr, &bad_wr);

    swarm_tell(s, "message %u from host %u QP %u to host %u QP %u: opcode %d, %u bytes%s: %d",
               s->num_messages, from->host, m->from_qp, s->qp[m->to_qp].host, m->to_qp,
               (int)m->opcode, m->len, m->signaled ? "" : ", unsignaled", ret);
    if (ret == 0) {
        settle_posted(s, m);
        return 0;
    }
    ledger_withdraw(&s->ledger, wr.wr_id);
    check_refusal(s, m, ret);
    swarm_free_source(s, m, true);
    return ret;
}

void swarm_post_message(struct swarm *s, uint32_t host)
{
    uint32_t to = (host + 1 + swarm_below(s, s->config.sim.hosts - 1)) % s->config.sim.hosts;

    if (s->config.one_sided && host > 0)
        return;
    if (s->config.profile == SWARM_CROWD && host != 0)
        to = 0;

    int from_qp = draw_qp(s, host);
    int to_qp = draw_qp(s, swarm_chance(s, s->config.own) ? host : to);

    if (from_qp < 0 || to_qp < 0 || s->qp[from_qp].error || s->num_messages >= s->config.messages)
        return;

    swarm_post_drawn(s, (uint32_t)from_qp, (uint32_t)to_qp);
}

int swarm_post_drawn(struct swarm *s, uint32_t from_qp, uint32_t to_qp)
{
    struct swarm_message *m = &s->message[s->num_messages];

    assert_true(s->num_messages < SWARM_MESSAGES_MAX);
    *m = (struct swarm_message){.from_qp = from_qp, .to_qp = to_qp};
    draw_message(s, m);
    return post(s, m);
}

int swarm_post_small(struct swarm *s, uint32_t from_qp, uint32_t to_qp)
{
    struct swarm_message *m = &s->message[s->num_messages];

    assert_true(s->num_messages < SWARM_MESSAGES_MAX);
    *m = (struct swarm_message){.from_qp = from_qp,
                                .to_qp = to_qp,
                                .opcode = MRD_WR_SEND_WITH_IMM,
                                .len = swarm_below(s, SMALL_BYTES),
                                .signaled = true};
    return post(s, m);
}

/* ------------------------------------------------------------------------------------- receives */

/*
 * Takes a receive buffer of the host that is not posted: a used one, if it is still as it was left,
 * or a new one. NULL: no room.
 */
static struct swarm_receive *take_buffer(struct swarm *s, uint32_t host)
{
    struct swarm_host *h = &s->host[host];

    if (h->num_unposted > 0) {
        uint32_t at = swarm_below(s, h->num_unposted);
        struct swarm_receive *r = &s->receive[h->unposted[at]];

        h->unposted[at] = h->unposted[--h->num_unposted];
        swarm_check(s, payload_is_blank(r->buf, r->used_len, SWARM_USED),
                    "host %u: a receive buffer changed after its completion", host);
        memset(r->buf, SWARM_BLANK, r->used_len);
        r->used_len = 0;
        return r;
    }
    if (s->num_receives == SWARM_RECEIVES_MAX ||
        h->recv_used + padded(s->config.recv_bytes) > h->recv_mr->length)
        return NULL;

    struct swarm_receive *r = &s->receive[s->num_receives++];

    *r = (struct swarm_receive){.host = host, .buf = h->recv + h->recv_used};
    h->recv_used += padded(s->config.recv_bytes);
    return r;
}

void swarm_post_receive(struct swarm *s, uint32_t index)
{
    struct swarm_qp *qp = &s->qp[index];
    struct swarm_host *h = &s->host[qp->host];
    struct swarm_receive *r = take_buffer(s, qp->host);

    if (!r)
        return;
    if (qp->shared && h->shared_posted == s->config.recv_depth * s->config.slots) {
        h->unposted[h->num_unposted++] = (uint32_t)(r - s->receive);
        return;
    }

    uint32_t pieces = 1 + swarm_below(s, RECV_PIECES_MAX), at = 0;
    struct mrd_sge sges[RECV_PIECES_MAX];

    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t room = s->config.recv_bytes - at;
        uint32_t len = i + 1 == pieces ? room : swarm_below(s, room + 1);

        sges[i] = (struct mrd_sge){(uintptr_t)r->buf + at, len, h->recv_mr->lkey};
        at += len;
    }

    struct mrd_recv_wr wr = {.sg_list = sges, .num_sge = (int)pieces}, *bad_wr;

    wr.wr_id = ledger_post(&s->ledger, &(struct ledger_wr){.host = qp->host,
                                                           .life = qp->life,
                                                           .qp_num = qp->num,
                                                           .object = (uint32_t)(r - s->receive),
                                                           .queue = LEDGER_RECV,
                                                           .signaled = true,
                                                           .shared = qp->shared});
    r->posted = true;
    r->qp = index;

    int ret =
        qp->shared ? mrd_post_srq_recv(h->srq, &wr, &bad_wr) : mrd_post_recv(qp->qp, &wr, &bad_wr);

    /* Messages that took shared receives may fill the queue of completions until it is polled. */
    if (ret == -ENOMEM && h->srq && !qp->shared) {
        ledger_withdraw(&s->ledger, wr.wr_id);
        r->posted = false;
        h->unposted[h->num_unposted++] = (uint32_t)(r - s->receive);
        return;
    }
    h->shared_posted += qp->shared;
    swarm_check(s, ret == 0, "post_recv %u of %u: %s (%d)", qp->receives + 1, qp->depth,
                mrd_last_error(), ret);
    swarm_tell(s, "QP %u has %u receives", index, qp->receives + 1);
    qp->receives++;
}

/* Fills up the receives of the host's QPs; amid faults only sometimes: senders find none. */
void swarm_post_receives(struct swarm *s, uint32_t host)
{
    if (!s->healing && mrd_sim_now(s->sim) < s->host[host].late_until_ns)
        return;
    for (uint32_t slot = 0; slot <= SWARM_SLOT_AFTER; slot++) {
        int index = s->host[host].qp[slot];

        if (index < 0 || s->qp[index].error || (s->qp[index].starved && !s->healing))
            continue;
        if (swarm_chance(s, 300))
            begin_qp(s, (uint32_t)index);
        while (s->qp[index].receives < s->qp[index].depth &&
               (s->healing || s->config.profile == SWARM_CLOSING || swarm_chance(s, 700))) {
            uint32_t before = s->qp[index].receives;

            swarm_post_receive(s, (uint32_t)index);
            if (s->qp[index].receives == before)
                break;
        }
    }
}
