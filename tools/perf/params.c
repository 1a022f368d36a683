/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/message.h"
#include "tools/perf/options.h"
#include "tools/perf/transport.h"

/*
 * The bytes that a bandwidth run moves unless -n or -D is given: enough to measure, a few seconds
 * at most.
 */
#define BW_BYTES_MIN (256ull << 20)
#define BW_BYTES_MAX (5000ull << 20)
enum {
    BW_ITERATIONS = 5000,
    BW_ITERATIONS_MIN = 8,
    BW_ITERATIONS_MAX = 1000 * 1000,
    LAT_ITERATIONS = 10000,
    LAT_ITERATIONS_MIN = 20,
    LAT_BYTES_MAX = 512 << 20,
    LAT_WARMUP_MAX = 1000,
    TX_DEPTH = 128,
    TX_DEPTH_LARGE_MIN = 4,
    RX_DEPTH = 512,
    LARGE_BYTES = 64 << 10,
    LARGE_IN_FLIGHT_BYTES = 8 << 20,
    CQ_MOD_SIZE_LIMIT = 8192, /* larger messages are signaled one by one */
    LAT_INLINE_BYTES = 220,
    LAT_SLOTS = 4,
};

/*
 * The rows of options that are parameters. All of them are told to the server under the name of the
 * option; settled ones are not, because both ends settle alike.
 */
static const struct option_row *next_param(const struct option_row *row)
{
    while (row->name && (row->bytes == 0 || row->offset >= sizeof(struct perf_params)))
        row++;
    return row->name ? row : NULL;
}

#define FOR_EACH_PARAM(row)                                                                        \
    for (const struct option_row *row = next_param(perf_option_table.rows); row;                   \
         row = next_param(row + 1))

static bool is_text(const struct option_row *row)
{
    return row->type == OPTION_TEXT || row->type == OPTION_CHOICE;
}

static bool is_number(const struct option_row *row)
{
    return row->type == OPTION_COUNT || row->type == OPTION_BYTES || row->type == OPTION_SHARE;
}

static const char *text_of(const struct option_row *row, const struct perf_params *p)
{
    return (const char *)p + row->offset;
}

void perf_params_init(struct perf_params *params)
{
    struct perf_options options;

    perf_options_init(&options);
    *params = options.params;
}

void perf_params_to_json(const struct perf_params *p, struct json_object *object)
{
    json_add_string(object, "test", perf_test_name(p->test));
    FOR_EACH_PARAM(row)
    {
        if (is_text(row))
            json_add_string(object, row->name, text_of(row, p));
        else
            json_add_u64(object, row->name, option_whole(row, p));
    }
}

int perf_params_from_json(struct perf_params *p, struct json_object *object)
{
    struct perf_params got = {0};
    const char *test = json_get_string(object, "test");
    bool whole = test && perf_test_find(test, &got.test) == 0;

    FOR_EACH_PARAM(row)
    {
        const char *text = json_get_string(object, row->name);
        uint64_t value = 0;

        if (is_text(row)) {
            whole = whole && text;
            snprintf((char *)&got + row->offset, row->bytes, "%s", text ? text : "");
        } else {
            whole = whole && json_get_u64(object, row->name, &value) == 0;
            option_set_whole(row, &got, is_number(row) ? value : value != 0);
            whole = whole && option_whole(row, &got) == value; /* it fits */
        }
    }
    if (!whole)
        return -EPROTO;
    got.run_infinitely = false; /* the client ends the run */
    *p = got;
    return 0;
}

/* Is a parameter as it was left open, or as its option takes it? */
static int check_param(const struct option_row *row, const struct perf_params *p,
                       const struct perf_params *open, char *error)
{
    struct perf_options scratch;
    char text[32];

    if (is_text(row)) {
        const char *name = text_of(row, p);
        return strcmp(name, text_of(row, open)) ? option_take(row, name, &scratch, error) : 0;
    }
    if (!is_number(row))
        return 0;
    uint64_t value = option_whole(row, p);
    if (value == option_whole(row, open))
        return 0;
    if (row->type == OPTION_SHARE)
        snprintf(text, sizeof(text), "%.6f", (double)value / 1e6);
    else
        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return option_take(row, text, &scratch, error);
}

