/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cc.h"
#include "tools/sim/fail.h"
#include "tools/sim/narrow.h"
#include "transport/movers/sim/sim_part.h"

#define FIELD(field)                                                                               \
    offsetof(struct simx_config, field), sizeof(((struct simx_config *)NULL)->field)

const struct simx_option simx_options[] = {
    {"tm", SIMX_TEXT, FIELD(tm), 0, 0, "FILE", NULL, "connection matrix of uet-htsim",
     "run, failure"},
    {"size", SIMX_BYTES, FIELD(bytes), 1, 1e12, "BYTES", NULL,
     "of a flow, message or buffer; K, M, G: powers of 1024", "!run, fairness, wan"},
    {"senders", SIMX_COUNT, FIELD(senders), 1, 65535, "N", NULL, "to one host, or that many pairs",
     "incast, failure"},
    {"victim", SIMX_FLAG, FIELD(victim), 0, 0, NULL, NULL, "a flow beside them", "incast"},
    {"peers", SIMX_COUNT, FIELD(peers), 1, 65535, "N", NULL, "of each sender", "scale"},
    {"at-once", SIMX_FLAG, FIELD(at_once), 0, 0, NULL, NULL,
     "to all peers, not to one after the other", "alltoall"},
    {"failure", SIMX_TEXT, FIELD(failure), 0, 0, "KIND", NULL, "blackhole, down, flap or degrade",
     "failure"},
    {"at", SIMX_REAL, FIELD(at_us), 0, 1e9, "US", "500", "when it comes", "failure"},
    {"spread", SIMX_REAL, FIELD(spread), 0, 100, "RTTS", NULL,
     "delay of the slowest path above that of the fastest, base RTTs", "skew"},
    {"flows", SIMX_COUNT, FIELD(mrd_flows), 1, SIMX_NARROW_FLOWS_MAX, "N", "4",
     "of mrd, or of --transport", "fairness"},
    {"tcp", SIMX_COUNT, FIELD(tcp_flows), 0, SIMX_NARROW_FLOWS_MAX, "N", "0",
     "flows of TCP with CUBIC beside those of mrd", "fairness"},
    {"tcp-first", SIMX_FLAG, FIELD(tcp_first), 0, 0, NULL, NULL, "they begin before the others",
     "fairness"},
    {"stagger", SIMX_REAL, FIELD(stagger_us), 0, 1e9, "US", "20000",
     "from the start of a flow to that of the next", "fairness"},
    {"duration", SIMX_REAL, FIELD(duration_s), 1e-4, 3600, "S", "0.5",
     "of virtual time, from the last start on", "fairness, wan"},

    {"rtt", SIMX_REAL, FIELD(rtt_us), 1, 1e7, "US", "100", "base RTT, of a full packet and its ack",
     "fairness, wan"},
    {"speedup", SIMX_REAL, FIELD(speedup), 1, 1e4, "RATIO", "4",
     "rate of the hosts' links, over --gbps", "fairness, wan"},
    {"buffer", SIMX_REAL, FIELD(buffer_bdp), 1e-3, 1e3, "BDP", "1",
     "what the queue of the narrow link holds", "fairness, wan"},
    {"buffer-bytes", SIMX_BYTES, FIELD(buffer_bytes), 1, 1e12, "BYTES", NULL,
     "the same in bytes, in place of --buffer", "fairness, wan"},
    {"topo", SIMX_TEXT, FIELD(topo), 0, 0, "FILE", NULL,
     "topology of uet-htsim; it stands in for the next six", "!fairness, wan"},
    {"hosts", SIMX_COUNT, FIELD(hosts), 2, 65536, "N", "128", "a multiple of those of a leaf",
     "!fairness, wan"},
    {"tiers", SIMX_COUNT, FIELD(tiers), 2, 3, "N", "2", "2: leaves and spines, 3: a fat tree",
     "!fairness, wan"},
    {"leaf-hosts", SIMX_COUNT, FIELD(leaf_hosts), 1, 65536, "N", "16", "hosts below a leaf",
     "!fairness, wan"},
    {"oversubscription", SIMX_REAL, FIELD(oversubscription), 1, 1e6, "RATIO", "1",
     "of the leaves: capacity down to capacity up", "!fairness, wan"},
    {"gbps", SIMX_REAL, FIELD(gbps), 1e-6, 1e5, "GBPS", "100",
     "rate of every link, or of the narrow one", NULL},
    {"delay", SIMX_REAL, FIELD(delay_us), 0, 1e6, "US", "1", "of every link", "!fairness, wan"},
    {"queue", SIMX_COUNT, FIELD(queue_packets), 1, 1e9, "PACKETS", "200",
     "full ones that the port of a switch holds", "!fairness, wan"},
    {"ecn", SIMX_PAIR, FIELD(ecn_min), 0, 1e6, "MIN,MAX", "0.2,0.8",
     "backlogs in BDPs between which packets are marked; 0,0: none", NULL},
    {"ack-priority", SIMX_FLAG, FIELD(ack_priority), 0, 0, NULL, NULL,
     "acks overtake data in every queue", NULL},
    {"loss", SIMX_REAL, FIELD(loss), 0, 0.999999999, "P", "0",
     "share of packets lost, data and acks", NULL},
    {"faults", SIMX_TEXT, FIELD(faults), 0, 0, "FILE", NULL, "lines TIME_US LINKS ACTION VALUE",
     NULL},
    {"wire-overhead", SIMX_TEXT, FIELD(wire_overhead), 0, 0, "HOW", "ethernet",
     "ethernet, or as uet-htsim counts: htsim", NULL},
    {"clock-skew", SIMX_COUNT, FIELD(skew_ppm), 0, 100000, "PPM", "50",
     "how far clocks of hosts run off at most, either way", NULL},

    {"transport", SIMX_TEXT, FIELD(transport), 0, 0, "NAME", "mrd", "mrd, or a model: rc, irn",
     NULL},
    {"knows", SIMX_TEXT, FIELD(knows), 0, 0, "WHAT", "fabric",
     "what hosts of mrd know of the network: sockets, rdma, fabric", NULL},
    {"spray", SIMX_TEXT, FIELD(spray), 0, 0, "NAME", "adaptive",
     "of mrd: single, rr, random, reps, adaptive", "!collision"},
    {"cc", SIMX_TEXT, FIELD(cc), 0, 0, "NAME", NULL,
     "of mrd: nscc, dctcp, swift, none; of the models: none, dcqcn", NULL},
    {"paths", SIMX_COUNT, FIELD(paths), 1, 256, "N", "64", "entropy values for each peer, of mrd",
     NULL},
    {"payload", SIMX_COUNT, FIELD(payload_bytes), 64, 8192, "BYTES", "4096",
     "of a packet, a multiple of 64", NULL},
    {"check", SIMX_FLAG, FIELD(check), 0, 0, NULL, NULL,
     "check payloads of mrd also where no faults can corrupt them", NULL},
    {"set", SIMX_SET, 0, 0, 0, 0, "NAME=VALUE", NULL,
     "a constant of a policy or model; --set list shows them", NULL},

    {"seed", SIMX_COUNT, FIELD(seed), 0, 1e15, "N", "1", "of the first run", NULL},
    {"seeds", SIMX_COUNT, FIELD(seeds), 1, 10000, "N", "1",
     "runs of each point, each with the next seed; adds mean and ci95", NULL},
    {"jobs", SIMX_COUNT, FIELD(jobs), 1, 1024, "N", NULL, "runs at once, each a process", NULL},
    {"threads", SIMX_COUNT, FIELD(threads), 1, MRD_SIM_PARTS_MAX, "N", NULL,
     "of a run of mrd; the results do not depend on it", NULL},
    {"limit", SIMX_REAL, FIELD(limit_s), 1e-6, 86400, "S", "10",
     "of virtual time, then it gives up", "!fairness, wan"},

    {"json", SIMX_FLAG, FIELD(json), 0, 0, NULL, NULL,
     "one JSON object a line, the table to stderr", NULL},
    {"csv", SIMX_FLAG, FIELD(csv), 0, 0, NULL, NULL, "the same as CSV", NULL},
    {"plot", SIMX_TEXT, FIELD(plot), 0, 0, "FILE.svg", NULL, "a picture, by gnuplot", NULL},
    {"quiet", SIMX_FLAG, FIELD(quiet), 0, 0, NULL, NULL, "no progress bar", NULL},
    {0},
};

