/* SPDX-License-Identifier: BSD-2-Clause */
/* Straight receive, sizes, limits and silence: the rules of headers, acks and loss. One test a rule. */
#include <stdlib.h>
#include <string.h>

#include "core/engine_impl.h"
#include "tests/support/forge.h"
#include "transport/context.h"
#include "transport/sim/sim_host.h"

enum { UNIT = 4096, BYTES = 100 };

static struct sim_world *create(struct forge_tape *tape, const struct sim_options *options)
{
    struct sim_world *w = sim_world_create(options);

    forge_tape_init(tape, w);
    return w;
}

static void destroy(struct forge_tape *tape)
{
    struct sim_world *w = tape->w;

    forge_tape_fini(tape);
    sim_world_destroy(w);
}

static void exchange(struct sim_world *w, uint32_t from, uint32_t to)
{
    uint32_t message = sim_send(w, from, to, BYTES);

    sim_run_until_complete(w, 2 * MSEC_NS);
    assert_int_equal(w->messages[message].status, MRD_WC_SUCCESS);
}

/* ------------------------------------------------------------------------------- straight receive */

/* A message of 32 units that host 0 would write into host 1's memory; its segments are forged one by one. */
struct write {
    struct forge_tape tape;
    struct sim_world *w;
    struct mrd_wire_head head;
    struct mrd_wire_part part;
    uint8_t *target;
    uint8_t payload[UNIT];
};

static void write_begin(struct write *f)
{
    f->w = create(&f->tape, &(struct sim_options){.seed = test_seed(), .straight = true});
    exchange(f->w, HOST_0, HOST_1);
    sim_run(f->w, 1 * MSEC_NS);
    f->target = f->w->node[HOST_1].arena + (64 << 20);
    f->head = forge_as(&f->tape, HOST_0, HOST_1);
    f->part = (struct mrd_wire_part){.op = MRD_OP_WRITE,
                                     .flags = MRD_PART_MULTI,
                                     .len = UNIT,
                                     .dst_qpn = f->w->node[HOST_1].qp[0]->qp_num,
                                     .src_qpn = f->w->node[HOST_0].qp[0]->qp_num,
                                     .id = 1000,
                                     .total = 32 * UNIT,
                                     .rkey = f->w->node[HOST_1].mr->rkey,
                                     .addr = (uintptr_t)f->target};
}

/* Segment `unit`, all of its bytes `fill`, under the psn_add'th PSN from now. */
static uint32_t segment(struct write *f, uint8_t *buf, uint32_t unit, uint32_t psn_add, uint8_t fill)
{
    struct mrd_wire_head head = f->head;
    struct mrd_wire_part part = f->part;

    head.psn += psn_add;
    part.offset = unit * UNIT;
    memset(f->payload, fill, UNIT);
    return forge_data(buf, &head, &part, f->payload);
}

static void inject_segment(struct write *f, uint32_t unit, uint32_t psn_add, uint8_t fill)
{
    uint8_t buf[FORGE_BYTES_MAX];

    forge_inject(f->w, HOST_0, HOST_1, buf, segment(f, buf, unit, psn_add, fill));
}

static uint64_t planned(const struct write *f)
{
    return mrd_sim_get_host_stats(f->w->sim, HOST_1).planned_segments;
}

static void assert_units(const struct write *f, uint32_t unit, uint32_t num, uint8_t fill)
{
    for (uint32_t i = unit * UNIT; i < (unit + num) * UNIT; i++)
        assert_int_equal(f->target[i], fill);
}

/* That bursts of forged segments are received straight at all. */
static void sim_straight__burst_as_predicted(void **state)
{
    struct write f;
    (void)state;

    write_begin(&f);
    inject_segment(&f, 0, 0, 1);
    sim_run(f.w, 10 * USEC_NS);
    for (uint32_t i = 1; i < 4; i++)
        inject_segment(&f, i, i, 1);
    sim_run(f.w, 10 * USEC_NS);

    assert_int_equal(planned(&f), 3);
    assert_int_equal(sim_counter(f.w, HOST_1, "rx_straight"), 3);
    assert_units(&f, 0, 4, 1);
    assert_units(&f, 4, 28, 0);
    destroy(&f.tape);
}

