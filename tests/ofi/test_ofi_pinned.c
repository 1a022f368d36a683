/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that pins what it sends and receives, where no more memory may be pinned: what needs some
 * fails, and what needs none goes on. Skips over UDP, which pins nothing, and without root, who may
 * raise the limit, and gives up the right to pin more.
 */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { KEY = 5, LONG = 1 << 20, NOBODY = 65534 };

static rlim_t pinned_bytes(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[256];

    assert_non_null(status);
    while (fgets(line, sizeof(line), status))
        (void)sscanf(line, "VmPin: %llu", &kib);
    fclose(status);
    return (rlim_t)kib * 1024;
}

static void permit(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};

    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

static void send_small(struct pair *p)
{
    char in = 0;

    POST(fi_recv(p->b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
    POST(fi_send(p->a.ep, "x", 1, NULL, p->a.to, p));
    end_ok(p->a.tx, p);
    end_ok(p->b.rx, &in);
    assert_int_equal(in, 'x');
}

TEST(ofi_pinned__no_more)
{
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    struct fid_mr *mr;
    struct pair p;

    pair_open(&p, &(struct end_options){0});
    assert_int_equal(
        fi_mr_reg(p.b.domain, in, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
    send_small(&p);
    POST(fi_write(p.a.ep, out, LONG, NULL, p.a.to, 0, KEY, &p)); /* the region is registered now */
    end_ok(p.a.tx, &p);
    assert_true(pinned_bytes() > 0);
    permit(pinned_bytes());

    POST(fi_send(p.a.ep, out, EAGER_BYTES, NULL, p.a.to, out));
    end_fails(p.a.tx, out, FI_ENOMEM);
    POST(fi_write(p.a.ep, out, LONG, NULL, p.a.to, 0, KEY, out));
    end_fails(p.a.tx, out, FI_ENOMEM);
    assert_int_equal(fi_send(p.a.ep, out, LONG, NULL, p.a.to, out), -FI_ENOMEM);
    send_small(&p);

    permit(RLIM_INFINITY);
    POST(fi_read(p.a.ep, out, LONG, NULL, p.a.to, 0, KEY, out));
    end_ok(p.a.tx, out);
    assert_filled(out, LONG, 1);
    assert_int_equal(fi_close(&mr->fid), 0);
    pair_close(&p);
    free(in);
    free(out);
}

int kit_before_all(void)
{
    if (!getenv("FI_MRD_DEVICE") || geteuid() != 0) {
        puts("skipped: needs root, and in FI_MRD_DEVICE a device that pins memory");
        return KIT_SKIPPED;
    }
    permit(RLIM_INFINITY);
    return seteuid(NOBODY); /* before the device is opened: it is for who opened it */
}
