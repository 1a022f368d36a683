/* SPDX-License-Identifier: BSD-2-Clause */
/* mrd_forward tells the service manager: as sd_notify(3) does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tools/forward/notify.h"

/* Receives what notify() sends to a socket of this name; '@' stands for a NUL. */
static void check(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char got[64] = "";
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    memcpy(at.sun_path, name, strlen(name));
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    assert_int_equal(bind(fd, (struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    setenv("NOTIFY_SOCKET", name, 1);
    notify("READY=1");
    ssize_t n = recv(fd, got, sizeof(got), MSG_DONTWAIT);
    assert_int_equal(n, 7);
    assert_memory_equal(got, "READY=1", 7);
    close(fd);
}

TEST(notify__path_and_abstract)
{
    char path[64], abstract[64];

    snprintf(path, sizeof(path), "/tmp/mrd_notify_%d", (int)getpid());
    check(path);
    unlink(path);
    snprintf(abstract, sizeof(abstract), "@mrd_notify_%d", (int)getpid());
    check(abstract);
}

/* Without a manager, or with one that is not there, nothing happens. */
TEST(notify__nobody)
{
    unsetenv("NOTIFY_SOCKET");
    notify("READY=1");
    setenv("NOTIFY_SOCKET", "relative", 1);
    notify("READY=1");
    setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
    notify("READY=1");
}
