/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "transport/memory_probe.h"

/* struct procmap_query of linux/fs.h, which older headers do not have. */
struct query {
    uint64_t size, flags, addr;                     /* in */
    uint64_t start, end, perms, page_bytes, offset; /* out, of the mapping */
    uint64_t inode;                                 /* out; 0: no file */
    uint32_t dev_major, dev_minor;                  /* out */
    uint32_t name_bytes, build_id_bytes;            /* in: 0, not wanted */
    uint64_t name_addr, build_id_addr;
};
_Static_assert(sizeof(struct query) == 104, "as the kernel has it");

enum { PERM_READ = 1, PERM_WRITE = 2, COVERING_OR_NEXT = 0x10 };

#define ASK_MAPPING _IOWR('f', 17, struct query) /* PROCMAP_QUERY */

struct mapping {
    uintptr_t start, end;
    bool read, write;
    bool file; /* it may be longer than what is behind it */
};

/*
 * Finds the mapping at an address, or the next one. 0, -ENOENT: there is none, or -errno: the kernel
 * does not say.
 */
static int ask(int fd, uintptr_t at, struct mapping *m)
{
    struct query q = {.size = sizeof(q), .flags = COVERING_OR_NEXT, .addr = at};

    if (ioctl(fd, ASK_MAPPING, &q))
        return -errno;
    *m = (struct mapping){.start = (uintptr_t)q.start,
                          .end = (uintptr_t)q.end,
                          .read = q.perms & PERM_READ,
                          .write = q.perms & PERM_WRITE,
                          .file = q.inode != 0};
    return 0;
}

int mrd_memory_open(void)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    struct mapping m;

    if (fd < 0)
        return -1;
    if (!ask(fd, (uintptr_t)&m, &m))
        return fd;
    close(fd);
    return -1;
}

/* Checks [at, end) as far as the mapping reaches. 0 or -EFAULT. */
static int check_part(const struct mapping *m, uintptr_t at, uintptr_t end, bool write)
{
    uintptr_t until = m->end < end ? m->end : end;

    if (m->start > at)
        return mrd_memory_fail(at, "is not mapped");
    if (!m->read)
        return mrd_memory_fail(at, "cannot be read");
    if (write && !m->write)
        return mrd_memory_fail(at, "cannot be written, but MRD_ACCESS_LOCAL_WRITE was asked for");
    if (m->file && !mrd_memory_is_readable(until - 1))
        return mrd_memory_fail(until - 1, "is mapped beyond the end of its file");
    return 0;
}

int mrd_memory_check(int fd, const void *addr, size_t length, bool write)
{
    uintptr_t at = (uintptr_t)addr, end = at + length;

    for (unsigned i = 0; at < end; i++) {
        struct mapping m = {0};
        int error;

        if (i == MRD_MEMORY_PARTS_MAX)
            at = end - 1;
        error = fd < 0 ? -ENOTTY : ask(fd, at, &m);
        if (error == -ENOENT)
            return mrd_memory_fail(at, "is not mapped");
        if (error)
            return mrd_memory_probe(at, end - at, write);
        error = check_part(&m, at, end, write);
        if (error)
            return error;
        at = m.end;
    }
    return 0;
}
