/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of devices: the list, opening, queries, asynchronous events. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Declared for their callers as macros or with arguments of the first ABI. */
#undef ibv_query_port
#undef ibv_get_device_list

/* ---------------------------------------------------------------------------------------- list */

void fake_handle_put(struct fake_handle *handle)
{
    if (--handle->refs == 0)
        free(handle);
}

static struct fake_handle *handle_create(struct fake_ibv_device *device, unsigned index)
{
    struct fake_handle *handle = fake_alloc(sizeof(*handle));

    handle->device = device;
    handle->refs = 1;
    handle->ibv.node_type = device->node_type;
    handle->ibv.transport_type = device->transport_type;
    memcpy(handle->ibv.name, device->name, sizeof(handle->ibv.name));
    snprintf(handle->ibv.dev_name, sizeof(handle->ibv.dev_name), "uverbs%u", index);
    snprintf(handle->ibv.ibdev_path, sizeof(handle->ibv.ibdev_path),
             "/nonexistent/infiniband/%.60s", device->name);
    snprintf(handle->ibv.dev_path, sizeof(handle->ibv.dev_path),
             "/nonexistent/infiniband_verbs/uverbs%u", index);
    return handle;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    int error = fake_enter(FAKE_ibv_get_device_list);
    struct ibv_device **list;

    if (error)
        return fake_fail_null(error);
    list = fake_alloc((fake.num_devices + 1) * sizeof(struct ibv_device *));
    for (unsigned i = 0; i < fake.num_devices; i++)
        list[i] = &handle_create(&fake.devices[i], i)->ibv;
    if (num_devices)
        *num_devices = (int)fake.num_devices;
    fake_born(NULL, FAKE_LIST);
    fake_leave();
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    fake_lock();
    for (struct ibv_device **i = list; *i; i++)
        fake_handle_put(FAKE_OF(fake_handle, *i));
    free(list);
    fake_gone(NULL, FAKE_LIST);
    fake_leave();
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return FAKE_OF(fake_handle, device)->device->attr.node_guid;
}

int ibv_get_device_index(struct ibv_device *device)
{
    return (int)(FAKE_OF(fake_handle, device)->device - fake.devices);
}

int ibv_fork_init(void)
{
    return fake_fail(fake_enter(FAKE_ibv_fork_init));
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

/* ---------------------------------------------------------------------------------------- ports */

/* The port, or NULL with *error. */
static const struct fake_ibv_port *port_of(struct ibv_context *context, uint32_t port_num,
                                           int *error)
{
    struct fake_ibv_device *device = fake_context_of(context)->device;

    *error = 0;
    if (device->state->fatal)
        *error = EIO;
    else if (port_num < 1 || port_num > device->attr.phys_port_cnt)
        *error = EINVAL;
    return *error ? NULL : &device->ports[port_num - 1];
}

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                      size_t attr_len)
{
    int error = fake_enter(FAKE_ibv_query_port);
    const struct fake_ibv_port *port = error ? NULL : port_of(context, port_num, &error);

    if (port)
        memcpy(attr, &port->attr, attr_len < sizeof(port->attr) ? attr_len : sizeof(port->attr));
    return fake_fail(error);
}

int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                   struct _compat_ibv_port_attr *attr)
{
    /* The first ABI's struct ends before the two fields that came last. */
    return query_port(context, port_num, (struct ibv_port_attr *)(void *)attr,
                      offsetof(struct ibv_port_attr, flags));
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int error = fake_enter(FAKE_ibv_query_device);

    if (!error && fake_context_of(context)->device->state->fatal)
        error = EIO;
    if (!error)
        *attr = fake_context_of(context)->device->attr;
    return fake_fail(error);
}

