/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening: sockets, ports, limits and the sentences that name what is wrong; sleeping; fresh paths.
 */
#include "tests/kit/kit.h"
#include "tests/support/ports.h"
#include "tests/udp/udp_fixture.h"
#include "transport/movers/udp/udp.h"
#include "transport/movers/udp/udp_port.h"

#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------ another machine */

/* What setsockopt() is to be like. */
static struct {
    bool unprivileged; /* no SO_RCVBUFFORCE */
    int rmem_max;      /* net.core.rmem_max; 0: the machine's */
    bool old;          /* a kernel before UDP_SEGMENT and UDP_GRO */
} machine;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    if (machine.unprivileged && level == SOL_SOCKET && name == SO_RCVBUFFORCE) {
        errno = EPERM;
        return -1;
    }
    if (machine.old && level == IPPROTO_UDP && (name == UDP_SEGMENT || name == UDP_GRO)) {
        errno = ENOPROTOOPT;
        return -1;
    }
    if (machine.rmem_max && level == SOL_SOCKET && name == SO_RCVBUF &&
        *(const int *)value > machine.rmem_max)
        value = &machine.rmem_max;
    return __real_setsockopt(fd, level, name, value, len);
}

static void keep_message(void *arg, enum mrd_log_level level, const char *message)
{
    char *kept = arg;

    if (level <= MRD_LOG_WARN)
        snprintf(kept, 512, "%s", message);
}

/* A small receive buffer is told to the engine, and the user which knob makes it larger. */
TEST(mrd_udp_open__small_rmem_max)
{
    struct mrd_context_attr attr = {.paths = 1};
    char kept[512] = "";

    mrd_set_log(keep_message, kept, MRD_LOG_WARN);
    machine.unprivileged = true;
    machine.rmem_max = 212992;
    struct mrd_backend *b = fixture_open(&attr, 0);
    assert_int_equal(b->mover.rx_buffer_bytes, 2 * 212992);
    assert_non_null(strstr(kept, "net.core.rmem_max"));
    assert_non_null(strstr(kept, "212992"));
    fixture_close(b);

    kept[0] = '\0';
    machine.rmem_max = MRD_UDP_RCVBUF_BYTES;
    b = fixture_open(&attr, 0);
    if (b->mover.rx_buffer_bytes == 2 * MRD_UDP_RCVBUF_BYTES) /* if this machine gives so much */
        assert_string_equal(kept, "");
    fixture_close(b);
    memset(&machine, 0, sizeof(machine));
    mrd_set_log(NULL, NULL, MRD_LOG_ERROR);
}

/* A kernel that does not know superpackets: single packets at both ends. */
TEST_F(movers, mrd_udp_open__old_kernel)
{
    machine.old = true;
    struct mrd_backend *b = fixture_open(NULL, 0);
    machine.old = false;
    assert_false(mrd_udp_of(b)->tx.gso);
    struct mrd_addr to = fixture_addr("127.0.0.1", b);
    fixture_send_equal(self, b, &to, 0, 1000, 20);
    fixture_arrive(self, b, 20, true);
    assert_int_equal(mrd_udp_of(b)->rx.count.plain, 20);
    fixture_close(b);
}

/* --------------------------------------------------------------------------------- this machine */

static void check_refused(const struct mrd_context_attr *attr, unsigned without, int expected,
                          const char *word)
{
    int error = 0;
    struct mrd_backend *b = mrd_udp_open_without(MRD_UDP_ANY, attr, without, &error);

    assert_null(b);
    assert_int_equal(error, expected);
    if (!strstr(mrd_last_error(), word))
        fail_msg("\"%s\" does not name \"%s\"", mrd_last_error(), word);
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    struct pollfd fd = {.events = 0};

    for (fd.fd = 0; fd.fd < 1024; fd.fd++)
        n += poll(&fd, 1, 0) == 0 || !(fd.revents & POLLNVAL);
    return n;
}

/* "udp" comes first, and as many interfaces follow as there is room for. */
TEST(mrd_udp_devices__bounded)
{
    struct mrd_device list[8];

    memset(list, 0x55, sizeof(list));
    assert_int_equal(mrd_udp_devices(list, 0), 0);
    for (unsigned max = 1; max <= 2; max++) {
        assert_int_equal(mrd_udp_devices(list, max), max);
        assert_int_equal(list[max].name[0], 0x55);
    }
    assert_string_equal(list[0].name, "udp");
    for (unsigned i = 0; i < 2; i++)
        assert_string_equal(list[i].transport, "udp");
}

