#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests of plan.ini, which says what runs where, and when.

A test is GROUP/NAME. The group, a section of plan.ini, says on which build, card,
lane and stream it runs; the name is that of a suite of unit/suites.list, of a
program of integration/tests.list, or of a command of the group. What it needs is
built first, and no test waits for what it does not need.
"""
import argparse
import configparser
import fcntl
import fnmatch
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TIERS = ("default", "full", "night", "cxi", "hardware", "gpu", "gpu-quick")
COMMON_TIERS = TIERS[:3] # Of the others a script finds the card or the GPU
LIMIT = 1800        # Seconds until a test is ended: it hangs
CASE_LIMIT = 600    # ... and a case of a suite or a program, which name themselves
TAIL = 30           # Lines of the output of what failed
# Runs a test that is named behind it
AGAIN = os.environ.get("ST_AGAIN", "contrib/run-tests.sh --no-deps")

# How each build is configured, beside the one that quickstart.sh makes. -g1: what
# a sanitizer reports of, in less time. Nothing there is C++ or Fortran.
SANITIZED = ["CFLAGS=-O1 -g1", "CXX=no", "FC=no"]
BUILDS = {
    "plain": [],
    "asan": ["--enable-sanitizer=address,undefined", "--without-mpi", *SANITIZED],
    "asan-mpi": ["--enable-sanitizer=address,undefined", *SANITIZED],
    "tsan": ["--enable-sanitizer=thread", "--without-mpi", *SANITIZED],
    "tsan-mpi": ["--enable-sanitizer=thread", *SANITIZED],
}

# Of every test. Beside this a suite or program has what its group says.
COMMON = {
    # MPI keeps to the loopback device; OpenMPI 5 has a setting of its own
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "PMIX_MCA_ptl_tcp_if_include": "lo",
    # Tests fork: UCX's thread for the file system, where it has one, may hold
    # locks then, and the child's ucp_init() waits for them without end (1.18)
    "UCX_VFS_ENABLE": "n",
    # The sockets provider's threads are not to spin on cores that others need
    "FI_SOCKETS_PE_WAITTIME": "0",
    "ST_CUNIT_TIMEOUT": str(CASE_LIMIT),
    # GCC 12's LeakSanitizer records thread-local variables of libraries. It
    # crashes at those that begin 16 bytes behind a page's begin: it takes what is
    # before them for a header of an older glibc. The last word turns it off.
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:intercept_tls_get_addr=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "LSAN_OPTIONS": f"suppressions={TOP}/test/lsan.supp",
    # UCX and libfabric are not built for the thread sanitizer
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
}
# The same, where the environment has no other value: by default a GPU has few
# hardware queues, and streams that share one hold each other up
UNLESS_SET = {"CUDA_DEVICE_MAX_CONNECTIONS": "32", "GPU_MAX_HW_QUEUES": "32"}


class Error(Exception):
    """What is wrong with the plan, or with what was asked for."""


def read_table(path, columns):
    """The rows of a list, which has "|" or blanks between columns."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.strip()
            if line and not line.startswith("#"):
                row = ([word.strip() for word in line.split("|", columns - 1)]
                       if columns else line.split())
                if columns and len(row) != columns:
                    raise Error(f"{path}: no {columns} columns: {line}")
                rows.append(row)
    return rows


class Suite:
    """A program of unit tests; providers' suites are one for each card."""

    def __init__(self, name, tags):
        self.name = name
        self.tags = tags
        self.size = 1
        self.targets = [("unit", name)]

    def command(self, group):
        folder = os.path.join(group.dir, "test/unit")
        return ["env", "-C", folder, "./" + self.name] + group.cases


def read_suites():
    suites = []
    for name, kind, runs, *_ in read_table(TOP + "/test/unit/suites.list", 0):
        tags = {kind, *runs.split(",")}
        if kind != "fab":
            suites.append(Suite(name, tags))
            continue
        for card in ("strict", "fast", "cxi", "sockets"):
            if card != "sockets" or "sockets" in tags:
                suites.append(Suite(f"{name}.{card}", {"fab." + card}))
    return suites