static struct ibv_gid_entry entry_of(const struct fake_ibv_port *port, uint32_t port_num,
                                     uint32_t index)
{
    return (struct ibv_gid_entry){
        .gid = port->gids[index].gid,
        .gid_index = index,
        .port_num = port_num,
        .gid_type = port->gids[index].type,
        .ndev_ifindex = port->gids[index].ifindex,
    };
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
    int error = fake_enter(FAKE_ibv_query_gid_ex);
    const struct fake_ibv_port *port = error ? NULL : port_of(context, port_num, &error);

    if (flags)
        error = EOPNOTSUPP;
    if (port && gid_index >= (uint32_t)port->attr.gid_tbl_len)
        error = EINVAL;
    else if (port && !port->gids[gid_index].valid)
        error = ENODATA;
    if (!error) {
        struct ibv_gid_entry found = entry_of(port, port_num, gid_index);

        memcpy(entry, &found, entry_size < sizeof(found) ? entry_size : sizeof(found));
    }
    return fake_fail(error);
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t max_entries, uint32_t flags, size_t entry_size)
{
    int error = fake_enter(FAKE_ibv_query_gid_table);
    struct fake_ibv_device *device = fake_context_of(context)->device;
    size_t n = 0;

    if (flags || entry_size != sizeof(*entries))
        error = EOPNOTSUPP;
    for (uint32_t p = 0; !error && p < device->attr.phys_port_cnt; p++) {
        const struct fake_ibv_port *port = &device->ports[p];

        for (uint32_t i = 0; i < (uint32_t)port->attr.gid_tbl_len; i++) {
            if (!port->gids[i].valid)
                continue;
            if (n == max_entries) {
                error = EINVAL;
                break;
            }
            entries[n++] = entry_of(port, p + 1, i);
        }
    }
    fake_fail(error);
    return error ? -error : (ssize_t)n;
}

/* Without a type, and empty entries are zero. */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
    int error = fake_enter(FAKE_ibv_query_gid);
    const struct fake_ibv_port *port = error ? NULL : port_of(context, port_num, &error);

    if (port && (index < 0 || index >= port->attr.gid_tbl_len))
        error = EINVAL;
    if (error) {
        fake_fail(error);
        return -1;
    }
    memset(gid, 0, sizeof(*gid));
    if (port->gids[index].valid)
        *gid = port->gids[index].gid;
    fake_leave();
    return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
    int error = fake_enter(FAKE_ibv_query_pkey);
    const struct fake_ibv_port *port = error ? NULL : port_of(context, port_num, &error);

    if (port && index != 0)
        error = EINVAL;
    if (error) {
        fake_fail(error);
        return -1;
    }
    *pkey = 0xffff;
    fake_leave();
    return 0;
}

/* ---------------------------------------------------------------------------------------- open */

struct ibv_context *ibv_open_device(struct ibv_device *ibv)
{
    int error = fake_enter(FAKE_ibv_open_device);
    struct fake_handle *handle = FAKE_OF(fake_handle, ibv);
    struct fake_context *c;

    if (error)
        return fake_fail_null(error);
    c = fake_alloc(sizeof(*c));
    c->handle = handle;
    handle->refs++;
    c->device = handle->device;
    c->next = c->device->state->contexts;
    c->device->state->contexts = c;
    c->v.sz = sizeof(c->v);
    c->v.query_port = query_port;
    c->v.context.device = ibv;
    c->v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    c->v.context.cmd_fd = -1;
    c->v.context.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    c->v.context.num_comp_vectors = 1;
    c->v.context.ops.poll_cq = fake_poll_cq;
    c->v.context.ops.req_notify_cq = fake_req_notify_cq;
    c->v.context.ops.post_srq_recv = fake_post_srq_recv;
    c->v.context.ops.post_send = fake_post_send;
    c->v.context.ops.post_recv = fake_post_recv;
    pthread_mutex_init(&c->v.context.mutex, NULL);
    fake_born(c->device, FAKE_CONTEXT);
    fake_leave();
    return &c->v.context;
}

int ibv_close_device(struct ibv_context *context)
{
    int error = fake_enter(FAKE_ibv_close_device);
    struct fake_context *c = fake_context_of(context);

    if (!error && c->children) { /* the library closes all the same; then they are lost */
        fake_broken("ibv_close_device: %u objects of the context are left", c->children);
        error = EBUSY;
    }
    if (error)
        return fake_fail(error);
    if (c->unacked)
        fake_broken("ibv_close_device: %u events were not acknowledged", c->unacked);
    for (struct fake_context **i = &c->device->state->contexts; *i; i = &(*i)->next) {
        if (*i == c) {
            *i = c->next;
            break;
        }
    }
    close(context->async_fd);
    pthread_mutex_destroy(&context->mutex);
    fake_gone(c->device, FAKE_CONTEXT);
    fake_handle_put(c->handle);
    free(c);
    fake_leave();
    return 0;
}

/* ---------------------------------------------------------------------------------------- events */

