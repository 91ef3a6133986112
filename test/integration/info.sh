#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What ucx_st_info tells in several environments.
# usage: info.sh here | lanes | tiers | provider | settings | options | advise |
#                process | most
#   here      the device of this environment, both lanes, host streams
#   lanes     lanes that settings take away, and settings that are wrong
#   tiers     how lane direct moves what is in devices, on the stand-ins, and why
#   provider  no provider
#   settings  all of them, with values, meaning and defaults
#   advise    what it says of traces, and of files that are none
#   process   what cannot be asked; mpix_waits.sh has what can
#   most      ranks of MPI match what it tells that a process can have, and no more
# Needs builddir, ST_RUN and ST_DEVICE in the environment, as test/run.py sets them.
set -uo pipefail

info=${builddir:?}/src/tools/ucx_st_info

fail()
{
    echo "info.sh: $*" >&2
    echo "$out" >&2
    exit 1
}

# Runs it with settings; fails unless it ends with the status.
# Usage: ask STATUS OPTIONS [VARIABLE=VALUE...]
ask()
{
    local want=$1 options=$2 rc=0
    shift 2
    out=$(env "$@" "$ST_RUN" -q "$info" "$options" 2>&1) || rc=$?
    [ $rc -eq "$want" ] || fail "$options with $* ends with $rc, not $want"
}

# Each argument is a line of the output, as a regular expression.
has()
{
    local line
    for line; do
        grep -qxE -e "$line" <<<"$out" || fail "no line \"$line\""
    done
}

test_here()
{
    local provider=cxiemu
    [ "${UCX_CXI_TRIG_PROVIDER:-}" != cxi ] || provider=cxi
    [ "${ST_NIC:?}" != sockets ] || provider=sockets
    ask 0 -dls
    has '# Transport: cxi_trig' "#   Device: $ST_DEVICE" \
        "# +provider: $provider( \(emulated\))?" \
        '# +deferred entries: 504, 504 of them free' \
        '# +counters: [0-9]+, each up to [0-9]+' \
        '#   A process has room on lane trig for either of:' \
        '# +single requests: [0-9]+ matched, 252 of them in use at a time' \
        '# +halos, 26 neighbours: [0-9]+ matched, 9 of them in use at a time' \
        '# +those with MPI_Rsend: [0-9]+ matched, 18 of them in use at a time' \
        '# +deferred write: <= [0-9]+ bytes.*' \
        '# +service: (1, VNI: 10|not told, VNI: not told)' \
        '# +service entries: (504|not told)' \
        '# +key cache: (on|off|not told), optimized keys: (on|off|not told).*' \
        '# +memory monitor: (none|disabled)' "# +UCX's memory cache: can work" \
        '# Lane trig: on' '# Lane host: on' '# Streams: host: on' \
        '# Streams: HIP: off: (no library )?libamdhip64.so[: ].*' \
        '# Streams: CUDA: off: (no library )?libcuda.so.1[: ].*'
    ask 0 -d UCX_CXI_TRIG_DEFERRED_ENTRIES=20
    has '# +deferred entries: 20, 20 of them free' \
        '# +single requests: [0-9]+ matched, 10 of them in use at a time' \
        '# +halos, 26 neighbours: [0-9]+ matched, 0 of them in use at a time'
    # Labels end in one column
    [ "$(sed -n 's/^\(#  *[a-zU][^:]*\):.*/\1/p' <<<"$out" |
         awk '{ print length }' | sort -u)" = 23 ] || fail "not in one column"
    # What libfabric's own memhooks do to UCX
    ask 0 -d UCX_MEM_MMAP_HOOK_MODE=none
    has "# +UCX's memory cache: off: UCX does not notice .*" \
        '# +Each message without a copy registers its memory anew:'
}

test_lanes()
{
    local text
    text="lane 'trig' needs the transport cxi_trig, which UCX_TLS=tcp,self \
leaves out"
    ask 0 -l UCX_TLS=tcp,self
    has "# Lane trig: off: $text" '# Lane host: on'
    ask 1 -l UCX_TLS=tcp,self UCX_ST_LANES=trig
    has "# Lane trig: off: $text" ".* ERROR $text" \
        '# Lane host: off: UCX_ST_LANES does not name it'
    ask 0 -l UCX_ST_LANES=host
    has '# Lane trig: off: UCX_ST_LANES does not name it' '# Lane host: on'

    text="UCX_ST_LANES: there is no lane 'fast' \(lanes: .*\)"
    ask 1 -l UCX_ST_LANES=fast,host
    has "# Lane trig: off: $text" "# Lane host: off: $text" ".* ERROR $text"
    ask 1 -l UCX_ST_LANES=
    has '# Lane host: off: UCX_ST_LANES is empty: no lane is left'
    ask 1 -l UCX_ST_LANES=host,host
    has "# Lane host: off: UCX_ST_LANES: lane 'host' is there twice"
    ask 1 -l UCX_ST_TRIG_DEVICES=0
    has '# Lane trig: off: UCX_ST_TRIG_DEVICES must be 1 to 4'
    # Too few entries for each process of the node
    text="lane 'trig': this process may use 6 of the 24 deferred-work entries \
that device $ST_DEVICE has for the job, and needs 16 .*"
    ask 0 -l FI_CXIEMU_DWQ_ENTRIES=24 UCX_CXI_TRIG_NODE_PROCESSES=4
    has "# Lane trig: off: $text" '# Lane host: on'
    ask 1 -l FI_CXIEMU_DWQ_ENTRIES=24 UCX_CXI_TRIG_NODE_PROCESSES=4 \
        UCX_ST_LANES=trig
    has "# Lane trig: off: $text" ".* ERROR $text"
    ask 0 -l UCX_NET_DEVICES=nonsense
    has "# Lane trig: off: lane 'trig': transport cxi_trig has no device that \
UCX_NET_DEVICES allows: nonsense .*" '# Lane host: on'
}

