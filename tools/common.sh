# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts that build the tools and measure with them share. Source it in the root of the tree.

# Ends the script with a sentence, and with 1 unless it has chosen another status as die_status.
die()
{
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit "${die_status:-1}"
}

# Ends the script unless these programs are there.
need()
{
    local tool

    for tool; do
        command -v "$tool" >/dev/null || die "no $tool"
    done
}

# Makes these targets in build/, with these options of cmake; what is printed goes to build.log of the directory.
# build DIRECTORY TARGET... [-- OPTION...]
build()
{
    local generator=() targets=() log=$1/build.log

    shift
    while (($# > 0)) && [[ $1 != -- ]]; do
        targets+=("$1")
        shift
    done
    shift $(($# > 0))
    tools/install-deps.sh build || echo 'going on without' >&2
    if [[ ! -e build/CMakeCache.txt ]] && command -v ninja >/dev/null; then
        generator=(-G Ninja)
    fi
    if ! { cmake -S . -B build "${generator[@]}" -DMRD_TOOLS=ON "$@" &&
        cmake --build build --parallel "$(nproc)" --target "${targets[@]}"; } >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        die 'the build failed'
    fi
}

# The connection matrix of a permutation of all hosts, one circle (Sattolo, 1986), by the generator of Park and Miller
# (1988).
# permutation HOSTS BYTES
permutation()
{
    awk -v hosts="$1" -v bytes="$2" -v script="${0##*/}" 'BEGIN {
        print "# SPDX-License-Identifier: BSD-2-Clause"
        printf "# A permutation of %d hosts, made by tools/%s.\n", hosts, script
        printf "Nodes %d\nConnections %d\n", hosts, hosts
        for (i = 0; i < hosts; i++) to[i] = i
        for (i = hosts - 1; i > 0; i--) {
            random = (random ? random : 1) * 16807 % 2147483647
            other = random % i
            kept = to[i]; to[i] = to[other]; to[other] = kept
        }
        for (i = 0; i < hosts; i++) printf "%d->%d start 0 size %d\n", i, to[i], bytes
    }'
}

# put_table NAME TABLE PAGE: the file TABLE takes the place of what stands in PAGE between the comments <!-- NAME ... -->
# and <!-- /NAME -->.
put_table()
{
    local page

    page=$(awk -v name="$1" -v table="$2" '
        index($0, "<!-- /" name " -->") == 1 { inside = 0 }
        !inside { print }
        index($0, "<!-- " name) == 1 { inside = 1; while ((getline line <table) > 0) print line }' "$3")
    [[ $page == "$(<"$3")" ]] || printf '%s\n' "$page" >"$3"
}
