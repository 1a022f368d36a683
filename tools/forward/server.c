/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/server.h"

#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/clock.h"
#include "tools/forward/say.h"

enum { PAUSE_MS = 2000 /* between two lookups, at least */ };

#define MS_NS UINT64_C(1000000)

/* -------------------------------------------------------------------------------------------- turns */

static struct server_tried *find_tried(struct server *s, const char *address)
{
    for (int i = 0; i < LOOKUP_ADDRESSES_MAX; i++) {
        if (strcmp(s->tried[i].address, address) == 0)
            return &s->tried[i];
    }
    return NULL;
}

/* The address has the last turn. It takes the row whose turn is longest ago if it has none. */
static void note_turn(struct server *s, const char *address)
{
    struct server_tried *row = find_tried(s, address);

    if (!row) {
        row = &s->tried[0];
        for (int i = 1; i < LOOKUP_ADDRESSES_MAX; i++) {
            if (s->tried[i].turn < row->turn)
                row = &s->tried[i];
        }
    }
    snprintf(row->address, sizeof(row->address), "%.*s", MRD_ADDRESS_MAX - 1, address);
    row->turn = ++s->turns;
}

static void forget_turns(struct server *s)
{
    memset(s->tried, 0, sizeof(s->tried));
    s->turns = 0;
    note_turn(s, s->peer->address);
}

/* -------------------------------------------------------------------------------------- the address */

/* As link_peer_open() takes it, and link_peer.address has it. False: it is of no kind that is known. */
static bool print_address(const struct sockaddr_storage *address, char text[MRD_ADDRESS_MAX])
{
    bool is_v6 = address->ss_family == AF_INET6;
    socklen_t len = is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if ((!is_v6 && address->ss_family != AF_INET) ||
        getnameinfo((const struct sockaddr *)address, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV | NI_DGRAM) != 0)
        return false;
    return snprintf(text, MRD_ADDRESS_MAX, is_v6 ? "[%s]:%s" : "%s:%s", host, port) <
           MRD_ADDRESS_MAX;
}

/* Streams go to it from now on. */
static void use_peer(struct server *s, struct link_peer *peer, bool is_news)
{
    struct link_peer *old = s->peer;

    if (is_news)
        say("%s is at %s now", s->name, peer->address);
    else
        say_detail("%s: %s is tried again", s->name, peer->address);
    s->peer = peer;
    if (!old)
        return;
    hub_move(s->hub, old, peer);
    link_peer_release(s->hub->streams.link, old);
}

/* The address that was never tried, or whose turn is longest ago. NULL: there is none but the present one. */
static const char *next_of(struct server *s, char text[][MRD_ADDRESS_MAX], uint32_t num)
{
    const char *best = NULL;
    uint32_t best_turn = 0;

    for (uint32_t i = 0; i < num; i++) {
        const struct server_tried *row = find_tried(s, text[i]);
        uint32_t turn = row ? row->turn : 0;

        if (s->peer && strcmp(text[i], s->peer->address) == 0)
            continue;
        if (!best || turn < best_turn) {
            best = text[i];
            best_turn = turn;
        }
    }
    return best;
}

static void take_addresses(struct server *s, const struct lookup_answer *answer)
{
    char text[LOOKUP_ADDRESSES_MAX][MRD_ADDRESS_MAX];
    uint32_t num = 0;

    for (uint32_t i = 0; i < answer->num; i++)
        num += print_address(&answer->address[i], text[num]);
    for (uint32_t i = 0; i < num; i++) { /* until there is one that can be sent to */
        const char *address = next_of(s, text, num);
        bool is_news = address && !find_tried(s, address);
        struct link_peer *peer;

        if (!address)
            return;
        note_turn(s, address);
        peer = link_peer_open(s->hub->streams.link, address);
        if (peer) {
            use_peer(s, peer, is_news);
            return;
        }
        say_detail("%s: %s: %s", s->name, address, mrd_last_error());
    }
}