test_provider()
{
    local text
    text="libfabric provider 'nonsense' \(UCX_CXI_TRIG_PROVIDER\) is not \
there or has no deferred work .*"
    ask 1 -dl UCX_CXI_TRIG_PROVIDER=nonsense
    has "#   no device: $text" "# Lane trig: off: lane 'trig': $text" \
        '# Lane host: on' ".* ERROR $text"
}

test_settings()
{
    local name ucx settings
    ask 0 -v
    ucx=$(grep -oE 'built for UCX [0-9]+\.[0-9]+' <<<"$out")
    ask 0 -c UCX_ST_EAGER_MAX=4k UCX_CXI_TRIG_TX_QUEUE_LEN=17 \
        UCX_GSTREAM_SPIN=3
    has UCX_ST_EAGER_MAX=4K UCX_CXI_TRIG_TX_QUEUE_LEN=17 UCX_GSTREAM_SPIN=3 \
        UCX_ST_TRACE_SIZE=8M UCX_ST_STATS=n
    ! grep -q '^# default' <<<"$out" || fail "-c tells defaults"
    ask 0 -cf UCX_ST_EAGER_MAX=4k
    has UCX_ST_EAGER_MAX=4K '# default: 8k' '# syntax: memory units.*' \
        '# Longest message of a standard send that lane trig sends ahead.*'
    # Whatever docs/settings.md has of these libraries is there; later versions of
    # UCX than 1.13 cache registrations themselves
    while read -r name; do
        [[ $name != UCX_CXI_TRIG_RCACHE* || $ucx = *' 1.13' ]] || continue
        has "$name=.*"
    done < <(grep -oE '^\| `UCX_(ST|CXI_TRIG|GSTREAM)_[^|]*' \
                 "${srcdir:?}/docs/settings.md" | grep -oE 'UCX_[A-Z_]+')
    # A context of UCX calls none of them unused, though no stream is made yet
    mapfile -t settings < <(sed -n '/^UCX_/p' <<<"$out")
    ask 0 -l UCX_WARN_UNUSED_ENV_VARS=y "${settings[@]}"
    ! grep -E 'unused env.*UCX_(ST|CXI_TRIG|GSTREAM)_' <<<"$out" ||
        fail "a setting is unused"
}

test_options()
{
    ask 0 -v
    has '# UCX-ST [0-9.]+, built for UCX [0-9.]+' '# UCX [0-9.]+'
    ask 0 -h
    has 'Usage: ucx_st_info \[options\]'
    ask 2 -x
    has 'ucx_st_info: -h tells what there is'
    ask 2 --version
    has 'ucx_st_info: -h tells what there is'
    ask 2 --
    has '.*nothing is asked for.*'
    ask 2 what
    has '.*what is "what".*'
}

# A trace of spans. Usage: trace FILE "CATEGORY NAME BEGIN LENGTH"...
trace()
{
    local file=$1 span category name begin length events=""
    shift
    for span; do
        read -r category name begin length <<<"$span"
        events+=",{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"cat\":\"$category\",\
\"name\":\"$name\",\"ts\":$begin,\"dur\":$length,\"args\":{}}"
    done
    printf '{"otherData":{"format":"ucx-st-trace-1"},"traceEvents":[%s]}' \
        "${events#,}" >"$file"
}

