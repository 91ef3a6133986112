#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a pack of what was built, and runs the tests and benchmarks of streams of
# GPUs from it on a machine that has a GPU and nothing else.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/common.sh
. "$here/common.sh"
# shellcheck source=contrib/common-tests.sh
. "$here/common-tests.sh"

usage()
{
    cat <<STEOF
usage: contrib/gpu-check.sh --pack FILE [--build DIR]
       contrib/gpu-check.sh --run DIR|FILE [--standin hip|cuda] [--quick]
                            [--jobs N] [--limit SECONDS] [--for SECONDS]
                            [--out DIR] [PATTERN...]

--pack, where the project is built with its tests: writes a tar of the programs
and of the libraries that they need, with OpenMPI, UCX, libfabric and these
scripts, but without those of libc and of the GPUs' runtimes.

--run, on a machine with a GPU: runs the unit tests, programs of MPI, programs
that must not deadlock, storms and benchmarks of such a pack on the streams of
each runtime of GPUs that is there, each with a time limit, and ends with
"N passed, N failed, N skipped". It needs bash, coreutils, grep, sed,
awk, tar, gzip and the driver. The script lies in the pack, too:
gpu-check/contrib/gpu-check.sh.

    --standin R  on our stand-in for that runtime, not on a GPU; with cuda, on
                 streams of HIP over it, too
    --quick      a few of each kind, to see whether the pack works
    --jobs N     so many processes at a time (default: one a processor, at most
                 4 on a GPU, else 8). Processes take turns on a GPU, and it has
                 room for few that have many hardware queues
    --limit N    ends a test after N seconds (default: 900)
    --for N      starts no test after N seconds: what is left counts as skipped
    --out DIR    for results.json, results.md and logs (gpu-check-results)
    PATTERN      only those whose names match one of these (bash patterns)

The status is 0 if nothing failed, 77 if there is no GPU, 1 otherwise.
STEOF
}

action=
what=
build=$ST_BUILD
standin=
quick=no
limit=900
out=$PWD/gpu-check-results
places=
while [ $# -gt 0 ]; do
    case $1 in
    --pack|--run)
        action=${1#--}
        what=${2:-}
        [ -n "$what" ] || { usage >&2; exit 2; }
        shift
        ;;
    --build) build=${2:-}; shift ;;
    --standin)
        [[ ${2:-} =~ ^(hip|cuda)$ ]] || { usage >&2; exit 2; }
        standin=$2
        shift
        ;;
    --quick) quick=yes ;;
    --jobs)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
        places=$2
        shift
        ;;
    --limit|--for)
        [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
        if [ "$1" = --limit ]; then limit=$2; else ends=$((SECONDS + $2)); fi
        shift
        ;;
    --out) out=${2:?}; shift ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) patterns+=("$1") ;;
    esac
    shift
done
[ -n "$action" ] || { usage >&2; exit 2; }
if [ -z "$places" ]; then
    places=$(nproc)
    most=$([ -n "$standin" ] && echo 8 || echo 4)
    [ "$places" -le "$most" ] || places=$most
fi


# --- The pack

# Libraries that are the machine's own: of libc, and of the GPUs' runtimes
own_libraries='(ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv|libutil'
own_libraries+='|libanl|libmvec|libnsl|libnss_.*|libcuda|libnvidia-.*|libcudart'
own_libraries+='|libamdhip64|libhsa-.*|libhsakmt|libamd_comgr|librocm.*)\.so.*'
# Those that the runtimes may need newer, or that need a newer libc than the rest:
# taken where the machine has none
shared_libraries='(libstdc\+\+|libgcc_s|libz|libzstd|liblzma|libnuma|libelf'
shared_libraries+='|libdrm.*|libudev|libpciaccess|libuuid|libxml2|libicu.*'
shared_libraries+='|libevent.*)\.so.*'

# Suites that load a runtime themselves, and set the lanes
runtime_suites=(test_st_gpu test_st_device test_st_gpu_ipc)

# Programs of the tests that run from a pack, below the build folder
pack_programs()
{
    local name
    for name in $(make -s -C "$build/test/unit" print-gpu-tests | tail -n 1) \
                "${runtime_suites[@]}"; do
        echo "test/unit/$name"
    done
    (cd "$build/test/integration" && ls .libs) |
        sed -n 's,^\(mpix_[a-z0-9_]*\|st_progress\|st_storm\|st_random\)$,&,p' |
        sed 's,^,test/integration/,'
    printf '%s\n' bench/st_pingpong bench/st_faces bench/st_wrt \
        src/tools/ucx_st_info src/tools/ucx_st_perftest
}