void fake_event(struct fake_context *context, const struct ibv_async_event *event)
{
    uint64_t one = 1;

    if (context->events_tail - context->events_head == FAKE_EVENTS_MAX)
        return;
    context->events[context->events_tail++ % FAKE_EVENTS_MAX] = *event;
    if (write(context->v.context.async_fd, &one, sizeof(one)) != sizeof(one))
        abort();
}

/* How many events of what it belongs to are not acknowledged. */
static unsigned *unacked_of(struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        return &FAKE_OF(fake_cq, event->element.cq)->unacked;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return &FAKE_OF(fake_qp, event->element.qp)->unacked;
    default:
        return NULL;
    }
}

/* The events of an object go with it; whoever saw the descriptor readable for one finds none. */
void fake_event_forget(struct fake_context *context, const void *object)
{
    uint32_t kept = context->events_head;

    for (uint32_t i = context->events_head; i != context->events_tail; i++) {
        struct ibv_async_event event = context->events[i % FAKE_EVENTS_MAX];

        if (unacked_of(&event) == NULL || (const void *)event.element.qp != object)
            context->events[kept++ % FAKE_EVENTS_MAX] = event;
    }
    context->events_tail = kept;
}

/* Blocks like the real one, unless async_fd was made not to; so without the lock. */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct fake_context *c = fake_context_of(context);
    int error = fake_enter(FAKE_ibv_get_async_event);
    uint64_t one;
    unsigned *unacked;

    fake_leave();
    if (error) {
        errno = error;
        return -1;
    }
    if (read(context->async_fd, &one, sizeof(one)) != sizeof(one))
        return -1;
    fake_lock();
    if (c->events_head == c->events_tail) { /* it was of an object that is gone since */
        fake_fail(EAGAIN);
        return -1;
    }
    *event = c->events[c->events_head++ % FAKE_EVENTS_MAX];
    unacked = unacked_of(event);
    if (unacked)
        (*unacked)++;
    c->unacked++;
    fake_leave();
    return 0;
}

/* The context is found by the object; port and device events do not name one, so they count everywhere. */
void ibv_ack_async_event(struct ibv_async_event *event)
{
    fake_lock();

    unsigned *unacked = unacked_of(event);

    if (unacked) {
        if (*unacked == 0)
            fake_broken("ibv_ack_async_event: the event was not taken");
        else
            --*unacked;
    }
    for (unsigned i = 0; i < fake.num_devices; i++) {
        for (struct fake_context *c = fake.states[i].contexts; c; c = c->next) {
            if (c->unacked) {
                c->unacked--;
                fake_leave();
                return;
            }
        }
    }
    fake_broken("ibv_ack_async_event: no event was taken");
    fake_leave();
}

static void raise_everywhere(struct fake_ibv_device *device, enum ibv_event_type type, int port_num)
{
    struct ibv_async_event event = {.event_type = type, .element.port_num = port_num};

    for (struct fake_context *c = device->state->contexts; c; c = c->next)
        fake_event(c, &event);
}

void fake_ibv_raise(struct fake_ibv_device *device, enum ibv_event_type type, int port_num)
{
    fake_lock();
    raise_everywhere(device, type, port_num);
    fake_leave();
}

void fake_ibv_port(struct fake_ibv_device *device, unsigned port_num, enum ibv_port_state state)
{
    fake_lock();

    struct ibv_port_attr *attr = &device->ports[port_num - 1].attr;
    bool was = attr->state == IBV_PORT_ACTIVE, is = state == IBV_PORT_ACTIVE;

    attr->state = state;
    if (was != is)
        raise_everywhere(device, is ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, (int)port_num);
    fake_leave();
}

void fake_ibv_fatal(struct fake_ibv_device *device)
{
    fake_lock();
    device->state->fatal = true;
    raise_everywhere(device, IBV_EVENT_DEVICE_FATAL, 1);
    fake_leave();
}

void fake_ibv_srq_limit(struct fake_ibv_device *device)
{
    fake_lock();
    for (struct fake_srq *srq = fake.srqs; srq; srq = srq->next) {
        struct fake_context *c = fake_context_of(srq->ibv.context);
        struct ibv_async_event event = {.event_type = IBV_EVENT_SRQ_LIMIT_REACHED,
                                        .element.srq = &srq->ibv};

        if (c->device == device)
            fake_event(c, &event);
    }
    fake_leave();
}
