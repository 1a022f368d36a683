/* SPDX-License-Identifier: BSD-2-Clause */
/* Searching for tagged messages, in unusual orders: claims of several, lost ones, and the end. */
#include "pair.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = 7, LONG = 3 * EAGER_BYTES, NUM = 6 };

static const struct end_options ordered = {.order = FI_ORDER_SAS, .counts = FI_RECV};

static size_t len_of(unsigned i)
{
    static const size_t lens[3] = {0, 100, LONG};

    return lens[i % 3];
}

/* NUM messages of tags TAG to TAG + NUM - 1 that no receive waits for are there. */
static void open_with_messages(struct pair *p, uint8_t **out)
{
    uint64_t since_ns = end_now_ns();
    struct fi_msg_tagged peek = {.addr = FI_ADDR_UNSPEC, .tag = TAG + NUM - 1};
    struct entry entry = {.err = FI_ENOMSG};

    pair_open(p, &ordered);
    for (unsigned i = 0; i < NUM; i++) {
        out[i] = filled(LONG, i);
        POST(fi_tsend(p->a.ep, out[i], len_of(i), NULL, p->a.to, TAG + i, NULL));
    }
    while (entry.err) {
        assert_int_equal(fi_trecvmsg(p->b.ep, &peek, FI_PEEK), 0);
        entry = end_next(p->b.rx);
        end_patience(since_ns);
    }
}

static void close_with_messages(struct pair *p, uint8_t **out)
{
    for (unsigned i = 0; i < NUM; i++)
        free(out[i]);
    pair_close(p);
}

static int search(struct pair *p, uint64_t tag, uint64_t flags, void *context, void *in, size_t len)
{
    struct iovec iov = {in, len};

    return (int)fi_trecvmsg(p->b.ep,
                            &(struct fi_msg_tagged){.msg_iov = &iov,
                                                    .iov_count = 1,
                                                    .addr = FI_ADDR_UNSPEC,
                                                    .tag = tag,
                                                    .context = context},
                            flags);
}

/* Each is claimed for a context of its own, and received by that, whatever came first. */
TEST(ofi_search__claims_in_any_order)
{
    static const unsigned order[NUM] = {3, 0, 5, 1, 4, 2};
    struct fi_context context[NUM];
    uint8_t *out[NUM], *in = blank(LONG);
    struct pair p;

    open_with_messages(&p, out);
    for (unsigned i = 0; i < NUM; i++) {
        assert_int_equal(search(&p, TAG + i, FI_PEEK | FI_CLAIM, &context[i], NULL, 0), 0);
        assert_int_equal(end_ok(p.b.rx, &context[i]).ok.len, len_of(i));
    }
    /* They are nobody else's: not of a search, nor of a receive that takes any. */
    assert_int_equal(search(&p, TAG, FI_PEEK, &p, NULL, 0), 0);
    end_fails(p.b.rx, &p, FI_ENOMSG);
    POST(fi_trecv(p.b.ep, in, LONG, NULL, FI_ADDR_UNSPEC, 0, ~0ull, in));
    end_silent(p.b.rx);
    for (unsigned i = 0; i < NUM; i++) {
        unsigned n = order[i];

        memset(in, BLANK, LONG);
        assert_int_equal(search(&p, 0, FI_CLAIM, &context[n], in, LONG), 0);
        assert_int_equal(end_ok(p.b.rx, &context[n]).ok.tag, TAG + n);
        assert_filled(in, len_of(n), n);
        assert_int_equal(search(&p, 0, FI_CLAIM, &context[n], in, LONG), -FI_EINVAL);
        end_ok(p.a.tx, NULL);
    }
    assert_int_equal(fi_cancel(&p.b.ep->fid, in), 0);
    end_fails(p.b.rx, in, FI_ECANCELED);
    assert_int_equal(fi_cntr_read(end_cntr(&p.b, FI_RECV)), NUM);
    close_with_messages(&p, out);
    free(in);
}

/* All for one context: received one by one, in the order claimed. */
TEST(ofi_search__one_context_claims_many)
{
    struct fi_context context;
    uint8_t *out[NUM], *in = blank(LONG);
    struct pair p;

    open_with_messages(&p, out);
    for (unsigned i = NUM; i > 0; i--) {
        assert_int_equal(search(&p, TAG + i - 1, FI_PEEK | FI_CLAIM, &context, NULL, 0), 0);
        end_ok(p.b.rx, &context);
    }
    for (unsigned i = NUM; i > 0; i--) {
        if (i % 2)
            assert_int_equal(search(&p, 0, FI_CLAIM, &context, in, LONG), 0);
        else
            assert_int_equal(search(&p, 0, FI_CLAIM | FI_DISCARD, &context, NULL, 0), 0);
        assert_int_equal(end_ok(p.b.rx, &context).ok.tag, TAG + i - 1);
        end_ok(p.a.tx, NULL);
    }
    assert_int_equal(search(&p, 0, FI_CLAIM | FI_DISCARD, &context, NULL, 0), -FI_EINVAL);
    close_with_messages(&p, out);
    free(in);
}

