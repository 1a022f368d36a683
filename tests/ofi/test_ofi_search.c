/* SPDX-License-Identifier: BSD-2-Clause */
/* Searching for tagged messages, in unusual orders: claims of several, lost ones, and the end. */
#include "pair.h"

#include <string.h>

enum { TAG = 7, LONG = 3 * EAGER_BYTES, NUM = 6 };

static size_t len_of(unsigned i)
{
    static const size_t lens[3] = {0, 100, LONG};

    return lens[i % 3];
}

/* NUM messages of tags TAG to TAG + NUM - 1 that no receive waits for are there. */
FIXTURE_OF(messages, pair);

FIXTURE_SETUP(messages)
{
    uint64_t since_ns = end_now_ns();
    struct fi_msg_tagged peek = {.addr = FI_ADDR_UNSPEC, .tag = TAG + NUM - 1};
    struct entry entry = {.err = FI_ENOMSG};

    pair_open(self, &(struct end_options){.order = FI_ORDER_SAS, .counts = FI_RECV});
    for (unsigned i = 0; i < NUM; i++)
        POST(fi_tsend(self->a.ep, filled(LONG, i), len_of(i), NULL, self->a.to, TAG + i, NULL));
    while (entry.err) {
        assert_int_equal(fi_trecvmsg(self->b.ep, &peek, FI_PEEK), 0);
        entry = end_next(self->b.rx);
        end_patience(since_ns);
    }
}

FIXTURE_TEARDOWN(messages)
{
    pair_close(self);
}

static int receive(struct pair *p, uint64_t flags, void *context, void *in, size_t len)
{
    struct iovec iov = {in, len};
    struct fi_msg_tagged msg = {
        .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context};

    return (int)fi_trecvmsg(p->b.ep, &msg, flags);
}

static int search(struct pair *p, uint64_t tag, uint64_t flags, void *context)
{
    struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};

    return (int)fi_trecvmsg(p->b.ep, &msg, flags);
}

/* Returns what is told of the message. */
static struct entry claim(struct pair *p, uint64_t tag, void *context)
{
    assert_int_equal(search(p, tag, FI_PEEK | FI_CLAIM, context), 0);
    return end_ok(p->b.rx, context);
}

static void search_in_vain(struct pair *p, uint64_t tag, uint64_t flags, void *context)
{
    assert_int_equal(search(p, tag, FI_PEEK | flags, context), 0);
    end_fails(p->b.rx, context, FI_ENOMSG);
}

/* Each is claimed for a context of its own, and received by that, whatever came first. */
TEST_F(messages, ofi_search__claims_in_any_order)
{
    static const unsigned order[NUM] = {3, 0, 5, 1, 4, 2};
    struct fi_context context[NUM];
    struct fid_cq *rx = self->b.rx;
    uint8_t *in = blank(LONG);

    for (unsigned i = 0; i < NUM; i++)
        assert_int_equal(claim(self, TAG + i, &context[i]).ok.len, len_of(i));
    /* They are nobody else's: not of a search, nor of a receive that takes any. */
    search_in_vain(self, TAG, 0, self);
    POST(fi_trecv(self->b.ep, in, LONG, NULL, FI_ADDR_UNSPEC, 0, ~0ull, in));
    end_silent(rx);
    for (unsigned i = 0; i < NUM; i++) {
        unsigned n = order[i];

        memset(in, BLANK, LONG);
        assert_int_equal(receive(self, FI_CLAIM, &context[n], in, LONG), 0);
        assert_int_equal(end_ok(rx, &context[n]).ok.tag, TAG + n);
        assert_filled(in, len_of(n), n);
        assert_int_equal(receive(self, FI_CLAIM, &context[n], in, LONG), -FI_EINVAL);
        end_ok(self->a.tx, NULL);
    }
    assert_int_equal(fi_cancel(&self->b.ep->fid, in), 0);
    end_fails(rx, in, FI_ECANCELED);
    assert_int_equal(fi_cntr_read(end_cntr(&self->b, FI_RECV)), NUM);
}

/* All for one context: received one by one, in the order claimed. */
TEST_F(messages, ofi_search__one_context_claims_many)
{
    struct fi_context context;
    uint8_t *in = blank(LONG);

    for (unsigned i = NUM; i > 0; i--)
        claim(self, TAG + i - 1, &context);
    for (unsigned i = NUM; i > 0; i--) {
        if (i % 2)
            assert_int_equal(receive(self, FI_CLAIM, &context, in, LONG), 0);
        else
            assert_int_equal(search(self, 0, FI_CLAIM | FI_DISCARD, &context), 0);
        assert_int_equal(end_ok(self->b.rx, &context).ok.tag, TAG + i - 1);
        end_ok(self->a.tx, NULL);
    }
    assert_int_equal(search(self, 0, FI_CLAIM | FI_DISCARD, &context), -FI_EINVAL);
}

