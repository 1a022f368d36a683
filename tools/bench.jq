# SPDX-License-Identifier: BSD-2-Clause
#
# What tools/bench.sh measures and what it makes of that, besides page.jq. Measurements and rows are listed here alone:
# another row is a line of row_list, and a line of measurement_list unless its figures are there already.

# ------------------------------------------------------------------------------------------------ what is measured

def transports: ["mrd-udp", "raw-udp", "tcp"];
def grown_sizes: [range(3; 14) | pow(4; .)]; # 64 B to 64 MiB
def grown_peers: [1, 10, 100, 1000, 10000];
def grown_depths: [range(0; 9) | pow(2; .)]; # messages of 64 KiB

# In the order of a turn: what is divided by each other is side by side. `few`: not in each turn. `seconds`: of each run,
# unless it is $seconds.
def measurement_list:
    def run($name; $test): {name: $name, command: "mrd_perf \($test) --local"};
    def mrd($name; $test): run($name; $test + " --transport mrd-udp");
    def raw($name; $test): run($name; $test + " --transport raw-udp");
    def tcp($name; $test): run($name; $test + " --transport tcp");
    [raw("write_1m_raw"; "write_bw -s 1M"), mrd("write_1m"; "write_bw -s 1M"), tcp("write_1m_tcp"; "write_bw -s 1M"),
     mrd("write_1m_drop1"; "write_bw -s 1M --drop 0.01"), mrd("write_1m_drop5"; "write_bw -s 1M --drop 0.05"),
     mrd("write_64k"; "write_bw -s 64K"), tcp("write_64k_tcp"; "write_bw -s 64K"),
     mrd("write_8k"; "write_bw -s 8K"), raw("write_8k_raw"; "write_bw -s 8K"),
     mrd("write_1408"; "write_bw -s 1M -m 1408"), raw("write_1408_raw"; "write_bw -s 1M -m 1408"),
     mrd("lat"; "write_lat -s 64"), raw("lat_raw"; "write_lat -s 64"), tcp("lat_tcp"; "write_lat -s 64"),
     mrd("send_64"; "send_bw -s 64"), mrd("send_64_drop1"; "send_bw -s 64 --drop 0.01"),
     {name: "fan", command: "mrd_perf scale 1 64 -s 64K --write_with_imm --contexts"},
     ({name: "sim_128", command: "mrd_sim run -tm permutation_128.cm --tiers 3 --leaf-hosts 4"},
      ("mrd_sim run -tm permutation_1024.cm --hosts 1024 --tiers 3 --leaf-hosts 8"
       | {name: "sim_1024", command: .}, {name: "sim_1024_one", command: "\(.) --threads 1"})
      | .few = true),
     ((grown_sizes[] as $size | transports[] | run("size_\($size)_\(.)"; "write_bw -s \($size) --transport \(.)")),
      (grown_depths[] | mrd("window_\(.)"; "write_bw -s 64K -t \(.)")),
      {name: "peers", command: "mrd_perf scale \(grown_peers | map(tostring) | join(" "))"}
      | .few = true | .seconds = 1)];

