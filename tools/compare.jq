# SPDX-License-Identifier: BSD-2-Clause
#
# What the expressions of compare.md.in are made with, besides page.jq.

def bw($mtu; $loss; $transport): [rows("bw_\($mtu)_\($loss)_\($transport)")[].bw_gbps];
def mibs: . * 1e9 / 8 / 1048576;
# The quotient of two figures of the page, which a reader can compute from them.
def ratio($a; $b): ($a | median) / ($b | median);
def kept($mtu; $loss; $transport): ratio(bw($mtu; $loss; $transport); bw($mtu; "0"; $transport));
def kept_in_turn($mtu; $loss; $transport): ratio_in_turn(bw($mtu; $loss; $transport); bw($mtu; "0"; $transport));
def half_rtt($transport): [rows("lat_" + $transport)[].lat_us.p50];
def cpu($transport): [rows("bw_1024_0_" + $transport)[].cpu_s_per_gb] | median;

# What crossed both paths in the seconds [$from, $to) after the cut, bytes a second.
def crossed($transport; $from; $to):
    row("path_" + $transport) | .at_s as $at
    | [.samples[] | select(.[0] - $at >= $from and .[0] - $at < $to)]
    | if length < 2 then 0 else (.[-1][1] + .[-1][2] - .[0][1] - .[0][2]) / (.[-1][0] - .[0][0]) end;
def went_on($transport):
    crossed($transport; -1; 0) as $before
    | if $before > 0 then crossed($transport; 1; 4) / $before else error("\($transport): nothing before the cut") end;
def ended($transport): row("path_" + $transport).ended;
def state($transport; figure): row("state_" + $transport) | figure;
