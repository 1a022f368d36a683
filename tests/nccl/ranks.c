/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/nccl/ranks.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/kit/kit.h"

enum { SENTENCE = 512, ALONE = 3 /* exit status of a rank that another one left */ };

/* What the test and its ranks share. */
struct rank_board {
    bool doomed; /* ends by a signal, as it wants */
    char failure[SENTENCE];
};

static struct {
    int count, me;
    int fd[RANKS_MAX][RANKS_MAX]; /* [a][b]: a's end of the socket to b */
    struct rank_board *board;     /* of each rank */
} ranks;

int ranks_count(void)
{
    return ranks.count;
}

uint64_t rank_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ------------------------------------------------------------------------------- of a rank */

void rank_fail(const char *file, int line, const char *format, ...)
{
    char text[SENTENCE - 128], *failure = ranks.board[ranks.me].failure;
    va_list list;

    if (failure[0]) /* a thread, or a child, was earlier */
        _exit(1);

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    snprintf(failure, SENTENCE, "%s:%d: %s", strrchr(file, '/') ? strrchr(file, '/') + 1 : file,
             line, text);
    _exit(1);
}

void rank_tell(int to, const void *data, size_t bytes)
{
    if (send(ranks.fd[ranks.me][to], data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
        _exit(ALONE);
}

void rank_hear(int from, void *data, size_t bytes)
{
    if (recv(ranks.fd[ranks.me][from], data, bytes, MSG_WAITALL) != (ssize_t)bytes)
        _exit(ALONE);
}

void rank_meet(int other)
{
    char here = 1;

    rank_tell(other, &here, 1);
    rank_hear(other, &here, 1);
}

void rank_meet_all(void)
{
    char here = 1;

    for (int i = 0; i < ranks.count; i++)
        if (i != ranks.me)
            rank_tell(i, &here, 1);
    for (int i = 0; i < ranks.count; i++)
        if (i != ranks.me)
            rank_hear(i, &here, 1);
}

void rank_await_death(int other)
{
    char nothing;

    NEED(recv(ranks.fd[ranks.me][other], &nothing, 1, 0) == 0);
}

void rank_kill_myself(int signal)
{
    ranks.board[ranks.me].doomed = true;
    raise(signal);
}

/* Of the sockets, a rank keeps its own ends: only so the death of another one shows. */
static void begin_rank(int me)
{
    ranks.me = me;
    for (int i = 0; i < ranks.count; i++)
        for (int j = 0; j < ranks.count; j++)
            if (i != j && i != me)
                close(ranks.fd[i][j]);
    alarm(RANKS_SECONDS);
}

/* ------------------------------------------------------------------------------ of the test */

static void connect_ranks(int n)
{
    int pair[2];

    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
            ranks.fd[i][j] = pair[0];
            ranks.fd[j][i] = pair[1];
        }
}

/* True: the rank has failed, and the sentence says how. */
static bool judge(int rank, int status)
{
    struct rank_board *board = &ranks.board[rank];

    if (board->failure[0])
        return true;
    if (WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == ALONE))
        return false;
    if (WIFEXITED(status))
        snprintf(board->failure, SENTENCE, "exits with status %d", WEXITSTATUS(status));
    else if (WTERMSIG(status) == SIGALRM)
        snprintf(board->failure, SENTENCE, "hangs");
    else
        snprintf(board->failure, SENTENCE, "is ended by signal %d", WTERMSIG(status));
    return true;
}

/* Waits for all ranks but the doomed ones. Returns the one that failed, not those that it left; or -1. */
static int await_ranks(const pid_t *pids)
{
    int failed = -1, alone = -1, status;
    bool ended[RANKS_MAX] = {false};

    for (;;) {
        int awaited = 0;

        for (int i = 0; i < ranks.count; i++)
            awaited += !ended[i] && !ranks.board[i].doomed;
        if (!awaited || failed >= 0)
            break;
        pid_t pid = waitpid(-1, &status, 0);
        for (int i = 0; i < ranks.count; i++)
            if (pids[i] == pid) {
                ended[i] = true;
                if (!ranks.board[i].doomed && judge(i, status))
                    failed = i;
                else if (!ranks.board[i].doomed && status)
                    alone = i;
            }
    }
    for (int i = 0; i < ranks.count; i++)
        if (!ended[i]) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], &status, 0);
        }
    return failed < 0 ? alone : failed;
}

void ranks_run(int n, void (*run)(int rank, const void *argument), const void *argument)
{
    pid_t pids[RANKS_MAX];

    assert_in_range(n, 1, RANKS_MAX);
    ranks.count = n;
    ranks.board = mmap(NULL, RANKS_MAX * sizeof(*ranks.board), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(ranks.board, MAP_FAILED);
    connect_ranks(n);
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (!pids[i]) {
            begin_rank(i);
            run(i, argument);
            exit(0);
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (i != j)
                close(ranks.fd[i][j]);
    int failed = await_ranks(pids);
    char sentence[SENTENCE] = "another rank left it alone";
    if (failed >= 0 && ranks.board[failed].failure[0])
        memcpy(sentence, ranks.board[failed].failure, SENTENCE);
    munmap(ranks.board, RANKS_MAX * sizeof(*ranks.board));
    if (failed >= 0)
        fail_msg("rank %d of %d: %s", failed, n, sentence);
}
