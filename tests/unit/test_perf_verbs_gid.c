/* SPDX-License-Identifier: BSD-2-Clause */
/* Which GID packets come from, of tables as ports have them. */
#include <string.h>

#include <arpa/inet.h>

#include "tests/kit/kit.h"
#include "tools/perf/verbs/verbs.h"

static char error[PERF_ERROR_BYTES];

static struct ibv_gid_entry entry(uint32_t index, uint32_t port, enum ibv_gid_type type,
                                  const char *gid)
{
    struct ibv_gid_entry e = {.gid_index = index, .port_num = port, .gid_type = type};

    assert_int_equal(inet_pton(AF_INET6, gid, e.gid.raw), 1);
    return e;
}

/* The index that is picked, -1: none. */
static int pick(const struct ibv_gid_entry *entries, size_t count, uint8_t port, bool ethernet,
                int wanted)
{
    const struct perf_ibv_port rxe0 = {.device = "rxe0", .number = port};
    const struct ibv_gid_entry *e;

    error[0] = '\0';
    e = perf_ibv_gid_pick(entries, count, &rxe0, ethernet, wanted, error);
    return e ? (int)e->gid_index : -1;
}

TEST(perf_ibv_gid_pick__ipv4_first)
{
    const struct ibv_gid_entry table[] = {
        entry(0, 1, IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.0.1"),
        entry(1, 1, IBV_GID_TYPE_ROCE_V2, "fe80::1"),
        entry(2, 2, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.2"),
        entry(3, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1"),
        entry(4, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.3"),
    };

    assert_int_equal(pick(table, 5, 1, true, -1), 3);
    assert_int_equal(pick(table, 3, 1, true, -1), 1); /* port 2 has the only IPv4 one */
    assert_int_equal(pick(table, 5, 2, true, -1), 2);
}

/* RoCEv1 is taken only if it is asked for. */
TEST(perf_ibv_gid_pick__no_roce_v2)
{
    const struct ibv_gid_entry table[] = {entry(0, 1, IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.0.1")};

    assert_int_equal(pick(table, 1, 1, true, -1), -1);
    assert_non_null(strstr(error, "port 1 of rxe0 has no RoCEv2 GID"));
    assert_non_null(strstr(error, "-x"));
    assert_int_equal(pick(table, 1, 1, true, 0), 0);
    assert_int_equal(pick(table, 1, 1, true, 7), -1);
    assert_non_null(strstr(error, "-x 7"));
}

TEST(perf_ibv_gid_pick__infiniband)
{
    const struct ibv_gid_entry table[] = {entry(0, 1, IBV_GID_TYPE_IB, "fe80::2"),
                                          entry(1, 1, IBV_GID_TYPE_IB, "fec0::2")};

    assert_int_equal(pick(table, 2, 1, false, -1), 0);
    assert_int_equal(pick(table, 2, 1, false, 1), 1);
}
