#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Sets up what the tests need, builds if needed and runs every test.
set -uo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=contrib/common-tests.sh
. "$(dirname "${BASH_SOURCE[0]}")/common-tests.sh"

usage()
{
    cat <<STEOF
usage: contrib/run-tests.sh [--no-deps] [--quick] [--jobs N] [--help]
                            [PATTERN...]

Installs what the tests need (packages by apt-get, as root or with sudo; UCX's
private headers into .deps/), builds into build/ (build-asan/, build-tsan/ for
the sanitizers), runs every test and ends with "N passed, N failed". Each test
has a time limit, of minutes, which ends what hangs; its output is in
build/test-logs/. Tests run side by side and are told when they end; those that
measure, or have more busy processes than there are processors, run alone.

If the environment names a libfabric in CXI_LIBFABRIC, or pkg-config finds one,
that has the provider cxi, contrib/run-on-cxi.sh --quick is one of the tests.

    --no-deps  install and download nothing
    --quick    leave out the sanitizer builds and "make distcheck"
    --jobs N   so many at a time (default: two a processor, as tests wait a lot)
    PATTERN    run only the tests whose names match one of these (bash patterns)

The status is 0 if nothing failed.
STEOF
}

deps=yes
quick=no
while [ $# -gt 0 ]; do
    case $1 in
    --no-deps) deps=no ;;
    --quick)   quick=yes ;;
    --jobs)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
        places=$2
        shift
        ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) patterns+=("$1") ;;
    esac
    shift
done

has_unit=no
has_integration=no
declare -A builders=() # By sanitizer, the process that builds for it

# Ends what runs when this script is ended.
stop()
{
    local pid
    trap - INT TERM
    for pid in "${!running[@]}" "${builders[@]/#/-}"; do
        kill -- "$pid" 2>/dev/null
    done
    wait
    exit 1
}
trap stop INT TERM

# Checks of the sources.
static_checks()
{
    check check/includes contrib/check-includes.sh
    check check/headers contrib/check-headers.sh "$ST_BUILD"
    check check/aarch64 contrib/check-aarch64.sh "$ST_BUILD"
    check check/style contrib/check-style.sh
    check check/shellcheck contrib/check-tools.sh shellcheck
    check check/codespell contrib/check-tools.sh codespell
    check check/doxygen contrib/check-tools.sh doxygen
    check check/gpu contrib/check-gpu.sh
    check check/configure contrib/check-configure.sh "$ST_BUILD"
    check check/scripts contrib/check-scripts.sh "$ST_BUILD"
}

# The protocols, by exhaustive search of their models; gcc builds the searches.
protocol_models()
{
    check models test/model/run-models.sh
}

# The unit tests of a build folder, all of them on the emulated NIC, and those
# of ucp_st on the host lane too.
# Usage: unit_tests DIR PREFIX
unit_tests()
{
    st_nic strict
    unit_run "$1" "$2" print-tests
    st_lane host
    unit_run "$1" "$2-host" print-lane-tests
    st_lane trig
}

# The unit tests of ucp_st on the direct lane, where UCX has shared memory alone.
# Usage: unit_tests_direct DIR PREFIX [TARGET]
unit_tests_direct()
{
    local outer=$UCX_TLS
    # Without this UCX uses no shared memory where dead peers are to be noticed;
    # what tests make themselves has UCX's defaults
    export UCX_MM_ERROR_HANDLING=y UCX_WARN_UNUSED_ENV_VARS=n
    export UCX_TLS=posix,self
    st_lane direct
    unit_run "$1" "$2" "${3:-print-lane-tests}"
    st_lane trig
    export UCX_TLS=$outer
    unset UCX_MM_ERROR_HANDLING UCX_WARN_UNUSED_ENV_VARS
}

