/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/udp/udp_fail.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/udp/udp_fixture.h"

struct fail fail;

ssize_t __real_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
                      socklen_t to_len);
ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
                      socklen_t to_len);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags);

static bool has_control(const struct msghdr *msg, int level, int type)
{
    for (struct cmsghdr *c = msg ? CMSG_FIRSTHDR(msg) : NULL; c;
         c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c)) {
        if (c->cmsg_level == level && c->cmsg_type == type)
            return true;
    }
    return false;
}

/* Whether this message is to fail, with errno set. NULL: it has only a destination. */
static bool fails(const struct msghdr *msg)
{
    if (fail.error == 0 || (fail.superpackets && !has_control(msg, IPPROTO_UDP, UDP_SEGMENT)) ||
        (fail.named && !has_control(msg, IPPROTO_IPV6, IPV6_PKTINFO)))
        return false;
    if (fail.passes > 0) {
        fail.passes--;
        return false;
    }
    errno = fail.error;
    if (fail.once)
        fail.error = 0;
    return true;
}

ssize_t __wrap_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
                      socklen_t to_len)
{
    fail.calls++;
    if (fails(NULL))
        return -1;
    fail.messages++;
    return __real_sendto(fd, buf, len, flags, to, to_len);
}

static ssize_t send_message(int fd, const struct msghdr *msg, int flags)
{
    if (fails(msg))
        return -1;
    fail.messages++;
    return __real_sendmsg(fd, msg, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    fail.calls++;
    return send_message(fd, msg, flags);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
    fail.calls++;
    for (unsigned i = 0; i < n; i++) {
        int error = fail.error;

        if (send_message(fd, &msgs[i].msg_hdr, flags) >= 0)
            continue;
        if (i == 0)
            return -1;
        fail.error = error; /* the next call shows it */
        return (int)i;
    }
    return (int)n;
}

void kit_before_each(void)
{
    memset(&fail, 0, sizeof(fail));
}
