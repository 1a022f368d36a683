/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls of the library fail: once, for good, and in storms while messages are under way. */
#include <errno.h>

#include "tests/failing/scene.h"
#include "tests/kit/kit.h"

enum { ERRORS_MAX = 5 };

struct failing {
    enum fail_call call;
    int error[ERRORS_MAX + 1];
};

/* Calls that make something. */
static const struct failing makers[] = {
    {FAIL_socket, {EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM}},
    {FAIL_bind, {EADDRINUSE, EACCES, ENOMEM}},
    {FAIL_connect, {EAGAIN, ENETUNREACH, EPERM, ENOBUFS}},
    {FAIL_setsockopt, {ENOPROTOOPT, ENOBUFS}},
    {FAIL_getsockopt, {ENOBUFS, ENOPROTOOPT}},
    {FAIL_getsockname, {ENOBUFS}},
    {FAIL_eventfd, {EMFILE, ENFILE, ENOMEM}},
    {FAIL_epoll_create1, {EMFILE, ENFILE, ENOMEM}},
    {FAIL_epoll_ctl, {ENOMEM, ENOSPC}},
    {FAIL_timerfd_create, {EMFILE, ENFILE, ENOMEM}},
    {FAIL_pthread_create, {EAGAIN, ENOMEM, EPERM}},
    {FAIL_open, {EMFILE, ENFILE, ENOMEM, EPERM}},
    {FAIL_fopen, {EMFILE, ENFILE, ENOMEM, EPERM}},
    {FAIL_ioctl, {EPERM}},
    {FAIL_madvise, {EAGAIN, ENOMEM}},
    {FAIL_getrandom, {EINTR, ENOSYS}},
    {FAIL_getifaddrs, {EMFILE, ENOBUFS}},
    {FAIL_getaddrinfo, {EMFILE, ENOMEM}},
};

/* Calls that move packets, or sleep until some come. */
static const struct failing movers[] = {
    {FAIL_sendto, {EAGAIN, ENOBUFS, ENOMEM, EPERM, EINTR}},
    {FAIL_sendmsg, {EAGAIN, ENOBUFS, ENOMEM, EPERM, EINTR}},
    {FAIL_sendmmsg, {EAGAIN, ENOBUFS, ENOMEM, EPERM, EINTR}},
    {FAIL_recvmsg, {EAGAIN, ENOBUFS, ENOMEM, EINTR}},
    {FAIL_ppoll, {EINTR, ENOMEM}},
};
#define NUM(array) (sizeof(array) / sizeof((array)[0]))

int kit_before_all(void)
{
    fail_watch(false);
    return 0;
}

/* Plays the scene; returns how many calls failed. */
static uint32_t play(const struct failing *f, int error, struct scene_rules *rules,
                     struct fail_plan *plan)
{
    /* No route, and a name that is not known now, are documented. */
    const int allowed[] = {error, EHOSTUNREACH, EAGAIN, 0};

    plan->calls = FAIL_BIT(f->call);
    plan->error = error;
    rules->plan = plan;
    rules->allowed = allowed;
    return scene_play(rules);
}

/* The first call fails, or the second, ...: `most` of them, or all that there are. */
static uint32_t sweep(const struct failing *f, int error, struct scene_rules *rules, uint32_t num,
                      uint32_t most)
{
    uint32_t first = 0;

    while (first < most && play(f, error, rules, &(struct fail_plan){.first = first, .num = num}))
        first++;
    return first;
}

static void sweep_all(const struct failing *list, size_t num_list, struct scene_rules *rules,
                      uint32_t num, uint32_t most)
{
    for (size_t i = 0; i < num_list; i++)
        for (unsigned e = 0; list[i].error[e]; e++)
            print_message("%s: errno %d: %u calls\n", fail_name(list[i].call), list[i].error[e],
                          sweep(&list[i], list[i].error[e], rules, num, most));
}

TEST(failing_calls__makers_once)
{
    sweep_all(makers, NUM(makers), &(struct scene_rules){.threads = true}, 1, UINT32_MAX);
}

TEST(failing_calls__makers_for_good)
{
    sweep_all(makers, NUM(makers), &(struct scene_rules){.threads = true, .gives_up = true}, 0,
              UINT32_MAX);
}

TEST(failing_calls__movers_once)
{
    sweep_all(movers, NUM(movers), &(struct scene_rules){.threads = false}, 1, 20);
}

static void storm(bool threads)
{
    for (size_t i = 0; i < NUM(movers); i++)
        for (unsigned e = 0; movers[i].error[e]; e++) {
            struct fail_plan plan = {.one_in = 3, .num = 1000, .seed = i * 16 + e};

            print_message("%s: errno %d: %u calls\n", fail_name(movers[i].call), movers[i].error[e],
                          play(&movers[i], movers[i].error[e],
                               &(struct scene_rules){.threads = threads, .rounds = 2}, &plan));
        }
}

TEST(failing_calls__storm)
{
    storm(false);
}

TEST(failing_calls__storm_with_threads)
{
    storm(true);
}