/* Lists are of -l work requests each: what would make others of it is refused. */
static int check_post_list(const struct perf_params *p, const struct perf_transport_ops *ops,
                           char *error)
{
    if (ops->raw || strcmp(ops->name, "tcp") == 0)
        return option_fail(error, "%s has no lists of work requests: leave out -l", ops->name);
    if (perf_test_is_lat(p->test))
        return option_fail(error, "latency tests post one message: leave out -l");
    if (p->verify && p->qps > 1)
        return option_fail(
            error, "verified messages of several QPs are posted one by one: leave out -l or -q");
    if (p->tx_depth && p->tx_depth < p->post_list)
        return option_fail(error, "-t %u leaves no room for lists of %u", p->tx_depth,
                           p->post_list);
    if (p->cq_mod && p->post_list % p->cq_mod)
        return option_fail(error, "-Q %u is no divisor of -l %u", p->cq_mod, p->post_list);
    return 0;
}

static int check_threads(const struct perf_params *p, const struct perf_transport_ops *ops,
                         char *error)
{
    if (ops->raw)
        return option_fail(error, "%s has one thread an end: leave out --threads", ops->name);
    if (perf_test_is_lat(p->test))
        return option_fail(error, "latency tests have one thread: leave out --threads");
    if (p->qps != 1)
        return option_fail(error, "each thread has a QP of its own: leave out -q or --threads");
    if (p->bidirectional)
        return option_fail(error, "threads send one way: leave out -b or --threads");
    return 0;
}

/* Whoever sleeps needs a completion that wakes it. */
static int check_events(const struct perf_params *p, const struct perf_transport_ops *ops,
                        char *error)
{
    if (ops->raw)
        return option_fail(error, "%s has no completion channel: leave out -e", ops->name);
    if (p->test == PERF_WRITE_LAT && !p->write_with_imm && !p->verify)
        return option_fail(error, "a plain write has no completion at its target: with -e "
                                  "write_lat needs --write_with_imm");
    if (strcmp(p->wait, "auto") != 0)
        return option_fail(error, "-e sleeps on completion channels: leave out --wait");
    return 0;
}

/* What must hold between the test and the other parameters. */
static int check_test(const struct perf_params *p, const struct perf_transport_ops *ops,
                      char *error)
{
    if (ops->rdma && perf_ibv_missing())
        return option_fail(error, "transport '%s' is not offered: %s", p->transport,
                           perf_ibv_missing());
    if (perf_test_is_lat(p->test) && p->qps != 1)
        return option_fail(error, "latency tests use one QP: -q is for bandwidth tests");
    if (perf_test_is_request(p->test) && !ops->requests)
        return option_fail(error, "%s has no reads and atomics: use send and write tests",
                           p->transport);
    if (perf_test_is_atomic(p->test) && p->size_bytes != PERF_ATOMIC_BYTES)
        return option_fail(error, "atomics are of %d bytes: leave out -s", PERF_ATOMIC_BYTES);
    if (perf_test_is_request(p->test) && p->cq_mod > 1)
        return option_fail(error, "reads and atomics have a completion each: leave out -Q");
    if (p->outs && !perf_test_is_request(p->test))
        return option_fail(error, "-o is of reads and atomics: use -t");
    if (p->write_with_imm && !perf_test_is_write(p->test))
        return option_fail(error, "%s writes nothing: leave out --write_with_imm",
                           perf_test_name(p->test));
    if (p->write_with_imm && (ops->raw || strcmp(ops->name, "tcp") == 0))
        return option_fail(error, "%s has no immediates: leave out --write_with_imm", ops->name);
    if (p->bidirectional && perf_test_is_lat(p->test))
        return option_fail(error, "%s takes turns: leave out -b", perf_test_name(p->test));
    if (p->bidirectional && !ops->mutual)
        return option_fail(error, "%s has one sender at a time: leave out -b", ops->name);
    if ((p->histogram || p->unsorted) && !perf_test_is_lat(p->test))
        return option_fail(error, "%s measures no latencies: leave out -%c",
                           perf_test_name(p->test), p->histogram ? 'H' : 'U');
    if (p->histogram && p->unsorted)
        return option_fail(error, "-H sorts and -U does not: choose one");
    if (p->post_list && check_post_list(p, ops, error))
        return -EINVAL;
    if (p->threads > 1 && check_threads(p, ops, error))
        return -EINVAL;
    return p->events ? check_events(p, ops, error) : 0;
}

