/* SPDX-License-Identifier: BSD-2-Clause */
/* Straight receive, sizes, limits, silence: rules of headers, acks and loss. One test a rule. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/forge.h"
#include "transport/movers/sim/sim_host.h"

enum { UNIT = 4096, BYTES = 100 };

/* ----------------------------------------------------------------------------- straight receive */

/* A message of 32 units that host 0 would write to host 1; its segments are forged one by one. */
FIXTURE(write)
{
    struct forge_tape tape;
    struct sim_world *w;
    struct mrd_wire_head head;
    struct mrd_wire_part part;
    uint8_t *target;
    uint8_t payload[UNIT];
};

FIXTURE_SETUP(write)
{
    self->w = forge_begin(&self->tape, &(struct sim_options){.straight = true});
    forge_exchange(self->w, HOST_0, HOST_1);
    sim_run(self->w, 1 * MSEC_NS);
    self->target = self->w->node[HOST_1].arena + (64 << 20);
    self->head = forge_as(&self->tape, HOST_0, HOST_1);
    self->part = (struct mrd_wire_part){.op = MRD_OP_WRITE,
                                        .flags = MRD_PART_MULTI,
                                        .len = UNIT,
                                        .dst_qpn = self->w->node[HOST_1].qp[0]->qp_num,
                                        .src_qpn = self->w->node[HOST_0].qp[0]->qp_num,
                                        .id = 1000,
                                        .total = 32 * UNIT,
                                        .rkey = self->w->node[HOST_1].mr->rkey,
                                        .addr = (uintptr_t)self->target};
}

FIXTURE_TEARDOWN(write)
{
    forge_end(&self->tape);
}

/* Segment `unit`, all of its bytes `fill`, under the psn_add'th PSN from now. */
static uint32_t segment(struct write *f, uint8_t *buf, uint32_t unit, uint32_t psn_add,
                        uint8_t fill)
{
    struct mrd_wire_head head = f->head;
    struct mrd_wire_part part = f->part;

    head.psn += psn_add;
    part.offset = unit * UNIT;
    memset(f->payload, fill, UNIT);
    return forge_data(buf, &head, &part, f->payload);
}

static void inject_segment(struct write *f, uint32_t unit, uint32_t psn_add, uint8_t fill)
{
    uint8_t buf[FORGE_BYTES_MAX];

    forge_inject(f->w, HOST_0, HOST_1, buf, segment(f, buf, unit, psn_add, fill));
}

static uint64_t planned(const struct write *f)
{
    return mrd_sim_get_host_stats(f->w->sim, HOST_1).planned_segments;
}

static void assert_units(const struct write *f, uint32_t unit, uint32_t num, uint8_t fill)
{
    for (uint32_t i = unit * UNIT; i < (unit + num) * UNIT; i++)
        assert_int_equal(f->target[i], fill);
}

/* That bursts of forged segments are received straight at all. */
TEST_F(write, sim_straight__burst_as_predicted)
{
    inject_segment(self, 0, 0, 1);
    sim_run(self->w, 10 * USEC_NS);
    for (uint32_t i = 1; i < 4; i++)
        inject_segment(self, i, i, 1);
    sim_run(self->w, 10 * USEC_NS);

    assert_int_equal(planned(self), 3);
    assert_int_equal(sim_counter(self->w, HOST_1, "rx_straight"), 3);
    assert_units(self, 0, 4, 1);
    assert_units(self, 4, 28, 0);
}

/* Corruption that keeps the header consistent in itself, so that only its check can tell. */
TEST_F(write, sim_straight__corrupt_place_is_not_written)
{
    uint8_t good[FORGE_BYTES_MAX], bad[FORGE_BYTES_MAX];
    inject_segment(self, 0, 0, 1);
    sim_run(self->w, 10 * USEC_NS);
    forge_look(&self->tape, HOST_1);
    for (uint32_t i = 1; i < 4; i++) {
        uint32_t len = segment(self, good, i, i, 2);

        assert_int_equal(segment(self, bad, i + 8, i + 8, 2), len);
        memcpy(bad + MRD_WIRE_BASE_BYTES - 8, good + MRD_WIRE_BASE_BYTES - 8, 4); /* its check */
        forge_inject(self->w, HOST_0, HOST_1, bad, len);
    }
    sim_run(self->w, 10 * USEC_NS);

    forge_expect(&self->tape, HOST_1, "rx_drop_checksum 3");
    assert_int_equal(planned(self), 0);
    assert_units(self, 1, 31, 0);
}

/* Copies that come while the message is still open overwrite nothing, whatever they carry. */
TEST_F(write, sim_straight__late_duplicates_do_not_overwrite)
{
    for (uint32_t i = 0; i < 8; i++) {
        inject_segment(self, i, i, 1);
        sim_run(self->w, 10 * USEC_NS);
    }
    forge_look(&self->tape, HOST_1);
    for (uint32_t i = 2; i < 6; i++)
        inject_segment(self, i, i, 2);
    sim_run(self->w, 10 * USEC_NS);
    forge_expect(&self->tape, HOST_1, "rx_duplicates 4");

    /* A burst that begins new and runs into what is there: only the new part is planned. */
    inject_segment(self, 12, 12, 1);
    sim_run(self->w, 10 * USEC_NS);
    forge_look(&self->tape, HOST_1);
    for (uint32_t i = 10; i < 14; i++)
        inject_segment(self, i, i, 2);
    sim_run(self->w, 10 * USEC_NS);
    assert_units(self, 0, 8, 1);
    assert_units(self, 8, 2, 0);
    assert_units(self, 10, 2, 2);
    assert_units(self, 12, 1, 1);
    assert_units(self, 13, 1, 2);
    assert_int_equal(sim_counter(self->w, HOST_1, "rx_duplicates"), 5);
}

