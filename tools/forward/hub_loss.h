/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of streams when frames, or the peers themselves, are lost. Of the hub alone. */
#ifndef FORWARD_HUB_LOSS_H
#define FORWARD_HUB_LOSS_H

#include "tools/forward/hub.h"

/* As in link_ops; `arg` is the hub. */
void hub_on_sent(void *arg, struct link_peer *peer, uint32_t stream, enum frame_type type,
                 enum mrd_wc_status status);
void hub_on_lost(void *arg, uint32_t id, const char *address, bool is_silent);
/* hub_ops.silent() */
void hub_tell_silent(struct hub *hub, const struct link_peer *peer);

#endif
