#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mrd_sim_man.sh MRD_SIM PAGE: the page and the binary tell of the same experiments, defaults, keys and links.

set -euo pipefail

command -v jq >/dev/null || { echo 'mrd_sim_man: skipped: no jq'; exit 77; }

sim=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Without the markup: '\-' is '-', fonts are gone.
sed -E 's/\\-/-/g; s/\\f.//g; s/\\\(bu/*/g' "$2" >"$scratch/page"
cd "$scratch"
failed=0

# same WHAT PAGE BINARY: two files of lines.
same()
{
    [[ -s $2 && -s $3 ]] || { echo "FAILED: no $1 were found" >&2; failed=1; }
    diff <(sort -u "$2") <(sort -u "$3") >&2 && return
    echo "FAILED: $1: < is in the page only, > in the binary only" >&2
    failed=1
}

# The page under a heading.
section()
{
    awk -v heading=".SH $1" '$0 == heading { inside = 1; next } /^\.SH / { inside = 0 } inside' page
}

# The lines that follow .TP, of standard input: what is explained there.
tags()
{
    awk 'tag { print } { tag = $0 == ".TP" }'
}

# Experiments.
"$sim" --help >help
sed -n '/^Experiments:/,/^$/s/^  \([a-z]\{1,\}\)  .*/\1/p' help >of_binary
section EXPERIMENTS | sed -n 's/^\.SS //p' >of_page
same experiments of_page of_binary
mapfile -t experiments <of_binary

# The defaults of options that are plain words.
awk '/^  --/ { name = $1; text = "" } { text = text " " $0 }
     /\)$/ && name { gsub(/.*\(|\)$/, "", text); print name, text; name = "" }' help |
    grep -E '^--(at|flows|tcp|stagger|tiers|gbps|oversubscription|delay|queue|ecn|loss|clock-skew|paths|payload|seed|seeds|limit|wire-overhead|transport|knows|spray) ' >of_binary
section OPTIONS | tr -d '"' | awk '/^\./ && $0 ~ /^\.B[RI]? --/ { name = $2 }
    match($0, /Default: [^ ]*[^ .:;]/) && name { print name, substr($0, RSTART + 9, RLENGTH - 9); name = "" }' |
    grep -E '^--(at|flows|tcp|stagger|tiers|gbps|oversubscription|delay|queue|ecn|loss|clock-skew|paths|payload|seed|seeds|limit|wire-overhead|transport|knows|spray) ' >of_page
same defaults of_page of_binary

# Keys: those of the runs of all experiments, and those of the page, which has the inner ones in lines of .RB or below.
printf 'Nodes 8\nConnections 1\n0->5 start 0 size 20000\n' >one.cm
for experiment in "${experiments[@]}"; do
    options=(--hosts 8 --leaf-hosts 4 --size 64K --quiet)
    case $experiment in
    run) options+=(-tm one.cm --seeds 2) ;;
    incast) options+=(--victim) ;;
    skew) options+=(--spread 1) ;;
    failure) options+=(--failure down --at 20 --size 1M) ;;
    loss) options+=(--loss 0 --size 16M) ;;
    fairness) options+=(--stagger 1000 --duration 0.01) ;;
    wan) options+=(--rtt 1000 --loss 0 --duration 0.05) ;;
    esac
    "$sim" "$experiment" "${options[@]}" --json >"$experiment.json" 2>err || { cat err; exit 1; }
done
cat -- *.json | jq -r 'del(.config.constants[]?, .mean[]?, .ci95[]?) | paths | map(select(type == "string")) | last' >of_binary
{ section EXPERIMENTS; section OUTPUT; } >keys
{
    tags <keys
    grep '^\.RB {' keys
    sed -n '/^Parameters in force:/,/^\.PP/p' keys
} | grep '^\.' | grep -v '^\.[A-Z]* *--' | sed 's/^\.[A-Z]* *//; s/""/ /g' | grep -oE '[a-z][a-z_0-9]+' >of_page
same keys of_page of_binary

# Actions of a faults file: each that the page names is taken, with a value of the form that it gives.
count=0
while read -r action value; do
    echo "1 leaf0-spine0 $action $value" >one.faults
    "$sim" run -tm one.cm --hosts 8 --leaf-hosts 4 --limit 0.0001 --faults one.faults --quiet >out 2>err || [[ $? == 1 ]] ||
        { cat err; failed=1; }
    count=$((count + 1))
done <<'ACTIONS'
rate 10
degrade 0.1
delay 2
jitter 1
queue 100000
ecn 1000,2000
loss 0.01
corrupt 0.01
duplicate 0.01
burst 0.01,0.1,0.5
blackhole on
down off
flap 200,100
heal -
ACTIONS
section FILES | sed -n '/^\.SS Faults/,$p' | tags | sed 's/^\.[A-Z]* *//; s/", "/\n/g' | tr -d '"' | awk '{ print $1 }' >actions
((count == $(wc -l <actions))) || { echo "FAILED: the page has other actions: $(tr '\n' ' ' <actions)" >&2; failed=1; }

exit $failed