/* -------------------------------------------------------------------------------------- looking up */

static void on_answer(void *arg, const struct lookup_answer *answer);

/* Says each cause once. */
static void tell_failure(struct server *s, int failure, const char *why)
{
    if (s->failure == failure)
        return;
    s->failure = failure;
    say("%s: %s", s->name, why);
}

/* While no address is known, no stream is asked for, so that nothing else begins a lookup. */
static void look_up_later(struct server *s)
{
    struct timeval pause = {.tv_sec = PAUSE_MS / 1000, .tv_usec = PAUSE_MS % 1000 * 1000};

    if (!s->peer)
        (void)evtimer_add(s->again, &pause);
}

static void look_up_now(struct server *s)
{
    if (!s->host[0] || s->lookup)
        return;
    s->looked_ns = clock_now_ns();
    s->lookup = lookup_start(s->hub->streams.base, s->host, s->port, on_answer, s);
    if (s->lookup)
        return;
    tell_failure(s, -errno, strerror(errno));
    look_up_later(s);
}

static void look_up(struct server *s)
{
    if (!s->looked_ns || clock_now_ns() - s->looked_ns >= PAUSE_MS * MS_NS)
        look_up_now(s);
}

static void on_answer(void *arg, const struct lookup_answer *answer)
{
    struct server *s = arg;

    s->lookup = NULL;
    if (answer->error)
        tell_failure(s, answer->error, lookup_error(answer));
    else
        take_addresses(s, answer);
    look_up_later(s);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    look_up_now(arg); /* by our clock the pause may be over a little later: not look_up() */
}

/* Peers at former addresses do not matter. */
static void on_silent(void *arg, const struct link_peer *peer)
{
    struct server *s = arg;

    if (peer == s->peer)
        look_up(s);
}

static void on_answered(void *arg, const struct link_peer *peer)
{
    struct server *s = arg;

    if (peer != s->peer)
        return;
    s->failure = 0;
    forget_turns(s);
}

const struct hub_ops server_ops = {.silent = on_silent, .answered = on_answered};

/* ---------------------------------------------------------------------------------------- opening */

/* HOST or HOST:PORT, as mrd_resolve() takes it, which found nothing wrong with it. */
static void split_name(struct server *s)
{
    const char *colon = strchr(s->name, ':');
    size_t len = colon ? (size_t)(colon - s->name) : strlen(s->name);

    if (len >= sizeof(s->host))
        return;
    memcpy(s->host, s->name, len);
    s->host[len] = '\0';
    s->port = colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : MRD_DEFAULT_PORT;
}

bool server_find(struct server *s, struct hub *hub, const char *name, bool waits)
{
    char address[MRD_ADDRESS_MAX];
    int rc;

    *s = (struct server){
        .hub = hub, .name = name, .again = evtimer_new(hub->streams.base, on_again, s)};
    if (!s->again) {
        say("no memory");
        return false;
    }
    s->peer = link_peer_open(hub->streams.link, name);
    if (s->peer)
        return true;
    rc = mrd_resolve(link_context(hub->streams.link), name, address, sizeof(address));
    if (rc == 0)
        s->peer = link_peer_open(hub->streams.link, address);
    if (!s->peer)
        say("%s: %s", name, mrd_last_error());
    if (!s->peer && (!waits || rc != -EAGAIN))
        return false;
    split_name(s);
    if (s->peer) {
        forget_turns(s);
        return true;
    }
    say("%s is looked up until it is known; connections are refused meanwhile", name);
    s->failure = EAI_AGAIN; /* was said just now */
    look_up_later(s);
    return true;
}

const char *server_text(const struct server *s)
{
    return s->peer ? s->peer->address : s->name;
}

void server_close(struct server *s)
{
    if (s->lookup)
        lookup_cancel(s->lookup);
    if (s->again)
        event_free(s->again);
}
