/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two engines, face to face: what one sends lies in the other's inbox until its next turn, where a
 * test may look at it, lose it, repeat it or break it. Time is the test's.
 *
 * TEST_F(pair, name) finds both open, TEST_F(wary_pair, name) as contexts are; pair_post() and
 * pair_turn(), or pair_settle() until nobody has anything to say. For another configuration:
 * pair_config(), the change, pair_open().
 */
#ifndef MRD_UNIT_ENGINE_PAIR_H
#define MRD_UNIT_ENGINE_PAIR_H

#include <errno.h>
#include <string.h>

#include "core/engine/answer.h"
#include "core/engine/peer_state.h"
#include "core/engine/state.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

enum {
    PAIR_INBOX = 128,
    PAIR_BURST = 32,
    PAIR_PAYLOAD = 1024,
    PAIR_MEMORY = 64 * PAIR_PAYLOAD,
    PAIR_HOP_NS = 2000,
    PAIR_QKEY = 0x77,
};

struct pair_frame {
    uint8_t data[MRD_TX_HEAD_BYTES];
    uint32_t len;
    uint16_t path;
    uint8_t flags; /* enum mrd_tx_flags that it left with */
};

struct pair_end {
    struct mrd_engine *e;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr;
    struct mrd_ah *ah; /* to the other */
    struct mrd_addr addr;
    uint8_t memory[PAIR_MEMORY];
    struct pair_frame inbox[PAIR_INBOX];
    unsigned num_inbox;
    uint64_t cookie; /* last one of a packet sent */
};

FIXTURE(pair)
{
    struct unit_alloc alloc;
    struct mrd_engine_config config;
    struct pair_end end[2];
    uint64_t now;
    unsigned burst; /* packets that a mover takes at a time */
    uint8_t head[PAIR_BURST][MRD_TX_HEAD_BYTES];
};

static inline void pair_settle(struct pair *p, uint64_t until_ns);

/*
 * What is on its way arrives; then everything is given back, and no figure differs from what it is
 * derived from.
 */
static inline void pair_end(struct pair *p)
{
    if (p->end[0].e && p->end[1].e)
        pair_settle(p, p->now + MRD_SEC);
    for (unsigned i = 0; i < 2; i++) {
        struct pair_end *end = &p->end[i];

        if (!end->e)
            continue;
        assert_null(mrd_engine_audit(end->e));
        assert_int_equal(mrd_engine_destroy_ah(end->e, end->ah), 0);
        assert_int_equal(mrd_engine_destroy_qp(end->e, end->qp, p->now), 0);
        assert_int_equal(mrd_engine_destroy_cq(end->e, end->cq), 0);
        if (end->mr)
            assert_int_equal(mrd_engine_dereg_mr(end->e, end->mr, p->now), 0);
        assert_int_equal(mrd_engine_dealloc_pd(end->e, end->pd), 0);
        mrd_engine_destroy(end->e);
        end->e = NULL;
    }
    assert_int_equal(p->alloc.live_bytes, 0);
}

/* The default configuration; a test may change it before pair_open(). What was open is closed. */
static inline void pair_config(struct pair *p)
{
    pair_end(p);
    memset(p, 0, sizeof(*p));
    unit_alloc_init(&p->alloc);
    p->now = 1000 * MRD_SEC;
    p->burst = PAIR_BURST;
    p->config = (struct mrd_engine_config){.mover = {.link_bps = 100000000000ull,
                                                     .rto_floor_ns = 100 * MRD_USEC,
                                                     .base_rtt_ns = 10 * MRD_USEC,
                                                     .ack_every = 4,
                                                     .ack_delay_ns = 1000,
                                                     .payload_bytes = PAIR_PAYLOAD,
                                                     .quantum = 1,
                                                     .paths = 8,
                                                     .tracker = 1024,
                                                     .copies = true},
                                           .seed = 1,
                                           .key = {1, 2},
                                           .trusting = true,
                                           .paths = 8,
                                           .max_peers = 16,
                                           .max_flows = 16,
                                           .peer_timeout_ns = 8 * MRD_SEC};
}

static inline struct mrd_ah *pair_ah(const struct pair *p, unsigned at, const struct mrd_addr *addr)
{
    int error;
    struct mrd_ah *ah = mrd_engine_create_ah(p->end[at].e, p->end[at].pd, addr, 0, &error);

    assert_non_null(ah);
    return ah;
}

