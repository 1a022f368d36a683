/* SPDX-License-Identifier: BSD-2-Clause */
/* Ops of the RDMA mover: list, open, close, sleep, events, memory regions, new paths. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "transport/mover.h"
#include "transport/movers/ibv/ibv_addr.h"
#include "transport/movers/ibv/ibv_port.h"
#include "transport/movers/ibv/ibv_queue.h"
#include "transport/movers/ibv/ibv_remote.h"
#include "transport/movers/ibv/ibv_rx.h"
#include "transport/movers/ibv/ibv_slot.h"
#include "transport/movers/ibv/ibv_state.h"
#include "transport/movers/ibv/ibv_tx.h"

enum {
    /* Steps between two looks for events of the device: each look is a system call. */
    EVENT_TURNS = 1024,
    ROCE_V4_BYTES = 14 + 20 + 8 + 12 + 8 + 4, /* Ethernet, IPv4, UDP, BTH, DETH, ICRC */
    ROCE_V6_BYTES = ROCE_V4_BYTES + 20,
};
#define CLOSE_WAIT_NS 100000000ull

/* -------------------------------------------------------------------- devices */

/* Does the device have UD queue pairs? iWARP has none. */
static bool has_ud(const struct ibv_device *device)
{
    return device->transport_type == IBV_TRANSPORT_IB ||
           device->transport_type == IBV_TRANSPORT_UNSPECIFIED;
}

unsigned mrd_ibv_devices(struct mrd_device *list, unsigned max)
{
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    unsigned n = 0;

    for (int i = 0; devices && i < count && n < max; i++) {
        const char *name = ibv_get_device_name(devices[i]);

        if (!has_ud(devices[i]) || strlen(name) >= sizeof(list[n].name))
            continue;
        memset(&list[n], 0, sizeof(list[n]));
        strcpy(list[n].name, name);
        strcpy(list[n].transport, mrd_ibv_ops.transport);
        n++;
    }
    if (devices)
        ibv_free_device_list(devices);
    return n;
}

/* -------------------------------------------------------------------- open, close */

static void fill_mover(struct mrd_ibv *ibv)
{
    struct mrd_mover *m = &ibv->base.mover;

    *m = (struct mrd_mover){
        .payload_bytes = ibv->payload_bytes,
        .paths = ibv->num_paths,
        /* Counted in slots: each datagram takes one, whatever its size. */
        .rx_buffer_bytes = ibv->port.rx_slots * (ibv->payload_bytes + MRD_IBV_HEADER_ROOM),
        .header_bytes = ibv->port.v4 ? ROCE_V4_BYTES : ROCE_V6_BYTES,
        .copies = false,
    };
    mrd_mover_fill_rdma(m, ibv->port.link_bps);
}

static int set_nonblocking(const struct mrd_ibv *ibv, int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
        return 0;
    mrd_error_set("%s: its descriptors cannot be made nonblocking: %s", ibv->name, strerror(errno));
    return -errno;
}

/* Makes one descriptor that is readable for completions and for the device's events. */
static int open_epoll(struct mrd_ibv *ibv)
{
    int fds[] = {ibv->channel->fd, ibv->verbs->async_fd};

    ibv->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (ibv->epoll_fd < 0) {
        mrd_error_set("%s: no descriptor to wait with: %s", ibv->name, strerror(errno));
        return -errno;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN};
        int error = set_nonblocking(ibv, fds[i]);

        if (error)
            return error;
        if (epoll_ctl(ibv->epoll_fd, EPOLL_CTL_ADD, fds[i], &event)) {
            mrd_error_set("%s: its descriptors cannot be waited for: %s", ibv->name,
                          strerror(errno));
            return -errno;
        }
    }
    return 0;
}

/*
 * Waits up to CLOSE_WAIT_NS until the device has sent what is posted: a queue pair that is
 * destroyed drops what it holds, and the last acks may be among it.
 */
static void wait_for_sends(struct mrd_ibv *ibv)
{
    uint64_t start_ns = mrd_ibv_now_ns(&ibv->base);

    if (!ibv->tx_slots || !ibv->send_cq)
        return;
    for (;;) {
        uint32_t posted = 0;

        mrd_ibv_tx_poll(ibv);
        for (uint32_t i = 0; i < ibv->num_qps; i++)
            posted += ibv->qps[i].num_posted;
        if (!posted || mrd_ibv_now_ns(&ibv->base) - start_ns > CLOSE_WAIT_NS)
            return;
        sched_yield();
    }
}

