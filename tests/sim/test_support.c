/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests' own means: a verifier that cannot find an error verifies nothing. */
#include <stdlib.h>

#include "tests/support/check.h"
#include "tests/support/ledger.h"
#include "tests/support/payload.h"

enum { BYTES = 75 };

TEST(payload_mismatch__finds_each_byte)
{
    uint8_t buf[BYTES];

    payload_fill(buf, BYTES, 1, 2);
    assert_int_equal(payload_mismatch(buf, BYTES, 1, 2), BYTES);
    for (size_t i = 0; i < BYTES; i++) {
        buf[i] ^= 0x10;
        assert_int_equal(payload_mismatch(buf, BYTES, 1, 2), i);
        buf[i] ^= 0x10;
    }
}

/* Every message and seed has bytes of its own; a shorter message is the longer one's beginning. */
TEST(payload_fill__differs)
{
    uint8_t a[BYTES], b[BYTES];

    payload_fill(a, BYTES, 1, 2);
    assert_true(payload_mismatch(a, BYTES, 1, 3) < 4);
    assert_true(payload_mismatch(a, BYTES, 2, 2) < 4);
    payload_fill(b, 13, 1, 2);
    assert_memory_equal(a, b, 13);
}

TEST(payload_mismatch_partial__blank_or_right)
{
    uint8_t buf[BYTES];

    payload_fill(buf, BYTES, 1, 2);
    for (size_t i = 20; i < 50; i++)
        buf[i] = 0xee;
    assert_int_equal(payload_mismatch_partial(buf, BYTES, 1, 2, 0xee), BYTES);
    assert_int_equal(payload_mismatch_partial(buf, BYTES, 1, 2, 0xdd), 20);
    buf[60] ^= 1;
    assert_int_equal(payload_mismatch_partial(buf, BYTES, 1, 2, 0xee), 60);
}

TEST(payload_is_blank__finds_each_byte)
{
    uint8_t buf[BYTES] = {0};

    assert_true(payload_is_blank(buf, 0, 1));
    assert_true(payload_is_blank(buf, BYTES, 0));
    assert_false(payload_is_blank(buf, BYTES, 1));
    for (size_t i = 0; i < BYTES; i++) {
        buf[i] = 1;
        assert_false(payload_is_blank(buf, BYTES, 0));
        buf[i] = 0;
    }
}

/* Signaled requests owe a completion until it came, was withdrawn or went with its QP. */
TEST(ledger_open__counts)
{
    struct ledger ledger;
    uint64_t ids[4];
    const struct ledger_wr *first = NULL;

    ledger_init(&ledger, 1);
    for (uint32_t i = 0; i < 4; i++)
        ids[i] = ledger_post(&ledger, &(struct ledger_wr){.host = 1,
                                                          .life = 2,
                                                          .qp_num = 16 + i,
                                                          .object = i,
                                                          .opcode = MRD_WR_SEND,
                                                          .signaled = i != 3});
    assert_int_equal(ledger_open(&ledger, LEDGER_SEND, false, NULL), 3);
    assert_int_equal(ledger_open(&ledger, LEDGER_SEND, true, NULL), 4);
    assert_int_equal(ledger_open(&ledger, LEDGER_RECV, true, NULL), 0);

    struct mrd_wc wc = {.wr_id = ids[1], .opcode = MRD_WC_SEND, .qp_num = 17};

    assert_int_equal(ledger_complete(&ledger, 1, 2, &wc)->object, 1);
    ledger_withdraw(&ledger, ids[0]);
    assert_int_equal(ledger_open(&ledger, LEDGER_SEND, false, &first), 1);
    assert_int_equal(first->object, 2);
    ledger_abandon(&ledger, 1, 2, 18);
    assert_int_equal(ledger_open(&ledger, LEDGER_SEND, false, NULL), 0);
    ledger_fini(&ledger);
}
