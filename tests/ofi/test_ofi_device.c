/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints on an RDMA device, which is a fake one: the provider's calls of libibverbs come to this
 * program. Their addresses; where no more memory may be registered; and a device that is gone.
 */
#include "pair.h"

#include <arpa/inet.h>

#include "tests/support/fake_ibv_impl.h"

enum { KEY = 7, TAG = 3, LONG = 1 << 20, WORDS = 200 };

static struct fake_ibv_device *device;

static const struct end_options none = {0};

static void assert_address(const void *addr, size_t bytes, const char *gid)
{
    const struct sockaddr_in6 *in6 = addr;
    char text[INET6_ADDRSTRLEN];

    assert_non_null(addr);
    assert_int_equal(bytes, sizeof(*in6));
    assert_int_equal(in6->sin6_family, AF_INET6);
    assert_int_equal(in6->sin6_port, 0);
    inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
    assert_string_equal(text, gid);
}

static void assert_source(const char *node, const char *service, uint64_t flags, const char *gid)
{
    const struct fi_info *info = end_offered(node, service, flags, end_hints(&none));

    assert_int_equal(info->addr_format, FI_SOCKADDR_IN6);
    assert_address(info->src_addr, info->src_addrlen, gid);
}

/* Applications read src_addr, and write to it, without looking whether it is there. */
TEST(ofi_device__source)
{
    assert_source(NULL, NULL, 0, "::");
    assert_source(NULL, "9228", FI_SOURCE, "::");
    assert_source("192.0.2.1", NULL, FI_SOURCE, "::ffff:192.0.2.1");
    assert_source("192.0.2.1", "9228", FI_SOURCE, "::ffff:192.0.2.1");
    assert_source("fe80::1", NULL, FI_SOURCE, "fe80::1");
}

/* A host and a port are no peer; what an endpoint tells of itself is. */
TEST(ofi_device__destination)
{
    end_not_offered("192.0.2.1", "9228", 0, end_hints(&none));
    const struct fi_info *info = end_offered("192.0.2.1/17", NULL, 0, end_hints(&none));
    assert_address(info->src_addr, info->src_addrlen, "::");
    assert_address(info->dest_addr, info->dest_addrlen, "::ffff:192.0.2.1");
    assert_int_equal(ntohl(((struct sockaddr_in6 *)info->dest_addr)->sin6_flowinfo), 17);
}

