/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Somebody who is not the other end of a tunnel, but knows all of its numbers.
 *
 *     stranger serve ADDRESS PORT    `mrd_forward serve` at ADDRESS; listens at PORT as its target
 *     stranger connect ADDRESS PORT  plays the server at ADDRESS for who connects to PORT
 *
 * Two contexts: the honest one opens a stream, the other one sends frames of all types for it.
 * The stream must live on, and the answers to right and to wrong guesses must be the same ones, and
 * few. Prints what went wrong. Exit status: 0 nothing did, 1 something did.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mrd/mrd.h"
#include "tools/forward/frame.h"
#include "tools/forward/link_state.h"

enum {
    RECEIVES = 64,
    MESSAGE_BYTES = 1024,
    PATIENCE_MS = 20000,
    GUESSES = 2000,
    STREAM = 7,
    ANSWER_MS = 100, /* of mrd_forward: at most one answer to a stranger in so long */
};

struct end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_ah *ah;
    uint32_t qpn; /* of the other side */
    uint8_t bytes[RECEIVES][MESSAGE_BYTES];
    uint32_t sends; /* outstanding */
    /* Of what came: how many of each type, and the last one of all. */
    uint32_t came[FRAME_ASK + 1];
    struct frame last;
    struct mrd_wc wc; /* its completion */
};

static struct end honest, strange;
static const uint32_t session = 0x5e550001;

static void die(const char *what)
{
    fprintf(stderr, "stranger: %s: %s\n", what, mrd_last_error());
    exit(1);
}

static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

static void post(struct end *e, uint64_t index)
{
    struct mrd_sge sge = {(uintptr_t)e->bytes[index], MESSAGE_BYTES, 0};
    struct mrd_recv_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1}, *bad;
    static struct mrd_mr *mr[2];
    struct mrd_mr **own = &mr[e == &strange];

    if (!*own)
        *own = mrd_reg_mr(e->pd, e->bytes, sizeof(e->bytes), MRD_ACCESS_LOCAL_WRITE);
    if (!*own)
        die("no memory region");
    sge.lkey = (*own)->lkey;
    if (mrd_post_recv(e->qp, &wr, &bad) != 0)
        die("no receive");
}

static void open_end(struct end *e, uint16_t port)
{
    struct mrd_context_attr attr = {
        .address = "127.0.0.1", .port = port, .paths = 2, .progress = MRD_PROGRESS_MANUAL};
    struct mrd_qp_init_attr qp = {
        .qkey = QKEY, .cap = {.max_send_wr = 64, .max_recv_wr = RECEIVES, .max_inline_data = 512}};

    e->context = mrd_open_device(NULL, &attr);
    e->pd = e->context ? mrd_alloc_pd(e->context) : NULL;
    e->cq = e->pd ? mrd_create_cq(e->context, 2 * RECEIVES, NULL) : NULL;
    if (!e->cq)
        die("no context");
    qp.send_cq = qp.recv_cq = e->cq;
    e->qp = mrd_create_qp(e->pd, &qp);
    if (!e->qp)
        die("no queue pair");
    for (uint64_t i = 0; i < RECEIVES; i++)
        post(e, i);
}

static void take(struct end *e)
{
    struct mrd_wc wc;
    struct frame frame;

    while (mrd_poll_cq(e->cq, 1, &wc) == 1) {
        if (wc.opcode < MRD_WC_RECV) {
            e->sends--;
            if (wc.status != MRD_WC_SUCCESS)
                die(mrd_wc_status_str(wc.status));
            continue;
        }
        if (wc.status == MRD_WC_SUCCESS && frame_get(e->bytes[wc.wr_id], wc.byte_len, &frame)) {
            e->came[frame.type]++;
            e->last = frame;
            e->wc = wc;
        }
        post(e, wc.wr_id);
    }
}

static void poll_both(void)
{
    if (honest.context)
        take(&honest);
    if (strange.context)
        take(&strange);
}

/* Has a frame of the type come, when there were `before`? */
static bool hears(struct end *e, enum frame_type type, uint32_t before)
{
    uint64_t until = now_ms() + PATIENCE_MS;

    while (e->came[type] == before && now_ms() < until)
        poll_both();
    return e->came[type] > before;
}

/* Sends, and waits until it has arrived. */
static void tell(struct end *e, const struct frame *frame, const char *text)
{
    uint8_t message[FRAME_HEAD_BYTES + FRAME_TEXT_MAX];
    size_t len = strlen(text);
    struct mrd_sge sge = {(uintptr_t)message, (uint32_t)(FRAME_HEAD_BYTES + len), 0};
    struct mrd_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = MRD_WR_SEND,
        .send_flags = MRD_SEND_INLINE | MRD_SEND_SIGNALED,
        .ud = {.ah = e->ah, .remote_qpn = e->qpn, .remote_qkey = QKEY},
    };
    struct mrd_send_wr *bad;

    frame_put(message, frame);
    memcpy(message + FRAME_HEAD_BYTES, text, len);
    if (mrd_post_send(e->qp, &wr, &bad) != 0)
        die("send");
    e->sends++;
    while (e->sends)
        poll_both();
}

static void data(struct end *e, const struct frame *to, uint32_t seq, const char *text)
{
    struct frame frame = *to;

    frame.type = FRAME_DATA;
    frame.seq = seq;
    frame.arg = (uint32_t)strlen(text);
    tell(e, &frame, text);
}