TEST(mrd_udp_open__defaults)
{
    struct mrd_context_attr attr = {.paths = 0};
    struct mrd_device device;
    int error = 1;
    unsigned before = open_descriptors();

    assert_int_equal(mrd_udp_devices(&device, 1), 1);
    struct mrd_backend *b = mrd_udp_ops.open(&device, &attr, &error);
    assert_non_null(b);
    assert_int_equal(error, 0);
    const struct mrd_mover *m = &b->mover;
    assert_ptr_equal(b->ops, &mrd_udp_ops);
    assert_true(b->threaded);
    assert_int_equal(m->paths, 32);
    assert_int_equal(m->payload_bytes, 16128);
    assert_int_equal(m->payload_usual, 8192);
    assert_int_equal(m->payload_base, 1088);
    assert_true(m->probes);
    assert_int_equal(m->quantum, 64);
    assert_int_equal(m->burst_bytes, 65000);
    assert_int_equal(m->tracker, 4096);
    assert_true(m->copies);
    assert_null(b->ops->tx_reap);
    assert_true(m->rx_buffer_bytes >= 212992);
    assert_int_equal(open_descriptors(), before + 34);
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_not_equal(b->ops->path_port(b, i), 0);
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(b->ops->path_port(b, i), b->ops->path_port(b, j));
    }
    b->ops->close(b);
    assert_int_equal(open_descriptors(), before);
}

/*
 * What the engine may let others send fits the receive buffer, be every packet alone: that many
 * single datagrams of full size arrive, and the buffer is not much larger than that.
 */
TEST_F(movers, mrd_udp_open__receive_buffer)
{
    static const uint32_t mtus[] = {4096, 1344, 512};

    for (unsigned i = 0; i < 3; i++) {
        struct mrd_context_attr attr = {.paths = 1, .mtu = mtus[i]};
        struct mrd_backend *b, *tx = fixture_open(NULL, MRD_UDP_WITHOUT_GSO);
        uint32_t bytes = mtus[i] + MRD_UDP_HEADER_ROOM;
        bool more = true;

        machine.unprivileged = true;
        machine.rmem_max = 212992;
        b = fixture_open(&attr, 0);
        memset(&machine, 0, sizeof(machine));
        struct mrd_addr to = fixture_addr("127.0.0.1", b);
        unsigned fit = b->mover.rx_buffer_bytes / (bytes + b->mover.rx_packet_overhead);
        self->num_sent = self->num_received = 0;
        fixture_send_equal(self, tx, &to, 0, bytes, fit + fit / 2);
        while (more)
            fixture_burst(self, b, 64, false, &more);
        assert_in_range(self->num_received, fit, fit + fit / 4);
        fixture_close(b);
        fixture_close(tx);
    }
}

TEST(mrd_udp_open__mtu)
{
    static const uint32_t rows[] = {16384, 8192, 1344, 64};

    for (unsigned i = 0; i < 4; i++) {
        struct mrd_backend *b =
            fixture_open(&(struct mrd_context_attr){.paths = 1, .mtu = rows[i]}, 0);

        assert_int_equal(b->mover.payload_bytes, rows[i]);
        assert_int_equal(b->mover.payload_usual, rows[i]);
        fixture_close(b);
    }
}

TEST(mrd_udp_open__bad_attr)
{
    static const uint16_t ports[2] = {0, 0};

    check_refused(&(struct mrd_context_attr){.mtu = 100}, 0, -EINVAL, "100");
    check_refused(&(struct mrd_context_attr){.mtu = 16448}, 0, -EINVAL, "16448");
    check_refused(&(struct mrd_context_attr){.paths = 257}, 0, -EINVAL, "257");
    check_refused(&(struct mrd_context_attr){.rx_drop_ppm = 1000001}, 0, -EINVAL, "1000001");
    check_refused(&(struct mrd_context_attr){.source_ports = ports, .num_source_ports = 2}, 0,
                  -EINVAL, "source port 0");
    check_refused(
        &(struct mrd_context_attr){.source_ports = ports, .num_source_ports = 2, .paths = 3}, 0,
        -EINVAL, "2 source ports");
    check_refused(&(struct mrd_context_attr){.address = "localhost"}, 0, -EINVAL, "localhost");
    check_refused(&(struct mrd_context_attr){.address = ""}, 0, -EINVAL, "\"\"");
}

