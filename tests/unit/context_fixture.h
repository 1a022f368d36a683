/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A context on the loopback.
 *
 * TEST_F(local, name) finds one with a domain; open_local() opens others, with attributes or NULL;
 * context_info() tells what is in force, ah_to() makes a handle to another one. refused() is of
 * what a call did not make.
 */
#ifndef MRD_TESTS_UNIT_CONTEXT_FIXTURE_H
#define MRD_TESTS_UNIT_CONTEXT_FIXTURE_H

#include <errno.h>
#include <string.h>

#include "mrd/mrd.h"
#include "tests/kit/kit.h"

/* The call that returned this failed, for that reason; the next one begins without an errno. */
static inline void refused(const void *object, int error, const char *said)
{
    assert_null(object);
    assert_int_equal(errno, error);
    if (!strstr(mrd_last_error(), said))
        fail_msg("\"%s\" does not say: %s", mrd_last_error(), said);
    errno = 0;
}

static inline struct mrd_context *open_local(const struct mrd_context_attr *attr)
{
    struct mrd_context_attr local = {0};

    if (attr)
        local = *attr;
    local.address = "127.0.0.1";
    return mrd_open_device(NULL, &local);
}

static inline struct mrd_context_info context_info(struct mrd_context *context)
{
    struct mrd_context_info info;

    assert_int_equal(mrd_query_context(context, &info, sizeof(info)), 0);
    return info;
}

/* A handle in the domain for who is reached at the other context. */
static inline struct mrd_ah *ah_to(struct mrd_pd *pd, struct mrd_context *other)
{
    char address[MRD_ADDRESS_MAX];
    struct mrd_ah *ah;

    assert_int_equal(mrd_query_address(other, address, sizeof(address)), 0);
    ah = mrd_create_ah(pd, address);
    assert_non_null(ah);
    return ah;
}

FIXTURE(local)
{
    struct mrd_context_attr attr; /* a test may set them in TEST_F_WITH() */
    bool any;                     /* bound to no address */
    struct mrd_context *context;
    struct mrd_pd *pd;
};

FIXTURE_SETUP(local)
{
    self->context = self->any ? mrd_open_device(NULL, &self->attr) : open_local(&self->attr);
    assert_non_null(self->context);
    self->pd = mrd_alloc_pd(self->context);
    assert_non_null(self->pd);
}

FIXTURE_TEARDOWN(local)
{
    assert_int_equal(mrd_dealloc_pd(self->pd), 0);
    assert_int_equal(mrd_close_device(self->context), 0);
}

#endif
