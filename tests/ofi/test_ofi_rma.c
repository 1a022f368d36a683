/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes of memory that the other end has registered. */
#include "pair.h"

#include <string.h>

enum { IOVS = 8, FLIGHT = 64, FLIGHT_BYTES = 20000 };

/* -------------------------------------------------------------------------------------- what moves */

static void write_and_read(struct pair *p, size_t offset, size_t len, uint64_t message)
{
    uint8_t *out = filled(len, message), *in = blank(len + 8);

    memset(p->memory, BLANK, REGION_BYTES);
    struct entry entry = end_write(&p->a, out, len, p->base + offset, p->key);
    assert_int_equal(entry.ok.flags, FI_RMA | FI_WRITE);
    assert_filled(p->memory + offset, len, message);
    assert_blank(p->memory, offset);
    assert_blank(p->memory + offset + len, REGION_BYTES - offset - len);

    entry = end_read(&p->a, in, len, p->base + offset, p->key);
    assert_int_equal(entry.ok.flags, FI_RMA | FI_READ);
    assert_filled(in, len, message);
    assert_blank(in + len, 8);
}

static void write_and_read_all(struct pair *p)
{
    static const size_t lens[] = {0, 1, INJECT_BYTES, 4096, EAGER_BYTES + 1, 1 << 20};

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        write_and_read(p, 0, lens[i], 1);
        write_and_read(p, 12345, lens[i], 2);
        write_and_read(p, REGION_BYTES - lens[i], lens[i], 3);
    }
    write_and_read(p, 0, REGION_BYTES, 4);
}

/* Nothing is needed that hints merely permit; only the old mode is kept. */
TEST_F(pair, ofi_rma__by_offset)
{
    pair_open(self, &(struct end_options){.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
                                                     FI_MR_PROV_KEY | FI_MR_LOCAL});
    pair_register(self, REGION_BYTES, REGION_KEY);
    assert_int_equal(self->b.info->domain_attr->mr_mode, 0);
    assert_int_equal(self->key, REGION_KEY);
    write_and_read_all(self);
    end_silent(self->b.rx);
}

/* The key is the provider's choice, too. */
TEST_F(pair, ofi_rma__by_address)
{
    pair_open(self, &(struct end_options){.mr_mode = FI_MR_BASIC});
    pair_register(self, REGION_BYTES, REGION_KEY);
    assert_int_equal(self->b.info->domain_attr->mr_mode, FI_MR_BASIC);
    struct fid_mr *other = end_register(&self->b, blank(1), 1, REGION_ACCESS, REGION_KEY);
    assert_true(fi_mr_key(other) != self->key);
    write_and_read_all(self);
}

TEST_F(region, ofi_rma__lists_of_local_buffers)
{
    struct iovec from[IOVS], to[IOVS];
    uint8_t *out = filled(100000, 1), *in = blank(100000);
    struct end *a = &self->a;
    size_t at = 0, back = 0;
    int tx;

    for (unsigned i = 0; i < IOVS; i++) {
        size_t out_part = i < IOVS - 1 ? (i == 2 ? 0 : 3000 * i + 1) : 100000 - at;
        size_t in_part = i < IOVS - 1 ? 13 * (i + 1) : 100000 - back;

        from[i] = (struct iovec){out + at, out_part};
        to[i] = (struct iovec){in + back, in_part};
        at += out_part;
        back += in_part;
    }
    POST(fi_writev(a->ep, from, NULL, IOVS, a->to, 17, REGION_KEY, &tx));
    end_ok(a->tx, &tx);
    assert_filled(self->memory + 17, 100000, 1);
    assert_blank(self->memory, 17);
    assert_blank(self->memory + 17 + 100000, 1000);
    POST(fi_readv(a->ep, to, NULL, IOVS, a->to, 17, REGION_KEY, &tx));
    end_ok(a->tx, &tx);
    assert_filled(in, 100000, 1);
}

