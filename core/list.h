/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doubly linked lists through nodes inside the items. A node that is on no list points to itself.
 */
#ifndef MRD_CORE_LIST_H
#define MRD_CORE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct mrd_node {
    struct mrd_node *next, *prev;
};

#define mrd_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void mrd_list_init(struct mrd_node *n)
{
    n->next = n->prev = n;
}

static inline bool mrd_list_empty(const struct mrd_node *n)
{
    return n->next == n;
}

static inline void mrd_list_insert_before(struct mrd_node *at, struct mrd_node *n)
{
    n->prev = at->prev;
    n->next = at;
    at->prev->next = n;
    at->prev = n;
}

static inline void mrd_list_append(struct mrd_node *list, struct mrd_node *n)
{
    mrd_list_insert_before(list, n);
}

static inline void mrd_list_prepend(struct mrd_node *list, struct mrd_node *n)
{
    mrd_list_insert_before(list->next, n);
}

static inline void mrd_list_remove(struct mrd_node *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    mrd_list_init(n);
}

static inline struct mrd_node *mrd_list_first(struct mrd_node *list)
{
    return list->next == list ? NULL : list->next;
}

static inline struct mrd_node *mrd_list_pop(struct mrd_node *list)
{
    struct mrd_node *n = mrd_list_first(list);

    if (n)
        mrd_list_remove(n);
    return n;
}

/* Moves all of `from` to the end of `to`. */
static inline void mrd_list_splice(struct mrd_node *to, struct mrd_node *from)
{
    if (mrd_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    mrd_list_init(from);
}

#endif
