/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collective operations of MPI in a loop, timed, with every byte checked: what tools/mpi.sh compares
 * transports by.
 *
 * mpi_loops OPERATION BYTES TURNS
 *
 * OPERATION is allreduce, alltoall (BYTES to each rank), bcast, pingpong, ring, or pause: the last rank
 * sends BYTES to rank 0, PAUSE_MESSAGES times, and then nothing for PAUSE_S seconds. Rank 0 prints a line:
 * OPERATION RANKS BYTES TURNS MICROSECONDS of a turn, the median; of the first one, which meets the
 * others; and of the longest. Exit status 1, by MPI_Abort(), at a wrong byte.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_MESSAGES = 20000, PAUSE_S = 30 };

struct loop {
    int rank, ranks, bytes;
    uint32_t turn;
    uint32_t *from, *to;
};

static void fail(const struct loop *l, const char *what)
{
    fprintf(stderr, "rank %d of %d, turn %u: %s\n", l->rank, l->ranks, l->turn, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What word i of a turn is, from one rank to another. */
static uint32_t word(const struct loop *l, int from, int to, int i)
{
    return ((uint32_t)i + l->turn) * 2654435761u + (uint32_t)from * 40503u + (uint32_t)to * 7u;
}

static int words(const struct loop *l)
{
    return l->bytes / (int)sizeof(uint32_t);
}

static void fill(const struct loop *l, uint32_t *at, int from, int to)
{
    for (int i = 0; i < words(l); i++)
        at[i] = word(l, from, to, i);
}

static void check(const struct loop *l, const uint32_t *at, int from, int to)
{
    for (int i = 0; i < words(l); i++) {
        if (at[i] != word(l, from, to, i))
            fail(l, "a wrong word");
    }
}

static double allreduce(struct loop *l)
{
    fill(l, l->from, l->rank, 0);
    double start = MPI_Wtime();
    MPI_Allreduce(l->from, l->to, words(l), MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
    double took = MPI_Wtime() - start;
    for (int i = 0; i < words(l); i++) {
        uint32_t sum = 0;

        for (int r = 0; r < l->ranks; r++)
            sum += word(l, r, 0, i);
        if (l->to[i] != sum)
            fail(l, "a wrong sum");
    }
    return took;
}

static double alltoall(struct loop *l)
{
    for (int r = 0; r < l->ranks; r++)
        fill(l, l->from + (size_t)r * (size_t)words(l), l->rank, r);
    double start = MPI_Wtime();
    MPI_Alltoall(l->from, words(l), MPI_UINT32_T, l->to, words(l), MPI_UINT32_T, MPI_COMM_WORLD);
    double took = MPI_Wtime() - start;
    for (int r = 0; r < l->ranks; r++)
        check(l, l->to + (size_t)r * (size_t)words(l), r, l->rank);
    return took;
}

static double bcast(struct loop *l)
{
    int root = (int)(l->turn % (uint32_t)l->ranks);

    if (l->rank == root)
        fill(l, l->to, root, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    MPI_Bcast(l->to, words(l), MPI_UINT32_T, root, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime() - start;
    check(l, l->to, root, 0);
    return start;
}

/* Ranks 0 and 1 only; half a round trip. */
static double pingpong(struct loop *l)
{
    double start = MPI_Wtime();

    if (l->rank > 1)
        return 0;
    fill(l, l->from, l->rank, 0);
    start = MPI_Wtime();
    if (l->rank == 0)
        MPI_Send(l->from, words(l), MPI_UINT32_T, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(l->to, words(l), MPI_UINT32_T, 1 - l->rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (l->rank == 1)
        MPI_Send(l->from, words(l), MPI_UINT32_T, 0, 1, MPI_COMM_WORLD);
    start = (MPI_Wtime() - start) / 2;
    check(l, l->to, 1 - l->rank, 0);
    return start;
}

static double ring(struct loop *l)
{
    int next = (l->rank + 1) % l->ranks, prev = (l->rank + l->ranks - 1) % l->ranks;

    fill(l, l->from, l->rank, 0);
    double start = MPI_Wtime();
    MPI_Sendrecv(l->from, words(l), MPI_UINT32_T, next, 2, l->to, words(l), MPI_UINT32_T, prev, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    start = MPI_Wtime() - start;
    check(l, l->to, prev, 0);
    return start;
}

/* The others have nothing to do but to wait for it. */
static double pause_after_many(struct loop *l)
{
    int last = l->ranks - 1;
    double start = MPI_Wtime();

    for (int i = 0; i < PAUSE_MESSAGES; i++) {
        if (l->rank == last) {
            fill(l, l->from, last, i);
            MPI_Send(l->from, words(l), MPI_UINT32_T, 0, 3, MPI_COMM_WORLD);
        } else if (l->rank == 0) {
            MPI_Recv(l->to, words(l), MPI_UINT32_T, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(l, l->to, last, i);
        }
    }
    if (l->rank == last)
        sleep(PAUSE_S);
    return MPI_Wtime() - start;
}

static const struct {
    const char *name;
    double (*turn)(struct loop *l);
} operations[] = {
    {"allreduce", allreduce}, {"alltoall", alltoall}, {"bcast", bcast},
    {"pingpong", pingpong},   {"ring", ring},         {"pause", pause_after_many},
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double (*find(const char *name))(struct loop *l)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (!strcmp(operations[i].name, name))
            return operations[i].turn;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct loop l = {0};
    double (*turn)(struct loop * l), *took, first = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &l.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &l.ranks);
    turn = argc == 4 ? find(argv[1]) : NULL;
    l.bytes = argc == 4 ? atoi(argv[2]) & ~3 : 0;
    uint32_t turns = argc == 4 ? (uint32_t)atoi(argv[3]) : 0;
    if (!turn || !turns || l.bytes < 4) {
        fprintf(stderr,
                "usage: mpi_loops allreduce|alltoall|bcast|pingpong|ring|pause BYTES TURNS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t room = (size_t)l.bytes * (size_t)l.ranks;
    l.from = malloc(room);
    l.to = malloc(room);
    took = calloc(turns, sizeof(*took));
    if (!l.from || !l.to || !took)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (l.turn = 0; l.turn < turns; l.turn++) {
        took[l.turn] = turn(&l);
        if (!l.turn)
            first = took[0];
        MPI_Barrier(MPI_COMM_WORLD);
    }
    qsort(took, turns, sizeof(*took), compare);
    if (l.rank == 0)
        printf("%s %d %d %u %.2f %.2f %.2f\n", argv[1], l.ranks, l.bytes, turns,
               took[turns / 2] * 1e6, first * 1e6, took[turns - 1] * 1e6);
    free(l.from);
    free(l.to);
    free(took);
    MPI_Finalize();
    return 0;
}
