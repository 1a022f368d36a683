/* SPDX-License-Identifier: BSD-2-Clause */
/* MRD_ORDER_DATA: the last bytes of writes lie in memory in the order in which they were posted. */
#include <string.h>

#include "core/last_bytes.h"
#include "tests/support/payload.h"
#include "tests/support/wiretap.h"
#include "transport/movers/sim/sim_host.h"

enum { MULTI = 20000, WRITES = 6 };

static struct sim_world *world(enum mrd_order order, bool straight, uint32_t loss_ppm)
{
    struct sim_world *w = sim_fabric_world(&(struct sim_options){
        .order = order, .straight = straight, .loss_ppm = loss_ppm, .skew_ppm = loss_ppm});

    sim_write(w, HOST_0, HOST_1, 64);
    sim_write_complete(w, HOST_1, HOST_0, 64, 20 * MSEC_NS);
    return w;
}

/* No byte of the target is what will be written there. */
static uint32_t post(struct sim_world *w, uint32_t len)
{
    uint32_t index = sim_write(w, HOST_0, HOST_1, len);
    const struct sim_message *m = &w->messages[index];

    for (uint32_t i = 0; i < len; i++)
        m->target[i] = (uint8_t)~m->source[i];
    return index;
}

/* How many of the write's last eight bytes, or of all, are in place? */
static uint32_t count_end(const struct sim_message *m)
{
    uint32_t from = m->len - mrd_last_bytes_len(m->len), n = 0;

    for (uint32_t i = from; i < m->len; i++)
        n += m->target[i] == m->source[i];
    return n;
}

/* Are the bytes before them in place? */
static bool has_head(const struct sim_message *m)
{
    return !memcmp(m->target, m->source, m->len - mrd_last_bytes_len(m->len));
}

static bool has_no_end(const struct sim_message *m)
{
    return !count_end(m);
}

static bool is_first_packet(void *arg, const struct wire_packet *p)
{
    const uint32_t *len = arg;

    return *len && p->kind == WIRE_MESSAGE && p->part.total == *len && !p->part.offset;
}

/*
 * The first write loses a packet, and those behind it come first. In this order their ends wait for
 * it; in the order of messages they do not.
 */
TEST(data_order__ends_wait_for_earlier_writes)
{
    static const uint32_t lens[] = {1, 4, 8, 9, 1000, MULTI};

    for (enum mrd_order order = MRD_ORDER_MSG; order <= MRD_ORDER_DATA; order++) {
        for (unsigned straight = 0; straight < 2; straight++) {
            struct sim_world *w = world(order, straight, 0);
            struct wiretap *tap = wiretap_open(w);
            uint32_t index[WRITES], lost = MULTI + 1, first;

            tap->rule = is_first_packet;
            tap->arg = &lost;
            first = post(w, MULTI + 1);
            for (uint32_t i = 0; i < WRITES; i++)
                index[i] = post(w, lens[i]);
            sim_run(w, 30 * USEC_NS);
            for (uint32_t i = 0; i < WRITES; i++) {
                const struct sim_message *m = &w->messages[index[i]];

                assert_true(has_head(m));
                assert_true(order == MRD_ORDER_MSG ? count_end(m) == mrd_last_bytes_len(m->len)
                                                   : has_no_end(m));
                assert_false(m->sent);
            }
            if (order == MRD_ORDER_DATA)
                assert_true(has_no_end(&w->messages[first]));
            lost = 0;
            sim_all_arrive(w, 20 * MSEC_NS);
            for (uint32_t i = first; i <= index[WRITES - 1]; i++)
                assert_int_equal(w->messages[i].status, MRD_WC_SUCCESS);
        }
    }
}

struct watch {
    struct sim_world *w;
    uint32_t first, num, seen; /* writes; looks at which some end was in place */
};

/* Whoever finds the end of a write finds all of it, and all of those before it. */
static void look(void *arg, uint32_t host)
{
    struct watch *watch = arg;
    bool later = false;

    (void)host;
    for (uint32_t i = watch->num; i--;) {
        const struct sim_message *m = &watch->w->messages[watch->first + i];
        uint32_t n = m->sent ? 0 : count_end(m); /* once it is complete the buffers change */

        assert_true(m->sent || !later || n == mrd_last_bytes_len(m->len));
        if (n)
            assert_true(has_head(m));
        later |= n > 0;
    }
    watch->seen += later;
}

TEST(data_order__under_loss_and_reordering)
{
    enum { ROUNDS = 20, EACH = 12 };
    static const uint32_t lens[] = {8, 64, 3000, MULTI, 5, 4096, 16384, 4097};
    struct sim_world *w = world(MRD_ORDER_DATA, true, 50000);
    struct watch watch = {.w = w};

    mrd_sim_set_turn_hook(w->sim, look, &watch);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        watch.num = 0;
        for (uint32_t i = 0; i < EACH; i++) {
            uint32_t index = post(w, lens[(round + i) % 8]);

            watch.first = watch.num++ ? watch.first : index;
        }
        sim_all_arrive(w, SEC_NS);
    }
    assert_true(watch.seen > ROUNDS);
    mrd_sim_set_turn_hook(w->sim, NULL, NULL);
}

/* The memory is deregistered while an end waits: nothing is stored there any more. */
TEST(data_order__memory_goes_meanwhile)
{
    struct sim_world *w = world(MRD_ORDER_DATA, false, 0);
    struct wiretap *tap = wiretap_open(w);
    uint32_t lost = MULTI, index;
    uint8_t target[64];

    tap->rule = is_first_packet;
    tap->arg = &lost;
    sim_write(w, HOST_0, HOST_1, MULTI);
    index = post(w, sizeof(target));
    sim_run(w, 30 * USEC_NS);
    assert_true(has_head(&w->messages[index]) && has_no_end(&w->messages[index]));
    memcpy(target, w->messages[index].target, sizeof(target));
    assert_int_equal(mrd_dereg_mr(w->node[HOST_1].mr), 0);
    w->node[HOST_1].mr = mrd_reg_mr(w->node[HOST_1].pd, w->node[HOST_1].arena, 1 << 20,
                                    MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE);
    assert_non_null(w->node[HOST_1].mr);
    lost = 0;
    sim_run_until_complete(w, 20 * MSEC_NS);
    assert_true(w->messages[index].sent);
    assert_memory_equal(w->messages[index].target, target, sizeof(target));
}
