/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/sim/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cc.h"
#include "tools/sim/fail.h"
#include "tools/sim/narrow.h"
#include "transport/movers/sim/sim_part.h"

/* Experiments that have an option. */
#define IN(name) (UINT32_C(1) << SIMX_##name)
enum {
    ALL = (1 << SIMX_NUM_EXPERIMENTS) - 1,
    NARROW = 1 << SIMX_FAIRNESS | 1 << SIMX_WAN,
    FABRIC = ALL & ~NARROW,
    CC_NAMES_MAX = 16,
};

#define FIELD(field) OPTION_MEMBER(struct simx_config, field)

/* Names of experiments, in their order. */
static const char *const modes[] = {"run",      "loss",     "collision", "incast",
                                    "skew",     "failure",  "scale",     "allreduce",
                                    "alltoall", "fairness", "wan",       NULL};
static const char *const failures[] = {"blackhole", "down", "flap", "degrade", NULL};
static const char *const overheads[] = {"ethernet", "htsim", NULL};
static const char *const transports[] = {"mrd", "rc", "irn", NULL};
static const char *const knowledge[] = {"sockets", "rdma", "fabric", NULL};

static const char *const *cc_names(void);
static int take_set(const struct option_value *value);

static const struct option_row rows[] = {
    {"tm", 0, OPTION_TEXT, FIELD(tm), 0, 0, "FILE", .help = "connection matrix of uet-htsim",
     .modes = IN(RUN) | IN(FAILURE), .heading = "Traffic"},
    {"size", 0, OPTION_BYTES, FIELD(bytes), 1, 1e12, "BYTES",
     .help = "of a flow, message or buffer; K, M, G: powers of 1024", .modes = FABRIC & ~IN(RUN)},
    {"senders", 0, OPTION_COUNT, FIELD(senders), 1, 65535, "N",
     .help = "to one host, or that many pairs", .modes = IN(INCAST) | IN(FAILURE)},
    {"victim", 0, OPTION_FLAG, FIELD(victim), 0, 0, NULL, .help = "a flow beside them",
     .modes = IN(INCAST)},
    {"peers", 0, OPTION_COUNT, FIELD(peers), 1, 65535, "N", .help = "of each sender",
     .modes = IN(SCALE)},
    {"at-once", 0, OPTION_FLAG, FIELD(at_once), 0, 0, NULL,
     .help = "to all peers, not to one after the other", .modes = IN(ALLTOALL)},
    {"failure", 0, OPTION_CHOICE, FIELD(failure), 0, 0, "KIND", .help = "what happens to it",
     .modes = IN(FAILURE), .values = failures},
    {"at", 0, OPTION_REAL, FIELD(at_us), 0, 1e9, "US", .help = "when it comes", .value = "500",
     .modes = IN(FAILURE)},
    {"spread", 0, OPTION_REAL, FIELD(spread), 0, 100, "RTTS",
     .help = "delay of the slowest path above that of the fastest, base RTTs", .modes = IN(SKEW)},
    {"flows", 0, OPTION_COUNT, FIELD(mrd_flows), 1, SIMX_NARROW_FLOWS_MAX, "N",
     .help = "of mrd, or of --transport", .value = "4", .modes = IN(FAIRNESS)},
    {"tcp", 0, OPTION_COUNT, FIELD(tcp_flows), 0, SIMX_NARROW_FLOWS_MAX, "N",
     .help = "flows of TCP with CUBIC beside those of mrd", .value = "0", .modes = IN(FAIRNESS)},
    {"tcp-first", 0, OPTION_FLAG, FIELD(tcp_first), 0, 0, NULL,
     .help = "they begin before the others", .modes = IN(FAIRNESS)},
    {"stagger", 0, OPTION_REAL, FIELD(stagger_us), 0, 1e9, "US",
     .help = "from the start of a flow to that of the next", .value = "20000",
     .modes = IN(FAIRNESS)},
    {"duration", 0, OPTION_REAL, FIELD(duration_s), 1e-4, 3600, "S",
     .help = "of virtual time, from the last start on", .value = "0.5", .modes = NARROW},
    {"rtt", 0, OPTION_REAL, FIELD(rtt_us), 1, 1e7, "US",
     .help = "base RTT, of a full packet and its ack", .value = "100", .modes = NARROW,
     .heading = "Narrow link"},
    {"speedup", 0, OPTION_REAL, FIELD(speedup), 1, 1e4, "RATIO",
     .help = "rate of the hosts' links, over --gbps", .value = "4", .modes = NARROW},
    {"buffer", 0, OPTION_REAL, FIELD(buffer_bdp), 1e-3, 1e3, "BDP",
     .help = "what the queue of the narrow link holds", .value = "1", .modes = NARROW},
    {"buffer-bytes", 0, OPTION_BYTES, FIELD(buffer_bytes), 1, 1e12, "BYTES",
     .help = "the same in bytes, in place of --buffer", .modes = NARROW},
    {"topo", 0, OPTION_TEXT, FIELD(topo), 0, 0, "FILE",
     .help = "topology of uet-htsim; it stands in for the next six", .modes = FABRIC,
     .heading = "Fabric"},
    {"hosts", 0, OPTION_COUNT, FIELD(hosts), 2, 65536, "N", .help = "a multiple of those of a leaf",
     .value = "128", .modes = FABRIC},
    {"tiers", 0, OPTION_COUNT, FIELD(tiers), 2, 3, "N",
     .help = "2: leaves and spines, 3: a fat tree", .value = "2", .modes = FABRIC},
    {"leaf-hosts", 0, OPTION_COUNT, FIELD(leaf_hosts), 1, 65536, "N", .help = "hosts below a leaf",
     .value = "16", .modes = FABRIC},
    {"oversubscription", 0, OPTION_REAL, FIELD(oversubscription), 1, 1e6, "RATIO",
     .help = "of the leaves: capacity down to capacity up", .value = "1", .modes = FABRIC},
    {"gbps", 0, OPTION_REAL, FIELD(gbps), 1e-6, 1e5, "GBPS",
     .help = "rate of every link, or of the narrow one", .value = "100"},
    {"delay", 0, OPTION_REAL, FIELD(delay_us), 0, 1e6, "US", .help = "of every link", .value = "1",
     .modes = FABRIC},
    {"queue", 0, OPTION_COUNT, FIELD(queue_packets), 1, 1e9, "PACKETS",
     .help = "full ones that the port of a switch holds", .value = "200", .modes = FABRIC},
    {"ecn", 0, OPTION_PAIR, FIELD(ecn_min), 0, 1e6, "MIN,MAX",
     .help = "backlogs in BDPs between which packets are marked; 0,0: none", .value = "0.2,0.8"},
    {"ack-priority", 0, OPTION_FLAG, FIELD(ack_priority), 0, 0, NULL,
     .help = "acks overtake data in every queue"},
    {"loss", 0, OPTION_REAL, FIELD(loss), 0, 0.999999999, "P",
     .help = "share of packets lost, data and acks", .value = "0"},
    {"faults", 0, OPTION_TEXT, FIELD(faults), 0, 0, "FILE",
     .help = "lines TIME_US LINKS ACTION VALUE"},
    {"wire-overhead", 0, OPTION_CHOICE, FIELD(wire_overhead), 0, 0, "HOW",
     .help = "how bytes of packets are counted", .value = "ethernet", .values = overheads},
    {"clock-skew", 0, OPTION_COUNT, FIELD(skew_ppm), 0, 100000, "PPM",
     .help = "how far clocks of hosts run off at most, either way", .value = "50"},
    {"transport", 0, OPTION_CHOICE, FIELD(transport), 0, 0, "NAME", .help = "mrd, or a model",
     .value = "mrd", .heading = "Transport", .values = transports},
    {"knows", 0, OPTION_CHOICE, FIELD(knows), 0, 0, "WHAT",
     .help = "what hosts of mrd know of the network", .value = "fabric", .values = knowledge},
    {"spray", 0, OPTION_CHOICE, FIELD(spray), 0, 0, "NAME", .help = "of mrd", .value = "adaptive",
     .modes = ALL & ~IN(COLLISION), .list_values = mrd_spray_names},
    {"cc", 0, OPTION_CHOICE, FIELD(cc), 0, 0, "NAME", .help = "of the models none or dcqcn",
     .list_values = cc_names},
    {"paths", 0, OPTION_COUNT, FIELD(paths), 1, 256, "N",
     .help = "entropy values for each peer, of mrd", .value = "64"},
    {"payload", 0, OPTION_COUNT, FIELD(payload_bytes), 64, 8192, "BYTES",
     .help = "of a packet, a multiple of 64", .value = "4096"},
    {"check", 0, OPTION_FLAG, FIELD(check), 0, 0, NULL,
     .help = "check payloads of mrd also where no faults can corrupt them"},
    {"key-file", 0, OPTION_TEXT, FIELD(key_file), 0, 0, "FILE",
     .help = "of keys: packets of mrd are sealed"},
    {"set", 0, OPTION_OTHER, 0, 0, 0, 0, "NAME=VALUE",
     .help = "a constant of a policy or model; --set list shows them",
     .expected = "NAME=VALUE, a number of at least 0", .take = take_set},
    {"seed", 0, OPTION_COUNT, FIELD(seed), 0, 1e15, "N", .help = "of the first run", .value = "1",
     .heading = "Runs"},
    {"seeds", 0, OPTION_COUNT, FIELD(seeds), 1, 10000, "N",
     .help = "runs of each point, each with the next seed; adds mean and ci95", .value = "1"},
    {"jobs", 0, OPTION_COUNT, FIELD(jobs), 1, 1024, "N", .help = "runs at once, each a process"},
    {"threads", 0, OPTION_COUNT, FIELD(threads), 1, MRD_SIM_PARTS_MAX, "N",
     .help = "of a run of mrd; the results do not depend on it"},
    {"limit", 0, OPTION_REAL, FIELD(limit_s), 1e-6, 86400, "S",
     .help = "of virtual time, then it gives up", .value = "10", .modes = FABRIC},
    {"json", 0, OPTION_FLAG, FIELD(json), 0, 0, NULL,
     .help = "one JSON object a line, the table to stderr", .heading = "Output"},
    {"csv", 0, OPTION_FLAG, FIELD(csv), 0, 0, NULL, .help = "the same as CSV"},
    {"plot", 0, OPTION_TEXT, FIELD(plot), 0, 0, "FILE.svg", .help = "a picture, by gnuplot"},
    {"quiet", 0, OPTION_FLAG, FIELD(quiet), 0, 0, NULL, .help = "no progress bar"},
    {"help", 'h', OPTION_STOP, 0, 0, SIMX_PARSE_HELP, 0, NULL,
     .help = "this; after the name of an experiment, its own"},
    {"version", 0, OPTION_STOP, 0, 0, SIMX_PARSE_VERSION, 0, NULL, .help = "print the version"},
    {0},
};

