# SPDX-License-Identifier: BSD-3-Clause
"""What the runs of run-all say together: medians, ratios to the best baseline,
counts of lane trig, targets and tables."""
import collections
import statistics

# Ways of OpenMPI of which the best one is the baseline: those that lane direct
# is measured beside, and one that runs alone, as queues need pml/ucx
BESIDE = ("posix", "cma")
ALONE = "ob1"
BASELINES = (*BESIDE, ALONE)
# Of ranks on one node and on several: the lane's name in figures, and these
WAYS = {"direct": (BESIDE, ALONE), "nodes": (("ucx",), "ofi")}
BEST = "mpi best"
# Columns of tables
DIRECT = ("direct st", "direct st-ready")
TRIG = ("trig st", "trig st-ready")
NODES = ("nodes st", "nodes st-ready")
MATCHED = (*DIRECT, *NODES, *TRIG)
ONE_SIDED = tuple(f"{lane} {way}" for lane in (*WAYS, "trig") for way in (
    "put", "put-strict", "get", "get-strict"))
# Of the benchmarks of MPI
APPLICATIONS = {"st_life": "generation", "st_cg": "iteration"}
COMPARED = ("st_pingpong", "st_faces", "st_mbw", *APPLICATIONS)
# Transports of UCX that channels are measured over
CHANNEL_SETTINGS = ("shm", "tcp", "card")
JACOBI_SETTINGS = ("shm", "card")
JACOBI_MODES = ("weak", "strong")
K = 1 << 10
M = 1 << 20
# Of Student's distribution, 95 % in both directions, by the runs
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
# Blocks of st_faces: by the bytes of the longest message, which tell them
# apart, the name and the options
BLOCKS = {512: ("8^3 nodes", "--block 1 --order 7"),
          17 * 17 * 8: ("8^3 elements", "--block 8 --order 2")}
MEMORIES = ("malloc", "mpi")
# Of round trips on lane direct: sizes from, to, and at most what ratio to MPI
DIRECT_BOUNDS = (("to 32 KiB", 0, 32 * K, 0.5),
                 ("64 to 256 KiB", 64 * K, 256 * K, 0.8),
                 ("512 KiB and more", 512 * K, float("inf"), 1.1))
HALO_BOUND = 0.6
# What is counted on lane trig by the kind of send, and at most how much: writes
# of the card (data and clear-to-sends), and deferred operations, both of both
# sides, a message and use
KINDS = {"ready": (1, 3), "standard": (2, 4), "eager-ahead": (1.125, 3.125)}
MOVED = "data writes"
WRITES = "writes"
OPERATIONS = "deferred operations"
PROXIED = "proxied"


class Target:
    """What must hold: a bound on figures of one benchmark."""

    def __init__(self, what, must, bench, series, **where):
        self.what = what
        self.must = must
        self.bench = bench
        self.series = series
        self.where = where

    def fits(self, figure):
        """It is one of those that the bound is for."""
        low, high = self.where.get("sizes", (0, float("inf")))
        return (figure["bench"] == self.bench and
                figure["series"] in self.series and
                low <= figure["size"] <= high and
                self.member() in figure and
                all(figure[name] == self.where.get(name, figure[name])
                    for name in ("memory", "ranks")))

    def member(self):
        """Which number of a figure."""
        return self.where.get("member", "ratio")

    def value(self, figure):
        """What the bound is for."""
        return figure[self.member()]["median"]

    def judge(self, figures):
        """The worst of them against the bound."""
        found = [figure for figure in figures if self.fits(figure)]
        least = self.where.get("least", False)
        verdict = {"what": self.what, "must": self.must, "least": least,
                   "unit": self.where.get("unit", ""), "figures": len(found)}
        if found:
            worst = (min if least else max)(found, key=self.value)
            verdict["worst"] = self.value(worst)
            verdict["of"] = describe(worst)
            verdict["pass"] = (self.must <= verdict["worst"] if least else
                               verdict["worst"] <= self.must)
        return verdict


def count_targets():
    """Of lane trig: the same on every machine."""
    for bench in ("st_faces", "st_pingpong"):
        yield Target(f"trig, {bench}: data writes of the card a message, least",
                     1, bench, KINDS, member=MOVED, least=True)
        yield Target(f"trig, {bench}: the same, most", 1, bench, KINDS,
                     member=MOVED)
        yield Target(f"trig, {bench}: operations proxied", 0, bench, KINDS,
                     member=PROXIED)
    for kind, (writes, operations) in KINDS.items():
        # Inboxes of longer messages are less deep: more clear-to-sends
        bench = "st_pingpong" if kind == "standard" else "st_faces"
        yield Target(f"trig, {kind} sends: writes a message, both sides",
                     writes, bench, (kind,), member=WRITES)
        yield Target(f"trig, {kind} sends: deferred operations a message, both "
                     "sides", operations, bench, (kind,), member=OPERATIONS)
    yield Target("trig: pairs that the card holds", 250, "st_cost",
                 ("match-trig most",), member="pairs", least=True)


