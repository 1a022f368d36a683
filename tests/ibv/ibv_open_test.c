/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening an RDMA device: which there are, which GID, what is refused and how it is said, and that
 * nothing leaks.
 */
#include "tests/ibv/ibv_fixture.h"
#include "tests/kit/kit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct fake_ibv_device *device; /* "mlx5_0" */

static void begin(void)
{
    fake_ibv_begin(1);
    device = fake_ibv_add(FAKE_IBV_MLX5, NULL);
}

FIXTURE(fake_device){};

FIXTURE_SETUP(fake_device)
{
    begin();
}

FIXTURE_TEARDOWN(fake_device)
{
    assert_int_equal(fake_ibv_end(), 0);
}

/* The GID that a context takes with these attributes, as its address says. */
static void assert_gid(const struct mrd_context_attr *attr, const char *gid)
{
    struct mrd_context *context = fixture_must_open("mlx5_0", attr);
    char address[MRD_ADDRESS_MAX];

    assert_int_equal(mrd_query_address(context, address, sizeof(address)), 0);
    *strchr(address, '/') = '\0';
    assert_string_equal(address, gid);
    assert_int_equal(mrd_close_device(context), 0);
}

/* -------------------------------------------------------------------------------------- devices */

/* "udp" comes first, then network interfaces, and RDMA devices that can send datagrams. */
TEST_F(fake_device, mrd_get_device_list__rdma)
{
    static const char *const names[] = {"mlx5_0", "rxe0", "rdmap0s6"};
    int n, at = 0;

    fake_ibv_add(FAKE_IBV_RXE, "rxe0");
    fake_ibv_add(FAKE_IBV_MLX5, "siw0")->transport_type = IBV_TRANSPORT_IWARP;
    fake_ibv_add(FAKE_IBV_MLX5, "rdmap0s6")->transport_type = IBV_TRANSPORT_UNSPECIFIED;
    fake_ibv_add(FAKE_IBV_HNS, "a_name_that_is_longer_than_31_characters");
    struct mrd_device **list = mrd_get_device_list(&n);
    assert_non_null(list);
    assert_string_equal(list[0]->name, "udp");
    while (list[at] && !strcmp(list[at]->transport, "udp"))
        at++;
    assert_int_equal(n, at + 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(list[at + i]->name, names[i]);
        assert_string_equal(list[at + i]->transport, "ibv");
    }
    assert_null(list[n]);
    mrd_free_device_list(list);
}

/* No device of the list is an RDMA one. */
static void expect_no_rdma(void)
{
    struct mrd_device **list = mrd_get_device_list(NULL);

    assert_non_null(list);
    for (unsigned i = 0; list[i]; i++)
        assert_string_equal(list[i]->transport, "udp");
    mrd_free_device_list(list);
}

TEST_F(fake_device, mrd_get_device_list__no_rdma)
{
    fake_ibv_fail("ibv_get_device_list", 1, ENOSYS);
    expect_no_rdma();
    assert_int_equal(fake_ibv_end(), 0);
    fake_ibv_begin(1);
    expect_no_rdma();
}

TEST_F(fake_device, mrd_open_device__is_not_there)
{
    fixture_refused("mlx5_9", NULL, ENODEV, "no RDMA device mlx5_9");
    fake_ibv_fail("ibv_open_device", 1, EACCES);
    fixture_refused("mlx5_0", NULL, EACCES, "/dev/infiniband");
    fake_ibv_fail("ibv_get_device_list", 1, ENOSYS);
    fixture_refused("mlx5_0", NULL, ENODEV, "no RDMA device");
}

/* ------------------------------------------------------------------------------------------ GID */