# Has tests use streams of a GPU's runtime, over its stand-in; "host" ends that.
# Usage: standin DIR host|hip|cuda
standin()
{
    unset ST_TEST_STREAM
    export LD_LIBRARY_PATH=$outer_path
    [ -n "$outer_path" ] || unset LD_LIBRARY_PATH
    [ "$2" != host ] || return 0
    export ST_TEST_STREAM=$2
    export LD_LIBRARY_PATH=$1/test/standin${outer_path:+:$outer_path}
}
outer_path=${LD_LIBRARY_PATH:-}

# The unit tests of ucp_st on streams of GPUs, on a lane.
# Usage: unit_tests_gpu DIR PREFIX hip|cuda LANE
unit_tests_gpu()
{
    standin "$1" "$3"
    if [ "$4" = direct ]; then
        unit_tests_direct "$1" "$2-$3-$4" print-gpu-tests
    else
        st_nic strict
        st_lane "$4"
        unit_run "$1" "$2-$3-$4" print-gpu-tests
        st_lane trig
    fi
    standin "$1" host
}

# HIP's back end over CUDA's: a library that forwards the calls, on the stand-in
# for CUDA's driver.  Usage: unit_tests_forward DIR
unit_tests_forward()
{
    local name prefix=standin-hip-on-cuda-host
    standin "$1" hip
    export ST_HIP_DIR=$1/test/standin/forward
    export LD_LIBRARY_PATH=$ST_HIP_DIR:$LD_LIBRARY_PATH
    st_nic strict
    st_lane host
    for name in test_gstream_gpu test_st_device test_st_gpu test_st_queue \
                test_st_batch test_st_match; do
        check "$prefix/$name" env -C "$1/test/unit" ST_BUILDDIR="$1" \
            srcdir="$ST_TOP/test/unit" "./$name"
    done
    st_lane trig
    unset ST_HIP_DIR
    standin "$1" host
}

# The unit tests on streams of GPUs where a device has as few hardware queues as
# by default.  Usage: unit_tests_few_queues DIR PREFIX hip|cuda LANE
unit_tests_few_queues()
{
    local cuda=$CUDA_DEVICE_MAX_CONNECTIONS hip=$GPU_MAX_HW_QUEUES
    export CUDA_DEVICE_MAX_CONNECTIONS=8 GPU_MAX_HW_QUEUES=4
    unit_tests_gpu "$1" "$2-few" "$3" "$4"
    export CUDA_DEVICE_MAX_CONNECTIONS=$cuda GPU_MAX_HW_QUEUES=$hip
}

# Again where it matters: on the other NICs the suites that use one, on the lane
# that such a NIC is for; and the suites of lanes on the host lane over transports
# of UCX, and on the direct lane.
unit_tests_elsewhere()
{
    local nic tls outer=$UCX_TLS
    # As unit_tests_direct() does
    export UCX_MM_ERROR_HANDLING=y UCX_WARN_UNUSED_ENV_VARS=n
    for nic in "${ST_NICS[@]:1}"; do
        st_nic "$nic"
        unit_run "$ST_BUILD" "unit-$nic" print-nic-tests
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
    unit_tests_direct "$ST_BUILD" unit-posix-direct
    unit_tests_gpu "$ST_BUILD" standin hip host
    unit_tests_gpu "$ST_BUILD" standin hip trig
    unit_tests_gpu "$ST_BUILD" standin cuda direct
    unit_tests_few_queues "$ST_BUILD" standin cuda direct
    unit_tests_forward "$ST_BUILD"
}

# Programs, each on the NICs that it is for. Ranks of MPI poll, each on a processor.
# What needs the same number of places comes together, so that few places stay
# free.
integration_tests()
{
    local name nic size
    for nic in "${ST_NICS[@]}"; do
        st_nic "$nic"
        while read -r name size; do
            [ "$size" != all ] || size=$places
            # The threads of sockets are many, and slow without a processor
            [ "$nic" != sockets ] || [ "$size" -gt 1 ] || size=$(nproc)
            check_sized "$size" "integration-$nic/$name" \
                test/integration/run.sh --build "$ST_BUILD" "$name"
        done < <(test/integration/run.sh --busy | sort -s -k 2,2)
    done
}

