/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that may not be read or written, and keys that are one region's after another's. */
#include "region.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The region can be used yet: nothing of it has been touched. */
static void write_one(struct region *r, size_t offset)
{
    uint8_t out = 5;
    int tx;

    assert_blank(r->memory, REGION_BYTES);
    POST(fi_write(r->p.a.ep, &out, 1, NULL, r->p.a.to, r->base + offset, r->key, &tx));
    end_ok(r->p.a.tx, &tx);
    assert_int_equal(r->memory[offset], out);
}

static void expect_refusal(struct region *r, ssize_t posted, const int *tx, int err)
{
    char port[16];
    struct sockaddr_in name;
    size_t bytes = sizeof(name);

    assert_int_equal(posted, 0);
    struct entry entry = end_fails(r->p.a.tx, tx, err);
    assert_int_equal(fi_getname(&r->p.b.ep->fid, &name, &bytes), 0);
    snprintf(port, sizeof(port), ":%u", ntohs(name.sin_port));
    if (!strstr(entry.text, "127.0.0.1") || !strstr(entry.text, port))
        fail_msg("\"%s\" does not name 127.0.0.1%s", entry.text, port);
}

TEST(ofi_mr__outside_of_the_region)
{
    static const struct {
        uint64_t offset;
        size_t len;
    } outside[] = {{REGION_BYTES, 1},    {REGION_BYTES - 99, 100}, {REGION_BYTES + 1, 1},
                   {UINT64_MAX, 1},      {UINT64_MAX, 8},          {1ull << 63, 100},
                   {0, REGION_BYTES + 1}};
    uint8_t *out = filled(REGION_BYTES + 1, 1);
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){0});
    struct end *a = &r.p.a;
    for (unsigned i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        expect_refusal(
            &r, fi_write(a->ep, out, outside[i].len, NULL, a->to, outside[i].offset, r.key, &tx),
            &tx, FI_EINVAL);
        expect_refusal(
            &r, fi_read(a->ep, out, outside[i].len, NULL, a->to, outside[i].offset, r.key, &tx),
            &tx, FI_EINVAL);
    }
    assert_filled(out, REGION_BYTES + 1, 1);
    assert_blank(r.memory, REGION_BYTES);
    write_one(&r, REGION_BYTES - 1);
    region_close(&r);
    free(out);
}

TEST(ofi_mr__outside_of_addresses)
{
    uint8_t *out = filled(100, 1);
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){.mr_mode = FI_MR_BASIC});
    struct end *a = &r.p.a;
    expect_refusal(&r, fi_write(a->ep, out, 100, NULL, a->to, 0, r.key, &tx), &tx, FI_EINVAL);
    expect_refusal(&r, fi_write(a->ep, out, 100, NULL, a->to, r.base - 1, r.key, &tx), &tx,
                   FI_EINVAL);
    expect_refusal(&r,
                   fi_write(a->ep, out, 100, NULL, a->to, r.base + REGION_BYTES - 99, r.key, &tx),
                   &tx, FI_EINVAL);
    assert_blank(r.memory, REGION_BYTES);
    region_close(&r);
    free(out);
}

TEST(ofi_mr__wrong_key)
{
    uint8_t *out = filled(100, 1);
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){0});
    expect_refusal(&r, fi_write(r.p.a.ep, out, 100, NULL, r.p.a.to, 0, REGION_KEY + 1, &tx), &tx,
                   FI_ENOKEY);
    expect_refusal(&r, fi_read(r.p.a.ep, out, 100, NULL, r.p.a.to, 0, REGION_KEY + 1, &tx), &tx,
                   FI_ENOKEY);
    assert_filled(out, 100, 1);
    assert_blank(r.memory, REGION_BYTES);
    write_one(&r, 0);
    region_close(&r);
    free(out);
}

TEST(ofi_mr__missing_access)
{
    enum { READ_ONLY = 1, WRITE_ONLY, LOCAL };
    uint8_t *memory = blank(1000), *out = filled(1000, 1), *in = blank(1000);
    struct fid_mr *mr[3];
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){0});
    struct end *a = &r.p.a;
    mr[0] = region_add(&r.p.b, memory, 1000, FI_REMOTE_READ, READ_ONLY);
    mr[1] = region_add(&r.p.b, memory, 1000, FI_REMOTE_WRITE, WRITE_ONLY);
    mr[2] = region_add(&r.p.b, memory, 1000, FI_SEND | FI_RECV | FI_READ | FI_WRITE, LOCAL);
    expect_refusal(&r, fi_write(a->ep, out, 1000, NULL, a->to, 0, READ_ONLY, &tx), &tx, FI_EACCES);
    expect_refusal(&r, fi_write(a->ep, out, 1000, NULL, a->to, 0, LOCAL, &tx), &tx, FI_EACCES);
    assert_blank(memory, 1000);
    expect_refusal(&r, fi_read(a->ep, in, 1000, NULL, a->to, 0, WRITE_ONLY, &tx), &tx, FI_EACCES);
    expect_refusal(&r, fi_read(a->ep, in, 1000, NULL, a->to, 0, LOCAL, &tx), &tx, FI_EACCES);
    assert_blank(in, 1000);
    POST(fi_write(a->ep, out, 1000, NULL, a->to, 0, WRITE_ONLY, &tx));
    end_ok(a->tx, &tx);
    POST(fi_read(a->ep, in, 1000, NULL, a->to, 0, READ_ONLY, &tx));
    end_ok(a->tx, &tx);
    assert_filled(in, 1000, 1);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(fi_close(&mr[i]->fid), 0);
    region_close(&r);
    free(in);
    free(out);
    free(memory);
}

