#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail
export LC_ALL=C # text is bytes: faster

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage()
{
    cat <<'USAGE'
Does a test notice when a rule of core/ is broken? Makes small wrong changes (mutations), one at a
time, and for each runs the unit tests and the simulated tests until one fails.

usage: mutate.sh [--only NAME...] [--sample N --turn K] [--swarm] [--seeds N] [--jobs N]
                 [--build DIRECTORY] [--list]

  --only NAME...     only these mutations (default: all)
  --sample N         only N of them, others each turn: after some turns all had theirs
  --turn K           number of the turn, any number (default: 0)
  --swarm            run the swarm only, and print the first seed that fails
  --seeds N          seeds of the swarm (default: 600)
  --jobs N           mutations tried at a time (default: the number of cores)
  --build DIRECTORY  where to build; kept for the next time (default: build-mutate)
  --list             only print the mutations' names and rules, and check that each applies
  --help             print this text

The mutations are in tests/mutations/*.txt; README.md there describes the format. Prints a line for
each: the test that fails, or SURVIVES. A test that hangs counts as failing. Needs cmake, ninja and
cmocka. Exit status: 0 if all were noticed, 1 if some survived, 2 if something is wrong: an option,
a mutation that does not apply or compile, a test that fails without one.
USAGE
}

die()
{
    printf 'mutate.sh: %s\n' "$*" >&2
    exit 2
}

# --------------------------------------------------------------------------------------- the list

# parse FILE...: writes each mutation to $scratch/list/NUMBER/{name,rule,file,tests,edits}.
parse()
{
    local line dir='' file='' n=0 where twice

    seq -f "$scratch/list/%04g" "$(cat "$@" | grep -c '^name ')" | xargs mkdir -p
    for where; do
        while IFS= read -r line || [[ -n $line ]]; do
            [[ $line == '' || $line == '#'* || $line == 'name '* || $dir ]] ||
                die "$where: no name before '$line'"
            case $line in
            '#'*) ;;
            'name '*)
                printf -v dir '%s/list/%04d' "$scratch" $((++n))
                file=''
                : >"$dir/tests"
                printf '%s\n' "${line#name }" >"$dir/name"
                ;;
            'rule '* | 'tests '*) printf '%s\n' "${line#* }" >"$dir/${line%% *}" ;;
            'in '*)
                printf '%s\n' "$line" >>"$dir/edits"
                line=${line#in }
                [[ ${file:=${line%%:*}} == "${line%%:*}" ]] ||
                    die "$where: $(<"$dir/name") is in two files"
                printf '%s\n' "$file" >"$dir/file"
                ;;
            '' | '-'* | '+'*) [[ ! $dir ]] || printf '%s\n' "$line" >>"$dir/edits" ;;
            *) die "$where: what is '$line'?" ;;
            esac
        done <"$where"
    done
    for dir in "$scratch"/list/*; do
        [[ -e $dir/rule && -e $dir/file ]] ||
            die "$(<"$dir/name") has no rule, or is in no file"
    done
    twice=$(cat "$scratch"/list/*/name | sort | uniq -d)
    [[ -z $twice ]] || die "two are named $twice"
}

# apply DIRECTORY: prints the changed file. Status 1, and why on stderr: it does not apply.
apply()
{
    (cd "$root" && awk -v edits="$1/edits" -v source="$(<"$1/file")" -f tests/mutations/apply.awk)
}

# --------------------------------------------------------------------------- building and running

