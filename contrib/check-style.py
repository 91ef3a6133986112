#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the rules of style that a script can check.

usage: contrib/check-style.py [--diff] [--words [PATH...]]
    --diff   also show what clang-format would change since HEAD (advice only)
    --words  only list the words that docs/glossary.md has replaced, in PATHs
             (default: all files); status 1 if there are any
"""
import glob
import os
import re
import statistics
import subprocess
import sys

os.chdir(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

MAX_FUNCTION = 100
MAX_PARAMS = 5
MAX_FILE = 800
MAX_LINE = 80
MAX_MEDIAN = 20
MAX_P90 = 60
MAX_CELL = 420

FOLDERS = ["src", "contrib", "bench", "examples", "test", "docs", "config"]
DOCUMENTS = ["README.md", "CONTRIBUTING.md"] + sorted(glob.glob("docs/*.md"))
# Not ours
FOREIGN = re.compile(r"(^|/)(config/aux/|libtool\.m4$|lt[^/]*\.m4$|\.[^/]*/)")
# Languages with comments
WRITTEN = re.compile(r"\.([ch]|sh|py|am|m4|scd|pml)$|"
                     r"/(ucx-st-run|st-trace-[^/]*|run|run-all)$")

# Words of ours that the field has another word for: docs/glossary.md. Names in
# the code count, too ("_" ends a word).
OLD_WORDS = (r"bells?|kick(s|ed|er|ers|ing)?|promise[sd]?|promising|desks?|limbo|"
             r"zombies?|graves?|(im)?patien(t|tly|ce)|doze[sd]?|dozing|"
             r"rouse[sd]?|rousing|nudge[sd]?|nudging|naps?|napping")
# A sentence names what acts: "the receiver copies", not "who receives copies"
OLD = re.compile(rf"(?<![a-z])({OLD_WORDS})(?![a-z])|"
                 r"(?<!those )(?<!people )(?<!users )(?<![a-z_])who [a-z]", re.I)

# Tables that others define (UCT, UCP and libfabric functions, MPI calls, UCX's
# class macros, the runtimes of GPUs) set the parameters of the functions in them,
# and so does the C library
FOREIGN_SIG = re.compile(r"UCS_CLASS|UCS_F_|CU_|^MPIX?_|MPIX?_[A-Z]|"
                         r"^static ucs_log_func_rc_t")
FOREIGN_NAME = re.compile(
    r"_(am_zcopy|am_short|put_zcopy|get_bcopy|get_zcopy)$|"
    r"_(atomic[a-z0-9_]*|am_short_iov|connect_to_ep_v2)$|"
    r"^ucp_tag_|^ucp_am_send_nbx$|_am_handler$|(^fi|_emu)_getinfo$|^cxil_|"
    r"^process_vm_|^(cu|hip)[A-Z]|_rtc_create$|^nccl[A-Z]|^nvshmemx_")

complaints = []


def complain(text):
    complaints.append(text)
    print(text)


def files_of(folders):
    for folder in folders:
        for path, dirs, names in os.walk(folder):
            dirs.sort()
            for name in sorted(names):
                full = f"{path}/{name}"
                if not FOREIGN.search(full):
                    yield full


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def num_params(signature):
    depth = count = 0
    for char in signature:
        if char == "(":
            depth += 1
            if depth == 1:
                count = 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return count
        elif char == "," and depth == 1:
            count += 1
    return count


def is_foreign(path, name, signature):
    return (FOREIGN_SIG.search(signature) or FOREIGN_NAME.search(name) or
            ("/st_intercept" in path and name.startswith("mmap")) or
            (re.search(r"src/prov/|/fab_intercept", path) and
             re.search(r"struct fi(d|_info)", signature)))


def check_c(path, lines, lengths):
    """Lines, and the length and parameters of functions, whose body is between a
    "{" and a "}" in the first column."""
    signature = ""
    start = 0
    name = "?"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            complain(f"{path}:{number}: {len(line)} columns")
        if "ucp_stream_" in line:
            complain(f"{path}:{number}: ucp_stream_ is a name of UCP")
        if line.startswith("{") and "(" in signature and not re.match(
                r"typedef|struct|enum|union", signature):
            start = number
            match = re.search(r"(\w+) *\(", signature)
            name = match.group(1) if match else "?"
            params = num_params(signature)
            if params > MAX_PARAMS and not is_foreign(path, name, signature):
                complain(f"{path}:{number}: {name} has {params} parameters "
                         f"(at most {MAX_PARAMS})")
        elif line.startswith("}") and start:
            lengths.append(number - start - 1)
            if lengths[-1] > MAX_FUNCTION:
                complain(f"{path}:{start}: {name} has {lengths[-1]} lines "
                         f"(at most {MAX_FUNCTION})")
            start = 0
            signature = ""
        elif not start:
            if re.match(r"\s*$|.*[;}]$|#| ?[/*]", line):
                signature = ""
            else:
                signature = f"{signature} {line}".lstrip()


def check_files(paths):
    lengths = []
    for path in paths:
        lines = text_of(path).split("\n")
        if lines[-1] == "":
            lines.pop()
        if not any("SPDX-License-Identifier: BSD-3-Clause" in line
                   for line in lines[:3]):
            complain(f"{path}: no SPDX line at its top")
        if len(lines) > MAX_FILE:
            complain(f"{path}: {len(lines)} lines (at most {MAX_FILE})")
        if re.search(r"\.([ch]|pml)$", path) and any("\t" in line
                                                     for line in lines):
            complain(f"{path}: has tabs")
        if path.endswith(".pml") and any(len(line) > MAX_LINE
                                         for line in lines):
            complain(f"{path}: has lines above {MAX_LINE} columns")
        if any(line.endswith(" ") for line in lines):
            complain(f"{path}: has spaces at line ends")
        if re.search(r"\.[ch]$", path):
            check_c(path, lines, lengths)
    median = int(statistics.median_low(lengths))
    p90 = sorted(lengths)[(len(lengths) * 9 + 9) // 10 - 1]
    print(f"{len(lengths)} functions: median {median}, 90th percentile {p90} lines")
    if median > MAX_MEDIAN:
        complain(f"the median function is above {MAX_MEDIAN} lines")
    if p90 > MAX_P90:
        complain(f"the 90th percentile is above {MAX_P90} lines")


def old_words(paths):
    """Where old words are; this file has to name them."""
    found = False
    for path in paths:
        if path in ("contrib/check-style.py", "test/unit/suites.am") or \
                path.endswith("Makefile.in"):
            continue
        with open(path, "rb") as file:
            data = file.read()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace")
                                      .split("\n"), 1):
            if OLD.search(line):
                print(f"{path}:{number}:{line}")
                found = True
    return found


def check_names(paths):
    """The files, functions and types that documents name exist."""
    text = "\n".join(text_of(path) for path in DOCUMENTS)
    words = set()
    for path in files_of(["src", "contrib/openmpi", "test", "bench"]):
        if re.search(r"\.([ch]|pml)$", path):
            words.update(re.findall(r"\w+", text_of(path)))
    for name in sorted(set(re.findall(
            r"`((?:ucp_st|uct|ucs|gstream|cxiemu|MPIX)_\w+)(?:\(\))?`", text))):
        if name not in words:
            complain(f"documents name {name}, which no source has")
    for name in sorted(set(re.findall(r"`([\w/-]+\.[ch])`", text))):
        if not any(path == name or path.endswith(f"/{name}") for path in paths):
            complain(f"documents name {name}, which is no file")


def anchors(path):
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text_of(path), re.M)}


def check_links():
    """Links of documents lead to files and headings that are there."""
    for path in DOCUMENTS + glob.glob("contrib/*/README.md") + \
            glob.glob("test/*/README.md"):
        for link in re.findall(r"\]\((?!https?:)([^) ]+)\)", text_of(path)):
            name, _, heading = link.partition("#")
            target = f"{os.path.dirname(path) or '.'}/{name}" if name else path
            if not os.path.exists(target):
                complain(f"{path}: there is no {link}")
            elif heading and heading not in anchors(target):
                complain(f"{path}: {link} has no such heading")


def check_cells():
    """The cells of documents' tables are short; details are in the text."""
    for path in DOCUMENTS:
        for number, line in enumerate(text_of(path).split("\n"), 1):
            for cell in line.split("|") if line.startswith("|") else []:
                if len(cell.encode()) > MAX_CELL:
                    complain(f"a table has a cell of {len(cell.encode())} "
                             f"characters: {path}:{number}")


def main(args):
    if args[:1] == ["--words"]:
        paths = []
        for path in args[1:] or FOLDERS + ["README.md", "CONTRIBUTING.md", "NEWS"]:
            paths += files_of([path]) if os.path.isdir(path) else [path]
        return int(old_words(paths))
    if args not in ([], ["--diff"]):
        print(__doc__, file=sys.stderr)
        return 2
    paths = [path for path in files_of(FOLDERS + [".ci"]) if WRITTEN.search(path)]
    paths += ["configure.ac", "Makefile.am", "autogen.sh"]
    if old_words(list(files_of(FOLDERS)) + ["README.md", "CONTRIBUTING.md",
                                            "NEWS"]):
        complain("old words: docs/glossary.md has the new ones")
    check_files(paths)
    check_names(paths)
    check_links()
    check_cells()
    if args:
        subprocess.run(["git-clang-format-14", "--diff", "HEAD", "--", "*.c", "*.h"],
                       check=False)
    return int(bool(complaints))


sys.exit(main(sys.argv[1:]))
