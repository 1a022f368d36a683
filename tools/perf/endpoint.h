/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory, queue pairs and completions of one end, alike for all transports.
 *
 * A transport's open() calls perf_endpoint_open(), or perf_endpoint_map() if it is a raw transport;
 * its close() calls perf_endpoint_close() last.
 * bw.c and lat.c move messages by the transport's operations and keep the counts here.
 *
 * Message n of a queue pair lies at base + qp * region_bytes + (n % slots) * slot_bytes, at both
 * ends. Small messages go round within a page. Large ones share one slot, as in perftest. Of
 * verified messages each in flight has its own slot, and the queue pairs share the slots. Reads come
 * from the target's rx_buf into the reader's tx_buf; atomics are all of the first word of that
 * rx_buf, and its old values go into tx_buf.
 *
 * Credits are sends without a byte on a queue pair of their own, behind those of the messages.
 */
#ifndef MRD_PERF_ENDPOINT_H
#define MRD_PERF_ENDPOINT_H

#include "tools/perf/perf.h"
#include "tools/perf/verify.h"

struct perf_run;

enum {
    PERF_BATCH = 16,   /* work requests posted at once, unless -l says how many */
    PERF_POLL = 64,    /* completions polled at once */
    PERF_CREDITS = 64, /* receives for credits */
};

struct perf_layout {
    uint32_t slots;
    size_t slot_bytes;
    size_t region_bytes; /* 0: the queue pairs share the slots */
    size_t total_bytes;
};

struct perf_qp {
    uint32_t since_signal; /* messages posted after the last signaled one */
    uint32_t outstanding;  /* messages that no completion has covered yet */
    uint32_t num_recvs;    /* receives that it has posted */
    uint32_t num_repost;   /* of them, taken and to be posted again... */
    uint32_t next_repost;  /* ...from this index on */
};

/* What a completion tells. */
enum perf_wc_kind {
    PERF_WC_RECV = 0, /* a message came; from raw transports a packet */
    PERF_WC_SENT,     /* signal_every more messages are acknowledged... */
    PERF_WC_FLUSHED,  /* ...or all that the queue pair has outstanding */
    PERF_WC_CREDIT,   /* a credit came, as an immediate: the lower 32 bits */
};

struct perf_wc {
    enum perf_wc_kind kind;
    uint32_t qp;
    uint32_t index; /* of the receive; of a read or atomic its number, the lower 32 bits */
    uint32_t imm;
    uint64_t bytes;
};

struct perf_endpoint {
    uint8_t *tx_buf, *rx_buf;
    size_t tx_bytes, rx_bytes;
    struct perf_layout tx, rx; /* of what is sent from here, and received here */
    uint32_t recv_bytes;       /* room of a receive */
    uint64_t remote_addr;      /* of the other end's rx_buf */
    uint32_t remote_rkey;

    struct perf_qp *qps;
    uint32_t num_qps;
    uint32_t credit_qp;    /* the last one; UINT32_MAX: there are no credits */
    uint32_t batch;        /* messages posted at once */
    uint32_t signal_every; /* a completion for every so many messages; 0: for none */
    bool with_imm;         /* each write ends with an immediate, so that the receiver sees it */
    bool takes_recvs;      /* messages consume receives at the receiver */

    uint64_t acked;                /* messages, by the completions of sends */
    uint64_t arrived_bytes;        /* by the completions of receives */
    struct perf_verifier verifier; /* of messages */
    struct perf_verifier values;   /* of what atomics found */
    uint64_t credit;               /* of what is sent, messages below were checked */
    uint64_t credit_told;          /* of what is received, likewise, as far as the sender knows */
    bool flushed;                  /* what was posted last is to tell when all is acknowledged */
};

/*
 * For mrd and rc: lay out and map the messages, and make records of the queue pairs. 0 or -errno.
 */
int perf_endpoint_open(struct perf_run *run);
/* For raw transports: map buffers of these sizes. 0 or -errno with run->error. */
int perf_endpoint_map(struct perf_run *run, size_t tx_bytes, size_t rx_bytes);
/* Do writes end with an immediate, as they must if `needs_imm`, and do messages take receives? */
void perf_endpoint_choose_imm(struct perf_run *run, bool needs_imm);
void perf_endpoint_close(struct perf_run *run);

/* Where message n of a queue pair lies in tx_buf, and in the rx_buf that writes go to. */
static inline size_t perf_endpoint_place(const struct perf_endpoint *e, uint32_t qp, uint64_t n)
{
    return qp * e->tx.region_bytes + (uint32_t)(n % e->tx.slots) * e->tx.slot_bytes;
}

/* Count one more message of `q`: does it ask for a completion? */
static inline bool perf_endpoint_count_signal(const struct perf_endpoint *e, struct perf_qp *q)
{
    if (e->signal_every == 0 || ++q->since_signal < e->signal_every)
        return false;
    q->since_signal = 0;
    return true;
}

/* The kind of a completion of a receive. */
static inline enum perf_wc_kind perf_endpoint_recv_kind(const struct perf_endpoint *e, uint32_t qp)
{
    return qp == e->credit_qp ? PERF_WC_CREDIT : PERF_WC_RECV;
}

/* Take a completion of sends, or of reads and atomics. */
static inline void perf_endpoint_take_sent(struct perf_endpoint *e, const struct perf_wc *wc)
{
    struct perf_qp *q = &e->qps[wc->qp];
    uint32_t sent = wc->kind == PERF_WC_FLUSHED ? q->outstanding : e->signal_every;

    q->outstanding -= sent;
    e->acked += sent;
}

/* The buffer of a receive: it may be of no byte. */
struct perf_place {
    uint8_t *at;
    uint32_t bytes;
};
/* Completions that may wait to be polled, if each queue pair has so many messages outstanding. */
uint64_t perf_endpoint_cqes(const struct perf_run *run, uint32_t send_depth);
struct perf_place perf_endpoint_recv(const struct perf_run *run, uint32_t qp, uint32_t index);
/* Post all receives for the first time. 0 or -errno with run->error. */
int perf_endpoint_post_recvs(struct perf_run *run);
/* Post the receive of this completion again: verified ones at once, others in batches. */
int perf_endpoint_repost(struct perf_run *run, const struct perf_wc *wc);
/* Post again all that were taken. */
int perf_endpoint_repost_rest(struct perf_run *run, uint32_t qp);

/* Fill message n ahead of posting it, if the run is verified. */
void perf_endpoint_fill(struct perf_run *run, uint32_t qp, uint64_t n);
/* Verify the message that a completion is of. */
void perf_endpoint_check(struct perf_run *run, const struct perf_wc *wc);
/* Verify what a completed read or atomic brought. */
void perf_endpoint_take_answer(struct perf_run *run, const struct perf_wc *wc);
/* The verdict, once `sent` messages should have arrived. */
void perf_endpoint_conclude(struct perf_run *run, uint64_t sent);
/* That of the target of reads and atomics: the word that was added to tells. */
void perf_endpoint_conclude_server(struct perf_run *run, uint64_t sent);

#endif
