/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/ids.h"
#include "core/limits.h"
#include "tests/kit/kit.h"
#include "tests/unit/unit_alloc.h"

static struct unit_alloc alloc;
static int message;

static struct mrd_tx_id *take(struct mrd_ids *ids)
{
    return mrd_ids_take(ids, (struct mrd_msg *)(void *)&message);
}

static void give(struct mrd_ids *ids, struct mrd_tx_id *entry)
{
    entry->msg = NULL;
    mrd_ids_release(ids, entry);
}

/*
 * All slots can be in use at once; memory grows with those in use. A released slot is taken again under a
 * higher id; the one before is not found any more.
 */
TEST(mrd_ids_take__all)
{
    struct mrd_ids ids;

    unit_alloc_init(&alloc);
    mrd_ids_init(&ids, &alloc.ops);
    assert_true(mrd_ids_available(&ids));
    for (uint32_t i = 0; i < MRD_MSG_SLOTS; i++) {
        assert_true(mrd_ids_available(&ids));
        assert_int_equal(take(&ids)->id, i);
        assert_null(mrd_ids_find(&ids, i + 1));
    }
    assert_false(mrd_ids_available(&ids));
    give(&ids, mrd_ids_find(&ids, 700));
    assert_null(mrd_ids_find(&ids, 700));
    assert_true(mrd_ids_available(&ids));
    assert_int_equal(take(&ids)->id, 700 + MRD_MSG_SLOTS);
    assert_null(mrd_ids_find(&ids, 700));
    assert_int_equal(alloc.live_bytes, MRD_MSG_SLOTS * sizeof(struct mrd_tx_id));
    mrd_ids_fini(&ids);
    assert_int_equal(alloc.live_bytes, 0);
}

/* Without memory for more slots those that there are go on. */
TEST(mrd_ids_available__no_memory)
{
    struct mrd_ids ids;
    uint32_t slots = 0;

    unit_alloc_init(&alloc);
    alloc.fail_at = 2;
    mrd_ids_init(&ids, &alloc.ops);
    for (; mrd_ids_available(&ids); slots++)
        take(&ids);
    assert_in_range(slots, 1, MRD_MSG_SLOTS - 1);
    assert_int_equal(ids.room, slots);
    alloc.fail_at = 0;
    assert_true(mrd_ids_available(&ids));
    assert_int_equal(take(&ids)->id, slots);
    assert_int_equal(mrd_ids_find(&ids, 0)->id, 0);
    mrd_ids_fini(&ids);
    assert_int_equal(alloc.live_bytes, 0);
}
