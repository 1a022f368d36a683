/* SPDX-License-Identifier: BSD-2-Clause */
/* The stranger of tests/support/stranger.h by itself: what it hears, sees and sends. */
#include <string.h>

#include "tests/support/stranger.h"
#include "transport/movers/sim/sim_host.h"

enum { BUDGET = 500, OWN = 0 };

/* What a host answers to its own address it hears; the address of nobody is another matter. */
TEST(sim_stranger__hears)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){0});
    struct stranger *st = stranger_create(w->sim, 2, test_seed());
    struct mrd_addr nobody = stranger_nobody(5);
    uint8_t buf[FORGE_BYTES_MAX];
    struct mrd_wire_head head = {.type = MRD_WIRE_DATA,
                                 .flags = MRD_WIRE_FIRST_CONTACT | MRD_WIRE_ACK_REQUEST,
                                 .src_inc = 77,
                                 .epoch = 5,
                                 .reply = nobody.port};

    assert_null(stranger_told(st, HOST_1, 0));
    stranger_hello(st, OWN, HOST_1);
    sim_run(w, 1 * MSEC_NS);

    const struct stranger_told *told = stranger_told(st, HOST_1, 0);

    assert_non_null(told);
    assert_int_equal(told->own, OWN);
    assert_memory_equal(&told->head.dst_inc, &st->own[OWN].head.src_inc,
                        sizeof(told->head.dst_inc));
    assert_true(told->head.src_inc != 0);
    assert_null(stranger_told(st, HOST_0, 0));
    assert_int_equal(st->nobody_packets, 0);

    uint64_t told_packets = st->told_packets;

    stranger_send(st, &nobody, HOST_1, buf, forge_data(buf, &head, NULL, NULL));
    sim_run(w, 1 * MSEC_NS);
    assert_true(st->nobody_packets > 0);
    assert_int_equal(st->told_packets, told_packets);
    stranger_destroy(st);
}

/* Packets that the contexts got. */
static uint64_t received(struct sim_world *w)
{
    return mrd_sim_get_host_stats(w->sim, HOST_0).received +
           mrd_sim_get_host_stats(w->sim, HOST_1).received;
}

/* It sends again what it saw, and only when it saw something. */
TEST(sim_stranger__sees)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.no_receives = true});
    struct stranger *st = stranger_create(w->sim, 2, test_seed());

    assert_false(stranger_act(st, STRANGER_REPLAY, HOST_0, HOST_1));
    assert_false(stranger_act(st, STRANGER_GO_ON, HOST_0, HOST_1));
    assert_int_equal(st->sent_packets, 0);
    stranger_watch_all(st);
    sim_post_recvs(w, HOST_1, 0, 2, 4096);
    sim_send_complete(w, HOST_0, HOST_1, 100, 20 * MSEC_NS);
    assert_true(st->num_first > 0);

    uint64_t before = received(w);

    for (unsigned i = 0; i < BUDGET; i++)
        assert_true(stranger_act(st, STRANGER_REPLAY, HOST_0, HOST_1));
    sim_run(w, 1 * MSEC_NS);
    assert_int_equal(st->sent[STRANGER_REPLAY], BUDGET);
    assert_true(received(w) >= before + BUDGET);
    assert_int_equal(w->node[HOST_1].deliveries, 1);
    stranger_destroy(st);
}

struct deeds {
    uint64_t sent[STRANGER_KINDS], sent_bytes, told_bytes, nobody_bytes, end_ns;
};

/* A world without honest traffic, and a stranger with a plan. */
static struct deeds run_plan(uint64_t seed)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.seed = 7, .hosts = 3});
    struct stranger *st = stranger_create(w->sim, 3, seed);
    struct stranger_plan plan = {.budget = BUDGET, .period_ns = 20 * USEC_NS, .burst = 3};
    struct deeds deeds;

    memset(&deeds, 0, sizeof(deeds));
    stranger_all_kinds(&plan);
    stranger_watch_all(st);
    stranger_start(st, &plan);
    while (st->next_ns != UINT64_MAX) {
        sim_run(w, st->next_ns - mrd_sim_now(w->sim));
        stranger_go(st);
    }
    sim_run(w, 1 * MSEC_NS);
    memcpy(deeds.sent, st->sent, sizeof(deeds.sent));
    deeds.sent_bytes = st->sent_bytes;
    deeds.told_bytes = st->told_bytes;
    deeds.nobody_bytes = st->nobody_bytes;
    deeds.end_ns = mrd_sim_now(w->sim);
    stranger_destroy(st);
    return deeds;
}

/* All kinds that need nothing but answers come, within the budget; the same seed, the same deeds. */
TEST(sim_stranger__plan)
{
    struct deeds one = run_plan(1), again = run_plan(1), other = run_plan(2);
    uint64_t sum = 0;

    for (unsigned kind = 0; kind < STRANGER_KINDS; kind++) {
        sum += one.sent[kind];
        if (kind != STRANGER_REPLAY && kind != STRANGER_MOVED)
            assert_true(one.sent[kind] > 0);
    }
    assert_true(sum <= BUDGET && sum > BUDGET / 2);
    assert_true(one.end_ns < 2 * BUDGET * 20 * USEC_NS + 2 * MSEC_NS);
    assert_memory_equal(&one, &again, sizeof(one));
    assert_memory_not_equal(&one, &other, sizeof(one));
}
