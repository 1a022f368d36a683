/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages and answers, through networks that change on the way.
 *
 *     talk serve PORT SECONDS
 *     talk ask ADDRESS:PORT MESSAGES WINDOW PAUSE_MS [PATHS]
 *
 * "serve" is bound to no address; it answers each message, and ends after SECONDS or at SIGTERM. It
 * tells how many came, how many of these came before, and from how many addresses. "ask" has WINDOW
 * messages under way, with a pause after each. One that fails, or is not answered for PATIENCE_S,
 * is sent anew, as another message. It writes a line for each hundred that was answered, and at
 * last how many there were. Exit 0: all were answered.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mrd/mrd.h"

enum {
    QKEY = 39,
    SLOTS = 256,
    BYTES = 64,
    NUMBERS_MAX = 1 << 22, /* of messages, with those that are sent anew */
    SENDERS_MAX = 64,
    GIVE_UP_S = 120, /* without an answer */
    PATIENCE_S = 15, /* for the answer to one message */
};

struct message {
    uint64_t client; /* a random number */
    uint64_t number; /* of this message */
};

struct end {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *qp;
    struct mrd_mr *mr;
    uint8_t memory[2 * SLOTS][BYTES]; /* what is received, what is sent */
};

static struct end end;
static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "talk: %s: %s\n", what, mrd_last_error());
    exit(2);
}

static void receive(unsigned slot)
{
    struct mrd_sge sge = {(uintptr_t)end.memory[slot], BYTES, end.mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    must(mrd_post_recv(end.qp, &wr, &bad) == 0, "receive");
}

static int transmit(struct mrd_ah *ah, uint32_t qpn, unsigned slot, const struct message *message)
{
    struct mrd_sge sge = {(uintptr_t)end.memory[SLOTS + slot], sizeof(*message), end.mr->lkey};
    struct mrd_send_wr wr = {.wr_id = slot,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = MRD_WR_SEND,
                             .send_flags = MRD_SEND_SIGNALED,
                             .ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY}},
                       *bad;

    memcpy(end.memory[SLOTS + slot], message, sizeof(*message));
    return mrd_post_send(end.qp, &wr, &bad);
}

static void open_end(uint16_t port, uint32_t paths)
{
    struct mrd_context_attr attr = {.port = port, .paths = paths};
    struct mrd_qp_init_attr init = {.cap = {.max_send_wr = 2 * SLOTS, .max_recv_wr = SLOTS},
                                    .qkey = QKEY};

    end.context = mrd_open_device(NULL, &attr);
    must(end.context, "open");
    end.pd = mrd_alloc_pd(end.context);
    end.cq = mrd_create_cq(end.context, 4 * SLOTS, NULL);
    must(end.pd && end.cq, "objects");
    init.send_cq = init.recv_cq = end.cq;
    end.qp = mrd_create_qp(end.pd, &init);
    end.mr = mrd_reg_mr(end.pd, end.memory, sizeof(end.memory), MRD_ACCESS_LOCAL_WRITE);
    must(end.qp && end.mr, "objects");
    for (unsigned i = 0; i < SLOTS; i++)
        receive(i);
}

static void pause_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&t, NULL);
}

/* -------------------------------------------------------------------- serve */

/* Who sent: the clients' addresses, without port. Counts each once. */
static void note_sender(struct mrd_ah *ah, char senders[][MRD_ADDRESS_MAX], unsigned *num)
{
    char text[MRD_ADDRESS_MAX];

    must(mrd_query_ah(ah, text, sizeof(text)) == 0, "address");
    *strrchr(text, ':') = '\0';
    for (unsigned i = 0; i < *num; i++)
        if (!strcmp(senders[i], text))
            return;
    if (*num == SENDERS_MAX)
        return;
    snprintf(senders[(*num)++], MRD_ADDRESS_MAX, "%s", text);
    printf("from %s\n", text);
}

