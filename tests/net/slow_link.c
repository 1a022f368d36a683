/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slow_link NETNS NETNS DELAY_MS KBIT QUEUE_BYTES [LOSS]: a link between two network namespaces, named as
 * ip-netns(8) does, that is slow and far: the interface "slow" in each. Each way has that rate and
 * delay, a queue that drops what finds it full, and loses that share of the packets. For kernels that
 * have no netem. Ends by a signal, or with what started it; until then the namespaces stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKETS_MAX = 16384, PACKET_BYTES = 1500, MS_NS = 1000000 };

struct way {
    int from, to;     /* the interfaces */
    uint64_t free_ns; /* when all that came before has left the queue */
    uint32_t in, out; /* free-running: packets that came, and that are delivered */
    struct packet {
        uint64_t due_ns;
        size_t len;
        uint8_t bytes[PACKET_BYTES];
    } packets[PACKETS_MAX];
};

static uint64_t delay_ns, ns_a_byte, queue_bytes;
static double loss;

static void give_up(const char *what)
{
    fprintf(stderr, "slow_link: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 * MS_NS + (uint64_t)ts.tv_nsec;
}

static int open_in(const char *netns)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "slow"};
    char path[256];

    snprintf(path, sizeof(path), "/run/netns/%s", netns);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0)
        give_up(path);
    close(space);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0)
        give_up("/dev/net/tun");
    return fd;
}

static void take(struct way *w, uint64_t now_ns)
{
    static uint8_t bytes[PACKET_BYTES];

    for (;;) {
        ssize_t n = read(w->from, bytes, sizeof(bytes));
        if (n < 0 && errno != EAGAIN && errno != EIO) /* EIO: it is not up yet */
            exit(0);
        if (n <= 0)
            return;
        uint64_t begin_ns = w->free_ns > now_ns ? w->free_ns : now_ns;
        if (begin_ns - now_ns > queue_bytes * ns_a_byte || w->in - w->out == PACKETS_MAX)
            continue;
        if (loss > 0 && drand48() < loss)
            continue;
        struct packet *p = &w->packets[w->in++ % PACKETS_MAX];
        w->free_ns = begin_ns + (uint64_t)n * ns_a_byte;
        p->due_ns = w->free_ns + delay_ns;
        p->len = (size_t)n;
        memcpy(p->bytes, bytes, p->len);
    }
}

/* Delivers what is due. Returns when the next one is, UINT64_MAX: there is none. */
static uint64_t deliver(struct way *w, uint64_t now_ns)
{
    for (; w->in != w->out; w->out++) {
        struct packet *p = &w->packets[w->out % PACKETS_MAX];
        if (p->due_ns > now_ns)
            return p->due_ns;
        if (write(w->to, p->bytes, p->len) < 0 && errno != EIO && errno != EINVAL)
            exit(0);
    }
    return UINT64_MAX;
}

int main(int argc, char **argv)
{
    static struct way there, back;

    if (argc != 6 && argc != 7) {
        fprintf(stderr, "usage: slow_link NETNS NETNS DELAY_MS KBIT QUEUE_BYTES [LOSS]\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    delay_ns = strtoull(argv[3], NULL, 10) * MS_NS;
    ns_a_byte = 8ull * MS_NS / strtoull(argv[4], NULL, 10);
    queue_bytes = strtoull(argv[5], NULL, 10);
    loss = argc == 7 ? strtod(argv[6], NULL) : 0;
    there.from = back.to = open_in(argv[1]);
    back.from = there.to = open_in(argv[2]);
    for (;;) {
        uint64_t now_ns = now(), due = deliver(&there, now_ns), due_back = deliver(&back, now_ns);
        struct pollfd fds[] = {{.fd = there.from, .events = POLLIN},
                               {.fd = back.from, .events = POLLIN}};

        due = due < due_back ? due : due_back;
        /* A wait in ms would make bursts of what is due in each. */
        uint64_t wait_ns = due == UINT64_MAX ? 999 * (uint64_t)MS_NS : due - now_ns;
        struct timespec wait = {(time_t)(wait_ns / (1000 * MS_NS)),
                                (long)(wait_ns % (1000 * MS_NS))};
        ppoll(fds, 2, &wait, NULL);
        take(&there, now());
        take(&back, now());
    }
}
