/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of a context and its objects that need no traffic. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/context_fixture.h"

static void resolves(struct mrd_context *context, const char *name, const char *expected)
{
    char address[MRD_ADDRESS_MAX];

    if (mrd_resolve(context, name, address, sizeof(address)))
        fail_msg("%s: %s", name, mrd_last_error());
    assert_string_equal(address, expected);
}

/* To an address that the context can send to; what is one already stays. */
TEST_F(local, mrd_resolve__names)
{
    static const char *const malformed[] = {
        "",       ":7",           "localhost:",      "localhost:0",  "a:b:c",
        "host:x", "localhost:7x", "localhost:65536", "localhost:+7", "*",
        "*:5"};
    char address[MRD_ADDRESS_MAX];

    resolves(self->context, "localhost:5", "127.0.0.1:5");
    resolves(self->context, "localhost", "127.0.0.1:4793");
    resolves(self->context, "192.0.2.7:80", "192.0.2.7:80");
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        assert_int_equal(mrd_resolve(self->context, malformed[i], address, sizeof(address)),
                         -EINVAL);
        assert_non_null(strstr(mrd_last_error(), "HOST:PORT"));
    }
    assert_int_equal(mrd_resolve(self->context, "localhost:5", address, 11), -ENOSPC);
    int error = mrd_resolve(self->context, "no-such-host.invalid:5", address, sizeof(address));
    assert_true(error == -ENOENT || error == -EAGAIN);
    assert_non_null(strstr(mrd_last_error(), "no-such-host.invalid"));
}

/* Many clients that come and go find room without a setting. */
TEST_F(local, mrd_query_device__default_tables)
{
    struct mrd_device_attr attr;

    assert_int_equal(mrd_query_device(self->context, &attr, sizeof(attr)), 0);
    assert_int_equal(attr.max_peers, 16384);
    assert_int_equal(attr.max_flows, 4096);
}

/* Limits are those that calls check. */
TEST_F_WITH(local, mrd_query_device__limits, self->attr.max_peers = 77, self->attr.max_flows = 88)
{
    struct mrd_device_attr attr;

    assert_int_equal(mrd_query_device(self->context, &attr, sizeof(attr)), 0);
    assert_int_equal(attr.max_peers, 77);
    assert_int_equal(attr.max_flows, 88);
    assert_int_equal(attr.max_message_bytes, MRD_MESSAGE_BYTES_MAX);
    assert_int_equal(attr.max_inline_data, MRD_INLINE_BYTES_MAX);
    assert_int_equal(attr.max_sge, MRD_SGE_MAX);
    assert_int_equal(attr.max_qp_wr, 1 << 20);
    assert_true(attr.max_paths >= 32 && attr.max_mr && attr.max_mr_bytes > 1ull << 40);
    assert_true(attr.max_rd_atomic && attr.max_res_rd_atomic);
    assert_null(mrd_create_cq(self->context, (int)attr.max_cqe + 1, NULL));
}

