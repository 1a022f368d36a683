/* SPDX-License-Identifier: BSD-2-Clause */
/* Which reads of a completion queue make progress: counted, by what they find. */
#include "pair.h"

static const struct end_options waiting = {.wait = FI_WAIT_FD};

static char in[8];

/* A message is in the memory of b's endpoint, and b's queue does not know of it: nobody drove b. */
static void arrive(struct pair *p)
{
    uint64_t since_ns = end_now_ns();
    struct entry entry;

    assert_int_equal(fi_send(p->a.ep, "x", 1, NULL, p->a.to, NULL), 0);
    while (!end_take(p->a.tx, &entry))
        end_patience(since_ns);
    assert_int_equal(entry.err, 0);
}

static void open_with_receives(struct pair *p, unsigned num)
{
    pair_open(p, &waiting);
    for (unsigned i = 0; i < num; i++)
        assert_int_equal(fi_recv(p->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
}

/* Who reads until nothing is left is told so once, before anything else is looked for. */
TEST_F(pair, ofi_cq__empty_once_before_progress)
{
    struct fi_cq_tagged_entry entry[4];

    open_with_receives(self, 8);
    arrive(self);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 1), 1);
    for (unsigned i = 0; i < 3; i++) {
        arrive(self);
        assert_int_equal(fi_cq_read(self->b.rx, entry, 1), -FI_EAGAIN);
        assert_int_equal(fi_cq_read(self->b.rx, entry, 1), 1);
    }

    /* Once only: the next read looks again. */
    assert_int_equal(fi_cq_read(self->b.rx, entry, 4), -FI_EAGAIN);
    arrive(self);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 4), 1);

    /* The same where the source is asked for. */
    arrive(self);
    assert_int_equal(fi_cq_readfrom(self->b.rx, entry, 4, (fi_addr_t[4]){0}), -FI_EAGAIN);
    assert_int_equal(fi_cq_readfrom(self->b.rx, entry, 4, (fi_addr_t[4]){0}), 1);
}

/* As long as there are entries, nothing is said of an empty queue. */
TEST_F(pair, ofi_cq__not_while_entries_are_left)
{
    struct fi_cq_tagged_entry entry[4];

    open_with_receives(self, 4);
    for (unsigned i = 0; i < 3; i++)
        arrive(self);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(fi_cq_read(self->b.rx, entry, 1), 1);
    arrive(self);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 1), -FI_EAGAIN);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 1), 1);
}

/* Who has no room for entries, or waits for them, means progress. */
TEST_F(pair, ofi_cq__progress_that_is_meant)
{
    struct fi_cq_tagged_entry entry[4];
    struct fid_poll *set;
    void *context;

    open_with_receives(self, 8);
    arrive(self);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 4), 1);
    arrive(self);
    (void)fi_cq_read(self->b.rx, NULL, 0);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 4), 1);
    arrive(self);
    assert_int_equal(fi_cq_sread(self->b.rx, entry, 4, NULL, 0), 1);

    arrive(self);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 4), -FI_EAGAIN);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 4), 1);
    arrive(self);
    struct fid *fid = &self->b.rx->fid;
    assert_int_equal(fi_trywait(self->b.fabric, &fid, 1), -FI_EAGAIN);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 4), 1);

    assert_int_equal(fi_poll_open(self->b.domain, &(struct fi_poll_attr){0}, &set), 0);
    assert_int_equal(fi_poll_add(set, &self->b.rx->fid, 0), 0);
    arrive(self);
    assert_int_equal(fi_poll(set, &context, 1), 1);
    assert_int_equal(fi_cq_read(self->b.rx, entry, 4), 1);
    assert_int_equal(fi_close(&set->fid), 0);
}

/* Of errors the same is not said: who reads one reads on. */
TEST_F(pair, ofi_cq__after_an_error)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};

    pair_open(self, &waiting);
    assert_int_equal(fi_recv(self->b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, NULL), 0);
    assert_int_equal(fi_recv(self->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
    assert_int_equal(fi_cq_readerr(self->b.rx, &error, 0), -FI_EAGAIN);
    arrive(self);
    assert_int_equal(fi_cq_read(self->b.rx, &entry, 1), -FI_EAVAIL);
    assert_int_equal(fi_cq_read(self->b.rx, &entry, 1), -FI_EAVAIL);
    assert_int_equal(fi_cq_readerr(self->b.rx, &error, 0), 1);
    assert_int_equal(error.err, FI_ETRUNC);
    assert_int_equal(error.olen, 1);
    arrive(self);
    assert_int_equal(fi_cq_read(self->b.rx, &entry, 1), 1);
}
