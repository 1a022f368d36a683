/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/eq.h"

#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/nosys.h"

enum {
    EVENT_BYTES_MAX = 1 << 16, /* of an event that the application writes */
};

static struct mrd_ofi_eq *eq_of(struct fid_eq *fid)
{
    return mrd_container_of(fid, struct mrd_ofi_eq, fid);
}

/* -------------------------------------------------------------------------------------- entries */

/* Takes the EQ's lock. `event` becomes the queue's. */
static void append(struct mrd_ofi_eq *eq, struct mrd_ofi_event *event)
{
    pthread_mutex_lock(&eq->mutex);
    mrd_list_append(&eq->events, &event->node);
    mrd_ofi_wait_signal(&eq->wait);
    pthread_mutex_unlock(&eq->mutex);
}

/* NULL: no memory. */
static struct mrd_ofi_event *new_event(uint32_t type, const void *data, size_t bytes)
{
    struct mrd_ofi_event *event = calloc(1, sizeof(*event) + bytes);

    if (!event)
        return NULL;
    event->type = type;
    event->bytes = bytes;
    if (bytes)
        memcpy(event->data, data, bytes);
    return event;
}

int mrd_ofi_eq_add(struct mrd_ofi_eq *eq, uint32_t type, fid_t fid, void *context, uint64_t data)
{
    const struct fi_eq_entry entry = {.fid = fid, .context = context, .data = data};
    struct mrd_ofi_event *event = new_event(type, &entry, sizeof(entry));

    if (!event)
        return -FI_ENOMEM;
    append(eq, event);
    return 0;
}

int mrd_ofi_eq_add_error(struct mrd_ofi_eq *eq, fid_t fid, void *context, uint64_t data, int error)
{
    struct mrd_ofi_event *event = new_event(0, NULL, 0);

    if (!event)
        return -FI_ENOMEM;
    event->is_error = true;
    event->error =
        (struct fi_eq_err_entry){.fid = fid, .context = context, .data = data, .err = error};
    append(eq, event);
    return 0;
}

static struct mrd_ofi_event *first_event(struct mrd_ofi_eq *eq)
{
    struct mrd_node *n = mrd_list_first(&eq->events);

    return n ? mrd_container_of(n, struct mrd_ofi_event, node) : NULL;
}

static void remove_event(struct mrd_ofi_event *event)
{
    mrd_list_remove(&event->node);
    free(event);
}

/* ------------------------------------------------------------------------------- read and write */

/* With the EQ's lock. */
static ssize_t take_event(struct mrd_ofi_eq *eq, uint32_t *type, void *buf, size_t len,
                          uint64_t flags)
{
    struct mrd_ofi_event *event = first_event(eq);
    size_t bytes;

    if (!event)
        return -FI_EAGAIN;
    if (event->is_error)
        return -FI_EAVAIL;
    bytes = event->bytes;
    if (len < bytes)
        return -FI_ETOOSMALL;
    *type = event->type;
    if (bytes)
        memcpy(buf, event->data, bytes);
    if (!(flags & FI_PEEK))
        remove_event(event);
    return (ssize_t)bytes;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
    struct mrd_ofi_eq *eq = eq_of(fid);
    ssize_t result;

    pthread_mutex_lock(&eq->mutex);
    result = take_event(eq, type, buf, len, flags);
    pthread_mutex_unlock(&eq->mutex);
    return result;
}

/* As take_event(), but waits for an event. */
static ssize_t take_waiting(struct mrd_ofi_eq *eq, uint32_t *type, void *buf, size_t len,
                            int timeout_ms, uint64_t flags)
{
    uint64_t start_ns = mrd_ofi_now_ns();
    ssize_t result = take_event(eq, type, buf, len, flags);
    bool waited = false;

    while (result == -FI_EAGAIN) {
        int left_ms = mrd_ofi_time_left(timeout_ms, start_ns);

        if (!left_ms)
            return -FI_EAGAIN;
        mrd_ofi_wait_arm(&eq->wait);
        if (mrd_ofi_wait_block(&eq->wait, &eq->mutex, left_ms))
            return take_event(eq, type, buf, len, flags); /* a signal ends the call */
        waited = true;
        result = take_event(eq, type, buf, len, flags);
    }
    /* Others may sleep that the same signal was for. */
    if (waited && first_event(eq))
        mrd_ofi_wait_signal(&eq->wait);
    return result;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *type, void *buf, size_t len, int timeout_ms,
                        uint64_t flags)
{
    struct mrd_ofi_eq *eq = eq_of(fid);
    ssize_t result;

    if (eq->wait.obj == FI_WAIT_NONE)
        return -FI_ENOSYS;
    pthread_mutex_lock(&eq->mutex);
    result = take_waiting(eq, type, buf, len, timeout_ms, flags);
    pthread_mutex_unlock(&eq->mutex);
    return result;
}