/* Corruption that keeps the header consistent in itself, so that only its check can tell. */
static void sim_straight__corrupt_place_is_not_written(void **state)
{
    uint8_t good[FORGE_BYTES_MAX], bad[FORGE_BYTES_MAX];
    struct forge_state before;
    struct write f;
    (void)state;

    write_begin(&f);
    inject_segment(&f, 0, 0, 1);
    sim_run(f.w, 10 * USEC_NS);
    forge_look(f.w, HOST_1, &before);
    for (uint32_t i = 1; i < 4; i++) {
        uint32_t len = segment(&f, good, i, i, 2);

        assert_int_equal(segment(&f, bad, i + 8, i + 8, 2), len);
        memcpy(bad + MRD_WIRE_BASE_BYTES - 8, good + MRD_WIRE_BASE_BYTES - 8, 4); /* its check */
        forge_inject(f.w, HOST_0, HOST_1, bad, len);
    }
    sim_run(f.w, 10 * USEC_NS);

    forge_expect(f.w, HOST_1, &before, (struct forge_rise[]){{"rx_drop_checksum", 3}, {NULL, 0}});
    assert_int_equal(planned(&f), 0);
    assert_units(&f, 1, 31, 0);
    destroy(&f.tape);
}

/* Copies that come while the message is still open overwrite nothing, whatever they carry. */
static void sim_straight__late_duplicates_do_not_overwrite(void **state)
{
    struct forge_state before;
    struct write f;
    (void)state;

    write_begin(&f);
    for (uint32_t i = 0; i < 8; i++) {
        inject_segment(&f, i, i, 1);
        sim_run(f.w, 10 * USEC_NS);
    }
    forge_look(f.w, HOST_1, &before);
    for (uint32_t i = 2; i < 6; i++)
        inject_segment(&f, i, i, 2);
    sim_run(f.w, 10 * USEC_NS);
    forge_expect(f.w, HOST_1, &before, (struct forge_rise[]){{"rx_duplicates", 4}, {NULL, 0}});

    /* A burst that begins new and runs into what is there: only the new part is planned. */
    inject_segment(&f, 12, 12, 1);
    sim_run(f.w, 10 * USEC_NS);
    forge_look(f.w, HOST_1, &before);
    for (uint32_t i = 10; i < 14; i++)
        inject_segment(&f, i, i, 2);
    sim_run(f.w, 10 * USEC_NS);
    assert_units(&f, 0, 8, 1);
    assert_units(&f, 8, 2, 0);
    assert_units(&f, 10, 2, 2);
    assert_units(&f, 12, 1, 1);
    assert_units(&f, 13, 1, 2);
    assert_int_equal(sim_counter(f.w, HOST_1, "rx_duplicates"), 5);
    destroy(&f.tape);
}

/*
 * The message's segments are interleaved with other packets: PSN + 4 belongs to somebody else and
 * is new, but the unit that a run of PSNs would put there came under PSN + 5.
 */
static void sim_straight__interleaved_segments_are_not_overwritten(void **state)
{
    struct write f;
    (void)state;

    write_begin(&f);
    inject_segment(&f, 0, 0, 1);
    sim_run(f.w, 10 * USEC_NS);
    inject_segment(&f, 4, 5, 1);
    sim_run(f.w, 10 * USEC_NS);
    inject_segment(&f, 3, 3, 3);
    f.part.id++; /* the other message */
    f.part.addr += 64 * UNIT;
    inject_segment(&f, 4, 4, 4);
    sim_run(f.w, 10 * USEC_NS);

    assert_units(&f, 3, 1, 3);
    assert_units(&f, 4, 1, 1);
    assert_units(&f, 64 + 4, 1, 4);
    assert_int_equal(sim_counter(f.w, HOST_1, "rx_packets"), 5);
    destroy(&f.tape);
}

