/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_getinfo() offers, and what it does not. */
#include "pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t now = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
static const struct end_options plain = {0};

/* ------------------------------------------------------------------------------------- not offered */

/* Each changes hints that are fine otherwise. */
static void msg_endpoint(struct fi_info *h)
{
    h->ep_attr->type = FI_EP_MSG;
}

static void dgram_endpoint(struct fi_info *h)
{
    h->ep_attr->type = FI_EP_DGRAM;
}

static void other_protocol(struct fi_info *h)
{
    h->ep_attr->protocol = FI_PROTO_RXD;
}

static void read_after_write(struct fi_info *h)
{
    h->tx_attr->msg_order = FI_ORDER_RAW;
}

static void write_after_write(struct fi_info *h)
{
    h->rx_attr->msg_order = FI_ORDER_WAW;
}

static void send_after_write(struct fi_info *h)
{
    h->tx_attr->msg_order = FI_ORDER_SAW;
}

static void strict_completions(struct fi_info *h)
{
    h->tx_attr->comp_order = FI_ORDER_STRICT;
}

static void data_completions(struct fi_info *h)
{
    h->rx_attr->comp_order = FI_ORDER_DATA;
}

static void write_after_write_size(struct fi_info *h)
{
    h->ep_attr->max_order_waw_size = 1;
}

static void infiniband_addresses(struct fi_info *h)
{
    h->addr_format = FI_SOCKADDR_IB;
}

static void psm_addresses(struct fi_info *h)
{
    h->addr_format = FI_ADDR_PSMX2;
}

static void multicast(struct fi_info *h)
{
    h->caps |= FI_MULTICAST;
}

static void triggers(struct fi_info *h)
{
    h->caps |= FI_TRIGGER;
}

static void collectives(struct fi_info *h)
{
    h->caps |= FI_COLLECTIVE;
}

static void named_contexts(struct fi_info *h)
{
    h->caps |= FI_NAMED_RX_CTX;
}

static void variable_messages(struct fi_info *h)
{
    h->caps |= FI_VARIABLE_MSG;
}

static void memory_of_devices(struct fi_info *h)
{
    h->caps |= FI_HMEM;
}

static void shared_contexts(struct fi_info *h)
{
    h->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
}

static void two_contexts(struct fi_info *h)
{
    h->ep_attr->tx_ctx_cnt = 2;
}

static void much_injected(struct fi_info *h)
{
    h->tx_attr->inject_size = INJECT_BYTES + 1;
}

static void nine_buffers(struct fi_info *h)
{
    h->tx_attr->iov_limit = 9;
}

static void nine_ranges(struct fi_info *h)
{
    h->tx_attr->rma_iov_limit = 9;
}

static void endless_messages(struct fi_info *h)
{
    h->ep_attr->max_msg_size = SIZE_MAX;
}

static void fence(struct fi_info *h)
{
    h->tx_attr->op_flags = FI_FENCE;
}

static void more_data(struct fi_info *h)
{
    h->domain_attr->cq_data_size = 9;
}

static void wide_keys(struct fi_info *h)
{
    h->domain_attr->mr_key_size = 9;
}

static void old_and_new_modes(struct fi_info *h)
{
    h->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_VIRT_ADDR;
}

static void secret_keys(struct fi_info *h)
{
    h->ep_attr->auth_key_size = 8;
}

static void no_such_domain(struct fi_info *h)
{
    h->domain_attr->name = strdup("no such interface");
}

static void no_such_fabric(struct fi_info *h)
{
    h->fabric_attr->name = strdup("no such network");
}

TEST(ofi_info__not_offered)
{
    static void (*const change[])(struct fi_info *) = {
        msg_endpoint,
        dgram_endpoint,
        other_protocol,
        read_after_write,
        write_after_write,
        send_after_write,
        strict_completions,
        data_completions,
        write_after_write_size,
        infiniband_addresses,
        psm_addresses,
        multicast,
        triggers,
        collectives,
        named_contexts,
        variable_messages,
        memory_of_devices,
        shared_contexts,
        two_contexts,
        much_injected,
        nine_buffers,
        nine_ranges,
        endless_messages,
        fence,
        more_data,
        wide_keys,
        old_and_new_modes,
        secret_keys,
        no_such_domain,
        no_such_fabric,
    };

    for (unsigned i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
        struct fi_info *hints = end_hints(&plain), *info = NULL;

        hints->caps |= FI_MSG;
        assert_int_equal(fi_getinfo(now, NULL, NULL, 0, hints, &info), 0);
        fi_freeinfo(info);
        info = NULL;
        change[i](hints);
        int result = fi_getinfo(now, NULL, NULL, 0, hints, &info);
        if (result != -FI_ENODATA)
            fail_msg("change %u of the hints: %d", i, result);
        fi_freeinfo(hints);
    }
}

