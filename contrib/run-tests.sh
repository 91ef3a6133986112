#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Sets up what the tests need, builds and runs tests of test/plan.ini.
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/run-tests.sh [--no-deps] [--all|--tier TIER] [--jobs N] [--list]
                            [--times] [--help] [PATTERN...]

Installs what the tests need (packages by apt-get, as root or with sudo; UCX's
private headers into .deps/), builds into build/ (build-asan/, build-tsan/ for
the sanitizers), runs the tests that test/plan.ini names for the tier, and ends
with "N passed, N failed". Each test has a time limit, which ends what hangs; its
output, and junit.xml, are in build/test-logs/.

    --no-deps    install and download nothing
    --all        the tier full, which CI runs: with sanitizers and other cards
    --tier TIER  default, full, or night: what full leaves out, or has in part
    --jobs N     so many processes at a time (default: two a processor, as tests
                 wait a lot)
    --list       print the names, run nothing
    --times      print how long each took when it last passed, run nothing
    PATTERN      the tests of all tiers whose names match one of these (bash
                 patterns); a whole name, such as unit-host/test_st_queue, runs in
                 every group, also where no tier has it

The status is 0 if nothing failed.
STEOF
}

deps=yes
tier=default
options=()
patterns=()
while [ $# -gt 0 ]; do
    case $1 in
    --no-deps) deps=no ;;
    --all) tier=full ;;
    --tier)
        [[ ${2:-} =~ ^(default|full|night)$ ]] || { usage >&2; exit 2; }
        tier=$2
        shift
        ;;
    --list|--times) deps=no; options+=("$1") ;;
    --jobs)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
        options+=(--jobs "$2")
        shift
        ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) patterns+=("$1") ;;
    esac
    shift
done

cd "$ST_TOP" || exit 1
if [ $deps = yes ]; then
    (st_install_packages "${ST_BUILD_PACKAGES[@]}" "${ST_TEST_PACKAGES[@]}") ||
        exit 1
    [ "$tier" = default ] ||
        (st_install_packages "${ST_OPTIONAL_PACKAGES[@]}") ||
        st_say "Tests do without ${ST_OPTIONAL_PACKAGES[*]} if need be"
    (st_ucx_source) || exit 1
fi
exec test/run.py --tier "$tier" --build "$ST_BUILD" "${options[@]}" \
    "${patterns[@]}"
