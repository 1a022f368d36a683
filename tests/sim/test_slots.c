/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a target: what each packet of a message means to its slot. The packets are
 * forged, one by one: a sender of ours would not send most of these sequences, but a network that
 * delays and a sender that recovers may.
 */
#include <string.h>

#include "core/limits.h"
#include "tests/support/payload.h"
#include "tests/support/puppet.h"

static bool holds(const struct puppet *p, uint32_t recv, uint8_t first, uint8_t second)
{
    const uint8_t *buf = p->buf[recv];

    return payload_is_blank(buf, PUPPET_SEGMENT_BYTES, first) &&
           payload_is_blank(buf + PUPPET_SEGMENT_BYTES, PUPPET_SEGMENT_BYTES, second);
}

/* A target with so many receives posted. */
static struct puppet *begin(unsigned receives)
{
    struct puppet *p = puppet_create();

    for (unsigned i = 0; i < receives; i++)
        puppet_recv(p);
    return p;
}

/* So many receives are done by now, and this one holds these segments. */
static void expect_done(struct puppet *p, int num, uint32_t recv, uint8_t first, uint8_t second)
{
    assert_int_equal(puppet_poll(p), num);
    assert_true(holds(p, recv, first, second));
}

/* Segments in any order; the receive is done with the last. */
TEST(slot__whole_message)
{
    struct puppet *p = begin(1);

    puppet_segment(p, 1, 0, 0, 1, 'b');
    assert_int_equal(puppet_poll(p), 0);
    puppet_segment(p, 0, 0, 0, 0, 'a');
    assert_int_equal(puppet_poll(p), 1);
    assert_int_equal(p->wc[0].status, MRD_WC_SUCCESS);
    assert_int_equal(p->wc[0].byte_len, PUPPET_MESSAGE_BYTES);
    assert_true(holds(p, 0, 'a', 'b'));
    assert_true(puppet_acked(p, 0) && puppet_acked(p, 1));
}

/* A packet of a message long over, whose slot another one holds: acked, and no receive is taken. */
TEST(slot__lower_id_is_acked_and_dropped)
{
    struct puppet *p = begin(2);

    puppet_segment(p, 0, 3 + MRD_MSG_SLOTS, 0, 0, 'a');
    puppet_segment(p, 1, 3, 0, 0, 'x');
    assert_true(puppet_acked(p, 1));
    puppet_segment(p, 2, 3 + MRD_MSG_SLOTS, 0, 1, 'b');
    expect_done(p, 1, 0, 'a', 'b');
    assert_true(holds(p, 1, 0, 0));

    puppet_segment(p, 3, 4, 0, 0,
                   'c'); /* the second receive is free: it goes to the next message */
    puppet_segment(p, 4, 4, 0, 1, 'd');
    expect_done(p, 2, 1, 'c', 'd');
}

/* "Lower" wraps around as the numbers do. */
TEST(slot__ids_wrap)
{
    const uint32_t last = UINT32_MAX, next = last + MRD_MSG_SLOTS;
    struct puppet *p = begin(1);

    puppet_segment(p, 0, last, 0, 0, 'x');
    puppet_recv(p);
    puppet_segment(p, 1, next, 0, 0, 'a');
    puppet_segment(p, 2, last, 0, 1, 'x');
    puppet_segment(p, 3, next, 0, 1, 'b');
    assert_int_equal(puppet_poll(p), 2);
    assert_int_equal(p->wc[0].status, MRD_WC_REM_ABORT_ERR);
    assert_true(holds(p, 1, 'a', 'b'));
}

/* A higher id takes the slot: the sender gave the half message up. */
TEST(slot__higher_id_ends_a_half_message)
{
    struct puppet *p = begin(2);

    puppet_segment(p, 0, 5, 0, 0, 'x');
    assert_int_equal(puppet_poll(p), 0);
    puppet_segment(p, 1, 5 + MRD_MSG_SLOTS, 0, 0, 'a');
    assert_int_equal(puppet_poll(p), 1);
    assert_int_equal(p->wc[0].status, MRD_WC_REM_ABORT_ERR);
    puppet_segment(p, 2, 5 + MRD_MSG_SLOTS, 0, 1, 'b');
    expect_done(p, 2, 1, 'a', 'b');
}

/*
 * The first packet was refused for want of a receive, then one was posted: the attempt's other
 * packets must not take it, for that attempt will never be whole. Its next attempt has a new id.
 */
TEST(slot__refused_attempt_takes_no_receive)
{
    struct puppet *p = puppet_create();

    puppet_segment(p, 0, 0, 0, 0, 'x');
    assert_int_equal(puppet_refused(p, 0), MRD_REFUSE_RNR);
    puppet_recv(p);
    puppet_segment(p, 1, 0, 0, 1, 'x');
    assert_int_equal(puppet_refused(p, 1), 0);
    puppet_segment(p, 2, 1, 0, 0, 'a'); /* another message: the receive is still there */
    puppet_segment(p, 3, 1, 0, 1, 'b');
    assert_int_equal(puppet_refused(p, 2), 0);
    expect_done(p, 1, 0, 'a', 'b');

    puppet_recv(p);
    puppet_segment(p, 4, 2, 1, 0, 'c');
    puppet_segment(p, 5, 2, 1, 1, 'd');
    expect_done(p, 2, 1, 'c', 'd');

    assert_false(puppet_acked(p, 0)); /* not before its refusal was acked */
    puppet_ack(p);
    assert_true(puppet_acked(p, 0));
}

