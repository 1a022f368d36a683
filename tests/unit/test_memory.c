/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of all kinds, registered and written to by a peer, or refused. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/context_fixture.h"
#include "transport/memory.h"
#include "transport/memory_probe.h"

#define GIB (1ull << 30)

enum { BYTES = 100 * 1000 };

struct side {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_ah *peer;
};

FIXTURE(two_sides)
{
    struct side a, b;
    size_t page;
    bool asks; /* the kernel can be asked about mappings */
};

static void open_side(struct side *s)
{
    s->context = mrd_open_device(NULL, &(struct mrd_context_attr){.address = "127.0.0.1",
                                                                  .paths = 4,
                                                                  .progress = MRD_PROGRESS_MANUAL});
    assert_non_null(s->context);
    s->pd = mrd_alloc_pd(s->context);
    s->cq = mrd_create_cq(s->context, 8, NULL);
    s->qp = mrd_create_qp(s->pd,
                          &(struct mrd_qp_init_attr){.send_cq = s->cq,
                                                     .recv_cq = s->cq,
                                                     .cap = {.max_send_wr = 4, .max_recv_wr = 4}});
    assert_non_null(s->qp);
}

static void close_side(struct side *s)
{
    assert_int_equal(mrd_destroy_ah(s->peer), 0);
    assert_int_equal(mrd_destroy_qp(s->qp), 0);
    assert_int_equal(mrd_destroy_cq(s->cq), 0);
    assert_int_equal(mrd_dealloc_pd(s->pd), 0);
    assert_int_equal(mrd_close_device(s->context), 0);
}

FIXTURE_SETUP(two_sides)
{
    open_side(&self->a);
    open_side(&self->b);
    self->a.peer = ah_to(self->a.pd, self->b.context);
    self->b.peer = ah_to(self->b.pd, self->a.context);
    self->page = (size_t)sysconf(_SC_PAGESIZE);

    int fd = mrd_memory_open();

    self->asks = fd >= 0;
    if (self->asks)
        close(fd);
}

FIXTURE_TEARDOWN(two_sides)
{
    close_side(&self->a);
    close_side(&self->b);
}

enum { PEERS_MAY = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE | MRD_ACCESS_REMOTE_READ };

/* One request from a, of memory at `to` of that region, which completes well. */
static void run(struct two_sides *f, struct mrd_send_wr *wr, const uint8_t *to,
                const struct mrd_mr *target)
{
    struct mrd_send_wr *bad;
    struct mrd_wc wc;

    wr->num_sge = 1;
    wr->wr.rdma.remote_addr = (uintptr_t)to;
    wr->wr.rdma.rkey = target->rkey;
    wr->send_flags = MRD_SEND_SIGNALED;
    wr->ud.ah = f->a.peer;
    wr->ud.remote_qpn = f->b.qp->qp_num;
    assert_int_equal(mrd_post_send(f->a.qp, wr, &bad), 0);
    while (mrd_poll_cq(f->a.cq, 1, &wc) == 0)
        assert_true(mrd_progress(f->b.context) >= 0);
    assert_int_equal(wc.status, MRD_WC_SUCCESS);
}

/* A peer's write and its read back: `bytes` at `offset` of regions of `length`, `from` and `to`. */
static void transfer(struct two_sides *f, uint8_t *from, uint8_t *to, size_t length, size_t offset,
                     uint32_t bytes)
{
    struct mrd_mr *source = mrd_reg_mr(f->a.pd, from, length, MRD_ACCESS_LOCAL_WRITE);
    struct mrd_mr *target = mrd_reg_mr(f->b.pd, to, length, PEERS_MAY);
    struct mrd_sge sge = {(uintptr_t)from + offset, bytes, source ? source->lkey : 0};
    struct mrd_send_wr wr = {.sg_list = &sge, .opcode = MRD_WR_RDMA_WRITE};

    assert_non_null(source);
    assert_non_null(target);
    for (size_t i = 0; i < bytes; i++)
        from[offset + i] = (uint8_t)(i * 7 + (i >> 8));
    run(f, &wr, to + offset, target);
    assert_memory_equal(to + offset, from + offset, bytes);
    memset(from + offset, 0, bytes);
    wr.opcode = MRD_WR_RDMA_READ;
    run(f, &wr, to + offset, target);
    assert_memory_equal(to + offset, from + offset, bytes);
    assert_int_equal(mrd_dereg_mr(source), 0);
    assert_int_equal(mrd_dereg_mr(target), 0);
}

