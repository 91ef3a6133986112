# SPDX-License-Identifier: BSD-3-Clause
"""What the runs of run-all say together: medians, ratios to the best baseline,
targets and tables."""
import collections
import statistics

LANES = ("direct", "trig")
# Ways of OpenMPI of which the best one is the baseline: those that each lane is
# measured beside, and one that runs alone, as queues need pml/ucx
BESIDE = ("posix", "cma")
ALONE = "ob1"
BASELINES = (*BESIDE, ALONE)
# Trials around which a cache line took more than so many times the least time
# of all from core to core had cores far from each other
FAR_PLACE = 3
PLACES = ("near", "far")
# Of a row's trials, how many must have had cores in a place
ENOUGH = 1 / 3
BEST = "mpi best"
FLOOR = "floor"
# Columns of tables
TIMES = (BEST, FLOOR, "direct st", "trig st")
MATCHED = ("direct st", "direct st-ready", "trig st", "trig st-ready")
ONE_SIDED = ("direct put", "direct put-strict", "direct get",
             "direct get-strict", "trig put", "trig put-strict", "trig get",
             "trig get-strict")
# Of the benchmarks of MPI
COMPARED = ("st_pingpong", "st_faces", "st_mbw")
K = 1 << 10
M = 1 << 20
# Blocks of st_faces: by the bytes of the longest message, which tell them
# apart, the name and the options
BLOCKS = {512: ("8^3 nodes", "--block 1 --order 7"),
          17 * 17 * 8: ("8^3 elements", "--block 8 --order 2")}
# What st_ucx does by each way
UCX_WHAT = ("tag", "put", "window")
STANDARD = ("st",)
BOTH = ("st", "st-ready")
MEMORIES = ("malloc", "mpi")
# Of round trips on lane direct: sizes from, to, and at most what ratio to MPI
# with memory of malloc and of MPI
DIRECT_BOUNDS = (("to 8 KiB", 0, 8 * K, 0.20, 0.20),
                 ("32 KiB", 32 * K, 32 * K, 0.40, 0.40),
                 ("64 KiB", 64 * K, 64 * K, 0.50, 0.50),
                 ("128 KiB", 128 * K, 128 * K, 0.65, 0.65),
                 ("256 KiB", 256 * K, 256 * K, 0.80, 0.55),
                 ("512 KiB to 4 MiB", 512 * K, 4 * M, 1.0, 0.80),
                 ("8 to 64 MiB", 8 * M, 64 * M, 1.05, 1.0))


def middle(runs, variant):
    """The median of a variant's times in some runs."""
    return statistics.median(run[variant]["median_us"] for run in runs)


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
        verdict = {"what": self.what, "must": self.must,
                   "unit": self.where.get("unit", ""), "figures": len(found)}
        if found:
            worst = max(found, key=self.value)
            verdict["worst"] = self.value(worst)
            verdict["of"] = describe(worst)
            verdict["pass"] = verdict["worst"] <= self.must
            floor = floor_of(worst, figures)
            if floor is not None:
                verdict["floor"] = floor
        return verdict


def floor_of(figure, figures):
    """The floor's ratio to MPI where a lane's was found, if there is one."""
    ratios = [other["ratio"]["median"] for other in figures
              if other["series"] == FLOOR and "ratio" in other and
              all(other[name] == figure[name]
                  for name in ("bench", "ranks", "memory", "size"))]
    return ratios[0] if ratios and figure["series"] in MATCHED else None


def lane_series(lane, variants):
    """Names of the series of a lane."""
    return tuple(f"{lane} {variant}" for variant in variants)


def pingpong_targets():
    """Of st_pingpong."""
    direct = lane_series("direct", BOTH)
    trig = lane_series("trig", BOTH)
    for text, low, high, *bounds in DIRECT_BOUNDS:
        for memory, must in zip(MEMORIES, bounds):
            yield Target(f"direct, {memory}, {text}: round trip / mpi", must,
                         "st_pingpong", direct, memory=memory,
                         sizes=(low, high))
    yield Target("trig, to 8 KiB: round trip / mpi", 0.30, "st_pingpong", trig,
                 sizes=(0, 8 * K))
    yield Target("trig, all sizes: round trip / mpi", 1.0, "st_pingpong", trig)


