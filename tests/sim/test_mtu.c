/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths that take packets up to some size, and silently lose what is larger: the sender finds out
 * what they take, also when that changes.
 */
#include <string.h>

#include "core/engine/state.h"
#include "tests/support/wiretap.h"

#define BURST_NS (10 * USEC_NS)

enum {
    BASE = 1088,
    LIMIT = 8192,
    PATHS = 8,
    HEAD_BYTES = 96,
    MESSAGE_BYTES = 4 << 20,
    OUTAGE_PACKETS = 4
};

FIXTURE(narrow)
{
    bool sure; /* before the setup: begins with what was configured */
    struct sim_world *w;
    struct wiretap *tap;
    uint32_t most;     /* bytes of a datagram that come through; 0: none does */
    uint32_t one_path; /* only this path is so narrow; PATHS: all are */
    uint32_t lost_of;  /* of so many messages that would come through one is lost; 0: none is */
    uint32_t turn;     /* of these */
    uint32_t outages;  /* probes that are lost with the next few packets */
    uint32_t out;      /* of these, so many are left */
    uint32_t buffer;   /* packets of a burst that come through; 0: all do */
    uint32_t burst;    /* of these, so many came */
    uint64_t burst_ns; /* since then */
    uint32_t largest;  /* datagram of data that came through */
};

static bool loses_large(void *arg, const struct wire_packet *p)
{
    struct narrow *n = arg;

    if (p->len > n->most && (n->one_path == PATHS || p->path == n->one_path))
        return true;
    if (n->lost_of && p->kind == WIRE_MESSAGE && ++n->turn % n->lost_of == 0)
        return true;
    if (p->kind == WIRE_EMPTY && p->len > BASE && n->outages) {
        n->outages--;
        n->out = OUTAGE_PACKETS;
    }
    if (n->out) {
        n->out--;
        return true;
    }
    if (n->buffer) {
        if (mrd_sim_now(n->w->sim) - n->burst_ns > BURST_NS) {
            n->burst_ns = mrd_sim_now(n->w->sim);
            n->burst = 0;
        }
        if (++n->burst > n->buffer)
            return true;
    }
    if (p->len > n->largest)
        n->largest = p->len;
    return false;
}

/* So many hosts that probe; `sure`: that begin with what was configured. */
static struct narrow *begin_hosts(struct narrow *n, uint32_t hosts, uint32_t most, bool sure)
{
    *n = (struct narrow){.most = most, .one_path = PATHS};
    n->w = sim_fabric_world(&(struct sim_options){.hosts = hosts,
                                                  .paths = PATHS,
                                                  .rate_bps = hosts > 2 ? 10000000000 : 0,
                                                  .queue_bytes = hosts > 2 ? 4 << 20 : 0,
                                                  .mtu = LIMIT,
                                                  .straight = true});
    for (uint32_t host = HOST_0; host < hosts; host++) {
        struct mrd_mover *m = &sim_engine(n->w, host)->config.mover;

        m->payload_base = BASE;
        m->probes = !sure;
    }
    n->tap = wiretap_open(n->w);
    n->tap->rule = loses_large;
    n->tap->arg = n;
    return n;
}

static struct narrow *begin(struct narrow *n, uint32_t most, bool sure)
{
    return begin_hosts(n, 2, most, sure);
}

FIXTURE_SETUP(narrow)
{
    begin(self, self->most, self->sure);
}

/* World and tap are destroyed by themselves. */
FIXTURE_TEARDOWN(narrow)
{
}

static uint32_t payload_in_use(struct narrow *n, uint32_t host)
{
    return sim_peer(n->w, host)->tx->pmtu.payload;
}

