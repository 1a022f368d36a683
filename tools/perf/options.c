/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "tools/perf/lists.h"
#include "tools/perf/options_check.h"
#include "tools/perf/unsupported.h"

enum {
    OPT_PATHS = 256,
    OPT_SOURCE_PORTS,
    OPT_SPRAY,
    OPT_CC,
    OPT_ORDER,
    OPT_VERIFY,
    OPT_DROP,
    OPT_LOCAL,
    OPT_BIND,
    OPT_BIND_ADDRESS,
    OPT_SEED,
    OPT_INTERVAL,
    OPT_WAIT,
    OPT_TRANSPORT,
    OPT_TRANSPORTS,
    OPT_REPEAT,
    OPT_FOREVER,
    OPT_GBITS,
    OPT_JSON,
    OPT_JSON_FILE,
    OPT_ENTROPY,
    OPT_PEERS,
    OPT_UNSUPPORTED, /* plus the index */
    MAX_LONG_OPTIONS = 192,
    GID_INDEX_MAX = 65535,
};

static const char short_options[] = "s:n:D:t:r:q:p:d:i:x:m:I:Q:aFh6V";
static const struct option long_options[] = {
    {"size", required_argument, NULL, 's'},
    {"iters", required_argument, NULL, 'n'},
    {"duration", required_argument, NULL, 'D'},
    {"tx-depth", required_argument, NULL, 't'},
    {"rx-depth", required_argument, NULL, 'r'},
    {"qp", required_argument, NULL, 'q'},
    {"port", required_argument, NULL, 'p'},
    {"ib-dev", required_argument, NULL, 'd'},
    {"device", required_argument, NULL, 'd'},
    {"ib-port", required_argument, NULL, 'i'},
    {"gid-index", required_argument, NULL, 'x'},
    {"mtu", required_argument, NULL, 'm'},
    {"inline_size", required_argument, NULL, 'I'},
    {"cq-mod", required_argument, NULL, 'Q'},
    {"all", no_argument, NULL, 'a'},
    {"CPU-freq", no_argument, NULL, 'F'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {"ipv6", no_argument, NULL, '6'},
    {"paths", required_argument, NULL, OPT_PATHS},
    {"source-ports", required_argument, NULL, OPT_SOURCE_PORTS},
    {"spray", required_argument, NULL, OPT_SPRAY},
    {"cc", required_argument, NULL, OPT_CC},
    {"entropy", required_argument, NULL, OPT_ENTROPY},
    {"order", required_argument, NULL, OPT_ORDER},
    {"verify", no_argument, NULL, OPT_VERIFY},
    {"drop", required_argument, NULL, OPT_DROP},
    {"local", no_argument, NULL, OPT_LOCAL},
    {"bind", required_argument, NULL, OPT_BIND},
    {"bind-address", required_argument, NULL, OPT_BIND_ADDRESS},
    {"seed", required_argument, NULL, OPT_SEED},
    {"interval", required_argument, NULL, OPT_INTERVAL},
    {"wait", required_argument, NULL, OPT_WAIT},
    {"transport", required_argument, NULL, OPT_TRANSPORT},
    {"transports", required_argument, NULL, OPT_TRANSPORTS},
    {"repeat", required_argument, NULL, OPT_REPEAT},
    {"peers", required_argument, NULL, OPT_PEERS},
    {"forever", no_argument, NULL, OPT_FOREVER},
    {"report_gbits", no_argument, NULL, OPT_GBITS},
    {"out_json", no_argument, NULL, OPT_JSON},
    {"out_json_file", required_argument, NULL, OPT_JSON_FILE},
};

struct parse {
    struct perf_options *o;
    struct perf_given given;
    char *error;
    size_t len;
};

static int __attribute__((format(printf, 2, 3)))
wrong(const struct parse *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->error, p->len, format, args);
    va_end(args);
    return -EINVAL;
}

static int number_u32(const struct parse *p, const char *name, uint64_t low, uint64_t high,
                      uint32_t *value)
{
    uint64_t v;

    if (perf_parse_number(optarg, low, high, &v))
        return wrong(p, "%s: '%s' is not a number within %llu..%llu", name, optarg,
                     (unsigned long long)low, (unsigned long long)high);
    *value = (uint32_t)v;
    return 0;
}

