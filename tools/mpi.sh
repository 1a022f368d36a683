#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
MPI over mrd's libfabric provider beside Open MPI's own TCP and libfabric's udp;ofi_rxd and tcp;ofi_rxm: collective
operations, and NetPIPE. In a fabric of network namespaces: clean, with 1% lost at every crossing of a spine, and with a
spine that dies. One rank a host.

usage: mpi.sh [-n TURNS] [-T SECONDS] [-H HOSTS] [-L LEAVES] [-k DIRECTORY] [-o OUT.svg] [--page FILE]
       mpi.sh --check [--only PATTERN] [-k DIRECTORY]

  -n TURNS      turns, of which the medians count (default 3)
  -T SECONDS    how long a job may take; beyond it the table has a "-" (default 60)
  -H HOSTS      hosts a leaf (default 1)
  -L LEAVES     leaves (default 2); NetPIPE is between the first hosts of the first two
  -k DIRECTORY  keep what was measured, as JSON, and what jobs printed that failed
  -o OUT.svg    draw the table, by gnuplot
  --page FILE   replace the table in FILE that stands between the comments <!-- N hosts: ... --> and <!-- /N hosts -->,
                of as many hosts as were measured
  --check       no figures: does it work? A line for each case: programs of eight ranks, mpi4py's tests and hpcc, on one
                host, on two, and on four; clean, with 1% of the packets lost, and with a spine that dies; 64 ranks on
                two hosts; a rank that is killed; a host that nothing is heard of any more
  --only PATTERN  of --check: cases whose line matches this regular expression

Needs root, namespaces, Open MPI, NetPIPE and jq; installs what is missing. Builds into build/, unless FI_PROVIDER_PATH
names the directory of libmrd-fi.so. FI_MRD_... of the environment reach the ranks. mpi4py's tests are those of
MPI4PY_DIR, its source tree, or of Debian's source package; ring_c and connectivity_c those of
OPENMPI_EXAMPLES, or of Debian's source package. Exit status 1 if something over mrd failed.
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH+=:/usr/sbin:/sbin
# shellcheck source=tools/common.sh
source tools/common.sh
# shellcheck source=tools/plot.sh
source tools/plot.sh
# shellcheck source=tools/mpi-check.sh
source tools/mpi-check.sh

readonly spines=4 rate=1000 loss_ppm=10000
readonly settled=10000 # packets of a job that say: its loop runs
# TCP by which mpirun leads the ranks: it keeps off the spines that die.
readonly own_ports=20000-20999 own_spine=0
readonly longer=3      # so many times the turns has a loop in which a spine dies
turns=3 limit=60 hosts=1 leaves=2 keep='' out='' page='' check=no only='' status=0
export FABRIC_PREFIX="mrd_mpi_$$_" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# What is measured: name, label, unit, how many turns of a loop or repetitions, the program. In a unit of time less is
# better.
rows=(
    'allreduce|allreduce, 8 MiB|ms|20|allreduce 8388608'
    'alltoall|alltoall, 1 MiB|ms|100|alltoall 1048576'
    'bcast|bcast, 8 MiB|ms|20|bcast 8388608'
    'netpipe|NetPIPE, 4 MiB|Mb/s|10|4194304'
    'latency|NetPIPE, 8 bytes|us|1000|8'
)

# Name, label, transport, what happens, by how much there are fewer turns because it is slow.
# shellcheck disable=SC2016 # quotes of the page
columns=(
    'mrd|mrd|mrd|clean|1'
    'tcp|Open MPI over TCP|tcp|clean|1'
    'rxd|`udp;ofi_rxd`|rxd|clean|5'
    'rxm|`tcp;ofi_rxm`|rxm|clean|1'
    'mrd_loss|mrd, 1% lost|mrd|loss|1'
    'tcp_loss|Open MPI over TCP, 1% lost|tcp|loss|2'
    'mrd_death|mrd, a spine dies|mrd|death|1'
)

