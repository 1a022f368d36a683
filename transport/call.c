/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/call.h"

#include <errno.h>

#include "transport/error.h"

int mrd_call_forked(void)
{
    mrd_error_set("the context was opened before fork() and cannot be used in the child");
    return -EPERM;
}

int mrd_call_fail(struct mrd_context_impl *c, int error)
{
    mrd_error_copy(mrd_engine_error(c->engine), error);
    mrd_call_leave(c);
    return error;
}
