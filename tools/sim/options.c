/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/cc.h"
#include "core/spray.h"

enum kind { TEXT, COUNT, BYTES, REAL, FLAG, PAIR, SET, OVERHEAD };

/* One option: where its value goes and what it may be. */
struct row {
    const char *name;
    enum kind kind;
    size_t at, bytes; /* in struct simx_config */
    double min, max;
    const char *argument, *help;
};

#define FIELD(field)                                                                               \
    offsetof(struct simx_config, field), sizeof(((struct simx_config *)NULL)->field)

static const struct row rows[] = {
    {"tm", TEXT, FIELD(tm), 0, 0, "FILE", "traffic: a connection matrix of uet-htsim"},
    {"size", BYTES, FIELD(bytes), 1, 1e12, "BYTES", "of a flow (K, M, G: powers of 1024)"},
    {"senders", COUNT, FIELD(senders), 1, 65535, "N", "incast: that many to one; failure: pairs"},
    {"victim", FLAG, FIELD(victim), 0, 0, NULL, "incast: with a flow beside it"},
    {"peers", COUNT, FIELD(peers), 1, 65535, "N", "scale: that each sender has"},
    {"at-once", FLAG, FIELD(at_once), 0, 0, NULL, "alltoall: not one peer after the other"},
    {"failure", TEXT, FIELD(failure), 0, 0, "KIND",
     "failure: blackhole, down, flap, degrade; default: each"},
    {"at", REAL, FIELD(at_us), 0, 1e9, "US", "failure: when it comes"},
    {"spread", REAL, FIELD(spread), 0, 100, "RTTS", "skew: of the paths' delays, base RTTs"},

    {"topo", TEXT, FIELD(topo), 0, 0, "FILE", "a topology of uet-htsim"},
    {"hosts", COUNT, FIELD(hosts), 2, 65536, "N", "without -topo: hosts"},
    {"tiers", COUNT, FIELD(tiers), 2, 3, "N", "2: leaf-spine, 3: fat tree"},
    {"leaf-hosts", COUNT, FIELD(leaf_hosts), 1, 65536, "N", "hosts a leaf"},
    {"oversubscription", REAL, FIELD(oversubscription), 1, 1e6, "RATIO", "of the leaves"},
    {"gbps", REAL, FIELD(gbps), 1e-6, 1e5, "GBPS", "rate of every link"},
    {"delay", REAL, FIELD(delay_us), 0, 1e6, "US", "of every link"},
    {"queue", COUNT, FIELD(queue_packets), 1, 1e9, "PACKETS", "a switch's port holds, full ones"},
    {"ecn", PAIR, FIELD(ecn_min), 0, 1e6, "MIN,MAX", "marks between these, in BDP; 0,0: none"},
    {"loss", REAL, FIELD(loss), 0, 0.999999999, "P", "end to end, data and acks"},
    {"faults", TEXT, FIELD(faults), 0, 0, "FILE", "lines TIME_US LINKS ACTION VALUE"},
    {"wire-overhead", OVERHEAD, FIELD(htsim_overhead), 0, 0, "HOW", "ethernet or htsim"},
    {"clock-skew", COUNT, FIELD(skew_ppm), 0, 100000, "PPM", "of host clocks, at most, +-"},

    {"transport", TEXT, FIELD(transport), 0, 0, "NAME", "mrd, rc or irn"},
    {"spray", TEXT, FIELD(spray), 0, 0, "NAME", "mrd: single, rr, random, reps or adaptive"},
    {"cc", TEXT, FIELD(cc), 0, 0, "NAME", "mrd: nscc, dctcp, swift, none; rc, irn: none, dcqcn"},
    {"paths", COUNT, FIELD(paths), 1, 256, "N", "entropy values a peer"},
    {"payload", COUNT, FIELD(payload_bytes), 64, 8192, "BYTES", "a packet, a multiple of 64"},
    {"set", SET, 0, 0, 0, 0, "NAME=VALUE", "a constant of a policy or model; --set list"},

    {"seed", COUNT, FIELD(seed), 0, 1e15, "N", "of the first run"},
    {"seeds", COUNT, FIELD(seeds), 1, 10000, "N", "runs of each point; adds mean and ci95"},
    {"jobs", COUNT, FIELD(jobs), 1, 1024, "N", "processes at once; default: the processors"},
    {"limit", REAL, FIELD(limit_s), 1e-6, 86400, "S", "give up after so much simulated time"},
    {"json", FLAG, FIELD(json), 0, 0, NULL, "one JSON object a line on stdout"},
    {"csv", FLAG, FIELD(csv), 0, 0, NULL, "CSV on stdout"},
    {"plot", TEXT, FIELD(plot), 0, 0, "FILE.svg", "a picture, by gnuplot"},
    {"quiet", FLAG, FIELD(quiet), 0, 0, NULL, "no progress bar"},
};