/* The source that getinfo tells is any of the device's; then the endpoint has one. */
TEST_F(plain, ofi_device__name)
{
    char in = 0;

    assert_address(self->a.info->src_addr, self->a.info->src_addrlen, "::");
    struct sockaddr_in6 name = end_name6(self->a.ep);
    assert_address(&name, sizeof(name), "::ffff:192.0.2.1");
    assert_true(ntohl(name.sin6_flowinfo) > 0);
    POST(fi_recv(self->b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
    POST(fi_inject(self->a.ep, "x", 1, self->a.to));
    end_ok(self->b.rx, &in);
    assert_int_equal(in, 'x');
}

/* Who names an interface with it gets the device's GID of that address, which has none. */
TEST_F(end, ofi_device__link_local_with_a_scope)
{
    struct fi_info *info = end_offered("fe80::1%lo", NULL, FI_SOURCE, end_hints(&none));

    end_open(self, &none, NULL);
    struct fid_ep *ep = end_beside(self, info);
    assert_int_equal(fi_enable(ep), 0);
    struct sockaddr_in6 name = end_name6(ep);
    assert_address(&name, sizeof(name), "fe80::1");
    assert_int_equal(fi_close(&ep->fid), 0);
}

/* What would be an answer too long to be sent without registering it says that there is none. */
TEST_F(plain, ofi_device__no_memory_for_an_answer)
{
    static uint64_t memory[WORDS], result[WORDS];

    end_register(&self->b, memory, sizeof(memory), FI_REMOTE_READ, KEY);
    for (unsigned i = 0; i < 2; i++) {
        device->memlock_bytes = i == 0; /* no more may be registered; any may */
        POST(fi_fetch_atomic(self->a.ep, NULL, WORDS, NULL, result, NULL, self->a.to, 0, KEY,
                             FI_UINT64, FI_ATOMIC_READ, self));
        if (device->memlock_bytes)
            end_fails(self->a.tx, self, FI_ENOMEM);
        else
            end_ok(self->a.tx, self);
    }
}

/* Two that send long messages to each other do not wait for each other's memory. */
TEST_F(plain, ofi_device__no_memory_for_two_receives)
{
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    struct end *ends[2] = {&self->a, &self->b};

    for (unsigned i = 0; i < 2; i++)
        POST(fi_tsend(ends[i]->ep, out, LONG, NULL, ends[i]->to, TAG, out));
    ends_drive_for(20);
    device->memlock_bytes = 1;
    for (unsigned i = 0; i < 2; i++)
        POST(fi_trecv(ends[i]->ep, in, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, in));
    for (unsigned i = 0; i < 2; i++) {
        end_fails(ends[i]->rx, in, FI_ENOMEM);
        end_fails(ends[i]->tx, out, FI_ENOMEM);
    }
    device->memlock_bytes = 0;
}

/*
 * The memory of a message that was read is free for the one that comes with the news: a is told of
 * both at once.
 */
TEST_F(plain, ofi_device__memory_of_what_just_ended)
{
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    uint64_t since_ns = end_now_ns();
    struct entry entry;

    POST(fi_tsend(self->a.ep, out, LONG, NULL, self->a.to, TAG, out));
    POST(fi_trecv(self->a.ep, in, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, in));
    POST(fi_trecv(self->b.ep, in, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, in));
    while (!end_take(self->b.rx, &entry)) /* nobody drives a */
        end_patience(since_ns);
    assert_int_equal(entry.err, 0);
    assert_int_equal(fi_tsend(self->b.ep, out, LONG, NULL, self->b.to, TAG, out), 0);
    end_sleep_ms(SILENCE_MS);
    device->memlock_bytes = device->state->mr_bytes;
    end_ok(self->a.rx, in);
    device->memlock_bytes = 0;
    end_ok(self->a.tx, out);
    end_ok(self->b.tx, out);
    assert_filled(in, LONG, 1);
}

/* What waits for an answer, or for a message, ends when the device does. */
TEST_F(plain, ofi_device__gone)
{
    static char many[2048];
    struct end *a = &self->a, *b = &self->b;
    uint8_t *out = filled(LONG, 1);
    uint64_t word = 0;
    char in[2];

    end_set_min_multi_recv(a, 1);
    POST(fi_recv(a->ep, &in[0], 0, NULL, FI_ADDR_UNSPEC, &in[0]));
    for (unsigned i = 0; i < 2; i++) /* the other one is there when the device goes */
        POST(fi_inject(b->ep, "x", i, b->to));
    end_ok(a->rx, &in[0]);
    POST(fi_send(a->ep, out, LONG, NULL, a->to, out));
    POST(fi_trecv(a->ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, TAG, 0, &in[0]));
    ends_drive_for(20);
    fake_ibv_raise(device, IBV_EVENT_DEVICE_FATAL, 0);
    end_fails(a->tx, out, FI_EIO);
    end_fails(a->rx, &in[0], FI_EIO);
    POST(fi_trecv(a->ep, &in[1], 1, NULL, a->to, TAG, 0, &in[1]));
    end_fails(a->rx, &in[1], FI_EIO);
    POST(end_recvmsg(a, many, sizeof(many), FI_ADDR_UNSPEC, many, FI_MULTI_RECV));
    end_ok(a->rx, many);
    assert_true(end_fails(a->rx, many, FI_EIO).ok.flags & FI_MULTI_RECV);
    assert_true(fi_read(a->ep, &word, sizeof(word), NULL, a->to, 0, KEY, &word) != 0 ||
                end_next(a->tx).err != 0);
}

int kit_before_all(void)
{
    struct fi_info *info;

    fake_ibv_begin(1);
    /* libfabric's own providers look for devices now: there are none yet. */
    if (!fi_getinfo(end_version, NULL, NULL, 0, end_hints(&none), &info))
        return 1;
    device = fake_ibv_add(FAKE_IBV_RXE, "fake0");
    return 0;
}

int kit_after_all(void)
{
    return (int)fake_ibv_end();
}