/* The initiator knows the key of a region that is closed meanwhile; then it is another one's. */
TEST(ofi_mr__closed_region_and_its_key)
{
    enum { OTHER = 5 };
    uint8_t *first = blank(1000), *second = blank(3000), *out = filled(2000, 1);
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){0});
    struct end *a = &r.p.a;
    struct fid_mr *mr = region_add(&r.p.b, first, 1000, REGION_ACCESS, OTHER);
    POST(fi_write(a->ep, out, 1000, NULL, a->to, 0, OTHER, &tx));
    end_ok(a->tx, &tx);
    assert_filled(first, 1000, 1);
    assert_int_equal(fi_close(&mr->fid), 0);
    memset(first, BLANK, 1000);
    expect_refusal(&r, fi_write(a->ep, out, 1000, NULL, a->to, 0, OTHER, &tx), &tx, FI_ENOKEY);
    assert_blank(first, 1000);

    mr = region_add(&r.p.b, first, 1000, REGION_ACCESS, OTHER);
    POST(fi_write(a->ep, out, 1000, NULL, a->to, 0, OTHER, &tx));
    end_ok(a->tx, &tx);
    assert_int_equal(fi_close(&mr->fid), 0);
    memset(first, BLANK, 1000);
    mr = region_add(&r.p.b, second, 3000, REGION_ACCESS, OTHER);
    POST(fi_write(a->ep, out, 900, NULL, a->to, 100, OTHER, &tx));
    end_ok(a->tx, &tx);
    assert_filled(second + 100, 900, 1);
    assert_blank(second, 100);
    assert_blank(first, 1000);
    POST(fi_write(a->ep, out, 2000, NULL, a->to, 1000, OTHER, &tx)); /* beyond the first's end */
    end_ok(a->tx, &tx);
    assert_filled(second + 1000, 2000, 1);
    assert_int_equal(fi_close(&mr->fid), 0);
    region_close(&r);
    free(out);
    free(second);
    free(first);
}

/* The key is another region's, which is longer, when the initiator still knows the shorter one. */
TEST(ofi_mr__longer_region_under_a_known_key)
{
    enum { OTHER = 5 };
    uint8_t *first = blank(1000), *second = blank(3000), *out = filled(2000, 1);
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){0});
    struct end *a = &r.p.a;
    struct fid_mr *mr = region_add(&r.p.b, first, 1000, REGION_ACCESS, OTHER);
    POST(fi_write(a->ep, out, 1000, NULL, a->to, 0, OTHER, &tx));
    end_ok(a->tx, &tx);
    assert_int_equal(fi_close(&mr->fid), 0);
    mr = region_add(&r.p.b, second, 3000, REGION_ACCESS, OTHER);
    POST(fi_write(a->ep, out, 2000, NULL, a->to, 1000, OTHER, &tx));
    end_ok(a->tx, &tx);
    assert_filled(second + 1000, 2000, 1);
    assert_int_equal(fi_close(&mr->fid), 0);
    region_close(&r);
    free(out);
    free(second);
    free(first);
}

/* More keys than are remembered are asked for at once, and each operation needs two of them. */
TEST_F(pair, ofi_mr__two_of_a_thousand_keys_each)
{
    enum { NUM = 500, FIRST = 10 };
    static uint64_t memory[2 * NUM], out[2 * NUM];
    struct fid_mr *mr[2 * NUM];

    pair_open(self, &(struct end_options){0});
    for (unsigned i = 0; i < 2 * NUM; i++) {
        mr[i] = region_add(&self->b, &memory[i], sizeof(memory[i]), REGION_ACCESS, FIRST + i);
        out[i] = i + 1;
    }
    for (unsigned i = 0; i < NUM; i++) {
        struct iovec iov = {&out[2 * i], 2 * sizeof(out[0])};
        struct fi_rma_iov rma[2] = {{0, sizeof(out[0]), FIRST + i},
                                    {0, sizeof(out[0]), FIRST + NUM + i}};
        struct fi_msg_rma msg = {.msg_iov = &iov,
                                 .iov_count = 1,
                                 .addr = self->a.to,
                                 .rma_iov = rma,
                                 .rma_iov_count = 2};

        POST(fi_writemsg(self->a.ep, &msg, 0));
    }
    for (unsigned i = 0; i < NUM; i++)
        end_ok(self->a.tx, NULL);
    for (unsigned i = 0; i < NUM; i++) {
        assert_int_equal(memory[i], out[2 * i]);
        assert_int_equal(memory[NUM + i], out[2 * i + 1]);
    }
    for (unsigned i = 0; i < 2 * NUM; i++)
        assert_int_equal(fi_close(&mr[i]->fid), 0);
}
