/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slow_link [-o] [-p KBIT,BURST_BYTES] NETNS NETNS DELAY_MS KBIT QUEUE_BYTES [LOSS]: a link between
 * two network namespaces, named as ip-netns(8) does, that is slow and far: the interface "slow" in
 * each. Each way has that rate and delay, a queue that drops what finds it full, and loses that share
 * of the packets. For kernels that have no netem. Ends by a signal, or with what started it; until
 * then the namespaces stay.
 *
 *   -o  for links that are fast: takes what the kernel has not cut into packets yet, up to 64 KiB of
 *       TCP or UDP, and delivers it so. Counts it as the packets that it is on a link, with their
 *       headers, but drops or loses all of them together. Linux 6.2 and later
 *   -p  behind the queue, each way has a policer: a token bucket of that rate and depth, which drops
 *       what finds too few tokens
 *
 * SIGUSR1: prints a line of six numbers, counted since the last such line: packets that came, and of
 * these dropped by the queue or the policer, and lost by chance; from the first namespace to the
 * second, and back.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* Younger than some headers: Linux 6.2. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

enum {
    PACKET_BYTES = sizeof(struct virtio_net_hdr) + 65535,
    RING_BYTES = 64 << 20, /* what a way holds at most */
    BATCH = 256,           /* packets that are taken from one way before the other has its turn */
    MS_NS = 1000000,
};

struct packet {
    uint64_t due_ns;
    size_t len;
    uint8_t bytes[];
};

/* In the ring. There is always that much for the next packet, which is read before it is judged. */
enum { ROOM_BYTES = sizeof(struct packet) + PACKET_BYTES + 16 };

struct way {
    int from, to;        /* the interfaces */
    uint64_t free_ns;    /* when all that came before has left the queue */
    uint64_t policed_ns; /* when the bucket is full again */
    uint64_t in, out;    /* where the next packet comes, and the next to deliver is; free-running */
    uint64_t came, dropped, lost;
    /* A packet that begins before RING_BYTES may end behind it; the next one begins at 0. */
    _Alignas(struct packet) uint8_t ring[RING_BYTES + ROOM_BYTES];
};

static uint64_t delay_ns, ps_a_byte, queue_ns;
static uint64_t policed_ps_a_byte, burst_ns; /* 0: no policer */
static double loss;
static bool offload;
static volatile sig_atomic_t asked;

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

static uint64_t ns_of(uint64_t bytes, uint64_t ps_per_byte)
{
    return bytes * ps_per_byte / 1000;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static int open_in(const char *netns)
{
    const unsigned long offloads =
        TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN | TUN_F_USO4 | TUN_F_USO6;
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "slow"};
    char path[256];

    if (offload)
        request.ifr_flags |= IFF_VNET_HDR;
    snprintf(path, sizeof(path), "/run/netns/%s", netns);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0)
        give_up(path);
    close(space);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0)
        give_up("/dev/net/tun");
    if (offload && ioctl(fd, TUNSETOFFLOAD, offloads) != 0)
        give_up("/dev/net/tun takes no packets of UDP together");
    return fd;
}

static struct packet *packet_at(struct way *w, uint64_t position)
{
    return (struct packet *)(void *)&w->ring[position % RING_BYTES];
}

/* The position behind this packet. */
static uint64_t behind(uint64_t position, size_t len)
{
    size_t room = (sizeof(struct packet) + len + 15) / 16 * 16;

    if (position % RING_BYTES + room >= RING_BYTES)
        return (position / RING_BYTES + 1) * RING_BYTES;
    return position + room;
}

/* Are there tokens for what leaves the queue now? */
static bool passes(struct way *w, uint64_t now_ns, uint64_t bytes)
{
    if (policed_ps_a_byte == 0)
        return true;
    uint64_t full_ns = later(w->policed_ns, now_ns) + ns_of(bytes, policed_ps_a_byte);
    if (full_ns - now_ns > burst_ns)
        return false;
    w->policed_ns = full_ns;
    return true;
}

/* How many bytes this is on a link, and packets. */
static uint64_t on_link(const uint8_t *bytes, size_t len, uint64_t *packets)
{
    enum { TCP_OFFSET = 12, UDP_HEADER = 8 }; /* where a TCP header has its length in words */
    struct virtio_net_hdr h;

    *packets = 1;
    if (!offload)
        return len;
    memcpy(&h, bytes, sizeof(h));
    bytes += sizeof(h);
    len -= sizeof(h);
    if (h.gso_type == VIRTIO_NET_HDR_GSO_NONE || h.gso_size == 0 ||
        len <= h.csum_start + (size_t)TCP_OFFSET)
        return len;
    size_t headers = h.csum_start + (size_t)UDP_HEADER;
    if (h.gso_type != VIRTIO_NET_HDR_GSO_UDP_L4)
        headers = h.csum_start + (size_t)(bytes[h.csum_start + TCP_OFFSET] >> 4) * 4;
    if (len <= headers)
        return len;
    *packets = (len - headers + h.gso_size - 1) / h.gso_size;
    return len + (*packets - 1) * headers;
}

