/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/options.h"
#include "tools/perf/scale.h"

enum {
    OPT_FIRST = 256, /* plus the index of the row */
    MAX_OPTIONS = 192,
    GID_INDEX_MAX = 65535,
};

_Static_assert(PERF_PORTS_MAX == 256 && PERF_TRANSPORTS_MAX == 8, "the kinds below say so");

struct row {
    const char *name;
    char letter; /* 0: none */
    const struct kind *kind;
    size_t offset, bytes; /* of the member of perf_options */
    uint64_t low, high;   /* of a number */
    size_t given;         /* of the member of perf_given, and 1; 0: none */
};

/* Kinds of options. */
struct kind {
    int (*take)(struct perf_cli *c, const struct row *row); /* 0, or -EINVAL: it is not good */
    const char *wrong; /* what is said of an argument then; NULL: the range of the row */
};

#define IN(member)    offsetof(struct perf_options, member), sizeof(((struct perf_options *)0)->member)
#define GIVEN(member) (offsetof(struct perf_given, member) + 1)

static void *member_of(const struct perf_cli *c, const struct row *row)
{
    return (char *)c->o + row->offset;
}

static int take_flag(struct perf_cli *c, const struct row *row)
{
    *(bool *)member_of(c, row) = true;
    return 0;
}

/* Decimal or 0x...: strtoull() alone takes "-1", "" and " 7". */
static int scan_number(const char **text, uint64_t *value)
{
    char *end;

    if (!isdigit((unsigned char)**text))
        return -EINVAL;
    errno = 0;
    unsigned long long v = strtoull(*text, &end, strncmp(*text, "0x", 2) == 0 ? 16 : 10);
    if (errno)
        return -EINVAL;
    *text = end;
    *value = v;
    return 0;
}

static int take_number(struct perf_cli *c, const struct row *row)
{
    void *to = member_of(c, row);
    const char *text = optarg;
    uint64_t v;

    if (scan_number(&text, &v) || *text != '\0' || v < row->low || v > row->high)
        return -EINVAL;
    switch (row->bytes) {
    case sizeof(uint8_t):
        *(uint8_t *)to = (uint8_t)v;
        return 0;
    case sizeof(uint16_t):
        *(uint16_t *)to = (uint16_t)v;
        return 0;
    case sizeof(uint32_t):
        *(uint32_t *)to = (uint32_t)v;
        return 0;
    default:
        *(uint64_t *)to = v;
        return 0;
    }
}

/* A number with K, M or G (powers of 1024) behind it or nothing. */
static int take_size(struct perf_cli *c, const struct row *row)
{
    static const char suffixes[] = "kmg";
    const char *text = optarg;
    unsigned shift = 0;
    uint64_t v;

    if (scan_number(&text, &v))
        return -EINVAL;
    if (*text != '\0') {
        const char *suffix = strchr(suffixes, tolower((unsigned char)*text));
        if (!suffix || text[1] != '\0')
            return -EINVAL;
        shift = 10 * (1 + (unsigned)(suffix - suffixes));
    }
    if (v > row->high >> shift)
        return -EINVAL;
    *(uint64_t *)member_of(c, row) = v << shift;
    return 0;
}

/* "0.01" or "1%" -> 10000 parts per million; below 1. */
static int take_share(struct perf_cli *c, const struct row *row)
{
    char *end;

    if (!isdigit((unsigned char)*optarg) && *optarg != '.')
        return -EINVAL;
    double share = strtod(optarg, &end);
    if (strcmp(end, "%") == 0)
        share /= 100;
    else if (*end != '\0')
        return -EINVAL;
    if (!(share >= 0 && share < 1) || lround(share * 1e6) > (long)row->high)
        return -EINVAL;
    *(uint32_t *)member_of(c, row) = (uint32_t)lround(share * 1e6);
    return 0;
}

