#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause

set -euo pipefail

usage()
{
    cat <<'USAGE'
PyTorch over mrd's NCCL plugin beside NCCL's own TCP transport (NET/Socket), by default and with 4 threads and 4 sockets
each: collective operations of two ranks on the GPUs of this machine, over its loopback; with 1% of the packets lost; two
communicators at a time; a training of 100 steps, whose loss must be the same; and a rank that is killed. Every result
is checked.

usage: nccl.sh [-n TURNS] [-T SECONDS] [-k DIRECTORY] [-o OUT.svg] [--page FILE] [--columns A,B] [--quick] [--cpu]

  -n TURNS       turns, of which the medians count (default 3)
  -T SECONDS     for all jobs; those for which no time is left are named, and have a "-" (default 600)
  -k DIRECTORY   keep what was measured, as nccl.json, and what the ranks printed
  -o OUT.svg     draw the largest size of each operation, by gnuplot
  --page FILE    replace the table in FILE that stands between the comments <!-- a GPU: ... --> and <!-- /a GPU -->
  --columns A,B  of mrd, socket, socket_4x4, mrd_loss (default: all)
  --quick        small sizes, few repetitions
  --cpu          without a GPU: PyTorch's gloo takes NCCL's place, which shows only that this script works

Needs Python with PyTorch (PYTHON names another than python3), and an NVIDIA GPU; two ranks share one. Builds the plugin
into build/, unless MRD_NCCL_PLUGIN names libnccl-net-mrd.so. MRD_... and NCCL_... of the environment reach the ranks.
Exit status 1 if a job failed, or a result was wrong.
USAGE
}

readonly caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/common.sh
source tools/common.sh
# shellcheck source=tools/plot.sh
source tools/plot.sh

# A file of the caller's.
named()
{
    (cd "$caller" && realpath -m -- "$1")
}

turns=3 total=600 keep='' out='' page='' options=() cpu=no
python=${PYTHON-python3}

while (($# > 0)); do
    case $1 in
    -n | -T | -k | -o | --page | --columns)
        (($# > 1)) || { usage >&2; exit 2; }
        case $1 in
        -n) turns=$2 ;;
        -T) total=$2 ;;
        -k) keep=$(named "$2") ;;
        -o) out=$(named "$2") ;;
        --page) page=$(named "$2") ;;
        --columns) options+=(--columns "$2") ;;
        esac
        shift
        ;;
    --quick) options+=(--quick) ;;
    --cpu) cpu=yes options+=(--device cpu) ;;
    -h | --help) usage; exit ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done
for number in "$turns" "$total"; do
    [[ $number =~ ^[1-9][0-9]{0,5}$ ]] || { die_status=2; die "$number is not a number of 1 to 999999"; }
done
need "$python"
[[ -z $out ]] || need gnuplot
"$python" -c 'import torch' 2>/dev/null || die "$python has no PyTorch"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

plugin=${MRD_NCCL_PLUGIN-}
if [[ -z $plugin && $cpu == no ]]; then
    build "$scratch" mrd_nccl
    plugin=$PWD/$(find build -name libnccl-net-mrd.so -print -quit)
fi
[[ -z $plugin ]] || plugin=$(named "$plugin")
[[ -z $plugin || -r $plugin ]] || die "no $plugin"

if [[ -n $keep ]]; then
    mkdir -p "$keep"
    options+=(--logs "$keep")
fi
status=0
"$python" tools/nccl.py measure "$scratch/nccl.json" --turns "$turns" --total "$total" \
    ${plugin:+--plugin "$plugin"} "${options[@]}" || status=1
[[ -e $scratch/nccl.json ]] || exit 1
[[ -z $keep ]] || cp "$scratch/nccl.json" "$keep"

"$python" tools/nccl.py table "$scratch/nccl.json" >"$scratch/table.md"
cat "$scratch/table.md"
[[ -z $page ]] || put_table 'a GPU' "$scratch/table.md" "$page"
if [[ -n $out ]]; then
    "$python" tools/nccl.py bars "$scratch/nccl.json" >"$scratch/bars"
    plot_draw "$out" 900 360 <<PLOT
set style data histograms
set style histogram clustered gap 1.5
set yrange [0:*]
set ylabel "GB/s"
faint = "fs solid 0.55 noborder"
plot "$scratch/bars" using 2:xtic(1) lc rgb mrd_colour title "mrd", \
     "" using 5 lc rgb mrd_colour @faint title "mrd, 1% lost", \
     "" using 3 lc rgb tcp_colour title "NET/Socket", \
     "" using 4 lc rgb tcp_colour @faint title "NET/Socket, 4 threads x 4 sockets"
PLOT
fi
exit $status