/* ------------------------------------------------------------------------------------- defaults */

static const struct simx_default *find_default(const struct simx_experiment *experiment,
                                               const char *option)
{
    for (const struct simx_default *d = experiment->own; d->option; d++) {
        if (strcmp(d->option, option) == 0)
            return d;
    }
    return NULL;
}

/* An option of one experiment shows that one's own default, also where all are shown. */
static const char *shown_value(const struct option_row *row, int index)
{
    const struct simx_default *own;

    if (index < 0 && __builtin_popcount(row->modes) == 1)
        index = __builtin_ctz(row->modes);
    else if (index < 0 && row->modes == NARROW)
        return NULL;
    own = index < 0 ? NULL : find_default(simx_experiments[index], row->name);
    if (own)
        return own->note ? own->note : own->value;
    if (strcmp(row->name, "cc") == 0)
        return "nscc for mrd, none for the models";
    if (strcmp(row->name, "jobs") == 0)
        return "the processors";
    return row->value;
}

const struct option_table simx_options = {
    .rows = rows,
    .modes = modes,
    .one_dash = true,
    .shown_value = shown_value,
};

void simx_options_defaults(struct simx_config *config, const struct simx_experiment *experiment)
{
    char error[OPTION_ERROR_BYTES];

    *config = (struct simx_config){0};
    if (experiment)
        snprintf(config->experiment, sizeof(config->experiment), "%s", experiment->name);
    for (const struct option_row *row = rows; row->name; row++) {
        const struct simx_default *own = experiment ? find_default(experiment, row->name) : NULL;
        const char *value = own ? own->value : row->value;

        if (value)
            (void)option_take(row, value, config, error);
        else if (row->type == OPTION_REAL)
            *(double *)(void *)((char *)config + row->offset) = SIMX_UNSET;
    }
}

