/* SPDX-License-Identifier: BSD-2-Clause */
/* Worlds: posts, polls, and checks the messages that arrive. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "tests/support/payload.h"
#include "tests/support/world.h"
#include "transport/movers/sim/sim_host.h"

enum {
    ARENA_ALIGN = 64,
    GUARD_BYTES = 64, /* behind each target; nothing may write there */
    STEP_NS = 1000,   /* least time between two polls */
    POLL_BURST = 32,
};

static uint8_t *take_arena(struct sim_world *w, uint32_t host, size_t len)
{
    struct sim_node *node = &w->node[host];
    uint8_t *at = node->arena + node->arena_used;

    node->arena_used += (len + GUARD_BYTES + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    assert_true(node->arena_used <= node->mr->length);
    return at;
}

/* ----------------------------------------------------------------------------------------- post */

static void *grow(void *items, uint32_t num, uint32_t *cap, size_t item_bytes)
{
    if (num < *cap)
        return items;
    *cap = *cap ? *cap * 2 : 64;
    items = realloc(items, *cap * item_bytes);
    assert_non_null(items);
    return items;
}

void sim_post_recvs(struct sim_world *w, uint32_t host, uint32_t qp, uint32_t count, uint32_t len)
{
    struct sim_node *node = &w->node[host];

    for (uint32_t i = 0; i < count; i++) {
        w->receives = grow(w->receives, w->num_receives, &w->cap_receives, sizeof(*w->receives));

        struct sim_receive *receive = &w->receives[w->num_receives];

        *receive = (struct sim_receive){.host = host, .qp = qp, .len = len};
        receive->buf = take_arena(w, host, len);
        receive->wr_id = ledger_post(&w->ledger, &(struct ledger_wr){.host = host,
                                                                     .life = node->life,
                                                                     .qp_num = node->qp[qp]->qp_num,
                                                                     .object = w->num_receives,
                                                                     .queue = LEDGER_RECV,
                                                                     .signaled = true});
        w->num_receives++;

        struct mrd_sge sge = {(uintptr_t)receive->buf, len, node->mr->lkey};
        struct mrd_recv_wr wr = {.wr_id = receive->wr_id, .sg_list = &sge, .num_sge = 1};
        struct mrd_recv_wr *bad_wr;

        test_check(w->options.seed, mrd_post_recv(node->qp[qp], &wr, &bad_wr) == 0, "post_recv: %s",
                   mrd_last_error());
    }
}

static bool is_write(enum mrd_wr_opcode opcode)
{
    return opcode == MRD_WR_RDMA_WRITE || opcode == MRD_WR_RDMA_WRITE_WITH_IMM;
}

static bool has_imm(enum mrd_wr_opcode opcode)
{
    return opcode == MRD_WR_SEND_WITH_IMM || opcode == MRD_WR_RDMA_WRITE_WITH_IMM;
}

/* Cuts a message into pieces of about equal length. Returns their number. */
static uint32_t cut(struct mrd_sge *sges, const struct sim_message *m, uint32_t pieces,
                    uint32_t lkey)
{
    for (uint32_t i = 0, at = 0; i < pieces; i++) {
        uint32_t len = i + 1 == pieces ? m->len - at : m->len / pieces;

        sges[i] = (struct mrd_sge){(uintptr_t)m->source + at, len, lkey};
        at += len;
    }
    return pieces;
}

int sim_try_post(struct sim_world *w, const struct sim_post *post, uint32_t *index)
{
    struct sim_node *from = &w->node[post->from], *to = &w->node[post->to];
    struct sim_message m = {.from = post->from,
                            .to = post->to,
                            .qp = post->qp,
                            .opcode = post->opcode,
                            .len = post->len,
                            .signaled = !post->unsignaled};
    struct mrd_sge sges[MRD_SGE_MAX];
    struct mrd_send_wr wr = {.opcode = post->opcode, .sg_list = sges}, *bad_wr;

    m.source = take_arena(w, post->from, post->len);
    payload_fill(m.source, m.len, w->options.seed, w->num_messages);
    if (is_write(post->opcode)) {
        m.target = take_arena(w, post->to, post->len);
        wr.wr.rdma.remote_addr = (uintptr_t)m.target + post->remote_add;
        wr.wr.rdma.rkey = to->mr->rkey + post->rkey_add;
    }
    wr.num_sge = (int)cut(sges, &m, post->pieces ? post->pieces : 1, from->mr->lkey);
    wr.send_flags = (post->unsignaled ? 0u : (unsigned)MRD_SEND_SIGNALED) |
                    (post->is_inline ? (unsigned)MRD_SEND_INLINE : 0u);
    wr.imm_data = htonl(w->num_messages);
    wr.ud.ah = from->ah[post->to];
    /* If the host is closed: the QP number that its next context will assign. */
    wr.ud.remote_qpn =
        (to->qp[post->qp] ? to->qp[post->qp]->qp_num : MRD_QPN_FIRST + post->qp) + post->qpn_add;
    wr.ud.remote_qkey = 0x1000 + post->qp + post->qkey_add;
    wr.wr_id = m.wr_id =
        ledger_post(&w->ledger, &(struct ledger_wr){.host = post->from,
                                                    .life = from->life,
                                                    .qp_num = from->qp[post->qp]->qp_num,
                                                    .object = w->num_messages,
                                                    .queue = LEDGER_SEND,
                                                    .opcode = post->opcode,
                                                    .signaled = m.signaled});

    int ret = mrd_post_send(from->qp[post->qp], &wr, &bad_wr);

    if (ret != 0) {
        ledger_withdraw(&w->ledger, wr.wr_id);
        return ret;
    }
    if (post->is_inline)
        memset(m.source, 0xee, m.len); /* inline data was copied: the buffer is free */
    w->messages = grow(w->messages, w->num_messages, &w->cap_messages, sizeof(m));
    *index = w->num_messages;
    w->messages[w->num_messages++] = m;
    return 0;
}

uint32_t sim_post(struct sim_world *w, const struct sim_post *post)
{
    bool takes_receive = post->opcode != MRD_WR_RDMA_WRITE;
    uint32_t index = 0;

    if (takes_receive && !post->no_receive && !w->options.no_receives) {
        uint32_t room = w->options.recv_bytes > post->len ? w->options.recv_bytes : post->len;

        sim_post_recvs(w, post->to, post->qp, 1, room);
    }

    int ret = sim_try_post(w, post, &index);

    test_check(w->options.seed, ret == 0, "post_send: %s (%d)", mrd_last_error(), ret);
    return index;
}

uint32_t sim_post_on(struct sim_world *w, uint32_t from, uint32_t to, uint32_t qp, uint32_t len,
                     enum mrd_wr_opcode opcode)
{
    return sim_post(
        w, &(struct sim_post){.from = from, .to = to, .qp = qp, .len = len, .opcode = opcode});
}

uint32_t sim_send(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len)
{
    return sim_post_on(w, from, to, 0, len, MRD_WR_SEND);
}

uint32_t sim_write(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len)
{
    return sim_post_on(w, from, to, 0, len, MRD_WR_RDMA_WRITE);
}

uint32_t sim_write_imm(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len)
{
    return sim_post_on(w, from, to, 0, len, MRD_WR_RDMA_WRITE_WITH_IMM);
}

void sim_fail_qp(struct sim_world *w, uint32_t host, uint32_t qp)
{
    const struct mrd_qp_attr attr = {.qp_state = MRD_QPS_ERR};

    assert_int_equal(mrd_modify_qp(w->node[host].qp[qp], &attr, MRD_QP_STATE), 0);
}

/* ------------------------------------------------------------------------------------- complete */

static bool guard_is_clean(const uint8_t *buf, size_t len)
{
    return payload_is_blank(buf + len, GUARD_BYTES, 0);
}

/* The message of a receive without immediate data: the oldest not received whose bytes it holds. */
static struct sim_message *match(struct sim_world *w, const struct sim_receive *receive,
                                 const struct mrd_wc *wc)
{
    for (uint32_t i = 0; i < w->num_messages; i++) {
        struct sim_message *m = &w->messages[i];

        if (m->to == receive->host && m->qp == receive->qp && m->opcode == MRD_WR_SEND &&
            !m->received && m->len == wc->byte_len &&
            payload_mismatch(receive->buf, m->len, w->options.seed, i) == m->len)
            return m;
    }
    test_fail(w->options.seed, "host %u received %u bytes that no message holds", receive->host,
              wc->byte_len);
}

static struct sim_message *match_imm(struct sim_world *w, const struct sim_receive *receive,
                                     const struct mrd_wc *wc)
{
    uint32_t index = ntohl(wc->imm_data);

    test_check(w->options.seed, index < w->num_messages, "immediate data of no message: %u", index);

    struct sim_message *m = &w->messages[index];
    bool is_write_imm = wc->opcode == MRD_WC_RECV_RDMA_WITH_IMM;

    test_check(w->options.seed,
               m->to == receive->host && m->qp == receive->qp && has_imm(m->opcode) &&
                   is_write(m->opcode) == is_write_imm && m->len == wc->byte_len,
               "message %u arrived as another", index);
    test_check(w->options.seed, !m->received, "message %u arrived twice", index);
    return m;
}

/* Does the place at the target hold the message, and nothing behind it? */
static bool is_placed(const struct sim_world *w, const struct sim_message *m, const uint8_t *at)
{
    uint64_t number = (uint64_t)(m - w->messages);

    return payload_mismatch(at, m->len, w->options.seed, number) == m->len &&
           guard_is_clean(at, m->len);
}

static void complete_receive(struct sim_world *w, uint32_t index, const struct mrd_wc *wc)
{
    struct sim_receive *receive = &w->receives[index];
    struct sim_node *node = &w->node[receive->host];

    receive->done = true;
    receive->status = wc->status;
    receive->wc = *wc;
    if (wc->status != MRD_WC_SUCCESS)
        return;

    bool with_imm = wc->wc_flags & MRD_WC_WITH_IMM;
    struct sim_message *m = with_imm ? match_imm(w, receive, wc) : match(w, receive, wc);

    m->received = true;
    m->received_ns = mrd_sim_now(w->sim);
    m->delivery = ++node->deliveries;
    m->equal = is_placed(w, m, m->target ? m->target : receive->buf);
    test_check(w->options.seed, wc->src_qp == w->node[m->from].qp[m->qp]->qp_num,
               "message of QP %u says it is from %u", w->node[m->from].qp[m->qp]->qp_num,
               wc->src_qp);
}

static void complete_send(struct sim_world *w, uint32_t index, enum mrd_wc_status status)
{
    struct sim_message *m = &w->messages[index];

    m->sent = true;
    m->sent_ns = mrd_sim_now(w->sim);
    m->status = status;
    /*
     * Success means that the bytes are in place now: later copies of the packets must not matter.
     */
    if (status == MRD_WC_SUCCESS && m->target)
        m->equal = is_placed(w, m, m->target);
    memset(m->source, 0xee, m->len);
}

static void poll_events(struct sim_node *node)
{
    struct mrd_async_event event;

    while (mrd_get_async_event(node->context, &event) == 0) {
        node->unreachable += event.event_type == MRD_EVENT_PEER_UNREACHABLE;
        node->busy += event.event_type == MRD_EVENT_PEER_BUSY;
        node->full += event.event_type == MRD_EVENT_PEERS_FULL;
        node->restarted += event.event_type == MRD_EVENT_PEER_RESTARTED;
        mrd_ack_async_event(&event);
    }
}

static void poll_node(struct sim_world *w, uint32_t host)
{
    struct sim_node *node = &w->node[host];
    struct mrd_wc wc[POLL_BURST];
    int n;

    do {
        n = mrd_poll_cq(node->cq, POLL_BURST, wc);
        test_check(w->options.seed, n >= 0, "poll: %s", mrd_last_error());
        for (int i = 0; i < n; i++) {
            const struct ledger_wr *wr = ledger_complete(&w->ledger, host, node->life, &wc[i]);

            if (wr->queue == LEDGER_RECV)
                complete_receive(w, wr->object, &wc[i]);
            else
                complete_send(w, wr->object, wc[i].status);
        }
    } while (n == POLL_BURST);
    poll_events(node);
}

void sim_poll(struct sim_world *w)
{
    for (uint32_t host = 0; host < w->options.hosts; host++) {
        if (w->node[host].context && !mrd_sim_is_stopped(w->sim, host))
            poll_node(w, host);
    }
}

void sim_links(struct sim_world *w, const char *links, const char *action, const char *format, ...)
{
    char value[64];
    va_list args;

    va_start(args, format);
    vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    test_check(w->options.seed, mrd_sim_schedule(w->sim, 0, links, action, value) == 0,
               "%s %s %s: %s", links, action, value, mrd_last_error());
}

/* ------------------------------------------------------------------------------------------ run */

static void open_blackhole(struct sim_world *w)
{
    int link = (int)(w->options.blackhole.path % w->options.links);
    struct mrd_sim_link attr;

    assert_int_equal(mrd_sim_get_link(w->sim, 0, 0, link, &attr), 0);
    attr.blackhole = 1;
    assert_int_equal(mrd_sim_set_link(w->sim, -1, -1, link, &attr), 0);
    w->options.blackhole.at_ns = 0;
}

/* Runs to the next event, for STEP_NS at least, and not beyond `end_ns` or the blackhole's time. */
static void step(struct sim_world *w, uint64_t end_ns)
{
    uint64_t at_ns = mrd_sim_next_event_ns(w->sim);
    uint64_t least_ns = mrd_sim_now(w->sim) + STEP_NS;
    uint64_t blackhole_ns = w->options.blackhole.at_ns;

    at_ns = at_ns < least_ns ? least_ns : at_ns;
    at_ns = at_ns < end_ns ? at_ns : end_ns;
    if (blackhole_ns && at_ns >= blackhole_ns)
        at_ns = blackhole_ns;
    mrd_sim_run_until(w->sim, at_ns);
    if (at_ns == blackhole_ns)
        open_blackhole(w);
    sim_poll(w);
}

void sim_run(struct sim_world *w, uint64_t ns)
{
    uint64_t end_ns = mrd_sim_now(w->sim) + ns;

    sim_poll(w);
    while (mrd_sim_now(w->sim) < end_ns)
        step(w, end_ns);
}

void sim_stop_for(struct sim_world *w, uint32_t host, uint64_t ns)
{
    mrd_sim_stop_host(w->sim, host, 1);
    sim_run(w, ns);
    mrd_sim_stop_host(w->sim, host, 0);
}

static bool message_is_complete(const struct sim_world *w, struct sim_message *m)
{
    if (m->sent && m->status != MRD_WC_SUCCESS)
        return true;
    if (m->signaled && !m->sent)
        return false;
    if (m->opcode != MRD_WR_RDMA_WRITE)
        return m->received;
    if (!m->sent)
        m->equal = is_placed(w, m, m->target);
    return m->sent || m->equal;
}

bool sim_is_complete(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->num_messages; i++) {
        if (!message_is_complete(w, &w->messages[i]))
            return false;
    }
    return true;
}