def faces_targets():
    """Of st_faces."""
    for lane, must in (("direct", 0.60), ("trig", 1.0)):
        for ranks in (2, 4, 8):
            for size, (name, _) in BLOCKS.items():
                yield Target(f"{lane}, {ranks} ranks, {name}: halo / mpi", must,
                             "st_faces", lane_series(lane, STANDARD),
                             ranks=ranks, sizes=(size, size))
    yield Target("standard / ready send in the halo", 1.10, "st_faces",
                 ("direct st/st-ready", "trig st/st-ready"))


def other_targets():
    """Of those without MPI."""
    yield Target("uct_trig / raw provider", 1.10, "st_trig", ("uct_trig",))
    yield Target("8 B deferred write, polling waiter", 1.0, "st_trig",
                 ("raw",), sizes=(8, 8), member="time_us", unit="us")
    yield Target("the same, sleeping waiter, over a bare futex wake", 2.0,
                 "st_trig", ("raw-sleeping over futex",), member="time_us",
                 unit="us")
    yield Target("UCX's tagged 8 B over cxi_trig / raw provider", 1.15,
                 "st_ucx", ("tag cxi_trig",), sizes=(8, 8))
    yield Target("the same, half round trip", 1.0, "st_ucx",
                 ("tag cxi_trig",), sizes=(8, 8), member="time_us", unit="us")
    yield Target("UCX's put of 8 B over cxi_trig / raw provider", 1.10,
                 "st_ucx", ("put cxi_trig",))
    # Of rates these are at least 0.95 and 0.80
    yield Target("UCX's windows of 1 MiB over cxi_trig / raw provider",
                 1 / 0.95, "st_ucx", ("window cxi_trig",), sizes=(M, M))
    yield Target("UCX's windows of 8 B over cxi_trig / raw provider", 1 / 0.80,
                 "st_ucx", ("window cxi_trig",), sizes=(8, 8))
    yield Target("UCX over cxi_trig / over tcp, all sizes", 1.0, "st_ucx",
                 tuple(f"{what} cxi_trig over tcp" for what in UCX_WHAT))
    yield Target("host's cost of a start beside the provider's call", 150,
                 "st_cost", ("start-send-trig", "startall-send-trig"),
                 member="beside_provider_ns", unit="ns")
    yield Target("idle process with an open queue", 0.3, "st_cost",
                 ("idle-trig", "idle-host", "idle-both"),
                 member="percent_of_a_core", unit="% of a core")
    yield Target("memory of a matched pair, both sides", 1024, "st_cost",
                 ("match-trig", "match-host"), member="bytes_per_pair",
                 unit="B")


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
    elif figure["bench"] in ("st_trig", "st_ucx"):
        parts.append(size_text(figure["size"]))
    return ", ".join(parts)


def judge(figures, places):
    """All targets that run-all knows; of what compares with MPI in each place,
    too."""
    compared = [*pingpong_targets(), *faces_targets()]
    verdicts = [target.judge(figures)
                for target in (*compared, *other_targets())]
    for place, of_place in places.items():
        verdicts += [{**target.judge(of_place), "place": place}
                     for target in compared]
    return verdicts


def set_spread(figure, member, values):
    """Sets a member to the median and the range of its values, if any."""
    values = list(values)
    if values:
        figure[member] = {"median": round(statistics.median(values), 4),
                          "min": round(min(values), 4),
                          "max": round(max(values), 4)}


def line_of(rows):
    """How long a cache line took from core to core in a run's rows of one size;
    0 if the ranks share no memory."""
    return statistics.median(time for row in rows.values()
                             for trial in row["trials"]
                             for time in trial["line_ns"])


def is_comparable(run, alone):
    """Two runs had cores in the same place."""
    lines = line_of(run), line_of(alone)
    return max(lines) <= FAR_PLACE * min(lines)


