/* SPDX-License-Identifier: BSD-2-Clause */
/* A buffer with less than a packet for each sender: if it fills, grants go round; all arrive. */
#include "core/engine/state.h"
#include "core/wire.h"
#include "tests/support/world.h"
#include "transport/movers/sim/sim_host.h"

enum { SENDERS = 9, ROOM_PACKETS = 3, QUEUE_PACKETS = 8, BYTES = 24 * 4096 };

struct watch {
    struct sim_world *w;
    bool busy[SIM_HOSTS_MAX]; /* a segment of that host is on its way */
    uint32_t most;            /* hosts so at one time */
    uint32_t beyond;          /* segments at or beyond the limit last told */
    uint32_t limit[SIM_HOSTS_MAX];
    bool told[SIM_HOSTS_MAX];
};

static enum mrd_sim_verdict look(void *arg, struct mrd_sim_datagram *d)
{
    struct watch *watch = arg;
    struct mrd_wire_head head;
    struct mrd_wire_ack ack;
    uint32_t busy = 0;

    assert_int_equal(mrd_wire_get(d->data, d->len, &head), MRD_WIRE_OK);
    if (head.type == MRD_WIRE_ACK && mrd_wire_get_ack(d->data, &head, &ack)) {
        watch->limit[d->to] = ack.psn_limit;
        watch->told[d->to] = true;
        watch->busy[d->to] = false;
    }
    if (head.type != MRD_WIRE_DATA || d->len - head.head_len < 4096)
        return MRD_SIM_PASS;
    watch->busy[d->from] = true;
    watch->beyond += watch->told[d->from] && (int32_t)(head.psn - watch->limit[d->from]) >= 0;
    for (uint32_t i = 0; i < SIM_HOSTS_MAX; i++)
        busy += watch->busy[i];
    watch->most = busy > watch->most ? busy : watch->most;
    return MRD_SIM_PASS;
}

/* How often did a sender without a grant ask for one? */
static uint64_t count_probes(struct sim_world *w)
{
    uint64_t probes = 0;

    for (uint32_t from = 1; from <= SENDERS; from++)
        probes += sim_counter(w, from, "probes");
    return probes;
}

static struct sim_world *begin(uint64_t rx_delay_ns)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){.hosts = SENDERS + 1});

    sim_engine(w, HOST_0)->share.room = ROOM_PACKETS;
    mrd_sim_set_rx_delay(w->sim, rx_delay_ns);
    mrd_sim_set_rx_packets_max(w->sim, QUEUE_PACKETS);
    for (uint32_t from = 1; from <= SENDERS; from++)
        sim_write(w, from, HOST_0, 4096);
    sim_run_until_complete(w, 10 * MSEC_NS); /* each was told a grant */
    return w;
}

/* All send for long, and the receiver comes late: its buffer fills. */
TEST(sim_grants__rotate_below_one_packet_each)
{
    struct sim_world *w = begin(50 * USEC_NS);
    uint64_t lost = mrd_sim_get_host_stats(w->sim, HOST_0).overflows;
    struct watch watch = {.w = w};

    mrd_sim_set_tap(w->sim, look, &watch);
    for (uint32_t from = 1; from <= SENDERS; from++)
        sim_write(w, from, HOST_0, BYTES);
    sim_all_arrive(w, 2 * SEC_NS);

    assert_int_equal(watch.beyond, 0);
    /* Turns change at different times for different senders: some overlap, but not all at once. */
    assert_in_range(watch.most, 1, 2 * ROOM_PACKETS);
    assert_int_equal(mrd_sim_get_host_stats(w->sim, HOST_0).overflows, lost);
}

/* All send now and then: nobody waits for a turn, though the buffer is below a packet each. */
TEST(sim_grants__do_not_rotate_while_there_is_room)
{
    struct sim_world *w = begin(0);
    uint64_t begun_ns = mrd_sim_now(w->sim), probes = count_probes(w);
    enum { ROUNDS = 100 };

    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t from = 1; from <= SENDERS; from++)
            sim_write_complete(w, from, HOST_0, 4096, MSEC_NS);
    }
    /* A message takes two delays of 5 us, and its ack a little. */
    assert_true(mrd_sim_now(w->sim) - begun_ns <= ROUNDS * SENDERS * 20 * USEC_NS);
    assert_int_equal(count_probes(w), probes);
}

/* Each sender in turn posts a short message, one every 50 us, without waiting for the last. */
static void trickle(struct sim_world *w, uint32_t messages)
{
    for (uint32_t i = 0; i < messages; i++) {
        sim_write(w, 1 + i % SENDERS, HOST_0, 1024);
        sim_run(w, 50 * USEC_NS);
    }
}

/*
 * Messages come one by one, so that the buffer never holds two. The receiver is stopped once, for
 * 0.3 ms, and the buffer fills. Half a second later nobody waits for a turn any more.
 */
TEST(sim_grants__rotation_ends_after_a_hiccup)
{
    struct sim_world *w = begin(0);

    trickle(w, 200);
    uint64_t probes = count_probes(w);
    trickle(w, 200);
    assert_int_equal(count_probes(w), probes);
    mrd_sim_stop_host(w->sim, HOST_0, 1);
    trickle(w, 6);
    mrd_sim_stop_host(w->sim, HOST_0, 0);
    trickle(w, 10000);
    probes = count_probes(w);
    trickle(w, 2000); /* 100 ms */
    assert_int_equal(count_probes(w), probes);
    for (uint32_t i = w->num_messages - 1000; i < w->num_messages; i++)
        assert_true(w->messages[i].sent);
}
