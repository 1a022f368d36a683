/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric of switches by itself: what packets meet on their way, and what becomes of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/recorder.h"
#include "tests/support/world.h"
#include "transport/movers/sim/sim_stack.h"
#include "transport/movers/sim/sim_world.h"

/*
 * Two hosts a leaf, four leaves, two spines. 1,250 bytes are 100 ns on a host's link, 25 ns above.
 */
static const struct mrd_sim_topology leaf_spine = {
    8, 2, 0, {{2, 2, 0, 100000000000, 500, 300}, {4, 0, 0, 400000000000, 1000, 600}}};
/* The same with two links to each spine. */
static const struct mrd_sim_topology bundles = {
    8, 2, 0, {{2, 4, 0, 100000000000, 500, 300}, {8, 0, 2, 400000000000, 1000, 600}}};
static const struct mrd_sim_topology fat_tree = {16,
                                                 3,
                                                 4,
                                                 {{2, 2, 0, 100000000000, 500, 300},
                                                  {2, 2, 0, 400000000000, 1000, 600},
                                                  {4, 0, 0, 800000000000, 2000, 900}}};

static struct recorder_fabric *create(const struct mrd_sim_attr *attr)
{
    struct mrd_sim_attr copy = *attr;

    copy.topology = copy.topology ? copy.topology : &leaf_spine;
    return recorder_fabric_create(&copy);
}

static void schedule(struct mrd_sim *sim, const char *links, const char *action, const char *value)
{
    int ret = mrd_sim_schedule(sim, mrd_sim_now(sim), links, action, value);

    if (ret != 0)
        fail_msg("%s %s %s: %s", links, action, value, mrd_last_error());
}

/* Let so much time pass. */
static void run(struct recorder_fabric *f, uint64_t ns)
{
    mrd_sim_run_until(f->sim, mrd_sim_now(f->sim) + ns);
}

/* --------------------------------------------------------------------------------------- timing */

/* A packet alone takes its serialisation on each link, the delays, and what the switches add. */
TEST(mrd_sim_fabric_send__latency)
{
    enum { PAYLOAD_BYTES = 1250 - MRD_SIM_WIRE_OVERHEAD_BYTES };
    static const struct {
        const struct mrd_sim_topology *topology;
        uint32_t from, to;
        uint64_t ns;
    } rows[] = {
        {&leaf_spine, 0, 1, 2 * 100 + 2 * 500 + 300},
        {&leaf_spine, 3, 3, 2 * 100 + 2 * 500 + 300},
        {&leaf_spine, 6, 1, 2 * 125 + 2 * 1500 + 2 * 300 + 600},
        {&fat_tree, 14, 15, 2 * 100 + 2 * 500 + 300},
        {&fat_tree, 12, 15, 2 * 125 + 2 * 1500 + 2 * 300 + 600},
        {&fat_tree, 1, 15, 2 * 125 + 25 + 2 * 3500 + 2 * 300 + 2 * 600 + 900},
    };
    static uint8_t payload[PAYLOAD_BYTES];

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct recorder_fabric *f = create(&(struct mrd_sim_attr){.topology = rows[i].topology});
        struct mrd_backend *b = f->host[rows[i].from].b;
        struct mrd_tx_packet packet = packet_to_1(0, payload, PAYLOAD_BYTES);
        const struct recorder *to = &f->host[rows[i].to];

        packet.to = mrd_sim_addr(rows[i].to);
        assert_int_equal(b->ops->tx_burst(b, &packet, 1), 1);
        run(f, MSEC_NS);
        assert_int_equal(to->num_arrivals, 1);
        /* Half a nanosecond at the core is rounded down. */
        assert_in_range(to->arrivals[0].at_ns, rows[i].ns - 1, rows[i].ns);
    }
    assert_true(mrd_sim_tree_longest_ns(&leaf_spine, 1250) == (double)rows[2].ns);
    assert_true(mrd_sim_tree_longest_ns(&fat_tree, 1250) == (double)rows[5].ns);
}