/* No other provider is put on top of it. */
TEST(ofi_info__nothing_over_it)
{
    struct fi_info *info;

    assert_int_equal(fi_getinfo(now, NULL, NULL, 0, NULL, &info), 0);
    for (const struct fi_info *i = info; i; i = i->next) {
        const char *name = i->fabric_attr->prov_name;

        if (strstr(name, "mrd"))
            assert_string_equal(name, "mrd");
    }
    fi_freeinfo(info);
}

/* ----------------------------------------------------------------------------------------- offered */

/* As Open MPI asks. */
static struct fi_info *mpi_hints(void)
{
    struct fi_info *hints = fi_allocinfo();

    hints->fabric_attr->prov_name = strdup("mrd");
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->op_flags = FI_COMPLETION;
    hints->tx_attr->op_flags = FI_COMPLETION;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->av_type = FI_AV_MAP;
    hints->domain_attr->cq_data_size = 4;
    return hints;
}

static void check_mpi(const struct fi_info *i, uint64_t caps)
{
    assert_int_equal(i->caps & caps, caps);
    assert_int_equal(i->mode, 0);
    assert_int_equal(i->ep_attr->type, FI_EP_RDM);
    assert_int_equal(i->ep_attr->mem_tag_format, 0xaaaaaaaaaaaaaaaau);
    assert_true(i->ep_attr->max_msg_size >= 1u << 30);
    assert_int_equal(i->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
    assert_int_equal(i->rx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
    assert_int_equal(i->domain_attr->threading, FI_THREAD_DOMAIN);
    assert_int_equal(i->domain_attr->resource_mgmt, FI_RM_ENABLED);
    assert_int_equal(i->domain_attr->av_type, FI_AV_MAP);
    assert_true(i->domain_attr->cq_data_size >= 4);
    assert_true(i->addr_format == FI_SOCKADDR_IN || i->addr_format == FI_SOCKADDR_IN6);
    assert_non_null(i->src_addr);
    assert_non_null(i->domain_attr->name);
    assert_non_null(i->fabric_attr->name);
    assert_string_equal(i->fabric_attr->prov_name, "mrd");
}

TEST(ofi_info__as_mpi_asks)
{
    struct fi_info *hints = mpi_hints(), *info;

    assert_int_equal(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info), 0);
    for (const struct fi_info *i = info; i; i = i->next)
        check_mpi(i, FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV | FI_REMOTE_COMM);
    fi_freeinfo(info);
    hints->caps &= ~FI_DIRECTED_RECV;
    assert_int_equal(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info), 0);
    check_mpi(info, FI_TAGGED | FI_SEND | FI_RECV);
    assert_int_equal(info->caps & FI_DIRECTED_RECV, 0);
    fi_freeinfo(info);
    fi_freeinfo(hints);
}

/* Whoever does not ask for an order gets none: messages do not wait for lost ones. */
TEST(ofi_info__order_only_if_asked_for)
{
    struct fi_info *hints = end_hints(&plain), *info;

    assert_int_equal(fi_getinfo(now, NULL, NULL, 0, hints, &info), 0);
    assert_int_equal(info->tx_attr->msg_order, FI_ORDER_NONE);
    fi_freeinfo(info);
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    assert_int_equal(fi_getinfo(now, NULL, NULL, 0, hints, &info), 0);
    assert_int_equal(info->tx_attr->msg_order, FI_ORDER_SAS);
    assert_int_equal(info->rx_attr->msg_order, FI_ORDER_SAS);
    fi_freeinfo(info);
    fi_freeinfo(hints);
}

