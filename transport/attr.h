/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What mrd_open_device() was asked for, checked, with defaults and environment filled in.
 *
 * mrd_attr_resolve() first, before anything is opened. The copy borrows the caller's strings and
 * arrays and the environment's strings: use it only while opening.
 */
#ifndef MRD_TRANSPORT_ATTR_H
#define MRD_TRANSPORT_ATTR_H

#include "core/limits.h"
#include "transport/backend.h"

enum {
    MRD_MTU_MIN = 256,
    MRD_TABLE_MAX = 1 << 24, /* most peers, most flows */
};

/*
 * attr NULL: all defaults. Left at zero, for the mover to choose: address, port, source ports,
 * paths, mtu, link_bps, and seed unless comp_mask or its value says otherwise. 0, or -EINVAL
 * with mrd_error_set().
 */
int mrd_attr_resolve(const struct mrd_context_attr *attr, struct mrd_context_attr *resolved);

#endif