/* A segment other than predicted is moved to its place; the predicted PSN stays unreceived. */
static void sim_straight__another_segment_is_moved(void **state)
{
    struct write f;
    (void)state;

    write_begin(&f);
    inject_segment(&f, 0, 0, 1);
    sim_run(f.w, 10 * USEC_NS);
    inject_segment(&f, 1, 1, 1);
    inject_segment(&f, 6, 6, 6);
    sim_run(f.w, 10 * USEC_NS);
    assert_int_equal(sim_counter(f.w, HOST_1, "rx_straight_moved"), 1);
    assert_units(&f, 6, 1, 6);
    inject_segment(&f, 2, 2, 2);
    sim_run(f.w, 10 * USEC_NS);

    assert_units(&f, 1, 1, 1);
    assert_units(&f, 2, 1, 2);
    assert_units(&f, 6, 1, 6);
    assert_int_equal(sim_counter(f.w, HOST_1, "rx_duplicates"), 0);
    destroy(&f.tape);
}

/* A write completed, the memory is the application's again: no copy of its packets changes it. */
static void straight_copies_after_completion(bool straight)
{
    struct forge_tape tape;
    struct sim_world *w =
        create(&tape, &(struct sim_options){.seed = test_seed(), .straight = straight});
    uint32_t message = sim_write(w, HOST_0, HOST_1, 16 * UNIT), num;
    uint8_t *target = w->messages[message].target;

    sim_run_until_complete(w, 1 * MSEC_NS);
    sim_run(w, 1 * MSEC_NS);
    memset(target, 0x77, 16 * UNIT);
    num = tape.num;
    for (uint32_t i = 0; i < num; i++) {
        if (tape.packets[i].from == HOST_0)
            forge_replay(w, &tape.packets[i]);
    }
    sim_run(w, 1 * MSEC_NS);

    for (uint32_t i = 0; i < 16 * UNIT; i++)
        assert_int_equal(target[i], 0x77);
    assert_true(sim_counter(w, HOST_1, "rx_duplicates") >= 16);
    destroy(&tape);
}

static void sim_duplicate__after_completion(void **state)
{
    (void)state;
    straight_copies_after_completion(false);
    straight_copies_after_completion(true);
}

/* -------------------------------------------------------------------------------------- MTU shrink */

/* Sizes of PSNs on the wire before and after the path got smaller. */
struct sizes {
    uint32_t of[4096];
    bool small;
    uint32_t old_again, new_small, changed;
};

static enum mrd_sim_verdict watch_sizes(void *arg, struct mrd_sim_datagram *d)
{
    struct sizes *s = arg;
    struct mrd_wire_head head;

    if (d->from != HOST_0 || mrd_wire_get(d->data, d->len, &head) != MRD_WIRE_OK ||
        head.type != MRD_WIRE_DATA)
        return MRD_SIM_PASS;
    assert_true(head.psn < 4096);
    if (s->of[head.psn]) {
        s->changed += s->of[head.psn] != d->len;
        s->old_again += s->small && d->len > 2000;
    } else {
        s->new_small += s->small && d->len < 2000;
        s->of[head.psn] = d->len;
    }
    return !s->small && head.psn % 3 == 0 ? MRD_SIM_DROP : MRD_SIM_PASS;
}

