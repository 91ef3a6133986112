#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests and benchmarks of the pack that it lies in, on streams of each runtime
of GPUs that this machine has: contrib/gpu-check.sh --run calls it."""
import argparse
import fnmatch
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = TOP + "/build"
STANDIN = BUILD + "/test/standin"
sys.path.insert(0, TOP + "/test")
import run  # pylint: disable=wrong-import-position


def die(text, status=1):
    print(f"gpu-check.sh: {text}", file=sys.stderr)
    sys.exit(status)


def number(version):
    return [int(part) for part in version.split(".")]


def output_of(*command, **environment):
    """What a command prints; nothing if there is no such command."""
    try:
        return subprocess.run(command, env={**os.environ, **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


# --- The pack

def check_libc(facts):
    """Refuses a machine that the pack is not for; returns its libc's version."""
    name = "CS_GNU_LIBC_VERSION"
    libc = os.confstr(name).split()[1] if name in os.confstr_names else ""
    if facts["machine"] != platform.machine():
        die(f"this pack is for {facts['machine']}, and the machine is "
            f"{platform.machine()}")
    if number(libc or "0") < number(facts["glibc"]):
        die(f"this pack needs glibc {facts['glibc']} or later, and the machine has "
            f"{libc or 'another libc'}: make the pack on a system with that glibc "
            "or an older one, or run it in a container of Debian 12")
    return libc


def link_shared(libc):
    """Takes libraries out of lib-shared/ that the machine does not have."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    known = output_of(shutil.which("ldconfig", path=path) or "ldconfig", "-p")
    for name in os.listdir(TOP + "/lib-shared"):
        if name + " " in known:
            continue
        with open(f"{TOP}/lib-shared/{name}", "rb") as file:
            needed = re.findall(r"GLIBC_(2\.\d+)", file.read().decode("latin-1"))
        newest = max(needed, key=number, default="2.0")
        if number(newest) > number(libc):
            die(f"{name} is missing, and the pack's needs glibc {newest}: install "
                "the package that has it")
        if not os.path.lexists(f"{TOP}/lib/{name}"):
            os.symlink(f"../lib-shared/{name}", f"{TOP}/lib/{name}")


def use_pack():
    """Has the pack's libraries and its OpenMPI be found."""
    mpi = TOP + "/mpi"
    folders = [f"{BUILD}/{name}/.libs" for name in
               ("contrib/openmpi/mpix_queue", "src/ucp/st", "src/ucs_ext",
                "src/uct/cxi_trig")]
    folders += filter(None, [TOP + "/lib", os.environ.get("LD_LIBRARY_PATH")])
    os.environ.update(
        LD_LIBRARY_PATH=":".join(folders), PATH=f"{mpi}/bin:{os.environ['PATH']}",
        OPAL_PREFIX=mpi, OPAL_BINDIR=mpi + "/bin", OPAL_LIBDIR=TOP + "/lib",
        OPAL_PKGLIBDIR=mpi + "/lib/plugins", OPAL_PKGDATADIR=mpi + "/share",
        OPAL_SYSCONFDIR=mpi + "/etc", PMIX_INSTALL_PREFIX=mpi,
        PMIX_MCA_mca_base_component_path=mpi + "/pmix",
        # Parts that the machine's own PMIx has are found, too
        PMIX_MCA_mca_base_component_show_load_errors="0",
        PMIX_MCA_pcompress_base_silence_warning="1",
        # All ranks are here: what would reach other nodes is asked for, never used
        OMPI_MCA_plm_rsh_agent="bash", UCX_MODULE_DIR=TOP + "/lib/ucx")


# --- A run

def ask_streams(*folders):
    """What ucx_st_info says of streams of the runtimes."""
    return output_of(BUILD + "/src/tools/ucx_st_info", "-s", LD_LIBRARY_PATH=":".join(
        [*folders, os.environ["LD_LIBRARY_PATH"]]))


def find_streams(standin):
    """The kinds of streams of plan.ini that can be used here, and what the
    runtimes are."""
    if standin:
        text = ask_streams(STANDIN)
        if f"library: {STANDIN}/" not in text:
            die(f"the pack has no stand-ins, or they do not work: {text}")
        return ["hip"] if standin == "hip" else ["cuda", "forward"], text
    text = ask_streams()
    streams = [name for name in ("hip", "cuda")
               if f"# Streams: {name.upper()}: on" in text]
    if not streams:
        print("\n".join(re.findall("^# Streams: (?:HIP|CUDA):.*", text, re.M)))
        die("there is no GPU that can be used (skipped): nothing was run", 77)
    if "cuda" in streams:
        streams.append("forward")
        text += "\n# HIP over CUDA, by a library of this project:\n" + "\n".join(
            re.findall("^.*HIP:(?:.|\n)*?CUDA:.*", ask_streams(STANDIN + "/forward"),
                       re.M))
    return streams, text


