// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a leaf of the fabric does to packets of its hosts, at the ingress of their ports.
 *
 * It hashes like a switch. Inside one kernel a veth carries the sending socket's random hash into
 * the next namespace, and multipath routing takes that hash in place of the addresses and ports: the
 * same source port would take another path in every process. This forgets the hash, so that the leaf
 * computes its own from the packet's headers.
 *
 * It caps flows like a cloud, if CAP_BYTES is not 0: that many bytes a second for each 5-tuple of
 * TCP or UDP over IPv4, after a burst of CAP_BURST bytes (a token bucket). Packets beyond that get
 * the mark CAP_MARK, for nftables to count and drop.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#ifndef CAP_BYTES
#define CAP_BYTES 0
#define CAP_BURST 0
#endif
#define CAP_MARK 1
#define SEC_NS   1000000000ULL

struct flow {
    __u32 from, to;
    __u32 ports; /* both, as in the packet */
    __u32 protocol;
};

struct bucket {
    __u64 last_ns;
    __u64 tokens_ns; /* the time that its bytes take at the rate */
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct flow);
    __type(value, struct bucket);
} buckets SEC(".maps");

/* False: no flow that is capped. */
static __always_inline int get_flow(struct __sk_buff *skb, struct flow *flow)
{
    struct iphdr ip;

    if (skb->protocol != bpf_htons(ETH_P_IP) ||
        bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) != 0)
        return 0;
    if ((ip.protocol != IPPROTO_TCP && ip.protocol != IPPROTO_UDP) ||
        bpf_skb_load_bytes(skb, ETH_HLEN + 4 * ip.ihl, &flow->ports, sizeof(flow->ports)) != 0)
        return 0;
    flow->from = ip.saddr;
    flow->to = ip.daddr;
    flow->protocol = ip.protocol;
    return 1;
}

/* One flow's packets are handled by one core: no lock. */
static __always_inline int is_over(struct __sk_buff *skb)
{
    __u64 full_ns = CAP_BURST * SEC_NS / (CAP_BYTES ? CAP_BYTES : 1);
    __u64 cost_ns = skb->len * SEC_NS / (CAP_BYTES ? CAP_BYTES : 1);
    __u64 now_ns = bpf_ktime_get_ns();
    struct bucket fresh = {.last_ns = now_ns, .tokens_ns = full_ns - cost_ns};
    struct bucket *bucket;
    struct flow flow = {};

    if (!get_flow(skb, &flow))
        return 0;
    bucket = bpf_map_lookup_elem(&buckets, &flow);
    if (!bucket) {
        bpf_map_update_elem(&buckets, &flow, &fresh, BPF_ANY);
        return 0;
    }

    __u64 tokens_ns = bucket->tokens_ns + now_ns - bucket->last_ns;

    if (tokens_ns > full_ns)
        tokens_ns = full_ns;
    bucket->last_ns = now_ns;
    bucket->tokens_ns = tokens_ns >= cost_ns ? tokens_ns - cost_ns : tokens_ns;
    return tokens_ns < cost_ns;
}

SEC("tc")
int leaf(struct __sk_buff *skb)
{
    bpf_set_hash_invalid(skb);
    if (CAP_BYTES && is_over(skb))
        skb->mark = CAP_MARK;
    return TC_ACT_OK;
}

char leaf_license[] SEC("license") = "Dual BSD/GPL";