/* What was cut for the old MTU keeps PSN and size and is resent, fragmented; only new PSNs shrink. */
static void sim_mtu_shrink__psn_keeps_its_size(void **state)
{
    struct forge_tape tape;
    struct sim_world *w =
        create(&tape, &(struct sim_options){.seed = test_seed(), .rate_bps = 10000000000});
    struct sizes *sizes = calloc(1, sizeof(*sizes));
    (void)state;

    assert_non_null(sizes);
    exchange(w, HOST_0, HOST_1);
    tape.edit = watch_sizes;
    tape.arg = sizes;
    sim_write(w, HOST_0, HOST_1, 2 << 20);
    sim_run(w, 50 * USEC_NS);
    mrd_sim_set_datagram_max(w->sim, 1500);
    sizes->small = true;
    sim_run_until_complete(w, 20 * MSEC_NS);

    assert_true(sim_payload_equal(w, HOST_1));
    assert_int_equal(sizes->changed, 0);
    assert_true(sizes->old_again > 0);
    assert_true(sizes->new_small > 100);
    assert_true(mrd_sim_get_host_stats(w->sim, HOST_0).too_big > 0);
    free(sizes);
    destroy(&tape);
}

/* ---------------------------------------------------------------------------------------- psn_limit */

/* What each sender to host 0 was told, and what it did. */
struct limits {
    uint32_t told[SIM_HOSTS_MAX], cum[SIM_HOSTS_MAX];
    uint32_t beyond, widest, checked;
};

static enum mrd_sim_verdict watch_limits(void *arg, struct mrd_sim_datagram *d)
{
    struct limits *l = arg;
    struct mrd_wire_head head;

    if (mrd_wire_get(d->data, d->len, &head) != MRD_WIRE_OK)
        return MRD_SIM_PASS;
    if (head.type == MRD_WIRE_ACK && d->from == HOST_0) {
        struct mrd_wire_ack ack;

        assert_true(mrd_wire_get_ack(d->data, &head, &ack));
        if (ack.psn_limit > l->told[d->to])
            l->told[d->to] = ack.psn_limit;
        if (ack.cum > l->cum[d->to])
            l->cum[d->to] = ack.cum;
    }
    if (head.type == MRD_WIRE_DATA && d->to == HOST_0) {
        uint32_t limit = l->told[d->from] ? l->told[d->from] : 256;
        int32_t ahead = (int32_t)(head.psn - l->cum[d->from]);

        l->beyond += head.psn >= limit;
        l->checked++;
        /* The first window may be of the time before anything was told. */
        if (head.psn >= 300 && ahead >= 0 && (uint32_t)ahead + 1 > l->widest)
            l->widest = (uint32_t)ahead + 1;
    }
    return MRD_SIM_PASS;
}

/* The receive buffer is small and shared: no sender goes beyond what it was told, and it holds all of them. */
static void limited(uint32_t senders, uint32_t loss_ppm)
{
    enum { ROOM = 16 };
    struct forge_tape tape;
    struct sim_world *w = create(&tape, &(struct sim_options){.seed = test_seed(),
                                                              .hosts = 4,
                                                              .loss_ppm = loss_ppm,
                                                              .recv_bytes = 8 << 20});
    struct limits limits = {0};

    mrd_context_engine(w->node[HOST_0].context)->config.mover.rx_buffer_bytes =
        ROOM * senders * UNIT;
    tape.edit = watch_limits;
    tape.arg = &limits;
    for (uint32_t from = HOST_1; from <= senders; from++)
        sim_send(w, from, HOST_0, 4 << 20);
    sim_run_until_complete(w, 100 * MSEC_NS);

    assert_true(sim_payload_equal(w, HOST_0));
    assert_true(limits.checked >= 1024 * senders);
    assert_int_equal(limits.beyond, 0);
    assert_in_range(limits.widest, ROOM / 2, ROOM);
    assert_int_equal(sim_counter(w, HOST_0, "rx_drop_window"), 0);
    destroy(&tape);
}

static void sim_psn_limit__is_never_exceeded(void **state)
{
    (void)state;
    limited(1, 0);
    limited(1, 50000);
    limited(3, 0);
    limited(3, 20000);
}