def select(options, streams):
    """The names of tests on these streams that are asked for."""
    tier = "gpu-quick" if options.quick else "gpu"
    rows = run.Plan(run.parse(["--no-build", "--tier", tier])).rows()
    names = [row.name for row in rows
             if re.search(f"-({'|'.join(streams)})[-/]", row.name) and
             not (options.quick and "-trig/" in row.name) and
             any(fnmatch.fnmatchcase(row.name, pattern)
                 for pattern in options.patterns or ["*"])]
    if not names:
        die(f"no test has such a name: {' '.join(options.patterns)}", 2)
    return names


# --- Results

def get_facts(options, facts, libc, text):
    """What is told of the machine."""
    version = read("/sys/module/amdgpu/version").strip()
    driver = output_of("nvidia-smi", "--query-gpu=name,driver_version,memory.total",
                       "--format=csv,noheader") + (
                           f" amdgpu {version}" if version else "")
    cpu = re.search("^model name[^:]*: (.*)", read("/proc/cpuinfo"), re.M)
    kind = "stand-in (no GPU: nothing here tells of one)" if options.standin else "GPU"
    queues = {name.lower(): os.environ.get(name, value)
              for name, value in run.UNLESS_SET.items()}
    return {"tool": "gpu-check", "kind": kind, "stand_in": bool(options.standin),
            "quick": options.quick,
            "date": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
            "driver": "" if options.standin else driver, "streams": text,
            "kernel": platform.release(), "libc": libc,
            "cpu": cpu.group(1) if cpu else "", "cores": os.cpu_count(),
            **{key: facts[key] for key in ("version", "commit", "packed", "mpi")},
            **queues}


def read_tests(logs):
    """The rows of junit.xml."""
    tests = []
    for case in xml.parse(logs + "/junit.xml").iter("testcase"):
        skip, failure = case.find("skipped"), case.find("failure")
        text = next((part.get("message") for part in (skip, failure)
                     if part is not None), "")
        tests.append({"name": f"{case.get('classname')}/{case.get('name')}",
                      "result": "failed" if failure is not None else
                                "skipped" if skip is not None else "passed",
                      "seconds": float(case.get("time")), "reason": text})
    return tests


# What a round trip on lane direct by kernels is judged by: its ratio to that of
# another variant is to be no more, by the largest size that this is for. st_life is
# compared, and not judged
BOUNDS = {
    "st_pingpong": {"mpi": [(8 << 10, 0.5), (1 << 20, 0.8), (None, 1.05)],
                    "mpi-device": [(8 << 10, 0.6)],
                    "nccl": [(None, 1.0)], "nvshmem": [(None, 1.3)]},
    "st_faces": {"mpi": [(None, 0.5)], "mpi-device": [(None, 0.5)],
                 "nccl": [(None, 1.0)], "nvshmem": [(None, 1.3)]},
    "st_life": {"mpi": [], "mpi-device": [], "nccl": [], "nvshmem": []}}
# What a use of st takes, by the report's counts: columns
COUNTS = {"kernels": lambda counts: counts["launches_per_use"],
          "wake-ups": lambda counts: counts["wakeups_per_use"],
          "proxied": lambda counts: counts["proxied"] / (
              counts["ranks"] * max(counts["uses"], 1))}
VARIANTS = ("st", "st-ready", "mpi", "mpi-device", "nccl", "nvshmem")


def ratio(times, variant, size, bounds):
    """The text of a ratio of st, with its bound; bold where that is exceeded."""
    if "st" not in times or variant not in times:
        return ""
    value = times["st"] / times[variant]
    bound = next((bound for most, bound in bounds if most is None or size <= most),
                 None)
    if bound is None:
        return f"{value:.2f}"
    return (f"**{value:.2f}** ({bound:.2f})" if value > bound else
            f"{value:.2f} ({bound:.2f})")


def count_words(report, size):
    """What a use of st takes of each rank's stream and threads, if it is counted."""
    counts = next((row["counts"] for row in report["rows"] if row["size"] == size and
                   row["variant"] == "st" and "counts" in row), None)
    if counts is None:
        return ["-"] * len(COUNTS)
    return [f"{count({**counts, 'ranks': report['ranks']}):.2f}"
            for count in COUNTS.values()]


