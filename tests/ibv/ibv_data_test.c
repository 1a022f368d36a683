/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages over fake RDMA devices arrive intact, whatever the devices and the wire between them do.
 */
#include "tests/ibv/ibv_fixture.h"
#include "tests/kit/kit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/state.h"
#include "transport/context.h"

static const enum mrd_wr_opcode opcodes[] = {MRD_WR_SEND, MRD_WR_SEND_WITH_IMM, MRD_WR_RDMA_WRITE,
                                             MRD_WR_RDMA_WRITE_WITH_IMM};
enum { OPCODES = sizeof(opcodes) / sizeof(opcodes[0]) };

/* All opcodes, sizes around each boundary. */
static void transfer_all(struct fixture *f)
{
    static const uint32_t sizes[] = {0, 1, 8, 63, 64, 1000, 3999, 4000, 4001, 8192, 65537};

    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (unsigned o = 0; o < OPCODES; o++)
            fixture_transfer(f, opcodes[o], sizes[s], 12);
}

/* --------------------------------------------------------------------------------- good devices */

/*
 * A poll hands a message out before it looks at deadlines, so that the answer need not wait for
 * them; but not twice in a row, or they would wait for as long as messages come.
 */
TEST(mrd_ibv__messages_come_before_deadlines_but_not_for_ever)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, NULL);
    const struct mrd_engine *engine = mrd_context_engine(f->b.context);
    unsigned half = 0, whole = 0;

    for (unsigned i = 0; i < 10; i++) {
        uint64_t judged_ns;

        fixture_recv(&f->b, i, 0, 64);
        assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_SEND, i, 0, 64, 0), 0);
        for (;;) {
            struct mrd_wc wc;

            fixture_turn_one(&f->a); /* first contact may want an answer of it */
            judged_ns = engine->clock.empty_ns;
            if (mrd_poll_cq(f->b.cq, 1, &wc) == 1)
                break;
        }
        if (engine->clock.empty_ns == judged_ns) {
            half++;
            assert_int_equal(mrd_next_timeout_ns(f->b.context), 0);
        } else {
            whole++;
        }
        assert_true(fixture_run(f, i + 1, 0));
    }
    assert_true(half > 0);

    /* Each of these polls finds a message. */
    half = whole = 0;
    for (unsigned i = 0; i < 20; i++)
        fixture_recv(&f->b, i, 0, 64);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t judged_ns = engine->clock.empty_ns;
        struct mrd_wc wc;

        assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_SEND, i, 0, 64, 0), 0);
        fixture_turn_one(&f->a);
        if (mrd_poll_cq(f->b.cq, 1, &wc) != 1)
            continue;
        half += engine->clock.empty_ns == judged_ns;
        whole += engine->clock.empty_ns != judged_ns;
    }
    assert_true(whole >= half);
    assert_true(fixture_run(f, 30, 0));
}

TEST(mrd_ibv__all_opcodes_and_sizes)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, NULL);

    transfer_all(f);
    assert_int_equal(fake_ibv_num_received(), fake_ibv_num_packets());
    assert_int_equal(fixture_counter(f->a.context, "retx_spurious"), 0);
}

TEST(mrd_ibv__every_kind_of_device)
{
    static const enum fake_ibv_kind kinds[] = {FAKE_IBV_HNS, FAKE_IBV_MLX4, FAKE_IBV_RXE,
                                               FAKE_IBV_IRDMA, FAKE_IBV_BNXT_RE};

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct fixture *f = fixture_begin(kinds[i], NULL);

        fixture_transfer(f, MRD_WR_SEND, 10000, 20);
        fixture_transfer(f, MRD_WR_RDMA_WRITE, 100000, 8);
        fixture_end(f);
    }
}

