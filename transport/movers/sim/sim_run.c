/* SPDX-License-Identifier: BSD-2-Clause */
/* The run loop: the events of one part, the windows of several, and the threads that run them. */
#include "transport/movers/sim/sim_run.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "transport/lock.h"
#include "transport/movers/sim/sim_fault.h"
#include "transport/movers/sim/sim_host.h"
#include "transport/movers/sim/sim_world.h"

enum {
    SPINS = 2000, /* looks at a word that another thread is to change, before a thread sleeps */
    EVENTS_ALONE = 256,    /* of a window that the caller does alone: to wake others takes longer */
    PART_BITS = 8,         /* of mrd_sim_crew.turn */
    NO_WINDOW = UINT8_MAX, /* in place of a part: the run is over */
};

/*
 * The threads that run windows: the caller's and those beside it.
 *
 * A thread takes the next part that nobody has taken. Who is done with the last part of a window
 * makes the next window. So nobody waits for a thread that does nothing, because it has not come
 * yet or because its processor is busy with something else.
 */
struct mrd_sim_crew {
    unsigned threads; /* the caller's included */
    pthread_t thread[MRD_SIM_PARTS_MAX];

    /* Of the run and its window; written by whoever makes the window, before `turn`. */
    uint64_t last_ns, to_ns;

    /* The window's number, and in the last PART_BITS the next part that nobody has taken. */
    _Alignas(MRD_SIM_APART_BYTES) atomic_uint_fast64_t turn;
    _Alignas(MRD_SIM_APART_BYTES) atomic_uint done; /* parts of the window that are done */
    atomic_uint events;                             /* of these parts */

    _Alignas(MRD_SIM_APART_BYTES) atomic_uint sleepers;
    atomic_bool has_ended;
    pthread_mutex_t lock; /* of waiting for `wake` */
    pthread_cond_t wake;
};

/* --------------------------------------------------------------------------------------- events */

static void take_arrival(struct mrd_sim *sim, struct mrd_sim_part *part,
                         struct mrd_sim_packet *packet)
{
    uint32_t node = packet->event.tag;

    if (node < sim->attr.hosts)
        mrd_sim_host_receive(&sim->hosts[node], packet);
    else
        mrd_sim_fabric_forward(&sim->fabric, part, packet, node);
}

static void dispatch(struct mrd_sim *sim, struct mrd_sim_part *part, struct mrd_sim_event *event)
{
    if (event->kind == MRD_SIM_EVENT_ARRIVE) {
        take_arrival(sim, part, (struct mrd_sim_packet *)event);
    } else {
        struct mrd_sim_host *host = event->object;
        uint32_t tag = event->tag;

        mrd_sim_events_release(&part->events, event);
        mrd_sim_host_fire(host, tag);
    }
}

/* Returns how many events there were. */
static uint32_t run_part(struct mrd_sim *sim, struct mrd_sim_part *part, uint64_t last_ns)
{
    uint32_t events = 0;
    uint64_t next_ns;

    while ((next_ns = mrd_sim_events_next_ns(&part->events)) <= last_ns &&
           next_ns != MRD_SIM_NEVER) {
        struct mrd_sim_event *event = mrd_sim_events_pop(&part->events);

        /* A call between two runs may push an event for an earlier time: it happens now. */
        if (event->at_ns > part->now_ns)
            part->now_ns = event->at_ns;
        dispatch(sim, part, event);
        events++;
    }
    return events;
}

/* -------------------------------------------------------------------------------------- windows */

static uint32_t part_of_turn(uint64_t turn)
{
    return turn & ((1u << PART_BITS) - 1);
}

/* When the next event of any part is due. */
static uint64_t first_of_all(const struct mrd_sim *sim, uint32_t round)
{
    uint64_t ns = MRD_SIM_NEVER;

    for (uint32_t i = 0; i < sim->num_parts; i++) {
        uint64_t next_ns = sim->parts[i].outbox[round % 2].next_ns;

        if (next_ns < ns)
            ns = next_ns;
    }
    return ns;
}

