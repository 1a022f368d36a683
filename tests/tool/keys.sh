#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# keys.sh MRD_PERF: what 'mrd_perf keygen' makes of key files, and runs of mrd_perf under them, over the loopback interface.

set -euo pipefail

perf=$1
# shellcheck source=tests/tool/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"
unset MRD_KEY_FILE
umask 022
port=$((20000 + $$ % 10000))

# makes STATUS TEXT ARGUMENT...: keygen ends so, and says that.
makes()
{
    local status=0

    timeout 60 "$perf" keygen "${@:3}" >out 2>err || status=$?
    ((status == $1)) || fail "exit $status, not $1: keygen ${*:3}"
    grep -qF -- "$2" out err || fail "not said that $2: keygen ${*:3}"
}

# ids FILE: of its keys, in their order.
ids()
{
    awk '$1 == "key" { print $2 }' "$1" | xargs
}

# key FILE ID: its text.
key()
{
    awk -v id="$2" '$1 == "key" && $2 == id { print $3 }' "$1"
}

# ------------------------------------------------------------------------------------------ files

makes 0 'key 1 is the first of 1, for aes-128-gcm' a.key
[[ $(stat -c %a a.key) == 600 ]] || fail "mode $(stat -c %a a.key)"
[[ $(ids a.key) == 1 && $(head -c1 a.key) == '#' ]] || fail "a.key: $(<a.key)"
(($(key a.key 1 | base64 -d | wc -c) == 32)) || fail 'a key of another length'
makes 0 '' other.key
[[ $(key a.key 1) != "$(key other.key 1)" ]] || fail 'the same key twice'

cp a.key before
makes 1 'a.key is there already' a.key
cmp -s a.key before || fail 'a file was overwritten'
ln -s missing link.key
makes 1 'link.key' link.key
[[ ! -e missing ]] || fail 'a file was made through a link'
makes 1 'no/where.key' no/where.key

# A new key comes first, the former first one stays, an older one goes.
makes 0 'key 2 is the first of 2' --add a.key
[[ $(ids a.key) == '2 1' && $(key a.key 1) == "$(key before 1)" ]] || fail "added: $(<a.key)"
second=$(key a.key 2)
[[ $second != "$(key a.key 1)" ]] || fail 'the same key twice'
makes 0 'key 3 is the first of 2' --add a.key
[[ $(ids a.key) == '3 2' && $(key a.key 2) == "$second" ]] || fail "added: $(<a.key)"
[[ $(stat -c %a a.key) == 600 ]] || fail "mode $(stat -c %a a.key)"
cp a.key before
makes 1 'has a key 2 already' --add --id 2 a.key
cmp -s a.key before || fail 'a file was changed'
makes 0 'key 16777215 is the first of 2' --add --id 16777215 a.key
makes 0 'key 0 is the first of 2' --add a.key
[[ $(ids a.key) == '0 16777215' ]] || fail "after the last id: $(ids a.key)"

# Its cipher stays, and it is where a link leads.
makes 0 'for chacha20-poly1305' --cipher chacha20-poly1305 --id 7 c.key
ln -s c.key to_c.key
makes 0 'key 8 is the first of 2, for chacha20-poly1305' --add to_c.key
[[ -L to_c.key && $(ids c.key) == '8 7' ]] || fail "through a link: $(<c.key)"
chmod 644 c.key
makes 1 'others may read or write it' --add c.key
chmod 600 c.key
makes 1 'missing.key' --add missing.key
makes 2 'leave out --cipher' --add --cipher aes-256-gcm c.key
makes 2 'which file?'
makes 2 '--cipher: expected aes-128-gcm, aes-256-gcm or chacha20-poly1305' --cipher rot13 d.key
[[ $(echo *.key.*) == '*.key.*' ]] || fail "left behind: $(echo *.key.*)"

# ------------------------------------------------------------------------------------------- runs

# sealed CIPHER WORD...: such a run of both ends here is verified, and reports that cipher.
sealed()
{
    timeout 120 "$perf" "${@:2}" --local --verify -F --out_json >out 2>err || fail "${*:2}"
    grep -q '"verified": true' out || fail "not verified: ${*:2}"
    grep -q "\"cipher\": $1" out || fail "the cipher is not $1: ${*:2}"
}

makes 0 '' --cipher aes-256-gcm d.key
sealed null write_bw -s 3000 -n 2000
sealed '"AES-128-GCM' write_bw -s 100000 -n 300 --drop 0.02 --key-file other.key
sealed '"AES-256-GCM' send_bw -s 3000 -n 3000 --threads 2 --key-file d.key
sealed '"ChaCha20-Poly1305' send_lat -n 200 --key-file c.key
MRD_KEY_FILE=other.key sealed '"AES-128-GCM' read_bw -s 4096 -n 1000
MRD_KEY_FILE=none.key sealed '"AES-256-GCM' send_lat -n 200 --key-file d.key

timeout 60 "$perf" send_lat --local -n 20 -F --key-file other.key >out 2>err || fail 'no run under other.key'
grep -q 'sealed: AES-128-GCM' out || fail 'the table does not name the cipher'
status=0
timeout 60 "$perf" send_lat --local -n 20 -F --transport tcp --key-file other.key >out 2>err || status=$?
((status == 2)) || fail "exit $status: tcp under a key file"
status=0
timeout 60 "$perf" send_lat --local -n 20 -F --key-file before/ >out 2>err || status=$?
((status == 1)) || fail "exit $status: a key file that is not there"

# end FILE: the option of an end.
end()
{
    [[ $1 == - ]] || echo "--key-file=$1"
}

# differ SENTENCE SERVER CLIENT: two ends with these key files, or '-' for none, do not run, and both say so.
differ()
{
    local server=0 client=0

    : >server # now: what an earlier one said is no sign of this one
    # shellcheck disable=SC2046 # one word, or none
    timeout 100 "$perf" send_lat -F -p "$port" --bind-address 127.0.0.1 $(end "$2") >/dev/null 2>server &
    for ((try = 0; try < 200; try++)); do
        ! grep -q 'waiting for a client' server || break
        sleep 0.05
    done
    # shellcheck disable=SC2046
    timeout 100 "$perf" send_lat -F -n 20 -p "$port" $(end "$3") 127.0.0.1 >out 2>err || client=$?
    wait $! || server=$?
    cat server >>out
    ((client == 1 && server == 1)) || fail "exit $client at the client, $server at the server: $2, $3"
    grep -qF -- "$1" err || fail "the client does not say '$1': $2, $3"
    grep -qF -- "$1" server || fail "the server does not say '$1': $2, $3"
}

differ 'the server is sealed, the client is not: --key-file' other.key -
differ 'the client is sealed, the server is not: --key-file' - other.key
differ 'give both the same --key-file' other.key d.key
makes 0 '' same_id.key
differ 'its key 1 is not that of' other.key same_id.key
makes 0 '' --id 5 other_id.key
differ 'it has another key' other.key other_id.key
