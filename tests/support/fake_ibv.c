/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake as a whole: its lock, what tests set, failures asked for, rules broken, leaks. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_FAIL UINT_MAX /* of fail_at[] */

struct fake fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fake_lock(void)
{
    pthread_mutex_lock(&lock);
}

int fake_enter(enum fake_call call)
{
    fake_lock();
    if (fake.fail_at[call] != ALL_FAIL) {
        if (++fake.calls[call] != fake.fail_at[call])
            return 0;
        fake.fail_at[call] = 0;
    }
    return fake.fail_error[call];
}

int fake_leave(int error)
{
    pthread_mutex_unlock(&lock);
    if (error)
        errno = error;
    return error;
}

void *fake_leave_new(void *object, int error)
{
    return fake_leave(error) ? NULL : object;
}

void fake_broken(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("fake_ibv: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\n", stderr);
    va_end(args);
    fake.problems++;
}

bool fake_chance(uint32_t ppm)
{
    return ppm > 0 && mrd_rng_below(&fake.rng, 1000000) < ppm;
}

unsigned fake_read(const unsigned *n)
{
    fake_lock();
    unsigned value = *n;
    fake_leave(0);
    return value;
}

void *fake_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);

    if (!memory)
        abort();
    return memory;
}

void *fake_new(size_t bytes, unsigned *parent_users, int error)
{
    if (error)
        return NULL;
    fake.live++;
    ++*parent_users;
    return fake_alloc(bytes);
}

int fake_destroy(void *object, unsigned users, unsigned *parent_users)
{
    if (users)
        return fake_leave(EBUSY);
    fake.live--;
    --*parent_users;
    free(object);
    return fake_leave(0);
}

/* -------------------------------------------------------------------------------- a test's life */

void fake_ibv_begin(uint64_t seed)
{
    fake_lock();
    memset(&fake, 0, sizeof(fake));
    mrd_rng_init(&fake.rng, seed);
    fake_leave(0);
}

unsigned fake_ibv_end(void)
{
    fake_lock();
    if (fake.events_unacked)
        fake_broken("%u asynchronous events more than acks", fake.events_unacked);
    if (fake.live)
        fake_broken("%u objects were not destroyed", fake.live);
    unsigned wrong = fake.problems;
    fake_wire_end();
    fake_leave(0);
    return wrong;
}

/* ------------------------------------------------------------------------------- what tests set */

void fake_ibv_set(const struct fake_ibv_knobs *knobs)
{
    fake_lock();
    fake.knobs = *knobs;
    fake.posted = 0;
    fake_leave(0);
}

#define CALL_STRING(name) #name,

static enum fake_call call_by_name(const char *name)
{
    static const char *const names[] = {FAKE_IBV_CALLS(CALL_STRING)};

    for (unsigned i = 0; i < FAKE_CALLS; i++) {
        if (!strcmp(names[i], name))
            return (enum fake_call)i;
    }
    fprintf(stderr, "fake_ibv: no call %s\n", name);
    abort();
}

void fake_ibv_fail(const char *call, unsigned nth, int error)
{
    enum fake_call i = call_by_name(call);

    fake_lock();
    fake.fail_at[i] = nth ? fake.calls[i] + nth : ALL_FAIL;
    fake.fail_error[i] = error;
    fake_leave(0);
}

bool fake_ibv_fail_none(void)
{
    bool any = false;

    fake_lock();
    for (unsigned i = 0; i < FAKE_CALLS; i++) {
        any = any || fake.fail_at[i];
        fake.fail_at[i] = 0;
    }
    fake_leave(0);
    return any;
}

unsigned fake_ibv_calls(const char *call)
{
    return fake_read(&fake.calls[call_by_name(call)]);
}