# Copies a program; libtool's script stands for one in .libs.
# Usage: pack_program PROGRAM
pack_program()
{
    local from=$build/$1
    [ "$(head -c 4 "$from")" = $'\x7fELF' ] || from=${from%/*}/.libs/${from##*/}
    mkdir -p "$root/build/${1%/*}"
    cp -L "$from" "$root/build/$1"
}

# The libraries that files need, of those that are in no package of libc.
# Usage: pack_needed FILE...
pack_needed()
{
    LD_LIBRARY_PATH=$build_path ldd "$@" 2>/dev/null |
        awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -vE "/$own_libraries\$" | grep -vF "$build/"
}

# OpenMPI's and UCX's parts that are opened by name.
pack_modules()
{
    local dir
    dir=$(ompi_info --path pkglibdir --parsable | cut -d : -f 3)
    mkdir -p "$root/mpi/bin" "$root/mpi/lib/plugins" "$root/mpi/etc" \
        "$root/mpi/share" "$root/mpi/pmix" "$root/lib/ucx"
    cp -L "$dir"/*.so "$root/mpi/lib/plugins/"
    dir=$(ompi_info --path pkgdatadir --parsable | cut -d : -f 3)
    cp -rL "$dir/." "$root/mpi/share/"
    dir=$(ompi_info --path sysconfdir --parsable | cut -d : -f 3)
    cp -rL "$dir/." "$root/mpi/etc/"
    cp -L "$(command -v mpirun)" "$root/mpi/bin/mpirun"
    cp -L "$(command -v orted)" "$root/mpi/bin/orted"
    for dir in $(pack_needed "$root/mpi/lib/plugins"/*pmix*.so |
                     sed -n 's,/libpmix\.so.*,,p'); do
        dir=$(dirname "$(readlink -f "$dir/libpmix.so.2")")
        [ ! -d "$dir/pmix" ] || cp -L "$dir"/pmix/*.so "$root/mpi/pmix/"
    done
    dir=$(dirname "$(pack_needed "$root/build/bench/st_pingpong" \
        "$build/src/ucp/st/.libs/libucp_st.so" | grep -m 1 '/libucp\.so')")
    cp -L "$dir"/ucx/*.so.0 "$root/lib/ucx/" 2>/dev/null
}

# The libraries of the project, where ucx-st-run looks, and what all files need.
pack_libraries()
{
    local dir file libraries
    for dir in src/ucs_ext src/prov/cxiemu src/uct/cxi_trig src/ucp/st \
               contrib/openmpi/mpix_queue test/standin test/standin/forward; do
        [ -d "$build/$dir/.libs" ] || continue
        mkdir -p "$root/build/$dir/.libs"
        cp -a "$build/$dir"/.libs/*.so* "$root/build/$dir/.libs/"
        for file in "$build/$dir"/lib*.so*; do
            [ ! -L "$file" ] || cp -a "$file" "$root/build/$dir/"
        done
    done
    mkdir -p "$root/lib-shared"
    mapfile -t libraries < <(find "$root" -type f \
        \( -name '*.so*' -o -perm -100 \) -print | grep -v '\.sh$')
    for file in $(pack_needed "${libraries[@]}"); do
        if grep -qxE "$shared_libraries" <<<"${file##*/}"; then
            cp -L "$file" "$root/lib-shared/"
        else
            cp -L "$file" "$root/lib/"
        fi
    done
}

# The newest version of libc's symbols that files name.  Usage: glibc_of FILE...
glibc_of()
{
    grep -aohr 'GLIBC_2\.[0-9]*' "$@" | sort -uV | tail -n 1 | cut -d _ -f 2
}

# What is told of the pack where it runs.
pack_facts()
{
    {
        echo "version=$(sed -n 's/^VERSION = //p' "$build/Makefile")"
        echo "commit=$(git -C "$ST_TOP" rev-parse --short HEAD 2>/dev/null)"
        echo "packed=$(date -u +%Y-%m-%d)"
        echo "glibc=$(glibc_of "$root/lib" "$root/mpi" "$root/build")"
        echo "machine=$(uname -m)"
        echo "mpi='$(ompi_info --version | head -n 1)'"
    } >"$root/pack.facts"
}

