/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues: what is written to them, and what inserted addresses tell. */
#include "pair.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>

enum {
    LATE_MS = 200, /* when it comes that somebody sleeps for */
    LONG_MS = END_PATIENCE_S * 1000,
};

static const struct end_options waiting = {.wait = FI_WAIT_FD};

static void *write_late(void *arg)
{
    struct fi_eq_entry entry = {.data = 5};

    end_sleep_ms(LATE_MS);
    assert_int_equal(fi_eq_write(arg, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
    return NULL;
}

TEST_F(end, ofi_eq__what_the_application_writes)
{
    struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD, .flags = FI_WRITE};
    struct fi_eq_entry entry = {.data = 3};
    struct pollfd fd = {.events = POLLIN};
    pthread_t thread;
    struct fid_eq *eq;
    uint32_t type;

    end_open(self, &waiting, NULL);
    assert_int_equal(fi_eq_open(self->fabric, &attr, &eq, NULL), 0);
    assert_int_equal(fi_eq_read(eq, &type, &entry, sizeof(entry), 0), -FI_EAGAIN);
    assert_int_equal(fi_eq_sread(eq, &type, &entry, sizeof(entry), 20, 0), -FI_EAGAIN);
    assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
    assert_int_equal(fi_eq_read(eq, &type, &entry, 1, 0), -FI_ETOOSMALL);
    entry.data = 0;
    assert_int_equal(fi_eq_read(eq, &type, &entry, sizeof(entry), FI_PEEK), sizeof(entry));
    assert_int_equal(entry.data, 3);
    assert_int_equal(fi_eq_read(eq, &type, &entry, sizeof(entry), 0), sizeof(entry));
    assert_int_equal(type, FI_NOTIFY);
    assert_int_equal(fi_eq_read(eq, &type, &entry, sizeof(entry), 0), -FI_EAGAIN);

    assert_int_equal(pthread_create(&thread, NULL, write_late, eq), 0);
    assert_int_equal(fi_eq_sread(eq, &type, &entry, sizeof(entry), LONG_MS, 0), sizeof(entry));
    assert_int_equal(entry.data, 5);
    assert_int_equal(pthread_join(thread, NULL), 0);

    struct fid *fid = &eq->fid;
    assert_int_equal(fi_control(fid, FI_GETWAIT, &fd.fd), 0);
    assert_int_equal(fi_trywait(self->fabric, &fid, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_late, eq), 0);
    assert_int_equal(poll(&fd, 1, LONG_MS), 1);
    assert_int_equal(fi_eq_read(eq, &type, &entry, sizeof(entry), 0), sizeof(entry));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(fi_close(&eq->fid), 0);
}

/* What is inserted is told: how many, and each one that is none. */
TEST_F(end, ofi_eq__of_an_address_vector)
{
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .flags = FI_EVENT};
    struct sockaddr_in names[3];
    size_t bytes = sizeof(names[0]);
    struct fi_eq_err_entry error = {0};
    struct fi_eq_entry entry;
    fi_addr_t addr[3];
    struct fid_eq *eq;
    struct fid_av *av;
    uint32_t type;

    end_open(self, &waiting, NULL);
    assert_int_equal(fi_eq_open(self->fabric, &eq_attr, &eq, NULL), 0);
    assert_int_equal(fi_av_open(self->domain, &av_attr, &av, NULL), 0);
    assert_int_equal(fi_av_bind(av, &eq->fid, 0), 0);
    assert_int_equal(fi_getname(&self->ep->fid, &names[0], &bytes), 0);
    names[1] = names[2] = names[0];
    names[1].sin_port = 0;
    assert_int_equal(fi_av_insert(av, names, 3, addr, 0, &addr), 0);
    assert_int_equal(fi_eq_sread(eq, &type, &entry, sizeof(entry), LONG_MS, 0), -FI_EAVAIL);
    assert_true(fi_eq_readerr(eq, &error, 0) > 0);
    assert_int_equal(error.err, FI_EINVAL);
    assert_int_equal(error.data, 1);
    assert_ptr_equal(error.context, &addr);
    assert_int_equal(fi_eq_sread(eq, &type, &entry, sizeof(entry), LONG_MS, 0), sizeof(entry));
    assert_int_equal(type, FI_AV_COMPLETE);
    assert_int_equal(entry.data, 2);
    assert_ptr_equal(entry.fid, &av->fid);
    assert_int_equal(addr[1], FI_ADDR_NOTAVAIL);
    assert_true(addr[0] != FI_ADDR_NOTAVAIL && addr[2] != FI_ADDR_NOTAVAIL);
    assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
    assert_int_equal(fi_close(&av->fid), 0);
    assert_int_equal(fi_close(&eq->fid), 0);
}
