/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of the UDP mover: conversion from and to strings and the kernel's structs, and our own.
 */
#ifndef MRD_TRANSPORT_UDP_ADDR_H
#define MRD_TRANSPORT_UDP_ADDR_H

#include "transport/movers/udp/udp_state.h"

bool mrd_udp_addr_is_v4(const struct mrd_addr *addr);
bool mrd_udp_addr_is_any(const struct mrd_addr *addr); /* all bytes are 0 */
bool mrd_udp_addr_is_loopback(const struct mrd_addr *addr);
/* An IPv6 address that is valid only together with its scope. */
bool mrd_udp_addr_is_link_local(const struct mrd_addr *addr);
bool mrd_udp_addr_same_ip(const struct mrd_addr *a, const struct mrd_addr *b);
/*
 * Writes an address as the kernel's struct, and returns that one's length. For AF_INET the address
 * must be v4-mapped, or all zero.
 */
socklen_t mrd_udp_to_sockaddr(int family, const struct mrd_addr *addr, union mrd_udp_sockaddr *sa);
void mrd_udp_from_sockaddr(const union mrd_udp_sockaddr *sa, struct mrd_addr *addr);
void mrd_udp_from_v4(struct in_addr in, struct mrd_addr *addr); /* sets ip[] only */
/* Parses a numeric IP address without a port. 0, or -EINVAL with mrd_error_set(). */
int mrd_udp_parse_ip(const char *text, struct mrd_addr *addr);
int mrd_udp_parse_address(struct mrd_backend *b, const char *text, struct mrd_addr *addr);
int mrd_udp_format_address(struct mrd_backend *b, const struct mrd_addr *addr, char *text,
                           size_t len);
/*
 * Ends a socket's connection. It may have lost its port: one that the kernel chose goes with the
 * connection.
 */
void mrd_udp_disconnect(const struct mrd_udp *udp, int fd);
/* 0 or -errno with mrd_error_set(): the machine's addresses cannot be read. */
int mrd_udp_self_address(struct mrd_backend *b, struct mrd_addr *addr);

#endif
