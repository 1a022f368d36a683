/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames on their way out of a link. */
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "tools/forward/link_state.h"
#include "tools/forward/say.h"

uint8_t *link_tx(struct link *link, const struct link_peer *peer)
{
    uint8_t *bytes = peer->sending < link->tx.num_free ? pool_take(&link->tx) : NULL;

    return bytes ? bytes + FRAME_HEAD_BYTES : NULL;
}

void link_tx_unused(struct link *link, uint8_t *buffer)
{
    pool_return(&link->tx, buffer - FRAME_HEAD_BYTES);
}

void link_progress_soon(struct link *link)
{
    event_active(link->readable, EV_READ, 0);
}

static int send_data(struct link *link, struct link_peer *peer, uint32_t stream,
                     const struct frame *frame, uint8_t *bytes, uint32_t len)
{
    struct mrd_sge sge = {(uintptr_t)bytes, FRAME_HEAD_BYTES + len, link->tx.mr->lkey};
    struct mrd_send_wr wr = {
        .wr_id = (uintptr_t)bytes,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_SIGNALED,
        .ud = {.ah = peer->ah, .remote_qpn = peer->qpn, .remote_qkey = QKEY},
    };
    struct mrd_send_wr *bad;
    int rc;

    frame_put(bytes, frame);
    rc = mrd_post_send(link->qp, &wr, &bad);
    if (rc != 0) {
        pool_return(&link->tx, bytes);
        return rc;
    }
    *pool_note(&link->tx, bytes) = (struct pool_note){peer, stream};
    peer->uses++;
    peer->sending++;
    link->signaled++;
    link_progress_soon(link);
    return 0;
}

/* The wr_id of a frame without a buffer is odd. Its place is added above the stream: post_control(). */
static uint64_t control_id(uint32_t stream, enum frame_type type)
{
    return (uint64_t)stream << 8 | (uint64_t)type << 1 | 1;
}

/* As with link_tx(): a peer that takes nothing leaves places for the others. */
static bool has_place(const struct link *link, const struct link_peer *peer)
{
    return peer->controls < CONTROL_SENDS - link->controls;
}

static int post_control(struct link *link, struct link_peer *peer, uint64_t wr_id,
                        const uint8_t *bytes, uint32_t len)
{
    uint16_t place;

    if (!has_place(link, peer))
        return -ENOMEM;
    place = link->place[link->controls];
    struct mrd_sge sge = {(uintptr_t)bytes, len, 0};
    struct mrd_send_wr wr = {
        .wr_id = wr_id | (uint64_t)place << 40,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_INLINE | MRD_SEND_SIGNALED,
        .ud = {.ah = peer->ah, .remote_qpn = peer->qpn, .remote_qkey = QKEY},
    };
    struct mrd_send_wr *bad;
    int rc = mrd_post_send(link->qp, &wr, &bad);

    if (rc == 0) {
        link->kept[place] = NULL;
        link->control_of[place] = peer;
        link->signaled++;
        link->controls++;
        peer->controls++;
        peer->uses++;
        link_progress_soon(link);
    }
    return rc;
}

static void append_held(struct link *link, struct link_peer *peer, struct held *h)
{
    peer->uses++;
    peer->num_held++;
    link->num_held++;
    mrd_list_append(&peer->held, &h->node);
}

/* The frame is sent later, in order, when there is a place. */
static int hold_frame(struct link *link, struct link_peer *peer, uint64_t wr_id,
                      const uint8_t *bytes, uint32_t len)
{
    struct held *h = malloc(sizeof(*h));

    if (!h)
        return -ENOMEM;
    *h = (struct held){.wr_id = wr_id, .len = len};
    memcpy(h->bytes, bytes, len);
    append_held(link, peer, h);
    return 0;
}

static struct held *held_of(struct mrd_node *node)
{
    return mrd_container_of(node, struct held, node);
}

/* The peer may be freed with it. */
static struct held *take_held(struct link *link, struct link_peer *peer)
{
    struct held *h = held_of(mrd_list_pop(&peer->held));