/* Remote ranges, of two regions, whose borders are not those of the buffers. */
TEST_F(region, ofi_rma__lists_of_remote_ranges)
{
    enum { PART = 30000, OTHER = 5 };
    uint8_t *out = filled(3 * PART, 1), *in = blank(3 * PART), *other = blank(PART);
    struct iovec from[2] = {{out, PART / 2}, {out + PART / 2, 3 * PART - PART / 2}};
    struct iovec to[2] = {{in, 2 * PART + 7}, {in + 2 * PART + 7, PART - 7}};
    struct fi_rma_iov ranges[3] = {
        {500000, PART, REGION_KEY}, {1, PART - 10, OTHER}, {100, PART + 10, REGION_KEY}};
    struct fi_msg_rma msg = {.msg_iov = from,
                             .iov_count = 2,
                             .addr = self->a.to,
                             .rma_iov = ranges,
                             .rma_iov_count = 3,
                             .context = out};
    uint8_t *memory = self->memory;

    end_register(&self->b, other, PART, REGION_ACCESS, OTHER);
    POST(fi_writemsg(self->a.ep, &msg, 0));
    end_ok(self->a.tx, out);
    assert_memory_equal(memory + 500000, out, PART);
    assert_memory_equal(other + 1, out + PART, PART - 10);
    assert_memory_equal(memory + 100, out + 2 * PART - 10, PART + 10);
    assert_blank(other, 1);
    assert_blank(other + PART - 9, 9);
    assert_blank(memory, 100);

    msg.msg_iov = to;
    POST(fi_readmsg(self->a.ep, &msg, 0));
    end_ok(self->a.tx, out);
    assert_filled(in, 3 * PART, 1);

    ranges[0].len--;
    assert_int_equal(fi_readmsg(self->a.ep, &msg, 0), -FI_EINVAL); /* both sides are as long */
}

/* A region of several buffers: offsets run through them. */
TEST_F(plain, ofi_rma__region_of_several_buffers)
{
    enum { PART = 10000, OTHER = 5 };
    uint8_t *memory = blank(5 * PART), *out = filled(3 * PART, 1), *in = blank(3 * PART);
    struct iovec iov[3] = {{memory + 3 * PART, PART}, {memory, PART}, {memory + 4 * PART, PART}};
    struct end *a = &self->a;
    struct fid_mr *mr;

    assert_int_equal(fi_mr_regv(self->b.domain, iov, 3, REGION_ACCESS, 0, OTHER, 0, &mr, NULL), 0);
    end_write(a, out, 2 * PART, PART / 2, OTHER);
    assert_memory_equal(memory + 3 * PART + PART / 2, out, PART / 2);
    assert_memory_equal(memory, out + PART / 2, PART);
    assert_memory_equal(memory + 4 * PART, out + PART / 2 + PART, PART / 2);
    assert_blank(memory + PART, 2 * PART + PART / 2);
    assert_blank(memory + 4 * PART + PART / 2, PART / 2);
    end_read(a, in, 2 * PART, PART / 2, OTHER);
    assert_filled(in, 2 * PART, 1);
    POST(fi_write(a->ep, out, 2 * PART, NULL, a->to, PART + 1, OTHER, out));
    end_fails(a->tx, out, FI_EINVAL);
    assert_int_equal(fi_close(&mr->fid), 0);
}

/* ------------------------------------------------------------------------------- inject, and data */

TEST_F(pair, ofi_rma__injected)
{
    uint8_t *out = filled(INJECT_BYTES + 1, 1);
    struct iovec iov = {out, INJECT_BYTES};
    struct fi_rma_iov range = {50000, INJECT_BYTES, REGION_KEY};
    struct fi_msg_rma msg = {
        .msg_iov = &iov, .iov_count = 1, .rma_iov = &range, .rma_iov_count = 1, .context = out};
    struct end *a = &self->a;

    pair_open(self, &(struct end_options){.counts = FI_WRITE});
    pair_register(self, REGION_BYTES, REGION_KEY);
    POST(fi_inject_write(a->ep, out, INJECT_BYTES, a->to, 0, REGION_KEY));
    msg.addr = a->to;
    POST(fi_writemsg(a->ep, &msg, FI_INJECT | FI_COMPLETION));
    memset(out, 0, INJECT_BYTES);
    end_ok(a->tx, out);
    UNTIL(fi_cntr_read(end_cntr(a, FI_WRITE)) == 2);
    assert_filled(self->memory, INJECT_BYTES, 1);
    assert_filled(self->memory + 50000, INJECT_BYTES, 1);
    end_silent(a->tx);
    assert_int_equal(fi_inject_write(a->ep, out, INJECT_BYTES + 1, a->to, 0, REGION_KEY),
                     -FI_EMSGSIZE);
}