class Point:
    """One size of one benchmark with so many ranks and such memory."""

    def __init__(self, in_place):
        self.in_place = in_place # All runs' cores were in the same one
        self.runs = {} # By round, lane and way of MPI, rows by variant
        self.num_bytes = None # That all ranks move in that time

    def add(self, run, row):
        """Takes a row of a report."""
        self.runs.setdefault((run["round"], run["lane"], run["mpi"]), {})[
            row["variant"]] = row
        if "mb_per_s" in row:
            self.num_bytes = row["mb_per_s"] * row["median_us"]

    def runs_with(self, variant, lanes, ways):
        """Those of these settings, by round."""
        found = collections.defaultdict(list)
        for (number, lane, mpi), run in self.runs.items():
            if lane in lanes and mpi in ways and variant in run:
                found[number].append(run)
        return found

    def runs_alone(self, number, run):
        """Those of MPI alone that a run is compared with: of its round, or of
        all rounds if that one had cores elsewhere."""
        runs = {other: alone for (other, _, mpi), alone in self.runs.items()
                if mpi == ALONE and (self.in_place or
                                     is_comparable(run, alone))}
        return [runs[number]] if number in runs else list(runs.values())

    def ratios(self, variant, lanes):
        """To which way of MPI ratios are the largest, and these: each of one
        run, or to that which runs alone. None where one is missing, or cannot
        be compared."""
        found = collections.defaultdict(list)
        missing = set(BASELINES)
        for (number, lane, mpi), run in self.runs.items():
            missing.discard(mpi)
            if lane not in lanes or variant not in run:
                continue
            found[mpi].append(run[variant]["ratio"])
            alone = self.runs_alone(number, run)
            if alone:
                found[ALONE].append(run[variant]["median_us"] /
                                    middle(alone, "mpi"))
        if missing or ALONE not in found:
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
        times = {mpi: {number: middle(runs, "mpi") for number, runs
                       in self.runs_with("mpi", (*LANES, None), (mpi,)).items()}
                 for mpi in BASELINES}
        best = [min((times[mpi][number], mpi) for mpi in BASELINES)
                for number in set.intersection(*map(set, times.values()))]
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
        for name, variant, lanes in self.series():
            yield self.figure({**head, "series": name}, [
                middle(runs, variant) for runs
                in self.runs_with(variant, lanes, BESIDE).values()],
                              *self.ratios(variant, lanes))

    def series(self):
        """Names, variants and lanes of what there is beside MPI."""
        there = {(lane, variant) for (_, lane, _), run in self.runs.items()
                 for variant in run if lane is not None}
        if any(variant == "raw" for _, variant in there):
            yield FLOOR, "raw", LANES
        for lane, variant in sorted(there):
            if variant not in ("mpi", "raw"):
                yield f"{lane} {variant}", variant, (lane,)

    def standard_to_ready(self, head):
        """Ratios of the two kinds of sends, each of one run."""
        for lane in LANES:
            rounds = self.runs_with("st-ready", (lane,), BESIDE)
            ratios = [run["st"]["median_us"] / run["st-ready"]["median_us"]
                      for runs in rounds.values() for run in runs]
            if ratios:
                figure = {**head, "series": f"{lane} st/st-ready",
                          "rounds": len(rounds)}
                set_spread(figure, "ratio", ratios)
                yield figure


def combine_compared(runs, in_place=False):
    """Figures of the benchmarks that compare with MPI; of runs with cores in
    the same place, or wherever they were."""
    points = collections.defaultdict(lambda: Point(in_place))
    for run in runs:
        if run["bench"] in COMPARED:
            for row in run["report"]["rows"]:
                points[run["bench"], run["ranks"], run["memory"],
                       row["size"]].add(run, row)
    for (bench, ranks, memory, size), point in points.items():
        head = {"bench": bench, "ranks": ranks, "memory": memory, "size": size}
        yield from point.figures(head)
        if bench == "st_faces":
            yield from point.standard_to_ready(head)


def place_of(trial, least):
    """Where the cores were before and after it; None if they were moved."""
    low, high = min(trial["line_ns"]), max(trial["line_ns"])
    if high <= FAR_PLACE * least:
        return "near"
    return "far" if low > FAR_PLACE * least else None


