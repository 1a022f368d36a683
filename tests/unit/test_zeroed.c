/* SPDX-License-Identifier: BSD-2-Clause */
/* Zeroed memory, and what contexts take of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/unit/context_fixture.h"
#include "transport/zeroed.h"

enum { MIB = 1 << 20, CONTEXTS = 6, CONTEXT_KIB_MAX = 8 << 10 };

/* A sanitizer's heap keeps what is freed, and has a shadow. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
static const bool has_shadow = true;
#else
static const bool has_shadow = false;
#endif

/* The address space of the process, and how much of it was touched. */
static void measure(long *reserved_kib, long *resident_kib)
{
    FILE *statm = fopen("/proc/self/statm", "re");
    long page_kib = sysconf(_SC_PAGESIZE) / 1024;

    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%ld %ld", reserved_kib, resident_kib), 2);
    fclose(statm);
    *reserved_kib *= page_kib;
    *resident_kib *= page_kib;
}

static long resident_kib(void)
{
    long reserved, resident;

    measure(&reserved, &resident);
    return resident;
}

static long reserved_kib(void)
{
    long reserved, resident;

    measure(&reserved, &resident);
    return reserved;
}

static bool is_zero(const uint8_t *at, size_t bytes)
{
    return at[0] == 0 && !memcmp(at, at + 1, bytes - 1);
}

/* Whatever was there before, and above and below the size from which blocks are mapped. */
TEST(mrd_zeroed_alloc__zero_each_time)
{
    static const size_t sizes[] = {16, MRD_ZEROED_MAP_BYTES - 1, MRD_ZEROED_MAP_BYTES,
                                   MRD_ZEROED_MAP_BYTES + 1, 3 * MIB + 7};

    for (unsigned turn = 0; turn < 3; turn++)
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            uint8_t *block = mrd_zeroed_alloc(sizes[i]);

            assert_non_null(block);
            assert_int_equal((uintptr_t)block % _Alignof(max_align_t), 0);
            assert_true(is_zero(block, sizes[i]));
            memset(block, 0xa5, sizes[i]);
            mrd_zeroed_release(block, sizes[i]);
        }
    mrd_zeroed_release(NULL, 16);
    mrd_zeroed_release(NULL, 3 * MIB);
}

TEST(mrd_zeroed_alloc__too_much)
{
    if (has_shadow) /* a sanitizer's heap ends the process for such a size */
        skip();
    errno = 0;
    assert_null(mrd_zeroed_alloc(SIZE_MAX / 2));
    assert_int_equal(errno, ENOMEM);
}

/* A large block takes what is touched of it, also after others were freed. */
TEST(mrd_zeroed_alloc__untouched_pages_cost_nothing)
{
    const size_t bytes = 30 * MIB;

    if (has_shadow)
        skip();
    for (unsigned turn = 0; turn < 3; turn++) {
        long before = resident_kib();
        uint8_t *block = mrd_zeroed_alloc(bytes);

        assert_non_null(block);
        block[bytes / 2] = 1;
        assert_in_range(resident_kib() - before, 0, 1024);
        memset(block, 1, bytes);
        mrd_zeroed_release(block, bytes);
        assert_true(resident_kib() - before < 1024);
    }
}

/* A program freed a large block, then opens contexts: none takes more than the first did. */
TEST(mrd_open_device__memory_of_later_contexts)
{
    void *volatile block;

    if (has_shadow)
        skip();
    block = malloc(31 * MIB);
    assert_non_null(block);
    free(block);
    long before = resident_kib();
    for (unsigned i = 0; i < CONTEXTS; i++) {
        struct mrd_context *context = open_local(&(struct mrd_context_attr){.paths = 2});

        assert_non_null(context);
        long open = resident_kib();
        assert_int_equal(mrd_close_device(context), 0);
        if (open - before > CONTEXT_KIB_MAX)
            fail_msg("context %u: %ld KiB more than before all", i, open - before);
    }
}

/* What mrd(7) says that a limit of address space must allow; without a thread, whose stack varies. */
TEST(mrd_open_device__address_space)
{
    static const struct {
        uint32_t peers;
        long kib_max;
    } cases[] = {{0, 460 << 10}, {100, 32 << 10}, {65536, (22 << 10) + 65536 * 28}};

    if (has_shadow)
        skip();
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        long before = reserved_kib();
        struct mrd_context *context = open_local(&(struct mrd_context_attr){
            .paths = 2, .max_peers = cases[i].peers, .progress = MRD_PROGRESS_MANUAL});

        assert_non_null(context);

        long taken = reserved_kib() - before;

        if (taken > cases[i].kib_max)
            fail_msg("%u peers: %ld KiB", cases[i].peers, taken);
        assert_int_equal(mrd_close_device(context), 0);
        assert_in_range(reserved_kib() - before, 0, 1024);
    }
}