TEST_F(fake_device, mrd_open_device__ipv4_gid_first)
{
    assert_gid(NULL, "::ffff:192.0.2.1");
    fake_ibv_gid(device, 5, IBV_GID_TYPE_ROCE_V2, "2001:db8::5");
    assert_gid(NULL, "::ffff:192.0.2.1");
    fake_ibv_gid(device, 3, IBV_GID_TYPE_IB, NULL);
    assert_gid(NULL, "2001:db8::5");
    fake_ibv_gid(device, 5, IBV_GID_TYPE_IB, NULL);
    assert_gid(NULL, "fe80::1");
}

TEST_F(fake_device, mrd_open_device__gid_index)
{
    struct mrd_context_attr attr = {.gid_index = 1};

    assert_gid(&attr, "fe80::1");
    attr.gid_index = 2;
    fixture_refused("mlx5_0", &attr, EADDRNOTAVAIL, "not a RoCEv2 one");
    attr.gid_index = 0;
    attr.comp_mask = MRD_CONTEXT_ATTR_GID_INDEX;
    fixture_refused("mlx5_0", &attr, EADDRNOTAVAIL, "GID 0");
    attr.gid_index = 12;
    fixture_refused("mlx5_0", &attr, EADDRNOTAVAIL, "no GID 12");
    fake_ibv_gid(device, 3, IBV_GID_TYPE_IB, NULL);
    attr.gid_index = 3;
    fixture_refused("mlx5_0", &attr, EADDRNOTAVAIL, "no GID 3");
}

TEST_F(fake_device, mrd_open_device__gid_by_address)
{
    struct mrd_context_attr attr = {.address = "192.0.2.77"};

    fake_ibv_gid(device, 5, IBV_GID_TYPE_ROCE_V2, "192.0.2.77");
    assert_gid(&attr, "::ffff:192.0.2.77");
    attr.address = "fe80::1";
    assert_gid(&attr, "fe80::1");
    attr.address = "192.0.2.78";
    fixture_refused("mlx5_0", &attr, EADDRNOTAVAIL, "192.0.2.78");
    attr.address = "mlx5_0";
    fixture_refused("mlx5_0", &attr, EINVAL, "not an IP address");
}

TEST_F(fake_device, mrd_open_device__no_routable_gid)
{
    fake_ibv_gid(device, 1, IBV_GID_TYPE_IB, NULL);
    fake_ibv_gid(device, 3, IBV_GID_TYPE_IB, NULL);
    fixture_refused("mlx5_0", NULL, EADDRNOTAVAIL, "no RoCEv2 GID");
}

/* ----------------------------------------------------------------------------------------- port */

TEST_F(fake_device, mrd_open_device__port)
{
    struct mrd_context_attr attr = {.port_num = 2};

    fixture_refused("mlx5_0", &attr, EINVAL, "no port 2");
    attr.port_num = 1;
    assert_gid(&attr, "::ffff:192.0.2.1");
    /* 257 is not port 1. */
    attr.port_num = 257;
    fixture_refused("mlx5_0", &attr, EINVAL, "no port 257");
    fake_ibv_raise(device, IBV_EVENT_PORT_ERR, 1);
    fixture_refused("mlx5_0", NULL, ENETDOWN, "not active but down");
    fake_ibv_raise(device, IBV_EVENT_PORT_ACTIVE, 1);
    device->ports[0].attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
    fixture_refused("mlx5_0", NULL, EPROTONOSUPPORT, "InfiniBand");
}

/* Without the lower header in front of a datagram nobody knows whom to answer. */
TEST_F(fake_device, mrd_open_device__efa)
{
    fake_ibv_add(FAKE_IBV_MLX5, "rdmap0s6")->attr.vendor_id = 0x1d0f; /* Amazon */
    fixture_refused("rdmap0s6", NULL, EOPNOTSUPP, "do not tell their sender");
}

TEST_F(fake_device, mrd_open_device__second_port)
{
    struct mrd_context_attr attr = {.port_num = 2};

    device->attr.phys_port_cnt = 2;
    device->ports[1].gids[0] = device->ports[0].gids[3];
    device->ports[1].gids[0].gid.raw[15] = 99;
    device->ports[1].attr.gid_tbl_len = 1;
    assert_gid(&attr, "::ffff:192.0.2.99");
    assert_gid(NULL, "::ffff:192.0.2.1");
}

