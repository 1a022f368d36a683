/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory in large pages: blocks by themselves, and contexts in them. */
#include <stdint.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/world.h"
#include "transport/movers/sim/sim_host.h"
#include "transport/movers/sim/sim_world.h"

static bool is_zero(const uint8_t *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (block[i])
            return false;
    }
    return true;
}

/* Blocks of many sizes, more than a chunk holds: zeroed, whole cache lines apart, each its own. */
TEST(mrd_sim_memory_alloc__many_blocks)
{
    enum { BLOCKS = 3000, STEP = 97 };
    static uint8_t *blocks[BLOCKS];
    struct mrd_sim_memory memory;

    mrd_sim_memory_init(&memory);
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t bytes = 1 + i * STEP % MRD_SIM_BLOCK_BYTES_MAX;

        blocks[i] = mrd_sim_memory_alloc(&memory, bytes);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % MRD_SIM_BLOCK_UNIT, 0);
        assert_true(is_zero(blocks[i], bytes));
        memset(blocks[i], (int)(i % 255) + 1, bytes);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t bytes = 1 + i * STEP % MRD_SIM_BLOCK_BYTES_MAX;

        assert_int_equal(blocks[i][0], i % 255 + 1);
        assert_int_equal(blocks[i][bytes - 1], i % 255 + 1);
    }
    mrd_sim_memory_fini(&memory);
}

/* What was released is the next block of that size, and zeroed again. */
TEST(mrd_sim_memory_alloc__released_block)
{
    struct mrd_sim_memory memory;

    mrd_sim_memory_init(&memory);

    uint8_t *block = mrd_sim_memory_alloc(&memory, 1000);

    assert_non_null(block);
    memset(block, 0xff, 1000);
    mrd_sim_memory_release(&memory, block, 1000);
    assert_ptr_not_equal(mrd_sim_memory_alloc(&memory, 900), block);
    assert_ptr_equal(mrd_sim_memory_alloc(&memory, 1000), block);
    assert_true(is_zero(block, 1000));
    mrd_sim_memory_release(&memory, NULL, 1000);
    mrd_sim_memory_fini(&memory);
}

/* Large blocks are no part of a chunk, and stay when the memory goes. */
TEST(mrd_sim_memory_alloc__large_block)
{
    enum { BYTES = MRD_SIM_BLOCK_BYTES_MAX + 1 };
    struct mrd_sim_memory memory;

    mrd_sim_memory_init(&memory);

    uint8_t *block = mrd_sim_memory_alloc(&memory, BYTES);

    assert_non_null(block);
    assert_true(is_zero(block, BYTES));
    assert_null(memory.chunks);
    mrd_sim_memory_fini(&memory);
    memset(block, 1, BYTES);
    mrd_sim_memory_release(&memory, block, BYTES);
}

/* A host's context opens again in the memory that it left. */
TEST(mrd_sim_set_large_pages__open_again)
{
    struct mrd_sim *sim =
        mrd_sim_create(&(struct mrd_sim_attr){.hosts = 2, .knows = MRD_SIM_KNOWS_FABRIC});
    const char *at = NULL;

    assert_non_null(sim);
    mrd_sim_set_large_pages(sim, true);
    for (unsigned i = 0; i < 3; i++) {
        struct mrd_context *context = mrd_open_device(mrd_sim_device(sim, 1), NULL);

        assert_non_null(context);
        assert_true(i == 0 || sim->parts[0].memory.at == at);
        at = sim->parts[0].memory.at;
        assert_int_equal(mrd_close_device(context), 0);
    }
    mrd_sim_destroy(sim);
}