/* Capabilities of messages only do not bring those of memory. */
TEST(ofi_info__no_more_than_asked_for)
{
    struct fi_info *hints = end_hints(&(struct end_options){.caps = FI_MSG | FI_RECV}), *info;

    assert_int_equal(fi_getinfo(now, NULL, NULL, 0, hints, &info), 0);
    assert_int_equal(info->caps & (FI_MSG | FI_RECV), FI_MSG | FI_RECV);
    assert_int_equal(info->caps & (FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND), 0);
    fi_freeinfo(info);
    fi_freeinfo(hints);
}

TEST(ofi_info__modes_of_old_applications)
{
    struct fi_info *hints = end_hints(&plain), *info;

    hints->domain_attr->mr_mode = FI_MR_UNSPEC;
    assert_int_equal(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &info), 0);
    assert_int_equal(info->domain_attr->mr_mode, FI_MR_SCALABLE);
    fi_freeinfo(info);
    hints->domain_attr->mr_mode = FI_MR_BASIC;
    assert_int_equal(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &info), 0);
    assert_int_equal(info->domain_attr->mr_mode, FI_MR_BASIC);
    fi_freeinfo(info);
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
    assert_int_equal(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &info), -FI_ENODATA);
    fi_freeinfo(hints);
}

/* --------------------------------------------------------------------------------------- addresses */

static const struct sockaddr_in *in_of(const void *addr)
{
    return addr;
}

