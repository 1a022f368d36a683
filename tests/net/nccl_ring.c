/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce over a ring of processes, in memory of the host, as NCCL does it: first every rank gets
 * the sum of its part (reduce-scatter), then all get all parts (all-gather), in slices, of which
 * some are under way at a time.
 *
 *     nccl_ring VIA DIRECTORY ADDRESS RANK RANKS BYTES SECONDS
 *
 * VIA is the path of a network plugin, or a number of TCP connections to each neighbour. DIRECTORY
 * is one that all ranks see, empty at first; ADDRESS is the host's own. Sums of BYTES of 32-bit
 * numbers are made and verified again and again, about SECONDS long. Writes a line:
 *
 *     bytes_per_s N stall_us N rounds N cpu_percent N
 *
 * the bytes of the sums by the time they took, without that of checking them; the longest time in
 * which no slice was sent or received; how many sums; and how much of one core the process took
 * meanwhile. Exit 0: all sums are right.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/net/ring_wire.h"

enum {
    SLICE = 512 * 1024 / sizeof(uint32_t), /* numbers */
    PAUSE_NS = 100000,
    LOOK_UP_TRIES = 30 * 1000,
};

struct ring {
    struct ring_place place;
    const struct ring_wire *via;
    void *wire;
    uint32_t *staging;   /* a slice for each receive under way */
    uint64_t stall_ns;   /* the longest one */
    uint64_t ns, cpu_ns; /* that all sums took */
    unsigned rounds;
};

/* One allreduce. Slices are numbered by step, then by their place in the step's part. */
struct sum {
    uint32_t *data;
    size_t part;       /* numbers of each rank's part */
    uint64_t per_step; /* slices */
    uint64_t reduce;   /* slices of the steps of reduce-scatter */
    uint64_t slices;   /* of all steps */
    uint64_t send_posted, sent, receive_posted, received;
};

void ring_die(const char *format, ...)
{
    va_list arguments;

    fputs("nccl_ring: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void ring_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* -------------------------------------------------------------------------------- finding others */

static void name_file(const struct ring_place *place, unsigned rank, const char *suffix,
                      char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/rank%u%s", place->directory, rank, suffix);
}

/* It appears with all that is in it. */
void ring_publish(const struct ring_place *place, const void *data, size_t bytes)
{
    char part[PATH_MAX], path[PATH_MAX];

    name_file(place, place->rank, ".part", part);
    name_file(place, place->rank, "", path);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || close(fd) || rename(part, path))
        ring_die("%s: %s", path, strerror(errno));
}

void ring_look_up(const struct ring_place *place, unsigned rank, void *data, size_t bytes)
{
    char path[PATH_MAX];
    int fd = -1;

    name_file(place, rank, "", path);
    for (int try = 0; try < LOOK_UP_TRIES && fd < 0; try++) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            usleep(1000);
    }
    if (fd < 0 || read(fd, data, bytes) != (ssize_t)bytes)
        ring_die("%s: %s", path, strerror(errno));
    close(fd);
}

/* ------------------------------------------------------------------------------------- allreduce */

/* Slice number i of what comes from the left; what goes to the right is a part further on. */
static uint32_t *find_slice(const struct ring *r, const struct sum *s, uint64_t i, bool receives,
                            size_t *numbers)
{
    unsigned ranks = r->place.ranks;
    unsigned step = (unsigned)(i / s->per_step) % ranks;
    size_t part = (r->place.rank + 2 * ranks - step - receives) % ranks;
    size_t begin = i % s->per_step * SLICE;

    *numbers = s->part - begin < SLICE ? s->part - begin : SLICE;
    return s->data + part * s->part + begin;
}

static uint32_t *find_staging(const struct ring *r, uint64_t i)
{
    return r->staging + i % RING_OUTSTANDING * SLICE;
}

/* What all-gather receives takes the place of what reduce-scatter sends. */
static bool may_receive(const struct sum *s)
{
    uint64_t i = s->receive_posted;

    return i < s->slices && i - s->received < RING_OUTSTANDING &&
           (i < s->reduce || s->sent > i - s->reduce);
}

/* What a step sends has been received in the step before. */
static bool may_send(const struct sum *s)
{
    uint64_t i = s->send_posted;

    return i < s->slices && i - s->sent < RING_OUTSTANDING &&
           (i < s->per_step || s->received > i - s->per_step);
}

static void post(struct ring *r, struct sum *s)
{
    size_t numbers;

    for (; may_receive(s); s->receive_posted++) {
        uint64_t i = s->receive_posted;
        uint32_t *slice = find_slice(r, s, i, true, &numbers);

        if (!r->via->receive(r->wire, i < s->reduce ? find_staging(r, i) : slice,
                             numbers * sizeof(*slice)))
            break;
    }
    for (; may_send(s); s->send_posted++) {
        uint32_t *slice = find_slice(r, s, s->send_posted, false, &numbers);

        if (!r->via->send(r->wire, slice, numbers * sizeof(*slice)))
            break;
    }
}

static void add_slice(struct ring *r, struct sum *s)
{
    size_t numbers;
    const uint32_t *from = find_staging(r, s->received);
    uint32_t *to = find_slice(r, s, s->received, true, &numbers);

    for (size_t i = 0; i < numbers; i++)
        to[i] += from[i];
}