# A row's value in each turn is a figure of one measurement, `over`; with `under` it is divided by that of another. With
# `part` and `whole` it is the quotient of two sums over measurements. Figures are paths in what bench.sh records. The
# mark is the least or the most that the value may be. `also` is measured for the table of tools/README.md only.
def row_list:
    def bandwidth($name; $over; $under; $least; $what):
        {name: $name, what: $what, over: $over, under: $under, figure: ["result", "bw_gbps"], least: $least};
    def rate: ["result", "msg_rate_mps"];
    [bandwidth("bw_1m_raw"; "write_1m"; "write_1m_raw"; 0.65; "write_bw 1 MiB, Gb/s, of raw-udp's"),
     bandwidth("bw_1m_tcp"; "write_1m"; "write_1m_tcp"; 1.15; "write_bw 1 MiB, Gb/s, of tcp's"),
     bandwidth("bw_64k_tcp"; "write_64k"; "write_64k_tcp"; 1; "write_bw 64 KiB, Gb/s, of tcp's"),
     {name: "cpu_1m_tcp", what: "write_bw 1 MiB, CPU seconds a GB of both ends, of tcp's", over: "write_1m",
      under: "write_1m_tcp", figure: ["result", "cpu_s_per_gb"], most: 0.95},
     bandwidth("bw_8k_raw"; "write_8k"; "write_8k_raw"; 0.6; "write_bw 8 KiB, Gb/s, of raw-udp's"),
     bandwidth("bw_1408_raw"; "write_1408"; "write_1408_raw"; 0.5;
         "write_bw 1 MiB in packets of 1408 bytes, Gb/s, of raw-udp's"),
     {name: "lat_p50_raw", what: "write_lat 64 B, median, of raw-udp's", over: "lat", under: "lat_raw",
      also: "lat_tcp", figure: ["result", "lat_us", "p50"], most: 1.25},
     {name: "lat_p99_raw", what: "write_lat 64 B, 99th percentile, of raw-udp's", over: "lat", under: "lat_raw",
      figure: ["result", "lat_us", "p99"], most: 1.5},
     {name: "rate_64", what: "send_bw 64 B, million messages a second", over: "send_64", figure: rate, least: 6},
     {name: "rate_64_drop1", what: "send_bw 64 B, 1% lost, messages a second, of those without loss",
      over: "send_64_drop1", under: "send_64", figure: rate, least: 0.95},
     bandwidth("bw_1m_drop1"; "write_1m_drop1"; "write_1m"; 0.97; "write_bw 1 MiB, 1% lost, Gb/s, of those without loss"),
     bandwidth("bw_1m_drop5"; "write_1m_drop5"; "write_1m"; 0.88; "write_bw 1 MiB, 5% lost, Gb/s, of those without loss"),
     {name: "spurious", what: "packets repeated though they had arrived, of all, without loss",
      over: ["write_1m", "write_64k", "write_8k", "write_1408", "send_64"], part: ["result", "packets_spurious"],
      whole: ["result", "packets_sent"], most: 0.001, digits: 5},
     {name: "peers_64", what: "writes of 64 KiB to 64 peers in turn, of those to one", over: "fan",
      figure: ["result", 1, "rate_ratio_to_first"], least: 0.9},
     (128, 1024 | tostring | {over: "sim_\(.)"} +
         ({name: "sim_\(.)", what: "mrd_sim, \(.) hosts, seconds in all", figure: ["seconds"]},
          {name: "sim_\(.)_rate", what: "mrd_sim, \(.) hosts, thousand packets a second",
           figure: ["result", "packets_per_wall_s"], scale: 1e-3, digits: 1})),
     {name: "sim_threads", what: "mrd_sim, 1024 hosts, seconds with one thread, of those with all", over: "sim_1024_one",
      under: "sim_1024", figure: ["seconds"], least: 1.6}];

# What is drawn, and has no mark.
def growth_list: [
    {name: "grow_size", over: [grown_sizes[] as $size | transports[] | "size_\($size)_\(.)"]},
    {name: "grow_peers", over: ["peers"]},
    {name: "grow_window", over: [grown_depths[] | "window_\(.)"]}];

