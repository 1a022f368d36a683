/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors: entries that go and come again, many of them, and who uses them meanwhile. */
#include "pair.h"

#include <arpa/inet.h>
#include <string.h>

enum { MANY = 20000, SOME = 200 };

static struct sockaddr_in nth(unsigned i)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)(1 + i % 60000)),
                                .sin_addr = {htonl(0x0a000001u + i)}};
}

static void assert_nth(struct fid_av *av, fi_addr_t addr, unsigned i)
{
    struct sockaddr_in back, expected = nth(i);
    size_t bytes = sizeof(back);

    assert_int_equal(fi_av_lookup(av, addr, &back, &bytes), 0);
    assert_int_equal(bytes, sizeof(back));
    assert_memory_equal(&back, &expected, sizeof(back));
}

/* Entries of a table count from 0, and the lowest free one is the next. */
TEST_F(end, ofi_av__table_with_removed_entries)
{
    struct sockaddr_in in[SOME], back;
    fi_addr_t addr[SOME], gone[SOME];
    size_t bytes = sizeof(back), num = 0;
    struct fid_av *av;

    end_open(self, &(struct end_options){0}, NULL);
    assert_int_equal(
        fi_av_open(self->domain, &(struct fi_av_attr){.type = FI_AV_TABLE, .count = 2}, &av, NULL),
        0);
    for (unsigned i = 0; i < SOME; i++)
        in[i] = nth(i);
    assert_int_equal(fi_av_insert(av, in, SOME, NULL, 0, NULL), SOME);
    for (unsigned i = 0; i < SOME; i++)
        assert_nth(av, i, i);
    for (unsigned i = 1; i < SOME; i += 3)
        gone[num++] = i;
    assert_int_equal(fi_av_remove(av, gone, num, 0), 0);
    assert_int_equal(fi_av_remove(av, gone, 1, 0), -FI_EINVAL);
    assert_int_equal(fi_av_remove(av, (fi_addr_t[]){SOME}, 1, 0), -FI_EINVAL);
    assert_int_equal(fi_av_remove(av, (fi_addr_t[]){FI_ADDR_UNSPEC}, 1, 0), -FI_EINVAL);
    assert_int_equal(fi_av_remove(av, gone, 0, 0), 0);
    for (unsigned i = 0; i < SOME; i++) {
        if (i % 3 == 1)
            assert_int_equal(fi_av_lookup(av, i, &back, &bytes), -FI_EINVAL);
        else
            assert_nth(av, i, i);
    }
    /* One more than there is room for where others were. */
    for (unsigned i = 0; i <= num; i++)
        in[i] = nth(1000 + i);
    assert_int_equal(fi_av_insert(av, in, num + 1, addr, 0, NULL), num + 1);
    for (unsigned i = 0; i < num; i++) {
        assert_int_equal(addr[i], gone[i]);
        assert_nth(av, addr[i], 1000 + i);
    }
    assert_int_equal(addr[num], SOME);
    /* All go, from the end on; then the first is free again. */
    for (unsigned i = SOME + 1; i > 0; i--)
        assert_int_equal(fi_av_remove(av, (fi_addr_t[]){i - 1}, 1, 0), 0);
    assert_int_equal(fi_av_insert(av, in, 1, addr, 0, NULL), 1);
    assert_int_equal(addr[0], 0);
    assert_int_equal(fi_av_insert(av, in, 0, addr, 0, NULL), 0);
    assert_int_equal(fi_close(&av->fid), 0);
}

