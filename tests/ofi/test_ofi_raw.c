/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end is a context of mrd that is no endpoint: it refuses everything, answers what it was
 * not asked, or sends noise.
 */
#include "pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrd/mrd.h"
#include "transport/adapters/ofi/wire.h"

enum { KEY = 3, RECEIVES = 64, BUFFER = 20000, OUT = 4096, LONG = 100000, NOISE = 3000 };

struct raw {
    struct mrd_context *context;
    struct mrd_pd *pd;
    struct mrd_cq *cq;
    struct mrd_qp *messages, *memory;
    struct mrd_mr *mr;
    struct mrd_ah *ah;
    uint8_t out[OUT], in[RECEIVES][BUFFER];
    fi_addr_t to; /* it, at the endpoint */
};

static void raw_close(void *raw)
{
    struct raw *r = raw;

    if (r->pd) {
        assert_int_equal(mrd_destroy_ah(r->ah), 0);
        assert_int_equal(mrd_destroy_qp(r->messages), 0);
        assert_int_equal(mrd_destroy_qp(r->memory), 0);
        assert_int_equal(mrd_dereg_mr(r->mr), 0);
        assert_int_equal(mrd_destroy_cq(r->cq), 0);
        assert_int_equal(mrd_dealloc_pd(r->pd), 0);
    }
    assert_int_equal(mrd_close_device(r->context), 0);
}

/* Opens the endpoint, too. It is closed after the test. */
static struct raw *raw_context(struct end *e)
{
    struct mrd_context_attr attr = {.address = "127.0.0.1"};
    struct sockaddr_in name = {.sin_family = AF_INET};
    struct raw *r = zeros(sizeof(*r));
    char text[MRD_ADDRESS_MAX];

    end_open(e, &(struct end_options){0}, NULL);
    r->context = mrd_open_device(NULL, &attr);
    assert_non_null(r->context);
    assert_int_equal(mrd_query_address(r->context, text, sizeof(text)), 0);
    name.sin_port = htons((uint16_t)atoi(strrchr(text, ':') + 1));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(fi_av_insert(e->av, &name, 1, &r->to, 0, NULL), 1);
    kit_own(r, raw_close);
    return r;
}

static void post_receive(struct raw *r, uint64_t i)
{
    struct mrd_sge sge = {(uintptr_t)r->in[i], BUFFER, r->mr->lkey};
    struct mrd_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(mrd_post_recv(r->messages, &wr, &bad), 0);
}

/* With the queue pairs that an endpoint has. */
static struct raw *raw_open(struct end *e)
{
    struct mrd_qp_init_attr qp = {.cap = {.max_send_wr = 64, .max_recv_wr = RECEIVES}};
    struct raw *r = raw_context(e);
    char text[MRD_ADDRESS_MAX];

    r->pd = mrd_alloc_pd(r->context);
    r->cq = mrd_create_cq(r->context, 512, NULL);
    qp.send_cq = qp.recv_cq = r->cq;
    r->messages = mrd_create_qp(r->pd, &qp);
    r->memory = mrd_create_qp(r->pd, &qp);
    r->mr = mrd_reg_mr(r->pd, r, sizeof(*r), MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_READ);
    assert_non_null(r->mr);
    for (uint64_t i = 0; i < RECEIVES; i++)
        post_receive(r, i);
    snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(end_name(e->ep).sin_port));
    r->ah = mrd_create_ah(r->pd, text);
    assert_non_null(r->ah);
    return r;
}

/* Waits for the next completion of its sends, or of its receives; a receive is posted again. */
static struct mrd_wc raw_next(struct raw *r, bool of_send, struct mrd_ofi_wire_head *head)
{
    uint64_t since_ns = end_now_ns();
    struct mrd_wc wc;

    for (;;) {
        ends_drive();
        end_patience(since_ns);
        if (mrd_poll_cq(r->cq, 1, &wc) != 1)
            continue;
        if (wc.opcode >= MRD_WC_RECV) {
            if (head)
                memcpy(head, r->in[wc.wr_id], sizeof(*head));
            post_receive(r, wc.wr_id);
        }
        if (of_send == (wc.opcode < MRD_WC_RECV))
            return wc;
    }
}

static struct mrd_ofi_wire_head raw_hear(struct raw *r)
{
    struct mrd_ofi_wire_head head;

    (void)raw_next(r, false, &head);
    return head;
}

