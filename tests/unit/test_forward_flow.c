/* SPDX-License-Identifier: BSD-2-Clause */
/* mrd_forward's credits and order: what may be sent, and what is handed on. */
#include <stdlib.h>

#include "tests/kit/kit.h"
#include "tools/forward/flow.h"

static uint8_t bytes[1];

TEST(flow_sent__as_many_as_allowed)
{
    struct flow_tx tx;

    flow_tx_init(&tx, 2);
    assert_int_equal(flow_may_send(&tx), 2);
    assert_int_equal(flow_sent(&tx), 0);
    assert_int_equal(flow_sent(&tx), 1);
    assert_int_equal(flow_may_send(&tx), 0);
    assert_true(flow_credited(&tx, 0, 5));
    assert_int_equal(flow_may_send(&tx), 3);
}

/* Credits overtake each other, and numbers wrap. */
TEST(flow_credited__late_or_absurd)
{
    struct flow_tx tx;

    flow_tx_init(&tx, 4);
    assert_true(flow_credited(&tx, 0, 6));
    assert_false(flow_credited(&tx, 0, 5));
    assert_false(flow_credited(&tx, 0, 6 + FLOW_WINDOW_MAX + 1));
    assert_int_equal(flow_may_send(&tx), 6);
    tx.sent = UINT32_MAX - 1;
    tx.allowed = UINT32_MAX;
    assert_true(flow_credited(&tx, 0, 3));
    assert_int_equal(flow_may_send(&tx), 5);
}

TEST(flow_came__any_order)
{
    struct flow_rx rx;
    uint32_t credit;

    flow_rx_init(&rx, 4);
    assert_true(flow_came(&rx, 2, bytes, 3, false));
    assert_null(flow_next(&rx, 0));
    assert_false(flow_came(&rx, 2, bytes, 3, false)); /* twice */
    assert_false(flow_came(&rx, 4, bytes, 3, false)); /* not allowed yet */
    assert_true(flow_came(&rx, 0, bytes, 1, false));
    assert_int_equal(flow_next(&rx, 0)->len, 1);
    flow_drained(&rx);
    assert_false(flow_came(&rx, 0, bytes, 1, false)); /* over */
    assert_false(flow_tell(&rx, &credit));            /* less than half a window */
    assert_true(flow_came(&rx, 1, bytes, 2, false));
    flow_drained(&rx);
    assert_true(flow_tell(&rx, &credit));
    assert_int_equal(credit, 6);
    assert_int_equal(flow_next(&rx, 0)->len, 3);
}

TEST(flow_end__before_and_after_data)
{
    struct flow_rx rx;
    uint32_t credit;

    flow_rx_init(&rx, 4);
    assert_true(flow_came(&rx, 1, bytes, 1, false));
    assert_false(flow_end(&rx, 1)); /* less than came */
    assert_false(flow_end(&rx, 5)); /* more than may come */
    assert_true(flow_end(&rx, 2));
    assert_false(flow_end(&rx, 2));
    assert_false(flow_came(&rx, 2, bytes, 1, false));
    assert_false(flow_is_over(&rx));
    assert_true(flow_came(&rx, 0, bytes, 1, false));
    flow_drained(&rx);
    flow_drained(&rx);
    assert_true(flow_is_over(&rx));
    assert_false(flow_tell(&rx, &credit));
}

/* A break is where the data end, with or without an end before it. */
TEST(flow_cut__before_and_after_end)
{
    struct flow_rx rx;

    flow_rx_init(&rx, 4);
    assert_true(flow_came(&rx, 1, bytes, 1, false));
    assert_false(flow_cut(&rx, 1)); /* less than came */
    assert_false(flow_cut(&rx, 5)); /* more than may come */
    assert_true(flow_cut(&rx, 2));
    assert_false(flow_is_over(&rx));
    assert_true(flow_came(&rx, 0, bytes, 1, false)); /* it was overtaken */
    flow_drained(&rx);
    flow_drained(&rx);
    assert_true(flow_is_over(&rx));

    flow_rx_init(&rx, 4);
    assert_true(flow_end(&rx, 2));
    assert_false(flow_cut(&rx, 1));
    assert_false(flow_cut(&rx, 3));
    assert_true(flow_cut(&rx, 2));
}

