#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds circles of files that call each other, in the objects of a build.

usage: contrib/check-calls.py [--build DIR] [--calls]

A call is one that the compiler left in code, from a function of one source file
to one of another file of the same folder: calls by a table of functions, and of
what was inlined, do not count. Prints for each folder how many files there are,
and the largest circle: files of which each calls, perhaps by way of others, each
other one. --calls prints between which files of it, and how often. The status is
1 if a circle is larger than its folder allows.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys

# Folder of a build, and how many files its largest circle may have
FOLDERS = [
    ("src/ucs_ext", 8),
    ("src/prov/cxiemu", 8),
    ("src/uct/cxi_trig", 8),
    ("src/ucp/st", 6),
    ("contrib/openmpi/mpix_queue", 8),
]

# Relocations of instructions that call or jump: x86-64, aarch64
CALL = re.compile(r" R_(X86_64_PLT32|AARCH64_(CALL|JUMP)26) +(\w+)")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout


def read_folder(build, folder):
    """Which file calls which one, and how often."""
    names = {path: re.sub(r"^lib\w+_la-|\.o$", "", os.path.basename(path))
             for path in glob.glob(f"{build}/{folder}/**/.libs/*.o",
                                   recursive=True)}
    graph = {name: collections.Counter() for name in names.values()}
    if not graph:
        return graph
    owners = {}
    for line in run("nm", "-A", "--defined-only", *names).splitlines():
        path, _, symbol = line.partition(":")
        fields = symbol.split()
        if len(fields) == 3 and fields[1] in "TW":
            owners[fields[2]] = names[path]
    sections = [word for section in ("", ".unlikely", ".startup", ".exit")
                for word in ("-j", f".text{section}")]
    name = None
    for line in run("objdump", "-r", *sections, *names).splitlines():
        path = line.partition(":")[0]
        if path in names:
            name = names[path]
        match = CALL.search(line)
        owner = owners.get(match[3], name) if match else name
        if owner != name:
            graph[name][owner] += 1
    return graph


def reached(graph, start):
    found, ahead = set(), [start]
    while ahead:
        for name in graph[ahead.pop()]:
            if name not in found:
                found.add(name)
                ahead.append(name)
    return found


def circles(graph):
    """Files that call each other, the largest circle first."""
    below = {name: reached(graph, name) for name in graph}
    found = {tuple(sorted({name} | {other for other in below[name]
                                    if name in below[other]}))
             for name in graph}
    return sorted((circle for circle in found if len(circle) > 1),
                  key=lambda circle: (-len(circle), circle))


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="the build folder")
    parser.add_argument("--calls", action="store_true",
                        help="print the calls of each circle, too")
    options = parser.parse_args()
    status = 0
    for folder, most in FOLDERS:
        graph = read_folder(options.build, folder)
        if not graph:
            print(f"{folder}: was not built in {options.build}")
            status = 1
            continue
        found = circles(graph)
        largest = len(found[0]) if found else 0
        print(f"{folder}: {len(graph)} files, {largest} in the largest circle "
              f"({most} may be)")
        for circle in found:
            print(f"    {' '.join(circle)}")
            if options.calls:
                for name in circle:
                    for other in circle:
                        if graph[name][other]:
                            print(f"        {name} -> {other}: "
                                  f"{graph[name][other]}")
        if largest > most:
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