static bool is_in(const uint16_t *list, unsigned count, uint64_t value)
{
    for (unsigned i = 0; i < count; i++) {
        if (list[i] == value)
            return true;
    }
    return false;
}

/* "3" or "0,1", and where ranges are allowed "5000,5004,5100-5103": distinct numbers. */
static int take_list(struct perf_cli *c, const struct row *row, bool ranges, unsigned *count)
{
    uint16_t *list = member_of(c, row);
    const char *text = optarg;
    uint64_t first, last;

    for (*count = 0;; text++) {
        if (scan_number(&text, &first))
            return -EINVAL;
        last = first;
        if (ranges && *text == '-') {
            text++;
            if (scan_number(&text, &last))
                return -EINVAL;
        }
        if (first < row->low || last > row->high || first > last)
            return -EINVAL;
        for (; first <= last; first++) {
            if (*count == row->bytes / sizeof(list[0]) || (ranges && is_in(list, *count, first)))
                return -EINVAL;
            list[(*count)++] = (uint16_t)first;
        }
        if (*text != ',')
            return *text == '\0' ? 0 : -EINVAL;
    }
}

static int take_ports(struct perf_cli *c, const struct row *row)
{
    return take_list(c, row, true, &c->o->num_source_ports);
}

static int take_cpus(struct perf_cli *c, const struct row *row)
{
    return take_list(c, row, false, &c->o->num_cpus);
}

static int take_text(struct perf_cli *c, const struct row *row)
{
    if (optarg[0] == '\0' || strlen(optarg) >= row->bytes)
        return -EINVAL;
    strcpy(member_of(c, row), optarg);
    return 0;
}

/* False: there is no room for it. */
static bool add_transport(struct perf_options *o, const char *name, size_t len)
{
    if (o->num_transports == PERF_TRANSPORTS_MAX || len == 0 || len >= PERF_NAME_BYTES)
        return false;
    snprintf(o->transports[o->num_transports++], PERF_NAME_BYTES, "%.*s", (int)len, name);
    return true;
}

/* "a,b,c" */
static int take_names(struct perf_cli *c, const struct row *row)
{
    size_t len = 0;

    (void)row;
    c->o->num_transports = 0;
    for (const char *name = optarg;; name += len + 1) {
        len = strcspn(name, ",");
        if (!add_transport(c->o, name, len))
            return -EINVAL;
        if (name[len] == '\0')
            return 0;
    }
}

/* A device, or with --local the server's and the client's. */
static int take_device(struct perf_cli *c, const struct row *row)
{
    struct perf_options *o = c->o;
    size_t first = strcspn(optarg, ",");

    c->given.two_devices = optarg[first] == ',';
    if (first == 0 || first >= sizeof(o->server_device))
        return -EINVAL;
    snprintf(o->server_device, sizeof(o->server_device), "%.*s", (int)first, optarg);
    if (c->given.two_devices)
        optarg += first + 1;
    return take_text(c, row);
}

static int take_order(struct perf_cli *c, const struct row *row)
{
    bool ordered = strcmp(optarg, "msg") == 0;

    *(bool *)member_of(c, row) = ordered;
    return ordered || strcmp(optarg, "none") == 0 ? 0 : -EINVAL;
}

static const struct kind flag = {take_flag, NULL};
static const struct kind number = {take_number, NULL};
static const struct kind size = {take_size, "not a size within 0..1G"};
static const struct kind text = {take_text, "empty or too long"};
static const struct kind device = {take_device, "empty or too long"};
static const struct kind order = {take_order, "neither none nor msg"};
static const struct kind share = {take_share, "not a share within 0..1, such as 0.01"};
static const struct kind ports = {take_ports,
                                  "not FIRST-LAST or a list of up to 256 distinct ports"};
static const struct kind cpus = {take_cpus, "not CPU or CPU,CPU"};
static const struct kind names = {take_names, "not a list of up to 8 names"};