/* All that a stranger can say of the stream that `to` names, which has `theirs` as other session. */
static void meddle(const struct frame *to, uint32_t theirs)
{
    static const enum frame_type types[] = {FRAME_CREDIT, FRAME_RECALL,  FRAME_YIELD, FRAME_FIN,
                                            FRAME_DONE,   FRAME_REFUSED, FRAME_RESET};
    struct frame frame = *to;

    frame.type = FRAME_OPENED;
    frame.seq = theirs;
    frame.arg = STREAM + 1;
    tell(&strange, &frame, "");
    frame.seq = frame.arg = 0;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        frame.type = types[i];
        tell(&strange, &frame, "");
    }
    data(&strange, to, 0, "not from here");
    frame = (struct frame){.type = FRAME_GONE, .seq = theirs};
    tell(&strange, &frame, "");
}

static uint32_t answers(void)
{
    uint32_t num = 0;

    for (int i = 0; i <= FRAME_ASK; i++)
        num += strange.came[i];
    return num;
}

/* Is a question about the session answered? */
static bool asks(uint32_t about)
{
    uint32_t before = strange.came[FRAME_GONE];

    sleep_ms(3 * ANSWER_MS);
    tell(&strange, &(struct frame){.type = FRAME_PING, .session = about}, "");
    return hears(&strange, FRAME_GONE, before);
}

/* What is answered tells nothing, and is little. Returns 1 if it is not so. */
static int guess(uint32_t right)
{
    bool wrong_one = asks(right ^ 0x10000), right_one = asks(right);
    uint32_t before = answers(), num;
    uint64_t began_ms = now_ms(), most;

    if (wrong_one != right_one) {
        printf("a wrong guess is %sanswered, a right one is %sanswered\n", wrong_one ? "" : "not ",
               right_one ? "" : "not ");
        return 1;
    }
    for (uint32_t i = 1; i <= GUESSES; i++)
        tell(&strange, &(struct frame){.type = FRAME_PING, .session = right + 2 * i}, "");
    most = (now_ms() - began_ms) / ANSWER_MS + 2;
    poll_both();
    num = answers() - before;
    if (num > most)
        printf("%u of %d guesses are answered, and not at most %llu\n", num, GUESSES,
               (unsigned long long)most);
    return num > most;
}

static struct sockaddr_in local(const char *port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Are these the bytes that the socket gives next? */
static bool gives(int fd, const char *text)
{
    char got[64] = "";
    size_t len = 0, most = strlen(text);
    uint64_t until = now_ms() + PATIENCE_MS;

    while (len < most && now_ms() < until) {
        ssize_t n = recv(fd, got + len, most - len, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            printf("the connection has ended: %s\n", n ? strerror(errno) : "in order");
            return false;
        }
        len += n > 0 ? (size_t)n : 0;
        poll_both();
    }
    if (len < most || memcmp(got, text, most) != 0)
        printf("the connection gives '%s', not '%s'\n", got, text);
    return len == most && memcmp(got, text, most) == 0;
}

static int meet_server(const char *address, const char *port)
{
    struct sockaddr_in at = local(port);
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, fd;
    char target[32];

    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 1) != 0)
        die(strerror(errno));
    open_end(&honest, 0);
    open_end(&strange, 0);
    honest.ah = mrd_create_ah(honest.pd, address);
    strange.ah = mrd_create_ah(strange.pd, address);
    honest.qpn = strange.qpn = MRD_FIRST_QP_NUM;
    snprintf(target, sizeof(target), "127.0.0.1:%s", port);
    tell(&honest, &(struct frame){.type = FRAME_OPEN, .seq = session, .arg = STREAM, .credit = 4},
         target);
    if (!hears(&honest, FRAME_OPENED, 0))
        die("the server does not open a stream");
    fd = accept(listener, NULL, NULL);
    struct frame to = (struct frame){.session = honest.last.seq, .stream = honest.last.arg};
    meddle(&to, session);
    data(&honest, &to, 0, "a word");
    if (!gives(fd, "a word") || guess(to.session) != 0)
        return 1;
    data(&honest, &to, 1, "the last word");
    return !gives(fd, "the last word");
}

static int meet_client(const char *address, const char *port)
{
    struct sockaddr_in to_client = local(port);
    const char *colon = strrchr(address, ':');
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct mrd_peer_attr client;

    open_end(&honest, (uint16_t)atoi(colon + 1));
    open_end(&strange, 0);
    puts("ready");
    fflush(stdout);
    for (int i = 0; connect(fd, (struct sockaddr *)&to_client, sizeof(to_client)) != 0; i++) {
        if (i == PATIENCE_MS / 100)
            die(strerror(errno));
        sleep_ms(100);
    }
    if (!hears(&honest, FRAME_OPEN, 0) ||
        mrd_query_peer_id(honest.context, honest.wc.peer_id, &client, sizeof(client)) != 0)
        die("nobody asks for a stream");
    honest.ah = mrd_create_ah_from_wc(honest.pd, &honest.wc);
    strange.ah = mrd_create_ah(strange.pd, client.address);
    honest.qpn = strange.qpn = honest.wc.src_qp;
    struct frame to = (struct frame){.session = honest.last.seq, .stream = honest.last.arg};
    meddle(&to, session);
    tell(&honest,
         &(struct frame){.type = FRAME_OPENED,
                         .session = to.session,
                         .stream = to.stream,
                         .seq = session,
                         .arg = STREAM,
                         .credit = 4},
         "");
    data(&honest, &to, 0, "a word");
    if (!gives(fd, "a word"))
        return 1;
    meddle(&to, session);
    if (guess(to.session) != 0)
        return 1;
    data(&honest, &to, 1, "the last word");
    return !gives(fd, "the last word");
}

int main(int argc, char **argv)
{
    bool serve = argc == 4 && strcmp(argv[1], "serve") == 0;

    if (argc != 4) {
        fputs("usage: stranger serve|connect ADDRESS PORT\n", stderr);
        return 2;
    }
    return serve ? meet_server(argv[2], argv[3]) : meet_client(argv[2], argv[3]);
}
