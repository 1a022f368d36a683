/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is told of options: the text of --help, and what to use instead of those of perftest that
 * have no place here.
 */
#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "tools/perf/options.h"

static const char help_text[] =
    "Usage: mrd_perf TEST [options] [HOST]\n"
    "       mrd_perf compare TEST [options] [--transports A,B,...] [--repeat N] HOST | --local\n"
    "       mrd_perf doctor [options] [HOST]\n"
    "       mrd_perf state [options] [--peers N] [TRANSPORT ...]\n"
    "       mrd_perf scale [options] [PEERS ...]\n"
    "TEST: send_bw, send_lat, write_bw, write_lat, read_bw, read_lat, atomic_bw, atomic_lat.\n"
    "Without HOST: the server, which serves one client.\n"
    "\n"
    "As in perftest:\n"
    "  -s, --size SIZE          bytes a message, with K, M or G (bw: 65536, lat: 2)\n"
    "  -a, --all                sizes 2^1 .. 2^23\n"
    "  -n, --iters N            messages, or exchanges (default: enough for the size)\n"
    "  -D, --duration S         run for S seconds instead\n"
    "      --run_infinitely     run until SIGINT or SIGTERM, with a line each second\n"
    "  -b, --bidirectional      both ends send at once, and the sum is reported (bandwidth only)\n"
    "  -e, --events             sleep on completion channels instead of polling\n"
    "  -t, --tx-depth N         messages outstanding a QP (128; fewer from 64 KiB on)\n"
    "  -r, --rx-depth N         receives posted a QP (512)\n"
    "  -o, --outs N             reads and atomics outstanding a QP (as -t; rc: the device's most)\n"
    "  -q, --qp N               queue pairs (1; bandwidth only)\n"
    "  -p, --port PORT          of the server: TCP for control, and its UDP receive port (4793)\n"
    "  -d, --ib-dev DEVICE      RDMA device: its transports, mrd-ibv by default; or udp\n"
    "  -i, --ib-port N          port of the RDMA device (the first active one)\n"
    "  -x, --gid-index N        GID of that port (RoCEv2, of an IPv4 address if there is one)\n"
    "  -m, --mtu BYTES          sockets: payload a packet, multiple of 64; RDMA: path MTU, 256 .. "
    "4096\n"
    "  -I, --inline_size N      messages up to N bytes are sent inline (bw: 0, lat: 220)\n"
    "  -Q, --cq-mod N           a completion for every Nth message\n"
    "  -l, --post_list N        post work requests in linked lists of N (bandwidth only)\n"
    "      --write_with_imm     each write ends with an immediate, which takes a receive;\n"
    "                           scale: write so, do not send\n"
    "  -H, --report-histogram   all latencies, sorted\n"
    "  -U, --report-unsorted    all latencies, in the order measured\n"
    "  -F, --CPU-freq           no warning about CPU frequency scaling\n"
    "      --report_gbits       Gbit/s in the table instead of MiB/s\n"
    "      --out_json           JSON on stdout, the table on stderr\n"
    "      --out_json_file F    JSON into file F\n"
    "  -6, --ipv6               use IPv6\n"
    "  -h, --help  -V, --version\n"
    "\n"
    "Transport:\n"
    "  --transport NAME         mrd-udp, raw-udp, tcp; with an RDMA device mrd-ibv, rc, raw-ud\n"
    "  --paths N                paths, that is source ports, to spray over\n"
    "  --source-ports LIST      these ports: FIRST-LAST, or a list\n"
    "  --spray POLICY           single, rr, random, reps, adaptive\n"
    "  --cc NAME                nscc, dctcp, swift, none\n"
    "  --entropy SOURCE         of mrd-ibv's paths: auto, ah, qp, qpair\n"
    "  --order none|msg         messages are delivered in any order, or in the order posted\n"
    "  --verify                 check every byte of every message\n"
    "  --drop P                 lose a share P of received packets on purpose, at both ends\n"
    "  --seed N                 of message contents and losses (1)\n"
    "\n"
    "Where:\n"
    "  --local                  both ends here, over loopback, each on its own core;\n"
    "                           -d A,B: the server over RDMA device A, the client over B\n"
    "  --bind CPU[,CPU]         cores of the client and the server\n"
    "  --bind-address A         local address\n"
    "  --forever                the server goes on after its first client\n"
    "  --interval MS            of the samples that the receiver takes (10)\n"
    "  --wait POLICY            for packets, in bandwidth tests over sockets: spin, sleep, or\n"
    "                           auto: sleep where others want the core\n"
    "  --threads N              of each end, each with its QP and CQ on one context (1; bandwidth\n"
    "                           only)\n"
    "  --peers N                state: how many to make (1000)\n"
    "  --contexts               scale: each peer is a context of its own, at most 256\n"
    "\n"
    "Exit status: 0 done, 1 failed or not verified, 2 wrong options. See mrd_perf(1).\n";

void perf_options_help(FILE *out)
{
    fputs(help_text, out);
}

enum { OPTIONS_MAX = 128, NAMES_BYTES = 4096 };