static void raw_say(struct raw *r, struct mrd_ofi_wire_head head, const void *more, uint32_t bytes)
{
    struct mrd_sge sge = {(uintptr_t)r->out, (uint32_t)sizeof(head) + bytes, r->mr->lkey};
    struct mrd_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = MRD_WR_SEND,
                             .send_flags = MRD_SEND_SIGNALED,
                             .ud = {.ah = r->ah, .remote_qpn = MRD_FIRST_QP_NUM}};
    struct mrd_send_wr *bad;

    if (!head.version)
        head.version = MRD_OFI_WIRE_VERSION;
    memcpy(r->out, &head, sizeof(head));
    if (bytes)
        memcpy(r->out + sizeof(head), more, bytes);
    assert_int_equal(mrd_post_send(r->messages, &wr, &bad), 0);
    assert_int_equal(raw_next(r, true, NULL).status, MRD_WC_SUCCESS);
}

/* ------------------------------------------------------------------------------------------- tests */

/* Also what has to ask for a key first. */
TEST_F(end, ofi_raw__nobody_receives)
{
    static const enum fi_op ops[] = {FI_SUM, FI_MAX};
    struct raw *r = raw_context(self);
    uint64_t word = 1, old;

    POST(fi_send(self->ep, &word, sizeof(word), NULL, r->to, &word));
    end_fails(self->tx, &word, FI_ECONNREFUSED);
    POST(fi_write(self->ep, &word, sizeof(word), NULL, r->to, 0, KEY, &word));
    end_fails(self->tx, &word, FI_ECONNREFUSED);
    for (unsigned i = 0; i < 2; i++) {
        POST(fi_fetch_atomic(self->ep, &word, 1, NULL, &old, NULL, r->to, 0, KEY, FI_UINT64, ops[i],
                             &old));
        end_fails(self->tx, &old, FI_ECONNREFUSED);
    }
}

/* Says that it is done with an operation. */
static void raw_done(struct raw *r, uint32_t answer, uint64_t cookie)
{
    raw_say(r, (struct mrd_ofi_wire_head){.what = MRD_OFI_DONE, .answer = answer, .tag = cookie},
            NULL, 0);
}

/* One for an operation of the process that had this address before names another cookie. */
TEST_F(end, ofi_raw__answers_to_an_earlier_life)
{
    struct raw *r = raw_open(self);
    uint8_t *out = zeros(LONG);

    POST(fi_send(self->ep, out, LONG, NULL, r->to, out));
    struct mrd_ofi_wire_head head = raw_hear(r);
    assert_int_equal(head.what, MRD_OFI_MSG);
    assert_true(head.flags & MRD_OFI_PULL);
    raw_done(r, head.id, head.answer + 1);
    end_silent(self->tx);
    raw_done(r, head.id, head.answer);
    end_ok(self->tx, out);
}

/* An operation that waits for a key is not done with by an answer to a message. */
TEST_F(end, ofi_raw__answers_to_no_question)
{
    struct raw *r = raw_open(self);
    uint8_t *out = zeros(LONG);

    POST(fi_send(self->ep, out, LONG, NULL, r->to, out));
    struct mrd_ofi_wire_head head = raw_hear(r);
    raw_done(r, head.id, head.answer);
    end_ok(self->tx, out);
    POST(fi_write(self->ep, out, 8, NULL, r->to, 0, KEY, self));
    assert_int_equal(raw_hear(r).what, MRD_OFI_ASK);
    for (uint32_t i = 0; i < 64; i++) { /* numbers are given out again, with another generation */
        raw_done(r, (head.id & ~0xfffffu) + i, head.answer);
        raw_done(r, (head.id & ~0xfffffu) + i + (1 << 20), head.answer);
    }
    end_silent(self->tx);
    kit_disown(r);
    raw_close(r);
    assert_true(end_next(self->tx).err != 0);
}

/*
 * What it is asked it cannot answer, if it is of another version: it refuses, or says what this
 * version does not know, which is refused.
 */
