/* SPDX-License-Identifier: BSD-2-Clause */
/* mrd_forward's hub on a link that the test plays: whose frames are taken, and what lost peers end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tools/forward/hub.h"
#include "tools/forward/stream_drain.h"
#include "tools/forward/stream_in.h"
#include "tools/forward/stream_join.h"
#include "tools/forward/stream_out.h"

enum { FRAMES_MAX = 64, PEERS_MAX = 8, PEER = 5, OTHER = 6, QPN = 16, BUFFERS = 1000 };

/* ----------------------------------------------------------------------------------------- the link */

struct link {
    const struct link_ops *ops;
    void *arg;
    struct link_peer peer[PEERS_MAX], *list;
    int num_peers, num_frames;
    uint32_t granted;
    struct frame frame[FRAMES_MAX]; /* sent, answers too */
    struct event_base *base;
};

static struct link the_link;
static uint8_t tx_buffer[FRAME_HEAD_BYTES + LINK_DATA_BYTES]; /* only one is needed */

struct link *link_open(const struct link_options *o, struct event_base *base,
                       const struct link_ops *ops, void *arg)
{
    (void)o;
    the_link = (struct link){.ops = ops, .arg = arg, .base = base};
    return &the_link;
}

void link_close(struct link *link, int ms)
{
    (void)link, (void)ms;
}

const struct link_peer *link_peers(const struct link *link)
{
    return link->list;
}

bool link_peer_is(struct link_peer *peer, uint32_t id)
{
    return peer->id == id;
}

bool link_is_from(struct link_peer *peer, const struct mrd_wc *wc)
{
    return peer->id == wc->peer_id && peer->qpn == wc->src_qp;
}

static struct link_peer *add_peer(struct link *link, uint32_t id, uint32_t session)
{
    struct link_peer *peer = &link->peer[link->num_peers];

    assert_true(link->num_peers < PEERS_MAX);
    *peer = (struct link_peer){.id = id,
                               .qpn = QPN,
                               .session = session,
                               .own = 100 + (uint32_t)link->num_peers++,
                               .uses = 1,
                               .next = link->list};
    mrd_list_init(&peer->waiting);
    link->list = peer;
    return peer;
}

struct link_peer *link_peer_of(struct link *link, const struct mrd_wc *wc, uint32_t session)
{
    for (int i = 0; i < link->num_peers; i++) {
        if (link->peer[i].session == session && link_is_from(&link->peer[i], wc)) {
            link->peer[i].uses++;
            return &link->peer[i];
        }
    }
    return add_peer(link, wc->peer_id, session);
}

void link_renew(struct link *link, uint32_t id)
{
    for (int i = 0; i < link->num_peers; i++) {
        if (link->peer[i].id == id)
            link->peer[i].own += 1000;
    }
}

bool link_knows(const struct link *link, const struct mrd_wc *wc, uint32_t own)
{
    for (int i = 0; i < link->num_peers; i++) {
        if (link->peer[i].own == own && link->peer[i].id == wc->peer_id)
            return true;
    }
    return false;
}

void link_peer_watch(struct link_peer *peer)
{
    peer->watched = true;
}

void link_peer_release(struct link *link, struct link_peer *peer)
{
    (void)link;
    peer->uses--;
}

uint8_t *link_tx(struct link *link, const struct link_peer *peer)
{
    (void)link, (void)peer;
    return tx_buffer + FRAME_HEAD_BYTES;
}

void link_tx_unused(struct link *link, uint8_t *buffer)
{
    (void)link, (void)buffer;
}

int link_send(struct link *link, struct link_peer *peer, uint32_t stream, const struct frame *frame,
              const void *bytes, uint32_t len)
{
    (void)peer, (void)stream, (void)bytes, (void)len;
    assert_true(link->num_frames < FRAMES_MAX);
    link->frame[link->num_frames++] = *frame;
    return 0;
}

