/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "tools/perf/ibv_device.h"
#include "tools/perf/json.h"
#include "tools/perf/transport.h"

/*
 * The parameters that are numbers, all of which the client tells the server: what each is called,
 * its default, and the least and the most that it may be else. Settled ones are not told, because
 * both ends settle alike.
 */
#define NUMBERS(X)                                                                                 \
    X(size_bytes, "size", 0, 0, MRD_MESSAGE_BYTES_MAX)                                             \
    X(iterations, "number of iterations", 0, PERF_ITERATIONS_MIN, INT64_MAX)                       \
    X(duration_s, "duration", 0, 0, PERF_DURATION_S_MAX)                                           \
    X(tx_depth, "tx depth", 0, 0, PERF_DEPTH_MAX)                                                  \
    X(rx_depth, "rx depth", 0, 0, PERF_DEPTH_MAX)                                                  \
    X(qps, "number of QPs", 1, 1, PERF_QPS_MAX)                                                    \
    X(mtu, "MTU", 0, 0, PERF_MTU_MAX)                                                              \
    X(inline_bytes, "inline size", -1, 0, MRD_INLINE_BYTES_MAX)                                    \
    X(cq_mod, "CQ moderation", 0, 0, PERF_DEPTH_MAX)                                               \
    X(post_list, "length of posted lists", 0, 0, PERF_POST_LIST_MAX)                               \
    X(outs, "number of outstanding reads and atomics", 0, 0, PERF_DEPTH_MAX)                       \
    X(paths, "number of paths", 0, 0, PERF_PORTS_MAX)                                              \
    X(threads, "number of threads", 1, 1, PERF_THREADS_MAX)                                        \
    X(ordered, "order", false, 0, 1)                                                               \
    X(write_with_imm, "immediate of writes", false, 0, 1)                                          \
    X(histogram, "sorted latencies", false, 0, 1)                                                  \
    X(unsorted, "unsorted latencies", false, 0, 1)                                                 \
    X(bidirectional, "direction", false, 0, 1)                                                     \
    X(events, "events", false, 0, 1)                                                               \
    X(verify, "verification", false, 0, 1)                                                         \
    X(drop_ppm, "dropped share in parts per million", 0, 0, 999999)                                \
    X(seed, "seed", 1, 0, UINT64_MAX)                                                              \
    X(interval_ms, "interval in ms", 10, 1, PERF_INTERVAL_MS_MAX)

/* The parameters that are names: what each is called, its default, and what else there is. */
#define NAMES(X)                                                                                   \
    X(transport, "transport", "mrd-udp", perf_transport_names())                                   \
    X(spray, "spray policy", "", "single, rr, random, reps, adaptive")                             \
    X(cc, "congestion control", "", "nscc, dctcp, swift, none")                                    \
    X(entropy, "entropy", "", "auto, ah, qp, qpair")                                               \
    X(wait, "way to wait", "auto", "auto, spin, sleep")

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

void perf_params_init(struct perf_params *params)
{
#define DEFAULT(member, what, value, ...) .member = value,
    *params = (struct perf_params){NUMBERS(DEFAULT) NAMES(DEFAULT)};
#undef DEFAULT
}

const char *perf_params_given(const struct perf_params *p)
{
    struct perf_params defaults;

    perf_params_init(&defaults);
    defaults.size_bytes = p->size_bytes;
#define COMPARE(member, what, ...)                                                                 \
    if (p->member != defaults.member)                                                              \
        return what;
    NUMBERS(COMPARE)
#undef COMPARE
#define COMPARE(member, what, ...)                                                                 \
    if (strcmp(p->member, defaults.member) != 0)                                                   \
        return what;
    NAMES(COMPARE)
#undef COMPARE
    return NULL;
}

