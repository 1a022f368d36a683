/* SPDX-License-Identifier: BSD-2-Clause */
/* What the stranger sends: one function a kind. */
#include <string.h>

#include "tests/support/stranger.h"

enum {
    GARBAGE_MOST = 200,
    FLIPS_MOST = 3,
    PSN_MOST = 64,
    LIMIT = 1024,
    TYPES = 8,
    GUESSES = 4, /* one in so many values is a guess, although it was told one */
    NEAR = 4,
};

/* A field of any width with random bytes. */
#define GUESS(st, field) forge_garbage(&(st)->rng, (uint8_t *)&(field), sizeof(field))

static uint32_t below(struct stranger *st, uint32_t bound)
{
    return mrd_rng_below(&st->rng, bound);
}

static bool one_in(struct stranger *st, uint32_t n)
{
    return below(st, n) == 0;
}

/* Any one of what the host told, or NULL. */
static const struct stranger_told *some_told(struct stranger *st, uint32_t host)
{
    uint32_t num = st->num_told[host] < STRANGER_TOLD_MAX ? st->num_told[host] : STRANGER_TOLD_MAX;

    return num ? stranger_told(st, host, below(st, num)) : NULL;
}

/* An epoch that the host told, or one a little earlier or later, or any. */
static uint32_t some_epoch(struct stranger *st, uint32_t host)
{
    const struct stranger_told *told = some_told(st, host);
    uint32_t epoch = 0;

    if (!told || one_in(st, GUESSES))
        GUESS(st, epoch);
    else if (told->live_epoch && told->live_epoch != MRD_WIRE_EPOCH_NONE && !one_in(st, 3))
        epoch = told->live_epoch;
    else
        epoch = told->head.epoch;
    return one_in(st, 2) ? epoch : epoch + below(st, 2 * NEAR) - NEAR;
}

/* A header as of host `as`, to host `to`. `epoch_of`: the host whose epoch it names. */
static struct mrd_wire_head head_as(struct stranger *st, uint8_t type, uint32_t to, uint32_t as,
                                    uint32_t epoch_of)
{
    const struct stranger_told *as_told = some_told(st, as), *to_told = some_told(st, to);
    struct mrd_wire_head head = {.type = type, .reply = mrd_sim_address(as, 0).port};

    GUESS(st, head.src_inc);
    GUESS(st, head.dst_inc);
    GUESS(st, head.stamp);
    GUESS(st, head.cookie);
    if (as_told && !one_in(st, GUESSES))
        head.src_inc = as_told->head.src_inc;
    if (to_told && !one_in(st, GUESSES))
        head.dst_inc = to_told->head.src_inc;
    if (to_told && !one_in(st, GUESSES))
        head.cookie = to_told->head.cookie;
    head.epoch = some_epoch(st, epoch_of);
    head.psn = below(st, PSN_MOST);
    return head;
}

/* From 1 us to what a packet can say at most. */
static uint64_t some_patience(struct stranger *st)
{
    return UINT64_C(1000) << below(st, 40);
}

/* ----------------------------------------------------------------------------------- leaving it */

static void send(struct stranger *st, const struct mrd_addr *from, uint32_t to, const uint8_t *data,
                 uint32_t len)
{
    stranger_send(st, from, to, data, len);
}

/*
 * Sends DATA with that header: empty, or with a message. `aimed`: a message that its queue pair would
 * take; else one that it refuses.
 */
static void send_data(struct stranger *st, const struct mrd_addr *from, uint32_t to,
                      const struct mrd_wire_head *head, bool aimed)
{
    uint8_t buf[FORGE_BYTES_MAX], payload[STRANGER_MESSAGE_MOST];
    struct mrd_wire_part part = {.op = MRD_OP_SEND, .src_qpn = 1 + below(st, 1000)};
    bool has_part = one_in(st, 2);

    memset(payload, 0xbd, sizeof(payload));
    part.len = (uint16_t)(1 + below(st, STRANGER_MESSAGE_MOST));
    part.total = part.len;
    GUESS(st, part.dst_qpn);
    GUESS(st, part.qkey);
    if (st->plan.aim && has_part)
        has_part = st->plan.aim(st->plan.arg, to, &part);
    if (one_in(st, 3)) { /* the rest of it will not come */
        part.flags = MRD_PART_MULTI;
        part.attempt = 1;
        GUESS(st, part.id);
        part.total += 1 + below(st, STRANGER_MESSAGE_MOST);
    }
    if (!aimed)
        part.qkey ^= 1 + below(st, 1000);
    if (!aimed && one_in(st, 4)) {
        part.op = MRD_OP_WRITE;
        GUESS(st, part.rkey);
        GUESS(st, part.addr);
    }
    send(st, from, to, buf, forge_data(buf, head, has_part ? &part : NULL, payload));
}

