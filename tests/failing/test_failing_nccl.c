/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each allocation, thread and descriptor of the network plugin for NCCL, and of the library below it,
 * fails: a process connects to itself and exchanges messages. A call that fails says why; all is
 * closed then, nothing is left, and the next try succeeds.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/failing/fail.h"
#include "tests/kit/kit.h"
#include "tests/nccl/net.h"

enum {
    MESSAGES = 6, /* small ones are sent before their receives are posted, others wait for these */
    BYTES_MAX = 300000,
    PATIENCE_S = 20,
    PERSIST_NS = 50000000,
};
static const size_t lengths[MESSAGES] = {100, BYTES_MAX, 1, 5000, BYTES_MAX, 77};

struct scene {
    struct net net;
    const struct fail_plan *plan;
    bool started, over;
    void *listener, *sender, *receiver;
    void *out_handle, *in_handle;
    uint8_t *out, *in;
    uint64_t since_ns;
};

/* true: the call succeeded. Otherwise the scene is over; something must have failed, and be told. */
static bool succeeds(struct scene *s, ncclResult_t result, const char *call)
{
    if (result == ncclSuccess)
        return true;
    if (!net_said(strerror(s->plan->error)) && !net_said("memory") && !net_said("descriptors"))
        fail_msg("%s after %s failed: does not name the cause", call, fail_last());
    s->over = true;
    return false;
}

/* Without memory nothing is sent: it comes back after a while. */
static void patience(const struct scene *s)
{
    if (!s->plan->num && rank_now_ns() - s->since_ns > PERSIST_NS)
        fail_end();
    if (rank_now_ns() - s->since_ns > PATIENCE_S * 1000000000ull)
        fail_msg("after %s failed: nothing comes of it", fail_last());
    sched_yield();
}

static void start(struct scene *s)
{
    ncclNetProperties_v11_t properties;
    int devices = 0;

    s->started = succeeds(s, net_init(&s->net), "init");
    if (s->started && succeeds(s, s->net.devices(&devices), "devices") &&
        succeeds(s, net_properties(&s->net, 0, &properties), "getProperties"))
        assert_int_equal(devices, 1);
}

static void link_up(struct scene *s)
{
    union net_handle handle;
    void *device_comm;
    bool refused = false;

    if (!succeeds(s, net_listen(&s->net, &handle, &s->listener), "listen"))
        return;
    while (!s->over && !(s->sender && s->receiver)) {
        if (!s->sender)
            succeeds(s, net_connect(&s->net, &handle, &s->sender), "connect");
        if (!s->over && !s->receiver)
            refused =
                !succeeds(s, s->net.accept(s->listener, &s->receiver, &device_comm), "accept");
        patience(s);
    }
    /* Who connects is told, or is accepted once there is memory again. */
    if (refused)
        fail_end();
    while (refused && !s->sender && net_connect(&s->net, &handle, &s->sender) == ncclSuccess) {
        if (!s->receiver)
            (void)s->net.accept(s->listener, &s->receiver, &device_comm);
        patience(s);
    }
}

static void register_memory(struct scene *s)
{
    if (succeeds(s, s->net.reg_mr(s->sender, s->out, BYTES_MAX, NCCL_PTR_HOST, &s->out_handle),
                 "regMr"))
        succeeds(s, s->net.reg_mr(s->receiver, s->in, BYTES_MAX, NCCL_PTR_HOST, &s->in_handle),
                 "regMr");
}

static void send_one(struct scene *s, int tag, size_t bytes)
{
    void *sent = NULL, *received = NULL, *data = s->in;
    int sent_done = 0, received_done = 0, got = 0;
    size_t room = BYTES_MAX;

    memset(s->in, 0, BYTES_MAX);
    while (!s->over && !(sent_done && received_done)) {
        if (!sent)
            succeeds(s, net_send(&s->net, s->sender, s->out, bytes, tag, s->out_handle, &sent),
                     "isend");
        if (!s->over && !received && sent)
            succeeds(
                s,
                net_receive(&s->net, s->receiver, 1, &data, &room, &tag, &s->in_handle, &received),
                "irecv");
        if (!s->over && sent && !sent_done)
            succeeds(s, s->net.test(sent, &sent_done, NULL), "test");
        if (!s->over && received && !received_done)
            succeeds(s, s->net.test(received, &received_done, &got), "test");
        patience(s);
    }
    if (s->over)
        return;
    assert_int_equal(got, bytes);
    assert_memory_equal(s->in, s->out, bytes);
}

