/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of devices: the list, opening, queries, asynchronous events. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Declared for their callers as macros or with arguments of the first ABI. */
#undef ibv_query_port
#undef ibv_get_device_list

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    int error = fake_enter(FAKE_ibv_get_device_list);

    if (error)
        return fake_leave_new(NULL, error);
    struct ibv_device **list = fake_alloc((fake.num_devices + 1) * sizeof(struct ibv_device *));
    for (unsigned i = 0; i < fake.num_devices; i++) {
        list[i] = &fake.states[i].ibv;
        list[i]->transport_type = fake.devices[i].transport_type;
        memcpy(list[i]->name, fake.devices[i].name, sizeof(list[i]->name));
    }
    if (num_devices)
        *num_devices = (int)fake.num_devices;
    fake.live++;
    return fake_leave_new(list, 0);
}

void ibv_free_device_list(struct ibv_device **list)
{
    fake_lock();
    free(list);
    fake.live--;
    fake_leave(0);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

/* The port, or NULL with *error. */
static const struct fake_ibv_port *port_of(struct ibv_context *context, uint32_t port_num,
                                           int *error)
{
    struct fake_ibv_device *device = fake_context_of(context)->device;

    if (!*error && device->state->fatal)
        *error = EIO;
    else if (!*error && (port_num < 1 || port_num > device->attr.phys_port_cnt))
        *error = EINVAL;
    return *error ? NULL : &device->ports[port_num - 1];
}

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                      size_t attr_len)
{
    int error = fake_enter(FAKE_ibv_query_port);
    const struct fake_ibv_port *port = port_of(context, port_num, &error);

    if (port)
        memcpy(attr, &port->attr, attr_len < sizeof(port->attr) ? attr_len : sizeof(port->attr));
    return fake_leave(error);
}

/* Of the first ABI: not called where the context has query_port(). */
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                   struct _compat_ibv_port_attr *attr)
{
    (void)context;
    (void)port_num;
    (void)attr;
    return ENOSYS;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int error = fake_enter(FAKE_ibv_query_device);

    if (!error)
        *attr = fake_context_of(context)->device->attr;
    return fake_leave(error);
}

static struct ibv_gid_entry entry_of(const struct fake_ibv_port *port, uint32_t port_num,
                                     uint32_t index)
{
    return (struct ibv_gid_entry){
        .gid = port->gids[index].gid,
        .gid_index = index,
        .port_num = port_num,
        .gid_type = port->gids[index].type,
    };
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
    int error = flags || entry_size != sizeof(*entry) ? EOPNOTSUPP : 0;

    fake_lock();
    const struct fake_ibv_port *port = port_of(context, port_num, &error);
    if (port && gid_index >= (uint32_t)port->attr.gid_tbl_len)
        error = EINVAL;
    else if (port && !port->gids[gid_index].valid)
        error = ENODATA;
    if (!error)
        *entry = entry_of(port, port_num, gid_index);
    return fake_leave(error);
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

        for (uint32_t i = 0; i < (uint32_t)port->attr.gid_tbl_len && n < max_entries; i++) {
            if (port->gids[i].valid)
                entries[n++] = entry_of(port, p + 1, i);
        }
    }
    fake_leave(error);
    return error ? -error : (ssize_t)n;
}

struct ibv_context *ibv_open_device(struct ibv_device *ibv)
{
    int error = fake_enter(FAKE_ibv_open_device);
    struct fake_ibv_device_state *state = FAKE_OF(fake_ibv_device_state, ibv);

    if (error)
        return fake_leave_new(NULL, error);
    struct fake_context *c = fake_alloc(sizeof(*c));
    fake.live++;
    c->device = state->device;
    c->next = state->contexts;
    state->contexts = c;
    c->v.sz = sizeof(c->v);
    c->v.query_port = query_port;
    c->v.context.device = ibv;
    c->v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    c->v.context.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    c->v.context.num_comp_vectors = 1;
    c->v.context.ops.poll_cq = fake_poll_cq;
    c->v.context.ops.req_notify_cq = fake_req_notify_cq;
    c->v.context.ops.post_srq_recv = fake_post_srq_recv;
    c->v.context.ops.post_send = fake_post_send;
    c->v.context.ops.post_recv = fake_post_recv;
    return fake_leave_new(&c->v.context, 0);
}

int ibv_close_device(struct ibv_context *context)
{
    struct fake_context *c = fake_context_of(context), **i = &c->device->state->contexts;

    fake_lock();
    if (c->users) /* the library closes all the same; then they are lost */
        return fake_leave(EBUSY);
    while (*i != c)
        i = &(*i)->next;
    *i = c->next;
    close(context->async_fd);
    free(c);
    fake.live--;
    return fake_leave(0);
}

void fake_event(struct fake_context *context, const struct ibv_async_event *event)
{
    uint64_t one = 1;

    if (context->num_events == FAKE_EVENTS_MAX)
        return;
    context->events[context->num_events++] = *event;
    if (write(context->v.context.async_fd, &one, sizeof(one)) != sizeof(one))
        abort();
}

void fake_event_forget(struct fake_context *context, const struct fake_qp *qp)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < context->num_events; i++) {
        const struct ibv_async_event *event = &context->events[i];

        if (event->event_type != IBV_EVENT_QP_FATAL || event->element.qp != &qp->ibv)
            context->events[kept++] = *event;
    }
    context->num_events = kept;
}

/* Blocks like the real one, unless async_fd was made not to; so without the lock. */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct fake_context *c = fake_context_of(context);
    uint64_t one;

    if (read(context->async_fd, &one, sizeof(one)) != sizeof(one))
        return -1;
    fake_lock();
    if (c->num_events == 0) { /* it was of a QP that is gone since */
        fake_leave(EAGAIN);
        return -1;
    }
    *event = c->events[0];
    memmove(c->events, c->events + 1, --c->num_events * sizeof(c->events[0]));
    fake.events_unacked++;
    return fake_leave(0);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
    fake_lock();
    fake.events_unacked--;
    fake_leave(0);
}

void fake_ibv_raise(struct fake_ibv_device *device, enum ibv_event_type type, int port_num)
{
    struct ibv_async_event event = {.event_type = type, .element.port_num = port_num};

    fake_lock();
    if (type == IBV_EVENT_DEVICE_FATAL)
        device->state->fatal = true;
    if (type == IBV_EVENT_PORT_ERR)
        device->ports[port_num - 1].attr.state = IBV_PORT_DOWN;
    if (type == IBV_EVENT_PORT_ACTIVE)
        device->ports[port_num - 1].attr.state = IBV_PORT_ACTIVE;
    for (struct fake_context *c = device->state->contexts; c; c = c->next)
        fake_event(c, &event);
    fake_leave(0);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_WR_FLUSH_ERR ? "Work Request Flushed Error" : "some error";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    return state == IBV_PORT_DOWN ? "down" : "some state";
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
    return type == IBV_EVENT_DEVICE_FATAL ? "local catastrophic error" : "some event";
}
