/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "tools/perf/options.h"
#include "tools/perf/scale.h"

static int take_transports(struct option_line *line, int count, char **words)
{
    struct perf_options *o = line->to;

    o->state = true;
    if (count > PERF_TRANSPORTS_MAX)
        return option_fail(line->error, "state: at most %d transports", PERF_TRANSPORTS_MAX);
    for (int i = 0; i < count; i++) {
        if (!perf_options_add_transport(o, words[i], strlen(words[i])))
            return option_fail(line->error, "state: '%s' is not the name of a transport", words[i]);
    }
    return 0;
}

/* Called by a name of perftest's, such as ib_write_bw, the program needs no test's name. */
static bool is_named_after(const char *program, enum perf_test *test)
{
    static const char *const prefixes[] = {"ib_", "mrd_", "rdma_"};
    const char *name = strrchr(program, '/');

    name = name ? name + 1 : program;
    for (unsigned i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t len = strlen(prefixes[i]);

        if (strncmp(name, prefixes[i], len) == 0 && perf_test_find(name + len, test) == 0)
            return true;
    }
    return false;
}

static int take_test(struct option_line *line, const char *program, int *i)
{
    struct perf_options *o = line->to;
    char **argv = line->words;

    if (is_named_after(program, &o->params.test))
        return 0;
    if (*i == line->num_words)
        return option_fail(line->error, "which test? One of %s", perf_test_names());
    if (perf_test_find(argv[*i], &o->params.test))
        return option_fail(line->error, "test '%s' is not known; there is %s", argv[*i],
                           perf_test_names());
    ++*i;
    return 0;
}

static int take_key_file(struct option_line *line, int count, char **words)
{
    struct perf_keygen *k = &((struct perf_options *)line->to)->keygen;

    k->asked = true;
    if (count != 1)
        return option_fail(line->error, "keygen: which file? One is expected");
    if (words[0][0] == '\0' || strlen(words[0]) >= sizeof(k->file))
        return option_fail(line->error, "keygen: the file's name is empty or too long");
    strcpy(k->file, words[0]);
    return 0;
}

static int take_words(struct option_line *line, const char *program)
{
    struct perf_options *o = line->to;
    char **argv = line->words;
    int argc = line->num_words, i = 0;

    if (i < argc && strcmp(argv[i], "state") == 0)
        return take_transports(line, argc - i - 1, argv + i + 1);
    if (i < argc && strcmp(argv[i], "scale") == 0)
        return perf_scale_take(line, argc - i - 1, argv + i + 1);
    if (i < argc && strcmp(argv[i], "keygen") == 0)
        return take_key_file(line, argc - i - 1, argv + i + 1);
    if (i < argc && strcmp(argv[i], "compare") == 0) {
        o->compare = true;
        i++;
    }
    if (!o->compare && i < argc && strcmp(argv[i], "doctor") == 0) {
        o->doctor = true;
        i++;
    } else if (take_test(line, program, &i)) {
        return -EINVAL;
    }
    if (i < argc) {
        if (argv[i][0] == '\0' || strlen(argv[i]) >= sizeof(o->host))
            return option_fail(line->error, "the host's name is empty or too long");
        strcpy(o->host, argv[i++]);
    }
    if (i < argc)
        return option_fail(
            line->error, "'%s' is one word too many: only a test and a host are expected", argv[i]);
    return 0;
}

int perf_options_parse(struct perf_options *o, int argc, char **argv, char *error)
{
    struct option_line line = {.table = &perf_option_table, .to = o, .error = error};

    perf_options_init(o);
    int rc = option_parse(&line, argc, argv);
    if (rc)
        return rc;
    if (take_words(&line, argv[0]))
        return -EINVAL;
    perf_options_default(&line);
    if (perf_options_check(&line))
        return -EINVAL;
    if (o->num_source_ports)
        o->params.paths = o->num_source_ports;
    return PERF_PARSE_RUN;
}

void perf_options_help(FILE *out)
{
    fputs(
        "Usage: mrd_perf TEST [options] [HOST]\n"
        "       mrd_perf compare TEST [options] [--transports A,B,...] [--repeat N] HOST | "
        "--local\n"
        "       mrd_perf doctor [options] [HOST]\n"
        "       mrd_perf state [options] [--peers N] [TRANSPORT ...]\n"
        "       mrd_perf scale [options] [PEERS ...]\n"
        "       mrd_perf keygen [--id N] [--cipher NAME] [--add] FILE\n"
        "TEST: send_bw, send_lat, write_bw, write_lat, read_bw, read_lat, atomic_bw, atomic_lat.\n"
        "Without HOST: the server, which serves one client.\n",
        out);
    option_help(out, &perf_option_table, -1);
    fputs("\nExit status: 0 done, 1 failed or not verified, 2 wrong options. See mrd_perf(1).\n",
          out);
}