TEST(mrd_udp_open__foreign_address)
{
    check_refused(&(struct mrd_context_attr){.address = "192.0.2.99"}, 0, -EADDRNOTAVAIL,
                  "192.0.2.99");
    check_refused(&(struct mrd_context_attr){.address = "2001:db8::99"}, 0, -EADDRNOTAVAIL,
                  "2001:db8::99");
}

/* A busy port is an error that names it, for receiving and for sending, and leaves no descriptor
 * behind. */
TEST(mrd_udp_open__busy_port)
{
    struct mrd_context_attr attr = {.paths = 2};
    struct mrd_backend *other = fixture_open(&attr, 0);
    uint16_t rx_port = mrd_udp_of(other)->rx.port;
    uint16_t ports[2] = {test_port_apart(), (uint16_t)other->ops->path_port(other, 1)};
    unsigned descriptors = open_descriptors();
    char word[32];

    snprintf(word, sizeof(word), "port %u", rx_port);
    check_refused(&(struct mrd_context_attr){.port = rx_port, .paths = 1}, 0, -EADDRINUSE, word);
    check_refused(&(struct mrd_context_attr){.port = rx_port, .paths = 1, .address = "127.0.0.1"},
                  0, -EADDRINUSE, "127.0.0.1");
    snprintf(word, sizeof(word), "port %u", ports[1]);
    check_refused(&(struct mrd_context_attr){.source_ports = ports, .num_source_ports = 2}, 0,
                  -EADDRINUSE, word);
    /* A source port that is the receive port. */
    snprintf(word, sizeof(word), "port %u", ports[0]);
    check_refused(
        &(struct mrd_context_attr){.port = ports[0], .source_ports = ports, .num_source_ports = 1},
        0, -EADDRINUSE, word);
    assert_int_equal(open_descriptors(), descriptors);
    fixture_close(other);
}

TEST(mrd_udp_open__given_ports)
{
    uint16_t ports[3] = {test_port_apart(), test_port_apart(), test_port_apart()};
    struct mrd_context_attr attr = {
        .port = test_port_apart(), .source_ports = ports, .num_source_ports = 3};
    struct mrd_backend *b = fixture_open(&attr, 0);

    assert_int_equal(b->mover.paths, 3);
    assert_int_equal(b->mover.reply_max, UINT16_MAX);
    assert_int_equal(mrd_udp_of(b)->rx.port, attr.port);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(b->ops->path_port(b, i), ports[i]);
    assert_int_equal(b->ops->new_path(b), -ENOTSUP);
    fixture_close(b);
}

/* Fewer paths than ports: the first ones. */
TEST(mrd_udp_open__spare_ports)
{
    struct mrd_backend *probe = fixture_open(NULL, 0);
    uint16_t ports[2] = {(uint16_t)probe->ops->path_port(probe, 0),
                         (uint16_t)probe->ops->path_port(probe, 1)};
    struct mrd_context_attr attr = {.source_ports = ports, .num_source_ports = 2, .paths = 1};

    fixture_close(probe);
    struct mrd_backend *b = fixture_open(&attr, 0);
    assert_int_equal(b->mover.paths, 1);
    assert_int_equal(b->ops->path_port(b, 0), ports[0]);
    fixture_close(b);
}

TEST(mrd_udp_open__no_ipv6)
{
    struct mrd_backend *b = fixture_open(NULL, MRD_UDP_WITHOUT_IPV6);

    assert_int_equal(mrd_udp_of(b)->family, AF_INET);
    fixture_close(b);
    check_refused(&(struct mrd_context_attr){.address = "::1"}, MRD_UDP_WITHOUT_IPV6, -EAFNOSUPPORT,
                  "IPv6");
}

/* Returns the limit before. */
static rlim_t set_descriptor_limit(rlim_t n)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = n;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

/* The lowest free descriptor is where the next socket goes. */
static rlim_t lowest_free(void)
{
    int fd = dup(STDIN_FILENO);

    if (fd < 0) /* no standard input: then it is the lowest */
        return STDIN_FILENO;
    close(fd);
    return (rlim_t)fd;
}