void perf_params_to_json(const struct perf_params *p, struct json_object *object)
{
    perf_json_add_text(object, "test", perf_test_name(p->test));
#define ADD(member, ...) perf_json_add_text(object, #member, p->member);
    NAMES(ADD)
#undef ADD
#define ADD(member, ...) perf_json_add_u64(object, #member, (uint64_t)p->member);
    NUMBERS(ADD)
#undef ADD
}

int perf_params_from_json(struct perf_params *p, struct json_object *object)
{
    struct perf_params got = {0};
    const char *test = perf_json_get_string(object, "test"), *text;
    bool whole = test && perf_test_find(test, &got.test) == 0;
    uint64_t value = 0;

#define GET(member, ...)                                                                           \
    text = perf_json_get_string(object, #member);                                                  \
    whole = whole && text;                                                                         \
    snprintf(got.member, sizeof(got.member), "%s", text ? text : "");
    NAMES(GET)
#undef GET
#define GET(member, ...)                                                                           \
    whole = whole && perf_json_get_u64(object, #member, &value) == 0;                              \
    got.member = (__typeof__(got.member))value;                                                    \
    whole = whole && (uint64_t)got.member == value; /* it fits */
    NUMBERS(GET)
#undef GET
    if (!whole)
        return -EPROTO;
    *p = got;
    return 0;
}

static bool is_listed(const char *name, const char *list)
{
    char words[128], *rest;

    snprintf(words, sizeof(words), "%s", list);
    for (char *word = strtok_r(words, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
        if (strcmp(name, word) == 0)
            return true;
    }
    return false;
}

/* Lists are of -l work requests each: what would make others of it is refused. */
static int check_post_list(const struct perf_params *p, const struct perf_transport_ops *ops,
                           char *error)
{
    if (ops->raw || strcmp(ops->name, "tcp") == 0)
        return perf_fail(error, -EINVAL, "%s has no lists of work requests: leave out -l",
                         ops->name);
    if (perf_test_is_lat(p->test))
        return perf_fail(error, -EINVAL, "latency tests post one message: leave out -l");
    if (p->verify && p->qps > 1)
        return perf_fail(error, -EINVAL,
                         "verified messages of several QPs are posted one by one: "
                         "leave out -l or -q");
    if (p->tx_depth && p->tx_depth < p->post_list)
        return perf_fail(error, -EINVAL, "-t %u leaves no room for lists of %u", p->tx_depth,
                         p->post_list);
    if (p->cq_mod && p->post_list % p->cq_mod)
        return perf_fail(error, -EINVAL, "-Q %u is no divisor of -l %u", p->cq_mod, p->post_list);
    return 0;
}

static int check_threads(const struct perf_params *p, const struct perf_transport_ops *ops,
                         char *error)
{
    if (ops->raw)
        return perf_fail(error, -EINVAL, "%s has one thread an end: leave out --threads",
                         ops->name);
    if (perf_test_is_lat(p->test))
        return perf_fail(error, -EINVAL, "latency tests have one thread: leave out --threads");
    if (p->qps != 1)
        return perf_fail(error, -EINVAL,
                         "each thread has a QP of its own: leave out -q or "
                         "--threads");
    if (p->bidirectional)
        return perf_fail(error, -EINVAL, "threads send one way: leave out -b or --threads");
    return 0;
}

/* Whoever sleeps needs a completion that wakes it. */
static int check_events(const struct perf_params *p, const struct perf_transport_ops *ops,
                        char *error)
{
    if (ops->raw)
        return perf_fail(error, -EINVAL, "%s has no completion channel: leave out -e", ops->name);
    if (p->test == PERF_WRITE_LAT && !p->write_with_imm && !p->verify)
        return perf_fail(error, -EINVAL,
                         "a plain write has no completion at its target: with -e write_lat needs "
                         "--write_with_imm");
    if (strcmp(p->wait, "auto") != 0)
        return perf_fail(error, -EINVAL, "-e sleeps on completion channels: leave out --wait");
    return 0;
}

/* What must hold between the test and the other parameters. */
static int check_test(const struct perf_params *p, const struct perf_transport_ops *ops,
                      char *error)
{
    if (ops->rdma && perf_ibv_missing())
        return perf_fail(error, -EINVAL, "transport '%s' is not offered: %s", p->transport,
                         perf_ibv_missing());
    if (perf_test_is_lat(p->test) && p->qps != 1)
        return perf_fail(error, -EINVAL, "latency tests use one QP: -q is for bandwidth tests");
    if (perf_test_is_request(p->test) && !ops->requests)
        return perf_fail(error, -EINVAL, "%s has no reads and atomics: use send and write tests",
                         p->transport);
    if (perf_test_is_atomic(p->test) && p->size_bytes != PERF_ATOMIC_BYTES)
        return perf_fail(error, -EINVAL, "atomics are of %d bytes: leave out -s",
                         PERF_ATOMIC_BYTES);
    if (perf_test_is_request(p->test) && p->cq_mod > 1)
        return perf_fail(error, -EINVAL, "reads and atomics have a completion each: leave out -Q");
    if (p->outs && !perf_test_is_request(p->test))
        return perf_fail(error, -EINVAL, "-o is of reads and atomics: use -t");
    if (p->write_with_imm && !perf_test_is_write(p->test))
        return perf_fail(error, -EINVAL, "%s writes nothing: leave out --write_with_imm",
                         perf_test_name(p->test));
    if (p->write_with_imm && (ops->raw || strcmp(ops->name, "tcp") == 0))
        return perf_fail(error, -EINVAL, "%s has no immediates: leave out --write_with_imm",
                         ops->name);
    if (p->bidirectional && perf_test_is_lat(p->test))
        return perf_fail(error, -EINVAL, "%s takes turns: leave out -b", perf_test_name(p->test));
    if (p->bidirectional && !ops->mutual)
        return perf_fail(error, -EINVAL, "%s has one sender at a time: leave out -b", ops->name);
    if ((p->histogram || p->unsorted) && !perf_test_is_lat(p->test))
        return perf_fail(error, -EINVAL, "%s measures no latencies: leave out -%c",
                         perf_test_name(p->test), p->histogram ? 'H' : 'U');
    if (p->histogram && p->unsorted)
        return perf_fail(error, -EINVAL, "-H sorts and -U does not: choose one");
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
        return perf_fail(error, -EINVAL, "%s cannot send messages of 0 bytes: use -s 1 or more",
                         p->transport);
    if (p->mtu && ops->rdma && !perf_ibv_mtu_valid(p->mtu))
        return perf_fail(error, -EINVAL,
                         "-m %u is no path MTU of %s: there is 256, 512, 1024, 2048, 4096", p->mtu,
                         p->transport);
    if (p->mtu % 64)
        return perf_fail(error, -EINVAL, "-m %u is not a multiple of 64", p->mtu);
    return 0;
}

int perf_params_check(const struct perf_params *p, char *error)
{
#define NUMBER(member, what, value, low, high)                                                     \
    {what, (uint64_t)p->member, (uint64_t)value, low, high},
    const struct {
        const char *what;
        uint64_t value, open, low, high;
    } numbers[] = {NUMBERS(NUMBER)};
#undef NUMBER
#define NAME(member, what, value, list) {what, p->member, value, list},
    const struct {
        const char *what, *value, *open, *list;
    } names[] = {NAMES(NAME)};
#undef NAME

    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        uint64_t value = numbers[i].value, low = numbers[i].low, high = numbers[i].high;
        if (value != numbers[i].open && (value < low || value > high))
            return perf_fail(error, -EINVAL, "%s %llu is not within %llu..%llu", numbers[i].what,
                             (unsigned long long)value, (unsigned long long)low,
                             (unsigned long long)high);
    }
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = names[i].value, *list = names[i].list;
        if (strcmp(value, names[i].open) != 0 && !is_listed(value, list))
            return perf_fail(error, -EINVAL, "%s '%s' is not known; there is %s", names[i].what,
                             value, list);
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