/* Takes the packet that stands at w->in. */
static void take_one(struct way *w, size_t len, uint64_t now_ns)
{
    struct packet *p = packet_at(w, w->in);
    uint64_t begin_ns = later(w->free_ns, now_ns), packets,
             bytes = on_link(p->bytes, len, &packets);

    w->came += packets;
    if (begin_ns - now_ns > queue_ns || w->in - w->out > RING_BYTES - 2 * ROOM_BYTES) {
        w->dropped += packets;
        return;
    }
    if (loss > 0 && drand48() < loss) {
        w->lost += packets;
        return;
    }
    w->free_ns = begin_ns + ns_of(bytes, ps_a_byte);
    if (!passes(w, w->free_ns, bytes)) {
        w->dropped += packets;
        return;
    }
    p->due_ns = w->free_ns + delay_ns;
    p->len = len;
    w->in = behind(w->in, len);
}

static void take(struct way *w)
{
    for (int i = 0; i < BATCH; i++) {
        ssize_t n = read(w->from, packet_at(w, w->in)->bytes, PACKET_BYTES);
        if (n < 0 && errno != EAGAIN && errno != EIO) /* EIO: it is not up yet */
            exit(0);
        if (n <= 0)
            return;
        take_one(w, (size_t)n, now());
    }
}

/* Delivers what is due. Returns when the next one is, UINT64_MAX: there is none. */
static uint64_t deliver(struct way *w, uint64_t now_ns)
{
    while (w->in != w->out) {
        struct packet *p = packet_at(w, w->out);
        if (p->due_ns > now_ns)
            return p->due_ns;
        if (write(w->to, p->bytes, p->len) < 0 && errno != EIO && errno != EINVAL)
            exit(0);
        w->out = behind(w->out, p->len);
    }
    return UINT64_MAX;
}

static void ask(int signal)
{
    (void)signal;
    asked = 1;
}

static void print_counts(struct way *there, struct way *back)
{
    struct way *ways[] = {there, back};

    for (int i = 0; i < 2; i++) {
        struct way *w = ways[i];
        printf("%s%ju %ju %ju", i == 0 ? "" : " ", (uintmax_t)w->came, (uintmax_t)w->dropped,
               (uintmax_t)w->lost);
        w->came = w->dropped = w->lost = 0;
    }
    putchar('\n');
    fflush(stdout);
}

static uint64_t ps_a_byte_at(const char *kbit)
{
    double rate = strtod(kbit, NULL);

    return rate > 0 ? (uint64_t)(8e9 / rate) : 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: slow_link [-o] [-p KBIT,BURST_BYTES] NETNS NETNS DELAY_MS KBIT "
                    "QUEUE_BYTES [LOSS]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static struct way there, back;
    struct sigaction on_ask = {.sa_handler = ask};
    sigset_t none, usr1;
    int option;

    while ((option = getopt(argc, argv, "op:")) != -1) {
        if (option == 'o') {
            offload = true;
            continue;
        }
        const char *burst = option == 'p' ? strchr(optarg, ',') : NULL;
        if (burst == NULL)
            return usage();
        policed_ps_a_byte = ps_a_byte_at(optarg);
        burst_ns = ns_of(strtoull(burst + 1, NULL, 10), policed_ps_a_byte);
    }
    argv += optind;
    argc -= optind;
    if (argc != 5 && argc != 6)
        return usage();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    delay_ns = (uint64_t)(strtod(argv[2], NULL) * MS_NS);
    ps_a_byte = ps_a_byte_at(argv[3]);
    queue_ns = ns_of(strtoull(argv[4], NULL, 10), ps_a_byte);
    loss = argc == 6 ? strtod(argv[5], NULL) : 0;
    /* It comes in ppoll() only, and is never missed. */
    sigemptyset(&none);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    sigaction(SIGUSR1, &on_ask, NULL);
    there.from = back.to = open_in(argv[0]);
    back.from = there.to = open_in(argv[1]);
    for (;;) {
        uint64_t now_ns = now(), due = deliver(&there, now_ns), due_back = deliver(&back, now_ns);
        struct pollfd fds[] = {{.fd = there.from, .events = POLLIN},
                               {.fd = back.from, .events = POLLIN}};

        due = due < due_back ? due : due_back;
        /* A wait in ms would make bursts of what is due in each. */
        uint64_t wait_ns = due == UINT64_MAX ? 999 * (uint64_t)MS_NS : due - now_ns;
        struct timespec wait = {(time_t)(wait_ns / (1000 * MS_NS)),
                                (long)(wait_ns % (1000 * MS_NS))};
        ppoll(fds, 2, &wait, &none);
        if (asked) {
            asked = 0;
            print_counts(&there, &back);
        }
        take(&there);
        take(&back);
    }
}
