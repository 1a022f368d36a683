/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tools/perf/message.h"
#include "tools/perf/report.h"
#include "tools/perf/transport.h"

enum {
    FEWER = 4,              /* what the number of peers is divided by */
    SETTLE_US = 300 * 1000, /* RCU and deferred work */
};

/*
 * From now on only small pages are used, so that memory which was touched is what counts. Also
 * waits until the kernel has freed memory of the last process.
 */
static void settle_memory(void)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    usleep(SETTLE_US);
}

static int make_peers(void *arg)
{
    struct perf_state *s = arg;

    settle_memory();
    int rc = perf_memory_read(&s->before, s->error);

    if (rc == 0)
        rc = s->ops->peer_state(s);
    return rc ? rc : perf_memory_read(&s->after, s->error);
}

/* Returns the bytes of one more peer. Noise may make next to nothing negative. */
static double slope(int64_t many, int64_t few, uint32_t peers)
{
    return fmax(0, (double)(many - few) / peers);
}

int perf_state_measure(const struct perf_options *options, const char *transport, uint32_t peers,
                       struct perf_state_figures *figures, char *error)
{
    static struct perf_state many, few;
    const struct perf_transport_ops *ops = perf_transport_find(transport);
    uint32_t fewer = peers / FEWER;

    *figures = (struct perf_state_figures){NAN, NAN, NAN};
    if (!ops->peer_state)
        return perf_fail(error, -ENOTSUP, "%s keeps nothing for a peer", transport);
    few = many = (struct perf_state){
        .options = options, .ops = ops, .peers = peers, .fewer = fewer, .ends = 1};
    few.peers = fewer;
    int rc = perf_in_child(make_peers, &few, sizeof(few), few.error);
    if (rc)
        return perf_fail(error, rc, "%s", few.error);
    rc = perf_in_child(make_peers, &many, sizeof(many), many.error);
    if (rc)
        return perf_fail(error, rc, "%s", many.error);
    uint32_t more = (peers - fewer) * many.ends;
    figures->user = slope(many.after.user_bytes - many.before.user_bytes,
                          few.after.user_bytes - few.before.user_bytes, more);
    figures->kernel = slope(many.after.kernel_bytes, many.mark.kernel_bytes, more);
    if (many.has_idle)
        figures->idle = slope(many.idle.user_bytes - many.before.user_bytes,
                              few.idle.user_bytes - few.before.user_bytes, more) +
                        slope(many.idle.kernel_bytes, many.mark.kernel_bytes, more);
    return 0;
}

void perf_state_to_json(const struct perf_state_figures *f, struct json_object *object)
{
    json_add_rounded(object, "peer_bytes", round(f->user + f->kernel));
    json_add_rounded(object, "peer_bytes_user", round(f->user));
    json_add_rounded(object, "peer_bytes_kernel", round(f->kernel));
    json_add_rounded(object, "peer_bytes_idle", round(f->idle));
}

int perf_state_run(const struct perf_options *o)
{
    static const struct perf_column columns[] = {
        {"#peers", 9, 0, "peers", 1},          {"bytes/peer", 12, 0, "peer_bytes", 1},
        {"user", 12, 0, "peer_bytes_user", 1}, {"kernel", 12, 0, "peer_bytes_kernel", 1},
        {"idle", 12, 0, "peer_bytes_idle", 1}, {0},
    };
    FILE *table = o->out_json ? stderr : stdout;
    struct json_object *all = json_object_new_array();
    char error[PERF_ERROR_BYTES];
    int code = PERF_EXIT_OK;

    perf_columns_head(table, columns, "");
    for (unsigned i = 0; i < o->num_transports; i++) {
        struct perf_state_figures f;
        if (perf_state_measure(o, o->transports[i], o->peers, &f, error)) {
            code = perf_complain(PERF_EXIT_FAILED, "%s: %s", o->transports[i], error);
            continue;
        }
        struct json_object *object = json_object_new_object();
        json_add_string(object, "transport", o->transports[i]);
        json_add_u64(object, "peers", o->peers);
        perf_state_to_json(&f, object);
        perf_columns_row(table, columns, object, "");
        json_object_array_add(all, object);
    }
    if (perf_report_write(o, all, error))
        code = perf_complain(PERF_EXIT_FAILED, "%s", error);
    json_object_put(all);
    return code;
}