static int copy_text(const struct parse *p, const char *name, char *to, size_t len)
{
    if (optarg[0] == '\0' || strlen(optarg) >= len)
        return wrong(p, "%s: '%s' is empty or too long", name, optarg);
    strcpy(to, optarg);
    return 0;
}

/* A device, or with --local the server's and the client's. */
static int take_device(struct parse *p)
{
    struct perf_options *o = p->o;
    char *comma = strchr(optarg, ',');

    p->given.two_devices = comma != NULL;
    if (comma) {
        *comma = '\0';
        int rc = copy_text(p, "-d", o->server_device, sizeof(o->server_device));
        *comma = ',';
        if (rc)
            return rc;
        optarg = comma + 1;
    }
    int rc = copy_text(p, "-d", o->device, sizeof(o->device));
    if (rc == 0 && !comma)
        strcpy(o->server_device, o->device);
    return rc;
}

static int take_perftest(struct parse *p, int opt)
{
    struct perf_options *o = p->o;
    struct perf_params *params = &o->params;
    uint32_t value = 0;
    int rc;

    switch (opt) {
    case 's':
        p->given.size = true;
        if (perf_parse_size(optarg, &params->size_bytes) ||
            params->size_bytes > MRD_MESSAGE_BYTES_MAX)
            return wrong(p, "-s: '%s' is not a size within 0..1G", optarg);
        return 0;
    case 'n':
        if (perf_parse_number(optarg, PERF_ITERATIONS_MIN, INT64_MAX, &params->iterations))
            return wrong(p, "-n: '%s' is not a number of iterations, at least %d", optarg,
                         PERF_ITERATIONS_MIN);
        return 0;
    case 'D':
        return number_u32(p, "-D", 1, PERF_DURATION_S_MAX, &params->duration_s);
    case 't':
        return number_u32(p, "-t", 1, PERF_DEPTH_MAX, &params->tx_depth);
    case 'r':
        return number_u32(p, "-r", 1, PERF_DEPTH_MAX, &params->rx_depth);
    case 'q':
        return number_u32(p, "-q", 1, PERF_QPS_MAX, &params->qps);
    case 'p':
        rc = number_u32(p, "-p", 1, UINT16_MAX, &value);
        if (rc == 0)
            o->port = (uint16_t)value;
        return rc;
    case 'd':
        return take_device(p);
    case 'i':
        rc = number_u32(p, "-i", 1, UINT8_MAX, &value);
        if (rc == 0)
            o->ib_port = (uint8_t)value;
        return rc;
    case 'x':
        rc = number_u32(p, "-x", 0, GID_INDEX_MAX, &value);
        if (rc == 0)
            o->gid_index = (int)value;
        return rc;
    case 'm':
        return number_u32(p, "-m", 64, PERF_MTU_MAX, &params->mtu);
    case 'I':
        rc = number_u32(p, "-I", 0, MRD_INLINE_BYTES_MAX, &value);
        if (rc == 0)
            params->inline_bytes = (int32_t)value;
        return rc;
    case 'Q':
        return number_u32(p, "-Q", 1, PERF_DEPTH_MAX, &params->cq_mod);
    case 'a':
        o->all_sizes = true;
        return 0;
    case 'F':
        o->quiet_cpufreq = true;
        return 0;
    default:
        o->ipv6 = true;
        return 0;
    }
}

static int take_order(struct parse *p)
{
    if (strcmp(optarg, "none") != 0 && strcmp(optarg, "msg") != 0)
        return wrong(p, "--order: '%s' is neither none nor msg", optarg);
    p->o->params.ordered = strcmp(optarg, "msg") == 0;
    return 0;
}

static int take_where(struct parse *p, int opt)
{
    struct perf_options *o = p->o;

    switch (opt) {
    case OPT_SOURCE_PORTS:
        if (perf_parse_ports(optarg, o->source_ports, &o->num_source_ports))
            return wrong(
                p, "--source-ports: '%s' is not FIRST-LAST or a list of up to %d distinct ports",
                optarg, PERF_PORTS_MAX);
        return 0;
    case OPT_BIND:
        if (perf_parse_cpus(optarg, o->cpus, &o->num_cpus))
            return wrong(p, "--bind: '%s' is not CPU or CPU,CPU", optarg);
        return 0;
    case OPT_BIND_ADDRESS:
        return copy_text(p, "--bind-address", o->bind_address, sizeof(o->bind_address));
    case OPT_LOCAL:
        o->local = true;
        return 0;
    default:
        o->forever = true;
        return 0;
    }
}

