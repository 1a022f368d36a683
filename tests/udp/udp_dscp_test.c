/* SPDX-License-Identifier: BSD-2-Clause */
/* The DSCP of packets: of the context, of address handles, and of packets in one batch. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/udp/udp_fixture.h"
#include "transport/movers/udp/udp_state.h"

enum { CONTEXT_DSCP = 10, HANDLE_DSCP = 46, ECT0 = 2 };

/* A plain socket that stands where a peer would be: it reads TOS and traffic class, and is silent. */
struct listener {
    int fd;
    char address[MRD_ADDRESS_MAX];
    struct mrd_addr addr;
};

static struct listener listener_open(bool v4)
{
    const struct timeval patience = {.tv_sec = 5};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t len = v4 ? sizeof(in) : sizeof(in6);
    struct sockaddr *sa = v4 ? (void *)&in : (void *)&in6;
    struct listener l = {.fd = socket(sa->sa_family, SOCK_DGRAM, 0)};
    const int on = 1;

    assert_true(l.fd >= 0);
    assert_int_equal(bind(l.fd, sa, len), 0);
    assert_int_equal(getsockname(l.fd, sa, &len), 0);
    uint16_t port = ntohs(v4 ? in.sin_port : in6.sin6_port);
    snprintf(l.address, sizeof(l.address), v4 ? "127.0.0.1:%u" : "[::1]:%u", port);
    l.addr = (struct mrd_addr){.port = port};
    memcpy(l.addr.ip, v4 ? "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1" : (char *)&in6.sin6_addr, 16);
    assert_int_equal(setsockopt(l.fd, v4 ? IPPROTO_IP : IPPROTO_IPV6,
                                v4 ? IP_RECVTOS : IPV6_RECVTCLASS, &on, sizeof(on)),
                     0);
    assert_int_equal(setsockopt(l.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    return l;
}

/* Reads a datagram: the TOS or traffic class it came with; -1: there is none. */
static int read_tos(const struct listener *l, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[128];
    } control;
    static char data[65536];
    struct iovec iov = {data, sizeof(data)};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};

    if (recvmsg(l->fd, &msg, flags) < 0)
        return -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
        int tclass;

        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
            return *CMSG_DATA(c); /* one byte, unlike the other */
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            memcpy(&tclass, CMSG_DATA(c), sizeof(tclass));
            return tclass;
        }
    }
    fail_msg("no TOS");
    return -1;
}

static int next_tos(const struct listener *l)
{
    return read_tos(l, 0);
}

/* One batch, with packets alone and superpackets: each leaves with its own. */
TEST_F(movers, mrd_udp_tx_burst__dscp)
{
    static const uint8_t dscp[] = {0, HANDLE_DSCP, HANDLE_DSCP, HANDLE_DSCP, 0, 0, 63, 0};
    enum { NUM = sizeof(dscp) };

    for (unsigned v4 = 0; v4 < 2; v4++) {
        struct listener l = listener_open(v4);
        struct mrd_tx_packet packets[NUM];

        for (uint32_t i = 0; i < NUM; i++) {
            packets[i] = fixture_packet(i, 1000, &l.addr);
            packets[i].dscp = dscp[i];
        }
        assert_int_equal(self->a->ops->tx_burst(self->a, packets, NUM), NUM);
        for (uint32_t i = 0; i < NUM; i++)
            assert_int_equal(next_tos(&l), dscp[i] << 2 | ECT0);
        close(l.fd);
    }
}

struct sender {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
};

static struct sender sender_open(const struct mrd_context_attr *attr)
{
    struct sender s = {.context = mrd_open_device(NULL, attr)};

    assert_non_null(s.context);
    s.pd = mrd_alloc_pd(s.context);
    s.cq = mrd_create_cq(s.context, 16, NULL);
    s.qp = mrd_create_qp(
        s.pd, &(struct mrd_qp_init_attr){.send_cq = s.cq,
                                         .recv_cq = s.cq,
                                         .cap = {.max_send_wr = 8, .max_inline_data = 8}});
    assert_non_null(s.qp);
    return s;
}

static void sender_close(struct sender *s)
{
    assert_int_equal(mrd_destroy_qp(s->qp), 0);
    assert_int_equal(mrd_destroy_cq(s->cq), 0);
    assert_int_equal(mrd_dealloc_pd(s->pd), 0);
    assert_int_equal(mrd_close_device(s->context), 0);
}

