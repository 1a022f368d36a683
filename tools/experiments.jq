# SPDX-License-Identifier: BSD-2-Clause
#
# What the expressions of experiments.md.in are made with. $all: the results of each measurement, a list a name.

def rows($name): $all[0][$name] // error("there is no measurement \($name)");
def row($name): rows($name)[0];
def row($name; condition): first(rows($name)[] | select(condition)) // error("\($name) has no such point");

# A figure of a result: its mean if it is a summary of seeds.
def value(figure): ((.mean // .) | figure) // (if $quick then 0 else error("a figure is missing") end);
def value($name; figure): row($name) | value(figure);

# ------------------------------------------------------------------------------------------------------ printing

# With so many digits behind the point.
def fixed($digits):
    pow(10; $digits) as $scale | (. * $scale | round) as $n
    | ($n / $scale | floor | tostring)
        + if $digits > 0 then "." + ($n % $scale + $scale | tostring | .[1:]) else "" end;
# With half of its 95% confidence interval, if there is one to be seen.
def shown(figure; $digits):
    value(figure) as $value | ((.ci95 // {}) | figure) as $half
    | ($value | fixed($digits))
        + if $half != null and ($half | fixed($digits)) != (0 | fixed($digits))
          then " ± " + ($half | fixed($digits)) else "" end;
def percent(share; $digits): (100 * share | fixed($digits)) + "%";
def times(a; b): if b == 0 then "0" else a / b | fixed(if a / b < 2 then 2 elif a / b < 10 then 1 else 0 end) end;
def bytes:
    if . >= 1048576 then "\(. / 1048576) MiB" elif . >= 1024 then "\(. / 1024) KiB" else "\(.) B" end;

# A table: its heads, then a list of cells for each row. The first column is text.
def table($heads; lists):
    def line: "| " + (map(tostring) | join(" | ")) + " |";
    [$heads | line, (to_entries | map(if .key == 0 then "---" else "---:" end) | line)] + [lists | line]
    | join("\n");
# The command lines of the measurements whose names match.
def commands($names):
    "```sh\n" + ([$commands[0] | to_entries[] | select(.key | test("^(" + $names + ")$")) | .value]
        | join("\n")) + "\n```";

# A sentence beside it says so: if the figures do not, there is no page. Tiny fabrics of --quick prove nothing.
def claim(condition; $what): if $quick or condition then "" else error("not so: " + $what) end;

# ------------------------------------------------------------------------------------------------------- figures

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
def largest($name): rows($name)[-1];