def direct_targets():
    """Of lane direct, against MPI."""
    for text, low, high, must in DIRECT_BOUNDS:
        for memory in MEMORIES:
            yield Target(f"direct, {memory}, {text}: round trip / mpi", must,
                         "st_pingpong", DIRECT, memory=memory,
                         sizes=(low, high))
    for ranks in (2, 4, 8):
        yield Target(f"direct, {ranks} ranks, 8^3 nodes: halo / mpi",
                     HALO_BOUND, "st_faces", ("direct st",), ranks=ranks,
                     sizes=(512, 512))


def layer_targets():
    """Of those without MPI."""
    yield Target("uct_trig / raw provider", 1.10, "st_trig", ("uct_trig",))
    yield Target("UCX's tagged 8 B over cxi_trig / raw provider", 1.25,
                 "st_ucx", ("tag cxi_trig",), sizes=(8, 8))
    # Of rates this is at least 0.95
    yield Target("UCX's windows of 1 MiB over cxi_trig / raw provider",
                 1 / 0.95, "st_ucx", ("window cxi_trig",), sizes=(M, M))
    yield Target("idle process with an open queue", 0.3, "st_cost",
                 ("idle-trig", "idle-host", "idle-both"),
                 member="percent_of_a_core", unit="% of a core")
    yield Target("memory of a matched pair, both sides", 2048, "st_cost",
                 ("match-trig", "match-host"), member="bytes_per_pair",
                 unit="B")


def channel_targets():
    """Of channels, over each transport."""
    yield Target("channel / raw UCP, 8 B", 1.10, "st_channel",
                 ("latency channel",), sizes=(8, 8))
    yield Target("metadata first / channel, to 4 KiB", 1.5, "st_channel",
                 ("latency metadata",), sizes=(0, 4 * K), member="of_channel",
                 least=True)


def judge(figures):
    """All targets."""
    return [target.judge(figures) for target in
            (*count_targets(), *direct_targets(), *layer_targets(),
             *channel_targets())]