static uint8_t *map_memory(size_t bytes, int protection, int flags, int fd)
{
    return mmap(NULL, bytes, protection, flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
}

static void refuses(struct two_sides *f, void *at, size_t bytes, int access, const char *why)
{
    refused(mrd_reg_mr(f->a.pd, at, bytes, access), EFAULT, why);
}

/* ---------------------------------------------------------------------------------- what is good */

TEST_F(two_sides, mrd_reg_mr__kinds_of_memory)
{
    static uint8_t fixed[BYTES];
    uint8_t stack[2000], *heap = malloc(BYTES);
    uint8_t *shared = map_memory(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, -1);
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), BYTES), 0);
    uint8_t *mapped = map_memory(BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file));
    assert_true(mapped != MAP_FAILED);
    transfer(self, fixed, heap, BYTES, 0, BYTES);
    transfer(self, stack, heap, sizeof(stack), 1, sizeof(stack) - 1);
    transfer(self, heap, shared, BYTES, 0, BYTES);
    transfer(self, shared, mapped, BYTES, 3, BYTES - 3);
    assert_int_equal(pread(fileno(file), heap, BYTES, 0), BYTES);
    assert_memory_equal(heap, mapped, BYTES);
    munmap(shared, BYTES);
    munmap(mapped, BYTES);
    fclose(file);
    free(heap);
}

TEST_F(two_sides, mrd_reg_mr__huge_pages)
{
    size_t bytes = 4 << 20;
    uint8_t *huge = map_memory(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_HUGETLB, -1);

    bool reserved = huge != MAP_FAILED;

    if (!reserved) { /* none are set aside: transparent ones, then */
        huge = aligned_alloc(2 << 20, bytes);
        assert_non_null(huge);
        (void)madvise(huge, bytes, MADV_HUGEPAGE);
    }
    uint8_t *plain = calloc(1, bytes);
    assert_non_null(plain);
    transfer(self, plain, huge, bytes, 0, (uint32_t)bytes);
    free(plain);
    if (reserved)
        munmap(huge, bytes);
    else
        free(huge);
}

/* Registered at once, whatever the size; and each byte has its place. */
TEST_F(two_sides, mrd_reg_mr__beyond_4_gib)
{
    size_t bytes = 6 * GIB;
    int flags = MAP_PRIVATE | MAP_NORESERVE;
    uint8_t *from = map_memory(bytes, PROT_READ | PROT_WRITE, flags, -1);
    uint8_t *to = map_memory(bytes, PROT_READ | PROT_WRITE, flags, -1);

    if (from == MAP_FAILED || to == MAP_FAILED)
        skip();
    transfer(self, from, to, bytes, 0, BYTES);
    transfer(self, from, to, bytes, 4 * GIB - BYTES / 2, BYTES);
    transfer(self, from, to, bytes, bytes - BYTES, BYTES);
    munmap(from, bytes);
    munmap(to, bytes);
}

/* What is there only when it is used is registered on demand. */
TEST_F(two_sides, mrd_reg_mr__on_demand)
{
    uint8_t *from = map_memory(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1);
    uint8_t *to = map_memory(BYTES, PROT_NONE, MAP_PRIVATE, -1);
    struct mrd_mr *target = mrd_reg_mr(self->b.pd, to, BYTES, PEERS_MAY | MRD_ACCESS_ON_DEMAND);
    struct mrd_mr *source = mrd_reg_mr(self->a.pd, from, BYTES, 0);
    struct mrd_sge sge = {(uintptr_t)from, BYTES, source->lkey};
    struct mrd_send_wr wr = {.sg_list = &sge, .opcode = MRD_WR_RDMA_WRITE};

    assert_non_null(target);
    memset(from, 7, BYTES);
    assert_int_equal(mprotect(to, BYTES, PROT_READ | PROT_WRITE), 0);
    run(self, &wr, to, target);
    assert_memory_equal(to, from, BYTES);
    assert_int_equal(mrd_dereg_mr(source), 0);
    assert_int_equal(mrd_dereg_mr(target), 0);
    munmap(from, BYTES);
    munmap(to, BYTES);
}

