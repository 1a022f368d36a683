/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_getinfo() offers, and what it does not. */
#include "pair.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static const struct end_options none = {0};

/* ------------------------------------------------------------------------------------- not offered */

/* Hints of which one attribute is not as it is offered: it alone is not zero. */
struct wrong {
    struct fi_ep_attr ep;
    struct fi_tx_attr tx;
    struct fi_rx_attr rx;
    struct fi_domain_attr domain;
    uint64_t caps;
    uint32_t addr_format;
    const char *domain_name, *fabric_name;
};

static const struct wrong not_offered[] = {
    {.ep.type = FI_EP_MSG},
    {.ep.type = FI_EP_DGRAM},
    {.ep.protocol = FI_PROTO_RXD},
    {.tx.msg_order = FI_ORDER_RAW},
    {.rx.msg_order = FI_ORDER_WAW},
    {.tx.msg_order = FI_ORDER_SAW},
    {.tx.comp_order = FI_ORDER_STRICT},
    {.rx.comp_order = FI_ORDER_DATA},
    {.ep.max_order_waw_size = 1},
    {.addr_format = FI_SOCKADDR_IB},
    {.addr_format = FI_ADDR_PSMX2},
    {.caps = FI_MULTICAST},
    {.caps = FI_TRIGGER},
    {.caps = FI_COLLECTIVE},
    {.caps = FI_NAMED_RX_CTX},
    {.caps = FI_VARIABLE_MSG},
    {.caps = FI_HMEM},
    {.ep.rx_ctx_cnt = FI_SHARED_CONTEXT},
    {.ep.tx_ctx_cnt = 2},
    {.tx.inject_size = INJECT_BYTES + 1},
    {.tx.iov_limit = 9},
    {.tx.rma_iov_limit = 9},
    {.ep.max_msg_size = SIZE_MAX},
    {.tx.op_flags = FI_FENCE},
    {.domain.cq_data_size = 9},
    {.domain.mr_key_size = 9},
    {.domain.mr_mode = FI_MR_BASIC | FI_MR_VIRT_ADDR},
    {.ep.auth_key_size = 8},
    {.domain_name = "no such interface"},
    {.fabric_name = "no such network"},
};

static char *copy_of(const char *name)
{
    return name ? strdup(name) : NULL;
}

TEST(ofi_info__not_offered)
{
    end_offered(NULL, NULL, 0, end_hints(&none)); /* without what is wrong */
    for (unsigned i = 0; i < sizeof(not_offered) / sizeof(not_offered[0]); i++) {
        const struct wrong *w = &not_offered[i];
        struct fi_info *hints = end_hints(&none);

        print_message("row %u\n", i);
        hints->caps |= w->caps;
        hints->addr_format = w->addr_format;
        *hints->ep_attr = w->ep;
        if (!w->ep.type)
            hints->ep_attr->type = FI_EP_RDM;
        *hints->tx_attr = w->tx;
        *hints->rx_attr = w->rx;
        *hints->domain_attr = w->domain;
        hints->domain_attr->name = copy_of(w->domain_name);
        hints->fabric_attr->name = copy_of(w->fabric_name);
        end_not_offered(NULL, NULL, 0, hints);
    }
}

/* No other provider is put on top of it. */
TEST(ofi_info__nothing_over_it)
{
    for (const struct fi_info *i = end_offered(NULL, NULL, 0, NULL); i; i = i->next) {
        const char *name = i->fabric_attr->prov_name;

        if (strstr(name, "mrd"))
            assert_string_equal(name, "mrd");
    }
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
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->tx_attr->op_flags = hints->rx_attr->op_flags = FI_COMPLETION;
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

/* As the NCCL plugin for libfabric asks: at last without memory of GPUs, which no provider of sockets has. */
TEST(ofi_info__as_aws_ofi_nccl_asks)
{
    const int basic =
        FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    struct fi_info *hints = end_keep(fi_allocinfo(), (void (*)(void *))fi_freeinfo), *info;

    hints->caps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG | FI_HMEM | FI_RMA | FI_READ;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = basic | FI_MR_HMEM;
    hints->domain_attr->mr_key_size = 2;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->fabric_attr->prov_name = strdup("mrd");
    assert_int_equal(fi_getinfo(FI_VERSION(1, 6), NULL, NULL, 0, hints, &info), -FI_ENODATA);
    hints->caps &= ~(uint64_t)(FI_HMEM | FI_RMA | FI_READ);
    hints->domain_attr->mr_mode = basic;
    assert_int_equal(fi_getinfo(FI_VERSION(1, 6), NULL, NULL, 0, hints, &info), 0);
    for (const struct fi_info *i = info; i; i = i->next) {
        assert_int_equal(i->caps & (FI_TAGGED | FI_MSG), FI_TAGGED | FI_MSG);
        assert_int_equal(i->mode & ~hints->mode, 0);
        assert_int_equal(i->domain_attr->mr_mode & ~basic, 0);
        assert_int_equal(i->tx_attr->msg_order & i->rx_attr->msg_order & FI_ORDER_SAS,
                         FI_ORDER_SAS);
        assert_true(i->domain_attr->mr_key_size <= 2 ||
                    !(i->domain_attr->mr_mode & FI_MR_PROV_KEY));
    }
    fi_freeinfo(info);
}

/* Whoever does not ask for an order gets none: messages do not wait for lost ones. */
TEST(ofi_info__order_only_if_asked_for)
{
    struct fi_info *hints = end_hints(&none);

    assert_int_equal(end_offered(NULL, NULL, 0, hints)->tx_attr->msg_order, FI_ORDER_NONE);
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    const struct fi_info *info = end_offered(NULL, NULL, 0, hints);
    assert_int_equal(info->tx_attr->msg_order, FI_ORDER_SAS);
    assert_int_equal(info->rx_attr->msg_order, FI_ORDER_SAS);
}

/* Capabilities of messages only do not bring those of memory. */
TEST(ofi_info__no_more_than_asked_for)
{
    const struct end_options o = {.caps = FI_MSG | FI_RECV};
    uint64_t caps = end_offered(NULL, NULL, 0, end_hints(&o))->caps;

    assert_int_equal(caps & (FI_MSG | FI_RECV), FI_MSG | FI_RECV);
    assert_int_equal(caps & (FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND), 0);
}

TEST(ofi_info__modes_of_old_applications)
{
    static const struct {
        int asked, offered; /* -1: nothing */
    } modes[] = {{FI_MR_UNSPEC, FI_MR_SCALABLE}, {FI_MR_BASIC, FI_MR_BASIC}, {FI_MR_VIRT_ADDR, -1}};
    struct fi_info *hints = end_hints(&none), *info;

    for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        hints->domain_attr->mr_mode = modes[i].asked;
        int result = fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &info);
        assert_int_equal(result, modes[i].offered < 0 ? -FI_ENODATA : 0);
        if (result)
            continue;
        assert_int_equal(info->domain_attr->mr_mode, modes[i].offered);
        fi_freeinfo(info);
    }
}

