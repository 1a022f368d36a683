/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/context.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/error.h"
#include "transport/zeroed.h"

enum {
    YIELD_SPINS = 512, /* about 20 us: in that time a thread that sleeps on the lock wakes up */
};

/* ----------------------------------------------------------------------------------------- lock */

void mrd_context_yield_to_sleepers(struct mrd_context_impl *c)
{
    for (unsigned i = 0; i < YIELD_SPINS; i++) {
        if (!mrd_lock_sleepers(&c->lock))
            return;
        if (i % 64 == 0)
            sched_yield();
    }
}

void mrd_context_yield_to_all(struct mrd_context_impl *c)
{
    sched_yield();
    mrd_context_yield_to_sleepers(c);
}

struct mrd_engine *mrd_context_engine(struct mrd_context *context)
{
    return mrd_context_impl(context)->engine;
}

struct mrd_backend *mrd_context_backend(struct mrd_context *context)
{
    return mrd_context_impl(context)->backend;
}

/* ----------------------------------------------------------------------------------------- fork */

/*
 * Maps a page that reads 1 in this process and 0 in a forked child: reading it is cheaper than
 * calling getpid(). NULL: no memory.
 */
static const volatile uint8_t *map_alive_page(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    /* Linux before 4.14 has no such advice: there use after fork() goes unnoticed. */
    (void)madvise(page, bytes, MADV_WIPEONFORK);
    *page = 1;
    return page;
}

static void unmap_alive_page(const volatile uint8_t *alive)
{
    if (alive)
        munmap((void *)(uintptr_t)alive, (size_t)sysconf(_SC_PAGESIZE));
}

/* --------------------------------------------------------------------------------------- memory */

static void *alloc(const struct mrd_backend_ops *ops, const struct mrd_device *device, size_t bytes)
{
    return ops->alloc ? ops->alloc(device, bytes) : mrd_zeroed_alloc(bytes);
}

static void release(const struct mrd_backend_ops *ops, const struct mrd_device *device, void *ptr,
                    size_t bytes)
{
    if (ops->release)
        ops->release(device, ptr, bytes);
    else
        mrd_zeroed_release(ptr, bytes);
}

void *mrd_context_alloc(const struct mrd_context_impl *c, size_t bytes)
{
    return alloc(c->ops, c->context.device, bytes);
}

void mrd_context_release(const struct mrd_context_impl *c, void *ptr, size_t bytes)
{
    release(c->ops, c->context.device, ptr, bytes);
}

/* ------------------------------------------------------------------------------ create, destroy */

struct mrd_context_impl *mrd_context_create(const struct mrd_device *device,
                                            const struct mrd_backend_ops *ops, int *error)
{
    struct mrd_context_impl *c = alloc(ops, device, sizeof(*c));

    *error = -ENOMEM;
    if (!c)
        goto fail;
    c->ops = ops;
    c->device = *device;
    c->context.device = device;
    c->context.async_fd = c->memory_fd = -1;
    c->thread.wake_fd = c->channels.alarm_fd = -1;
    c->alive = map_alive_page();
    if (!c->alive)
        goto fail_free;
    return c;

fail_free:
    release(ops, device, c, sizeof(*c));
fail:
    mrd_error_set("no memory for a context");
    return NULL;
}

void mrd_context_destroy(struct mrd_context_impl *c)
{
    if (c->context.async_fd >= 0)
        close(c->context.async_fd);
    if (c->memory_fd >= 0)
        close(c->memory_fd);
    unmap_alive_page(c->alive);
    release(c->ops, c->context.device, c, sizeof(*c));
}