/* Beyond the limit nothing is taken: dropped and counted. */
static void sim_psn_limit__beyond_the_tracker_is_dropped(void **state)
{
    struct forge_tape tape;
    struct sim_world *w = create(&tape, &(struct sim_options){.seed = test_seed()});
    struct mrd_wire_head head;
    struct mrd_wire_part part;
    struct forge_state before;
    uint8_t buf[FORGE_BYTES_MAX], payload[BYTES] = {1};
    (void)state;

    exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    sim_post_recvs(w, HOST_1, 0, 1, BYTES);
    part = forge_send_part(w, HOST_1, BYTES);
    head = forge_as(&tape, HOST_0, HOST_1);
    forge_look(w, HOST_1, &before);
    for (uint32_t i = 0; i < 3; i++) {
        static const uint32_t beyond[] = {1024, 100000, 0x7ffffffe};

        struct mrd_wire_head far = head;

        far.psn = head.psn + beyond[i];
        forge_inject(w, HOST_0, HOST_1, buf, forge_data(buf, &far, &part, payload));
    }
    sim_run(w, 1 * MSEC_NS);
    forge_expect(w, HOST_1, &before, (struct forge_rise[]){{"rx_drop_window", 3}, {NULL, 0}});
    destroy(&tape);
}

static uint32_t last_limit(const struct forge_tape *tape)
{
    const struct forge_packet *packet = forge_find(tape, HOST_1, HOST_0, MRD_WIRE_ACK, -1);
    struct mrd_wire_head head = forge_head(packet);
    struct mrd_wire_ack ack;

    assert_true(mrd_wire_get_ack(packet->data, &head, &ack));
    return ack.psn_limit;
}

/* The limit as told binds below the tracker, too: the buffer shrinks and the sender is stopped where it was told. */
static void sim_psn_limit__granted_less_than_the_tracker(void **state)
{
    struct forge_tape tape;
    struct sim_world *w =
        create(&tape, &(struct sim_options){.seed = test_seed(), .recv_bytes = BYTES});
    struct mrd_engine *e = mrd_context_engine(w->node[HOST_1].context);
    struct mrd_wire_head head;
    struct forge_state before;
    uint8_t buf[FORGE_BYTES_MAX];
    uint32_t limit;
    (void)state;

    e->config.mover.rx_buffer_bytes = 8 * UNIT;
    for (uint32_t i = 0; i < 1050; i++) /* a space begins with a tracker's worth */
        exchange(w, HOST_0, HOST_1);
    sim_run(w, 1 * MSEC_NS);
    head = forge_as(&tape, HOST_0, HOST_1);
    limit = last_limit(&tape);
    assert_true(limit - head.psn <= 16);
    forge_look(w, HOST_1, &before);
    head.psn = limit;
    forge_inject(w, HOST_0, HOST_1, buf, forge_data(buf, &head, NULL, NULL));
    sim_run(w, 1 * MSEC_NS);
    forge_expect(w, HOST_1, &before, (struct forge_rise[]){{"rx_drop_window", 1}, {NULL, 0}});
    destroy(&tape);
}

/* ------------------------------------------------------------------------------------------ silence */

/* A message is half here and its sender dies; we have sent it nothing. The receive must not wait for ever. */
static void sim_silence__a_dead_sender_is_detected(void **state)
{
    struct forge_tape tape;
    struct sim_world *w =
        create(&tape, &(struct sim_options){
                          .seed = test_seed(), .rate_bps = 10000000000, .peer_timeout_ns = SEC_NS});
    (void)state;

    sim_send(w, HOST_1, HOST_0, 1 << 20);
    sim_run(w, 300 * USEC_NS);
    mrd_sim_stop_host(w->sim, HOST_1, 1);
    sim_run(w, 900 * MSEC_NS);
    assert_false(w->receives[0].done);
    assert_true(sim_counter(w, HOST_0, "probes") > 0);
    sim_run(w, 600 * MSEC_NS);

    assert_true(w->receives[0].done);
    assert_int_equal(w->receives[0].status, MRD_WC_REM_ABORT_ERR);
    assert_int_equal(w->node[HOST_0].unreachable, 1);
    destroy(&tape);
}

