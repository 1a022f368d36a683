/* SPDX-License-Identifier: BSD-2-Clause */
/* Address strings of RDMA contexts. */
#include "tests/ibv/ibv_fixture.h"
#include "tests/kit/kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_ibv_device *device;

FIXTURE_OF(one, fixture_end);

FIXTURE_SETUP(one)
{
    fake_ibv_begin(1);
    device = fake_ibv_add(FAKE_IBV_MLX5, NULL);
    fixture_open(self, "mlx5_0", &(struct mrd_context_attr){.entropy = "ah"});
}

FIXTURE_TEARDOWN(one)
{
    fixture_close(self);
    assert_int_equal(fake_ibv_end(), 0);
}

/* Opens it anew. */
static void open_with(struct fixture_end *end, const char *entropy)
{
    fixture_close(end);
    fixture_open(end, "mlx5_0", &(struct mrd_context_attr){.entropy = entropy});
}

/* What an address is written as; NULL: it is none, and the sentence has `text` in it. */
struct row {
    const char *in, *out, *text;
};

static void check_row(struct fixture_end *end, const struct row *row)
{
    struct mrd_ah *ah = mrd_create_ah(end->pd, row->in);
    uint8_t packed[MRD_PACKED_ADDRESS_MAX];
    char text[MRD_ADDRESS_MAX];
    int packed_bytes;

    if (!row->out) {
        if (ah)
            fail_msg("\"%s\" is taken for an address", row->in);
        assert_int_equal(errno, EINVAL);
        if (!strstr(mrd_last_error(), row->text))
            fail_msg("\"%s\": %s", row->in, mrd_last_error());
        return;
    }
    if (!ah)
        fail_msg("\"%s\": %s", row->in, mrd_last_error());
    assert_int_equal(mrd_query_ah(ah, text, sizeof(text)), 0);
    assert_string_equal(text, row->out);
    packed_bytes = mrd_pack_address(ah->context, row->in, packed, sizeof(packed));
    assert_true(packed_bytes >= 24);
    assert_int_equal(mrd_query_ah(ah, text, strlen(row->out)), -ENOSPC);
    assert_int_equal(mrd_query_ah(ah, text, strlen(row->out) + 1), 0);
    assert_int_equal(
        mrd_unpack_address(ah->context, packed, (size_t)packed_bytes, text, sizeof(text)), 0);
    assert_string_equal(text, row->out);
    assert_int_equal(mrd_destroy_ah(ah), 0);
}

