/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes of mrd_open_device(): checked, with defaults and the environment filled in.
 *
 * Call mrd_attr_resolve() before anything is opened. The result borrows the caller's strings and
 * arrays, those of the environment, and itself: use it only while opening, and do not copy it.
 */
#ifndef MRD_TRANSPORT_ATTR_H
#define MRD_TRANSPORT_ATTR_H

#include "core/limits.h"
#include "transport/backend.h"

enum {
    MRD_MTU_MIN = 256,
    MRD_DSCP_MAX = 63,
};

/* The value of an environment variable; NULL if it is unset or empty. */
const char *mrd_attr_environment(const char *name);

struct mrd_attr_resolved {
    struct mrd_context_attr attr;
    uint16_t source_ports[MRD_PATHS_MAX]; /* where the environment names them */
};

/*
 * Copies `attr` (NULL: all zero) to `resolved` and replaces zeros by the environment's values, then
 * by defaults. Zeros that stay are for the mover to choose: address, port, source ports, paths,
 * mtu, link_bps; also seed and gid_index, unless comp_mask says that zero is their value. Returns
 * 0, or -EINVAL with mrd_error_set(). `transport`: the device's, which decides what of the environment is for it.
 */
int mrd_attr_resolve(const struct mrd_context_attr *attr, const char *transport,
                     struct mrd_attr_resolved *resolved);

#endif