pack()
{
    local root temp name build_path
    if ! type -P ompi_info orted mpirun >/dev/null; then
        st_die "--pack needs OpenMPI with mpirun, orted and ompi_info"
    fi
    build=$(cd "$build" && pwd) || exit 1
    for name in test/unit/.libs/test_st_queue test/integration/.libs/mpix_match \
                test/standin/.libs/libcuda.so.1; do
        [ -e "$build/$name" ] ||
            st_die "$build/$name was not built: run \"make -C $build/${name%/.libs*}" \
                   "check TESTS=\""
    done
    temp=$(mktemp -d)
    # shellcheck disable=SC2064 # the name of now is meant
    trap "rm -rf '$temp'" EXIT
    root=$temp/gpu-check
    build_path=$build/src/ucs_ext/.libs:$build/src/uct/cxi_trig/.libs
    build_path+=:$build/src/ucp/st/.libs
    build_path+=:$build/contrib/openmpi/mpix_queue/.libs
    mkdir -p "$root/contrib" "$root/test/integration" "$root/lib"
    cp "$here"/{gpu-check.sh,common.sh,common-tests.sh,ucx-st-run,own-network.sh} \
        "$root/contrib/"
    cp "$ST_TOP"/test/integration/{run.sh,tests.list} "$root/test/integration/"
    while read -r name; do
        pack_program "$name" || st_die "$name was not built"
    done < <(pack_programs)
    make -s -C "$build/test/unit" print-gpu-tests | tail -n 1 \
        >"$root/gpu-suites"
    pack_modules
    pack_libraries
    pack_facts
    tar -C "$temp" -cf - gpu-check | gzip -1 >"$what" ||
        st_die "$what was not written"
    st_say "$what: $(du -h "$what" | cut -f 1), for $(uname -m) with libc" \
        "$(sed -n 's/^glibc=//p' "$root/pack.facts") or later"
}


# --- A run

# Whether this machine's libc is of a version or a later one.
# Usage: has_glibc VERSION
has_glibc()
{
    [ "$(printf '%s\n' "$1" "${libc:-0}" | sort -V | head -n 1)" = "$1" ]
}

# Has the pack's libraries and OpenMPI be found.
use_pack()
{
    local file known
    # shellcheck source=/dev/null # version, commit, packed, glibc, machine, mpi
    . "$ST_TOP/pack.facts"
    libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)
    [ "$machine" = "$(uname -m)" ] ||
        st_die "this pack is for $machine, and the machine is $(uname -m)"
    has_glibc "$glibc" ||
        st_die "this pack needs glibc $glibc or later, and the machine has" \
               "${libc:-another libc}: make the pack on a system with that" \
               "glibc or an older one, or run it in a container of Debian 12"
    known=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null)
    for file in "$ST_TOP"/lib-shared/*; do
        ! grep -qF "${file##*/} " <<<"$known" || continue
        has_glibc "$(glibc_of "$file")" ||
            st_die "${file##*/} is missing, and the pack's needs glibc" \
                   "$(glibc_of "$file"): install the package that has it"
        ln -sf "$file" "$ST_TOP/lib/${file##*/}"
    done
    base_path=$ST_TOP/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    base_path=$build/src/ucs_ext/.libs:$build/src/uct/cxi_trig/.libs:$base_path
    base_path=$build/src/ucp/st/.libs:$base_path
    base_path=$build/contrib/openmpi/mpix_queue/.libs:$base_path
    export LD_LIBRARY_PATH=$base_path
    export PATH=$ST_TOP/mpi/bin:$PATH
    export OPAL_PREFIX=$ST_TOP/mpi OPAL_BINDIR=$ST_TOP/mpi/bin
    export OPAL_LIBDIR=$ST_TOP/lib OPAL_PKGLIBDIR=$ST_TOP/mpi/lib/plugins
    export OPAL_PKGDATADIR=$ST_TOP/mpi/share OPAL_SYSCONFDIR=$ST_TOP/mpi/etc
    export PMIX_INSTALL_PREFIX=$ST_TOP/mpi
    export PMIX_MCA_mca_base_component_path=$ST_TOP/mpi/pmix
    # Parts that the machine's own PMIx has are found, too
    export PMIX_MCA_mca_base_component_show_load_errors=0
    export PMIX_MCA_pcompress_base_silence_warning=1
    # All ranks are here: what would reach other nodes is asked for, never used
    export OMPI_MCA_plm_rsh_agent=bash
    export UCX_MODULE_DIR=$ST_TOP/lib/ucx
}

