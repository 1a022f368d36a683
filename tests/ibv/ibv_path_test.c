/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a path's source port comes from: flow labels, queue pairs, or pairs of them. */
#include "tests/ibv/ibv_fixture.h"
#include "tests/kit/kit.h"

#include <stdlib.h>
#include <string.h>

#include "core/wire.h"

/* Numbers seen, each once. */
struct set {
    uint64_t value[512];
    unsigned count;
};

static void set_add(struct set *set, uint64_t value)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->value[i] == value)
            return;
    assert_true(set->count < 512);
    set->value[set->count++] = value;
}

/* What the packets of a device had. */
struct seen {
    struct set ports, labels, src_qpns, dst_qpns, pairs;
};

static void look(struct seen *seen, const struct fake_ibv_device *device, unsigned from)
{
    memset(seen, 0, sizeof(*seen));
    for (unsigned i = from; i < fake_ibv_num_packets(); i++) {
        const struct fake_ibv_packet *p = fake_ibv_packet(i);

        if (p->device != device)
            continue;
        set_add(&seen->ports, p->source_port);
        set_add(&seen->labels, p->flow_label);
        set_add(&seen->src_qpns, p->src_qpn);
        set_add(&seen->dst_qpns, p->dst_qpn);
        set_add(&seen->pairs, (uint64_t)p->src_qpn << 32 | p->dst_qpn);
    }
}

/* The ports that the paths of a's peer are shown with. */
static struct set ports_of_paths(struct fixture *f)
{
    struct mrd_peer_attr peer;
    struct set ports = {.count = 0};

    assert_int_equal(mrd_query_peer(f->a.ah, &peer, sizeof(peer)), 0);
    for (uint32_t i = 0; i < peer.paths; i++) {
        struct mrd_path_attr path;

        assert_int_equal(mrd_query_path(f->a.ah, i, &path, sizeof(path)), 0);
        set_add(&ports, path.port);
    }
    assert_int_equal(ports.count, peer.paths);
    return ports;
}

static void some_traffic(struct fixture *f)
{
    for (unsigned i = 0; i < 4; i++)
        fixture_transfer(f, MRD_WR_RDMA_WRITE, 300000, 10);
}

/* ---------------------------------------------------------------------------------- flow labels */

/*
 * One queue pair, and for each path a label of its own, none of them 0, that makes a port of its
 * own.
 */
TEST(mrd_ibv_entropy__ah)
{
    struct mrd_context_attr attr = {.paths = 64, .spray = "rr", .entropy = "ah"};
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, &attr);
    struct seen seen;

    some_traffic(f);
    look(&seen, f->device[0], 0);
    assert_int_equal(seen.src_qpns.count, 1);
    assert_int_equal(seen.dst_qpns.count, 1);
    assert_in_range(seen.ports.count, 60, 64);
    assert_int_equal(seen.labels.count, seen.ports.count);
    for (unsigned i = 0; i < seen.labels.count; i++)
        assert_in_range(seen.labels.value[i], 1, 0xfffff);
    struct set ports = ports_of_paths(f);
    assert_int_equal(ports.count, 64);
    for (unsigned i = 0; i < seen.ports.count; i++)
        set_add(&ports, seen.ports.value[i]);
    assert_int_equal(ports.count, 64); /* what is shown is what is sent */
}

/* The most paths there can be, over any label that the seed makes them start at. */
TEST(mrd_ibv_entropy__ah_of_many_seeds)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct mrd_context_attr attr = {
            .paths = 256, .seed = seed, .comp_mask = MRD_CONTEXT_ATTR_SEED, .entropy = "ah"};
        struct fixture *f = fixture_begin(FAKE_IBV_MLX5, &attr);
        struct seen seen;

        fixture_transfer(f, MRD_WR_RDMA_WRITE, 1000, 1);
        look(&seen, f->device[0], 0);
        assert_int_equal(ports_of_paths(f).count, 256);
        for (unsigned i = 0; i < seen.labels.count; i++)
            assert_int_not_equal(seen.labels.value[i], 0);
        fixture_end(f);
    }
}