# Builds all without a mutation. Keeps each test's link command and its processor time in 1/100 s.
build_all()
{
    local log=$scratch/build folder test

    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 \
        -DMRD_LTO=OFF -DMRD_TOOLS=OFF -DMRD_IBV=OFF -DMRD_TESTS=ON >"$log" 2>&1 ||
        { cat "$log" >&2; die 'cmake'; }
    mkdir -p "$build/mutate"
    rm -f "$build"/mutate/*.link
    ninja -C "$build" -t targets all |
        sed -nE 's,^tests/(unit|sim)/(test_[a-z0-9_]*): C_EXECUTABLE.*,\1/\2,p' |
        grep -vE '/test_(thread|perf|exp)_' >"$scratch/programs"
    if ((swarm)); then
        sed -i '/test_swarm$/!d' "$scratch/programs"
    fi
    [[ -s $scratch/programs ]] || die 'no tests: is cmocka there?'
    sed 's,^,tests/,' "$scratch/programs" | xargs ninja -C "$build" >"$log" 2>&1 ||
        { cat "$log" >&2; die 'ninja'; }
    while IFS=/ read -r folder test; do
        ninja -C "$build" -t commands "tests/$folder/$test" | tail -n 1 >"$build/mutate/$test.link"
        [[ $build/mutate/$test.time -nt $build/tests/$folder/$test ]] ||
            printf '%s\n' "$folder/$test"
    done <"$scratch/programs" |
        xargs -r -P "$jobs" -n 1 bash -c 'measure "$1" || exit 255' mutate ||
        die 'a test fails as it is'
}

# measure FOLDER/TEST: runs it without a mutation and keeps its processor time.
measure()
{
    local test=${1#*/} status=0

    limited 300 "$build/tests/$1" >"$scratch/$test.log" 2>&1 || status=$?
    if ((status != 0 && status != 77)); then
        cat "$scratch/$test.log" >&2
        printf 'mutate.sh: %s fails as it is\n' "$test" >&2
        return 1
    fi
    tail -n 1 "$scratch/$test.log" >"$build/mutate/$test.time"
}

# limited SECONDS PROGRAM: runs it with that limit of processor time. The last line printed is the
# processor time that it took, in 1/100 s.
limited()
{
    (
        ulimit -c 0
        ulimit -t "$1"
        TIMEFORMAT='%U'
        export MRD_SWARM_SEEDS=$seeds
        time timeout -s KILL $((10 * $1)) "$2"
    ) 2>&1
}
export -f limited measure

