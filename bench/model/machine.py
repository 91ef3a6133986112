# SPDX-License-Identifier: BSD-3-Clause
"""The constants of a machine: from reports of benchmarks, and of papers.

Times are microseconds, rates are bytes in a microsecond.
"""
import dataclasses
import json
import math
import statistics


class BadReport(Exception):
    """A file is no report, or lacks what is looked for."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """What a step of a program is made of."""
    name: str
    # The host
    launch: float = 1.0     # It launches a kernel
    begin: float = 1.0      # ... until the kernel runs on an idle stream
    sync: float = 1.0       # End of the last kernel until the host knows
    post: float = 0.2       # MPI_Irecv or MPI_Isend
    complete: float = 0.2   # MPI_Waitall, each message of the two
    enqueue: float = 0.5    # Start and wait of one message, on a stream
    # The stream
    store: float = 0.5      # The first store of a start reaches the card
    react: float = 1.0      # A word is written until the stream goes on
    more: float = 0.1       # Each further store, or word
    copy: float = 1e5       # Copies out of an inbox
    # The card and the network
    fire: float = 0.1       # A deferred operation, beside the message
    gap: float = 0.05       # From one message to the next
    latency: float = 2.0    # One way, of a message of nearly nothing
    bandwidth: float = 25e3
    ack: float = 2.0        # It has arrived until the sender's card knows
    eager: float = 8192     # MPI's longest message without a handshake
    shake: float = 4.0      # ... and what that takes
    entries: int = 504      # Deferred operations of a card
    counters: int = 2047
    # A dragonfly's, simplified: nodes, groups of them, links between groups
    ranks_node: int = 1     # Processes of a node
    ranks_card: int = 1
    near: float = 1.0       # One way within a node
    group: int = 512        # Nodes
    hop: float = 0.6        # More of a way to another group
    up: float = 200         # Links of a group to the others
    # What varies
    noise: float = 0.0      # Of a kernel's time, mean of the exponential
    pause: float = 0.0      # A host is held up so long ...
    pauses: float = 0.0     # ... in such a part of the steps
    kernels: dict = dataclasses.field(default_factory=dict, compare=False)

    def but(self, **changes):
        """The same with other values."""
        return dataclasses.replace(self, **changes)


# What the texts of the papers say, in the middle of its range; what they do not say
# is the default above. 003 is the paper of 2026. "fitted" has
# sync and shake such that 16 and 32 KiB take the published parts of MPI's time, and
# more (a kernel that polls) such that one time of its table V is right.
FRONTIER = Machine("frontier", launch=1.0, begin=0.5, sync=1.0, post=0.25,
                   complete=0.25, store=0.5, react=0.5, latency=5.0, shake=10.0,
                   eager=16384, ranks_node=8, ranks_card=2)
FITTED = FRONTIER.but(name="frontier-fitted", sync=3.82, shake=2.21, more=1.0)
# What cannot be 0
LEAST = {**dict.fromkeys(("bandwidth", "copy", "up"), 1e-9),
         **dict.fromkeys(("ranks_node", "ranks_card", "group"), 1)}
PUBLISHED = {machine.name: machine for machine in (FRONTIER, FITTED)}


def read_json(path):
    """What a file has, or BadReport."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise BadReport(f"{path}: {error}") from None


def least(times, key, time):
    """Keeps the least time of a key: what else the machine does is not modelled."""
    times[key] = min(times.get(key, math.inf), time)


def read_reports(paths):
    """Least times of reports of benchmarks: by name and ranks, variant, size."""
    found = {}
    for path in paths:
        report = read_json(path)
        try:
            ways = found.setdefault((report["bench"], report.get("ranks", 1)), {})
            for row in report["rows"]:
                least(ways.setdefault(row["variant"], {}), row["size"],
                      float(row["min_us"]))
        except (TypeError, KeyError, ValueError, AttributeError):
            raise BadReport(f"{path}: is no report of a benchmark "
                            "(--json)") from None
    return found


def kernel_times(paths):
    """Least of the medians of traces' kernels, by name (UCX_ST_TRACE)."""
    found = {}
    for path in paths:
        times = {}
        try:
            for event in read_json(path)["traceEvents"]:
                if event.get("cat") == "kernel":
                    times.setdefault(event["name"], []).append(event["dur"])
        except (TypeError, KeyError, AttributeError):
            raise BadReport(f"{path}: is no trace (UCX_ST_TRACE)") from None
        for name, all_ in times.items():
            least(found, name, statistics.median(all_))
    return found


def per_byte(times, low=2048, high=32768):
    """Microseconds a byte, between two sizes that there are."""
    low, high = (min(times, key=lambda size: abs(size - want))
                 for want in (low, high))
    return max((times[high] - times[low]) / max(high - low, 1), 1e-9)


def from_reports(paths, traces=()):
    """This machine, lane direct: st_wrt, st_pingpong, st_cost; st_mbw may be
    there, too, else its time a message is 0.1 us."""
    found = {bench: ways for (bench, _), ways in read_reports(paths).items()}
    missing = {"st_wrt", "st_pingpong", "st_cost"} - set(found)
    if missing:
        raise BadReport(f"no report of {', '.join(sorted(missing))}")
    try:
        react, cost = found["st_wrt"]["own-poll"][1], found["st_cost"]
        trip = found["st_pingpong"]
        half_mpi, half_st = (min(trip[way].items())[1] / 2 for way in ("mpi", "st"))
        enqueue = sum(min(cost[f"{call}-{side}-host"].values()) for call in
                      ("start", "wait") for side in ("send", "recv")) / 2
        # A window of 32 messages each way
        window = {way: min(times.items())[1] / 64 for way, times in
                  found.get("st_mbw", {"mpi": {8: 6.4}, "st": {8: 6.4}}).items()}
        post, more = window["mpi"] / 2, window["st"]
    except (KeyError, ValueError) as error:
        raise BadReport(f"a report lacks {error}") from None
    # Of a message's way the stream's reaction is a part; what MPI takes more, the
    # host's
    react = min(react, half_st)
    latency, launch = half_st - react, 0.1
    return Machine("here", launch=launch, begin=react,
                   sync=max(half_mpi - latency - launch - react - 2 * post, 0),
                   post=post, complete=post, enqueue=enqueue, store=0.0, react=react,
                   more=more, fire=0.0, gap=0.0, latency=latency,
                   bandwidth=2 / per_byte(trip["st"]), ack=0.0, eager=1e12,
                   group=1 << 30, kernels=kernel_times(traces))
