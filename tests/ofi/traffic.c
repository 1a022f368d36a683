/* SPDX-License-Identifier: BSD-2-Clause */
#include "traffic.h"

#include <string.h>

enum { LONG = 300000, KEY = 0x51, TAG = 0x52 };

/* `src` knows `dst` as src->to, and is known there as dst->to. */
static void send_one(struct end *src, struct end *dst, size_t len)
{
    uint8_t *out = filled(len, len), *in = blank(len);

    POST(fi_trecv(dst->ep, in, len, NULL, FI_ADDR_UNSPEC, TAG, 0, in));
    POST(fi_tsend(src->ep, out, len, NULL, src->to, TAG, out));
    struct entry entry = end_ok(dst->rx, in);
    assert_int_equal(entry.ok.len, len);
    assert_int_equal(entry.src, dst->to);
    end_ok(src->tx, out);
    assert_filled(in, len, len);
}

/* Nobody waits for it; and then only a receive for this sender. */
static void send_unexpected(struct end *src, struct end *dst, size_t len)
{
    uint8_t *out = filled(len, 7), *in = blank(len);

    POST(fi_senddata(src->ep, out, len, NULL, 99, src->to, out));
    ends_drive_for(10);
    POST(fi_recv(dst->ep, in, len, NULL, dst->to, in));
    assert_int_equal(end_ok(dst->rx, in).ok.data, 99);
    end_ok(src->tx, out);
    assert_filled(in, len, 7);
}

static void messages(struct end *src, struct end *dst)
{
    static const size_t lens[] = {0, 1, INJECT_BYTES + 1, EAGER_BYTES, EAGER_BYTES + 1, LONG};
    char in[INJECT_BYTES], out[INJECT_BYTES] = "injected";

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        send_one(src, dst, lens[i]);
        send_unexpected(src, dst, lens[i]);
    }
    POST(fi_recv(dst->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
    POST(fi_inject(src->ep, out, sizeof(out), src->to));
    assert_int_equal(end_ok(dst->rx, in).src, dst->to);
    assert_memory_equal(in, out, sizeof(out));
}

/* Memory of `dst`. */
static void memory(struct end *src, struct end *dst)
{
    uint8_t *out = filled(LONG, 3), *in = blank(LONG), *there = blank(LONG);
    uint64_t add[2] = {5, 6}, was = 1, words[2];
    struct fid_mr *mr = end_register(dst, there, LONG, REGION_ACCESS, KEY);

    end_write(src, out, LONG, 0, KEY);
    assert_filled(there, LONG, 3);
    end_read(src, in, LONG, 0, KEY);
    assert_filled(in, LONG, 3);
    memset(there, 0, sizeof(words));
    POST(fi_atomic(src->ep, add, 2, NULL, src->to, 0, KEY, FI_UINT64, FI_SUM, add));
    end_ok(src->tx, add);
    POST(fi_fetch_atomic(src->ep, add, 1, NULL, &was, NULL, src->to, 0, KEY, FI_UINT64, FI_SUM,
                         &was));
    end_ok(src->tx, &was);
    memcpy(words, there, sizeof(words));
    assert_int_equal(was, 5);
    assert_int_equal(words[0], 10);
    assert_int_equal(words[1], 6);
    end_unregister(dst, mr);
}

void pair_exercise(struct pair *p)
{
    messages(&p->a, &p->b);
    messages(&p->b, &p->a);
    memory(&p->a, &p->b);
    memory(&p->b, &p->a);
}