/* False: nothing has ended. */
static bool take(struct ring *r, struct sum *s)
{
    unsigned sent = r->via->sent(r->wire), received = r->via->received(r->wire);

    s->sent += sent;
    for (unsigned i = 0; i < received; i++, s->received++)
        if (s->received < s->reduce)
            add_slice(r, s);
    return sent || received;
}

/*
 * Replaces `numbers`, a multiple of the number of ranks, by the sums of all ranks. Returns the longest
 * time, in ns, in which nothing ended.
 */
static uint64_t allreduce(struct ring *r, uint32_t *data, size_t numbers)
{
    unsigned ranks = r->place.ranks;
    struct sum s = {.data = data, .part = numbers / ranks};
    uint64_t moved_ns = clock_ns(CLOCK_MONOTONIC), stall_ns = 0;

    s.per_step = (s.part + SLICE - 1) / SLICE;
    s.reduce = (ranks - 1) * s.per_step;
    s.slices = 2 * s.reduce;
    while (s.sent < s.slices || s.received < s.slices) {
        post(r, &s);
        bool moved = take(r, &s);
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (now_ns - moved_ns > stall_ns)
            stall_ns = now_ns - moved_ns;
        if (moved)
            moved_ns = now_ns;
        else
            ring_pause();
    }
    return stall_ns;
}

/* ---------------------------------------------------------------------------------------- rounds */

/* Number i of a rank. The sums are known without adding. */
static uint32_t number_of(unsigned round, unsigned rank, uint32_t i)
{
    return i * 2654435761u + rank * 40503u + round * 97u;
}

static void fill(const struct ring *r, uint32_t *data, size_t numbers)
{
    for (size_t i = 0; i < numbers; i++)
        data[i] = number_of(r->rounds, r->place.rank, (uint32_t)i);
}

static void verify(const struct ring *r, const uint32_t *data, size_t numbers)
{
    uint32_t ranks = r->place.ranks;
    uint32_t of_ranks = number_of(0, ranks * (ranks - 1) / 2, 0);

    for (size_t i = 0; i < numbers; i++)
        if (data[i] != ranks * number_of(r->rounds, 0, (uint32_t)i) + of_ranks)
            ring_die("round %u: sum %zu is wrong", r->rounds, i);
}

/* All ranks meet here. How many of them want no other round? */
static uint32_t vote(struct ring *r, uint32_t *votes, bool enough)
{
    for (unsigned i = 0; i < r->place.ranks; i++)
        votes[i] = enough;
    (void)allreduce(r, votes, r->place.ranks);
    return votes[0];
}

static void run_round(struct ring *r, uint32_t *data, size_t numbers)
{
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t stall_ns = allreduce(r, data, numbers);

    r->ns += clock_ns(CLOCK_MONOTONIC) - begin_ns;
    r->cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    if (stall_ns > r->stall_ns)
        r->stall_ns = stall_ns;
}

/* The first round warms up: it counts for nothing. */
static void run(struct ring *r, size_t numbers, double seconds)
{
    size_t bytes = (numbers + r->place.ranks) * sizeof(uint32_t);
    size_t staging_bytes = RING_OUTSTANDING * SLICE * sizeof(uint32_t);
    uint32_t *data = calloc(1, bytes);

    r->staging = calloc(1, staging_bytes);
    if (!data || !r->staging)
        ring_die("no memory");
    r->via->add_memory(r->wire, data, bytes);
    r->via->add_memory(r->wire, r->staging, staging_bytes);
    do {
        fill(r, data, numbers);
        (void)vote(r, data + numbers, false);
        run_round(r, data, numbers);
        verify(r, data, numbers);
        if (!r->rounds++)
            r->ns = r->cpu_ns = r->stall_ns = 0;
    } while (!vote(r, data + numbers, r->rounds > 1 && (double)r->ns >= seconds * 1e9));
    r->via->close(r->wire);
    free(data);
    free(r->staging);
}

int main(int argc, char **argv)
{
    struct ring r = {.place = {0}};

    if (argc != 8)
        ring_die("VIA DIRECTORY ADDRESS RANK RANKS BYTES SECONDS");
    r.place = (struct ring_place){.via = argv[1],
                                  .directory = argv[2],
                                  .address = argv[3],
                                  .rank = (unsigned)atoi(argv[4]),
                                  .ranks = (unsigned)atoi(argv[5])};
    size_t numbers = strtoull(argv[6], NULL, 10) / sizeof(uint32_t);
    if (r.place.ranks < 2 || r.place.rank >= r.place.ranks || !numbers || numbers % r.place.ranks)
        ring_die("2 ranks or more, and BYTES of numbers that can be divided among them");
    r.via = strchr(r.place.via, '/') ? &ring_plugin : &ring_tcp;
    r.wire = r.via->open(&r.place);
    run(&r, numbers, atof(argv[7]));
    unsigned rounds = r.rounds - 1;
    printf("bytes_per_s %.0f stall_us %llu rounds %u cpu_percent %.0f\n",
           (double)numbers * sizeof(uint32_t) * rounds / ((double)r.ns / 1e9),
           (unsigned long long)r.stall_ns / 1000, rounds, 100.0 * (double)r.cpu_ns / (double)r.ns);
    return 0;
}
