/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ranks send each other messages that both know from their numbers. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/rng.h"
#include "tests/kit/kit.h"
#include "tests/nccl/net.h"
#include "tests/support/payload.h"

enum {
    SEED = 7,
    GUARD = 64, /* bytes behind a receive's room */
    GUARD_BYTE = 0xa5,
    PHASE = 64, /* groups: then another side is late */
    LATE = 48,  /* who is late posts each so many steps */
    THREADS_MAX = 3,
    GIB = 1 << 30,
};

struct plan {
    int version;
    unsigned drop_ppm;
    int group_max;
    unsigned groups; /* each way, of each thread */
    unsigned window; /* groups outstanding */
    size_t size_max;
    unsigned threads;
};

/* Messages of a group: in the order of the receives; the sends are in another one. */
struct group {
    int n;
    struct message {
        int tag;
        size_t size, room;
        uint64_t id; /* the second message of a tag in a group meets the second receive of it */
    } receive[NET_GROUP_MAX], send[NET_GROUP_MAX];
};

static size_t some_size(struct mrd_rng *rng, size_t max)
{
    static const size_t up_to[] = {0, 64, 64, 4096, 4096, 140000};
    unsigned i = (unsigned)(mrd_rng_u64(rng) % 8);

    return mrd_rng_u64(rng) % ((i < 6 && up_to[i] < max ? up_to[i] : max) + 1);
}

/* Group g of those that `sender` sends by its thread. */
static struct group group_of(const struct plan *plan, int sender, unsigned thread, unsigned g)
{
    uint64_t base = ((uint64_t)sender << 40 | (uint64_t)thread << 32 | g) * NET_GROUP_MAX;
    struct group group;
    struct mrd_rng rng;
    int ordinal[4] = {0}, order[NET_GROUP_MAX];

    mrd_rng_init(&rng, base + SEED);
    group.n = 1 + (int)(mrd_rng_u64(&rng) % (unsigned)plan->group_max);
    for (int i = 0; i < group.n; i++) {
        unsigned tag = (unsigned)(mrd_rng_u64(&rng) % 4);
        size_t size = some_size(&rng, plan->size_max);

        group.receive[i] = (struct message){.tag = (int)tag * 1000 - 1, .size = size};
        order[i] = i;
    }
    for (int i = group.n - 1; i > 0; i--) { /* shuffled */
        int j = (int)(mrd_rng_u64(&rng) % (unsigned)(i + 1)), k = order[i];

        order[i] = order[j];
        order[j] = k;
    }
    /* The k-th send of a tag is what the k-th receive of it gets. */
    int of_tag[4][NET_GROUP_MAX];
    for (int i = 0; i < group.n; i++) {
        int tag = (group.receive[i].tag + 1) / 1000;

        of_tag[tag][ordinal[tag]++] = i;
        group.receive[i].id = base + (unsigned)i;
        group.receive[i].room = plan->size_max;
    }
    memset(ordinal, 0, sizeof(ordinal));
    for (int i = 0; i < group.n; i++) {
        int tag = (group.receive[order[i]].tag + 1) / 1000;

        group.send[i] = group.receive[of_tag[tag][ordinal[tag]++]];
    }
    return group;
}

/* ------------------------------------------------------------------------------------ one thread */

/* One way of a comm: what is outstanding, and its memory. */
struct way {
    void *comm, *mhandle;
    uint8_t *memory;
    size_t stride; /* of a message */
    unsigned posted, done;
    void **request; /* posted ones, by number */
};

struct flow {
    struct net *net;
    const struct plan *plan;
    int rank;
    unsigned thread;
    struct net_link link;
    struct way out, in;
    struct group sending; /* the group of which `sent` messages are posted */
    int sent;
    unsigned groups_sent;
    pthread_t id;
};

static void open_way(struct flow *f, struct way *way, void *comm)
{
    size_t bytes;

    way->comm = comm;
    way->stride = (f->plan->size_max + GUARD + 64 + 63) / 64 * 64;
    bytes = way->stride * f->plan->window * NET_GROUP_MAX;
    way->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(way->memory != MAP_FAILED);
    way->mhandle = net_register(f->net, comm, way->memory, bytes);
    way->request = calloc(f->plan->window * NET_GROUP_MAX, sizeof(*way->request));
    NEED(way->request);
}

