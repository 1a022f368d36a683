/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * send_from_port ADDRESS SOURCE_PORT COUNT: COUNT datagrams to port 9 of ADDRESS from that source port.
 *
 * The socket is connected on purpose: that gives it the random hash which the fabric's leaves must not go by.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DISCARD_PORT = 9, PAYLOAD_BYTES = 64 };

static int fail(const char *what)
{
    fprintf(stderr, "send_from_port: %s: %s\n", what, strerror(errno));
    return 1;
}

static int open_socket(const char *address, int source_port)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons((uint16_t)source_port)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(DISCARD_PORT)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    if (fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        return -1;
    return fd;
}

int main(int argc, char **argv)
{
    char payload[PAYLOAD_BYTES] = {0};

    if (argc != 4) {
        fprintf(stderr, "usage: send_from_port ADDRESS SOURCE_PORT COUNT\n");
        return 2;
    }
    int fd = open_socket(argv[1], atoi(argv[2]));
    if (fd < 0)
        return fail("socket");
    for (int sent = 0; sent < atoi(argv[3]);) {
        /* Nobody listens: the refusal of an earlier datagram is reported once by a later call. */
        if (send(fd, payload, sizeof(payload), 0) >= 0)
            sent++;
        else if (errno != ECONNREFUSED)
            return fail("send");
    }
    close(fd);
    return 0;
}