def median_in(row, place, least):
    """A row's median of the trials in a place; None if these are few."""
    times = [trial["time_us"] for trial in row["trials"]
             if place_of(trial, least) == place]
    enough = len(times) >= ENOUGH * len(row["trials"])
    return statistics.median(times) if enough else None


def rows_in(rows, place, least):
    """What rows say of a place, as far as they and MPI were there."""
    medians = {(row["size"], row["variant"]): median_in(row, place, least)
               for row in rows}
    for row in rows:
        median = medians[row["size"], row["variant"]]
        base = medians.get((row["size"], "mpi"))
        if median is not None and base is not None:
            found = {**row, "median_us": median, "ratio": median / base}
            if "mb_per_s" in row:
                found["mb_per_s"] *= row["median_us"] / median
            yield found


def split_runs(runs):
    """By place, the runs that compare with MPI, with what their rows say of it;
    nothing if all cores were in one place."""
    runs = [run for run in runs if run["bench"] in COMPARED]
    trials = [trial for run in runs for row in run["report"]["rows"]
              for trial in row["trials"]]
    least = min((min(trial["line_ns"]) for trial in trials), default=0)
    split = {place: [{**run, "report": {"rows": list(rows_in(
        run["report"]["rows"], place, least))}} for run in runs]
             for place in PLACES}
    if not any(run["report"]["rows"] for run in split["far"]):
        return {}
    return split


def combine_places(runs):
    """By place, figures of what compares with MPI."""
    whole = [run for run in runs if "error" not in run]
    return {place: list(combine_compared(found, True))
            for place, found in split_runs(whole).items()}


def other_members(row):
    """What a row of another benchmark says beside its times."""
    members = {name: max(value) if isinstance(value, list) else value
               for name, value in row.items() if name in (
                   "beside_provider_ns", "percent_of_a_core", "worst_us")}
    if "malloc_bytes_per_pair" in row:
        members["bytes_per_pair"] = (row["malloc_bytes_per_pair"] +
                                     row["mapped_bytes_per_pair"])
    if row["ratio"] is not None:
        members["ratio"] = row["ratio"]
    return members


def wake_rows(rows):
    """Of st_trig: by how much a wake takes longer than the bare one."""
    times = {row["variant"]: row["median_us"] for row in rows
             if row["size"] == 8}
    if "futex" in times and "raw-sleeping" in times:
        yield {"size": 8, "variant": "raw-sleeping over futex", "ratio": None,
               "median_us": times["raw-sleeping"] - times["futex"]}


def tcp_rows(rows):
    """Of st_ucx: cxi_trig against tcp."""
    times = {(row["variant"], row["size"]): row["median_us"] for row in rows}
    for (variant, size), time in times.items():
        what, way = variant.split(" ", 1)
        if way == "cxi_trig":
            yield {"size": size, "variant": f"{variant} over tcp",
                   "median_us": time,
                   "ratio": time / times[f"{what} tcp", size]}


def combine_others(runs):
    """Figures of the benchmarks without MPI."""
    points = collections.defaultdict(lambda: collections.defaultdict(list))
    for run in runs:
        if run["bench"] in COMPARED:
            continue
        rows = run["report"]["rows"]
        if run["bench"] == "st_trig":
            rows = rows + list(wake_rows(rows))
        elif run["bench"] == "st_ucx":
            rows = rows + list(tcp_rows(rows))
        for row in rows:
            point = points[run["bench"], row["size"], row["variant"]]
            point["time_us"].append(row["median_us"])
            for name, value in other_members(row).items():
                point[name].append(value)
    for (bench, size, variant), members in points.items():
        figure = {"bench": bench, "ranks": None, "memory": None, "size": size,
                  "series": variant, "rounds": len(members["time_us"])}
        for name, values in members.items():
            set_spread(figure, name, values)
        yield figure


def combine(runs):
    """Figures of all runs that went well."""
    whole = [run for run in runs if "error" not in run]
    return [*combine_compared(whole), *combine_others(whole)]


def range_text(values, digits):
    """A median with its range, if it has one."""
    median, low, high = (f"{values[name]:.{digits}f}"
                         for name in ("median", "min", "max"))
    return median if low == high else f"{median} ({low}-{high})"