static void send_bare(struct stranger *st, const struct mrd_addr *from, uint32_t to,
                      const struct mrd_wire_head *head)
{
    uint8_t buf[FORGE_BYTES_MAX];

    send(st, from, to, buf, forge_bare(buf, head));
}

/* --------------------------------------------------------------------- as itself, and as nobody */

static bool first(struct stranger *st, uint32_t to, uint32_t as)
{
    struct mrd_addr from = stranger_nobody(st->num_nobodies++);
    struct mrd_wire_head head = {.type = MRD_WIRE_DATA,
                                 .flags = MRD_WIRE_FIRST_CONTACT | MRD_WIRE_ACK_REQUEST,
                                 .peer_timeout_ns = some_patience(st)};

    /* A third comes from the machine of a host, as if from others there. */
    if (one_in(st, 3)) {
        from = mrd_sim_address(as, 0);
        from.port = (1 << 20) + below(st, 15 << 20); /* no host's own */
    }
    head.reply = from.port;
    GUESS(st, head.src_inc);
    GUESS(st, head.epoch);
    GUESS(st, head.stamp);
    if (one_in(st, 8)) {
        const struct stranger_told *told = some_told(st, to);

        head.flags |= MRD_WIRE_COOKIE;
        GUESS(st, head.cookie);
        if (told) {
            head.cookie = told->head.cookie;
            head.dst_inc = told->head.src_inc;
        }
    }
    send_data(st, &from, to, &head, true);
    return true;
}

void stranger_hello(struct stranger *st, uint32_t own, uint32_t to)
{
    struct mrd_wire_head head = st->own[own].head;
    uint8_t buf[FORGE_BYTES_MAX];

    head.type = MRD_WIRE_DATA;
    head.flags = MRD_WIRE_FIRST_CONTACT | MRD_WIRE_ACK_REQUEST;
    head.psn = st->own[own].psn;
    head.peer_timeout_ns = SEC_NS;
    send(st, &st->own[own].addr, to, buf, forge_data(buf, &head, NULL, NULL));
}

/* Whatever has an answer: a first contact, a packet of no space that anybody knows, a wrong life. */
static bool ask(struct stranger *st, uint32_t to)
{
    uint32_t own = below(st, STRANGER_OWN);
    struct mrd_wire_head head = st->own[own].head;

    if (one_in(st, 2)) {
        stranger_hello(st, own, to);
        return true;
    }
    head.type = one_in(st, 8) ? (uint8_t)(1 + below(st, TYPES)) : MRD_WIRE_DATA;
    head.flags = MRD_WIRE_ACK_REQUEST;
    if (one_in(st, 2))
        GUESS(st, head.dst_inc);
    if (one_in(st, 2))
        GUESS(st, head.epoch);
    if (head.type == MRD_WIRE_DATA)
        send_data(st, &st->own[own].addr, to, &head, false);
    else
        send_bare(st, &st->own[own].addr, to, &head);
    return true;
}

/* As a peer of its own, with what the host told this life of its. */
static bool go_on(struct stranger *st, uint32_t to)
{
    const struct stranger_told *told = some_told(st, to);
    struct stranger_own *own = told ? &st->own[told->own] : NULL;

    if (!told || memcmp(&told->head.dst_inc, &own->head.src_inc, sizeof(own->head.src_inc)) != 0)
        return false;
    struct mrd_wire_head head = own->head;
    head.type = MRD_WIRE_DATA;
    head.flags = MRD_WIRE_ACK_REQUEST;
    head.dst_inc = told->head.src_inc;
    head.peer_timeout_ns = some_patience(st);
    if (told->head.type == MRD_WIRE_CHALLENGE) {
        head.flags |= MRD_WIRE_FIRST_CONTACT | MRD_WIRE_COOKIE;
        head.cookie = told->head.cookie;
    }
    head.psn = own->psn++;
    GUESS(st, head.stamp);
    send_data(st, &own->addr, to, &head, false);
    return true;
}