/* A device that has no more handles loses those paths only, and the messages arrive. */
TEST(mrd_ibv_entropy__too_few_handles)
{
    struct fixture *f = fixture_devices(FAKE_IBV_MLX5);

    for (unsigned i = 0; i < 2; i++)
        f->device[i]->attr.max_ah = 20;
    fixture_open_both(f, NULL);
    fixture_transfer(f, MRD_WR_SEND, 20000, 20);
}

/* ---------------------------------------------------------------------------------- queue pairs */

TEST(mrd_ibv_entropy__qp)
{
    struct mrd_context_attr attr = {.paths = 16, .spray = "rr", .entropy = "qp"};
    struct fixture *f = fixture_begin(FAKE_IBV_RXE, &attr);
    struct seen seen;

    some_traffic(f);
    look(&seen, f->device[0], 0);
    assert_int_equal(seen.src_qpns.count, 16);
    assert_int_equal(seen.dst_qpns.count, 1); /* the one in the address */
    assert_int_equal(seen.ports.count, 16);
    assert_int_equal(ports_of_paths(f).count, 16);
}

/* Few queue pairs at each end make many paths. */
TEST(mrd_ibv_entropy__qpair)
{
    struct mrd_context_attr attr = {.paths = 64, .spray = "rr", .entropy = "qpair"};
    struct fixture *f = fixture_devices(FAKE_IBV_MLX5);
    struct seen seen;

    for (unsigned i = 0; i < 2; i++)
        f->device[i]->port_rule = FAKE_IBV_PORT_QPN_PAIR;
    fixture_open_both(f, &attr);
    some_traffic(f);
    look(&seen, f->device[0], 0);
    assert_int_equal(seen.src_qpns.count, 8);
    assert_int_equal(seen.dst_qpns.count, 8);
    assert_in_range(seen.pairs.count, 60, 64);
    assert_in_range(seen.ports.count, 50, 64);
}

/*
 * Where the label decides nothing it is not 0 either: to some devices that means any port, for each
 * packet anew.
 */
TEST(mrd_ibv_entropy__never_label_0)
{
    for (unsigned e = 0; e < ENTROPIES; e++) {
        struct mrd_context_attr attr = {.paths = 8, .entropy = fixture_entropies[e]};
        struct fixture *f = fixture_begin(FAKE_IBV_MLX5, &attr);

        fixture_transfer(f, MRD_WR_SEND, 50000, 10);
        for (unsigned i = 0; i < fake_ibv_num_packets(); i++)
            assert_int_not_equal(fake_ibv_packet(i)->flow_label, 0);
        fixture_end(f);
    }
}

/* Who was told the first QPN only learns the others from the packets that come from them. */
TEST(mrd_ibv_entropy__qpns_are_learnt)
{
    struct mrd_context_attr attr = {.paths = 64, .spray = "rr", .entropy = "qpair"};
    struct fixture *f = fixture_alloc();
    char address[MRD_ADDRESS_MAX];
    struct seen seen;

    fake_ibv_begin(1);
    for (unsigned i = 0; i < 2; i++) {
        f->device[i] = fake_ibv_add(FAKE_IBV_MLX5, NULL);
        f->device[i]->port_rule = FAKE_IBV_PORT_QPN_PAIR;
        fixture_open(i ? &f->b : &f->a, f->device[i]->name, &attr);
    }
    assert_int_equal(mrd_query_address(f->b.context, address, sizeof(address)), 0);
    *strchr(address, ',') = '\0';
    f->a.ah = mrd_create_ah(f->a.pd, address);
    fixture_transfer(f, MRD_WR_RDMA_WRITE, 100, 1);
    assert_int_equal(fake_ibv_packet(0)->dst_qpn, fake_ibv_qpn(f->device[1], 0));
    some_traffic(f);

    unsigned before = fake_ibv_num_packets();

    some_traffic(f);
    look(&seen, f->device[0], before);
    assert_int_equal(seen.dst_qpns.count, 8);
    look(&seen, f->device[1], before);
    assert_true(seen.dst_qpns.count > 1);
}

/* -------------------------------------------------------------------------------- which of them */

