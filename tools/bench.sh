#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
Measure how fast mrd is over the loopback interface, beside raw UDP and TCP, and say which rows of the table reach their
marks.

usage: bench.sh [--quick] [--rows LIST] [--turns N] [-D SECONDS] [-o DIRECTORY] [--json FILE] [--readme FILE]
                [-p MRD_PERF] [-k DIRECTORY | --from DIRECTORY]
       bench.sh --list

  --quick           3 turns of a second each; too short to judge by
  --rows LIST       only these rows: names apart by commas
  --list            print the names of all rows and what they are, and end
  --turns N         how often each thing is measured (7); what a row divides is measured side by side in each turn,
                    and its value is the median. What only is drawn, and mrd_sim, have 3 turns at most
  -D SECONDS        of each measurement (2)
  -o DIRECTORY      write bench.json, bench.md and bench.svg there; without it nothing but the table is written
  --json FILE       write the JSON there
  --readme FILE     replace the table in FILE, tools/README.md, that stands between the comments <!-- bench ... -->
                    and <!-- /bench -->; needs all rows, and not --quick
  -p MRD_PERF       the binary to run, with mrd_sim beside it; without it, both are built in build/
  -k DIRECTORY      keep the results there
  --from DIRECTORY  do not measure: judge results that were kept

A measurement in which the host of the machine took more than 2% of the processors' time, or other programs more than
5%, is repeated up to twice. If it stays so, the rows that use it are "disturbed", and not judged. A quarter of an hour
on two cores that have nothing else to do. Needs jq, and for the picture gnuplot.

Exit status: 0 all rows reach their marks, 1 some are below or disturbed, 2 something is wrong.
USAGE
}

here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
# shellcheck source=tools/page.sh
source tools/page.sh

die_status=2
unset LC_ALL
export LC_NUMERIC=C LC_MESSAGES=C # a point in each number
readonly few_turns=3 repeats=2
readonly begin='<!-- bench' end='<!-- /bench -->'

# bench_jq EXPRESSION ARGUMENT...: over the results, once page_collect() has been called.
bench_jq()
{
    local all=(--argjson all '[{}]' --argjson commands '[{}]')

    [[ ! -e $scratch/all ]] || all=(--slurpfile all "$scratch/all" --slurpfile commands "$scratch/commands.object")
    jq "$(cat tools/page.jq tools/bench.jq) $1" "${all[@]}" --argjson quick "$quick" --argjson names "$names" "${@:2}"
}

# --------------------------------------------------------------------------------------------------------- measuring

readonly stat=${BENCH_STAT:-/proc/stat} # a test of this script has its own

