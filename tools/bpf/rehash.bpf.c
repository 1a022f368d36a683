// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Make a leaf of the fabric hash like a switch.
 *
 * Inside one kernel a veth carries the sending socket's random hash into the next namespace, and multipath routing
 * takes that hash in place of the addresses and ports: the same source port would take another path in every
 * process. Attached to the ingress of a leaf's host ports, this forgets the hash, so that the leaf computes its own
 * from the packet's headers.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

SEC("tc")
int rehash(struct __sk_buff *skb)
{
    bpf_set_hash_invalid(skb);
    return TC_ACT_OK;
}

char rehash_license[] SEC("license") = "Dual BSD/GPL";