/* All of the end's memory. */
static inline struct mrd_mr *pair_register(struct pair *p, unsigned at, int access)
{
    struct pair_end *end = &p->end[at];
    int error;
    struct mrd_mr *mr = mrd_engine_reg_mr(end->e, end->pd, end->memory, sizeof(end->memory), access,
                                          &(struct mrd_mover_mr){0}, &error);

    assert_non_null(mr);
    return mr;
}

static inline void pair_open_end(struct pair *p, unsigned i)
{
    struct pair_end *end = &p->end[i];
    struct mrd_qp_init_attr attr = {
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4},
        .qkey = PAIR_QKEY,
        .rnr_retry = 7};
    int error;

    end->addr.port = 100 + i;
    p->config.self = end->addr;
    p->config.incarnation = 1000 + i;
    end->e = mrd_engine_create(&p->config, &p->alloc.ops, p->now, &error);
    assert_non_null(end->e);
    end->pd = mrd_engine_alloc_pd(end->e, NULL);
    end->cq = mrd_engine_create_cq(end->e, NULL, 64, NULL, &error);
    attr.send_cq = attr.recv_cq = end->cq;
    end->qp = mrd_engine_create_qp(end->e, end->pd, &attr, &error);
    end->mr = pair_register(p, i, MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    assert_non_null(end->qp);
}

static inline void pair_open(struct pair *p)
{
    for (unsigned i = 0; i < 2; i++)
        pair_open_end(p, i);
    for (unsigned i = 0; i < 2; i++)
        p->end[i].ah = pair_ah(p, i, &p->end[1 - i].addr);
    for (unsigned i = 0; i < PAIR_MEMORY; i++)
        p->end[0].memory[i] = (uint8_t)(i * 31 + i / 256);
}

/* The default but for the sizes of the tables; 0: as they are else. */
static inline void pair_open_with(struct pair *p, uint32_t max_peers, uint32_t max_flows)
{
    pair_config(p);
    p->config.max_peers = max_peers ? max_peers : p->config.max_peers;
    p->config.max_flows = max_flows ? max_flows : p->config.max_flows;
    pair_open(p);
}

static inline void pair_begin(struct pair *p)
{
    pair_config(p);
    pair_open(p);
}

FIXTURE_FROM(pair, pair_begin, pair_end);

/* As contexts of real movers are: they challenge first contacts. */
static inline void pair_begin_wary(struct pair *p)
{
    pair_config(p);
    p->config.trusting = false;
    pair_open(p);
}

FIXTURE_OF(wary_pair, pair);
FIXTURE_FROM(wary_pair, pair_begin_wary, pair_end);

/* From one end's memory to the same place of the other's; `opcode` WRITE or SEND. */
static inline void pair_post(struct pair *p, unsigned from, enum mrd_wr_opcode opcode,
                             uint32_t offset, uint32_t len)
{
    struct pair_end *a = &p->end[from], *b = &p->end[1 - from];
    struct mrd_sge sge = {
        .addr = (uint64_t)(uintptr_t)(a->memory + offset), .length = len, .lkey = a->mr->lkey};
    struct mrd_send_wr wr = {
        .wr_id = 500 + offset,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = MRD_SEND_SIGNALED,
        .ud = {.ah = a->ah, .remote_qpn = b->qp->qp_num, .remote_qkey = PAIR_QKEY},
        .wr = {.rdma = {.remote_addr = (uint64_t)(uintptr_t)(b->memory + offset),
                        .rkey = b->mr->rkey}}};
    struct mrd_send_wr *bad;

    mrd_engine_begin(a->e, p->now);
    assert_int_equal(mrd_engine_post_send(a->e, a->qp, &wr, &bad, p->now), 0);
}

static inline void pair_post_recv(struct pair *p, unsigned at, uint32_t offset, uint32_t len)
{
    struct pair_end *a = &p->end[at];
    struct mrd_sge sge = {
        .addr = (uint64_t)(uintptr_t)(a->memory + offset), .length = len, .lkey = a->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = 900 + offset, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_engine_post_recv(a->e, a->qp, &wr, &bad), 0);
}