def compare_page(figures):
    """Tables of what streams of GPUs are compared with, for
    docs/performance.md."""
    lines = []
    for name, report in figures.items():
        bounds = BOUNDS.get(report["bench"])
        if not name.startswith("gpu-direct-") or bounds is None:
            continue
        if re.search("service|host", name): # Not by kernels: these have no bounds
            bounds = dict.fromkeys(bounds, ())
        lines += ["", f"{name}: {report['stream_device']}, messages in "
                  f"{report['memory']} memory, {report['ranks']} ranks; median, us. "
                  "Ratios are of st, with their bounds; the last three columns are of "
                  "a use of st", "",
                  "| bytes | " + " | ".join(VARIANTS) + " | " + " | ".join(
                      [f"st / {variant}" for variant in bounds] + list(COUNTS)) +
                  " |",
                  "| ---: " * (1 + len(VARIANTS) + len(bounds) + len(COUNTS)) + "|"]
        for size in sorted({row["size"] for row in report["rows"]}):
            times = {row["variant"]: row["median_us"] for row in report["rows"]
                     if row["size"] == size and row["verified"]}
            words = [f"{times[variant]:.1f}" if variant in times else "-"
                     for variant in VARIANTS]
            words += [ratio(times, variant, size, bounds[variant]) or "-"
                      for variant in bounds]
            words += count_words(report, size)
            lines.append(f"| {size} | " + " | ".join(words) + " |")
    return lines


def write_page(results, out, log_of):
    """The same for people, with the tables that benchmarks print."""
    rows = [("kind", results["kind"]),
            ("GPU, driver", results["driver"].replace("\n", "; ")),
            ("date", results["date"]),
            ("kernel, libc", f"{results['kernel']}, {results['libc']}"),
            ("processor", f"{results['cpu']}, {results['cores']} cores"),
            ("hardware queues", ", ".join(f"{name}={results[name.lower()]}"
                                          for name in run.UNLESS_SET)),
            ("UCX-ST", "{version} {commit}, packed {packed}; {mpi}".format(**results)),
            ("result", "{passed} passed, {failed} failed, {skipped} skipped".format(
                **results))]
    lines = ["# Streams of GPUs: results", ""]
    if results["stand_in"]:
        lines += ["**On a stand-in for the runtime: this tells nothing of a GPU.**", ""]
    lines += ["| | |", "| --- | --- |"] + [f"| {key} | {text} |" for key, text in rows]
    lines += ["", "    " + results["streams"].replace("\n", "\n    "), "",
              "| test | result | seconds |", "| --- | --- | --- |"]
    for test in results["tests"]:
        words = [test["result"].replace("failed", "FAILED"), test["reason"]]
        lines.append(f"| {test['name']} | {': '.join(filter(None, words))} | "
                     f"{test['seconds']:.0f} |")
    compared = compare_page(results["benchmarks"])
    if compared:
        lines += ["", "## Compared"] + compared
        print("\n".join(compared) +
              "\n\n{passed} passed, {failed} failed".format(**results))
    for test in results["tests"]:
        if re.search("^gpu-(bench|direct|ways)-|/gpu.wrt", test["name"]):
            failed = ", FAILED" if test["result"] == "failed" else ""
            lines += ["", f"## {test['name']}{failed}", ""]
            lines += ["    " + line
                      for line in read(log_of(test, "log")).splitlines()[-60:]]
    with open(out + "/results.md", "w", encoding="utf-8") as file:
        print("\n".join(lines), file=file)


def write_results(facts, out):
    """The results of a run, for programs and for people."""
    def log_of(test, kind):
        return f"{out}/logs/{test['name'].replace('/', '_')}.{kind}"
    tests = read_tests(out + "/logs")
    counts = {result: sum(test["result"] == result for test in tests)
              for result in ("passed", "failed", "skipped")}
    figures = {}
    for test in tests:
        try:
            figures[test["name"]] = json.loads(read(log_of(test, "json")))
        except ValueError:
            pass # It is no benchmark, or did not come to its end
    results = {**facts, **counts, "tests": tests, "benchmarks": figures}
    with open(out + "/results.json", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    write_page(results, out, log_of)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="contrib/gpu-check.sh --run DIR|FILE")
    parser.add_argument("--standin", choices=("hip", "cuda"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=run.positive)
    parser.add_argument("--limit", type=run.positive, default=900)
    parser.add_argument("--for", dest="time", type=run.positive)
    parser.add_argument("--out", default="gpu-check-results")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    facts = dict(line.split("=", 1) for line in read(TOP + "/pack.facts").splitlines())
    libc = check_libc(facts)
    link_shared(libc)
    use_pack()
    streams, text = find_streams(options.standin)
    names = select(options, streams)
    facts = get_facts(options, facts, libc, text)
    out = os.path.abspath(options.out)
    run.AGAIN = f"contrib/gpu-check.sh --run {TOP}" + (
        f" --standin {options.standin}" if options.standin else "")
    print(f"==> {facts['kind']} {facts['driver']}".rstrip() + f"\n{text}\n"
          f"==> Results will be in {out}/results.json and results.md", flush=True)
    words = ["--no-build", "--build", BUILD, "--logs", out + "/logs",
             "--limit", str(options.limit),
             "--runtimes", STANDIN if options.standin else "",
             "--jobs", str(options.jobs or min(os.cpu_count(),
                                               8 if options.standin else 4))]
    if options.time:
        words += ["--for", str(options.time)]
    try:
        return run.main(words + names)
    finally:
        write_results(facts, out)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
