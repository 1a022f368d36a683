/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of which many are posted: what they take in memory, and what is made only when needed. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "transport/adapters/ofi/rx.h"

enum {
    MANY = 100000,
    BYTES_MAX = 208, /* of a receive: to touch them first is most of what posting many costs */
    BLOCKS_MAX = 12, /* that hold MANY receives */
    STEPS_MAX = 24,  /* of one that is cancelled, whatever waits */
};

/* MANY with a buffer each, in `rx`, all of them posted. */
static void post_many(struct mrd_ofi_match *m, struct mrd_ofi_rxs *rxs, struct mrd_ofi_rx **rx)
{
    static uint8_t buffers[MANY];

    for (uint32_t i = 0; i < MANY; i++) {
        const struct iovec iov = {&buffers[i], 1};

        rx[i] = mrd_ofi_rx_alloc(rxs);
        assert_non_null(rx[i]);
        assert_int_equal(mrd_ofi_rx_set_iov(rxs, rx[i], &iov, 1), 0);
        rx[i]->tagged = true;
        rx[i]->tag = i;
        rx[i]->context = &buffers[i];
        assert_int_equal(mrd_ofi_posted_add(m, rx[i]), 0);
        assert_ptr_equal(mrd_ofi_rx_iov(rx[i])->iov_base, &buffers[i]);
    }
}

/* Few bytes each, in few blocks, which are used again. */
TEST(rx__memory)
{
    struct mrd_ofi_rx **rx = calloc(MANY, sizeof(struct mrd_ofi_rx *));
    struct mrd_ofi_match m;
    struct mrd_ofi_rxs rxs;

    assert_non_null(rx);
    assert_true(sizeof(*rx[0]) <= BYTES_MAX);
    mrd_ofi_match_init(&m, 1);
    mrd_ofi_rxs_init(&rxs);
    for (unsigned round = 0; round < 3; round++) {
        post_many(&m, &rxs, rx);
        assert_true(rxs.num_blocks <= BLOCKS_MAX); /* and those of the first round are used again */
        for (uint32_t i = 0; i < MANY; i++) {
            uint32_t n = (uint32_t)((uint64_t)i * 61681 % MANY);

            mrd_ofi_posted_remove(&m, rx[n]);
            mrd_ofi_rx_release(&rxs, rx[n]);
        }
    }
    mrd_ofi_match_fini(&m);
    mrd_ofi_rxs_fini(&rxs);
    free(rx);
}

/* Lists are the receive's own, and end with it, or with all: sanitizers see what does not. */
TEST(rx__lists)
{
    struct iovec iov[MRD_OFI_IOV_MAX];
    struct mrd_ofi_rx *rx[100];
    struct mrd_ofi_rxs rxs;

    mrd_ofi_rxs_init(&rxs);
    for (unsigned i = 0; i < 100; i++) {
        size_t num = i % (MRD_OFI_IOV_MAX + 1);

        rx[i] = mrd_ofi_rx_alloc(&rxs);
        assert_non_null(rx[i]);
        for (size_t j = 0; j < num; j++)
            iov[j] = (struct iovec){rx[i], i + j};
        assert_int_equal(mrd_ofi_rx_set_iov(&rxs, rx[i], iov, num), 0);
    }
    memset(iov, 0, sizeof(iov));
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(rx[i]->num_iov, i % (MRD_OFI_IOV_MAX + 1));
        for (size_t j = 0; j < rx[i]->num_iov; j++) {
            assert_ptr_equal(mrd_ofi_rx_iov(rx[i])[j].iov_base, rx[i]);
            assert_int_equal(mrd_ofi_rx_iov(rx[i])[j].iov_len, i + j);
        }
        if (i % 3)
            mrd_ofi_rx_release(&rxs, rx[i]);
    }
    assert_int_equal(mrd_ofi_rx_alloc(&rxs)->num_iov, 0);
    mrd_ofi_rxs_fini(&rxs);
}

/* A table by context is made for the first cancel, and made anew when all are gone. */
TEST(posted_of__table_when_needed)
{
    struct mrd_ofi_rx **rx = calloc(MANY, sizeof(struct mrd_ofi_rx *));
    uint64_t steps;
    struct mrd_ofi_match m;
    struct mrd_ofi_rxs rxs;

    assert_non_null(rx);
    mrd_ofi_match_init(&m, 1);
    mrd_ofi_rxs_init(&rxs);
    for (unsigned round = 0; round < 2; round++) {
        assert_null(mrd_ofi_posted_of(&m, &m));
        post_many(&m, &rxs, rx);
        assert_int_equal(m.by_context.num_keys, 0);
        for (uint32_t i = 0; i < MANY; i++) {
            steps = m.steps;
            assert_ptr_equal(mrd_ofi_posted_of(&m, rx[i]->context), rx[i]);
            if (i > 0)
                assert_true(m.steps - steps < STEPS_MAX);
            mrd_ofi_posted_remove(&m, rx[i]);
            assert_null(mrd_ofi_posted_of(&m, rx[i]->context));
            mrd_ofi_rx_release(&rxs, rx[i]);
        }
    }
    mrd_ofi_match_fini(&m);
    mrd_ofi_rxs_fini(&rxs);
    free(rx);
}
