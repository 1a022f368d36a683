/* SPDX-License-Identifier: BSD-2-Clause */
/* What a host says of itself that bears on its network. */
#ifndef MRD_PERF_DOCTOR_FACTS_H
#define MRD_PERF_DOCTOR_FACTS_H

#include <json-c/json.h>

/*
 * Returns an object with "cpus"; "interface", "mtu", "link_mbps" of the one that has the numeric
 * address, null if not known; "gso", "gro": may UDP sockets; "rcvbuf_wanted", "rcvbuf_granted"
 * bytes; "allowances": the *_allowance_exceeded counters of ENA by name.
 */
struct json_object *perf_facts(const char *address);

#endif
