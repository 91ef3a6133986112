# SPDX-License-Identifier: BSD-3-Clause
"""A step of a program, by formulas: its time when messages are driven by the host
and by streams, when streams pay, and what a process holds.

All processes are alike here and in step. simulate.py does without that.
"""
import dataclasses
import math

# Deferred operations of a round of eager-ahead messages: its clear-to-send is one
# of so many uses' (docs/performance.md: 79.9 - 78 for 26 pairs)
ROUND = 13.7


@dataclasses.dataclass(frozen=True)
class Way:
    """How messages are driven; what m sends and m receives take of a process."""
    name: str
    stores: object       # Of the stream: function of m
    words: object
    entries: object
    counters: object
    is_ready: bool = False   # No clear-to-send before the data
    copies: bool = False     # The stream copies from an inbox
    depth: int = 1           # Sets of requests (ready: two)


# The counts of docs/performance.md ("Counts") and docs/protocols.md
WAYS = {way.name: way for way in (
    Way("mpi", lambda m: 0, lambda m: 0, lambda m: 0, lambda m: 0, True),
    # Ready sends, an exchange; receives, another one, started a step ahead
    Way("ready", lambda m: 1, lambda m: 2, lambda m: m + 2, lambda m: 6, True,
        depth=2),
    # Each request by itself
    Way("standard", lambda m: 2 * m, lambda m: 2 * m, lambda m: 4 * m,
        lambda m: 4 * m),
    Way("eager", lambda m: m, lambda m: 2 * m,
        lambda m: m * (3 + 1 / ROUND), lambda m: 4 * m, True, True),
    # Lane direct, and ready sends of paper 003; that paper's standard sends
    Way("direct", lambda m: 1, lambda m: 2 * m, lambda m: 2 * m, lambda m: 2, True),
    Way("paper", lambda m: m + 1, lambda m: 2 * m, lambda m: 4 * m, lambda m: m + 1),
    # Coupled: one store for the receives, one for the sends, one word
    Way("exchange", lambda m: 2, lambda m: 1, lambda m: 2 * m + 1, lambda m: 3))}


@dataclasses.dataclass(frozen=True)
class Phase:
    """Kernels, messages to neighbours, a kernel meanwhile. The host waits for the
    stream before it sends if there are kernels."""
    kernels: tuple = ()     # Before the messages: us of each
    sizes: tuple = ()       # Of the messages, bytes
    inside: float = 0.0     # A kernel behind the sends, us; 0: none
    shape: str = "grid"     # Whose they are: simulate.py


def service(machine, size, way):
    """The card's time for a message."""
    return max(machine.gap + (0 if way.name == "mpi" else machine.fire),
               size / machine.bandwidth)


def host_step(machine, phase):
    """What the host needs to enqueue a step of streams."""
    kernels = len(phase.kernels) + (phase.inside > 0)
    return kernels * machine.launch + 2 * len(phase.sizes) * machine.enqueue


def wire(machine, phase, way):
    """From the go of all messages until the last one has arrived."""
    return machine.latency + sum(service(machine, size, way)
                                 for size in phase.sizes)


def handshake(machine, size):
    """What a message of MPI pays that is not sent at once."""
    return machine.shake if size > machine.eager else 0


def period_mpi(machine, phase):
    """A step driven by the host, messages of one size; 0 is when the last step's
    messages are there."""
    m, way = len(phase.sizes), WAYS["mpi"]
    each = service(machine, phase.sizes[0], way)
    way_us = (machine.post + each + (m - 1) * max(machine.post, each) +
              machine.latency + handshake(machine, phase.sizes[0]))
    # Where the last step's sends, and its kernel behind them, have left the host
    # and the stream
    called = m * machine.post + (machine.launch if phase.inside else 0) - way_us
    host = max(2 * m * machine.complete, called)
    stream = called + machine.begin + phase.inside if phase.inside else -math.inf
    for kernel in phase.kernels:
        host += machine.launch
        stream = max(stream, host + machine.begin) + kernel
    host += m * machine.post
    if phase.kernels:
        host = max(host, stream) + machine.sync
    return host + way_us


def period(machine, phase, name):
    """Time of a step in which all processes are alike."""
    if name == "mpi":
        return period_mpi(machine, phase)
    way = WAYS[name]
    m = len(phase.sizes)
    copies = sum(phase.sizes) / machine.copy if way.copies else 0
    # From the end of one step to that of the next
    start = (machine.react + (way.words(m) - 1) * machine.more + copies +
             sum(phase.kernels))
    if ahead(machine, phase, way) < 2:   # Posted when the last step is over
        start = max(start, host_step(machine, phase))
    start += machine.store + (way.stores(m) - 1) * machine.more
    go = start + (0 if way.is_ready else machine.latency + machine.fire)
    done = max(go + wire(machine, phase, way) + machine.ack,
               start + phase.inside)
    return max(done, host_step(machine, phase))


def ahead(machine, phase, way):
    """How many steps a process can have enqueued with entries of its card; none:
    threads carry messages out (not modelled)."""
    entries = way.entries(len(phase.sizes))
    if entries == 0:
        return math.inf
    return int(machine.entries / machine.ranks_card / entries)


def conditions(machine, phase, name="exchange", steps=1000):
    """C1 to C3 of paper 004, section 4.2, each with both of its sides."""
    way = WAYS[name]
    work = sum(phase.kernels) + phase.inside
    # The stream is idle with MPI for all that is no kernel
    idle = period_mpi(machine, phase) - work
    talk = period(machine, phase, name) - work
    host, stream = host_step(machine, phase), work + talk
    return {
        "C1": (host < stream, f"the host enqueues a step in {host:.1f} us, the "
                              f"stream takes {stream:.1f} us"),
        "C2": (talk <= idle, f"messages take {talk:.1f} us of the stream, which "
                             f"is idle for {idle:.1f} us with MPI"),
        "C3": (steps > 1 and ahead(machine, phase, way) >= 1,
               f"{steps} steps without the host, of which the card holds "
               f"{ahead(machine, phase, way)}")}


# Of docs/scaling.md: us of the process's processors a peer, and KiB a peer, the
# last row of each; memory of the first peer has all that a worker makes once.
GROWTH = {"host": (56.3, 188.2, 28.0, 464.0), "direct": (88.1, 132.8, 36.2, 384.0),
          "trig": (51.8, 551.3, 443.8, 1432.0)}
PAIR_BYTES = {"trig": 2765, "host": 1202, "direct": 1202}   # st_cost, malloc


def resources(peers, messages, name, machine, lane="trig", processes=1):
    """What a process holds that has so many peers and sends so many messages a
    step (and receives as many); processes is how many share a card."""
    way = WAYS[name]
    connect, match, each, first = GROWTH[lane]
    room = machine.counters // processes - 4
    counters = way.counters(messages) if lane == "trig" else 0
    entries = way.entries(messages) if lane == "trig" else 0
    return {
        "endpoints of the service thread": peers,
        "entries in use, a step": entries,
        "steps ahead that entries allow":
            int(machine.entries / processes / entries) if entries else math.inf,
        "counters held": counters,
        "such halos that counters allow": room // counters if counters else math.inf,
        "memory, MiB": (first + max(peers - 1, 0) * each +
                        2 * messages * way.depth * PAIR_BYTES[lane] / 1024) / 1024,
        "connect and match, ms": peers * (connect + match) / 1e3}
