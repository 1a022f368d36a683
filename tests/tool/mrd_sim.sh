#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mrd_sim.sh MRD_SIM: what the binary prints, where, and how it ends.

set -euo pipefail

command -v jq >/dev/null || { echo 'mrd_sim: skipped: no jq'; exit 77; }

sim=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    [[ ! -s out ]] || { echo '--- stdout:'; head -c 2000 out; } >&2
    [[ ! -s err ]] || { echo '--- stderr:'; head -c 2000 err; } >&2
    exit 1
}

# run WORD...: into the files out and err, and $status.
run()
{
    status=0
    "$sim" "$@" >out 2>err || status=$?
}

# good WORD...: it succeeds.
good()
{
    run "$@"
    ((status == 0)) || fail "exit $status: $*"
}

# bad PATTERN WORD...: it is refused by a sentence that matches, and nothing is printed that a program would read.
bad()
{
    run "${@:2}"
    ((status == 2)) || fail "exit $status, not 2: ${*:2}"
    [[ ! -s out ]] || fail "refused, but there is output: ${*:2}"
    grep -q "^mrd_sim: .*$1" err || fail "the sentence does not match '$1': ${*:2}"
}

# What a run is but for what the machine does.
steady()
{
    jq -c 'walk(if type == "object" then del(.wall_s, .packets_per_wall_s, .rss_mb) else . end)' "$@"
}

cat >two.cm <<'CM'
Nodes 8
Connections 2
0->5 start 0 size 200000
1->4 start 1000000 size 100000
CM
fabric=(--hosts 8 --leaf-hosts 4 --quiet)
two=(run -tm two.cm "${fabric[@]}")

# ------------------------------------------------------------------------------- help and version

