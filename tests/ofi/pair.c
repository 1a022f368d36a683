/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENDS_MAX = 8 };

static struct end *open_ends[ENDS_MAX];

static const uint64_t counted[END_CNTRS] = {FI_SEND,  FI_RECV,        FI_READ,
                                            FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};

uint64_t end_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void end_sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

void end_patience(uint64_t since_ns)
{
    if (end_now_ns() - since_ns > END_PATIENCE_S * 1000000000ull)
        fail_msg("nothing came of it in %d s", END_PATIENCE_S);
}

static void free_info(void *info)
{
    fi_freeinfo(info);
}

/* --------------------------------------------------------------------------------------- opening */

struct fi_info *end_hints(const struct end_options *o)
{
    struct fi_info *hints = end_keep(fi_allocinfo(), free_info);

    hints->fabric_attr->prov_name = strdup("mrd");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = o->caps ? o->caps
                          : FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE | FI_DIRECTED_RECV |
                                FI_MULTI_RECV;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = o->order;
    hints->tx_attr->op_flags = o->tx_flags;
    hints->rx_attr->op_flags = o->rx_flags;
    hints->addr_format = o->format;
    hints->tx_attr->size = o->depth;
    hints->domain_attr->mr_mode = o->mr_mode;
    hints->domain_attr->data_progress = o->progress;
    hints->domain_attr->threading = o->threading;
    return hints;
}

struct fi_info *end_offered(const char *node, const char *service, uint64_t flags,
                            const struct fi_info *hints)
{
    struct fi_info *info;

    assert_int_equal(fi_getinfo(end_version, node, service, flags, hints, &info), 0);
    return end_keep(info, free_info);
}

void end_not_offered(const char *node, const char *service, uint64_t flags,
                     const struct fi_info *hints)
{
    struct fi_info *info;

    assert_int_equal(fi_getinfo(end_version, node, service, flags, hints, &info), -FI_ENODATA);
}

static void open_domain(struct end *e, const struct end *share)
{
    e->shares = share != NULL;
    if (share) {
        e->fabric = share->fabric;
        e->domain = share->domain;
        return;
    }
    assert_int_equal(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), 0);
    assert_int_equal(fi_domain(e->fabric, e->info, &e->domain, NULL), 0);
}

static void open_counters(struct end *e, const struct end_options *o)
{
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = o->wait};

    for (unsigned i = 0; i < END_CNTRS; i++) {
        if (!(o->counts & counted[i]))
            continue;
        assert_int_equal(fi_cntr_open(e->domain, &attr, &e->cntr[i], NULL), 0);
        assert_int_equal(fi_ep_bind(e->ep, &e->cntr[i]->fid, counted[i]), 0);
    }
}

static void forget_ends(void)
{
    memset(open_ends, 0, sizeof(open_ends));
}

void end_open(struct end *e, const struct end_options *o, struct end *share)
{
    struct fi_av_attr av = {.type = FI_AV_MAP};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = o->wait};
    unsigned slot = 0;
    const char *node = o->node ? o->node : "127.0.0.1";
    char port[8];

    if (getenv("FI_MRD_DEVICE"))
        node = NULL; /* an RDMA device has its own */
    snprintf(port, sizeof(port), "%u", o->port);
    int error = fi_getinfo(end_version, node, node && o->port ? port : NULL,
                           node ? FI_SOURCE | FI_NUMERICHOST : 0, end_hints(o), &e->info);
    if (error)
        fail_msg("no provider mrd: %s (FI_PROVIDER_PATH is %s)", fi_strerror(-error),
                 getenv("FI_PROVIDER_PATH"));
    open_domain(e, share);
    assert_int_equal(fi_av_open(e->domain, &av, &e->av, NULL), 0);
    assert_int_equal(fi_cq_open(e->domain, &cq, &e->tx, NULL), 0);
    assert_int_equal(fi_cq_open(e->domain, &cq, &e->rx, NULL), 0);
    assert_int_equal(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
    assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
    assert_int_equal(fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT | o->bind), 0);
    assert_int_equal(fi_ep_bind(e->ep, &e->rx->fid, FI_RECV | o->bind), 0);
    memset(e->cntr, 0, sizeof(e->cntr));
    open_counters(e, o);
    e->eq = NULL;
    e->registered = NULL;
    if (o->events) {
        assert_int_equal(fi_eq_open(e->fabric, &(struct fi_eq_attr){0}, &e->eq, NULL), 0);
        assert_int_equal(fi_ep_bind(e->ep, &e->eq->fid, 0), 0);
    }
    assert_int_equal(fi_enable(e->ep), 0);
    while (slot < ENDS_MAX && open_ends[slot])
        slot++;
    assert_true(slot < ENDS_MAX);
    open_ends[slot] = e;
    kit_after_test(forget_ends);
}

