/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/report.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/clock.h"
#include "tools/common/counters.h"
#include "tools/forward/say.h"

enum { PATHS_MAX = 256, PEERS_MAX = 32 };

/* What a peer's paths had carried a second ago. */
struct seen {
    char address[MRD_ADDRESS_MAX];
    uint64_t packets[PATHS_MAX];
};

struct report {
    struct hub *hub;
    struct event *timer;
    uint64_t last_ns;
    struct stream_totals last_totals;
    uint64_t last_retransmitted, last_packets;
    struct seen seen[PEERS_MAX];
    unsigned oldest; /* of these, to be forgotten next */
    struct counters counters;
};

/* Of the streams that are over, and of those there are. */
static struct stream_totals totals_of(const struct hub *hub)
{
    struct stream_totals t = hub->streams.totals;
    const struct stream *s;

    for (uint32_t i = 0; (s = stream_table_next(&hub->streams.table, &i));) {
        t.bytes_in += s->in.bytes;
        t.bytes_out += s->out.bytes;
    }
    return t;
}

static struct seen *seen_of(struct report *r, const char *address)
{
    for (int i = 0; i < PEERS_MAX; i++) {
        struct seen *seen = &r->seen[i];

        if (!seen->address[0])
            snprintf(seen->address, sizeof(seen->address), "%s", address);
        if (strcmp(seen->address, address) == 0)
            return seen;
    }
    struct seen *seen = &r->seen[r->oldest++ % PEERS_MAX];

    memset(seen, 0, sizeof(*seen));
    snprintf(seen->address, sizeof(seen->address), "%s", address);
    return seen;
}

/* Paths that carried packets in the last second, to the peer that used most. */
static unsigned paths_in_use(struct report *r)
{
    unsigned most = 0;

    for (const struct link_peer *p = link_peers(r->hub->streams.link); p; p = p->next) {
        struct seen *seen = seen_of(r, p->address);
        struct mrd_path_attr path;
        unsigned used = 0;

        for (uint32_t i = 0; i < PATHS_MAX; i++) {
            if (mrd_query_path(p->ah, i, &path, sizeof(path)) != 0)
                break;
            used += path.packets != seen->packets[i];
            seen->packets[i] = path.packets;
        }
        most = used > most ? used : most;
    }
    return most;
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
    struct report *r = arg;
    struct stream_totals now = totals_of(r->hub);
    uint64_t at_ns = clock_now_ns();
    double s = 1e-9 * (double)(at_ns - r->last_ns);
    (void)fd, (void)what;

    counters_read(&r->counters, link_context(r->hub->streams.link));
    uint64_t retransmitted = counters_value(&r->counters, "retx_packets"),
             packets = counters_value(&r->counters, "tx_packets");
    fprintf(
        stderr,
        "mrd_forward: %u streams, %.2f Gb/s there, %.2f Gb/s back, %u paths, %llu of %llu packets "
        "retransmitted\n",
        r->hub->streams.table.num, 8e-9 * (double)(now.bytes_in - r->last_totals.bytes_in) / s,
        8e-9 * (double)(now.bytes_out - r->last_totals.bytes_out) / s, paths_in_use(r),
        (unsigned long long)(retransmitted - r->last_retransmitted),
        (unsigned long long)(packets - r->last_packets));
    r->last_ns = at_ns;
    r->last_totals = now;
    r->last_retransmitted = retransmitted;
    r->last_packets = packets;
}

static void report_stream(const struct stream *s)
{
    static const char *const states[] = {"opening", "asked", "open", "ended"};

    fprintf(
        stderr,
        "  stream %08x %s %s, %s: read %llu bytes%s, wrote %llu%s; may send %u messages, window "
        "%u\n",
        s->id, s->peer->address, s->target ? s->target : "", states[s->state],
        (unsigned long long)s->in.bytes, stream_in_has_ended(s) ? " (all)" : "",
        (unsigned long long)s->out.bytes, stream_out_has_ended(s) ? " (all)" : "",
        flow_may_send(&s->in.flow), s->out.flow.window);
}

static void report_peer(const struct link_peer *p)
{
    struct mrd_peer_attr a;

    if (mrd_query_peer(p->ah, &a, sizeof(a)) != 0) {
        fprintf(stderr, "  peer %s: nothing known\n", p->address);
        return;
    }
    fprintf(
        stderr,
        "  peer %s: %u paths, RTT %.0f us (least %.0f), window %llu bytes, in flight %llu, %llu "
        "packets sent, %llu retransmitted, %llu received, payload %llu bytes a packet\n",
        p->address, a.paths, 1e-3 * (double)a.srtt_ns, 1e-3 * (double)a.min_rtt_ns,
        (unsigned long long)a.cwnd_bytes, (unsigned long long)a.inflight_bytes,
        (unsigned long long)a.packets_sent, (unsigned long long)a.packets_retransmitted,
        (unsigned long long)a.packets_received, (unsigned long long)a.payload_bytes);
}

void report_all(struct report *r)
{
    struct stream_totals t = totals_of(r->hub);
    const struct link *link = r->hub->streams.link;
    const struct stream *s;

    counters_read(&r->counters, link_context(r->hub->streams.link));
    fprintf(stderr,
            "mrd_forward: %u streams now; %llu opened, %llu refused, %llu reset; %llu bytes there, "
            "%llu back; %u of %u receive buffers free\n",
            r->hub->streams.table.num, (unsigned long long)t.opened, (unsigned long long)t.refused,
            (unsigned long long)t.reset, (unsigned long long)t.bytes_in,
            (unsigned long long)t.bytes_out, link_buffers_free(link), link_buffers(link));
    for (uint32_t i = 0; (s = stream_table_next(&r->hub->streams.table, &i));)
        report_stream(s);
    for (const struct link_peer *p = link_peers(link); p; p = p->next)
        report_peer(p);
    for (int i = 0; i < r->counters.num; i++) {
        const struct mrd_counter *c = &r->counters.all[i];

        if (c->value)
            fprintf(stderr, "  %s %llu %s\n", c->name, (unsigned long long)c->value, c->unit);
    }
}

struct report *report_open(struct hub *hub, bool stats)
{
    struct report *r = calloc(1, sizeof(*r));
    struct timeval second = {.tv_sec = 1};

    if (!r) {
        say("no memory");
        return NULL;
    }
    r->hub = hub;
    r->last_ns = clock_now_ns();
    if (!stats)
        return r;
    r->timer = event_new(hub->streams.base, -1, EV_PERSIST, on_second, r);
    if (r->timer && event_add(r->timer, &second) == 0)
        return r;
    say("no memory");
    report_close(r);
    return NULL;
}

void report_close(struct report *r)
{
    if (r->timer)
        event_free(r->timer);
    free(r);
}
