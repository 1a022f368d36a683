/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/params_json.h"

#include <errno.h>
#include <stdio.h>

#include "tools/perf/json.h"

/* All members that are numbers. Settled ones are not sent: both ends settle alike. */
#define NUMBERS(X)                                                                                 \
    X(size_bytes)                                                                                  \
    X(iterations)                                                                                  \
    X(duration_s)                                                                                  \
    X(tx_depth)                                                                                    \
    X(rx_depth)                                                                                    \
    X(qps)                                                                                         \
    X(mtu)                                                                                         \
    X(inline_bytes)                                                                                \
    X(cq_mod)                                                                                      \
    X(paths)                                                                                       \
    X(ordered)                                                                                     \
    X(verify)                                                                                      \
    X(drop_ppm)                                                                                    \
    X(seed)                                                                                        \
    X(interval_ms)

void perf_params_to_json(const struct perf_params *p, struct json_object *object)
{
    perf_json_add_text(object, "test", perf_test_name(p->test));
    perf_json_add_text(object, "transport", p->transport);
    perf_json_add_text(object, "spray", p->spray);
    perf_json_add_text(object, "cc", p->cc);
    perf_json_add_text(object, "entropy", p->entropy);
    perf_json_add_text(object, "wait", p->wait);
#define PUT(member) perf_json_add_u64(object, #member, (uint64_t)p->member);
    NUMBERS(PUT)
#undef PUT
}

static int get_name(struct json_object *object, const char *key, char *name)
{
    const char *text = perf_json_get_string(object, key);

    if (!text)
        return -EPROTO;
    snprintf(name, PERF_NAME_BYTES, "%s", text);
    return 0;
}

int perf_params_from_json(struct perf_params *p, struct json_object *object)
{
    struct perf_params got = {0};
    const char *test = perf_json_get_string(object, "test");
    uint64_t value;

    if (!test || perf_test_find(test, &got.test))
        return -EPROTO;
    if (get_name(object, "transport", got.transport) || get_name(object, "spray", got.spray) ||
        get_name(object, "cc", got.cc) || get_name(object, "entropy", got.entropy) ||
        get_name(object, "wait", got.wait))
        return -EPROTO;
#define GET(member)                                                                                \
    if (perf_json_get_u64(object, #member, &value))                                                \
        return -EPROTO;                                                                            \
    got.member = (__typeof__(got.member))value;
    NUMBERS(GET)
#undef GET
    *p = got;
    return 0;
}
