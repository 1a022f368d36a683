/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the program polls (MRD_ACCESS_POLLED): bytes are stored upwards, once they are checked. The
 * first store into a page that cannot be accessed shows what was stored before it.
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/engine_pair.h"

enum { AT = 1, ACCESS = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE };

static struct {
    uint8_t *page;       /* it cannot be accessed before the first fault */
    const uint8_t *from; /* what belongs below it */
    uint32_t below;      /* so many bytes of it */
    size_t page_bytes;
    volatile sig_atomic_t faults, complete;
} watched;

static void fault(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if ((uint8_t *)info->si_addr < watched.page ||
        (uint8_t *)info->si_addr >= watched.page + watched.page_bytes)
        _exit(128 + signal);
    watched.faults = watched.faults + 1;
    watched.complete = !memcmp(watched.page - watched.below, watched.from, watched.below);
    if (mprotect(watched.page, watched.page_bytes, PROT_READ | PROT_WRITE))
        _exit(128 + signal);
}

FIXTURE_OF(polled, pair);

static void begin(struct pair *p)
{
    struct pair_end *end = &p->end[AT];

    pair_begin(p);
    assert_int_equal(mrd_engine_dereg_mr(end->e, end->mr, p->now), 0);
    end->mr = pair_register(p, AT, ACCESS | MRD_ACCESS_POLLED);
}

FIXTURE_FROM(polled, begin, pair_end);

/* Bytes that were posted arrive, half of the first packet's below a page, and that half is stored first. */
static void arrives_upwards(struct pair *p, uint32_t at)
{
    struct sigaction old[2], action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};

    watched.from = p->end[1 - AT].memory + at;
    watched.faults = watched.complete = 0;
    assert_int_equal(sigaction(SIGSEGV, &action, &old[0]), 0);
    assert_int_equal(sigaction(SIGBUS, &action, &old[1]), 0);
    assert_int_equal(mprotect(watched.page, watched.page_bytes, PROT_NONE), 0);
    pair_settle(p, p->now + MRD_SEC);
    assert_int_equal(mprotect(watched.page, watched.page_bytes, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(sigaction(SIGSEGV, &old[0], NULL), 0);
    assert_int_equal(sigaction(SIGBUS, &old[1], NULL), 0);
    assert_int_equal(watched.faults, 1);
    assert_true(watched.complete);
}

/* Where a message of that payload begins so that half of the first packet lies below a page. */
static uint32_t place_of(struct pair *p, uint32_t len)
{
    uint8_t *memory = p->end[AT].memory;
    uint32_t first = len < PAIR_PAYLOAD ? len : PAIR_PAYLOAD;

    watched.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    watched.page = memory + watched.page_bytes * 2 - (uintptr_t)memory % watched.page_bytes;
    watched.below = first / 2;
    return (uint32_t)(watched.page - memory) - watched.below;
}

TEST_F(polled, mrd_rx_place__polled_memory_upwards)
{
    static const struct {
        enum mrd_wr_opcode opcode;
        uint32_t len;
    } rows[] = {{MRD_WR_RDMA_WRITE, 64},   {MRD_WR_RDMA_WRITE, PAIR_PAYLOAD},
                {MRD_WR_RDMA_WRITE, 5000}, {MRD_WR_SEND, 63},
                {MRD_WR_SEND, 1000},       {MRD_WR_SEND, 5000}};

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t len = rows[i].len, at = place_of(self, len);
        const uint8_t *to = self->end[AT].memory + at;

        for (uint32_t k = 0; k < len; k++)
            self->end[1 - AT].memory[at + k] = (uint8_t)(k * 7 + i + 1);
        if (rows[i].opcode == MRD_WR_SEND)
            pair_post_recv(self, AT, at, len);
        pair_post(self, 1 - AT, rows[i].opcode, at, len);
        arrives_upwards(self, at);
        pair_expect(self, 1 - AT, MRD_WC_SUCCESS);
        if (rows[i].opcode == MRD_WR_SEND)
            pair_expect(self, AT, MRD_WC_SUCCESS);
        assert_memory_equal(to, self->end[1 - AT].memory + at, len);
    }
}

/* Answers to reads go into such memory likewise. */
TEST_F(polled, mrd_rx_place__polled_answers_upwards)
{
    static const uint32_t lens[] = {64, 1000, 5000};

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        uint32_t at = place_of(self, lens[i]);

        memset(self->end[1 - AT].memory, (int)(i + 1), PAIR_MEMORY);
        assert_int_equal(mrd_engine_dereg_mr(self->end[1 - AT].e, self->end[1 - AT].mr, self->now),
                         0);
        self->end[1 - AT].mr = pair_register(self, 1 - AT, MRD_ACCESS_REMOTE_READ);
        pair_post(self, AT, MRD_WR_RDMA_READ, at, lens[i]);
        arrives_upwards(self, at);
        pair_expect(self, AT, MRD_WC_SUCCESS);
    }
}

/* What is not checked yet, or may belong elsewhere, is not received there; so it is without the flag. */
TEST_F(polled, mrd_engine_rx_plan__not_into_polled_memory)
{
    for (unsigned i = 0; i < 6; i++) {
        unsigned flag = i % 2, op = i / 2; /* a write that begins, one that goes on, a receive */
        struct pair_end *end = &self->end[AT];
        struct mrd_rx_plan plan;

        assert_int_equal(mrd_engine_dereg_mr(end->e, end->mr, self->now), 0);
        end->mr = pair_register(self, AT, ACCESS | (flag ? MRD_ACCESS_POLLED : 0));
        pair_write(self, 1 - AT, 0, 64); /* they know each other */
        if (op == 2)
            pair_post_recv(self, AT, 0, 5000);
        pair_post(self, 1 - AT, op == 2 ? MRD_WR_SEND : MRD_WR_RDMA_WRITE, 0, 5000);
        assert_int_equal(pair_tx(self, 1 - AT), 5);
        if (op)
            pair_rx_one(self, AT, &end->inbox[0]);
        const struct pair_frame *f = &end->inbox[op ? 1 : 0];
        unsigned n = mrd_engine_rx_plan(end->e, f->data, pair_head(f).head_len, 1, f->len, f->len,
                                        &self->end[1 - AT].addr, &plan);
        assert_int_equal(n, !flag);
        mrd_engine_rx_plan(end->e, f->data, 0, 1, f->len, f->len, &self->end[1 - AT].addr, &plan);
        pair_settle(self, self->now + MRD_SEC);
        pair_expect(self, 1 - AT, MRD_WC_SUCCESS);
        if (op == 2)
            pair_expect(self, AT, MRD_WC_SUCCESS);
    }
}