void end_close(struct end *e)
{
    for (unsigned i = 0; i < ENDS_MAX; i++)
        if (open_ends[i] == e)
            open_ends[i] = NULL;
    kit_disown(e);
    while (e->registered)
        end_unregister(e, NULL);
    assert_int_equal(fi_close(&e->ep->fid), 0);
    for (unsigned i = 0; i < END_CNTRS; i++)
        if (e->cntr[i])
            assert_int_equal(fi_close(&e->cntr[i]->fid), 0);
    assert_int_equal(fi_close(&e->rx->fid), 0);
    assert_int_equal(fi_close(&e->tx->fid), 0);
    assert_int_equal(fi_close(&e->av->fid), 0);
    if (e->eq)
        assert_int_equal(fi_close(&e->eq->fid), 0);
    if (!e->shares) {
        assert_int_equal(fi_close(&e->domain->fid), 0);
        assert_int_equal(fi_close(&e->fabric->fid), 0);
    }
    fi_freeinfo(e->info);
    e->ep = NULL;
}

static void close_owned(void *end)
{
    end_close(end);
}

struct end *end_new(const struct end_options *o, struct end *share)
{
    struct end *e = zeros(sizeof(*e));

    end_open(e, o, share);
    kit_own(e, close_owned);
    return e;
}

struct fid_ep *end_beside(struct end *e, struct fi_info *info)
{
    struct fid_ep *ep;

    assert_int_equal(fi_endpoint(e->domain, info, &ep, NULL), 0);
    assert_int_equal(fi_ep_bind(ep, &e->av->fid, 0), 0);
    assert_int_equal(fi_ep_bind(ep, &e->tx->fid, FI_TRANSMIT | FI_RECV), 0);
    return ep;
}

struct sockaddr_in end_name(struct fid_ep *ep)
{
    struct sockaddr_in name;
    size_t bytes = sizeof(name);

    assert_int_equal(fi_getname(&ep->fid, &name, &bytes), 0);
    assert_int_equal(bytes, sizeof(name));
    return name;
}

struct sockaddr_in6 end_name6(struct fid_ep *ep)
{
    struct sockaddr_in6 name;
    size_t bytes = sizeof(name);

    assert_int_equal(fi_getname(&ep->fid, &name, &bytes), 0);
    assert_int_equal(bytes, sizeof(name));
    return name;
}

FIXTURE_SETUP(end)
{
}

FIXTURE_TEARDOWN(end)
{
    if (self->ep)
        end_close(self);
}

struct fid_cntr *end_cntr(const struct end *e, uint64_t count)
{
    unsigned i = 0;

    while (i < END_CNTRS && counted[i] != count)
        i++;
    assert_true(i < END_CNTRS && e->cntr[i]);
    return e->cntr[i];
}

fi_addr_t end_meet(struct end *e, const struct end *other)
{
    uint8_t name[FI_NAME_MAX];
    size_t bytes = sizeof(name);
    fi_addr_t addr;

    assert_int_equal(fi_getname(&other->ep->fid, name, &bytes), 0);
    assert_int_equal(fi_av_insert(e->av, name, 1, &addr, 0, NULL), 1);
    return addr;
}

static void meet_each_other(struct pair *p)
{
    p->a.to = end_meet(&p->a, &p->b);
    p->b.to = end_meet(&p->b, &p->a);
}

void pair_open_each(struct pair *p, const struct end_options *a, const struct end_options *b)
{
    end_open(&p->a, a, NULL);
    end_open(&p->b, b, NULL);
    meet_each_other(p);
}

void pair_open(struct pair *p, const struct end_options *o)
{
    pair_open_each(p, o, o);
}

void pair_open_shared(struct pair *p, const struct end_options *o)
{
    end_open(&p->a, o, NULL);
    end_open(&p->b, o, &p->a);
    meet_each_other(p);
}

void pair_close(struct pair *p)
{
    end_close(&p->b);
    end_close(&p->a);
}

FIXTURE_SETUP(pair)
{
}

static void close_open(struct pair *p)
{
    if (p->b.ep)
        end_close(&p->b);
    if (p->a.ep)
        end_close(&p->a);
}

