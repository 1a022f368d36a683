/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vectors. An fi_addr is the index of an entry, in maps as in tables. Entries are found by
 * address through a hash table; an address that was inserted twice has two of them.
 */
#ifndef MRD_OFI_AV_H
#define MRD_OFI_AV_H

#include "transport/adapters/ofi/addr.h"
#include "transport/adapters/ofi/ofi.h"

struct mrd_ofi_domain;
struct mrd_ofi_eq;

struct mrd_ofi_av_entry {
    union mrd_ofi_addr addr;
    bool used;
    uint32_t next; /* in its bucket: index + 1; 0: none */
};

struct mrd_ofi_av {
    struct fid_av fid;
    struct mrd_ofi_domain *domain;
    struct mrd_ofi_eq *eq; /* inserts are reported there; NULL: they are not */
    enum fi_av_type type;
    bool async; /* FI_EVENT */
    struct mrd_ofi_av_entry *entry;
    uint32_t num, room, free; /* entries ever used; room for; first free one + 1 */
    uint32_t *bucket;         /* index + 1 */
    uint32_t num_buckets;
    uint32_t version; /* counts inserts and removals: what peers remember of it is old then */
    uint32_t users;   /* endpoints */
};

int mrd_ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
                    void *context);
/* The address of an fi_addr; NULL: none. Valid until the next insert. */
const union mrd_ofi_addr *mrd_ofi_av_get(const struct mrd_ofi_av *av, fi_addr_t fi_addr);
/* The first fi_addr of an address; FI_ADDR_NOTAVAIL: it was not inserted. */
fi_addr_t mrd_ofi_av_find(const struct mrd_ofi_av *av, const union mrd_ofi_addr *addr);

#endif