# Has programs use streams of a runtime: of the machine, of the stand-in, or of
# HIP over the machine's CUDA.  Usage: use_stream hip|cuda|none [FOLDER]
use_stream()
{
    unset ST_TEST_STREAM ST_HIP_DIR ST_CUDA_DIR
    [ "$1" = none ] || export ST_TEST_STREAM=$1
    # Where tests that load the runtime look for it; empty: where the loader does
    [ "$1" != hip ] || export ST_HIP_DIR=${2%%:*}
    [ "$1" != cuda ] || export ST_CUDA_DIR=${2:-}
    export LD_LIBRARY_PATH=${2:+$2:}$base_path
}

# What ucx_st_info says of streams of a runtime.  Usage: ask_streams FOLDER
ask_streams()
{
    LD_LIBRARY_PATH=${1:+$1:}$base_path "$build/src/tools/ucx_st_info" -s 2>&1
}

# Sets flavours: lines "LABEL RUNTIME FOLDER" of what is run; and gpu_text.
find_streams()
{
    local found folder=$build/test/standin
    flavours=()
    if [ -n "$standin" ]; then
        found=$(ask_streams "$folder")
        gpu_text=$found
        grep -qF "library: $folder/" <<<"$found" ||
            st_die "the pack has no stand-ins, or they do not work: $found"
        flavours=("standin-$standin $standin $folder")
        [ "$standin" != cuda ] ||
            flavours+=("standin-hip-on-cuda hip $folder/forward:$folder")
        return
    fi
    found=$(ask_streams '')
    gpu_text=$found
    grep -q '^# Streams: HIP: on' <<<"$found" && flavours+=("hip hip")
    if grep -q '^# Streams: CUDA: on' <<<"$found"; then
        flavours+=("cuda cuda")
        if [ -e "$folder/forward/libamdhip64.so" ]; then
            flavours+=("hip-on-cuda hip $folder/forward")
            gpu_text+=$'\n'"# HIP over CUDA, by a library of this project:"$'\n'
            gpu_text+=$(ask_streams "$folder/forward" | sed -n '/HIP:/,/CUDA:/p')
        fi
    fi
    [ ${#flavours[@]} -gt 0 ] && return
    echo "$found" | grep -E '^# Streams: (HIP|CUDA):'
    echo "gpu-check.sh: there is no GPU that can be used (skipped): nothing was run"
    exit 77
}

# The unit tests of queues on streams.  Usage: run_units LABEL
run_units()
{
    local lane name suites
    suites=$(cat "$ST_TOP/gpu-suites")
    [ $quick = no ] || suites='test_st_queue test_st_batch'
    for name in "${runtime_suites[@]}"; do
        check "$1/$name" env -C "$build/test/unit" ST_BUILDDIR="$build" \
            srcdir="$ST_TOP/test/unit" "./$name"
    done
    for lane in "${lanes[@]}"; do
        st_lane "$lane"
        use_transports "$lane"
        for name in $suites; do
            check "$1-$lane/$name" env -C "$build/test/unit" \
                ST_BUILDDIR="$build" srcdir="$ST_TOP/test/unit" "./$name"
        done
    done
}

# UCX's transports for a lane, as contrib/run-tests.sh has them.
use_transports()
{
    unset UCX_MM_ERROR_HANDLING
    export UCX_TLS=cxi_trig,self UCX_WARN_UNUSED_ENV_VARS=n
    [ "$1" != direct ] ||
        export UCX_TLS=posix,self UCX_MM_ERROR_HANDLING=y
}

# As check_sized, with a folder of its own for OpenMPI: of two mpirun that end one
# may take the other one's away.  Usage: check_mpi PLACES NAME COMMAND...
check_mpi()
{
    local -x OMPI_MCA_orte_tmpdir_base=$sessions/$((++num_sessions))
    mkdir -p "$OMPI_MCA_orte_tmpdir_base"
    check_sized "$@"
}

# Buffers in a GPU's memory, by MPI's calls.  Usage: run_device LABEL LANE
run_device()
{
    local name ranks
    for name in mpix_device mpix_device_coll; do
        for ranks in 1 2 3; do
            [ $quick = no ] || [ $ranks = 2 ] || continue
            check_mpi $ranks "$1-$2/$name.$ranks" \
                "$ST_TOP/contrib/ucx-st-run" -q mpirun --oversubscribe \
                -n $ranks "$build/test/integration/$name"
        done
    done
}

# Programs of MPI.  Usage: run_mpi LABEL
run_mpi()
{
    local lane name size tests=("${stream_tests[@]}")
    [ $quick = no ] || tests=(mpix_match.4 mpix_halo.4 bench.stream_faces.2)
    for lane in "${lanes[@]}"; do
        st_lane "$lane"
        use_transports "$lane"
        while read -r name size; do
            [ "$size" != all ] || size=$places
            # Scripts of these are not in the pack
            [[ ! $name =~ ^(bench.stream_(wrt|mixed)|perftest_st|mpix_death) ]] ||
                continue
            check_mpi "$size" "$1-$lane/$name" \
                "$ST_TOP/test/integration/run.sh" --build "$build" "$name"
        done < <("$ST_TOP/test/integration/run.sh" --busy "${tests[@]}")
        run_device "$1" "$lane"
    done
}

# P1 to P10 and killed processes, without MPI.  Usage: run_programs LABEL
run_programs()
{
    local lane name percent=100 names=(p1 p2 p3 p4 p5 p7 p9 p10)
    local dir=$build/test/integration
    [ $quick = no ] || { percent=10; names=(p1 p4); }
    for lane in "${lanes[@]}"; do
        st_lane "$lane"
        use_transports "$lane"
        for name in "${names[@]}"; do
            check_sized 2 "$1-$lane/st_progress.$name" \
                "$ST_TOP/contrib/ucx-st-run" -q "$dir/st_progress" \
                --percent $percent "$name"
        done
        [ $quick = no ] || continue
        [ "$lane" != direct ] || # Of two lanes, one after the other
            UCX_TLS=cxi_trig,posix,self UCX_ST_LANES='' \
            check_sized 2 "$1/st_progress.p8" env -u UCX_ST_LANES \
                "$ST_TOP/contrib/ucx-st-run" -q "$dir/st_progress" \
                --lanes direct,trig p8
        check_sized 2 "$1-$lane/st_random" "$ST_TOP/contrib/ucx-st-run" -q \
            "$dir/st_random" --seed 20000 --count 100
        check_sized 2 "$1-$lane/st_storm" "$ST_TOP/contrib/ucx-st-run" -q \
            "$dir/st_storm" --kills 10
    done
}

# A benchmark, alone; its report goes into the results.
# Usage: bench NAME COMMAND...
bench()
{
    local name=$1
    shift
    check_sized "$places" "$name" "$ST_TOP/contrib/ucx-st-run" -q "$@" \
        --json "$out/bench-${name//\//_}.json"
}

# ucx_st_perftest, whose server is another process.
# Usage: perftest LABEL RUNTIME
perftest()
{
    local lane memory name words=(-s 8:512k:64 -n 500 -w 50 --trials 3)
    [ $quick = no ] || words=(-s 8 -n 20 -w 2 --trials 1)
    for lane in "${lanes[@]}"; do
        st_lane "$lane"
        use_transports "$lane"
        for memory in host device; do
            name=$1-$lane/ucx_st_perftest.$memory
            # shellcheck disable=SC2016 # the inner bash expands it
            check_sized "$places" "$name" bash -c '
                exec 3< <("$0" -q "$1" -p 0 --stream "$2")
                read -r line <&3
                "$0" -q "$1" 127.0.0.1 -p "${line##* }" --stream "$2" "${@:3}"' \
                "$ST_TOP/contrib/ucx-st-run" \
                "$build/src/tools/ucx_st_perftest" "$2" -t st_lat,st_rlat \
                --check -m "$memory" "${words[@]}" \
                --json "$out/bench-${name//\//_}.json"
        done
    done
}

# Usage: run_benchmarks LABEL RUNTIME
run_benchmarks()
{
    local lane memory launch=(mpirun -n 2) pingpong=(--max 1m --factor 8)
    local faces=(--grid 2x1x1) wrt=() memories=(host device)
    if [ $quick = yes ]; then
        pingpong=(--max 8k --factor 32 --trials 1 --iters 5)
        faces+=(--trials 1 --middle 1 --inner 5)
        wrt=(--streams 2 --trials 1 --count 20)
    fi
    for lane in "${lanes[@]}"; do
        st_lane "$lane"
        use_transports "$lane"
        for memory in "${memories[@]}"; do
            bench "$1-$lane/st_pingpong.$memory" "${launch[@]}" \
                "$build/bench/st_pingpong" --stream "$2" --memory "$memory" \
                "${pingpong[@]}"
            [ $quick = yes ] ||
                bench "$1-$lane/st_pingpong.$memory.long" "${launch[@]}" \
                    "$build/bench/st_pingpong" --stream "$2" \
                    --memory "$memory" --min 8m --max 64m --factor 8 \
                    --iters 5 --trials 2
            bench "$1-$lane/st_faces.$memory" "${launch[@]}" \
                "$build/bench/st_faces" --stream "$2" --memory "$memory" \
                "${faces[@]}"
        done
    done
    perftest "$1" "$2"
    bench "$1/st_wrt" "$build/bench/st_wrt" --stream "$2" "${wrt[@]}"
}


# --- Results

json_text()
{
    printf '"%s"' "$(printf '%s' "$1" |
        sed -e 's/[\\"]/\\&/g' -e 's/\t/ /g' | tr -d '\000-\011\013-\037' |
        sed -e ':a' -e 'N' -e '$!ba' -e 's/\n/\\n/g')"
}

# Sets what is told of the machine.
get_facts()
{
    driver=
    if [ -z "$standin" ]; then
        driver=$(nvidia-smi --query-gpu=name,driver_version,memory.total \
                     --format=csv,noheader 2>/dev/null)
        [ ! -r /sys/module/amdgpu/version ] ||
            driver+=" amdgpu $(cat /sys/module/amdgpu/version)"
    fi
    kind=GPU
    [ -z "$standin" ] || kind="stand-in (no GPU: nothing here tells of one)"
    now=$(date -u +%Y-%m-%dT%H:%MZ)
    cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
}

write_json()
{
    local name rc seconds reason result comma='' file
    {
        printf '{"tool":"gpu-check","kind":%s,"stand_in":%s,"quick":%s,' \
            "$(json_text "$kind")" \
            "$([ -n "$standin" ] && echo true || echo false)" \
            "$([ $quick = yes ] && echo true || echo false)"
        printf '"date":"%s","driver":%s,"streams":%s,"kernel":%s,"libc":%s,' \
            "$now" "$(json_text "$driver")" "$(json_text "$gpu_text")" \
            "$(json_text "$(uname -r)")" "$(json_text "$libc")"
        printf '"cpu":%s,"cores":%s,"version":%s,"commit":%s,"mpi":%s,' \
            "$(json_text "$cpu")" "$(nproc)" "$(json_text "$version")" \
            "$(json_text "$commit")" "$(json_text "$mpi")"
        printf '"cuda_device_max_connections":%s,"gpu_max_hw_queues":%s,' \
            "$(json_text "$CUDA_DEVICE_MAX_CONNECTIONS")" \
            "$(json_text "$GPU_MAX_HW_QUEUES")"
        printf '"passed":%s,"failed":%s,"skipped":%s,\n"tests":[' \
            "$passed" "$failed" "$skipped"
        while IFS=$'\t' read -r name rc seconds reason; do
            case $rc in 0) result=passed ;; 77) result=skipped ;;
            *) result=failed ;; esac
            printf '%s\n{"name":%s,"result":"%s","status":%s,"seconds":%s,' \
                "$comma" "$(json_text "$name")" $result "$rc" "$seconds"
            printf '"reason":%s}' "$(json_text "$reason")"
            comma=,
        done <"$results"
        printf '\n],"benchmarks":{'
        comma=
        for file in "$out"/bench-*.json; do
            [ -s "$file" ] || continue
            name=${file##*/bench-}
            printf '%s\n%s:' "$comma" "$(json_text "${name%.json}")"
            cat "$file"
            comma=,
        done
        printf '}}\n'
    } >"$out/results.json"
}

