# SPDX-License-Identifier: BSD-3-Clause
"""Faces, Life and CG on thousands of processes, event by event.

A process has a timeline of its host and one of its stream, and a card that
carries out a message after the other, both ways. A message pays its card, the
links of its group where it leaves that, the way, and the other card. Events, in
order of time, are the start of a phase of a process, and a message at its target's
card; a message takes its own card and links at the event that lets it go.

Left out: which way a message takes through switches, their buffers and
congestion control, other jobs, order of messages within a link beyond the order
of events, retries, and threads that carry out what finds no entries.
"""
import gc
import heapq
import math

import numpy as np

import step


def factors(processes, dims):
    """A grid of so many processes, as even as it can be."""
    grid, left = [], processes
    for dim in range(dims, 1, -1):
        want = round(left ** (1 / dim))
        edge = min((n for n in range(1, left + 1) if left % n == 0),
                   key=lambda n: abs(n - want))
        grid.append(edge)
        left //= edge
    return grid + [left]


def targets_grid(processes, messages):
    """Periodic neighbours, as many as there are messages: 26, 8, or 2."""
    dims = {26: 3, 8: 2, 2: 1}[messages]
    shape = factors(processes, dims)
    place = np.stack(np.unravel_index(np.arange(processes), shape))
    ways = [way for way in np.ndindex((3,) * dims) if way != (1,) * dims]
    return [np.ravel_multi_index([(place[d] + way[d] - 1) % shape[d]
                                  for d in range(dims)], shape) for way in ways]


def targets(processes, phase):
    """Whom each process sends its messages to: a list a process."""
    if phase.shape == "grid":
        to = targets_grid(processes, len(phase.sizes))
    elif phase.shape == "all":
        to = [(np.arange(processes) + i) % processes for i in range(1, processes)]
    else:                        # The round of a sum: a distance
        to = [(np.arange(processes) + int(phase.shape)) % processes]
    return np.stack(to, axis=1).tolist()


def faces_sizes(block, order):
    """Bytes of the 26 messages, as st_faces has them."""
    edge = block * order + 1
    return tuple(8 * edge ** way.count(1) for way in np.ndindex(3, 3, 3)
                 if way != (1, 1, 1))