/* Clocks run off by at most the skew, some ahead and some behind, and never backwards. */
TEST(mrd_sim_host_now_ns__skew)
{
    enum { PPM = 200 };
    struct recorder_fabric *f =
        create(&(struct mrd_sim_attr){.topology = &fat_tree, .clock_skew_ppm = PPM});
    uint64_t last_ns[16] = {0};
    unsigned ahead = 0, behind = 0;

    for (uint64_t now_ns = 999999990; now_ns < 100 * SEC_NS; now_ns += now_ns / 7 + 1) {
        mrd_sim_run_until(f->sim, now_ns);
        ahead = behind = 0;
        for (uint32_t i = 0; i < 16; i++) {
            uint64_t clock_ns = mrd_sim_host_now_ns((struct mrd_sim_host *)f->host[i].b);
            uint64_t off_ns = clock_ns > now_ns ? clock_ns - now_ns : now_ns - clock_ns;

            assert_true(off_ns <= now_ns / 1000000 * PPM + PPM);
            assert_true(clock_ns > last_ns[i]);
            ahead += clock_ns > now_ns;
            behind += clock_ns < now_ns;
            last_ns[i] = clock_ns;
        }
    }
    assert_true(ahead >= 3 && behind >= 3 && ahead + behind >= 15);
}

/* ------------------------------------------------------------------------------- bytes on wires */

TEST(mrd_sim_fabric_send__overhead)
{
    static const uint32_t bytes[] = {
        [MRD_SIM_WIRE_ETHERNET] = PACKET_BYTES + 66, [MRD_SIM_WIRE_HTSIM] = PACKET_BYTES + 64};

    for (uint32_t overhead = 0; overhead < 2; overhead++) {
        struct recorder_fabric *f = create(&(struct mrd_sim_attr){.wire_overhead = overhead});

        recorder_fabric_send(f, 0, 7, 0, 10);
        run(f, MSEC_NS);
        assert_int_equal(recorder_link_stats(f->sim, "host0>leaf0").bytes, 10 * bytes[overhead]);
        assert_int_equal(recorder_link_stats(f->sim, "leaf3>host7").bytes, 10 * bytes[overhead]);
    }
}

/* As uet-htsim counts, whatever the headers of the engine have: payload + 64, and 88 an ack. */
TEST(mrd_sim_fabric_send__overhead_of_contexts)
{
    enum { MESSAGE_BYTES = 100 * 4096 };
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .no_challenge = true, .topology = &leaf_spine, .wire_overhead = MRD_SIM_WIRE_HTSIM});

    sim_write_complete(w, HOST_0, HOST_2, MESSAGE_BYTES, MSEC_NS);
    sim_run(w, MSEC_NS);
    assert_true(sim_payload_equal(w, HOST_2));

    struct mrd_sim_stats data = recorder_link_stats(w->sim, "host0>leaf0");
    struct mrd_sim_stats acks = recorder_link_stats(w->sim, "host2>leaf1");

    assert_in_range(data.packets, 100, 110);
    assert_int_equal(data.bytes, MESSAGE_BYTES + 64 * 100 + 88 * (data.packets - 100));
    assert_in_range(acks.packets, 10, 110);
    assert_int_equal(acks.bytes, 88 * acks.packets);
}

static enum mrd_sim_verdict change_some(void *arg, struct mrd_sim_datagram *datagram)
{
    unsigned *seen = arg;

    ++*seen;
    datagram->data[500] ^= 0x55;
    datagram->len -= datagram->data[0] % 2;
    return datagram->data[0] % 5 == 4 ? MRD_SIM_DROP : MRD_SIM_PASS;
}

static struct recorder_fabric *noisy_run(uint64_t seed, bool by_reference, bool tapped)
{
    unsigned seen = 0;
    struct recorder_fabric *f =
        create(&(struct mrd_sim_attr){.seed = seed,
                                      .link = {.queue_bytes = 100000,
                                               .ecn_max_bytes = 50000,
                                               .jitter_ns = 2000,
                                               .loss_ppm = 20000,
                                               .duplicate_ppm = 50000,
                                               .corrupt_ppm = 50000},
                                      .loss_ppb = 30000000,
                                      .payload_by_reference = by_reference});

    if (tapped)
        mrd_sim_set_tap(f->sim, change_some, &seen);
    for (uint16_t path = 0; path < 16; path++) {
        recorder_fabric_send(f, 0, 7, path, 20);
        recorder_fabric_send(f, 2, 7, path, 20);
    }
    run(f, MSEC_NS);
    assert_int_equal(seen, tapped ? 640 : 0); /* once a packet, not once a link */
    /* Nothing is left: every packet was given back. */
    assert_int_equal(f->sim->parts[0].packets.out, 0);
    return f;
}