/* The window grows only for a sender that used it all, to a receiver that keeps up. */
TEST(flow_grow__when_used_up)
{
    struct flow_rx rx;
    uint32_t credit;

    flow_rx_init(&rx, 2);
    assert_int_equal(flow_wants(&rx, 64), 0);
    assert_true(flow_came(&rx, 0, bytes, 1, false));
    flow_drained(&rx);
    assert_int_equal(flow_wants(&rx, 64), 0); /* it has some left */
    assert_true(flow_came(&rx, 1, bytes, 1, true));
    assert_int_equal(flow_wants(&rx, 64), 0);
    flow_drained(&rx);
    assert_int_equal(flow_wants(&rx, 64), 2);
    assert_int_equal(flow_wants(&rx, 3), 1);
    assert_true(flow_grow(&rx, 1));
    assert_true(flow_tell(&rx, &credit));
    assert_int_equal(credit, 5);
    assert_int_equal(flow_wants(&rx, 64), 0); /* it did not use these yet */
}

/*
 * On a long way the sender never has used all that is told: half of the window is told again while the
 * rest is on its way. That it had used all it knew of is what counts.
 */
TEST(flow_grow__on_a_long_way)
{
    struct flow_rx rx;
    struct flow_tx tx;
    uint32_t credit;

    flow_rx_init(&rx, 4);
    flow_tx_init(&tx, 4);
    for (uint32_t rtt = 0; rtt < 20; rtt++) {
        uint32_t from = tx.sent, more;

        while (flow_may_send(&tx))
            (void)flow_sent(&tx);
        for (uint32_t seq = from; seq != tx.sent; seq++) {
            assert_true(flow_came(&rx, seq, bytes, 1, seq + 1 == tx.allowed));
            flow_drained(&rx);
            more = flow_wants(&rx, FLOW_WINDOW_MAX);
            assert_true(!more || flow_grow(&rx, more));
            (void)flow_tell(&rx, &credit); /* it comes a flight later */
        }
        assert_true(flow_credited(&tx, rx.round, credit));
    }
    assert_int_equal(rx.window, FLOW_WINDOW_MAX);
    flow_rx_fini(&rx);
}

/* Credit that is not used comes back; one of before that comes late changes nothing. */
TEST(flow_recall__what_is_not_used)
{
    struct flow_tx tx;
    struct flow_rx rx;
    uint32_t credit;

    flow_rx_init(&rx, 8);
    assert_true(flow_grow(&rx, 8));
    rx.told = 16;
    flow_tx_init(&tx, 16);
    assert_true(flow_recall(&rx, 4, &credit));
    assert_false(flow_recall(&rx, 4, &credit)); /* under way */
    assert_int_equal(credit, 4);
    assert_true(flow_recalled(&tx, rx.round, credit));
    assert_false(flow_recalled(&tx, rx.round, 0)); /* twice */
    assert_int_equal(tx.allowed, 4);
    assert_false(flow_credited(&tx, 0, 20)); /* of the round before */
    assert_int_equal(flow_yielded(&rx, rx.round + 1, 4), 0);
    assert_int_equal(flow_yielded(&rx, rx.round, 17), 0); /* more than it had */
    assert_int_equal(flow_yielded(&rx, rx.round, tx.allowed), 12);
    assert_int_equal(rx.window, 4);
    assert_false(flow_recall(&rx, 4, &credit)); /* no more to be had */
    assert_false(flow_came(&rx, 4, bytes, 1, false));
    assert_true(flow_came(&rx, 3, bytes, 1, false));
    assert_ptr_equal(flow_take(&rx), bytes);
    assert_null(flow_take(&rx));
    flow_rx_fini(&rx);
}

