#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# nccl.sh: what tools/nccl.sh refuses, and the table that it makes of results. Where Python has PyTorch, the ranks run, too,
# over gloo: a GPU is not needed for that.

set -euo pipefail

command -v python3 >/dev/null || { echo 'tool_nccl: skipped: no python3'; exit 77; }

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck source=tests/tool/scratch.sh
source "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"

# refused STATUS SENTENCE WORD...: these options are wrong, and why is said.
refused()
{
    local status=0

    "$tools/nccl.sh" "${@:3}" >out 2>err || status=$?
    ((status == $1)) || fail "exit $status, not $1: ${*:3}"
    grep -qF -- "$2" err || fail "not said that $2: ${*:3}"
}

# says TEXT: the table, or what stands below it, has that line.
says()
{
    grep -qxF -- "$1" out || fail "not said: $1"
}

refused 2 'usage: nccl.sh' --nothing
refused 2 'usage: nccl.sh' -n
refused 2 "0 is not a number of 1 to 999999" -n 0
printf '#!/bin/sh\nexit 1\n' >none
chmod +x none
PYTHON=$PWD/none refused 1 'has no PyTorch' --cpu

cat >results.json <<'JSON'
{"machine": {"torch": "2", "processors": 16, "nccl": "2.28.9", "gpus": ["G", "G"]}, "turns": 3, "jobs": [
{"column": "mrd", "part": "measure", "turn": 0, "others": [], "results": [
 {"operation": "all_reduce", "type": "float32", "bytes": 4096, "right": true, "seconds": 0.0001},
 {"operation": "all_reduce", "type": "float32", "bytes": 16777216, "right": true, "seconds": 0.016}]},
{"column": "mrd", "part": "measure", "turn": 1, "others": [], "results": [
 {"operation": "all_reduce", "type": "float32", "bytes": 4096, "right": true, "seconds": 0.0003},
 {"operation": "all_reduce", "type": "float32", "bytes": 16777216, "right": true, "seconds": 0.008}]},
{"column": "mrd", "part": "measure", "turn": 2, "others": [], "results": [
 {"operation": "all_reduce", "type": "float32", "bytes": 4096, "right": true, "seconds": 0.0002},
 {"operation": "all_reduce", "type": "float32", "bytes": 16777216, "right": true, "seconds": 0.004}]},
{"column": "socket", "part": "measure", "turn": 0, "others": [], "results": [
 {"operation": "all_reduce", "type": "float32", "bytes": 4096, "right": true, "seconds": 0.00005}]},
{"column": "mrd", "part": "train", "turn": 0, "others": [], "results": [{"loss": "0.25"}]},
{"column": "mrd", "part": "die", "turn": 0, "others": [], "results": [{"told_after": 8.25, "told": "gone"}]}]}
JSON
python3 "$tools/nccl.py" table results.json >out
says '| operation | type | bytes | mrd | NET/Socket |'
says '| all_reduce | float32 | 4 KiB | 200 us | 50 us |'
says '| all_reduce | float32 | 16 MiB | 2.10 | - |'
says 'Loss after 100 steps of training over mrd: 0.25.'
says 'A killed rank over mrd: the other one is told after 8.2 s.'
! grep -q 'Some jobs failed' out || fail 'all jobs are right'
sed 's/"right": true, "seconds": 0.00005/"right": false, "seconds": 0.00005/' results.json >wrong.json
python3 "$tools/nccl.py" table wrong.json >out
says 'Some jobs failed, or their results were wrong.'
python3 "$tools/nccl.py" bars results.json >out
says '"all reduce" 2.097 NaN NaN NaN'

for python in python3 /usr/bin/python3; do
    "$python" -c 'import torch' 2>/dev/null || continue
    PYTHON=$python "$tools/nccl.sh" --cpu --quick -n 1 -k kept >out 2>err || fail "over gloo: $(<err)"
    (($(grep -c '^Loss after 100 steps' out) == 3)) || fail 'three networks train'
    (($(grep -c '^A killed rank' out) == 2)) || fail 'a rank is killed twice'
    (($(jq '[.jobs[].results[] | select(.right)] | length' kept/nccl.json) >= 48)) || fail 'results'
    break
done
