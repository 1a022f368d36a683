/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that pins what it sends and receives, where no more memory may be pinned: what needs some
 * fails, and what needs none goes on. Skips over UDP, which pins nothing, and without root, who may
 * raise the limit, and gives up the right to pin more.
 */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
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

TEST_F(plain, ofi_pinned__no_more)
{
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);
    struct end *a = &self->a;

    end_register(&self->b, in, LONG, REGION_ACCESS, KEY);
    send_small(self);
    end_write(a, out, LONG, 0, KEY); /* the region is registered now */
    assert_true(pinned_bytes() > 0);
    permit(pinned_bytes());

    POST(fi_send(a->ep, out, EAGER_BYTES, NULL, a->to, out));
    end_fails(a->tx, out, FI_ENOMEM);
    POST(fi_write(a->ep, out, LONG, NULL, a->to, 0, KEY, out));
    end_fails(a->tx, out, FI_ENOMEM);
    assert_int_equal(fi_send(a->ep, out, LONG, NULL, a->to, out), -FI_ENOMEM);
    send_small(self);

    permit(RLIM_INFINITY);
    end_read(a, out, LONG, 0, KEY);
    assert_filled(out, LONG, 1);
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