TEST(mrd_ibv__every_mtu)
{
    for (enum ibv_mtu mtu = IBV_MTU_1024; mtu <= IBV_MTU_4096; mtu++) {
        struct fixture *f = fixture_devices(FAKE_IBV_MLX5);

        for (unsigned i = 0; i < 2; i++)
            f->device[i]->ports[0].attr.active_mtu = mtu;
        fixture_open_both(f, NULL);
        fixture_transfer(f, MRD_WR_SEND, 5000, 20);
        fixture_transfer(f, MRD_WR_RDMA_WRITE, 100000, 20);
        fixture_end(f);
    }
}

/* The other end answers whoever wrote, over a handle made from the completion. */
TEST(mrd_ibv__answer_from_wc)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, NULL);

    assert_int_equal(mrd_destroy_ah(f->b.ah), 0);
    f->b.ah = NULL;
    fixture_recv(&f->b, 0, 0, 100);
    fixture_recv(&f->a, 1, 1000, 100);
    fixture_fill(&f->a, 0, 100, 5);
    assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_SEND, 0, 0, 100, 0), 0);
    assert_true(fixture_run(f, 1, 1));
    f->b.ah = mrd_create_ah_from_wc(f->b.pd, &f->b.wc[0]);
    assert_non_null(f->b.ah);
    assert_int_equal(fixture_post(&f->b, &f->a, MRD_WR_SEND, 0, 0, 100, 0), 0);
    assert_true(fixture_run(f, 2, 2));
    assert_true(fixture_holds(&f->a, 1000, 100, 5));
}

/* Two contexts on one device. */
TEST(mrd_ibv__two_contexts_on_one_device)
{
    struct fixture *f = fixture_alloc();

    fake_ibv_begin(1);
    f->device[0] = fake_ibv_add(FAKE_IBV_RXE, NULL);
    fixture_open(&f->a, f->device[0]->name, NULL);
    fixture_open(&f->b, f->device[0]->name, NULL);
    f->a.ah = fixture_ah(&f->a, &f->b);
    fixture_transfer(f, MRD_WR_SEND, 20000, 30);
}

/* The GRH of IPv6 is another header, at another place. */
TEST(mrd_ibv__ipv6)
{
    struct fixture *f = fixture_devices(FAKE_IBV_MLX5);

    for (unsigned i = 0; i < 2; i++) {
        fake_ibv_gid(f->device[i], 2, IBV_GID_TYPE_IB, NULL);
        fake_ibv_gid(f->device[i], 3, IBV_GID_TYPE_ROCE_V2, i ? "2001:db8::2" : "2001:db8::1");
    }
    fixture_open_both(f, NULL);
    fixture_transfer(f, MRD_WR_SEND, 20000, 30);
    assert_int_equal(fake_ibv_packet(0)->dgid.raw[0], 0x20);
    fake_ibv_set(&(struct fake_ibv_knobs){.ce_ppm = 1000000});
    fixture_transfer(f, MRD_WR_SEND, 20000, 30);
    assert_true(fixture_counter(f->b.context, "rx_ce") > 0);
}

TEST(mrd_ibv__no_srq)
{
    for (unsigned e = 0; e < ENTROPIES; e++) {
        struct mrd_context_attr attr = {.entropy = fixture_entropies[e]};
        struct fixture *f = fixture_devices(FAKE_IBV_MLX5);

        for (unsigned i = 0; i < 2; i++)
            f->device[i]->attr.max_srq = 0;
        fixture_open_both(f, &attr);
        fixture_transfer(f, MRD_WR_SEND, 20000, 30);
        fixture_transfer(f, MRD_WR_RDMA_WRITE, 50000, 30);
        assert_int_equal(fake_ibv_calls("ibv_create_srq"), 0);
        fixture_end(f);
    }
}

/* ------------------------------------------------------------------------ bad devices, bad wire */

