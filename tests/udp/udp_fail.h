/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls of sending that fail when told to. For programs linked with --wrap=sendto, sendmsg
 * and sendmmsg.
 *
 * Nothing fails before a test fills `fail`.
 */
#ifndef MRD_TESTS_UDP_FAIL_H
#define MRD_TESTS_UDP_FAIL_H

#include <stdbool.h>

struct fail {
    unsigned passes;          /* so many messages are sent first */
    int error;                /* then this; 0: never */
    bool superpackets;        /* fail only messages with UDP_SEGMENT */
    bool named;               /* fail only messages that name their source */
    bool once;                /* and only the first of them */
    unsigned calls, messages; /* made, sent */
};
extern struct fail fail;

#endif
