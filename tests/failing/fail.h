/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resources that fail when told to: memory, threads, and system calls of mrd's own code.
 *
 * fail.c stands before the C library in a program that is linked with it (ENABLE_EXPORTS, so that
 * plugins find it too), or in one that preloads it. fail_watch() tells which objects are mrd's: the
 * calls of others always reach the C library. fail_begin() starts a plan, fail_end() ends it.
 * Nothing fails before.
 *
 * Blocks and maps that the watched objects have and did not release are counted at all times.
 */
#ifndef MRD_TESTS_FAILING_FAIL_H
#define MRD_TESTS_FAILING_FAIL_H

#include <stdbool.h>
#include <stdint.h>

/* X(name): the calls. The names are those in environment variables and messages, too. */
#define FAIL_CALLS(X)                                                                              \
    X(malloc)                                                                                      \
    X(calloc)                                                                                      \
    X(realloc)                                                                                     \
    X(aligned_alloc)                                                                               \
    X(strdup)                                                                                      \
    X(mmap)                                                                                        \
    X(pthread_create)                                                                              \
    X(socket)                                                                                      \
    X(bind)                                                                                        \
    X(connect)                                                                                     \
    X(listen)                                                                                      \
    X(setsockopt)                                                                                  \
    X(getsockopt)                                                                                  \
    X(getsockname)                                                                                 \
    X(sendto)                                                                                      \
    X(sendmsg)                                                                                     \
    X(sendmmsg)                                                                                    \
    X(recv)                                                                                        \
    X(recvfrom)                                                                                    \
    X(recvmsg)                                                                                     \
    X(recvmmsg)                                                                                    \
    X(poll)                                                                                        \
    X(ppoll)                                                                                       \
    X(epoll_create1)                                                                               \
    X(epoll_ctl)                                                                                   \
    X(epoll_wait)                                                                                  \
    X(eventfd)                                                                                     \
    X(timerfd_create)                                                                              \
    X(timerfd_settime)                                                                             \
    X(pipe2)                                                                                       \
    X(open)                                                                                        \
    X(fopen)                                                                                       \
    X(ioctl)                                                                                       \
    X(madvise)                                                                                     \
    X(msync)                                                                                       \
    X(getrandom)                                                                                   \
    X(getifaddrs)                                                                                  \
    X(getaddrinfo)

enum fail_call {
#define X(name) FAIL_##name,
    FAIL_CALLS(X)
#undef X
        FAIL_NUM_CALLS,
};

#define FAIL_BIT(call) (1ull << (call))
#define FAIL_MEMORY                                                                                \
    (FAIL_BIT(FAIL_malloc) | FAIL_BIT(FAIL_calloc) | FAIL_BIT(FAIL_realloc) |                      \
     FAIL_BIT(FAIL_aligned_alloc) | FAIL_BIT(FAIL_strdup) | FAIL_BIT(FAIL_mmap))

struct fail_plan {
    uint64_t calls;  /* FAIL_BIT of each that may fail */
    int error;       /* errno; getaddrinfo() fails with EAI_SYSTEM, or EAI_MEMORY for ENOMEM */
    uint32_t first;  /* so many calls succeed first */
    uint32_t num;    /* so many fail then, in a row; 0: all */
    uint32_t one_in; /* not 0: after the first ones each fails with this chance, `num` at most */
    uint64_t seed;   /* of that */
};

/*
 * Which objects are mrd's: the program itself, if `program`, and libraries whose names contain
 * "mrd". To be called again when another one was loaded.
 */
void fail_watch(bool program);
void fail_begin(const struct fail_plan *plan);
/* Returns how many calls failed. */
uint32_t fail_end(void);
/* The call that failed last, as "calloc() in libmrd.so.0+0x1234". */
const char *fail_last(void);

const char *fail_name(enum fail_call call);

/*
 * Blocks and maps of the watched objects that were made since fail_mark(), and are not released:
 * they are written to stderr.
 */
void fail_mark(void);
uint32_t fail_blocks(void);
/* Descriptors that are open in this process. */
uint32_t fail_descriptors(void);

#endif
