/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether memory is there: with a kernel that can be asked, without, and at what cost. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/unit/context_fixture.h"
#include "transport/error.h"
#include "transport/memory.h"
#include "transport/memory_probe.h"

enum { MAPPINGS = 3000, MANY = 100 };

FIXTURE(pages)
{
    int asked[2]; /* what mrd_memory_check() takes: the kernel's answers, -1 */
    unsigned ways;
    size_t page;
};

static unsigned ioctls;

/* The one that the library calls. */
int ioctl(int fd, unsigned long request, ...)
{
    va_list args;

    va_start(args, request);

    void *arg = va_arg(args, void *);

    va_end(args);
    ioctls++;
    return (int)syscall(SYS_ioctl, fd, request, arg);
}

FIXTURE_SETUP(pages)
{
    int fd = mrd_memory_open();

    if (fd >= 0)
        self->asked[self->ways++] = fd;
    self->asked[self->ways++] = -1;
    self->page = (size_t)sysconf(_SC_PAGESIZE);
}

FIXTURE_TEARDOWN(pages)
{
    if (self->asked[0] >= 0)
        close(self->asked[0]);
}

static uint8_t *map_memory(size_t bytes, int protection, int flags, int fd)
{
    uint8_t *at = mmap(NULL, bytes, protection, flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

    assert_true(at != MAP_FAILED);
    return at;
}

static void good(const struct pages *f, const void *at, size_t bytes, bool write)
{
    for (unsigned i = 0; i < f->ways; i++)
        assert_int_equal(mrd_memory_check(f->asked[i], at, bytes, write), 0);
}

static void bad(const struct pages *f, const void *at, size_t bytes, bool write, const char *why)
{
    for (unsigned i = 0; i < f->ways; i++) {
        mrd_error_set("nothing");
        assert_int_equal(mrd_memory_check(f->asked[i], at, bytes, write), -EFAULT);
        if (!strstr(mrd_last_error(), why))
            fail_msg("way %u: \"%s\" does not say: %s", i, mrd_last_error(), why);
    }
}

/* An emulator of another processor does not tell whether memory can be read. */
static void skip_where_nobody_tells(const struct pages *f)
{
    uint8_t *at = map_memory(f->page, PROT_NONE, MAP_PRIVATE, -1);
    bool tells = !mrd_memory_is_readable((uintptr_t)at);

    munmap(at, f->page);
    if (!tells)
        skip();
}

/* Does this kernel tell what cannot be written? Since Linux 5.14; an emulator may not. */
static bool knows_writable(const struct pages *f)
{
    uint8_t *at = map_memory(f->page, PROT_READ, MAP_PRIVATE, -1);
    bool knows = madvise(at, f->page, 23 /* MADV_POPULATE_WRITE */) &&
                 !madvise(at, f->page, 22 /* MADV_POPULATE_READ */);

    munmap(at, f->page);
    return knows;
}

/* ------------------------------------------------------------------------------------- verdicts */

/* Neighbours in memory need not be one mapping; memory that is only sent from may be read-only. */
TEST_F(pages, mrd_memory_check__neighbours)
{
    const struct pages *f = self;
    uint8_t *at = map_memory(4 * f->page, PROT_READ, MAP_PRIVATE, -1);

    assert_int_equal(mprotect(at + f->page, 2 * f->page, PROT_READ | PROT_WRITE), 0);
    good(f, at, 4 * f->page, false);
    good(f, at + f->page, 2 * f->page, true);
    good(f, at + 2 * f->page - 1, 2, true);
    good(f, NULL, 0, true);
    if (knows_writable(f)) {
        bad(f, at + f->page, 2 * f->page + 1, true, "cannot be written");
        bad(f, at + f->page - 1, 2, true, "cannot be written");
    }
    munmap(at, 4 * f->page);
}

TEST_F(pages, mrd_memory_check__not_mapped)
{
    const struct pages *f = self;
    uint8_t *at = map_memory(64 * f->page, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1);
    char where[64];

    for (unsigned hole = 1; hole < 63; hole += 7) {
        assert_int_equal(munmap(at + hole * f->page, f->page), 0);
        snprintf(where, sizeof(where), "%p is not mapped", (void *)(at + hole * f->page));
        bad(f, at + 5, 64 * f->page - 6, true, where);
        bad(f, at + hole * f->page - 1, 2, false, where);
        bad(f, at + hole * f->page, f->page + 1, false, where);
        good(f, at, hole * f->page, true);
        good(f, at + (hole + 1) * f->page, (63 - hole) * f->page, true);
        assert_ptr_equal(mmap(at + hole * f->page, f->page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                         at + hole * f->page);
    }
    bad(f, (void *)(uintptr_t)f->page, 8, false, "is not mapped");
    bad(f, (void *)(UINTPTR_MAX - 4 * f->page), 8, false, "is not mapped"); /* behind all */
    munmap(at, 64 * f->page);
}

TEST_F(pages, mrd_memory_check__inaccessible)
{
    const struct pages *f = self;
    uint8_t *at = map_memory(3 * f->page, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1);

    skip_where_nobody_tells(f);
    assert_int_equal(mprotect(at + f->page, f->page, PROT_NONE), 0);
    bad(f, at, f->page + 1, false, "cannot be read");
    bad(f, at + 2 * f->page - 1, f->page, true, "cannot be read");
    good(f, at, f->page, true);
    munmap(at, 3 * f->page);
}

/* The contents stay, and shared memory is not written to. */
TEST_F(pages, mrd_memory_check__changes_nothing)
{
    const struct pages *f = self;
    uint8_t *at = map_memory(2 * f->page, PROT_READ | PROT_WRITE, MAP_SHARED, -1);

    for (size_t i = 0; i < 2 * f->page; i++)
        at[i] = (uint8_t)(i * 11);
    good(f, at + 3, 2 * f->page - 5, true);
    for (size_t i = 0; i < 2 * f->page; i++)
        assert_int_equal(at[i], (uint8_t)(i * 11));
    munmap(at, 2 * f->page);
}

TEST_F(pages, mrd_memory_check__file_that_ends)
{
    const struct pages *f = self;
    FILE *file = tmpfile();

    assert_non_null(file);
    skip_where_nobody_tells(f);
    assert_int_equal(ftruncate(fileno(file), (off_t)f->page), 0);
    uint8_t *at = map_memory(3 * f->page, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file));
    bad(f, at, 3 * f->page, true, "");
    if (f->asked[0] >= 0) {
        assert_int_equal(mrd_memory_check(f->asked[0], at, 3 * f->page, true), -EFAULT);
        assert_non_null(strstr(mrd_last_error(), "end of its file"));
    }
    bad(f, at + f->page, 1, false, "");
    good(f, at, f->page, true);
    munmap(at, 3 * f->page);
    fclose(file);
}

/* Memory of a device or of the kernel has no pages that others may pin. */
TEST_F(pages, mrd_memory_check__device_memory)
{
    const struct pages *f = self;
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

    if (fd < 0)
        skip(); /* not everybody may */
    uint8_t *at = map_memory(2 * f->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    good(f, at, 2 * f->page, true);
    munmap(at, 2 * f->page);
    close(fd);
}

/* ----------------------------------------------------------------------------------------- cost */

/* `num` mappings, one of a page each, of which every second one is read-only. */
static uint8_t *map_many(const struct pages *f, size_t num)
{
    uint8_t *at = map_memory(num * f->page, PROT_READ | PROT_WRITE, MAP_PRIVATE, -1);

    for (size_t i = 1; i < num; i += 2)
        assert_int_equal(mprotect(at + i * f->page, f->page, PROT_READ), 0);
    return at;
}

/* Calls of read() by this process until now, this one's included. -1: not counted here. */
static long reads(void)
{
    char text[512];
    int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    if (bytes <= 0)
        return -1;
    text[bytes] = 0;

    const char *line = strstr(text, "syscr: ");

    return line ? strtol(line + strlen("syscr: "), NULL, 10) : -1;
}

/* Whatever the process maps: one question, and no list is read. */
TEST_F(pages, mrd_reg_mr__does_not_read_what_is_mapped)
{
    const struct pages *f = self;
    uint8_t *others = map_many(f, MAPPINGS);
    struct mrd_context *context =
        open_local(&(struct mrd_context_attr){.paths = 2, .progress = MRD_PROGRESS_MANUAL});
    struct mrd_pd *pd = mrd_alloc_pd(context);
    uint8_t *region = map_memory(4 * f->page, PROT_READ | PROT_WRITE, MAP_SHARED, -1);
    long before = reads();

    if (before < 0 || reads() != before + 1)
        skip();
    before = reads();
    ioctls = 0;

    struct mrd_mr *mr = mrd_reg_mr(pd, region, 4 * f->page, MRD_ACCESS_LOCAL_WRITE);

    assert_non_null(mr);
    assert_int_equal(reads() - before, 1); /* that of reads() */
    assert_in_range(ioctls, 0, 1);
    assert_int_equal(mrd_dereg_mr(mr), 0);
    assert_int_equal(mrd_dealloc_pd(pd), 0);
    assert_int_equal(mrd_close_device(context), 0);
    munmap(region, 4 * f->page);
    munmap(others, MAPPINGS * f->page);
}

/* Nor does it grow without bound with the mappings of a region: its end is looked at in any case. */
TEST_F(pages, mrd_memory_check__region_of_many_mappings)
{
    const struct pages *f = self;
    uint8_t *at = map_many(f, MANY);

    for (unsigned i = 0; i < f->ways; i++) {
        ioctls = 0;
        assert_int_equal(mrd_memory_check(f->asked[i], at, MANY * f->page, false), 0);
        assert_in_range(ioctls, 0, MRD_MEMORY_PARTS_MAX + 1);
    }
    skip_where_nobody_tells(f);
    assert_int_equal(mprotect(at + (MANY - 1) * f->page, f->page, PROT_NONE), 0);
    bad(f, at, MANY * f->page, false, "cannot be read");
    assert_int_equal(munmap(at + (MANY - 1) * f->page, f->page), 0);
    bad(f, at, MANY * f->page, false, "is not mapped");
    if (f->asked[0] >= 0) {
        assert_int_equal(mprotect(at + f->page, f->page, PROT_NONE), 0);
        assert_int_equal(mrd_memory_check(f->asked[0], at, 3 * f->page, false), -EFAULT);
    }
    munmap(at, MANY * f->page);
}
