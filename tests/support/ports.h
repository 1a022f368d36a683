/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports for tests that leave a port and come back to it: nobody who asks the kernel for any port
 * gets one of these in between.
 */
#ifndef MRD_TESTS_SUPPORT_PORTS_H
#define MRD_TESTS_SUPPORT_PORTS_H

#include <stdint.h>

/* A UDP port outside ip_local_port_range that is free, another one at each call; 0: there is none. */
uint16_t test_port_apart(void);

#endif