/* -------------------------------------------------------------------------------- what it has seen */

static const struct stranger_kept *some_kept(struct stranger *st)
{
    bool is_first = st->num_first && (one_in(st, 2) || !st->num_other);
    uint32_t num = is_first ? st->num_first : st->num_other;
    const struct stranger_kept *ring = is_first ? st->first : st->other;

    return num ? &ring[below(st, num < STRANGER_KEPT_MAX ? num : STRANGER_KEPT_MAX)] : NULL;
}

/*
 * To the address that it was for; its host may have left it. Moved: from where no host is. Who sends
 * from a host's machine what he saw may end all that he sees.
 */
static bool replay(struct stranger *st, bool moved)
{
    const struct stranger_kept *kept = some_kept(st);

    if (!kept || st->cut)
        return false;
    struct mrd_addr from = kept->from;
    if (moved)
        from = one_in(st, 2) ? stranger_address(below(st, STRANGER_OWN))
                             : stranger_nobody(st->num_nobodies++);
    return stranger_send_to(st, &from, &kept->to, kept->data, kept->len) == 0;
}

static bool garbage(struct stranger *st, uint32_t to, uint32_t as)
{
    const struct stranger_kept *kept = one_in(st, 2) ? some_kept(st) : NULL;
    struct mrd_addr from =
        one_in(st, 2) ? mrd_sim_address(as, 0) : stranger_nobody(st->num_nobodies++);
    uint8_t buf[FORGE_BYTES_MAX];
    uint32_t len = below(st, GARBAGE_MOST);

    forge_garbage(&st->rng, buf, len);
    if (kept && kept->len <= sizeof(buf)) {
        /* Only in the header: a payload may have no check. */
        uint32_t head_len = kept->head_len;

        len = one_in(st, 2) ? kept->len : below(st, kept->len + 1);
        memcpy(buf, kept->data, kept->len);
        for (uint32_t n = 1 + below(st, FLIPS_MOST); n > 0; n--)
            buf[below(st, head_len)] ^= (uint8_t)(1u << below(st, 8));
        if (memcmp(buf, kept->data, head_len) == 0) /* that would be a copy, sent to anybody */
            buf[0] ^= 1;
    } else if (len > 0 && one_in(st, 2)) {
        struct mrd_wire_head head = {.type = MRD_WIRE_DATA};
        uint8_t valid[FORGE_BYTES_MAX];

        (void)forge_bare(valid, &head);
        buf[0] = (uint8_t)((valid[0] & 0xf0) | below(st, TYPES)); /* the version that is ours */
    }
    send(st, &from, to, buf, len);
    return true;
}

/* -------------------------------------------------------------------------------- as another host */

static bool data_as(struct stranger *st, uint32_t to, uint32_t as, bool is_first)
{
    struct mrd_wire_head head = head_as(st, MRD_WIRE_DATA, to, as, as);
    struct mrd_addr from = mrd_sim_address(as, 0);

    head.flags = MRD_WIRE_ACK_REQUEST;
    if (is_first) {
        head.flags |= MRD_WIRE_FIRST_CONTACT;
        head.peer_timeout_ns = some_patience(st);
        if (one_in(st, 2))
            head.flags |= MRD_WIRE_COOKIE;
        if (one_in(st, 3))
            memset(&head.dst_inc, 0, sizeof(head.dst_inc));
    }
    send_data(st, &from, to, &head, true);
    return true;
}

static bool ack_as(struct stranger *st, uint32_t to, uint32_t as)
{
    struct mrd_wire_head head = head_as(st, MRD_WIRE_ACK, to, as, to);
    struct mrd_wire_ack ack = {.cum = 1 + below(st, PSN_MOST)};
    struct mrd_addr from = mrd_sim_address(as, 0);
    uint8_t buf[FORGE_BYTES_MAX];

    GUESS(st, ack.serial);
    if (one_in(st, 2))
        ack.serial = below(st, LIMIT);
    ack.psn_limit = ack.cum + below(st, LIMIT);
    ack.live_epoch = one_in(st, 4) ? MRD_WIRE_EPOCH_NONE : some_epoch(st, as);
    send(st, &from, to, buf, forge_ack(buf, &head, &ack));
    return true;
}

