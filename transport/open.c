/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that open and close a device: they put a context together, part by part. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "core/rng.h"
#include "transport/attr.h"
#include "transport/call.h"
#include "transport/channel.h"
#include "transport/context.h"
#include "transport/error.h"
#include "transport/memory.h"
#include "transport/movers/sim/sim_host.h"
#include "transport/progress.h"
#include "transport/sealing.h"
#include "transport/sized.h"
#include "transport/thread.h"

enum { FAREWELL_TRIES_MAX = 10000 };

/* ----------------------------------------------------------------------------------------- open */

static void *engine_alloc(void *arg, size_t bytes)
{
    return mrd_context_alloc(arg, bytes);
}

static void engine_free(void *arg, void *ptr, size_t bytes)
{
    mrd_context_release(arg, ptr, bytes);
}

static bool is_simulated(const struct mrd_device *device)
{
    return !strcmp(device->transport, "sim");
}

/*
 * Takes a seed from the system unless the caller gave one. Called before the mover opens, which may
 * use the seed too. Not for simulated contexts.
 */
static int choose_seed(struct mrd_context_attr *attr)
{
    if (attr->comp_mask & MRD_CONTEXT_ATTR_SEED)
        return 0;
    if (getrandom(&attr->seed, sizeof(attr->seed), 0) != sizeof(attr->seed)) {
        mrd_error_set("no randomness from the system: %s", strerror(errno));
        return -errno;
    }
    attr->comp_mask |= MRD_CONTEXT_ATTR_SEED;
    return 0;
}

/*
 * Chooses what tells this context from an earlier one at its address, and the key that all that
 * strangers must not guess follows from. They are random even if the seed is fixed. In virtual time
 * the same calls must give the same bytes, so there they follow from the seed, the host and the time
 * of opening.
 */
static int choose_identity(struct mrd_context_impl *c, struct mrd_engine_config *config,
                           uint64_t now_ns)
{
    struct {
        uint64_t key[2];
        uint32_t incarnation;
    } drawn = {{0}, 0};
    struct mrd_rng rng;

    if (c->backend->threaded) {
        while (!drawn.incarnation)
            if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn)) {
                mrd_error_set("no randomness from the system: %s", strerror(errno));
                return -errno;
            }
    } else {
        mrd_rng_init(&rng, config->seed);
        mrd_rng_init(&rng, mrd_rng_u64(&rng) ^ config->self.port);
        mrd_rng_init(&rng, mrd_rng_u64(&rng) ^ now_ns);
        config->seed = mrd_rng_u64(&rng);
        while (!drawn.incarnation)
            drawn.incarnation = (uint32_t)mrd_rng_u64(&rng);
        drawn.key[0] = mrd_rng_u64(&rng);
        drawn.key[1] = mrd_rng_u64(&rng);
    }
    config->incarnation = drawn.incarnation;
    memcpy(config->key, drawn.key, sizeof(config->key));
    explicit_bzero(&drawn, sizeof(drawn));
    return 0;
}

/* All payloads are shorter, and nothing of the caller's is read after its packet was sealed. */
static void seal_packets(const struct mrd_context_impl *c, struct mrd_engine_config *config)
{
    struct mrd_mover *m = &config->mover;

    config->sealed = true;
    config->trusting = false;
    m->payload_bytes = mrd_sealing_payload(c, m->payload_bytes);
    m->payload_usual = mrd_sealing_payload(c, m->payload_usual);
    m->payload_base = mrd_sealing_payload(c, m->payload_base);
    m->header_bytes += MRD_SEAL_BYTES;
    m->copies = true;
}

