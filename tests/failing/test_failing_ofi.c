/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each allocation, thread and system call of the libfabric provider, and of the library below it,
 * fails: two endpoints make each kind of object and exchange each kind of message.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "tests/failing/fail.h"
#include "tests/kit/kit.h"

enum {
    TAGGED = 3, /* messages whose receives are posted before */
    LATE = 3,   /* whose receives are posted after they came; the last one is injected */
    SLOTS = TAGGED + LATE,
    SLOT_BYTES = 200000,
    WRITE_AT = SLOTS * SLOT_BYTES,
    READ_AT = WRITE_AT + SLOT_BYTES,
    SUM_AT = READ_AT + SLOT_BYTES,
    OLD_AT = SUM_AT + 8,
    OPERAND_AT = OLD_AT + 8,
    OUT_AT = OPERAND_AT + 8,
    BYTES = OUT_AT + SLOT_BYTES,
    SENDS = TAGGED + LATE - 1 + 3, /* an injected one has no completion; write, read, atomic */
    KEY = 7,
    PATIENCE_S = 20,
    TRIES_MAX = 100000,
    LATE_NS = 2000000,
    PERSIST_NS = 20000000,
};
static const size_t lengths[SLOTS] = {100, 40000, SLOT_BYTES, 64, SLOT_BYTES, 500};

struct end {
    unsigned index;
    struct fi_info *hints, *info;
    struct fid_fabric *fabric;
    struct fid_eq *eq;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_cntr *cntr;
    struct fid_mr *mr;
    struct fid_ep *ep;
    struct fid_poll *poll;
    unsigned bound;
    bool enabled;
    uint8_t name[FI_NAME_MAX];
    size_t name_bytes;
    fi_addr_t to;
    uint8_t *memory;
    unsigned posted_receives, posted_sends, sent, received;
    uint8_t context[SLOTS + 3]; /* an address for each request */
    unsigned again;             /* bits: requests that failed for want of memory */
};

struct scene {
    struct end end[2];
    enum fi_progress progress;
    bool gives_up, over;
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct end *other_of(struct scene *s, struct end *e)
{
    return &s->end[!e->index];
}

static uint8_t byte_of(unsigned end, size_t at)
{
    return (uint8_t)(at * 7 + at / 251 + end * 131);
}

/* -------------------------------------------------------------------------------------- making */

static int get_info(struct scene *s, struct end *e)
{
    (void)s;
    return fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), "127.0.0.1", NULL,
                      FI_SOURCE | FI_NUMERICHOST, e->hints, &e->info);
}

static int open_fabric(struct scene *s, struct end *e)
{
    (void)s;
    return fi_fabric(e->info->fabric_attr, &e->fabric, NULL);
}

static int open_eq(struct scene *s, struct end *e)
{
    (void)s;
    return fi_eq_open(e->fabric, &(struct fi_eq_attr){.wait_obj = FI_WAIT_FD}, &e->eq, NULL);
}

static int open_domain(struct scene *s, struct end *e)
{
    (void)s;
    return fi_domain(e->fabric, e->info, &e->domain, NULL);
}

static int open_av(struct scene *s, struct end *e)
{
    (void)s;
    return fi_av_open(e->domain, &(struct fi_av_attr){.type = FI_AV_MAP}, &e->av, NULL);
}

static int open_cq(struct scene *s, struct end *e)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD, .size = 2};

    (void)s;
    return fi_cq_open(e->domain, &attr, &e->cq, NULL);
}

static int open_cntr(struct scene *s, struct end *e)
{
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};

    (void)s;
    return fi_cntr_open(e->domain, &attr, &e->cntr, NULL);
}

static int open_poll(struct scene *s, struct end *e)
{
    int error = 0;

    (void)s;
    if (!e->poll)
        error = fi_poll_open(e->domain, &(struct fi_poll_attr){0}, &e->poll);
    return error ? error : fi_poll_add(e->poll, &e->cq->fid, 0);
}

static int register_memory(struct scene *s, struct end *e)
{
    (void)s;
    return fi_mr_reg(e->domain, e->memory, BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
                     &e->mr, NULL);
}

static int open_endpoint(struct scene *s, struct end *e)
{
    (void)s;
    return fi_endpoint(e->domain, e->info, &e->ep, NULL);
}

static int bind_endpoint(struct scene *s, struct end *e)
{
    const struct {
        struct fid *fid;
        uint64_t flags;
    } to[] = {{&e->av->fid, 0},
              {&e->cq->fid, FI_TRANSMIT | FI_RECV},
              {&e->cntr->fid, FI_WRITE},
              {&e->eq->fid, 0}};

    (void)s;
    while (e->bound < sizeof(to) / sizeof(to[0])) {
        int error = fi_ep_bind(e->ep, to[e->bound].fid, to[e->bound].flags);

        if (error)
            return error;
        e->bound++;
    }
    return 0;
}

