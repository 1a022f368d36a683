/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/forward/frame.h"

#include <endian.h>
#include <string.h>

struct head {
    uint8_t type, version;
    uint16_t zero;
    uint32_t session, stream, seq, arg, credit;
};

_Static_assert(sizeof(struct head) == FRAME_HEAD_BYTES, "the head has no holes");

void frame_put(uint8_t *bytes, const struct frame *frame)
{
    struct head head = {.type = (uint8_t)frame->type,
                        .version = (uint8_t)(frame->version ? frame->version : FRAME_VERSION),
                        .session = htobe32(frame->session),
                        .stream = htobe32(frame->stream),
                        .seq = htobe32(frame->seq),
                        .arg = htobe32(frame->arg),
                        .credit = htobe32(frame->credit)};

    memcpy(bytes, &head, sizeof(head));
}

/* What follows the head of each type. */
static bool is_length_of(const struct frame *frame, uint32_t len)
{
    switch (frame->type) {
    case FRAME_OPEN:
        return len > 0 && len <= FRAME_TEXT_MAX;
    case FRAME_REFUSED:
        return len <= FRAME_TEXT_MAX;
    case FRAME_DATA:
        return len > 0 && len == frame->arg;
    default:
        return len == 0;
    }
}

bool frame_get(const uint8_t *bytes, uint32_t len, struct frame *frame)
{
    struct head head;

    if (len < sizeof(head))
        return false;
    memcpy(&head, bytes, sizeof(head));
    if (head.type < FRAME_OPEN || head.type > FRAME_ASK || head.version == 0 || head.zero != 0)
        return false;
    if (head.version != FRAME_VERSION && head.type != FRAME_OPEN)
        return false;

    struct frame got = {.type = (enum frame_type)head.type,
                        .session = be32toh(head.session),
                        .stream = be32toh(head.stream),
                        .seq = be32toh(head.seq),
                        .arg = be32toh(head.arg),
                        .credit = be32toh(head.credit),
                        .version = head.version == FRAME_VERSION ? 0 : head.version};
    if (!is_length_of(&got, len - (uint32_t)sizeof(head)))
        return false;
    *frame = got;
    return true;
}