/* What a queue pair was made with, with the defaults filled in, and changed to. */
TEST_F(local, mrd_query_qp__what_is_in_force)
{
    struct mrd_cq *cq = mrd_create_cq(self->context, 8, NULL);
    struct mrd_qp_init_attr found, asked = {
                                       .qp_context = self->pd,
                                       .send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = {.max_send_wr = 3, .max_recv_wr = 5},
                                       .sq_sig_all = 1,
                                       .order = MRD_ORDER_MSG,
                                       .qkey = 9,
                                   };
    struct mrd_qp *qp = mrd_create_qp(self->pd, &asked);

    assert_non_null(qp);
    assert_int_equal(asked.cap.max_send_sge, 1);
    assert_int_equal(asked.cap.max_recv_sge, 1);
    assert_int_equal(asked.cap.max_send_wr, 3);
    assert_int_equal(mrd_modify_qp(qp, &(struct mrd_qp_attr){.qkey = 10, .rnr_retry = 2},
                                   MRD_QP_QKEY | MRD_QP_RNR_RETRY),
                     0);
    assert_int_equal(mrd_query_qp(qp, &found, sizeof(found)), 0);
    assert_ptr_equal(found.qp_context, self->pd);
    assert_ptr_equal(found.send_cq, cq);
    assert_ptr_equal(found.recv_cq, cq);
    assert_memory_equal(&found.cap, &asked.cap, sizeof(found.cap));
    assert_int_equal(found.sq_sig_all, 1);
    assert_int_equal(found.order, MRD_ORDER_MSG);
    assert_int_equal(found.qkey, 10);
    assert_int_equal(found.rnr_retry, 2);
    assert_int_equal(found.rnr_timer_ns, 100 * 1000);
    assert_int_equal(found.max_rd_atomic, 16);
    assert_int_equal(mrd_destroy_qp(qp), 0);

    /* They make the same again. */
    assert_int_equal(mrd_query_qp(qp = mrd_create_qp(self->pd, &found), &asked, sizeof(asked)), 0);
    assert_memory_equal(&asked.cap, &found.cap, sizeof(asked.cap));
    assert_int_equal(asked.qkey, 10);
    assert_int_equal(asked.rnr_retry, 2);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
}

/* Only the error state and three attributes can be set, and what is refused changes nothing. */
TEST_F(local, mrd_modify_qp__refuses)
{
    static const struct {
        struct mrd_qp_attr attr;
        int mask;
    } cases[] = {
        {{.qp_state = MRD_QPS_INIT, .qkey = 6}, MRD_QP_STATE | MRD_QP_QKEY},
        {{.qp_state = (enum mrd_qp_state)7, .qkey = 6}, MRD_QP_STATE | MRD_QP_QKEY},
        {{.rnr_retry = 8, .qkey = 6}, MRD_QP_RNR_RETRY | MRD_QP_QKEY},
        {{.qkey = 6}, MRD_QP_QKEY | 1 << 20},
    };
    struct mrd_cq *cq = mrd_create_cq(self->context, 2, NULL);
    struct mrd_qp_init_attr found, asked = {.send_cq = cq, .recv_cq = cq, .qkey = 5};
    struct mrd_qp *qp = mrd_create_qp(self->pd, &asked);

    assert_non_null(qp);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(mrd_modify_qp(qp, &cases[i].attr, cases[i].mask), -EINVAL);
        assert_int_equal(mrd_query_qp(qp, &found, sizeof(found)), 0);
        assert_int_equal(found.qkey, 5);
        assert_int_equal(qp->state, MRD_QPS_RTS);
    }
    /* The error state is for good. */
    assert_int_equal(
        mrd_modify_qp(qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_ERR}, MRD_QP_STATE), 0);
    assert_int_equal(qp->state, MRD_QPS_ERR);
    assert_int_equal(
        mrd_modify_qp(qp, &(struct mrd_qp_attr){.qp_state = MRD_QPS_RTS}, MRD_QP_STATE), -EINVAL);
    assert_int_equal(qp->state, MRD_QPS_ERR);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
}

/* A queue is as long as was asked; without room for one completion there is none. */
TEST_F(local, mrd_create_cq__capacity)
{
    struct mrd_cq *cq = mrd_create_cq(self->context, 5, &cq);
    struct mrd_wc wc;

    assert_non_null(cq);
    assert_int_equal(cq->cqe, 5);
    assert_ptr_equal(cq->cq_context, &cq);
    assert_int_equal(mrd_poll_cq(cq, 1, &wc), 0);
    for (int cqe = 0; cqe >= -1; cqe--)
        refused(mrd_create_cq(self->context, cqe, NULL), EINVAL, "");
    assert_int_equal(mrd_destroy_cq(cq), 0);
}

