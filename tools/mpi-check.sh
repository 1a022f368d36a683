# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# What tools/mpi.sh --check runs; it sources this, and has scratch, sessions, status, only, job() and complain(), and
# what lets a spine die in a job.
# shellcheck disable=SC2154,SC2034

# Seconds that a case may take.
readonly case_limit=120 suite_limit=900 ended_limit=60
# A job that sends fewer packets over the spines is over before one could be made to die in it.
readonly least_packets=10000
readonly patience_ms=2000 # FI_MRD_PEER_TIMEOUT where a host falls silent

# Where the ranks of the next cases are: on so many hosts; 0: on one, and reach each other by its loopback. What happens
# there: clean, loss (nothing is to be done for it here), or death.
on=0 fault=clean
declare -A sent=() # packets that a clean run sent over the spines: CASE,HOSTS

# skipped REASON: the case that says so ends with it.
skipped()
{
    reason=$*
    return 77
}

# One line for a case: ok, skipped or FAILED, and what it says of itself as `reason`.
# try NAME WHERE COMMAND...
try()
{
    local result=0 start=$SECONDS title=$1${2:+, $2}

    [[ $title =~ $only ]] || return 0
    name=$1 reason=''
    "${@:3}" || result=$?
    case $result in
    0) printf 'ok      %s, %d s%s\n' "$title" $((SECONDS - start)) "${reason:+: $reason}" ;;
    77) printf 'skipped %s: %s\n' "$title" "$reason" ;;
    *)
        printf 'FAILED  %s, %d s%s\n' "$title" $((SECONDS - start)) "${reason:+: $reason}"
        complain "$title" $result
        status=1
        ;;
    esac
}

because()
{
    reason+=${reason:+; }$*
}

# A spine dies when half of the packets of the clean run have been sent; or is dead from the start, if they are few.
# dying JOB'S ARGUMENT...
dying()
{
    local half=$((${sent[$name,$on]:-$((2 * settled))} / 2)) result=0

    if ((2 * half >= least_packets)); then
        job_with_death $half "$@" || result=$?
        because "$([[ -n $dead ]] && echo a || echo no) spine died after $half packets"
        return "$result"
    fi
    fabric blackhole all $((spines - 1)) on
    job "$@" || result=$?
    fabric blackhole all $((spines - 1)) off
    because 'a spine was dead from the start'
    return "$result"
}

# ranks SECONDS RANKS [mpirun's OPTION...] COMMAND...: a job as the settings say.
ranks()
{
    local result=0 arguments=("$1" mrd "$on" $(($2 / (on ? on : 1))) "${@:3}")

    if ((on == 0)); then
        FI_MRD_IFACE=lo job "$1" mrd 1 "${@:2}"
    elif [[ $fault == death ]]; then
        dying "${arguments[@]}"
    else
        note_counters
        job "${arguments[@]}" || result=$?
        read_counters
        [[ $fault == loss ]] || sent[$name,$on]=$((others - others_before))
        return "$result"
    fi
}

# ------------------------------------------------------------------------------------------ cases

loop()
{
    ranks $case_limit 8 "$sessions/mpi_loops" "$@"
}

# Sets sources: the directory that Debian's source package comes into. apt-get is led past the system's list of sources,
# as that seldom has any of source packages.
debian_source()
{
    local apt=$sessions/apt list options

    options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts"
        -o "Dir::State::lists=$apt/lists" -o APT::Sandbox::User=root)
    sources=$apt/$1
    if [[ ! -d $apt ]]; then
        mkdir -p "$apt/lists" "$apt/parts"
        for list in /etc/apt/sources.list.d/debian*.sources; do
            [[ ! -e $list ]] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$apt/parts/${list##*/}"
        done
        [[ ! -e /etc/apt/sources.list ]] || sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$apt/parts/debian.list"
        timeout $case_limit apt-get "${options[@]}" update >"$apt/log" 2>&1 || true
    fi
    if [[ ! -d $sources ]]; then
        mkdir "$sources"
        (
            cd "$sources"
            timeout $case_limit apt-get "${options[@]}" source --download-only "$1"
            tar -xf "$1"_*.orig.tar.* --strip-components=1
        ) >"$sources.log" 2>&1 || true
    fi
}

