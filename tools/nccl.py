#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two PyTorch ranks and what their collective operations cost, for tools/nccl.sh, which says more.

nccl.py measure OUT.json [--plugin FILE] [--turns N] [--columns A,B] [--total SECONDS] [--each SECONDS] [--quick]
                         [--device cuda|cpu] [--logs DIRECTORY]
nccl.py table OUT.json           the table, in Markdown
nccl.py bars OUT.json            lines for gnuplot: a label, and a figure for each column
"""
import argparse
import json
import os
import re
import signal
import statistics
import sys
import tempfile
import time

KIB, MIB = 1 << 10, 1 << 20
RANKS = 2
# What the ranks of a column find in their environment. A rank takes the other one for another host's, so that NCCL has
# nothing but the network, also where both share a GPU.
COMMON = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_IB_DISABLE": "1", "NCCL_DEBUG": "INFO",
          "NCCL_DEBUG_SUBSYS": "INIT,NET"}
SOCKET = {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none"}
COLUMNS = {
    "mrd": ("mrd", {}),
    "socket": ("NET/Socket", SOCKET),
    "socket_4x4": ("NET/Socket, 4 threads x 4 sockets",
                   {**SOCKET, "NCCL_SOCKET_NTHREADS": "4", "NCCL_NSOCKS_PERTHREAD": "4"}),
    "mrd_loss": ("mrd, 1% lost", {"MRD_NCCL_DROP_PPM": "10000"}),
}
# Bytes, and how often an operation of so many is repeated in a turn.
SIZES = [(4 * KIB, 50), (64 * KIB, 40), (MIB, 20), (16 * MIB, 5), (256 * MIB, 2)]
QUICK_SIZES = [(4 * KIB, 5), (MIB, 3)]
OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv"]
TYPES = ["float32", "float16"]
# The log of NCCL must show it: a plugin that fails is passed over without a word.
PROOF = {"mrd": "via NET/MRD", "mrd_loss": "via NET/MRD", "socket": "via NET/Socket", "socket_4x4": "via NET/Socket"}


def human(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


# ------------------------------------------------------------------------------------------ one rank


class Rank:
    """Runs in a process of its own; tells its results as lines of JSON."""

    def __init__(self, options, rank, store, out):
        import torch
        import torch.distributed as dist

        self.torch, self.dist, self.options, self.rank, self.out = torch, dist, options, rank, out
        self.cuda = options.device == "cuda"
        if self.cuda:
            torch.cuda.set_device(rank % torch.cuda.device_count())
        dist.init_process_group("nccl" if self.cuda else "gloo", init_method=f"file://{store}", rank=rank,
                                world_size=RANKS)
        self.warm = torch.ones(1024, device=options.device)
        dist.all_reduce(self.warm)
        self.wait()

    def tell(self, **result):
        self.out.write(json.dumps(result) + "\n")
        self.out.flush()

    def wait(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def pattern(self, n, rank, kind, salt=0):
        """Small whole numbers, which each type holds exactly, and so does their sum."""
        numbers = self.torch.arange(n, device=self.options.device, dtype=self.torch.int32)
        return ((numbers * (2 * rank + 3) + 7 * rank + salt) % 251).to(getattr(self.torch, kind))

    def prepare(self, name, n, kind):
        """An operation of n elements, where its result goes, and what that must be."""
        torch, dist, rank, other = self.torch, self.dist, self.rank, 1 - self.rank
        mine, theirs = self.pattern(n, rank, kind), self.pattern(n, other, kind)
        both = [self.pattern(n, r, kind) for r in range(RANKS)]
        half = n // RANKS
        if name == "all_reduce":
            return lambda: dist.all_reduce(mine), mine, both[0] + both[1]
        if name == "all_gather":
            to = torch.empty(RANKS * half, device=mine.device, dtype=mine.dtype)
            return (lambda: dist.all_gather_into_tensor(to, mine[:half]), to,
                    torch.cat([both[0][:half], both[1][:half]]))
        if name == "reduce_scatter":
            to = torch.empty(half, device=mine.device, dtype=mine.dtype)
            part = slice(rank * half, (rank + 1) * half)
            return lambda: dist.reduce_scatter_tensor(to, mine), to, both[0][part] + both[1][part]
        if name == "broadcast":
            return lambda: dist.broadcast(mine, 1), mine, both[1]
        if name == "all_to_all":
            to = torch.empty(n, device=mine.device, dtype=mine.dtype)
            part = slice(rank * half, (rank + 1) * half)
            return lambda: dist.all_to_all_single(to, mine), to, torch.cat([both[0][part], both[1][part]])
        to = torch.empty(n, device=mine.device, dtype=mine.dtype)

        def exchange():
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, other),
                                                dist.P2POp(dist.irecv, to, other)]):
                work.wait()
        return exchange, to, theirs

    def measure(self, name, size, kind, repetitions):
        n = size // (4 if kind == "float32" else 2)
        try:
            run, result, expected = self.prepare(name, n, kind)
            run()
            self.wait()
        except (RuntimeError, ValueError, AttributeError) as error:  # gloo has not all of them
            if self.cuda:
                raise
            self.tell(operation=name, bytes=size, type=kind, missing=str(error)[:100])
            return
        right = bool(self.torch.equal(result, expected))
        self.dist.all_reduce(self.warm)
        self.wait()
        begin = time.monotonic()
        for _ in range(repetitions):
            run()
        self.wait()
        self.tell(operation=name, bytes=size, type=kind, right=right,
                  seconds=(time.monotonic() - begin) / repetitions)

    def two_communicators(self):
        """Both at a time, each with data of its own."""
        torch, dist = self.torch, self.dist
        groups = [dist.new_group(list(range(RANKS))) for _ in range(2)]
        n = (MIB if self.options.quick else 16 * MIB) // 4
        right = True
        for turn in range(3):
            tensors = [self.pattern(n, self.rank, "float32", 10 * turn + g) for g in range(2)]
            works = [dist.all_reduce(t, group=g, async_op=True) for t, g in zip(tensors, groups)]
            for work in works:
                work.wait()
            self.wait()
            for g in range(2):
                right &= bool(torch.equal(tensors[g], self.pattern(n, 0, "float32", 10 * turn + g) +
                                          self.pattern(n, 1, "float32", 10 * turn + g)))
        self.tell(two_communicators=right)

    def train(self):
        """A small model, a hundred steps: its loss must be the same over each network."""
        torch = self.torch
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 8))
        model = torch.nn.parallel.DistributedDataParallel(model.to(self.options.device))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        torch.manual_seed(2 + self.rank)
        for _ in range(100):
            x = torch.randn(32, 64).to(self.options.device)
            loss = ((model(x) - x[:, :8]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.dist.all_reduce(loss := loss.detach())
        self.tell(loss=f"{loss.item() / RANKS:.9g}")

    def die(self):
        """Rank 1 is killed in the midst of it: how long until the other one is told?"""
        x = self.torch.ones(4 * MIB, device=self.options.device)
        begin = time.monotonic()
        try:
            for turn in range(1 << 30):
                if turn == 3:
                    begin = time.monotonic()
                    if self.rank:
                        os.kill(os.getpid(), signal.SIGKILL)
                self.dist.all_reduce(x)
                self.wait()
        except RuntimeError as error:
            self.tell(told_after=time.monotonic() - begin, told=str(error).splitlines()[0][:200])

    def run(self, part):
        if part == "die":
            self.die()
            os._exit(0)
        if part == "train":
            self.train()
            return
        for name in OPERATIONS:
            for kind in TYPES:
                for size, repetitions in QUICK_SIZES if self.options.quick else SIZES:
                    self.measure(name, size, kind, repetitions)
        self.two_communicators()


# ----------------------------------------------------------------------------------------- both of them


def start(options, column, part, rank, directory):
    """Forks a rank. torch is there already: to import it takes longer than the measurement."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        log = os.open(f"{directory}/log{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.update(COMMON)
        os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
        if column.startswith("mrd"):
            os.environ.update({"NCCL_NET": "MRD", "NCCL_NET_PLUGIN": options.plugin or "mrd"})
        os.environ.update(COLUMNS[column][1])
        os.environ["NCCL_HOSTID"] = f"host{rank}"
        os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"  # the error comes to the rank, not to a watchdog
        os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1" if part == "die" else "0"
        signal.alarm(int(options.each) + 5)
        with open(f"{directory}/rank{rank}", "w", encoding="utf-8") as out:
            process = Rank(options, rank, f"{directory}/store", out)
            process.run(part)
            process.dist.destroy_process_group()
        code = 0
    except BaseException as error:  # whatever it is, the log has it, and the rank ends
        print("nccl.py:", repr(error), flush=True)
    os._exit(code)


def wait_for(pids, seconds):
    """Their exit statuses; who takes longer is killed."""
    statuses, end = {}, time.monotonic() + seconds
    while len(statuses) < len(pids):
        for pid in pids:
            if pid not in statuses:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    statuses[pid] = os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            for pid in pids:
                if pid not in statuses:
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return [statuses[pid] for pid in pids]


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def run(options, column, part, turn, left):
    """One job of two ranks. Returns what it told, with the reason if it failed."""
    with tempfile.TemporaryDirectory(prefix="nccl") as directory:
        pids = [start(options, column, part, rank, directory) for rank in range(RANKS)]
        codes = wait_for(pids, min(options.each, left))
        logs = [read(f"{directory}/log{rank}") for rank in range(RANKS)]
        told = [[json.loads(line) for line in read(f"{directory}/rank{rank}").splitlines() if line.endswith("}")]
                for rank in range(RANKS)]
        if options.logs:
            for rank in range(RANKS):
                with open(f"{options.logs}/{column}-{part}-{turn}-{rank}.log", "w", encoding="utf-8") as file:
                    file.write(logs[rank])
    job = {"column": column, "part": part, "turn": turn, "results": told[0], "others": told[1], "codes": codes}
    if options.device == "cuda" and PROOF[column] not in logs[0]:
        job["failed"] = f"the log does not say \"{PROOF[column]}\""
    expected = [0, -signal.SIGKILL] if part == "die" else [0, 0]
    if codes != expected:
        job["failed"] = f"the ranks end with {codes}: " + " ".join(
            line for log in logs for line in log.splitlines() if "nccl.py:" in line or "NET/MRD : " in line)[:300]
    if part == "die":
        job["log_names_peer"] = bool(re.search(r"NET/MRD.*\d+\.\d+\.\d+\.\d+:\d+", logs[0]))
    return job


def measure(options):
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # whoever asks CUDA itself cannot fork any more
    import torch

    begin = time.monotonic()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("nccl.py: PyTorch finds no GPU")
    chosen = options.columns.split(",") if options.columns else list(COLUMNS)
    for column in chosen:
        if column not in COLUMNS:
            sys.exit(f"nccl.py: no column {column}: {', '.join(COLUMNS)}")
    plan = [(column, "measure", turn) for turn in range(options.turns) for column in chosen]
    plan += [(column, "train", 0) for column in chosen if column != "socket_4x4"]
    plan += [(column, "die", 0) for column in chosen if column in ("mrd", "socket")]
    jobs = []
    for column, part, turn in plan:
        left = options.total - (time.monotonic() - begin)
        if left < 10:
            print(f"nccl.py: no time for {column}, {part}", file=sys.stderr)
            continue
        jobs.append(run(options, column, part, turn, left))
        print(f"{column}, {part}, turn {turn}: {jobs[-1].get('failed', 'done')}", file=sys.stderr)
    machine = {"torch": torch.__version__, "processors": os.cpu_count()}
    if options.device == "cuda":
        # Asked last: this process must not use the GPU before it forks.
        machine["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        machine["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    with open(options.file, "w", encoding="utf-8") as file:
        json.dump({"machine": machine, "turns": options.turns, "jobs": jobs}, file, indent=1)
        file.write("\n")
    bad = [job for job in jobs if "failed" in job or not is_right(job)]
    for job in bad:
        print(f"{job['column']}, {job['part']}: {job.get('failed', 'a result is wrong')}", file=sys.stderr)
    losses = {result["loss"] for job in jobs for result in job["results"] if "loss" in result}
    if len(losses) > 1:
        print("the losses of training differ:", *sorted(losses), file=sys.stderr)
    return 1 if bad or len(losses) > 1 else 0


# ------------------------------------------------------------------------------------------ the table


def is_right(job):
    told = job["results"] + job["others"]
    return all(result.get("right", True) and result.get("two_communicators", True) for result in told)


def medians(data):
    """Seconds by operation, type, bytes and column."""
    seconds = {}
    for job in data["jobs"]:
        for result in job["results"]:
            if "seconds" in result:
                key = (result["operation"], result["type"], result["bytes"], job["column"])
                seconds.setdefault(key, []).append(result["seconds"])
    return {key: statistics.median(values) for key, values in seconds.items()}


def cell(size, seconds):
    if seconds is None:
        return "-"
    return f"{seconds * 1e6:.0f} us" if size < MIB else f"{size / seconds / 1e9:.2f}"


def table(data):
    found = medians(data)
    columns = [c for c in COLUMNS if any(job["column"] == c for job in data["jobs"])]
    machine = data["machine"]
    gpus = machine.get("gpus")
    where = " and ".join(sorted(set(gpus))) if gpus else "no GPU, over gloo, so that the columns are alike"
    print(f"Two ranks on {where}, {machine['processors']} processors, "
          f"PyTorch {machine['torch']}{', NCCL ' + machine['nccl'] if 'nccl' in machine else ''}. GB/s of the "
          f"operation, for less than 1 MiB microseconds; medians of {data['turns']} turns.\n")
    print("| operation | type | bytes | " + " | ".join(COLUMNS[c][0] for c in columns) + " |")
    print("|---|---|---:|" + "---:|" * len(columns))
    for operation in OPERATIONS:
        for kind in TYPES:
            for size in sorted({key[2] for key in found if key[:2] == (operation, kind)}):
                cells = [cell(size, found.get((operation, kind, size, column))) for column in columns]
                print(f"| {operation} | {kind} | {human(size)} | " + " | ".join(cells) + " |")
    print()
    for job in data["jobs"]:
        for result in job["results"]:
            label = COLUMNS[job["column"]][0]
            if "loss" in result:
                print(f"Loss after 100 steps of training over {label}: {result['loss']}.")
            if "told_after" in result:
                print(f"A killed rank over {label}: the other one is told after {result['told_after']:.1f} s.")
    if not all(is_right(job) and "failed" not in job for job in data["jobs"]):
        print("Some jobs failed, or their results were wrong.")


def bars(data):
    found = medians(data)
    size = max(key[2] for key in found)
    for operation in OPERATIONS:
        figures = [found.get((operation, "float32", size, column)) for column in COLUMNS]
        print(f"\"{operation.replace('_', ' ')}\"",
              *(f"{size / seconds / 1e9:.3f}" if seconds else "NaN" for seconds in figures))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["measure", "table", "bars"])
    parser.add_argument("file")
    parser.add_argument("--plugin", help="libnccl-net-mrd.so; default: where ld.so finds it")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--columns", help=f"of {','.join(COLUMNS)}; default: all")
    parser.add_argument("--total", type=float, default=600, help="seconds for all jobs")
    parser.add_argument("--each", type=float, default=60, help="seconds for a job")
    parser.add_argument("--quick", action="store_true", help="few sizes, few repetitions")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda",
                        help="cpu: PyTorch's gloo in place of NCCL, to try this program without a GPU")
    parser.add_argument("--logs", help="keep what the ranks print there")
    options = parser.parse_args()
    if options.command == "measure":
        return measure(options)
    data = json.loads(read(options.file))
    (table if options.command == "table" else bars)(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