# measure TURN NAME COMMAND...: its record, one more, into NAME.json. A command that fails leaves a record of that.
measure()
{
    local turn=$1 name=$2 tries before after took error record

    for ((tries = 1; tries <= repeats + 1; tries++)); do
        printf '%4d s  turn %d: %s\n' $SECONDS "$turn" "${*:3}" >&2
        read -r before <"$stat"
        error=''
        took=$({ TIMEFORMAT='%3R %3U %3S'; time run_tool "${@:3}"; } 2>&1) || error=$(why "$3")
        read -r after <"$stat"
        [[ -z $error ]] || jq -n 'null' >"$scratch/report"
        # shellcheck disable=SC2016 # jq's variables
        record=$(bench_jq 'load($before; $after; $took; $hz)
            + {tries: $tries, failed: (if $error == "" then null else $error end), result: without_samples}' \
            --arg before "$before" --arg after "$after" --arg took "${took##*$'\n'}" --argjson hz "$(getconf CLK_TCK)" \
            --argjson tries $tries --arg error "$error" -c "$scratch/report")
        [[ -z $error && $record == *'"disturbed":true'* ]] || break
        jq -r '"        disturbed: \(100 * .stolen | round)% stolen, \(100 * .foreign | round)% by other programs"' \
            <<<"$record" >&2
    done
    [[ -z $error ]] || printf '        failed: %s\n' "$error" >&2
    printf '%s\n' "$record" >>"$scratch/$name.json"
}

# The report goes to `report`, all else to `log`. Files of tools are in the scratch directory.
run_tool()
{
    (cd "$scratch" && exec "$bin/$1" "${@:2}" >report 2>log)
}

# The last line of what a tool that failed said.
why()
{
    local line

    line=$(tail -n 1 "$scratch/log")
    echo "${line:-$1 says nothing}"
}

measure_all()
{
    local turn name often command words

    permutation 128 2097152 >"$scratch/permutation_128.cm"
    permutation 1024 1048576 >"$scratch/permutation_1024.cm"
    cut -f 1,3 "$scratch/plan" >"$scratch/commands"
    for ((turn = 1; turn <= turns; turn++)); do
        while IFS=$'\t' read -r name often command; do
            [[ $often == all ]] || ((turn <= few)) || continue
            read -ra words <<<"$command"
            measure $turn "$name" "${words[@]}" </dev/null
        done <"$scratch/plan"
    done
    rm -f "$scratch"/{plan,report,log,build.log,permutation_*.cm}
}

# What is known of the machine and of what is measured.
write_meta()
{
    local commit version

    commit=$(git describe --always --dirty --tags 2>/dev/null || true)
    version=$("$bin/mrd_perf" --version) || die "$bin/mrd_perf does not run"
    # shellcheck disable=SC2016 # jq's variables
    jq -n '{commit: (if $commit == "" then null else $commit end), version: $version, date: $date, quick: $quick,
            turns: $turns, seconds: $seconds, machine: {cpu: $cpu, kernel: $kernel, cores: $cores}}' \
        --arg commit "$commit" --arg version "$version" --arg date "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
        --argjson quick $quick --argjson turns "$turns" --argjson seconds "$seconds" \
        --arg cpu "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" --arg kernel "$(uname -sr)" \
        --argjson cores "$(nproc)" >"$scratch/meta.json"
}

# ------------------------------------------------------------------------------------------------------ what is written

# store FILE TO: that it cannot be written ends the script.
store()
{
    cat "$1" >"$2" || die "cannot write $2"
}

# The table in place of what stands between the comments of a file.
write_readme()
{
    local file=$1

    [[ $quick == false ]] || die "$file is not for figures of short runs"
    [[ $(grep -cE "^($begin|$end)" "$file") == 2 ]] || die "$file has no place for the table: '$begin ... -->', '$end'"
    # A table with holes would look whole.
    # shellcheck disable=SC2016 # jq's variables
    bench_jq '[row_list[] | wants[]] - ["fan", "sim_128", "sim_1024", "sim_1024_one"] | has_all' -en >/dev/null ||
        die "$file needs all rows"
    awk -v begin="$begin" -v end="$end" -v table="$scratch/table.md" '
        !inside { print }
        index($0, begin) == 1 { inside = 1; while ((getline line < table) > 0) print line }
        index($0, end) == 1 { inside = 0; print }' "$file" >"$scratch/readme"
    store "$scratch/readme" "$file"
}

write_all()
{
    local drawn=false

    [[ -z $json ]] || store "$scratch/bench.out" "$json"
    if [[ -n $readme ]]; then
        bench_jq readme_table -nr >"$scratch/table.md"
        write_readme "$readme"
    fi
    [[ -n $out ]] || return 0
    mkdir -p "$out" || die "there can be no $out"
    store "$scratch/bench.out" "$out/bench.json"
    if bench_jq has_growth -e "$scratch/bench.out" >/dev/null; then
        tools/bench-plot.sh "$out/bench.json" "$out/bench.svg" || die 'the picture cannot be drawn'
        drawn=true
    fi
    page_write tools/bench.md.in tools/bench.jq "$scratch" bench.md --argjson quick "$quick" \
        --argjson names "$names" --argjson drawn $drawn || die 'the page cannot be made'
    store "$scratch/bench.md" "$out/bench.md"
}

