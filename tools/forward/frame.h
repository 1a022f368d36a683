/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of mrd_forward: a head of 24 bytes, big-endian, and what the type says behind it.
 *
 *     0        1        2        3        4        5        6        7
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *    |  type  |version |      zero       |      session of the receiver      |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *    | stream, by the receiver's number  |                seq                |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *    |                arg                |              credit               |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *
 * Messages may come in any order. A session is a random number that a process draws for each of its
 * peers, and again when it has given that peer up: frames of what is over since are told apart by
 * it. Numbers alone open nothing: a session or a stream is its peer's, and what somebody else sends
 * for it is as unknown as what nobody has. DATA, FIN, PING and OPENED of a session that is not known
 * are answered by GONE, ten times a second at most, and all else of it by nothing. An end that has
 * streams sends PING now and then: the other one may have given them up without its noticing.
 *
 *   type     session  stream    seq               arg              credit  behind the head
 *   OPEN     0        0         opener's session  opener's stream  yes     the target, as text
 *   OPENED   yes      opener's  its session       its stream       yes     -
 *   REFUSED  yes      opener's  0                 errno            0       why, as text
 *   DATA     yes      yes       its number        bytes            1: last the bytes
 *   CREDIT   yes      yes       its round         0                yes     -
 *   FIN      yes      yes       DATA in all       0                0       -
 *   DONE     yes      yes       0                 0                0       -
 *   RESET    yes      yes       DATA in all       errno            1: FIN  -
 *   PING     yes      0         0                 0                0       -
 *   GONE     0        0, or its the session       0                0       -
 *   RECALL   yes      yes       the next round    0                yes     -
 *   YIELD    yes      yes       that round        0                left    -
 *   ASK      yes      yes       0                 0                0       -
 *
 * GONE with a stream is about that one only: its sender has given it up, as what was on its way is
 * lost. OPENED and REFUSED may come twice.
 *
 * OPEN and REFUSED are the same in all versions. An OPEN of another version is answered by
 * REFUSED in that one, so that both ends can say what is the matter. All else of it is ignored.
 *
 * DONE answers FIN when all bytes are handed on: only then the sender's side of the stream is over.
 * RESET says that its sender has forgotten the stream. It may overtake DATA, as all frames may: its
 * receiver still hands on what was sent before it, then the end of that if there was a FIN (`credit`
 * is 1), and only then resets its side. It sends nothing more.
 *
 * DATA are numbered from 0. Its `credit` is 1 if the sender may send no more after it: then the window may
 * be too small for the way. Elsewhere `credit` is how many of them the stream may have sent in all; both wrap
 * at 2^32. RECALL takes credit back, down to what was sent: YIELD answers how much is left. It begins
 * a round, the first one is 0, and a CREDIT of another round than the sender's is ignored. No CREDIT
 * is sent between RECALL and YIELD. ASK is answered by CREDIT, whether there is more or not: then it is
 * known that the reader takes nothing, not the network. An errno is Linux's number on any machine.
 */
#ifndef FORWARD_FRAME_H
#define FORWARD_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FRAME_HEAD_BYTES = 24,
    FRAME_VERSION =
        3, /* 2: windows were smaller; 1: RESET had no count of DATA, credit no rounds */
    FRAME_TEXT_MAX = 320, /* a host name of 255, its port, and words */
};

enum frame_type {
    FRAME_OPEN = 1,
    FRAME_OPENED,
    FRAME_REFUSED,
    FRAME_DATA,
    FRAME_CREDIT,
    FRAME_FIN,
    FRAME_DONE,
    FRAME_RESET,
    FRAME_PING,
    FRAME_GONE,
    FRAME_RECALL,
    FRAME_YIELD,
    FRAME_ASK, /* the last one */
};

struct frame {
    enum frame_type type;
    uint32_t session, stream, seq, arg, credit;
    uint32_t version; /* 0: ours */
};

/* Writes FRAME_HEAD_BYTES. */
void frame_put(uint8_t *head, const struct frame *frame);
/* Of a message of `len` bytes. False: it is none of ours, or of another version and not OPEN. */
bool frame_get(const uint8_t *message, uint32_t len, struct frame *frame);

#endif
