#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Sets up what the tests need, builds if needed and runs every test.
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/run-tests.sh [--no-deps] [--quick] [--help] [PATTERN...]

Installs what the tests need (packages by apt-get, as root or with sudo; UCX's
private headers into .deps/), builds into build/ (build-asan/, build-tsan/ for
the sanitizers), runs every test and ends with "N passed, N failed". Each test
has a time limit; its output is in build/test-logs/.

    --no-deps  install and download nothing
    --quick    leave out the sanitizer builds and "make distcheck"
    PATTERN    run only the tests whose names match one of these (bash patterns)

The status is 0 if nothing failed.
STEOF
}

deps=yes
quick=no
patterns=()
for arg in "$@"; do
    case $arg in
    --no-deps) deps=no ;;
    --quick)   quick=yes ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) patterns+=("$arg") ;;
    esac
done

passed=0
failed=0
skipped=0
failures=()
logs=$ST_BUILD/test-logs

# True if the test is asked for.
wanted()
{
    local pattern
    [ ${#patterns[@]} -gt 0 ] || return 0
    for pattern in "${patterns[@]}"; do
        # shellcheck disable=SC2254 # a pattern is meant
        case $1 in $pattern) return 0 ;; esac
    done
    return 1
}

# Counts a result and shows the end of the log of what failed.
# Usage: count NAME STATUS SECONDS LOG
count()
{
    local name=$1 rc=$2 seconds=$3 log=$4
    case $rc in
    0)
        passed=$((passed + 1))
        echo "ok    $name (${seconds} s)"
        ;;
    77)
        skipped=$((skipped + 1))
        echo "skip  $name: $(tail -n 2 "$log" | grep -v '^SKIP:' | tail -n 1)"
        ;;
    *)
        failed=$((failed + 1))
        failures+=("$name")
        [ "$rc" -ne 124 ] || rc="$rc, out of time"
        echo "FAIL  $name (${seconds} s, status $rc)"
        sed 's/^/      | /' <(tail -n 30 "$log")
        echo "      | (all of it: $log)"
        ;;
    esac
}