/*
 * The message's segments are interleaved with other packets: PSN + 4 belongs to somebody else and
 * is new, but the unit that a run of PSNs would put there came under PSN + 5.
 */
TEST_F(write, sim_straight__interleaved_segments_are_not_overwritten)
{
    inject_segment(self, 0, 0, 1);
    sim_run(self->w, 10 * USEC_NS);
    inject_segment(self, 4, 5, 1);
    sim_run(self->w, 10 * USEC_NS);
    inject_segment(self, 3, 3, 3);
    self->part.id++; /* the other message */
    self->part.addr += 64 * UNIT;
    inject_segment(self, 4, 4, 4);
    sim_run(self->w, 10 * USEC_NS);

    assert_units(self, 3, 1, 3);
    assert_units(self, 4, 1, 1);
    assert_units(self, 64 + 4, 1, 4);
    assert_int_equal(sim_counter(self->w, HOST_1, "rx_packets"), 5);
}

/* A segment other than predicted is moved to its place; the predicted PSN stays unreceived. */
TEST_F(write, sim_straight__another_segment_is_moved)
{
    inject_segment(self, 0, 0, 1);
    sim_run(self->w, 10 * USEC_NS);
    inject_segment(self, 1, 1, 1);
    inject_segment(self, 6, 6, 6);
    sim_run(self->w, 10 * USEC_NS);
    assert_int_equal(sim_counter(self->w, HOST_1, "rx_straight_moved"), 1);
    assert_units(self, 6, 1, 6);
    inject_segment(self, 2, 2, 2);
    sim_run(self->w, 10 * USEC_NS);

    assert_units(self, 1, 1, 1);
    assert_units(self, 2, 1, 2);
    assert_units(self, 6, 1, 6);
    assert_int_equal(sim_counter(self->w, HOST_1, "rx_duplicates"), 0);
}

/* A write completed, the memory is the application's again: no copy of its packets changes it. */
static void straight_copies_after_completion(bool straight)
{
    struct forge_tape tape;
    struct sim_world *w = forge_begin(&tape, &(struct sim_options){.straight = straight});
    uint32_t message = sim_write(w, HOST_0, HOST_1, 16 * UNIT), num;
    uint8_t *target = w->messages[message].target;

    sim_run_until_complete(w, 1 * MSEC_NS);
    sim_run(w, 1 * MSEC_NS);
    memset(target, 0x77, 16 * UNIT);
    num = tape.num;
    for (uint32_t i = 0; i < num; i++) {
        if (tape.packets[i].from == HOST_0)
            forge_replay(w, &tape.packets[i]);
    }
    sim_run(w, 1 * MSEC_NS);

    for (uint32_t i = 0; i < 16 * UNIT; i++)
        assert_int_equal(target[i], 0x77);
    assert_true(sim_counter(w, HOST_1, "rx_duplicates") >= 16);
    forge_end(&tape);
}

TEST(sim_duplicate__after_completion)
{
    straight_copies_after_completion(false);
    straight_copies_after_completion(true);
}

/* ----------------------------------------------------------------------------------- MTU shrink */

/* Sizes of PSNs on the wire before and after the path got smaller. */
struct sizes {
    uint32_t of[4096];
    bool small;
    uint32_t old_again, new_small, changed;
};

static enum mrd_sim_verdict watch_sizes(void *arg, struct mrd_sim_datagram *d)
{
    struct sizes *s = arg;
    struct mrd_wire_head head;

    if (d->from != HOST_0 || mrd_wire_get(d->data, d->len, &head) != MRD_WIRE_OK ||
        (head.type != MRD_WIRE_DATA && head.type != MRD_WIRE_FRAGMENT))
        return MRD_SIM_PASS;
    assert_true(head.psn < 4096);
    if (head.type == MRD_WIRE_FRAGMENT) {
        s->changed += s->of[head.psn] != head.whole_len || d->len > 1500;
        s->old_again += head.whole_offset == 0;
    } else if (s->of[head.psn]) {
        s->changed += s->of[head.psn] != d->len;
    } else {
        s->new_small += s->small && d->len < 2000;
        s->of[head.psn] = d->len;
    }
    return !s->small && head.psn % 3 == 0 ? MRD_SIM_DROP : MRD_SIM_PASS;
}

/*
 * What was cut for the old MTU keeps PSN and size and is resent, in pieces; only new PSNs shrink.
 */
TEST_F(forge_tape, sim_mtu_shrink__psn_keeps_its_size)
{
    struct sim_world *w = forge_begin(self, &(struct sim_options){.rate_bps = 10000000000});
    struct sizes *sizes = calloc(1, sizeof(*sizes));

    assert_non_null(sizes);
    forge_exchange(w, HOST_0, HOST_1);
    self->edit = watch_sizes;
    self->arg = sizes;
    sim_write(w, HOST_0, HOST_1, 2 << 20);
    sim_run(w, 50 * USEC_NS);
    mrd_sim_set_datagram_max(w->sim, 1500);
    sizes->small = true;
    sim_all_arrive(w, 20 * MSEC_NS);

    assert_int_equal(sizes->changed, 0);
    assert_true(sizes->old_again > 0);
    assert_true(sizes->new_small > 100);
    assert_true(mrd_sim_get_host_stats(w->sim, HOST_0).too_big > 0);
    free(sizes);
}