static int take_output(struct parse *p, int opt)
{
    struct perf_options *o = p->o;

    if (opt == OPT_GBITS)
        o->gbits = true;
    if (opt == OPT_JSON)
        o->out_json = true;
    if (opt == OPT_JSON_FILE)
        return copy_text(p, "--out_json_file", o->out_json_file, sizeof(o->out_json_file));
    return 0;
}

static int take_ours(struct parse *p, int opt)
{
    struct perf_options *o = p->o;
    struct perf_params *params = &o->params;
    uint32_t value = 0;
    int rc;

    switch (opt) {
    case OPT_PATHS:
        return number_u32(p, "--paths", 1, PERF_PORTS_MAX, &params->paths);
    case OPT_SPRAY:
        return copy_text(p, "--spray", params->spray, sizeof(params->spray));
    case OPT_CC:
        return copy_text(p, "--cc", params->cc, sizeof(params->cc));
    case OPT_PEERS:
        p->given.peers = true;
        return number_u32(p, "--peers", PERF_PEERS_MIN, PERF_PEERS_MAX, &o->peers);
    case OPT_ENTROPY:
        return copy_text(p, "--entropy", params->entropy, sizeof(params->entropy));
    case OPT_ORDER:
        return take_order(p);
    case OPT_VERIFY:
        params->verify = true;
        return 0;
    case OPT_DROP:
        if (perf_parse_share(optarg, &params->drop_ppm))
            return wrong(p, "--drop: '%s' is not a share within 0..1, such as 0.01", optarg);
        return 0;
    case OPT_SEED:
        if (perf_parse_number(optarg, 0, UINT64_MAX, &params->seed))
            return wrong(p, "--seed: '%s' is not a number", optarg);
        return 0;
    case OPT_INTERVAL:
        return number_u32(p, "--interval", 1, PERF_INTERVAL_MS_MAX, &params->interval_ms);
    case OPT_WAIT:
        return copy_text(p, "--wait", params->wait, sizeof(params->wait));
    case OPT_TRANSPORT:
        p->given.transport = true;
        return copy_text(p, "--transport", params->transport, sizeof(params->transport));
    case OPT_TRANSPORTS:
        if (perf_parse_names(optarg, o->transports, &o->num_transports))
            return wrong(p, "--transports: '%s' is not a list of up to %d names", optarg,
                         PERF_TRANSPORTS_MAX);
        return 0;
    case OPT_REPEAT:
        p->given.repeat = true;
        rc = number_u32(p, "--repeat", 1, PERF_REPEAT_MAX, &value);
        if (rc == 0)
            o->repeat = value;
        return rc;
    case OPT_GBITS:
    case OPT_JSON:
    case OPT_JSON_FILE:
        return take_output(p, opt);
    default:
        return take_where(p, opt);
    }
}

/* getopt's view of all that perftest and we know. `letters` and `longs` are filled. */
static void build_getopt(char *letters, struct option *longs)
{
    size_t n = sizeof(long_options) / sizeof(long_options[0]);

    memcpy(longs, long_options, sizeof(long_options));
    letters[0] = ':'; /* tell a missing argument from an unknown option */
    strcpy(letters + 1, short_options);
    char *end = letters + strlen(letters);
    for (unsigned i = 0; perf_unsupported[i].name && n < MAX_LONG_OPTIONS - 1; i++) {
        const struct perf_unsupported *u = &perf_unsupported[i];
        longs[n++] = (struct option){u->name, u->has_arg, NULL, OPT_UNSUPPORTED + (int)i};
        if (u->letter) {
            *end++ = u->letter;
            if (u->has_arg == required_argument)
                *end++ = ':';
        }
    }
    *end = '\0';
    longs[n] = (struct option){0};
}

static const struct perf_unsupported *find_unsupported(int opt)
{
    if (opt >= OPT_UNSUPPORTED)
        return &perf_unsupported[opt - OPT_UNSUPPORTED];
    for (unsigned i = 0; opt > 0 && perf_unsupported[i].name; i++) {
        if (perf_unsupported[i].letter == opt)
            return &perf_unsupported[i];
    }
    return NULL;
}