static const struct {
    const char *name;
    struct fake_ibv_knobs knobs;
} rows[] = {
    {"drops", {.drop_ppm = 20000}},
    {"duplicates", {.dup_ppm = 100000}},
    {"reorders", {.reorder_ppm = 200000}},
    {"marks", {.ce_ppm = 100000}},
    {"partial posts", {.post_takes = 3}},
    {"one request a post", {.post_takes = 1}},
    {"late completions", {.late_ppm = 700000}},
    {"completions of QPs overtake", {.shuffle_cqes = true}},
    {"QPs send in no order", {.shuffle_tx = true, .shuffle_srq = true}},
    {"eager", {.pace = FAKE_IBV_EAGER}},
    {"all of it",
     {.drop_ppm = 10000,
      .dup_ppm = 10000,
      .reorder_ppm = 50000,
      .ce_ppm = 10000,
      .post_takes = 5,
      .late_ppm = 500000,
      .shuffle_cqes = true,
      .shuffle_tx = true,
      .shuffle_srq = true}},
};

TEST(mrd_ibv__survives)
{
    for (unsigned e = 0; e < ENTROPIES; e++) {
        for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
            struct mrd_context_attr attr = {.entropy = fixture_entropies[e]};
            struct fixture *f = fixture_begin(FAKE_IBV_MLX5, &attr);

            print_message("%s, %s\n", fixture_entropies[e], rows[r].name);
            fake_ibv_set(&rows[r].knobs);
            for (unsigned o = 0; o < OPCODES; o++) {
                fixture_transfer(f, opcodes[o], 100, 100);
                fixture_transfer(f, opcodes[o], 30000, 40);
            }
            fixture_end(f);
        }
    }
}

/* Datagrams that the receiver has no slot for are lost, and come again. */
TEST(mrd_ibv__receive_queue_too_short)
{
    struct fixture *f = fixture_devices(FAKE_IBV_MLX5);

    for (unsigned i = 0; i < 2; i++)
        f->device[i]->attr.max_srq_wr = 64;
    fixture_open_both(f, NULL);
    fixture_transfer(f, MRD_WR_SEND, 100000, 40);
}

TEST(mrd_ibv__ce_reaches_the_engine)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, NULL);

    fixture_transfer(f, MRD_WR_SEND, 20000, 10);
    assert_int_equal(fixture_counter(f->b.context, "rx_ce"), 0);
    fake_ibv_set(&(struct fake_ibv_knobs){.ce_ppm = 1000000});
    fixture_transfer(f, MRD_WR_SEND, 20000, 10);
    assert_true(fixture_counter(f->b.context, "rx_ce") >= 50);
}

/* ---------------------------------------------------------------------------------- completions */

/* A send is done when it is acked and the device has let go of it: neither alone will do. */
TEST(mrd_ibv__acked_before_its_completion)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, NULL);

    fixture_transfer(f, MRD_WR_SEND, 100, 1); /* they know each other */
    f->a.num_wc = f->b.num_wc = 0;
    fake_ibv_set(&(struct fake_ibv_knobs){.hold_cqes = true});
    fixture_recv(&f->b, 0, 0, 10000);
    fixture_fill(&f->a, 0, 10000, 3);
    assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_SEND, 0, 0, 10000, 0), 0);
    assert_true(fixture_run(f, 0, 1));
    fixture_pass(f, 50000000);
    assert_true(fixture_counter(f->a.context, "rx_acks") > 0);
    assert_int_equal(f->a.num_wc, 0);
    fake_ibv_set(&(struct fake_ibv_knobs){.pace = FAKE_IBV_LAZY});
    assert_true(fixture_run(f, 1, 1));
}

struct darkness {
    bool is_on;
    unsigned lost;
};

static bool lose_all(void *arg, const struct fake_ibv_packet *packet)
{
    struct darkness *d = arg;

    (void)packet;
    d->lost += d->is_on;
    return d->is_on;
}

TEST(mrd_ibv__completion_before_its_ack)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, NULL);
    struct darkness darkness = {.is_on = true};

    fixture_transfer(f, MRD_WR_SEND, 100, 1);
    f->a.num_wc = f->b.num_wc = 0;
    fake_ibv_set(&(struct fake_ibv_knobs){.loses = lose_all, .arg = &darkness});
    fixture_recv(&f->b, 0, 0, 10000);
    assert_int_equal(fixture_post(&f->a, &f->b, MRD_WR_SEND, 0, 0, 10000, 0), 0);
    fixture_pass(f, 50000000);
    assert_true(darkness.lost > 0);
    assert_int_equal(f->a.num_wc, 0);
    darkness.is_on = false;
    assert_true(fixture_run(f, 1, 1));
    fixture_end(f); /* while `darkness` is there */
}