enum { NUM_ROWS = sizeof(rows) / sizeof(rows[0]), OPT_HELP = NUM_ROWS, OPT_VERSION };

static int fail(char *error, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(char *error, size_t len, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, len, format, args);
    va_end(args);
    return -EINVAL;
}

/* --------------------------------------------------------------------------------------- values */

static bool read_number(const char *text, double min, double max, const char **rest, double *value)
{
    char *end;

    errno = 0;
    *value = strtod(text, &end);
    *rest = end;
    return end != text && errno == 0 && *value >= min && *value <= max;
}

static double unit(const char **rest)
{
    static const char units[] = "KMG";
    const char *found = **rest ? strchr(units, **rest) : NULL;

    if (!found)
        return 1;
    ++*rest;
    return pow(1024, (double)(found - units + 1));
}

static void store_count(const struct row *row, struct simx_config *config, double value)
{
    char *at = (char *)config + row->at;

    if (row->bytes == sizeof(uint64_t))
        *(uint64_t *)(void *)at = (uint64_t)value;
    else
        *(uint32_t *)(void *)at = (uint32_t)value;
}

static int read_count(const struct row *row, const char *text, struct simx_config *config,
                      char *error, size_t len)
{
    const char *rest;
    double value;
    bool ok = read_number(text, 0, 1e18, &rest, &value);

    if (ok && row->kind == BYTES)
        value *= unit(&rest);
    if (!ok || *rest || value != floor(value) || value < row->min || value > row->max)
        return fail(error, len, "--%s: expected a whole number from %.0f to %.0f, found '%s'",
                    row->name, row->min, row->max, text);
    store_count(row, config, value);
    return 0;
}

static int read_reals(const struct row *row, const char *text, unsigned num,
                      struct simx_config *config, char *error, size_t len)
{
    double *at = (double *)(void *)((char *)config + row->at);
    double value[2] = {0};
    const char *rest = text;

    for (unsigned i = 0; i < num; i++) {
        if (!read_number(rest, row->min, row->max, &rest, &value[i]) ||
            *rest != (i + 1 < num ? ',' : '\0'))
            return fail(error, len, "--%s: expected %s from %g to %g, found '%s'", row->name,
                        row->argument, row->min, row->max, text);
        rest++;
    }
    if (num == 2 && value[0] > value[1])
        return fail(error, len, "--%s: expected the smaller first, found '%s'", row->name, text);
    memcpy(at, value, num * sizeof(value[0]));
    return 0;
}

static int read_set(const char *text, struct simx_config *config, char *error, size_t len)
{
    const char *equals = strchr(text, '='), *rest;
    struct simx_set *set = &config->set[config->num_sets];

    if (config->num_sets == SIMX_SETS_MAX)
        return fail(error, len, "--set: more than %d of them", SIMX_SETS_MAX);
    if (!equals || (size_t)(equals - text) >= sizeof(set->name) ||
        !read_number(equals + 1, 0, 1e18, &rest, &set->value) || *rest)
        return fail(error, len, "--set: expected NAME=VALUE, a number of at least 0, found '%s'",
                    text);
    snprintf(set->name, sizeof(set->name), "%.*s", (int)(equals - text), text);
    config->num_sets++;
    return 0;
}