/* Options as "X:name=": a letter if there is one, the long name, "=" if it takes a value. */
static const struct {
    const char *options;
    const char *instead;
} rows[] = {
    {"A:atomic_type=", "atomics are fetch-and-adds of 1"},
    {"c:connection=", "use --transport: rc, raw-ud, or one of mrd's"},
    {"C:report-cycles", "times are microseconds; use --out_json for more digits"},
    {"X:vector=", "use --bind to choose the cores"},
    {"f:margin=", "use --interval: samples of --out_json let you cut any margin"},
    {"g:mcg M:MGID=", "run one client for each receiver, there is no multicast"},
    {"recv_post_list=",
     "work requests are always posted in lists; -t and -r set how many are outstanding"},
    {"L:hop_limit=", "set the system's, for example sysctl net.ipv4.ip_default_ttl"},
    {"N:noPeak", "the peak is only in the table; read bw_gbps of --out_json"},
    {"O:dualport", "use --paths, which sprays one transfer over many paths"},
    {"report-per-port", "use --out_json: paths_used has a line for each port"},
    {"R:rdma_cm z:comm_rdma_cm retry_count= dont_xchg_versions",
     "both ends always agree over TCP, on the port of -p"},
    {"S:sl= T:tos= tclass=", "mark packets outside, for example with nftables"},
    {"u:qp-timeout=",
     "mrd's timeouts follow the measured round trip time; rc has 14, perftest's default"},
    {"W:report-counters=",
     "use --out_json: packets_sent, packets_retransmitted and packets_spurious"},
    {"w:limit_bw=", "compare bw_gbps of --out_json with the limit"},
    {"y:limit_msgrate=", "compare msg_rate_mps of --out_json with the limit"},
    {"pkey_index= dlid= force-link=",
     "choose the address with --bind-address, and paths with --paths or --source-ports"},
    {"ipv6-addr raw_ipv6", "use -6"},
    {"bind_source_ip=", "use --bind-address"},
    {"cpu_util", "use --out_json: cpu_s_per_gb"},
    {"cqe_poll=", "up to 64 completions are polled at once"},
    {"inline_recv=", "use -I, which is about sends"},
    {"latency_gap=", "use -s and -n; iterations follow each other at once"},
    {"log_dci_streams= log_active_dci_streams=", "use -q"},
    {"mmap= mmap-offset= mr_per_qp odp use_hugepages use-null-mr",
     "buffers are ordinary memory, -s sets their size"},
    {"payload_file_path=", "use --verify, which fills every message from --seed"},
    {"output=", "use --out_json and pick the key"},
    {"perform_warm_up",
     "latency tests always warm up; bandwidth is measured from first to last arrival"},
    {"report-both", "use --out_json: after -b, directions has both"},
    {"reversed", "swap the hosts: the client is the sender"},
    {"use-srq", "receives are posted to each QP; use -r for how many"},
    {"use_old_post_send", "mrd_post_send() is the only way, so leave it out"},
    {"use_ooo", "use --order none, which is the default"},
    {"wait_destroy=", "leave it out, resources are released at once"},
    {"disable_pcie_relaxed", "leave it out, no PCIe device is driven"},
    {"burst_size= typical_pkt_size= rate_limit= rate_units= rate_limit_type=",
     "limit the rate outside, for example with 'tc qdisc ... tbf' (tools/fabric.sh does)"},
    {"aes_xts encrypt_on_tx sig_before sig_offload aes_block_size= data_enc_keys_number= "
     "kek_path= credentials_path= data_enc_key_app_path=",
     "contents are checked with --verify"},
    {"use_cuda= use_cuda_bus_id= cuda_mem_type= use_cuda_dmabuf use_hl= use_neuron= "
     "use_neuron_dmabuf use_rocm= use_rocm_dmabuf use_mlu= use_mlu_dmabuf use_ib_dm_dmabuf= "
     "use_opencl= opencl_platform_id= gpu_touch=",
     "buffers are in host memory, which is the default here"},
    {"tph_mem= cpu_id= ph=", "use --bind to choose the cores"},
    {"B:source_mac= E:dest_mac= G:use_rss J:dest_ip= j:source_ip= K:dest_port= v:mac_fwd "
     "Y:ethertype= promiscuous raw_qos raw_mcast vlan_en vlan_pcp=",
     "use --transport raw-udp or raw-ud for unreliable packets"},
    {"k:source_port=", "use --source-ports"},
    {"P:client", "give the HOST: that makes a client"},
    {"Z:server", "leave out the HOST: that makes a server"},
    {"flows=", "use --paths"},
    {"flows_burst=", "use --paths and --spray"},
    {"flow_label=", "use --paths and --entropy; rc leaves it 0"},
    {"tcp", "use --transport tcp"},
    {"reply_every=", "use send_lat, where every message is answered"},
};

static void add_option(struct perf_unsupported *u, char *word, const char *instead)
{
    size_t end = strlen(word) - 1;

    *u = (struct perf_unsupported){.name = word, .has_arg = no_argument, .instead = instead};
    if (word[1] == ':') {
        u->letter = word[0];
        u->name = word + 2;
    }
    if (word[end] == '=') {
        u->has_arg = required_argument;
        word[end] = '\0';
    }
}

const struct perf_unsupported *perf_unsupported(void)
{
    static struct perf_unsupported list[OPTIONS_MAX];
    static char names[NAMES_BYTES];
    size_t count = 0, used = 0;

    if (list[0].name)
        return list;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *words = names + used, *rest;
        used += (size_t)snprintf(words, sizeof(names) - used, "%s", rows[i].options) + 1;
        assert(used <= sizeof(names));
        for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
            assert(count < OPTIONS_MAX - 1);
            add_option(&list[count++], word, rows[i].instead);
        }
    }
    return list;
}
