/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is there until a test is over, and memory that peers read and write. */
#include "pair.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/payload.h"

enum { SEED = 1 };

/* ---------------------------------------------------------------------------- until a test is over */

struct kept {
    void *object;
    void (*release)(void *object);
    struct kept *next;
};

static struct kept *kept;

/* After the fixture's end: an endpoint that it closes may still write there. */
static void release_kept(void)
{
    while (kept) {
        struct kept k = *kept;

        free(kept);
        kept = k.next;
        k.release(k.object);
    }
}

void *end_keep(void *object, void (*release)(void *object))
{
    struct kept *k = malloc(sizeof(*k));

    assert_true(object && k);
    *k = (struct kept){object, release, kept};
    kept = k;
    kit_after_test(release_kept);
    return object;
}

/* ------------------------------------------------------------------------------------------ bytes */

static uint8_t *kept_bytes(size_t bytes)
{
    return end_keep(malloc(bytes + 1), free);
}

uint8_t *filled(size_t bytes, uint64_t message)
{
    uint8_t *p = kept_bytes(bytes);

    payload_fill(p, bytes, SEED, message);
    return p;
}

uint8_t *blank(size_t bytes)
{
    return memset(kept_bytes(bytes), BLANK, bytes);
}

void *zeros(size_t bytes)
{
    return memset(kept_bytes(bytes), 0, bytes);
}

void assert_filled(const uint8_t *bytes, size_t len, uint64_t message)
{
    size_t at = payload_mismatch(bytes, len, SEED, message);

    if (at != len)
        fail_msg("byte %zu of %zu of message %llu is wrong", at, len, (unsigned long long)message);
}

void assert_blank(const uint8_t *bytes, size_t len)
{
    assert_true(payload_is_blank(bytes, len, BLANK));
}

/* ---------------------------------------------------------------------------------------- regions */

struct registered {
    struct fid_mr *mr;
    struct registered *next;
};

struct fid_mr *end_register(struct end *e, void *memory, size_t bytes, uint64_t access,
                            uint64_t key)
{
    struct registered *r = malloc(sizeof(*r));

    assert_non_null(r);
    assert_int_equal(fi_mr_reg(e->domain, memory, bytes, access, 0, key, 0, &r->mr, NULL), 0);
    r->next = e->registered;
    e->registered = r;
    return r->mr;
}

void end_unregister(struct end *e, struct fid_mr *mr)
{
    struct registered **at = &e->registered;

    while (mr && *at && (*at)->mr != mr)
        at = &(*at)->next;
    assert_non_null(*at);
    struct registered *r = *at;
    *at = r->next;
    assert_int_equal(fi_close(&r->mr->fid), 0);
    free(r);
}

struct fid_mr *pair_register(struct pair *p, size_t bytes, uint64_t key)
{
    p->memory = blank(bytes);
    struct fid_mr *mr = end_register(&p->b, p->memory, bytes, REGION_ACCESS, key);
    p->key = fi_mr_key(mr);
    p->base = p->b.info->domain_attr->mr_mode == FI_MR_BASIC ? (uintptr_t)p->memory : 0;
    return mr;
}

struct entry end_write(struct end *e, const void *from, size_t len, uint64_t at, uint64_t key)
{
    POST(fi_write(e->ep, from, len, NULL, e->to, at, key, e));
    return end_ok(e->tx, e);
}

struct entry end_read(struct end *e, void *to, size_t len, uint64_t at, uint64_t key)
{
    POST(fi_read(e->ep, to, len, NULL, e->to, at, key, e));
    return end_ok(e->tx, e);
}
