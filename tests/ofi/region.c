/* SPDX-License-Identifier: BSD-2-Clause */
#include "region.h"

#include <stdlib.h>

struct fid_mr *region_add(struct end *e, void *memory, size_t bytes, uint64_t access, uint64_t key)
{
    struct fid_mr *mr;

    assert_int_equal(fi_mr_reg(e->domain, memory, bytes, access, 0, key, 0, &mr, NULL), 0);
    return mr;
}

/* Nothing is needed that hints merely permit; only the old mode is kept. */
void region_open(struct region *r, const struct end_options *o)
{
    pair_open(&r->p, o);
    r->memory = blank(REGION_BYTES);
    r->mr = region_add(&r->p.b, r->memory, REGION_BYTES, REGION_ACCESS, REGION_KEY);
    r->key = fi_mr_key(r->mr);
    assert_int_equal(r->p.b.info->domain_attr->mr_mode,
                     o->mr_mode == FI_MR_BASIC ? FI_MR_BASIC : 0);
    r->base = o->mr_mode == FI_MR_BASIC ? (uintptr_t)r->memory : 0;
}

void region_close(struct region *r)
{
    assert_int_equal(fi_close(&r->mr->fid), 0);
    pair_close(&r->p);
    free(r->memory);
}