    peer->num_held--;
    link->num_held--;
    link_peer_release(link, peer);
    return h;
}

void link_drop_held(struct link *link, struct link_peer *peer)
{
    free(take_held(link, peer));
}

/* A client waits for these: they are repeated if they fail. */
static bool is_answer(uint64_t wr_id)
{
    enum frame_type type = (enum frame_type)(wr_id >> 1 & 0x7f);

    return type == FRAME_OPENED || type == FRAME_REFUSED;
}

/* The caller uses the peer. False: there is no place. */
static bool send_oldest_held(struct link *link, struct link_peer *peer)
{
    struct held *h = held_of(mrd_list_first(&peer->held));
    unsigned place = link->place[link->controls % CONTROL_SENDS];
    int rc = post_control(link, peer, h->wr_id, h->bytes, h->len);

    if (rc == -ENOMEM)
        return false;
    if (rc != 0)
        say("%s: %s", peer->address, mrd_last_error());
    h = take_held(link, peer);
    if (rc == 0 && is_answer(h->wr_id))
        link->kept[place] = h;
    else
        free(h);
    return true;
}

void link_send_held(struct link *link)
{
    struct link_peer *next;

    for (struct link_peer *peer = link->num_held ? link->peers : NULL; peer; peer = next) {
        peer->uses++;
        while (!mrd_list_empty(&peer->held) && send_oldest_held(link, peer))
            ;
        next = peer->next;
        link_peer_release(link, peer);
    }
}

/*
 * An answer fails if the peer was restarted, or has lost its state of us, after it was sent. The
 * request that it answers may be of the new process, which waits for it.
 */
bool link_repeat(struct link *link, struct link_peer *peer, unsigned place,
                 enum mrd_wc_status status)
{
    struct held *h = link->kept[place];

    link->kept[place] = NULL;
    if (!h || status != MRD_WC_RETRY_EXC_ERR || h->repeats == REPEATS_MAX) {
        free(h);
        return false;
    }
    h->repeats++;
    append_held(link, peer, h);
    return true;
}

void link_stop_repeats(struct link *link, const struct link_peer *peer)
{
    for (unsigned i = 0; peer->controls && i < CONTROL_SENDS; i++) {
        if (link->kept[i] && link->control_of[i] == peer)
            link->kept[i]->repeats = REPEATS_MAX;
    }
}

int link_send(struct link *link, struct link_peer *peer, uint32_t stream, const struct frame *frame,
              const void *bytes, uint32_t len)
{
    uint8_t message[FRAME_HEAD_BYTES + FRAME_TEXT_MAX];
    uint64_t wr_id = control_id(stream, frame->type);

    if (frame->type == FRAME_DATA)
        return send_data(link, peer, stream, frame, (uint8_t *)bytes - FRAME_HEAD_BYTES, len);
    assert(len <= FRAME_TEXT_MAX);
    frame_put(message, frame);
    if (len)
        memcpy(message + FRAME_HEAD_BYTES, bytes, len);
    len += FRAME_HEAD_BYTES;

    bool first = mrd_list_empty(&peer->held);
    int rc = first && !is_answer(wr_id) ? post_control(link, peer, wr_id, message, len) : -ENOMEM;

    if (rc == -ENOMEM)
        rc = hold_frame(link, peer, wr_id, message, len);
    if (rc == 0 && is_answer(wr_id))
        link_send_held(link);
    else if (rc != 0 && is_answer(wr_id) && first) /* without memory it is not repeated */
        rc = post_control(link, peer, wr_id, message, len);
    return rc;
}

int link_answer(struct link *link, const struct mrd_wc *wc, const struct frame *frame,
                const char *text)
{
    struct link_peer *peer = link_peer_of(link, wc, 0);
    int rc = 0;

    if (!peer)
        return -errno;
    if (peer->num_held < ANSWERS_MAX)
        rc = link_send(link, peer, 0, frame, text, (uint32_t)strlen(text));
    link_peer_release(link, peer);
    return rc;
}
