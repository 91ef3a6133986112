#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what programs see of the libraries with what the last release had.

usage: contrib/check-abi.py [--write VERSION] BUILD

Programs see the functions that the libraries export, with their parameters and
versions of symbols, and the types and constants of the headers, with sizes and
offsets. contrib/abi has lists of them as of the last release. What has been added
is listed. What is gone or has changed is named, with what it was and is; then the
status is 1, unless docs/abi.md says of its header that it may change. The status is
77 where sizes are not those of the lists: not a 64-bit system.

    --write VERSION  make the lists anew, as of a release
"""
import argparse
import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
LISTS = f"{TOP}/contrib/abi"
POINTER = 8
IN_UNION = ", in a union"
FORTRAN = "libmpix_queue_f08"


def load(name):
    spec = importlib.util.spec_from_file_location("loaded", f"{TOP}/contrib/{name}")
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def run(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, check=True,
                              text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"check-abi.py: {error}")


class Dwarf:
    """What a compiler says of the types in an object, as readelf prints it. An
    entry is a dict of attributes, with its "tag" and "children"."""

    def __init__(self, path):
        self.at = {}
        self.files = re.findall(r"^ +\d+\t\d+\t\d+\t\d+\t(.+)$",
                                run("readelf", "--debug-dump=rawline", path), re.M)
        above = []
        for line in run("readelf", "-W", "--debug-dump=info", path).split("\n"):
            match = re.match(r" <(\w+)><(\w+)>: .*\(DW_TAG_(\w+)\)", line)
            if match:
                die = {"tag": match[3], "children": []}
                self.at[int(match[2], 16)] = die
                del above[int(match[1], 16):]
                if above:
                    above[-1]["children"].append(die)
                above.append(die)
                continue
            # The value comes behind its form, in parentheses
            match = re.match(r" +<\w+> +DW_AT_(\w+) *: (?:\([^)]*\):? ?)*(.*?)\s*$",
                             line)
            if match and above:
                above[-1][match[1]] = match[2]
        self.names = {}
        for die in self.at.values():
            if die["tag"] == "typedef":
                target = self.type_of(die)
                if target and "name" not in target:
                    self.names[id(target)] = die["name"]

    def type_of(self, die):
        """The entry of its type; None: void."""
        match = re.match(r"<0x(\w+)>", die.get("type", ""))
        return self.at[int(match[1], 16)] if match else None

    def file_of(self, die):
        return self.files[int(die["decl_file"]) - 1] if "decl_file" in die else None

    def name_of(self, die):
        """Of a type, or of the typedef of one that has none; or None."""
        return die.get("name") or self.names.get(id(die))

    def parts(self, die, tag):
        return [child for child in die["children"] if child["tag"] == tag]

    def length(self, die):
        """Elements of an array."""
        count = 1
        for part in self.parts(die, "subrange_type"):
            count *= int(part.get("count", 0)) or int(part.get("upper_bound", -1)) + 1
        return count

    def size(self, die):
        if "byte_size" in die:
            return int(die["byte_size"])
        if die["tag"] == "pointer_type":
            return POINTER
        factor = self.length(die) if die["tag"] == "array_type" else 1
        return factor * self.size(self.type_of(die))

    def text(self, die, inner=""):
        """A type as C writes it, around a declarator."""
        if die is None:
            return f"void {inner}".strip()
        tag, target = die["tag"], self.type_of(die)
        if tag in ("const_type", "volatile_type", "restrict_type"):
            word = tag.split("_")[0]
            if target and target["tag"] == "pointer_type":
                return self.text(target, f" {word} {inner}".rstrip())
            return f"{word} {self.text(target, inner)}"
        if tag == "pointer_type":
            return self.text(target, f"*{inner}")
        if tag in ("array_type", "subroutine_type"):
            inner = f"({inner})" if inner.startswith("*") else inner
            if tag == "array_type":
                return self.text(target, f"{inner}[{self.length(die)}]")
            args = [self.text(self.type_of(arg))
                    for arg in self.parts(die, "formal_parameter")]
            args += ["..."] * len(self.parts(die, "unspecified_parameters"))
            return self.text(target, f"{inner}({', '.join(args) or 'void'})")
        word = {"structure_type": "struct ", "union_type": "union ",
                "enumeration_type": "enum "}.get(tag, "")
        name = die.get("name", "{}")
        if tag == "base_type": # Compilers write "long unsigned int" differently
            words = name.split()
            name = " ".join(sorted((word for word in words if word != "int"),
                                   key=lambda word: word != "unsigned")) or "int"
        return f"{word}{name} {inner}".strip()

    def members(self, die, path="", base=0, note=""):
        """Of a structure or union: name, offset, size and type of each, and of those
        of structures without a name in it."""
        if die["tag"] == "union_type":
            note = IN_UNION
        for member in self.parts(die, "member"):
            target = self.type_of(member)
            name = f"{path}.{member['name']}" if "name" in member else path
            offset = base + int(member.get("data_member_location", 0))
            part = target
            while part["tag"] == "array_type":
                part = self.type_of(part)
            if "bit_size" in member:
                bits, size = int(member["bit_size"]), self.size(target)
                first = offset * 8 + size * 8 - int(
                    member.get("bit_offset", 0)) - bits # From the end
                if "data_bit_offset" in member:
                    first = base * 8 + int(member["data_bit_offset"])
                yield name, f"bit {first}", bits, self.text(target) + note
                continue
            inner = (part["tag"] in ("structure_type", "union_type") and
                     not self.name_of(part))
            if part is not target or not inner:
                yield name, offset, self.size(target), self.text(target) + note
            if inner: # Of an array: those of its first element
                yield from self.members(
                    part, f"{name}[0]" if part is not target else name, offset, note)


def settings(build, *names):
    """Values of a configured folder."""
    with open(f"{build}/config.status", encoding="utf-8") as file:
        found = dict(re.findall(r'^S\["(\w+)"\]="(.*)"$', file.read(), re.M))
    return [word for name in names for word in found.get(name, "").split()]


def compile_headers(build, headers, functions):
    """What the compiler says of all headers, and their macros."""
    folders = sorted({os.path.dirname(path) for path in headers})
    flags = settings(build, "UCX_CPPFLAGS", "MPI_CFLAGS") + ["-D_GNU_SOURCE"]
    for folder in folders:
        flags += ["-I", f"{TOP}/{folder}"]
    # The header of the 2026 paper leaves a constant of MPI Advance's out
    lines = [f"#include <{os.path.basename(path)}>" for path in
             sorted(headers, key=lambda path: "_paper" in path)]
    for name in functions:
        lines += [f"#undef {name}", f"__typeof__(({name})) *abi_{name};"]
    with tempfile.TemporaryDirectory() as temp:
        with open(f"{temp}/abi.c", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        compiler = [*settings(build, "CC"), *flags, f"{temp}/abi.c"]
        run(*compiler, "-c", "-g", "-gdwarf-4", "-fno-eliminate-unused-debug-types",
            "-o", f"{temp}/abi.o")
        return Dwarf(f"{temp}/abi.o"), run(*compiler, "-E", "-dM")


def types(dwarf, header):
    """What a header has of types and constants: kind, name and text."""
    for die in dwarf.at.values():
        if dwarf.file_of(die) != os.path.basename(header):
            continue
        if die["tag"] == "enumeration_type":
            for part in dwarf.parts(die, "enumerator"):
                yield "constant", part["name"], str(int(part["const_value"], 0))
        elif die["tag"] == "typedef":
            text = dwarf.text(dwarf.type_of(die))
            if not re.match(r"(struct|union|enum) \S+$", text): # Told itself
                yield "typedef", die["name"], text
        elif die["tag"] in ("structure_type", "union_type") and "byte_size" in die:
            title = dwarf.name_of(die)
            if title: # Not a part of another
                yield from structure(dwarf, die, title)


def structure(dwarf, die, title):
    members = list(dwarf.members(die))
    # MPI's types have other sizes in other MPIs: their places by number
    foreign = any(text.startswith("MPI_") for _, _, _, text in members)
    yield "struct", title, ("has MPI's types" if foreign else
                            f"{die['byte_size']} bytes")
    for number, (path, offset, size, text) in enumerate(members, 1):
        place = f"number {number}" if foreign else f"{offset} + {size}"
        yield "member", title + path, f"{place}, {text}"


def macros_of(macros, text):
    """Macros of a header that are numbers or texts."""
    defined = set(re.findall(r"^ *# *define (\w+) ", text, re.M))
    for name, value in sorted(re.findall(r"^#define (\w+) ([-(0-9\"].*)$", macros,
                                         re.M)):
        if name in defined:
            yield "constant", name, value


def versions(library):
    """The version of each symbol that a library exports."""
    out = run("nm", "-D", "--defined-only", library)
    return {name: version or "no version" for name, version in
            re.findall(r"^\w+ [B-TV-Z] (\w+)(?:@@?(.*))?$", out, re.M)}


def describe(build):
    """All that programs see: kind and name, to library, header and text. And the
    libraries that are not built."""
    known = load("check-symbols.py")
    seen, absent, headers = {}, [], {}
    for path, (folder, more, _) in known.LIBRARIES.items():
        library = os.path.basename(path)
        file = f"{build}/{os.path.dirname(path)}/.libs/{library}.so"
        if not folder and library != FORTRAN: # A module
            continue
        if not os.path.exists(file):
            absent.append(library)
            continue
        exported = versions(file)
        if not folder: # Names of Fortran's compiler
            for name in sorted(exported):
                seen["function", name] = library, "mpix_queue_f08.f90", exported[name]
            continue
        for header in known.installed_headers(folder) + [
                name for name in more if name.endswith(".f90")]:
            owner = FORTRAN if header.endswith(".f90") else library
            for name in sorted(known.declared(header)):
                seen["function", name] = (owner, os.path.basename(header),
                                          exported.get(name, "not exported"))
            # What has the name of MPI's own header includes others of these
            if header.endswith(".h") and not header.endswith("/mpi.h"):
                headers[header] = library
    if not headers:
        sys.exit(f"check-abi.py: {build} has no shared libraries")
    functions = {name for (_, name), (library, _, _) in seen.items()
                 if library != FORTRAN}
    dwarf, macros = compile_headers(build, headers, sorted(functions))
    for header, library in headers.items():
        for kind, name, text in [*types(dwarf, header), *macros_of(
                macros, known.read(f"{TOP}/{header}"))]:
            seen[kind, name] = library, os.path.basename(header), text
    for die in dwarf.at.values():
        name = die.get("name", "")[len("abi_"):]
        if die["tag"] == "variable" and name in functions:
            library, header, version = seen["function", name]
            text = dwarf.text(dwarf.type_of(dwarf.type_of(die))) # Behind a pointer
            seen["function", name] = library, header, f"{version}, {text}"
    return seen, absent


def read_lists():
    """The lists, as describe(), and their release."""
    seen, release = {}, None
    for path in sorted(glob.glob(f"{LISTS}/*.list")):
        library, header = os.path.basename(path)[:-len(".list")], None
        with open(path, encoding="utf-8") as file:
            for line in file:
                match = re.match(r"# release ([\d.]+)|\[(.*)\]$|(\w+) ([\w.[\]]+): (.*)$",
                                 line)
                if not match:
                    continue
                if match[1] and release not in (None, match[1]):
                    sys.exit(f"check-abi.py: {LISTS} has lists of several releases")
                release = match[1] or release
                header = match[2] or header
                if match[3]:
                    seen[match[3], match[4]] = library, header, match[5]
    if not release:
        sys.exit(f"check-abi.py: {LISTS} has no lists of a release")
    return seen, release


def write_lists(seen, release):
    if release == "0.1.0":
        release += ", which is not released yet"
    lists = {}
    for (kind, name), (library, header, text) in sorted(
            seen.items(), key=lambda item: (item[1][:2], item[0][0] == "function")):
        lists.setdefault(library, {}).setdefault(header, []).append(
            f"{kind} {name}: {text}\n")
    os.makedirs(LISTS, exist_ok=True)
    for library, headers in lists.items():
        with open(f"{LISTS}/{library}.list", "w", encoding="utf-8") as file:
            file.write("# SPDX-License-Identifier: BSD-3-Clause\n"
                       f"# What programs see of {library} on 64-bit systems: made by\n"
                       "# contrib/check-abi.py --write\n"
                       f"# release {release}\n")
            for header, lines in headers.items():
                file.write(f"\n[{header}]\n{''.join(lines)}")


def loose_headers(headers):
    """Those that may change, by the table of docs/abi.md; ends if one is not in
    it."""
    with open(f"{TOP}/docs/abi.md", encoding="utf-8") as file:
        rows = re.findall(r"^\| (.*) \| (stable|may change) \|", file.read(), re.M)
    told = {name: state for names, state in rows
            for name in re.findall(r"`([\w-]+\.\w+)`", names)}
    missing = sorted(headers - set(told))
    if missing:
        sys.exit(f"check-abi.py: the table of docs/abi.md lacks {' '.join(missing)}")
    return {name for name, state in told.items() if state == "may change"}


def has_mask(struct, before):
    return ("member", f"{struct}.field_mask") in before


def is_growth(kind, name, old, new, before):
    """Whether programs that were built with the old text run with the new one."""
    numbers = re.fullmatch(r"(\d+)(?: bytes)?,(\d+)(?: bytes)?", f"{old},{new}")
    if not numbers or int(numbers[2]) < int(numbers[1]):
        return False
    return (has_mask(name, before) if kind == "struct" else
            kind == "constant" and name.endswith("_LAST"))


def why_not_added(kind, name, text, before, is_later):
    """Why programs notice what is new; or None."""
    struct = name.partition(".")[0]
    if (kind == "member" and ("struct", struct) in before and
            not has_mask(struct, before) and not text.endswith(IN_UNION)):
        return "is new in a structure that has no field_mask"
    if kind == "function" and is_later and text.split(",")[0] in {
            old.split(",")[0] for (kind, _), (_, _, old) in before.items()
            if kind == "function"}:
        return "is new, with a version of symbols that was released without it"
    return None


def compare(before, after, is_later):
    """What differs: its header, a sentence, whether programs notice it."""
    for (kind, name), (_, header, old) in before.items():
        new = after.get((kind, name), (None, None, None))[2]
        if new is None:
            yield header, f"{kind} {name} is gone; it was: {old}", True
        elif new != old:
            grows = is_growth(kind, name, old, new, before)
            yield (header, f"{kind} {name} was: {old}; it is now: {new}", not grows)
    for (kind, name), (_, header, text) in after.items():
        if (kind, name) not in before:
            why = why_not_added(kind, name, text, before, is_later)
            yield header, f"{kind} {name} {why or 'is new'}: {text}", bool(why)


def main():
    parser = argparse.ArgumentParser(usage=__doc__[__doc__.index("contrib/"):])
    parser.add_argument("--write", metavar="VERSION")
    parser.add_argument("build")
    options = parser.parse_args()
    if not os.path.exists(f"{options.build}/config.status"):
        sys.exit(f"check-abi.py: {options.build} is not a configured build folder")
    if sys.maxsize < 1 << 32:
        print("the list is of a 64-bit system")
        return 77
    after, absent = describe(options.build)
    loose = loose_headers({header for _, header, _ in after.values()})
    if options.write:
        if absent:
            sys.exit(f"check-abi.py: not built: {' '.join(absent)}")
        write_lists(after, options.write)
        return 0
    before, release = read_lists()
    for library in absent:
        print(f"{library} is not built, and not compared")
    before, after = ({key: value for key, value in seen.items()
                      if value[0] not in absent} for seen in (before, after))
    is_later = settings(options.build, "PACKAGE_VERSION") != [release]
    failed = 0
    for header, text, matters in compare(before, after, is_later):
        if matters and header in loose:
            text += " (this header may change)"
        elif matters:
            failed += 1
        print(f"{header}: {text}")
    print(f"{len(after)} compared with release {release}; programs notice {failed} "
          "(docs/abi.md)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
