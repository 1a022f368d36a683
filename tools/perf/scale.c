/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/scale.h"

#include <math.h>

#include "tools/perf/message.h"
#include "tools/perf/report.h"
#include "tools/perf/transport.h"

/* All that is measured. */
struct series {
    const struct perf_options *options;
    uint32_t even_depth;           /* the least number of peers, or less */
    double first_rate, first_even; /* of the first number of peers; NAN: none yet */
    bool no_rc;                    /* there are no RC queue pairs, which was said */
    bool hopeless;                 /* nothing can be measured here */
    bool disturbed;                /* others had the processors, too */
};

static const struct perf_column columns[] = {
    {"#peers", 9, 0, "peers", 1},
    {"idle[B]", 10, 0, "idle.peer_bytes", 1},
    {"1 path[B]", 10, 0, "one_path.peer_bytes", 1},
    {"all[B]", 10, 0, "all_paths.peer_bytes", 1},
    {"receiver[B]", 11, 0, "all_paths.receiver_peer_bytes", 1},
    {"rc[B]", 8, 0, "rc_peer_bytes", 1},
    {"1 path[Mpps]", 12, 3, "one_path.msg_rate_mps", 1},
    {"all[Mpps]", 9, 3, "all_paths.msg_rate_mps", 1},
    {"packets", 7, 2, "all_paths.packets_per_message", 1},
    {"ratio", 5, 2, "rate_ratio_to_first", 1},
    {"even[Mpps]", 10, 3, "all_paths.even.msg_rate_mps", 1},
    {"CPU[us]", 7, 2, "all_paths.even.cpu_us_per_message", 1},
    {"ratio", 5, 2, "even_ratio_to_first", 1},
    {0},
};

static void add_memory(struct json_object *object, const struct scale_run *run)
{
    json_add_rounded(object, "peer_bytes", round((double)run->bytes / run->peers));
    json_add_rounded(object, "handle_bytes", round((double)run->handle_bytes / run->peers));
    json_add_u64(object, "context_bytes", (uint64_t)run->bytes);
    json_add_u64(object, "empty_context_bytes", (uint64_t)run->empty_bytes);
}

static void add_rate(struct json_object *object, const struct scale_rate *rate)
{
    double messages = (double)rate->messages;

    json_add_u64(object, "messages", rate->messages);
    json_add_rounded(object, "seconds", rate->seconds);
    json_add_rounded(object, "msg_rate_mps", 1e-6 * messages / rate->seconds);
    json_add_rounded(object, "cpu_us_per_message", 1e6 * rate->cpu_s / messages);
    json_add_rounded(object, "server_cpu_us_per_message", 1e6 * rate->server_cpu_s / messages);
    json_add_rounded(object, "packets_per_message", (double)rate->packets / messages);
    json_add_u64(object, "packets_retransmitted", rate->again);
}

static struct json_object *active_to_json(const struct scale_run *run)
{
    struct json_object *object = json_object_new_object(), *even = json_object_new_object();

    json_add_u64(object, "paths", run->paths_used);
    if (run->cipher[0])
        json_add_string(object, "cipher", run->cipher);
    add_memory(object, run);
    json_add_rounded(object, "receiver_peer_bytes", round((double)run->server_bytes / run->peers));
    add_rate(object, &run->rate);
    json_add_u64(even, "tx_depth", run->even_depth);
    add_rate(even, &run->even);
    json_object_object_add(object, "even", even);
    json_add_bool(object, "disturbed", run->load.known && run->load.busy);
    return object;
}

/* Memory of one more idle peer; NAN if all were made at once. */
static double next_peer_bytes(const struct scale_run *run)
{
    double handle = (double)run->handle_bytes / run->peers;

    if (run->peers == run->at_once)
        return NAN;
    return round(handle + (double)(run->bytes - run->first_bytes) / (run->peers - run->at_once));
}

static struct json_object *idle_to_json(const struct scale_run *run)
{
    struct json_object *object = json_object_new_object();

    add_memory(object, run);
    json_add_rounded(object, "next_peer_bytes", next_peer_bytes(run));
    json_add_u64(object, "at_once", run->at_once);
    return object;
}

/* What the peers do. An idle one has no paths, and room for fewer is easier to find. */
enum kind { IDLE, ONE_PATH, ALL_PATHS, KINDS };
static const char *const keys[KINDS] = {"idle", "one_path", "all_paths"};

/* Add a measurement to the row, or null if it fails, which is said. */
static enum perf_exit measure_kind(struct series *series, uint32_t peers, enum kind kind,
                                   struct json_object *row)
{
    static struct scale_run run;

