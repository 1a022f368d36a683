/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callers whose structs are shorter or longer than the library's, as if they had been compiled
 * against older or newer headers: each call that is told a size reads and writes so much.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mrd/mrd.h"
#include "mrd/sim.h"
#include "tests/kit/kit.h"
#include "transport/sized.h"

enum { JUNK = 0xa5, LATER_BYTES = 32 };

#define FOR_EACH(row, rows) for (size_t row = 0; row < sizeof(rows) / sizeof((rows)[0]); row++)

/* The last `bytes` before memory that cannot be read or written; the test gives it back. */
struct guarded {
    uint8_t *start;
    size_t bytes;
};

static void *guarded_init(struct guarded *g, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;

    g->bytes = room + page;
    g->start = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g->start != MAP_FAILED);
    assert_int_equal(mprotect(g->start + room, page, PROT_NONE), 0);
    return memset(g->start + room - bytes, JUNK, bytes);
}

static void guarded_fini(struct guarded *g)
{
    assert_int_equal(munmap(g->start, g->bytes), 0);
}

static bool all(const uint8_t *bytes, size_t num, int value)
{
    for (size_t i = 0; i < num; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

/* The last error must say this of the struct: "NAME of NUMBER bytes", "NAME: byte NUMBER is set". */
static void assert_said(const char *name, const char *before, size_t number, const char *after)
{
    char said[160];

    snprintf(said, sizeof(said), "%s%s%zu%s", name, before, number, after);
    if (!strstr(mrd_last_error(), said))
        fail_msg("\"%s\" does not say \"%s\"", mrd_last_error(), said);
}

/* A context that has sent to a peer. */
FIXTURE(sender)
{
    struct mrd_sim *sim;
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_ah *ah;
};

FIXTURE_SETUP(sender)
{
    struct mrd_send_wr *bad, send = {.opcode = MRD_WR_SEND, .ud = {.remote_qpn = 16}};

    self->sim = mrd_sim_create(&(struct mrd_sim_attr){.seed = 1});
    self->context = mrd_open_device(mrd_sim_device(self->sim, 0), NULL);
    assert_non_null(self->context);
    self->pd = mrd_alloc_pd(self->context);
    self->cq = mrd_create_cq(self->context, 4, NULL);
    self->qp = mrd_create_qp(self->pd, &(struct mrd_qp_init_attr){.send_cq = self->cq,
                                                                  .recv_cq = self->cq,
                                                                  .cap = {.max_send_wr = 1}});
    assert_non_null(self->qp);
    self->ah = mrd_create_ah(self->pd, "sim:1");
    assert_non_null(self->ah);
    send.ud.ah = self->ah;
    assert_int_equal(mrd_post_send(self->qp, &send, &bad), 0);
    mrd_sim_run_until(self->sim, 100000);
}

FIXTURE_TEARDOWN(sender)
{
    assert_int_equal(mrd_destroy_qp(self->qp), 0);
    assert_int_equal(mrd_destroy_ah(self->ah), 0);
    assert_int_equal(mrd_destroy_cq(self->cq), 0);
    assert_int_equal(mrd_dealloc_pd(self->pd), 0);
    assert_int_equal(mrd_close_device(self->context), 0);
    mrd_sim_destroy(self->sim);
}

/* ---------------------------------------------------------------------- structs of the caller's */

/* Makes an object and destroys it: 0, or -errno if it was not made. */
#define MADE(object, destroy)                                                                      \
    do {                                                                                           \
        errno = 0;                                                                                 \
        void *made = (object);                                                                     \
                                                                                                   \
        if (!made)                                                                                 \
            return -errno;                                                                         \
        assert_int_equal(destroy(made), 0);                                                        \
        return 0;                                                                                  \
    } while (0)

static int destroy_sim(struct mrd_sim *sim)
{
    mrd_sim_destroy(sim);
    return 0;
}

static int make_context(struct sender *f, void *attr, size_t size)
{
    MADE(mrd_open_device_sized(mrd_sim_device(f->sim, 1), attr, size), mrd_close_device);
}

static int make_qp(struct sender *f, void *attr, size_t size)
{
    MADE(mrd_create_qp_sized(f->pd, attr, size), mrd_destroy_qp);
}

static int make_cq(struct sender *f, void *attr, size_t size)
{
    MADE(mrd_create_cq_ex_sized(f->context, attr, size), mrd_destroy_cq);
}

static int make_channel(struct sender *f, void *attr, size_t size)
{
    MADE(mrd_create_comp_channel_ex_sized(f->context, attr, size), mrd_destroy_comp_channel);
}

static int make_srq(struct sender *f, void *attr, size_t size)
{
    MADE(mrd_create_srq_sized(f->pd, attr, size), mrd_destroy_srq);
}

static int make_ah(struct sender *f, void *attr, size_t size)
{
    MADE(mrd_create_ah_ex_sized(f->pd, attr, size), mrd_destroy_ah);
}

static int make_mr(struct sender *f, void *attr, size_t size)
{
    MADE(mrd_reg_mr_ex_sized(f->pd, attr, size), mrd_dereg_mr);
}

static int make_sim(struct sender *f, void *attr, size_t size)
{
    (void)f;
    MADE(mrd_sim_create_sized(attr, size), destroy_sim);
}

struct make {
    const struct mrd_sized *kind;
    int (*call)(struct sender *f, void *attr, size_t size);
    const void *attr; /* valid */
};

/* Makes an object with `known` bytes of the attributes and zeros up to `size`; `at` is set to 1. */
static int make_of_size(struct sender *f, const struct make *make, size_t size, size_t at)
{
    size_t known = size < make->kind->bytes ? size : make->kind->bytes;
    struct guarded guarded;
    uint8_t *attr = guarded_init(&guarded, size);

    memset(attr, 0, size);
    memcpy(attr, make->attr, known);
    if (at < size)
        attr[at] = 1;

    int ret = make->call(f, attr, size);

    guarded_fini(&guarded);
    return ret;
}

TEST_F(sender, sized__what_the_caller_fills)
{
    char memory[8];
    const struct make makes[] = {
        {&mrd_sized_context_attr, make_context, &(struct mrd_context_attr){.paths = 3}},
        {&mrd_sized_qp_init_attr, make_qp,
         &(struct mrd_qp_init_attr){
             .send_cq = self->cq, .recv_cq = self->cq, .cap.max_recv_wr = 1}},
        {&mrd_sized_cq_init_attr, make_cq, &(struct mrd_cq_init_attr){.cqe = 3}},
        {&mrd_sized_comp_channel_init_attr, make_channel,
         &(struct mrd_comp_channel_init_attr){.flags = MRD_COMP_CHANNEL_EVENTS_ONLY}},
        {&mrd_sized_srq_init_attr, make_srq, &(struct mrd_srq_init_attr){.attr.max_wr = 2}},
        {&mrd_sized_ah_init_attr, make_ah, &(struct mrd_ah_init_attr){.address = "sim:1"}},
        {&mrd_sized_mr_init_attr, make_mr,
         &(struct mrd_mr_init_attr){.addr = memory, .length = sizeof(memory)}},
        {&mrd_sized_sim_attr, make_sim, &(struct mrd_sim_attr){.hosts = 3}},
    };

    FOR_EACH(i, makes)
    {
        const struct mrd_sized *kind = makes[i].kind;
        size_t longer = kind->bytes + LATER_BYTES;

        print_message("%s\n", kind->name);
        /* An older caller, one of today, and a newer one that sets nothing new. */
        assert_int_equal(make_of_size(self, &makes[i], kind->first_bytes, SIZE_MAX), 0);
        assert_int_equal(make_of_size(self, &makes[i], kind->bytes, SIZE_MAX), 0);
        assert_int_equal(make_of_size(self, &makes[i], longer, SIZE_MAX), 0);
        /* A newer caller sets what this library does not have: the first byte of it, the last. */
        assert_int_equal(make_of_size(self, &makes[i], longer, kind->bytes), -EINVAL);
        assert_said(kind->name, ": byte ", kind->bytes, " is set");
        assert_int_equal(make_of_size(self, &makes[i], longer, longer - 1), -EINVAL);
        assert_said(kind->name, ": byte ", longer - 1, " is set");
        /* No version has these sizes. */
        assert_int_equal(make_of_size(self, &makes[i], kind->first_bytes - 1, SIZE_MAX), -EINVAL);
        assert_said(kind->name, " of ", kind->first_bytes - 1, " bytes");
        assert_int_equal(make_of_size(self, &makes[i], 4097, SIZE_MAX), -EINVAL);
        assert_said(kind->name, " of ", 4097, " bytes");
    }
}

/* Macros pass the size of today's structs; the functions behind them know version 0.1 only. */
TEST_F(sender, sized__macros_and_functions)
{
    const struct mrd_device *device = mrd_sim_device(self->sim, 1);
    struct mrd_context_attr open = {.dscp = 64};
    struct mrd_qp_init_attr create = {
        .send_cq = self->cq, .recv_cq = self->cq, .events = 1ull << 40};
    struct mrd_sim_attr sim_attr = {.reserved = 1};

    assert_null(mrd_open_device(device, &open));
    struct mrd_context *context = (mrd_open_device)(device, &open);
    assert_non_null(context);
    assert_int_equal(mrd_close_device(context), 0);

    assert_null(mrd_create_qp(self->pd, &create));
    struct mrd_qp *qp = (mrd_create_qp)(self->pd, &create);
    assert_non_null(qp);
    assert_int_equal(mrd_destroy_qp(qp), 0);

    assert_null(mrd_sim_create(&sim_attr));
    struct mrd_sim *sim = (mrd_sim_create)(&sim_attr);
    assert_non_null(sim);
    mrd_sim_destroy(sim);
}

/* --------------------------------------------------------------------- structs that are filled */

static int fill_device(struct sender *f, void *attr, size_t size)
{
    return mrd_query_device(f->context, attr, size);
}

static int fill_context(struct sender *f, void *attr, size_t size)
{
    return mrd_query_context(f->context, attr, size);
}

static int fill_peer(struct sender *f, void *attr, size_t size)
{
    return mrd_query_peer(f->ah, attr, size);
}

static int fill_peer_by_id(struct sender *f, void *attr, size_t size)
{
    struct mrd_peer_attr peer;

    assert_int_equal(mrd_query_peer(f->ah, &peer, sizeof(peer)), 0);
    return mrd_query_peer_id(f->context, peer.peer_id, attr, size);
}

static int fill_path(struct sender *f, void *attr, size_t size)
{
    return mrd_query_path(f->ah, 0, attr, size);
}

static int fill_qp(struct sender *f, void *attr, size_t size)
{
    return mrd_query_qp(f->qp, attr, size);
}

static int fill_counter(struct sender *f, void *attr, size_t size)
{
    int num = mrd_query_counters_sized(f->context, attr, 1, size);

    return num > 1 ? 0 : num;
}

static int fill_link_stats(struct sender *f, void *attr, size_t size)
{
    return mrd_sim_link_stats_sized(f->sim, 0, 1, -1, attr, size);
}

static int fill_one_link(struct sender *f, void *attr, size_t size)
{
    return mrd_sim_query_link_sized(f->sim, 0, NULL, attr, size);
}

struct fill {
    const struct mrd_sized *kind;
    int (*call)(struct sender *f, void *attr, size_t size);
};

/* Fills a struct of that size: it begins as the library's does, and is zero behind that. */
static void check_fill_of_size(struct sender *f, const struct fill *fill, size_t size)
{
    size_t known = size < fill->kind->bytes ? size : fill->kind->bytes;
    struct guarded whole, guarded;
    uint8_t *expected = guarded_init(&whole, fill->kind->bytes);
    uint8_t *attr = guarded_init(&guarded, size);

    assert_int_equal(fill->call(f, expected, fill->kind->bytes), 0);
    assert_int_equal(fill->call(f, attr, size), 0);
    assert_memory_equal(attr, expected, known);
    assert_true(all(attr + known, size - known, 0));
    guarded_fini(&whole);
    guarded_fini(&guarded);
}

/* A size that no version has: nothing is written. */
static void check_fill_refused(struct sender *f, const struct fill *fill, size_t size)
{
    struct guarded guarded;
    uint8_t *attr = guarded_init(&guarded, size);

    assert_int_equal(fill->call(f, attr, size), -EINVAL);
    assert_said(fill->kind->name, " of ", size, " bytes");
    assert_true(all(attr, size, JUNK));
    guarded_fini(&guarded);
}

TEST_F(sender, sized__what_the_library_fills)
{
    static const struct fill fills[] = {
        {&mrd_sized_device_attr, fill_device}, {&mrd_sized_context_info, fill_context},
        {&mrd_sized_peer_attr, fill_peer},     {&mrd_sized_peer_attr, fill_peer_by_id},
        {&mrd_sized_path_attr, fill_path},     {&mrd_sized_qp_init_attr, fill_qp},
        {&mrd_sized_counter, fill_counter},    {&mrd_sized_sim_stats, fill_link_stats},
        {&mrd_sized_sim_stats, fill_one_link},
    };

    FOR_EACH(i, fills)
    {
        const struct mrd_sized *kind = fills[i].kind;

        print_message("%s\n", kind->name);
        check_fill_of_size(self, &fills[i], kind->first_bytes);
        check_fill_of_size(self, &fills[i], kind->bytes);
        check_fill_of_size(self, &fills[i], kind->bytes + LATER_BYTES);
        check_fill_refused(self, &fills[i], kind->first_bytes - 1);
        check_fill_refused(self, &fills[i], 4097);
    }
}

/* Each element of the array has its place, whatever the library's element is. */
TEST_F(sender, sized__arrays_of_counters)
{
    struct {
        struct mrd_counter counter;
        uint64_t later[4];
    } longer[2];
    struct mrd_counter plain[2];

    memset(longer, JUNK, sizeof(longer));
    assert_true(mrd_query_counters(self->context, plain, 2) > 2);
    assert_true(mrd_query_counters_sized(self->context, &longer[0].counter, 2, sizeof(longer[0])) >
                2);
    FOR_EACH(i, longer)
    {
        assert_ptr_equal(longer[i].counter.name, plain[i].name);
        assert_true(all((const uint8_t *)longer[i].later, sizeof(longer[i].later), 0));
    }
}
