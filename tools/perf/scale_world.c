/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network namespace of a measurement, and the processes in it.
 *
 * The child that the caller waits for is the client; the server is a child of it. A socket pair
 * between them says when the server is ready, and when it shall end.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/perf/scale.h"
#include "tools/perf/session.h"

/* "ip link set lo up" */
static int raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    int rc = ioctl(fd, SIOCGIFFLAGS, &request) ? -errno : 0;
    request.ifr_flags |= IFF_UP;
    if (rc == 0 && ioctl(fd, SIOCSIFFLAGS, &request))
        rc = -errno;
    close(fd);
    return rc;
}

/*
 * "ip route add local 10.0.0.0/8 dev lo", which unlike 127.0.0.0/8 names no source: the kernel then
 * takes the destination.
 */
static int add_route(void)
{
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        struct rtattr to_head;
        uint8_t to[4];
        struct rtattr device_head;
        uint32_t device;
    } ask = {
        .head = {.nlmsg_len = sizeof(ask),
                 .nlmsg_type = RTM_NEWROUTE,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
        .route = {.rtm_family = AF_INET,
                  .rtm_dst_len = 8,
                  .rtm_table = RT_TABLE_LOCAL,
                  .rtm_protocol = RTPROT_STATIC,
                  .rtm_scope = RT_SCOPE_HOST,
                  .rtm_type = RTN_LOCAL},
        .to_head = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_DST},
        .to = {10},
        .device_head = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_OIF},
        .device = if_nametoindex("lo"),
    };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
    } answer = {0};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0)
        return -errno;
    int rc = send(fd, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask) &&
                     recv(fd, &answer, sizeof(answer), MSG_TRUNC) >= (ssize_t)sizeof(answer.head)
                 ? answer.error.error
                 : -errno;
    close(fd);
    return rc;
}

int scale_own_network(char *error)
{
    if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
        return perf_fail(error, -errno,
                         "many addresses need a network namespace, which only root may make here: "
                         "unshare: %s",
                         strerror(errno));
    int rc = raise_loopback();
    if (rc == 0)
        rc = add_route();
    return rc ? perf_fail(error, rc, "cannot prepare the network namespace: %s", strerror(-rc)) : 0;
}

/* What would have a context be somewhere else. */
static void forget_environment(void)
{
    unsetenv("MRD_ADDRESS");
    unsetenv("MRD_PORT");
    unsetenv("MRD_SOURCE_PORTS");
}

static void pin_end(const struct perf_options *o, unsigned end)
{
    char error[PERF_ERROR_BYTES];

    if (o->num_cpus && perf_local_pin(o->cpus[end < o->num_cpus ? end : 0], error))
        exit(perf_complain(PERF_EXIT_FAILED, "%s", error));
}

static int run_active(struct scale_run *run)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
        return perf_fail(run->error, -errno, "socketpair: %s", strerror(errno));
    pid_t server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        pin_end(run->options, 1);
        scale_server(run, fds[1]);
        _exit(0);
    }
    close(fds[1]);
    int rc = server < 0 ? perf_fail(run->error, -errno, "fork: %s", strerror(errno))
                        : scale_client(run, fds[0], server);
    close(fds[0]);
    if (server > 0) {
        if (rc)
            kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
    return rc;
}

static int make_world(void *arg)
{
    struct scale_run *run = arg;

    /* Only small pages, so that memory that was touched is what counts. */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    forget_environment();
    int rc = scale_own_network(run->error);
    run->no_network = rc != 0;
    if (rc)
        return rc;
    pin_end(run->options, 0);
    return run->idle ? scale_idle(run) : run_active(run);
}

int scale_measure(struct scale_run *run)
{
    return perf_in_child(make_world, run, sizeof(*run), run->error);
}
