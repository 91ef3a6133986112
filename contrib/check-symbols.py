#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what the shared libraries of a build export with what programs may call.

usage: contrib/check-symbols.py [--list] BUILD

Programs may call what the installed headers declare. LIBRARIES tells of each
library what it exports beside that, and why. Prints how many symbols each exports
(--list: and which), and by name each that is missing and each that is too much;
then the status is 1. So it is if a call of ucp_st.h has no manual page, or no list
of docs/man has it.
"""
import argparse
import glob
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

# The library in the build folder: the folder whose Makefile.am names its installed
# headers, or None; other headers that declare what it exports, or Fortran that
# does; and what else of its symbols it has to export, each with the reason.
LIBRARIES = {
    "src/ucs_ext/libucs_ext": (
        "src/ucs_ext",
        # The other libraries alone call these
        ["src/ucs_ext/api/ucs_gstream_copy.h", "src/ucs_ext/api/ucs_gstream_gate.h",
         "src/ucs_ext/api/ucs_gstream_ipc.h", "src/ucs_ext/api/ucs_gstream_move.h",
         "src/ucs_ext/api/ucs_gstream_pair.h"],
        None),
    "src/uct/cxi_trig/libuct_cxitrig": ("src/uct/cxi_trig", [], None),
    "src/ucp/st/libucp_st": ("src/ucp/st", [], None),
    # It stands in front of functions of MPI and of UCP, and of MPI's tools
    "contrib/openmpi/mpix_queue/libmpix_queue": (
        "contrib/openmpi/mpix_queue",
        ["contrib/openmpi/fortran/mpix_queue_f08.f90"], r"P?MPI_\w+|ucp_\w+"),
    # The Fortran compiler names them, some for itself
    "contrib/openmpi/fortran/libmpix_queue_f08": (
        None, [], r"__mpix_queue_f08_MOD_\w+"),
    # libfabric and OpenMPI find these by name
    "src/prov/cxiemu/libcxiemu-fi": (None, [], "fi_prov_ini"),
    "contrib/openmpi/hook/mca_hook_cxitrig": (None, [], "mca_hook_cxitrig_component"),
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def installed_headers(folder):
    """What automake installs: NAME_HEADERS, but for noinst_HEADERS."""
    text = read(f"{TOP}/{folder}/Makefile.am").replace("\\\n", " ")
    return [f"{folder}/{name}" for words in
            re.findall(r"^(?!noinst)\w+_HEADERS *\+?= *(.*)", text, re.M)
            for name in words.split()]


def declared(path):
    """Functions and data that a header declares and does not define, or that
    Fortran takes from C."""
    text = read(f"{TOP}/{path}")
    if path.endswith(".f90"):
        return set(re.findall(r"bind\(c, *name *= *['\"](\w+)['\"]\)", text, re.I))
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#.*", "", text.replace("\\\n", " "), flags=re.M)
    text = re.sub(r'extern "C" *\{', "", text)
    while "{" in text: # From the inside; what has a body declares nothing
        text, count = re.subn(r"\{[^{}]*\}", " BODY; ", text)
        if count == 0:
            sys.exit(f"{path}: braces without their like")
    names = set()
    for line in text.split(";"):
        line = " ".join(line.split())
        match = (re.match(r"extern [^()]*?(\w+)(\[.*\])?$", line) or
                 re.match(r"[^()=]*?\b(\w+) ?\(", line))
        if (match and not match[1].isupper() and # A macro
                not re.match("static |typedef |.* BODY|BODY", line)):
            names.add(match[1])
    return names


def symbols(path, *options):
    """Names that are defined in a library."""
    out = subprocess.run(["nm", "--defined-only", *options, path], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True).stdout
    return {line.split()[2].partition("@")[0] for line in out.splitlines()
            if len(line.split()) == 3 and line.split()[1] not in "aAUw"}


def wanted(name, path, build):
    """What a library has to export."""
    folder, headers, others = LIBRARIES[name]
    headers = (installed_headers(folder) if folder else []) + headers
    names = set()
    for header in headers:
        # The MPI layer may have been built without Fortran
        if (not header.endswith(".f90") or
                os.path.exists(f"{build}/contrib/openmpi/fortran/mpix_queue_f08.mod")):
            names |= declared(header)
    if others:
        names |= {symbol for symbol in symbols(path) | symbols(path, "-D")
                  if re.fullmatch(others, symbol)}
    return names


def without_page():
    """Calls of libucp_st that the manual pages leave out."""
    made = read(f"{TOP}/docs/Makefile.am")
    lists = "".join(read(path) for path in glob.glob(f"{TOP}/docs/man/*.scd"))
    for header in installed_headers("src/ucp/st"):
        for name in sorted(declared(header)):
            if f"/{os.path.basename(header)}" not in made or f"*{name}*" not in lists:
                yield name


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("build")
    options = parser.parse_args()
    build = options.build
    # Not those of test/unit, and not the transport by its other name
    paths = [path for top in ("src", "contrib") for path in
             glob.glob(f"{build}/{top}/**/.libs/*.so", recursive=True)
             if "/unit/" not in path and not path.endswith("/libuct_cxi_trig.so")]
    if not paths:
        sys.exit(f"{build} has no shared libraries")
    failed = False
    for path in sorted(paths):
        name = os.path.relpath(path, build).replace("/.libs/", "/")[:-len(".so")]
        if name not in LIBRARIES:
            print(f"{name}: LIBRARIES does not name it")
            failed = True
            continue
        has, may = symbols(path, "-D"), wanted(name, path, build)
        print(f"{os.path.basename(name)}: {len(has)}")
        if options.list:
            print("".join(f"    {symbol}\n" for symbol in sorted(has)), end="")
        for title, names in (("does not export", may - has),
                             ("exports what no program may call:", has - may)):
            for symbol in sorted(names):
                print(f"{os.path.basename(name)} {title} {symbol}")
                failed = True
    for name in without_page():
        print(f"{name} has no manual page, or none of docs/man lists it")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