uint64_t sim_run_until_complete(struct sim_world *w, uint64_t budget_ns)
{
    uint64_t start_ns = mrd_sim_now(w->sim), end_ns = start_ns + budget_ns;

    sim_poll(w);
    while (!sim_is_complete(w)) {
        uint32_t waiting = 0;

        if (mrd_sim_now(w->sim) < end_ns) {
            step(w, end_ns);
            continue;
        }
        for (uint32_t i = 0; i < w->num_messages; i++)
            waiting += !message_is_complete(w, &w->messages[i]);
        test_fail(w->options.seed, "%u of %u messages are not complete after %" PRIu64 " ns",
                  waiting, w->num_messages, budget_ns);
    }
    return mrd_sim_now(w->sim) - start_ns;
}

uint64_t sim_all_arrive(struct sim_world *w, uint64_t budget_ns)
{
    uint64_t ns = sim_run_until_complete(w, budget_ns);

    for (uint32_t host = 0; host < w->options.hosts; host++)
        assert_true(sim_payload_equal(w, host));
    return ns;
}

void sim_send_complete(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len,
                       uint64_t budget_ns)
{
    sim_send(w, from, to, len);
    sim_all_arrive(w, budget_ns);
}

void sim_write_complete(struct sim_world *w, uint32_t from, uint32_t to, uint32_t len,
                        uint64_t budget_ns)
{
    sim_write(w, from, to, len);
    sim_all_arrive(w, budget_ns);
}

