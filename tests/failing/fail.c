/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/failing/fail.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { OBJECTS_MAX = 16, BLOCKS = 1 << 16 };

/* The code of a watched object. */
struct range {
    uintptr_t from, to, base;
    const char *name;
};

struct block {
    const void *at;
    const void *caller;
    uint64_t number;
};

static struct {
    struct range object[OBJECTS_MAX];
    atomic_uint num_objects;

    atomic_bool on;
    struct fail_plan plan;
    atomic_uint seen, failed;
    const void *last_caller;
    enum fail_call last_call;

    atomic_flag lock; /* of what follows */
    struct block block[BLOCKS];
    uint64_t num_blocks; /* ever */
    uint64_t mark;       /* of these */
} state = {.lock = ATOMIC_FLAG_INIT};

static const char *const names[] = {
#define X(name) #name,
    FAIL_CALLS(X)
#undef X
};

const char *fail_name(enum fail_call call)
{
    return names[call];
}

/* -------------------------------------------------------------------------------------- objects */

static const struct range *object_of(const void *caller)
{
    unsigned num = atomic_load_explicit(&state.num_objects, memory_order_acquire);

    for (unsigned i = 0; i < num; i++)
        if ((uintptr_t)caller - state.object[i].from < state.object[i].to - state.object[i].from)
            return &state.object[i];
    return NULL;
}

static bool is_known(uintptr_t from)
{
    return object_of((const void *)from);
}

/* Ranges are only ever added: other threads may be reading. Nothing is unloaded meanwhile. */
static int add_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    const bool *program = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;

    (void)size;
    if (name[0] ? !strstr(name, "mrd") || strstr(name, "failing") : !*program)
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        unsigned at = atomic_load(&state.num_objects);

        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X) || is_known(from) || at == OBJECTS_MAX)
            continue;
        state.object[at] = (struct range){.from = from,
                                          .to = from + h->p_memsz,
                                          .base = info->dlpi_addr,
                                          .name = name[0] ? name : "program"};
        atomic_store_explicit(&state.num_objects, at + 1, memory_order_release);
    }
    return 0;
}

void fail_watch(bool program)
{
    dl_iterate_phdr(add_object, &program);
}

/* ----------------------------------------------------------------------------------------- plan */

void fail_begin(const struct fail_plan *plan)
{
    atomic_store(&state.on, false);
    state.plan = *plan;
    atomic_store(&state.seen, 0);
    atomic_store(&state.failed, 0);
    atomic_store(&state.on, true);
}

uint32_t fail_end(void)
{
    atomic_store(&state.on, false);
    return atomic_load(&state.failed);
}

