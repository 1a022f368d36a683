/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/memory_probe.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/error.h"

#ifndef MADV_POPULATE_READ /* of linux/mman.h, Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum { SET_BYTES = 8 }; /* of a set of signals, as the kernel has it */

int mrd_memory_fail(uintptr_t at, const char *why)
{
    mrd_error_set("the memory at 0x%" PRIxPTR " %s", at, why);
    return -EFAULT;
}

bool mrd_memory_is_readable(uintptr_t at)
{
    const int nothing = -1; /* no way to change the mask: the kernel reads the set, and refuses */

    return syscall(SYS_rt_sigprocmask, nothing, at & ~(uintptr_t)(SET_BYTES - 1), NULL,
                   (size_t)SET_BYTES) == 0 ||
           errno != EFAULT;
}

/*
 * Is it certain that the page cannot be written? It is made present, and its contents stay. That
 * fails with EINVAL for a page that is read-only, for memory of a device, and in a kernel that does
 * not know how: only in the first case can the page be made present to read.
 */
static bool is_read_only(uintptr_t page, size_t page_bytes)
{
    return madvise((void *)page, page_bytes, MADV_POPULATE_WRITE) && errno == EINVAL &&
           !madvise((void *)page, page_bytes, MADV_POPULATE_READ);
}

static bool is_mapped(uintptr_t from, uintptr_t to)
{
    return !msync((void *)from, to - from, MS_ASYNC) || errno != ENOMEM;
}

/* The first page of [from, to) that is not mapped: there is one. */
static uintptr_t find_hole(uintptr_t from, uintptr_t to, size_t page_bytes)
{
    while (to - from > page_bytes) {
        uintptr_t middle = from + (to - from) / 2 / page_bytes * page_bytes;

        if (is_mapped(from, middle))
            from = middle;
        else
            to = middle;
    }
    return from;
}

int mrd_memory_probe(uintptr_t addr, size_t length, bool write)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t last = addr + length - 1, mask = ~(uintptr_t)(page_bytes - 1);
    uintptr_t from = addr & mask, to = (last & mask) + page_bytes;
    const uintptr_t ends[] = {addr, last};

    if (!is_mapped(from, to)) {
        uintptr_t hole = find_hole(from, to, page_bytes);

        return mrd_memory_fail(hole < addr ? addr : hole, "is not mapped");
    }
    for (unsigned i = 0; i < 2; i++) {
        if (!mrd_memory_is_readable(ends[i]))
            return mrd_memory_fail(ends[i], "cannot be read");
        if (write && is_read_only(ends[i] & mask, page_bytes))
            return mrd_memory_fail(ends[i],
                                   "cannot be written, but MRD_ACCESS_LOCAL_WRITE was asked for");
    }
    return 0;
}