test_advise()
{
    local temp i host=() alone=() stream=()
    PATH=${srcdir:?}/contrib:$PATH
    temp=$(mktemp -d)
    # shellcheck disable=SC2064 # the name of now is meant
    trap "rm -rf '$temp'" EXIT
    # Ten steps of 20 us: a kernel of 12, the host knows 2 later, MPI for 5
    for i in {0..9}; do
        alone+=("kernel step $((20 * i)) 12"
                "host ucs_gstream_synchronize $((20 * i + 5)) 9")
        host+=("${alone[@]: -2}" "host MPI_Sendrecv $((20 * i + 14)) 5")
        stream+=("kernel step $((20 * i)) 12" "start send $((20 * i + 12)) 1"
                 "wait receive $((20 * i + 13)) 6")
    done
    trace "$temp/host" "${host[@]}"
    ask 0 "--advise=$temp/host"
    has '9 steps of 20.0 us: kernels 12.0, streams idle 8.0' \
        'of the idle time: .* 2.0, calls of MPI 5.0, from .* 1.0' \
        'C1 holds: .*' 'C2 holds: .*' 'C3 holds .*' \
        'streams would save about 3.0 to 8.0 us of a step \(15% to 40%\), .*: yes'
    trace "$temp/alone" "${alone[@]}"
    ask 0 "--advise=$temp/alone"
    has 'no call of MPI is recorded .*' 'C2 is not known: .*' \
        'streams would save about 2.0 to 8.0 us of a step .*: perhaps'
    trace "$temp/stream" "${stream[@]}"
    ask 0 "--advise=$temp/stream"
    has 'messages are on streams already: .* nothing 0%' 'C1 holds: .*'

    # No traces, and traces that say nothing
    : >"$temp/empty"
    echo '{"otherData":{"format":"other"}}' >"$temp/other"
    trace "$temp/none"
    ask 1 "--advise=$temp/empty"
    has 'st-trace-advise: .*/empty: is no JSON: .*'
    ask 1 "--advise=$temp/other"
    has "st-trace-advise: .*/other: has the format 'other', not 'ucx-st-trace-1'"
    ask 1 "--advise=$temp/none"
    has 'st-trace-advise: .*/none: has less than two steps: .*'
    ask 1 "--advise=$temp/missing"
    has "st-trace-advise: .*/missing: .*No such file.*"
    echo '[]' >"$temp/other"
    ask 1 "--advise=$temp/other"
    has 'st-trace-advise: .*/other: is no trace of UCX-ST .*'
    ask 2 --advise
    has 'ucx_st_info: -h tells what there is'
    PATH=/usr/bin:/bin ask 1 --advise=x
    has 'ucx_st_info: st-trace-advise is neither beside .*'
}

test_process()
{
    ask 2 -pnone
    has 'ucx_st_info: "none" is no PID'
    ask 2 -p0
    has 'ucx_st_info: "0" is no PID'
    true &
    wait $!
    ask 1 "-p$!"
    has "ucx_st_info: there is no process $!"
    ask 1 "-p$$"
    has "ucx_st_info: process $$ does not listen: it has no worker of UCX-ST, \
or is in another network namespace"
}

# What it tells each of two ranks that a process can have. Usage: told LINE
told()
{
    sed -n "s/^# *$1: \([0-9]*\) matched,.*/\1/p" <<<"$out" | sort -u
}

# With so many counters on the card. Usage: most COUNTERS [VARIABLE=VALUE]
most()
{
    local ranks name number text rc
    ranks=("$ST_RUN" -q mpirun -n 2)
    export FI_CXIEMU_CNTRS=$1 UCX_ST_LANES=trig
    [ $# -lt 2 ] || export "${2?}"
    out=$("${ranks[@]}" "$info" -d 2>&1) || fail "status $?"
    for name in operations:'single requests' coupled:'halos, 26 neighbours' \
                ready:'those with MPI_Rsend'; do
        number=$(told "${name#*:}")
        [[ $number =~ ^[1-9][0-9]*$ ]] || fail "no number of ${name#*:}"
        rc=0
        text=$("${ranks[@]}" "$builddir/test/integration/mpix_most" \
            "${name%%:*}" "$number" 2>&1) || rc=$?
        [ $rc -eq 0 ] || fail "$number of ${name#*:}: $text"
    done
}

test_tiers()
{
    local hip="#   between buffers that HIP's devices reach: by"
    local cuda="#   between buffers that CUDA's devices reach: by" none
    none='threads, as no kernels of the library: the kernel cannot be loaded:'
    set -- UCX_TLS=posix,self UCX_MM_ERROR_HANDLING=y UCX_ST_LANES=direct \
        "LD_LIBRARY_PATH=$builddir/test/standin"
    ask 0 -l "$@"
    has '# Lane direct: on' "$hip kernels" "$cuda kernels"
    ask 0 -l "$@" UCX_ST_DIRECT_GPU_TIER=service
    has "$hip threads, as UCX_ST_DIRECT_GPU_TIER=service" \
        "$cuda threads, as UCX_ST_DIRECT_GPU_TIER=service"
    ask 0 -l "$@" STANDIN_MODULES=0
    has "$hip $none hipErrorOutOfMemory" \
        "$cuda $none CUDA_ERROR_OUT_OF_MEMORY"
    ask 0 -l "$@" STANDIN_ARCH=sm_60
    has "$cuda $none CUDA_ERROR_INVALID_PTX"
}

# Numbers that one counter more or less for the process itself would change
test_most()
{
    most 103 FI_CXIEMU_SERVICE=own
    unset FI_CXIEMU_SERVICE
    most 206
}

case ${1:-} in
here|lanes|tiers|provider|settings|options|advise|process|most) "test_$1" ;;
*) out=; fail "there is no test \"${1:-}\"" ;;
esac