int link_answer(struct link *link, const struct mrd_wc *wc, const struct frame *frame,
                const char *text)
{
    (void)wc, (void)text;
    assert_true(link->num_frames < FRAMES_MAX);
    link->frame[link->num_frames++] = *frame;
    return 0;
}

void link_progress_soon(struct link *link)
{
    (void)link;
}

uint32_t link_buffers(const struct link *link)
{
    (void)link;
    return BUFFERS;
}

uint32_t link_buffers_free(const struct link *link)
{
    return BUFFERS - link->granted;
}

void link_grant(struct link *link, uint32_t buffers)
{
    link->granted += buffers;
}

void link_take_back(struct link *link, uint32_t buffers)
{
    link->granted -= buffers;
}

void link_return(struct link *link, uint8_t *bytes)
{
    (void)link, (void)bytes;
}

struct mrd_context *link_context(struct link *link)
{
    (void)link;
    return NULL;
}

/* ---------------------------------------------------------------------------------------- fixture */

static const struct hub_options options = {
    .link = {.peer_timeout_ns = UINT64_C(8000000000)}, .max_streams = 8, .window = 4};
static struct hub hub;
static int ended; /* streams */
static struct stream *last_asked;
static char last_target[FRAME_TEXT_MAX + 1];
static const struct link_peer *last_silent;

static void on_ended(struct stream *s, int error, const char *why)
{
    (void)s, (void)error, (void)why;
    ended++;
}

/* One end of a pair becomes the stream's; the other is returned. */
static int join(struct stream *s, int (*with)(struct stream *s, int in, int out))
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    (void)with(s, pair[0], pair[0]);
    return pair[1];
}

static void on_opened(struct stream *s)
{
    close(join(s, stream_join));
}

static const struct stream_ops stream_ops = {on_opened, on_ended};

static void on_asked(void *arg, struct stream *s, const char *target)
{
    (void)arg;
    snprintf(last_target, sizeof(last_target), "%s", target);
    s->ops = &stream_ops;
    last_asked = s;
}

static void on_silent(void *arg, const struct link_peer *peer)
{
    (void)arg;
    last_silent = peer;
}

FIXTURE(hub_fixture)
{
    struct event_base *base;
};

FIXTURE_SETUP(hub_fixture)
{
    static const struct hub_ops ops = {.asked = on_asked, .silent = on_silent};

    self->base = event_base_new();
    ended = 0;
    last_silent = NULL;
    assert_int_equal(hub_open(&hub, self->base, &options, &ops, NULL), 0);
}

FIXTURE_TEARDOWN(hub_fixture)
{
    hub_close(&hub, 0);
    assert_int_equal(the_link.granted, 0);
    event_base_free(self->base);
}

static void comes(uint32_t from, const struct frame *frame, const char *text)
{
    struct mrd_wc wc = {.opcode = MRD_WC_RECV, .peer_id = from, .src_qp = QPN};
    uint8_t bytes[FRAME_TEXT_MAX];

    memcpy(bytes, text, strlen(text));
    (void)the_link.ops->received(the_link.arg, &wc, frame, bytes, (uint32_t)strlen(text));
}

/* The other end's `session` asks for a stream; it is not accepted yet. */
static struct stream *is_asked(uint32_t session)
{
    comes(PEER, &(struct frame){.type = FRAME_OPEN, .seq = session, .arg = 70, .credit = 4}, "a:1");
    assert_int_equal(last_asked->session, session);
    return last_asked;
}

static struct stream *is_accepted(uint32_t session)
{
    struct stream *s = is_asked(session);

    close(join(s, hub_accept));
    return s;
}

/* A frame that has the numbers of a stream. */
static void comes_for(const struct stream *s, uint32_t from, struct frame frame)
{
    frame.session = s->own;
    frame.stream = s->id;
    comes(from, &frame, "");
}

static void is_lost(uint32_t id, bool silent)
{
    the_link.ops->lost(the_link.arg, id, "peer", silent);
}

static void arrives(struct stream *s, enum frame_type type, enum mrd_wc_status status)
{
    the_link.ops->sent(the_link.arg, s->peer, s->id, type, status);
}

