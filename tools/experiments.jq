# SPDX-License-Identifier: BSD-2-Clause
#
# What the expressions of experiments.md.in are made with, besides page.jq.

def title: {
    adaptive: "mrd, adaptive", reps: "mrd, reps", rr: "mrd, round robin", random: "mrd, random",
    single: "mrd, one path", mrd: "mrd", irn: "irn", rc: "rc", dcqcn: "rc, DCQCN"
}[.];
def collision($name):
    if $name == "irn" or $name == "dcqcn" then row("collision_" + $name) else row("collision"; .policy == $name) end;
def loss($name; $size; $loss): row("loss_" + $name; .size_bytes == $size and .loss == $loss);
def most_senders($name): rows("incast_" + $name)[-1];
def failures($name; $kind): [rows("failure_" + $name)[] | select(.failure_kind == $kind)];
def worst(figure): if all(.[]; figure != null) then [.[] | figure] | max else null end;
# Back at 90% for good, at the latest; 0 where one is not, which a claim beside it has to rule out.
def back_us: worst(.to_90_us) // 0;
def lowest: [.[].lowest_gbps] | min;
# When the flow has ended, at the latest of all seeds, ms; null: not all have.
def ends_ms: worst(.fct_us.max) | if . == null then null else . / 1000 end;
def or_never($digits): if . == null then "never" else fixed($digits) end;
def wan($loss; $rtt): row("wan"; .loss == $loss and .rtt_ms == $rtt);
def even: (.mean // .).even_us | if . == null then null else . / 1000 end | or_never(1);
def largest($name): rows($name)[-1];
