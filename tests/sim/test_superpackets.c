/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trap: segmentation offload that the kernel accepts and the path loses. A run of packets that
 * leaves on one path at once stands for what would be one superpacket: here such runs are lost
 * whole, and single packets arrive.
 */
#include "tests/support/wiretap.h"

enum { MESSAGE_BYTES = 4 << 20, STEP_NS = 500, PAUSE_NS = 20000, WRITES = 4 };

/*
 * The packets that left last, on one path at one time; whether they are a run is known afterwards.
 */
struct runs {
    struct sim_world *w;
    struct wiretap *tap;
    uint32_t first, len; /* in the tap */
    uint32_t lost_runs, lost_packets;
};

static void settle(struct runs *r)
{
    if (r->len == 1)
        wiretap_replay(r->tap, &r->tap->packets[r->first]);
    else if (r->len > 1) {
        r->lost_runs++;
        r->lost_packets += r->len;
    }
    r->len = 0;
}

static bool loses_runs(void *arg, const struct wire_packet *p)
{
    struct runs *r = arg;
    const struct wire_packet *first;

    if (p->from != HOST_0 || p->head.type != MRD_WIRE_DATA)
        return false;
    if (r->len) {
        first = &r->tap->packets[r->first];
        if (first->at_ns != p->at_ns || first->path != p->path || first->alone || p->alone)
            settle(r);
    }
    if (!r->len++)
        r->first = r->tap->num; /* where the tap will keep it */
    return true;
}

/* One write: the time that it took. */
static uint64_t write_ns(struct runs *r)
{
    struct sim_world *w = r->w;
    uint64_t start_ns = mrd_sim_now(w->sim);
    uint32_t message = sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);

    while (!w->messages[message].sent) {
        assert_true(mrd_sim_now(w->sim) < start_ns + 50 * MSEC_NS);
        sim_run(w, STEP_NS);
        if (r->len && r->tap->packets[r->first].at_ns < mrd_sim_now(w->sim))
            settle(r);
    }
    return mrd_sim_now(w->sim) - start_ns;
}

/* Only bursts are lost, and all of them: soon the sender sends singly, and stays with it. */
TEST(sim_superpackets__lost_by_the_path)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.paths = 8, .straight = true});
    struct runs runs = {.w = w};
    uint64_t sum_ns = 0;

    runs.tap = wiretap_open(w);
    runs.tap->rule = loses_runs;
    runs.tap->arg = &runs;
    assert_true(write_ns(&runs) < 2100 * USEC_NS);
    assert_true(runs.lost_runs > 0);
    runs.lost_packets = 0;
    for (uint32_t i = 0; i < WRITES; i++)
        sum_ns += write_ns(&runs);
    assert_true(sum_ns < WRITES * 260 * USEC_NS);
    assert_int_equal(runs.lost_packets, 0);
    assert_true(sim_payload_equal(w, HOST_1));
    wiretap_close(runs.tap);
}

/* Pieces that lie apart in memory: no packet of a run reads beyond the end of its piece. */
TEST(sim_superpackets__gathered_from_apart)
{
    enum { PIECE = 100000 };
    struct sim_world *w =
        sim_fabric_world(&(struct sim_options){.paths = 8, .send_sge = 2, .straight = true});
    const struct sim_node *from = &w->node[HOST_0], *to = &w->node[HOST_1];
    uint32_t a = sim_write(w, HOST_0, HOST_1, 2 * PIECE);
    uint32_t b = sim_write(w, HOST_0, HOST_1, 2 * PIECE);
    const struct sim_message *first = &w->messages[a], *second = &w->messages[b];
    struct mrd_sge sges[] = {{(uintptr_t)second->source, PIECE, from->mr->lkey},
                             {(uintptr_t)first->source, PIECE, from->mr->lkey}};
    struct mrd_send_wr *bad_wr, wr = {.opcode = MRD_WR_RDMA_WRITE,
                                      .sg_list = sges,
                                      .num_sge = 2,
                                      .wr.rdma = {(uintptr_t)first->target, to->mr->rkey},
                                      .ud = {from->ah[HOST_1], to->qp[0]->qp_num, 0x1000}};

    sim_run_until_complete(w, 50 * MSEC_NS);
    assert_int_equal(mrd_post_send(from->qp[0], &wr, &bad_wr), 0);
    sim_run(w, 5 * MSEC_NS);
    assert_memory_equal(first->target, second->source, PIECE);
    assert_memory_equal((const char *)first->target + PIECE, first->source, PIECE);
}

/*
 * Single packets of superpackets are lost, so that those behind them come to lie in the wrong
 * places: no other packet is to be sent again for that, with a check or without.
 */
TEST(sim_superpackets__gaps)
{
    static const uint32_t loss_ppm[] = {10000, 50000};

    for (uint32_t i = 0; i < 2 * sizeof(loss_ppm) / sizeof(loss_ppm[0]); i++) {
        uint64_t seed = test_seed() + i;
        struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = seed,
                                                                     .paths = 8,
                                                                     .loss_ppm = loss_ppm[i / 2],
                                                                     .unchecked = i % 2,
                                                                     .straight = true});

        sim_write(w, HOST_0, HOST_1, MESSAGE_BYTES);
        while (!sim_is_complete(w)) {
            test_check(seed, mrd_sim_now(w->sim) < 100 * MSEC_NS, "too slow");
            mrd_sim_stop_host(w->sim, HOST_1, 1); /* packets queue up meanwhile */
            sim_run(w, PAUSE_NS);
            mrd_sim_stop_host(w->sim, HOST_1, 0);
            sim_run(w, STEP_NS);
        }
        test_check(seed, sim_payload_equal(w, HOST_1), "wrong bytes");
        test_check(seed, sim_counter(w, HOST_1, "rx_straight_moved") > 0, "no gap was met");
        test_check(seed, sim_counter(w, HOST_1, "rx_drop_checksum") == 0,
                   "packets that came whole were dropped");
    }
}
