/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of devices: UDP over any interface, and over one; and what a context tells of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/context_fixture.h"

/* The device of that name; NULL: none is listed. */
static const struct mrd_device *find(struct mrd_device **list, const char *name)
{
    const struct mrd_device *found = NULL;

    for (unsigned i = 0; list[i]; i++) {
        if (strcmp(list[i]->name, name))
            continue;
        assert_null(found); /* each once, however many addresses it has */
        found = list[i];
    }
    return found;
}

TEST(mrd_get_device_list__interfaces)
{
    struct mrd_device **list = mrd_get_device_list(NULL);

    assert_non_null(list);
    assert_string_equal(list[0]->name, "udp");
    const struct mrd_device *lo = find(list, "lo");
    assert_non_null(lo);
    assert_string_equal(lo->transport, "udp");
    for (unsigned i = 0; list[i]; i++)
        assert_ptr_equal(find(list, list[i]->name), list[i]);
    mrd_free_device_list(list);
}

static struct mrd_context_info info_of(struct mrd_context *context)
{
    struct mrd_context_info info;

    assert_int_equal(mrd_query_context(context, &info, sizeof(info)), 0);
    return info;
}

static void expect_loopback(struct mrd_context *context)
{
    char address[MRD_ADDRESS_MAX];

    assert_non_null(context);
    assert_int_equal(mrd_query_address(context, address, sizeof(address)), 0);
    assert_int_equal(strncmp(address, "127.0.0.1:", 10), 0);
    struct mrd_context_info info = info_of(context);
    assert_string_equal(info.interface, "lo");
    assert_int_equal(info.port_state, MRD_PORT_ACTIVE);
    assert_true(info.port_mtu >= 1280);
    assert_int_equal(info.port_bps, 0);
}

/* Bound to the interface's address, unless the attributes name another one. */
TEST(mrd_open_device__interface)
{
    struct mrd_device lo = {.name = "lo", .transport = "udp"};
    struct mrd_context *context = mrd_open_device(&lo, NULL);

    expect_loopback(context);
    assert_string_equal(context->device->name, "lo");
    assert_int_equal(mrd_close_device(context), 0);

    assert_int_equal(setenv("MRD_DEVICE", "lo", 1), 0);
    context = mrd_open_device(NULL, NULL);
    assert_int_equal(unsetenv("MRD_DEVICE"), 0);
    expect_loopback(context);
    assert_int_equal(mrd_close_device(context), 0);

    context = mrd_open_device(&lo, &(struct mrd_context_attr){.address = "127.0.0.7"});
    assert_non_null(context);
    assert_string_equal(info_of(context).interface, ""); /* no interface has this one */
    assert_int_equal(info_of(context).port_state, MRD_PORT_UNKNOWN);
    assert_int_equal(mrd_close_device(context), 0);
}

TEST(mrd_open_device__no_such_interface)
{
    struct mrd_device none = {.name = "nosuch0", .transport = "udp"};

    refused(mrd_open_device(&none, NULL), ENODEV, "nosuch0");
}

/* A caller of the first version gets what it knows. */
TEST(mrd_query_context__first_version)
{
    struct mrd_context *context =
        mrd_open_device(&(struct mrd_device){.name = "lo", .transport = "udp"}, NULL);
    struct mrd_context_info info;

    assert_non_null(context);
    memset(&info, 0x55, sizeof(info));
    assert_int_equal(
        mrd_query_context(context, &info, offsetof(struct mrd_context_info, port_state)), 0);
    assert_true(info.port);
    assert_int_equal(info.port_mtu, 0x55555555);
    assert_int_equal(mrd_close_device(context), 0);
}