FIXTURE_TEARDOWN(pair)
{
    close_open(self);
}

static void open_plain(struct pair *p)
{
    pair_open(p, &(struct end_options){0});
}

FIXTURE_FROM(plain, open_plain, close_open);

static void open_ordered(struct pair *p)
{
    pair_open(p, &(struct end_options){.order = FI_ORDER_SAS});
}

FIXTURE_FROM(ordered, open_ordered, close_open);

static void open_region(struct pair *p)
{
    open_plain(p);
    pair_register(p, REGION_BYTES, REGION_KEY);
}

FIXTURE_FROM(region, open_region, close_open);

/* -------------------------------------------------------------------------------------- messages */

ssize_t end_sendmsg(struct end *e, const void *from, size_t len, fi_addr_t to, void *context,
                    uint64_t flags)
{
    struct iovec iov = {(void *)(uintptr_t)from, len};
    struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = to, .context = context};

    return fi_sendmsg(e->ep, &msg, flags);
}

ssize_t end_recvmsg(struct end *e, void *into, size_t len, fi_addr_t from, void *context,
                    uint64_t flags)
{
    struct iovec iov = {into, len};
    struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = from, .context = context};

    return fi_recvmsg(e->ep, &msg, flags);
}

void end_set_min_multi_recv(struct end *e, size_t bytes)
{
    assert_int_equal(
        fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &bytes, sizeof(bytes)), 0);
}

/* -------------------------------------------------------------------------------------- progress */

void ends_drive(void)
{
    for (unsigned i = 0; i < ENDS_MAX; i++) {
        if (!open_ends[i])
            continue;
        (void)fi_cq_read(open_ends[i]->tx, NULL, 0);
        (void)fi_cq_read(open_ends[i]->rx, NULL, 0);
    }
}

void ends_drive_for(unsigned ms)
{
    uint64_t since_ns = end_now_ns();

    while (end_now_ns() - since_ns < ms * 1000000ull)
        ends_drive();
}

static void take_error(struct fid_cq *cq, struct entry *entry)
{
    struct fi_cq_err_entry error = {0};

    assert_int_equal(fi_cq_readerr(cq, &error, 0), 1);
    entry->ok = (struct fi_cq_tagged_entry){.op_context = error.op_context,
                                            .flags = error.flags,
                                            .len = error.len,
                                            .buf = error.buf,
                                            .data = error.data,
                                            .tag = error.tag};
    entry->err = error.err;
    entry->olen = error.olen;
    fi_cq_strerror(cq, error.prov_errno, error.err_data, entry->text, sizeof(entry->text));
}

bool end_take(struct fid_cq *cq, struct entry *entry)
{
    *entry = (struct entry){.src = FI_ADDR_NOTAVAIL};
    ssize_t n = fi_cq_readfrom(cq, &entry->ok, 1, &entry->src);
    if (n == -FI_EAGAIN)
        return false;
    entry->bare = n < 0 && n != -FI_EAVAIL;
    if (n == -FI_EAVAIL)
        take_error(cq, entry);
    else if (entry->bare)
        entry->err = (int)-n;
    else
        assert_int_equal(n, 1);
    return true;
}

struct entry end_next(struct fid_cq *cq)
{
    struct entry entry;

    UNTIL(end_take(cq, &entry));
    return entry;
}

struct entry end_ok(struct fid_cq *cq, const void *context)
{
    struct entry entry = end_next(cq);

    if (entry.err)
        fail_msg("%s (%s)", fi_strerror(entry.err), entry.text);
    assert_ptr_equal(entry.ok.op_context, context);
    return entry;
}

struct entry end_fails(struct fid_cq *cq, const void *context, int err)
{
    struct entry entry = end_next(cq);

    assert_int_equal(entry.err, err);
    assert_ptr_equal(entry.ok.op_context, context);
    return entry;
}

void end_fails_bare(struct fid_cq *cq, int err)
{
    struct entry entry = end_next(cq);

    assert_true(entry.bare);
    assert_int_equal(entry.err, err);
}

void end_silent(struct fid_cq *cq)
{
    uint64_t since_ns = end_now_ns();
    struct entry entry;

    while (end_now_ns() - since_ns < SILENCE_MS * 1000000ull) {
        ends_drive();
        if (end_take(cq, &entry))
            fail_msg("an entry of %zu bytes, error %d %s, where there is none", entry.ok.len,
                     entry.err, entry.text);
    }
}
