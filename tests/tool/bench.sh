#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# bench.sh: what tools/bench.sh makes of results, measured by stand-ins for the tools or kept. How fast mrd is is not
# asserted.

set -euo pipefail

command -v jq >/dev/null || { echo 'tool_bench: skipped: no jq'; exit 77; }

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck source=tests/tool/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"

# run STATUS WORD...: the script ends with it; into the files out and err.
run()
{
    status=0
    "$tools/bench.sh" "${@:2}" >out 2>err || status=$?
    ((status == $1)) || fail "exit $status, not $1: ${*:2}"
}

# refused SENTENCE WORD...: these options are wrong, and why is said.
refused()
{
    run 2 "${@:2}"
    grep -qF -- "$1" err || fail "not said that $1: ${*:2}"
}

# is FILTER FILE: the filter is true of the JSON.
is()
{
    jq -e "$1" "$2" >/dev/null || fail "not so: $1 of $(cat "$2")"
}

# ------------------------------------------------------------------------------------------------------ kept results

# record NAME RESULT [DISTURBED [SECONDS]]: of one turn.
record()
{
    printf '{"seconds":%s,"stolen":0.001,"foreign":0.01,"disturbed":%s,"tries":1,"failed":null,"result":%s}\n' \
        "${4-1}" "${3-false}" "$2" >>"kept/$1.json"
}

# perf GBPS [SPURIOUS]: a report of mrd_perf, a message rate of a tenth, latencies and CPU time of 10 / GBPS.
perf()
{
    jq -cn --argjson x "$1" --argjson spurious "${2-0}" '{bw_gbps: $x, msg_rate_mps: ($x / 10), cpu_s_per_gb: (10 / $x),
        lat_us: {p50: (10 / $x), p99: (20 / $x)}, packets_sent: 1000, packets_spurious: $spurious, size_bytes: 65536,
        iterations: 100}'
}

# The results of three turns: what is measured by that name, and its Gb/s. Each row reaches its mark, narrowly.
mkdir kept
echo '{"commit":"abc","version":"mrd_perf 0.1.0","date":"2000-01-01T00:00:00Z","quick":false,"turns":3,"seconds":2,
       "machine":{"cpu":"a processor","kernel":"Linux","cores":2}}' >kept/meta.json
printf 'write_1m\tmrd_perf write_bw\n' >kept/commands
# thrice NAME RESULT [DISTURBED [SECONDS]]
thrice()
{
    record "$@"
    record "$@"
    record "$@"
}
while read -r name gbps; do
    thrice "$name" "$(perf "$gbps")"
done <<'MEASURED'
write_1m 65
write_1m_raw 100
write_1m_tcp 56
write_1m_drop1 63.1
write_1m_drop5 57.3
write_64k 50
write_64k_tcp 50
write_8k 60
write_8k_raw 100
write_1408 50
write_1408_raw 100
lat 80
lat_raw 100
lat_tcp 90
send_64 61
send_64_drop1 58
MEASURED
thrice fan '[{"rate_ratio_to_first":1},{"rate_ratio_to_first":0.91}]'
thrice sim_128 '{"packets_per_wall_s":85000}'
thrice sim_1024 '{"packets_per_wall_s":43000}'
thrice sim_1024_one '{"packets_per_wall_s":26000}' false 1.61
mv kept whole

# Begin with these again.
keep()
{
    rm -rf kept
    cp -r whole kept
}

# verdict ROW: of out's table.
verdict()
{
    awk -v row="$1" '$1 == row { for (i = 2; i <= NF; i++) if ($i ~ /^(ok|BELOW|disturbed|failed)$/) print $i }' out
}

keep
run 0 --from kept --json j
(($(wc -l <out) == 20)) || fail 'not a line for each row'
is '.rows | length == 19 and all(.value != null and (.turns | length) == 3)' j
is '[.rows[] | select(.least or .most) | .verdict] | length == 15 and all(. == "ok")' j
is '[.rows[] | select(.name | test("^sim_[0-9]")) | .verdict, .least, .most] | all(. == null)' j
is '.machine.cores == 2 and .commit == "abc" and (.measurements | length) == 60' j
is '.rows[] | select(.name == "bw_1m_raw") | .value == 0.65 and .min == 0.65 and .max == 0.65' j
[[ $(verdict bw_1m_raw) == ok ]] || fail 'what reaches its mark is not ok'
grep -qE '^rate_64 +6\.10  at least 6 +ok ' out || fail 'how a row is printed'