TEST_F(fake_device, mrd_open_device__mtu)
{
    struct mrd_context_attr attr = {.mtu = 4096};

    device->ports[0].attr.active_mtu = IBV_MTU_512;
    fixture_refused("mlx5_0", NULL, EMSGSIZE, "MTU of 512 bytes");
    device->ports[0].attr.active_mtu = IBV_MTU_4096;
    fixture_refused("mlx5_0", &attr, EMSGSIZE, "at most 3968");
    attr.mtu = 3968;
    assert_gid(&attr, "::ffff:192.0.2.1");
}

/* --------------------------------------------------------------------------- attributes, limits */

TEST_F(fake_device, mrd_open_device__attributes_of_udp)
{
    const uint16_t ports[] = {5000};
    struct mrd_context_attr attr = {.port = 4793};

    fixture_refused("mlx5_0", &attr, EINVAL, "port 4793");
    attr = (struct mrd_context_attr){.source_ports = ports, .num_source_ports = 1};
    fixture_refused("mlx5_0", &attr, EINVAL, "source_ports");
    attr = (struct mrd_context_attr){.entropy = "quantum"};
    fixture_refused("mlx5_0", &attr, EINVAL, "entropy \"quantum\"");
}

TEST_F(fake_device, mrd_open_device__too_small_limits)
{
    static const struct {
        size_t offset; /* of an int in struct ibv_device_attr */
        int value;
        const char *text;
    } limits[] = {
        {offsetof(struct ibv_device_attr, max_cqe), 32, "completion queues of at most 32"},
        {offsetof(struct ibv_device_attr, max_srq_wr), 32, "receive queues of at most 32"},
        {offsetof(struct ibv_device_attr, max_qp_wr), 8, "send queues of at most 8"},
        {offsetof(struct ibv_device_attr, max_qp), 0, "queue pairs of at most 0"},
    };
    const struct ibv_device_attr good = device->attr;

    for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        device->attr = good;
        memcpy((char *)&device->attr + limits[i].offset, &limits[i].value, sizeof(int));
        fixture_refused("mlx5_0", NULL, EOPNOTSUPP, limits[i].text);
    }
}

/* Limits that bind without being too small are kept to: the fake enforces them. */
TEST_F(fake_device, mrd_open_device__tight_limits)
{
    struct mrd_context_attr attr = {.entropy = "qp"};
    struct mrd_context_info info;

    device->attr.max_cqe = 64;
    device->attr.max_srq_wr = 64;
    device->attr.max_qp_wr = 16;
    device->attr.max_qp = 5;
    device->attr.max_sge = 1;
    device->attr.max_srq_sge = 1;
    device->max_inline = 0;
    struct mrd_context *context = fixture_must_open("mlx5_0", &attr);
    assert_int_equal(mrd_query_context(context, &info, sizeof(info)), 0);
    assert_int_equal(info.paths, 5);
    assert_int_equal(mrd_close_device(context), 0);
    attr.paths = 6;
    fixture_refused("mlx5_0", &attr, EINVAL, "5 queue pairs");
}

