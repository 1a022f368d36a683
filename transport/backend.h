/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a packet mover is: the ops that context.c and progress.c drive.
 *
 * open() once; then rx_burst(), rx_return(), tx_burst(), tx_reap(), wait() from one thread at a
 * time, under the context's lock (wait() without it). No op blocks but wait(). A mover embeds
 * `struct mrd_backend` first in its own struct.
 */
#ifndef MRD_TRANSPORT_BACKEND_H
#define MRD_TRANSPORT_BACKEND_H

#include "core/engine/engine.h"

struct mrd_backend;

/* Straight receive: the engine's plan for a burst; see mrd_engine_rx_plan(). */
typedef unsigned mrd_plan_fn(void *arg, const uint8_t *head, unsigned head_len, unsigned segments,
                             unsigned segment_len, unsigned total_len, const struct mrd_addr *from,
                             struct mrd_rx_plan *plan);

struct mrd_backend_ops {
    const char *transport; /* "udp", "ibv", "sim" */
    bool has_port;         /* the port of its addresses is a UDP port or a host's number */

    /* The mover with its sockets bound, or NULL with *error = -errno and mrd_error_set() called. */
    struct mrd_backend *(*open)(const struct mrd_device *device,
                                const struct mrd_context_attr *attr, int *error);
    void (*close)(struct mrd_backend *b);

    uint64_t (*now_ns)(struct mrd_backend *b);

    /*
     * Send packets[0..n): how many were taken, a prefix. What was not is offered again. A packet
     * that can never be sent (no route, peer's port closed) counts as taken: loss. Too big for the
     * path: taken, and told by too_big().
     */
    unsigned (*tx_burst)(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n);
    /* Cookies of packets whose buffers are no longer read. NULL when mover.copies. */
    unsigned (*tx_reap)(struct mrd_backend *b, uint64_t *cookies, unsigned max);
    /*
     * Next peer that a packet turned out too big for: true and what fits; false: none. NULL if it
     * never happens.
     */
    bool (*too_big)(struct mrd_backend *b, struct mrd_addr *to, uint32_t *payload_bytes);

    /*
     * Up to max packets; *more is set if there may be more. Their memory is the mover's until
     * rx_return(). `plan` is called when straight receive may pay.
     */
    unsigned (*rx_burst)(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                         bool *more, mrd_plan_fn *plan, void *plan_arg);
    void (*rx_return)(struct mrd_backend *b);

    /*
     * Sleep until a packet may wait, `wake_fd` is readable or timeout_ns passed (UINT64_MAX:
     * no limit).
     */
    void (*wait)(struct mrd_backend *b, int wake_fd, uint64_t timeout_ns);
    /* A descriptor that polls readable when packets wait, or -1. */
    int (*fd)(struct mrd_backend *b);

    /*
     * Make memory known to the device before it is sent from, and undo that: without the context's
     * lock, perhaps at the same time as any other op. 0 or -errno with mrd_error_set(). NULL when
     * the mover need not know.
     */
    int (*reg_mr)(struct mrd_backend *b, void *addr, size_t length, int access,
                  struct mrd_mover_mr *mr);
    void (*dereg_mr)(struct mrd_backend *b, struct mrd_mover_mr mr);

    /*
     * The device's next event: true, or false: none. Cheap enough for every step. NULL if it never
     * has one.
     */
    bool (*take_event)(struct mrd_backend *b, enum mrd_event_type *type);

    /* A fresh source port: its path number, or -ENOTSUP with fixed ports, -EMFILE, -ENOSPC. */
    int (*new_path)(struct mrd_backend *b);
    /* The number shown to users for a path: UDP source port. */
    uint32_t (*path_port)(struct mrd_backend *b, uint32_t path);

    /* "192.0.2.7:4793" -> addr; 0 or -errno with mrd_error_set(). */
    int (*parse_address)(struct mrd_backend *b, const char *text, struct mrd_addr *addr);
    /* addr -> text; 0 or -ENOSPC. */
    int (*format_address)(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                          size_t len);
    /* The address to tell others. */
    int (*self_address)(struct mrd_backend *b, struct mrd_addr *addr);
    /*
     * Largest payload, multiple of 64, that a packet to `to` carries unfragmented; or -EHOSTUNREACH
     * with mrd_error_set().
     */
    int (*payload_bytes)(struct mrd_backend *b, const struct mrd_addr *to);
};

struct mrd_backend {
    const struct mrd_backend_ops *ops;
    struct mrd_mover mover; /* filled by open() */
    unsigned batch;         /* packets made before a tx_burst(); 0: as many as there is room for */
    bool threaded;          /* a progress thread makes sense: false for virtual time */
};

/* The devices of a mover, put into list[0..max): how many. */
unsigned mrd_udp_devices(struct mrd_device *list, unsigned max);
extern const struct mrd_backend_ops mrd_udp_ops;
#ifdef MRD_HAVE_IBV
unsigned mrd_ibv_devices(struct mrd_device *list, unsigned max);
extern const struct mrd_backend_ops mrd_ibv_ops;
#endif
/* The simulated host's ops are found through its device; see transport/sim/. */
const struct mrd_backend_ops *mrd_backend_find(const struct mrd_device *device);

/* Set the calling thread's mrd_last_error() sentence. */
void mrd_error_set(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A message for mrd_set_log(). */
void mrd_log(enum mrd_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