static int serve(uint16_t port, double seconds)
{
    static uint8_t seen[NUMBERS_MAX / 8];
    static char senders[SENDERS_MAX][MRD_ADDRESS_MAX];
    unsigned num_senders = 0, came = 0, twice = 0, next = 0;
    double end_s = now_s() + seconds;
    uint64_t client = 0;

    open_end(port, 0);
    printf("ready %u\n", end.qp->qp_num);
    while (!stopped && now_s() < end_s) {
        struct message message;
        struct mrd_wc wc;

        if (mrd_poll_cq(end.cq, 1, &wc) != 1) {
            pause_ms(1);
            continue;
        }
        if (!(wc.opcode & MRD_WC_RECV) || wc.status != MRD_WC_SUCCESS)
            continue;
        memcpy(&message, end.memory[wc.wr_id], sizeof(message));
        if (message.client != client) { /* one after the other */
            client = message.client;
            memset(seen, 0, sizeof(seen));
        }
        must(message.number < NUMBERS_MAX, "number");
        came++;
        twice += seen[message.number / 8] >> message.number % 8 & 1;
        seen[message.number / 8] |= (uint8_t)(1 << message.number % 8);
        struct mrd_ah *ah = mrd_create_ah_from_wc(end.pd, &wc);
        if (ah) {
            note_sender(ah, senders, &num_senders);
            if (!transmit(ah, wc.src_qp, next, &message))
                next = (next + 1) % SLOTS;
            mrd_destroy_ah(ah);
        }
        receive((unsigned)wc.wr_id);
    }
    printf("came %u twice %u senders %u\n", came, twice, num_senders);
    return twice ? 1 : 0;
}

/* -------------------------------------------------------------------- ask */

/* A message under way, by its slot. */
struct question {
    bool open;
    uint64_t number;
    double since_s;
};

static int ask(const char *address, unsigned messages, unsigned window, unsigned ms, uint32_t paths)
{
    static struct question questions[SLOTS];
    unsigned answered = 0, anew = 0, under_way = 0;
    struct message message = {.client = (uint64_t)(now_s() * 1e9)};
    double heard_s = now_s();

    open_end(0, paths);
    struct mrd_ah *ah = mrd_create_ah(end.pd, address);
    must(ah, "address handle");
    while (!stopped && answered < messages && now_s() < heard_s + GIVE_UP_S) {
        struct mrd_wc wc;

        for (unsigned slot = 0; slot < window; slot++) {
            struct question *q = &questions[slot];

            if (q->open && now_s() > q->since_s + PATIENCE_S) {
                q->open = false;
                under_way--;
                anew++;
            }
            if (q->open || answered + under_way >= messages)
                continue;
            if (transmit(ah, MRD_FIRST_QP_NUM, slot, &message))
                continue;
            *q = (struct question){true, message.number++, now_s()};
            under_way++;
        }
        if (mrd_poll_cq(end.cq, 1, &wc) != 1) {
            pause_ms(window > 1 ? 0 : 1);
            continue;
        }
        if (wc.opcode & MRD_WC_RECV) {
            struct message answer;
            struct question *q = NULL;

            must(wc.status == MRD_WC_SUCCESS, "answer");
            memcpy(&answer, end.memory[wc.wr_id], sizeof(answer));
            for (unsigned slot = 0; slot < window; slot++)
                if (questions[slot].open && questions[slot].number == answer.number)
                    q = &questions[slot];
            receive((unsigned)wc.wr_id);
            if (!q || answer.client != message.client)
                continue;
            q->open = false;
            under_way--;
            heard_s = now_s();
            if (++answered % 100 == 0 || ms)
                printf("answered %u\n", answered);
            pause_ms(ms);
        } else if (wc.status != MRD_WC_SUCCESS) {
            fprintf(stderr, "talk: %s\n", mrd_wc_status_str(wc.status));
            under_way -= questions[wc.wr_id].open;
            anew += questions[wc.wr_id].open;
            questions[wc.wr_id].open = false;
        }
    }
    printf("answered %u anew %u\n", answered, anew);
    return answered == messages ? 0 : 1;
}

int main(int argc, char **argv)
{
    signal(SIGTERM, stop);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 4 && !strcmp(argv[1], "serve"))
        return serve((uint16_t)atoi(argv[2]), atof(argv[3]));
    if ((argc == 6 || argc == 7) && !strcmp(argv[1], "ask"))
        return ask(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]),
                   (unsigned)atoi(argv[5]), argc == 7 ? (uint32_t)atoi(argv[6]) : 0);
    fprintf(stderr,
            "usage: talk serve PORT SECONDS | ask ADDRESS:PORT MESSAGES WINDOW PAUSE_MS [PATHS]\n");
    return 2;
}
