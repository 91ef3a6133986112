# SPDX-License-Identifier: BSD-3-Clause
"""Draws what run-all has measured."""
import bench_results

# Colours that the colour-blind tell apart (Okabe and Ito), markers and lines
STYLES = {
    bench_results.BEST: ("best MPI", "black", "o", "-"),
    "direct st": ("st, direct lane", "#0072b2", "s", "-"),
    "direct st-ready": ("st-ready, direct lane", "#56b4e9", "D", "--"),
    "trig st": ("st, trig lane", "#d55e00", "^", "-"),
    "trig st-ready": ("st-ready, trig lane", "#e69f00", "v", "--"),
    "direct put": ("put, direct lane", "#0072b2", "P", "-"),
    "direct put-strict": ("put-strict, direct lane", "#0072b2", "X", "--"),
    "direct get": ("get, direct lane", "#56b4e9", "<", "-"),
    "direct get-strict": ("get-strict, direct lane", "#56b4e9", ">", "--"),
    "trig put": ("put, trig lane", "#d55e00", "P", "-"),
    "trig put-strict": ("put-strict, trig lane", "#d55e00", "X", "--"),
    "trig get": ("get, trig lane", "#e69f00", "<", "-"),
    "trig get-strict": ("get-strict, trig lane", "#e69f00", ">", "--"),
}
for what in ("st", "st-ready", "put", "put-strict", "get", "get-strict"):
    label, *style = STYLES[f"direct {what}"]
    STYLES[f"nodes {what}"] = (f"{what}, between nodes", *style)
for what in ("latency", "window"):
    STYLES.update({
        f"{what} raw": ("raw UCP", "black", "o", "-"),
        f"{what} channel": ("channel", "#0072b2", "s", "-"),
        f"{what} metadata": ("metadata first", "#d55e00", "^", "-"),
        f"{what} staging": ("staging buffers", "#009e73", "v", "--"),
        f"{what} stream": ("channel on a stream", "#cc79a7", "D", "-"),
    })
STYLES.update({way: STYLES[f"window {way}"]
               for way in ("channel", "metadata", "staging")})
STYLES.update({"st": ("st: a stream, exchanges", "#cc79a7", "D", "-"),
               "st-ready": ("the same, ready sends", "#009e73", "v", "--")})
MEMORY = {"malloc": "memory of malloc()", "mpi": "memory of MPI_Alloc_mem()",
          "device": "memory of the GPU"}
MUST = ("#009e73", "direct lane: at most")
RATIOS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
WIDTH, HEIGHT = 11.0, 6.0
EDGE = 0.02
DPI = 110


def points(figures, member, **where):
    """By series, (size, median, least, most) of a member."""
    found = {}
    for figure in figures:
        if member in figure and all(figure[name] == value
                                    for name, value in where.items()):
            found.setdefault(figure["series"], []).append(
                (figure["size"], *(figure[member][name] for name
                                   in ("median", "min", "max"))))
    return {series: sorted(found[series]) for series in STYLES
            if series in found}


def draw_series(axes, series, values):
    """A line with the range of the runs."""
    label, color, marker, line = STYLES[series]
    sizes, median, low, high = zip(*values)
    axes.fill_between(sizes, low, high, color=color, alpha=0.15, linewidth=0)
    axes.plot(sizes, median, color=color, marker=marker, linestyle=line,
              markersize=4, linewidth=1.3, label=label)