def needs: [.over, .under // empty] | flatten;
def wants: needs + [.also // empty];
# The rows of these names, and what is drawn; for none: all.
def asked($names):
    (row_list + growth_list) as $known
    | ($names - ($known | map(.name))) as $unknown
    | if $unknown != [] then error("there is no row \($unknown[0])")
      else $known | map(select(.name as $name | $names == [] or ($names | index($name)))) end;
# Lines of a name, how often ("all" turns or a "few"), seconds and a command, for the rows of these names; for none: all.
def plan($names; $seconds):
    [asked($names)[] | wants[]] as $wanted
    | measurement_list[] | select(.name as $name | $wanted | index($name))
    | (.seconds // $seconds) as $s
    | [.name, (if .few then "few" else "all" end),
       .command + if .command | startswith("mrd_perf") then " -D \($s) -F --out_json" else " --quiet --json" end]
    | join("\t");

# -------------------------------------------------------------------------------------------- one measurement's record

def stolen_most: 0.02;
def foreign_most: 0.05;
def known_from: 0.1; # seconds: in less the kernel's ticks tell nothing

# The first line of /proc/stat, in seconds. Guests are in user.
def cpu_times($hz):
    [scan("[0-9]+") | tonumber / $hz]
    | {user: (.[0] + .[1]), system: .[2], idle: (.[3] + .[4]), steal: .[7], all: (.[:8] | add)};
# Shares of the time of all processors that the host of a virtual machine took, and that other programs used. `$took`:
# seconds, user and system time of what was measured, as bash's time tells. Interrupts are no program's: they may work for
# what is measured, and if so some kernels count them as its system time.
def load($before; $after; $took; $hz):
    ($before | cpu_times($hz)) as $b | ($after | cpu_times($hz)) as $a | ($took | split(" ") | map(tonumber)) as $own
    | def beyond($used; $own): [$used - $own, 0] | max;
      (if $own[0] < known_from or $a.all == $b.all then null else $a.all - $b.all end) as $all
    | {seconds: $own[0],
       stolen: (if $all then ($a.steal - $b.steal) / $all else null end),
       foreign: (if $all then
           (beyond($a.user - $b.user; $own[1]) + beyond($a.system - $b.system; $own[2])) / $all else null end)}
    | .disturbed = (.stolen > stolen_most or .foreign > foreign_most); # null is less than any number
# What is kept of a run's report.
def without_samples:
    if type == "object" then del(.samples, .paths_used, .fct_us_percentiles, .config) else . end;

# ----------------------------------------------------------------------------------------------------------- verdicts

def has_all: all(.[]; . as $name | $all[0] | has($name));
# A figure of each turn; null where the measurement failed.
def figures($name; $path): [rows($name)[] | getpath($path)];
def divided: if all(.[]; . != null) and .[1] != 0 then .[0] / .[1] else null end;
def sums($names; $path): [$names[] | figures(.; $path)] | transpose | map(if all(.[]; . != null) then add else null end);
def turn_values:
    if .part then [sums(.over; .part), sums(.over; .whole)] | transpose | map(divided)
    elif .under then [figures(.over; .figure), figures(.under; .figure)] | transpose | map(divided)
    else (.scale // 1) as $scale | figures(.over; .figure) | map(if . then . * $scale else . end) end;
# Figures whose measurement failed do not count where there are others.
def known_median: map(values) | if . == [] then null else median end;

def verdict($value; $turns; $records):
    if any($turns[]; . == null) then "failed"
    elif any($records[]; .disturbed) then "disturbed"
    elif .least == null and .most == null then null
    elif $value >= (.least // $value) and $value <= (.most // $value) then "ok"
    else "BELOW" end;
def judged:
    turn_values as $turns | ($turns | known_median) as $value | [needs[] | rows(.)[]] as $records
    | {name, what, value: $value, least, most, verdict: verdict($value; $turns; $records),
       min: ($turns | map(values) | min), max: ($turns | map(values) | max), turns: $turns, digits: (.digits // 2)}
    | . + ({least, most} | map_values(select(. != null)));

# Null of what was not measured.
def middle($name; path): [($all[0][$name] // [])[].result | path] | known_median;
# CPU time of both ends a packet, ns: messages are of whole packets.
def cpu_ns_per_packet:
    if (.packets_sent // 0) > 0 then .cpu_s_per_gb * .size_bytes * .iterations / .packets_sent else null end;
def growth:
    {size: [grown_sizes[] as $size | {size_bytes: $size} +
         ([transports[] | {(.): middle("size_\($size)_\(.)"; .bw_gbps)}] | add)],
     peers: [range(grown_peers | length) as $i
         | {peers: grown_peers[$i], msg_rate_mps: middle("peers"; .[$i].all_paths.msg_rate_mps)}],
     window: [grown_depths[] | {outstanding_bytes: (. * 65536), bw_gbps: middle("window_\(.)"; .bw_gbps),
         cpu_ns_per_packet: middle("window_\(.)"; cpu_ns_per_packet)}]};

# All of it: bench.json. For no names, all rows that were measured.
def bench($names):
    row("meta")
    + {rows: [asked($names)[] | select(.what and ($names != [] or (needs | has_all))) | judged],
       growth: growth,
       measurements: [measurement_list[].name | select([.] | has_all) as $name | rows($name) | to_entries[]
           | {name: $name, turn: (.key + 1)} + (.value | {tries, seconds, stolen, foreign, disturbed, failed})]};

# ----------------------------------------------------------------------------------------------- from bench.json

# The exit status.
def status:
    [.rows[].verdict] as $all
    | if any($all[]; . == "failed") then 2 elif any($all[]; . == "BELOW" or . == "disturbed") then 1 else 0 end;
def number($digits): if . == null then "-" else fixed($digits) end;
def mark: if .least then "at least \(.least)" elif .most then "at most \(.most)" else "-" end;
def spread: if .min == null then "-" else .digits as $d | "\(.min | fixed($d)) - \(.max | fixed($d))" end;
def cells: [.name, (.digits as $d | .value | number($d)), mark, .verdict // "-", spread, .what];
# Lines of columns; those of column $numbers to the right.
def aligned($numbers):
    (transpose | map(map(length) | max)) as $widths
    | .[] | . as $line
    | [range(length) as $i | (" " * ($widths[$i] - ($line[$i] | length)) // "") as $pad
        | if $i == $numbers then $pad + $line[$i] elif $i == length - 1 then $line[$i] else $line[$i] + $pad end]
    | join("  ");
def bench_table: [["row", "value", "mark", "", "spread", "what"], (.rows[] | cells)] | aligned(1);
def has_growth: [.growth.size[]["mrd-udp", "raw-udp", "tcp"], .growth.peers[].msg_rate_mps,
    .growth.window[].cpu_ns_per_packet] | any(. != null);

# The table of tools/README.md: a line for each measurement that all of its cells are there for.
def readme_table:
    def cell($name; path; $digits): if $name == null then "" else middle($name; path) | number($digits) end;
    def line($text; $names; path; $digits): if $names | map(values) | has_all
        then [$text, ($names[] as $name | cell($name; path; $digits))] else empty end;
    def kept($name; $of; $path): [figures($name; $path), figures($of; $path)] | transpose | map(divided) | known_median | number(2);
    table(["`tools/bench.sh`, over the loopback interface", "mrd", "raw-udp", "TCP"];
        line("`write_bw -s 1M`, Gb/s"; ["write_1m", "write_1m_raw", "write_1m_tcp"]; .bw_gbps; 1),
        line("the same, CPU seconds a GB, both ends"; ["write_1m", "write_1m_raw", "write_1m_tcp"]; .cpu_s_per_gb; 2),
        line("`write_bw -s 64K`, Gb/s"; ["write_64k", null, "write_64k_tcp"]; .bw_gbps; 1),
        line("`write_bw -s 8K`, Gb/s"; ["write_8k", "write_8k_raw", null]; .bw_gbps; 1),
        line("`write_bw -s 1M -m 1408`, Gb/s"; ["write_1408", "write_1408_raw", null]; .bw_gbps; 1),
        (("p50", "p99") as $share | line("`write_lat -s 64`, half round trip, us, \({p50: "median", p99: "99%"}[$share])";
            ["lat", "lat_raw", "lat_tcp"]; .lat_us[$share]; 2)),
        line("`send_bw -s 64`, million messages a second"; ["send_64", null, null]; .msg_rate_mps; 2),
        (("1", "5") as $loss | "write_1m_drop\($loss)" | select([., "write_1m"] | has_all)
            | ["`write_bw -s 1M --drop 0.0\($loss)`, share of its goodput without drop",
               kept(.; "write_1m"; ["result", "bw_gbps"]), "", ""]));