/* What was sent when the recall came was allowed, and the window is as large as that needs. */
TEST(flow_recall__while_it_sends)
{
    struct flow_tx tx;
    struct flow_rx rx;
    uint32_t credit;

    flow_rx_init(&rx, 8);
    assert_true(flow_grow(&rx, 8));
    rx.told = 16;
    flow_tx_init(&tx, 16);
    assert_true(flow_recall(&rx, 4, &credit));
    for (uint32_t i = 0; i < 7; i++)
        (void)flow_sent(&tx);
    assert_true(flow_recalled(&tx, rx.round, credit));
    assert_int_equal(flow_may_send(&tx), 0);
    assert_true(flow_came(&rx, 6, bytes, 1, false));
    assert_false(flow_tell(&rx, &credit));
    assert_int_equal(flow_yielded(&rx, rx.round, tx.allowed), 9);
    assert_int_equal(rx.window, 7);
    for (uint32_t i = 0; i < 6; i++) {
        assert_true(flow_came(&rx, i, bytes, 1, false));
        flow_drained(&rx);
    }
    assert_true(flow_tell(&rx, &credit));
    assert_true(flow_credited(&tx, rx.round, credit));
    assert_int_equal(flow_may_send(&tx), 6);
    flow_rx_fini(&rx);
}

/* A sender and a receiver, with messages and credits in any order: all comes, in order. */
TEST(flow__random)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct flow_tx tx;
        struct flow_rx rx;
        uint32_t on_way[FLOW_WINDOW_MAX], num = 0, credits[8], rounds[8], num_credits = 0;
        uint32_t drained = 0, recall = 0, yield = 0, window;
        bool is_recalled = false, is_yielded = false;

        srand(seed);
        flow_rx_init(&rx, 1 + (unsigned)rand() % 8);
        flow_tx_init(&tx, rx.window);
        tx.sent = rx.drained = rx.came = UINT32_MAX - 500;
        rx.told = tx.allowed = tx.sent + rx.window;
        for (unsigned step = 0; drained < 2000; step++) {
            assert_true(step < 100000);
            if (rand() % 2 && flow_may_send(&tx))
                on_way[num++] = flow_sent(&tx);
            if (rand() % 2 && num) {
                unsigned i = (unsigned)rand() % num;

                assert_true(flow_came(&rx, on_way[i], bytes, on_way[i], rand() % 2));
                on_way[i] = on_way[--num];
            }
            if (rand() % 2 && flow_next(&rx, 0)) {
                assert_int_equal(flow_next(&rx, 0)->len, rx.drained);
                flow_drained(&rx);
                drained++;
                assert_true(
                    flow_grow(&rx, flow_wants(&rx, 1 + (unsigned)rand() % FLOW_WINDOW_MAX)));
            }
            if (num_credits < 8 && flow_tell(&rx, &credits[num_credits]))
                rounds[num_credits++] = rx.round;
            if (rand() % 16 == 0 && flow_recall(&rx, 1 + (unsigned)rand() % 4, &recall))
                is_recalled = true;
            if (rand() % 4 == 0 && is_recalled) {
                assert_true(flow_recalled(&tx, rx.round, recall));
                yield = tx.allowed;
                is_recalled = false;
                is_yielded = true;
            }
            if (rand() % 4 == 0 && is_yielded) {
                window = rx.window;
                window -= flow_yielded(&rx, rx.round, yield);
                assert_int_equal(rx.window, window);
                assert_false(rx.recalled);
                is_yielded = false;
            }
            assert_true(rx.told - rx.drained <= rx.window);
            assert_true(tx.sent - rx.drained <= rx.told - rx.drained);
            if (rand() % 4 == 0 && num_credits) {
                unsigned i = (unsigned)rand() % num_credits;

                (void)flow_credited(&tx, rounds[i], credits[i]);
                num_credits--;
                credits[i] = credits[num_credits];
                rounds[i] = rounds[num_credits];
            }
        }
        flow_rx_fini(&rx);
    }
}
