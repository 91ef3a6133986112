#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tells which of the product's lines, branches and functions the tests reach.
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/coverage.sh [--report] [--help] [PATTERN...]

Builds into build-coverage/ with counts of what runs, runs the unit tests on every
lane and NIC and a quick part of the programs of tests, and prints for each folder
of the product how many lines and branches the tests reach, and every function
that none reaches. Those that no test here can reach are named, each with its
reason, in contrib/coverage-unreached.list, and are told apart. Pages for each file
are in build-coverage/pages/. Needs gcovr.

    --report   run nothing, count what ran before
    PATTERN    run the tests whose names match one of these (bash patterns)
               instead

A process that is killed writes no counts: what only a victim of a test does, as
in the tests of peers that die, is not seen. Some tests fail here though they pass
elsewhere, as the counting itself allocates memory and opens files: test_st_fault,
test_fab_gone, and storms. The sources must not change meanwhile.
STEOF
}

# Tests that are not unit tests but reach what those do not, in a few minutes
quick=('program/mpix_*' 'program/st_peer_exit.*'
       'program/host.exit_*'
       'program/direct.exit_*' 'program/direct.stream.3'
       'program/st_random.threads'
       'program/direct.random_threads'
       'program/st_progress.all' 'program/st_faces.1' 'program/mpi_plain.*'
       'program/perftest.*' 'program/native.*'
       'program/provider.*' 'program/trace.*'
       'program/transport.*')

# The folders of the product
folders=(src/ucs_ext src/uct/cxi_trig src/prov/cxiemu src/ucp/st
         contrib/openmpi)

# Builds for counting; counts of an older build are removed.
build()
{
    local flags="--coverage -fprofile-update=atomic"
    find "$ST_BUILD" -name '*.gcda' -delete 2>/dev/null
    st_build "$ST_BUILD" build CFLAGS="-O0 -g $flags \
        -include $ST_TOP/contrib/coverage.h" \
        LDFLAGS='--coverage -Wl,--export-dynamic'
}

# Prints from gcovr's JSON a line for each folder, and the functions that never
# ran, by file; those with a reason in the list apart.
summary()
{
    python3 - "$1" contrib/coverage-unreached.list "${folders[@]}" <<'STEOF'
import json
import sys

files = json.load(open(sys.argv[1]))["files"]
reasons = dict(line.split(None, 1) for line in open(sys.argv[2])
               if line.strip() and not line.startswith("#"))
names = set()
left = []
excused = []

def share(part, all):
    return f"{part}/{all} ({100 * part / all:.1f} %)" if all else "none"

for folder in sys.argv[3:]:
    lines = ran = branches = taken = 0
    for file in files:
        if not file["file"].startswith(folder + "/"):
            continue
        for line in file["lines"]:
            if line.get("gcovr/noncode", False):
                continue
            lines += 1
            ran += line["count"] > 0
            branches += len(line["branches"])
            taken += sum(b["count"] > 0 for b in line["branches"])
        for function in file["functions"]:
            name = function["name"]
            names.add(name)
            if function["execution_count"] > 0:
                continue
            place = f'{file["file"]}:{function["lineno"]}: {name}'
            if name in reasons:
                excused.append(f"{place}: {reasons[name].strip()}")
            else:
                left.append(place)
    print(f"{folder}: lines {share(ran, lines)}, "
          f"branches {share(taken, branches)}")
for name in sorted(set(reasons) - names):
    print(f"contrib/coverage-unreached.list names {name}, which is not there")
print(f"functions that tests here cannot reach: {len(excused)}")
print("\n".join(sorted(excused)))
print(f"{len(left)} functions not reached")
print("\n".join(sorted(left)))
STEOF
}

# Counts what ran; writes build-coverage/pages/ and build-coverage/summary.txt.
report()
{
    local filters=() folder
    for folder in "${folders[@]}"; do
        filters+=(--filter "$folder/")
    done
    mkdir -p "$ST_BUILD/pages"
    gcovr --root . --object-directory "$ST_BUILD" "$ST_BUILD" "${filters[@]}" \
        --exclude-unreachable-branches -j "$(nproc)" \
        --json "$ST_BUILD/coverage.json" \
        --html-details "$ST_BUILD/pages/index.html" || return 1
    summary "$ST_BUILD/coverage.json" | tee "$ST_BUILD/summary.txt"
}

run=yes
patterns=()
while [ $# -gt 0 ]; do
    case $1 in
    --report)  run=no ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) patterns+=("$1") ;;
    esac
    shift
done
[ ${#patterns[@]} -gt 0 ] || patterns=('unit*/*' "${quick[@]}")

cd "$ST_TOP" || exit 1
command -v gcovr >/dev/null || st_die "gcovr is missing: install it"
export ST_BUILD=$ST_TOP/build-coverage
if [ $run = yes ]; then
    build || st_die "the build failed"
    contrib/run-tests.sh --no-deps "${patterns[@]}"
fi
report