TEST(ofi_info__source_and_service)
{
    struct fi_info *hints = end_hints(&plain), *info;

    hints->addr_format = FI_SOCKADDR_IN;
    assert_int_equal(fi_getinfo(now, "127.0.0.1", "47999", FI_SOURCE, hints, &info), 0);
    assert_int_equal(info->src_addrlen, sizeof(struct sockaddr_in));
    assert_int_equal(in_of(info->src_addr)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_equal(ntohs(in_of(info->src_addr)->sin_port), 47999);
    assert_null(info->dest_addr);
    fi_freeinfo(info);

    /* Any address of this machine, at that port. */
    assert_int_equal(fi_getinfo(now, NULL, "47999", FI_SOURCE, hints, &info), 0);
    for (const struct fi_info *i = info; i; i = i->next)
        assert_int_equal(ntohs(in_of(i->src_addr)->sin_port), 47999);
    fi_freeinfo(info);

    /* Another machine's is not ours. */
    assert_int_equal(fi_getinfo(now, "192.0.2.1", "47999", FI_SOURCE, hints, &info), -FI_ENODATA);
    assert_int_equal(fi_getinfo(now, "localhost", NULL, FI_SOURCE | FI_NUMERICHOST, hints, &info),
                     -FI_ENODATA);
    fi_freeinfo(hints);
}

TEST(ofi_info__destination)
{
    struct fi_info *hints = end_hints(&plain), *info;

    assert_int_equal(fi_getinfo(now, "127.0.0.5", "1234", 0, hints, &info), 0);
    assert_int_equal(in_of(info->dest_addr)->sin_addr.s_addr, htonl(0x7f000005));
    assert_int_equal(ntohs(in_of(info->dest_addr)->sin_port), 1234);
    assert_int_equal(ntohl(in_of(info->src_addr)->sin_addr.s_addr) >> 24, 127);
    fi_freeinfo(info);
    hints->addr_format = FI_SOCKADDR_IN6;
    assert_int_equal(fi_getinfo(now, "127.0.0.5", "1234", FI_NUMERICHOST, hints, &info),
                     -FI_ENODATA);
    fi_freeinfo(hints);
}

/* An endpoint that is opened with a port has it. */
TEST(ofi_info__endpoint_at_its_source)
{
    struct sockaddr_in name = {0}, first = {0};
    size_t bytes = sizeof(name);
    struct fid_ep *ep;
    struct fid_cq *cq;
    struct end e;

    end_open(&e, &plain, NULL);
    assert_int_equal(fi_getname(&e.ep->fid, &first, &bytes), 0);
    assert_int_equal(bytes, sizeof(first));
    assert_int_equal(first.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_true(first.sin_port != 0);
    bytes = 4;
    assert_int_equal(fi_getname(&e.ep->fid, &name, &bytes), -FI_ETOOSMALL);
    assert_int_equal(bytes, sizeof(name));

    /* Its port is taken: another one cannot have it, and says so. */
    struct fi_info *hints = fi_dupinfo(e.info);
    memcpy(hints->src_addr, &first, sizeof(first));
    assert_int_equal(fi_endpoint(e.domain, hints, &ep, NULL), 0);
    assert_int_equal(fi_cq_open(e.domain, &(struct fi_cq_attr){0}, &cq, NULL), 0);
    assert_int_equal(fi_enable(ep), -FI_ENOAV);
    assert_int_equal(fi_ep_bind(ep, &e.av->fid, 0), 0);
    assert_int_equal(fi_enable(ep), -FI_ENOCQ);
    assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    assert_int_equal(fi_send(ep, NULL, 0, NULL, 0, NULL), -FI_EOPBADSTATE);
    assert_int_equal(fi_enable(ep), -FI_EADDRINUSE);
    assert_int_equal(fi_close(&cq->fid), -FI_EBUSY);
    assert_int_equal(fi_close(&ep->fid), 0);
    assert_int_equal(fi_close(&cq->fid), 0);
    end_close(&e);

    /* It is free again. */
    assert_int_equal(fi_fabric(hints->fabric_attr, &e.fabric, NULL), 0);
    assert_int_equal(fi_domain(e.fabric, hints, &e.domain, NULL), 0);
    assert_int_equal(fi_endpoint(e.domain, hints, &ep, NULL), 0);
    assert_int_equal(fi_cq_open(e.domain, &(struct fi_cq_attr){0}, &cq, NULL), 0);
    assert_int_equal(fi_av_open(e.domain, &(struct fi_av_attr){0}, &e.av, NULL), 0);
    assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    assert_int_equal(fi_ep_bind(ep, &e.av->fid, 0), 0);
    assert_int_equal(fi_enable(ep), 0);
    bytes = sizeof(name);
    assert_int_equal(fi_getname(&ep->fid, &name, &bytes), 0);
    assert_int_equal(name.sin_port, first.sin_port);
    assert_int_equal(fi_close(&ep->fid), 0);
    assert_int_equal(fi_close(&cq->fid), 0);
    assert_int_equal(fi_close(&e.av->fid), 0);
    assert_int_equal(fi_close(&e.domain->fid), 0);
    assert_int_equal(fi_close(&e.fabric->fid), 0);
    fi_freeinfo(hints);
}

TEST_F(end, ofi_info__addresses_of_a_vector)
{
    struct sockaddr_in name, back;
    size_t bytes = sizeof(name);
    fi_addr_t addr[3];
    char text[64];
    size_t len = sizeof(text);

    end_open(self, &plain, NULL);
    assert_int_equal(fi_getname(&self->ep->fid, &name, &bytes), 0);
    assert_int_equal(fi_av_insert(self->av, &name, 1, &addr[0], 0, NULL), 1);
    assert_int_equal(fi_av_lookup(self->av, addr[0], &back, &bytes), 0);
    assert_int_equal(back.sin_port, name.sin_port);
    assert_int_equal(back.sin_addr.s_addr, name.sin_addr.s_addr);
    assert_non_null(fi_av_straddr(self->av, &name, text, &len));
    assert_non_null(strstr(text, "127.0.0.1"));
    assert_int_equal(fi_av_insertsvc(self->av, "127.0.0.1", "1000", &addr[1], 0, NULL), 1);
    assert_int_equal(fi_av_lookup(self->av, addr[1], &back, &bytes), 0);
    assert_int_equal(ntohs(back.sin_port), 1000);
    assert_int_equal(fi_av_remove(self->av, &addr[0], 1, 0), 0);
    assert_int_equal(fi_av_lookup(self->av, addr[0], &back, &bytes), -FI_EINVAL);
    assert_int_equal(fi_av_remove(self->av, &addr[0], 1, 0), -FI_EINVAL);
    assert_int_equal(fi_av_lookup(self->av, addr[1], &back, &bytes), 0);
    memset(&name, 0, sizeof(name));
    assert_int_equal(fi_av_insert(self->av, &name, 1, &addr[2], 0, NULL), 0);
    assert_int_equal(addr[2], FI_ADDR_NOTAVAIL);
}
