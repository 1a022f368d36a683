/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive buffer with less than a packet for each sender: grants go round, and all get through.
 */
#include "core/engine/state.h"
#include "core/wire.h"
#include "tests/support/world.h"
#include "transport/context.h"

enum { SENDERS = 9, ROOM_PACKETS = 3, BYTES = 24 * 4096 };

struct watch {
    struct sim_world *w;
    bool busy[SIM_HOSTS_MAX]; /* a segment of that host is on its way */
    uint32_t most;            /* hosts so at one time */
    uint32_t beyond;          /* segments at or beyond the limit last told */
    uint32_t limit[SIM_HOSTS_MAX];
    bool told[SIM_HOSTS_MAX];
};

static enum mrd_sim_verdict look(void *arg, struct mrd_sim_datagram *d)
{
    struct watch *watch = arg;
    struct mrd_wire_head head;
    struct mrd_wire_ack ack;
    uint32_t busy = 0;

    assert_int_equal(mrd_wire_get(d->data, d->len, &head), MRD_WIRE_OK);
    if (head.type == MRD_WIRE_ACK && mrd_wire_get_ack(d->data, &head, &ack)) {
        watch->limit[d->to] = ack.psn_limit;
        watch->told[d->to] = true;
        watch->busy[d->to] = false;
    }
    if (head.type != MRD_WIRE_DATA || d->len - head.head_len < 4096)
        return MRD_SIM_PASS;
    watch->busy[d->from] = true;
    watch->beyond += watch->told[d->from] && (int32_t)(head.psn - watch->limit[d->from]) >= 0;
    for (uint32_t i = 0; i < SIM_HOSTS_MAX; i++)
        busy += watch->busy[i];
    watch->most = busy > watch->most ? busy : watch->most;
    return MRD_SIM_PASS;
}

static void sim_grants__rotate_below_one_packet_each(void **state)
{
    struct sim_world *w =
        sim_world_create(&(struct sim_options){.seed = test_seed(), .hosts = SENDERS + 1});
    struct watch watch = {.w = w};
    (void)state;

    mrd_context_engine(w->node[HOST_0].context)->share.room = ROOM_PACKETS;
    for (uint32_t from = 1; from <= SENDERS; from++)
        sim_write(w, from, HOST_0, 4096);
    sim_run_until_complete(w, 10 * MSEC_NS); /* each was told a grant */
    mrd_sim_set_tap(w->sim, look, &watch);
    for (uint32_t from = 1; from <= SENDERS; from++)
        sim_write(w, from, HOST_0, BYTES);
    sim_run_until_complete(w, 2 * SEC_NS);

    assert_true(sim_payload_equal(w, HOST_0));
    assert_int_equal(watch.beyond, 0);
    /* Turns change at different times for different senders: some overlap, but not all at once. */
    assert_in_range(watch.most, 1, 2 * ROOM_PACKETS);
    sim_world_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_grants__rotate_below_one_packet_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
