/* SPDX-License-Identifier: BSD-2-Clause */
/* A ping-pong of short messages: how many system calls stand between a message and its receiver. */
#include <string.h>
#include <sys/socket.h>

#include "udp_process.h"

#include "tests/kit/kit.h"

enum {
    BYTES = 64,
    ROUNDS = 200,
    SETTLED_POLLS = 200, /* of each end, also if the process was stopped meanwhile */
    HABIT = 100,         /* rounds after which both ends know what kind of traffic it is */
};

static unsigned receives; /* system calls that receive, also those that find nothing */

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __real_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
                        socklen_t *from_len);
ssize_t __wrap_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
                        socklen_t *from_len);

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
    receives++;
    return __real_recvmsg(fd, msg, flags);
}

ssize_t __wrap_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
                        socklen_t *from_len)
{
    receives++;
    return __real_recvfrom(fd, buf, len, flags, from, from_len);
}

/* Both take all that there is, also acks that wait for a message that they could ride on. */
static void settle(struct node *a, struct node *b)
{
    uint64_t until_ns = clock_now_ns() + MSEC_NS;
    struct mrd_wc wc;
    unsigned polls = 0;

    do {
        mrd_poll_cq(a->cq, 1, &wc);
        mrd_poll_cq(b->cq, 1, &wc);
    } while (++polls < SETTLED_POLLS || clock_now_ns() < until_ns);
}

/* One message there. Returns the system calls of the poll that has it. */
static unsigned pass(struct node *from, struct mrd_ah *to_ah, struct node *to)
{
    uint64_t until_ns = clock_now_ns() + PATIENCE_S * SEC_NS;
    struct mrd_wc wc = {.opcode = MRD_WC_SEND};

    node_receive(to, 0, 1, 0, BYTES);
    settle(from, to);
    node_send(from, 0, to_ah, to->qp[0]->qp_num, 2, BYTES, BYTES);
    while (wc.opcode != MRD_WC_RECV) {
        receives = 0;
        if (!mrd_poll_cq(to->cq, 1, &wc))
            settle(from, from); /* in vain: it waits for an ack, and then sends */
        must(clock_now_ns() < until_ns);
    }
    must(wc.status == MRD_WC_SUCCESS && wc.byte_len == BYTES);
    return receives;
}

/* Its receiver need not wait until the kernel has said that there is no other. */
TEST(udp_lone__one_call)
{
    static struct node end[2];
    struct mrd_ah *to[2];
    unsigned one_call = 0;

    for (unsigned i = 0; i < 2; i++)
        node_open(&end[i], &(struct mrd_context_attr){.progress = MRD_PROGRESS_MANUAL}, 1, 4,
                  2 * BYTES);
    for (unsigned i = 0; i < 2; i++)
        to[i] = node_ah(&end[i], node_name(&end[!i]).address);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned calls = pass(&end[round % 2], to[round % 2], &end[(round + 1) % 2]);

        one_call += round >= HABIT && calls == 1;
    }
    /* A process that is stopped meanwhile finds repeated packets beside it. */
    assert_in_range(one_call, (ROUNDS - HABIT) * 3 / 4, ROUNDS - HABIT);
    for (unsigned i = 0; i < 2; i++) {
        must(mrd_destroy_ah(to[i]) == 0);
        node_close(&end[i]);
    }
}