static enum mrd_sim_verdict lose_segments(void *arg, struct mrd_sim_datagram *d)
{
    struct forge_packet packet = {.len = d->len, .data = d->data};
    struct mrd_wire_part part;
    (void)arg;

    return d->from == HOST_1 && forge_part(&packet, &part) && part.flags & MRD_PART_MULTI
               ? MRD_SIM_DROP
               : MRD_SIM_PASS;
}

/* A peer whose segments are lost for long but who answers probes lives, on both sides. */
static void sim_silence__answered_probes_keep_the_peer(void **state)
{
    struct forge_tape tape;
    struct sim_world *w =
        create(&tape, &(struct sim_options){
                          .seed = test_seed(), .rate_bps = 10000000000, .peer_timeout_ns = SEC_NS});
    uint32_t message;
    (void)state;

    message = sim_send(w, HOST_1, HOST_0, 1 << 20);
    sim_run(w, 300 * USEC_NS);
    tape.edit = lose_segments;
    sim_run(w, 3 * SEC_NS);
    assert_false(w->messages[message].sent);
    assert_in_range(sim_counter(w, HOST_0, "probes"), 3, 400); /* 10 ms and up */
    tape.edit = NULL;
    sim_run_until_complete(w, 1 * SEC_NS);

    assert_true(sim_payload_equal(w, HOST_0));
    assert_int_equal(w->node[HOST_0].unreachable + w->node[HOST_1].unreachable, 0);
    destroy(&tape);
}

/* --------------------------------------------------------------------------------------- own stops */

/* A process that slept for longer than the timeout finds its acks waiting: it reads before it judges. */
static void sim_stop__judges_nobody_before_it_has_read(void **state)
{
    struct forge_tape tape;
    struct sim_world *w = create(&tape, &(struct sim_options){.seed = test_seed(),
                                                              .rate_bps = 10000000000,
                                                              .peer_timeout_ns = 60 * SEC_NS});
    (void)state;

    w->options.peer_timeout_ns = SEC_NS;
    sim_restart(w, HOST_0);
    sim_send(w, HOST_0, HOST_1, 1 << 20);
    sim_send(w, HOST_1, HOST_0, 1 << 20);
    sim_run(w, 100 * USEC_NS);
    mrd_sim_stop_host(w->sim, HOST_0, 1);
    sim_run(w, 30 * SEC_NS); /* longer than its receive half of the other would live */
    mrd_sim_stop_host(w->sim, HOST_0, 0);
    sim_run(w, 2 * SEC_NS);

    for (uint32_t host = HOST_0; host <= HOST_1; host++) {
        assert_int_equal(w->node[host].unreachable + w->node[host].restarted, 0);
        assert_int_equal(sim_counter(w, host, "tx_messages_failed"), 0);
        assert_int_equal(sim_counter(w, host, "tx_resets"), 0);
    }
    assert_int_equal(w->messages[0].status, MRD_WC_SUCCESS);
    assert_true(w->messages[0].sent && w->messages[0].equal);
    destroy(&tape);
}

/* The time that packets lay unread at a stopped peer is no round trip time: the rest of its message flows at once. */
static void sim_stop__does_not_slow_what_follows(void **state)
{
    struct forge_tape tape;
    struct sim_world *w = create(&tape, &(struct sim_options){.seed = test_seed(),
                                                              .rate_bps = 10000000000,
                                                              .peer_timeout_ns = 60 * SEC_NS});
    (void)state;

    sim_send(w, HOST_0, HOST_1, 1 << 20);
    sim_send(w, HOST_1, HOST_0, 1 << 20);
    sim_run(w, 100 * USEC_NS);
    mrd_sim_stop_host(w->sim, HOST_0, 1);
    sim_run(w, 30 * SEC_NS);
    mrd_sim_stop_host(w->sim, HOST_0, 0);
    sim_run_until_complete(w, 10 * SEC_NS); /* and one RTO at its longest */

    assert_true(sim_payload_equal(w, HOST_0));
    assert_true(sim_payload_equal(w, HOST_1));
    destroy(&tape);
}

