/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/udp/udp_fail.h"

#include <errno.h>
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

static bool is_superpacket(const struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
         c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT)
            return true;
    }
    return false;
}

/* Whether this message is to fail, with errno set. */
static bool fails(bool superpacket)
{
    if (fail.error == 0 || (fail.superpackets && !superpacket))
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
    if (fails(false))
        return -1;
    fail.messages++;
    return __real_sendto(fd, buf, len, flags, to, to_len);
}

static ssize_t send_message(int fd, const struct msghdr *msg, int flags)
{
    if (fails(is_superpacket(msg)))
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

int fail_setup(void **state)
{
    memset(&fail, 0, sizeof(fail));
    return fixture_setup(state);
}
