/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that may not be read or written, and keys that are one region's after another's. */
#include "pair.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* The region can be used yet: nothing of it has been touched. */
static void write_one(struct pair *p, size_t offset)
{
    uint8_t out = 5;

    assert_blank(p->memory, REGION_BYTES);
    end_write(&p->a, &out, 1, p->base + offset, p->key);
    assert_int_equal(p->memory[offset], out);
}

static void expect_refusal(struct pair *p, int err)
{
    struct entry entry = end_fails(p->a.tx, p, err);
    char name[32];

    snprintf(name, sizeof(name), "127.0.0.1:%u", ntohs(end_name(p->b.ep).sin_port));
    if (!strstr(entry.text, name))
        fail_msg("\"%s\" does not name %s", entry.text, name);
}

static void write_refused(struct pair *p, const void *from, size_t len, uint64_t at, uint64_t key,
                          int err)
{
    assert_int_equal(fi_write(p->a.ep, from, len, NULL, p->a.to, at, key, p), 0);
    expect_refusal(p, err);
}

static void read_refused(struct pair *p, void *to, size_t len, uint64_t at, uint64_t key, int err)
{
    assert_int_equal(fi_read(p->a.ep, to, len, NULL, p->a.to, at, key, p), 0);
    expect_refusal(p, err);
}

TEST_F(region, ofi_mr__outside_of_the_region)
{
    static const struct {
        uint64_t offset;
        size_t len;
    } outside[] = {{REGION_BYTES, 1},    {REGION_BYTES - 99, 100}, {REGION_BYTES + 1, 1},
                   {UINT64_MAX, 1},      {UINT64_MAX, 8},          {1ull << 63, 100},
                   {0, REGION_BYTES + 1}};
    uint8_t *out = filled(REGION_BYTES + 1, 1);

    for (unsigned i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        write_refused(self, out, outside[i].len, outside[i].offset, REGION_KEY, FI_EINVAL);
        read_refused(self, out, outside[i].len, outside[i].offset, REGION_KEY, FI_EINVAL);
    }
    assert_filled(out, REGION_BYTES + 1, 1);
    assert_blank(self->memory, REGION_BYTES);
    write_one(self, REGION_BYTES - 1);
}

TEST_F(pair, ofi_mr__outside_of_addresses)
{
    uint8_t *out = filled(100, 1);

    pair_open(self, &(struct end_options){.mr_mode = FI_MR_BASIC});
    pair_register(self, REGION_BYTES, REGION_KEY);
    write_refused(self, out, 100, 0, self->key, FI_EINVAL);
    write_refused(self, out, 100, self->base - 1, self->key, FI_EINVAL);
    write_refused(self, out, 100, self->base + REGION_BYTES - 99, self->key, FI_EINVAL);
    assert_blank(self->memory, REGION_BYTES);
}

TEST_F(region, ofi_mr__wrong_key)
{
    uint8_t *out = filled(100, 1);

    write_refused(self, out, 100, 0, REGION_KEY + 1, FI_ENOKEY);
    read_refused(self, out, 100, 0, REGION_KEY + 1, FI_ENOKEY);
    assert_filled(out, 100, 1);
    assert_blank(self->memory, REGION_BYTES);
    write_one(self, 0);
}

TEST_F(plain, ofi_mr__missing_access)
{
    enum { READ_ONLY = 1, WRITE_ONLY, LOCAL };
    uint8_t *memory = blank(1000), *out = filled(1000, 1), *in = blank(1000);

    end_register(&self->b, memory, 1000, FI_REMOTE_READ, READ_ONLY);
    end_register(&self->b, memory, 1000, FI_REMOTE_WRITE, WRITE_ONLY);
    end_register(&self->b, memory, 1000, FI_SEND | FI_RECV | FI_READ | FI_WRITE, LOCAL);
    write_refused(self, out, 1000, 0, READ_ONLY, FI_EACCES);
    write_refused(self, out, 1000, 0, LOCAL, FI_EACCES);
    assert_blank(memory, 1000);
    read_refused(self, in, 1000, 0, WRITE_ONLY, FI_EACCES);
    read_refused(self, in, 1000, 0, LOCAL, FI_EACCES);
    assert_blank(in, 1000);
    end_write(&self->a, out, 1000, 0, WRITE_ONLY);
    end_read(&self->a, in, 1000, 0, READ_ONLY);
    assert_filled(in, 1000, 1);
}

/* The initiator knows the key of a region that is closed meanwhile; then it is another one's. */
TEST_F(plain, ofi_mr__closed_region_and_its_key)
{
    enum { OTHER = 5 };
    uint8_t *first = blank(1000), *second = blank(3000), *out = filled(2000, 1);
    struct end *a = &self->a, *b = &self->b;

    struct fid_mr *mr = end_register(b, first, 1000, REGION_ACCESS, OTHER);
    end_write(a, out, 1000, 0, OTHER);
    assert_filled(first, 1000, 1);
    end_unregister(b, mr);
    memset(first, BLANK, 1000);
    write_refused(self, out, 1000, 0, OTHER, FI_ENOKEY);
    assert_blank(first, 1000);

    mr = end_register(b, first, 1000, REGION_ACCESS, OTHER);
    end_write(a, out, 1000, 0, OTHER);
    end_unregister(b, mr);
    memset(first, BLANK, 1000);
    end_register(b, second, 3000, REGION_ACCESS, OTHER);
    end_write(a, out, 900, 100, OTHER);
    assert_filled(second + 100, 900, 1);
    assert_blank(second, 100);
    assert_blank(first, 1000);
    end_write(a, out, 2000, 1000, OTHER); /* beyond the first's end */
    assert_filled(second + 1000, 2000, 1);
}

/* The key is another region's, which is longer, when the initiator still knows the shorter one. */
TEST_F(plain, ofi_mr__longer_region_under_a_known_key)
{
    enum { OTHER = 5 };
    uint8_t *second = blank(3000), *out = filled(2000, 1);

    struct fid_mr *mr = end_register(&self->b, blank(1000), 1000, REGION_ACCESS, OTHER);
    end_write(&self->a, out, 1000, 0, OTHER);
    end_unregister(&self->b, mr);
    end_register(&self->b, second, 3000, REGION_ACCESS, OTHER);
    end_write(&self->a, out, 2000, 1000, OTHER);
    assert_filled(second + 1000, 2000, 1);
}

/* More keys than are remembered are asked for at once, and each operation needs two of them. */
TEST_F(plain, ofi_mr__two_of_a_thousand_keys_each)
{
    enum { NUM = 500, FIRST = 10 };
    static uint64_t memory[2 * NUM], out[2 * NUM];

    for (unsigned i = 0; i < 2 * NUM; i++) {
        end_register(&self->b, &memory[i], sizeof(memory[i]), REGION_ACCESS, FIRST + i);
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
}