def size_text(size):
    """Bytes with a unit."""
    for unit, factor in (("MiB", M), ("KiB", K)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def halo_text(figure):
    """A figure of st_faces: of which block, between how many."""
    name, _ = BLOCKS.get(figure["size"], (f"{size_text(figure['size'])}", ""))
    return f"{name}, {figure['ranks']} ranks"


def describe(figure):
    """Where a figure comes from, in words."""
    parts = [figure["series"]]
    if figure["bench"] == "st_pingpong":
        parts += [size_text(figure["size"]), figure["memory"]]
    elif figure["bench"] == "st_faces":
        parts.append(halo_text(figure))
    elif figure["bench"] in APPLICATIONS:
        parts.append(f"{figure['ranks']} ranks")
    elif figure["bench"] in ("st_trig", "st_ucx", "st_channel"):
        parts.append(size_text(figure["size"]))
    if figure.get("setting") is not None:
        parts.append(figure["setting"])
    return ", ".join(parts)


def mean_of(values):
    """Their mean and, of several, by how much the 95 % interval goes beyond it."""
    found = {"mean": statistics.fmean(values)}
    if len(values) > 1:
        quantile = STUDENT[min(len(values) - 2, len(STUDENT) - 1)]
        found["interval"] = (quantile * statistics.stdev(values) /
                             len(values) ** 0.5)
    return found


def set_spread(figure, member, values):
    """Sets a member to the median, the range and the mean of its values, if any.
    """
    values = list(values)
    if values:
        figure[member] = {name: round(value, 4) for name, value in {
            "median": statistics.median(values), "min": min(values),
            "max": max(values), **mean_of(values)}.items()}


class Point:
    """One size of one benchmark with so many ranks and such memory."""

    def __init__(self):
        self.runs = {} # By round, lane and way of MPI, rows by variant
        self.num_bytes = None # That all ranks move in that time

    def add(self, run, row):
        """Takes a row of a report. Lane trig runs once for each variant."""
        self.runs.setdefault((run["round"], run["lane"], run["mpi"]), {})[
            row["variant"]] = row
        if "mb_per_s" in row:
            self.num_bytes = row["mb_per_s"] * row["median_us"]

    def times(self, variant, lane, mpi):
        """By round, of one setting."""
        return {number: rows[variant]["median_us"]
                for (number, *setting), rows in self.runs.items()
                if setting == [lane, mpi] and variant in rows}

    def lane(self):
        """That MPI runs beside."""
        is_far = any(lane == "nodes" for _, lane, _ in self.runs)
        return "nodes" if is_far else "direct"

    def mpi_times(self):
        """By way, of all rounds together and each. Beside a lane, and alone.
        Between nodes not every MPI has each way."""
        lane = self.lane()
        beside, alone = WAYS[lane]
        times = {mpi: self.times("mpi", None if mpi == alone else lane, mpi)
                 for mpi in (*beside, alone)}
        return {mpi: found for mpi, found in times.items()
                if found or lane == "direct"}

    def ratios(self, variant):
        """Beside that lane: to which way of MPI ratios are the largest, and
        these, each of one round. None where one way is missing."""
        found = collections.defaultdict(list)
        base = self.mpi_times()
        beside, alone = WAYS[self.lane()]
        for mpi in beside:
            for number, time in self.times(variant, self.lane(), mpi).items():
                for way in (mpi, alone):
                    if number in base.get(way, ()):
                        found[way].append(time / base[way][number])
        if not found or len(found) < len(base):
            return None, []
        return max(found.items(), key=lambda item: statistics.median(item[1]))

    def figure(self, head, times, mpi=None, ratios=()):
        """A series: times of rounds, and ratios with what they are to."""
        figure = {**head, "rounds": len(times)}
        set_spread(figure, "time_us", times)
        set_spread(figure, "ratio", ratios)
        if mpi is not None:
            figure["best"] = mpi
        if self.num_bytes is not None:
            set_spread(figure, "mb_per_s",
                       (self.num_bytes / time for time in times))
        return figure

    def baselines(self, head):
        """MPI's times in each way, and the best of each round with all."""
        times = self.mpi_times()
        best = [min((times[mpi][number], mpi) for mpi in times)
                for number in set.intersection(*map(set, times.values()))
                ] if times else []
        if best:
            yield self.figure({**head, "series": BEST}, [
                time for time, _ in best], statistics.mode(
                    mpi for _, mpi in best), [1.0])
        for mpi, of_rounds in times.items():
            if of_rounds:
                yield self.figure({**head, "series": f"mpi, {mpi}"},
                                  list(of_rounds.values()))

    def figures(self, head):
        """What it says of each series."""
        yield from self.baselines(head)
        for lane, variant in sorted({
                (lane, variant) for (_, lane, _), rows in self.runs.items()
                for variant in rows if lane is not None and variant != "mpi"}):
            times = [rows[variant]["median_us"]
                     for (_, other, _), rows in self.runs.items()
                     if other == lane and variant in rows]
            ratios = self.ratios(variant) if lane in WAYS else (None, ())
            yield self.figure({**head, "series": f"{lane} {variant}"}, times,
                              *ratios)


def combine_compared(runs):
    """Figures of the benchmarks that compare with MPI."""
    points = collections.defaultdict(Point)
    for run in runs:
        if run["bench"] in COMPARED:
            for row in run["report"]["rows"]:
                points[run["bench"], run["ranks"], run["memory"],
                       row["size"]].add(run, row)
    for (bench, ranks, memory, size), point in points.items():
        yield from point.figures({"bench": bench, "ranks": ranks,
                                  "memory": memory, "size": size})


def counts_of(report):
    """What the card did for a message and use, both sides together."""
    messages = max(report["messages"], 1)
    data = report["deferred_writes_fired"] - report["chunks"]
    writes = report["deferred_writes_fired"] + report["clear_to_sends"]
    return {MOVED: data / messages, WRITES: writes / messages,
            OPERATIONS: (writes + report["atomics"]) / messages,
            PROXIED: report["operations_proxied"]}


def combine_counts(runs):
    """Of the runs of lane trig that have one kind of sends alone."""
    points = collections.defaultdict(list)
    for run in runs:
        if run.get("kind") is not None:
            size = max(row["size"] for row in run["report"]["rows"])
            points[run["bench"], run["ranks"], run["memory"], size,
                   run["kind"]].append(counts_of(run["report"]))
    for (bench, ranks, memory, size, kind), found in points.items():
        figure = {"bench": bench, "ranks": ranks, "memory": memory,
                  "size": size, "series": kind, "rounds": len(found)}
        for name in found[0]:
            set_spread(figure, name, [counts[name] for counts in found])
        yield figure


def other_members(row):
    """What a row of another benchmark says beside its times."""
    members = {name: max(value) if isinstance(value, list) else value
               for name, value in row.items() if name in (
                   "beside_provider_ns", "percent_of_a_core", "worst_us",
                   "of_channel", "mb_per_s", "exchange_us")}
    if "malloc_bytes_per_pair" in row:
        members["bytes_per_pair"] = (row["malloc_bytes_per_pair"] +
                                     row["mapped_bytes_per_pair"])
    if row["ratio"] is not None:
        members["ratio"] = row["ratio"]
    return members


def most_pairs(rows):
    """Of st_cost: how many pairs the card held, where it was asked for more."""
    sizes = [row["size"] for row in rows
             if row["variant"] == "match-trig" and row["limit"]]
    return [{"size": 0, "variant": "match-trig most", "ratio": None,
             "median_us": 0, "pairs": max(sizes)}] if sizes else []


def channel_rows(rows):
    """Of st_channel: rates of windows, and what metadata cost beside a channel.
    """
    times = {(row["variant"], row["size"]): row["median_us"] for row in rows}
    for row in rows:
        what, way = row["variant"].split()
        if what == "window":
            row = {**row, "mb_per_s": row["size"] / row["median_us"]}
        if way == "metadata":
            row = {**row, "of_channel": row["median_us"] /
                   times[f"{what} channel", row["size"]]}
        yield row


def combine_others(runs):
    """Figures of the benchmarks without MPI."""
    points = collections.defaultdict(lambda: collections.defaultdict(list))
    for run in runs:
        if run["bench"] in COMPARED:
            continue
        rows = run["report"]["rows"]
        if run["bench"] == "st_cost":
            rows = rows + most_pairs(rows)
        setting = None
        if run["bench"] in ("st_channel", "st_jacobi3d"):
            setting = run["setting"]
        if run["bench"] == "st_channel":
            rows = channel_rows(rows)
        for row in rows:
            point = points[run["bench"], setting, run["ranks"],
                           run["report"].get("mode"), row["size"],
                           row["variant"]]
            point["time_us"].append(row["median_us"])
            for name, value in other_members(row).items():
                point[name].append(value)
            if "pairs" in row:
                point["pairs"].append(row["pairs"])
    for (bench, setting, ranks, mode, size, variant), members in points.items():
        figure = {"bench": bench, "ranks": ranks, "memory": None, "size": size,
                  "setting": setting, "mode": mode, "series": variant,
                  "rounds": len(members["time_us"])}
        for name, values in members.items():
            set_spread(figure, name, values)
        yield figure


def combine(runs):
    """Figures of all runs that went well."""
    whole = [run for run in runs if "error" not in run]
    return [*combine_compared(whole), *combine_counts(whole),
            *combine_others(whole)]


def range_text(values, digits):
    """A median; if it has a range, with that and the mean's 95 % interval."""
    median, low, high, mean, interval = (
        f"{values.get(name, 0):.{digits}f}"
        for name in ("median", "min", "max", "mean", "interval"))
    return (median if low == high else
            f"{median} ({low}-{high}; {mean} ± {interval})")


def ratio_text(figure):
    """A ratio with its range."""
    if figure is None or "ratio" not in figure:
        return "-"
    return range_text(figure["ratio"], 2)


def time_text(figure):
    """A median, of the baseline with what was best most often."""
    if figure is None:
        return "-"
    text = f"{figure['time_us']['median']:.2f}"
    if figure["series"] == BEST:
        text += f" {figure['best']}"
    return text


def table(title, columns, lines):
    """Text in columns, the first one to the left."""
    widths = [max(len(line[i]) for line in [columns] + lines)
              for i in range(len(columns))]
    text = f"{title}\n"
    for line in [columns] + lines:
        cells = [cell.ljust(width) if i == 0 else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        text += "  ".join(cells).rstrip() + "\n"
    return text + "\n"


def compared_table(figures, title, key, series=MATCHED):
    """MPI, times of these series, and ratios of lane direct; `key` gives the
    name of a line."""
    lines = collections.defaultdict(dict)
    for figure in figures:
        if "time_us" in figure:
            lines[key(figure)][figure["series"]] = figure
    there = {figure["series"] for figure in figures}
    times = [name for name in (BEST, *series) if name in there]
    ratios = [name for name in series
              if name in there and name.startswith(tuple(WAYS))]
    return table(f"{title}, us (trig: speed of an emulation, not judged); "
                 "ratio to mpi best",
                 ["", *times, "ratio:", *ratios], [
        [name, *(time_text(line.get(one)) for one in times), "",
         *(ratio_text(line.get(one)) for one in ratios)]
        for name, line in lines.items()])


def counts_table(figures):
    """What the card did a message."""
    some = [figure for figure in figures if MOVED in figure]
    if not some:
        return ""
    names = (MOVED, WRITES, OPERATIONS, PROXIED)
    return table("Lane trig: a message and use, both sides", ["", *names], [
        [f"{figure['bench']}: {describe(figure)}",
         *(range_text(figure[name], 3) for name in names)] for figure in some])


def other_table(figures, bench):
    """Of a benchmark without MPI."""
    columns = ["", "size", "us", "ratio", "else"]
    extra = ("beside_provider_ns", "percent_of_a_core", "bytes_per_pair",
             "worst_us", "pairs", "mb_per_s", "of_channel", "exchange_us")
    return table(bench, columns, [
        [" ".join(filter(None, (
            figure["setting"], figure["mode"],
            figure["ranks"] and f"{figure['ranks']} ranks", figure["series"]))),
         str(figure["size"]),
         range_text(figure["time_us"], 3), ratio_text(figure),
         ", ".join(f"{name} {figure[name]['median']:g}" for name in extra
                   if name in figure)] for figure in figures])


def targets_table(targets):
    """What must hold, and what does."""
    lines = []
    for target in targets:
        state = "not measured"
        found = "-"
        if "worst" in target:
            state = "pass" if target["pass"] else "FAIL"
            found = f"{target['worst']:.4g}"
        sign = ">=" if target["least"] else "<="
        lines.append([target["what"],
                      f"{sign} {target['must']:.4g} {target['unit']}".strip(),
                      found, state, target.get("of", "")])
    return table("What must hold (the worst figure counts)",
                 ["", "bound", "found", "", "at"], lines)


def head_text(content):
    """The machine and its load."""
    machine = content["machine"]
    text = (f"{machine['cpu']}, {machine['usable_cores']} of "
            f"{machine['cores']} cores; commit {content['commit'][:12]}"
            f"{'+' if content['commit'].endswith('+') else ''}; "
            f"{content['rounds']} runs, {load_text(content)}\n"
            f"card {content['card']}, streams of {content['stream']}, nodes: "
            f"{content.get('nodes', 1)}\n")
    if content["quick"]:
        text += "quick: these figures are no results\n"
    return text + "\n"


def load_text(content):
    """The machine's load around the runs, and what it was without in them."""
    words = []
    for name in ("before", "after"):
        loads = [run[f"load_{name}"] for run in content["runs"]]
        words.append(f"{min(loads):.1f}-{max(loads):.1f} {name}")
    stolen = [run["stolen_percent"] for run in content["runs"]]
    return (f"load {', '.join(words)} each, {min(stolen):.1f}-{max(stolen):.1f}"
            " % of the processors' time stolen by the hypervisor")


def compared_tables(figures):
    """Of what compares with MPI."""
    text = ""
    for memory in (*MEMORIES, "device"):
        some = [figure for figure in figures if figure["bench"] ==
                "st_pingpong" and figure["memory"] == memory]
        if some:
            text += compared_table(
                some, f"st_pingpong, memory by {memory}: round trip",
                lambda figure: size_text(figure["size"]))
    some = [figure for figure in figures if figure["bench"] == "st_faces"]
    if some:
        text += compared_table(some, "st_faces: iteration", halo_text)
    for bench, what in APPLICATIONS.items():
        some = [figure for figure in figures if figure["bench"] == bench]
        if some:
            text += compared_table(some, f"{bench}: {what}", lambda figure:
                                   f"{figure['ranks']} ranks")
    some = [figure for figure in figures if figure["bench"] == "st_mbw"]
    for what, series in (("matched", MATCHED), ("one-sided", ONE_SIDED)):
        if any(figure["series"] in series for figure in some):
            text += compared_table(
                some, f"st_mbw, {what}: window", lambda figure:
                f"{figure['ranks']} ranks, {size_text(figure['size'])}", series)
    return text


def tables(content):
    """Everything as text."""
    text = head_text(content)
    figures = content["figures"]
    text += compared_tables(figures) + counts_table(figures)
    for bench in ("st_trig", "st_ucx", "st_cost", "st_wrt", "st_channel",
                  "st_jacobi3d"):
        some = [figure for figure in figures if figure["bench"] == bench]
        if some:
            text += other_table(some, bench)
    return text + targets_table(content["targets"])
