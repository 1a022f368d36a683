/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/adapters/ofi/thread.h"

#include "transport/adapters/ofi/ep.h"
#include "transport/adapters/ofi/fabric.h"
#include "transport/adapters/ofi/progress.h"
#include "transport/adapters/ofi/wait.h"

static void *run(void *arg)
{
    struct mrd_ofi_domain *d = arg;
    struct mrd_node *n;

    mrd_ofi_lock(d);
    while (!d->stopping) {
        mrd_ofi_wait_arm(&d->wait);
        for (n = d->eps.next; n != &d->eps; n = n->next)
            mrd_ofi_ep_arm(mrd_container_of(n, struct mrd_ofi_ep, domain_node));
        for (n = d->eps.next; n != &d->eps; n = n->next)
            mrd_ofi_ep_progress(mrd_container_of(n, struct mrd_ofi_ep, domain_node));
        mrd_ofi_unlock(d);
        (void)mrd_ofi_wait_sleep(&d->wait, -1);
        mrd_ofi_lock(d);
    }
    mrd_ofi_unlock(d);
    return NULL;
}

int mrd_ofi_thread_start(struct mrd_ofi_domain *d)
{
    int error;

    if (!d->automatic || d->running)
        return 0;
    error = mrd_ofi_wait_init(&d->wait, FI_WAIT_FD);
    if (error)
        return error;
    d->stopping = false;
    error = pthread_create(&d->thread, NULL, run, d);
    if (error) {
        mrd_ofi_wait_fini(&d->wait);
        return -error;
    }
    d->running = true;
    return 0;
}

void mrd_ofi_thread_stop(struct mrd_ofi_domain *d)
{
    if (!d->running)
        return;
    mrd_ofi_lock(d);
    d->stopping = true;
    mrd_ofi_wait_signal(&d->wait);
    mrd_ofi_unlock(d);
    pthread_join(d->thread, NULL);
    mrd_ofi_wait_fini(&d->wait);
    d->running = false;
}
