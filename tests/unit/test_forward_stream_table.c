/* SPDX-License-Identifier: BSD-2-Clause */
/* mrd_forward's table of streams: ids that come back late, and walks while streams end. */
#include <stdint.h>

#include "tests/kit/kit.h"
#include "tools/forward/stream_table.h"

enum { MAX = 3 };

/* The table does not look into streams. */
static struct stream *const streams[MAX] = {(void *)8, (void *)16, (void *)24};

FIXTURE(table)
{
    struct stream_table table;
};

FIXTURE_SETUP(table)
{
    assert_int_equal(stream_table_init(&self->table, MAX), 0);
}

FIXTURE_TEARDOWN(table)
{
    stream_table_fini(&self->table);
}

TEST_F(table, stream_table_find__only_its_own_id)
{
    uint32_t first = stream_table_add(&self->table, streams[0]);

    assert_int_not_equal(first, 0);
    assert_ptr_equal(stream_table_find(&self->table, first), streams[0]);
    assert_null(stream_table_find(&self->table, 0));
    assert_null(stream_table_find(&self->table, first + 1));
    assert_null(stream_table_find(&self->table, first + MAX));
    assert_null(stream_table_find(&self->table, UINT32_MAX));
    stream_table_remove(&self->table, first);
    assert_null(stream_table_find(&self->table, first));
}

/* The slot that is free for longest is used next, and its last id finds nothing. */
TEST_F(table, stream_table_add__slots_in_turn)
{
    uint32_t first = stream_table_add(&self->table, streams[0]), second;

    stream_table_remove(&self->table, first);
    for (int i = 0; i < MAX - 1; i++)
        assert_int_not_equal(stream_table_add(&self->table, streams[1]) & 0xffff, first & 0xffff);
    second = stream_table_add(&self->table, streams[2]);
    assert_int_equal(self->table.num, MAX);
    assert_int_equal(second & 0xffff, first & 0xffff);
    assert_int_not_equal(second, first);
    assert_null(stream_table_find(&self->table, first));
    assert_ptr_equal(stream_table_find(&self->table, second), streams[2]);
}

/* No id is 0, whatever the slot has been used for. */
TEST_F(table, stream_table_add__generations_wrap)
{
    for (uint32_t i = 0; i < MAX * (UINT16_MAX + 2u); i++) {
        uint32_t id = stream_table_add(&self->table, streams[0]);

        assert_int_not_equal(id >> 16, 0);
        stream_table_remove(&self->table, id);
    }
}

/* All are met, although those that were met, and one that was not, are removed meanwhile. */
TEST_F(table, stream_table_next__removed_meanwhile)
{
    uint32_t id[MAX], at = 0;

    for (int i = 0; i < MAX; i++)
        id[i] = stream_table_add(&self->table, streams[i]);
    assert_ptr_equal(stream_table_next(&self->table, &at), streams[0]);
    stream_table_remove(&self->table, id[0]);
    stream_table_remove(&self->table, id[1]);
    assert_ptr_equal(stream_table_next(&self->table, &at), streams[2]);
    assert_null(stream_table_next(&self->table, &at));
}
