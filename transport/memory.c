/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport/error.h"

struct mapping {
    uintptr_t start, end;
    bool read, write;
    bool file; /* it may be longer than what is behind it */
};

/* A line of /proc/self/maps: proc(5). */
static bool parse(const char *line, struct mapping *m)
{
    char perms[5];
    uint64_t start, end, inode;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64, &start, &end, perms, &inode) !=
        4)
        return false;
    *m = (struct mapping){.start = (uintptr_t)start,
                          .end = (uintptr_t)end,
                          .read = perms[0] == 'r',
                          .write = perms[1] == 'w',
                          .file = inode != 0};
    return true;
}

/*
 * Is there something behind a byte of a mapping? Beyond the end of its file there is not. The byte
 * is on the local side of the copy: on the remote one the kernel refuses memory of devices.
 */
static bool is_backed(uintptr_t at)
{
    uint8_t byte;
    struct iovec from = {.iov_base = (void *)at, .iov_len = 1};
    struct iovec to = {.iov_base = &byte, .iov_len = 1};

    return process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 1 || errno != EFAULT;
}

static int fail(uintptr_t at, const char *why)
{
    mrd_error_set("the memory at 0x%" PRIxPTR " %s", at, why);
    return -EFAULT;
}

/* Checks [*at, end) as far as the mapping reaches, and moves *at there. 0 or -EFAULT. */
static int check_part(const struct mapping *m, uintptr_t *at, uintptr_t end, bool write)
{
    uintptr_t until = m->end < end ? m->end : end;

    if (m->start > *at)
        return fail(*at, "is not mapped");
    if (!m->read)
        return fail(*at, "cannot be read");
    if (write && !m->write)
        return fail(*at, "cannot be written, but MRD_ACCESS_LOCAL_WRITE was asked for");
    if (m->file && !is_backed(until - 1))
        return fail(until - 1, "is mapped beyond the end of its file");
    *at = until;
    return 0;
}

int mrd_memory_check(const void *addr, size_t length, bool write)
{
    uintptr_t at = (uintptr_t)addr, end = at + length;
    FILE *maps = length ? fopen("/proc/self/maps", "re") : NULL;
    char *line = NULL;
    size_t room = 0;
    struct mapping m;
    bool known = false;
    int error = 0;

    if (!maps)
        return 0;
    while (!error && at < end && getline(&line, &room, maps) > 0) {
        if (!parse(line, &m))
            continue;
        known = true;
        if (m.end > at)
            error = check_part(&m, &at, end, write);
    }
    if (!error && known && at < end)
        error = fail(at, "is not mapped");
    free(line);
    fclose(maps);
    return error;
}