static inline struct mrd_rx_packet pair_packet(const struct pair *p, unsigned at,
                                               const struct pair_frame *f)
{
    return (struct mrd_rx_packet){.data = f->data,
                                  .len = f->len,
                                  .ecn = f->flags & MRD_TX_ECT ? MRD_ECN_ECT0 : MRD_ECN_NOT_ECT,
                                  .from = p->end[1 - at].addr,
                                  .to = p->end[at].addr};
}

static inline struct mrd_wire_head pair_head(const struct pair_frame *f)
{
    struct mrd_wire_head head;

    assert_int_equal(mrd_wire_get(f->data, f->len, &head), MRD_WIRE_OK);
    return head;
}

/* What the end is called by the other one. */
static inline uint32_t pair_inc(const struct pair *p, unsigned at)
{
    return mrd_answer_pair(p->end[at].e, &p->end[1 - at].addr).own_inc;
}

/* The address of some third host. */
static inline struct mrd_addr pair_addr_of(uint32_t host)
{
    struct mrd_addr addr = {.port = 1000};

    memcpy(&addr.ip[12], &host, sizeof(host));
    return addr;
}

/* What the end knows of the other: its newest peer. */
static inline struct mrd_peer *pair_peer(const struct pair *p, unsigned at)
{
    return mrd_container_of(p->end[at].e->peers.active.next, struct mrd_peer, node);
}

/* The entry of some third host; NULL: there is no room. */
static inline struct mrd_peer *pair_third(const struct pair *p, unsigned at, uint32_t host)
{
    struct mrd_addr addr = pair_addr_of(host);

    return mrd_peer_open(p->end[at].e, &addr);
}

/* The peer's host is that one now. */
static inline void pair_move_peer(struct pair *p, unsigned at, struct mrd_peer *peer, uint8_t host)
{
    struct mrd_addr addr = peer->addr;

    addr.ip[15] = host;
    mrd_peer_move(&p->end[at].e->peers, peer, &addr);
}

/* So much later the end begins a turn. */
static inline void pair_pass(struct pair *p, unsigned at, uint64_t ns)
{
    p->now += ns;
    mrd_engine_begin(p->end[at].e, p->now);
}

static inline void pair_rx_one(struct pair *p, unsigned at, const struct pair_frame *f)
{
    struct mrd_rx_packet packet = pair_packet(p, at, f);

    mrd_engine_rx(p->end[at].e, &packet, 1, p->now);
}

/* All that lies in the inbox arrives `ns` from now, at the begin of a turn. */
static inline void pair_rx(struct pair *p, unsigned at, uint64_t ns)
{
    struct pair_end *end = &p->end[at];

    pair_pass(p, at, ns);
    for (unsigned i = 0; i < end->num_inbox; i++)
        pair_rx_one(p, at, &end->inbox[i]);
    end->num_inbox = 0;
}

/* Of what lies in the inbox only the acks arrive. */
static inline void pair_rx_acks(struct pair *p, unsigned at)
{
    struct pair_end *end = &p->end[at];

    for (unsigned i = 0; i < end->num_inbox; i++)
        if (pair_head(&end->inbox[i]).type == MRD_WIRE_ACK)
            pair_rx_one(p, at, &end->inbox[i]);
    end->num_inbox = 0;
}

/* What it has to send now, but no more than a burst, goes into the other's inbox; how many. */
static inline unsigned pair_tx_burst(struct pair *p, unsigned at, unsigned burst)
{
    struct pair_end *to = &p->end[1 - at];
    struct mrd_tx_packet packet[PAIR_BURST];

    for (unsigned i = 0; i < PAIR_BURST; i++)
        packet[i] = (struct mrd_tx_packet){.head = p->head[i], .head_cap = MRD_TX_HEAD_BYTES};
    unsigned n = mrd_engine_tx(p->end[at].e, packet, burst, p->now);
    for (unsigned i = 0; i < n; i++) {
        struct pair_frame *f = &to->inbox[to->num_inbox++];

        assert_true(to->num_inbox < PAIR_INBOX);
        assert_int_equal(packet[i].to.port, to->addr.port);
        memcpy(f->data, packet[i].head, packet[i].head_len);
        f->len = packet[i].head_len;
        f->path = packet[i].path;
        f->flags = packet[i].flags;
        for (unsigned k = 0; k < packet[i].num_iov; f->len += (uint32_t)packet[i].iov[k++].iov_len)
            memcpy(f->data + f->len, packet[i].iov[k].iov_base, packet[i].iov[k].iov_len);
        assert_int_equal(f->len, packet[i].len);
        if (packet[i].cookie != MRD_TX_COOKIE_NONE)
            p->end[at].cookie = packet[i].cookie;
    }
    return n;
}

