/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and atomics: peers that break the rules, and what waits when others end. */
#include "tests/unit/engine_hand.h"

enum {
    ASKER = 0,
    TARGET = 1,
    HERE = 8 * PAIR_PAYLOAD,
    LONG_BYTES = 3 * PAIR_PAYLOAD,
    REFUSALS_MAX = 8192,
    STRANGER_PORT = 999,
};

static struct pair pair; /* large, and begun anew by each test */

static struct pair *begin_in(enum mrd_order order)
{
    struct pair *p = &pair;
    int error;

    pair_begin(p);
    for (unsigned at = 0; at < 2; at++) {
        struct pair_end *end = &p->end[at];

        end->qp->order = order;
        mrd_engine_dereg_mr(end->e, end->mr, p->now);
        end->mr = mrd_engine_reg_mr(end->e, end->pd, end->memory, sizeof(end->memory),
                                    MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE |
                                        MRD_ACCESS_REMOTE_READ | MRD_ACCESS_REMOTE_ATOMIC,
                                    &(struct mrd_mover_mr){0}, &error);
        assert_non_null(end->mr);
    }
    return p;
}

static struct pair *begin(void)
{
    return begin_in(MRD_ORDER_NONE);
}

/* A request takes no receive, so it has no immediate data. */
static void reads_bad__request_with_immediate(void **state)
{
    static const uint8_t ops[] = {MRD_OP_READ, MRD_OP_CMP_SWAP, MRD_OP_FETCH_ADD};
    struct pair *p = begin();
    struct mrd_peer *peer = hand_rx_peer(p, TARGET);
    struct mrd_wire_part part = hand_write(p, TARGET, 0);

    (void)state;
    pair_post_recv(p, TARGET, 0, 64);
    part.flags = MRD_PART_IMM;
    part.total = MRD_WIRE_ATOMIC_BYTES;
    for (unsigned i = 0; i < 3; i++) {
        part.op = ops[i];
        assert_int_equal(hand_place(p, TARGET, peer, i, &part, 1).verdict, MRD_PLACE_MALFORMED);
    }
    assert_int_equal(hand_qp(p, TARGET)->num_posted, 1);
    assert_int_equal(p->end[TARGET].e->responses.used, 0);
    pair_end(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_bad__request_with_immediate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