enum {
    NUM_ROWS = sizeof(simx_options) / sizeof(simx_options[0]) - 1,
    OPT_HELP = NUM_ROWS,
    OPT_VERSION,
    WORD_BYTES = 32, /* of an option; a longer one is cut before it is compared */
    EDITS_MAX = 2,   /* of a word that is taken for a slip */
};

/* ------------------------------------------------------------------------------------ the table */

/* Is the word in a list like "a, b or c"? */
static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (; *list; list += strspn(list, ", ")) {
        size_t word_len = strcspn(list, ", ");

        if (word_len == len && strncmp(list, word, len) == 0)
            return strcmp(word, "or") != 0;
        list += word_len;
    }
    return false;
}

bool simx_option_is_of(const struct simx_option *option, const struct simx_experiment *experiment)
{
    if (option->of && option->of[0] == '!')
        return !has_word(option->of + 1, experiment->name);
    return !option->of || has_word(option->of, experiment->name);
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

static void store_count(const struct simx_option *row, struct simx_config *config, double value)
{
    char *at = (char *)config + row->at;

    if (row->bytes == sizeof(uint64_t))
        *(uint64_t *)(void *)at = (uint64_t)value;
    else
        *(uint32_t *)(void *)at = (uint32_t)value;
}

static int read_count(const struct simx_option *row, const char *text, struct simx_config *config)
{
    const char *rest;
    double value;
    bool ok = read_number(text, 0, 1e18, &rest, &value);

    if (ok && row->kind == SIMX_BYTES)
        value *= unit(&rest);
    if (!ok || *rest || value != floor(value) || value < row->min || value > row->max)
        return simx_fail(-EINVAL, "--%s: expected a whole number from %.0f to %.0f, found '%s'",
                         row->name, row->min, row->max, text);
    store_count(row, config, value);
    return 0;
}

static int read_reals(const struct simx_option *row, const char *text, unsigned num,
                      struct simx_config *config)
{
    double *at = (double *)(void *)((char *)config + row->at);
    double value[2] = {0};
    const char *rest = text;

    for (unsigned i = 0; i < num; i++) {
        if (!read_number(rest, row->min, row->max, &rest, &value[i]) ||
            *rest != (i + 1 < num ? ',' : '\0'))
            return simx_fail(-EINVAL, "--%s: expected %s from %g to %.9g, found '%s'", row->name,
                             row->argument, row->min, row->max, text);
        rest++;
    }
    if (num == 2 && value[0] > value[1])
        return simx_fail(-EINVAL, "--%s: expected the smaller first, found '%s'", row->name, text);
    memcpy(at, value, num * sizeof(value[0]));
    return 0;
}

static int read_set(const char *text, struct simx_config *config)
{
    const char *equals = strchr(text, '='), *rest;
    struct simx_set *set = &config->set[config->num_sets];

    if (config->num_sets == SIMX_SETS_MAX)
        return simx_fail(-EINVAL, "--set: more than %d of them", SIMX_SETS_MAX);
    if (!equals || (size_t)(equals - text) >= sizeof(set->name) ||
        !read_number(equals + 1, 0, 1e18, &rest, &set->value) || *rest)
        return simx_fail(-EINVAL, "--set: expected NAME=VALUE, a number of at least 0, found '%s'",
                         text);
    snprintf(set->name, sizeof(set->name), "%.*s", (int)(equals - text), text);
    config->num_sets++;
    return 0;
}

static int read_value(const struct simx_option *row, const char *text, struct simx_config *config)
{
    char *at = (char *)config + row->at;

    switch (row->kind) {
    case SIMX_TEXT:
        if (!*text || strlen(text) >= row->bytes)
            return simx_fail(-EINVAL, "--%s: expected %s of at most %zu bytes, found '%s'",
                             row->name, row->argument, row->bytes - 1, text);
        snprintf(at, row->bytes, "%s", text);
        return 0;
    case SIMX_COUNT:
    case SIMX_BYTES:
        return read_count(row, text, config);
    case SIMX_REAL:
        return read_reals(row, text, 1, config);
    case SIMX_PAIR:
        return read_reals(row, text, 2, config);
    case SIMX_FLAG:
        *(bool *)at = true;
        return 0;
    case SIMX_SET:
        return read_set(text, config);
    }
    return 0;
}

const struct simx_default *simx_default_find(const struct simx_experiment *experiment,
                                             const char *option)
{
    for (const struct simx_default *d = experiment->own; d->option; d++) {
        if (strcmp(d->option, option) == 0)
            return d;
    }
    return NULL;
}

void simx_options_defaults(struct simx_config *config, const struct simx_experiment *experiment)
{

    *config = (struct simx_config){0};
    if (experiment)
        snprintf(config->experiment, sizeof(config->experiment), "%s", experiment->name);
    for (const struct simx_option *row = simx_options; row->name; row++) {
        const struct simx_default *own =
            experiment ? simx_default_find(experiment, row->name) : NULL;
        const char *value = own ? own->value : row->value;

        if (value)
            (void)read_value(row, value, config);
        else if (row->kind == SIMX_REAL)
            *(double *)(void *)((char *)config + row->at) = SIMX_UNSET;
    }
}

/* ----------------------------------------------------------------------------------- as a whole */

static int check_words(const struct simx_config *c)
{
    const struct {
        const char *option, *found, *choices;
    } words[] = {
        {"transport", c->transport, "mrd, rc or irn"},
        {"wire-overhead", c->wire_overhead, "ethernet or htsim"},
        {"knows", c->knows, "sockets, rdma or fabric"},
        {"spray", c->spray, "single, rr, random, reps or adaptive"},
        {"failure", c->failure, "blackhole, down, flap or degrade"},
    };

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].found[0] && !has_word(words[i].choices, words[i].found))
            return simx_fail(-EINVAL, "--%s: expected %s, found '%s'", words[i].option,
                             words[i].choices, words[i].found);
    }
    return 0;
}

