/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "tools/perf/options.h"

const struct perf_unsupported perf_unsupported[] = {
    {"A:atomic_type", "atomics are fetch-and-adds of 1"},
    {"c:connection", "use --transport: rc, raw-ud, or one of mrd's"},
    {"C:report-cycles", "times are microseconds; use --out_json for more digits"},
    {"X:vector", "use --bind to choose the cores"},
    {"f:margin", "use --interval: samples of --out_json let you cut any margin"},
    {"g:mcg M:MGID", "run one client for each receiver, there is no multicast"},
    {"recv_post_list",
     "work requests are always posted in lists; -t and -r set how many are outstanding"},
    {"L:hop_limit", "set the system's, for example sysctl net.ipv4.ip_default_ttl"},
    {"N:noPeak", "the peak is only in the table; read bw_gbps of --out_json"},
    {"O:dualport", "use --paths, which sprays one transfer over many paths"},
    {"report-per-port", "use --out_json: paths_used has a line for each port"},
    {"R:rdma_cm z:comm_rdma_cm retry_count dont_xchg_versions",
     "both ends always agree over TCP, on the port of -p"},
    {"S:sl T:tos tclass", "mark packets outside, for example with nftables"},
    {"u:qp-timeout",
     "mrd's timeouts follow the measured round trip time; rc has 14, perftest's default"},
    {"W:report-counters",
     "use --out_json: packets_sent, packets_retransmitted and packets_spurious"},
    {"w:limit_bw", "compare bw_gbps of --out_json with the limit"},
    {"y:limit_msgrate", "compare msg_rate_mps of --out_json with the limit"},
    {"pkey_index dlid force-link",
     "choose the address with --bind-address, and paths with --paths or --source-ports"},
    {"ipv6-addr raw_ipv6", "use -6"},
    {"bind_source_ip", "use --bind-address"},
    {"cpu_util", "use --out_json: cpu_s_per_gb"},
    {"cqe_poll", "up to 64 completions are polled at once"},
    {"inline_recv", "use -I, which is about sends"},
    {"latency_gap", "use -s and -n; iterations follow each other at once"},
    {"log_dci_streams log_active_dci_streams", "use -q"},
    {"mmap mmap-offset mr_per_qp odp use_hugepages use-null-mr",
     "buffers are ordinary memory, -s sets their size"},
    {"payload_file_path", "use --verify, which fills every message from --seed"},
    {"output", "use --out_json and pick the key"},
    {"perform_warm_up",
     "latency tests always warm up; bandwidth is measured from first to last arrival"},
    {"report-both", "use --out_json: after -b, directions has both"},
    {"reversed", "swap the hosts: the client is the sender"},
    {"use-srq", "receives are posted to each QP; use -r for how many"},
    {"use_old_post_send", "mrd_post_send() is the only way, so leave it out"},
    {"use_ooo", "use --order none, which is the default"},
    {"wait_destroy", "leave it out, resources are released at once"},
    {"disable_pcie_relaxed", "leave it out, no PCIe device is driven"},
    {"burst_size typical_pkt_size rate_limit rate_units rate_limit_type",
     "limit the rate outside, for example with 'tc qdisc ... tbf' (tools/fabric.sh does)"},
    {"aes_xts encrypt_on_tx sig_before sig_offload aes_block_size data_enc_keys_number "
     "kek_path credentials_path data_enc_key_app_path",
     "contents are checked with --verify"},
    {"use_cuda use_cuda_bus_id cuda_mem_type use_cuda_dmabuf use_hl use_neuron "
     "use_neuron_dmabuf use_rocm use_rocm_dmabuf use_mlu use_mlu_dmabuf use_ib_dm_dmabuf "
     "use_opencl opencl_platform_id gpu_touch",
     "buffers are in host memory, which is the default here"},
    {"tph_mem cpu_id ph", "use --bind to choose the cores"},
    {"B:source_mac E:dest_mac G:use_rss J:dest_ip j:source_ip K:dest_port v:mac_fwd "
     "Y:ethertype promiscuous raw_qos raw_mcast vlan_en vlan_pcp",
     "use --transport raw-udp or raw-ud for unreliable packets"},
    {"k:source_port", "use --source-ports"},
    {"P:client", "give the HOST: that makes a client"},
    {"Z:server", "leave out the HOST: that makes a server"},
    {"flows", "use --paths"},
    {"flows_burst", "use --paths and --spray"},
    {"flow_label", "use --paths and --entropy; rc leaves it 0"},
    {"tcp", "use --transport tcp"},
    {"reply_every", "use send_lat, where every message is answered"},
    {0},
};

int perf_explain_perftest(const char *name, int letter, char *error)
{
    for (const struct perf_unsupported *u = perf_unsupported; u->options; u++) {
        size_t len;

        for (const char *word = u->options; *word; word += len + (word[len] == ' ')) {
            len = strcspn(word, " ");
            size_t skip = len > 1 && word[1] == ':' ? 2 : 0;
            bool found =
                name ? strcspn(name, "=") == len - skip && !memcmp(name, word + skip, len - skip)
                     : skip && *word == letter;
            const char shown[] = {'-', *word, ' ', '(', '\0'};

            if (found)
                return option_fail(error, "option %s--%.*s%s of perftest is not supported: %s",
                                   skip ? shown : "", (int)(len - skip), word + skip,
                                   skip ? ")" : "", u->instead);
        }
    }
    return 0;
}