# Tests of the MPI layer that run without pml/ucx, too
ob1_tests=(mpix_match.4 mpix_match.in_mpi mpix_refuse.2 mpix_stream.2 mpix_mixed.2
           mpix_calls.2 mpix_multi.3 mpix_lock.2 mpix_p5.4 mpix_p7.2 mpix_leave.3
           mpix_finalize.never mpix_finalize.before mpix_finalize.pmpi
           mpix_finalize.comm mpix_finalize.after mpix_finalize.pending
           mpix_finalize.chain mpix_comms.mpi mpix_once
           mpix_tool.preload mpix_tool.behind
           mpix_plugin.local mpix_plugin.late mpix_batch.2 mpix_batch.4
           mpix_coll_use.2 mpix_coll_use.5 mpix_device.mpi mpix_matrix.5
           mpix_matrix.6)

# Those on MPI's own messages, with OpenMPI's pml/ob1.
integration_tests_ob1()
{
    local name size
    st_nic strict
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self,vader
    export OMPI_MCA_btl_vader_single_copy_mechanism=none
    while read -r name size; do
        check_sized "$size" "integration-ob1/$name" \
            test/integration/run.sh --build "$ST_BUILD" "$name"
    done < <(test/integration/run.sh --busy "${ob1_tests[@]}")
    unset OMPI_MCA_pml OMPI_MCA_btl OMPI_MCA_btl_vader_single_copy_mechanism
}

# Those on streams of GPUs.  Usage: integration_tests_gpu hip|cuda LANE
integration_tests_gpu()
{
    local name size
    st_nic strict
    st_lane "$2"
    standin "$ST_BUILD" "$1"
    while read -r name size; do
        [ "$size" != all ] || size=$places
        check_sized "$size" "standin-$1-$2/$name" \
            test/integration/run.sh --build "$ST_BUILD" "$name"
    done < <(test/integration/run.sh --busy "${stream_tests[@]}")
    standin "$ST_BUILD" host
    st_lane trig
}

# The pack for machines with a GPU, and a part of what it runs, on a stand-in.
# Usage: gpu_pack hip|cuda
gpu_pack()
{
    local pack=$ST_BUILD/gpu-check-$1.tgz
    type -P ompi_info >/dev/null || return 0
    # shellcheck disable=SC2016 # the inner bash expands it
    check_sized "$places" "standin-pack/$1" env -u UCX_TLS -u FI_CXIEMU_MODE \
        bash -c '"$0" --pack "$1" --build "$3" &&
            "$0" --run "$1" --standin "$2" --quick --out "$1.results"
            rc=$?; rm -f "$1"; exit $rc' \
        "$ST_TOP/contrib/gpu-check.sh" "$pack" "$1" "$ST_BUILD"
}

# Programs of the MPI layer that run with the thread sanitizer: names of tests, each
# a program's and the number of its ranks
tsan_mpi=(mpix_multi.3 mpix_calls.2 mpix_lock.2)

# Builds for a sanitizer, with the unit tests; 77 if programs built so do not
# start here.  Usage: sanitizer_build LIST NAME
sanitizer_build()
{
    local list=$1 name=$2 dir=$ST_TOP/build-$2 probe rc=0
    local options=(CFLAGS='-O1 -g')
    probe=$(mktemp)
    echo 'int main(void) { return 0; }' |
        gcc -x c "-fsanitize=$list" -o "$probe" - && "$probe" || rc=77
    rm -f "$probe"
    if [ $rc -ne 0 ]; then
        echo "a program built with -fsanitize=$list does not start here"
        return $rc
    fi
    if [ "$name" != tsan ]; then
        options+=(--without-mpi)
    elif grep -qs -e --without-mpi "$dir/config.log"; then
        rm -f "$dir/config.status" # Of a version that tested no MPI here
    fi
    st_build "$dir" "$name" --enable-sanitizer="$list" "${options[@]}" &&
        tests_build "$dir" unit || return 1
    [ "$name" != tsan ] ||
        make -C "$dir/test/integration" "${tsan_mpi[@]%.*}"
}

