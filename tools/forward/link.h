/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mrd side: a context with one queue pair, buffers, and the processes that it talks to.
 *
 * link_open() attaches it to an event loop, which then calls the link_ops. link_send() sends frames;
 * those of DATA in a buffer of link_tx(). link_close().
 *
 * The queue pair is unordered, as each stream orders its own messages: with ordered ones a lost
 * packet would hold up all streams. A receive pool has a buffer for each message that a sender has
 * credit for: link_grant() before a credit is told, link_return() for each buffer that received() kept.
 * Few of them are posted at a time, the ones used last, so that they are in the caches.
 */
#ifndef FORWARD_LINK_H
#define FORWARD_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/list.h"
#include "mrd/mrd.h"
#include "tools/forward/frame.h"

enum {
    LINK_DATA_BYTES = 64 << 10, /* most bytes of a DATA message */
    LINK_RECEIVES = 192,        /* posted at a time */
};

struct event_base;
struct link;

/* A process at the other end. */
struct link_peer {
    struct mrd_ah *ah;
    uint32_t id; /* the library's number of it, as in completions and events; 0: not known yet */
    uint32_t qpn;
    uint32_t session;  /* that it drew; 0: whichever is at the address */
    uint32_t own;      /* the session that we drew for it */
    uint32_t uses;     /* by streams, and by frames that are being sent, or are held */
    uint32_t sending;  /* buffers */
    uint32_t controls; /* frames without a buffer that are being sent */
    uint32_t num_held;
    struct mrd_node held; /* list of those that are not, as there are too many */
    bool watched;
    bool is_known;           /* the user's: an OPENED of this session arrived */
    uint32_t pinged_session; /* likewise: the last one that was asked about */
    uint32_t pinged;         /* the user's: the last round of pings */
    struct mrd_node waiting; /* the user's: list of those who wait for a buffer */
    char address[MRD_ADDRESS_MAX];
    struct link_peer *next;
};

struct link_ops {
    /* A frame came. True: the user keeps the buffer that `bytes` points into until link_return(). */
    bool (*received)(void *arg, const struct mrd_wc *wc, const struct frame *frame, uint8_t *bytes,
                     uint32_t len);
    /* A frame of a stream to the peer did not arrive; of OPEN and OPENED, also that it did. */
    void (*sent)(void *arg, struct link_peer *peer, uint32_t stream, enum frame_type type,
                 enum mrd_wc_status status);
    /*
     * The process with the library's number `id` is silent; or it was restarted, or has lost its
     * state of us. Then frames of its new session may have come before this call.
     */
    void (*lost)(void *arg, uint32_t id, const char *address, bool is_silent);
    /* All completions of this turn of the loop were handed over. */
    void (*settled)(void *arg);
};

struct link_options {
    const char *address;  /* to bind; NULL: any */
    uint16_t port;        /* 0: any */
    const char *key_file; /* NULL: that of MRD_KEY_FILE, or none */
    uint32_t paths;       /* 0: the device's default */
    uint64_t peer_timeout_ns;
    size_t memory_bytes; /* of all buffers; a quarter of it to send from */
};

/* NULL after it said why. */
struct link *link_open(const struct link_options *options, struct event_base *base,
                       const struct link_ops *ops, void *arg);
/* Waits up to `ms` for what was sent to arrive. */
void link_close(struct link *link, int ms);

struct mrd_context *link_context(struct link *link);
const struct link_peer *link_peers(const struct link *link);

/* Draws other sessions for those of that number: what they have of the old ones is over. */
void link_renew(struct link *link, uint32_t id);
/* Did we draw this session for the sender of `wc`? */
bool link_knows(const struct link *link, const struct mrd_wc *wc, uint32_t own);
/* Is it the one that the library has this number for? It keeps it when its address changes. */
bool link_peer_is(struct link_peer *peer, uint32_t id);
/* Did it send what completed by `wc`? */
bool link_is_from(struct link_peer *peer, const struct mrd_wc *wc);
/* A process by its address, as mrd_create_ah() takes it; NULL with errno. It is used once. */
struct link_peer *link_peer_open(struct link *link, const char *address);
/* The sender of the message `wc`, which drew `session`; NULL with errno. It is used once more. */
struct link_peer *link_peer_of(struct link *link, const struct mrd_wc *wc, uint32_t session);
/* Asks from time to time whether it is there, if it does not already. */
void link_peer_watch(struct link_peer *peer);
void link_peer_release(struct link *link, struct link_peer *peer);

/*
 * A buffer of LINK_DATA_BYTES for DATA to the peer. NULL: there is none for it until something is
 * sent(). A peer has at most as many buffers as are free, so that one which stands still leaves
 * some for the others (Choudhury and Hahne, "Dynamic queue length thresholds", 1998, alpha 1).
 */
uint8_t *link_tx(struct link *link, const struct link_peer *peer);
void link_tx_unused(struct link *link, uint8_t *buffer);
/*
 * Sends a frame of `stream` with the `len` bytes at `bytes`. DATA: `bytes` is from link_tx(), and
 * the link's from now on. Others are copied; of these, FRAME_TEXT_MAX bytes at most. Returns 0, or
 * -errno after the buffer went back. OPENED and REFUSED are repeated if the peer has lost what it
 * knew of us.
 */
int link_send(struct link *link, struct link_peer *peer, uint32_t stream, const struct frame *frame,
              const void *bytes, uint32_t len);
/*
 * Answers the sender of `wc`, of which nothing else is known. One that takes no answers gets none. 0 or
 * -errno.
 */
int link_answer(struct link *link, const struct mrd_wc *wc, const struct frame *frame,
                const char *text);

/* Calls settled() in this turn of the loop, after what is sent until then has left. */
void link_progress_soon(struct link *link);

/* Receive buffers in all, and those that nobody has credit for. */
uint32_t link_buffers(const struct link *link);
uint32_t link_buffers_free(const struct link *link);
void link_grant(struct link *link, uint32_t buffers);
void link_take_back(struct link *link, uint32_t buffers);
void link_return(struct link *link, uint8_t *bytes);

#endif
