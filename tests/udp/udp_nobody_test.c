/* SPDX-License-Identifier: BSD-2-Clause */
/* Nobody listens at an address: ICMP says so, and work fails long before the peer timeout. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "udp_process.h"

#include "tests/kit/kit.h"

#define TIMEOUT_NS (600 * SEC_NS) /* of the peer: a test that needs it hangs */

static void open_at(struct node *n, const char *address)
{
    node_open(n,
              &(struct mrd_context_attr){.progress = MRD_PROGRESS_MANUAL,
                                         .address = address,
                                         .peer_timeout_ns = TIMEOUT_NS},
              1, 1024, 64);
}

static void post(struct node *n, struct mrd_ah *ah, uint64_t wr_id)
{
    node_send(n, 0, ah, MRD_FIRST_QP_NUM, wr_id, 0, 8);
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
    struct node end;

    open_at(&end, local);
    closed_port(host, address, sizeof(address));
    struct mrd_ah *ah = node_ah(&end, address);
    logged[0] = '\0';
    mrd_set_log(keep_log, NULL, MRD_LOG_WARN);
    uint64_t start_ns = clock_now_ns();
    post(&end, ah, 1);
    while (!mrd_poll_cq(end.cq, 1, &wc)) {}
    print_message("%s, bound to %s: failed after %.3f s\n", address, local,
                  (double)(clock_now_ns() - start_ns) / 1e9);
    mrd_set_log(NULL, NULL, MRD_LOG_WARN);
    assert_int_equal(wc.status, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(mrd_get_async_event(end.context, &event), 0);
    assert_int_equal(event.event_type, MRD_EVENT_PEER_UNREACHABLE);
    assert_string_equal(event.address, address);
    mrd_ack_async_event(&event);
    assert_non_null(strstr(logged, "nobody listens"));
    assert_non_null(strstr(logged, address));
    assert_int_equal(mrd_destroy_ah(ah), 0);
    node_close(&end);
}

TEST(mrd_post_send__nobody_listens)
{
    nobody("::", "127.0.0.1");
    nobody("::", "[::1]");
    nobody("127.0.0.1", "127.0.0.1");
    nobody("::1", "[::1]");
}

/* What ICMP says of one costs the others nothing, though they share sockets. */
TEST(mrd_post_send__nobody_beside_others)
{
    struct node a, b;
    char address[MRD_ADDRESS_MAX];
    unsigned received = 0, sent = 0, failed = 0;
    struct mrd_peer_attr attr;

    open_at(&a, "127.0.0.1");
    open_at(&b, "127.0.0.1");
    struct mrd_ah *live = node_ah(&a, node_name(&b).address);
    closed_port("127.0.0.1", address, sizeof(address));
    struct mrd_ah *dead = node_ah(&a, address);
    for (unsigned i = 0; i < 16; i++)
        post(&a, dead, 1000 + i);
    while (failed < 16 || received < 500 || sent < received) {
        struct mrd_wc wc;

        if (received == sent && received < 500) {
            node_receive(&b, 0, 7, 0, 8);
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
    while (node_counter(&b, "rx_duplicates") + node_counter(&a, "retx_challenge") <
           attr.packets_retransmitted)
        assert_true(mrd_progress(b.context) >= 0);
    assert_int_equal(mrd_destroy_ah(live), 0);
    assert_int_equal(mrd_destroy_ah(dead), 0);
    node_close(&a);
    node_close(&b);
}