# Begins to build for a sanitizer, with what the tests leave of the processors.
# Usage: sanitizer_begin LIST NAME
sanitizer_begin()
{
    local list=$1 name=$2 start=$SECONDS rc=0
    wanted "$name/build" || [[ "${patterns[*]}" == *"$name"[-/]* ]] || return 0
    set -m # A process group of its own, with all that it starts
    (
        renice -n 19 $BASHPID
        sanitizer_build "$list" "$name" || rc=$?
        echo $((SECONDS - start)) >"$logs/$name-seconds.log"
        exit $rc
    ) >"$logs/$name-build.log" 2>&1 </dev/null &
    set +m
    builders[$name]=$!
}

# What other processes write, drawn anew each time: a minute each of the suites,
# with so many seconds for a loop.  Usage: fuzz_tests DIR PREFIX
fuzz_tests()
{
    local dir=$1 prefix=$2 name seconds cases
    local seed=${ST_FUZZ_SEED:-$SRANDOM}
    st_say "Changed inputs, ST_FUZZ_SEED=$seed"
    st_nic strict
    while read -r name seconds cases; do
        # shellcheck disable=SC2086 # options and their values
        check "$prefix/$name" "${ST_NET[@]}" env -C "$dir/test/unit" \
            ST_BUILDDIR="$dir" srcdir="$ST_TOP/test/unit" \
            ST_FUZZ_SEED="$seed" ST_FUZZ_SECONDS="$seconds" "./$name" $cases
    done <<'STEOF'
test_st_fuzz 5
test_st_fuzz_channel 30
test_cxiemu_fuzz 15
test_uct_addr 30 --case changed_addresses --case changed_keys
STEOF
}

# Its unit tests.  Usage: sanitized NAME
sanitized()
{
    local name=$1 rc=0
    [ -n "${builders[$name]:-}" ] || return 0
    wait "${builders[$name]}" || rc=$?
    unset "builders[$name]"
    count "$name/build" $rc "$(cat "$logs/$name-seconds.log")" \
        "$logs/$name-build.log"
    [ $rc -eq 0 ] || return 0
    unit_tests "$ST_TOP/build-$name" "$name"
    unit_tests_direct "$ST_TOP/build-$name" "$name-direct"
    unit_tests_gpu "$ST_TOP/build-$name" "$name-standin" hip host
    # Other inputs in each run: by name, until it has been seen to be steady
    if [[ $name == asan && ${patterns[*]} == *asan-fuzz* ]]; then
        fuzz_tests "$ST_TOP/build-$name" "$name-fuzz"
    fi
    [ "$name" != tsan ] || sanitized_mpi
}

# Threads that use the MPI layer, with the thread sanitizer. OpenMPI and UCX put
# functions of theirs before libc's for memory, which threads call when the
# sanitizer has forgotten them already: those stay out.
sanitized_mpi()
{
    local name
    st_nic strict
    for name in "${tsan_mpi[@]}"; do
        check_sized "${name#*.}" "tsan/$name" env OMPI_MCA_memory=^patcher \
            UCX_MEM_MMAP_HOOK_MODE=none ST_LIMIT=300 \
            test/integration/run.sh --build "$ST_TOP/build-tsan" "$name"
    done
}

