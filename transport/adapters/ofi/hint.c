/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/hint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/adapters/ofi/addr.h"
#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/iface.h"
#include "transport/adapters/ofi/log.h"
#include "transport/adapters/ofi/params.h"
#include "transport/adapters/ofi/peer.h"

enum { NAMES_BYTES = 256 };

static bool same_host(const union mrd_ofi_addr *a, const union mrd_ofi_addr *b)
{
    union mrd_ofi_addr x = *a, y = *b;

    x.in.sin_port = y.in.sin_port = 0; /* at the same place in both kinds */
    return mrd_ofi_addr_equal(&x, &y);
}

/* The interface that has the address; NULL: none. */
static const struct mrd_ofi_iface *find(const struct mrd_ofi_iface *list, int num,
                                        const union mrd_ofi_addr *addr)
{
    for (int i = 0; i < num; i++)
        if (same_host(&list[i].addr, addr))
            return &list[i];
    return NULL;
}

/* Writes the names of those that the endpoint could be at instead. Returns whether there are any. */
static bool name_others(const struct mrd_ofi_iface *list, int num, const struct mrd_ofi_iface *own,
                        char *names)
{
    const char *last = own->name;
    size_t at = 0;

    names[0] = '\0';
    for (int i = 0; i < num && at < NAMES_BYTES; i++) {
        if (list[i].loopback || list[i].link_local || !strcmp(list[i].name, own->name) ||
            !strcmp(list[i].name, last) || list[i].addr.sa.sa_family != own->addr.sa.sa_family)
            continue;
        last = list[i].name;
        at += (size_t)snprintf(names + at, NAMES_BYTES - at, "%s%s", at ? ", " : "", last);
    }
    return at > 0;
}

static bool find_own(const struct mrd_ofi_ep *ep, union mrd_ofi_addr *own)
{
    char text[MRD_ADDRESS_MAX];

    return !mrd_query_address(ep->dev.context, text, sizeof(text)) &&
           !mrd_ofi_addr_parse(text, own);
}

void mrd_ofi_peer_hint(struct mrd_ofi_ep *ep, const struct mrd_ofi_peer *peer)
{
    const struct mrd_ofi_iface *at, *theirs;
    struct mrd_ofi_iface *list = NULL;
    char names[NAMES_BYTES];
    union mrd_ofi_addr own;
    int num;

    if (mrd_ofi_params.interface || mrd_ofi_params.device || !find_own(ep, &own))
        return;
    num = mrd_ofi_ifaces_list(&list);
    at = find(list, num, &own);
    theirs = find(list, num, &peer->addr);
    if (at && !at->loopback && name_others(list, num, at, names)) {
        ep->peers.hinted = true;
        if (theirs)
            MRD_OFI_ERROR(EP_DATA,
                          "%s is an address of this machine, too, of %s: if another one is meant, "
                          "set FI_MRD_IFACE to the interface that leads there: %s\n",
                          peer->text, theirs->name, names);
        else
            MRD_OFI_ERROR(EP_DATA,
                          "%s is sent to from %s: if another interface leads there, set "
                          "FI_MRD_IFACE to it: %s\n",
                          peer->text, at->name, names);
    }
    free(list);
}
