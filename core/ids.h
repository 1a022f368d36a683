/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids of messages of several packets, at their sender: MRD_MSG_SLOTS slots for each send state.
 *
 * mrd_ids_take() when a message, or a new attempt of it, begins. `live` counts the records that
 * name the id; mrd_ids_release() when there are none and the message no longer uses it. Any free
 * slot may be taken, so a slow message blocks no other. Ids in a slot increase, and the target uses
 * the same slot: id mod MRD_MSG_SLOTS.
 */
#ifndef MRD_CORE_IDS_H
#define MRD_CORE_IDS_H

#include <stdbool.h>
#include <stdint.h>

struct mrd_allocator;
struct mrd_msg;

struct mrd_tx_id {
    uint32_t id;
    uint16_t live;       /* records with this id, ABORT included, that are not released */
    uint16_t next_free;  /* of a free slot: the next free one + 1; 0: none */
    struct mrd_msg *msg; /* NULL: completed, cancelled or waiting; only records are left */
};

struct mrd_ids {
    struct mrd_tx_id *entry; /* `room` of them, at most MRD_MSG_SLOTS; NULL: none yet */
    uint32_t room;
    uint32_t fresh; /* slots used at least once */
    uint32_t free;  /* first free one of these + 1; 0: none */
    const struct mrd_allocator *allocator;
};

void mrd_ids_init(struct mrd_ids *ids, const struct mrd_allocator *allocator);
void mrd_ids_fini(struct mrd_ids *ids);
/* Returns whether mrd_ids_take() may be called: makes room for more if needed. */
bool mrd_ids_available(struct mrd_ids *ids);
/* Takes an id for the message; one must be available. Returns its entry, as mrd_ids_find(). */
struct mrd_tx_id *mrd_ids_take(struct mrd_ids *ids, struct mrd_msg *msg);
/* Returns the entry of an id that is in use, valid until the next call; NULL: it is not. */
struct mrd_tx_id *mrd_ids_find(const struct mrd_ids *ids, uint32_t id);
/* Releases an id that no record and no message uses: the next id of its slot may be taken. */
void mrd_ids_release(struct mrd_ids *ids, struct mrd_tx_id *entry);

#endif