/* MTUs of IPv6 tunnels, of clouds, of Ethernet, of jumbo frames, less IP and UDP headers. */
TEST(sim_mtu__is_found)
{
    static const struct {
        uint32_t most, payload;
    } table[] = {{1280 - 48, BASE}, {1400 - 28, 1216},  {1500 - 28, 1344},
                 {4200 - 28, 4032}, {8900 - 28, LIMIT}, {65507, LIMIT}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct narrow n;
        struct sim_world *w = begin(&n, table[i].most, false)->w;

        for (unsigned k = 0; k < 4; k++)
            sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
        assert_true(sim_payload_equal(w, HOST_1));
        assert_in_range(payload_in_use(&n, HOST_0), table[i].payload, table[i].payload + 64);
        assert_true(n.largest <= table[i].most);
        assert_in_range(sim_counter(w, HOST_0, "probes_mtu"), table[i].payload > BASE, 40);
        assert_int_equal(sim_counter(w, HOST_1, "rx_bytes"), 4 * MESSAGE_BYTES); /* no padding */
        assert_int_equal(sim_counter(w, HOST_0, "mtu_falls"), 0);
        assert_int_equal(sim_counter(w, HOST_0, "tx_fragments"), 0);
        /* A probe that does not come through is no loss: not for its path, nor for the window. */
        assert_int_equal(sim_counter(w, HOST_0, "retx_order") + sim_counter(w, HOST_0, "retx_rack"),
                         0);
        assert_true(sim_counter(w, HOST_0, "retx_packets") <=
                    sim_counter(w, HOST_0, "probes_mtu") + 2);
    }
}

/* A probe that comes after it was sent again: no loss was told of it that could be taken back. */
TEST_F_WITH(narrow, sim_mtu__late_probe, self->most = 1400 - 28)
{
    struct sim_world *w = self->w;
    uint32_t lost = 0;

    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    while (!self->tap->packets[lost].dropped)
        assert_true(++lost < self->tap->num);
    assert_int_equal(self->tap->packets[lost].kind, WIRE_EMPTY);
    sim_run(w, MSEC_NS); /* the last probes, and second copies at the tail, still come */
    uint64_t duplicates = sim_counter(w, HOST_1, "rx_duplicates");
    wiretap_replay(self->tap, &self->tap->packets[lost]);
    sim_run(w, MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_1, "rx_duplicates"), duplicates + 1);
    assert_int_equal(sim_counter(w, HOST_0, "retx_spurious"), 0);
}

/* Probes that are lost with what leaves around them say nothing of the size, however many there are. */
TEST_F_WITH(narrow, sim_mtu__probes_in_outages, self->most = 65507)
{
    self->outages = 10;
    for (unsigned k = 0; k < 4; k++)
        sim_write_complete(self->w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    assert_int_equal(self->outages, 0);
    assert_int_equal(payload_in_use(self, HOST_0), LIMIT);
}

/* Who sends single small messages never probes: there is nothing to gain. */
TEST_F_WITH(narrow, sim_mtu__is_not_asked_for_by_small_messages, self->most = 65507)
{
    struct sim_world *w = self->w;

    for (unsigned i = 0; i < 50; i++)
        sim_send_complete(w, HOST_0, HOST_1, 64, 10 * MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_0, "probes_mtu"), 0);
}

/*
 * The path becomes smaller amid a message: what is in flight leaves in pieces, and the rest in
 * smaller packets. When it is wide again, a later search finds that.
 */
TEST(sim_mtu__shrinks)
{
    static const uint32_t mosts[] = {1280 - 48, 1400 - 28, 4200 - 28};

    for (size_t i = 0; i < sizeof(mosts) / sizeof(mosts[0]); i++) {
        struct narrow n;
        struct sim_world *w = begin(&n, 65507, false)->w;

        sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
        assert_int_equal(payload_in_use(&n, HOST_0), LIMIT);
        sim_write(w, HOST_0, HOST_1, 4 * MESSAGE_BYTES);
        sim_run(w, 300 * USEC_NS);
        n.most = mosts[i];
        n.largest = 0;
        sim_all_arrive(w, 200 * MSEC_NS);
        assert_true(n.largest <= mosts[i]);
        assert_int_equal(sim_counter(w, HOST_0, "mtu_falls"), 1);
        assert_true(sim_counter(w, HOST_0, "tx_fragments") > 0);
        assert_int_equal(sim_counter(w, HOST_1, "rx_fragments"),
                         sim_counter(w, HOST_0, "tx_fragments"));
        assert_true(payload_in_use(&n, HOST_0) <= mosts[i]);

        n.most = 65507;
        sim_run(w, 61 * SEC_NS);
        sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 40 * MSEC_NS);
        assert_int_equal(payload_in_use(&n, HOST_0), LIMIT);
    }
}