TEST_F(end, ofi_raw__another_version)
{
    const struct mrd_ofi_wire_head says[] = {
        {.version = MRD_OFI_WIRE_VERSION + 1, .what = MRD_OFI_REFUSED},
        {.version = MRD_OFI_WIRE_VERSION + 1, .what = MRD_OFI_TELL, .tag = KEY},
    };
    struct raw *r = raw_open(self);
    uint8_t *out = zeros(LONG);

    for (unsigned i = 0; i < 2; i++) {
        POST(fi_write(self->ep, out, 8, NULL, r->to, 0, KEY, out));
        assert_int_equal(raw_hear(r).what, MRD_OFI_ASK);
        POST(fi_send(self->ep, out, LONG, NULL, r->to, out));
        assert_int_equal(raw_hear(r).what, MRD_OFI_MSG);
        end_silent(self->tx);
        raw_say(r, says[i], NULL, 0);
        end_fails(self->tx, out, FI_EOPNOTSUPP);
        end_fails(self->tx, out, FI_EOPNOTSUPP);
    }
    struct mrd_ofi_wire_head head = raw_hear(r);
    assert_int_equal(head.what, MRD_OFI_REFUSED);
    assert_int_equal(head.version, MRD_OFI_WIRE_VERSION);
}

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static uint64_t draw_size(void)
{
    static const uint64_t size[] = {0,
                                    1,
                                    8,
                                    24,
                                    100,
                                    1 << 20,
                                    1 << 30,
                                    (1ull << 30) + 1,
                                    UINT32_MAX,
                                    UINT64_MAX,
                                    UINT64_MAX - 7,
                                    1ull << 63};

    return size[draw(sizeof(size) / sizeof(size[0]))];
}

static void say_noise(struct raw *r)
{
    struct mrd_ofi_wire_head head = {.version = draw(50) ? 0 : 2,
                                     .what = (uint8_t)draw(9),
                                     .flags = (uint16_t)draw(256),
                                     .id = draw(2) ? draw(UINT32_MAX) : 1 << 20,
                                     .tag = draw(6),
                                     .data = draw_size(),
                                     .answer = draw(2) ? draw(10) : (1u << 20) + draw(70),
                                     .num = draw(2) ? draw(12) : draw(UINT32_MAX)};
    uint32_t bytes = draw(300);
    uint8_t more[300];

    for (uint32_t i = 0; i < sizeof(more); i++)
        more[i] = (uint8_t)draw(256);
    head.bytes = draw(2) ? bytes : draw_size();
    if (head.flags & MRD_OFI_PULL && draw(2)) { /* ranges that may be */
        head.num = draw(9);
        bytes = head.num * (uint32_t)sizeof(struct mrd_ofi_wire_range);
        head.bytes = 0;
        for (uint32_t i = 0; i < head.num; i++) {
            struct mrd_ofi_wire_range range = {(uintptr_t)r->out, draw(3) ? draw(100) : draw_size(),
                                               draw(2) ? r->mr->rkey : draw(UINT32_MAX), 0};

            memcpy(more + i * sizeof(range), &range, sizeof(range));
            head.bytes += range.bytes;
        }
    }
    raw_say(r, head, more, bytes);
}

/* Something is under way all the time. */
static void post_something(struct end *e, struct raw *r, uint8_t *memory)
{
    switch (draw(6)) {
    case 0:
        (void)fi_trecv(e->ep, memory, draw(2) ? 4000 : draw(50), NULL, FI_ADDR_UNSPEC, draw(6),
                       draw(8), memory);
        break;
    case 1:
        (void)end_recvmsg(e, memory, 4000, FI_ADDR_UNSPEC, memory, draw(2) ? FI_MULTI_RECV : 0);
        break;
    case 2:
        (void)fi_write(e->ep, memory, draw(200), NULL, r->to, draw(100), draw(6), memory);
        break;
    case 3:
        (void)fi_send(e->ep, memory, 40000, NULL, r->to, memory);
        break;
    case 4:
        (void)fi_fetch_atomic(e->ep, memory, 1, NULL, memory + 64, NULL, r->to, 0, draw(6),
                              FI_UINT32, FI_SUM, memory);
        break;
    default:
        (void)fi_cancel(&e->ep->fid, memory);
        break;
    }
}

/* Whatever it says is dropped, or answered; nothing else breaks. */
TEST_F(end, ofi_raw__noise)
{
    static uint64_t target[1024];
    const char *text = getenv("MRD_TEST_SEED");
    uint8_t *memory = zeros(1 << 16);
    struct entry entry;

    seed = text ? strtoull(text, NULL, 0) : 12345;
    print_message("MRD_TEST_SEED=%llu\n", (unsigned long long)seed);
    struct raw *r = raw_open(self);
    end_register(self, target, sizeof(target), REGION_ACCESS, KEY);
    for (unsigned i = 0; i < NOISE; i++) {
        post_something(self, r, memory);
        say_noise(r);
        while (end_take(self->rx, &entry) || end_take(self->tx, &entry))
            continue;
    }
    end_close(self);
}