/* What must hold between parameters that are each in range. */
static int check_together(const struct perf_params *p, char *error)
{
    const struct perf_transport_ops *ops = perf_transport_find(p->transport);
    int rc = check_test(p, ops, error);

    if (rc)
        return rc;
    if (ops->raw && p->size_bytes == 0)
        return option_fail(error, "%s cannot send messages of 0 bytes: use -s 1 or more",
                           p->transport);
    if (p->mtu && ops->rdma && !perf_ibv_mtu_valid(p->mtu))
        return option_fail(error, "-m %u is no path MTU of %s: there is 256, 512, 1024, 2048, 4096",
                           p->mtu, p->transport);
    if (p->mtu % 64)
        return option_fail(error, "-m %u is not a multiple of 64", p->mtu);
    return 0;
}

int perf_params_check(const struct perf_params *p, char *error)
{
    struct perf_params open;

    perf_params_init(&open);
    FOR_EACH_PARAM(row)
    {
        if (check_param(row, p, &open, error))
            return -EINVAL;
    }
    return check_together(p, error);
}

static uint64_t clamp_u64(uint64_t value, uint64_t low, uint64_t high)
{
    if (value < low)
        return low;
    return value > high ? high : value;
}

static uint64_t default_iterations(enum perf_test test, uint64_t size)
{
    if (size == 0)
        size = 1;
    if (perf_test_is_lat(test))
        return clamp_u64(LAT_BYTES_MAX / size, LAT_ITERATIONS_MIN, LAT_ITERATIONS);
    if (BW_ITERATIONS * size < BW_BYTES_MIN)
        return clamp_u64(BW_BYTES_MIN / size, BW_ITERATIONS, BW_ITERATIONS_MAX);
    return clamp_u64(BW_BYTES_MAX / size, BW_ITERATIONS_MIN, BW_ITERATIONS);
}

/* Completions of reads and atomics tell which message they are of: each has one. */
static void settle_requests(struct perf_params *p)
{
    p->inline_bytes = 0;
    p->cq_mod = 1;
}

static void settle_lat(struct perf_params *p)
{
    p->tx_depth = p->tx_depth ? p->tx_depth : 1;
    p->slots = LAT_SLOTS;
    p->warmup =
        (uint32_t)clamp_u64(p->duration_s ? LAT_WARMUP_MAX : p->iterations / 10, 1, LAT_WARMUP_MAX);
    if (p->inline_bytes < 0)
        p->inline_bytes = LAT_INLINE_BYTES;
    p->cq_mod = 1;
}

static void settle_bw(struct perf_params *p)
{
    if (p->tx_depth == 0 && p->size_bytes >= LARGE_BYTES)
        p->tx_depth = (uint32_t)clamp_u64(LARGE_IN_FLIGHT_BYTES / p->size_bytes, TX_DEPTH_LARGE_MIN,
                                          TX_DEPTH);
    if (p->tx_depth == 0)
        p->tx_depth = TX_DEPTH;
    if (p->tx_depth < p->post_list)
        p->tx_depth = p->post_list;
    if (p->cq_mod == 0)
        p->cq_mod = p->post_list;
    /* The slots are shared by a thread's QPs: that many verified messages are in flight in all. */
    uint64_t most = PERF_VERIFY_MEMORY_BYTES / p->threads / (p->size_bytes ? p->size_bytes : 1);
    p->slots =
        (uint32_t)clamp_u64((uint64_t)p->tx_depth * p->qps, 1, clamp_u64(most, 1, PERF_DEPTH_MAX));
    if (p->inline_bytes < 0)
        p->inline_bytes = 0;
    if (p->cq_mod == 0)
        p->cq_mod =
            p->size_bytes > CQ_MOD_SIZE_LIMIT ? 1 : (uint32_t)clamp_u64(p->tx_depth / 4, 1, 100);
    if (p->cq_mod > p->tx_depth)
        p->cq_mod = p->tx_depth;
}

void perf_params_settle(struct perf_params *p)
{
    if (p->run_infinitely)
        p->duration_s = PERF_DURATION_S_MAX;
    if (p->duration_s)
        p->iterations = 0;
    else if (p->iterations == 0)
        p->iterations = default_iterations(p->test, p->size_bytes);
    if (p->rx_depth == 0)
        p->rx_depth = RX_DEPTH;
    if (perf_test_is_request(p->test))
        settle_requests(p);
    if (perf_test_is_lat(p->test))
        settle_lat(p);
    else
        settle_bw(p);
}