def set_sizes(axes, sizes):
    """A logarithmic axis of bytes with units."""
    low, high = min(sizes), max(sizes)
    axes.set_xscale("log", base=2)
    axes.set_xlim(low / 1.3, high * 1.3)
    ticks = [1 << power for power in range(0, 40)
             if low <= 1 << power <= high]
    ticks = ticks[::max(1, len(ticks) // 8)]
    axes.set_xticks(ticks, [bench_results.size_text(size) for size in ticks],
                    rotation=45, ha="right", fontsize=8)
    axes.minorticks_off()
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(True, color="#e0e0e0", linewidth=0.6)
    axes.set_axisbelow(True)


def set_units(axes, values, units):
    """A logarithmic axis with units, each a thousand of the one before; the
    second one is that of the values."""
    low, high = min(values) / 1.5, max(values) * 1.5
    ticks = {10.0 ** (power - 3): f"{10 ** (power % 3)} {units[power // 3]}"
             for power in range(3 * len(units))}
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.set_yticks([tick for tick in ticks if low <= tick <= high],
                    [text for tick, text in ticks.items()
                     if low <= tick <= high])


def set_times(axes, values):
    """A logarithmic axis of microseconds."""
    set_units(axes, values, ("ns", "µs", "ms", "s"))


def set_ratios(axes, values):
    """A logarithmic axis of ratios."""
    low, high = min(values) / 1.2, max(1.0, *values) * 1.2
    ticks = [ratio for ratio in RATIOS if low <= ratio <= high]
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.set_yticks(ticks, [f"{ratio:g}" for ratio in ticks])
    axes.minorticks_off()


def draw_bounds(axes, sizes):
    """What the ratios on the direct lane must not exceed."""
    label = MUST[1]
    for _, low, high, bound in bench_results.DIRECT_BOUNDS:
        low = max(low, min(sizes))
        if low <= max(sizes):
            axes.plot([low / 1.2, min(high, max(sizes)) * 1.2],
                      2 * [bound], color=MUST[0], linewidth=4,
                      alpha=0.6, solid_capstyle="butt", label=label)
            label = None


def caption(content, names):
    """The machine, its load, the settings and what the figures are."""
    lines = bench_results.head_text(content).strip().split("\n")
    for name in names:
        words = [f"{key}={value}" for key, value
                 in content["settings"][name].items()]
        lines.append(f"{name}: {' '.join(words)}")
    text = "Medians of the rounds, with their range."
    is_emulated = "(emulated)" in content["card"]
    if not set(names) <= set(bench_results.CHANNEL_SETTINGS):
        text += (" A ratio is the largest of those to MPI in its three "
                 "settings, of one round.")
        text += is_emulated * (" Lane trig: speed of an emulation, not judged.")
    elif "card" in names and is_emulated:
        text += (" The card is emulated: its speed says nothing of a real "
                 "one.")
    lines.append(text)
    return "\n".join(lines)


def panels(matplotlib, content, title, count, settings=None):
    """A figure with so many axes beside each other, caption below: with these
    settings, or all with ranks."""
    figure, axes = matplotlib.pyplot.subplots(
        1, count, figsize=(WIDTH, HEIGHT), sharey=True, squeeze=False)
    text = caption(content, settings or sorted({
        run["setting"] for run in content["runs"] if run["ranks"]}))
    figure.suptitle(title, fontsize=11, x=EDGE, ha="left")
    figure.text(EDGE, 0.02, text, fontsize=7, va="bottom", linespacing=1.4)
    figure.subplots_adjust(left=0.07, right=0.99, wspace=0.06, bottom=0.34)
    return figure, axes[0]


def set_legend(figure, axes):
    """One for all panels, above them."""
    handles, labels = axes.get_legend_handles_labels()
    lines = 1 if len(labels) <= 7 else 2
    figure.subplots_adjust(top=0.89 - 0.04 * lines)
    figure.legend(handles, labels, loc="upper left",
                  ncol=-(-len(labels) // lines),
                  fontsize=8, frameon=False, bbox_to_anchor=(EDGE, 0.935),
                  borderaxespad=0, handlelength=2.4, columnspacing=1.4)


def numbers(shown):
    """All that is drawn in some panels, with the ranges."""
    return [number for series in shown for values in series.values()
            for value in values for number in value[1:]]


def draw_pingpong(matplotlib, content, member):
    """Round trips: their time, or its ratio to that of the best MPI."""
    title, label, scale = {
        "time_us": ("Round trip of two ranks", "time", set_times),
        "ratio": ("Round trip of two ranks against the best MPI", "ratio",
                  set_ratios)}[member]
    shown = {memory: points(content["figures"], member, bench="st_pingpong",
                            memory=memory) for memory in MEMORY}
    shown = {memory: series for memory, series in shown.items() if series}
    if not shown:
        return None
    figure, row = panels(matplotlib, content, title, len(shown))
    for axes, (memory, series) in zip(row, shown.items()):
        sizes = [value[0] for values in series.values() for value in values]
        if member == "ratio":
            draw_bounds(axes, sizes)
        for name, values in series.items():
            draw_series(axes, name, values)
        set_sizes(axes, sizes)
        axes.set_title(MEMORY[memory], fontsize=9, loc="left")
        axes.set_xlabel("size of a message", fontsize=9)
    row[0].set_ylabel(label, fontsize=9)
    scale(row[0], numbers(shown.values()))
    set_legend(figure, row[0])
    return figure


def draw_faces(matplotlib, content):
    """Halo: ratios against the number of ranks."""
    blocks = {}
    for item in content["figures"]:
        if (item["bench"] == "st_faces" and "ratio" in item and
                item["series"] in (*bench_results.DIRECT,
                                   *bench_results.NODES)):
            found = blocks.setdefault(item["size"], {})
            found.setdefault(item["series"], {})[item["ranks"]] = item["ratio"]
    if not blocks:
        return None
    figure, row = panels(matplotlib, content, "Halo exchange of 26 neighbours "
                         "against the best MPI", len(blocks))
    for axes, (size, found) in zip(row, sorted(blocks.items())):
        draw_halo(axes, found)
        name, _ = bench_results.BLOCKS.get(size, (f"{size} B", ""))
        axes.set_title(f"Block of {name.replace('^3', '³')}", fontsize=9,
                       loc="left")
    row[0].set_ylabel("ratio", fontsize=9)
    set_legend(figure, row[0])
    return figure


def draw_halo(axes, found):
    """Of one block: bars of each series at each number of ranks."""
    ranks = sorted({number for values in found.values() for number in values})
    width = 0.8 / max(len(found), 1)
    axes.axhline(1, color="black", linewidth=1, label="best MPI")
    for place, name in enumerate(name for name in (
            *bench_results.DIRECT, *bench_results.NODES) if name in found):
        label, color, _, _ = STYLES[name]
        values = [found[name].get(number) for number in ranks]
        places = [level + (place - (len(found) - 1) / 2) * width
                  for level, value in enumerate(values) if value]
        values = [value for value in values if value]
        median = [value["median"] for value in values]
        axes.bar(places, median, width * 0.9, color=color, label=label)
        axes.errorbar(places, median, fmt="none", ecolor="#606060",
                      elinewidth=1, capsize=3, yerr=[
                          [value["median"] - value["min"] for value in values],
                          [value["max"] - value["median"] for value in values]])
    axes.set_xticks(range(len(ranks)), [f"{number} ranks" for number in ranks],
                    fontsize=9)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(True, axis="y", color="#e0e0e0", linewidth=0.6)
    axes.set_axisbelow(True)


def draw_mbw(matplotlib, content, what, names):
    """Bandwidth of MPI and of these series, a panel for each number of ranks.
    """
    ranks = sorted({item["ranks"] for item in content["figures"]
                    if item["bench"] == "st_mbw" and item["series"] in names})
    if not ranks:
        return None
    figure, row = panels(matplotlib, content, "Bandwidth in both directions of "
                         f"windows of {what}, of all ranks together",
                         len(ranks))
    shown = [{name: values for name, values in points(
        content["figures"], "mb_per_s", bench="st_mbw", ranks=number).items()
        if name == bench_results.BEST or name in names} for number in ranks]
    for axes, number, series in zip(row, ranks, shown):
        for name, values in series.items():
            draw_series(axes, name, values)
        set_sizes(axes, [value[0] for values in series.values()
                         for value in values])
        axes.set_title(f"{number} ranks", fontsize=9, loc="left")
        axes.set_xlabel("size of a message", fontsize=9)
    set_units(row[0], numbers(shown), ("kB/s", "MB/s", "GB/s", "TB/s"))
    set_legend(figure, row[0])
    return figure


def draw_channel(matplotlib, content, what):
    """Ways to send over each transport of UCX: round trips, or windows."""
    title, member, scale = {
        "latency": ("Round trip of two processes", "time_us", set_times),
        "window": ("Windows of 64 messages between two processes", "mb_per_s",
                   lambda axes, values: set_units(
                       axes, values, ("kB/s", "MB/s", "GB/s", "TB/s")))}[what]
    shown = {}
    for setting in bench_results.CHANNEL_SETTINGS:
        series = points(content["figures"], member, bench="st_channel",
                        setting=setting)
        shown[setting] = {name: values for name, values in series.items()
                          if name.startswith(what)}
    shown = {setting: series for setting, series in shown.items() if series}
    if not shown:
        return None
    figure, row = panels(matplotlib, content, title, len(shown), list(shown))
    for axes, (setting, series) in zip(row, shown.items()):
        for name, values in series.items():
            draw_series(axes, name, values)
        set_sizes(axes, [value[0] for values in series.values()
                         for value in values])
        axes.set_title(f"card, {content['card']}" if setting == "card" else
                       setting, fontsize=9, loc="left")
        axes.set_xlabel("size of a message", fontsize=9)
    scale(row[0], numbers(shown.values()))
    set_legend(figure, row[0])
    return figure


def draw_jacobi(matplotlib, content):
    """Blocks that exchange faces: time against the number of ranks."""
    shown = {}
    for figure in content["figures"]:
        if figure["bench"] == "st_jacobi3d":
            time = figure["time_us"]
            series = shown.setdefault((figure["mode"], figure["setting"]), {})
            series.setdefault(figure["series"], []).append(
                (figure["ranks"], time["median"], time["min"], time["max"]))
    if not shown:
        return None
    figure, row = panels(matplotlib, content, "Iteration of Jacobi's method in "
                         "three dimensions, 4 blocks a rank", len(shown),
                         sorted({setting for _, setting in shown}))
    for axes, ((mode, setting), series) in zip(row, shown.items()):
        for name, values in sorted(series.items()):
            draw_series(axes, name, sorted(values))
        ranks = sorted({value[0] for values in series.values()
                        for value in values})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ranks, [str(number) for number in ranks])
        axes.minorticks_off()
        axes.grid(True, color="#e0e0e0", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_title(f"{mode} scaling, {setting}", fontsize=9, loc="left")
        axes.set_xlabel("ranks", fontsize=9)
    set_times(row[0], numbers(shown.values()))
    set_legend(figure, row[0])
    return figure


def pictures(matplotlib, content):
    """Names and figures of what there is."""
    yield "latency", draw_pingpong(matplotlib, content, "time_us")
    yield "ratio", draw_pingpong(matplotlib, content, "ratio")
    yield "faces", draw_faces(matplotlib, content)
    yield "mbw", draw_mbw(matplotlib, content, "matched messages",
                          bench_results.MATCHED)
    yield "channel", draw_channel(matplotlib, content, "latency")
    yield "channel-rate", draw_channel(matplotlib, content, "window")
    yield "jacobi3d", draw_jacobi(matplotlib, content)
    yield "rma", draw_mbw(matplotlib, content, "one-sided operations",
                          bench_results.ONE_SIDED)


def draw(content, prefix, pictures=pictures):
    """Writes the pictures. Returns their paths, and why there are none or
    None."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot
    except ImportError:
        return [], (f"no plots were drawn ({prefix}-*.svg): they need matplotlib "
                    "(package python3-matplotlib); --from draws them later")
    # The same picture from the same figures, its text as text
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = "ucx-st-bench"
    drawn = []
    for name, figure in pictures(matplotlib, content):
        if figure is None:
            continue
        for kind, metadata in (("svg", {"Date": None}), ("png", None)):
            path = f"{prefix}-{name}.{kind}"
            figure.savefig(path, dpi=DPI, metadata=metadata)
            drawn.append(path)
        matplotlib.pyplot.close(figure)
    return drawn, None