static bool is_same(const struct recorder_fabric *a, const struct recorder_fabric *b)
{
    const struct recorder *x = &a->host[7], *y = &b->host[7];

    return x->num_arrivals == y->num_arrivals &&
           memcmp(x->arrivals, y->arrivals, x->num_arrivals * sizeof(x->arrivals[0])) == 0;
}

/* Payloads read where they lie arrive as copied ones do, also after tap, damage and duplication. */
TEST(mrd_sim_fabric_send__by_reference)
{
    for (int tapped = 0; tapped < 2; tapped++) {
        struct recorder_fabric *copied = noisy_run(5, false, tapped);
        struct recorder_fabric *referred = noisy_run(5, true, tapped);

        assert_in_range(copied->host[7].num_arrivals, 400, 800);
        assert_true(is_same(copied, referred));
    }
}

/* Same seed, same bytes at the same times; another seed, others. */
TEST(mrd_sim_fabric_send__seeded)
{
    struct recorder_fabric *a = noisy_run(5, false, false), *b = noisy_run(5, false, false);
    struct recorder_fabric *c = noisy_run(6, false, false);

    assert_true(is_same(a, b));
    assert_false(is_same(a, c));
}

/* --------------------------------------------------------------------------------------- queues */

/* As a model sends, which need not wait for its link. */
static void send_raw(struct recorder_fabric *f, uint32_t from, uint32_t to, uint16_t path,
                     uint32_t wire_bytes)
{
    struct mrd_sim_packet *packet = mrd_sim_packet_alloc(&f->sim->parts[0].packets, 16);

    assert_non_null(packet);
    memset(packet->data, 0, 16);
    packet->to = to;
    packet->path = path;
    packet->ecn = MRD_ECN_ECT0;
    packet->wire_bytes = wire_bytes;
    mrd_sim_stack_send(f->sim, from, packet);
}

/* A host's own queue holds all that it sends; neither limit nor marks are for it. */
TEST(mrd_sim_fabric_send__host_queue)
{
    struct recorder_fabric *f =
        create(&(struct mrd_sim_attr){.link = {.queue_bytes = 20000, .ecn_max_bytes = 5000}});

    for (unsigned i = 0; i < 1000; i++)
        send_raw(f, 0, 7, 0, 1250);
    assert_int_equal(mrd_sim_host_idle_ns((struct mrd_sim_host *)f->host[0].b), 1000 * 100);
    run(f, MSEC_NS);
    assert_int_equal(f->host[7].num_arrivals, 1000);
    struct mrd_sim_stats stats = recorder_link_stats(f->sim, "host0>leaf0");
    assert_int_equal(stats.packets, 1000);
    assert_int_equal(stats.queue_drops, 0);
    assert_int_equal(stats.ce, 0);
}

/* A context sends only what can leave: its queue is in the engine, not in the link. */
TEST(mrd_sim_tx_burst__waits_for_link)
{
    static uint8_t payload[1250 - MRD_SIM_WIRE_OVERHEAD_BYTES];
    struct recorder_fabric *f = create(&(struct mrd_sim_attr){0});
    struct mrd_backend *b = f->host[0].b;
    struct mrd_tx_packet packet[2] = {packet_to_1(0, payload, sizeof(payload)),
                                      packet_to_1(1, payload, sizeof(payload))};

    assert_int_equal(b->ops->tx_burst(b, packet, 2), 1);
    assert_int_equal(b->ops->tx_burst(b, packet, 2), 0);
    mrd_sim_run_until(f->sim, 99);
    assert_int_equal(f->host[0].turns, 0);
    assert_int_equal(b->ops->tx_burst(b, packet, 2), 0);
    mrd_sim_run_until(f->sim, 100);
    assert_int_equal(f->host[0].turns, 1); /* called when there is room */
    assert_int_equal(b->ops->tx_burst(b, packet, 2), 1);
}

