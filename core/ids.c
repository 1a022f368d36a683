/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/ids.h"

#include <assert.h>
#include <stddef.h>

#include "core/limits.h"

enum { IN_USE = UINT16_MAX }; /* next_free of a slot in use */

_Static_assert((int)MRD_MSG_SLOTS < (int)IN_USE, "slots are told by 16 bits");

void mrd_ids_init(struct mrd_ids *ids, struct mrd_tx_id *entry)
{
    ids->entry = entry;
    ids->fresh = ids->free = 0;
}

bool mrd_ids_available(const struct mrd_ids *ids)
{
    return ids->free || ids->fresh < MRD_MSG_SLOTS;
}

struct mrd_tx_id *mrd_ids_take(struct mrd_ids *ids, struct mrd_msg *msg)
{
    struct mrd_tx_id *entry;

    assert(mrd_ids_available(ids));
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
    struct mrd_tx_id *entry = &ids->entry[id % MRD_MSG_SLOTS];

    if (id % MRD_MSG_SLOTS >= ids->fresh || entry->next_free != IN_USE || entry->id != id)
        return NULL;
    return entry;
}

void mrd_ids_release(struct mrd_ids *ids, struct mrd_tx_id *entry)
{
    assert(entry->next_free == IN_USE && !entry->live && !entry->msg);
    entry->next_free = (uint16_t)ids->free;
    ids->free = (uint32_t)(entry - ids->entry) + 1;
}
