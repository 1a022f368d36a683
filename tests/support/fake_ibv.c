/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake as a whole: its lock, what tests set, failures that were asked for, rules broken, leaks. */
#include "tests/support/fake_ibv_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define FAKE_CALL_STRING(name) #name,
static const char *const call_names[] = {FAKE_IBV_CALLS(FAKE_CALL_STRING)};

/* ---------------------------------------------------------------------------------------- inside */

void fake_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fake_leave(void)
{
    pthread_mutex_unlock(&lock);
}

int fake_enter(enum fake_call call)
{
    fake_lock();
    if (fake.fail_at[call] != FAKE_ALL_FAIL) {
        if (++fake.calls[call] != fake.fail_at[call])
            return 0;
        fake.fail_at[call] = 0;
    }
    return fake.fail_error[call];
}

int fake_fail(int error)
{
    fake_leave();
    if (error)
        errno = error;
    return error;
}

void *fake_fail_null(int error)
{
    fake_fail(error);
    return NULL;
}

void fake_broken(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(fake.problem, sizeof(fake.problem), format, args);
    va_end(args);
    fake.problems++;
    fprintf(stderr, "fake_ibv: %s\n", fake.problem);
}

bool fake_chance(uint32_t ppm)
{
    return ppm > 0 && mrd_rng_below(&fake.rng, 1000000) < ppm;
}

void *fake_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);

    if (!memory)
        abort();
    return memory;
}

static int limit_of(const struct fake_ibv_device *device, enum fake_object kind)
{
    switch (kind) {
    case FAKE_PD:
        return device->attr.max_pd;
    case FAKE_MR:
        return device->attr.max_mr;
    case FAKE_CQ:
        return device->attr.max_cq;
    case FAKE_SRQ:
        return device->attr.max_srq;
    case FAKE_QP:
        return device->attr.max_qp;
    case FAKE_AH:
        return device->attr.max_ah;
    default:
        return INT32_MAX;
    }
}

bool fake_born(struct fake_ibv_device *device, enum fake_object kind)
{
    if (device) {
        if ((int)device->state->live[kind] >= limit_of(device, kind))
            return false;
        device->state->live[kind]++;
    }
    fake.live[kind]++;
    return true;
}

void fake_gone(struct fake_ibv_device *device, enum fake_object kind)
{
    if (device)
        device->state->live[kind]--;
    fake.live[kind]--;
}

/* ---------------------------------------------------------------------------------------- a test's life */

void fake_ibv_begin(uint64_t seed)
{
    fake_lock();
    memset(&fake, 0, sizeof(fake));
    mrd_rng_init(&fake.rng, seed);
    fake_leave();
}

unsigned fake_ibv_end(void)
{
    static const char *const names[FAKE_OBJECTS] = {
        "device list", "context", "PD", "MR", "completion channel", "CQ", "SRQ", "QP", "AH",
    };
    unsigned wrong;

    fake_lock();
    wrong = fake.problems;
    for (unsigned i = 0; i < FAKE_OBJECTS; i++) {
        wrong += fake.live[i];
        if (fake.live[i])
            fprintf(stderr, "fake_ibv: %u left of kind %s\n", fake.live[i], names[i]);
    }
    fake_wire_end();
    fake.num_devices = 0;
    fake_leave();
    return wrong;
}

/* ---------------------------------------------------------------------------------------- what tests set */

void fake_ibv_set(const struct fake_ibv_knobs *knobs)
{
    fake_lock();
    fake.knobs = *knobs;
    fake.posted = 0;
    fake_leave();
}

void fake_ibv_set_filter(fake_ibv_filter *filter, void *arg)
{
    fake_lock();
    fake.filter = filter;
    fake.filter_arg = arg;
    fake_leave();
}

static enum fake_call call_by_name(const char *name)
{
    for (unsigned i = 0; i < FAKE_CALLS; i++) {
        if (!strcmp(call_names[i], name))
            return (enum fake_call)i;
    }
    fprintf(stderr, "fake_ibv: no call %s\n", name);
    abort();
}

void fake_ibv_fail(const char *call, unsigned nth, int error)
{
    enum fake_call i = call_by_name(call);

    fake_lock();
    fake.fail_at[i] = nth ? fake.calls[i] + nth : FAKE_ALL_FAIL;
    fake.fail_error[i] = error;
    fake_leave();
}

bool fake_ibv_fail_none(void)
{
    bool any = false;

    fake_lock();
    for (unsigned i = 0; i < FAKE_CALLS; i++) {
        any = any || fake.fail_at[i];
        fake.fail_at[i] = 0;
    }
    fake_leave();
    return any;
}

unsigned fake_ibv_calls(const char *call)
{
    enum fake_call i = call_by_name(call);
    unsigned n;

    fake_lock();
    n = fake.calls[i];
    fake_leave();
    return n;
}

unsigned fake_ibv_objects(void)
{
    unsigned n = 0;

    fake_lock();
    for (unsigned i = 0; i < FAKE_OBJECTS; i++)
        n += fake.live[i];
    fake_leave();
    return n;
}

unsigned fake_ibv_problems(void)
{
    unsigned n;

    fake_lock();
    n = fake.problems;
    fake_leave();
    return n;
}

const char *fake_ibv_problem(void)
{
    return fake.problem;
}

void fake_ibv_clear_problems(void)
{
    fake_lock();
    fake.problems = 0;
    fake.problem[0] = '\0';
    fake_leave();
}