static int enable(struct scene *s, struct end *e)
{
    int error = fi_enable(e->ep);

    (void)s;
    e->enabled = !error;
    return error;
}

static int get_name(struct scene *s, struct end *e)
{
    (void)s;
    e->name_bytes = sizeof(e->name);
    return fi_getname(&e->ep->fid, e->name, &e->name_bytes);
}

static int insert(struct scene *s, struct end *e)
{
    int num = fi_av_insert(e->av, other_of(s, e)->name, 1, &e->to, 0, NULL);

    /* An address that could not be inserted is told by the number. */
    return num == 1 ? 0 : num < 0 ? num : -FI_ENOMEM;
}

/* ------------------------------------------------------------------------------------ messages */

static int post_receives(struct scene *s, struct end *e, unsigned until)
{
    (void)s;
    while (e->posted_receives < until) {
        unsigned i = e->posted_receives;
        uint8_t *into = e->memory + (size_t)i * SLOT_BYTES;
        ssize_t error = fi_trecv(e->ep, into, SLOT_BYTES, NULL, FI_ADDR_UNSPEC, i, 0, into);

        if (error)
            return (int)error;
        e->posted_receives++;
    }
    return 0;
}

static int post_tagged(struct scene *s, struct end *e)
{
    return post_receives(s, e, TAGGED);
}

static int post_late(struct scene *s, struct end *e)
{
    return post_receives(s, e, SLOTS);
}

static ssize_t post_send(struct scene *s, struct end *e, unsigned i)
{
    uint8_t *out = e->memory + OUT_AT;
    void *operand = e->memory + OPERAND_AT, *old = e->memory + OLD_AT;

    (void)s;
    if (i == SLOTS - 1)
        return fi_tinject(e->ep, out, lengths[i], e->to, i);
    if (i < SLOTS)
        return fi_tsend(e->ep, out, lengths[i], NULL, e->to, i, &e->context[i]);
    if (i == SLOTS)
        return fi_write(e->ep, out, SLOT_BYTES, NULL, e->to, WRITE_AT, KEY, &e->context[i]);
    if (i == SLOTS + 1)
        return fi_read(e->ep, e->memory + READ_AT, SLOT_BYTES, NULL, e->to, OUT_AT, KEY,
                       &e->context[i]);
    return fi_fetch_atomic(e->ep, operand, 1, NULL, old, NULL, e->to, SUM_AT, KEY, FI_UINT64,
                           FI_SUM, &e->context[i]);
}

static int post_sends(struct scene *s, struct end *e)
{
    while (e->posted_sends < SLOTS + 3) {
        ssize_t error = post_send(s, e, e->posted_sends);

        if (error)
            return (int)error;
        e->posted_sends++;
    }
    return 0;
}

/* A request that failed for want of memory is posted again. A message that came is not to fail. */
static void take_error(struct end *e)
{
    struct fi_cq_err_entry error = {0};
    char text[256] = "";
    ptrdiff_t i;

    fi_cq_readerr(e->cq, &error, 0);
    i = (uint8_t *)error.op_context - e->context;
    if (error.err == FI_ENOMEM && i >= 0 && i < SLOTS + 3) {
        e->again |= 1u << i;
        return;
    }
    fi_cq_strerror(e->cq, error.prov_errno, error.err_data, text, sizeof(text));
    fail_msg("after %s failed: a completion of end %u: %s, %s", fail_last(), e->index,
             fi_strerror(error.err), text);
}

static void post_again(struct scene *s, struct end *e)
{
    for (unsigned i = 0; i < SLOTS + 3; i++)
        if (e->again & 1u << i && !post_send(s, e, i))
            e->again &= ~(1u << i);
}

static void take(struct end *e)
{
    struct fi_cq_tagged_entry entry[4];
    ssize_t num = fi_cq_read(e->cq, entry, 4);

    if (num == -FI_EAVAIL)
        take_error(e);
    else if (num < 0 && num != -FI_EAGAIN)
        fail_msg("after %s failed: fi_cq_read: %s", fail_last(), fi_strerror((int)-num));
    for (ssize_t i = 0; i < num; i++) {
        if (!(entry[i].flags & FI_RECV)) {
            e->sent++;
            continue;
        }
        e->received++;
        assert_int_equal(entry[i].len, lengths[entry[i].tag]);
    }
}