/* A late copy under a PSN not seen before, after the message was completed, changes nothing. */
TEST(slot__done_message_is_acked_and_not_placed)
{
    struct puppet *p = begin(2);

    puppet_segment(p, 0, 0, 0, 0, 'a');
    puppet_segment(p, 1, 0, 0, 1, 'b');
    assert_int_equal(puppet_poll(p), 1);
    puppet_segment(p, 2, 0, 0, 0, 'x');
    puppet_segment(p, 3, 0, 1, 0, 'x');
    assert_true(puppet_acked(p, 2) && puppet_acked(p, 3));
    expect_done(p, 1, 0, 'a', 'b');
    assert_true(holds(p, 1, 0, 0));
}

/* An ABORT ends the receive in error; what comes later is acked and not placed. */
TEST(slot__aborted_message_is_acked_and_not_placed)
{
    struct puppet *p = begin(2);

    puppet_segment(p, 0, 0, 0, 0, 'x');
    puppet_abort(p, 2, 0);
    assert_int_equal(puppet_poll(p), 1);
    assert_int_equal(p->wc[0].status, MRD_WC_REM_ABORT_ERR);
    memset(p->buf[0], 0, sizeof(p->buf[0])); /* it is the application's again */
    puppet_segment(p, 1, 0, 0, 1, 'x');
    puppet_segment(p, 3, 0, 1, 1, 'x');
    assert_true(puppet_acked(p, 1) && puppet_acked(p, 2) && puppet_acked(p, 3));
    assert_int_equal(puppet_poll(p), 1);
    assert_true(holds(p, 0, 0, 0) && holds(p, 1, 0, 0));
}

/* An ABORT that overtakes all of its message fills the slot: late packets must not start it. */
TEST(slot__abort_of_an_unknown_id_fills_its_slot)
{
    struct puppet *p = begin(1);

    puppet_abort(p, 2, 0);
    puppet_segment(p, 0, 0, 0, 0, 'x');
    puppet_segment(p, 1, 0, 0, 1, 'x');
    assert_true(puppet_acked(p, 0) && puppet_acked(p, 1) && puppet_acked(p, 2));
    assert_int_equal(puppet_poll(p), 0);
    assert_true(holds(p, 0, 0, 0));

    puppet_segment(p, 3, MRD_MSG_SLOTS, 0, 0, 'a'); /* the slot is free for the next id */
    puppet_segment(p, 4, MRD_MSG_SLOTS, 0, 1, 'b');
    expect_done(p, 1, 0, 'a', 'b');

    puppet_recv(p); /* the same where a message was before */
    puppet_abort(p, 5, 2 * MRD_MSG_SLOTS);
    puppet_segment(p, 6, 2 * MRD_MSG_SLOTS, 0, 0, 'x');
    puppet_segment(p, 7, 2 * MRD_MSG_SLOTS, 0, 1, 'x');
    assert_int_equal(puppet_poll(p), 1);
}

/* An ABORT of a message that is over, or whose slot went to another, harms neither. */
TEST(slot__late_abort_is_harmless)
{
    struct puppet *p = begin(2);

    puppet_segment(p, 0, 0, 0, 0, 'a');
    puppet_segment(p, 1, 0, 0, 1, 'b');
    puppet_abort(p, 2, 0);
    puppet_segment(p, 3, MRD_MSG_SLOTS, 0, 0, 'c');
    puppet_abort(p, 4, 0);
    puppet_segment(p, 5, MRD_MSG_SLOTS, 0, 1, 'd');
    assert_int_equal(puppet_poll(p), 2);
    assert_int_equal(p->wc[0].status, MRD_WC_SUCCESS);
    assert_int_equal(p->wc[1].status, MRD_WC_SUCCESS);
    assert_true(holds(p, 0, 'a', 'b') && holds(p, 1, 'c', 'd'));
}

/* In the window and not to be executed: refused, never silently dropped. */
TEST(slot__contradictions_are_refused)
{
    struct mrd_wire_part part = {.op = MRD_OP_SEND,
                                 .flags = MRD_PART_MULTI,
                                 .len = PUPPET_SEGMENT_BYTES,
                                 .src_qpn = 99,
                                 .total = PUPPET_MESSAGE_BYTES};
    uint8_t payload[PUPPET_SEGMENT_BYTES] = {0};
    struct puppet *p = begin(1);

    part.dst_qpn = p->qp->qp_num;
    part.offset = PUPPET_MESSAGE_BYTES; /* it ends beyond the message */
    puppet_part(p, 0, &part, payload);
    assert_int_equal(puppet_refused(p, 0), MRD_REFUSE_INVALID);
    assert_true(holds(p, 0, 0, 0));

    puppet_segment(p, 1, 7, 0, 0, 'a');
    part.id = 7;
    part.offset = 0;
    part.total = 2 * PUPPET_MESSAGE_BYTES; /* of another length than it began with */
    puppet_part(p, 2, &part, payload);
    assert_int_equal(puppet_refused(p, 2), MRD_REFUSE_INVALID);
    assert_int_equal(puppet_poll(p), 1);
    assert_int_equal(p->wc[0].status, MRD_WC_REM_ABORT_ERR);
}