static void post(struct sender *s, struct mrd_ah *ah)
{
    char word[8] = {0};
    struct mrd_sge sge = {.addr = (uintptr_t)word, .length = sizeof(word)};
    struct mrd_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = MRD_WR_SEND,
                             .send_flags = MRD_SEND_INLINE,
                             .ud = {.ah = ah, .remote_qpn = 16}};
    struct mrd_send_wr *bad;

    assert_int_equal(mrd_post_send(s->qp, &wr, &bad), 0);
}

static struct mrd_ah *handle(struct sender *s, const struct listener *l, uint64_t mask,
                             uint32_t dscp)
{
    struct mrd_ah *ah = mrd_create_ah_ex(
        s->pd, &(struct mrd_ah_init_attr){.comp_mask = mask, .address = l->address, .dscp = dscp});

    assert_non_null(ah);
    return ah;
}

/* The context's where the handle has none, also 0 if it says so; of two handles the last used. */
TEST(mrd_create_ah_ex__dscp)
{
    for (unsigned v4 = 0; v4 < 2; v4++) {
        struct sender s = sender_open(&(struct mrd_context_attr){
            .progress = MRD_PROGRESS_MANUAL, .dscp = CONTEXT_DSCP, .paths = 2});
        struct listener l[3] = {listener_open(v4), listener_open(v4), listener_open(v4)};
        struct mrd_ah *ah[] = {handle(&s, &l[0], 0, 0), mrd_create_ah(s.pd, l[0].address),
                               handle(&s, &l[1], MRD_AH_INIT_ATTR_DSCP, HANDLE_DSCP),
                               handle(&s, &l[2], MRD_AH_INIT_ATTR_DSCP, 0),
                               handle(&s, &l[2], MRD_AH_INIT_ATTR_DSCP, HANDLE_DSCP)};

        post(&s, ah[0]);
        assert_int_equal(next_tos(&l[0]), CONTEXT_DSCP << 2 | ECT0);
        post(&s, ah[2]);
        assert_int_equal(next_tos(&l[1]), HANDLE_DSCP << 2 | ECT0);
        post(&s, ah[3]);
        assert_int_equal(next_tos(&l[2]), ECT0);
        post(&s, ah[4]);
        for (int tos = ECT0; tos != (HANDLE_DSCP << 2 | ECT0);
             tos = read_tos(&l[2], MSG_DONTWAIT)) {
            assert_true(tos == ECT0 || tos < 0); /* copies of what was sent before */
            mrd_progress(s.context);
        }
        for (unsigned i = 0; i < sizeof(ah) / sizeof(ah[0]); i++)
            assert_int_equal(mrd_destroy_ah(ah[i]), 0);
        for (unsigned i = 0; i < 3; i++)
            close(l[i].fd);
        sender_close(&s);
    }
}

static void refused(struct mrd_pd *pd, const struct mrd_ah_init_attr *attr, const char *text)
{
    errno = 0;
    assert_null(mrd_create_ah_ex(pd, attr));
    assert_int_equal(errno, EINVAL);
    assert_non_null(strstr(mrd_last_error(), text));
}

TEST(mrd_create_ah_ex__refuses)
{
    struct sender s = sender_open(NULL);

    refused(s.pd, &(struct mrd_ah_init_attr){.address = NULL}, "needs an address");
    refused(s.pd, &(struct mrd_ah_init_attr){.address = "nowhere"}, "nowhere");
    refused(s.pd, &(struct mrd_ah_init_attr){.comp_mask = 2, .address = "127.0.0.1"}, "0x2");
    refused(s.pd,
            &(struct mrd_ah_init_attr){
                .comp_mask = MRD_AH_INIT_ATTR_DSCP, .address = "127.0.0.1", .dscp = 64},
            "dscp 64");
    sender_close(&s);
}

TEST(mrd_open_device__dscp)
{
    struct listener l = listener_open(true);

    assert_null(mrd_open_device(NULL, &(struct mrd_context_attr){.dscp = 64}));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(setenv("MRD_DSCP", "64", 1), 0);
    assert_null(mrd_open_device(NULL, NULL));
    assert_non_null(strstr(mrd_last_error(), "MRD_DSCP=64"));
    assert_int_equal(setenv("MRD_DSCP", "26", 1), 0);
    struct sender s = sender_open(NULL);
    struct mrd_ah *ah = mrd_create_ah(s.pd, l.address);
    post(&s, ah);
    assert_int_equal(next_tos(&l), 26 << 2 | ECT0);
    assert_int_equal(unsetenv("MRD_DSCP"), 0);
    assert_int_equal(mrd_destroy_ah(ah), 0);
    sender_close(&s);
    close(l.fd);
}