static void ibv_close(struct mrd_backend *b)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);

    wait_for_sends(ibv);
    if (ibv->epoll_fd >= 0)
        close(ibv->epoll_fd);
    for (uint32_t i = 0; i < ibv->num_qps; i++)
        mrd_ibv_tx_forget(ibv, &ibv->qps[i]);
    mrd_ibv_qps_fini(ibv);
    mrd_ibv_remotes_fini(ibv);
    mrd_ibv_queues_fini(ibv);
    if (ibv->verbs)
        ibv_close_device(ibv->verbs);
    free(ibv);
}

static struct mrd_backend *ibv_open(const struct mrd_device *device,
                                    const struct mrd_context_attr *attr, int *error)
{
    struct mrd_ibv *ibv = calloc(1, sizeof(*ibv));

    if (!ibv) {
        mrd_error_set("no memory for a context");
        *error = -ENOMEM;
        return NULL;
    }
    ibv->base.ops = &mrd_ibv_ops;
    ibv->base.threaded = true;
    ibv->epoll_fd = -1;
    ibv->drop_ppm = attr->rx_drop_ppm;
    ibv->dscp = (uint8_t)attr->dscp;
    ibv->ecn = attr->ecn == MRD_ECN_OFF ? MRD_ECN_NOT_ECT : MRD_ECN_ECT0;
    memcpy(ibv->name, device->name, sizeof(ibv->name));
    mrd_rng_init(&ibv->rng, attr->seed);
    ibv->label_base = mrd_rng_below(&ibv->rng, 1 << 14);
    *error = mrd_ibv_port_open(ibv, attr);
    if (!*error)
        *error = mrd_ibv_remotes_init(ibv, attr->max_peers + MRD_IBV_REMOTES_SPARE);
    if (!*error)
        *error = mrd_ibv_queues_init(ibv);
    if (!*error)
        *error = open_epoll(ibv);
    if (*error) {
        ibv_close(&ibv->base);
        return NULL;
    }
    fill_mover(ibv);
    return &ibv->base;
}

/* -------------------------------------------------------------------- sleep, events */

/*
 * Only rx_burst(), under the lock, may arm the completion queues. While they are not armed this
 * asks for it and returns at once; the caller makes another turn and comes back.
 */
static void ibv_wait(struct mrd_backend *b, int wake_fd, uint64_t timeout_ns)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                               .tv_nsec = (long)(timeout_ns % 1000000000u)};
    struct pollfd fds[] = {{.fd = ibv->epoll_fd, .events = POLLIN},
                           {.fd = wake_fd, .events = POLLIN}};
    bool gone = atomic_load_explicit(&ibv->gone, memory_order_relaxed);

    if (!gone && (!atomic_load_explicit(&ibv->armed, memory_order_relaxed) ||
                  atomic_load_explicit(&ibv->done_waits, memory_order_relaxed))) {
        atomic_store_explicit(&ibv->want_armed, true, memory_order_relaxed);
        return;
    }
    ppoll(fds, 2, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
    if (fds[0].revents)
        atomic_store_explicit(&ibv->woken, true, memory_order_relaxed);
}

static int ibv_fd(struct mrd_backend *b)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);

    atomic_store_explicit(&ibv->fd_used, true, memory_order_relaxed);
    return ibv->epoll_fd;
}

/*
 * The device is gone: it reads buffers no more, and no completions will come. Its descriptors may
 * stay readable for ever, so nobody waits for them any more.
 */
static void device_gone(struct mrd_ibv *ibv)
{
    atomic_store_explicit(&ibv->gone, true, memory_order_relaxed);
    epoll_ctl(ibv->epoll_fd, EPOLL_CTL_DEL, ibv->channel->fd, NULL);
    epoll_ctl(ibv->epoll_fd, EPOLL_CTL_DEL, ibv->verbs->async_fd, NULL);
    for (uint32_t i = 0; i < ibv->num_qps; i++)
        mrd_ibv_tx_forget(ibv, &ibv->qps[i]);
}

/*
 * Brings a queue pair back after an error, and takes its completions: its slots may be posted again
 * at once, and the completion queue has no room for both.
 */
static void revive(struct mrd_ibv *ibv, const struct ibv_qp *qp)
{
    for (uint32_t i = 0; i < ibv->num_qps; i++)
        if (ibv->qps[i].qp == qp)
            mrd_ibv_qp_revive(ibv, i);
    mrd_ibv_tx_poll(ibv);
}

/*
 * Translates an event of the device to one for the application, and acts on it. false: none for it.
 */
