/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes of memory that the other end has registered. */
#include "region.h"

#include <stdlib.h>
#include <string.h>

enum { IOVS = 8, FLIGHT = 64, FLIGHT_BYTES = 20000 };

/* -------------------------------------------------------------------------------------- what moves */

static void write_and_read(struct region *r, size_t offset, size_t len, uint64_t message)
{
    uint8_t *out = filled(len, message), *in = blank(len + 8);
    struct end *a = &r->p.a;
    int tx;

    memset(r->memory, BLANK, REGION_BYTES);
    POST(fi_write(a->ep, out, len, NULL, a->to, r->base + offset, r->key, &tx));
    struct entry entry = end_ok(a->tx, &tx);
    assert_int_equal(entry.ok.flags, FI_RMA | FI_WRITE);
    assert_filled(r->memory + offset, len, message);
    assert_blank(r->memory, offset);
    assert_blank(r->memory + offset + len, REGION_BYTES - offset - len);

    POST(fi_read(a->ep, in, len, NULL, a->to, r->base + offset, r->key, &tx));
    entry = end_ok(a->tx, &tx);
    assert_int_equal(entry.ok.flags, FI_RMA | FI_READ);
    assert_filled(in, len, message);
    assert_blank(in + len, 8);
    free(in);
    free(out);
}

static void write_and_read_all(struct region *r)
{
    static const size_t lens[] = {0, 1, INJECT_BYTES, 4096, EAGER_BYTES + 1, 1 << 20};

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        write_and_read(r, 0, lens[i], 1);
        write_and_read(r, 12345, lens[i], 2);
        write_and_read(r, REGION_BYTES - lens[i], lens[i], 3);
    }
    write_and_read(r, 0, REGION_BYTES, 4);
}

TEST(ofi_rma__by_offset)
{
    struct region r;

    region_open(&r, &(struct end_options){.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
                                                     FI_MR_PROV_KEY | FI_MR_LOCAL});
    assert_int_equal(r.key, REGION_KEY);
    write_and_read_all(&r);
    end_silent(r.p.b.rx);
    region_close(&r);
}

/* The key is the provider's choice, too. */
TEST(ofi_rma__by_address)
{
    uint8_t *memory = blank(1);
    struct region r;

    region_open(&r, &(struct end_options){.mr_mode = FI_MR_BASIC});
    struct fid_mr *other = region_add(&r.p.b, memory, 1, REGION_ACCESS, REGION_KEY);
    assert_true(fi_mr_key(other) != r.key);
    write_and_read_all(&r);
    assert_int_equal(fi_close(&other->fid), 0);
    region_close(&r);
    free(memory);
}

TEST(ofi_rma__lists_of_local_buffers)
{
    struct iovec from[IOVS], to[IOVS];
    uint8_t *out = filled(100000, 1), *in = blank(100000);
    struct region r;
    size_t at = 0, back = 0;
    int tx;

    region_open(&r, &(struct end_options){0});
    for (unsigned i = 0; i < IOVS; i++) {
        size_t out_part = i < IOVS - 1 ? (i == 2 ? 0 : 3000 * i + 1) : 100000 - at;
        size_t in_part = i < IOVS - 1 ? 13 * (i + 1) : 100000 - back;

        from[i] = (struct iovec){out + at, out_part};
        to[i] = (struct iovec){in + back, in_part};
        at += out_part;
        back += in_part;
    }
    POST(fi_writev(r.p.a.ep, from, NULL, IOVS, r.p.a.to, 17, r.key, &tx));
    end_ok(r.p.a.tx, &tx);
    assert_filled(r.memory + 17, 100000, 1);
    assert_blank(r.memory, 17);
    assert_blank(r.memory + 17 + 100000, 1000);
    POST(fi_readv(r.p.a.ep, to, NULL, IOVS, r.p.a.to, 17, r.key, &tx));
    end_ok(r.p.a.tx, &tx);
    assert_filled(in, 100000, 1);
    region_close(&r);
    free(in);
    free(out);
}

