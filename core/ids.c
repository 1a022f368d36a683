/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/ids.h"

#include <assert.h>
#include <stddef.h>

#include "core/alloc.h"
#include "core/limits.h"

enum {
    IN_USE = UINT16_MAX, /* next_free of a slot in use */
    ROOM_MIN = 8,        /* slots allocated at first */
};

_Static_assert((int)MRD_MSG_SLOTS < (int)IN_USE, "slots are told by 16 bits");

void mrd_ids_init(struct mrd_ids *ids, const struct mrd_allocator *allocator)
{
    *ids = (struct mrd_ids){.allocator = allocator};
}

void mrd_ids_fini(struct mrd_ids *ids)
{
    if (ids->entry)
        mrd_free(ids->allocator, ids->entry, ids->room * sizeof(*ids->entry));
    mrd_ids_init(ids, ids->allocator);
}

static bool grow(struct mrd_ids *ids)
{
    uint32_t room = ids->room ? 2 * ids->room : ROOM_MIN;
    struct mrd_tx_id *entry =
        mrd_grow(ids->allocator, ids->entry, ids->room * sizeof(*entry), room * sizeof(*entry));

    if (!entry)
        return false;
    ids->entry = entry;
    ids->room = room;
    return true;
}

bool mrd_ids_available(struct mrd_ids *ids)
{
    return ids->free || ids->fresh < ids->room || (ids->room < MRD_MSG_SLOTS && grow(ids));
}

struct mrd_tx_id *mrd_ids_take(struct mrd_ids *ids, struct mrd_msg *msg)
{
    struct mrd_tx_id *entry;

    assert(ids->free || ids->fresh < ids->room);
    if (ids->free) {
        entry = &ids->entry[ids->free - 1];
        ids->free = entry->next_free;
        entry->id += MRD_MSG_SLOTS;
    } else {
        entry = &ids->entry[ids->fresh];
        entry->id = ids->fresh++;
    }
    entry->live = 0;
    entry->next_free = IN_USE;
    entry->msg = msg;
    return entry;
}

struct mrd_tx_id *mrd_ids_find(const struct mrd_ids *ids, uint32_t id)
{
    uint32_t slot = id % MRD_MSG_SLOTS;
    struct mrd_tx_id *entry = slot < ids->fresh ? &ids->entry[slot] : NULL;

    return entry && entry->next_free == IN_USE && entry->id == id ? entry : NULL;
}

void mrd_ids_release(struct mrd_ids *ids, struct mrd_tx_id *entry)
{
    assert(entry->next_free == IN_USE && !entry->live && !entry->msg);
    entry->next_free = (uint16_t)ids->free;
    ids->free = (uint32_t)(entry - ids->entry) + 1;
}