/* One region is all memory of the process, for its own work requests only. */
TEST_F(two_sides, mrd_reg_mr__all_memory)
{
    const int access = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_ON_DEMAND;
    const int remote[] = {MRD_ACCESS_REMOTE_READ, MRD_ACCESS_REMOTE_WRITE,
                          MRD_ACCESS_REMOTE_ATOMIC};
    struct mrd_mr *all = mrd_reg_mr(self->a.pd, NULL, SIZE_MAX, access);
    uint8_t *from = malloc(BYTES), *back = malloc(BYTES), *to = calloc(1, BYTES);
    struct mrd_mr *target = mrd_reg_mr(self->b.pd, to, BYTES, PEERS_MAY);
    struct mrd_sge sge = {(uintptr_t)from, BYTES, all ? all->lkey : 0};
    struct mrd_send_wr wr = {.sg_list = &sge, .opcode = MRD_WR_RDMA_WRITE};

    assert_non_null(all);
    assert_non_null(target);
    memset(from, 9, BYTES);
    run(self, &wr, to, target);
    assert_memory_equal(to, from, BYTES);
    sge.addr = (uintptr_t)back;
    wr.opcode = MRD_WR_RDMA_READ;
    run(self, &wr, to, target);
    assert_memory_equal(back, from, BYTES);
    for (unsigned i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
        refused(mrd_reg_mr(self->a.pd, NULL, SIZE_MAX, access | remote[i]), EINVAL,
                "peers may not use all memory");
    assert_null(mrd_reg_mr(self->a.pd, NULL, SIZE_MAX, MRD_ACCESS_LOCAL_WRITE));
    assert_null(mrd_reg_mr(self->a.pd, NULL, BYTES, access));
    assert_int_equal(mrd_dereg_mr(all), 0);
    assert_int_equal(mrd_dereg_mr(target), 0);
    free(from);
    free(back);
    free(to);
}

/* For what access it is says what is asked of it; test_memory_check.c has the kinds of memory. */
TEST_F(two_sides, mrd_reg_mr__inaccessible)
{
    uint8_t *at = map_memory(2 * self->page, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1);

    assert_int_equal(mprotect(at + self->page, self->page, PROT_READ), 0);
    if (self->asks)
        refuses(self, at, 2 * self->page, MRD_ACCESS_LOCAL_WRITE, "cannot be written");
    struct mrd_mr *mr = mrd_reg_mr(self->a.pd, at, 2 * self->page, MRD_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    assert_int_equal(mrd_dereg_mr(mr), 0);
    assert_int_equal(munmap(at + self->page, self->page), 0);
    refuses(self, at, self->page + 1, 0, "is not mapped");
    munmap(at, self->page);
}

TEST_F(two_sides, mrd_reg_mr_ex__attributes)
{
    struct mrd_mr_init_attr attr = {
        .addr = self, .length = 8, .access = MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE};
    struct mrd_mr *mr = mrd_reg_mr_ex(self->a.pd, &attr);

    assert_non_null(mr);
    assert_ptr_equal(mr->addr, self);
    assert_int_equal(mr->length, 8);
    assert_int_equal(mrd_dereg_mr(mr), 0);
    attr.access = MRD_ACCESS_REMOTE_WRITE;
    refused(mrd_reg_mr_ex(self->a.pd, &attr), EINVAL, "");
    attr.access = 1u << 31;
    refused(mrd_reg_mr_ex(self->a.pd, &attr), EINVAL, "0x80000000");
    attr = (struct mrd_mr_init_attr){.comp_mask = 1, .addr = self, .length = 8};
    refused(mrd_reg_mr_ex(self->a.pd, &attr), EINVAL, "0x1");
}