static bool bare_as(struct stranger *st, uint8_t type, uint32_t to, uint32_t as)
{
    struct mrd_wire_head head = head_as(st, type, to, as, to);
    struct mrd_addr from = mrd_sim_address(as, 0);

    head.live_epoch = one_in(st, 3) ? MRD_WIRE_EPOCH_NONE : some_epoch(st, as);
    if (one_in(st, 2))
        GUESS(st, head.up_usec);
    GUESS(st, head.echo_stamp);
    send_bare(st, &from, to, &head);
    return true;
}

/* ----------------------------------------------------------------------------------------- driving */

static const char *const names[STRANGER_KINDS] = {
    [STRANGER_FIRST] = "first",         [STRANGER_ASK] = "ask",     [STRANGER_GO_ON] = "go-on",
    [STRANGER_REPLAY] = "replay",       [STRANGER_MOVED] = "moved", [STRANGER_TAKE] = "take",
    [STRANGER_DATA] = "data",           [STRANGER_ACK] = "ack",     [STRANGER_RESET] = "reset",
    [STRANGER_CHALLENGE] = "challenge", [STRANGER_BUSY] = "busy",   [STRANGER_GARBAGE] = "garbage",
};

const char *stranger_kind_name(enum stranger_kind kind)
{
    return names[kind];
}

static bool act(struct stranger *st, enum stranger_kind kind, uint32_t to, uint32_t as)
{
    switch (kind) {
    case STRANGER_FIRST:
        return first(st, to, as);
    case STRANGER_ASK:
        return ask(st, to);
    case STRANGER_GO_ON:
        return go_on(st, to);
    case STRANGER_REPLAY:
    case STRANGER_MOVED:
        return replay(st, kind == STRANGER_MOVED);
    case STRANGER_TAKE:
    case STRANGER_DATA:
        return data_as(st, to, as, kind == STRANGER_TAKE);
    case STRANGER_ACK:
        return ack_as(st, to, as);
    case STRANGER_RESET:
        return bare_as(st, MRD_WIRE_RESET, to, as);
    case STRANGER_CHALLENGE:
        return bare_as(st, MRD_WIRE_CHALLENGE, to, as);
    case STRANGER_BUSY:
        return bare_as(st, MRD_WIRE_BUSY, to, as);
    default:
        return garbage(st, to, as);
    }
}

bool stranger_act(struct stranger *st, enum stranger_kind kind, uint32_t to, uint32_t as)
{
    bool sent = act(st, kind, to, as);

    st->sent[kind] += sent;
    return sent;
}

void stranger_all_kinds(struct stranger_plan *plan)
{
    for (unsigned kind = 0; kind < STRANGER_KINDS; kind++)
        plan->weight[kind] = 1;
}

static void draw_next(struct stranger *st)
{
    uint64_t now_ns = mrd_sim_now(st->sim), period_ns = 2 * st->plan.period_ns;

    st->next_ns = UINT64_MAX;
    if (st->plan.budget > 0)
        st->next_ns = now_ns + 1 + (period_ns ? mrd_rng_u64(&st->rng) % period_ns : 0);
}

void stranger_start(struct stranger *st, const struct stranger_plan *plan)
{
    st->plan = *plan;
    draw_next(st);
}

static enum stranger_kind draw_kind(struct stranger *st)
{
    uint32_t sum = 0, dice;
    unsigned kind = 0;

    for (unsigned i = 0; i < STRANGER_KINDS; i++)
        sum += st->plan.weight[i];
    assert_true(sum > 0);
    dice = below(st, sum);
    while (dice >= st->plan.weight[kind])
        dice -= st->plan.weight[kind++];
    return (enum stranger_kind)kind;
}

void stranger_go(struct stranger *st)
{
    if (mrd_sim_now(st->sim) < st->next_ns)
        return;
    for (uint32_t n = 1 + (st->plan.burst ? below(st, st->plan.burst) : 0);
         n > 0 && st->plan.budget > 0; n--) {
        uint32_t to = below(st, st->hosts), as = below(st, st->hosts);

        st->plan.budget--;
        (void)stranger_act(st, draw_kind(st), to, as);
    }
    draw_next(st);
}