static void compare(struct scene *s, struct end *e)
{
    const uint8_t *out = other_of(s, e)->memory + OUT_AT;
    uint64_t value;

    for (unsigned i = 0; i < SLOTS; i++)
        assert_memory_equal(e->memory + (size_t)i * SLOT_BYTES, out, lengths[i]);
    assert_memory_equal(e->memory + WRITE_AT, out, SLOT_BYTES);
    assert_memory_equal(e->memory + READ_AT, out, SLOT_BYTES);
    memcpy(&value, e->memory + SUM_AT, sizeof(value));
    assert_int_equal(value, 5);
    memcpy(&value, e->memory + OLD_AT, sizeof(value));
    assert_int_equal(value, 0);
    assert_int_equal(fi_cntr_read(e->cntr), 1); /* the write */
}

/* ---------------------------------------------------------------------------------------- scene */

struct step {
    const char *name;
    int (*run)(struct scene *s, struct end *e);
};

static const struct step make[] = {
    {"fi_getinfo", get_info},       {"fi_fabric", open_fabric},    {"fi_eq_open", open_eq},
    {"fi_domain", open_domain},     {"fi_av_open", open_av},       {"fi_cq_open", open_cq},
    {"fi_cntr_open", open_cntr},    {"fi_poll_open", open_poll},   {"fi_mr_reg", register_memory},
    {"fi_endpoint", open_endpoint}, {"fi_ep_bind", bind_endpoint}, {"fi_enable", enable},
    {"fi_getname", get_name},
};
static const struct step before[] = {{"fi_av_insert", insert}, {"fi_trecv", post_tagged}};
static const struct step sends[] = {{"fi_tsend and others", post_sends}};
static const struct step late[] = {{"fi_trecv", post_late}};

/* While messages are under way, posts say FI_EAGAIN; libfabric hides why fi_getinfo() failed. */
static bool is_allowed(const struct step *step, int error, int made)
{
    return error == -made || error == -FI_EAGAIN || (step->run == get_info && error == -FI_ENODATA);
}

static void drive(struct scene *s)
{
    take(&s->end[0]);
    take(&s->end[1]);
}

static void run(struct scene *s, const struct step *step, struct end *e, int made)
{
    for (unsigned tries = 0; !s->over; tries++) {
        int error = step->run(s, e);

        if (!error)
            return;
        if (getenv("FAILING_VERBOSE"))
            fprintf(stderr, "%s: %s: %s\n", fail_last(), step->name, fi_strerror(-error));
        if (!is_allowed(step, error, made))
            fail_msg("%s after %s failed: %s", step->name, fail_last(), fi_strerror(-error));
        s->over = s->gives_up && (error != -FI_EAGAIN || !s->end[1].enabled);
        if (tries > TRIES_MAX)
            fail_msg("%s after %s failed: fails for ever", step->name, fail_last());
        if (s->end[1].enabled)
            drive(s);
    }
}

static void run_all(struct scene *s, const struct step *steps, size_t num, int made)
{
    for (unsigned i = 0; i < 2; i++)
        for (size_t step = 0; step < num && !s->over; step++)
            run(s, &steps[step], &s->end[i], made);
}
#define RUN_ALL(s_, steps_) run_all(s_, steps_, sizeof(steps_) / sizeof((steps_)[0]), made)

static bool is_done(const struct end *e)
{
    return e->sent == SENDS && e->received == SLOTS;
}

static void exchange(struct scene *s, int made)
{
    uint64_t since_ns = now_ns();
    bool posted = false;

    while (!s->over && !(posted && is_done(&s->end[0]) && is_done(&s->end[1]))) {
        uint64_t for_ns = now_ns() - since_ns;

        drive(s);
        post_again(s, &s->end[0]);
        post_again(s, &s->end[1]);
        if (!posted && for_ns > LATE_NS) {
            RUN_ALL(s, late);
            posted = true;
        }
        if (s->gives_up && for_ns > PERSIST_NS)
            fail_end();
        if (for_ns > PATIENCE_S * 1000000000ull)
            fail_msg("after %s failed: %u and %u of %u sent, %u and %u of %u received", fail_last(),
                     s->end[0].sent, s->end[1].sent, SENDS, s->end[0].received, s->end[1].received,
                     SLOTS);
    }
}

static void close_one(struct fid *fid)
{
    if (fid)
        assert_int_equal(fi_close(fid), 0);
}

