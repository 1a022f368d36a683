/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/perf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

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

double perf_cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