TEST_F(fake_device, mrd_open_device__locked_memory)
{
    struct rlimit before, low = {.rlim_cur = 65536};

    device->memlock_bytes = 65536;
    fixture_refused("mlx5_0", NULL, ENOMEM, "memory for packets");
    if (getrlimit(RLIMIT_MEMLOCK, &before)) /* the sentence tells of it where there is one */
        return;
    low.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
    fixture_refused("mlx5_0", NULL, ENOMEM, "the limit of locked memory is 64 KiB");
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST_F(fake_device, mrd_reg_mr__locked_memory)
{
    static uint8_t memory[1 << 20];
    struct mrd_context *context = fixture_open_context("mlx5_0", NULL);
    struct mrd_pd *pd = mrd_alloc_pd(context);

    device->memlock_bytes = 1; /* what is registered already stays */
    assert_null(mrd_reg_mr(pd, memory, sizeof(memory), MRD_ACCESS_LOCAL_WRITE));
    assert_int_equal(errno, ENOMEM);
    assert_non_null(strstr(mrd_last_error(), "memory region (1048576 bytes)"));
    device->memlock_bytes = 0;
    /* The engine refuses what the device took: then the device is told. */
    assert_null(mrd_reg_mr(pd, memory, sizeof(memory), MRD_ACCESS_REMOTE_WRITE));
    assert_int_equal(errno, EINVAL);
    struct mrd_mr *mr = mrd_reg_mr(pd, memory, sizeof(memory), MRD_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    assert_int_equal(mrd_dereg_mr(mr), 0);
    assert_int_equal(mrd_dealloc_pd(pd), 0);
    assert_int_equal(mrd_close_device(context), 0);
}

/* A device that pins memory cannot wait until it is there. */
TEST_F(fake_device, mrd_reg_mr__on_demand_pins)
{
    static uint8_t memory[64];
    struct mrd_context *context = fixture_open_context("mlx5_0", NULL);
    struct mrd_pd *pd = mrd_alloc_pd(context);

    assert_null(mrd_reg_mr(pd, memory, sizeof(memory), MRD_ACCESS_ON_DEMAND));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_non_null(strstr(mrd_last_error(), "pins memory"));
    assert_int_equal(mrd_dealloc_pd(pd), 0);
    assert_int_equal(mrd_close_device(context), 0);
}

TEST_F(fake_device, mrd_query_context__of_the_port)
{
    struct mrd_context *context = fixture_open_context("mlx5_0", NULL);
    struct mrd_context_info info;

    assert_int_equal(mrd_query_context(context, &info, sizeof(info)), 0);
    assert_int_equal(info.paths, 32);
    assert_int_equal(info.mtu, 3968);
    assert_true(info.link_bps == 100000000000);
    assert_int_equal(info.port, 0);
    assert_int_equal(info.port_state, MRD_PORT_ACTIVE);
    assert_int_equal(info.port_mtu, 4096);
    assert_true(info.port_bps == info.link_bps);
    assert_int_equal(mrd_close_device(context), 0);
}

/* ------------------------------------------------------------------------------------- failures */

/* Whichever call fails, whenever it does: a sentence, an errno, and nothing is left. */
TEST_F(fake_device, mrd_open_device__any_call_fails)
{
    static const char *const calls[] = {
        "ibv_open_device", "ibv_query_device", "ibv_query_port",          "ibv_query_gid_table",
        "ibv_alloc_pd",    "ibv_reg_mr",       "ibv_create_comp_channel", "ibv_create_cq",
        "ibv_create_srq",  "ibv_create_qp",    "ibv_modify_qp",
    };
    unsigned failures = 0;

    for (unsigned e = 0; e < ENTROPIES; e++) {
        for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
            for (unsigned nth = 1;; nth++) {
                struct mrd_context_attr attr = {.entropy = fixture_entropies[e]};

                fake_ibv_fail(calls[i], nth, EPERM);
                errno = 0;
                struct mrd_context *context = fixture_open_context("mlx5_0", &attr);
                if (fake_ibv_fail_none()) { /* it is not called so often */
                    assert_non_null(context);
                    assert_int_equal(mrd_close_device(context), 0);
                    break;
                }
                if (context) {
                    fail_msg("%s, %s, call %u: opened all the same", fixture_entropies[e], calls[i],
                             nth);
                } else {
                    assert_int_not_equal(errno, 0);
                    assert_true(strlen(mrd_last_error()) > 10);
                    assert_non_null(strstr(mrd_last_error(), "mlx5_0"));
                }
                assert_int_equal(fake_ibv_end(), 0); /* nothing is left */
                begin();
                failures++;
            }
        }
    }
    assert_true(failures > 100);
}
