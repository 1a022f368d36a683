/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proof that messages arrived whole, each exactly once.
 *
 * The sender fills message n with perf_verify_fill(seed, n). The receiver calls
 * perf_verifier_check() for each arrival and sends v->credit back. Once it exceeds n, the sender
 * may use the slot of message n again. At the end perf_verifier_ok() tells whether all arrived,
 * once and unchanged.
 */
#ifndef MRD_PERF_VERIFY_H
#define MRD_PERF_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fill `buf` with the bytes of message n: each 8-byte word depends on seed, n and its place. */
void perf_verify_fill(uint64_t seed, uint64_t n, void *buf, size_t len);
/* Offset of the first byte of `buf` that is not message n's, or `len` if none. */
size_t perf_verify_diff(uint64_t seed, uint64_t n, const void *buf, size_t len);

struct perf_verifier {
    uint64_t seed;
    const char *noun;  /* what is counted, for sentences: "message" */
    size_t size_bytes; /* of each message */
    uint32_t window;   /* messages that may be in flight: [credit, credit + window) */
    uint64_t credit;   /* all messages below were checked */
    uint64_t received;
    uint64_t checked; /* arrived the first time and whole */
    uint8_t *seen;    /* per message in the window: it was checked; indexed by n mod window */
    uint32_t period;  /* message n has the bytes of message n mod period; 0: its own */
    uint32_t streams; /* ordered streams, 0: no order to check */
    uint64_t *next;   /* per stream: least number that may come next */
    char error[200];  /* the first thing that was wrong, or empty */
};

/*
 * `streams`: number of QPs whose messages must arrive in rising order; 0: any order. 0 or -ENOMEM.
 */
int perf_verifier_init(struct perf_verifier *v, uint64_t seed, size_t size_bytes, uint32_t window,
                       uint32_t streams);
void perf_verifier_fini(struct perf_verifier *v);

/* The number behind the 32 bits that travel with a message: the one nearest to the window. */
uint64_t perf_verifier_number(const struct perf_verifier *v, uint32_t low_bits);
/* Message n arrived at `buf`, `len` bytes long, on `stream`. */
void perf_verifier_check(struct perf_verifier *v, uint64_t n, uint32_t stream, const void *buf,
                         size_t len);
/* The same of a message that says nothing but its number. */
void perf_verifier_count(struct perf_verifier *v, uint64_t n, uint32_t stream);
/*
 * Returns true if exactly messages 0 .. sent - 1 arrived, all right. Otherwise v->error says why
 * not.
 */
bool perf_verifier_ok(struct perf_verifier *v, uint64_t sent);

#endif