/* --------------------------------------------------------------------------------- command line */

/* Those of mrd, and that of the models. */
static const char *const *cc_names(void)
{
    static const char *names[CC_NAMES_MAX];
    unsigned num = 0;

    for (const char *const *name = mrd_cc_names(); *name && num < CC_NAMES_MAX - 2; name++)
        names[num++] = *name;
    names[num] = "dcqcn";
    return names;
}

static int take_set(const struct option_value *value)
{
    struct simx_config *config = value->to;
    const char *text = value->text, *equals = strchr(text, '='), *rest = equals ? equals + 1 : text;
    struct simx_set *set = &config->set[config->num_sets];
    long double number;

    if (strcmp(text, "list") == 0)
        return SIMX_PARSE_LIST;
    if (config->num_sets == SIMX_SETS_MAX)
        return option_fail(value->error, "--set: more than %d of them", SIMX_SETS_MAX);
    if (!equals || (size_t)(equals - text) >= sizeof(set->name) || !option_scan(&rest, &number) ||
        *rest || number > 1e18)
        return -EINVAL;
    set->value = (double)number;
    snprintf(set->name, sizeof(set->name), "%.*s", (int)(equals - text), text);
    config->num_sets++;
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

/* The library would take the variable, too; here the configuration is to tell of it. */
static int check_keys(struct simx_config *c)
{
    const char *file = getenv("MRD_KEY_FILE");

    if (!c->key_file[0] && file)
        snprintf(c->key_file, sizeof(c->key_file), "%s", file);
    if (c->key_file[0] && strcmp(c->wire_overhead, "htsim") == 0)
        return simx_fail(-EINVAL, "--wire-overhead htsim: htsim knows no packets that are sealed");
    return 0;
}

static int check(struct simx_config *c)
{
    bool is_mrd = strcmp(c->transport, "mrd") == 0;

    if (!c->cc[0])
        snprintf(c->cc, sizeof(c->cc), "%s", is_mrd ? "nscc" : "none");
    if (is_mrd && !mrd_cc_find(c->cc))
        return simx_fail(-EINVAL, "--cc: mrd has no '%s'", c->cc);
    if (!is_mrd && strcmp(c->cc, "none") != 0 && strcmp(c->cc, "dcqcn") != 0)
        return simx_fail(-EINVAL, "--cc: %s has none and dcqcn, not '%s'", c->transport, c->cc);
    if (c->payload_bytes % 64 != 0)
        return simx_fail(-EINVAL, "--payload: expected a multiple of 64, found %u",
                         c->payload_bytes);
    if (c->json && c->csv)
        return simx_fail(-EINVAL, "--json and --csv both want stdout");
    if (is_mrd && check_keys(c) != 0)
        return -EINVAL;
    return apply_sets(c);
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
    char error[OPTION_ERROR_BYTES];
    struct option_line line = {.table = &simx_options, .to = config, .error = error};

    *experiment = argc > 1 ? simx_experiment_find(argv[1]) : NULL;
    simx_options_defaults(config, *experiment);
    int rc = option_parse(&line, argc - !!*experiment, argv + !!*experiment);
    if (rc > 0)
        return (enum simx_parsed)rc;
    if (rc < 0) {
        simx_error_set("%s", error);
        return SIMX_PARSE_ERROR;
    }
    if (line.num_words || !*experiment)
        return refuse_word(line.num_words ? line.words[0] : NULL);
    return check(config) == 0 ? SIMX_PARSE_RUN : SIMX_PARSE_ERROR;
}
