# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# What tools/mpi.sh --check runs; it sources this, and has scratch, sessions, status, job() and complain().
# shellcheck disable=SC2154,SC2034

# Seconds that a case may take.
readonly case_limit=120 suite_limit=900 killed_limit=60

# skipped REASON: the case that says so ends with it.
skipped()
{
    reason=$*
    return 77
}

# One line for a case: ok, skipped or FAILED, and what it says of itself as `reason`.
# try NAME COMMAND...
try()
{
    local result=0 start=$SECONDS

    reason=''
    "${@:2}" || result=$?
    case $result in
    0) printf 'ok      %s, %d s%s\n' "$1" $((SECONDS - start)) "${reason:+: $reason}" ;;
    77) printf 'skipped %s: %s\n' "$1" "$reason" ;;
    *)
        printf 'FAILED  %s, %d s%s\n' "$1" $((SECONDS - start)) "${reason:+: $reason}"
        complain "$1" $result
        status=1
        ;;
    esac
}

# On one host, by its loopback.
# local_job SECONDS RANKS COMMAND...
local_job()
{
    FI_MRD_IFACE=lo job "$1" mrd 1 "$2" "${@:3}"
}

# ------------------------------------------------------------------------------------------ cases

eight_ranks()
{
    local_job $case_limit 8 "$sessions/mpi_loops" "$@"
}

# Open MPI's own examples, where they are installed.
example()
{
    local source

    source=$(compgen -G "/usr/share/doc/*openmpi*/examples/$1.c" | head -n 1) || skipped 'it is not installed' || return
    mpicc -o "$sessions/$1" "$source" && local_job $case_limit 8 "$sessions/$1"
}

# Sets suite: the directory of mpi4py's sources. Those of Debian's source package come by apt-get, which this leads past
# the system's list of sources, as that seldom has any of source packages.
find_mpi4py()
{
    local apt=$sessions/apt list

    suite=${MPI4PY_DIR-}
    [[ -z $suite ]] || return 0
    if [[ ! -d $apt ]]; then
        mkdir -p "$apt/lists" "$apt/parts" "$apt/source"
        for list in /etc/apt/sources.list.d/debian*.sources; do
            [[ ! -e $list ]] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$apt/parts/${list##*/}"
        done
        [[ ! -e /etc/apt/sources.list ]] || sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$apt/parts/debian.list"
        (
            cd "$apt/source"
            options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts"
                -o "Dir::State::lists=$apt/lists" -o APT::Sandbox::User=root)
            timeout $case_limit apt-get "${options[@]}" update
            timeout $case_limit apt-get "${options[@]}" source --download-only mpi4py
            tar -xf mpi4py_*.orig.tar.* --strip-components=1
        ) >"$apt/log" 2>&1 || true
    fi
    suite=$apt/source
    [[ -e $suite/test/runtests.py ]] ||
        skipped "no MPI4PY_DIR, and apt-get source: $(grep -m 1 '^E:' "$apt/log" || tail -n 1 "$apt/log")"
}

# What no provider of libfabric passes with Open MPI 4.1, as its mtl ofi cannot do it: MPI_BOTTOM with a type of absolute
# addresses (it sends from address 0), cancel a send, and acknowledge a synchronous send that a matched probe took. The
# test of many sends wants none to be complete at once.
write_suite()
{
    cat >"$sessions/suite.py" <<'PYTHON'
import re, runpy, sys, unittest
names = unittest.TestLoader.getTestCaseNames
unittest.TestLoader.getTestCaseNames = lambda self, case: [
    name for name in names(self, case)
    if not re.search('Bottom|Cancel|obj.*IMProbe|ManyISend', case.__module__ + name)]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
PYTHON
}

# Without the tests that start further jobs, or that take objects by matched probes only.
mpi4py()
{
    local suite

    find_mpi4py || return
    write_suite
    MPI4PY_RC_RECV_MPROBE=0 PYTHONDONTWRITEBYTECODE=1 local_job $suite_limit 3 /usr/bin/python3 "$sessions/suite.py" \
        "$suite/test/runtests.py" -q -e spawn -e dynproc -e test_doc -e pkl5 || return
    reason=$(grep -m 1 -o 'Ran [0-9]* tests' "$scratch/log")
}

mpi4py_bench()
{
    /usr/bin/python3 -c 'import mpi4py' 2>/dev/null || skipped 'no mpi4py' || return
    local_job $case_limit 8 /usr/bin/python3 -m mpi4py.bench ringtest -n 20
}

# A small matrix, from which hpcc derives the size of everything else.
hpcc_short()
{
    local example=/usr/share/doc/hpcc/examples/_hpccinf.txt directory=$sessions/hpcc

    command -v hpcc >/dev/null && [[ -e $example ]] || skipped 'no hpcc' || return
    rm -rf "$directory"
    mkdir "$directory"
    sed 's/^1000  *Ns/400 Ns/' "$example" >"$directory/hpccinf.txt"
    local_job $suite_limit 4 --wdir "$directory" hpcc || return
    cp "$directory/hpccoutf.txt" "$scratch/log"
    grep -q '^Success=1' "$scratch/log" && ! grep -q '[1-9][0-9]* tests completed and failed\|FAILED' "$scratch/log"
}

sixty_four_ranks()
{
    job $case_limit mrd 2 32 "$sessions/mpi_loops" alltoall 8 3 || return
    reason="$(awk '{ printf "the first turn took %.0f ms, the median %.0f ms", $6 / 1000, $5 / 1000 }' "$scratch/log")"
}

# The process of a rank on host 1.
a_rank()
{
    local pid

    for pid in $(ip netns pids "${FABRIC_PREFIX}h1_0"); do
        [[ $(cat "/proc/$pid/comm" 2>/dev/null) != mpi_loops ]] || { echo "$pid"; return; }
    done
    return 1
}

killed_rank()
{
    local pid victim='' result=0 try start

    job $((2 * killed_limit)) mrd 2 2 "$sessions/mpi_loops" allreduce 1048576 100000000 &
    pid=$!
    for ((try = 0; try < 100; try++)); do
        sleep 0.2
        victim=$(a_rank) && break
    done
    sleep 2 # it sends
    start=$SECONDS
    [[ -z $victim ]] || kill -9 "$victim"
    wait $pid || result=$?
    reason="exit status $result after $((SECONDS - start)) s: $(grep -m 1 -E '10\.[01]\.0\.2' "$scratch/log")"
    ((SECONDS - start < killed_limit && result != 0)) && grep -qE '10\.[01]\.0\.2' "$scratch/log"
}

run_checks()
{
    local drop with

    for drop in 0 1; do
        export FI_MRD_DROP=$drop
        with=''
        ((drop == 0)) || with=", $drop% lost"
        try "ring, 4 bytes$with" eight_ranks ring 4 50
        try "ring, 1 MiB$with" eight_ranks ring 1048576 5
        try "allreduce, 1 MiB$with" eight_ranks allreduce 1048576 5
        try "alltoall, 64 KiB$with" eight_ranks alltoall 65536 5
        try "bcast, 1 MiB$with" eight_ranks bcast 1048576 5
        try "ring_c$with" example ring_c
        try "connectivity_c$with" example connectivity_c
        try "mpi4py.bench$with" mpi4py_bench
        try "mpi4py's tests$with" mpi4py
        try "hpcc$with" hpcc_short
    done
    unset FI_MRD_DROP
    try '64 ranks on two hosts' sixty_four_ranks
    try 'a killed rank' killed_rank
}
