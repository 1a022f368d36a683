/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static _Thread_local char last_error[MRD_SENTENCE_BYTES];

static struct {
    pthread_mutex_t lock; /* guards fn, arg, chosen */
    mrd_log_fn *fn;
    void *arg;
    bool chosen;      /* the application called mrd_set_log(): MRD_LOG no longer matters */
    atomic_int level; /* messages above it are dropped; -1: all. Read without the lock */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = -1};

void mrd_error_set(const char *format, ...)
{
    int cause = errno;
    va_list args;

    va_start(args, format);
    vsnprintf(last_error, sizeof(last_error), format, args);
    va_end(args);
    errno = cause;
}

void mrd_error_copy(const char *sentence, int error)
{
    if (!sentence || !sentence[0]) {
        mrd_error_set("%s", strerror(-error));
        return;
    }

    size_t len = strlen(sentence);
    if (len > MRD_SENTENCE_BYTES - 1)
        len = MRD_SENTENCE_BYTES - 1;
    memcpy(last_error, sentence, len);
    last_error[len] = '\0';
}

const char *mrd_last_error(void)
{
    return last_error;
}

static void log_to_stderr(void *arg, enum mrd_log_level level, const char *message)
{
    (void)arg;
    fprintf(stderr, "mrd %s: %s\n", level_names[level], message);
}

static void set_sink(mrd_log_fn *fn, void *arg, enum mrd_log_level level)
{
    sink.fn = fn;
    sink.arg = arg;
    atomic_store_explicit(&sink.level, fn ? (int)level : -1, memory_order_relaxed);
}

void mrd_set_log(mrd_log_fn *fn, void *arg, enum mrd_log_level level)
{
    pthread_mutex_lock(&sink.lock);
    sink.chosen = true;
    set_sink(fn, arg, level);
    pthread_mutex_unlock(&sink.lock);
}

void mrd_log_default(enum mrd_log_level level)
{
    pthread_mutex_lock(&sink.lock);
    if (!sink.chosen)
        set_sink(log_to_stderr, NULL, level);
    pthread_mutex_unlock(&sink.lock);
}

void mrd_log(enum mrd_log_level level, const char *format, ...)
{
    if ((int)level > atomic_load_explicit(&sink.level, memory_order_relaxed))
        return;

    char message[MRD_SENTENCE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);

    /* Call it without the lock, so that it may itself call mrd_set_log(). */
    pthread_mutex_lock(&sink.lock);
    mrd_log_fn *fn = sink.fn;
    void *arg = sink.arg;
    pthread_mutex_unlock(&sink.lock);
    if (fn)
        fn(arg, level, message);
}

int mrd_log_parse(const char *text, enum mrd_log_level *level)
{
    for (unsigned i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (strcmp(text, level_names[i]))
            continue;
        *level = (enum mrd_log_level)i;
        return 0;
    }
    return -EINVAL;
}
