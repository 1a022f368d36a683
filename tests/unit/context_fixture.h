/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A context on the loopback.
 *
 * open_local(), with attributes or NULL; context_info() tells what is in force.
 */
#ifndef MRD_TESTS_UNIT_CONTEXT_FIXTURE_H
#define MRD_TESTS_UNIT_CONTEXT_FIXTURE_H

#include "mrd/mrd.h"
#include "tests/kit/kit.h"

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

#endif