/* What is in use stays: a domain with a region, queue pair or handle, a queue of a queue pair. */
TEST_F(local, mrd_dealloc_pd__busy)
{
    static char memory[64];
    struct mrd_cq *cq = mrd_create_cq(self->context, 2, NULL);
    struct mrd_mr *mr = mrd_reg_mr(self->pd, memory, sizeof(memory), 0);
    struct mrd_ah *ah = mrd_create_ah(self->pd, "127.0.0.1");
    struct mrd_qp_init_attr init = {.send_cq = cq, .recv_cq = cq};
    struct mrd_qp *qp = mrd_create_qp(self->pd, &init);

    assert_true(mr && ah && qp);
    assert_int_equal(mrd_destroy_cq(cq), -EBUSY);
    assert_int_equal(mrd_dealloc_pd(self->pd), -EBUSY);
    assert_int_equal(mrd_destroy_qp(qp), 0);
    assert_int_equal(mrd_destroy_cq(cq), 0);
    assert_int_equal(mrd_dealloc_pd(self->pd), -EBUSY);
    assert_int_equal(mrd_destroy_ah(ah), 0);
    assert_int_equal(mrd_dealloc_pd(self->pd), -EBUSY);
    assert_int_equal(mrd_dereg_mr(mr), 0);
}

TEST_F(local, mrd_query_address__port_and_room)
{
    char address[MRD_ADDRESS_MAX], expected[MRD_ADDRESS_MAX];

    assert_int_equal(mrd_query_address(self->context, address, sizeof(address)), 0);
    snprintf(expected, sizeof(expected), "127.0.0.1:%u", context_info(self->context).port);
    assert_string_equal(address, expected);
    assert_int_equal(mrd_query_address(self->context, address, strlen(expected)), -ENOSPC);
    assert_int_equal(mrd_query_address(self->context, address, strlen(expected) + 1), 0);
}

TEST_F(local, mrd_reg_mr__bad_arguments)
{
    static char memory[64];

    refused(mrd_reg_mr(self->pd, memory, sizeof(memory), 1 << 20), EINVAL, "");
    refused(mrd_reg_mr(self->pd, memory, sizeof(memory), MRD_ACCESS_REMOTE_WRITE), EINVAL, "");
    refused(mrd_reg_mr(self->pd, memory, SIZE_MAX, MRD_ACCESS_LOCAL_WRITE), EINVAL, "");
}

TEST_F(local, mrd_create_ah__address_and_back)
{
    char text[MRD_ADDRESS_MAX];

    struct mrd_ah *ah = mrd_create_ah(self->pd, "127.0.0.1");

    assert_non_null(ah);
    assert_int_equal(mrd_query_ah(ah, text, sizeof(text)), 0);
    assert_string_equal(text, "127.0.0.1:4793");
    assert_int_equal(mrd_query_ah(ah, text, 3), -ENOSPC);

    struct mrd_peer_attr peer;
    struct mrd_path_attr path;

    assert_int_equal(mrd_query_peer(ah, &peer, sizeof(peer)), -ENOENT);
    assert_int_equal(mrd_query_path(ah, 0, &path, sizeof(path)), -ENOENT);
    assert_int_equal(mrd_query_peer_id(self->context, 12345, &peer, sizeof(peer)), -ENOENT);
    assert_int_equal(mrd_destroy_ah(ah), 0);

    refused(mrd_create_ah(self->pd, "no address"), EINVAL, "");
    refused(mrd_create_ah_from_wc(self->pd, &(struct mrd_wc){.peer_id = 12345}), ENOENT, "");
}

