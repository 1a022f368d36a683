/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/ports.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORT_MIN = 10000, /* below are those of well-known services */
    PORT_MAX = 65535,
    STRIDE = 97, /* a prime: processes that follow each other begin far apart */
};

/* The ports that the kernel gives to those who do not name one. */
static void ephemeral(unsigned *low, unsigned *high)
{
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");

    if (!f || fscanf(f, "%u %u", low, high) != 2) {
        *low = 32768; /* Linux's default */
        *high = 60999;
    }
    if (f)
        fclose(f);
}

static bool is_free(uint16_t port)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

uint16_t test_port_apart(void)
{
    enum { PORTS = PORT_MAX - PORT_MIN + 1 };
    static unsigned tried;
    unsigned start = (unsigned)getpid() * STRIDE, low, high;

    ephemeral(&low, &high);
    while (tried < PORTS) {
        unsigned port = PORT_MIN + (start + tried++) % PORTS;

        if ((port < low || port > high) && is_free((uint16_t)port))
            return (uint16_t)port;
    }
    return 0;
}
