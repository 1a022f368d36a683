/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of a packet mover: UDP sockets, queue pairs of an RDMA device, a simulated host.
 *
 * open.c calls open() once; progress.c then calls rx_burst(), rx_return(), tx_burst() and tx_reap()
 * under the context's lock, so from one thread at a time. wait() alone blocks and is called without
 * the lock; now_ns(), fd(), reg_mr() and dereg_mr() may be called without it. A mover's own struct
 * has `struct mrd_backend` as its first field. Ops that may be NULL say so.
 */
#ifndef MRD_TRANSPORT_BACKEND_H
#define MRD_TRANSPORT_BACKEND_H

#include "core/engine/engine.h"

struct mrd_backend;

/* Asks the engine where the payloads of a burst are to be received: see mrd_engine_rx_plan(). */
typedef unsigned mrd_plan_fn(void *arg, const uint8_t *head, unsigned head_len, unsigned segments,
                             unsigned segment_len, unsigned total_len, const struct mrd_addr *from,
                             struct mrd_rx_plan *plan);

/* The port or interface that a context sends by. Zero and "": unknown. */
struct mrd_port_facts {
    enum mrd_port_state state;
    uint32_t mtu; /* of the link, in bytes */
    uint64_t bps;
    char interface[32];
};

struct mrd_backend_ops {
    const char *transport; /* "udp", "ibv" or "sim", as in mrd_device.transport */
    bool has_port;         /* the port of its addresses is a UDP port or a host's number */

    /*
     * Opens the device. NULL with *error = -errno and mrd_error_set() if that fails. The
     * caller closes.
     */
    struct mrd_backend *(*open)(const struct mrd_device *device,
                                const struct mrd_context_attr *attr, int *error);
    void (*close)(struct mrd_backend *b);

    uint64_t (*now_ns)(struct mrd_backend *b);

    /*
     * Sends packets[0..n) in order. Returns how many it took from the front; the rest is offered
     * again. A packet that can never be sent (no route, peer's port closed) counts as taken, and is
     * lost. One that is too big for the route is taken as well, and too_big() reports it. Buffers
     * may be reused at once if mover.copies, else when tx_reap() returned the packet's cookie.
     */
    unsigned (*tx_burst)(struct mrd_backend *b, const struct mrd_tx_packet *packets, unsigned n);
    /*
     * Writes up to `max` cookies of packets whose buffers the device no longer reads. Returns how
     * many. NULL if mover.copies.
     */
    unsigned (*tx_reap)(struct mrd_backend *b, uint64_t *cookies, unsigned max);
    /*
     * Takes the next report of a packet that did not fit its route. true: *to is the peer, and
     * packets to it carry at most *payload_bytes bytes of payload. false: no report. NULL if it
     * never happens.
     */
    bool (*too_big)(struct mrd_backend *b, struct mrd_addr *to, uint32_t *payload_bytes);

    /*
     * Takes the next report that nobody listens at a peer's address, *to. false: no report. NULL if
     * it never happens.
     */
    bool (*refused)(struct mrd_backend *b, struct mrd_addr *to);
    /*
     * Nothing that was sent to `to` was answered for a while. Choose another source address for
     * packets to it that name none, by what the kernel says now. NULL: there is no choice.
     */
    void (*other_source)(struct mrd_backend *b, const struct mrd_addr *to);

    /*
     * Receives up to `max` packets and returns how many. *more: there may be more at once. The
     * packets' memory is the mover's, valid until rx_return(). The mover calls `plan` where
     * receiving payloads into place may pay; NULL: they cannot be.
     */
    unsigned (*rx_burst)(struct mrd_backend *b, struct mrd_rx_packet *packets, unsigned max,
                         bool *more, mrd_plan_fn *plan, void *plan_arg);
    void (*rx_return)(struct mrd_backend *b);

    /*
     * What the mover learns from the header of a packet that it could not read, as it was sealed. NULL:
     * nothing.
     */
    void (*learn)(struct mrd_backend *b, const struct mrd_rx_packet *packet);