static bool translate(struct mrd_ibv *ibv, const struct ibv_async_event *event,
                      enum mrd_event_type *type)
{
    switch (event->event_type) {
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
        *type =
            event->event_type == IBV_EVENT_PORT_ERR ? MRD_EVENT_PORT_ERR : MRD_EVENT_PORT_ACTIVE;
        return event->element.port_num == ibv->port.num;
    case IBV_EVENT_DEVICE_FATAL:
        device_gone(ibv);
        *type = MRD_EVENT_DEVICE_FATAL;
        return true;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        revive(ibv, event->element.qp);
        return false;
    default:
        return false;
    }
}

static bool ibv_take_event(struct mrd_backend *b, enum mrd_event_type *type)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);
    struct ibv_async_event event;
    bool found = false;

    if (atomic_load_explicit(&ibv->gone, memory_order_relaxed))
        return false;
    if (++ibv->event_turn < EVENT_TURNS &&
        !atomic_load_explicit(&ibv->fd_used, memory_order_relaxed) &&
        !atomic_load_explicit(&ibv->woken, memory_order_relaxed))
        return false;
    ibv->event_turn = 0;
    while (!found && ibv_get_async_event(ibv->verbs, &event) == 0) {
        mrd_log(MRD_LOG_INFO, "%s: %s", ibv->name, ibv_event_type_str(event.event_type));
        found = translate(ibv, &event, type);
        ibv_ack_async_event(&event);
        ibv->event_turn = EVENT_TURNS; /* there may be more events: look again at the next call */
    }
    return found;
}

/* -------------------------------------------------------------------- memory, paths */

static int ibv_reg(struct mrd_backend *b, void *addr, size_t length, int access,
                   struct mrd_mover_mr *mr)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);
    int flags = access & MRD_ACCESS_LOCAL_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0;

    /*
     * Not needed for an empty region, nor for a device that does not gather: there the
     * mover copies.
     */
    if (!length || !ibv->port.gathers)
        return 0;
    errno = 0;

    struct ibv_mr *verbs_mr = ibv_reg_mr(ibv->pd, addr, length, flags);

    if (!verbs_mr)
        return mrd_ibv_memory_error(ibv, "the memory region", length);
    mr->handle = verbs_mr;
    mr->key = verbs_mr->lkey;
    return 0;
}

static void ibv_dereg(struct mrd_backend *b, struct mrd_mover_mr mr)
{
    int error = mr.handle ? ibv_dereg_mr(mr.handle) : 0;

    if (error)
        mrd_log(MRD_LOG_WARN, "%s: a memory region cannot be deregistered: %s", mrd_ibv_of(b)->name,
                strerror(error));
}

static int ibv_new_path(struct mrd_backend *b)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);

    if (ibv->port.entropy == MRD_IBV_BY_QPAIR)
        return -ENOTSUP;
    if (ibv->num_paths == ibv->max_paths)
        return -ENOSPC;
    if (ibv->port.entropy == MRD_IBV_BY_QP) {
        int error = mrd_ibv_qp_add(ibv);

        if (error)
            return error;
    }
    return (int)ibv->num_paths++;
}

static uint32_t ibv_path_port(struct mrd_backend *b, uint32_t path)
{
    struct mrd_ibv *ibv = mrd_ibv_of(b);

    if (ibv->port.entropy == MRD_IBV_BY_AH)
        return mrd_ibv_flow_label(ibv, path) | 0xc000;
    return ibv->qps[path % ibv->num_qps].qp->qp_num;
}

const struct mrd_backend_ops mrd_ibv_ops = {
    .transport = "ibv",
    .open = ibv_open,
    .close = ibv_close,
    .now_ns = mrd_ibv_now_ns,
    .tx_burst = mrd_ibv_tx_burst,
    .tx_reap = mrd_ibv_tx_reap,
    .rx_burst = mrd_ibv_rx_burst,
    .rx_return = mrd_ibv_rx_return,
    .learn = mrd_ibv_learn,
    .wait = ibv_wait,
    .fd = ibv_fd,
    .reg_mr = ibv_reg,
    .dereg_mr = ibv_dereg,
    .take_event = ibv_take_event,
    .new_path = ibv_new_path,
    .path_port = ibv_path_port,
    .parse_address = mrd_ibv_parse_address,
    .check_address = mrd_ibv_check_address,
    .format_address = mrd_ibv_format_address,
    .self_address = mrd_ibv_self_address,
    .payload_bytes = mrd_ibv_payload_bytes,
    .port_facts = mrd_ibv_port_facts,
};