bool sim_payload_equal(struct sim_world *w, uint32_t host)
{
    for (uint32_t i = 0; i < w->num_messages; i++) {
        const struct sim_message *m = &w->messages[i];

        if (m->to == host && !m->equal) {
            print_error("message %u to host %u: %s\n", i, host,
                        m->received ? "wrong bytes" : "missing");
            return false;
        }
    }
    return true;
}

void sim_expect_no_losses(const struct sim_world *w)
{
    for (uint32_t host = 0; host < w->options.hosts; host++)
        assert_int_equal(w->node[host].unreachable + w->node[host].restarted, 0);
}

void sim_expect_sent(const struct sim_world *w, uint32_t message, enum mrd_wc_status status)
{
    assert_true(w->messages[message].sent);
    assert_int_equal(w->messages[message].status, status);
}

void sim_expect_received(const struct sim_world *w, uint32_t receive, enum mrd_wc_status status)
{
    assert_true(w->receives[receive].done);
    assert_int_equal(w->receives[receive].status, status);
}

bool sim_in_order(const struct sim_world *w, uint32_t from, uint32_t to, uint32_t qp)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < w->num_messages; i++) {
        const struct sim_message *m = &w->messages[i];

        if (m->from != from || m->to != to || m->qp != qp || !m->received)
            continue;
        if (m->delivery <= last)
            return false;
        last = m->delivery;
    }
    return true;
}

uint64_t sim_counter(struct sim_world *w, uint32_t host, const char *name)
{
    struct mrd_counter counters[256];
    int num = mrd_query_counters(w->node[host].context, counters, 256);

    for (int i = 0; i < num && i < 256; i++) {
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].value;
    }
    test_fail(w->options.seed, "no counter \"%s\"", name);
}
