/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Path choice. A policy is a const table of functions with a name, which mrd_spray_find() looks up.
 *
 * The engine calls pick() for the first packet of each quantum, and acked() or lost() for each
 * packet. Policies read paths and change only their own state.
 *
 * Adding one: a file spray_NAME.c with a `const struct mrd_spray_ops mrd_spray_NAME`, one line in
 * the table of spray.c, and its name in mrd.h's attribute comment.
 */
#ifndef MRD_CORE_SPRAY_H
#define MRD_CORE_SPRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/path.h"
#include "core/rng.h"

enum { MRD_SPRAY_CACHE = 64 }; /* entropy values that reps remembers */

struct mrd_spray_ops;

struct mrd_spray {
    const struct mrd_spray_ops *ops;
    /* Index; adaptive, rr: the next in turn; single: the only one; reps: next to explore. */
    uint32_t next;
    uint16_t cache_head, cache_tail; /* reps: free-running */
    /* reps: indices whose last packet came back unmarked. Set by the caller, if `caches`. */
    uint16_t *cache;
};

/* What a choice may depend on besides the paths. */
struct mrd_spray_args {
    uint64_t now_ns;
    uint64_t base_rtt_ns;
    /* Index of the path that lost the packet, or -1: taken only if no other is GOOD. */
    int avoid;
    /* No acks arrive: measurements and packets in flight say nothing about paths. */
    bool blind;
    struct mrd_rng *rng;
    const struct mrd_tune *tune; /* constants of the policies */
};

struct mrd_spray_ops {
    const char *name;
    bool caches;   /* needs mrd_spray.cache, MRD_SPRAY_CACHE entries */
    bool one_path; /* never leaves the one it chose first */
    /* Initializes the state, s->ops included; again each time when there are more paths. */
    void (*init)(struct mrd_spray *s, const struct mrd_paths *paths, struct mrd_rng *rng);
    /* Returns the index of the next packet's path: a GOOD one if there is any (not `single`). */
    uint32_t (*pick)(struct mrd_spray *s, const struct mrd_paths *paths,
                     const struct mrd_spray_args *args);
    void (*acked)(struct mrd_spray *s, uint32_t index, bool ce); /* may be NULL */
    void (*lost)(struct mrd_spray *s, uint32_t index);           /* may be NULL */
};

/* Returns the policy of that name; NULL: there is none. name NULL: the default. */
const struct mrd_spray_ops *mrd_spray_find(const char *name);

/*
 * For policies: returns the next GOOD path from `start` on, wrapping, or mrd_spray_last_resort().
 */
uint32_t mrd_spray_walk(const struct mrd_paths *paths, const struct mrd_spray_args *args,
                        uint32_t start);
/*
 * For policies: returns `avoid` if it is GOOD, else the suspended path that is due first, else a
 * dead one.
 */
uint32_t mrd_spray_last_resort(const struct mrd_paths *paths, const struct mrd_spray_args *args);

/* The policies: mrd_spray_NAME of spray_NAME.c. The first is the default. */
#define MRD_SPRAY_POLICIES(X) X(adaptive) X(single) X(rr) X(random) X(reps)

#define X(name) extern const struct mrd_spray_ops mrd_spray_##name;
MRD_SPRAY_POLICIES(X)
#undef X

#endif