TEST(mrd_udp_open__no_descriptors)
{
    struct mrd_context_attr attr = {.paths = 8};
    unsigned before = open_descriptors();
    rlim_t free_at = lowest_free(), old = set_descriptor_limit(free_at);

    for (rlim_t room = 0; room < 10; room++) {
        char word[64];

        set_descriptor_limit(free_at + room);
        snprintf(word, sizeof(word), "the limit is %u", (unsigned)(free_at + room));
        check_refused(&attr, 0, -EMFILE, word);
    }
    set_descriptor_limit(old);
    assert_int_equal(open_descriptors(), before);
}

/* A process that has used its descriptors up still learns of routes. */
TEST_F(movers, mrd_udp_payload_bytes__no_descriptors)
{
    struct mrd_addr v6 = fixture_addr("::1", self->b);
    rlim_t old = set_descriptor_limit(lowest_free());

    for (int again = 0; again < 2; again++) {
        assert_int_equal(self->a->ops->payload_bytes(self->a, &self->to_b), 16128);
        assert_int_equal(self->a->ops->payload_bytes(self->a, &v6), 16128);
        assert_true(self->a->ops->one_way(self->a, &self->to_b));
    }
    set_descriptor_limit(old);
}

TEST_F(movers, udp_new_path__up_to_four_times)
{
    struct mrd_backend *b = self->a;

    for (int i = 4; i < 16; i++) {
        assert_int_equal(b->ops->new_path(b), i);
        assert_int_not_equal(b->ops->path_port(b, (uint32_t)i), 0);
        for (uint32_t j = 0; j < (uint32_t)i; j++)
            assert_int_not_equal(b->ops->path_port(b, (uint32_t)i), b->ops->path_port(b, j));
    }
    assert_int_equal(b->ops->new_path(b), -ENOSPC);
    assert_int_equal(b->mover.paths, 4); /* what it began with */
    fixture_send_equal(self, b, &self->to_b, 15, 4160, 3);
    fixture_arrive(self, self->b, 3, false);
    assert_int_equal(self->received[0].from.port, b->ops->path_port(b, 15));
}

TEST_F(movers, udp_new_path__no_descriptors)
{
    rlim_t old = set_descriptor_limit(lowest_free());

    assert_int_equal(self->a->ops->new_path(self->a), -EMFILE);
    set_descriptor_limit(old);
    assert_int_equal(self->a->ops->new_path(self->a), 4);
}

/*
 * Sleeping ends by a packet, by the other descriptor, or by time, not before; else this never ends.
 */
TEST_F(movers, udp_wait__ends)
{
    struct mrd_backend *b = self->b;
    int wake = eventfd(0, EFD_CLOEXEC);
    struct pollfd fd = {.fd = b->ops->fd(b), .events = POLLIN};

    assert_true(wake >= 0);
    uint64_t begin = b->ops->now_ns(b);
    b->ops->wait(b, wake, 30000000);
    assert_true(b->ops->now_ns(b) - begin >= 30000000);
    b->ops->wait(b, -1, 0);

    assert_int_equal(eventfd_write(wake, 1), 0);
    b->ops->wait(b, wake, UINT64_MAX);
    b->ops->wait(b, wake, UINT64_MAX);
    close(wake);

    assert_int_equal(poll(&fd, 1, 0), 0);
    fixture_send_equal(self, self->a, &self->to_b, 0, 100, 1);
    b->ops->wait(b, -1, UINT64_MAX);
    assert_int_equal(poll(&fd, 1, 0), 1);
    fixture_arrive(self, b, 1, false);
}

/* Strangers that write to a source port fill no memory, and disturb no sending. */
TEST_F(movers, udp_source_port__strangers)
{
    struct mrd_addr to = self->to_b;
    const struct mrd_udp_path *path = &mrd_udp_of(self->b)->tx.paths[2];
    int buffer = 0;
    socklen_t len = sizeof(buffer);

    assert_int_equal(getsockopt(path->fd, SOL_SOCKET, SO_RCVBUF, &buffer, &len), 0);
    assert_in_range(buffer, 0, 8192);
    to.port = path->port;
    for (unsigned i = 0; i < 50; i++)
        fixture_send_equal(self, self->a, &to, 0, 4160, 1);
    self->num_sent = 0;
    fixture_send_equal(self, self->b, &self->to_a, 2, 4160, 15);
    fixture_arrive(self, self->a, 15, false);
}
