/* SPDX-License-Identifier: BSD-2-Clause */
/* Nobody listens at an address: ICMP says so, and work fails long before the peer timeout. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mrd/mrd.h"
#include "tests/kit/kit.h"

#define SEC_NS     1000000000ull
#define TIMEOUT_NS (600 * SEC_NS) /* of the peer: a test that needs it hangs */

struct end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    char memory[64];
    struct mrd_mr *mr;
};

static void end_open(struct end *end, const char *address)
{
    end->context = mrd_open_device(NULL, &(struct mrd_context_attr){.progress = MRD_PROGRESS_MANUAL,
                                                                    .address = address,
                                                                    .peer_timeout_ns = TIMEOUT_NS});
    assert_non_null(end->context);
    end->pd = mrd_alloc_pd(end->context);
    end->cq = mrd_create_cq(end->context, 2048, NULL);
    end->qp = mrd_create_qp(end->pd, &(struct mrd_qp_init_attr){.send_cq = end->cq,
                                                                .recv_cq = end->cq,
                                                                .cap = {.max_send_wr = 1024,
                                                                        .max_recv_wr = 1024,
                                                                        .max_send_sge = 1,
                                                                        .max_recv_sge = 1}});
    end->mr = mrd_reg_mr(end->pd, end->memory, sizeof(end->memory), MRD_ACCESS_LOCAL_WRITE);
    assert_non_null(end->qp);
    assert_non_null(end->mr);
}

static void end_close(struct end *end)
{
    assert_int_equal(mrd_destroy_qp(end->qp), 0);
    assert_int_equal(mrd_dereg_mr(end->mr), 0);
    assert_int_equal(mrd_destroy_cq(end->cq), 0);
    assert_int_equal(mrd_dealloc_pd(end->pd), 0);
    assert_int_equal(mrd_close_device(end->context), 0);
}

static uint64_t counter(const struct end *end, const char *name)
{
    struct mrd_counter counters[256];
    int count = mrd_query_counters(end->context, counters, 256);

    for (int i = 0; i < count && i < 256; i++) {
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].value;
    }
    fail_msg("no counter is called %s", name);
    return 0;
}

static void post(struct end *end, struct mrd_ah *ah, uint64_t wr_id)
{
    struct mrd_sge sge = {.addr = (uintptr_t)end->memory, .length = 8, .lkey = end->mr->lkey};
    struct mrd_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = MRD_WR_SEND,
                             .send_flags = MRD_SEND_SIGNALED,
                             .ud = {.ah = ah, .remote_qpn = 16}};
    struct mrd_send_wr *bad;

    assert_int_equal(mrd_post_send(end->qp, &wr, &bad), 0);
}

static void post_recv(struct end *end)
{
    struct mrd_sge sge = {.addr = (uintptr_t)end->memory, .length = 8, .lkey = end->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_post_recv(end->qp, &wr, &bad), 0);
}

/* A port of the loopback address at which nobody listens now. */
static void closed_port(const char *host, char *address, size_t len)
{
    bool v4 = host[0] != '[';
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr *sa = v4 ? (void *)&in : (void *)&in6;
    socklen_t sa_len = v4 ? sizeof(in) : sizeof(in6);
    int fd = socket(sa->sa_family, SOCK_DGRAM, 0);

    assert_int_equal(bind(fd, sa, sa_len), 0);
    assert_int_equal(getsockname(fd, sa, &sa_len), 0);
    snprintf(address, len, "%s:%u", host, ntohs(v4 ? in.sin_port : in6.sin6_port));
    close(fd);
}

static double now_sec(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static char logged[256];

static void keep_log(void *arg, enum mrd_log_level level, const char *text)
{
    (void)level;
    (void)arg;
    snprintf(logged, sizeof(logged), "%s", text);
}

/* `local`: what our own sockets are bound to. */
static void nobody(const char *local, const char *host)
{
    struct mrd_async_event event;
    char address[MRD_ADDRESS_MAX];
    struct mrd_wc wc;
    struct end end;

    end_open(&end, local);
    closed_port(host, address, sizeof(address));
    struct mrd_ah *ah = mrd_create_ah(end.pd, address);
    assert_non_null(ah);
    logged[0] = '\0';
    mrd_set_log(keep_log, NULL, MRD_LOG_WARN);
    double start = now_sec();
    post(&end, ah, 1);
    while (!mrd_poll_cq(end.cq, 1, &wc)) {}
    print_message("%s, bound to %s: failed after %.3f s\n", address, local ? local : "any address",
                  now_sec() - start);
    mrd_set_log(NULL, NULL, MRD_LOG_WARN);
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(mrd_get_async_event(end.context, &event), 0);
    assert_int_equal(event.event_type, MRD_EVENT_PEER_UNREACHABLE);
    assert_string_equal(event.address, address);
    mrd_ack_async_event(&event);
    assert_non_null(strstr(logged, "nobody listens"));
    assert_non_null(strstr(logged, address));
    assert_int_equal(mrd_destroy_ah(ah), 0);
    end_close(&end);
}

TEST(mrd_post_send__nobody_listens)
{
    nobody(NULL, "127.0.0.1");
    nobody(NULL, "[::1]");
    nobody("127.0.0.1", "127.0.0.1");
    nobody("::1", "[::1]");
}

/* What ICMP says of one costs the others nothing, though they share sockets. */
TEST(mrd_post_send__nobody_beside_others)
{
    struct end a, b;
    char address[MRD_ADDRESS_MAX];
    unsigned received = 0, sent = 0, failed = 0;
    struct mrd_peer_attr attr;

    end_open(&a, "127.0.0.1");
    end_open(&b, "127.0.0.1");
    assert_int_equal(mrd_query_address(b.context, address, sizeof(address)), 0);
    struct mrd_ah *live = mrd_create_ah(a.pd, address);
    closed_port("127.0.0.1", address, sizeof(address));
    struct mrd_ah *dead = mrd_create_ah(a.pd, address);
    for (unsigned i = 0; i < 16; i++)
        post(&a, dead, 1000 + i);
    while (failed < 16 || received < 500 || sent < received) {
        struct mrd_wc wc;

        if (received == sent && received < 500) {
            post_recv(&b);
            post(&a, live, received);
        }
        if (mrd_poll_cq(a.cq, 1, &wc)) {
            assert_int_equal(wc.status, wc.wr_id >= 1000 ? MRD_WC_RETRY_EXC_ERR : MRD_WC_SUCCESS);
            failed += wc.wr_id >= 1000;
            sent += wc.wr_id < 1000;
        }
        if (mrd_poll_cq(b.cq, 1, &wc))
            received++;
    }
    /*
     * On a slow machine there are probes. But nothing was lost: what was sent again, other than for
     * a challenge, comes twice.
     */
    assert_int_equal(mrd_query_peer(live, &attr, sizeof(attr)), 0);
    while (counter(&b, "rx_duplicates") + counter(&a, "retx_challenge") <
           attr.packets_retransmitted)
        assert_true(mrd_progress(b.context) >= 0);
    assert_int_equal(mrd_destroy_ah(live), 0);
    assert_int_equal(mrd_destroy_ah(dead), 0);
    end_close(&a);
    end_close(&b);
}