good --help
[[ ! -s err ]] || fail 'help is on stderr'
mapfile -t experiments < <(sed -n '/^Experiments:/,/^$/s/^  \([a-z]\{1,\}\)  .*/\1/p' out)
((${#experiments[@]} >= 11)) || fail 'help does not tell of eleven experiments'
for experiment in --quiet "${experiments[@]}"; do # --quiet: none, all of them
    good "$experiment" -h
    awk 'length > 80 { exit 1 }' out || fail "help of $experiment has a line of more than 80 columns"
done
good --version
grep -Eq '^mrd_sim [0-9]+\.[0-9]+\.[0-9]+$' out || fail 'the version is none'

# ---------------------------------------------------------------------------------------- refused

bad 'which experiment' # nothing at all
bad "no experiment 'walk'" walk
bad "no experiment 'more'" run more -tm two.cm
bad 'no option --nonsense' run --nonsense
bad 'no option --nonsense' run -nonsense 1
bad 'no option --seds; is it --seed' run --seds 3
bad 'the experiment comes first' --hosts 8 run
bad 'needs a value' run --tm
bad '-tm' run
bad '--hosts: expected .*, found .x7' run -tm two.cm --hosts x7
bad '--hosts: expected' run -tm two.cm --hosts 1
bad '--spray: expected' "${two[@]}" --spray paint
bad '--cc: ' "${two[@]}" --cc vegas
bad '--transport: expected' "${two[@]}" --transport pigeon
bad '--failure: expected' failure --failure fire
bad '--rtt: expected' wan --rtt 20
bad '--buffer: expected' wan --buffer 1x
bad '--tcp: expected at most 62, as --flows is 2' fairness --flows 2 --tcp 63
bad 'no constant' "${two[@]}" --set no.such=1
bad 'NAME=VALUE' "${two[@]}" --set nscc.gain
bad 'both want stdout' "${two[@]}" --json --csv

# -------------------------------------------------------------------------------------- bad files

bad 'absent.cm: ' run -tm absent.cm "${fabric[@]}"
bad 'absent.topo: ' run -tm two.cm -topo absent.topo
bad 'absent.faults: ' "${two[@]}" --faults absent.faults
printf 'Nodes 8\nConnections 1\n0->0 start 0 size 1\n' >self.cm
bad 'self.cm:3: ' run -tm self.cm "${fabric[@]}"
head -c 5000 /dev/urandom >noise
bad 'noise:1: ' run -tm noise "${fabric[@]}"
bad 'noise:[0-9]*: ' run -tm two.cm -topo noise
printf '# a comment\n10 leaf0-spine0 vanish on\n' >bad.faults
bad 'bad.faults:2: ' "${two[@]}" --faults bad.faults
bad 'the traffic has 8 hosts' run -tm two.cm --hosts 4 --leaf-hosts 2
bad 'multiples of 4' run -tm two.cm --hosts 7 --leaf-hosts 4

# ------------------------------------------------------------------------------------------ output

good "${two[@]}"
[[ ! -s err ]] || fail 'something on stderr'
(($(wc -l <out) == 2)) || fail 'the table of a run has two lines'

good "${two[@]}" --json
mv out one_dash
(($(wc -l <one_dash) == 1)) || fail 'JSON of a run is one line'
jq -e 'type == "object" and .experiment == "run" and .flows == 2 and .unfinished == 0 and .fct_us.max > 0' \
    one_dash >/dev/null || fail "not what JSON of a run is: $(cat one_dash)"
grep -q '^transport ' err || fail 'with --json the table is on stderr'

good run --tm two.cm --hosts 8 --leaf-hosts 4 --quiet --json
diff <(steady one_dash) <(steady out) >&2 || fail '-tm and --tm differ, or the same seed twice'

good "${two[@]}" --csv
(($(wc -l <out) == 2)) || fail 'CSV of a run is two lines'
head -n 1 out | grep -q '^experiment,.*,fct_us\.max,' || fail 'CSV has no heads'

# ------------------------------------------------------------------------------------------- seeds

good "${two[@]}" --json --loss 0.01 --seed 2
steady out >seed_2
good "${two[@]}" --json --loss 0.01 --seed 2
diff seed_2 <(steady out) >&2 || fail 'the same seed twice differs'
good "${two[@]}" --json --loss 0.01 --seed 3
! diff -q seed_2 <(steady out) >/dev/null || fail 'another seed makes the same'

good "${two[@]}" --json --loss 0.01 --seeds 3
jq -e '.seeds == 3 and (.mean | type) == "object" and
    ([.mean | paths] == [.ci95 | paths]) and ([.mean | paths] - [paths] == []) and .ci95.fct_us.max > 0' \
    out >/dev/null || fail 'three seeds are not summarised'

# ------------------------------------------------------------------------------------- experiments

good "${two[@]}" --json --set cc.start_bdp=0.05
jq -e --slurpfile as_ever one_dash '.fct_us.max > $as_ever[0].fct_us.max and
    .config.constants["cc.start_bdp"] == 0.05' out >/dev/null || fail '--set changes nothing'

good failure "${fabric[@]}" --size 1M --at 40 --json
jq -se 'length == 4 and ([.[].failure_kind] | unique | length) == 4 and all(.samples | length > 10)' \
    out >/dev/null || fail 'failure has four points'
good scale --peers 3 --size 64 --leaf-hosts 4 --quiet --json
jq -e '.state_bytes > .idle_peer_bytes and .rss_mb > 1' out >/dev/null || fail 'scale counts no state'
for experiment in allreduce alltoall; do
    good $experiment "${fabric[@]}" --size 64K --json
    jq -e '.busbw_gbps > 0 and .completion_over_ideal >= 1' out >/dev/null || fail "$experiment has no bandwidth"
done
good fairness --flows 2 --tcp 1 --stagger 1000 --duration 0.02 --quiet --seeds 2 --json
jq -e '.seeds == 2 and (.names | length) == 3 and .mean.jain > 0.3 and .unfinished == 0' out >/dev/null ||
    fail 'fairness does not tell of three flows'
good wan --rtt 1000 --duration 0.1 --quiet --json
jq -se 'length == 4 and .[3].loss == 0.01 and all(.goodput_gbps > 0 and .cubic_gbps > 0)' out >/dev/null ||
    fail 'wan has four losses'
printf '50000 leaf0>spine0 blackhole on\n' >dark_way.faults
bad 'wan: with an RTT of 1000 us .* failed by .*unreachable' wan --rtt 1000 --loss 0 --duration 40 --quiet \
    --faults dark_way.faults
good allreduce "${fabric[@]}" --csv
(($(wc -l <out) == 8)) || fail 'CSV of seven points is eight lines'

if command -v gnuplot >/dev/null; then
    good "${two[@]}" --plot cdf.svg
    grep -q '<svg' cdf.svg || fail 'the picture of a run is none'
    good alltoall "${fabric[@]}" --size 64K --plot picture.svg
    grep -q '<svg' picture.svg || fail 'the picture is none'
    good fairness --tcp 1 --stagger 1000 --duration 0.02 --quiet --plot shares.svg
    grep -q '5 TCP' shares.svg || fail 'the picture does not show all shares'
    good wan --rtt 1000 --duration 0.1 --quiet --plot far.svg
    grep -q '0.01 CUBIC' far.svg || fail 'the picture does not show the formulas'
fi
# gnuplot does not tell that a disk is full.
mkdir full
printf '#!/bin/sh\ncat >/dev/null\necho "<svg>" >cut.svg\n' >full/gnuplot
chmod +x full/gnuplot
PATH=$PWD/full:$PATH run "${two[@]}" --plot cut.svg
((status == 1)) || fail "exit $status, though the picture is cut short"
grep -q 'cut.svg could not be written whole' err || fail 'that the picture is cut short is not said'
for option in --help --version; do
    status=0
    "$sim" $option >/dev/full 2>err || status=$?
    ((status == 1)) || fail "exit $status, though what $option prints is lost"
done

# Whoever starts it may leave SIGCHLD ignored: runs and the picture are waited for all the same.
if env --ignore-signal=CHLD true 2>/dev/null; then
    env --ignore-signal=CHLD timeout 60 "$sim" "${two[@]}" --seeds 3 --jobs 2 --json >out 2>err ||
        fail "exit $?, though only SIGCHLD is ignored"
    jq -e '.seeds == 3' out >/dev/null || fail 'three seeds are not summarised with SIGCHLD ignored'
    if command -v gnuplot >/dev/null; then
        env --ignore-signal=CHLD "$sim" "${two[@]}" --plot ignored.svg >out 2>err || fail "exit $?, though it is drawn"
    fi
fi

# What can never end is told, by the exit code too, and what is known of it is printed.
printf '0 leaf*-spine* blackhole on\n' >dark.faults
run "${two[@]}" --faults dark.faults --limit 0.001 --json
((status == 1)) || fail "exit $status, not 1, though flows did not end"
jq -e '.unfinished == 2 and .fct_us.max == null' out >/dev/null || fail 'unfinished flows are not told'

# ----------------------------------------------------------------------------------------- threads

# Several parts, also with triggers that fire where they start a flow, and losses. One part: triggers that do not.
many=(--hosts 96 --leaf-hosts 8 --quiet --json)
for words in 'run -tm far.cm --loss 0.01' 'allreduce --size 100K' 'incast --size 20K' 'run -tm elsewhere.cm'; do
    awk 'BEGIN { print "Nodes 96\nConnections 96"
        for (i = 0; i < 96; i++) print i "->" (i + 50) % 96 " start 0 size 100000" }' >far.cm
    printf '%s\n' 'Nodes 96' 'Connections 2' 'Triggers 1' '0->50 start 0 size 100000 send_done_trigger 1' \
        '70->10 trigger 1 size 100000' 'trigger id 1 oneshot' >elsewhere.cm
    # shellcheck disable=SC2086 # words
    for threads in 1 2 3; do
        good $words "${many[@]}" --threads $threads
        steady out >"threads.$threads"
    done
    cmp threads.1 threads.2 && cmp threads.1 threads.3 || fail "$words: the results depend on the threads"
done
jq -e '.unfinished == 0' threads.1 >/dev/null || fail 'a flow that is triggered elsewhere does not start'

# -------------------------------------------------------------------------------------------- keys

# sealed_run WORD...: all flows end, with packets that are sealed; what happened is in the file sealed.
sealed_run()
{
    good "${two[@]}" --json "$@"
    jq -e '.config.sealed == 1 and .unfinished == 0' out >/dev/null || fail "not sealed: $*"
    steady out >sealed
}

(umask 077; printf 'key %s AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n' 1 >one.key)
(umask 077; printf 'key %s HxwdHhsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=\n' 2 >other.key)
good "${two[@]}" --json
jq -e '.config.sealed == 0' out >/dev/null || fail 'sealed without keys'
clear=$(jq .packets out)
sealed_run --key-file one.key
(($(jq .packets sealed) > clear)) || fail 'sealed packets carry as much as others'
mv sealed once
sealed_run --key-file one.key --threads 2
cmp once sealed || fail 'the results of sealed runs differ'
MRD_KEY_FILE=one.key sealed_run
cmp once sealed || fail 'the results depend on where the key file is named'
sealed_run --key-file other.key
cmp once sealed || fail 'the results depend on the key'
bad 'none.key: No such file' "${two[@]}" --key-file none.key
bad 'htsim' "${two[@]}" --key-file one.key --wire-overhead htsim

# ------------------------------------------------------------------------------------------ SIGINT

# Longer than anyone waits. Jobs of a script ignore SIGINT unless they have a process group of their own.
printf 'Nodes 8\nConnections 1\n0->5 start 0 size 100000000000\n' >long.cm
set -m
"$sim" run -tm long.cm "${fabric[@]}" --seeds 4 --jobs 2 >out 2>err &
parent=$!
set +m
children=
for ((i = 0; i < 100; i++)); do
    children=$(cat "/proc/$parent/task/$parent/children" 2>/dev/null) || true
    (($(wc -w <<<"$children") < 2)) || break
    sleep 0.05
done
kill -INT "$parent"
status=0
wait "$parent" || status=$?
((status == 130)) || fail "exit $status, not 130, though SIGINT came"
[[ ! -s out ]] || fail 'a run that was broken off prints results'
if [[ -z $children ]]; then
    echo 'mrd_sim: this kernel does not tell of children: whether SIGINT ends them is not tested'
fi
for child in $children; do
    [[ ! -d /proc/$child ]] || fail "child $child outlives SIGINT"
done