/* --------------------------------------------------------------------------------------- addresses */

static const struct sockaddr_in *in_of(const void *addr)
{
    return addr;
}

TEST(ofi_info__source_and_service)
{
    const struct fi_info *info;
    struct fi_info *hints = end_hints(&(struct end_options){.format = FI_SOCKADDR_IN});

    info = end_offered("127.0.0.1", "47999", FI_SOURCE, hints);
    assert_int_equal(info->src_addrlen, sizeof(struct sockaddr_in));
    assert_int_equal(in_of(info->src_addr)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_equal(ntohs(in_of(info->src_addr)->sin_port), 47999);
    assert_null(info->dest_addr);

    /* Any address of this machine, at that port. */
    for (info = end_offered(NULL, "47999", FI_SOURCE, hints); info; info = info->next)
        assert_int_equal(ntohs(in_of(info->src_addr)->sin_port), 47999);

    /* Another machine's is not ours. */
    end_not_offered("192.0.2.1", "47999", FI_SOURCE, hints);
    end_not_offered("localhost", NULL, FI_SOURCE | FI_NUMERICHOST, hints);
}

TEST(ofi_info__destination)
{
    struct fi_info *hints = end_hints(&none);
    const struct fi_info *info = end_offered("127.0.0.5", "1234", 0, hints);

    assert_int_equal(in_of(info->dest_addr)->sin_addr.s_addr, htonl(0x7f000005));
    assert_int_equal(ntohs(in_of(info->dest_addr)->sin_port), 1234);
    assert_int_equal(ntohl(in_of(info->src_addr)->sin_addr.s_addr) >> 24, 127);
    hints->addr_format = FI_SOCKADDR_IN6;
    end_not_offered("127.0.0.5", "1234", FI_NUMERICHOST, hints);
}

/* An endpoint that is opened with a port has it. */
TEST_F(end, ofi_info__endpoint_at_its_source)
{
    struct sockaddr_in name;
    size_t bytes = 4;
    struct fid_ep *ep;
    struct fid_cq *cq;

    end_open(self, &none, NULL);
    struct sockaddr_in first = end_name(self->ep);
    assert_int_equal(first.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_true(first.sin_port != 0);
    assert_int_equal(fi_getname(&self->ep->fid, &name, &bytes), -FI_ETOOSMALL);
    assert_int_equal(bytes, sizeof(name));

    /* Its port is taken: another one cannot have it, and says so. */
    struct fi_info *hints = fi_dupinfo(self->info);
    memcpy(hints->src_addr, &first, sizeof(first));
    assert_int_equal(fi_endpoint(self->domain, hints, &ep, NULL), 0);
    assert_int_equal(fi_cq_open(self->domain, &(struct fi_cq_attr){0}, &cq, NULL), 0);
    assert_int_equal(fi_enable(ep), -FI_ENOAV);
    assert_int_equal(fi_ep_bind(ep, &self->av->fid, 0), 0);
    assert_int_equal(fi_enable(ep), -FI_ENOCQ);
    assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    assert_int_equal(fi_send(ep, NULL, 0, NULL, 0, NULL), -FI_EOPBADSTATE);
    assert_int_equal(fi_enable(ep), -FI_EADDRINUSE);
    assert_int_equal(fi_close(&cq->fid), -FI_EBUSY);
    assert_int_equal(fi_close(&ep->fid), 0);
    assert_int_equal(fi_close(&cq->fid), 0);
    end_close(self);

    /* It is free again. */
    end_open(self, &none, NULL);
    ep = end_beside(self, hints);
    assert_int_equal(fi_enable(ep), 0);
    assert_int_equal(end_name(ep).sin_port, first.sin_port);
    assert_int_equal(fi_close(&ep->fid), 0);
    end_close(self);
    fi_freeinfo(hints);
}

TEST_F(end, ofi_info__addresses_of_a_vector)
{
    struct sockaddr_in back;
    size_t bytes = sizeof(back);
    fi_addr_t addr[3];
    char text[64];
    size_t len = sizeof(text);

    end_open(self, &none, NULL);
    struct sockaddr_in name = end_name(self->ep);
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