static void stop(struct scene *s)
{
    if (s->out_handle)
        assert_int_equal(s->net.dereg_mr(s->sender, s->out_handle), ncclSuccess);
    if (s->in_handle)
        assert_int_equal(s->net.dereg_mr(s->receiver, s->in_handle), ncclSuccess);
    if (s->sender)
        assert_int_equal(s->net.close_send(s->sender), ncclSuccess);
    if (s->receiver)
        assert_int_equal(s->net.close_receive(s->receiver), ncclSuccess);
    if (s->listener)
        assert_int_equal(s->net.close_listen(s->listener), ncclSuccess);
    if (s->started)
        assert_int_equal(net_finalize(&s->net), ncclSuccess);
}

static uint32_t play(const struct fail_plan *plan)
{
    struct scene s = {.plan = plan, .since_ns = rank_now_ns()};
    uint32_t descriptors, failed, blocks;

    s.out = malloc(BYTES_MAX);
    s.in = malloc(BYTES_MAX);
    assert_true(s.out && s.in);
    for (size_t i = 0; i < BYTES_MAX; i++)
        s.out[i] = (uint8_t)(i * 7 + i / 251);
    net_load(&s.net, MRD_NCCL_PLUGIN, 11);
    descriptors = fail_descriptors();
    fail_mark();
    net_forget_said();
    fail_begin(plan);
    start(&s);
    if (!s.over)
        link_up(&s);
    if (!s.over)
        register_memory(&s);
    for (int i = 0; i < MESSAGES && !s.over; i++)
        send_one(&s, i, lengths[i]);
    stop(&s);
    failed = fail_end();
    assert_true(failed || !s.over);
    blocks = fail_blocks();
    if (blocks || fail_descriptors() != descriptors)
        fail_msg("after %s failed: %u blocks are left, and %d descriptors", fail_last(), blocks,
                 (int)(fail_descriptors() - descriptors));
    free(s.out);
    free(s.in);
    return failed;
}

/* Returns how many calls there are that can fail. */
static uint32_t sweep(uint64_t calls, int error, uint32_t num)
{
    uint32_t first = 0;

    while (play(&(struct fail_plan){.calls = calls, .error = error, .first = first, .num = num})) {
        first++;
        play(&(struct fail_plan){.calls = 0});
    }
    return first;
}

/* What the plugin makes once for the process is there before it is watched. */
int kit_before_all(void)
{
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    return 0;
}

void kit_before_each(void)
{
    fail_end();
}

TEST(failing_nccl__nothing)
{
    play(&(struct fail_plan){.calls = 0});
    fail_watch(false);
    assert_int_equal(play(&(struct fail_plan){.calls = 0}), 0);
}

TEST(failing_nccl__memory_once)
{
    assert_in_range(sweep(FAIL_MEMORY, ENOMEM, 1), 50, 10000);
}

TEST(failing_nccl__memory_for_good)
{
    assert_in_range(sweep(FAIL_MEMORY, ENOMEM, 0), 50, 10000);
}

TEST(failing_nccl__threads)
{
    assert_in_range(sweep(FAIL_BIT(FAIL_pthread_create), EAGAIN, 1), 1, 100);
    assert_in_range(sweep(FAIL_BIT(FAIL_pthread_create), EAGAIN, 0), 1, 100);
}

TEST(failing_nccl__descriptors)
{
    const uint64_t calls = FAIL_BIT(FAIL_socket) | FAIL_BIT(FAIL_eventfd) | FAIL_BIT(FAIL_open) |
                           FAIL_BIT(FAIL_fopen) | FAIL_BIT(FAIL_getifaddrs);

    assert_in_range(sweep(calls, EMFILE, 1), 10, 10000);
    assert_in_range(sweep(calls, EMFILE, 0), 10, 10000);
}
