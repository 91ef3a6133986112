# SPDX-License-Identifier: BSD-3-Clause
"""What uses of messages take of streams and of the card, on lane trig over the
emulated card: tables as docs/performance.md has them. But for what threads carry
out, counts are the same on every machine."""
HALO = ("st_faces", 8, "--grid 2x2x2 --trials 1 --middle 1 --inner 20")
LIFE = ("st_life", 8, "--width 64 --height 64 --generations 20 --trials 1")
JACOBI = ("st_jacobi3d", 8, "--block 8 --per-rank 4 --iters 20 --trials 1")
PINGPONG = ("st_pingpong", 2, "--max 1m --trials 1")
# A card for each process: single requests of a halo need more entries than one
# of eight processes has of a card
OWN = {"FI_CXIEMU_SERVICE": "own"}
# Of the first table: a benchmark, variants, and more of the environment
USES = ((HALO, "st,st-ready", {}),
        (HALO, "st-single", OWN),
        (HALO, "st-single", {**OWN, "UCX_ST_EAGER_MAX": "0"}),
        (LIFE, "st,st-ready", {}),
        (JACOBI, "st,st-ready", OWN))
USES_HEAD = ("a use of one rank", "stores", "words", "deferred operations",
             "counters held", "entries held", "fallbacks")
USES_MEMBERS = ("stores_per_use", "words_per_use", "deferred_per_use",
                "counters_held", "entries_held", "fallbacks")
# Of the second one: variants are run in one go
TOTALS = ((PINGPONG, "mpi,st,st-ready", {}), (HALO, "mpi,st,st-ready", {}))
TOTALS_HEAD = ("all ranks and uses", "messages x uses", "writes",
               "clear-to-sends", "additions to words")
TOTALS_MEMBERS = ("messages", "deferred_writes_fired", "clear_to_sends",
                  "atomics")
# Of the third one: entries that each process has of a card of its own
ENTRIES = (63, 126, 252, 504)
PROXIED = ("st", "st-ready", "st-single")
PROXIED_HEAD = ("entries of a process", "uses of operations", *PROXIED)


PROGRAMS = ("faces", "life", "jacobi3d", "pingpong")


class Differs(Exception):
    """The document has other counts."""


def number(value):
    """As short as it can be."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if value % 1 else f"{value:g}"


def counts(report, variant):
    """What uses of a variant took."""
    return next(row["counts"] for row in report["rows"]
                if row["variant"] == variant)


def uses_rows(run):
    """Of the first table."""
    for benchmark, variants, more in USES:
        report = run(benchmark, variants, more)
        for variant in variants.split(","):
            found = counts(report, variant)
            words = "".join(f", `{name}={value}`" for name, value
                            in more.items() if name not in OWN)
            yield (f"`{benchmark[0]}` {variant}{words}",
                   *(number(found[member]) for member in USES_MEMBERS))


def totals_rows(run):
    """Of the second one."""
    for benchmark, variants, more in TOTALS:
        report = run(benchmark, variants, more)
        yield (f"`{benchmark[0]}`",
               *(number(report[member]) for member in TOTALS_MEMBERS))


def proxied_rows(run):
    """Of the third one."""
    for entries in ENTRIES:
        more = {**OWN, "UCX_CXI_TRIG_DEFERRED_ENTRIES": str(entries)}
        report = run(HALO, ",".join(PROXIED), more)
        # Each message is a use of a send and one of a receive; one of two
        # trials warms up, and is not counted
        uses = report["messages"] // len(PROXIED)
        yield (str(entries), str(uses), *(
            str(counts(report, variant)["proxied"]) for variant in PROXIED))


def line(cells):
    """Of a table of Markdown."""
    return f"| {' | '.join(cells)} |"


def table(head, rows):
    """The same as a whole: its lines."""
    return [line(head), line(["---"] * len(head)), *map(line, rows)]


def table_in(text, head):
    """Lines of the table with that first line in a document."""
    lines = text.splitlines()
    if head not in lines:
        raise Differs(f"has no table \"{head}\"")
    found = []
    for one in lines[lines.index(head):]:
        if not one.startswith("|"):
            break
        found.append(one)
    return found


def compare(text, made):
    """Raises Differs unless a document has these tables, of which the first
    lines are the heads."""
    for lines in made:
        has = table_in(text, lines[0])
        wrong = [f"not \"{one}\"" for one in lines if one not in has]
        wrong += [f"but \"{one}\"" for one in has if one not in lines]
        if wrong:
            raise Differs("has other counts: " + "; ".join(wrong))


def show(run, text):
    """Prints the tables. With the text of a document it is those whose counts
    are the same everywhere, which must be in it; else all."""
    made = [table(USES_HEAD, uses_rows(run)),
            table(TOTALS_HEAD, totals_rows(run))]
    if text is None:
        made.append(table(PROXIED_HEAD, proxied_rows(run)))
    print("\n" + "\n\n".join("\n".join(lines) for lines in made))
    if text is not None:
        compare(text, made)
