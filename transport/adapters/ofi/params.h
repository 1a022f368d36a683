/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment variables FI_MRD_*.
 *
 * mrd_ofi_params_define() tells libfabric of them, so that `fi_info -e` lists them;
 * mrd_ofi_params_parse() reads them. A value that makes no sense is reported to the log, and the
 * default is used.
 */
#ifndef MRD_OFI_PARAMS_H
#define MRD_OFI_PARAMS_H

#include <stdint.h>

/* FI_MRD_*: read once, at the first getinfo. NULL or 0: mrd's default. */
struct mrd_ofi_params {
    const char *device;    /* FI_MRD_DEVICE: of mrd_get_device_list(), for example an RDMA device */
    const char *interface; /* FI_MRD_IFACE: addresses of this network interface only */
    const char *spray;     /* FI_MRD_SPRAY */
    const char *cc;        /* FI_MRD_CC */
    const char *key_file;  /* FI_MRD_KEY_FILE: packets are sealed */
    uint16_t *ports;       /* FI_MRD_PORTS FIRST-LAST: source ports */
    uint32_t num_ports;
    uint32_t paths;           /* FI_MRD_PATHS */
    uint32_t mtu;             /* FI_MRD_MTU: payload bytes of a packet */
    uint64_t peer_timeout_ns; /* FI_MRD_PEER_TIMEOUT, given in milliseconds */
    uint32_t eager_bytes;     /* FI_MRD_EAGER_SIZE: longer messages are pulled by the receiver */
    uint32_t rx_buffers;      /* FI_MRD_RX_BUFFERS: of eager_bytes each, an endpoint */
    uint32_t drop_ppm;        /* FI_MRD_DROP: received packets to lose on purpose, for tests */
};
extern struct mrd_ofi_params mrd_ofi_params;
/* Takes no lock; the first call reads the environment. */
void mrd_ofi_params_read(void);

void mrd_ofi_params_define(void);
/* Fills in all of it. */
void mrd_ofi_params_parse(struct mrd_ofi_params *params);
void mrd_ofi_params_free(struct mrd_ofi_params *params);

#endif