def life_sizes(processes, width, cell):
    """Bytes of the 8 messages of a square of cells."""
    rows, columns = (width // part for part in factors(processes, 2))
    edge = {0: columns, 1: rows}
    return tuple(cell * (1 if 1 not in way else edge[way.index(1)])
                 for way in np.ndindex(3, 3) if way != (1, 1))


def faces(processes, kernels=(10, 10, 10), block=8, order=2, **_):
    """An iteration of st_faces: unpack and pack, messages, interior."""
    return [step.Phase((kernels[2], kernels[0]), faces_sizes(block, order),
                       kernels[1])]


def life(processes, kernels=(5, 20), width=512, cell=1, **_):
    """A generation of st_life: step and pack, messages."""
    return [step.Phase((kernels[1], kernels[0]),
                       life_sizes(processes, width, cell))]


def total(processes, kernel, flat):
    """A sum over all: of one round, or of one message a round."""
    if processes <= flat:
        shapes, counts = ["all"], [processes - 1]
    else:
        shapes = [str(1 << i) for i in range(math.ceil(math.log2(processes)))]
        counts = [1] * len(shapes)
    return [step.Phase((kernel,) if i == 0 else (), (8,) * count, 0, shape)
            for i, (shape, count) in enumerate(zip(shapes, counts))]


def cg(processes, kernels=(20, 10, 10), row=4096, flat=1, **_):
    """An iteration of st_cg: a halo of two rows, two sums."""
    if processes == 1:
        return [step.Phase(tuple(kernels), (8, 8))]
    return ([step.Phase((kernels[2],), (row, row))] +
            total(processes, kernels[0], flat) +
            total(processes, kernels[1], flat))


PROGRAMS = {"faces": faces, "life": life, "cg": cg}


class Simulation:
    """Runs phases over and over on all processes."""

    def __init__(self, machine, phases, name, processes, seed=1):
        self.machine, self.phases = machine, phases
        self.processes, self.is_mpi = processes, name == "mpi"
        # Rounds of a sum are short standard sends, one by one, on streams
        self.ways = [step.WAYS[name if self.is_mpi or phase.shape in ("grid", "all")
                               else "eager"] for phase in phases]
        self.random = np.random.default_rng(seed)
        self.to = [targets(processes, phase) for phase in phases]
        # A phase is over when all that was sent and all that comes has come
        self.expected = [
            (np.bincount(np.concatenate(to), minlength=processes) +
             len(phase.sizes)).tolist()
            for to, phase in zip(self.to, phases)]
        self.sources = [self.invert(to) for to in self.to]
        self.service = [[step.service(machine, size, way) for size in phase.sizes]
                        for phase, way in zip(phases, self.ways)]
        self.late = [[step.handshake(machine, size) if self.is_mpi else 0
                      for size in phase.sizes] for phase in phases]
        m = machine
        self.node = [p // m.ranks_node for p in range(processes)]
        self.group = [node // m.group for node in self.node]
        self.card = [p // m.ranks_card for p in range(processes)]
        cards = self.card[-1] + 1
        self.out, self.into = [0.0] * cards, [0.0] * cards
        self.links = [0.0] * (self.group[-1] + 1)
        self.host, self.stream = [0.0] * processes, [0.0] * processes
        self.left = {}              # What has not come, and the last that has
        self.ended = [[] for _ in range(processes)]
        self.events = []
        self.messages = self.count = 0

    @staticmethod
    def invert(to):
        """Of each process, the messages that come: (source, which)."""
        sources = [[] for _ in to]
        for source, all_ in enumerate(to):
            for which, target in enumerate(all_):
                sources[target].append((source, which))
        return sources

    def draw(self):
        """What varies, for all processes and one use: of kernels, of hosts."""
        m, shape = self.machine, self.processes
        kernels = (1 + m.noise * self.random.exponential(1, shape)
                   if m.noise else np.ones(shape))
        hosts = (m.pause * (self.random.random(shape) < m.pauses)
                 if m.pauses else np.zeros(shape))
        return kernels.tolist(), hosts.tolist()

    def prepare(self, process, use, over):
        """The use before is over: when the host's, or the stream's, part of this
        one begins to send."""
        m, phase = self.machine, self.phases[use % len(self.phases)]
        way = self.ways[use % len(self.phases)]
        sizes = self.phases[use % len(self.phases) - 1].sizes if use else ()
        while len(self.drawn) <= use:
            self.drawn.append(self.draw())
        factor, pause = (values[process] for values in self.drawn[use])
        host, stream = self.host[process], self.stream[process]
        count = len(phase.sizes)
        if self.is_mpi:
            host = max(host, over + 2 * len(sizes) * m.complete) + pause
            for kernel in phase.kernels:
                host += m.launch
                stream = max(stream, host + m.begin) + kernel * factor
            host += count * m.post
            if phase.kernels:
                host = max(host, stream) + m.sync
            start = host
            host += count * m.post
            if phase.inside:
                host += m.launch
                stream = max(stream, host + m.begin) + phase.inside * factor
        else:
            if use:
                last = self.ways[use % len(self.phases) - 1]
                copies = sum(sizes) / m.copy if last.copies else 0
                stream = (max(stream, over) + m.react + copies +
                          (last.words(len(sizes)) - 1) * m.more)
            steps = max(step.ahead(m, phase, way), 1)
            ended = self.ended[process]
            if steps <= len(ended):       # Entries are free when a use has ended
                host = max(host, ended[-steps])
            host += step.host_step(m, phase) + pause
            for kernel in phase.kernels:
                stream += kernel * factor
            start = max(stream, host) + m.store + (way.stores(count) - 1) * m.more
            stream = start + phase.inside * factor
        self.host[process], self.stream[process] = host, stream
        self.push(start, 0, self.start, process, use)

    def push(self, when, order, what, *args):
        """An event; of those at one time, the one of least order is first."""
        self.count += 1
        heapq.heappush(self.events, (when, order, self.count, what, args))

    def note(self, process, use, when):
        """One of the messages that a process waits for has come."""
        key = (process, use)
        left, last = self.left.get(key) or (
            self.expected[use % len(self.phases)][process], 0.0)
        last = max(last, when)
        if left > 1:
            self.left[key] = (left - 1, last)
            return
        self.left.pop(key, None)
        self.ended[process].append(last)
        if use + 1 < self.uses:
            self.prepare(process, use + 1, last)

    def send(self, source, which, use, go):
        """A message goes: cards and links, one after the other."""
        m, index = self.machine, use % len(self.phases)
        target = self.to[index][source][which]
        busy = self.service[index][which]
        if self.node[source] == self.node[target] and m.ranks_node > 1:
            arrived = go + busy + m.near
            back = 0.0
        else:
            card = self.card[source]
            leaves = max(self.out[card], go) + busy
            self.out[card] = leaves
            here, there = self.group[source], self.group[target]
            arrived = leaves + m.latency
            if here != there:
                link = max(self.links[here], leaves) + busy / m.up
                self.links[here] = link
                arrived = link + m.latency + m.hop
            back = m.ack + (m.hop if here != there else 0)
        self.messages += 1
        self.push(arrived, which, self.arrive, target, use, source, busy, back)
        if self.is_mpi:
            self.note(source, use, go)           # MPI has it

    def arrive(self, now, target, use, source, busy, back):
        """A message is at its target's card, where it may be behind others."""
        if self.node[source] != self.node[target] or self.machine.ranks_node == 1:
            card = self.card[target]
            now = max(self.into[card] + busy, now)
            self.into[card] = now
        self.note(target, use, now)
        if not self.is_mpi:
            self.note(source, use, now + back)   # That it has arrived

    def start(self, now, process, use):
        """A phase starts: its sends go, or tell when they may."""
        m, index = self.machine, use % len(self.phases)
        way = self.ways[index]
        sends = range(len(self.to[index][process]))
        if way.is_ready:
            each = m.post if self.is_mpi else 0.0
            for which in sends:
                self.send(process, which, use, now + (which + 1) * each +
                          self.late[index][which])
            return
        is_coupled = way.name == "exchange"
        for which in range(1) if is_coupled else sends:
            self.allow(process, which, use, now)
        told = now + m.latency + m.fire
        for source, which in self.sources[index][process]:
            self.allow(source, 0 if is_coupled else which, use, told)

    def allow(self, source, which, use, when):
        """One of what lets a message go, or all of a coupled exchange: the own
        start, and the clear-to-sends."""
        index = use % len(self.phases)
        sends = len(self.to[index][source])
        is_coupled = self.ways[index].name == "exchange"
        key = (source, use, which)
        left, last = self.left.get(key) or (1 + sends if is_coupled else 2, 0.0)
        last = max(last, when)
        self.left[key] = (left - 1, last)
        if left == 1:
            del self.left[key]
            self.push(last, which, self.go, source, use,
                      range(sends) if is_coupled else (which,))

    def go(self, now, source, use, sends):
        """The card has all that it waits for."""
        for which in sends:
            self.send(source, which, use, now)

    def run(self, steps):
        """Mean time of a step, behind a quarter that is left out."""
        self.uses = steps * len(self.phases)
        self.drawn = []
        for process in range(self.processes):
            self.prepare(process, 0, 0.0)
        gc.disable()                  # Millions of tuples, and no cycles
        while self.events:
            now, _, _, what, args = heapq.heappop(self.events)
            what(now, *args)
        gc.enable()
        ended = np.array(self.ended)
        assert ended.shape == (self.processes, self.uses), "a use did not end"
        steps_end = ended[:, len(self.phases) - 1::len(self.phases)].max(axis=0)
        first = steps // 4
        return (steps_end[-1] - steps_end[first]) / (steps - 1 - first)


def run(machine, program, name, processes, steps=20, seed=1, **options):
    """Time of a step of a program of PROGRAMS, us, and how many messages went."""
    phases = PROGRAMS[program](processes, **options)
    simulation = Simulation(machine, phases, name, processes, seed)
    return simulation.run(steps), simulation.messages