static int say_unsupported(const struct parse *p, const struct perf_unsupported *u)
{
    if (u->letter)
        return wrong(p, "option -%c (--%s) of perftest is not supported: %s", u->letter, u->name,
                     u->instead);
    return wrong(p, "option --%s of perftest is not supported: %s", u->name, u->instead);
}

/* A bad or half option: `word` is the argument that getopt stumbled over. */
static int say_bad_option(const struct parse *p, int opt, const char *word)
{
    const struct perf_unsupported *u = find_unsupported(optopt);

    if (u)
        return say_unsupported(p, u);
    if (opt == ':')
        return wrong(p, "option %s needs a value", word);
    if (strncmp(word, "--", 2) != 0)
        return wrong(p, "option -%c is not known", optopt);
    if (optopt)
        return wrong(p, "option %s takes no value", word);
    return wrong(p, "option %s is not known, or short for several", word);
}

static int take_transports(struct parse *p, int count, char **words)
{
    struct perf_options *o = p->o;

    o->state = true;
    if (count > PERF_TRANSPORTS_MAX)
        return wrong(p, "state: at most %d transports", PERF_TRANSPORTS_MAX);
    for (int i = 0; i < count; i++) {
        if (words[i][0] == '\0' || strlen(words[i]) >= PERF_NAME_BYTES)
            return wrong(p, "state: '%s' is not the name of a transport", words[i]);
        strcpy(o->transports[o->num_transports++], words[i]);
    }
    return 0;
}

static int take_words(struct parse *p, int argc, char **argv)
{
    struct perf_options *o = p->o;
    int i = optind;

    if (i < argc && strcmp(argv[i], "state") == 0)
        return take_transports(p, argc - i - 1, argv + i + 1);
    if (i < argc && strcmp(argv[i], "compare") == 0) {
        o->compare = true;
        i++;
    }
    if (i == argc)
        return wrong(p, "which test? One of send_bw, send_lat, write_bw, write_lat");
    if (perf_test_find(argv[i], &o->params.test))
        return wrong(p, "test '%s' is not known; there is send_bw, send_lat, write_bw, write_lat",
                     argv[i]);
    i++;
    if (i < argc) {
        if (argv[i][0] == '\0' || strlen(argv[i]) >= sizeof(o->host))
            return wrong(p, "the host's name is empty or too long");
        strcpy(o->host, argv[i++]);
    }
    if (i < argc)
        return wrong(p, "'%s' is one word too many: only a test and a host are expected", argv[i]);
    return 0;
}

int perf_options_parse(struct perf_options *o, int argc, char **argv, char *error, size_t len)
{
    struct parse p = {.o = o, .error = error, .len = len};
    char letters[192];
    struct option longs[MAX_LONG_OPTIONS];
    int opt;

    *o = (struct perf_options){
        .port = MRD_DEFAULT_PORT,
        .repeat = 5,
        .cpus = {-1, -1},
        .gid_index = -1,
        .peers = PERF_PEERS_DEFAULT,
    };
    perf_params_init(&o->params);
    build_getopt(letters, longs);
    optind = 0; /* restart getopt, GNU style */
    opterr = 0;
    for (;;) {
        int rc;
        opt = getopt_long(argc, argv, letters, longs, NULL);
        if (opt == -1)
            break;
        if (opt == 'h')
            return PERF_PARSE_HELP;
        if (opt == 'V')
            return PERF_PARSE_VERSION;
        const struct perf_unsupported *u = find_unsupported(opt);
        if (opt == '?' || opt == ':')
            rc = say_bad_option(&p, opt, argv[optind - 1]);
        else if (u)
            rc = say_unsupported(&p, u);
        else if (opt < OPT_PATHS)
            rc = take_perftest(&p, opt);
        else
            rc = take_ours(&p, opt);
        if (rc)
            return rc;
    }
    if (take_words(&p, argc, argv))
        return -EINVAL;
    perf_options_default(o, &p.given);
    if (perf_options_check(o, &p.given, error, len))
        return -EINVAL;
    if (o->num_source_ports)
        o->params.paths = o->num_source_ports;
    return PERF_PARSE_RUN;
}