write_page()
{
    local name rc seconds reason
    {
        echo "# Streams of GPUs: results"
        echo
        [ -z "$standin" ] || {
            echo "**On a stand-in for the runtime: this tells nothing of a GPU.**"
            echo
        }
        echo "| | |"
        echo "| --- | --- |"
        echo "| kind | $kind |"
        echo "| GPU, driver | ${driver//$'\n'/; } |"
        echo "| date | $now |"
        echo "| kernel, libc | $(uname -r), $libc |"
        echo "| processor | $cpu, $(nproc) cores |"
        echo "| hardware queues | CUDA_DEVICE_MAX_CONNECTIONS=$CUDA_DEVICE_MAX_CONNECTIONS, GPU_MAX_HW_QUEUES=$GPU_MAX_HW_QUEUES |"
        echo "| UCX-ST | $version $commit, packed $packed; $mpi |"
        echo "| result | $passed passed, $failed failed, $skipped skipped |"
        printf '\n    %s\n\n' "${gpu_text//$'\n'/$'\n    '}"
        echo "| test | result | seconds |"
        echo "| --- | --- | --- |"
        while IFS=$'\t' read -r name rc seconds reason; do
            case $rc in 0) rc=passed ;; 77) rc="skipped: $reason" ;;
            *) rc="FAILED (status $rc)" ;; esac
            echo "| $name | $rc | $seconds |"
        done <"$results"
        while IFS=$'\t' read -r name rc _; do
            [[ $name =~ /(st_(pingpong|faces|wrt)|ucx_st_perftest) ]] || continue
            printf '\n## %s%s\n\n' "$name" \
                "$([ "$rc" = 0 ] || echo ', FAILED')"
            tail -n 60 "$(log_of "$name")" | sed 's/^/    /'
        done <"$results"
    } >"$out/results.md"
}