static void wake_sleepers(struct mrd_sim_crew *crew)
{
    if (atomic_load(&crew->sleepers) == 0)
        return;
    pthread_mutex_lock(&crew->lock);
    pthread_cond_broadcast(&crew->wake);
    pthread_mutex_unlock(&crew->lock);
}

/*
 * All parts are done with window `round`: the next one begins, or the run is over. The next run
 * takes the last window of this one for its own.
 */
static void make_window(struct mrd_sim *sim, uint32_t round, bool is_caller)
{
    struct mrd_sim_crew *crew = sim->crew;
    uint64_t from_ns = first_of_all(sim, round), to_ns = from_ns + sim->lookahead_ns - 1;
    bool is_long = atomic_load(&crew->events) > EVENTS_ALONE;

    if (from_ns > crew->last_ns || from_ns == MRD_SIM_NEVER) {
        atomic_store(&crew->turn, (uint64_t)round << PART_BITS | NO_WINDOW);
        if (!is_caller)
            wake_sleepers(crew); /* it may sleep */
        return;
    }
    crew->to_ns = to_ns > crew->last_ns || to_ns < from_ns ? crew->last_ns : to_ns;
    atomic_store(&crew->events, 0);
    atomic_store(&crew->done, 0);
    atomic_store(&crew->turn, (uint64_t)(round + 1) << PART_BITS);
    if (!is_caller || is_long)
        wake_sleepers(crew);
}

static void do_part(struct mrd_sim *sim, uint32_t number, uint32_t round)
{
    struct mrd_sim_part *part = &sim->parts[number];

    mrd_sim_part_begin(part, round);
    for (uint32_t i = 0; i < sim->num_parts; i++)
        mrd_sim_part_take(part, &sim->parts[i], round - 1);
    atomic_fetch_add(&sim->crew->events, run_part(sim, part, sim->crew->to_ns));
    mrd_sim_part_end(part);
}

/* Wait until `turn` is another. */
static void wait_turn(struct mrd_sim_crew *crew, uint64_t turn)
{
    for (unsigned i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&crew->turn, memory_order_relaxed) != turn)
            return;
        mrd_pause_cpu();
    }
    pthread_mutex_lock(&crew->lock);
    atomic_fetch_add(&crew->sleepers, 1);
    while (atomic_load(&crew->turn) == turn && !atomic_load(&crew->has_ended))
        pthread_cond_wait(&crew->wake, &crew->lock);
    atomic_fetch_sub(&crew->sleepers, 1);
    pthread_mutex_unlock(&crew->lock);
}

/* Take parts and do them: the caller until the run is over, others until the crew ends. */
static void take_turns(struct mrd_sim *sim, bool is_caller)
{
    struct mrd_sim_crew *crew = sim->crew;

    for (;;) {
        uint64_t turn = atomic_load(&crew->turn);
        uint32_t part = part_of_turn(turn), round = (uint32_t)(turn >> PART_BITS);

        if (is_caller ? part == NO_WINDOW : atomic_load(&crew->has_ended))
            return;
        if (part == NO_WINDOW || part >= sim->num_parts) {
            wait_turn(crew, turn);
            continue;
        }
        if (!atomic_compare_exchange_weak(&crew->turn, &turn, turn + 1))
            continue;
        do_part(sim, part, round);
        if (atomic_fetch_add(&crew->done, 1) + 1 == sim->num_parts)
            make_window(sim, round, is_caller);
    }
}

/* ----------------------------------------------------------------------------------------- crew */

static void *work(void *sim)
{
    take_turns(sim, false);
    return NULL;
}

static void run_parts(struct mrd_sim *sim, uint64_t last_ns)
{
    struct mrd_sim_crew *crew = sim->crew;

    for (uint32_t i = 0; i < sim->num_parts; i++) {
        uint64_t next_ns = mrd_sim_events_next_ns(&sim->parts[i].events);

        if (next_ns < sim->parts[i].out->next_ns)
            sim->parts[i].out->next_ns = next_ns;
    }
    crew->last_ns = last_ns;
    make_window(sim, (uint32_t)(atomic_load(&crew->turn) >> PART_BITS), true);
    take_turns(sim, true);
}

