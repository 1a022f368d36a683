/* SPDX-License-Identifier: BSD-2-Clause */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/last_bytes.h"
#include "tests/kit/kit.h"

enum { BYTES = 64, PAGE = 65536 };

static void fill(uint8_t *data, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i + 1);
}

/* Cut anywhere, in any order of the two parts, the end is kept whole, and the rest is told. */
TEST(mrd_last_bytes_keep__wherever_it_is_cut)
{
    uint8_t data[BYTES];

    fill(data, BYTES);
    for (uint32_t total = 1; total <= BYTES; total++) {
        for (uint32_t cut = 0; cut < total; cut++) {
            for (unsigned swapped = 0; swapped < 2; swapped++) {
                uint32_t from = total - mrd_last_bytes_len(total), heads = 0;
                struct mrd_last_bytes tail = {0};

                for (unsigned k = 0; k < 2; k++) {
                    bool second = k != swapped;
                    uint32_t at = second ? cut : 0, len = second ? total - cut : cut;

                    heads += mrd_last_bytes_keep(&tail, 1000, total, at, data + at, len);
                }
                assert_int_equal(heads, from);
                assert_int_equal(tail.len, total - from);
                assert_true(tail.addr == 1000 + from);
                assert_memory_equal(tail.bytes, data + from, tail.len);
            }
        }
    }
}

TEST(mrd_last_bytes_keep__nothing_of_other_bytes)
{
    struct mrd_last_bytes tail = {0};
    uint8_t data[BYTES];

    fill(data, BYTES);
    assert_int_equal(mrd_last_bytes_keep(&tail, 1000, BYTES, 0, data, BYTES - MRD_LAST_BYTES),
                     BYTES - MRD_LAST_BYTES);
    assert_int_equal(tail.len, 0);
    mrd_last_bytes_store(&tail); /* nothing is stored */
}

/* Each length at each alignment. */
TEST(mrd_last_bytes_store__all_of_it_and_no_more)
{
    _Alignas(8) uint8_t memory[4 * MRD_LAST_BYTES];
    uint8_t data[MRD_LAST_BYTES];

    fill(data, MRD_LAST_BYTES);
    for (uint32_t at = MRD_LAST_BYTES; at < 2 * MRD_LAST_BYTES; at++) {
        for (uint8_t len = 1; len <= MRD_LAST_BYTES; len++) {
            struct mrd_last_bytes tail = {.addr = (uintptr_t)memory + at, .len = len};

            memset(memory, 0, sizeof(memory));
            memcpy(tail.bytes, data, len);
            mrd_last_bytes_store(&tail);
            for (uint32_t i = 0; i < sizeof(memory); i++)
                assert_int_equal(memory[i], i < at || i >= at + len ? 0 : data[i - at]);
        }
    }
}

/* ---------------------------------------------------------------------------------- copying up */

static struct {
    uint8_t *memory, *wall; /* a page that cannot be written begins at the wall */
    const uint8_t *data;
    uint32_t len, below;
    bool hit, right;
} copy;

/* The copy has come to the wall: all below must be there, and nothing above. */
static void at_wall(int signal_number)
{
    (void)signal_number;
    if (mprotect(copy.wall, PAGE, PROT_READ | PROT_WRITE))
        _exit(1);
    copy.hit = true;
    copy.right = !memcmp(copy.wall - copy.below, copy.data, copy.below);
    for (uint32_t i = copy.below; i < copy.len; i++)
        copy.right &= copy.wall[i - copy.below] == 0;
}

/* Stores copy.data as a message's bytes are, or as those of its end. */
static void store(bool end)
{
    struct mrd_last_bytes tail = {.addr = (uintptr_t)copy.wall - copy.below,
                                  .len = (uint8_t)copy.len};

    if (!end) {
        mrd_last_bytes_copy_up(copy.wall - copy.below, copy.data, copy.len);
        return;
    }
    memcpy(tail.bytes, copy.data, copy.len);
    mrd_last_bytes_store(&tail);
}

/* All of it, to each place across the wall. */
static void goes_upwards(uint32_t len_max, bool end)
{
    struct sigaction action = {.sa_handler = at_wall}, before;
    uint8_t data[4 * BYTES];

    fill(data, sizeof(data));
    copy.data = data;
    copy.memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(copy.memory, MAP_FAILED);
    copy.wall = copy.memory + PAGE;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    for (copy.len = 0; copy.len <= len_max; copy.len += 1 + copy.len / 16) {
        for (copy.below = 0; copy.below <= copy.len; copy.below++) {
            memset(copy.memory, 0, 2 * PAGE);
            assert_int_equal(mprotect(copy.wall, PAGE, PROT_READ), 0);
            copy.hit = false;
            store(end);
            assert_int_equal(mprotect(copy.wall, PAGE, PROT_READ | PROT_WRITE), 0);
            assert_int_equal(copy.hit, copy.below < copy.len);
            assert_true(!copy.hit || copy.right);
            assert_memory_equal(copy.wall - copy.below, data, copy.len);
            assert_int_equal(copy.wall[copy.len - copy.below], 0);
        }
    }
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(munmap(copy.memory, 2 * PAGE), 0);
}

TEST(mrd_last_bytes_copy_up__upwards)
{
    goes_upwards(4 * BYTES, false);
}

/* A flag in the word before the last may be one that the program polls. */
TEST(mrd_last_bytes_store__upwards)
{
    goes_upwards(MRD_LAST_BYTES, true);
}