/* As above with nothing in its queue: the peer gets its full time, and the probes, from the wake-up on. */
static void sim_stop__time_away_is_not_the_peers_silence(void **state)
{
    struct forge_tape tape;
    struct sim_world *w = create(
        &tape, &(struct sim_options){.seed = test_seed(), .peer_timeout_ns = 500 * MSEC_NS});
    uint32_t message;
    (void)state;

    exchange(w, HOST_0, HOST_1);
    forge_cut(&tape, HOST_0, HOST_1, true);
    message = sim_send(w, HOST_0, HOST_1, BYTES);
    sim_run(w, 100 * MSEC_NS);
    mrd_sim_stop_host(w->sim, HOST_0, 1);
    sim_run(w, 5 * SEC_NS);
    mrd_sim_stop_host(w->sim, HOST_0, 0);
    sim_run(w, 300 * MSEC_NS);
    assert_false(w->messages[message].sent);
    forge_cut(&tape, HOST_0, HOST_1, false);
    sim_run_until_complete(w, 150 * MSEC_NS);

    assert_int_equal(w->messages[message].status, MRD_WC_SUCCESS);
    assert_int_equal(w->node[HOST_0].unreachable, 0);
    destroy(&tape);
}

/* SIGSTOP of 2 s on either side, in mid-message both ways. */
static void sim_stop__two_seconds_on_either_side(void **state)
{
    struct forge_tape tape;
    struct sim_world *w =
        create(&tape, &(struct sim_options){.seed = test_seed(), .rate_bps = 10000000000});
    (void)state;

    for (uint32_t stopped = HOST_0; stopped <= HOST_1; stopped++) {
        sim_send(w, HOST_0, HOST_1, 2 << 20);
        sim_write_imm(w, HOST_1, HOST_0, 2 << 20);
        sim_run(w, 200 * USEC_NS);
        mrd_sim_stop_host(w->sim, stopped, 1);
        sim_run(w, 2 * SEC_NS);
        assert_false(sim_is_complete(w));
        mrd_sim_stop_host(w->sim, stopped, 0);
        sim_run_until_complete(w, 2 * SEC_NS);
    }

    assert_true(sim_payload_equal(w, HOST_0));
    assert_true(sim_payload_equal(w, HOST_1));
    for (uint32_t host = HOST_0; host <= HOST_1; host++) {
        assert_int_equal(w->node[host].unreachable + w->node[host].restarted, 0);
        assert_int_equal(sim_counter(w, host, "tx_messages_failed"), 0);
    }
    destroy(&tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_straight__burst_as_predicted),
        cmocka_unit_test(sim_straight__corrupt_place_is_not_written),
        cmocka_unit_test(sim_straight__late_duplicates_do_not_overwrite),
        cmocka_unit_test(sim_straight__interleaved_segments_are_not_overwritten),
        cmocka_unit_test(sim_straight__another_segment_is_moved),
        cmocka_unit_test(sim_duplicate__after_completion),
        cmocka_unit_test(sim_mtu_shrink__psn_keeps_its_size),
        cmocka_unit_test(sim_psn_limit__is_never_exceeded),
        cmocka_unit_test(sim_psn_limit__beyond_the_tracker_is_dropped),
        cmocka_unit_test(sim_psn_limit__granted_less_than_the_tracker),
        cmocka_unit_test(sim_silence__a_dead_sender_is_detected),
        cmocka_unit_test(sim_silence__answered_probes_keep_the_peer),
        cmocka_unit_test(sim_stop__judges_nobody_before_it_has_read),
        cmocka_unit_test(sim_stop__does_not_slow_what_follows),
        cmocka_unit_test(sim_stop__time_away_is_not_the_peers_silence),
        cmocka_unit_test(sim_stop__two_seconds_on_either_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
