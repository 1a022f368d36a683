/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/atomic_target.h"

#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/apply.h"
#include "transport/adapters/ofi/cntr.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/message.h"
#include "transport/adapters/ofi/mr.h"
#include "transport/adapters/ofi/params.h"
#include "transport/adapters/ofi/peer.h"

struct incoming {
    enum fi_datatype type;
    enum fi_op op;
    enum mrd_ofi_atomic_kind kind;
    const uint8_t *operand, *compare; /* NULL: there are none */
    uint8_t *old;                     /* NULL: not asked for */
};

size_t mrd_ofi_atomic_bytes_max(void)
{
    return (mrd_ofi_params.eager_bytes - MRD_OFI_RMA_IOV_MAX * sizeof(struct mrd_ofi_wire_target)) /
           2;
}

/* Applies the part of it that goes to one target. 0, or a FI_ error number. */
static int apply(struct mrd_ofi_ep *ep, const struct incoming *in,
                 const struct mrd_ofi_wire_target *t, uint64_t offset)
{
    struct mrd_ofi_mr *mr = mrd_ofi_mr_find(ep->domain, t->key);
    uint64_t needs = in->op == FI_ATOMIC_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE;
    size_t size = mrd_ofi_type_bytes(in->type);
    uint64_t done = 0, n;

    if (!mr || !mr->enabled)
        return FI_ENOKEY;
    if (in->kind != MRD_OFI_ATOMIC_WRITE)
        needs |= FI_REMOTE_READ;
    if ((mr->access & needs) != needs)
        return FI_EACCES;
    for (; done < t->bytes; done += n) {
        uint64_t at = offset + done;
        uint32_t index;
        void *memory;

        n = t->bytes - done;
        memory = mrd_ofi_mr_at(mr, t->addr + done, &n, &index);
        if (!memory || n < size || (uintptr_t)memory % (size < 8 ? size : 8))
            return FI_EINVAL;
        n -= n % size;
        mrd_ofi_apply(in->type, in->op, memory, in->operand ? in->operand + at : NULL,
                      in->compare ? in->compare + at : NULL, in->old ? in->old + at : NULL,
                      n / size);
    }
    if (in->op != FI_ATOMIC_READ)
        mrd_ofi_cntr_add(mr->cntr, 1);
    return 0;
}

/* Takes the message apart. False: it is malformed. */
static bool parse(const struct mrd_ofi_wire_head *head, const uint8_t *more, uint32_t bytes,
                  struct incoming *in, struct mrd_ofi_wire_target *target, uint64_t *total)
{
    uint64_t targets = head->answer * sizeof(*target);
    size_t size;

    in->op = (enum fi_op)(head->num & 0xff);
    in->type = (enum fi_datatype)(head->num >> 8 & 0xff);
    in->kind = (enum mrd_ofi_atomic_kind)(head->num >> 16);
    if (in->kind >= MRD_OFI_ATOMIC_KINDS || !mrd_ofi_atomic_is_valid(in->kind, in->type, in->op) ||
        head->answer > MRD_OFI_RMA_IOV_MAX || targets > bytes ||
        head->bytes > mrd_ofi_atomic_bytes_max() ||
        targets + head->bytes * (in->kind == MRD_OFI_ATOMIC_COMPARE ? 2 : 1) != bytes)
        return false;
    size = mrd_ofi_type_bytes(in->type);
    *total = 0;
    for (uint32_t i = 0; i < head->answer; i++) {
        memcpy(&target[i], more + i * sizeof(target[i]), sizeof(target[i]));
        mrd_ofi_wire_swap_target(&target[i]);
        if (target[i].bytes > mrd_ofi_atomic_bytes_max() || target[i].bytes % size)
            return false;
        *total += target[i].bytes;
    }
    if (*total > mrd_ofi_atomic_bytes_max() || (in->op != FI_ATOMIC_READ && *total != head->bytes))
        return false;
    in->operand = in->op == FI_ATOMIC_READ ? NULL : more + targets;
    in->compare = in->kind == MRD_OFI_ATOMIC_COMPARE ? more + targets + head->bytes : NULL;
    return true;
}

void mrd_ofi_atomic_on_ask(struct mrd_ofi_ep *ep, struct mrd_ofi_peer *peer,
                           const struct mrd_ofi_wire_head *head, const uint8_t *more,
                           uint32_t bytes)
{
    struct mrd_ofi_wire_head done = {.what = MRD_OFI_DONE, .tag = head->tag, .answer = head->id};
    struct mrd_ofi_wire_target target[MRD_OFI_RMA_IOV_MAX];
    struct incoming in = {0};
    uint64_t total = 0, offset = 0;
    int error = parse(head, more, bytes, &in, target, &total) ? 0 : FI_EINVAL;

    if (!error && in.kind != MRD_OFI_ATOMIC_WRITE) {
        in.old = malloc(total ? total : 1);
        error = in.old ? 0 : FI_ENOMEM;
    }
    for (uint32_t i = 0; i < head->answer && !error; i++) {
        error = apply(ep, &in, &target[i], offset);
        offset += target[i].bytes;
    }
    if (!error)
        mrd_ofi_cntr_add(
            ep->bound.cntr[in.kind == MRD_OFI_ATOMIC_WRITE ? MRD_OFI_COUNT_REMOTE_WRITE
                                                           : MRD_OFI_COUNT_REMOTE_READ],
            1);
    done.num = (uint32_t)error;
    mrd_ofi_message_internal(ep, peer, &done, in.old, in.old && !error ? (uint32_t)total : 0);
    free(in.old);
}
