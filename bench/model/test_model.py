#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the model: its limits, and the simulation against the formulas."""
import os
import random
import sys
import unittest

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: needs numpy (package python3-numpy)")
    sys.exit(77)

import machine
import simulate
import step

SEED = int(os.environ.get("ST_SEED", random.randrange(1 << 31)))
DRAW = random.Random(SEED)
ONE = {"ranks_node": 1, "ranks_card": 1}   # Each process its card and node


def drawn():
    """A machine with other constants, each process on a node of one group."""
    return machine.Machine("drawn", **ONE, group=1 << 30, **{
        name: DRAW.uniform(0.05, 2.0) for name in (
            "launch", "begin", "sync", "post", "complete", "enqueue", "store",
            "react", "more", "fire", "gap", "latency", "ack")})


def uniform(size=64, inside=0.0, kernels=(30.0, 30.0)):
    """Eight messages of one size."""
    return step.Phase(kernels, (size,) * 8, inside)


def simulated(here, phase, name, processes=36, steps=16):
    """Time of a step."""
    return simulate.Simulation(here, [phase], name, processes, SEED).run(steps)


class Formulas(unittest.TestCase):
    def test_more_costs_more(self):
        for name in step.WAYS:
            here = drawn()
            least = step.period(here, uniform(), name)
            for member in ("latency", "shake", "react", "store", "sync", "post", "gap",
                           "launch", "enqueue", "fire", "ack"):
                other = here.but(**{member: getattr(here, member) + 1})
                self.assertGreaterEqual(step.period(other, uniform(), name),
                                        least, (name, member))
            self.assertGreater(step.period(here, uniform(1 << 20), name), least)
            self.assertGreater(step.period(here, uniform(inside=1e4), name), least)

    def test_nothing_costs_nothing(self):
        free = machine.Machine("free", **ONE, bandwidth=1e30, copy=1e30, **{
            name: 0.0 for name in ("launch", "begin", "sync", "post", "complete",
                                   "enqueue", "store", "react", "more", "fire",
                                   "gap", "latency", "ack")})
        for name in step.WAYS:
            self.assertAlmostEqual(step.period(free, uniform(), name), 60)
            self.assertAlmostEqual(simulated(free, uniform(), name), 60)

    def test_order_of_ways(self):
        here = drawn()
        times = {name: step.period(here, uniform(), name) for name in step.WAYS}
        self.assertLess(times["ready"], times["exchange"])
        self.assertLess(times["exchange"], times["standard"])

    def test_conditions(self):
        long = uniform(kernels=(1e4,))
        here = drawn().but(sync=50.0)
        self.assertTrue(all(holds for holds, _ in
                            step.conditions(here, long).values()))
        # A host that needs longer than the stream; messages that do; one step
        slow = here.but(enqueue=1e4)
        self.assertFalse(step.conditions(slow, uniform())["C1"][0])
        slow = here.but(react=1e4)
        self.assertFalse(step.conditions(slow, uniform())["C2"][0])
        self.assertFalse(step.conditions(here, long, steps=1)["C3"][0])

    def test_counts_are_those_of_the_library(self):
        # docs/performance.md, "Counts": stores, words, deferred operations
        for name, m, counts in (("exchange", 26, (2, 1, 53)),
                                ("ready", 26, (1, 2, 28)),
                                ("eager", 26, (26, 52, 79.9)),
                                ("standard", 26, (52, 52, 104)),
                                ("exchange", 8, (2, 1, 17)),
                                ("ready", 8, (1, 2, 10))):
            way = step.WAYS[name]
            self.assertEqual((way.stores(m), way.words(m),
                              round(way.entries(m), 1)), counts, name)

    def test_resources_grow_with_peers(self):
        few, many = (step.resources(peers, 26, "exchange", machine.FRONTIER)
                     for peers in (26, 10000))
        for what in ("memory, MiB", "connect and match, ms"):
            self.assertLess(few[what], many[what])
        self.assertEqual(few["counters held"], many["counters held"])
        self.assertEqual(few["entries in use, a step"], 53)


class Simulated(unittest.TestCase):
    def test_equals_the_formulas(self):
        for name in step.WAYS:
            for inside in (0.0, 5.0, 500.0):
                here, phase = drawn(), uniform(DRAW.choice((8, 4096, 65536)),
                                               inside)
                self.assertAlmostEqual(simulated(here, phase, name),
                                       step.period(here, phase, name), 6,
                                       (name, phase, here))

    def test_few_entries_or_a_slow_host(self):
        for name in ("ready", "exchange"):
            for changes in ({"entries": 10}, {"entries": 20}, {"enqueue": 100.0},
                            {"entries": 20, "enqueue": 5.0}):
                here = drawn().but(**changes)
                self.assertAlmostEqual(simulated(here, uniform(), name),
                                       step.period(here, uniform(), name), 6,
                                       (name, here))

    def test_one_process(self):
        for program in simulate.PROGRAMS:
            for name in step.WAYS:
                time, _ = simulate.run(drawn(), program, name, 1, 6)
                self.assertGreater(time, 0)

    def test_each_message_goes_once(self):
        for program, messages in (("faces", 26), ("life", 8)):
            for processes in (2, 3, 8, 30):
                _, count = simulate.run(drawn(), program, "exchange", processes, 5)
                self.assertEqual(count, messages * processes * 5)

    def test_noise_slows(self):
        here = drawn()
        for changes in ({"noise": 0.3}, {"pause": 50.0, "pauses": 0.1}):
            quiet = simulated(here, uniform(), "mpi")
            self.assertGreater(simulated(here.but(**changes), uniform(), "mpi"),
                               quiet)

    def test_a_seed_says_all(self):
        here = drawn().but(noise=0.5)
        times = [simulate.run(here, "faces", "exchange", 30, 6, seed)[0]
                 for seed in (1, 1, 2)]
        self.assertEqual(times[0], times[1])
        self.assertNotEqual(times[0], times[2])

    def test_narrow_links_slow(self):
        here = drawn().but(group=4, hop=0.0)
        wide, narrow = (simulated(here.but(up=up), uniform(65536), "exchange", 64)
                        for up in (1e9, 0.5))
        self.assertGreater(narrow, wide)


class Reports(unittest.TestCase):
    def test_bad_reports(self):
        for path, text in (("/nonexistent", "No such file"),
                           (os.devnull, "Expecting value")):
            with self.assertRaisesRegex(machine.BadReport, text):
                machine.from_reports([path])
        with self.assertRaisesRegex(machine.BadReport, "no report of st_cost"):
            machine.from_reports([])


if __name__ == "__main__":
    print(f"ST_SEED={SEED}")
    unittest.main()
