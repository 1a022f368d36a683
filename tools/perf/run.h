/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of one test, as seen by one end.
 *
 * While a test runs it calls perf_run_tick(), which usually costs a comparison: it shows the live
 * line and watches the control connection.
 */
#ifndef MRD_PERF_RUN_H
#define MRD_PERF_RUN_H

#include "tools/perf/control.h"
#include "tools/perf/endpoint.h"
#include "tools/perf/infinite.h"
#include "tools/perf/measure.h"
#include "tools/perf/options.h"

struct perf_transport_ops;
struct perf_threads;
struct perf_run;

/* What a run with other threads does in the place of one that is alone, or besides: threads.c. */
struct perf_thread_ops {
    /* In another thread than the main one, instead of perf_run_watch(). 0, or -errno: it ends. */
    int (*watch)(struct perf_run *run, uint64_t now_ns, uint64_t done);
    /* In the main thread: add what the others did to *done. -errno if one of them failed. */
    int (*add_done)(struct perf_run *run, uint64_t *done);
    /* In the main thread: take what each of the client's threads sent from its "done". */
    int (*take_sent)(struct perf_run *run, struct json_object *message);
};

/* Which of several threads this is; all zero if there is one. */
struct perf_run_thread {
    struct perf_threads *all; /* of the main thread, and shared by all */
    const struct perf_thread_ops *ops;
    struct perf_run *main; /* the main thread's run; NULL: this is it */
    unsigned number;       /* the main one's is 0 */
};

/* The other end, as far as it is known. */
struct perf_run_peer {
    bool told;      /* it knows of the error, or told us */
    bool connected; /* its connect_qps() has ended: it is ready for the test */
    bool done;      /* it has sent all there is... */
    uint64_t sent;  /* ...which is so many messages */
    bool finished;  /* -b: the client has all that the server sent; --threads: all is here */
};

/* When what is due beside the test. */
struct perf_run_watch {
    uint64_t next_ns;                 /* perf_run_watch() */
    uint64_t next_alive_ns, heard_ns; /* signs of life, both ways */
};

/* Whether what arrived is what was sent. */
struct perf_verdict {
    int verified; /* 1, 0, -1: nothing to verify */
    char error[200];
};

/* CPU time: this process's, and how busy the machine was. */
struct perf_run_cpu {
    double start_s, used_s;
    struct perf_cpu_times at_begin; /* of the machine */
    struct perf_cpu_load load;      /* of the machine that was too busy, else of the client's */
};

/* The client's live line. */
struct perf_run_live {
    bool shown;
    uint64_t next_ns;
};

/* --run_infinitely: the last line, and what was done until then. */
struct perf_run_second {
    uint64_t end_ns, done;
    struct perf_latency latency; /* since then */
};

struct perf_run {
    const struct perf_options *options; /* of this end; for what the other end shares, use params */
    struct perf_params params;          /* settled */
    const struct perf_transport_ops *ops;
    struct perf_endpoint e;
    void *state; /* the transport's */
    bool server;
    struct perf_control *control;
    const char *label;    /* of the live line; NULL: the transport */
    uint64_t deadline_ns; /* then it fails; 0: it takes what time it takes */
    char error[PERF_ERROR_BYTES];

    struct perf_run_thread thread;
    struct perf_run_peer peer;
    struct perf_run_watch watch;
    struct perf_run_live live;
    struct perf_run_second last_second;

    /* Bandwidth: the receiver's; where only the sender knows what arrived, the client's. */
    struct perf_meter meter;
    uint64_t received; /* messages */
    struct perf_verdict verdict;

    /* The client's, and in part of both ends that send. */
    uint64_t sent; /* messages posted; latency: exchanges measured */
    struct perf_latency latency;
    uint64_t start_ns, end_ns;
    struct perf_run_cpu cpu;
    struct perf_sampler
        resent; /* retransmissions over time; samples only where the transport knows them */
    struct json_object *findings; /* the server's */
    struct json_object *report;   /* the client's message at the server; the caller puts it */

    uint64_t events; /* -e: of the completion channel, taken */
};

/* Set run->error unless an earlier error is there. Returns `rc`. */
int perf_run_fail(struct perf_run *run, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Watch the control connection and, at the client, show `done` messages live. 0, or -errno: the run
 * is over.
 */
int perf_run_watch(struct perf_run *run, uint64_t now_ns, uint64_t done);
static inline int perf_run_tick(struct perf_run *run, uint64_t now_ns, uint64_t done)
{
    return now_ns < run->watch.next_ns ? 0 : perf_run_watch(run, now_ns, done);
}

/*
 * Sleep until `fd` or the control connection can be read, or it is time to look after other things.
 * 0 or -errno.
 */
int perf_run_sleep(struct perf_run *run, int fd);

/* The client: is all sent after `count` messages? */
static inline bool perf_run_over(const struct perf_run *run, uint64_t count, uint64_t now_ns)
{
    if (run->params.run_infinitely && perf_infinite_is_over())
        return true;
    return run->params.duration_s ? now_ns >= run->start_ns + run->params.duration_s * PERF_SEC_NS
                                  : count >= run->params.iterations;
}

/* Send `message`, whose ownership passes. 0 or -errno with run->error. */
int perf_run_say(struct perf_run *run, struct json_object *message);
/* How long to wait for something of which `most_ms` is enough: not beyond the deadline; at least 1. */
int perf_run_patience_ms(const struct perf_run *run, int most_ms);
/* The next message, which must be of this type. NULL with run->error if it is not. */
struct json_object *perf_run_expect(struct perf_run *run, const char *type);
/* Take the live line away. */
void perf_run_clear_live(struct perf_run *run);

/* ends.c: a run as each end performs it, from the request to the report. */
/* Run the client. Returns its report, or NULL with run->error. */
struct json_object *perf_run_client(struct perf_run *run);
/*
 * Run the server as the client's `request` says. 0, or -errno with run->error, which the client was
 * told.
 */
int perf_run_server(struct perf_run *run, struct json_object *request);

/*
 * bw.c: the client posts as fast as its window allows, the server takes what arrives. All return 0
 * or -errno with run->error.
 */
/* Post all messages, and return. */
int perf_bw_client(struct perf_run *run);
/* Poll once while the server may still need retransmissions. */
int perf_bw_progress(struct perf_run *run);
/* With -b, at both ends: post all messages, and take all of the other end. */
int perf_bw_both(struct perf_run *run);
/* Take messages until all have arrived; of reads and atomics, wait until the client is done. */
int perf_bw_server(struct perf_run *run);

/*
 * lat.c: client and server send each other one message in turn; or the client reads, again and
 * again. 0 or -errno with run->error.
 */
int perf_lat_client(struct perf_run *run);
int perf_lat_server(struct perf_run *run);

#endif