/* Fewer threads than asked for do as well, only slower. */
static struct mrd_sim_crew *start_crew(struct mrd_sim *sim, unsigned threads)
{
    struct mrd_sim_crew *crew = aligned_alloc(_Alignof(struct mrd_sim_crew), sizeof(*crew));

    if (!crew)
        return NULL;
    *crew = (struct mrd_sim_crew){.threads = 1, .turn = NO_WINDOW};
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->wake, NULL);
    sim->crew = crew;
    while (crew->threads < threads &&
           pthread_create(&crew->thread[crew->threads], NULL, work, sim) == 0)
        crew->threads++;
    return crew;
}

static void end_crew(struct mrd_sim *sim)
{
    struct mrd_sim_crew *crew = sim->crew;

    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    atomic_store(&crew->has_ended, true);
    pthread_cond_broadcast(&crew->wake);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 1; i < crew->threads; i++)
        (void)pthread_join(crew->thread[i], NULL);
    pthread_cond_destroy(&crew->wake);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
    sim->crew = NULL;
}

/* ---------------------------------------------------------------------------------------- parts */

static uint32_t part_of_host(const struct mrd_sim *sim, uint32_t host, uint32_t num_parts)
{
    const struct mrd_sim_topology *t = &sim->fabric.tree->topology;
    uint32_t leaf_hosts = t->tier[0].radix_down, leaves = t->hosts / leaf_hosts;

    return (uint32_t)((uint64_t)(host / leaf_hosts) * num_parts / leaves);
}

/* Switches that have the same hosts below them are spread over the parts of these hosts. */
static uint32_t part_of_node(const struct mrd_sim *sim, uint32_t node, uint32_t num_parts)
{
    const struct mrd_sim_tree *tree = sim->fabric.tree;

    if (node < sim->attr.hosts)
        return part_of_host(sim, node, num_parts);

    const struct mrd_sim_switch *s = &tree->switches[node - sim->attr.hosts];
    uint32_t num = tree->tier_first[s->tier + 1] - tree->tier_first[s->tier];
    uint32_t alike = num / (sim->attr.hosts / s->num_hosts);
    uint32_t beside = (uint32_t)((uint64_t)(s->number % alike) * s->num_hosts / alike);

    return part_of_host(sim, s->host_first + beside, num_parts);
}

/* The shortest wire between two parts: what one does is felt by another no earlier. */
static uint64_t find_lookahead(const struct mrd_sim *sim)
{
    const struct mrd_sim_fabric *fabric = &sim->fabric;
    uint64_t ns = MRD_SIM_NEVER;

    for (uint32_t i = 0; i < fabric->num_wires; i++) {
        const struct mrd_sim_wire *wire = &fabric->wires[i];
        uint32_t from = mrd_sim_tree_ends(fabric->tree, i).from;

        if (part_of_node(sim, from, sim->num_parts) != wire->part && wire->delay_ns < ns)
            ns = wire->delay_ns;
    }
    /* With no delay at all, parts take turns until a nanosecond is over. */
    return ns ? ns : 1;
}

static void look_ahead(struct mrd_sim *sim)
{
    if (sim->lookahead_ns != 0 && !sim->fabric.has_changed)
        return;
    sim->lookahead_ns = find_lookahead(sim);
    sim->fabric.has_changed = false;
}

static void join_hosts(struct mrd_sim *sim)
{
    for (uint32_t i = 0; i < sim->attr.hosts; i++)
        sim->hosts[i].part =
            &sim->parts[sim->num_parts == 1 ? 0 : part_of_host(sim, i, sim->num_parts)];
    for (uint32_t i = 0; i < sim->fabric.num_wires; i++) {
        struct mrd_sim_wire *wire = &sim->fabric.wires[i];

        wire->part = sim->num_parts == 1 ? 0 : (uint8_t)part_of_node(sim, wire->to, sim->num_parts);
    }
}

static void free_parts(struct mrd_sim_part *parts, uint32_t num)
{
    for (uint32_t i = 0; i < num; i++)
        mrd_sim_part_fini(&parts[i]);
    free(parts);
}