/* How many frames of that type were sent? */
static int sent(enum frame_type type)
{
    int num = 0;

    for (int i = 0; i < the_link.num_frames; i++)
        num += the_link.frame[i].type == type;
    return num;
}

static struct stream *dials(struct link_peer *server)
{
    char why[100];
    struct stream *s = hub_dial(&hub, server, "a:1", &stream_ops, NULL, why, sizeof(why));

    assert_non_null(s);
    return s;
}

static void is_opened(const struct stream *s, uint32_t session, uint32_t remote)
{
    comes_for(s, PEER,
              (struct frame){.type = FRAME_OPENED, .seq = session, .arg = remote, .credit = 4});
}

/* ------------------------------------------------------------------------------------------ whose */

/* Frames with the right numbers, but of another peer, change nothing. */
TEST_F(hub_fixture, hub_came__of_somebody_else)
{
    static const enum frame_type types[] = {FRAME_REFUSED, FRAME_CREDIT, FRAME_FIN,
                                            FRAME_DONE,    FRAME_RESET,  FRAME_RECALL,
                                            FRAME_OPENED,  FRAME_YIELD,  FRAME_ASK};
    struct stream *s = is_accepted(1);

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        comes_for(s, OTHER, (struct frame){.type = types[i], .seq = 1});
    comes(OTHER, &(struct frame){.type = FRAME_GONE, .seq = 1}, "");
    assert_int_equal(ended, 0);
    assert_int_equal(s->out.state, STREAM_OUT_WRITING);
    assert_false(s->out.flow.has_end);
    comes(PEER, &(struct frame){.type = FRAME_GONE, .seq = 1}, "");
    assert_int_equal(ended, 1);
}

/* A question about somebody else's session is answered as one about nobody's, and not at once again. */
TEST_F(hub_fixture, hub_came__guesses)
{
    struct stream *s = is_accepted(1);

    comes(PEER, &(struct frame){.type = FRAME_PING, .session = s->own}, "");
    assert_int_equal(sent(FRAME_GONE), 0);
    comes(OTHER, &(struct frame){.type = FRAME_PING, .session = s->own}, "");
    assert_int_equal(sent(FRAME_GONE), 1);
    comes(OTHER + 1, &(struct frame){.type = FRAME_PING, .session = 4711}, "");
    assert_int_equal(sent(FRAME_GONE), 2);
    memset(hub.answer_ns, 0xff, sizeof(hub.answer_ns)); /* the pause has begun */
    comes(OTHER, &(struct frame){.type = FRAME_PING, .session = s->own}, "");
    comes(OTHER, &(struct frame){.type = FRAME_DATA, .session = 4711, .stream = s->id}, "");
    comes(OTHER, &(struct frame){.type = FRAME_OPENED, .session = 4711, .stream = s->id}, "");
    assert_int_equal(sent(FRAME_GONE), 2);
    assert_int_equal(sent(FRAME_RESET), 0);
}

/* An OPENED that was repeated is no second one. */
TEST_F(hub_fixture, hub_came__opened_twice)
{
    struct link_peer *server = add_peer(&the_link, PEER, 0);
    struct stream *s = dials(server);

    is_opened(s, 9, 33);
    assert_int_equal(s->state, STREAM_OPEN);
    is_opened(s, 9, 33);
    assert_int_equal(sent(FRAME_RESET), 0);
    is_opened(s, 9, 34);
    assert_int_equal(sent(FRAME_RESET), 1);
    assert_int_equal(ended, 0);
}

/* A reset instead of an answer ends the wait for one. */
TEST_F(hub_fixture, hub_came__reset_instead_of_opened)
{
    struct stream *s = dials(add_peer(&the_link, PEER, 0));

    comes_for(s, PEER, (struct frame){.type = FRAME_RESET, .arg = 104});
    assert_int_equal(ended, 1);
}

/*
 * The other end takes back some of the credit that it gave a moment ago. The RECALL comes first, the
 * CREDIT never counts: what is left of it is used.
 */