# Each mark is missed, narrowly.
keep
while read -r name result; do
    rm "kept/$name.json"
    thrice "$name" "$result"
done <<MISSED
write_1m_raw $(perf 101)
write_1m_tcp $(perf 62)
write_1m_drop1 $(perf 63)
write_1m_drop5 $(perf 57)
write_64k $(perf 49)
write_8k $(perf 59 6)
write_1408_raw $(perf 101)
lat {"lat_us":{"p50":0.126,"p99":0.31}}
send_64 $(perf 59)
send_64_drop1 $(perf 56)
fan [{"rate_ratio_to_first":1},{"rate_ratio_to_first":0.89}]
MISSED
rm kept/sim_1024_one.json
thrice sim_1024_one '{"packets_per_wall_s":27000}' false 1.59
run 1 --from kept --json j
is '[.rows[] | select(.least or .most) | .verdict] | length == 15 and all(. == "BELOW")' j
[[ $(verdict bw_1m_raw) == BELOW ]] || fail 'what is below its mark is not'
run 0 --from kept --rows sim_128,sim_1024
run 1 --from kept --rows sim_128,peers_64
[[ $(verdict peers_64) == BELOW && -z $(verdict sim_128) ]] || fail 'rows that were asked for'

# The median counts; and a row whose runs were disturbed is not judged, whatever its figures are.
keep
record send_64 "$(perf 1)"
record send_64 "$(perf 1)"
run 0 --from kept --rows rate_64 --json j
is '.rows[0] | .value == 6.1 and .min == 0.1 and .turns == [6.1, 6.1, 6.1, 0.1, 0.1]' j
record write_8k "$(perf 60)" true
record write_8k_raw "$(perf 100)"
run 1 --from kept --rows bw_8k_raw,bw_64k_tcp
[[ $(verdict bw_8k_raw) == disturbed && $(verdict bw_64k_tcp) == ok ]] || fail 'a disturbed row'
record write_64k null
record write_64k_tcp "$(perf 50)"
run 2 --from kept --rows bw_64k_tcp
[[ $(verdict bw_64k_tcp) == failed ]] || fail 'a failed row'

# What is not there is left out, unless it is asked for.
keep
rm kept/fan.json
run 0 --from kept --json j
is '.rows | length == 18' j
refused 'there is no measurement fan' --from kept --rows peers_64
refused 'there are no results' --from nowhere

# The page, its picture, and the table of a README.
keep
for size in 64 256 1024; do
    record "size_${size}_mrd-udp" "$(perf $size)"
    record "window_$((size / 64))" "$(perf $size)"
done
if command -v gnuplot >/dev/null; then
    run 0 --from kept -o made
    is '.rows | length == 19' made/bench.json
    tail -c 20 made/bench.svg | grep -q '</svg>' || fail 'the picture is not whole'
    ! grep -nE '\{\{|\}\}|\bnull\b|\\\(' made/bench.md >&2 || fail 'the page has holes'
    grep -q '^| bw_1m_raw | 0.65 | at least 0.65 | ok |' made/bench.md || fail 'the page has no rows'
    rm kept/size_* kept/window_*
    run 0 --from kept -o undrawn
    [[ ! -e undrawn/bench.svg ]] || fail 'there is a picture of nothing'
    status=0
    "$tools/bench-plot.sh" made/bench.json >out 2>err || status=$?
    ((status == 2)) || fail "exit $status without a name for the picture"
else
    echo 'tool_bench: the picture is not tested: no gnuplot'
fi
cp "$tools/README.md" README.md
run 0 --from kept --readme README.md
diff <(sed '/^<!-- bench/,/^<!-- \/bench/d' README.md) <(sed '/^<!-- bench/,/^<!-- \/bench/d' "$tools/README.md") ||
    fail 'other lines of the README have changed'
# shellcheck disable=SC2016 # not expanded
grep -qxF '| `write_bw -s 1M`, Gb/s | 65.0 | 100.0 | 56.0 |' README.md || fail 'the README has no figures'
cp README.md once.md
run 0 --from kept --readme README.md
cmp README.md once.md || fail 'the table is written twice'
sed -i 's/"quick":false/"quick":true/' kept/meta.json
refused 'not for figures of short runs' --from kept --readme README.md
keep
rm kept/lat.json
refused 'needs all rows' --from kept --readme README.md
echo nothing >README.md
keep
refused 'has no place for the table' --from kept --readme README.md

# --------------------------------------------------------------------------------------------------------- measuring