/* A claim is received into too small a buffer, or into a list of them. */
TEST_F(messages, ofi_search__claimed_and_cut_off)
{
    struct fi_context context;
    uint8_t *in = blank(LONG);

    for (unsigned i = 1; i < 3; i++) {
        claim(self, TAG + i, &context);
        memset(in, BLANK, LONG);
        assert_int_equal(receive(self, FI_CLAIM, &context, in, 60), 0);
        struct entry entry = end_fails(self->b.rx, &context, FI_ETRUNC);
        assert_int_equal(entry.ok.len, 60);
        assert_int_equal(entry.olen, len_of(i) - 60);
        assert_filled(in, 60, i);
        assert_blank(in + 60, LONG - 60);
    }
    for (unsigned i = 1; i < NUM; i++) /* the sender has nothing to complain of */
        if (len_of(i) != LONG || i == 2)
            assert_int_equal(end_next(self->a.tx).err, 0);
}

/* Found, and thrown away, or not there. */
TEST_F(messages, ofi_search__discarded)
{
    struct fi_context context;

    for (unsigned i = 0; i < NUM; i++) {
        assert_int_equal(search(self, TAG + i, FI_PEEK | FI_DISCARD, &context), 0);
        assert_int_equal(end_ok(self->b.rx, &context).ok.len, len_of(i));
        search_in_vain(self, TAG + i, FI_DISCARD, &context);
        search_in_vain(self, TAG + i, FI_CLAIM, &context);
        assert_int_equal(search(self, TAG + i, FI_CLAIM, &context), -FI_EINVAL);
        assert_int_equal(search(self, TAG + i, FI_DISCARD, &context), -FI_EINVAL);
        end_ok(self->a.tx, NULL);
    }
}

/* Only from somebody, who is known. */
TEST_F(messages, ofi_search__from_one_sender)
{
    struct fi_msg_tagged peek = {.addr = 5, .tag = TAG};
    struct end *b = &self->b;

    fi_addr_t own = end_meet(b, b);
    assert_int_equal(fi_trecvmsg(b->ep, &peek, FI_PEEK), -FI_EINVAL);
    peek.addr = own;
    assert_int_equal(fi_trecvmsg(b->ep, &peek, FI_PEEK), 0);
    end_fails(b->rx, NULL, FI_ENOMSG);
    peek.addr = b->to;
    assert_int_equal(fi_trecvmsg(b->ep, &peek, FI_PEEK), 0);
    end_ok(b->rx, NULL);
}

/* Claimed, and never received: its memory is freed with the endpoint. */
TEST_F(messages, ofi_search__claimed_at_the_end)
{
    struct fi_context context[NUM];

    for (unsigned i = 0; i < NUM; i++)
        claim(self, TAG + i, &context[i]);
}

/* While it is read into its receive, a message is not to be cancelled any more: it arrives. */
TEST_F(ordered, ofi_search__cancelled_while_read)
{
    uint8_t *out = filled(1 << 20, 1), *in = blank(1 << 20);
    uint64_t since_ns = end_now_ns();
    struct entry entry;
    int rx;

    for (unsigned i = 0; i < 10; i++) {
        bool read = false;

        POST(fi_trecv(self->b.ep, in, 1 << 20, NULL, FI_ADDR_UNSPEC, TAG, 0, &rx));
        POST(fi_tsend(self->a.ep, out, 1 << 20, NULL, self->a.to, TAG, out));
        for (unsigned j = 0; j < i * 3; j++)
            (void)fi_cq_read(self->b.rx, NULL, 0);
        read = fi_cancel(&self->b.ep->fid, &rx) == -FI_ENOENT;
        entry = end_next(self->b.rx);
        assert_ptr_equal(entry.ok.op_context, &rx);
        assert_int_equal(entry.err, read ? 0 : FI_ECANCELED);
        if (!read) {
            POST(fi_trecv(self->b.ep, in, 1 << 20, NULL, FI_ADDR_UNSPEC, TAG, 0, &rx));
            end_ok(self->b.rx, &rx);
        }
        assert_filled(in, 1 << 20, 1);
        memset(in, BLANK, 1 << 20);
        end_ok(self->a.tx, out);
        assert_int_equal(fi_cancel(&self->b.ep->fid, &rx), -FI_ENOENT);
        end_patience(since_ns);
    }
}
