#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a step of a program takes, driven by the host and by streams, on a few
processes and on thousands (docs/scaling.md)."""
import argparse
import math
import os
import sys

try:
    import numpy  # noqa: F401
except ImportError:
    sys.exit("st_model.py: needs numpy (package python3-numpy)")

import machine
import simulate
import step
import validate

RANKS = (8, 64, 512, 2197, 10000)
STYLES = {"mpi": ("driven by the host", "black", "o"),
          "standard": ("each request alone", "#d55e00", "^"),
          "exchange": ("exchange: one store, one word", "#0072b2", "s"),
          "ready": ("ready sends, an exchange", "#56b4e9", "D")}


def get_machine(options):
    """The one that options name, with their changes."""
    here = (machine.from_reports(options.reports, options.traces)
            if options.reports else machine.PUBLISHED[options.machine])
    changes = {}
    for text in options.set:
        name, _, value = text.partition("=")
        if not isinstance(getattr(here, name, None), (int, float)):
            raise machine.BadReport(f"\"{text}\": no constant {name}")
        try:
            changes[name] = type(getattr(here, name))(float(value))
        except (ValueError, OverflowError):
            raise machine.BadReport(f"\"{text}\": no number") from None
        if not changes[name] >= machine.LEAST.get(name, 0) or \
                changes[name] == math.inf:
            raise machine.BadReport(f"\"{text}\": out of range")
    return here.but(**changes)


def do_constants(options):
    for name, value in vars(get_machine(options)).items():
        print(f"{name:12} {value if isinstance(value, (str, dict)) else f'{value:g}'}")


def do_step(options):
    here = get_machine(options)
    phase = simulate.PROGRAMS[options.program](options.ranks)[0]
    mean = sum(phase.sizes) / len(phase.sizes)
    phase = step.Phase(phase.kernels, (mean,) * len(phase.sizes), phase.inside)
    least = step.period(here, phase, "mpi")
    print(f"{options.program} on {here.name}, {len(phase.sizes)} messages of "
          f"{mean:.0f} bytes, kernels {sum(phase.kernels) + phase.inside:g} us; "
          "all alike")
    for name in step.WAYS:
        time = step.period(here, phase, name)
        print(f"{name:9} {time:8.1f} us  {time / least:5.2f} of mpi")
    for name, (holds, text) in step.conditions(here, phase).items():
        print(f"{name} {'holds' if holds else 'does not hold'}: {text}")


def do_resources(options):
    here = get_machine(options)
    print(f"{options.peers} peers, {options.messages} messages a step, lane "
          f"{options.lane}, {options.processes} processes a card")
    for name in ("standard", "eager", "exchange", "ready"):
        print(f"{name}: " + "; ".join(
            f"{what} {value:.4g}" for what, value in step.resources(
                options.peers, options.messages, name, here, options.lane,
                options.processes).items()))


def do_simulate(options):
    here = get_machine(options)
    least = None
    phase = simulate.PROGRAMS[options.program](options.ranks)[0]
    for name in options.ways:
        if step.ahead(here, phase, step.WAYS[name]) < 1:
            print(f"{name}: the card has entries for less than a step: that threads "
                  "carry messages out is not in the model")
        time, messages = simulate.run(here, options.program, name, options.ranks,
                                      options.steps, options.seed)
        least = least or time
        print(f"{options.program}, {options.ranks} processes, {name}: {time:.1f} us "
              f"a step, {time / least:.2f} of {options.ways[0]}; {messages} messages")


def do_validate(options):
    rows = []
    if not options.here_only:
        rows += validate.published()
    if options.runs:
        rows += validate.runs_here(get_machine(options), options.runs, options.cores)
    print(validate.table(rows))


def do_plot(options):
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        sys.exit("st_model.py: needs matplotlib (package python3-matplotlib)")
    here = get_machine(options)
    figure, all_axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
    for axes, program in zip(all_axes, simulate.PROGRAMS):
        for name, (label, color, marker) in STYLES.items():
            times = [simulate.run(here, program, name, ranks, options.steps)[0]
                     for ranks in RANKS if ranks <= options.ranks]
            axes.plot(RANKS[:len(times)], times, color=color, marker=marker,
                      markersize=4, linewidth=1.3, label=label)
        axes.set_xscale("log")
        axes.set_ylim(0)
        axes.set_title({"faces": "Faces, 26 messages", "life": "Life, 8 messages",
                        "cg": "CG, 2 messages and 2 sums"}[program], fontsize=10)
        axes.set_xlabel("processes")
        axes.grid(True, color="#e0e0e0", linewidth=0.6)
    all_axes[0].set_ylabel("us a step, simulated")
    all_axes[1].legend(fontsize=8, loc="lower right")
    figure.savefig(options.output, dpi=110)
    print(f"{options.output}: {here.name}, up to {options.ranks} processes")


def add_machine(parser):
    parser.add_argument("--machine", choices=sorted(machine.PUBLISHED),
                        default="frontier", help="constants of papers (frontier)")
    parser.add_argument("--reports", nargs="+", metavar="JSON", help="constants of "
                        "this machine: --json of st_wrt, st_pingpong, st_cost, and "
                        "st_mbw if there is one")
    parser.add_argument("--traces", nargs="+", metavar="FILE", default=[],
                        help="the times of kernels, from UCX_ST_TRACE")
    parser.add_argument("--set", nargs="+", metavar="NAME=VALUE", default=[],
                        help="other constants (see \"constants\")")


def number(least, most):
    """A whole number of a range, as argparse wants it."""
    def parse(text):
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text}: not {least} to {most}")
        return int(text)
    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, what in (("constants", "print what a machine is made of"),
                       ("step", "a step by formulas, and conditions C1 to C3"),
                       ("resources", "what a process holds"),
                       ("simulate", "a step by simulation"),
                       ("validate", "errors against papers and runs"),
                       ("plot", "a step against the number of processes")):
        command = commands.add_parser(name, help=what)
        command.set_defaults(do=globals()[f"do_{name}"])
        add_machine(command)
        add = command.add_argument
        if name in ("step", "simulate"):
            add("--program", choices=list(simulate.PROGRAMS), default="faces")
        if name in ("step", "simulate", "plot"):
            add("--ranks", type=number(1, 100000),
                default=10000 if name == "plot" else 64)
        if name in ("simulate", "plot"):
            add("--steps", type=number(4, 10000), default=20 if name != "plot" else 8)
        if name == "simulate":
            add("--ways", nargs="+", choices=list(step.WAYS), default=list(step.WAYS))
            add("--seed", type=number(0, 1 << 31), default=1)
        if name == "resources":
            add("--peers", type=number(1, 1 << 20), default=26)
            add("--messages", type=number(1, 1 << 16), default=26)
            add("--lane", choices=list(step.GROWTH), default="trig")
            add("--processes", type=number(1, 500), default=1)
        if name == "validate":
            add("--runs", nargs="+", metavar="JSON", default=[],
                help="reports of st_pingpong, st_faces, st_life, st_cg")
            add("--cores", type=number(1, 1 << 16), default=os.cpu_count())
            add("--here-only", action="store_true", help="no papers")
        if name == "plot":
            add("-o", "--output", required=True)
    options = parser.parse_args()
    if "runs" in options and options.runs and not options.reports:
        parser.error("--runs needs --reports: the constants of that machine")
    if "here_only" in options and options.here_only and not options.runs:
        parser.error("--here-only needs --runs")
    try:
        options.do(options)
    except (machine.BadReport, OSError) as error:
        sys.exit(f"st_model.py: {error}")


if __name__ == "__main__":
    main()