/* Three hosts send to one: its leaf's queue drops and marks, and nothing else does. */
TEST(mrd_sim_fabric_forward__incast)
{
    enum { PACKETS = 500, QUEUE_BYTES = 100000, WIRE = 1250, PACKET_NS = 100 };
    struct recorder_fabric *f = create(&(struct mrd_sim_attr){
        .link = {.queue_bytes = QUEUE_BYTES, .ecn_min_bytes = 20000, .ecn_max_bytes = 20000}});
    const struct recorder *to = &f->host[0];
    unsigned marked = 0;

    for (unsigned i = 0; i < PACKETS; i++) {
        for (uint32_t from = 2; from < 8; from += 2)
            send_raw(f, from, 0, (uint16_t)(i % 16), WIRE);
    }
    run(f, MSEC_NS);

    struct mrd_sim_stats stats = recorder_link_stats(f->sim, "leaf0>host0");

    assert_int_equal(stats.packets, 3 * PACKETS);
    assert_int_equal(stats.queue_drops, 3 * PACKETS - to->num_arrivals);
    assert_int_equal(stats.bytes, to->num_arrivals * WIRE);
    /* What leaves while they send, and what is queued then. */
    assert_in_range(to->num_arrivals, PACKETS + QUEUE_BYTES / WIRE - 5,
                    PACKETS + QUEUE_BYTES / WIRE + 5);
    for (unsigned i = 0; i < to->num_arrivals; i++) {
        marked += to->arrivals[i].ecn == MRD_ECN_CE;
        assert_true(i == 0 || to->arrivals[i].at_ns >= to->arrivals[i - 1].at_ns + PACKET_NS);
    }
    /* The backlog passes the threshold after 16 / (2/3) packets, and stays above it. */
    assert_int_equal(marked, stats.ce);
    assert_in_range(marked, to->num_arrivals - 30, to->num_arrivals - 20);
    for (uint32_t link = 0; link < mrd_sim_num_links(f->sim); link++) {
        struct mrd_sim_stats other;

        assert_int_equal(mrd_sim_query_link(f->sim, link, NULL, &other), 0);
        if (link != recorder_link(f->sim, "leaf0>host0"))
            assert_int_equal(other.queue_drops + other.ce + other.lost + other.blackholed, 0);
    }
}

/* --------------------------------------------------------------------------------------- losses */

/* Loss end to end is a share of packets, not of the links that they cross. */
TEST(mrd_sim_fabric_draw_loss__share)
{
    enum { PACKETS = 100000 };
    struct mrd_sim *sim = test_sim(&(struct mrd_sim_attr){
        .topology = &fat_tree, .link = {.queue_bytes = 0}, .loss_ppb = 50000000});
    struct recorder_fabric f = {.sim = sim};

    for (unsigned i = 0; i < PACKETS; i++)
        send_raw(&f, 0, 1 + i % 15, (uint16_t)(i % 64), 100);
    mrd_sim_run_until(sim, SEC_NS);

    uint64_t came = 0;

    for (uint32_t host = 0; host < 16; host++)
        came += mrd_sim_get_host_stats(sim, host).dead_drops;
    assert_int_equal(mrd_sim_lost(sim), PACKETS - came);
    assert_in_range(mrd_sim_lost(sim), PACKETS / 20 - 300, PACKETS / 20 + 300);
}

/* The switch sees which of its links are down, and spreads over the others. */
TEST(mrd_sim_fabric_forward__around_down)
{
    enum { PATHS = 256 };
    struct recorder_fabric *f =
        create(&(struct mrd_sim_attr){.topology = &bundles, .paths = PATHS});
    static const char *const up[] = {"leaf0>spine0.0", "leaf0>spine0.1", "leaf0>spine1.0",
                                     "leaf0>spine1.1"};
    uint64_t before[4], after[4];

    for (unsigned down = 0; down <= 4; down++) {
        if (down > 0)
            schedule(f->sim, up[down - 1], "down", "on");
        for (unsigned i = 0; i < 4; i++)
            before[i] = recorder_link_stats(f->sim, up[i]).packets;
        for (uint16_t path = 0; path < PATHS; path++)
            recorder_fabric_send(f, 0, 7, path, 1);
        run(f, MSEC_NS);
        for (unsigned i = 0; i < 4; i++)
            after[i] = recorder_link_stats(f->sim, up[i]).packets;
        for (unsigned i = 0; i < 4 && down < 4; i++) {
            unsigned share = i < down ? 0 : PATHS / (4 - down);

            assert_in_range(after[i] - before[i], share * 2 / 3, share * 4 / 3);
        }
        assert_int_equal(f->host[7].num_arrivals, (down < 4 ? down + 1 : 4) * PATHS);
    }
    /* No way is left: dropped, and counted once. */
    assert_int_equal(after[0] - before[0], PATHS);
    assert_int_equal(recorder_link_stats(f->sim, up[0]).blackholed, PATHS);
    assert_int_equal(after[3] - before[3], 0);
    schedule(f->sim, "leaf0>spine1.1", "down", "off");
    recorder_fabric_send(f, 0, 7, 0, 2);
    run(f, MSEC_NS);
    assert_int_equal(f->host[7].num_arrivals, 4 * PATHS + 2);
}