# What a package manager said that failed.
complaint()
{
    grep -m 1 '^E:' "$1" || tail -n 1 "$1"
}

# Open MPI's own examples.
example()
{
    sources=${OPENMPI_EXAMPLES-}
    if [[ -z $sources ]]; then
        debian_source openmpi
        [[ -e $sources/examples/$1.c ]] ||
            skipped "no OPENMPI_EXAMPLES, and apt-get source: $(complaint "$sources.log")" || return
        sources+=/examples
    fi
    mpicc -o "$sessions/$1" "$sources/$1.c" && ranks $case_limit 8 "$sessions/$1"
}

# Sets sources: the directory of mpi4py's sources.
find_mpi4py()
{
    sources=${MPI4PY_DIR-}
    [[ -z $sources ]] || return 0
    debian_source mpi4py
    [[ -e $sources/test/runtests.py ]] ||
        skipped "no MPI4PY_DIR, and apt-get source: $(complaint "$sources.log")"
}

# What no provider of libfabric passes with Open MPI 4.1, as its mtl ofi cannot do it: MPI_BOTTOM with a type of
# absolute addresses (it sends from address 0), cancel a send, and acknowledge a synchronous send that a matched probe
# took. The test of many sends wants none to be complete at once. MPI_Comm_split_type() between hosts hangs, or crashes,
# over any transport.
write_suite()
{
    cat >"$sessions/suite.py" <<'PYTHON'
import re, runpy, sys, unittest
names = unittest.TestLoader.getTestCaseNames
unittest.TestLoader.getTestCaseNames = lambda self, case: [
    name for name in names(self, case)
    if not re.search('Bottom|Cancel|obj.*IMProbe|ManyISend|SplitType', case.__module__ + name)]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
PYTHON
}

# Without the tests that start further jobs, or that take objects by matched probes only. One-sided operations go over
# the provider, too, not through shared memory: by osc pt2pt, which needs a thread level below multiple.
# mpi4py RANKS
mpi4py()
{
    find_mpi4py || return
    write_suite
    ranks $suite_limit "$1" --mca btl self --mca osc pt2pt -x MPI4PY_RC_RECV_MPROBE=0 -x PYTHONDONTWRITEBYTECODE=1 \
        /usr/bin/python3 "$sessions/suite.py" "$sources/test/runtests.py" -q --thread-level=serialized \
        -e spawn -e dynproc -e test_doc -e pkl5 || return
    because "$(grep -m 1 -o 'Ran [0-9]* tests' "$scratch/log")"
}

mpi4py_bench()
{
    /usr/bin/python3 -c 'import mpi4py' 2>/dev/null || skipped 'no mpi4py' || return
    ranks $case_limit 8 /usr/bin/python3 -m mpi4py.bench ringtest -n 20
}

# A small matrix, from which hpcc derives the size of everything else.
# hpcc RANKS
hpcc_short()
{
    local input=/usr/share/doc/hpcc/examples/_hpccinf.txt directory=$sessions/hpcc

    command -v hpcc >/dev/null && [[ -e $input ]] || skipped 'no hpcc' || return
    rm -rf "$directory"
    mkdir "$directory"
    sed 's/^1000  *Ns/400 Ns/' "$input" >"$directory/hpccinf.txt"
    ranks $suite_limit "$1" --wdir "$directory" hpcc || return
    cp "$directory/hpccoutf.txt" "$scratch/log"
    grep -q '^Success=1' "$scratch/log" && ! grep -q '[1-9][0-9]* tests completed and failed\|FAILED' "$scratch/log"
}

sixty_four_ranks()
{
    job $case_limit mrd 2 32 "$sessions/mpi_loops" alltoall 8 3 || return
    because "$(awk '{ printf "the first turn took %.0f ms, the median %.0f ms", $6 / 1000, $5 / 1000 }' "$scratch/log")"
}

# ------------------------------------------------------------------------------------------ ends