/* ---------------------------------------------------------------------------- how they are sent */

/* The device reads payload from the user's memory, under the key of the user's registration. */
TEST(mrd_ibv__zero_copy)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, NULL);
    unsigned pieces = 0;
    uint64_t bytes = 0;

    fixture_transfer(f, MRD_WR_RDMA_WRITE, 100000, 1);
    for (unsigned i = 0; i < fake_ibv_num_packets(); i++) {
        const struct fake_ibv_packet *p = fake_ibv_packet(i);
        uint64_t at = p->sge[1].addr - (uintptr_t)f->a.memory;

        assert_in_range(p->num_sge, 1, 2);
        if (p->num_sge < 2)
            continue;
        assert_true(at + p->sge[1].length <= 100000);
        assert_int_not_equal(p->sge[1].lkey, p->sge[0].lkey);
        assert_false(p->is_inline);
        bytes += p->sge[1].length;
        pieces++;
    }
    assert_true(pieces >= 100000 / 4000);
    assert_true(bytes >= 99000); /* a tail may be staged */
}

TEST(mrd_ibv__acks_are_inline)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, NULL);
    unsigned acks = 0;

    for (unsigned i = 0; i < 20; i++)
        fixture_transfer(f, MRD_WR_RDMA_WRITE, 1000, 1);
    for (unsigned i = 0; i < fake_ibv_num_packets(); i++) {
        const struct fake_ibv_packet *p = fake_ibv_packet(i);

        if (p->device != f->device[1])
            continue;
        assert_true(p->is_inline || p->len > 256);
        acks += p->is_inline;
    }
    assert_true(acks > 0);
}

/* A handle of another DSCP has address handles of its own at the device. */
TEST(mrd_ibv__dscp)
{
    struct fixture *f = fixture_begin(FAKE_IBV_MLX5, &(struct mrd_context_attr){.dscp = 10});
    char address[MRD_ADDRESS_MAX];
    struct mrd_ah *kept = f->a.ah;
    unsigned seen[64] = {0};

    fixture_transfer(f, MRD_WR_SEND, 10000, 4);
    assert_int_equal(mrd_query_ah(kept, address, sizeof(address)), 0);
    f->a.ah = mrd_create_ah_ex(
        f->a.pd, &(struct mrd_ah_init_attr){
                     .comp_mask = MRD_AH_INIT_ATTR_DSCP, .address = address, .dscp = 46});
    assert_non_null(f->a.ah);
    fixture_transfer(f, MRD_WR_SEND, 10000, 4);
    for (unsigned i = 0; i < fake_ibv_num_packets(); i++) {
        const struct fake_ibv_packet *p = fake_ibv_packet(i);

        assert_int_equal(p->traffic_class & 3, 2 /* ECT(0) */);
        assert_int_equal(p->hop_limit, 64);
        if (p->device == f->device[0])
            seen[p->traffic_class >> 2]++;
        else
            assert_int_equal(p->traffic_class >> 2, 10);
    }
    assert_true(seen[10] >= 12 && seen[46] >= 12);
    assert_int_equal(mrd_destroy_ah(f->a.ah), 0);
    f->a.ah = kept;
}

/* A device with one entry a list gets the whole datagram copied. */
TEST(mrd_ibv__one_sge)
{
    struct fixture *f = fixture_devices(FAKE_IBV_MLX5);

    for (unsigned i = 0; i < 2; i++) {
        f->device[i]->attr.max_sge = f->device[i]->attr.max_srq_sge = 1;
        f->device[i]->max_inline = 0;
    }
    fixture_open_both(f, NULL);
    transfer_all(f);
    for (unsigned i = 0; i < fake_ibv_num_packets(); i++)
        assert_false(fake_ibv_packet(i)->is_inline);
}
