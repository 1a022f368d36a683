/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/limits.h"
#include "core/share.h"
#include "tests/kit/kit.h"

enum {
    PAYLOAD_BYTES = 1024,
    OVERHEAD_BYTES = 100,
    PACKET_BYTES = PAYLOAD_BYTES + OVERHEAD_BYTES,
    PACKETS_MAX = 512,
    PEERS = 8
};

#define PERIOD_NS (21 * MRD_MSEC) /* a little longer than one */

static struct mrd_share share_of(uint32_t buffer_bytes)
{
    struct mrd_share share;

    mrd_share_init(&share, buffer_bytes, PAYLOAD_BYTES, OVERHEAD_BYTES, PACKETS_MAX, 0);
    return share;
}

/* Those who sent lately share the buffer; data fills half of a grant, which is twice the share. */
TEST(mrd_share_grant__divides_the_buffer)
{
    static const struct {
        uint32_t buffer_packets; /* 0: no limit */
        uint32_t senders, grant;
    } table[] = {{0, 1, 1024}, {0, 8, 1024}, {64, 1, 128},   {64, 4, 32},
                 {64, 5, 24},  {8, 8, 2},    {5000, 1, 1024}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        uint32_t seen[PEERS] = {0};
        struct mrd_share share = share_of(table[i].buffer_packets * PACKET_BYTES);

        for (uint32_t k = 0; k < table[i].senders; k++)
            mrd_share_grant(&share, &seen[k], k, 0);
        assert_int_equal(mrd_share_grant(&share, &seen[0], 0, 0), table[i].grant);
    }
}

/* A buffer smaller than a packet is taken to hold one. */
TEST(mrd_share_grant__never_nothing)
{
    struct mrd_share share = share_of(PACKET_BYTES - 1);
    uint32_t seen = 0;

    assert_int_equal(mrd_share_grant(&share, &seen, 5, 0), 2);
}

/* Each of the senders is granted something. Returns how many were granted a packet or more. */
static unsigned grant_all(struct mrd_share *share, uint32_t *seen, uint64_t now_ns)
{
    unsigned granted = 0;

    for (uint32_t k = 0; k < PEERS; k++)
        granted += mrd_share_grant(share, &seen[k], k, now_ns) > 1;
    return granted;
}

/* Less than a packet for each, but the buffer is seen to hold few: nobody waits for a turn. */
TEST(mrd_share_grant__no_turns_while_there_is_room)
{
    uint32_t seen[PEERS] = {0}, now_ns = 0;
    struct mrd_share share = share_of(4 * PACKET_BYTES);

    grant_all(&share, seen, now_ns);
    for (unsigned period = 0; period < 4; period++) {
        for (uint32_t k = 0; k < PEERS; k++) {
            mrd_share_read(&share, 1);
            mrd_share_read(&share, 1);
            mrd_share_empty(&share);
            assert_int_equal(mrd_share_grant(&share, &seen[k], k, now_ns), 2);
        }
        now_ns += PERIOD_NS;
    }
    /* One packet more before it is empty, and it was over half full. */
    mrd_share_read(&share, 3);
    assert_int_equal(grant_all(&share, seen, now_ns), PEERS / 2);
}

/* Those whose turn it is stand for all: half of them, half as much. Two quiet periods end turns. */
TEST(mrd_share_grant__turns_end_when_the_buffer_stays_empty)
{
    static const struct {
        uint32_t read;
        bool end;
    } table[] = {{2, false}, {1, true}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        uint32_t seen[PEERS] = {0}, now_ns = 0;
        struct mrd_share share = share_of(4 * PACKET_BYTES);

        mrd_share_read(&share, 4);
        mrd_share_empty(&share);
        grant_all(&share, seen, now_ns);
        for (unsigned period = 0; period < 3; period++) {
            assert_int_equal(grant_all(&share, seen, now_ns),
                             period < 2 || !table[i].end ? PEERS / 2 : PEERS);
            now_ns += PERIOD_NS;
            mrd_share_read(&share, table[i].read);
            mrd_share_empty(&share);
        }
    }
}

/*
 * Less than a packet for each, and the buffer fills: of eight senders two have a turn at a time,
 * and each has one in four periods.
 */
TEST(mrd_share_grant__takes_turns)
{
    uint32_t seen[PEERS] = {0}, now_ns = 0;
    unsigned turns[PEERS] = {0};
    struct mrd_share share = share_of(2 * PACKET_BYTES);

    for (uint32_t k = 0; k < PEERS; k++)
        mrd_share_grant(&share, &seen[k], k, now_ns);
    for (unsigned period = 0; period < 4; period++) {
        unsigned granted = 0;

        mrd_share_read(&share, 2);
        mrd_share_empty(&share);

        for (uint32_t k = 0; k < PEERS; k++) {
            uint32_t grant = mrd_share_grant(&share, &seen[k], k, now_ns);

            assert_true(grant == 1 || grant == 2); /* half of it is what data may fill */
            granted += grant / 2;
            turns[k] += grant / 2;
        }
        assert_int_equal(granted, 2);
        now_ns += PERIOD_NS;
        mrd_share_grant(&share, &seen[0], 0, now_ns); /* the next period */
    }
    for (uint32_t k = 0; k < PEERS; k++)
        assert_int_equal(turns[k], 1);
}

/* Who sent in the last period still counts; after two silent ones nobody does. */
TEST(mrd_share_grant__forgets_who_stopped_sending)
{
    uint32_t seen[4] = {0};
    struct mrd_share share = share_of(64 * PACKET_BYTES);

    for (uint32_t k = 0; k < 4; k++)
        mrd_share_grant(&share, &seen[k], k, 0);
    assert_int_equal(mrd_share_grant(&share, &seen[0], 0, 0), 32);
    assert_int_equal(mrd_share_grant(&share, &seen[0], 0, PERIOD_NS), 32);
    assert_int_equal(mrd_share_grant(&share, &seen[0], 0, 2 * PERIOD_NS), 128);
    for (uint32_t k = 0; k < 4; k++)
        mrd_share_grant(&share, &seen[k], k, 2 * PERIOD_NS);
    assert_int_equal(mrd_share_grant(&share, &seen[0], 0, 4 * PERIOD_NS), 128);
}

/* Larger packets fill the buffer sooner: fewer are granted, until for two periods none came. */
TEST(mrd_share_grow__fewer_of_larger_packets)
{
    uint32_t seen = 0;
    struct mrd_share share = share_of(64 * PACKET_BYTES);

    assert_int_equal(share.largest, PAYLOAD_BYTES);
    mrd_share_grow(&share, 4 * PAYLOAD_BYTES);
    assert_int_equal(mrd_share_grant(&share, &seen, 0, 0), 2 * 16);
    assert_int_equal(mrd_share_grant(&share, &seen, 0, PERIOD_NS), 2 * 16);
    assert_int_equal(mrd_share_grant(&share, &seen, 0, 2 * PERIOD_NS), 2 * 64);
    mrd_share_grow(&share, 100 * PAYLOAD_BYTES);
    assert_int_equal(mrd_share_grant(&share, &seen, 0, 2 * PERIOD_NS), 2);
    assert_int_equal(mrd_share_grant(&share, &seen, 0, 9 * PERIOD_NS), 2 * 64);
}