/* Small messages that come through all the while do not hide that large packets do not. */
TEST_F_WITH(narrow, sim_mtu__shrinks_among_small_messages, self->most = 65507)
{
    struct sim_world *w = self->w;

    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    self->most = 1400 - 28;
    uint32_t message = sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);
    for (unsigned i = 0; i < 2000 && !w->messages[message].sent; i++) {
        sim_send(w, HOST_0, HOST_1, 64);
        sim_run(w, 100 * USEC_NS);
    }
    assert_true(w->messages[message].sent);
    sim_all_arrive(w, 50 * MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_0, "mtu_falls"), 1);
}

/*
 * One packet does not come through, and all else does. The path probes that follow from it are sent
 * again small: that these are acked says nothing of the size.
 */
static void shrinks_below_one_message(uint32_t others)
{
    struct narrow n;
    struct sim_world *w = begin(&n, 65507, false)->w;

    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    n.most = 1400 - 28;
    uint32_t message = sim_write(w, HOST_0, HOST_1, LIMIT);
    for (unsigned i = 0; i < 20 && !w->messages[message].sent; i++) {
        sim_send(w, HOST_0, HOST_1, others);
        sim_run(w, 5 * MSEC_NS);
    }
    assert_true(w->messages[message].sent);
    sim_all_arrive(w, 50 * MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_0, "mtu_falls"), 1);
    assert_true(sim_counter(w, HOST_0, "retx_packets") < 200);
}

TEST(sim_mtu__shrinks_below_one_message)
{
    shrinks_below_one_message(64);
}

/* Nor do others that are larger than the base, and that the path still takes. */
TEST(sim_mtu__shrinks_among_middling_messages)
{
    shrinks_below_one_message(1200);
}

/* Nor does it help that some of these are lost by chance, and others come through. */
TEST_F_WITH(narrow, sim_mtu__shrinks_among_lost_middling_messages, self->most = 65507)
{
    struct sim_world *w = self->w;

    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    self->most = 1400 - 28;
    self->lost_of = 3;
    uint32_t message = sim_write(w, HOST_0, HOST_1, LIMIT);
    for (unsigned i = 0; i < 100 && !w->messages[message].sent; i++) {
        sim_write(w, HOST_0, HOST_1, 1200);
        sim_run(w, 400 * USEC_NS);
    }
    assert_true(w->messages[message].sent);
    sim_all_arrive(w, 50 * MSEC_NS);
    assert_int_equal(sim_counter(w, HOST_0, "mtu_falls"), 1);
}

/*
 * The route takes less, says who sends there, and what lies behind it takes even less: then the
 * pieces of packets from before do not come through either.
 */
TEST_F_WITH(narrow, sim_mtu__shrinks_below_the_pieces, self->most = 65507)
{
    struct sim_world *w = self->w;

    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    self->most = 1400 - 28;
    sim_write(w, HOST_0, HOST_1, LIMIT);
    sim_run(w, 1 * MSEC_NS);
    mrd_engine_tx_too_big(sim_engine(w, HOST_0), &sim_peer(w, HOST_0)->addr, 4032);
    sim_all_arrive(w, 200 * MSEC_NS);
}

/*
 * The same with a full window of packets from before. Probes of the tail send one after another of
 * them in pieces for the first time: that each of these is lost counts, too.
 */
