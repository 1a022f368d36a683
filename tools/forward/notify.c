/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/forward/say.h"

void notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    socklen_t len;
    int fd;

    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, path, strlen(path));
    if (path[0] == '@') /* an abstract socket */
        to.sun_path[0] = '\0';
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, len) < 0)
        say("NOTIFY_SOCKET %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
}
