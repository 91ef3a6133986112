# SPDX-License-Identifier: BSD-3-Clause
"""Long round trips against MPI by way of the floor.

From 8 MiB on all wait for the memory, which may be a fifth faster or slower
minutes later, on a machine that others use too, and so may be a run that
another one's times are divided by. The floor takes turns with everything in
each run. So each trial's time is divided by that of the floor in the same trial,
and a lane's quotient by that of the strongest way of MPI."""
import collections
import statistics

import bench_results

LONG = 8 * bench_results.M
FLOOR = "raw"
MPI = "mpi"
# Fewer trials in a place say nothing
ENOUGH = 8


def quotients(runs):
    """By place, memory, size, setting and variant: times over the floor's, of
    each trial of both with cores in one place."""
    rows = collections.defaultdict(dict)
    for number, run in enumerate(runs):
        if run["bench"] == "st_pingpong" and "error" not in run:
            for row in run["report"]["rows"]:
                if row["size"] >= LONG:
                    key = (number, run["memory"], row["size"], run["setting"])
                    rows[key][row["variant"]] = row["trials"]
    least = min((min(trial["line_ns"]) for found in rows.values()
                 for trials in found.values() for trial in trials), default=0)
    over = collections.defaultdict(list)
    for (_, *where), found in rows.items():
        for variant, trials in found.items():
            for one, floor in zip(trials, found.get(FLOOR, ())):
                places = {bench_results.place_of(trial, least)
                          for trial in (one, floor)}
                if len(places) == 1:
                    over[(*places, *where, variant)].append(
                        one["time_us"] / floor["time_us"])
    return over


def spread(values, base):
    """The median, and between which two values it is that of all possible
    trials in some 95 of 100 cases (a sign test), all over `base`."""
    values = sorted(values)
    half = len(values) / 2
    reach = len(values) ** 0.5
    low = max(0, int(half - reach))
    high = min(len(values) - 1, int(half + reach))
    return {"median": round(statistics.median(values) / base, 4),
            "low": round(values[low] / base, 4),
            "high": round(values[high] / base, 4)}


def combine(runs):
    """A figure for each place, memory, size and series that has enough trials,
    as MPI has."""
    ways = collections.defaultdict(dict)
    lanes = collections.defaultdict(list)
    lane_of = {run["setting"]: run["lane"] for run in runs}
    for (*where, setting, variant), values in quotients(runs).items():
        if where[0] is None or variant == FLOOR:
            continue
        if variant != MPI:
            lanes[(*where, f"{lane_of[setting]} {variant}")] += values
        elif len(values) >= ENOUGH:
            ways[tuple(where)][setting] = statistics.median(values)
    return [figure(where, series, values, ways[tuple(where)])
            for (*where, series), values in sorted(
                lanes.items(), key=lambda item: (
                    bench_results.PLACES.index(item[0][0]), *item[0][1:]))
            if len(values) >= ENOUGH and ways[tuple(where)]]


def figure(where, series, values, ways):
    """What a series' trials say, against the strongest way of MPI."""
    best = min(ways, key=ways.get)
    return {**dict(zip(("place", "memory", "size"), where)), "series": series,
            "trials": len(values), "best": best,
            "floor": round(1 / ways[best], 4),
            "ratio": spread(values, ways[best])}


def table(figures):
    """As text; nothing if there are no figures."""
    if not figures:
        return ""
    lines = collections.defaultdict(dict)
    for found in figures:
        lines[f"{bench_results.size_text(found['size'])}, {found['memory']}, "
              f"cores {found['place']}"][found["series"]] = found
    series = [name for name in bench_results.MATCHED
              if any(name in line for line in lines.values())]
    cells = []
    for name, line in lines.items():
        any_of = next(iter(line.values())) # Best and floor are those of all
        cells.append([name, any_of["best"], f"{any_of['floor']:.2f}",
                      *(text_of(line.get(of)) for of in series)])
    return bench_results.table(
        "st_pingpong, long messages: ratios by way of the floor",
        ["", "best", bench_results.FLOOR, *series], cells)


def text_of(found):
    """A ratio with its interval."""
    if found is None:
        return "-"
    return "{median:.3f} ({low:.3f}-{high:.3f})".format(**found["ratio"])