TEST_F_WITH(narrow, sim_mtu__shrinks_below_the_pieces_of_many, self->most = 2600)
{
    struct sim_world *w = self->w;

    for (unsigned i = 0; i < 4; i++)
        sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    assert_int_equal(payload_in_use(self, HOST_0), 2496);
    struct mrd_peer *peer = sim_peer(w, HOST_0);
    sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);
    sim_run(w, 100 * USEC_NS);
    assert_true(peer->tx->sent.inflight.num > 32);
    self->most = 1400 - 28;
    sim_run(w, 5 * MSEC_NS); /* the window is down to a packet */
    mrd_engine_tx_too_big(sim_engine(w, HOST_0), &peer->addr, 2304);
    sim_all_arrive(w, 60 * MSEC_NS);
}

/* Pieces come from more senders at a time than a receiver can put packets together for. */
TEST(sim_mtu__shrinks_for_many_senders)
{
    struct narrow n;
    struct sim_world *w = begin_hosts(&n, SIM_HOSTS_MAX, 65507, false)->w;

    for (uint32_t host = HOST_1; host < SIM_HOSTS_MAX; host++)
        sim_write(w, host, HOST_0, 1 << 20);
    sim_run_until_complete(w, 500 * MSEC_NS);
    n.most = 1500 - 28;
    for (uint32_t host = HOST_1; host < SIM_HOSTS_MAX; host++)
        sim_write(w, host, HOST_0, 100000);
    sim_all_arrive(w, 300 * MSEC_NS);
}

/*
 * The route takes less for a while, says who sends there. Later it takes more again: a search finds
 * that, as it does where only the path behind the route changes.
 */
TEST_F_WITH(narrow, sim_mtu__of_a_route_that_grows, self->most = 65507)
{
    struct sim_world *w = self->w;

    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    assert_int_equal(payload_in_use(self, HOST_0), LIMIT);
    mrd_engine_tx_too_big(sim_engine(w, HOST_0), &sim_peer(w, HOST_0)->addr, 1344);
    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    assert_int_equal(payload_in_use(self, HOST_0), 1344);
    sim_run(w, 61 * SEC_NS);
    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 40 * MSEC_NS);
    assert_int_equal(payload_in_use(self, HOST_0), LIMIT);
}

/* Reads all of `there`; the rest of the path's story happens 300 us later. */
static void read_all(struct narrow *n, struct mrd_mr *here, struct mrd_mr *there, uint32_t most)
{
    struct sim_node *node = &n->w->node[HOST_0];
    struct mrd_sge sge = {(uintptr_t)here->addr, (uint32_t)here->length, here->lkey};
    struct mrd_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = MRD_WR_RDMA_READ,
                                   .send_flags = MRD_SEND_SIGNALED};
    uint64_t end_ns = mrd_sim_now(n->w->sim) + 200 * MSEC_NS;
    struct mrd_wc wc;

    wr.ud.ah = node->ah[HOST_1];
    wr.ud.remote_qpn = n->w->node[HOST_1].qp[0]->qp_num;
    wr.wr.rdma.remote_addr = (uintptr_t)there->addr;
    wr.wr.rdma.rkey = there->rkey;
    memset(here->addr, 0, here->length);
    assert_int_equal(mrd_post_send(node->qp[0], &wr, &bad), 0);
    mrd_sim_run_until(n->w->sim, mrd_sim_now(n->w->sim) + 300 * USEC_NS);
    n->most = most;
    while (!mrd_poll_cq(node->cq, 1, &wc)) {
        assert_true(mrd_sim_now(n->w->sim) < end_ns);
        mrd_sim_run_until(n->w->sim, mrd_sim_now(n->w->sim) + 10 * USEC_NS);
    }
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
    assert_memory_equal(here->addr, there->addr, here->length);
}