static int apply_sets(struct simx_config *c)
{
    c->tune = mrd_tune_default;
    c->model_tune = model_tune_default;
    for (unsigned i = 0; i < c->num_sets; i++) {
        if (mrd_tune_set(&c->tune, c->set[i].name, c->set[i].value) != 0 &&
            model_tune_set(&c->model_tune, c->set[i].name, c->set[i].value) != 0)
            return simx_fail(-EINVAL, "--set: there is no constant '%s' (--set list names all)",
                             c->set[i].name);
    }
    return 0;
}

static int check(struct simx_config *c)
{
    bool is_mrd = strcmp(c->transport, "mrd") == 0;

    if (check_words(c) != 0)
        return -EINVAL;
    if (!c->cc[0])
        snprintf(c->cc, sizeof(c->cc), "%s", is_mrd ? "nscc" : "none");
    if (is_mrd && !mrd_cc_find(c->cc))
        return simx_fail(-EINVAL, "--cc: mrd has nscc, dctcp, swift and none, not '%s'", c->cc);
    if (!is_mrd && !has_word("none, dcqcn", c->cc))
        return simx_fail(-EINVAL, "--cc: %s has none and dcqcn, not '%s'", c->transport, c->cc);
    if (c->payload_bytes % 64 != 0)
        return simx_fail(-EINVAL, "--payload: expected a multiple of 64, found %u",
                         c->payload_bytes);
    if (c->json && c->csv)
        return simx_fail(-EINVAL, "--json and --csv both want stdout");
    return apply_sets(c);
}

