/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that tries memory keys as fast as it can learns of no more than the limit allows. */
#include "tests/unit/engine_hand.h"

enum { AT = 0, BYTES = 64, TRIES = 100000 };

static struct pair pair; /* large, and begun anew by each test */

/*
 * All in one moment. Those beyond the limit come under one PSN, which is never received: a key that is
 * right is taken as little as one that is wrong, or silence would say which is which.
 */
static void guess_rate__holds_for_right_keys(void **state)
{
    struct pair *p = &pair;
    struct mrd_wire_part part;
    struct mrd_peer *peer;
    uint32_t right;

    (void)state;
    pair_begin(p);
    peer = hand_rx_peer(p, AT);
    part = hand_write(p, AT, BYTES);
    right = part.rkey;
    for (uint32_t i = TRIES; i; i--) {
        part.rkey = right ^ i;
        (void)hand_place(p, AT, peer, 0, &part, 1);
    }
    part.rkey = right;
    assert_int_not_equal(hand_place(p, AT, peer, 0, &part, 1).verdict, MRD_PLACED);
    pair_end(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guess_rate__holds_for_right_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