TEST_F(one, mrd_create_ah__strings)
{
    static const struct row rows[] = {
        {"::ffff:10.0.0.7/17", "::ffff:10.0.0.7/17", NULL},
        {"10.0.0.7/17", "::ffff:10.0.0.7/17", NULL},
        {"::FFFF:0A00:0007/2", "::ffff:10.0.0.7/2", NULL},
        {"0:0:0:0:0:ffff:a00:7/16777214", "::ffff:10.0.0.7/16777214", NULL},
        {"10.0.0.7/017", "::ffff:10.0.0.7/17", NULL},
        {"10.0.0.7/17,18,19", "::ffff:10.0.0.7/17", NULL}, /* further ones mean nothing here */
        {"", NULL, "is not an address"},
        {"/", NULL, "is not an address"},
        {"/17", NULL, "is not an address"},
        {"10.0.0.7", NULL, "lacks a QPN"},
        {"::ffff:10.0.0.7", NULL, "lacks a QPN"},
        {"10.0.0.7/", NULL, "is not an address"},
        {"10.0.0.7/0", NULL, "is not an address"},
        {"10.0.0.7/1", NULL, "is not an address"},
        {"10.0.0.7/16777215", NULL, "is not an address"},
        {"10.0.0.7/4294967313", NULL, "is not an address"},
        {"10.0.0.7/18446744073709551633", NULL, "is not an address"},
        {"10.0.0.7/-17", NULL, "is not an address"},
        {"10.0.0.7/+17", NULL, "is not an address"},
        {"10.0.0.7/ 17", NULL, "is not an address"},
        {"10.0.0.7/17 ", NULL, "is not an address"},
        {"10.0.0.7/0x11", NULL, "is not an address"},
        {"10.0.0.7/17,", NULL, "is not an address"},
        {"10.0.0.7/,17", NULL, "is not an address"},
        {"10.0.0.7/17,,18", NULL, "is not an address"},
        {"10.0.0.7/17,1", NULL, "is not an address"},
        {"10.0.0.7/17/18", NULL, "is not an address"},
        {"10.0.0/17", NULL, "is not an address"},
        {"10.0.0.256/17", NULL, "is not an address"},
        {"[::ffff:10.0.0.7]/17", NULL, "is not an address"},
        {"::ffff:10.0.0.7%eth0/17", NULL, "is not an address"},
        {"host.example/17", NULL, "is not an address"},
        {"10.0.0.7:4793", NULL, "is not an address"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/17", NULL,
         "is not an address"},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(self, &rows[i]);
}

/* Where pairs of queue pairs are paths, further QPNs are kept and told; up to eight, each once. */
TEST_F(one, mrd_create_ah__further_qpns)
{
    static const struct row rows[] = {
        {"10.0.0.7/17", "::ffff:10.0.0.7/17", NULL},
        {"10.0.0.7/17,18,19", "::ffff:10.0.0.7/17,18,19", NULL},
        {"10.0.0.7/17", "::ffff:10.0.0.7/17,18,19", NULL}, /* it is known by now */
        {"10.0.0.7/17,19,18,20", "::ffff:10.0.0.7/17,18,19,20", NULL},
        {"10.0.0.7/18", "::ffff:10.0.0.7/18", NULL},
        {"10.0.0.9/2,3,4,5,6,7,8,9,10,11", "::ffff:10.0.0.9/2,3,4,5,6,7,8,9", NULL},
        {"10.0.0.9/12,3,", NULL, "is not an address"},
        {"10.0.0.9/16777214,16777213,16777212,16777211,16777210,16777209,16777208,16777207",
         "::ffff:10.0.0.9/16777214,16777213,16777212,16777211,16777210,16777209,16777208,16777207",
         NULL},
    };

    const char *known = "::ffff:10.0.0.7/17,18,19,20";
    uint8_t packed[MRD_PACKED_ADDRESS_MAX];
    char text[MRD_ADDRESS_MAX];

    open_with(self, "qpair");
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(self, &rows[i]);
    assert_int_equal(mrd_pack_address(self->context, known, packed, sizeof(packed)), 24 + 3 * 3);
    open_with(self, "qpair"); /* it does not know them */
    assert_int_equal(mrd_unpack_address(self->context, packed, 33, text, sizeof(text)), 0);
    assert_string_equal(text, known);
}

/* Packed bytes may come from anybody: to read them changes nothing that is known of a peer. */
TEST_F(one, mrd_unpack_address__teaches_nothing)
{
    static const struct row known = {"10.0.0.7/17,18", "::ffff:10.0.0.7/17,18", NULL};
    uint8_t packed[MRD_PACKED_ADDRESS_MAX];
    char text[MRD_ADDRESS_MAX];
    int n;

    open_with(self, "qpair");
    n = mrd_pack_address(self->context, known.in, packed, sizeof(packed));
    assert_int_equal(n, 27);
    packed[26] = 99;
    assert_int_equal(mrd_unpack_address(self->context, packed, 27, text, sizeof(text)), 0);
    assert_string_equal(text, "::ffff:10.0.0.7/17,99");
    check_row(self, &known);
}

/* Our own address names the first queue pair; where pairs are paths, all of them. */
TEST_F(one, mrd_query_address__own)
{
    for (unsigned e = 0; e < ENTROPIES; e++) {
        char address[MRD_ADDRESS_MAX], expected[MRD_ADDRESS_MAX];
        int n;

        open_with(self, fixture_entropies[e]);
        n = snprintf(expected, sizeof(expected), "::ffff:192.0.2.1/%u", fake_ibv_qpn(device, 0));
        for (unsigned i = 1; e == 2 && i < 8; i++)
            n += snprintf(expected + n, sizeof(expected) - (size_t)n, ",%u",
                          fake_ibv_qpn(device, i));
        assert_int_equal(mrd_query_address(self->context, address, sizeof(address)), 0);
        assert_string_equal(address, expected);
    }
}

/* The other family cannot be reached, whatever is spelled right. */
TEST_F(one, mrd_create_ah__other_family)
{
    assert_null(mrd_create_ah(self->pd, "2001:db8::7/17"));
    assert_int_equal(errno, EHOSTUNREACH);
    assert_non_null(strstr(mrd_last_error(), "is IPv6, but GID 3 of mlx5_0 is IPv4"));
}

/* A device that cannot resolve the address says so at once, and again when asked again. */
TEST_F(one, mrd_create_ah__no_way)
{
    for (unsigned i = 0; i < 2; i++) {
        fake_ibv_fail("ibv_create_ah", 1, ETIMEDOUT);
        assert_null(mrd_create_ah(self->pd, "10.0.0.7/17"));
        assert_int_equal(errno, EHOSTUNREACH);
        assert_non_null(strstr(mrd_last_error(), "no way to ::ffff:10.0.0.7/17"));
    }
    struct mrd_ah *ah = mrd_create_ah(self->pd, "10.0.0.7/17");
    assert_non_null(ah);
    assert_int_equal(mrd_destroy_ah(ah), 0);
}
