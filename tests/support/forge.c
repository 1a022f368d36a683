/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/forge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXCHANGE_BYTES = 100,
    BAIT_BYTES = 1 << 20,
    MEMORY_SLACK = 1 << 16, /* also compared: memory beyond what the world handed out */
};

/* ----------------------------------------------------------------------------------------- tape */

static void record(struct forge_tape *tape, const struct mrd_sim_datagram *datagram)
{
    if (tape->num == tape->cap) {
        tape->cap = tape->cap ? 2 * tape->cap : 256;
        tape->packets = realloc(tape->packets, tape->cap * sizeof(*tape->packets));
        assert_non_null(tape->packets);
    }

    struct forge_packet *packet = &tape->packets[tape->num++];

    *packet = (struct forge_packet){.from = datagram->from,
                                    .to = datagram->to,
                                    .len = datagram->len,
                                    .at_ns = mrd_sim_now(tape->w->sim),
                                    .data = malloc(datagram->len)};
    assert_non_null(packet->data);
    memcpy(packet->data, datagram->data, datagram->len);
}

static enum mrd_sim_verdict tap(void *arg, struct mrd_sim_datagram *datagram)
{
    struct forge_tape *tape = arg;

    record(tape, datagram);
    if (tape->cut[datagram->from][datagram->to])
        return MRD_SIM_DROP;
    return tape->edit ? tape->edit(tape->arg, datagram) : MRD_SIM_PASS;
}

struct sim_world *forge_begin(struct forge_tape *tape, const struct sim_options *options)
{
    *tape = (struct forge_tape){.w = sim_fabric_world(options)};
    kit_disown(tape->w); /* it is destroyed with the tape */
    mrd_sim_set_tap(tape->w->sim, tap, tape);
    return tape->w;
}

void forge_end(struct forge_tape *tape)
{
    struct sim_world *w = tape->w;

    mrd_sim_set_tap(w->sim, NULL, NULL);
    for (uint32_t i = 0; i < tape->num; i++)
        free(tape->packets[i].data);
    free(tape->packets);
    sim_world_destroy(w);
}

FIXTURE_SETUP(forge_tape)
{
}

FIXTURE_TEARDOWN(forge_tape)
{
    if (self->w)
        forge_end(self);
}

void forge_exchange(struct sim_world *w, uint32_t from, uint32_t to)
{
    uint32_t message = sim_send(w, from, to, EXCHANGE_BYTES);

    sim_run_until_complete(w, 2 * MSEC_NS);
    assert_int_equal(w->messages[message].status, MRD_WC_SUCCESS);
}

void forge_exchange_both(struct sim_world *w, uint32_t a, uint32_t b)
{
    forge_exchange(w, a, b);
    forge_exchange(w, b, a);
}

uint32_t forge_bait(struct sim_world *w, uint32_t host)
{
    sim_post_recvs(w, host, 0, 1, BAIT_BYTES);
    return w->num_receives - 1;
}

struct sim_world *forge_acquainted(struct forge_tape *tape)
{
    struct sim_world *w = forge_begin(
        tape, &(struct sim_options){.hosts = 3, .recv_bytes = BAIT_BYTES, .no_challenge = true});

    forge_exchange_both(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    forge_bait(w, HOST_1);
    return w;
}

void forge_expect_failed(const struct sim_world *w, uint32_t message)
{
    sim_expect_sent(w, message, MRD_WC_RETRY_EXC_ERR);
}

void forge_cut(struct forge_tape *tape, uint32_t a, uint32_t b, bool cut)
{
    tape->cut[a][b] = tape->cut[b][a] = cut;
}

static bool is_of(const struct forge_packet *packet, uint32_t from, uint32_t to, uint8_t type)
{
    return packet->from == from && packet->to == to && (packet->data[0] & 15) == type;
}

uint32_t forge_count(const struct forge_tape *tape, uint32_t from, uint32_t to, uint8_t type)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < tape->num; i++)
        n += is_of(&tape->packets[i], from, to, type);
    return n;
}