/* Of the n-th call: splitmix64, so that threads need no state. */
static uint64_t draw(uint64_t n)
{
    uint64_t x = state.plan.seed + (n + 1) * 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static bool has_turn(uint32_t n)
{
    const struct fail_plan *p = &state.plan;

    if (n < p->first)
        return false;
    if (!p->one_in)
        return !p->num || n - p->first < p->num;
    return draw(n) % p->one_in == 0 && (!p->num || atomic_load(&state.failed) < p->num);
}

/* Sets errno where the call is to fail. */
static bool fails(enum fail_call call, const void *caller)
{
    if (!atomic_load_explicit(&state.on, memory_order_acquire) ||
        !(state.plan.calls & FAIL_BIT(call)) || !object_of(caller))
        return false;
    if (!has_turn(atomic_fetch_add(&state.seen, 1)))
        return false;
    atomic_fetch_add(&state.failed, 1);
    state.last_call = call;
    state.last_caller = caller;
    errno = state.plan.error;
    return true;
}

static void write_place(char *text, size_t len, const void *caller)
{
    const struct range *object = object_of(caller);

    snprintf(text, len, "%s+0x%lx", object ? object->name : "?",
             (unsigned long)((uintptr_t)caller - (object ? object->base : 0)));
}

const char *fail_last(void)
{
    static char text[256];
    char place[200];

    write_place(place, sizeof(place), state.last_caller);
    snprintf(text, sizeof(text), "%s() in %s", names[state.last_call], place);
    return text;
}

/* --------------------------------------------------------------------------------------- blocks */

static void take_lock(void)
{
    while (atomic_flag_test_and_set_explicit(&state.lock, memory_order_acquire))
        ;
}

static uint32_t place_of(const void *at)
{
    return (uint32_t)((uintptr_t)at * 0x9e3779b97f4a7c15ull >> 48) % BLOCKS;
}

/* A block of a watched object: to be released by whomever. */
static void *note(void *at, const void *caller)
{
    int error = errno;

    if (!at || at == MAP_FAILED || !object_of(caller))
        return at;
    take_lock();
    for (uint32_t i = place_of(at), n = 0; n < BLOCKS; i = (i + 1) % BLOCKS, n++) {
        if (state.block[i].at && state.block[i].at != (const void *)-1)
            continue;
        state.block[i] = (struct block){.at = at, .caller = caller, .number = state.num_blocks++};
        break;
    }
    atomic_flag_clear_explicit(&state.lock, memory_order_release);
    errno = error;
    return at;
}

static void forget(const void *at)
{
    if (!at || !atomic_load_explicit(&state.num_objects, memory_order_relaxed))
        return;
    take_lock();
    for (uint32_t i = place_of(at), n = 0; n < BLOCKS && state.block[i].at;
         i = (i + 1) % BLOCKS, n++) {
        if (state.block[i].at != at)
            continue;
        state.block[i].at = (const void *)-1;
        break;
    }
    atomic_flag_clear_explicit(&state.lock, memory_order_release);
}

void fail_mark(void)
{
    take_lock();
    state.mark = state.num_blocks;
    atomic_flag_clear_explicit(&state.lock, memory_order_release);
}

uint32_t fail_blocks(void)
{
    uint32_t num = 0;
    char place[200];

    for (uint32_t i = 0; i < BLOCKS; i++) {
        const struct block *b = &state.block[i];

        if (!b->at || b->at == (const void *)-1 || b->number < state.mark)
            continue;
        write_place(place, sizeof(place), b->caller);
        fprintf(stderr, "not released: %p of %s\n", b->at, place);
        num++;
    }
    return num;
}

uint32_t fail_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint32_t num = 0;

    while (dir && readdir(dir))
        num++;
    if (dir)
        closedir(dir);
    return num;
}

/* ------------------------------------------------------------------------------------ the calls */

#define CALLER __builtin_return_address(0)

/* dlsym() frees what it said last, for which free() itself may have to be looked for. */
static _Thread_local volatile bool is_looking; /* a leaf function, says the header */

/* The C library's, or the sanitizer's. */
static void *next(void **known, const char *name)
{
    void *at = __atomic_load_n(known, __ATOMIC_ACQUIRE);

    if (!at) {
        is_looking = true;
        at = dlsym(RTLD_NEXT, name);
        is_looking = false;
        __atomic_store_n(known, at, __ATOMIC_RELEASE);
    }
    return at;
}

/*
 * NEXT(type, name, args) calls the function that would have been called. FAILING() defines one that
 * returns -1 when it fails.
 */