static int read_value(const struct row *row, const char *text, struct simx_config *config,
                      char *error, size_t len)
{
    char *at = (char *)config + row->at;

    switch (row->kind) {
    case TEXT:
        if (!*text || strlen(text) >= row->bytes)
            return fail(error, len, "--%s: expected %s of at most %zu bytes, found '%s'", row->name,
                        row->argument, row->bytes - 1, text);
        snprintf(at, row->bytes, "%s", text);
        return 0;
    case COUNT:
    case BYTES:
        return read_count(row, text, config, error, len);
    case REAL:
        return read_reals(row, text, 1, config, error, len);
    case PAIR:
        return read_reals(row, text, 2, config, error, len);
    case FLAG:
        *(bool *)at = true;
        return 0;
    case SET:
        return read_set(text, config, error, len);
    case OVERHEAD:
        config->htsim_overhead = strcmp(text, "htsim") == 0;
        if (!config->htsim_overhead && strcmp(text, "ethernet") != 0)
            return fail(error, len, "--wire-overhead: expected ethernet or htsim, found '%s'",
                        text);
        return 0;
    }
    return 0;
}

/* ----------------------------------------------------------------------------------- as a whole */

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++) {
        if (strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

static int apply_sets(struct simx_config *c, char *error, size_t len)
{
    c->tune = mrd_tune_default;
    c->model_tune = mrd_sim_tune_default;
    for (unsigned i = 0; i < c->num_sets; i++) {
        if (mrd_tune_set(&c->tune, c->set[i].name, c->set[i].value) != 0 &&
            mrd_sim_tune_set(&c->model_tune, c->set[i].name, c->set[i].value) != 0)
            return fail(error, len, "--set: there is no constant '%s' (--set list names all)",
                        c->set[i].name);
    }
    return 0;
}

static int check(struct simx_config *c, char *error, size_t len)
{
    static const char *const transports[] = {"mrd", "rc", "irn", NULL};
    static const char *const model_ccs[] = {"none", "dcqcn", NULL};
    static const char *const failures[] = {"blackhole", "down", "flap", "degrade", NULL};
    bool is_mrd = strcmp(c->transport, "mrd") == 0;

    if (!is_one_of(c->transport, transports))
        return fail(error, len, "--transport: expected mrd, rc or irn, found '%s'", c->transport);
    if (!c->cc[0])
        snprintf(c->cc, sizeof(c->cc), "%s", is_mrd ? "nscc" : "none");
    if (is_mrd && !mrd_cc_find(c->cc))
        return fail(error, len, "--cc: mrd has nscc, dctcp, swift and none, not '%s'", c->cc);
    if (!is_mrd && !is_one_of(c->cc, model_ccs))
        return fail(error, len, "--cc: %s has none and dcqcn, not '%s'", c->transport, c->cc);
    if (!mrd_spray_find(c->spray))
        return fail(error, len,
                    "--spray: expected single, rr, random, reps or adaptive, found '%s'", c->spray);
    if (c->failure[0] && !is_one_of(c->failure, failures))
        return fail(error, len, "--failure: expected blackhole, down, flap or degrade, found '%s'",
                    c->failure);
    if (c->payload_bytes % 64 != 0)
        return fail(error, len, "--payload: expected a multiple of 64, found %u", c->payload_bytes);
    if (c->json && c->csv)
        return fail(error, len, "--json and --csv both want stdout");
    return apply_sets(c, error, len);
}

static void defaults(struct simx_config *c)
{
    *c = (struct simx_config){
        .transport = "mrd",
        .spray = "adaptive",
        .hosts = 128,
        .tiers = 2,
        .leaf_hosts = 16,
        .oversubscription = 1,
        .gbps = 100,
        .delay_us = 1,
        .queue_packets = 200,
        .ecn_min = 0.2,
        .ecn_max = 0.8,
        .skew_ppm = 50,
        .paths = 64,
        .payload_bytes = 4096,
        .at_us = 100,
        .seed = 1,
        .seeds = 1,
        .limit_s = 10,
    };
}

static void make_long_options(struct option *options)
{
    for (int i = 0; i < NUM_ROWS; i++)
        options[i] = (struct option){rows[i].name,
                                     rows[i].argument ? required_argument : no_argument, NULL, i};
    options[NUM_ROWS] = (struct option){"help", no_argument, NULL, OPT_HELP};
    options[NUM_ROWS + 1] = (struct option){"version", no_argument, NULL, OPT_VERSION};
    options[NUM_ROWS + 2] = (struct option){0};
}

static const char *option_word(char **argv)
{
    return argv[optind > 1 ? optind - 1 : 1];
}

enum simx_parsed simx_options_parse(struct simx_config *config,
                                    const struct simx_experiment **experiment, int argc,
                                    char **argv, char *error, size_t len)
{
    struct option options[NUM_ROWS + 3];
    int option;

    make_long_options(options);
    defaults(config);
    *experiment = argc > 1 ? simx_experiment_find(argv[1]) : NULL;
    if (*experiment) {
        snprintf(config->experiment, sizeof(config->experiment), "%s", argv[1]);
        if ((*experiment)->defaults)
            (*experiment)->defaults(config);
        argv++;
        argc--;
    }
    optind = 0;
    opterr = 0;
    while ((option = getopt_long_only(argc, argv, ":h", options, NULL)) != -1) {
        if (option == OPT_HELP || option == 'h')
            return SIMX_PARSE_HELP;
        if (option == OPT_VERSION)
            return SIMX_PARSE_VERSION;
        if (option == '?' || option == ':') {
            fail(error, len, option == ':' ? "%s needs a value" : "there is no option %s",
                 option_word(argv));
            return SIMX_PARSE_ERROR;
        }
        if (rows[option].kind == SET && strcmp(optarg, "list") == 0)
            return SIMX_PARSE_LIST;
        if (read_value(&rows[option], optarg, config, error, len) != 0)
            return SIMX_PARSE_ERROR;
    }
    if (optind < argc || !*experiment) {
        fail(error, len, optind < argc ? "there is no experiment '%s'" : "which experiment?%s",
             optind < argc ? argv[optind] : "");
        return SIMX_PARSE_ERROR;
    }
    return check(config, error, len) == 0 ? SIMX_PARSE_RUN : SIMX_PARSE_ERROR;
}

static void list(FILE *out, const struct mrd_tune_entry *entries, unsigned num)
{
    for (unsigned i = 0; i < num; i++)
        fprintf(out, "  %-26s %-10.10g %s\n", entries[i].name, entries[i].value_default,
                entries[i].help);
}

void simx_options_constants(FILE *out)
{
    unsigned num;
    const struct mrd_tune_entry *entries = mrd_tune_entries(&num);

    fputs("Constants of mrd's policies, for --set NAME=VALUE:\n", out);
    list(out, entries, num);
    entries = mrd_sim_tune_entries(&num);
    fputs("Of the models rc and irn:\n", out);
    list(out, entries, num);
}

void simx_options_help(FILE *out)
{
    const struct simx_experiment *experiment;

    fputs("usage: mrd_sim EXPERIMENT [OPTION...]\n\nExperiments:\n", out);
    for (unsigned i = 0; (experiment = simx_experiment_at(i)); i++)
        fprintf(out, "  %-12s %s\n", experiment->name, experiment->summary);
    fputs("\nOptions, with one dash or two:\n", out);
    for (unsigned i = 0; i < NUM_ROWS; i++) {
        char left[48];

        snprintf(left, sizeof(left), "--%s %s", rows[i].name,
                 rows[i].argument ? rows[i].argument : "");
        fprintf(out, "  %-24s %s\n", left, rows[i].help);
    }
}