const struct forge_packet *forge_find(const struct forge_tape *tape, uint32_t from, uint32_t to,
                                      uint8_t type, int index)
{
    uint32_t num = forge_count(tape, from, to, type);
    uint32_t wanted = index < 0 ? num - 1 : (uint32_t)index;

    for (uint32_t i = 0; i < tape->num; i++) {
        if (is_of(&tape->packets[i], from, to, type) && wanted-- == 0)
            return &tape->packets[i];
    }
    test_fail(tape->w->options.seed, "no packet %d of type %u from host %u to %u among %u", index,
              type, from, to, num);
}

struct mrd_wire_head forge_head(const struct forge_packet *packet)
{
    struct mrd_wire_head head = {0};

    assert_int_equal(mrd_wire_get(packet->data, packet->len, &head), MRD_WIRE_OK);
    return head;
}

bool forge_part(const struct forge_packet *packet, struct mrd_wire_part *part)
{
    struct mrd_wire_head head = forge_head(packet);
    uint32_t at = head.parts_at;

    memset(part, 0, sizeof(*part));
    return head.type == MRD_WIRE_DATA && mrd_wire_get_part(packet->data, &at, head.head_len, part);
}

/* ---------------------------------------------------------------------------------------- forge */

static uint32_t incarnation_of(const struct forge_tape *tape, uint32_t host)
{
    for (uint32_t i = tape->num; i-- > 0;) {
        struct mrd_wire_head head = {0};

        if (tape->packets[i].from == host) {
            head = forge_head(&tape->packets[i]);
            /* A reset carries the incarnation that was asked for, which may be an earlier one. */
            if (head.type != MRD_WIRE_RESET)
                return head.src_inc;
        }
    }
    test_fail(tape->w->options.seed, "host %u sent nothing", host);
}

struct mrd_wire_head forge_as(const struct forge_tape *tape, uint32_t from, uint32_t to)
{
    struct mrd_wire_head head = {.type = MRD_WIRE_DATA,
                                 .src_inc = incarnation_of(tape, from),
                                 .dst_inc = incarnation_of(tape, to),
                                 .reply = from + 1};

    for (uint32_t i = 0; i < tape->num; i++) {
        if (!is_of(&tape->packets[i], from, to, MRD_WIRE_DATA))
            continue;
        struct mrd_wire_head sent = forge_head(&tape->packets[i]);
        if (sent.src_inc != head.src_inc || sent.epoch < head.epoch)
            continue;
        if (sent.epoch > head.epoch || sent.psn >= head.psn)
            head.psn = sent.psn + 1;
        head.epoch = sent.epoch;
    }
    return head;
}

struct mrd_wire_part forge_send_part(const struct sim_world *w, uint32_t to, uint16_t len)
{
    return (struct mrd_wire_part){.op = MRD_OP_SEND,
                                  .len = len,
                                  .total = len,
                                  .dst_qpn = w->node[to].qp[0]->qp_num,
                                  .src_qpn = 99,
                                  .qkey = 0x1000};
}

uint32_t forge_data(uint8_t *buf, const struct mrd_wire_head *head,
                    const struct mrd_wire_part *part, const uint8_t *payload)
{
    uint32_t len = part ? part->len : 0;
    struct mrd_wire_head full = *head;

    full.payload_check = mrd_wire_payload_check(payload, len);
    uint8_t *end = mrd_wire_put_head(buf, &full);
    if (part)
        end = mrd_wire_put_part(end, part);
    mrd_wire_seal(buf, end);
    if (len)
        memcpy(end, payload, len);
    return (uint32_t)(end - buf) + len;
}

uint32_t forge_ack(uint8_t *buf, const struct mrd_wire_head *head, const struct mrd_wire_ack *ack)
{
    struct mrd_wire_head full = *head;

    full.type = MRD_WIRE_ACK;
    full.psn = ack->cum;
    uint8_t *end = mrd_wire_put_ack(mrd_wire_put_head(buf, &full), ack);
    mrd_wire_seal(buf, end);
    return (uint32_t)(end - buf);
}

uint32_t forge_bare(uint8_t *buf, const struct mrd_wire_head *head)
{
    uint8_t *end = mrd_wire_put_head(buf, head);

    mrd_wire_seal(buf, end);
    return (uint32_t)(end - buf);
}