#define NEXT(name_, ...)                                                                           \
    ({                                                                                             \
        static void *known_;                                                                       \
        __typeof__(&(name_)) next_;                                                                \
        *(void **)&next_ = next(&known_, #name_);                                                  \
        next_(__VA_ARGS__);                                                                        \
    })
#define FAILING(type_, name_, parameters_, ...)                                                    \
    type_ name_ parameters_                                                                        \
    {                                                                                              \
        return fails(FAIL_##name_, CALLER) ? -1 : NEXT(name_, __VA_ARGS__);                        \
    }

void *malloc(size_t bytes)
{
    const void *caller = CALLER;

    return fails(FAIL_malloc, caller) ? NULL : note(NEXT(malloc, bytes), caller);
}

void *calloc(size_t num, size_t bytes)
{
    const void *caller = CALLER;

    return fails(FAIL_calloc, caller) ? NULL : note(NEXT(calloc, num, bytes), caller);
}

void *realloc(void *old, size_t bytes)
{
    const void *caller = CALLER;

    if (fails(FAIL_realloc, caller))
        return NULL;

    forget(old);
    void *at = NEXT(realloc, old, bytes);
    note(at ? at : old, caller);
    return at;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    const void *caller = CALLER;

    return fails(FAIL_aligned_alloc, caller) ? NULL
                                             : note(NEXT(aligned_alloc, alignment, bytes), caller);
}

char *strdup(const char *text)
{
    const void *caller = CALLER;

    return fails(FAIL_strdup, caller) ? NULL : note(NEXT(strdup, text), caller);
}

void free(void *at)
{
    if (is_looking)
        return; /* a sentence is lost, once */
    forget(at);
    NEXT(free, at);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    const void *caller = CALLER;

    return fails(FAIL_mmap, caller)
               ? MAP_FAILED
               : note(NEXT(mmap, at, bytes, protection, flags, fd, offset), caller);
}

int munmap(void *at, size_t bytes)
{
    forget(at);
    return NEXT(munmap, at, bytes);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    return fails(FAIL_pthread_create, CALLER) ? errno
                                              : NEXT(pthread_create, thread, attr, run, arg);
}

FAILING(int, socket, (int domain, int type, int protocol), domain, type, protocol)
FAILING(int, bind, (int fd, const struct sockaddr *to, socklen_t len), fd, to, len)
FAILING(int, connect, (int fd, const struct sockaddr *to, socklen_t len), fd, to, len)
FAILING(int, listen, (int fd, int backlog), fd, backlog)
FAILING(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len), fd, level,
        name, value, len)
FAILING(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len), fd, level,
        name, value, len)
FAILING(int, getsockname, (int fd, struct sockaddr *name, socklen_t *len), fd, name, len)
FAILING(ssize_t, sendto,
        (int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to,
         socklen_t len),
        fd, data, bytes, flags, to, len)
FAILING(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), fd, message, flags)
FAILING(int, sendmmsg, (int fd, struct mmsghdr *message, unsigned num, int flags), fd, message, num,
        flags)
FAILING(ssize_t, recv, (int fd, void *data, size_t bytes, int flags), fd, data, bytes, flags)
FAILING(ssize_t, recvfrom,
        (int fd, void *data, size_t bytes, int flags, struct sockaddr *from, socklen_t *len), fd,
        data, bytes, flags, from, len)
FAILING(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), fd, message, flags)
FAILING(int, recvmmsg,
        (int fd, struct mmsghdr *message, unsigned num, int flags, struct timespec *timeout), fd,
        message, num, flags, timeout)
FAILING(int, poll, (struct pollfd * fds, nfds_t num, int ms), fds, num, ms)
FAILING(int, ppoll,
        (struct pollfd * fds, nfds_t num, const struct timespec *timeout, const sigset_t *mask),
        fds, num, timeout, mask)
FAILING(int, epoll_create1, (int flags), flags)
FAILING(int, epoll_ctl, (int set, int what, int fd, struct epoll_event *event), set, what, fd,
        event)
FAILING(int, epoll_wait, (int set, struct epoll_event *events, int num, int ms), set, events, num,
        ms)
FAILING(int, eventfd, (unsigned count, int flags), count, flags)
FAILING(int, timerfd_create, (int clock, int flags), clock, flags)
FAILING(int, timerfd_settime,
        (int fd, int flags, const struct itimerspec *at, struct itimerspec *old), fd, flags, at,
        old)
FAILING(int, pipe2, (int fds[2], int flags), fds, flags)
FAILING(int, madvise, (void *at, size_t bytes, int advice), at, bytes, advice)
FAILING(int, msync, (void *at, size_t bytes, int flags), at, bytes, flags)
FAILING(ssize_t, getrandom, (void *data, size_t bytes, unsigned flags), data, bytes, flags)
FAILING(int, getifaddrs, (struct ifaddrs * *list), list)

int open(const char *path, int flags, ...)
{
    const void *caller = CALLER;
    va_list args;

    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fails(FAIL_open, caller) ? -1 : NEXT(open, path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...)
{
    const void *caller = CALLER;
    va_list args;

    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    return fails(FAIL_ioctl, caller) ? -1 : NEXT(ioctl, fd, request, arg);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails(FAIL_fopen, CALLER) ? NULL : NEXT(fopen, path, mode);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **list)
{
    if (fails(FAIL_getaddrinfo, CALLER))
        return errno == ENOMEM ? EAI_MEMORY : EAI_SYSTEM;
    return NEXT(getaddrinfo, node, service, hints, list);
}
