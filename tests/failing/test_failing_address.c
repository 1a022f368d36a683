/* SPDX-License-Identifier: BSD-2-Clause */
/* Who cannot find its address out says so, and tells no other one. */
#include <errno.h>
#include <string.h>

#include "mrd/mrd.h"
#include "tests/failing/fail.h"
#include "tests/kit/kit.h"

int kit_before_all(void)
{
    fail_watch(false);
    return 0;
}

/* A context that is bound to no address. */
FIXTURE(unbound)
{
    struct mrd_context *context;
    char address[MRD_ADDRESS_MAX];
};

FIXTURE_SETUP(unbound)
{
    self->context =
        mrd_open_device(NULL, &(struct mrd_context_attr){.progress = MRD_PROGRESS_MANUAL});
    assert_non_null(self->context);
    assert_int_equal(mrd_query_address(self->context, self->address, sizeof(self->address)), 0);
}

FIXTURE_TEARDOWN(unbound)
{
    fail_end();
    assert_int_equal(mrd_close_device(self->context), 0);
}

static void ask(struct unbound *self, uint64_t calls, int error)
{
    char address[MRD_ADDRESS_MAX];

    fail_begin(&(struct fail_plan){.calls = calls, .error = error});

    int result = mrd_query_address(self->context, address, sizeof(address));

    fail_end();
    if (result == 0) {
        assert_string_equal(address, self->address);
    } else {
        assert_int_equal(result, -error);
        assert_non_null(strstr(mrd_last_error(), strerror(error)));
    }
}

/* No descriptor is left. */
TEST_F(unbound, failing_address__no_descriptor)
{
    ask(self, FAIL_BIT(FAIL_socket) | FAIL_BIT(FAIL_getifaddrs), EMFILE);
    ask(self, FAIL_BIT(FAIL_socket) | FAIL_BIT(FAIL_getifaddrs), ENFILE);
}

/* The kernel has no memory for the list of addresses, which a machine without a route needs. */
TEST_F(unbound, failing_address__no_list)
{
    ask(self, FAIL_BIT(FAIL_getifaddrs), ENOBUFS);
    ask(self, FAIL_BIT(FAIL_getifaddrs) | FAIL_BIT(FAIL_connect), ENOMEM);
}
