/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/perf/perf.h"

enum { LINE_BYTES = 512 };

/* The sum of the values of each "Key:  123 kB"; 0 if none is there. */
static int64_t sum_of(const char *path, const char *const *keys)
{
    char line[LINE_BYTES], name[LINE_BYTES];
    FILE *f = fopen(path, "r");
    int64_t bytes = 0;
    long long kib;

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%511[^:]: %lld kB", name, &kib) != 2)
            continue;
        for (const char *const *key = keys; *key; key++) {
            if (strcmp(name, *key) == 0)
                bytes += kib * 1024;
        }
    }
    if (f)
        fclose(f);
    return bytes;
}

/*
 * Slab memory is counted by objects where /proc/slabinfo may be read (root), because pages of slabs
 * outlive their objects. 0: we may not know. "name  active total size ..." a line.
 */
static int64_t slab_objects(void)
{
    FILE *f = fopen("/proc/slabinfo", "r");
    long long active, total, size;
    char line[LINE_BYTES];
    int64_t bytes = 0;

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%*s %lld %lld %lld", &active, &total, &size) == 3)
            bytes += active * size;
    }
    if (f)
        fclose(f);
    return bytes;
}

int perf_memory_read(struct perf_memory *memory, char *error)
{
    static const char *const user[] = {"Anonymous", NULL};
    static const char *const slab[] = {"Slab", NULL};
    static const char *const kernel[] = {"VmallocUsed", "Percpu", "KernelStack", "PageTables",
                                         NULL};
    int64_t objects = slab_objects();

    memory->user_bytes = sum_of("/proc/self/smaps_rollup", user);
    memory->kernel_bytes = sum_of("/proc/meminfo", kernel);
    memory->kernel_bytes += objects ? objects : sum_of("/proc/meminfo", slab);
    if (memory->user_bytes && memory->kernel_bytes)
        return 0;
    return perf_fail(error, -ENOENT,
                     "/proc/self/smaps_rollup or /proc/meminfo does not tell memory in use");
}
