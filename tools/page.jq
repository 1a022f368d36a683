# SPDX-License-Identifier: BSD-2-Clause
#
# What the expressions of any page are made with (page.sh). $all: the results of each measurement, a list a name;
# $commands: its command line; $quick: tiny runs, which prove nothing.

def rows($name): $all[0][$name] // error("there is no measurement \($name)");
def row($name): rows($name)[0];
def row($name; condition): first(rows($name)[] | select(condition)) // error("\($name) has no such point");

# A figure of a result: its mean if it is a summary of seeds.
def value(figure): ((.mean // .) | figure) // (if $quick then 0 else error("a figure is missing") end);
def value($name; figure): row($name) | value(figure);

def median: sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
# Figures of runs that followed one another, divided: a slow minute of the machine counts on both sides.
def ratios_in_turn($a; $b): [$a, $b] | transpose | map(.[0] / .[1]);
def ratio_in_turn($a; $b): ratios_in_turn($a; $b) | median;

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