static void expect_data(struct pair *p, uint64_t data, size_t len)
{
    struct entry entry = end_next(p->b.rx);

    assert_int_equal(entry.err, 0);
    assert_int_equal(entry.ok.flags & (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA),
                     FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
    assert_int_equal(entry.ok.data, data);
    assert_int_equal(entry.ok.len, len);
    assert_int_equal(entry.src, p->b.to);
}

/* Nothing tells the application when it may close: what was injected arrives. */
TEST_F(region, ofi_rma__injected_before_the_end)
{
    enum { WRITES = 500, BYTES = 512 };
    uint8_t *out = filled(BYTES, 1);
    uint64_t word = 0;

    end_write(&self->a, &word, sizeof(word), REGION_BYTES - 8, REGION_KEY);
    for (uint64_t i = 0; i < WRITES; i++)
        POST(fi_inject_write(self->a.ep, out, BYTES, self->a.to, i * BYTES, REGION_KEY));
    end_close(&self->a);
    for (uint32_t i = 0; i < WRITES; i++)
        assert_filled(self->memory + i * BYTES, BYTES, 1);
}

/* The entry at the target comes when the bytes are there. */
TEST_F(region, ofi_rma__data_of_eight_bytes)
{
    const uint64_t data = 0xfedcba9876543210u;
    uint8_t *out = filled(1 << 20, 1);
    struct end *a = &self->a;

    for (size_t len = 0; len <= 1 << 20; len += 1 << 18) {
        memset(self->memory, BLANK, REGION_BYTES);
        POST(fi_writedata(a->ep, out, len, NULL, data + len, a->to, 3, REGION_KEY, out));
        expect_data(self, data + len, len);
        assert_filled(self->memory + 3, len, 1);
        end_ok(a->tx, out);
    }
    POST(fi_inject_writedata(a->ep, out, 100, ~data, a->to, 1 << 20, REGION_KEY));
    expect_data(self, ~data, 100);
    assert_filled(self->memory + (1 << 20), 100, 1);
    end_silent(a->tx);
    end_silent(self->b.rx);
}

/* ------------------------------------------------------------------------------------- at the target */

TEST_F(pair, ofi_rma__target_counts)
{
    enum { WRITES = 5, READS = 3, OTHER = 5 };
    uint8_t *memory = blank(1000), *out = filled(1000, 1);
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct end *a = &self->a, *b = &self->b;
    struct fid_cntr *cntr;
    struct fid_mr *mr;

    pair_open(self, &(struct end_options){.caps = FI_MSG | FI_RMA | FI_RMA_EVENT,
                                          .counts = FI_READ | FI_WRITE | FI_REMOTE_READ |
                                                    FI_REMOTE_WRITE});
    pair_register(self, REGION_BYTES, REGION_KEY);
    assert_int_equal(fi_cntr_open(b->domain, &attr, &cntr, NULL), 0);
    assert_int_equal(
        fi_mr_reg(b->domain, memory, 1000, REGION_ACCESS, 0, OTHER, FI_RMA_EVENT, &mr, NULL), 0);
    assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
    (void)fi_mr_enable(mr);
    for (unsigned i = 0; i < WRITES; i++)
        POST(fi_write(a->ep, out, 1000, NULL, a->to, 0, OTHER, out));
    for (unsigned i = 0; i < READS; i++)
        POST(fi_read(a->ep, out, 1000, NULL, a->to, 0, OTHER, out));
    POST(fi_write(a->ep, out, 1000, NULL, a->to, 0, REGION_KEY, out)); /* not the counter's */
    for (unsigned i = 0; i < WRITES + READS + 1; i++)
        end_ok(a->tx, out);
    UNTIL(fi_cntr_read(end_cntr(b, FI_REMOTE_WRITE)) == WRITES + 1);
    UNTIL(fi_cntr_read(end_cntr(b, FI_REMOTE_READ)) == READS);
    UNTIL(fi_cntr_read(cntr) == WRITES);
    assert_int_equal(fi_cntr_read(end_cntr(a, FI_WRITE)), WRITES + 1);
    assert_int_equal(fi_cntr_read(end_cntr(a, FI_READ)), READS);
    end_silent(b->rx); /* counted, not told */
    assert_int_equal(fi_cntr_read(cntr), WRITES);
    assert_int_equal(fi_cntr_read(end_cntr(b, FI_REMOTE_WRITE)), WRITES + 1);
    assert_int_equal(fi_close(&mr->fid), 0);
    assert_int_equal(fi_close(&cntr->fid), 0);
}

/* -------------------------------------------------------------------------------------------- many */

TEST_F(region, ofi_rma__many_in_flight)
{
    uint8_t *out = filled(FLIGHT * FLIGHT_BYTES, 1), *in = blank(FLIGHT * FLIGHT_BYTES);
    bool told[FLIGHT] = {false};
    struct end *a = &self->a;

    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < FLIGHT; i++) {
            size_t at = i * FLIGHT_BYTES;

            if (turn)
                POST(fi_read(a->ep, in + at, FLIGHT_BYTES, NULL, a->to, at, REGION_KEY, &told[i]));
            else
                POST(
                    fi_write(a->ep, out + at, FLIGHT_BYTES, NULL, a->to, at, REGION_KEY, &told[i]));
        }
        for (unsigned i = 0; i < FLIGHT; i++) {
            struct entry entry = end_next(a->tx);
            bool *flag = entry.ok.op_context;

            assert_int_equal(entry.err, 0);
            assert_int_equal(*flag, turn);
            *flag = !turn;
        }
    }
    assert_filled(self->memory, FLIGHT * FLIGHT_BYTES, 1);
    assert_filled(in, FLIGHT * FLIGHT_BYTES, 1);
    end_silent(a->tx);
}