/* An address fits in few bytes, and comes back as it was; bytes of anybody are not taken for one. */
TEST_F_WITH(local, mrd_pack_address__and_back, self->any = true)
{
    static const struct {
        const char *in, *out;
    } rows[] = {{"192.0.2.7", "192.0.2.7:4793"},
                {"127.0.0.1:65535", "127.0.0.1:65535"},
                {"[2001:db8::7]:17", "[2001:db8::7]:17"},
                {"[fe80::7%lo]:17", "[fe80::7%lo]:17"},
                {"[fe80::7]:17", NULL},
                {"224.0.0.1:17", NULL},
                {"", NULL}};
    uint8_t packed[MRD_PACKED_ADDRESS_MAX + 3], changed[sizeof(packed)];
    char text[MRD_ADDRESS_MAX];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int n = mrd_pack_address(self->context, rows[i].in, packed, sizeof(packed));

        assert_int_equal(n, rows[i].out ? 24 : -EINVAL);
        if (n < 0)
            continue;
        assert_int_equal(mrd_pack_address(self->context, rows[i].in, packed, 23), -ENOSPC);
        assert_int_equal(mrd_unpack_address(self->context, packed, 24, text, sizeof(text)), 0);
        assert_string_equal(text, rows[i].out);
        assert_int_equal(mrd_unpack_address(self->context, packed, 24, text, strlen(rows[i].out)),
                         -ENOSPC);
        for (size_t len = 0; len <= sizeof(packed); len++)
            if (len != 24)
                assert_int_equal(mrd_unpack_address(self->context, packed, len, text, sizeof(text)),
                                 -EINVAL);
    }
    assert_int_equal(mrd_pack_address(self->context, "192.0.2.7:1", packed, sizeof(packed)), 24);
    for (unsigned i = 12; i < 24;
         i++) { /* multicast, a scope, another kind, no port, no port's number */
        static const uint8_t wrong[] = {224, 0, 0, 0, 9, 9, 9, 9, 'i', 1, 0, 0};

        memcpy(changed, packed, 24);
        changed[i] = wrong[i - 12];
        assert_int_equal(mrd_unpack_address(self->context, changed, 24, text, sizeof(text)),
                         (i >= 13 && i < 20) || i == 22 ? 0 : -EINVAL);
    }
    assert_int_equal(mrd_pack_address(self->context, "[2001:db8::7]:17", packed, 24), 24);
    packed[19] = (uint8_t)if_nametoindex("lo"); /* a scope, which means nothing there */
    assert_int_equal(mrd_unpack_address(self->context, packed, 24, text, sizeof(text)), 0);
    assert_string_equal(text, "[2001:db8::7]:17");
    memset(changed, 0, sizeof(changed));
    assert_int_equal(mrd_unpack_address(self->context, changed, 24, text, sizeof(text)), -EINVAL);
}

TEST_F(local, mrd_query_counters__names_and_count)
{
    struct mrd_counter counters[256];

    int n = mrd_query_counters(self->context, NULL, 0);

    assert_in_range(n, 3, 256);
    memset(counters, 0, sizeof(counters));
    assert_int_equal(mrd_query_counters(self->context, counters, n - 1), n);
    assert_non_null(counters[n - 2].name);
    assert_null(counters[n - 1].name);
    assert_int_equal(mrd_query_counters(self->context, counters, 256), n);
    for (int i = 0; i < n; i++) {
        assert_non_null(counters[i].name);
        assert_non_null(counters[i].unit);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(counters[i].name, counters[j].name);
    }
}

TEST(mrd_wc_status_str__all_different)
{
    for (int i = 0; i <= MRD_WC_GENERAL_ERR; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(mrd_wc_status_str((enum mrd_wc_status)i),
                                    mrd_wc_status_str((enum mrd_wc_status)j));
    assert_string_equal(mrd_wc_status_str((enum mrd_wc_status)1000), "unknown status");
}

TEST(mrd_event_type_str__all_different)
{
    for (int i = 0; i <= MRD_EVENT_SRQ_LIMIT_REACHED; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(mrd_event_type_str((enum mrd_event_type)i),
                                    mrd_event_type_str((enum mrd_event_type)j));
    assert_string_equal(mrd_event_type_str((enum mrd_event_type)1000), "unknown event");
}

TEST(mrd_version__agrees_with_the_header)
{
    char expected[32];

    snprintf(expected, sizeof(expected), "%d.%d.%d", MRD_VERSION_MAJOR, MRD_VERSION_MINOR,
             MRD_VERSION_PATCH);
    assert_string_equal(mrd_version(), expected);
}

int kit_before_all(void)
{
    unsetenv("MRD_LOG");
    unsetenv("MRD_PATHS");
    unsetenv("MRD_SPRAY");
    unsetenv("MRD_CC");
    return 0;
}
