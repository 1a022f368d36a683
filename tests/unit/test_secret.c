/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/secret.h"
#include "tests/kit/kit.h"

/* The vectors of the paper's reference code: key 00 01 .. 0f, text 00 01 02 .. of each length. */
TEST(mrd_siphash__vectors)
{
    static const struct {
        size_t len;
        uint64_t hash;
    } rows[] = {{0, 0x726fdb47dd0e0e31u},
                {1, 0x74f839c593dc67fdu},
                {7, 0xab0200f58b01d137u},
                {8, 0x93f5f5799a932462u},
                {15, 0xa129ca6149be45e5u}};
    const uint64_t key[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    uint8_t text[16];

    for (uint8_t i = 0; i < sizeof(text); i++)
        text[i] = i;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_true(mrd_siphash(key, text, rows[i].len) == rows[i].hash);
}

/* The same for the same use and data; another for another use, key or data. */
TEST(mrd_secret_of__depends_on_all)
{
    struct mrd_secret a = {.key = {1, 2}}, b = {.key = {1, 3}};
    uint64_t first = mrd_secret_of(&a, MRD_SECRET_PAIR, "one", 4);

    assert_true(mrd_secret_of(&a, MRD_SECRET_PAIR, "one", 4) == first);
    assert_true(mrd_secret_of(&a, MRD_SECRET_COOKIE, "one", 4) != first);
    assert_true(mrd_secret_of(&b, MRD_SECRET_PAIR, "one", 4) != first);
    assert_true(mrd_secret_of(&a, MRD_SECRET_PAIR, "two", 4) != first);
    assert_true(mrd_secret_of(&a, MRD_SECRET_PAIR, "one", 3) != first);
}

/* What was drawn tells nothing of what is drawn next; the same key gives the same. */
TEST(mrd_secret_draw__another_each_time)
{
    struct mrd_secret a = {.key = {1, 2}}, b = {.key = {1, 2}};
    uint64_t last = 0;

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t number = mrd_secret_draw(&a);

        assert_true(number != last);
        assert_true(number == mrd_secret_draw(&b));
        last = number;
    }
}