void forge_reseal(uint8_t *data)
{
    mrd_wire_seal(data, data + (data[2] << 8 | data[3]));
}

void forge_garbage(struct mrd_rng *rng, uint8_t *buf, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        buf[i] = (uint8_t)mrd_rng_below(rng, 256);
}

uint64_t forge_drops(struct sim_world *w, uint32_t host)
{
    static const char *const names[] = {"rx_drop_truncated", "rx_drop_version",  "rx_drop_type",
                                        "rx_drop_length",    "rx_drop_checksum", "rx_drop_sealed"};
    uint64_t sum = 0;

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        sum += sim_counter(w, host, names[i]);
    return sum;
}

void forge_inject(struct sim_world *w, uint32_t from, uint32_t to, const void *data, uint32_t len)
{
    assert_int_equal(mrd_sim_inject(w->sim, from, to, data, len, mrd_sim_now(w->sim)), 0);
}

void forge_send(struct sim_world *w, uint32_t from, uint32_t to, const struct mrd_wire_head *head,
                const struct mrd_wire_part *part)
{
    uint8_t buf[FORGE_BYTES_MAX], payload[FORGE_BYTES_MAX] = {1};

    forge_inject(w, from, to, buf, forge_data(buf, head, part, payload));
}

void forge_replay(struct sim_world *w, const struct forge_packet *packet)
{
    forge_inject(w, packet->from, packet->to, packet->data, packet->len);
}

/* -------------------------------------------------------------------------------------- changes */

struct forge_state forge_state(struct sim_world *w, uint32_t host)
{
    struct sim_node *node = &w->node[host];
    struct forge_state s = {0};

    sim_poll(w);
    s.num_counters = mrd_query_counters(node->context, s.counters, FORGE_COUNTERS_MAX);
    assert_in_range(s.num_counters, 1, FORGE_COUNTERS_MAX);
    s.memory = mrd_wire_payload_check(node->arena, (uint32_t)(node->arena_used + MEMORY_SLACK));
    s.events = node->unreachable + node->restarted;
    for (uint32_t i = 0; i < w->ledger.num; i++)
        s.completions += w->ledger.wrs[i].host == host && w->ledger.wrs[i].state == LEDGER_DONE;
    return s;
}

void forge_look(struct forge_tape *tape, uint32_t host)
{
    tape->before[host] = forge_state(tape->w, host);
}

static bool is_answer(const char *name)
{
    return strcmp(name, "tx_acks") == 0 || strcmp(name, "tx_wire_bytes") == 0;
}

/* What stands behind the name in the text, which is made a blank. 0: it is not there. */
static uint64_t take(char *text, const char *name)
{
    size_t len = strlen(name);

    for (char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        if ((at != text && at[-1] != ' ') || at[len] != ' ')
            continue;
        memset(at, ' ', len);
        return strtoull(at, NULL, 10);
    }
    return 0;
}

void forge_expect(struct forge_tape *tape, uint32_t host, const char *rises, ...)
{
    const struct forge_state *before = &tape->before[host], now = forge_state(tape->w, host);
    uint64_t seed = tape->w->options.seed;
    char text[256];
    va_list args;

    va_start(args, rises);
    vsnprintf(text, sizeof(text), rises, args);
    va_end(args);
    for (int i = 0; i < now.num_counters; i++) {
        const char *name = now.counters[i].name;
        uint64_t rose = now.counters[i].value - before->counters[i].value;
        uint64_t wanted = take(text, name);

        test_check(seed, rose == wanted || is_answer(name),
                   "host %u: %s rose by %" PRIu64 ", not %" PRIu64, host, name, rose, wanted);
    }
    test_check(seed, !text[strcspn(text, "_")], "no such counter: %s", text);
    test_check(seed, now.memory == before->memory, "host %u: memory changed", host);
    test_check(seed, now.completions == before->completions, "host %u: %u completions came", host,
               now.completions - before->completions);
    test_check(seed, now.events == before->events, "host %u: %u events came", host,
               now.events - before->events);
}
