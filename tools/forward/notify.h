/* SPDX-License-Identifier: BSD-2-Clause */
/* What a service manager wants to know: sd_notify(3), whose protocol is one datagram. */
#ifndef FORWARD_NOTIFY_H
#define FORWARD_NOTIFY_H

/* `state`: for example "READY=1". Nothing happens without a NOTIFY_SOCKET in the environment. */
void notify(const char *state);

#endif