# Runs one test.  Usage: check NAME SECONDS COMMAND...
check()
{
    local name=$1 limit=$2 log=$logs/${1//\//_}.log rc=0 start=$SECONDS
    shift 2
    wanted "$name" || return 0
    timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null || rc=$?
    [ $rc -ne 137 ] || rc=124
    count "$name" $rc $((SECONDS - start)) "$log"
}

# Checks of the sources.
static_checks()
{
    check check/includes 60 contrib/check-includes.sh
    check check/headers 120 contrib/check-headers.sh "$ST_BUILD"
    check check/style 60 contrib/check-style.sh
    check check/shellcheck 120 contrib/check-tools.sh shellcheck
    check check/codespell 120 contrib/check-tools.sh codespell
    check check/doxygen 120 contrib/check-tools.sh doxygen
    check check/configure 300 contrib/check-configure.sh "$ST_BUILD"
    check check/scripts 120 contrib/check-scripts.sh "$ST_BUILD"
}

# The protocols, by exhaustive search of their models; gcc builds the searches.
protocol_models()
{
    check models 600 test/model/run-models.sh
}

# Builds the unit tests of a folder.  Usage: unit_build DIR PREFIX
unit_build()
{
    local dir=$1 prefix=$2 log=$logs/$2-build.log start=$SECONDS
    if ! timeout -k 10 600 make -C "$dir/test/unit" -j"$(nproc)" check TESTS= \
             >"$log" 2>&1; then
        count "$prefix/build" 1 $((SECONDS - start)) "$log"
        return 1
    fi
}

# Runs the unit tests that a make target prints.
# Usage: unit_run DIR PREFIX TARGET
unit_run()
{
    local dir=$1 prefix=$2 target=$3 name
    for name in $(make -s -C "$dir/test/unit" "$target"); do
        check "$prefix/$name" 120 env -C "$dir/test/unit" \
            ST_BUILDDIR="$dir" srcdir="$ST_TOP/test/unit" "./$name"
    done
}

# The unit tests of a build folder, all of them on the emulated NIC, and those
# of ucp_st on the host lane too.
# Usage: unit_tests DIR PREFIX
unit_tests()
{
    unit_build "$1" "$2" || return
    st_nic strict
    unit_run "$1" "$2" print-tests
    st_lane host
    unit_run "$1" "$2-host" print-lane-tests
    st_lane trig
}

# Again on the other NICs, those that use one, and the host lane on transports
# of UCX.
unit_tests_elsewhere()
{
    local nic tls outer=$UCX_TLS
    # Without this UCX uses no shared memory where dead peers are to be noticed;
    # what tests make themselves has UCX's defaults
    export UCX_MM_ERROR_HANDLING=y UCX_WARN_UNUSED_ENV_VARS=n
    for nic in "${ST_NICS[@]:1}"; do
        st_nic "$nic"
        unit_run "$ST_BUILD" "unit-$nic" print-nic-tests
        st_lane host
        unit_run "$ST_BUILD" "unit-$nic-host" print-lane-tests
        st_lane trig
    done
    st_nic strict
    st_lane host
    for tls in tcp posix; do
        export UCX_TLS=$tls,self
        unit_run "$ST_BUILD" "unit-$tls-host" print-lane-tests
    done
    st_lane trig
    export UCX_TLS=$outer
    unset UCX_MM_ERROR_HANDLING UCX_WARN_UNUSED_ENV_VARS
}

# The same programs on every NIC.
integration_tests()
{
    local name nic log=$logs/integration-build.log start=$SECONDS
    if ! timeout -k 10 600 make -C "$ST_BUILD/test/integration" -j"$(nproc)" \
             check TESTS= >"$log" 2>&1; then
        count integration/build 1 $((SECONDS - start)) "$log"
        return
    fi
    # The driver has each test's own limit; this one is for the driver
    for nic in "${ST_NICS[@]}"; do
        st_nic "$nic"
        for name in $(test/integration/run.sh --list); do
            check "integration-$nic/$name" 600 \
                test/integration/run.sh --build "$ST_BUILD" "$name"
        done
    done
}

# A sanitizer build and its unit tests.  Usage: sanitized LIST NAME
sanitized()
{
    local list=$1 name=$2 dir=$ST_TOP/build-$2 start=$SECONDS probe
    wanted "$name/build" || [[ "${patterns[*]}" == *"$name/"* ]] || return 0
    probe=$(mktemp)
    if ! echo 'int main(void) { return 0; }' |
            gcc -x c "-fsanitize=$list" -o "$probe" - || ! "$probe"; then
        echo "a program built with -fsanitize=$list does not start here" \
            > "$logs/$name-build.log"
        count "$name/build" 77 0 "$logs/$name-build.log"
        rm -f "$probe"
        return
    fi
    rm -f "$probe"
    if ! st_build "$dir" "$name" --enable-sanitizer="$list" --without-mpi \
             CFLAGS='-O1 -g' >/dev/null; then
        count "$name/build" 1 $((SECONDS - start)) "$ST_BUILD/$name-make.log"
        return
    fi
    count "$name/build" 0 $((SECONDS - start)) "$ST_BUILD/$name-make.log"
    unit_tests "$dir" "$name"
}

distcheck()
{
    # The installed tests have run; this one is about what is distributed
    check distcheck 600 env ST_INTEGRATION=no VERBOSE=1 make -C "$ST_BUILD" \
        -j"$(nproc)" distcheck
}

set_up()
{
    if [ $deps = yes ]; then
        (st_install_packages "${ST_BUILD_PACKAGES[@]}" \
                             "${ST_TEST_PACKAGES[@]}") || return 1
        (st_ucx_source) || return 1
    fi
    st_build "$ST_BUILD" build
}

cd "$ST_TOP" || exit 1
mkdir -p "$logs"
rm -f "$logs"/*.log
st_loopback
st_lane trig
export UCX_TLS=cxi_trig,self
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$ST_TOP/test/lsan.supp
# UCX and libfabric are not built for the thread sanitizer
export TSAN_OPTIONS=ignore_noninstrumented_modules=1

if set_up; then
    count build 0 $SECONDS /dev/null
    st_say "Checks of the sources"
    static_checks
    st_say "Models of the protocols"
    protocol_models
    st_say "Unit tests"
    unit_tests "$ST_BUILD" unit
    unit_tests_elsewhere
    st_say "Integration tests"
    integration_tests
    if [ $quick = no ]; then
        st_say "Unit tests with AddressSanitizer and UBSan"
        sanitized address,undefined asan
        st_say "Unit tests with ThreadSanitizer"
        sanitized thread tsan
        st_say "make distcheck"
        distcheck
    fi
else
    failed=$((failed + 1))
    failures+=(build)
fi

[ ${#failures[@]} -eq 0 ] || echo "failed: ${failures[*]}"
summary="$passed passed, $failed failed"
[ $skipped -eq 0 ] || summary+=", $skipped skipped"
echo "$summary"
[ $failed -eq 0 ]