/* Remote ranges, of two regions, whose borders are not those of the buffers. */
TEST(ofi_rma__lists_of_remote_ranges)
{
    enum { PART = 30000, OTHER = 5 };
    uint8_t *out = filled(3 * PART, 1), *in = blank(3 * PART), *other = blank(PART);
    struct iovec from[2] = {{out, PART / 2}, {out + PART / 2, 3 * PART - PART / 2}};
    struct iovec to[2] = {{in, 2 * PART + 7}, {in + 2 * PART + 7, PART - 7}};
    struct fi_rma_iov ranges[3] = {
        {500000, PART, REGION_KEY}, {1, PART - 10, OTHER}, {100, PART + 10, REGION_KEY}};
    struct fi_msg_rma msg = {
        .msg_iov = from, .iov_count = 2, .rma_iov = ranges, .rma_iov_count = 3};
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){0});
    struct fid_mr *mr = region_add(&r.p.b, other, PART, REGION_ACCESS, OTHER);
    msg.addr = r.p.a.to;
    msg.context = &tx;
    POST(fi_writemsg(r.p.a.ep, &msg, 0));
    end_ok(r.p.a.tx, &tx);
    assert_memory_equal(r.memory + 500000, out, PART);
    assert_memory_equal(other + 1, out + PART, PART - 10);
    assert_memory_equal(r.memory + 100, out + 2 * PART - 10, PART + 10);
    assert_blank(other, 1);
    assert_blank(other + PART - 9, 9);
    assert_blank(r.memory, 100);

    msg.msg_iov = to;
    POST(fi_readmsg(r.p.a.ep, &msg, 0));
    end_ok(r.p.a.tx, &tx);
    assert_filled(in, 3 * PART, 1);

    ranges[0].len--;
    assert_int_equal(fi_readmsg(r.p.a.ep, &msg, 0), -FI_EINVAL); /* both sides are as long */
    assert_int_equal(fi_close(&mr->fid), 0);
    region_close(&r);
    free(other);
    free(in);
    free(out);
}

/* A region of several buffers: offsets run through them. */
TEST(ofi_rma__region_of_several_buffers)
{
    enum { PART = 10000, OTHER = 5 };
    uint8_t *memory = blank(5 * PART), *out = filled(3 * PART, 1), *in = blank(3 * PART);
    struct iovec iov[3] = {{memory + 3 * PART, PART}, {memory, PART}, {memory + 4 * PART, PART}};
    struct fid_mr *mr;
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){0});
    assert_int_equal(fi_mr_regv(r.p.b.domain, iov, 3, REGION_ACCESS, 0, OTHER, 0, &mr, NULL), 0);
    POST(fi_write(r.p.a.ep, out, 2 * PART, NULL, r.p.a.to, PART / 2, OTHER, &tx));
    end_ok(r.p.a.tx, &tx);
    assert_memory_equal(memory + 3 * PART + PART / 2, out, PART / 2);
    assert_memory_equal(memory, out + PART / 2, PART);
    assert_memory_equal(memory + 4 * PART, out + PART / 2 + PART, PART / 2);
    assert_blank(memory + PART, 2 * PART + PART / 2);
    assert_blank(memory + 4 * PART + PART / 2, PART / 2);
    POST(fi_read(r.p.a.ep, in, 2 * PART, NULL, r.p.a.to, PART / 2, OTHER, &tx));
    end_ok(r.p.a.tx, &tx);
    assert_filled(in, 2 * PART, 1);
    POST(fi_write(r.p.a.ep, out, 2 * PART, NULL, r.p.a.to, PART + 1, OTHER, &tx));
    end_fails(r.p.a.tx, &tx, FI_EINVAL);
    assert_int_equal(fi_close(&mr->fid), 0);
    region_close(&r);
    free(in);
    free(out);
    free(memory);
}

/* ------------------------------------------------------------------------------- inject, and data */

TEST(ofi_rma__injected)
{
    uint8_t *out = filled(INJECT_BYTES + 1, 1);
    struct iovec iov = {out, INJECT_BYTES};
    struct fi_rma_iov range = {50000, INJECT_BYTES, REGION_KEY};
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){.counts = FI_WRITE});
    POST(fi_inject_write(r.p.a.ep, out, INJECT_BYTES, r.p.a.to, 0, r.key));
    POST(fi_writemsg(r.p.a.ep,
                     &(struct fi_msg_rma){.msg_iov = &iov,
                                          .iov_count = 1,
                                          .addr = r.p.a.to,
                                          .rma_iov = &range,
                                          .rma_iov_count = 1,
                                          .context = &tx},
                     FI_INJECT | FI_COMPLETION));
    memset(out, 0, INJECT_BYTES);
    end_ok(r.p.a.tx, &tx);
    UNTIL(fi_cntr_read(end_cntr(&r.p.a, FI_WRITE)) == 2);
    assert_filled(r.memory, INJECT_BYTES, 1);
    assert_filled(r.memory + 50000, INJECT_BYTES, 1);
    end_silent(r.p.a.tx);
    assert_int_equal(fi_inject_write(r.p.a.ep, out, INJECT_BYTES + 1, r.p.a.to, 0, r.key),
                     -FI_EMSGSIZE);
    region_close(&r);
    free(out);
}