# The provider that users have, where a libfabric is at hand that has it. Its tests
# run some at a time, so nothing runs beside them.
on_cxi()
{
    local prefix=${CXI_LIBFABRIC:-} log lacks outer=$limit
    wanted cxi || return 0
    log=$(log_of cxi)
    [ -n "$prefix" ] ||
        prefix=$(pkg-config --variable=prefix libfabric 2>/dev/null)
    lacks=$(st_cxi_lacks "${prefix:-/usr}")
    if [ -n "$lacks" ]; then
        echo "$lacks (CXI_LIBFABRIC names another one)" >"$log"
        count cxi 77 0 "$log"
        return
    fi
    limit=7200
    check_sized "$places" cxi contrib/run-on-cxi.sh --no-deps --quick \
        --jobs "$places" --libfabric "$prefix"
    limit=$outer
}

# This is about what is distributed, with another compiler, if there is one, and
# without optimization. All tests have run already; these show that they are built,
# found and run in a folder outside the sources: one for each library, and one of
# those that make links and files of their own.
distcheck()
{
    local flags=CFLAGS=-O0
    local suites='test_gstream test_trace test_trig test_uct_gpu test_st_queue
                  test_st_examples test_fab_msg.fast'
    ! type -P clang >/dev/null || flags+=' CC=clang'
    check distcheck env ST_INTEGRATION=no ST_UNIT_TESTS="${suites//[[:space:]]/ }" \
        VERBOSE=1 make -C "$ST_BUILD" -j"$(nproc)" \
        DISTCHECK_CONFIGURE_FLAGS="$flags" distcheck
}

set_up()
{
    if [ $deps = yes ]; then
        (st_install_packages "${ST_BUILD_PACKAGES[@]}" \
                             "${ST_TEST_PACKAGES[@]}") || return 1
        (st_install_packages "${ST_OPTIONAL_PACKAGES[@]}") ||
            st_say "Tests do without ${ST_OPTIONAL_PACKAGES[*]} if need be"
        (st_ucx_source) || return 1
    fi
    st_build "$ST_BUILD" build
}

cd "$ST_TOP" || exit 1
mkdir -p "$logs"
rm -f "$logs"/*.log
st_loopback
st_forking
st_gpu_queues
st_lane trig
export UCX_TLS=cxi_trig,self
# The sockets provider's threads are not to spin on cores that others need
export FI_SOCKETS_PE_WAITTIME=0
# GCC 12's LeakSanitizer records thread-local variables of libraries. It crashes at
# those that begin 16 bytes behind a page's begin: it takes what is before them for
# a header of an older glibc. intercept_tls_get_addr=0 turns the record off.
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:intercept_tls_get_addr=0
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$ST_TOP/test/lsan.supp
# UCX and libfabric are not built for the thread sanitizer
export TSAN_OPTIONS=ignore_noninstrumented_modules=1

if set_up; then
    count build 0 $SECONDS /dev/null
    st_say "Checks of the sources, models of the protocols"
    protocol_models
    static_checks
    reap_all
    st_say "Programs of the tests"
    build_tests unit && has_unit=yes
    build_tests integration && has_integration=yes
    if [ $quick = no ]; then
        st_say "Builds with AddressSanitizer and UBSan, with ThreadSanitizer"
        sanitizer_begin address,undefined asan
        sanitizer_begin thread tsan
    fi
    st_say "Unit tests"
    if [ $has_unit = yes ]; then
        unit_tests "$ST_BUILD" unit
        unit_tests_elsewhere
    fi
    st_say "Integration tests"
    [ $has_integration = no ] || integration_tests
    [ $has_integration = no ] || integration_tests_ob1
    [ $has_integration = no ] || integration_tests_gpu hip trig
    [ $has_integration = no ] || integration_tests_gpu cuda host
    if [ $has_unit = yes ] && [ $has_integration = yes ]; then
        gpu_pack hip
        gpu_pack cuda
    fi
    [ $has_integration = no ] || on_cxi
    if [ $quick = no ]; then
        st_say "make distcheck, unit tests with the sanitizers"
        distcheck
        sanitized asan
        sanitized tsan
    fi
    reap_all
else
    failed=$((failed + 1))
    failures+=(build)
fi

summary