static const struct row rows[] = {
    {"size", 's', &size, IN(params.size_bytes), 0, MRD_MESSAGE_BYTES_MAX, GIVEN(size)},
    {"iters", 'n', &number, IN(params.iterations), PERF_ITERATIONS_MIN, INT64_MAX, 0},
    {"duration", 'D', &number, IN(params.duration_s), 1, PERF_DURATION_S_MAX, 0},
    {"run_infinitely", 0, &flag, IN(params.run_infinitely), 0, 0, 0},
    {"tx-depth", 't', &number, IN(params.tx_depth), 1, PERF_DEPTH_MAX, 0},
    {"rx-depth", 'r', &number, IN(params.rx_depth), 1, PERF_DEPTH_MAX, 0},
    {"qp", 'q', &number, IN(params.qps), 1, PERF_QPS_MAX, 0},
    {"port", 'p', &number, IN(port), 1, UINT16_MAX, 0},
    {"ib-dev", 'd', &device, IN(device), 0, 0, 0},
    {"device", 'd', &device, IN(device), 0, 0, 0},
    {"ib-port", 'i', &number, IN(ib_port), 1, UINT8_MAX, 0},
    {"gid-index", 'x', &number, IN(gid_index), 0, GID_INDEX_MAX, 0},
    {"mtu", 'm', &number, IN(params.mtu), 64, PERF_MTU_MAX, 0},
    {"inline_size", 'I', &number, IN(params.inline_bytes), 0, MRD_INLINE_BYTES_MAX, 0},
    {"cq-mod", 'Q', &number, IN(params.cq_mod), 1, PERF_DEPTH_MAX, 0},
    {"post_list", 'l', &number, IN(params.post_list), 1, PERF_POST_LIST_MAX, 0},
    {"outs", 'o', &number, IN(params.outs), 1, PERF_DEPTH_MAX, 0},
    {"report-histogram", 'H', &flag, IN(params.histogram), 0, 0, 0},
    {"report-unsorted", 'U', &flag, IN(params.unsorted), 0, 0, 0},
    {"bidirectional", 'b', &flag, IN(params.bidirectional), 0, 0, 0},
    {"events", 'e', &flag, IN(params.events), 0, 0, 0},
    {"all", 'a', &flag, IN(all_sizes), 0, 0, 0},
    {"CPU-freq", 'F', &flag, IN(quiet_cpufreq), 0, 0, 0},
    {"help", 'h', &flag, IN(help), 0, 0, 0},
    {"version", 'V', &flag, IN(version), 0, 0, 0},
    {"ipv6", '6', &flag, IN(ipv6), 0, 0, 0},
    {"paths", 0, &number, IN(params.paths), 1, PERF_PORTS_MAX, 0},
    {"source-ports", 0, &ports, IN(source_ports), 1, UINT16_MAX, 0},
    {"spray", 0, &text, IN(params.spray), 0, 0, 0},
    {"cc", 0, &text, IN(params.cc), 0, 0, 0},
    {"entropy", 0, &text, IN(params.entropy), 0, 0, 0},
    {"order", 0, &order, IN(params.ordered), 0, 0, 0},
    {"write_with_imm", 0, &flag, IN(params.write_with_imm), 0, 0, 0},
    {"verify", 0, &flag, IN(params.verify), 0, 0, 0},
    {"drop", 0, &share, IN(params.drop_ppm), 0, 999999, 0},
    {"local", 0, &flag, IN(local), 0, 0, 0},
    {"bind", 0, &cpus, IN(cpus), 0, CPU_SETSIZE - 1, 0},
    {"bind-address", 0, &text, IN(bind_address), 0, 0, 0},
    {"seed", 0, &number, IN(params.seed), 0, UINT64_MAX, 0},
    {"interval", 0, &number, IN(params.interval_ms), 1, PERF_INTERVAL_MS_MAX, 0},
    {"threads", 0, &number, IN(params.threads), 1, PERF_THREADS_MAX, 0},
    {"wait", 0, &text, IN(params.wait), 0, 0, 0},
    {"transport", 0, &text, IN(params.transport), 0, 0, GIVEN(transport)},
    {"transports", 0, &names, IN(transports), 0, 0, 0},
    {"repeat", 0, &number, IN(repeat), 1, PERF_REPEAT_MAX, GIVEN(repeat)},
    {"peers", 0, &number, IN(peers), PERF_PEERS_MIN, PERF_PEERS_MAX, GIVEN(peers)},
    {"contexts", 0, &flag, IN(scale_contexts), 0, 0, 0},
    {"forever", 0, &flag, IN(forever), 0, 0, 0},
    {"report_gbits", 0, &flag, IN(gbits), 0, 0, 0},
    {"out_json", 0, &flag, IN(out_json), 0, 0, 0},
    {"out_json_file", 0, &text, IN(out_json_file), 0, 0, 0},
};
enum { NUM_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* All that perftest and we know: our rows, then those that are not supported; and getopt's view. */
struct options_view {
    struct perf_unsupported all[MAX_OPTIONS];
    struct option longs[MAX_OPTIONS];
    char letters[2 * MAX_OPTIONS];
};

static void build_view(struct options_view *v)
{
    const struct perf_unsupported *u = perf_unsupported();
    char *letter = v->letters;
    int count = 0;

    *v = (struct options_view){0};
    for (; count < NUM_ROWS; count++)
        v->all[count] = (struct perf_unsupported){.name = rows[count].name,
                                                  .letter = rows[count].letter,
                                                  .has_arg = rows[count].kind != &flag};
    for (; u->name && count < MAX_OPTIONS - 1; u++)
        v->all[count++] = *u;
    *letter++ = ':'; /* tells a missing argument */
    for (int i = 0; i < count; i++) {
        v->longs[i] = (struct option){v->all[i].name, v->all[i].has_arg, NULL, OPT_FIRST + i};
        if (v->all[i].letter)
            *letter++ = v->all[i].letter;
        if (v->all[i].letter && v->all[i].has_arg)
            *letter++ = ':';
    }
}

/* Returns the index of the option that getopt calls `opt`, or -1. */
static int find_option(const struct options_view *v, int opt)
{
    if (opt >= OPT_FIRST)
        return opt - OPT_FIRST;
    for (int i = 0; opt > 0 && v->all[i].name; i++) {
        if (v->all[i].letter == opt)
            return i;
    }
    return -1;
}

static int say_unsupported(const struct perf_cli *c, const struct perf_unsupported *u)
{
    const char letter[] = {'-', u->letter, ' ', '(', '\0'};

    return perf_fail(c->error, -EINVAL, "option %s--%s%s of perftest is not supported: %s",
                     u->letter ? letter : "", u->name, u->letter ? ")" : "", u->instead);
}

/* A bad or half option: `word` is the argument that getopt stumbled over. */
static int say_bad_option(const struct perf_cli *c, int opt, const char *word)
{
    if (opt == ':')
        return perf_fail(c->error, -EINVAL, "option %s needs a value", word);
    if (strncmp(word, "--", 2) != 0)
        return perf_fail(c->error, -EINVAL, "option -%c is not known", optopt);
    if (optopt)
        return perf_fail(c->error, -EINVAL, "option %s takes no value", word);
    return perf_fail(c->error, -EINVAL, "option %s is not known, or short for several", word);
}

static int take_transports(struct perf_cli *c, int count, char **words)
{
    c->o->state = true;
    if (count > PERF_TRANSPORTS_MAX)
        return perf_fail(c->error, -EINVAL, "state: at most %d transports", PERF_TRANSPORTS_MAX);
    for (int i = 0; i < count; i++) {
        if (!add_transport(c->o, words[i], strlen(words[i])))
            return perf_fail(c->error, -EINVAL, "state: '%s' is not the name of a transport",
                             words[i]);
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

static int take_test(struct perf_cli *c, int argc, char **argv, int *i)
{
    if (is_named_after(argv[0], &c->o->params.test))
        return 0;
    if (*i == argc)
        return perf_fail(c->error, -EINVAL, "which test? One of %s", perf_test_names());
    if (perf_test_find(argv[*i], &c->o->params.test))
        return perf_fail(c->error, -EINVAL, "test '%s' is not known; there is %s", argv[*i],
                         perf_test_names());
    ++*i;
    return 0;
}

static int take_words(struct perf_cli *c, int argc, char **argv)
{
    struct perf_options *o = c->o;
    int i = optind;

    if (i < argc && strcmp(argv[i], "state") == 0)
        return take_transports(c, argc - i - 1, argv + i + 1);
    if (i < argc && strcmp(argv[i], "scale") == 0)
        return perf_scale_take(c, argc - i - 1, argv + i + 1);
    if (i < argc && strcmp(argv[i], "compare") == 0) {
        o->compare = true;
        i++;
    }
    if (!o->compare && i < argc && strcmp(argv[i], "doctor") == 0) {
        o->doctor = true;
        i++;
    } else if (take_test(c, argc, argv, &i)) {
        return -EINVAL;
    }
    if (i < argc) {
        if (argv[i][0] == '\0' || strlen(argv[i]) >= sizeof(o->host))
            return perf_fail(c->error, -EINVAL, "the host's name is empty or too long");
        strcpy(o->host, argv[i++]);
    }
    if (i < argc)
        return perf_fail(c->error, -EINVAL,
                         "'%s' is one word too many: only a test and a host are expected", argv[i]);
    return 0;
}

static int take_argument(struct perf_cli *c, const struct row *row)
{
    char range[64], shown[32];

    if (row->kind->take(c, row) == 0)
        return 0;
    if (row->letter)
        snprintf(shown, sizeof(shown), "-%c", row->letter);
    else
        snprintf(shown, sizeof(shown), "--%s", row->name);
    snprintf(range, sizeof(range), "not a number within %llu..%llu", (unsigned long long)row->low,
             (unsigned long long)row->high);
    return perf_fail(c->error, -EINVAL, "%s: '%s' is %s", shown, optarg,
                     row->kind->wrong ? row->kind->wrong : range);
}

static int take_option(struct perf_cli *c, const struct options_view *v, int opt, const char *word)
{
    bool bad = opt == '?' || opt == ':';
    int i = find_option(v, bad ? optopt : opt);

    if (i >= NUM_ROWS)
        return say_unsupported(c, &v->all[i]);
    if (bad)
        return say_bad_option(c, opt, word);
    if (rows[i].given)
        ((bool *)&c->given)[rows[i].given - 1] = true;
    return take_argument(c, &rows[i]);
}

int perf_options_parse(struct perf_options *o, int argc, char **argv, char *error)
{
    struct perf_cli c = {.o = o, .error = error};
    struct options_view view;
    int opt;

    *o = (struct perf_options){
        .port = MRD_DEFAULT_PORT,
        .repeat = 5,
        .gid_index = -1,
        .peers = PERF_PEERS_DEFAULT,
    };
    perf_params_init(&o->params);
    build_view(&view);
    optind = 0; /* restart getopt, GNU style */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, view.letters, view.longs, NULL)) != -1) {
        if (take_option(&c, &view, opt, argv[optind - 1]))
            return -EINVAL;
        if (o->help || o->version)
            return o->help ? PERF_PARSE_HELP : PERF_PARSE_VERSION;
    }
    if (take_words(&c, argc, argv))
        return -EINVAL;
    perf_options_default(&c);
    if (perf_options_check(&c))
        return -EINVAL;
    if (o->num_source_ports)
        o->params.paths = o->num_source_ports;
    return PERF_PARSE_RUN;
}
