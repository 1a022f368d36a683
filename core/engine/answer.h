/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers that need no peer: RESET, CHALLENGE, BUSY. They go to whoever asked, known or not, are no
 * longer than the question, and so many a second at most.
 */
#ifndef MRD_CORE_ENGINE_ANSWER_H
#define MRD_CORE_ENGINE_ANSWER_H

#include "core/engine/state.h"

/*
 * What we are called, and number our epochs from, to whoever receives at that address and has no entry.
 * A peer that moved away, and another one at its old address, are told different names.
 */
struct mrd_pair mrd_answer_pair(const struct mrd_engine *e, const struct mrd_addr *addr);
/* Is it what we call ourselves to that address while nobody who left it goes on by that name? */
bool mrd_answer_is_usual(const struct mrd_engine *e, const struct mrd_addr *addr, uint32_t own_inc);

/*
 * The packet's space is not known here. The RESET names it, and by its live epoch tells which of our
 * own spaces are over. `peer`: at the packet's address; NULL: none.
 */
void mrd_answer_reset(struct mrd_engine *e, const struct mrd_peer *peer,
                      const struct mrd_wire_head *head, const struct mrd_rx_packet *packet);
/*
 * Nothing was executed: the sender is to show that it receives at its address. `own_inc`: what it
 * is to call us. `lives`: mrd_peer_lives() of it; 0 where it is asked for its address only.
 */
void mrd_answer_challenge(struct mrd_engine *e, uint32_t own_inc, uint32_t lives,
                          const struct mrd_wire_head *head, const struct mrd_rx_packet *packet);
/* Does the packet echo the cookie of such a challenge, which was sent lately? */
bool mrd_answer_is_proven(const struct mrd_engine *e, uint32_t lives,
                          const struct mrd_wire_head *head, const struct mrd_rx_packet *packet);
/*
 * There is no room for a peer that showed that it is there. All its packets of this epoch remain
 * valid: there may be room when the next one comes.
 */
void mrd_answer_busy(struct mrd_engine *e, uint32_t own_inc, const struct mrd_wire_head *head,
                     const struct mrd_rx_packet *packet);

/*
 * A sealed packet, and we have no keys: whoever sent it is told that we are there, in the clear. It
 * believes nothing of it, but may say so. Of `head` only the port to answer to is known.
 */
void mrd_answer_sealed(struct mrd_engine *e, const struct mrd_wire_head *head,
                       const struct mrd_rx_packet *packet);

/*
 * When the answers that wait are to leave; MRD_NEVER: none waits. At once, but where strangers ask a
 * lot: then some together, by one system call.
 */
uint64_t mrd_answer_due_ns(const struct mrd_engine *e);

#endif
