/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/alias.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10 };

static size_t whole(size_t bytes)
{
    return (bytes + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
}

/* Maps the file's pages repeatedly until they fill the buffer. */
static bool map_pieces(char *buffer, size_t bytes, int fd)
{
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        if (mmap(buffer + at, PIECE_BYTES, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED)
            return false;
    }
    return true;
}

void *simx_alias_alloc(size_t bytes)
{
    size_t length = whole(bytes);
    char *buffer = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = memfd_create("mrd_sim", MFD_CLOEXEC);
    bool ok = buffer != MAP_FAILED && fd >= 0 && ftruncate(fd, PIECE_BYTES) == 0 &&
              map_pieces(buffer, length, fd);

    if (fd >= 0)
        close(fd); /* the mappings keep it */
    if (ok)
        return buffer;
    if (buffer != MAP_FAILED)
        munmap(buffer, length);
    return NULL;
}

void simx_alias_free(void *buffer, size_t bytes)
{
    if (buffer)
        munmap(buffer, whole(bytes));
}
