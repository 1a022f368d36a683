/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/sized.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "mrd/sim.h"
#include "transport/error.h"

/*
 * A larger size is a mistake, perhaps of a binding that passes none: fields beyond it are not read.
 */
enum { BYTES_MAX = 4096 };

#define END_OF(type, field) (offsetof(struct type, field) + sizeof(((struct type *)0)->field))

/*
 * The structs that may grow, and the last field of each in version 0.1, behind which there was
 * no padding.
 */
#define SIZED(name_, last_of_first)                                                                \
    static_assert(END_OF(mrd_##name_, last_of_first) % _Alignof(struct mrd_##name_) == 0,          \
                  "struct mrd_" #name_ " would grow into its padding");                            \
    const struct mrd_sized mrd_sized_##name_ = {                                                   \
        .name = "struct mrd_" #name_,                                                              \
        .bytes = sizeof(struct mrd_##name_),                                                       \
        .first_bytes = END_OF(mrd_##name_, last_of_first),                                         \
    }

SIZED(context_attr, entropy);
SIZED(qp_init_attr, rnr_timer_ns);
SIZED(cq_init_attr, channel);
SIZED(comp_channel_init_attr, reserved);
SIZED(srq_init_attr, attr);
SIZED(ah_init_attr, reserved);
SIZED(mr_init_attr, reserved);
SIZED(device_attr, max_paths);
SIZED(counter, value);
SIZED(peer_attr, address);
SIZED(path_attr, min_rtt_ns);
SIZED(context_info, check);
SIZED(sim_attr, ack_priority);
SIZED(sim_stats, bytes);

/*
 * The structs that callers fill or have filled, and that never change their size: arrays and lists
 * of the data path, structs inside others, and those that have `reserved` fields for growth. Not
 * listed: struct mrd_qp_attr, of which only the fields named by attr_mask are read; structs that
 * the library allocates; structs that it passes to callbacks.
 */
#define FIXED(name, bytes_of_lp64)                                                                 \
    static_assert(sizeof(void *) != 8 || sizeof(struct mrd_##name) == (bytes_of_lp64),             \
                  "struct mrd_" #name " never changes its size")

FIXED(device, 48);
FIXED(wc, 64);
FIXED(async_event, 168);
FIXED(sge, 16);
FIXED(send_wr, 88);
FIXED(recv_wr, 32);
FIXED(qp_cap, 20);
FIXED(srq_attr, 16);
FIXED(sim_link, 96);
FIXED(sim_tier, 40);
FIXED(sim_topology, 136);

int mrd_sized_check(const struct mrd_sized *kind, size_t bytes)
{
    if (bytes < kind->first_bytes || bytes > BYTES_MAX) {
        mrd_error_set("%s of %zu bytes: expected %zu, or more from a later version", kind->name,
                      bytes, kind->first_bytes);
        return -EINVAL;
    }
    return 0;
}

int mrd_sized_read(const struct mrd_sized *kind, void *to, const void *from, size_t from_bytes)
{
    size_t known_bytes = from_bytes < kind->bytes ? from_bytes : kind->bytes;
    int error = mrd_sized_check(kind, from_bytes);

    if (error)
        return error;
    for (size_t i = known_bytes; i < from_bytes; i++) {
        if (((const uint8_t *)from)[i]) {
            mrd_error_set("%s: byte %zu is set, of a field that this version (%s) does not have",
                          kind->name, i, mrd_version());
            return -EINVAL;
        }
    }
    memset(to, 0, kind->bytes);
    memcpy(to, from, known_bytes);
    return 0;
}

void mrd_sized_write(const struct mrd_sized *kind, void *to, size_t to_bytes, const void *from)
{
    size_t known_bytes = to_bytes < kind->bytes ? to_bytes : kind->bytes;

    memcpy(to, from, known_bytes);
    memset((uint8_t *)to + known_bytes, 0, to_bytes - known_bytes);
}