static void expect_data(struct region *r, uint64_t data, size_t len)
{
    struct entry entry = end_next(r->p.b.rx);

    assert_int_equal(entry.err, 0);
    assert_int_equal(entry.ok.flags & (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA),
                     FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
    assert_int_equal(entry.ok.data, data);
    assert_int_equal(entry.ok.len, len);
    assert_int_equal(entry.src, r->p.b.to);
}

/* Nothing tells the application when it may close: what was injected arrives. */
TEST(ofi_rma__injected_before_the_end)
{
    enum { WRITES = 500, BYTES = 512 };
    uint8_t *out = filled(BYTES, 1);
    struct region r;
    uint64_t word = 0;
    int tx;

    region_open(&r, &(struct end_options){0});
    POST(fi_write(r.p.a.ep, &word, sizeof(word), NULL, r.p.a.to, REGION_BYTES - 8, r.key, &tx));
    end_ok(r.p.a.tx, &tx);
    for (uint64_t i = 0; i < WRITES; i++)
        POST(fi_inject_write(r.p.a.ep, out, BYTES, r.p.a.to, i * BYTES, r.key));
    end_close(&r.p.a);
    for (uint32_t i = 0; i < WRITES; i++)
        assert_filled(r.memory + i * BYTES, BYTES, 1);
    assert_int_equal(fi_close(&r.mr->fid), 0);
    end_close(&r.p.b);
    free(r.memory);
    free(out);
}

/* The entry at the target comes when the bytes are there. */
TEST(ofi_rma__data_of_eight_bytes)
{
    const uint64_t data = 0xfedcba9876543210u;
    uint8_t *out = filled(1 << 20, 1);
    struct region r;
    int tx;

    region_open(&r, &(struct end_options){0});
    for (size_t len = 0; len <= 1 << 20; len += 1 << 18) {
        memset(r.memory, BLANK, REGION_BYTES);
        POST(fi_writedata(r.p.a.ep, out, len, NULL, data + len, r.p.a.to, 3, r.key, &tx));
        expect_data(&r, data + len, len);
        assert_filled(r.memory + 3, len, 1);
        end_ok(r.p.a.tx, &tx);
    }
    POST(fi_inject_writedata(r.p.a.ep, out, 100, ~data, r.p.a.to, 1 << 20, r.key));
    expect_data(&r, ~data, 100);
    assert_filled(r.memory + (1 << 20), 100, 1);
    end_silent(r.p.a.tx);
    end_silent(r.p.b.rx);
    region_close(&r);
    free(out);
}

/* ------------------------------------------------------------------------------------- at the target */

TEST(ofi_rma__target_counts)
{
    enum { WRITES = 5, READS = 3, OTHER = 5 };
    uint8_t *memory = blank(1000), *out = filled(1000, 1);
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fid_cntr *cntr;
    struct fid_mr *mr;
    struct region r;
    int tx;

    region_open(
        &r, &(struct end_options){.caps = FI_MSG | FI_RMA | FI_RMA_EVENT,
                                  .counts = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE});
    struct end *a = &r.p.a;
    struct end *b = &r.p.b;
    assert_int_equal(fi_cntr_open(b->domain, &attr, &cntr, NULL), 0);
    assert_int_equal(
        fi_mr_reg(b->domain, memory, 1000, REGION_ACCESS, 0, OTHER, FI_RMA_EVENT, &mr, NULL), 0);
    assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
    (void)fi_mr_enable(mr);
    for (unsigned i = 0; i < WRITES; i++)
        POST(fi_write(a->ep, out, 1000, NULL, a->to, 0, OTHER, &tx));
    for (unsigned i = 0; i < READS; i++)
        POST(fi_read(a->ep, out, 1000, NULL, a->to, 0, OTHER, &tx));
    POST(fi_write(a->ep, out, 1000, NULL, a->to, 0, r.key, &tx)); /* not the counter's region */
    for (unsigned i = 0; i < WRITES + READS + 1; i++)
        end_ok(a->tx, &tx);
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
    region_close(&r);
    free(out);
    free(memory);
}

/* -------------------------------------------------------------------------------------------- many */

TEST(ofi_rma__many_in_flight)
{
    uint8_t *out = filled(FLIGHT * FLIGHT_BYTES, 1), *in = blank(FLIGHT * FLIGHT_BYTES);
    bool told[FLIGHT] = {false};
    struct region r;

    region_open(&r, &(struct end_options){0});
    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < FLIGHT; i++) {
            uint8_t *mine = (turn ? in : out) + i * FLIGHT_BYTES;
            struct end *a = &r.p.a;

            if (turn)
                POST(fi_read(a->ep, mine, FLIGHT_BYTES, NULL, a->to, i * FLIGHT_BYTES, r.key,
                             &told[i]));
            else
                POST(fi_write(a->ep, mine, FLIGHT_BYTES, NULL, a->to, i * FLIGHT_BYTES, r.key,
                              &told[i]));
        }
        for (unsigned i = 0; i < FLIGHT; i++) {
            struct entry entry = end_next(r.p.a.tx);
            bool *flag = entry.ok.op_context;

            assert_int_equal(entry.err, 0);
            assert_int_equal(*flag, turn);
            *flag = !turn;
        }
    }
    assert_filled(r.memory, FLIGHT * FLIGHT_BYTES, 1);
    assert_filled(in, FLIGHT * FLIGHT_BYTES, 1);
    end_silent(r.p.a.tx);
    region_close(&r);
    free(in);
    free(out);
}