absolute()
{
    [[ $1 == /* ]] && echo "$1" || echo "$here/$1"
}

wrong()
{
    printf 'bench.sh: %s\n' "$1" >&2
    usage >&2
    exit 2
}

quick=false names='[]' turns='' seconds='' out='' json='' readme='' perf='' keep='' from='' list=false
while (($# > 0)); do
    case $1 in
    --quick) quick=true ;;
    --list) list=true ;;
    --rows | --turns | -D | -o | --json | --readme | -p | -k | --from)
        (($# > 1)) || wrong "$1 takes a value"
        case $1 in
        --rows) names=$(jq -Rc 'split(",")' <<<"$2") || die 'no jq' ;;
        --turns) turns=$2 ;;
        -D) seconds=$2 ;;
        -o) out=$(absolute "$2") ;;
        --json) json=$(absolute "$2") ;;
        --readme) readme=$(absolute "$2") ;;
        -p) perf=$(absolute "$2") ;;
        -k) keep=$(absolute "$2") ;;
        --from) from=$(absolute "$2") ;;
        esac
        shift
        ;;
    -h | --help) usage; exit ;;
    *) wrong "what is '$1'?" ;;
    esac
    shift
done
need jq
[[ -z $out ]] || need gnuplot
if [[ $quick == true ]]; then
    turns=${turns:-3} seconds=${seconds:-1}
fi
turns=${turns:-7} seconds=${seconds:-2}
[[ $turns =~ ^[1-9][0-9]{0,2}$ ]] || wrong "--turns takes a number from 1 to 999, not '$turns'"
[[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || wrong "-D takes whole seconds, from 1 to 9999, not '$seconds'"
few=$((turns < few_turns ? turns : few_turns))
[[ -z $from || -z $keep ]] || wrong 'results that come from a directory are kept there already'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
# What fails unforeseen has said why; 1 would be a verdict.
set -E
trap 'exit 2' ERR

if [[ $list == true ]]; then
    bench_jq '[asked([])[] | [.name, .what // "drawn"]] | aligned(null)' -nr
    exit
fi
# shellcheck disable=SC2016 # jq's variables
bench_jq 'plan($names; $seconds)' -nr --argjson seconds "$seconds" >"$scratch/plan" 2>"$scratch/log" ||
    wrong "$(sed -n 's/^jq: error[^:]*: //p' "$scratch/log")"
if [[ -n $from ]]; then
    [[ -r $from/meta.json ]] || die "there are no results in $from"
    cp "$from"/*.json "$from/commands" "$scratch"
    quick=$(jq .quick "$scratch/meta.json")
else
    [[ -n $perf ]] || { build "$scratch" mrd_perf mrd_sim; perf=build/tools/mrd_perf; }
    perf=$(realpath "$perf") bin=$(dirname "$perf")
    [[ -x $perf && ${perf##*/} == mrd_perf ]] || die "$perf is no mrd_perf"
    [[ -x $bin/mrd_sim ]] || ! grep -q $'\tmrd_sim ' "$scratch/plan" || die "there is no mrd_sim beside $perf"
    write_meta
    measure_all
fi
if [[ -n $keep ]]; then
    mkdir -p "$keep" || die "there can be no $keep"
    cp "$scratch"/*.json "$scratch/commands" "$keep" || die "cannot write into $keep"
fi
page_collect "$scratch"
# shellcheck disable=SC2016 # jq's variables
bench_jq 'bench($names)' -n >"$scratch/bench.out" 2>"$scratch/log" || die "$(tail -n 1 "$scratch/log")"
table=$(bench_jq bench_table -r "$scratch/bench.out")
printf '%s\n' "$table" || die 'cannot write the table to stdout'
[[ $quick == false ]] || echo 'bench.sh: --quick: runs this short do not tell reliably which marks are reached' >&2
write_all
exit "$(bench_jq status "$scratch/bench.out")"