/* Errors are told one by one; the others are inserted. */
TEST_F(end, ofi_av__some_are_no_addresses)
{
    struct sockaddr_in in[4] = {nth(0), nth(1), nth(2), nth(3)};
    fi_addr_t addr[4];
    int errors[4];

    end_open(self, &(struct end_options){0}, NULL);
    in[0].sin_port = 0;
    in[2].sin_family = AF_UNIX;
    assert_int_equal(fi_av_insert(self->av, in, 4, addr, FI_SYNC_ERR, errors), 2);
    assert_int_equal(addr[0], FI_ADDR_NOTAVAIL);
    assert_int_equal(addr[2], FI_ADDR_NOTAVAIL);
    assert_int_equal(errors[0], FI_EINVAL);
    assert_int_equal(errors[1], 0);
    assert_int_equal(errors[2], FI_EINVAL);
    assert_nth(self->av, addr[1], 1);
    assert_nth(self->av, addr[3], 3);
    assert_int_equal(fi_av_insert(self->av, in, 4, addr, FI_SYNC_ERR, NULL), -FI_EINVAL);
    assert_int_equal(fi_av_insert(self->av, in, 4, addr, FI_EVENT, NULL), -FI_EBADFLAGS);
}

static void exchange(struct pair *p, fi_addr_t src)
{
    char in[8];

    POST(fi_recv(p->b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
    POST(fi_send(p->a.ep, "x", 1, NULL, p->a.to, p));
    assert_int_equal(end_ok(p->b.rx, in).src, src);
    end_ok(p->a.tx, p);
}

/* While they are inserted, and removed, messages go to one of them. */
TEST_F(plain, ofi_av__thousands)
{
    struct fid_av *const av[2] = {self->b.av, self->a.av};
    fi_addr_t *addr = zeros(MANY * sizeof(*addr));

    for (unsigned i = 0; i < MANY; i++) {
        struct sockaddr_in in = nth(i);

        assert_int_equal(fi_av_insert(av[i % 2], &in, 1, &addr[i], 0, NULL), 1);
        if (i % 1000 == 0)
            exchange(self, self->b.to);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_nth(av[i % 2], addr[i], i);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(fi_av_remove(av[i % 2], &addr[i], 1, 0), 0);
        if (i % 1000 == 0)
            exchange(self, self->b.to);
    }
    exchange(self, self->b.to);
}

/* Twice in the vector: the first entry is its name, as long as there is one. */
TEST_F(plain, ofi_av__twice)
{
    fi_addr_t second = end_meet(&self->b, &self->a);
    assert_true(second != self->b.to);
    exchange(self, self->b.to);
    assert_int_equal(fi_av_remove(self->b.av, &self->b.to, 1, 0), 0);
    exchange(self, second);
    assert_int_equal(fi_send(self->b.ep, "x", 1, NULL, self->b.to, NULL), -FI_EINVAL);
    assert_int_equal(fi_av_remove(self->b.av, &second, 1, 0), 0);
    exchange(self, FI_ADDR_NOTAVAIL);
    self->b.to = end_meet(&self->b, &self->a);
    exchange(self, self->b.to);
}

/* What was posted before its entry was removed goes on. */
TEST_F(plain, ofi_av__removed_under_way)
{
    enum { LONG = 300000 };
    uint8_t *out = filled(LONG, 1), *in = blank(LONG);

    fi_addr_t to = self->a.to;
    POST(fi_recv(self->b.ep, in, LONG, NULL, self->b.to, in));
    POST(fi_send(self->a.ep, out, LONG, NULL, to, out));
    assert_int_equal(fi_av_remove(self->a.av, &to, 1, 0), 0);
    assert_int_equal(fi_av_remove(self->b.av, &self->b.to, 1, 0), 0);
    assert_int_equal(end_ok(self->b.rx, in).src, FI_ADDR_NOTAVAIL);
    end_ok(self->a.tx, out);
    assert_filled(in, LONG, 1);
    assert_int_equal(fi_send(self->a.ep, "x", 1, NULL, to, NULL), -FI_EINVAL);
    assert_int_equal(fi_recv(self->b.ep, in, LONG, NULL, self->b.to, in), -FI_EINVAL);
    assert_int_equal(fi_inject(self->a.ep, "x", 1, FI_ADDR_UNSPEC), -FI_EINVAL);
}
