/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulated network in a program whose locale writes 0,5 for a half. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/check.h"
#include "transport/movers/sim/sim_world.h"

#define MODEL "/usr/lib/locale/C.utf8/LC_NUMERIC"

enum { HEADER_BYTES = 32, MODEL_BYTES_MAX = 256 };

static char folder[] = "/tmp/mrd_locale_XXXXXX";

/* A locale like C.utf8, but for the point. False: not in this system. */
static bool make_locale(void)
{
    char bytes[MODEL_BYTES_MAX], path[64];
    FILE *file = fopen(MODEL, "re");
    size_t num = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

    if (file)
        fclose(file);
    if (num <= HEADER_BYTES || !mkdtemp(folder))
        return false;
    for (size_t i = HEADER_BYTES; i < num; i++)
        if (bytes[i] == '.')
            bytes[i] = ',';
    snprintf(path, sizeof(path), "%s/comma", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/comma/LC_NUMERIC", folder);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, num, file), num);
    assert_int_equal(fclose(file), 0);
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_NUMERIC, "comma") && strtod("0,5", NULL) > 0.4;
}

static void remove_locale(void)
{
    char path[64];

    setlocale(LC_NUMERIC, "C");
    snprintf(path, sizeof(path), "%s/comma/LC_NUMERIC", folder);
    (void)unlink(path);
    snprintf(path, sizeof(path), "%s/comma", folder);
    (void)rmdir(path);
    (void)rmdir(folder);
}

TEST(mrd_sim_schedule__decimal_comma)
{
    static const struct {
        const char *action, *value;
        int result;
    } cases[] = {
        {"loss", "0.01", 0},       {"rate", "12.5", 0},    {"burst", "0.1,0.2,0.5", 0},
        {"ecn", "1000,2000", 0},   {"flap", "200,100", 0}, {"loss", "0,5", -EINVAL},
        {"rate", "12,5", -EINVAL},
    };
    struct mrd_sim *sim = test_sim(NULL);
    struct mrd_sim_link link;

    kit_after_test(remove_locale);
    if (!make_locale())
        skip();
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int result = mrd_sim_schedule(sim, 0, "*", cases[i].action, cases[i].value);

        if (result != cases[i].result)
            fail_msg("%s %s: %d, %s", cases[i].action, cases[i].value, result, mrd_last_error());
    }
    /* The caller's locale is still its own. */
    assert_true(strtod("0,5", NULL) > 0.4);
    mrd_sim_run_until(sim, 1000);
    assert_int_equal(mrd_sim_query_link(sim, 0, &link, NULL), 0);
    assert_int_equal(link.rate_bps, 12500000000);
}