static void make_long_options(struct option *options)
{
    for (int i = 0; i < NUM_ROWS; i++)
        options[i] =
            (struct option){simx_options[i].name,
                            simx_options[i].argument ? required_argument : no_argument, NULL, i};
    options[NUM_ROWS] = (struct option){"help", no_argument, NULL, OPT_HELP};
    options[NUM_ROWS + 1] = (struct option){"version", no_argument, NULL, OPT_VERSION};
    options[NUM_ROWS + 2] = (struct option){0};
}

/* Returns the edit distance of two words (Levenshtein). */
static unsigned edits(const char *a, const char *b)
{
    unsigned row[WORD_BYTES + 1]; /* distances from the begin of a to each prefix of b */
    unsigned len = (unsigned)strlen(b);

    for (unsigned j = 0; j <= len; j++)
        row[j] = j;
    for (unsigned i = 1; *a; a++, i++) {
        unsigned corner = row[0]; /* distance without the last letters */

        row[0] = i;
        for (unsigned j = 1; j <= len; j++) {
            unsigned best = corner + (*a != b[j - 1]);

            corner = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[len];
}

static void fail_unknown(const char *word)
{
    const char *nearest = NULL;
    unsigned least = EDITS_MAX + 1;
    char name[WORD_BYTES];

    word += strspn(word, "-");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    for (unsigned i = 0; i < NUM_ROWS; i++) {
        unsigned distance = edits(name, simx_options[i].name);

        if (distance < least && distance < strlen(simx_options[i].name)) {
            least = distance;
            nearest = simx_options[i].name;
        }
    }
    simx_error_set("there is no option --%s%s%s%s", word, nearest ? "; is it --" : "",
                   nearest ? nearest : "", nearest ? "?" : "");
}

/*
 * What getopt_long_only() does not take: '?' or ':'. optopt: 0, or the number of an option that is
 * known.
 */
static enum simx_parsed refuse(int option, char **argv)
{
    const char *word = argv[optind > 1 ? optind - 1 : 1];

    if (option == ':')
        simx_error_set("%s needs a value", word);
    else if (strchr(word, '=') && optopt > 0)
        simx_error_set("%.*s takes no value", (int)strcspn(word, "="), word);
    else
        fail_unknown(word);
    return SIMX_PARSE_ERROR;
}

/* Explains a superfluous word, or NULL: a missing experiment. */
static enum simx_parsed refuse_word(const char *word)
{
    if (!word)
        simx_error_set("which experiment?");
    else if (simx_experiment_find(word))
        simx_error_set("the experiment comes first, and once: mrd_sim %s [OPTION...]", word);
    else
        simx_error_set("there is no experiment '%s'", word);
    return SIMX_PARSE_ERROR;
}

enum simx_parsed simx_options_parse(struct simx_config *config,
                                    const struct simx_experiment **experiment, int argc,
                                    char **argv)
{
    struct option options[NUM_ROWS + 3];
    int option;

    make_long_options(options);
    *experiment = argc > 1 ? simx_experiment_find(argv[1]) : NULL;
    simx_options_defaults(config, *experiment);
    if (*experiment) {
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
        if (option == '?' || option == ':')
            return refuse(option, argv);
        if (simx_options[option].kind == SIMX_SET && strcmp(optarg, "list") == 0)
            return SIMX_PARSE_LIST;
        if (read_value(&simx_options[option], optarg, config) != 0)
            return SIMX_PARSE_ERROR;
    }
    if (optind < argc || !*experiment)
        return refuse_word(optind < argc ? argv[optind] : NULL);
    return check(config) == 0 ? SIMX_PARSE_RUN : SIMX_PARSE_ERROR;
}