static void release(struct end *e)
{
    close_one(e->ep ? &e->ep->fid : NULL);
    close_one(e->mr ? &e->mr->fid : NULL);
    close_one(e->poll ? &e->poll->fid : NULL);
    close_one(e->cntr ? &e->cntr->fid : NULL);
    close_one(e->cq ? &e->cq->fid : NULL);
    close_one(e->av ? &e->av->fid : NULL);
    close_one(e->domain ? &e->domain->fid : NULL);
    close_one(e->eq ? &e->eq->fid : NULL);
    close_one(e->fabric ? &e->fabric->fid : NULL);
    fi_freeinfo(e->info);
}

static void prepare(struct scene *s, unsigned i)
{
    struct end *e = &s->end[i];
    uint64_t five = 5;

    e->index = i;
    e->memory = calloc(1, BYTES);
    e->hints = fi_allocinfo();
    assert_true(e->memory && e->hints);
    for (size_t at = 0; at < SLOT_BYTES; at++)
        e->memory[OUT_AT + at] = byte_of(i, at);
    memcpy(e->memory + OPERAND_AT, &five, sizeof(five));
    e->hints->fabric_attr->prov_name = strdup("mrd");
    e->hints->ep_attr->type = FI_EP_RDM;
    e->hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    e->hints->domain_attr->data_progress = s->progress;
}

static uint32_t play(const struct fail_plan *plan, bool gives_up, enum fi_progress progress)
{
    struct scene s = {.gives_up = gives_up, .progress = progress};
    const int made = plan->error;
    uint32_t descriptors = fail_descriptors(), blocks;

    fail_mark();

    prepare(&s, 0);
    prepare(&s, 1);
    fail_begin(plan);
    RUN_ALL(&s, make);
    RUN_ALL(&s, before);
    RUN_ALL(&s, sends);
    exchange(&s, made);
    for (unsigned i = 0; !s.over && i < 2; i++)
        compare(&s, &s.end[i]);
    release(&s.end[1]);
    release(&s.end[0]);

    uint32_t failed = fail_end();

    blocks = fail_blocks();
    if (blocks || fail_descriptors() != descriptors)
        fail_msg("after %s failed: %u blocks are left, and %d descriptors", fail_last(), blocks,
                 (int)(fail_descriptors() - descriptors));
    for (unsigned i = 0; i < 2; i++) {
        fi_freeinfo(s.end[i].hints);
        free(s.end[i].memory);
    }
    return failed;
}

/* Returns how many calls there are that can fail. */
static uint32_t sweep(uint64_t calls, int error, bool gives_up, enum fi_progress progress)
{
    uint32_t first = 0;

    while (play(
        &(struct fail_plan){
            .calls = calls, .error = error, .first = first, .num = gives_up ? 0 : 1},
        gives_up, progress))
        first++;
    return first;
}

void kit_before_each(void)
{
    fail_end();
}

/* The provider stays loaded, with what it keeps: it is watched from its second use on. */
TEST(failing_ofi__nothing)
{
    const struct fail_plan none = {.calls = 0};

    play(&none, false, FI_PROGRESS_MANUAL);
    fail_watch(false);
    play(&none, false, FI_PROGRESS_MANUAL);
}

TEST(failing_ofi__memory_once)
{
    assert_in_range(sweep(FAIL_MEMORY, ENOMEM, false, FI_PROGRESS_MANUAL), 100, 10000);
}

TEST(failing_ofi__memory_once_with_threads)
{
    assert_in_range(sweep(FAIL_MEMORY, ENOMEM, false, FI_PROGRESS_AUTO), 100, 10000);
}

TEST(failing_ofi__memory_for_good)
{
    assert_in_range(sweep(FAIL_MEMORY, ENOMEM, true, FI_PROGRESS_AUTO), 100, 10000);
}

TEST(failing_ofi__threads)
{
    assert_in_range(sweep(FAIL_BIT(FAIL_pthread_create), EAGAIN, false, FI_PROGRESS_AUTO), 1, 100);
    assert_in_range(sweep(FAIL_BIT(FAIL_pthread_create), EAGAIN, true, FI_PROGRESS_AUTO), 1, 100);
}

TEST(failing_ofi__descriptors)
{
    const uint64_t calls = FAIL_BIT(FAIL_socket) | FAIL_BIT(FAIL_eventfd) |
                           FAIL_BIT(FAIL_epoll_create1) | FAIL_BIT(FAIL_timerfd_create) |
                           FAIL_BIT(FAIL_open) | FAIL_BIT(FAIL_fopen);

    assert_in_range(sweep(calls, EMFILE, false, FI_PROGRESS_AUTO), 10, 10000);
    assert_in_range(sweep(calls, EMFILE, true, FI_PROGRESS_MANUAL), 10, 10000);
}
