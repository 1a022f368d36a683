/* SPDX-License-Identifier: BSD-2-Clause */
#include "victim.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct end_options options = {.order = FI_ORDER_SAS, .counts = FI_SEND};

uint64_t patience_ns(void)
{
    return clock_now_ns() + END_PATIENCE_S * SEC_NS;
}

struct told name_of(const struct end *e)
{
    size_t bytes = sizeof(struct sockaddr_in);
    struct told told;

    must(fi_getname(&e->ep->fid, &told.name, &bytes) == 0);
    return told;
}

/* ---------------------------------------------------------------------------------- what children do */

void child_open(int channel, struct end *e, uint16_t port)
{
    struct end_options o = options;

    setenv("CMOCKA_TEST_ABORT", "1", 1); /* it has no tests to go on with */
    o.port = port;
    end_open(e, &o, NULL);
    struct told told = name_of(e);
    process_tell(channel, &told, sizeof(told));
    must(process_hear(channel, &told, sizeof(told), patience_ns()));
    must(fi_av_insert(e->av, &told.name, 1, &e->to, 0, NULL) == 1);
}

void drive_until_told(int channel)
{
    char word;

    while (!process_hear(channel, &word, 1, clock_now_ns()))
        ends_drive();
}

void answer(struct end *e)
{
    char in[8];

    POST(fi_recv(e->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
    (void)end_ok(e->rx, NULL);
    POST(fi_send(e->ep, "b", 1, NULL, e->to, NULL));
    (void)end_ok(e->tx, NULL);
}

void alive(int channel)
{
    struct end e;

    child_open(channel, &e, 0);
    answer(&e);
    drive_until_told(channel);
    end_close(&e);
}

void reborn(int channel)
{
    uint8_t *memory = zeros(2 * MEMORY);
    struct told told;
    struct end e;

    must(process_hear(channel, &told, sizeof(told), patience_ns()));
    child_open(channel, &e, ntohs(told.name.sin_port));
    for (unsigned i = 0; i < 2; i++)
        end_register(&e, memory + i * MEMORY, MEMORY, REGION_ACCESS, KEY + i);
    process_tell(channel, "r", 1);
    answer(&e);
    drive_until_told(channel);
    end_close(&e);
}

/* ------------------------------------------------------------------------------------ what tests do */

void start(struct peer *p, void (*body)(int channel))
{
    process_start(&p->process, body);
}

void meet(struct end *e, struct peer *p)
{
    struct told own = name_of(e);

    must(process_hear(p->process.channel, &p->told, sizeof(p->told), patience_ns()));
    process_tell(p->process.channel, &own, sizeof(own));
    assert_int_equal(fi_av_insert(e->av, &p->told.name, 1, &p->to, 0, NULL), 1);
}

void meet_target(struct end *e, struct peer *p)
{
    char word;

    meet(e, p);
    must(process_hear(p->process.channel, &word, 1, patience_ns()));
}

void check_error(const struct entry *entry, const struct peer *p)
{
    char name[64];

    assert_false(entry->bare);
    assert_int_equal(entry->err, FI_EHOSTUNREACH);
    snprintf(name, sizeof(name), "127.0.0.1:%u", ntohs(p->told.name.sin_port));
    if (!strstr(entry->text, name))
        fail_msg("\"%s\" does not name %s", entry->text, name);
}

void expect_error(struct fid_cq *cq, const struct peer *p, const void *context)
{
    struct entry entry = end_next(cq);

    if (context)
        assert_ptr_equal(entry.ok.op_context, context);
    check_error(&entry, p);
}

void hear_of(struct end *e, const struct peer *p)
{
    char in[8];

    POST(fi_recv(e->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
    POST(fi_send(e->ep, "a", 1, NULL, p->to, &in[1]));
    end_ok(e->tx, &in[1]);
    assert_int_equal(end_ok(e->rx, in).src, p->to);
}

void part(struct peer *p)
{
    process_tell(p->process.channel, "q", 1);
    process_join(&p->process);
}