class Program:
    """A test of one or more processes."""

    def __init__(self, name, ranks, command):
        self.name = name
        self.tags = set()
        self.size = max(1, ranks)
        self.ranks = ranks
        self.words = command
        self.targets = [("integration", name) for name in
                        re.findall(r"test/integration/([a-z0-9_]+)(?!\S)",
                                   command)] or [("integration", None)]
        self.targets += [("unit", name) for name in
                         re.findall(r"test/unit/([a-z0-9_.]+)", command)]

    def command(self, group):
        words = self.words
        stream = "host" if group.stream == "host" else group.environment[
            "ST_TEST_STREAM"]
        for name, value in (("srcdir", TOP), ("builddir", group.dir),
                            ("device", group.environment["ST_DEVICE"]),
                            ("json", f"{group.logs}/{group.name}_{self.name}.json"),
                            ("stream", stream),
                            ("memory", "host" if stream == "host" else "device")):
            words = words.replace("$" + name, value)
        words = re.sub(r"\b(\d+)%", lambda number: str(
            -(-int(number[1]) * group.percent // 100)), words)
        launch = [TOP + "/contrib/ucx-st-run", "-q"]
        if self.ranks:
            launch += shlex.split(os.environ.get("ST_MPIRUN", "mpirun"))
            launch += ["-n", str(self.ranks)]
        if ".sh" in words.split()[0]:
            launch = ["bash"]
        return (["env", "-C", group.dir, "timeout", "-k", "10",
                 str(group.case_limit)] + launch + words.split())


def read_programs():
    return [Program(name, int(ranks), command) for name, ranks, command in
            read_table(TOP + "/test/integration/tests.list", 3)]


def processes(text):
    return 99 if text == "all" else int(text)


class Command:
    """A check, a model or the like, in the folder of the sources."""

    def __init__(self, line):
        self.name, needs, size, words = [word.strip() for word in
                                         line.split("|", 3)]
        self.tags = set()
        self.size = processes(size)
        self.words = words
        self.targets = [(need, None) for need in needs.split() if need != "-"]

    def command(self, group):
        words = self.words.replace("$builddir", group.dir)
        return ["env", "-C", TOP] + shlex.split(words)


def variants(parser):
    """The groups of all sections: one that names several streams or lanes is a
    group for each, which has them in its name."""
    for section in map(parser.__getitem__, parser.sections()):
        streams, lanes = section["stream"].split(), section["lane"].split()
        for stream in streams:
            for lane in lanes:
                words = [section.name] + [stream] * (len(streams) > 1) + \
                        [lane] * (len(lanes) > 1)
                yield section, "-".join(words), stream, lane


class Group:
    """A section of plan.ini: tests, where they run, and when."""

    def __init__(self, name, section, stream, lane, options):
        known = {"why", "kind", "build", "card", "lane", "tls", "stream", "env",
                 "commands", "cases", "limit", "nodes", "size", *TIERS}
        if set(section) - known:
            raise Error(f"plan.ini, {name}: unknown "
                        f"{', '.join(set(section) - known)}")
        self.name = name
        self.section = section
        self.kind = section["kind"]
        self.build = section["build"]
        self.stream = stream
        self.logs = options.logs
        self.size = processes(section.get("size", "1"))
        self.limit = options.limit or int(section.get("limit", LIMIT))
        self.case_limit = options.limit or int(section.get("limit", CASE_LIMIT))
        self.cases = section.get("cases", "").split()
        self.percent = options.percent
        self.dir = (options.build if self.build == "plain" else
                    f"{TOP}/build-{self.build}")
        self.prefix = []
        self.environment = dict(COMMON)
        for name, value in UNLESS_SET.items():
            self.environment[name] = os.environ.get(name, value)
        self.set_card(section["card"])
        if section["card"] != "none":
            self.set_lane(lane, section.get("tls", "posix,self" if lane == "direct"
                                            else "cxi_trig,self"))
        if self.kind == "suites":
            # Cases open many workers: the memory of 256 receives, which programs
            # have, took half of the time of st_trig.chunk_borders under ASan
            self.environment["UCX_CXI_TRIG_RX_QUEUE_LEN"] = "32"
        self.set_stream(options.runtimes)
        if "nodes" in section:
            self.prefix = [TOP + "/contrib/own-nodes.sh", section["nodes"]]
        if options.limit: # A case that hangs names itself
            self.environment["ST_CUNIT_TIMEOUT"] = str(options.limit // 3 + 1)
        self.environment.update(
            srcdir=TOP + ("/test/unit" if self.kind == "suites" else ""),
            builddir=self.dir, ST_BUILDDIR=self.dir,
            ST_RUN=TOP + "/contrib/ucx-st-run")
        for word in section.get("env", "").split():
            key, is_set, value = word.partition("=")
            self.environment[key] = value if is_set else None

    def set_card(self, card):
        """The network card: the emulated one in its two modes, or another."""
        environment = self.environment
        if card == "none":
            return
        environment.update(ST_NIC=card, UCX_CXI_TRIG_PROVIDER=card,
                           ST_DEVICE="cxiemu0", UCX_NET_DEVICES=None)
        if card in ("strict", "fast"):
            environment.update(UCX_CXI_TRIG_PROVIDER="cxiemu",
                               FI_CXIEMU_MODE=card)
        elif card == "sockets":
            environment.update(UCX_NET_DEVICES="lo", ST_DEVICE="lo")
            self.prefix = [TOP + "/contrib/own-network.sh"]
        elif card == "cxi":
            # contrib/run-on-cxi.sh says what starts a program where a card is
            environment.update(ST_DEVICE="cxi0")
            self.prefix = shlex.split(os.environ.get("ST_CXI_LAUNCH", ""))
        else:
            raise Error(f"plan.ini, {self.name}: there is no card {card}")

    def set_lane(self, lane, tls):
        """The lane that suites expect, and UCX's transports."""
        environment = self.environment
        if lane not in ("trig", "host", "direct"):
            raise Error(f"plan.ini, {self.name}: there is no lane {lane}")
        environment.update(ST_LANE=lane, UCX_TLS=tls, UCX_ST_LANES=lane)
        if lane == "trig":
            environment["UCX_ST_LANES"] = None # What is chosen by default
        if "posix" in tls and "cxi_trig" not in tls:
            # Without this UCX uses no shared memory where dead peers are to be
            # noticed; what tests make themselves has UCX's defaults
            environment.update(UCX_MM_ERROR_HANDLING="y",
                               UCX_WARN_UNUSED_ENV_VARS="n")

    def set_stream(self, runtimes):
        """Streams of the host, or those of a GPU's runtime: by default of a
        stand-in, else of a folder or, if that is empty, of this machine."""
        standin = self.dir + "/test/standin"
        outer = os.environ.get("LD_LIBRARY_PATH")
        if self.stream == "host":
            return
        if self.stream not in ("hip", "cuda", "forward"):
            raise Error(f"plan.ini, {self.name}: no stream {self.stream}")
        path = [standin if runtimes is None else runtimes, outer]
        self.environment["ST_TEST_STREAM"] = self.stream
        self.environment["STANDIN_KERNELS"] = standin + "/bench_kernels.so"
        if runtimes is not None: # Where tests look that load one themselves
            self.environment.update(ST_HIP_DIR=runtimes, ST_CUDA_DIR=runtimes)
        if self.stream == "forward": # HIP's calls, carried out by CUDA's driver
            path.insert(0, standin + "/forward")
            self.environment.update(ST_TEST_STREAM="hip", ST_HIP_DIR=path[0])
        self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, path))

    def select(self, tests, tier):
        """Tests that a tier names: patterns, "@TAG", and "-PATTERN" without."""
        found = []
        words = self.section.get(tier)
        if words is None and tier == "full":
            words = self.section.get("default")
        for word in (words or "").split():
            without = word.startswith("-")
            pattern = word[without:]
            hits = [test for test in tests if
                    (pattern[1:] in test.tags if pattern.startswith("@") else
                     fnmatch.fnmatchcase(test.name, pattern))]
            if not hits:
                raise Error(f"plan.ini, {self.name}: {word} names no test")
            found = [test for test in found if test not in hits] + \
                    ([] if without else hits)
        return found


class Row:
    """A test of a group or a step of a build, and how it went."""

    def __init__(self, name, command, size=1, needs=(), environment=None,
                 limit=LIMIT, has_ranks=False):
        self.name = name
        self.command = command
        self.size = size
        self.needs = needs # Names of rows that have to pass first
        self.limit = limit
        self.has_ranks = has_ranks
        self.environment = dict(os.environ)
        for key, value in (environment or {}).items():
            if value is None:
                self.environment.pop(key, None)
            else:
                self.environment[key] = value
        self.status = None
        self.seconds = self.cpu = 0.0
        self.text = ""


class Builds:
    """The steps that make what tests need: of each build the product, then its
    suites and its programs, and of these no more than are needed."""

    def __init__(self, folder, is_whole):
        self.folder = folder
        self.is_whole = is_whole
        self.targets = {}

    def need(self, build, targets):
        """Notes what a test needs; returns the names of the steps."""
        kinds = self.targets.setdefault(build, {})
        for kind, name in targets:
            kinds.setdefault(kind, set()).add(name)
        return [self.name(build, kind) for kind in
                dict.fromkeys(["product"] + [kind for kind, _ in targets])]

    def name(self, build, kind):
        return f"{'build' if build == 'plain' else 'build-' + build}/{kind}"

    def step(self, build, kind, before, function, *words):
        """A function of contrib/common.sh as a row."""
        command = " ".join(shlex.quote(word) for word in (function, *words))
        nice = [] if build == "plain" else ["nice", "-n", "19"]
        return Row(self.name(build, kind), nice +
                   ["bash", "-c", f". {TOP}/contrib/common.sh && {command}"],
                   size=2 if build == "plain" else 1, needs=before)

    def rows(self):
        if not self.targets:
            return []
        rows = [Row("autogen", ["bash", "-c",
                                f". {TOP}/contrib/common.sh && st_autogen"])]
        for build, kinds in self.targets.items():
            folder = (self.folder if build == "plain" else
                      f"{TOP}/build-{build}")
            rows.append(self.step(build, "product", ["autogen"], "st_build_for_tests",
                                  folder, build, *BUILDS[build]))
            before = [rows[-1].name]
            for kind in ("unit", "integration"):
                names = kinds.get(kind)
                if names:
                    if None in names or (self.is_whole and build == "plain"):
                        names = [] # All of the folder
                    rows.append(self.step(build, kind, before, "st_make_tests",
                                          folder, kind, *sorted(names)))
                    before = [rows[-1].name]
        return rows


class Plan:
    """The groups, their tests and the rows that are asked for."""

    def __init__(self, options):
        self.options = options
        parser = configparser.ConfigParser(interpolation=None)
        parser.optionxform = str
        with open(TOP + "/test/plan.ini", encoding="utf-8") as file:
            parser.read_file(file)
        lists = {"suites": read_suites(), "programs": read_programs()}
        self.builds = Builds(options.build, not options.patterns)
        self.groups = []
        self.tests = {}
        for section, name, stream, lane in variants(parser):
            group = Group(name, section, stream, lane, options)
            if group.kind == "commands":
                tests = [Command(line) for line in
                         section["commands"].splitlines() if line.strip()]
            elif group.kind in lists:
                tests = lists[group.kind]
            else:
                raise Error(f"plan.ini, {name}: kind {group.kind}")
            self.groups.append(group)
            self.tests[name] = tests

    def enter(self, name, command):
        """Runs a command, in place of this one, in the environment of a group."""
        groups = [group for group in self.groups if group.name == name]
        if not groups or not command:
            raise Error(f"there is no group {name}, or no command")
        command = groups[0].prefix + command
        os.execvpe(command[0], command, Row(name, command, environment=groups[
            0].environment).environment)

    def rows(self):
        """Those of a tier or, by patterns, of all common tiers; by its whole name,
        any. Before them come the builds that they need."""
        options = self.options
        near = COMMON_TIERS if options.tier in COMMON_TIERS else [options.tier]
        rows = []
        unused = set(options.patterns)
        # HIP over CUDA's driver, which nobody runs, is the last to be judged
        for group in sorted(self.groups, key=lambda group: group.stream == "forward"):
            tests = self.tests[group.name]
            tiers = {tier: group.select(tests, tier) for tier in TIERS}
            some = set().union(*(tiers[tier] for tier in near))
            for test in tests:
                name = f"{group.name}/{test.name}"
                hits = [pattern for pattern in options.patterns
                        if name == pattern or
                        (test in some and fnmatch.fnmatchcase(name, pattern))]
                unused.difference_update(hits)
                if hits or (not options.patterns and
                            test in tiers[options.tier]):
                    rows.append(self.row(name, group, test))
        if unused:
            raise Error(f"no test has such a name: {' '.join(sorted(unused))}")
        return self.builds.rows() + rows

    def row(self, name, group, test):
        if group.section["card"] == "cxi" and "ST_CXI_LAUNCH" not in os.environ:
            raise Error(f"{name}: contrib/run-on-cxi.sh runs it")
        needs = []
        if test.targets and not self.options.no_build:
            needs = self.builds.need(group.build, test.targets)
        command = test.command(group)
        if group.prefix:
            command = command[:3] + group.prefix + command[3:]
        size = max(test.size, group.size)
        if group.environment.get("ST_NIC") == "sockets":
            size = max(size, os.cpu_count()) # Its threads are many, and slow
        return Row(name, command, size, needs, group.environment, group.limit,
                   group.kind == "programs")


class Runner:
    """Runs rows side by side, in order, as there are places and what they need."""

    def __init__(self, options, rows):
        self.places = options.jobs
        self.logs = options.logs
        self.times = options.build + "/test-times.tsv"
        self.running = {}
        self.pending = list(rows)
        self.done = []
        self.start = time.time()
        self.ends = self.start + options.time if options.time else None
        self.scratch = tempfile.mkdtemp(prefix="ucx-st-")

    def is_ready(self, row):
        """Whether what it needs is there; None if that has failed."""
        names = {other.name: other.status for other in self.done}
        states = [names.get(name) for name in row.needs]
        if any(state not in (None, 0) for state in states):
            return None
        return all(state == 0 for state in states)

    def log_of(self, row):
        return f"{self.logs}/{row.name.replace('/', '_')}.log"

    def launch(self, row):
        if row.has_ranks:
            # Of two mpirun that end one may take the other one's folder away
            row.environment["OMPI_MCA_orte_tmpdir_base"] = tempfile.mkdtemp(
                dir=self.scratch)
        command = ["timeout", "-k", "10", str(row.limit)] + row.command
        with open(self.log_of(row), "wb") as log:
            row.began = time.time()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log,
                                       env=row.environment,
                                       start_new_session=True)
        process.returncode = 0 # wait4() below has the status
        self.running[process.pid] = row
        row.taken = min(row.size, self.places)

    def reap(self):
        pid, status, usage = os.wait4(-1, 0)
        row = self.running.pop(pid, None)
        if row is None:
            return
        try:
            os.killpg(pid, signal.SIGKILL) # What it left behind
        except ProcessLookupError:
            pass
        row.seconds = time.time() - row.began
        row.cpu = usage.ru_utime + usage.ru_stime
        code = (-os.WTERMSIG(status) if os.WIFSIGNALED(status) else
                os.WEXITSTATUS(status))
        row.status = 124 if code in (137, -9) else code
        self.tell(row)

    def tell(self, row):
        """Prints what became of a row."""
        self.done.append(row)
        with open(self.log_of(row), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        if row.status == 0:
            print(f"ok    {row.name} ({row.seconds:.0f} s)", flush=True)
        elif row.status == 77:
            # A program of MPI says it before mpirun has its say
            reasons = [line[6:] for line in lines
                       if line.startswith("SKIP: rank")] or lines or [""]
            row.text = reasons[-1]
            print(f"skip  {row.name}: {row.text}", flush=True)
        else:
            row.text = "\n".join(lines[-TAIL:])
            late = ", out of time" if row.status == 124 else ""
            print(f"FAIL  {row.name} ({row.seconds:.0f} s, status "
                  f"{row.status}{late})")
            for line in lines[-TAIL:]:
                print(f"      | {line}")
            print(f"      | (all of it: {self.log_of(row)}; again:"
                  f" {AGAIN} '{row.name}')", flush=True)

    def leave_out(self, row):
        """Counts a row that cannot run, as what it needs has not passed."""
        state = [other for other in self.done if other.name in row.needs and
                 other.status != 0][0]
        row.status = 77 if state.status == 77 else 1
        row.text = f"{state.name} did not pass"
        print(f"{'skip ' if row.status == 77 else 'FAIL '} {row.name}: {row.text}",
              flush=True)
        self.done.append(row)

    def leave_rest(self):
        """Counts what is left when the time for all is over."""
        print(f"skip  {len(self.pending)} more: the time given for all is over",
              flush=True)
        for row in self.pending:
            row.status, row.text = 77, "the time given for all was over"
        self.done += self.pending
        self.pending = []

    def take_turn(self):
        """Two runs would remove each other's logs. Returns what is to stay open."""
        os.makedirs(self.logs, exist_ok=True)
        turn = open(f"{self.logs}/lock", "w", encoding="utf-8")
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            turn.close()
            raise Error(f"another run has {self.logs}: wait for its end") from None
        return turn

    def run(self):
        for name in os.listdir(self.logs):
            if name.endswith((".log", ".xml", ".json")):
                os.unlink(os.path.join(self.logs, name))
        try:
            while self.pending or self.running:
                self.step()
        finally:
            for pid in self.running:
                os.killpg(pid, signal.SIGTERM)
            for pid in self.running:
                os.waitpid(pid, 0)
            subprocess.run(["rm", "-rf", self.scratch], check=False)
            self.write_times()
            self.write_junit()

    def step(self):
        if self.ends and self.pending and time.time() >= self.ends:
            self.leave_rest()
        free = self.places - sum(row.taken for row in self.running.values())
        for row in list(self.pending):
            ready = self.is_ready(row)
            if ready is None:
                self.pending.remove(row)
                self.leave_out(row)
            elif ready:
                if min(row.size, self.places) > free:
                    break # Its turn comes: nothing overtakes it
                self.pending.remove(row)
                self.launch(row)
                return
        if self.running:
            self.reap()

    def write_times(self):
        """Keeps the times, of the last run of each row."""
        kept = read_times(self.times)
        for row in self.done:
            if row.status == 0:
                kept[row.name] = (row.seconds, row.cpu)
        with open(self.times, "w", encoding="utf-8") as file:
            for name, (seconds, cpu) in sorted(kept.items()):
                file.write(f"{name}\t{seconds:.1f}\t{cpu:.1f}\n")

    def write_junit(self):
        suite = xml.Element("testsuite", name="ucx-st", tests=str(len(self.done)),
                            failures=str(len(self.named(failed=True))),
                            skipped=str(sum(row.status == 77
                                            for row in self.done)),
                            time=f"{time.time() - self.start:.1f}")
        for row in self.done:
            group, _, name = row.name.partition("/")
            case = xml.SubElement(suite, "testcase", classname=group,
                                  name=name or group, time=f"{row.seconds:.1f}")
            if row.status == 77:
                xml.SubElement(case, "skipped", message=row.text)
            elif row.status != 0:
                failure = xml.SubElement(case, "failure",
                                         message=f"status {row.status}")
                failure.text = "".join(char for char in row.text
                                       if char == "\n" or char >= " ")
        xml.ElementTree(suite).write(f"{self.logs}/junit.xml", encoding="utf-8",
                                     xml_declaration=True)

    def named(self, failed):
        return [row.name for row in self.done
                if (row.status not in (0, 77)) == failed]

    def summary(self):
        failures = self.named(failed=True)
        skipped = sum(row.status == 77 for row in self.done)
        if failures:
            print(f"failed: {' '.join(failures)}")
        text = (f"{len(self.done) - len(failures) - skipped} passed, "
                f"{len(failures)} failed")
        print(text + (f", {skipped} skipped" if skipped else ""))
        return 1 if failures else 0


def read_times(path):
    try:
        with open(path, encoding="utf-8") as file:
            return {name: (float(seconds), float(cpu)) for name, seconds, cpu in
                    (line.rstrip("\n").split("\t") for line in file)}
    except FileNotFoundError:
        return {}


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 on")
    return int(text)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="run.py", allow_abbrev=False,
        description="Runs tests of test/plan.ini; docs/testing.md tells more.")

    def add(name, text, **more):
        parser.add_argument(name, help=text, **more)

    add("--tier", "which tests, where none is named", choices=TIERS,
        default="default")
    add("--list", "print the names, run nothing", action="store_true")
    add("--times", "print how long each took, run nothing", action="store_true")
    add("--no-build", "build nothing", action="store_true")
    add("--in", "run a command in the environment of a group", dest="group",
        metavar="GROUP")
    add("--build", "the build folder, else build", metavar="DIR",
        default=os.environ.get("ST_BUILD", TOP + "/build"))
    add("--logs", "a folder for the output", metavar="DIR")
    add("--percent", "a part of what is repeated", type=positive, default=100)
    add("--jobs", "so many processes at a time", type=positive,
        default=2 * os.cpu_count())
    add("--limit", "end each test after so long", type=positive,
        metavar="SECONDS")
    add("--for", "start none after so long", dest="time", type=positive,
        metavar="SECONDS")
    add("--runtimes", "where runtimes of GPUs are, instead of the stand-ins; "
        "empty: where the loader finds them", metavar="DIR")
    add("patterns", "names of tests, or the command", nargs=argparse.REMAINDER,
        metavar="PATTERN")
    options = parser.parse_args(arguments)
    options.build = os.path.abspath(options.build)
    options.logs = os.path.abspath(options.logs or options.build + "/test-logs")
    return options


def main(arguments):
    options = parse(arguments)
    seed = os.environ.setdefault("ST_SEED", str(random.randrange(1, 1 << 31)))
    os.environ.setdefault("ST_FUZZ_SEED", seed)
    try:
        plan = Plan(options)
        if options.group:
            return plan.enter(options.group, options.patterns)
        rows = plan.rows()
    except Error as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(row.name for row in rows))
        return 0
    runner = Runner(options, rows)
    if options.times:
        kept = read_times(runner.times)
        for row in sorted(rows, key=lambda row: -kept.get(row.name, (0,))[0]):
            if row.name in kept:
                print("{:8.1f} s {:8.1f} s of processors  {}".format(
                    *kept[row.name], row.name))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        turn = runner.take_turn()
    except Error as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    with turn:
        print(f"==> {len(rows)} tests, ST_SEED={seed}", flush=True)
        try:
            runner.run()
        except KeyboardInterrupt:
            print("interrupted")
        return runner.summary()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
