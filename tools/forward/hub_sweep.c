/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/hub_sweep.h"

#include <errno.h>
#include <string.h>

#include "tools/common/clock.h"
#include "tools/forward/hub_loss.h"
#include "tools/forward/stream_drain.h"
#include "tools/forward/stream_join.h"
#include "tools/forward/stream_out.h"

#define SEC_NS          UINT64_C(1000000000)
#define OPEN_TIMEOUT_NS (60 * SEC_NS) /* a server answers earlier: its own timeout is shorter */

void hub_on_sweep(evutil_socket_t fd, short what, void *arg)
{
    struct hub *hub = arg;
    struct stream *s;
    uint64_t now = clock_now_ns();
    bool again = false;
    bool scarce = schedule_is_scarce(&hub->streams.schedule);
    (void)fd, (void)what;

    for (uint32_t i = 0; (s = stream_table_next(&hub->streams.table, &i));) {
        if (s->state == STREAM_OPENING && now - s->request.began_ns > OPEN_TIMEOUT_NS) {
            stream_reset(s, ETIMEDOUT, "no answer to the request", false);
            continue;
        }
        if (s->state == STREAM_OPENING && !s->request.has_arrived &&
            now - s->request.asked_ns >= SEC_NS)
            hub_tell_silent(hub, s->peer);
        if (stream_is_draining(s)) {
            stream_drain_check_deadline(s, now, hub->options->link.peer_timeout_ns);
            again = true;
            continue;
        }
        if (stream_is_unpolled(s) && stream_socket_has_died(s)) {
            stream_out_on_socket_lost(s, ECONNRESET, "the connection was reset while it waited");
            again = true;
            continue;
        }
        again |= s->state == STREAM_OPENING || stream_input_is_unpolled(s);
        if (scarce)
            again |= stream_out_shrink(s, stream_window_first(&hub->streams));
    }
    if (again)
        schedule_sweep(&hub->streams.schedule);
}

void hub_answer_refused(struct hub *hub, const struct mrd_wc *wc, const struct frame *refused,
                        const char *why)
{
    if (link_answer(hub->streams.link, wc, refused, why) != -ENOMEM)
        return;
    if (hub->num_owed < HUB_OWED_MAX)
        hub->owed[hub->num_owed++] = (struct hub_owed){*wc, *refused};
}

void hub_answer_owed(struct hub *hub)
{
    uint32_t paid = 0;

    while (paid < hub->num_owed && link_answer(hub->streams.link, &hub->owed[paid].wc,
                                               &hub->owed[paid].frame, "no memory") != -ENOMEM)
        paid++;
    hub->num_owed -= paid;
    memmove(hub->owed, hub->owed + paid, hub->num_owed * sizeof(hub->owed[0]));
}

void hub_on_ping(evutil_socket_t fd, short what, void *arg)
{
    struct hub *hub = arg;
    struct stream *s;
    (void)fd, (void)what;

    hub->pings++;
    hub_answer_owed(hub);
    for (uint32_t i = 0; (s = stream_table_next(&hub->streams.table, &i));) {
        if (s->state != STREAM_OPEN ||
            (s->peer->pinged == hub->pings && s->peer->pinged_session == s->session))
            continue;
        s->peer->pinged = hub->pings;
        s->peer->pinged_session = s->session;
        (void)link_send(hub->streams.link, s->peer, s->id,
                        &(struct frame){.type = FRAME_PING, .session = s->session}, NULL, 0);
    }
}