TEST_F(hub_fixture, hub_came__recall_before_credit)
{
    struct stream *s = is_accepted(1);

    s->in.flow.sent = s->in.flow.allowed;
    stream_in_read(s);
    assert_true(stream_is_unpolled(s));
    comes_for(s, PEER,
              (struct frame){.type = FRAME_RECALL, .seq = 1, .credit = s->in.flow.allowed + 2});
    assert_int_equal(sent(FRAME_YIELD), 1);
    assert_int_equal(sent(FRAME_FIN), 1); /* all that there was to be read */
}

/* ----------------------------------------------------------------------------------------- patience */

static const uint64_t stall_timeout_ns = UINT64_C(8000000000);

static void hurries(struct stream *s, uint64_t after_ns)
{
    stream_drain_check_deadline(s, s->drain.moved_ns + after_ns, stall_timeout_ns);
}

/* Its socket is dead, with bytes to be read that there is no credit for. */
static struct stream *is_broken(void)
{
    struct stream *s = is_accepted(1);

    s->in.flow.sent = s->in.flow.allowed;
    stream_out_on_socket_lost(s, ECONNRESET, "");
    return s;
}

/* A broken stream without credit asks, before it takes a slow network for a reader that sleeps. */
TEST_F(hub_fixture, stream_drain_check_deadline__broken)
{
    struct stream *s = is_broken();

    hurries(s, stall_timeout_ns);
    assert_int_equal(sent(FRAME_ASK), 0);
    hurries(s, stall_timeout_ns + 1);
    hurries(s, 3 * stall_timeout_ns);
    assert_int_equal(sent(FRAME_ASK), 1);
    assert_int_equal(ended, 0);
    comes_for(s, PEER,
              (struct frame){.type = FRAME_CREDIT,
                             .credit = s->in.flow.allowed - 1}); /* an old one is no answer */
    hurries(s, 4 * stall_timeout_ns);
    assert_int_equal(ended, 0);
    comes_for(s, PEER, (struct frame){.type = FRAME_CREDIT, .credit = s->in.flow.allowed});
    hurries(s, 5 * stall_timeout_ns);
    assert_int_equal(ended, 1);
}

static void fill(int fd)
{
    static const char bytes[4096];

    while (write(fd, bytes, sizeof(bytes)) > 0)
        ;
}

/*
 * A half-closed socket that took no more bytes at a sweep, and took them later, is looked at again:
 * nothing polls it when all is written, so that only the sweep notices that it died.
 */
TEST_F(hub_fixture, hub_on_sweep__written_after_half_close)
{
    struct stream *s = is_asked(1);
    char scrap[4096];
    int end = join(s, hub_accept);

    assert_int_equal(shutdown(end, SHUT_WR), 0);
    stream_in_read(s);
    assert_int_equal(sent(FRAME_FIN), 1);

    fill(s->in.fd);
    assert_int_equal(event_add(s->out.writable, NULL), 0);         /* as after EAGAIN */
    assert_int_equal(event_base_loop(self->base, EVLOOP_ONCE), 0); /* the sweep */
    assert_int_equal(ended, 0);
    while (read(end, scrap, sizeof(scrap)) > 0)
        ;
    assert_int_equal(event_base_loop(self->base, EVLOOP_ONCE), 0); /* it is writable */
    assert_true(stream_is_unpolled(s));

    assert_int_equal(write(s->in.fd, "x", 1), 1); /* unread: close() is a reset */
    close(end);
    assert_int_equal(event_base_loop(self->base, EVLOOP_ONCE), 0); /* the next sweep */
    assert_int_equal(ended, 1);
    assert_int_equal(sent(FRAME_RESET), 1);
}

/* One that is not answered at all ends, too. */
TEST_F(hub_fixture, stream_drain_check_deadline__never_answered)
{
    struct stream *s = is_broken();

    hurries(s, stall_timeout_ns + 1);
    hurries(s, UINT64_C(60000000000));
    assert_int_equal(ended, 0);
    hurries(s, UINT64_C(60000000001));
    assert_int_equal(ended, 1);
}