/* All that it has to send now goes into the other's inbox; how many. */
static inline unsigned pair_tx(struct pair *p, unsigned at)
{
    unsigned n, total = 0;

    do {
        n = pair_tx_burst(p, at, p->burst);
        total += n;
    } while (n == p->burst);
    return total;
}

/* All that it has to send now is lost; how many. */
static inline unsigned pair_tx_lost(struct pair *p, unsigned at)
{
    unsigned sent = pair_tx(p, at);

    p->end[1 - at].num_inbox = 0;
    return sent;
}

/* One turn of its loop: read all, expire, send. */
static inline unsigned pair_turn(struct pair *p, unsigned at)
{
    struct mrd_engine *e = p->end[at].e;

    pair_rx(p, at, 0);
    mrd_engine_drained(e, p->now);
    mrd_engine_expire(e, p->now);
    return pair_tx(p, at);
}

/* The end's next deadline; what it sends then is lost. */
static inline void pair_turn_in_vain(struct pair *p, unsigned at)
{
    uint64_t next_ns = mrd_engine_deadline(p->end[at].e);

    assert_true(next_ns != MRD_NEVER); /* or it would wait for ever */
    p->now = next_ns > p->now ? next_ns : p->now;
    pair_turn(p, at);
    p->end[1 - at].num_inbox = 0;
}

/* A turn a hop's time from now. */
static inline unsigned pair_hop(struct pair *p, unsigned at)
{
    p->now += PAIR_HOP_NS;
    return pair_turn(p, at);
}

/*
 * Turns, a hop's time apart, and sleeps until the next deadline, until neither has a deadline or
 * `until_ns` is past.
 */
static inline void pair_settle(struct pair *p, uint64_t until_ns)
{
    while (p->now < until_ns) {
        uint64_t a, b, next;

        pair_turn(p, 0);
        p->now += PAIR_HOP_NS;
        pair_turn(p, 1);
        p->now += PAIR_HOP_NS;
        if (p->end[0].num_inbox || p->end[1].num_inbox)
            continue;
        a = mrd_engine_deadline(p->end[0].e);
        b = mrd_engine_deadline(p->end[1].e);
        next = a < b ? a : b;
        if (next == MRD_NEVER)
            return;
        p->now = next > p->now ? next : p->now;
    }
}

static inline int pair_poll(struct pair *p, unsigned at, struct mrd_wc *wc)
{
    return mrd_engine_poll_cq(p->end[at].e, p->end[at].cq, 1, wc);
}

/* The end's next completion, which has that status. */
static inline struct mrd_wc pair_expect(struct pair *p, unsigned at, enum mrd_wc_status status)
{
    struct mrd_wc wc;

    assert_int_equal(pair_poll(p, at, &wc), 1);
    assert_int_equal(wc.status, status);
    return wc;
}

static inline void pair_expect_nothing(struct pair *p, unsigned at)
{
    struct mrd_wc wc;

    assert_int_equal(pair_poll(p, at, &wc), 0);
}

/* A write of one end's memory, from `offset` on, arrives, and its sender learns. */
static inline void pair_write(struct pair *p, unsigned from, uint32_t offset, uint32_t len)
{
    pair_post(p, from, MRD_WR_RDMA_WRITE, offset, len);
    pair_settle(p, p->now + MRD_SEC);
    pair_expect(p, from, MRD_WC_SUCCESS);
}

/* The end's next event, which is of that type. */
static inline struct mrd_engine_event pair_expect_event(struct pair *p, unsigned at,
                                                        enum mrd_event_type type)
{
    struct mrd_engine_event event;

    assert_int_equal(mrd_engine_get_event(p->end[at].e, &event), 0);
    assert_int_equal(event.type, type);
    return event;
}

static inline void pair_expect_no_event(struct pair *p, unsigned at)
{
    struct mrd_engine_event event;

    assert_int_equal(mrd_engine_get_event(p->end[at].e, &event), -EAGAIN);
}

#endif