# link TEST OBJECT PROGRAM: the changed object goes before the library, and so replaces its own.
link()
{
    local command

    command=$(<"$build/mutate/$1.link")
    command=${command/ -o tests\/*([a-z])\/"$1" / "$2" -o "$3" }
    (cd "$build" && eval "$command")
}

# how STATUS: prints what an exit status means
how()
{
    case $1 in
    134) echo 'an assertion fails' ;;
    137 | 152) echo 'hangs' ;;
    139 | 136 | 135) echo 'crashes' ;;
    *) echo 'fails' ;;
    esac
}

# tests_of DIRECTORY: prints a mutation's tests in the order to run: those that it names, that of
# its file, then all others, the shortest first and the swarm last.
tests_of()
{
    local file test

    file=$(<"$1/file")
    {
        tr ' ' '\n' <"$1/tests"
        printf 'test_%s\n' "$(basename "$file" .c)" "engine_$(basename "$file" .c)"
        for test in "$build"/mutate/*.time; do
            printf '%s %s\n' "$(<"$test")" "$(basename "$test" .time)"
        done | sort -n | cut -d ' ' -f 2 | grep -vx test_swarm
        echo test_swarm
    } | awk 'NF && !seen[$0]++' | while read -r test; do
        [[ ! -e $build/mutate/$test.link ]] || printf '%s\n' "$test"
    done
}

# one DIRECTORY: tries a mutation. Prints "killed NAME: TEST", "SURVIVES NAME: RULE" or
# "error NAME: WHY".
one()
{
    local dir=$1 name file trial=$1/trial test status seconds command

    exec 2>/dev/null # the shell reports signals there; the exit status tells them, too
    shopt -s extglob
    name=$(<"$dir/name")
    file=$(<"$dir/file")
    mkdir "$trial"
    command=$(ninja -C "$build" -t commands "core/CMakeFiles/mrd_core.dir/${file#core/}.o" |
        tail -n 1)
    command="${command%% -MD *} -w -Werror=implicit-function-declaration"
    if ! apply "$dir" >"$trial/$(basename "$file")" 2>"$trial/log"; then
        printf 'error %s: %s\n' "$name" "$(<"$trial/log")"
        return
    fi
    if ! (cd "$trial" && eval "$command -o changed.o -c '$(basename "$file")'") \
        >"$trial/log" 2>&1; then
        printf 'error %s: it does not compile\n' "$name"
        return
    fi
    if ((swarm)); then
        one_swarm "$name" "$dir"
    else
        one_tests "$name" "$dir"
    fi
    rm -r "$trial"
}

one_tests()
{
    local test status seconds

    while read -r test; do
        if ! link "$test" "$2/trial/changed.o" "$2/trial/$test" >"$2/trial/log" 2>&1; then
            printf 'error %s: %s cannot be linked\n' "$1" "$test"
            return
        fi
        seconds=$(<"$build/mutate/$test.time")
        status=0
        limited $((5 + 5 * ${seconds%.*})) "$2/trial/$test" >"$2/trial/log" || status=$?
        rm "$2/trial/$test"
        if ((status != 0 && status != 77)); then
            printf 'killed %s: %s %s\n' "$1" "$test" "$(how $status)"
            return
        fi
    done < <(tests_of "$2")
    printf 'SURVIVES %s: %s\n' "$1" "$(<"$2/rule")"
}

# Runs each seed in a process of its own, so that the one which crashes or hangs is known.
one_swarm()
{
    local seed status

    if ! link test_swarm "$2/trial/changed.o" "$2/trial/swarm" >"$2/trial/log" 2>&1; then
        printf 'error %s: test_swarm cannot be linked\n' "$1"
        return
    fi
    for ((seed = 1; seed <= seeds; seed++)); do
        status=0
        MRD_SWARM_ONCE=1 MRD_TEST_SEED=$seed limited 30 "$2/trial/swarm" >"$2/trial/log" || status=$?
        if ((status)); then
            printf 'killed %s: seed %d %s\n' "$1" "$seed" "$(how $status)"
            return
        fi
    done
    printf 'SURVIVES %s: %s\n' "$1" "$(<"$2/rule")"
}
export -f apply link how tests_of one one_tests one_swarm

# ---------------------------------------------------------------------------------------- options

# number OPTION TEXT LEAST: the option's value must be a number, at least LEAST.
number()
{
    [[ $2 =~ ^[0-9]{1,9}$ && $((10#$2)) -ge $3 ]] || die "$1 takes a number from $3 on, not '$2'"
}

only=() sample=0 turn=0 swarm=0 seeds=600 jobs=$(nproc) build=$root/build-mutate list=0

options=$(getopt -n mutate.sh -o h \
    -l only:,sample:,turn:,swarm,seeds:,jobs:,build:,list,help -- "$@") || exit 2
eval set -- "$options"
while [[ $1 != -- ]]; do
    case $1 in
    --only)
        only+=("$2")
        shift
        ;;
    --sample | --seeds | --jobs)
        number "$1" "$2" 1
        printf -v "${1#--}" '%d' "$((10#$2))"
        shift
        ;;
    --turn)
        number "$1" "$2" 0
        turn=$((10#$2))
        shift
        ;;
    --build)
        build=$(realpath -m "$2")
        shift
        ;;
    --swarm) swarm=1 ;;
    --list) list=1 ;;
    *)
        usage
        exit 0
        ;;
    esac
    shift
done
shift
(($# == 0 || ${#only[@]} > 0)) || die "what is '$1'?"
only+=("$@") # --only NAME NAME...

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export root build scratch swarm seeds

parse "$root"/tests/mutations/*.txt
all=("$scratch"/list/*)
chosen=()
turns=$((sample ? (${#all[@]} + sample - 1) / sample : 1))
for i in "${!all[@]}"; do
    ((i % turns == turn % turns)) || continue
    ((${#only[@]} == 0)) ||
        printf '%s\n' "${only[@]}" | grep -qxF "$(<"${all[i]}/name")" || continue
    chosen+=("${all[i]}")
done
for name in "${only[@]}"; do
    grep -qxF "$name" "$scratch"/list/*/name || die "there is no $name"
done
if ((list)); then
    status=0
    for dir in "${chosen[@]}"; do
        printf '%s: %s\n' "$(<"$dir/name")" "$(<"$dir/rule")"
        apply "$dir" 2>&1 >/dev/null | sed "s,^,mutate.sh: $(<"$dir/name"): ," >&2 || status=2
    done
    exit $status
fi
for tool in cmake ninja; do
    command -v $tool >/dev/null || die "no $tool"
done
build_all

killed=0 survived=0 errors=0
while read -r result line; do
    case $result in
    killed) ((++killed)) ;;
    SURVIVES) ((++survived)) ;;
    *) ((++errors)) ;;
    esac
    printf '%s %s\n' "$result" "$line"
done < <(printf '%s\n' "${chosen[@]}" | xargs -P "$jobs" -n 1 bash -c 'one "$1"' mutate)
printf '%d noticed, %d survived, %d in error\n' $killed $survived $errors
((errors == 0 && killed + survived == ${#chosen[@]})) || exit 2
((survived == 0))