    run = (struct scale_run){
        .options = series->options,
        .peers = peers,
        .paths = kind == ALL_PATHS ? series->options->params.paths : 1,
        .idle = kind == IDLE,
        .even_depth = series->even_depth,
    };
    if (scale_measure(&run)) {
        series->hopeless = run.no_network;
        json_object_object_add(row, keys[kind], NULL);
        return perf_complain(PERF_EXIT_FAILED, "scale: %u peers, %s: %s", peers, keys[kind],
                             run.error);
    }
    series->disturbed |= run.load.busy;
    json_object_object_add(row, keys[kind], run.idle ? idle_to_json(&run) : active_to_json(&run));
    return PERF_EXIT_OK;
}

/* As many RC queue pairs, if there is a device that makes them; else why not is said once. */
static void add_rc(struct series *series, uint32_t peers, struct json_object *row)
{
    struct perf_state_figures figures = {NAN, NAN, NAN};
    char error[PERF_ERROR_BYTES];

    if (!series->no_rc && peers >= PERF_PEERS_MIN && peers <= PERF_SCALE_ACTIVE_MAX &&
        perf_state_measure(series->options, "rc", peers, &figures, error)) {
        perf_complain(PERF_EXIT_OK, "scale: no memory of RC queue pairs beside mrd's: %s", error);
        series->no_rc = true;
    }
    json_add_rounded(row, "rc_peer_bytes", round(figures.user + figures.kernel));
}

/* A rate of the row, divided by that of the first row that has it. */
static void add_ratio(struct json_object *row, const char *key, const char *path, double *first)
{
    double rate = json_get_number(row, path);

    if (isnan(*first))
        *first = rate;
    json_add_rounded(row, key, rate / *first);
}

/*
 * Several messages to a peer share packets, system calls and acks: a few peers are faster with the
 * same number outstanding. One to a peer at most, whatever the number of peers, is equal work.
 */
static uint32_t find_even_depth(const struct perf_options *o)
{
    uint32_t depth = scale_depth(o);

    for (unsigned i = 0; i < o->num_scale_peers; i++) {
        if (o->scale_peers[i] < depth)
            depth = o->scale_peers[i];
    }
    return depth;
}

static enum perf_exit fill_row(struct series *series, uint32_t peers, struct json_object *row)
{
    enum kind kinds = peers <= PERF_SCALE_ACTIVE_MAX ? KINDS : ONE_PATH;
    enum perf_exit code = PERF_EXIT_OK;

    json_add_string(row, "transport", "mrd-udp");
    json_add_u64(row, "peers", peers);
    json_add_u64(row, "size_bytes", series->options->params.size_bytes);
    json_add_u64(row, "tx_depth", scale_depth(series->options));
    for (enum kind kind = IDLE; kind < KINDS && !series->hopeless; kind++) {
        if (kind >= kinds)
            json_object_object_add(row, keys[kind], NULL);
        else if (measure_kind(series, peers, kind, row))
            code = PERF_EXIT_FAILED;
    }
    add_ratio(row, "rate_ratio_to_first", "all_paths.msg_rate_mps", &series->first_rate);
    add_ratio(row, "even_ratio_to_first", "all_paths.even.msg_rate_mps", &series->first_even);
    if (!series->hopeless)
        add_rc(series, peers, row);
    return code;
}

int perf_scale_run(const struct perf_options *o)
{
    FILE *table = o->out_json ? stderr : stdout;
    struct json_object *all = json_object_new_array();
    struct series series = {
        .options = o,
        .even_depth = find_even_depth(o),
        .first_rate = NAN,
        .first_even = NAN,
    };
    char error[PERF_ERROR_BYTES];
    int code = PERF_EXIT_OK;

    perf_columns_head(table, columns, "");
    for (unsigned i = 0; i < o->num_scale_peers && !series.hopeless; i++) {
        struct json_object *row = json_object_new_object();
        if (fill_row(&series, o->scale_peers[i], row))
            code = PERF_EXIT_FAILED;
        if (!series.hopeless)
            perf_columns_row(table, columns, row, "");
        fflush(table);
        json_object_array_add(all, row);
    }
    if (series.disturbed)
        perf_complain(PERF_EXIT_OK, "warning: other programs wanted the processors: the message "
                                    "rates are lower than they should be");
    if (perf_report_write(o, all, error))
        code = perf_complain(PERF_EXIT_FAILED, "%s", error);
    json_object_put(all);
    return code;
}