TEST(mrd_ibv_entropy__auto)
{
    static const struct {
        enum fake_ibv_kind kind;
        unsigned qps;
    } rows[] = {
        {FAKE_IBV_MLX5, 1}, {FAKE_IBV_HNS, 1},    {FAKE_IBV_MLX4, 16},
        {FAKE_IBV_RXE, 16}, {FAKE_IBV_IRDMA, 16}, {FAKE_IBV_BNXT_RE, 16},
    };

    for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct mrd_context_attr attr = {.entropy = i % 2 ? "auto" : NULL};

        fake_ibv_begin(1);
        struct fake_ibv_device *device = fake_ibv_add(rows[i / 2].kind, "a_renamed_one");
        struct mrd_context *context = fixture_must_open("a_renamed_one", &attr);
        assert_int_not_equal(fake_ibv_qpn(device, rows[i / 2].qps - 1), 0);
        assert_int_equal(fake_ibv_qpn(device, rows[i / 2].qps), 0);
        assert_int_equal(mrd_close_device(context), 0);
        assert_int_equal(fake_ibv_end(), 0);
    }
}

/* ----------------------------------------------------------------------------------- dead paths */

struct blackhole {
    const struct fake_ibv_device *device;
    uint16_t port;
    unsigned lost;
};

static bool falls_in(void *arg, const struct fake_ibv_packet *packet)
{
    struct blackhole *hole = arg;

    if (packet->device != hole->device || packet->source_port != hole->port)
        return false;
    hole->lost++;
    return true;
}

static bool has_new_path(struct fixture *f)
{
    return fixture_counter(f->a.context, "paths_replaced") > 0;
}

static bool has_dead_path(struct fixture *f)
{
    struct mrd_path_attr path;

    for (uint32_t i = 0; !mrd_query_path(f->a.ah, i, &path, sizeof(path)); i++)
        if (path.state == MRD_PATH_DEAD)
            return true;
    return false;
}

/* All packets from one source port are lost, and traffic goes on until the sender has noticed. */
static void make_blackhole(struct fixture *f, struct blackhole *hole,
                           bool (*noticed)(struct fixture *f))
{
    struct seen seen;

    fixture_transfer(f, MRD_WR_RDMA_WRITE, 300000, 4);
    look(&seen, f->device[0], 0);
    *hole = (struct blackhole){.device = f->device[0], .port = (uint16_t)seen.ports.value[3]};
    fake_ibv_set(&(struct fake_ibv_knobs){.loses = falls_in, .arg = hole});
    /* Not much at a time: the fake wire keeps all packets, and noticing takes real time. */
    for (unsigned i = 0; i < 2000 && !noticed(f); i++) {
        fixture_transfer(f, MRD_WR_RDMA_WRITE, 100000, 4);
        fixture_pass(f, 5000000);
    }
    assert_true(hole->lost > 0);
    assert_true(noticed(f));
}

/*
 * A source port that leads nowhere is given up for a fresh one. No message goes by it any more; an
 * answer to a packet that belongs to no known peer may, because it is sent without a state.
 */
TEST(mrd_ibv_new_path__after_a_blackhole)
{
    static const char *const entropies[] = {"ah", "qp"};

    for (unsigned e = 0; e < 2; e++) {
        struct mrd_context_attr attr = {.paths = 8, .entropy = entropies[e]};
        struct fixture *f = fixture_begin(e ? FAKE_IBV_RXE : FAKE_IBV_MLX5, &attr);
        struct blackhole hole;

        make_blackhole(f, &hole, has_new_path);

        unsigned before = fake_ibv_num_packets();

        some_traffic(f);
        for (unsigned i = before; i < fake_ibv_num_packets(); i++) {
            const struct fake_ibv_packet *p = fake_ibv_packet(i);

            assert_true(p->device != hole.device || p->source_port != hole.port ||
                        p->len <= MRD_WIRE_BASE_BYTES);
        }
        fixture_end(f);
    }
}

/* Pairs of queue pairs are as many paths as there are: traffic goes on over the others. */
TEST(mrd_ibv_new_path__none_of_pairs)
{
    struct mrd_context_attr attr = {.paths = 16, .entropy = "qpair"};
    struct fixture *f = fixture_begin(FAKE_IBV_RXE, &attr);
    struct blackhole hole;

    make_blackhole(f, &hole, has_dead_path);
    some_traffic(f);
    assert_int_equal(fixture_counter(f->a.context, "paths_replaced"), 0);
    fixture_end(f); /* while `hole` is there */
}