/* Nobody above knows of a broken way down: what took it is dropped. A host has one way up. */
TEST(mrd_sim_fabric_forward__no_other_way)
{
    struct recorder_fabric *f = create(&(struct mrd_sim_attr){0});

    schedule(f->sim, "spine1>leaf3", "down", "on");
    for (uint16_t path = 0; path < 64; path++)
        recorder_fabric_send(f, 0, 7, path, 1);
    run(f, MSEC_NS);
    unsigned lost = 64 - f->host[7].num_arrivals;
    assert_in_range(lost, 16, 48);
    assert_int_equal(recorder_link_stats(f->sim, "spine1>leaf3").blackholed, lost);
    assert_int_equal(recorder_link_stats(f->sim, "leaf0>spine1").packets, lost);

    schedule(f->sim, "host0>leaf0", "down", "on");
    recorder_fabric_send(f, 0, 1, 0, 5);
    run(f, MSEC_NS);
    assert_int_equal(f->host[1].num_arrivals, 0);
    assert_int_equal(recorder_link_stats(f->sim, "host0>leaf0").blackholed, 5);
}

/* Nobody knows of a blackhole: what hashes to it is lost, path by path. */
TEST(mrd_sim_fabric_forward__into_blackhole)
{
    struct recorder_fabric *f = create(&(struct mrd_sim_attr){0});
    unsigned dead_paths = 0;

    schedule(f->sim, "leaf0>spine0", "blackhole", "on");
    for (uint16_t path = 0; path < 64; path++) {
        unsigned before = f->host[7].num_arrivals, came;

        recorder_fabric_send(f, 0, 7, path, 3);
        run(f, MSEC_NS);
        came = f->host[7].num_arrivals - before;
        assert_true(came == 0 || came == 3);
        dead_paths += came == 0;
    }
    assert_in_range(dead_paths, 16, 48);
    assert_int_equal(recorder_link_stats(f->sim, "leaf0>spine0").blackholed, 3 * dead_paths);
}

/* ----------------------------------------------------------------------------------- attributes */

TEST(mrd_sim_create__bad_topology_attributes)
{
    static const struct mrd_sim_attr rows[] = {
        {.topology = &leaf_spine, .links = 1},
        {.topology = &leaf_spine, .hosts = 7},
        {.topology = &leaf_spine, .wire_overhead = 2},
        {.topology = &leaf_spine, .loss_ppb = 1000000001},
        {.topology = &leaf_spine, .link = {.burst_enter_ppm = 1000001}},
        {.topology = &leaf_spine, .link = {.burst_leave_ppm = 1000001}},
        {.topology = &leaf_spine, .link = {.burst_loss_ppm = 1000001}},
        {.topology = &leaf_spine, .link = {.flap_period_ns = 5, .flap_down_ns = 6}},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        assert_null(mrd_sim_create(&rows[i]));
        assert_int_equal(errno, EINVAL);
    }
}

/* Calls by pairs of hosts have no meaning here. */
TEST(mrd_sim_set_link__topology)
{
    struct recorder_fabric *f = create(&(struct mrd_sim_attr){.hosts = 8});
    struct mrd_sim_link attr = {0};
    struct mrd_sim_stats stats;

    assert_int_equal(f->num_hosts, 8);
    assert_int_equal(mrd_sim_set_link(f->sim, 0, 1, 0, &attr), -EINVAL);
    assert_int_equal(mrd_sim_get_link(f->sim, 0, 1, 0, &attr), -EINVAL);
    assert_int_equal(mrd_sim_link_stats(f->sim, 0, 1, 0, &stats), -EINVAL);
    assert_int_equal(mrd_sim_set_loss_mask(f->sim, 0, 1, 1), -EINVAL);
}
