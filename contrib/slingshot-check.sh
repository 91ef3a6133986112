#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes a pack of the sources, and from it judges a system with Slingshot cards: one
# command, one report.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=contrib/common.sh
. "$here/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/slingshot-check.sh --pack FILE [--build DIR]
       contrib/slingshot-check.sh --run DIR|FILE --libfabric PREFIX
                                  [--hosts HOST[,HOST...] | --launch COMMAND]
                                  [--per-node N] [--stream hip|cuda] [--quick]
                                  [--out DIR]
       contrib/slingshot-check.sh --try [--build DIR]

--pack, in a checkout that was built: writes a tar of the sources with configure and
UCX's private headers, so that nothing is downloaded where it is built.

--run, on a Slingshot system, in a job of Slurm or between hosts: builds such a pack
against the libfabric there (docs/slingshot.md says what else it needs) and runs

    selftest    what ucx_st_info says of cards, lanes, streams and settings
    acceptance  the acceptance test of docs/slingshot.md; on one node its part of one
    counts      what uses take of the card, against docs/performance.md
    benchmarks  bench/run-all, over the card
    figures     those of papers that can be made there, by bench/paper-figure

A step that fails does not keep the next one from running. All is told in
DIR/report.md; logs and pictures are beside it. A FILE is unpacked in DIR.

    --libfabric PREFIX  where it is installed, with its provider cxi
    --hosts, --launch, --per-node, --stream   as bench/run-all has them; in a job
                        --launch is 'srun --mpi=pmix'. Without --stream it is that of
                        the GPU which is there
    --quick             a tenth of the tests, and figures that are no results
    --out DIR           for the report; all nodes need it (slingshot-check-results)

--try makes a pack, runs a few of each step from it on the emulated card, with what
is built here, and removes it.

The status is 0 if no step failed.
STEOF
}

# Usage: write_pack FILE
write_pack()
{
    local name=slingshot-check-$$ root=$build/slingshot-check-$$ headers
    make -s -C "$build" distdir "distdir=$name" "top_distdir=$name" \
        >"$temp/pack.log" 2>&1 || { cat "$temp/pack.log" >&2; return 1; }
    for headers in "$ST_TOP"/.deps/ucx-*; do
        [ ! -d "$headers/src" ] || { mkdir -p "$root/.deps" &&
            cp -RL "$headers" "$root/.deps/"; }
    done
    {
        echo "commit=$(git -C "$ST_TOP" rev-parse --short HEAD 2>/dev/null)"
        echo "packed=$(date -u +%Y-%m-%d)"
    } >"$root/pack.facts"
    tar -C "$build" --transform "s,^$name,slingshot-check," -cf - "$name" |
        gzip -1 >"$1" || st_die "$1 was not written"
    chmod -R u+w "$root" && rm -rf "$root"
    st_say "$1: $(du -h "$1" | cut -f 1)"
}

# Runs a step; its log is its part of the report.  Usage: step NAME COMMAND...
step()
{
    local name=$1 rc=0 start=$SECONDS result=ok
    shift
    "$@" >"$out/$name.log" 2>&1 </dev/null || rc=$?
    case $rc in
    0) ;;
    77) result=skipped ;;
    *) result="FAILED, status $rc"; failed=$((failed + 1)) ;;
    esac
    st_say "$name: $result ($((SECONDS - start)) s)"
    printf '| %s | %s | %s |\n' "$name" "$result" $((SECONDS - start)) \
        >>"$out/steps"
    steps+=("$name")
}

fabric_version()
{
    st_fabric "$(st_fabric_libdir "$libfabric")" --modversion
}

# What ucx_st_info says, from a step of the job where there is one
selftest()
{
    local rank=()
    [ -z "$launch" ] || read -ra rank <<<"$launch -N 1 -n 1"
    [[ ${rank[0]:-srun} = srun ]] || rank=()
    ST_BUILDDIR=$build contrib/ucx-st-run -q "${rank[@]}" "$build/src/tools/ucx_st_info" -dlsc
}

# The tests between nodes need two.
acceptance()
{
    local words=(--no-deps --hardware --libfabric "$libfabric")
    if [ $standin = yes ]; then
        test/run.py --no-build --build "$build" --logs "$out/logs" \
            program/mpi_plain.p2p.4 program/st_pingpong
        return
    fi
    [ $quick = no ] || words+=(--quick)
    [ -z "$hosts" ] || words+=(--hosts "$hosts")
    [ -z "$launch" ] || words+=(--launch "$launch")
    [ "$nodes" -ge 2 ] || words+=('*-cxi*/*')
    contrib/run-on-cxi.sh "${words[@]}"
}

# Sets nodes, stream and where: the options of run-all and paper-figure.
find_machine()
{
    if [ -n "$hosts" ]; then
        nodes=$(tr ',' '\n' <<<"$hosts" | wc -l)
    elif [ -n "${SLURM_JOB_ID:-}" ]; then
        launch=${launch:-srun --mpi=pmix}
        nodes=${SLURM_JOB_NUM_NODES:-1}
    fi
    where=(--build "$build" --nodes "$nodes")
    [ -z "$hosts" ] || where+=(--hosts "$hosts")
    [ -z "$launch" ] || where+=(--launch "$launch")
    [ -z "$per_node" ] || where+=(--per-node "$per_node")
    [ $quick = no ] || where+=(--quick)
}

