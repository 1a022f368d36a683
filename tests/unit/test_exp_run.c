/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The experiment run: the distribution of completion times, and what is counted the same for each
 * transport.
 */
#include <unistd.h>

#include "tests/unit/exp_cli.h"

#define FABRIC " --hosts 8 --leaf-hosts 4"

enum { NAME_BYTES = 32 };

struct matrix {
    char path[NAME_BYTES], line[EXP_LINE_BYTES];
};

static void file_remove(void *path)
{
    unlink(path);
}

/* A file with these lines until the test ends, which `path` outlives. */
static void file_write(char *path, const char *lines)
{
    snprintf(path, NAME_BYTES, "/tmp/mrd_test_run_XXXXXX");

    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
    close(fd);
    kit_own(path, file_remove);
}

/* A file with these lines, and the command line that runs it. */
static void matrix_write(struct matrix *m, const char *lines, const char *options)
{
    file_write(m->path, lines);
    snprintf(m->line, sizeof(m->line), "run -tm %s" FABRIC "%s", m->path, options);
}

static double percentile(struct json_object *result, unsigned p)
{
    struct json_object *percentiles = json_get(result, "fct_us_percentiles");

    assert_int_equal(json_object_array_length(percentiles), 101);
    return json_object_get_double(json_object_array_get_idx(percentiles, p));
}

/*
 * Four flows that do not meet, each longer than the one before: a quarter of the percentiles each.
 */
TEST(simx_exp_run__percentiles)
{
    static struct matrix m;
    double ends[4];

    matrix_write(&m,
                 "Nodes 8\nConnections 4\n0->4 start 0 size 64000\n1->5 start 0 size 256000\n"
                 "2->6 start 0 size 1024000\n3->7 start 0 size 4096000\n",
                 "");

    struct json_object *result = exp_measure_only(m.line);

    for (unsigned i = 0; i < 4; i++) {
        ends[i] = percentile(result, 25 * (i + 1));
        assert_true(percentile(result, 25 * i + 1) == ends[i]);
        assert_true(i == 0 || ends[i] > ends[i - 1]);
    }
    assert_true(percentile(result, 0) == exp_number(result, "fct_us.min"));
    assert_true(percentile(result, 50) == exp_number(result, "fct_us.p50"));
    assert_true(percentile(result, 100) == exp_number(result, "fct_us.max"));
}

/* A flow that does not end has no time, and the percentiles of those that do are of all flows. */
TEST(simx_exp_run__percentiles_of_unfinished)
{
    static struct matrix m;

    matrix_write(&m,
                 "Nodes 8\nConnections 2\n0->4 start 0 size 64000\n1->5 start 0 size 64000000\n",
                 " --limit 0.001");

    struct json_object *result = exp_measure(m.line, 0);
    struct json_object *percentiles = json_get(result, "fct_us_percentiles");

    assert_int_equal(exp_number(result, "unfinished"), 1);
    assert_true(percentile(result, 50) == exp_number(result, "fct_us.min"));
    assert_null(json_object_array_get_idx(percentiles, 51));
    assert_null(json_object_array_get_idx(percentiles, 100));
}

/* Nothing is lost: what a transport sent again, the receiver had. */
TEST(simx_exp_run__all_retransmissions_are_spurious_without_loss)
{
    struct json_object *result = exp_measure_only("alltoall --hosts 16 --leaf-hosts 4 --at-once"
                                                  " --size 1M");

    assert_int_equal(exp_number(result, "drops") + exp_number(result, "lost"), 0);
    assert_true(exp_number(result, "retransmitted") > 0);
    assert_true(exp_number(result, "spurious") == exp_number(result, "retransmitted"));
}

/* Does the line give the same result with `--check`, but for the machine's part? */
static bool is_same_with_check(const char *line)
{
    static const char *const of_the_machine[] = {"wall_s", "packets_per_wall_s"};
    char checked[EXP_LINE_BYTES];
    struct json_object *result[2] = {exp_measure_only(line)};

    assert_true(strlen(line) + sizeof(" --check") <= sizeof(checked));
    snprintf(checked, sizeof(checked), "%s --check", line);
    result[1] = exp_measure_only(checked);
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < sizeof(of_the_machine) / sizeof(of_the_machine[0]); k++) {
            assert_non_null(json_get(result[i], of_the_machine[k]));
            json_object_object_del(result[i], of_the_machine[k]);
        }
    }
    return json_object_equal(result[0], result[1]);
}

/* The check of payloads finds nothing where nothing corrupts them, and takes no time. */
TEST(simx_exp_run__check_changes_nothing)
{
    assert_true(is_same_with_check("alltoall --hosts 16 --leaf-hosts 4 --at-once --size 1M"));
    assert_true(is_same_with_check("alltoall" FABRIC " --size 1M --loss 0.01 --seed 3"));
}

/* Payloads that faults may corrupt are checked without being asked to, and sent again. */
TEST(simx_exp_run__corrupted_payloads)
{
    enum { PACKETS = 500, LINKS = 4, CORRUPTED = PACKETS * LINKS / 50 };
    static char faults[NAME_BYTES];
    char options[2 * NAME_BYTES];
    static struct matrix m;

    file_write(faults, "0 * corrupt 0.02\n");
    snprintf(options, sizeof(options), " --faults %s", faults);
    matrix_write(&m, "Nodes 8\nConnections 1\n0->4 start 0 size 2048000\n", options);

    struct json_object *result = exp_measure_only(m.line);

    assert_int_equal(exp_number(result, "unfinished"), 0);
    /* Of those with a header alone corrupted there are few. */
    assert_true(exp_number(result, "retransmitted") > CORRUPTED / 2);
    assert_true(is_same_with_check(m.line));
}
