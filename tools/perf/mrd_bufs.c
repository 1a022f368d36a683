/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/perf/mrd_run.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096 };

static int map(struct perf_run *run, size_t bytes, int access, uint8_t **buf, struct mrd_mr **mr)
{
    struct mrd_run *m = run->state;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                   -1, 0);

    if (p == MAP_FAILED)
        return perf_run_fail(run, -errno, "no memory for %zu bytes of messages: %s", bytes,
                             strerror(errno));
    *buf = p;
    memset(p, 0x5a, bytes); /* pages of its own: the zero page would flatter the cache */
    *mr = mrd_reg_mr(m->pd, p, bytes, access);
    return *mr ? 0 : mrd_call_failed(run, -errno, "mrd_reg_mr");
}

/* The places where messages of SENDs land; WRITEs need the sender's view of the layout. */
static uint32_t receive_slots(const struct perf_run *run)
{
    const struct perf_params *p = &run->params;

    if (!p->verify)
        return 0;
    return perf_test_is_write(p->test) ? p->slots : mrd_recvs_per_qp(run) * p->qps;
}

int mrd_bufs_open(struct perf_run *run)
{
    struct mrd_run *m = run->state;
    const struct perf_params *p = &run->params;

    m->tx = perf_layout_of(p, p->verify ? p->slots : 0);
    m->rx = perf_layout_of(p, receive_slots(run));
    m->tx_bytes = m->tx.total_bytes;
    m->rx_bytes = m->rx.total_bytes;
    /* In bandwidth tests one direction carries at most credits. */
    if (!perf_test_is_lat(p->test) && run->server)
        m->tx_bytes = PAGE_BYTES;
    if (!perf_test_is_lat(p->test) && !run->server)
        m->rx_bytes = PAGE_BYTES;
    int rc = map(run, m->tx_bytes, 0, &m->tx_buf, &m->tx_mr);
    if (rc)
        return rc;
    rc = map(run, m->rx_bytes, MRD_ACCESS_LOCAL_WRITE | MRD_ACCESS_REMOTE_WRITE, &m->rx_buf,
             &m->rx_mr);
    if (rc == 0 && perf_test_is_lat(p->test))
        memset(m->rx_buf, 0, m->rx_bytes); /* what a polled last byte starts from */
    return rc;
}

void mrd_bufs_close(struct perf_run *run)
{
    struct mrd_run *m = run->state;

    if (m->tx_mr)
        mrd_dereg_mr(m->tx_mr);
    if (m->rx_mr)
        mrd_dereg_mr(m->rx_mr);
    if (m->tx_buf)
        munmap(m->tx_buf, m->tx_bytes);
    if (m->rx_buf)
        munmap(m->rx_buf, m->rx_bytes);
}