# The report: the machine, the steps, and the end of each log.
write_report()
{
    local name
    echo "# UCX-ST on a Slingshot system"
    echo
    [ $standin = no ] ||
        printf '**On an emulated card: this tells nothing of a system.**\n\n'
    cat pack.facts
    cat <<STEOF

    date       $(date -u +%Y-%m-%dT%H:%MZ)
    kernel     $(uname -srm)
    processor  $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc)
    cards      $(cd /sys/class/cxi 2>/dev/null && echo cxi*)
    nodes      $nodes, ranks by ${launch:-mpirun${hosts:+ on $hosts}}
    stream     ${stream:-host}
    libfabric  $(fabric_version) in $libfabric
    UCX, MPI   $(ucx_info -v 2>/dev/null | head -n 1); $(mpirun --version | head -n 1)
    Slurm      $(srun --version 2>/dev/null)

| step | result | seconds |
| --- | --- | --- |
STEOF
    cat "$out/steps"
    for name in "${steps[@]}"; do
        printf '\n## %s\n\n' "$name"
        tail -n 400 "$out/$name.log" | sed 's/^/    /'
    done
    printf '\n## Environment\n\n'
    env | grep -E '^(SLINGSHOT|SLURM_JOB|FI|UCX|OMPI|PMIX)_' | sort | sed 's/^/    /'
}

# Runs all steps, in the folder of the pack.
run()
{
    local dir=$1 lacks benches=pingpong,faces,mbw,life,cg figures='0*'
    libfabric=$(realpath -m "${libfabric:-/usr}")
    lacks=$(st_cxi_lacks "$libfabric")
    [ $standin = yes ] || [ -z "$lacks" ] || st_die "$lacks"
    [ ! -d "$out" ] || [ -z "$(ls -A "$out")" ] || st_die "$out is not empty"
    mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
    if [ -f "$dir" ]; then
        tar -C "$out" -xzf "$dir" || st_die "$dir cannot be unpacked"
        dir=$out/slingshot-check
    fi
    [ -f "$dir/pack.facts" ] || st_die "$1 is no pack of --pack"
    cd "$dir" || exit 1
    ST_TOP=$PWD
    : >"$out/steps"
    if [ $standin = no ]; then
        build=$ST_TOP/build-cxi-$(fabric_version)
        find_machine
        # Builds first: the others run what it built
        step acceptance acceptance
        [ -x "$build/src/tools/ucx_st_info" ] || {
            write_report >"$out/report.md"
            st_die "it cannot be built here: see $out/report.md"
        }
        step selftest selftest
    else
        benches=life figures=003-5
        find_machine
        step selftest selftest
        step acceptance acceptance
    fi
    stream=${stream:-$(sed -n 's/^# Streams: \(HIP\|CUDA\): on.*/\L\1/p' \
        "$out/selftest.log" | head -n 1)}
    step counts bench/run-all "${where[@]}" --counts --check docs/performance.md
    [ -z "$stream" ] || where+=(--stream "$stream")
    step benchmarks bench/run-all "${where[@]}" --bench "$benches" -o "$out/all"
    step figures bench/paper-figure "${where[@]}" -o "$out/paper" "$figures"
    write_report >"$out/report.md"
    rm -f "$out/steps"
    st_say "$out/report.md"
    [ $failed -eq 0 ]
}

action=${1:-}
file=
case $action in
-h|--help) usage; exit 0 ;;
--pack|--run) file=${2:-}; [ -n "$file" ] || { usage >&2; exit 2; }; shift 2 ;;
--try) shift ;;
*) usage >&2; exit 2 ;;
esac
build=$ST_BUILD
out=slingshot-check-results
libfabric='' hosts='' launch='' per_node='' stream=''
quick=no standin=no failed=0 nodes=1 steps=()
while [ $# -gt 0 ]; do
    case $action,$1 in
    --run,--quick) quick=yes; shift; continue ;;
    --pack,--build|--try,--build) build=${2:-} ;;
    --run,--libfabric) libfabric=${2:-} ;;
    --run,--hosts) hosts=${2:-} ;;
    --run,--launch) launch=${2:-} ;;
    --run,--per-node) per_node=${2:-} ;;
    --run,--stream) stream=${2:-} ;;
    --run,--out) out=${2:-} ;;
    *) usage >&2; exit 2 ;;
    esac
    [ -n "${2:-}" ] || { usage >&2; exit 2; }
    shift 2
done
[ -z "$hosts" ] || [ -z "$launch" ] || { usage >&2; exit 2; }
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
if [ "$action" != --run ]; then
    [ -f "$build/Makefile" ] || st_die "there is no build folder $build"
    build=$(cd "$build" && pwd)
fi
case $action in
--pack) write_pack "$file" ;;
--run) run "$file" ;;
--try)
    quick=yes standin=yes out=$temp/results
    write_pack "$temp/pack.tgz" && run "$temp/pack.tgz"
    rc=$?
    cat "$out/report.md"
    exit $rc
    ;;
esac