static void close_way(struct flow *f, struct way *way)
{
    NEED(f->net->dereg_mr(way->comm, way->mhandle) == ncclSuccess);
    munmap(way->memory, way->stride * f->plan->window * NET_GROUP_MAX);
    free(way->request);
}

/* Where message i of group g lies; odd ones are at no multiple of 8. */
static uint8_t *place_of(const struct flow *f, const struct way *way, unsigned g, int i)
{
    return way->memory + way->stride * (g % f->plan->window * NET_GROUP_MAX + (unsigned)i) +
           (g % 2 ? 8 * (unsigned)i : (unsigned)i);
}

static bool post_group(struct flow *f)
{
    struct way *in = &f->in;
    struct group group = group_of(f->plan, !f->rank, f->thread, in->posted);
    void *data[NET_GROUP_MAX], *mhandles[NET_GROUP_MAX], *request = NULL;
    size_t sizes[NET_GROUP_MAX];
    int tags[NET_GROUP_MAX];

    for (int i = 0; i < group.n; i++) {
        data[i] = place_of(f, in, in->posted, i);
        memset((uint8_t *)data[i] + group.receive[i].room, GUARD_BYTE, GUARD);
        sizes[i] = group.receive[i].room;
        tags[i] = group.receive[i].tag;
        mhandles[i] = in->mhandle;
    }
    NEED(net_receive(f->net, in->comm, group.n, data, sizes, tags, mhandles, &request) ==
         ncclSuccess);
    if (request)
        in->request[in->posted++ % f->plan->window] = request;
    return request;
}

static bool finish_group(struct flow *f)
{
    struct way *in = &f->in;
    struct group group = group_of(f->plan, !f->rank, f->thread, in->done);
    int sizes[NET_GROUP_MAX];

    if (!net_is_done(f->net, in->request[in->done % f->plan->window], sizes))
        return false;
    for (int i = 0; i < group.n; i++) {
        const struct message *m = &group.receive[i];
        const uint8_t *at = place_of(f, in, in->done, i);

        if ((size_t)sizes[i] != m->size || payload_mismatch(at, m->size, SEED, m->id) != m->size ||
            !payload_is_blank(at + m->room, GUARD, GUARD_BYTE))
            rank_fail(__FILE__, __LINE__,
                      "group %u, receive %d of %d: %zu bytes sent, %d told, %zu right", in->done, i,
                      group.n, m->size, sizes[i], payload_mismatch(at, m->size, SEED, m->id));
    }
    in->done++;
    return true;
}

static bool post_send(struct flow *f)
{
    struct way *out = &f->out;
    unsigned slots = f->plan->window * NET_GROUP_MAX, slot = out->posted % slots;

    if (!f->sent)
        f->sending = group_of(f->plan, f->rank, f->thread, f->groups_sent);
    const struct message *m = &f->sending.send[f->sent];
    uint8_t *at = out->memory + out->stride * slot + (slot & 7);
    payload_fill(at, m->size, SEED, m->id);
    out->request[slot] =
        net_send_one(f->net, out->comm, at, m->size, m->tag, m->size ? out->mhandle : NULL);
    if (!out->request[slot])
        return false;
    out->posted++;
    if (++f->sent == f->sending.n) {
        f->sent = 0;
        f->groups_sent++;
    }
    return true;
}

static bool finish_send(struct flow *f)
{
    struct way *out = &f->out;

    if (!net_is_done(f->net, out->request[out->done % (f->plan->window * NET_GROUP_MAX)], NULL))
        return false;
    out->done++;
    return true;
}

/*
 * As NCCL's proxy: posts what it may, tests the oldest, in a loop. Each side is late at times. Then it gives the
 * processor away only as often as it posts: beside busy programs it gets it back after milliseconds.
 */