static int open_engine(struct mrd_context_impl *c, const struct mrd_context_attr *attr)
{
    const struct mrd_allocator allocator = {.alloc = engine_alloc, .free = engine_free, .arg = c};
    struct mrd_engine_config config = {
        .mover = c->backend->mover,
        .seed = attr->seed,
        .spray = attr->spray,
        .cc = attr->cc,
        .paths = attr->paths ? attr->paths : c->backend->mover.paths,
        .max_peers = attr->max_peers,
        .max_flows = attr->max_flows,
        .peer_timeout_ns = attr->peer_timeout_ns,
        /* Only in a simulation is everybody known who can send. */
        .trusting = !attr->challenge_ns && !c->backend->threaded,
        .dscp = (uint8_t)attr->dscp,
        .no_ect = attr->ecn == MRD_ECN_OFF,
        .no_check = attr->check == MRD_CHECK_OFF,
    };
    uint64_t now_ns = mrd_context_now(c);

    if (attr->link_bps)
        config.mover.link_bps = attr->link_bps;
    if (mrd_sealing_is_on(c))
        seal_packets(c, &config);
    if (config.paths > config.mover.paths) {
        mrd_error_set("paths %u: %s has %u", config.paths, c->context.device->name,
                      config.mover.paths);
        return -EINVAL;
    }

    int error = c->ops->self_address(c->backend, &config.self);

    if (!error)
        error = choose_identity(c, &config, now_ns);
    if (error)
        return error;
    c->paths = config.paths;
    c->link_bps = config.mover.link_bps;
    c->engine = mrd_engine_create(&config, &allocator, now_ns, &error);
    if (!c->engine) {
        mrd_error_set(error == -ENOMEM ? "no memory for tables of %u peers and %u flows"
                                       : "the engine refuses tables of %u peers and %u flows",
                      config.max_peers, config.max_flows);
        return error;
    }
    return 0;
}

static void sim_step(void *arg)
{
    struct mrd_context_impl *c = arg;

    mrd_progress_step(c, mrd_context_now(c));
}

static uint64_t sim_deadline(void *arg)
{
    return mrd_progress_deadline(arg);
}

/*
 * Chooses who drives the loop: the simulation, a progress thread, or only the application's calls.
 */
static int start_progress(struct mrd_context_impl *c, const struct mrd_context_attr *attr)
{
    if (!c->backend->threaded) {
        c->context.async_fd = -1;
        if (is_simulated(c->context.device))
            mrd_sim_attach(c->backend, sim_step, sim_deadline, c);
        return 0;
    }
    c->context.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
    if (c->context.async_fd < 0) {
        mrd_error_set("no descriptor for events: %s", strerror(errno));
        return -errno;
    }
    c->memory_fd = mrd_memory_open();
    if (!c->locks || attr->progress == MRD_PROGRESS_MANUAL)
        return 0;
    return mrd_thread_start(c);
}

static void close_context(struct mrd_context_impl *c)
{
    mrd_thread_stop(c);
    mrd_channels_fini(c);
    if (c->engine)
        mrd_engine_destroy(c->engine);
    mrd_progress_fini(c);
    mrd_sealing_close(c);
    if (c->backend)
        c->ops->close(c->backend);
    mrd_context_destroy(c);
}

static struct mrd_context_impl *open_context(const struct mrd_device *device,
                                             const struct mrd_backend_ops *ops,
                                             const struct mrd_context_attr *attr, int *error)
{
    struct mrd_context_impl *c = mrd_context_create(device, ops, error);

    if (!c)
        return NULL;
    /* A simulated device outlives its contexts, and its address is its place in the simulation. */
    if (!is_simulated(device))
        c->context.device = &c->device;
    c->backend = ops->open(device, attr, error);
    if (!c->backend)
        goto fail;
    c->locks = c->backend->threaded && attr->threading == MRD_THREADING_MULTI;
    if ((*error = mrd_sealing_open(c, attr, attr->seed)))
        goto fail;
    *error = mrd_progress_init(c);
    if (*error) {
        mrd_error_set("no memory for packets");
        goto fail;
    }
    if ((*error = open_engine(c, attr)) || (*error = start_progress(c, attr)))
        goto fail;
    return c;

fail:
    close_context(c);
    return NULL;
}

/*
 * Finds the device that is opened where the caller names none: that of MRD_DEVICE, else the first.
 * 0, or -ENODEV with mrd_error_set().
 */