    /*
     * Sleeps until a packet may have come, `wake_fd` is readable or timeout_ns have passed
     * (UINT64_MAX: no limit). May return early.
     */
    void (*wait)(struct mrd_backend *b, int wake_fd, uint64_t timeout_ns);
    /* A descriptor that is readable for poll(2) while packets wait, or -1. */
    int (*fd)(struct mrd_backend *b);

    /*
     * Zeroed memory for a context on the device, its engine included, and the release of it. NULL:
     * that of zeroed.h will do.
     */
    void *(*alloc)(const struct mrd_device *device, size_t bytes);
    void (*release)(const struct mrd_device *device, void *ptr, size_t bytes);

    /*
     * Registers memory with the device before it is sent from, and undoes that. Called without the
     * context's lock, perhaps at the same time as any other op. 0 or -errno with mrd_error_set().
     * NULL if the mover sends from any memory.
     */
    int (*reg_mr)(struct mrd_backend *b, void *addr, size_t length, int access,
                  struct mrd_mover_mr *mr);
    void (*dereg_mr)(struct mrd_backend *b, struct mrd_mover_mr mr);

    /*
     * Takes the device's next event; false: there is none. Called in every step, so it must be
     * cheap. NULL if the device has no events.
     */
    bool (*take_event)(struct mrd_backend *b, enum mrd_event_type *type);

    /*
     * Opens a path with a fresh source port. Returns its path number, or -ENOTSUP (source ports are
     * fixed), -EMFILE (no descriptor), -ENOSPC (no more paths).
     */
    int (*new_path)(struct mrd_backend *b);
    /* The number of a path as users see it: its UDP source port, or what stands for one. */
    uint32_t (*path_port)(struct mrd_backend *b, uint32_t path);

    /* Parses an address string of the mover's kind. 0, or -errno with mrd_error_set(). */
    int (*parse_address)(struct mrd_backend *b, const char *text, struct mrd_addr *addr);
    /* The same, of text that may come from anybody: nothing is learnt of it. NULL: nothing ever is. */
    int (*check_address)(struct mrd_backend *b, const char *text, struct mrd_addr *addr);
    /* Writes an address as a string; 0, or -ENOSPC if `len` bytes are too few. */
    int (*format_address)(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                          size_t len);
    /* The address that peers reach this context at. 0 or -errno with mrd_error_set(). */
    int (*self_address)(struct mrd_backend *b, struct mrd_addr *addr);
    /*
     * Largest payload in bytes, a multiple of 64, that a packet to `to` carries without
     * fragmentation; or -EHOSTUNREACH with mrd_error_set().
     */
    int (*payload_bytes)(struct mrd_backend *b, const struct mrd_addr *to);
    /*
     * Do all packets to `to` take one way, whatever their path: is it on this machine? NULL: never.
     */
    bool (*one_way)(struct mrd_backend *b, const struct mrd_addr *to);
    /* What is known now of the port or interface; `facts` is zeroed. NULL: nothing. */
    void (*port_facts)(struct mrd_backend *b, struct mrd_port_facts *facts);
};

struct mrd_backend {
    const struct mrd_backend_ops *ops;
    struct mrd_mover mover; /* what the engine must know of it; filled by open() */
    /* packets that the engine makes before each tx_burst(); 0: MRD_TX_BATCH_MAX. */
    unsigned batch;
    /* Runs in real time, so a progress thread may drive it; false: virtual time. */
    bool threaded;
};

/* Write the devices of one mover to list[0..max) and return how many. */
unsigned mrd_udp_devices(struct mrd_device *list, unsigned max);
extern const struct mrd_backend_ops mrd_udp_ops;
#ifdef MRD_HAVE_IBV
unsigned mrd_ibv_devices(struct mrd_device *list, unsigned max);
extern const struct mrd_backend_ops mrd_ibv_ops;
#endif
/* Finds the ops of a device by its `transport`; NULL: there is no such mover. */
const struct mrd_backend_ops *mrd_backend_find(const struct mrd_device *device);

/* Sets the sentence that mrd_last_error() returns in the calling thread. Leaves errno as it is. */
void mrd_error_set(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Passes a message to the function set by mrd_set_log(). */
void mrd_log(enum mrd_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