/* A claim is received into too small a buffer, or into a list of them. */
TEST(ofi_search__claimed_and_cut_off)
{
    struct fi_context context;
    uint8_t *out[NUM], *in = blank(LONG);
    struct entry entry;
    struct pair p;

    open_with_messages(&p, out);
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(search(&p, TAG + i, FI_PEEK | FI_CLAIM, &context, NULL, 0), 0);
        end_ok(p.b.rx, &context);
        memset(in, BLANK, LONG);
        assert_int_equal(search(&p, 0, FI_CLAIM, &context, in, 60), 0);
        entry = end_fails(p.b.rx, &context, FI_ETRUNC);
        assert_int_equal(entry.ok.len, 60);
        assert_int_equal(entry.olen, len_of(i) - 60);
        assert_filled(in, 60, i);
        assert_blank(in + 60, LONG - 60);
    }
    for (unsigned i = 1; i < NUM; i++) /* the sender has nothing to complain of */
        if (len_of(i) != LONG || i == 2)
            assert_int_equal(end_next(p.a.tx).err, 0);
    close_with_messages(&p, out);
    free(in);
}

/* Found, and thrown away, or not there. */
TEST(ofi_search__discarded)
{
    struct fi_context context;
    uint8_t *out[NUM];
    struct pair p;

    open_with_messages(&p, out);
    for (unsigned i = 0; i < NUM; i++) {
        assert_int_equal(search(&p, TAG + i, FI_PEEK | FI_DISCARD, &context, NULL, 0), 0);
        assert_int_equal(end_ok(p.b.rx, &context).ok.len, len_of(i));
        assert_int_equal(search(&p, TAG + i, FI_PEEK | FI_DISCARD, &context, NULL, 0), 0);
        end_fails(p.b.rx, &context, FI_ENOMSG);
        assert_int_equal(search(&p, TAG + i, FI_PEEK | FI_CLAIM, &context, NULL, 0), 0);
        end_fails(p.b.rx, &context, FI_ENOMSG);
        assert_int_equal(search(&p, TAG + i, FI_CLAIM, &context, NULL, 0), -FI_EINVAL);
        assert_int_equal(search(&p, TAG + i, FI_DISCARD, &context, NULL, 0), -FI_EINVAL);
        end_ok(p.a.tx, NULL);
    }
    close_with_messages(&p, out);
}

/* Only from somebody, who is known. */
TEST(ofi_search__from_one_sender)
{
    struct fi_msg_tagged peek = {.addr = 5, .tag = TAG};
    uint8_t *out[NUM];
    struct pair p;

    open_with_messages(&p, out);
    fi_addr_t self = end_meet(&p.b, &p.b);
    assert_int_equal(fi_trecvmsg(p.b.ep, &peek, FI_PEEK), -FI_EINVAL);
    peek.addr = self;
    assert_int_equal(fi_trecvmsg(p.b.ep, &peek, FI_PEEK), 0);
    end_fails(p.b.rx, NULL, FI_ENOMSG);
    peek.addr = p.b.to;
    assert_int_equal(fi_trecvmsg(p.b.ep, &peek, FI_PEEK), 0);
    end_ok(p.b.rx, NULL);
    close_with_messages(&p, out);
}

/* Claimed, and never received: its memory is freed with the endpoint. */
TEST(ofi_search__claimed_at_the_end)
{
    struct fi_context context[NUM];
    uint8_t *out[NUM];
    struct pair p;

    open_with_messages(&p, out);
    for (unsigned i = 0; i < NUM; i++) {
        assert_int_equal(search(&p, TAG + i, FI_PEEK | FI_CLAIM, &context[i], NULL, 0), 0);
        end_ok(p.b.rx, &context[i]);
    }
    close_with_messages(&p, out);
}

/* While it is read into its receive, a message is not to be cancelled any more: it arrives. */
TEST(ofi_search__cancelled_while_read)
{
    uint8_t *out = filled(1 << 20, 1), *in = blank(1 << 20);
    uint64_t since_ns = end_now_ns();
    struct entry entry;
    struct pair p;
    int rx;

    pair_open(&p, &ordered);
    for (unsigned i = 0; i < 10; i++) {
        bool read = false;

        POST(fi_trecv(p.b.ep, in, 1 << 20, NULL, FI_ADDR_UNSPEC, TAG, 0, &rx));
        POST(fi_tsend(p.a.ep, out, 1 << 20, NULL, p.a.to, TAG, out));
        for (unsigned j = 0; j < i * 3; j++)
            (void)fi_cq_read(p.b.rx, NULL, 0);
        read = fi_cancel(&p.b.ep->fid, &rx) == -FI_ENOENT;
        entry = end_next(p.b.rx);
        assert_ptr_equal(entry.ok.op_context, &rx);
        assert_int_equal(entry.err, read ? 0 : FI_ECANCELED);
        if (!read) {
            POST(fi_trecv(p.b.ep, in, 1 << 20, NULL, FI_ADDR_UNSPEC, TAG, 0, &rx));
            end_ok(p.b.rx, &rx);
        }
        assert_filled(in, 1 << 20, 1);
        memset(in, BLANK, 1 << 20);
        end_ok(p.a.tx, out);
        assert_int_equal(fi_cancel(&p.b.ep->fid, &rx), -FI_ENOENT);
        end_patience(since_ns);
    }
    pair_close(&p);
    free(in);
    free(out);
}
