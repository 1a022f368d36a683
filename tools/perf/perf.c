/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/perf.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int perf_fail(char *error, int rc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, PERF_ERROR_BYTES, format, args);
    va_end(args);
    return rc;
}

enum perf_exit perf_complain(enum perf_exit code, const char *format, ...)
{
    char text[2 * PERF_ERROR_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fflush(stdout);
    fprintf(stderr, "mrd_perf: %s\n", text);
    return code;
}

bool perf_read_line(const char *path, char *line, size_t len)
{
    FILE *f = fopen(path, "re");
    bool read = f && fgets(line, (int)len, f);

    if (f)
        fclose(f);
    if (read)
        line[strcspn(line, "\n")] = '\0';
    return read;
}

int perf_in_child(int (*run)(void *result), void *result, size_t bytes, char *error)
{
    int fds[2], rc = -ECHILD;

    fflush(NULL); /* or the child writes it again */
    if (pipe(fds))
        return perf_fail(error, -errno, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        rc = run(result);
        /* Short: a pipe takes it at once. */
        bool told = write(fds[1], result, bytes) == (ssize_t)bytes &&
                    write(fds[1], &rc, sizeof(rc)) == (ssize_t)sizeof(rc);
        _exit(!told);
    }
    close(fds[1]);
    bool heard = pid > 0 && read(fds[0], result, bytes) == (ssize_t)bytes &&
                 read(fds[0], &rc, sizeof(rc)) == (ssize_t)sizeof(rc);
    close(fds[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return heard ? rc : perf_fail(error, -ECHILD, "the process that makes the peers died");
}

double perf_cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
