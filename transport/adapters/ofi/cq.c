/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/cq.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/nosys.h"

enum {
    ENTRIES_FIRST = 16,    /* room at first, at least */
    ENTRIES_MAX = 1 << 22, /* an application that takes none overruns the queue then */
};

/* What fi_cq_read() gives: each format is the beginning of the next. */
static_assert(offsetof(struct fi_cq_tagged_entry, op_context) == 0, "");
static_assert(offsetof(struct fi_cq_tagged_entry, len) == offsetof(struct fi_cq_msg_entry, len),
              "");
static_assert(offsetof(struct fi_cq_tagged_entry, data) == offsetof(struct fi_cq_data_entry, data),
              "");

static struct mrd_ofi_cq *cq_of(struct fid_cq *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_cq, fid);
}

/* ------------------------------------------------------------------------------------- the ring */

static struct mrd_ofi_comp *entry_at(const struct mrd_ofi_cq *cq, uint32_t index)
{
    return &cq->ring[index & (cq->room - 1)];
}

/* The first one; NULL: there is none. */
static const struct mrd_ofi_comp *first_entry(const struct mrd_ofi_cq *cq)
{
    return cq->head == cq->tail ? NULL : entry_at(cq, cq->head);
}

static int make_room(struct mrd_ofi_cq *cq)
{
    uint32_t num = cq->tail - cq->head;
    struct mrd_ofi_comp *ring;

    if (num < cq->room)
        return 0;
    ring = cq->room < ENTRIES_MAX ? malloc(2 * cq->room * sizeof(*ring)) : NULL;
    if (!ring)
        return -FI_ENOMEM;
    for (uint32_t i = 0; i < num; i++)
        ring[i] = *entry_at(cq, cq->head + i);
    free(cq->ring);
    cq->ring = ring;
    cq->room *= 2;
    cq->head = 0;
    cq->tail = num;
    return 0;
}

void mrd_ofi_cq_add(struct mrd_ofi_cq *cq, const struct mrd_ofi_comp *comp)
{
    if (!cq->overrun && make_room(cq)) {
        cq->overrun = true;
        MRD_OFI_WARN(CQ, "no memory for a completion: the queue tells of no more\n");
    }
    if (cq->overrun) {
        free(comp->text);
    } else {
        *entry_at(cq, cq->tail++) = *comp;
    }
    mrd_ofi_wait_signal(&cq->wait);
}

void mrd_ofi_cq_fail(struct mrd_ofi_cq *cq, int error)
{
    if (!cq->failed)
        cq->failed = error;
    mrd_ofi_wait_signal(&cq->wait);
}

/* Does a reader that wants `threshold` entries get them now, or fewer and then an error? */
static bool is_ready(const struct mrd_ofi_cq *cq, size_t threshold)
{
    if (cq->overrun || cq->failed)
        return true;
    for (uint32_t i = cq->head; i != cq->tail && threshold; i++, threshold--)
        if (entry_at(cq, i)->err)
            return true;
    return !threshold;
}

/* -------------------------------------------------------------------------------------- reading */

