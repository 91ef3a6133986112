# SPDX-License-Identifier: BSD-3-Clause
"""Runs benchmarks one at a time, in the settings that run-all and paper-figure
measure in, and tells what they ran on."""
import argparse
import datetime
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile

import bench_results

TOP = pathlib.Path(__file__).resolve().parent.parent
CARD = {"UCX_CXI_TRIG_PROVIDER": "cxiemu", "FI_CXIEMU_MODE": "fast"}
# Ways of MPI: UCX's transports, and the rest of the environment. Lane direct
# runs beside the first two, as its queues need pml/ucx.
BASELINES = {
    "posix": ("posix,self", {}),
    "cma": ("posix,cma,self", {}),
    "ob1": ("posix,self", {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "vader,self",
                           "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}),
}
# The same of ranks on several nodes: the first one runs beside what is compared
NODE_BASELINES = {
    "ucx": (os.environ.get("UCX_TLS", "cxi_trig,sm,self"), {}),
    "ofi": ("cxi_trig,sm,self", {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi"}),
}
# What each setting puts into the environment, by its name
SETTINGS = {
    **{f"direct-{way}": {"UCX_TLS": BASELINES[way][0],
                         "UCX_ST_LANES": "direct"}
       for way in bench_results.BESIDE},
    "ob1": {"UCX_TLS": BASELINES["ob1"][0], **BASELINES["ob1"][1]},
    # The card that is there between nodes, shared memory within one
    "nodes-ucx": {"UCX_TLS": NODE_BASELINES["ucx"][0]},
    "ofi": {"UCX_TLS": NODE_BASELINES["ofi"][0], **NODE_BASELINES["ofi"][1]},
    "trig": {"UCX_TLS": "cxi_trig,self", "UCX_ST_LANES": "trig", **CARD},
    # Memory is registered each time
    "register": {"UCX_TLS": "cxi_trig,self", "UCX_ST_LANES": "trig", **CARD,
                 "UCX_CXI_TRIG_RCACHE": "n", "UCX_RCACHE_ENABLE": "n"},
    # st_cost makes more pairs than the counters of one card are for
    "card": {"UCX_TLS": "cxi_trig,self", **CARD, "FI_CXIEMU_SERVICE": "own"},
    "shm": {"UCX_TLS": "posix,self", "UCX_MM_ERROR_HANDLING": "y"},
    "tcp": {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"},
    # Processes share the entries of one card, which may be another provider's
    "strict": {"UCX_TLS": "cxi_trig,self", "UCX_ST_LANES": "trig",
               "UCX_CXI_TRIG_PROVIDER": os.environ.get("UCX_CXI_TRIG_PROVIDER",
                                                       "cxiemu"),
               "FI_CXIEMU_MODE": "strict"},
}
# That have --stream
ON_GPU = ("st_pingpong", "st_faces", "st_life", "st_wrt")
# That have --memory, and whose it can be
MEMORIES = {"st_pingpong": ("malloc", "mpi", "device", "host"),
            "st_faces": ("malloc", "mpi", "device", "host"),
            "st_mbw": ("malloc", "mpi")}
# Kept on the loopback device, as the tests are; not where there are several nodes
LOOPBACK = {"OMPI_MCA_oob_tcp_if_include": "lo",
            "OMPI_MCA_btl_tcp_if_include": "lo",
            "PMIX_MCA_ptl_tcp_if_include": "lo"}
# Seconds for mpirun to end what it has started
GRACE = 10
# Of the environment, what the file tells
PREFIXES = ("UCX_", "FI_", "OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_")


class Failed(Exception):
    """Nothing can be measured."""


class Step:
    """One run of one benchmark."""

    def __init__(self, bench, ranks, args, setting="card", **where):
        self.bench = bench
        self.ranks = ranks
        self.args = args.split()
        self.setting = setting
        self.memory = where.get("memory")
        # On lane trig: the only kind of sends, whose operations are counted
        self.kind = where.get("kind")
        # Of a figure: the value of the option that varies
        self.each = where.get("each", "")
        # More of the environment; and whether threads may carry uses out
        self.more = where.get("more", {})
        self.is_proxied = where.get("is_proxied", False)
        # Those with MPI
        lane, _, mpi = setting.rpartition("-")
        self.lane = "trig" if setting == "trig" else lane or None
        self.mpi = mpi if mpi in {**BASELINES, **NODE_BASELINES} else None

    def name(self):
        """Which it is, in words."""
        parts = [self.bench, self.setting, self.kind, self.memory]
        if self.ranks > 0:
            parts.append(f"{self.ranks} ranks")
        return ", ".join(filter(None, parts))


def parse_positive(text):
    """A number above 0."""
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return int(text)


def parse_size(text):
    """As the benchmarks read it."""
    factor = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(text[-1:], 1)
    digits = text if factor == 1 else text[:-1]
    if not (digits.isascii() and digits.isdigit()) or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size")
    return int(digits) * factor


def add_options(parser):
    """Those of where and how programs run."""
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path,
                        default=os.environ.get("ST_BUILDDIR", TOP / "build"),
                        help="build folder (ST_BUILDDIR, or build)")
    parser.add_argument("--limit", metavar="SECONDS", type=parse_positive,
                        default=3600, help="for a benchmark that hangs "
                        "(%(default)s)")
    parser.add_argument("--launch", metavar="COMMAND", type=shlex.split,
                        help="what starts ranks of MPI in mpirun's place: -n "
                        "and how many follow (srun --mpi=pmix)")
    parser.add_argument("--hosts", metavar="HOST,HOST", type=lambda text:
                        text.split(","), help="start ranks on these by "
                        "OpenMPI's mpirun; they need this folder and that of "
                        "the output")
    parser.add_argument("--nodes", metavar="N", type=parse_positive,
                        help="how many the launcher starts ranks on (hosts; "
                        "with --launch those of Slurm's job; else 1)")
    parser.add_argument("--per-node", metavar="N", type=parse_positive,
                        help="most ranks of a node (spread over all nodes)")
    parser.add_argument("--stream", choices=("hip", "cuda"),
                        help="streams of a GPU, with the messages in its "
                        f"memory, too; only {', '.join(ON_GPU)}")
    parser.add_argument("--memory", choices=("malloc", "mpi", "device", "host"),
                        help="whose the messages are, where a benchmark has the "
                        "choice")
    parser.add_argument("--quick", action="store_true",
                        help="only see that everything works: the figures "
                        "are no results")


def finish_options(parser, options):
    """Fills in what was not given."""
    if options.hosts and options.launch:
        parser.error("--hosts and --launch exclude each other")
    jobs = os.environ.get("SLURM_JOB_NUM_NODES", "1") if options.launch else "1"
    options.nodes = options.nodes or len(options.hosts or []) or int(jobs)
    options.build = pathlib.Path(options.build).resolve()


def is_srun(options):
    """Slurm's starts the ranks."""
    return bool(options.launch) and os.path.basename(options.launch[0]) == "srun"


def check_built(options, programs):
    """All programs are there, and what starts them."""
    programs = [options.build / "bench" / name for name in programs]
    for program in [TOP / "contrib" / "ucx-st-run"] + programs:
        if not os.access(program, os.X_OK):
            raise Failed(f"{program} is missing: build it first (benchmarks "
                         "of MPI need OpenMPI), or leave it out by --bench")


def find_card(options):
    """The provider that lane trig takes here, in words: a card if there is one,
    else the emulated one."""
    words = [str(TOP / "contrib" / "ucx-st-run"), "-q", *launcher(options, 0),
             str(options.build / "src" / "tools" / "ucx_st_info"), "-d"]
    output, _ = wait_for(words, {**os.environ,
                                 "ST_BUILDDIR": str(options.build)},
                         options.limit)
    found = re.search(r"provider: (\S+.*)", output)
    if found is None:
        raise Failed(f"lane trig has no card here:\n{output}")
    if "(emulated)" not in found[1]:
        for name in ("trig", "register", "card", "strict"):
            SETTINGS[name]["UCX_CXI_TRIG_PROVIDER"] = found[1].split()[0]
    return found[1]


def load():
    """Of the last minute."""
    return round(os.getloadavg()[0], 2)


def clock_ticks():
    """Of all processors since the start: those in all, and those that the
    hypervisor gave to others."""
    with open("/proc/stat", encoding="utf-8") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[7]


def stop(process):
    """Ends it with all that it has started: mpirun ends its ranks."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def wait_for(command, environment, limit):
    """Runs it in a process group of its own. Returns its output, and why it
    failed or None."""
    with subprocess.Popen(command, env=environment, text=True, cwd="/",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace",
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except BaseException as error:
            stop(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return "", f"did not end within {limit} s"
    if process.returncode != 0:
        return output, f"status {process.returncode}"
    return output, None


def usable_cores():
    """Of this node, that this process may use."""
    return len(os.sched_getaffinity(0))


def launcher(options, ranks):
    """What starts so many; for 0, a program without MPI: nothing, or Slurm, which
    hands out the card. OpenMPI binds ranks to cores by itself where there are
    enough; where there are not, streams would gather on one core for a whole
    trial, as they never sleep long enough to be moved."""
    if ranks == 0:
        return [*options.launch, "-N", "1", "-n", "1"] if is_srun(options) else []
    command = [*(options.launch or ["mpirun"]), "-n", str(ranks)]
    if options.nodes > 1 or options.per_node:
        count = min(options.per_node or -(-ranks // options.nodes), ranks)
        if is_srun(options):
            return command + ["-N", str(-(-ranks // count)),
                              f"--ntasks-per-node={count}"]
        if options.hosts:
            command += ["--host", ",".join(f"{host}:{count}"
                                           for host in options.hosts)]
        command += ["--map-by", f"ppr:{count}:node:oversubscribe"]
    elif not options.launch and ranks > usable_cores():
        command += ["--bind-to", "core:overload-allowed"]
    return command


def run_step(options, step, number):
    """Runs it; returns what the file says of it."""
    environment = {**(LOOPBACK if options.nodes == 1 else {}), **{name: value for name, value
                                  in os.environ.items()
                                  if name.startswith(PREFIXES)},
                   **SETTINGS[step.setting], **step.more}
    program = str(options.build / "bench" / step.bench)
    launch = launcher(options, step.ranks)
    args = list(step.args)
    if options.stream and step.bench in ON_GPU:
        args += ["--stream", options.stream]
    if options.memory in MEMORIES.get(step.bench, ()) and "--memory" not in args:
        args += ["--memory", options.memory]
    record = {"bench": step.bench, "setting": step.setting,
              "lane": step.lane, "mpi": step.mpi, "round": number,
              "ranks": step.ranks or None, "memory": step.memory,
              "kind": step.kind, "each": step.each,
              "launcher": launch, "arguments": args,
              "environment": environment,
              "load_before": load()}
    ticks = clock_ticks()
    shared = None
    if options.launch or options.hosts: # Rank 0 may be on another node
        shared = options.output.resolve().parent
        shared.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        report = pathlib.Path(folder, "report.json")
        start = datetime.datetime.now()
        output, error = wait_for(
            [str(TOP / "contrib" / "ucx-st-run"), "-q", *launch,
             program, *args, "--json", str(report)],
            {**os.environ, **environment, "ST_BUILDDIR": str(options.build)},
            options.limit)
        record["seconds"] = round((datetime.datetime.now() -
                                   start).total_seconds(), 1)
        record["load_after"] = load()
        total, stolen = (after - before for before, after
                         in zip(ticks, clock_ticks()))
        record["stolen_percent"] = round(100 * stolen / max(total, 1), 2)
        try:
            record["report"] = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            error = error or "wrote no report"
        if step.is_proxied and record.get("report", {}).get(
                "operations_proxied"):
            # It says so by its status. Its data is judged by itself.
            error = None if all(row["verified"] for row in
                                record["report"]["rows"]) else error
    if error is not None:
        record["error"] = error
        print(f"{os.path.basename(sys.argv[0])}: {step.name()}: {error}\n{output}", file=sys.stderr)
    return record


def tell_machine():
    """What everything ran on."""
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"cpu": model, "cores": os.cpu_count(),
            "usable_cores": usable_cores(),
            "kernel": os.uname().release}


def git(*args):
    """Output of a command of git; None where there is none."""
    try:
        return subprocess.run(["git", "-C", str(TOP), *args], check=True,
                              stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def tell_commit():
    """Of the sources, with "+" if they were changed since."""
    commit = git("rev-parse", "HEAD")
    if commit is None:
        return "unknown"
    return commit + ("+" if git("status", "--porcelain", "-uno") else "")


def take_turn():
    """Two runs that measure would measure each other: returns what is to stay
    open until the last benchmark has ended. A name of the machine's, which no
    process leaves behind."""
    turn = socket.socket(socket.AF_UNIX)
    try:
        turn.bind("\0ucx-st-bench")
    except OSError:
        raise Failed("another one measures on this machine") from None
    return turn


def measure(options, head, rounds):
    """Runs steps, each with the number of its round; returns the content of a
    file, which begins with the head."""
    turn = None if options.quick else take_turn()
    content = {**head, "commit": tell_commit(),
               "date": datetime.datetime.now().astimezone().isoformat(
                   timespec="seconds"),
               "machine": tell_machine(),
               "stream": options.stream or "host", "quick": options.quick,
               "nodes": options.nodes, "rounds": options.runs,
               "settings": SETTINGS, "runs": []}
    try:
        for place, (number, step) in enumerate(rounds, 1):
            print(f"[{place}/{len(rounds)}] {step.name()}, run {number}",
                  flush=True)
            content["runs"].append(run_step(options, step, number))
    except KeyboardInterrupt:
        if not content["runs"]:
            raise Failed("interrupted before anything was measured") from None
        content["interrupted"] = True
    if turn is not None:
        turn.close()
    return content


def read(path, kind):
    """What an earlier call wrote, of this format."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != kind:
            raise ValueError
    except OSError as error:
        raise Failed(str(error)) from None
    except (ValueError, KeyError, TypeError):
        raise Failed(f"{path} is not what {os.path.basename(sys.argv[0])} "
                     "writes") from None
    return content