/* Whoever is asked answers, with what there is. */
TEST_F(hub_fixture, hub_came__asked)
{
    struct stream *s = is_accepted(1);

    comes_for(s, PEER, (struct frame){.type = FRAME_ASK});
    assert_int_equal(sent(FRAME_CREDIT), 1);
    assert_int_equal(the_link.frame[the_link.num_frames - 1].credit, s->out.flow.told);

    /* Between RECALL and YIELD there is no CREDIT. */
    assert_true(stream_out_shrink(s, 1));
    assert_int_equal(sent(FRAME_RECALL), 1);
    comes_for(s, PEER, (struct frame){.type = FRAME_ASK});
    assert_int_equal(sent(FRAME_CREDIT), 1);
    comes_for(s, PEER, (struct frame){.type = FRAME_YIELD, .seq = 1, .credit = 1});
    assert_int_equal(sent(FRAME_CREDIT), 2);
}

/* A cut stream waits for what is on its way, as long as its peer is there. */
TEST_F(hub_fixture, stream_drain_check_deadline__cut)
{
    struct stream *s = is_accepted(1);

    comes_for(s, PEER, (struct frame){.type = FRAME_RESET, .seq = 2});
    assert_int_equal(s->out.state, STREAM_OUT_DRAINING);
    hurries(s, 3 * stall_timeout_ns);
    assert_int_equal(ended, 0);
    is_lost(PEER, false);
    assert_int_equal(ended, 0);
    hurries(s, 3 * stall_timeout_ns);
    assert_int_equal(ended, 1);
}

/* ------------------------------------------------------------------------------------------- lost */

/*
 * The far end hears of the loss late: the near end's new session has asked already. Its streams
 * live, those of the old one end, and the near end is told.
 */
TEST_F(hub_fixture, hub_lost__new_session_lives)
{
    struct stream *old = is_accepted(1);

    arrives(old, FRAME_OPENED, MRD_WC_SUCCESS);
    struct stream *fresh = is_accepted(2), *asked = is_asked(2);
    the_link.num_frames = 0;
    is_lost(OTHER, false);
    assert_int_equal(ended, 0);
    is_lost(PEER, false);
    assert_int_equal(ended, 1);
    assert_int_equal(sent(FRAME_GONE), 1);
    assert_int_equal(the_link.frame[0].stream, 70);
    assert_int_equal(fresh->state, STREAM_OPEN);
    assert_int_equal(asked->state, STREAM_ASKED);
    assert_true(fresh->peer->watched);

    /* It knows the session now: it loses it, too. */
    arrives(fresh, FRAME_OPENED, MRD_WC_SUCCESS);
    is_lost(PEER, false);
    assert_int_equal(ended, 3);
}

/* Whoever does not answer has no session, new or old. Nothing is sent to it. */
TEST_F(hub_fixture, hub_lost__silent)
{
    (void)is_accepted(1);
    (void)is_asked(1);
    the_link.num_frames = 0;
    is_lost(PEER, true);
    assert_int_equal(ended, 2);
    assert_int_equal(the_link.num_frames, 0);
}

/* Streams to a peer: nobody has heard of the first, the second was heard, the third is open. */
struct opening {
    struct stream *asks, *was_heard, *open;
};

static struct opening dials_three(struct link_peer *server)
{
    struct opening o = {dials(server), dials(server), dials(server)};

    arrives(o.was_heard, FRAME_OPEN, MRD_WC_SUCCESS);
    arrives(o.open, FRAME_OPEN, MRD_WC_SUCCESS);
    is_opened(o.open, 9, 33);
    return o;
}