declare -rA transports=(
    [mrd]='--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include mrd'
    [tcp]='--mca pml ob1 --mca btl tcp,self'
    [rxd]='--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include udp;ofi_rxd'
    [rxm]='--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include tcp;ofi_rxm'
)

fabric()
{
    tools/fabric.sh "$@"
}

# ------------------------------------------------------------------------------------------ jobs

# Everything that still runs on the hosts.
stop_hosts()
{
    local ns

    for ns in $(fabric names); do
        [[ $ns != "${FABRIC_PREFIX}h"* ]] ||
            ip netns pids "$ns" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    done
}

clean_up()
{
    stop_hosts
    fabric down 2>/dev/null || true
    rm -rf "$sessions"
    [[ -n $keep ]] || rm -rf "$scratch"
}

# What mpirun starts its daemons with, in the place of ssh: AGENT ADDRESS COMMAND... Each host has a directory of its
# own for their files, as all hosts have the name of the machine.
write_agent()
{
    cat >"$sessions/agent" <<'AGENT'
#!/bin/bash
IFS=. read -r _ leaf host _ <<<"$1"
shift
export TMPDIR=${0%/*}/h${leaf}_$host
mkdir -p "$TMPDIR"
exec ip netns exec "${FABRIC_PREFIX}h${leaf}_$host" sh -c "$*"
AGENT
    chmod +x "$sessions/agent"
}

# host_list HOSTS RANKS: of each. Neighbours have different leaves, so that what goes in rings crosses spines.
host_list()
{
    local host leaf list=''

    for ((host = 0; host < hosts; host++)); do
        for ((leaf = 0; leaf < leaves; leaf++)); do
            list+=10.$leaf.$host.2:$2,
        done
    done
    echo "$list" | cut -d , -f "1-$1"
}

# Runs a program under mpirun on host 0; what it prints goes to $scratch/log. Status 124: it took longer than SECONDS.
# job SECONDS TRANSPORT HOSTS RANKS-A-HOST [mpirun's OPTION...] COMMAND...
job()
{
    local name result=0 options=() transport

    for name in ${!FI_@}; do
        options+=(-x "$name")
    done
    # More ranks than cores poll in vain while others wait for a core.
    (($3 * $4 <= $(nproc))) || options+=(--mca mpi_yield_when_idle 1)
    read -ra transport <<<"${transports[$2]}"
    TMPDIR=$sessions timeout -k 5 "$1" ip netns exec "${FABRIC_PREFIX}h0_0" mpirun \
        --host "$(host_list "$3" "$4")" -np $(($3 * $4)) \
        --mca plm_rsh_agent "$sessions/agent" --mca orte_keep_fqdn_hostnames 1 \
        --mca oob_tcp_if_include 10.0.0.0/8 --mca oob_tcp_dynamic_ipv4_ports $own_ports \
        --mca btl_tcp_if_include 10.0.0.0/8 --bind-to none --oversubscribe \
        "${options[@]}" "${transport[@]}" "${@:5}" </dev/null >"$scratch/log" 2>&1 || result=$?
    ((result == 0)) || stop_hosts
    return "$result"
}

# complain WHAT STATUS: a job failed.
complain()
{
    local why="exit status $2"

    ((${2/137/124} != 124)) || why='it took too long'
    echo "mpi.sh: $1: $why" >&2
    tail -n 5 "$scratch/log" | cut -c 1-200 | sed 's/^/    /' >&2
    [[ -z $keep ]] || cp "$scratch/log" "$keep/${1// /-}.log"
}

# ------------------------------------------------------------------------------------------ a spine dies

# Packets that came to each spine by now, those that are TCP; and all others, to all spines.
declare -A tcp=() tcp_before=()
others=0 others_before=0

read_counters()
{
    local spine came of_tcp

    tcp=() others=0
    echo counters >&"${COPROC[1]}"
    while read -r -u "${COPROC[0]}" spine _ came _ of_tcp _ && [[ $spine != . ]]; do
        tcp[$spine]=$((${tcp[$spine]-0} + of_tcp))
        others=$((others + came - of_tcp))
    done
}

note_counters()
{
    local spine

    read_counters
    others_before=$others
    for spine in "${!tcp[@]}"; do
        tcp_before[$spine]=${tcp[$spine]}
    done
}

# kill_spine PID PACKETS: as soon as that job has sent so many since note_counters(), one that carries none of the TCP
# by which mpirun leads the ranks: TCP would stay on it. Sets dead; fails if there is no such spine, or the job ends
# before.
kill_spine()
{
    local spine

    dead=''
    until ((others - others_before >= $2)); do
        sleep 0.05
        kill -0 "$1" 2>/dev/null || return 1
        read_counters
    done
    for ((spine = 0; spine < spines; spine++)); do
        ((tcp[$spine] > tcp_before[$spine])) || dead=$spine
    done
    [[ -n $dead ]] || return 1
    echo "blackhole all $dead on" >&"${COPROC[1]}"
}

# job_with_death PACKETS JOB'S ARGUMENT...: one dies when it has sent so many. Status 1 too if none died in it.
job_with_death()
{
    local pid result=0

    note_counters
    job "${@:2}" &
    pid=$!
    kill_spine "$pid" "$1" || result=1
    wait "$pid" || result=$?
    [[ -z $dead ]] || fabric blackhole all "$dead" off
    return "$result"
}

# ------------------------------------------------------------------------------------------ what is measured

# result_of ROW: {value, first, longest} of the last job, in the row's unit. first and longest are null for NetPIPE,
# which tells the best of its trials.
result_of()
{
    case $1 in
    netpipe) awk '{ print "{\"value\": " $2 "}" }' "$sessions/np.out" ;;
    latency) awk '{ print "{\"value\": " $3 * 1e6 "}" }' "$sessions/np.out" ;;
    *) awk -v row="$1" '$1 == row && NF == 7 {
            printf "{\"value\": %g, \"first\": %g, \"longest\": %g}\n", $5 / 1000, $6 / 1000, $7 / 1000 }' \
        "$scratch/log" ;;
    esac
}

# run_once ROW TURNS ARGUMENTS COLUMN TRANSPORT FAULT SLOWER: the job of a cell.
run_once()
{
    local times=$(($2 / $7)) arguments

    read -ra arguments <<<"$3"
    if ((${#arguments[@]} == 1)); then
        rm -f "$sessions/np.out"
        job "$limit" "$5" 2 1 NPopenmpi -l "$3" -u "$3" -p 0 -n "$times" -o "$sessions/np.out"
    elif [[ $6 == death ]]; then
        job_with_death $settled "$limit" "$5" $((hosts * leaves)) 1 \
            "$sessions/mpi_loops" "${arguments[@]}" $((times * longer))
    else
        job "$limit" "$5" $((hosts * leaves)) 1 "$sessions/mpi_loops" "${arguments[@]}" "$times"
    fi
}

# cell ROW'S-LINE COLUMN'S-LINE TURN: writes ROW-COLUMN-TURN.json; "value" is null if nothing came of it.
cell()
{
    local row times arguments column transport fault slower file result=0

    IFS='|' read -r row _ _ times arguments <<<"$1"
    IFS='|' read -r column _ transport fault slower <<<"$2"
    file=$scratch/$row-$column-$3.json
    # NetPIPE's best trial would be one before the spine died.
    [[ $fault != death || $arguments == *' '* ]] || return 0
    # What took too long once is not tried again.
    if (($3 > 0)) && [[ $(jq .value "$scratch/$row-$column-0.json") == null ]]; then
        return
    fi
    run_once "$row" "$times" "$arguments" "$column" "$transport" "$fault" "$slower" || result=$?
    ((result != 0)) || result_of "$row" >"$sessions/result"
    if ((result == 0)) && [[ -s $sessions/result ]]; then
        mv "$sessions/result" "$file"
    else
        complain "$row over $column" $result
        [[ $transport != mrd ]] || status=1
        echo '{"value": null}' >"$file"
    fi
}

measure()
{
    local turn row column fault lost=0

    for ((turn = 0; turn < turns; turn++)); do
        echo "turn $((turn + 1)) of $turns" >&2
        for column in "${columns[@]}"; do
            IFS='|' read -r _ _ _ fault _ <<<"$column"
            if [[ $fault == loss ]]; then
                lost=$loss_ppm
            fi
            fabric loss $lost
            lost=0
            for row in "${rows[@]}"; do
                cell "$row" "$column" $turn
            done
        done
    done
}

# ------------------------------------------------------------------------------------------ what is told of it

# {rows: [{name, label, unit, cells: {COLUMN: {median, least, most, first, longest}}}]}: of all turns.
summary()
{
    local row name label unit column

    for row in "${rows[@]}"; do
        IFS='|' read -r name label unit _ <<<"$row"
        for column in "${columns[@]%%|*}"; do
            compgen -G "$scratch/$name-$column-*.json" >/dev/null || continue
            jq -s --arg column "$column" 'def median: sort | .[length / 2 | floor];
                map(select(.value)) | {($column): (if length == 0 then null else
                    {median: (map(.value) | median), least: (map(.value) | min), most: (map(.value) | max),
                     first: (map(.first) | median), longest: (map(.longest) | max)} end)}' \
                "$scratch/$name-$column"-*.json
        done | jq -s --arg name "$name" --arg title "$label" --arg unit "$unit" \
            '{name: $name, label: $title, unit: $unit, cells: add}'
    done | jq -s --argjson hosts $((hosts * leaves)) '{hosts: $hosts, rows: .}'
}

# How many times as fast as b a is, in a row; and the sentence. Needs .rows.
# shellcheck disable=SC2016 # of jq
readonly ratios='
    def row($name): .rows[] | select(.name == $name);
    def faster($a; $b): .unit as $unit | .cells | .[$a].median as $x | .[$b].median as $y
        | if ($x and $y) | not then null elif $unit == "Mb/s" then $x / $y else $y / $x end;
    def shown: if . then . * 100 | round / 100 | tostring else "-" end;
    def percent: if . then "\(. * 100 | round)%" else "-" end;'

table()
{
    jq -r --arg labels "$(printf '%s\n' "${columns[@]}" | cut -d '|' -f 2)" \
        --arg names "$(printf '%s\n' "${columns[@]%%|*}")" "$ratios"'
        def digits: if . >= 100 then round elif . >= 10 then . * 10 | round / 10 else . * 100 | round / 100 end;
        def cell: if . then .median | digits | tostring else "-" end;
        ($names | split("\n")) as $names
        | "| \(.hosts) hosts, '$spines' spines of '$rate' Mb/s | \($labels | split("\n") | join(" | ")) |",
          "|---|\($names | map("---:|") | add)",
          (.rows[] | .cells as $cells
              | "| \(.label) [\(.unit)] | \($names | map(. as $name
                  | if $cells | has($name) then $cells[$name] | cell else "" end) | join(" | ")) |"),
          "",
          "mrd is \(row("allreduce") | faster("mrd"; "tcp") | shown) times as fast as Open MPI over TCP in allreduce, " +
              "\(row("netpipe") | faster("mrd"; "tcp") | shown) times in NetPIPE.",
          "With 1% lost it keeps \(row("allreduce") | faster("mrd_loss"; "mrd") | percent) of its speed in " +
              "allreduce, \(row("netpipe") | faster("mrd_loss"; "mrd") | percent) in NetPIPE.",
          "The longest turns when a spine died: " +
              "\([.rows[] | select(.cells.mrd_death) | "\(.name) \(.cells.mrd_death.longest | round) ms"]
                  | join(", "))."' "$scratch/summary.json"
}

# Of each row but latency: how many times as fast as Open MPI over TCP, clean.
draw()
{
    jq -r "$ratios"'.rows[] | select(.name != "latency") | . as $row
        | "\"\(.label)\" " + (["mrd", "mrd_loss", "mrd_death", "tcp", "tcp_loss", "rxm", "rxd"]
            | map(. as $column | $row | faster($column; "tcp") // "NaN" | tostring) | join(" "))' \
        "$scratch/summary.json" >"$scratch/bars"
    plot_draw "$1" 900 360 <<PLOT
set style data histograms
set style histogram clustered gap 1.5
set yrange [0:*]
set ylabel "times the speed of TCP, clean"
faint = "fs solid 0.55 noborder"
fainter = "fs solid 0.3 noborder"
plot "$scratch/bars" using 2:xtic(1) lc rgb mrd_colour title "mrd", \
     "" using 3 lc rgb mrd_colour @faint title "mrd, 1% lost", \
     "" using 4 lc rgb mrd_colour @fainter title "mrd, a spine dies", \
     "" using 5 lc rgb tcp_colour title "Open MPI over TCP", \
     "" using 6 lc rgb tcp_colour @faint title "the same, 1% lost", \
     "" using 7 lc rgb ceiling_colour title "libfabric tcp;ofi_rxm", \
     "" using 8 lc rgb "#aaaaaa" title "libfabric udp;ofi_rxd"
PLOT
}

# ------------------------------------------------------------------------------------------ command line

# number NAME VALUE LEAST MOST
number()
{
    [[ $2 =~ ^[1-9][0-9]{0,5}$ && $2 -ge $3 && $2 -le $4 ]] ||
        { die_status=2; die "$1 is a number from $3 to $4, not '$2'"; }
}

skip()
{
    echo "mpi.sh: $*" >&2
    exit 77
}

while (($# > 0)); do
    case $1 in
    -h | --help) usage; exit ;;
    --check) check=yes ;;
    -n | -T | -H | -L | -k | -o | --page | --only)
        (($# > 1)) || { usage >&2; exit 2; }
        case $1 in
        -n) number -n "$2" 1 99; turns=$2 ;;
        -T) number -T "$2" 5 3600; limit=$2 ;;
        -H) number -H "$2" 1 8; hosts=$2 ;;
        -L) number -L "$2" 2 8; leaves=$2 ;;
        -k) mkdir -p "$2"; keep=$(realpath "$2") ;;
        -o) out=$(realpath "$2") ;;
        --page) page=$(realpath "$2") ;;
        --only) only=$2 ;;
        esac
        shift
        ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
why=$(fabric check 2>&1) || skip "$why"
groups=(build demo mpi)
if [[ $check == yes ]]; then
    groups+=(mpi-check)
    hosts=2 leaves=2
fi
tools/install-deps.sh "${groups[@]}" || echo 'going on without' >&2
for tool in mpirun mpicc NPopenmpi jq; do
    command -v $tool >/dev/null || skip "no $tool"
done

scratch=${keep:-$(mktemp -d)}
sessions=$(mktemp -d /tmp/mrd_mpi.XXXXXX) # Open MPI's sockets need short names
trap clean_up EXIT
trap 'exit 130' INT TERM
if [[ -z ${FI_PROVIDER_PATH-} ]]; then
    build "$scratch" mrd_fi
fi
FI_PROVIDER_PATH=$(realpath "${FI_PROVIDER_PATH:-build/transport/adapters/ofi}")
export FI_PROVIDER_PATH
[[ -e $FI_PROVIDER_PATH/libmrd-fi.so ]] || die "no libmrd-fi.so in $FI_PROVIDER_PATH"
mpicc -O2 -o "$sessions/mpi_loops" tests/ofi/mpi_loops.c
write_agent
fabric up -H "$hosts" -L "$leaves" -S $spines -r $rate
fabric pin $own_spine $own_ports
coproc fabric console
if [[ $check == yes ]]; then
    run_checks
else
    measure
    summary >"$scratch/summary.json"
    table | tee "$scratch/table.md"
    [[ -z $out ]] || draw "$out"
    [[ -z $page ]] || put_table "$((hosts * leaves)) hosts" "$scratch/table.md" "$page"
fi
((status == 0))