# The process of a rank on host 1.
a_rank()
{
    local pid

    for pid in $(ip netns pids "${FABRIC_PREFIX}h1_0"); do
        [[ $(cat "/proc/$pid/comm" 2>/dev/null) != mpi_loops ]] || { echo "$pid"; return; }
    done
    return 1
}

kill_rank()
{
    local pid

    pid=$(a_rank) && kill -9 "$pid"
}

# What the provider says of a peer that does not answer: its address and port.
readonly provider_says='mrd:.*10\.[01]\.0\.2:[0-9]+: peer unreachable'

# A job of four ranks on two hosts sends, then something happens to host 1 that it cannot survive: it ends soon, with an
# error that matches PATTERN.
# ends_after PATTERN LOOP BYTES COMMAND...
ends_after()
{
    local pid result=0 start line

    note_counters
    job $((2 * ended_limit)) mrd 2 2 "$sessions/mpi_loops" "$2" "$3" 100000000 &
    pid=$!
    until ((others - others_before >= settled)); do
        sleep 0.2
        kill -0 $pid || break
        read_counters
    done
    start=$SECONDS
    "${@:4}" || because "cannot: ${*:4}"
    wait $pid || result=$?
    line=$(grep -m 1 -oE "$1" "$scratch/log" || true)
    because "exit status $result after $((SECONDS - start)) s: ${line:-no line names the peer}"
    [[ -n $line ]] && ((SECONDS - start < ended_limit && result != 0))
}

killed_rank()
{
    ends_after '.*10\.[01]\.0\.2.*' allreduce 1048576 kill_rank
}

# Neither mpirun, whose TCP goes on, nor the kernel says that host 1 is gone: the provider itself has to notice.
# silent_host LOOP BYTES
silent_host()
{
    local result=0

    FI_MRD_PEER_TIMEOUT=$patience_ms ends_after "$provider_says" "$1" "$2" fabric silence 1 0 on || result=$?
    fabric silence 1 0 off
    return "$result"
}

# ------------------------------------------------------------------------------------------ all of them

on_one_host()
{
    local drop with

    on=0
    for drop in 0 1; do
        export FI_MRD_DROP=$drop
        with='one host'
        ((drop == 0)) || with+=", $drop% lost"
        try 'ring, 4 bytes' "$with" loop ring 4 50
        try 'ring, 1 MiB' "$with" loop ring 1048576 5
        try 'allreduce, 1 MiB' "$with" loop allreduce 1048576 5
        try 'alltoall, 64 KiB' "$with" loop alltoall 65536 5
        try 'bcast, 1 MiB' "$with" loop bcast 1048576 5
        try 'ring_c' "$with" example ring_c
        try 'connectivity_c' "$with" example connectivity_c
        try 'mpi4py.bench' "$with" mpi4py_bench
        try "mpi4py's tests" "$with" mpi4py 3
        try 'hpcc' "$with" hpcc_short 4
    done
    unset FI_MRD_DROP
}

# on_hosts HOSTS
on_hosts()
{
    local with lost

    on=$1
    for fault in clean loss death; do
        with="$1 hosts" lost=0
        case $fault in
        loss) with+=", $((loss_ppm / 10000))% lost at each spine" lost=$loss_ppm ;;
        death) with+=', a spine dies' ;;
        esac
        fabric loss "$lost"
        try 'ring, 1 MiB' "$with" loop ring 1048576 100
        try 'alltoall, 64 KiB' "$with" loop alltoall 65536 100
        try 'ring_c' "$with" example ring_c
        try 'connectivity_c' "$with" example connectivity_c
        try "mpi4py's tests" "$with" mpi4py 4
        try 'hpcc' "$with" hpcc_short $((on == 2 ? 4 : 8))
    done
}

run_checks()
{
    on_one_host
    on_hosts 2
    on_hosts 4
    try '64 ranks on two hosts' '' sixty_four_ranks
    try 'a killed rank' '' killed_rank
    try 'a silent host, 1 MiB' '' silent_host allreduce 1048576
    try 'a silent host, 8 bytes' '' silent_host allreduce 8
    try 'a silent host, which is only waited for' '' silent_host pause 8192
}