def ratio_text(figure):
    """A ratio with its range."""
    if figure is None or "ratio" not in figure:
        return "-"
    return range_text(figure["ratio"], 2)


def median_text(figure):
    """A ratio alone."""
    return ratio_text(figure).partition(" ")[0]


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


def compared_table(figures, title, key, ratios=MATCHED):
    """Baseline, floor and lanes of one benchmark, and these ratios; `key` gives
    the name of a line."""
    lines = collections.defaultdict(dict)
    for figure in figures:
        lines[key(figure)][figure["series"]] = figure
    there = {figure["series"] for figure in figures}
    times = [name for name in TIMES if name in there]
    ratios = [name for name in ratios if name in there]
    # Of many columns the ranges are left to the file and the plots
    text_of = median_text if len(ratios) > 4 else ratio_text
    return table(title, ["us:", *times, "ratio:", *ratios], [
        [name, *(time_text(line.get(one)) for one in times), "",
         *(text_of(line.get(one)) for one in ratios)]
        for name, line in lines.items()])


def other_table(figures, bench):
    """Of a benchmark without MPI."""
    columns = ["", "size", "us", "ratio", "else"]
    extra = ("beside_provider_ns", "percent_of_a_core", "bytes_per_pair",
             "worst_us")
    return table(bench, columns, [
        [figure["series"], str(figure["size"]),
         range_text(figure["time_us"], 3), ratio_text(figure),
         ", ".join(f"{name} {figure[name]['median']:g}" for name in extra
                   if name in figure)] for figure in figures])


def targets_table(targets):
    """What must hold, and what does; of places only what was measured."""
    lines = []
    for target in targets:
        if "place" in target and "worst" not in target:
            continue
        state = "not measured"
        found = "-"
        floor = f"{target['floor']:.4g}" if "floor" in target else ""
        if "worst" in target:
            state = "pass" if target["pass"] else "FAIL"
            found = f"{target['worst']:.4g}"
        what = target["what"]
        if "place" in target:
            what += f", cores {target['place']}"
        lines.append([what, f"{target['must']:g} {target['unit']}",
                      found, floor, state, target.get("of", "")])
    return table("What must hold (the worst figure counts)",
                 ["", "at most", "found", "floor", "", "at"], lines)


def head_text(content):
    """The machine and its load."""
    machine = content["machine"]
    text = (f"{machine['cpu']}, {machine['usable_cores']} of "
            f"{machine['cores']} cores; commit {content['commit'][:12]}"
            f"{'+' if content['commit'].endswith('+') else ''}; "
            f"{content['rounds']} runs, {load_text(content)}\n")
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


def compared_tables(figures, where=""):
    """Of what compares with MPI."""
    text = ""
    for memory in MEMORIES:
        some = [figure for figure in figures if figure["bench"] ==
                "st_pingpong" and figure["memory"] == memory]
        if some:
            # Of a place not each run has each size
            text += compared_table(
                sorted(some, key=lambda figure: figure["size"]),
                f"st_pingpong, memory by {memory}{where}: round trip",
                lambda figure: size_text(figure["size"]))
    some = [figure for figure in figures if figure["bench"] == "st_faces"]
    if some:
        text += compared_table(some, f"st_faces{where}: iteration", halo_text)
    some = [figure for figure in figures if figure["bench"] == "st_mbw"]
    for what, ratios in (("matched", MATCHED), ("one-sided", ONE_SIDED)):
        if any(figure["series"] in ratios for figure in some):
            text += compared_table(
                some, f"st_mbw, {what}{where}: window", lambda figure:
                f"{figure['ranks']} ranks, {size_text(figure['size'])}", ratios)
    return text


def tables(content):
    """Everything as text."""
    text = head_text(content)
    figures = content["figures"]
    text += compared_tables(figures)
    for place, found in content["places"].items():
        text += compared_tables(found, f", cores {place}")
    for bench in ("st_trig", "st_ucx", "st_cost", "st_wrt"):
        some = [figure for figure in figures if figure["bench"] == bench]
        if some:
            text += other_table(some, bench)
    return text + targets_table(content["targets"])