/* Events have no data besides their numbers: err_data stays the caller's, with nothing in it. */
static size_t give_error(const struct mrd_ofi_eq *eq, const struct fi_eq_err_entry *error,
                         struct fi_eq_err_entry *buf)
{
    bool sized = eq->fabric->fid.api_version >= FI_VERSION(1, 5);

    buf->fid = error->fid;
    buf->context = error->context;
    buf->data = error->data;
    buf->err = error->err;
    buf->prov_errno = error->prov_errno;
    if (!sized || !buf->err_data_size)
        buf->err_data = NULL;
    if (!sized) /* the struct of the application ends here */
        return offsetof(struct fi_eq_err_entry, err_data_size);
    buf->err_data_size = 0;
    return sizeof(*buf);
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
    struct mrd_ofi_eq *eq = eq_of(fid);
    struct mrd_ofi_event *event;
    ssize_t result = -FI_EAGAIN;

    pthread_mutex_lock(&eq->mutex);
    event = first_event(eq);
    if (event && event->is_error) {
        result = (ssize_t)give_error(eq, &event->error, buf);
        if (!(flags & FI_PEEK))
            remove_event(event);
    }
    pthread_mutex_unlock(&eq->mutex);
    return result;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t type, const void *buf, size_t len,
                        uint64_t flags)
{
    struct mrd_ofi_eq *eq = eq_of(fid);
    struct mrd_ofi_event *event;

    if (!eq->writable || flags || len > EVENT_BYTES_MAX)
        return -FI_EINVAL;
    event = new_event(type, buf, len);
    if (!event)
        return -FI_ENOMEM;
    append(eq, event);
    return (ssize_t)len;
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
                               size_t len)
{
    const char *text = "no more is known";

    (void)fid;
    (void)prov_errno;
    (void)err_data;
    if (buf && len) {
        strncpy(buf, text, len - 1);
        buf[len - 1] = '\0';
    }
    return text;
}

/* ---------------------------------------------------------------------------------- open, close */

static int eq_control(struct fid *fid, int command, void *arg)
{
    struct mrd_ofi_eq *eq = mrd_container_of(fid, struct mrd_ofi_eq, fid.fid);

    return mrd_ofi_wait_control(&eq->wait, command, arg);
}

static int eq_close(struct fid *fid)
{
    struct mrd_ofi_eq *eq = mrd_container_of(fid, struct mrd_ofi_eq, fid.fid);

    if (atomic_load(&eq->users))
        return -FI_EBUSY;
    for (struct mrd_node *n = eq->events.next, *next; n != &eq->events; n = next) {
        next = n->next;
        free(mrd_container_of(n, struct mrd_ofi_event, node));
    }
    mrd_ofi_wait_fini(&eq->wait);
    pthread_mutex_destroy(&eq->mutex);
    atomic_fetch_sub(&eq->fabric->users, 1);
    free(eq);
    return 0;
}

static struct fi_ops eq_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = eq_close,
    .bind = mrd_ofi_no_bind,
    .control = eq_control,
    .ops_open = mrd_ofi_no_ops_open,
};

static struct fi_ops_eq eq_ops = {
    .size = sizeof(struct fi_ops_eq),
    .read = eq_read,
    .readerr = eq_readerr,
    .write = eq_write,
    .sread = eq_sread,
    .strerror = eq_strerror,
};

int mrd_ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **fid,
                    void *context)
{
    struct mrd_ofi_eq *eq;
    int error;

    if (attr && attr->flags & ~(FI_WRITE | FI_AFFINITY))
        return -FI_EINVAL;
    eq = calloc(1, sizeof(*eq));
    if (!eq)
        return -FI_ENOMEM;
    error = mrd_ofi_wait_init(&eq->wait, attr ? attr->wait_obj : FI_WAIT_NONE);
    if (error) {
        free(eq);
        return error;
    }
    pthread_mutex_init(&eq->mutex, NULL);
    mrd_list_init(&eq->events);
    eq->writable = attr && attr->flags & FI_WRITE;
    eq->fabric = mrd_container_of(fabric, struct mrd_ofi_fabric, fid);
    eq->fid.fid = (struct fid){.fclass = FI_CLASS_EQ, .context = context, .ops = &eq_fid_ops};
    eq->fid.ops = &eq_ops;
    atomic_fetch_add(&eq->fabric->users, 1);
    *fid = &eq->fid;
    return 0;
}