/* Responses are cut and probed for like other messages. */
TEST(sim_mtu__of_responses)
{
    enum { BYTES = 4 * MESSAGE_BYTES };
    static uint8_t from[BYTES], to[BYTES];
    const int access = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_READ;
    struct narrow n;
    struct sim_world *w = begin(&n, 65507, false)->w;

    for (size_t i = 0; i < BYTES; i++)
        from[i] = (uint8_t)(i / 64 * 37 + i);
    struct mrd_mr *here = mrd_reg_mr(w->node[HOST_0].pd, to, BYTES, access);
    struct mrd_mr *there = mrd_reg_mr(w->node[HOST_1].pd, from, BYTES, access);
    assert_true(here && there);
    read_all(&n, here, there, 65507);
    assert_int_equal(payload_in_use(&n, HOST_1), LIMIT);
    read_all(&n, here, there, 1500 - 28);
    assert_int_equal(sim_counter(w, HOST_1, "mtu_falls"), 1);
    mrd_dereg_mr(here);
    mrd_dereg_mr(there);
}

/* Who was told what to use, wrongly, gets through all the same, from the first packet on. */
TEST_F_WITH(narrow, sim_mtu__configured_too_large, self->most = 1400 - 28, self->sure = true)
{
    struct sim_world *w = self->w;

    sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);
    sim_send_complete(w, HOST_0, HOST_1, 4000, 500 * MSEC_NS);
    assert_true(self->largest <= 1400 - 28);
}

/*
 * A buffer on the way does not hold all pieces of a packet: several transmissions of it bring what is
 * missing, each of them others. The receiver does not put as many packets together at a time as are in
 * flight.
 */
TEST_F_WITH(narrow, sim_mtu__pieces_through_a_small_buffer, self->most = 1400 - 28,
            self->sure = true)
{
    struct sim_world *w = self->w;

    self->buffer = 5;
    sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);
    sim_run(w, 100 * USEC_NS);
    assert_true(sim_engine(w, HOST_0)->stats.tx_packets > MRD_FRAGS);
    sim_run(w, 1000 * MSEC_NS);
    assert_true(sim_counter(w, HOST_1, "rx_packets") > 0);
    sim_all_arrive(w, 4000 * MSEC_NS);
}

/* Nothing comes through for a while, of any size: afterwards packets are as large as before. */
TEST_F_WITH(narrow, sim_mtu__outage, self->most = 65507)
{
    struct sim_world *w = self->w;

    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    sim_write(w, HOST_0, HOST_1, 4 * MESSAGE_BYTES);
    sim_run(w, 300 * USEC_NS);
    self->most = 0;
    sim_run(w, 200 * MSEC_NS);
    self->most = 65507;
    sim_run_until_complete(w, 300 * MSEC_NS);
    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    assert_int_equal(payload_in_use(self, HOST_0), LIMIT);
}

/* One of the paths takes less than the others: it is out of use, and they stay as they are. */
TEST_F_WITH(narrow, sim_mtu__of_one_path, self->most = 1500 - 28)
{
    struct sim_world *w = self->w;

    self->one_path = 3;
    sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 50 * MSEC_NS);
    for (unsigned i = 0; i < 8; i++)
        sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    assert_true(sim_payload_equal(w, HOST_1));
    assert_int_equal(sim_counter(w, HOST_0, "mtu_falls"), 0);
    assert_int_equal(payload_in_use(self, HOST_0), LIMIT);
    assert_true(sim_counter(w, HOST_0, "retx_packets") * 200 <
                sim_counter(w, HOST_0, "tx_packets"));
    /* It is dead by now, and there is no other in its place: it is probed each second. */
    for (unsigned i = 0; i < 6; i++) {
        sim_run(w, SEC_NS);
        sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 20 * MSEC_NS);
    }
    assert_int_equal(sim_counter(w, HOST_0, "mtu_falls"), 0);
    assert_int_equal(payload_in_use(self, HOST_0), LIMIT);
}

/* The same with a path that takes nothing at all. */
TEST_F_WITH(narrow, sim_mtu__of_a_dead_path, self->most = 0)
{
    struct sim_world *w = self->w;

    self->one_path = 3;
    for (unsigned i = 0; i < 10; i++) {
        sim_write_complete(w, HOST_0, HOST_1, MESSAGE_BYTES, 50 * MSEC_NS);
        sim_run(w, SEC_NS);
    }
    assert_int_equal(sim_counter(w, HOST_0, "mtu_falls"), 0);
}