# The tools' stand-ins: what they print depends on the transport alone.
mkdir bin
cat >bin/mrd_perf <<'STAND_IN'
#!/bin/bash
[[ $1 != --version ]] || { echo 'mrd_perf 1'; exit; }
[[ $* != *"$FAIL"* ]] || { echo 'mrd_perf: it failed' >&2; exit 1; }
# Another program, whose time nobody waits for, as long as this one.
[[ -z $BURN ]] || { (timeout 0.4 bash -c 'while :; do :; done' &) >/dev/null 2>&1; sleep 0.4; }
[[ $1 != scale ]] || { echo '[{"all_paths": {"msg_rate_mps": 3}}]'; exit; }
gbps=10
[[ $* != *tcp* ]] || gbps=5
echo "{\"bw_gbps\": $gbps, \"cpu_s_per_gb\": 1, \"samples\": [1, 2], \"words\": \"$*\"}"
STAND_IN
cat >bin/mrd_sim <<'STAND_IN'
#!/bin/bash
[[ -s $3 ]] || exit 1
echo '{"packets_per_wall_s": 1000}'
STAND_IN
chmod +x bin/mrd_perf bin/mrd_sim
export FAIL=nothing BURN=

# How much other programs use does not matter, but where it is asked for.
echo 'cpu 1 1 1 1 1 1 1 1' >stat
export BENCH_STAT=$PWD/stat

run 0 --rows bw_64k_tcp,sim_128,grow_peers --turns 4 -D 3 -p bin/mrd_perf -k new --json j
is '.rows | map(.name) == ["bw_64k_tcp", "sim_128"]' j
is '.rows[0] | .value == 2 and .turns == [2, 2, 2, 2]' j
is '.rows[1].turns | length == 3' j
is '.turns == 4 and .seconds == 3 and .quick == false and .machine.cores > 0 and .version == "mrd_perf 1"' j
is '.growth.peers[0] == {"peers": 1, "msg_rate_mps": 3}' j
is '.result.words == "write_bw -s 64K --transport tcp --local -D 3 -F --out_json" and (.result | has("samples") | not)' \
    <(head -n 1 new/write_64k_tcp.json)
grep -q $'^write_64k\tmrd_perf write_bw ' new/commands || fail 'the commands are not kept'
mv out measured
run 0 --from new --rows bw_64k_tcp,sim_128
cmp out measured || fail 'kept results are judged otherwise'

run 0 --quick --rows bw_64k_tcp -p bin/mrd_perf --json j
is '.quick and .turns == 3 and .seconds == 1' j
grep -q 'do not tell reliably' err || fail 'that short runs are not reliable is not said'

BENCH_STAT=/proc/stat BURN=yes run 1 --rows cpu_1m_tcp --turns 1 -p bin/mrd_perf --json j
is '.rows[0].verdict == "disturbed" and all(.measurements[]; .tries == 3 and .foreign > 0.05)' j
(($(grep -c 'disturbed: .* by other programs' err) == 6)) || fail 'that a run is repeated is not said'

FAIL=tcp run 2 --rows bw_64k_tcp,spurious --turns 1 -p bin/mrd_perf --json j
is '.rows[0] | .verdict == "failed" and .value == null' j
is '[.measurements[].failed | values] == ["mrd_perf: it failed"]' j
grep -q 'failed: mrd_perf: it failed' err || fail 'why a run failed is not said'

# ----------------------------------------------------------------------------------------------------------- options

run 0 --help
grep -q 'usage: bench.sh' out || fail 'no help'
run 0 --list
(($(wc -l <out) == 22)) || fail 'not all rows are listed'
refused 'there is no row bandwidth' --rows bw_1m_raw,bandwidth
refused 'takes a value' --rows
refused "what is 'stray'" stray
refused 'takes a number' --turns 0
refused 'takes a number' --turns many
refused 'whole seconds' -D 0.2
refused 'are kept there already' --from kept -k other
refused 'is no mrd_perf' -p bin/none
rm bin/mrd_sim
refused 'no mrd_sim beside' -p bin/mrd_perf --rows sim_128

# What cannot be written is a failure.
status=0
"$tools/bench.sh" --from kept >/dev/full 2>err || status=$?
((status == 2)) || fail "exit $status, though the table is lost"
grep -q '^bench.sh: cannot write the table to stdout' err || fail 'that the table is lost is not said'
refused 'cannot write /dev/full' --from kept --json /dev/full
refused 'there can be no /dev/null/made' --from kept -o /dev/null/made