run()
{
    local flavour label runtime folder
    local version commit packed glibc machine mpi
    local libc base_path gpu_text driver kind now cpu flavours lanes
    local sessions num_sessions=0
    trap stop INT TERM
    lanes=("${ST_LANES[@]}")
    [ $quick = no ] || lanes=(host direct)
    ST_LIMIT=$limit
    ST_CUNIT_TIMEOUT=$((limit / 3 + 1)) # A case that hangs names itself
    build=$ST_TOP/build
    use_pack
    find_streams
    mkdir -p "$out/logs" || exit 1
    sessions=$(mktemp -d)
    out=$(cd "$out" && pwd)
    rm -f "$out"/bench-*.json "$out"/logs/*.log
    logs=$out/logs
    results=$out/results.tsv
    : >"$results"
    get_facts
    st_say "$kind${driver:+: $driver}"
    echo "$gpu_text"
    st_loopback
    st_forking
    st_gpu_queues
    st_nic strict
    export ST_BUILDDIR=$build FI_SOCKETS_PE_WAITTIME=0
    for flavour in "${flavours[@]}"; do
        read -r label runtime folder <<<"$flavour"
        use_stream "$runtime" "${folder:-}"
        run_units "$label"
        run_mpi "$label"
        run_programs "$label"
        run_benchmarks "$label" "$runtime"
        reap_all
    done
    use_stream none
    rm -rf "$sessions"
    write_json
    write_page
    st_say "$out/results.json, $out/results.md: $kind"
    summary
}

# Runs the script of a pack.
start_run()
{
    local dir=$what temp
    local words=(--jobs "$places" --limit "$limit" --out "$out")
    if [ -f "$what" ]; then
        temp=$(mktemp -d)
        # shellcheck disable=SC2064 # the name of now is meant
        trap "rm -rf '$temp'" EXIT
        tar -C "$temp" -xzf "$what" || st_die "$what cannot be unpacked"
        dir=$temp/gpu-check
    fi
    [ -f "$dir/pack.facts" ] || st_die "$what is no pack of --pack"
    [ "$(cd "$dir" && pwd)" != "$ST_TOP" ] || { run; return; }
    [ $quick = no ] || words+=(--quick)
    [ -z "$ends" ] || words+=(--for $((ends - SECONDS)))
    [ -z "$standin" ] || words+=(--standin "$standin")
    "$dir/contrib/gpu-check.sh" --run "$dir" "${words[@]}" "${patterns[@]}"
}

case $action in
pack) pack ;;
run) start_run ;;
esac