static void *run_flow(void *argument)
{
    struct flow *f = argument;
    const struct plan *p = f->plan;

    for (unsigned step = 0;
         f->in.done < p->groups || f->groups_sent < p->groups || f->out.done < f->out.posted;
         step++) {
        bool receives_late = f->in.posted / PHASE % 3 == 1;
        bool sends_late = f->groups_sent / PHASE % 3 == 2;
        bool now = !(step % LATE), moved = false;

        if (f->in.posted < p->groups && f->in.posted - f->in.done < p->window &&
            (now || !receives_late))
            moved |= post_group(f);
        if (f->groups_sent < p->groups &&
            f->out.posted - f->out.done < p->window * (unsigned)p->group_max &&
            (now || !sends_late))
            moved |= post_send(f);
        if (f->in.done < f->in.posted)
            moved |= finish_group(f);
        if (f->out.done < f->out.posted)
            moved |= finish_send(f);
        if (!moved && (now || (!receives_late && !sends_late)))
            sched_yield();
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------ ranks */

static void set_number(const char *name, unsigned value)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", value);
    (void)setenv(name, text, 1);
}

static void start(struct net *net, const struct plan *plan)
{
    set_number("MRD_NCCL_MAX_RECVS", (unsigned)plan->group_max);
    set_number("MRD_NCCL_DROP_PPM", plan->drop_ppm);
    net_start(net, plan->version);
}

/* Each thread has comms of its own, as NCCL has a proxy thread for each communicator. */
static void run_flows(int rank, const void *argument)
{
    const struct plan *plan = argument;
    struct flow flows[THREADS_MAX] = {0};
    struct net net;

    start(&net, plan);
    for (unsigned t = 0; t < plan->threads; t++) {
        struct flow *f = &flows[t];

        *f = (struct flow){.net = &net, .plan = plan, .rank = rank, .thread = t};
        net_link(&net, !rank, &f->link, 1);
        open_way(f, &f->out, f->link.send);
        open_way(f, &f->in, f->link.receive);
    }
    for (unsigned t = 0; t < plan->threads; t++)
        NEED(!pthread_create(&flows[t].id, NULL, run_flow, &flows[t]));
    for (unsigned t = 0; t < plan->threads; t++)
        pthread_join(flows[t].id, NULL);
    rank_meet(!rank);
    for (unsigned t = 0; t < plan->threads; t++) {
        close_way(&flows[t], &flows[t].out);
        close_way(&flows[t], &flows[t].in);
        net_unlink(&net, &flows[t].link, 1);
    }
    NEED(net_finalize(&net) == ncclSuccess);
    if (plan->version >= 11) { /* the figures of the end */
        NEED(!net_said("in 0 messages") && !net_said(" 0 packets"));
        NEED(net_said(" paths to each peer") && !net_said(" 0 paths"));
        NEED(!plan->drop_ppm || !net_said(", 0 of them again"));
    }
}

static void run_plan(struct plan plan)
{
    static const unsigned drop_ppm[] = {0, 10000, 50000};

    for (unsigned i = 0; i < sizeof(drop_ppm) / sizeof(*drop_ppm); i++) {
        plan.drop_ppm = drop_ppm[i];
        print_message("v%d, %u of a million packets dropped\n", plan.version, plan.drop_ppm);
        ranks_run(2, run_flows, &plan);
    }
}

/* -------------------------------------------------------------------------------------- the tests */

static const struct plan single = {
    .group_max = 1, .groups = 1000, .window = 8, .size_max = 512 << 10, .threads = 1};
static const struct plan grouped = {
    .group_max = 8, .groups = 200, .window = 8, .size_max = 512 << 10, .threads = 1};
static const struct plan many = {
    .group_max = 8, .groups = 1000, .window = 32, .size_max = 2000, .threads = THREADS_MAX};

static void run_with_version(const struct plan *like, int version)
{
    struct plan plan = *like;

    plan.version = version;
    run_plan(plan);
}

TEST(nccl_data__v8)
{
    run_with_version(&single, 8);
}

TEST(nccl_data__v10)
{
    run_with_version(&single, 10);
}

TEST(nccl_data__v11)
{
    run_with_version(&single, 11);
}

/* The sends of a group come in another order than its receives, and tags are there twice. */
TEST(nccl_data__groups_v8)
{
    run_with_version(&grouped, 8);
}

TEST(nccl_data__groups_v11)
{
    run_with_version(&grouped, 11);
}

/* As many requests as NCCL ever has outstanding, from several threads at once. */
TEST(nccl_data__small_messages_of_threads)
{
    run_with_version(&many, 10);
}

/* One way, by hand: rank 0 sends, rank 1 receives. */
struct hand {
    struct net net;
    struct net_link link;
    uint8_t *memory;
    size_t bytes;
    void *mhandle;
};

static void take_hand(struct hand *h, int rank, int version, int group_max, size_t bytes)
{
    start(&h->net, &(struct plan){.version = version, .group_max = group_max});
    net_link(&h->net, !rank, &h->link, 1);
    h->bytes = bytes;
    h->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(h->memory != MAP_FAILED);
    h->mhandle = net_register(&h->net, rank ? h->link.receive : h->link.send, h->memory, bytes);
}

static void leave_hand(struct hand *h, int rank)
{
    rank_meet(!rank);
    NEED(h->net.dereg_mr(rank ? h->link.receive : h->link.send, h->mhandle) == ncclSuccess);
    munmap(h->memory, h->bytes);
    net_unlink(&h->net, &h->link, 1);
    NEED(net_finalize(&h->net) == ncclSuccess);
}

static void *hand_send(struct hand *h, size_t at, size_t size, int tag)
{
    payload_fill(h->memory + at, size, SEED, (uint64_t)tag);
    return net_send_one(&h->net, h->link.send, h->memory + at, size, tag, h->mhandle);
}

static void *hand_receive(struct hand *h, size_t at, size_t room, int tag)
{
    return net_receive_one(&h->net, h->link.receive, h->memory + at, room, tag, h->mhandle, false);
}

static void hand_expect(struct hand *h, void *request, size_t at, size_t size, int tag)
{
    int told = -1;

    net_wait(&h->net, request, &told);
    NEED((size_t)told == size);
    NEED(payload_mismatch(h->memory + at, size, SEED, (uint64_t)tag) == size);
}

enum { EARLY = 16, EARLY_BYTES = 100000 };

static void send_early(int rank, const void *argument)
{
    struct hand h;
    void *request[EARLY];

    (void)argument;
    take_hand(&h, rank, 11, 1, EARLY * EARLY_BYTES);
    for (int i = 0; i < EARLY && !rank; i++)
        NEED(request[i] = hand_send(&h, (size_t)i * EARLY_BYTES, EARLY_BYTES - (size_t)i, i));
    for (int i = 0; i < EARLY && !rank; i++)
        net_wait(&h.net, request[i], NULL);
    rank_meet(!rank);
    for (int i = EARLY - 1; i >= 0 && rank; i--)
        NEED(request[i] = hand_receive(&h, (size_t)i * EARLY_BYTES, EARLY_BYTES, i));
    for (int i = 0; i < EARLY && rank; i++)
        hand_expect(&h, request[i], (size_t)i * EARLY_BYTES, EARLY_BYTES - (size_t)i, i);
    leave_hand(&h, rank);
}

/* Sends are done before there is a receive, which may then come in another order of tags. */
TEST(nccl_data__eager_before_receives)
{
    ranks_run(2, send_early, NULL);
}

enum { TAG_BYTES = 300000 };

static void send_two_tags(int rank, const void *argument)
{
    struct hand h;

    (void)argument;
    take_hand(&h, rank, 11, 1, 2 * TAG_BYTES);
    if (!rank) {
        void *first = hand_send(&h, 0, TAG_BYTES, 1);
        void *second = hand_send(&h, TAG_BYTES, TAG_BYTES, 2);

        net_wait(&h.net, second, NULL);
        net_wait(&h.net, first, NULL);
    } else {
        hand_expect(&h, hand_receive(&h, TAG_BYTES, TAG_BYTES, 2), TAG_BYTES, TAG_BYTES, 2);
        hand_expect(&h, hand_receive(&h, 0, TAG_BYTES, 1), 0, TAG_BYTES, 1);
    }
    leave_hand(&h, rank);
}

/* A send without a receive keeps none of another tag from its own. */
TEST(nccl_data__tags_do_not_wait_for_each_other)
{
    ranks_run(2, send_two_tags, NULL);
}

enum { GROUP = 8, FULL_BYTES = 150000 /* not eager */, FULL = NCCL_NET_MAX_REQUESTS * GROUP };

/* Sends of tags 0 to 7 in turn, until there is no request left. Returns their number. */
static int send_until_full(struct hand *h, void **request)
{
    int n = 0;

    for (int i = 0; i < GROUP; i++)
        payload_fill(h->memory + (size_t)i * FULL_BYTES, FULL_BYTES, SEED, (uint64_t)i);
    while (n <= FULL && (request[n] = net_send_one(&h->net, h->link.send,
                                                   h->memory + (size_t)(n % GROUP) * FULL_BYTES,
                                                   FULL_BYTES, n % GROUP, h->mhandle)))
        n++;
    return n;
}

static int post_until_full(struct hand *h, void **request, int max)
{
    void *data[GROUP], *mhandles[GROUP];
    size_t sizes[GROUP];
    int tags[GROUP], n = 0;

    for (; n < max; n++) {
        for (int i = 0; i < GROUP; i++) {
            data[i] = h->memory + (size_t)((n * GROUP + i) % FULL) * FULL_BYTES;
            mhandles[i] = h->mhandle;
            sizes[i] = FULL_BYTES;
            tags[i] = GROUP - 1 - i;
        }
        request[n] = NULL;
        NEED(net_receive(&h->net, h->link.receive, GROUP, data, sizes, tags, mhandles,
                         &request[n]) == ncclSuccess);
        if (!request[n])
            break;
    }
    return n;
}

static void use_up_requests(int rank, const void *argument)
{
    void *request[FULL + 1];
    struct hand h;
    int sizes[GROUP];

    (void)argument;
    take_hand(&h, rank, 11, GROUP, (size_t)FULL * FULL_BYTES);
    if (!rank) {
        NEED(send_until_full(&h, request) == FULL);
        rank_meet(!rank);
        for (int i = 0; i < FULL; i++)
            net_wait(&h.net, request[i], NULL);
    } else {
        rank_meet(!rank);
        int n = post_until_full(&h, request, NCCL_NET_MAX_REQUESTS);
        NEED(n == NCCL_NET_MAX_REQUESTS);
        for (int i = 0; i < n; i++) {
            net_wait(&h.net, request[i], sizes);
            for (int j = 0; j < GROUP; j++) {
                NEED(sizes[j] == FULL_BYTES);
                NEED(payload_mismatch(h.memory + (size_t)(i * GROUP + j) * FULL_BYTES, FULL_BYTES,
                                      SEED, (uint64_t)(GROUP - 1 - j)) == FULL_BYTES);
            }
        }
        /* Without sends, receives run out, too. */
        NEED(post_until_full(&h, request, FULL) < FULL);
    }
    leave_hand(&h, rank);
}

/* 32 requests, 8 times as many sends, are outstanding; of the next one NCCL hears "not now". */
TEST(nccl_data__requests_run_out)
{
    ranks_run(2, use_up_requests, NULL);
}

static bool has_memory(void)
{
    char line[128];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");

    while (file && fgets(line, sizeof(line), file) && sscanf(line, "MemAvailable: %lu", &kib) != 1)
        ;
    if (file)
        fclose(file);
    return kib > 6ul << 20;
}

static void send_large(int rank, const void *argument)
{
    const size_t sizes[] = {(1 << 20) - 1, (8 << 20) + 3, 64 << 20, has_memory() ? GIB : 1};
    int version = *(const int *)argument;
    size_t last = version == 11 ? 4 : 3;
    struct hand h;

    take_hand(&h, rank, version, 1, last == 4 ? GIB : 64 << 20);
    for (size_t i = 0; i < last; i++)
        if (!rank)
            net_wait(&h.net, hand_send(&h, 0, sizes[i], (int)i), NULL);
        else
            hand_expect(&h, hand_receive(&h, 0, h.bytes, (int)i), 0, sizes[i], (int)i);
    leave_hand(&h, rank);
}

/* Up to 64 MiB, and of v11 1 GiB where there is memory. */
TEST(nccl_data__large)
{
    if (!has_memory())
        print_message("less than 6 GiB are free: without the message of 1 GiB\n");
    for (int version = 8; version <= 11; version += 3)
        ranks_run(2, send_large, &version);
}