/* NULL: no memory. */
static struct mrd_sim_part *make_parts(uint32_t num, struct mrd_rng rng)
{
    struct mrd_sim_part *parts = aligned_alloc(_Alignof(struct mrd_sim_part), num * sizeof(*parts));

    for (uint32_t i = 0; parts && i < num; i++) {
        if (mrd_sim_part_init(&parts[i], i) != 0) {
            free_parts(parts, i);
            return NULL;
        }
        if (num == 1)
            parts[i].rng = rng;
        else
            mrd_rng_init(&parts[i].rng, mrd_rng_u64(&rng));
    }
    return parts;
}

int mrd_sim_run_init(struct mrd_sim *sim)
{
    sim->parts = make_parts(1, sim->fabric.rng);
    if (!sim->parts)
        return -ENOMEM;
    sim->num_parts = 1;
    join_hosts(sim);
    return 0;
}

void mrd_sim_run_fini(struct mrd_sim *sim)
{
    end_crew(sim);
    free_parts(sim->parts, sim->num_parts);
}

uint32_t mrd_sim_parts_max(const struct mrd_sim *sim)
{
    if (!sim->fabric.tree)
        return 1;

    const struct mrd_sim_topology *t = &sim->fabric.tree->topology;
    uint32_t leaves = t->hosts / t->tier[0].radix_down;

    return leaves < MRD_SIM_PARTS_MAX ? leaves : MRD_SIM_PARTS_MAX;
}

int mrd_sim_set_parts(struct mrd_sim *sim, uint32_t num, uint32_t threads)
{
    assert(sim->num_parts == 1 && num >= 1 && num <= mrd_sim_parts_max(sim));
    assert(threads >= 1 && !sim->fabric.tap);
    for (uint32_t i = 0; i < sim->attr.hosts; i++)
        assert(!sim->hosts[i].open && !sim->hosts[i].stack);
    assert(mrd_sim_events_next_ns(&sim->parts[0].events) == MRD_SIM_NEVER);
    if (num == 1)
        return 0;

    struct mrd_sim_part *one = sim->parts, *parts = make_parts(num, sim->fabric.rng);

    if (!parts || !start_crew(sim, threads < num ? threads : num)) {
        if (parts)
            free_parts(parts, num);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < num; i++)
        parts[i].now_ns = one->now_ns;
    parts[0].lost = one->lost;
    free_parts(one, 1);
    sim->parts = parts;
    sim->num_parts = num;
    sim->lookahead_ns = 0;
    join_hosts(sim);
    return 0;
}

/* ------------------------------------------------------------------------------------------ run */

static void set_now(struct mrd_sim *sim, uint64_t ns)
{
    for (uint32_t i = 0; i < sim->num_parts; i++) {
        if (ns > sim->parts[i].now_ns)
            sim->parts[i].now_ns = ns;
    }
}

void mrd_sim_run_until(struct mrd_sim *sim, uint64_t ns)
{
    mrd_sim_hosts_settle(sim);
    for (;;) {
        uint64_t fault_ns = mrd_sim_faults_next_ns(sim);
        uint64_t last_ns = fault_ns <= ns ? fault_ns - 1 : ns;

        if (sim->num_parts == 1) {
            (void)run_part(sim, &sim->parts[0], last_ns);
        } else {
            look_ahead(sim);
            run_parts(sim, last_ns);
        }
        set_now(sim, fault_ns <= ns ? fault_ns : ns);
        if (fault_ns > ns || fault_ns == MRD_SIM_NEVER)
            return;
        mrd_sim_faults_apply(sim);
    }
}

uint64_t mrd_sim_next_event_ns(struct mrd_sim *sim)
{
    uint64_t ns = mrd_sim_faults_next_ns(sim);

    mrd_sim_hosts_settle(sim);
    for (uint32_t i = 0; i < sim->num_parts; i++) {
        const struct mrd_sim_part *part = &sim->parts[i];
        uint64_t next_ns = mrd_sim_events_next_ns(&part->events);

        if (sim->num_parts > 1 && part->out->next_ns < next_ns)
            next_ns = part->out->next_ns;
        if (next_ns < ns)
            ns = next_ns;
    }
    return ns;
}