static int choose_device(struct mrd_device *device)
{
    const char *name = mrd_attr_environment("MRD_DEVICE");
    struct mrd_device **list;
    int error = -ENODEV;

    if (!name) {
        if (mrd_udp_devices(device, 1))
            return 0;
        mrd_error_set("no device");
        return -ENODEV;
    }
    list = mrd_get_device_list(NULL);
    if (!list)
        return -errno;
    mrd_error_set("MRD_DEVICE=%s: no such device", name);
    for (unsigned i = 0; list[i] && error; i++) {
        if (strcmp(list[i]->name, name))
            continue;
        *device = *list[i];
        error = 0;
    }
    mrd_free_device_list(list);
    return error;
}

struct mrd_context *mrd_open_device_sized(const struct mrd_device *device,
                                          const struct mrd_context_attr *attr, size_t size)
{
    struct mrd_context_attr asked = {0};
    struct mrd_attr_resolved resolved;
    struct mrd_device chosen;
    struct mrd_context_impl *c = NULL;
    int error = attr ? mrd_sized_read(&mrd_sized_context_attr, &asked, attr, size) : 0;

    if (!error && !device) {
        error = choose_device(&chosen);
        device = &chosen;
    }
    if (!error)
        error = mrd_attr_resolve(&asked, device->transport, &resolved);
    if (error)
        goto out;

    const struct mrd_backend_ops *ops = mrd_backend_find(device);

    if (!ops) {
        mrd_error_set("device %.31s: no packet mover \"%.15s\"", device->name, device->transport);
        error = -EINVAL;
        goto out;
    }
    if (!is_simulated(device))
        error = choose_seed(&resolved.attr);
    if (!error)
        c = open_context(device, ops, &resolved.attr, &error);
out:
    if (!c) {
        mrd_log(MRD_LOG_ERROR, "open: %s", mrd_last_error());
        errno = -error;
        return NULL;
    }
    mrd_log(MRD_LOG_INFO, "%s: open, %u paths, %s, %s", c->context.device->name, c->paths,
            mrd_engine_spray_name(c->engine), mrd_engine_cc_name(c->engine));
    return &c->context;
}

struct mrd_context *(mrd_open_device)(const struct mrd_device *device,
                                      const struct mrd_context_attr *attr)
{
    return mrd_open_device_sized(device, attr, mrd_sized_context_attr.first_bytes);
}

/* ---------------------------------------------------------------------------------------- close */

/*
 * Tells peers what arrived before the context closes. Without it, a peer whose last ack was lost or
 * is still held back would never learn that its messages arrived.
 */
static void send_farewell(struct mrd_context_impl *c)
{
    uint64_t now_ns = mrd_context_now(c);

    mrd_engine_begin(c->engine, now_ns);
    mrd_engine_farewell(c->engine, now_ns);
    for (unsigned i = 0; i < FAREWELL_TRIES_MAX; i++) {
        unsigned sent = mrd_progress_send(c, mrd_context_now(c));

        /* In virtual time a mover that took nothing takes nothing the next time either. */
        if (!sent && (!c->outbox.count || !c->backend->threaded))
            return;
        if (c->outbox.count)
            sched_yield(); /* the mover takes no more now */
    }
}

int mrd_close_device(struct mrd_context *context)
{
    struct mrd_context_impl *c = mrd_context_impl(context);
    int error = mrd_call_enter(c);

    if (error)
        return error;

    unsigned objects = mrd_engine_objects(c->engine);

    if (objects) {
        mrd_error_set("%u objects of the context are left", objects);
        mrd_call_leave(c);
        return -EBUSY;
    }
    if (atomic_load_explicit(&c->unlocked, memory_order_acquire)) {
        mrd_error_set("memory of the context is being deregistered");
        mrd_call_leave(c);
        return -EBUSY;
    }
    mrd_call_leave(c);
    mrd_thread_stop(c);

    send_farewell(c); /* without the lock: no other thread uses the context any more */
    close_context(c);
    return 0;
}