static size_t format_bytes(enum fi_cq_format format)
{
    switch (format) {
    case FI_CQ_FORMAT_MSG:
        return sizeof(struct fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
        return sizeof(struct fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
        return sizeof(struct fi_cq_tagged_entry);
    default:
        return sizeof(struct fi_cq_entry);
    }
}

/* What a reader of no entries is told. One without room for any only makes progress. */
static ssize_t result_of_none(struct mrd_ofi_cq *cq, size_t count)
{
    int failed = cq->failed;

    if (cq->overrun)
        return -FI_EOVERRUN;
    if (!failed || !count)
        return -FI_EAGAIN;
    cq->failed = 0;
    return -failed;
}

/* Takes up to `count` entries that succeeded. */
static ssize_t take_entries(struct mrd_ofi_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
    size_t bytes = format_bytes(cq->format), n = 0;

    if (cq->head == cq->tail)
        return result_of_none(cq, count);
    for (; n < count && cq->head != cq->tail; n++) {
        const struct mrd_ofi_comp *comp = entry_at(cq, cq->head);
        const struct fi_cq_tagged_entry entry = {
            .op_context = comp->context,
            .flags = comp->flags,
            .len = comp->len,
            .buf = comp->buf,
            .data = comp->data,
            .tag = comp->tag,
        };

        if (comp->err)
            return n ? (ssize_t)n : -FI_EAVAIL;
        memcpy((char *)buf + n * bytes, &entry, bytes);
        if (src)
            src[n] = comp->src;
        cq->head++;
    }
    return (ssize_t)n;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
    struct mrd_ofi_cq *cq = cq_of(fid);
    ssize_t result;

    mrd_ofi_lock(cq->domain);
    /*
     * Who reads until nothing is left answers then. An ack rides on that answer, but would leave by
     * itself if progress were made once more before it. Without room for an entry the application
     * calls only to make progress.
     */
    if (!count || (mrd_ofi_cq_empty(cq) && !cq->gave))
        mrd_ofi_sources_progress(&cq->sources);
    result = take_entries(cq, buf, count, src);
    cq->gave = result > 0;
    mrd_ofi_unlock(cq->domain);
    return result;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
    return cq_readfrom(fid, buf, count, NULL);
}

/* -------------------------------------------------------------------------------------- waiting */

/* How many entries a reader waits for. fi_cq(3): `cond` is a number, not a pointer to one. */
static size_t wanted(const struct mrd_ofi_cq *cq, const void *cond, size_t count)
{
    size_t threshold = cq->wait_cond == FI_CQ_COND_THRESHOLD ? (size_t)(uintptr_t)cond : 1;

    if (threshold > count)
        threshold = count;
    return threshold ? threshold : 1;
}

/* Makes progress; if that does not do, again when the next completion is sure to raise an event. */
static bool look_for_entries(struct mrd_ofi_cq *cq, size_t threshold)
{
    mrd_ofi_sources_progress(&cq->sources);
    if (is_ready(cq, threshold))
        return true;
    mrd_ofi_sources_arm(&cq->sources, &cq->wait);
    mrd_ofi_sources_progress(&cq->sources);
    return is_ready(cq, threshold);
}

/* Returns when there are so many entries, the time is over, or a signal came. */
static void wait_for(struct mrd_ofi_cq *cq, size_t threshold, int timeout_ms)
{
    pthread_mutex_t *mutex = cq->domain->locks ? &cq->domain->mutex : NULL;
    uint64_t start_ns = mrd_ofi_now_ns();

    while (!look_for_entries(cq, threshold)) {
        int left_ms = mrd_ofi_time_left(timeout_ms, start_ns);

        if (cq->signaled || !left_ms) {
            cq->signaled = false;
            return;
        }
        if (mrd_ofi_wait_block(&cq->wait, mutex, left_ms))
            return;
    }
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
                            const void *cond, int timeout_ms)
{
    struct mrd_ofi_cq *cq = cq_of(fid);
    size_t threshold = wanted(cq, cond, count);
    ssize_t result;

    if (cq->wait.obj == FI_WAIT_NONE)
        return -FI_ENOSYS;
    mrd_ofi_lock(cq->domain);
    if (!is_ready(cq, threshold))
        wait_for(cq, threshold, timeout_ms);
    result = take_entries(cq, buf, count, src);
    /* Others may sleep that the same signal was for. */
    if (!mrd_ofi_cq_empty(cq))
        mrd_ofi_wait_signal(&cq->wait);
    mrd_ofi_unlock(cq->domain);
    return result;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond,
                        int timeout_ms)
{
    return cq_sreadfrom(fid, buf, count, NULL, cond, timeout_ms);
}

static int cq_signal(struct fid_cq *fid)
{
    struct mrd_ofi_cq *cq = cq_of(fid);

    if (cq->wait.obj == FI_WAIT_NONE)
        return -FI_ENOSYS;
    mrd_ofi_lock(cq->domain);
    cq->signaled = true;
    mrd_ofi_wait_signal(&cq->wait);
    mrd_ofi_unlock(cq->domain);
    return 0;
}

/* --------------------------------------------------------------------------------------- errors */

/*
 * Text goes into the buffer of an application that brings one; otherwise it stays with the queue
 * until the next error is read. Then the application has no buffer, of no size: who reads another
 * error into the same entry would offer that text as a buffer else. Without text nothing is written:
 * programs that look for a message, and expect no more than that there is none, leave the entry as
 * it is in memory (fabtests).
 */
static void give_text(struct mrd_ofi_cq *cq, struct fi_cq_err_entry *buf, char *text)
{
    size_t bytes = text ? strlen(text) + 1 : 0;
    bool sized = cq->domain->fabric->fid.api_version >= FI_VERSION(1, 5);

    free(cq->text);
    cq->text = text;
    if (!sized || !buf->err_data_size) { /* older structs end before the size */
        buf->err_data = text;
        return;
    }
    if (text)
        snprintf(buf->err_data, buf->err_data_size, "%s", text);
    if (bytes < buf->err_data_size)
        buf->err_data_size = bytes;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
    struct mrd_ofi_cq *cq = cq_of(fid);
    const struct mrd_ofi_comp *comp;
    ssize_t result = -FI_EAGAIN;

    (void)flags;
    mrd_ofi_lock(cq->domain);
    comp = first_entry(cq);
    if (comp && comp->err) {
        buf->op_context = comp->context;
        buf->flags = comp->flags;
        buf->len = comp->len;
        buf->buf = comp->buf;
        buf->data = comp->data;
        buf->tag = comp->tag;
        buf->olen = comp->olen;
        buf->err = comp->err;
        buf->prov_errno = comp->prov_errno;
        give_text(cq, buf, comp->text);
        cq->head++;
        result = 1;
    }
    mrd_ofi_unlock(cq->domain);
    return result;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
                               size_t len)
{
    const char *text = err_data;

    (void)fid;
    if (!text && prov_errno > 0)
        text = mrd_wc_status_str((enum mrd_wc_status)prov_errno);
    if (!text)
        text = "no more is known";
    if (buf && len)
        snprintf(buf, len, "%s", text);
    return text;
}

/* ---------------------------------------------------------------------------------- open, close */

static int cq_control(struct fid *fid, int command, void *arg)
{
    struct mrd_ofi_cq *cq = mrd_container_of(fid, struct mrd_ofi_cq, fid.fid);

    return mrd_ofi_wait_control(&cq->wait, command, arg);
}

static void free_cq(struct mrd_ofi_cq *cq)
{
    for (; first_entry(cq); cq->head++)
        free(first_entry(cq)->text);
    mrd_ofi_wait_fini(&cq->wait);
    free(cq->text);
    free(cq->ring);
    free(cq);
}

static int cq_close(struct fid *fid)
{
    struct mrd_ofi_cq *cq = mrd_container_of(fid, struct mrd_ofi_cq, fid.fid);
    int error = mrd_ofi_domain_leave(cq->domain, &cq->users);

    if (error)
        return error;
    free_cq(cq);
    return 0;
}

static struct fi_ops cq_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = cq_close,
    .bind = mrd_ofi_no_bind,
    .control = cq_control,
    .ops_open = mrd_ofi_no_ops_open,
};

static struct fi_ops_cq cq_ops = {
    .size = sizeof(struct fi_ops_cq),
    .read = cq_read,
    .readfrom = cq_readfrom,
    .readerr = cq_readerr,
    .sread = cq_sread,
    .sreadfrom = cq_sreadfrom,
    .signal = cq_signal,
    .strerror = cq_strerror,
};

static int check_attr(const struct fi_cq_attr *attr)
{
    if (attr->flags & ~FI_AFFINITY || attr->size > ENTRIES_MAX)
        return -FI_EINVAL;
    if (attr->wait_obj != FI_WAIT_NONE && attr->wait_cond != FI_CQ_COND_NONE &&
        attr->wait_cond != FI_CQ_COND_THRESHOLD)
        return -FI_EINVAL;
    switch (attr->format) {
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT:
    case FI_CQ_FORMAT_MSG:
    case FI_CQ_FORMAT_DATA:
    case FI_CQ_FORMAT_TAGGED:
        return 0;
    default:
        return -FI_EINVAL;
    }
}

static int init_ring(struct mrd_ofi_cq *cq, size_t size)
{
    cq->room = ENTRIES_FIRST;
    while (cq->room < (size ? size : MRD_OFI_CQ))
        cq->room *= 2;
    cq->ring = malloc(cq->room * sizeof(*cq->ring));
    return cq->ring ? 0 : -FI_ENOMEM;
}

int mrd_ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **fid,
                    void *context)
{
    struct mrd_ofi_domain *d = mrd_container_of(domain, struct mrd_ofi_domain, fid);
    int error = attr ? check_attr(attr) : -FI_EINVAL;
    struct mrd_ofi_cq *cq = error ? NULL : calloc(1, sizeof(*cq));

    if (!cq)
        return error ? error : -FI_ENOMEM;
    error = mrd_ofi_wait_init(&cq->wait, attr->wait_obj);
    if (!error)
        error = init_ring(cq, attr->size);
    if (error) {
        free_cq(cq);
        return error;
    }
    cq->fid.fid = (struct fid){.fclass = FI_CLASS_CQ, .context = context, .ops = &cq_fid_ops};
    cq->fid.ops = &cq_ops;
    cq->domain = d;
    cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr->format;
    cq->wait_cond = attr->wait_cond;
    mrd_ofi_domain_join(d);
    *fid = &cq->fid;
    return 0;
}