/* At the near end: an OPEN that has not arrived asks whoever is there now. */
TEST_F(hub_fixture, hub_lost__opening)
{
    struct stream *asks = dials_three(add_peer(&the_link, PEER, 0)).asks;
    uint32_t own = asks->own;

    is_lost(PEER, false);
    assert_int_equal(ended, 2);
    arrives(asks, FRAME_OPEN, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(ended, 2);
    assert_int_equal(sent(FRAME_OPEN), 4);
    assert_int_not_equal(asks->own, own);
}

/* Those that are being opened go to another peer, but for those whose request has arrived. */
TEST_F(hub_fixture, hub_move__opening)
{
    struct link_peer *first = add_peer(&the_link, PEER, 0), *second = add_peer(&the_link, OTHER, 0);
    struct opening o = dials_three(first);
    struct stream *asks = o.asks;
    uint32_t own = asks->own;

    hub_move(&hub, first, second);
    assert_ptr_equal(asks->peer, second);
    assert_ptr_equal(o.was_heard->peer, first);
    assert_ptr_equal(o.open->peer, first);
    assert_int_equal(sent(FRAME_OPEN), 4);
    assert_int_equal(second->uses, 2);
    assert_true(second->watched);

    /* What became of the first request is the first peer's matter. */
    the_link.ops->sent(the_link.arg, first, asks->id, FRAME_OPEN, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(sent(FRAME_OPEN), 4);
    comes(PEER,
          &(struct frame){
              .type = FRAME_OPENED, .session = own, .stream = asks->id, .seq = 9, .arg = 34},
          "");
    assert_int_equal(asks->state, STREAM_OPENING);
    assert_int_equal(sent(FRAME_RESET), 1);
    comes_for(asks, OTHER, (struct frame){.type = FRAME_OPENED, .seq = 8, .arg = 1});
    assert_int_equal(asks->state, STREAM_OPEN);
    assert_int_equal(ended, 0);
}

/* A request that nobody answers anywhere ends: it moves for as long as a peer has to answer. */
TEST_F(hub_fixture, hub_move__not_for_ever)
{
    struct link_peer *first = add_peer(&the_link, PEER, 0), *second = add_peer(&the_link, OTHER, 0);
    struct stream *asks = dials(first);

    asks->request.began_ns -= options.link.peer_timeout_ns;
    hub_move(&hub, first, second);
    assert_ptr_equal(asks->peer, first);
}

/* Whoever does not answer is told of, whoever was restarted is not. */
TEST_F(hub_fixture, hub_lost__tells)
{
    struct link_peer *server = add_peer(&the_link, PEER, 0);

    is_lost(PEER, false);
    assert_null(last_silent);
    is_lost(PEER, true);
    assert_ptr_equal(last_silent, server);
}

/* The target is what was asked for, byte by byte; in sentences it is printable. */
TEST_F(hub_fixture, hub_came__target)
{
    comes(PEER, &(struct frame){.type = FRAME_OPEN, .seq = 1, .arg = 70}, "unix:/\xc3\xbc\33.sock");
    assert_string_equal(last_target, "unix:/\xc3\xbc\33.sock");
    assert_string_equal(last_asked->target, "unix:/???.sock");
}

/* A stream some of whose frames were lost ends, and its other end is told. */
TEST_F(hub_fixture, hub_sent__lost_frame)
{
    struct stream *s = is_accepted(1);

    arrives(s, FRAME_CREDIT, MRD_WC_RETRY_EXC_ERR);
    assert_int_equal(ended, 1);
    assert_int_equal(sent(FRAME_RESET), 1);
}

/* A stream that ended is freed, and its peer with it, when nobody walks streams or peers. */
TEST_F(hub_fixture, hub_settled__frees_what_ended)
{
    struct link_peer *server = add_peer(&the_link, PEER, 0);
    struct stream *s = dials(server);
    uint32_t id = s->id;

    stream_reset(s, ECONNRESET, "", false);
    assert_int_equal(ended, 1);
    assert_null(stream_table_find(&hub.streams.table, id));
    assert_int_equal(s->state, STREAM_ENDED);
    assert_int_equal(server->uses, 2);
    the_link.ops->settled(the_link.arg);
    assert_int_equal(server->uses, 1);
}
