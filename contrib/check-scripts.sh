#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks the scripts that users run: their help, their refusals, and what
# ucx-st-run passes on.
# usage: contrib/check-scripts.sh [BUILD-FOLDER]
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "${1:-$top/build}" && pwd) || exit 1
run=$top/contrib/ucx-st-run
temp=$(mktemp -d)
# shellcheck disable=SC2064 # the name of now is meant
trap "rm -rf '$temp'" EXIT
status=0
count=0
export ST_BUILDDIR=$build
unset LD_PRELOAD

# Usage: expect WHAT STATUS REGEX COMMAND...
expect()
{
    local what=$1 want=$2 regex=$3 out rc=0
    shift 3
    count=$((count + 1))
    out=$("$@" 2>&1) || rc=$?
    if [ $rc -ne "$want" ] || ! [[ $out =~ $regex ]]; then
        echo "$what: status $rc (expected $want), output without \"$regex\":"
        echo "$out" | head -n 20
        status=1
    fi
}

for script in quickstart.sh run-tests.sh run-ucx-gtest.sh \
              get-ucx-source.sh check-fresh.sh check-debian13.sh \
              run-on-cxi.sh gpu-check.sh slingshot-check.sh check-builds.sh \
              packaging/make-debian.sh; do
    expect "$script --help" 0 '^usage: contrib/' "$top/contrib/$script" --help
    expect "$script --nonsense" 2 'usage' "$top/contrib/$script" --nonsense
done

mpicc=$top/contrib/ucx-st-mpicc
expect "ucx-st-mpicc --help" 0 '^usage: ucx-st-mpicc' "$mpicc" --help
expect "ucx-st-mpicc" 2 '^usage: ucx-st-mpicc' "$mpicc"
expect "ucx-st-mpicc --api" 2 '^ucx-st-mpicc: --api needs a value$' \
    "$mpicc" --api
for api in nonsense '' ../hpe; do
    expect "ucx-st-mpicc --api '$api'" 2 \
        "^ucx-st-mpicc: there is no API \"$api\" \(hpe, mpich, libmp\)$" \
        "$mpicc" --api "$api" app.c
done
expect "ucx-st-mpicc, no build" 2 'has no libmpix_queue.so: build it first' \
    env ST_BUILDDIR=/nonexistent "$mpicc" app.c

# The tests' runner, by the checks of the plan
tests=$top/test/run.py
expect "run.py --help" 0 'usage: run.py' "$tests" --help
expect "run.py, no such test" 2 'no test has such a name: unit/test_nonsense' \
    "$tests" unit/test_nonsense
mkdir "$temp/logs"
expect "run.py, while another one runs" 2 'another run has .*/logs: wait' \
    flock "$temp/logs/lock" "$tests" --logs "$temp/logs" check/style
expect "run.py, no such group" 2 'there is no group nonsense' \
    "$tests" --in nonsense true
# shellcheck disable=SC2016 # for the shell that is run
expect "run.py --in" 0 '^host tcp,self$' "$tests" --in unit-host \
    bash -c 'echo "$UCX_ST_LANES $UCX_TLS"'
# Each model is of one test of the plan
models=$top/test/model/run-models.sh
only="s/.*run-models.sh .*--only '\(.*\)'\$/\1/p"
expect "run-models.sh --list" 0 '^two_count' "$models" --list
expect "models of the plan, and of models.list" 0 '^$' diff \
    <(sed -n "$only" "$top/test/plan.ini" | while IFS= read -r pattern; do
          "$models" --list --only "$pattern"
      done | sort) <("$models" --list | sort)
for words in default full night gpu; do
    expect "run.py --tier $words" 0 '/' "$tests" --tier $words --list
done

expect "quickstart.sh --prefix" 2 'usage' "$top/contrib/quickstart.sh" \
    --no-deps --prefix

expect "check-builds.sh --list" 0 'lto' "$top/contrib/check-builds.sh" --list
expect "check-builds.sh, no such build" 1 'no build "x"' \
    "$top/contrib/check-builds.sh" x
expect "check-builds.sh, no such folder" 1 'no configured folder: /nonexistent' \
    "$top/contrib/check-builds.sh" --build /nonexistent lto

expect "own-nodes.sh" 2 'usage' "$top/contrib/own-nodes.sh" 2
expect "own-nodes.sh --help" 0 '^usage: contrib/' \
    "$top/contrib/own-nodes.sh" --help
expect "own-nodes.sh knows no such node" 1 'there is no node node1' \
    "$top/contrib/own-nodes.sh" --cut node1
expect "own-network.sh" 2 'usage' "$top/contrib/own-network.sh"
expect "own-network.sh --help" 0 '^usage: contrib/' \
    "$top/contrib/own-network.sh" --help
expect "own-network.sh runs a command" 7 '^(own-network.sh: no network.*)?$' \
    "$top/contrib/own-network.sh" sh -c 'exit 7'

expect "own-card.sh" 2 'usage' "$top/contrib/own-card.sh"
expect "own-card.sh --help" 0 '^usage: contrib/' \
    "$top/contrib/own-card.sh" --help
expect "own-card.sh without a card" 2 'usage' "$top/contrib/own-card.sh" \
    --libfabric "$temp" --card "$temp" true

for words in '--libfabric' '--libfabric / --jobs 0' \
             '--libfabric / --hosts a,b' '--libfabric / --launch srun' \
             '--libfabric / --hardware --hosts a,b --launch srun'; do
    # shellcheck disable=SC2086 # options and their values
    expect "run-on-cxi.sh $words" 2 'usage' "$top/contrib/run-on-cxi.sh" $words
done
expect "run-on-cxi.sh, no libfabric" 1 'there is no libfabric in /nonexistent' \
    "$top/contrib/run-on-cxi.sh" --libfabric /nonexistent
expect "run-on-cxi.sh, CXI_LIBFABRIC" 77 'in /nonexistent: .*CXI_LIBFABRIC names' \
    env CXI_LIBFABRIC=/nonexistent "$top/contrib/run-on-cxi.sh"
expect "run.py, a test of run-on-cxi.sh" 2 'cxi.few: contrib/run-on-cxi.sh runs it' \
    env -u ST_CXI_LAUNCH "$top/test/run.py" program-cxi-few/cxi.few
# Stand-ins for a libfabric of an old version, one without cxi, and one with it
fabric=$temp/fabric
mkdir -p "$fabric/lib64/pkgconfig"
for words in '1.20.1 is.too.old' '1.21.0 has.no.provider.cxi' \
             '2.6.0 no.provider'; do
    read -r number regex <<<"$words"
    printf 'Name: libfabric\nDescription: none\nVersion: %s\n' "$number" \
        > "$fabric/lib64/pkgconfig/libfabric.pc"
    : > "$fabric/lib64/libfabric.so.1"
    expect "run-on-cxi.sh, libfabric $number" 1 "${regex//./ }" \
        "$top/contrib/run-on-cxi.sh" --libfabric "$fabric"
done
expect "st_cxi_lacks" 0 '^$' bash -c \
    ". '$top/contrib/common.sh'; echo libcxi.so.1 > \"\$1/lib64/libfabric.so.1\"
     st_cxi_lacks \"\$1\"" bash "$fabric"

for number in 0 2x ''; do
    expect "run-tests.sh --jobs '$number'" 2 'usage' \
        "$top/contrib/run-tests.sh" --jobs "$number"
done

for words in '--jobs 0' '--nic nonsense' '--tl nonsense'; do
    # shellcheck disable=SC2086 # an option and its value
    expect "run-ucx-gtest.sh $words" 2 'usage' \
        "$top/contrib/run-ucx-gtest.sh" $words
done

for words in --pack --run '--try nonsense' '--pack a b'; do
    # shellcheck disable=SC2086 # options and their values
    expect "gpu-check.sh $words" 2 'usage' "$top/contrib/gpu-check.sh" $words
done
expect "gpu-check.sh --run, no pack" 1 'is no pack of --pack' \
    "$top/contrib/gpu-check.sh" --run "$temp"
expect "gpu-check.sh --pack, nothing built" 1 'was not built' \
    "$top/contrib/gpu-check.sh" --pack "$temp/x" --build "$temp"

# An apt that shows what it is told: nothing about its sandbox, and to download
# in a folder of that sandbox's user
if dpkg-query -W libucx-dev >/dev/null 2>&1; then
    mkdir -p "$temp/apt/bin" "$temp/apt/contrib"
    cp "$top"/contrib/{get-ucx-source,common}.sh "$temp/apt/contrib/"
    cat > "$temp/apt/bin/apt-cache" <<'STEOF'
#!/bin/sh
dpkg-query -W -f 'libucx-dev | ${Version} | http://a b/main amd64 Packages' \
    libucx-dev
STEOF
    cat > "$temp/apt/bin/apt-get" <<'STEOF'
#!/bin/sh
echo "by $(id -u), in $(stat -c %u .): $*"
exit 1
STEOF
    chmod +x "$temp/apt/bin/"*
    user=$(id -u)
    [ "$user" -ne 0 ] || user=$(id -u _apt 2>/dev/null || echo 0)
    expect "get-ucx-source.sh, apt's sandbox" 1 \
        "^by $(id -u), in $user: -q( -o (Dir|Acquire)::[^ ]+)+ update" \
        env PATH="$temp/apt/bin:$PATH" "$temp/apt/contrib/get-ucx-source.sh"
fi

plugin=libuct_cxitrig.so.0
# shellcheck disable=SC2016 # for the shell that is run
show='echo "preload=$LD_PRELOAD tls=$UCX_TLS pml=$OMPI_MCA_pml"'
expect "no command" 2 'usage' "$run"
expect "unknown command" 1 'no such command' "$run" /nonexistent
expect "a tool of its own" 0 '# Lane host: on' "$run" -q ucx_st_info -l
expect "status of the command" 7 '' "$run" sh -c 'exit 7'
expect "plain program" 0 "preload=.*$plugin tls=cxi_trig,sm,self pml=ucx" \
    env -u UCX_TLS "$run" bash -c "$show"
expect "the user's UCX_TLS" 0 'tls=tcp' env UCX_TLS=tcp "$run" bash -c "$show"
expect "the user's LD_PRELOAD" 0 "$plugin:/nonexistent/x.so" \
    env LD_PRELOAD=/nonexistent/x.so "$run" --print true
expect "which lanes there are" 0 \
    '^ucx-st-run: lanes: host; off: trig, direct \(ucx_st_info -l says why\)$' \
    env UCX_TLS=tcp,self "$run" true
expect "why there are none" 0 \
    "ucx-st-run: lanes: none .*ucx-st-run: UCX_ST_LANES: there is no lane 'dir'" \
    env UCX_ST_LANES=dir "$run" true
# shellcheck disable=SC2016 # for the shell that is run
show='echo "provider=${UCX_CXI_TRIG_PROVIDER:-}"'
if [ ! -e /sys/class/cxi ]; then
    expect "an emulated card" 0 \
        '^ucx-st-run: lanes: .*trig on an emulated card.provider=cxiemu$' \
        env -u UCX_CXI_TRIG_PROVIDER -u UCX_TLS "$run" bash -c "$show"
    expect "a job, with cards elsewhere" 0 'card.provider=$' \
        env -u UCX_CXI_TRIG_PROVIDER -u UCX_TLS SLURM_JOB_ID=1 "$run" \
        bash -c "$show"
    expect "hosts, with cards elsewhere" 0 'card.provider=$' \
        env -u UCX_CXI_TRIG_PROVIDER -u UCX_TLS "$run" \
        bash -c "$show" bash --host a
fi
expect "the user's provider" 0 'provider=sockets$' \
    env UCX_CXI_TRIG_PROVIDER=sockets "$run" bash -c "$show"
expect "-q does not say it" 0 '^$' "$run" -q true
expect "once for all ranks" 0 '^$' env PMIX_RANK=1 "$run" true
expect "no library" 1 'has no built' env ST_BUILDDIR="$temp" "$run" true

# A stand-in for mpirun shows what the real one would get
# shellcheck disable=SC2016
printf '#!/bin/bash\necho "own=[$LD_PRELOAD] args=[$*]"\n' > "$temp/mpirun"
chmod +x "$temp/mpirun"
expect "mpirun is not preloaded" 0 \
    "own=\\[\\] args=\\[-x LD_PRELOAD=[^ ]*$plugin " "$run" "$temp/mpirun" -n 2 a
expect "variables for the ranks" 0 '-x FI_LOG_LEVEL .*-x UCX_ST_X.* -n 2 a b' \
    env UCX_ST_X=1 FI_LOG_LEVEL=warn "$run" "$temp/mpirun" -n 2 a b
expect "variables of MPIX" 0 '-x MPIX_QUEUE_BINDING .* -n 2 a' \
    env MPIX_QUEUE_BINDING=mpi "$run" "$temp/mpirun" -n 2 a
expect "the ranks' LD_PRELOAD" 0 \
    "args=\\[-x LD_PRELOAD=/x.so:[^ ]*$plugin .*--map-by node -n 2 true\\]" \
    "$run" "$temp/mpirun" --map-by node -x LD_PRELOAD=/x.so -n 2 true
expect "the application's own -x" 0 \
    "-x LD_PRELOAD=[^ ]*$plugin .* -n 2 true -x LD_PRELOAD=/x.so\\]" \
    "$run" "$temp/mpirun" -n 2 true -x LD_PRELOAD=/x.so
expect "several programs" 0 \
    "$plugin .* -n 1 true -v : -x LD_PRELOAD=/x.so:[^ ]*$plugin .*-n 1 false" \
    "$run" "$temp/mpirun" -n 1 true -v : -x LD_PRELOAD=/x.so -n 1 false
own='( -x (UCX|FI|MPIX)_[^ ]+)*'
for words in '-x LD_PRELOAD' '--x LD_PRELOAD'; do
    # shellcheck disable=SC2086 # an option and its value
    expect "the environment's, by $words" 0 \
        "args=\\[-x LD_PRELOAD=[^ ]*$plugin:/x.so -x LD_LIBRARY_PATH$own -n" \
        env LD_PRELOAD=/x.so "$run" -q "$temp/mpirun" $words -n 2 true
done
expect "--x LD_PRELOAD=" 0 \
    "args=\\[-x LD_PRELOAD=/x.so:[^ ]*$plugin -x LD_LIBRARY_PATH$own -n 2 true\\]" \
    "$run" -q "$temp/mpirun" --x LD_PRELOAD=/x.so -n 2 true
expect "an application that is elsewhere" 0 \
    "=/x.so:[^ ]*$plugin .* --wdir /d -n 2 ./nosuch -x LD_PRELOAD=/y.so\\]" \
    "$run" -q "$temp/mpirun" --wdir /d -x LD_PRELOAD=/x.so -n 2 \
    ./nosuch -x LD_PRELOAD=/y.so
expect "a file before the application" 0 \
    "=/x.so:[^ ]*$plugin .* --other /nosuch -n 2 true\\]" \
    "$run" -q "$temp/mpirun" --other /nosuch -x LD_PRELOAD=/x.so -n 2 true
cp "$temp/mpirun" "$temp/prterun"
expect "prterun" 0 "own=\\[\\] args=\\[-x LD_PRELOAD=[^ ]*$plugin " \
    "$run" "$temp/prterun" -n 2 a

# MPICH's has options of its own, for all programs and for one
# shellcheck disable=SC2016
printf '#!/bin/bash\necho "HYDRA own=[$LD_PRELOAD] args=[$*]"\n' \
    > "$temp/mpiexec"
chmod +x "$temp/mpiexec"
expect "MPICH" 0 "own=\\[\\] args=\\[-genv LD_PRELOAD [^ ]*$plugin -n 2 true\\]" \
    "$run" -q "$temp/mpiexec" -n 2 true
for words in '-genv LD_PRELOAD ' '-genv LD_PRELOAD=' '-env LD_PRELOAD ' \
             '--env LD_PRELOAD='; do
    # shellcheck disable=SC2086 # an option and its value
    expect "MPICH's $words" 0 \
        "$plugin -env A=B $words/x.so:[^ ]*$plugin -n 2 true -env LD_PRELOAD /y\\]" \
        "$run" -q "$temp/mpiexec" -env A=B $words/x.so -n 2 true -env LD_PRELOAD /y
done
expect "several programs of MPICH" 0 \
    "$plugin -n 1 true : -env LD_PRELOAD /x.so:[^ ]*$plugin -n 1 false\\]" \
    "$run" -q "$temp/mpiexec" -n 1 true : -env LD_PRELOAD /x.so -n 1 false

# What Slurm starts has srun's environment and what --export sets
cp "$temp/mpirun" "$temp/srun"
expect "srun" 0 \
    "own=\\[\\] args=\\[--export=ALL,LD_PRELOAD=[^ ]*$plugin -n 2 true -x\\]" \
    "$run" "$temp/srun" -n 2 true -x
expect "srun --export" 0 \
    "args=\\[--export=ALL,A=1,LD_PRELOAD=[^ ]*$plugin -n 2 true --export=B\\]" \
    "$run" "$temp/srun" -n 2 --export=ALL,A=1 true --export=B
for words in 'ALL,LD_PRELOAD=/x.so,A=1' 'LD_PRELOAD=/x.so,ALL,A=1' \
             'ALL,LD_PRELOAD,LD_PRELOAD=/x.so,A=1'; do
    expect "srun --export=$words" 0 \
        "args=\\[--export=ALL,A=1,LD_PRELOAD=/x.so:[^ ,]*$plugin -n 2 true\\]" \
        "$run" -q "$temp/srun" "--export=$words" -n 2 true
done
expect "srun, lanes of this node" 0 '^ucx-st-run: lanes: .* \(on [^ ]+\)' \
    "$run" "$temp/srun" -n 2 true
expect "srun --export=NONE" 1 'srun --export=NONE keeps the settings' \
    "$run" "$temp/srun" --export=NONE -n 2 true

# Each rule between the folders of src/ucp/st finds what breaks it
tree=$temp/tree
mkdir -p "$tree/contrib"
cp "$top/contrib/check-includes.py" "$tree/contrib/"
cp -r --parents "$top/src/ucp/st" "$top/src/ucs_ext" "$tree/"
mv "$tree/$top/src" "$tree/"
expect "check-includes.py" 0 'files checked' "$tree/contrib/check-includes.py"
for words in 'api core/st_op.h' 'ctrl core/st_op.h' 'core trig/st_trig.h' \
             'core rma/st_rma.h' 'core tag/st_batch.h' 'ctrl host/st_host.h' \
             'ctrl rma/st_rma.h' 'ctrl tag/st_batch.h' \
             'trig direct/st_direct.h' 'trig rma/st_rma.h' \
             'direct trig/st_trig_rma.h' 'direct tag/st_batch.h' \
             'host direct/st_direct.h' 'host rma/st_rma.h' \
             'rma trig/st_trig_dev.h' 'rma direct/st_direct.h' \
             'rma host/st_host.h' 'rma tag/st_batch.h' 'tag rma/st_rma.h' \
             'tag host/st_host.h' 'channel core/st_worker.h' \
             'core ../trig/st_trig.h'; do
    read -r folder header <<<"$words"
    echo "#include \"$header\"" >>"$tree/src/ucp/st/$folder/planted.h"
    echo "src/ucp/st/$folder/planted.h: may not include $header"
done | sort >"$temp/planted"
"$tree/contrib/check-includes.py" | sort -u >"$temp/found"
expect "check-includes.py, each rule" 0 '^$' \
    comm -23 "$temp/planted" "$temp/found"

# Changes of what programs see, in copies of headers and lists. Usage:
# abi WHAT STATUS, with all that is to be said but the last line as the input
abi()
{
    expect "check-abi.py, $1" "$2" ' compared with release [0-9]' \
        sh -c "'$abi/contrib/check-abi.py' '$build' >'$temp/said' 2>&1; rc=\$?
               cat '$temp/said'; exit \$rc"
    diff - <(sed '$d' "$temp/said" | LC_ALL=C sort) || status=1
}

abi=$temp/abi
st=$abi/src/ucp/st/api
mpix=$abi/contrib/openmpi/mpix_queue
abi_copy()
{
    rm -rf "$abi"
    mkdir "$abi"
    (cd "$top" && cp -r --parents docs/abi.md contrib/abi \
        contrib/check-{abi,symbols}.py src/*/api src/*/*/api src/*/Makefile.am \
        src/*/*/Makefile.am contrib/openmpi "$abi")
}

expect "check-abi.py, no build" 1 'is not a configured build folder' \
    "$top/contrib/check-abi.py" "$temp"
if [ -f "$build/contrib/openmpi/fortran/libmpix_queue_f08.la" ]; then
    abi_copy
    abi "nothing changed" 0 </dev/null
    # What programs do not notice, and what they cannot rely on
    sed -i 's/^} ucp_st_mode_t/, UCP_ST_MODE_NEW &/
            s/^} ucp_st_queue_params_t/int is_new; &/' "$st/ucp_st.h"
    sed -i 's/^ *UCS_GSTREAM_TYPE_LAST/UCS_GSTREAM_TYPE_NEW, &/
            s/^    } u;/int is_new; &/' \
        "$abi/src/ucs_ext/api/ucs_gstream.h"
    sed -i 's/ uct_trig_cntr_add(/ uct_trig_cntr_plus(/' \
        "$abi/src/uct/cxi_trig/api/uct_trig.h"
    abi "additions" 0 <<'STEOF'
ucp_st.h: constant UCP_ST_MODE_NEW is new: 2
ucp_st.h: member ucp_st_queue_params.is_new is new: 16 + 4, int
ucp_st.h: struct ucp_st_queue_params was: 16 bytes; it is now: 24 bytes
ucs_gstream.h: constant UCS_GSTREAM_TYPE_LAST was: 3; it is now: 4
ucs_gstream.h: constant UCS_GSTREAM_TYPE_NEW is new: 3
ucs_gstream.h: member ucs_gstream_cmd.u.is_new is new: 8 + 4, int, in a union
uct_trig.h: function uct_trig_cntr_add is gone; it was: UCX_ST_0.1, ucs_status_t (uct_trig_cntr_h, uint64_t) (this header may change)
uct_trig.h: function uct_trig_cntr_plus is new: not exported, ucs_status_t (uct_trig_cntr_h, uint64_t)
STEOF
    # What they notice
    abi_copy
    sed -i 's/^ *UCP_ST_MODE_READY/UCP_ST_MODE_OTHER, &/' "$st/ucp_st.h"
    sed -i 's/^ *ucp_tag_t    sender_tag/uint64_t other; &/' "$st/ucp_st_batch.h"
    sed -i 's|size_t *\(length; /..< Of the mem\)|uint32_t \1|' "$st/ucp_st_rma.h"
    sed -i 's/^void ucp_st_note_end/int ucp_st_note_end/' "$st/ucp_st_worker.h"
    sed -i '/^int MPIX_Queue_attach/d; s/^} MPIX_Queue_stats/int is_new; &/' \
        "$mpix/mpix_queue.h"
    sed -i 's/^} MPIX_Halo_side/int is_new; &/' "$mpix/mpix_halo.h"
    sed -i '/^\[ucs_gstream.h\]/a function ucs_gstream_gone: UCX_ST_0.1, void (void)' \
        "$abi/contrib/abi/libucs_ext.list"
    abi "changes" 1 <<'STEOF'
mpix_halo.h: member MPIX_Halo_side.is_new is new in a structure that has no field_mask: number 7, int
mpix_queue.h: function MPIX_Queue_attach is gone; it was: UCX_ST_0.1, int (MPI_Comm)
mpix_queue.h: member MPIX_Queue_stats.is_new is new in a structure that has no field_mask: 192 + 4, int
mpix_queue.h: struct MPIX_Queue_stats was: 192 bytes; it is now: 200 bytes
ucp_st.h: constant UCP_ST_MODE_OTHER is new: 1
ucp_st.h: constant UCP_ST_MODE_READY was: 1; it is now: 2
ucp_st_batch.h: member ucp_st_req_info.other is new in a structure that has no field_mask: 16 + 8, uint64_t
ucp_st_batch.h: member ucp_st_req_info.sender_tag was: 16 + 8, ucp_tag_t; it is now: 24 + 8, ucp_tag_t
ucp_st_batch.h: struct ucp_st_req_info was: 24 bytes; it is now: 32 bytes
ucp_st_rma.h: member ucp_st_rkey_attr.length was: 8 + 8, size_t; it is now: 4 + 4, uint32_t
ucp_st_rma.h: struct ucp_st_rkey_attr was: 16 bytes; it is now: 8 bytes
ucp_st_worker.h: function ucp_st_note_end was: UCX_ST_0.1, void (ucp_st_note_h); it is now: UCX_ST_0.1, int (ucp_st_note_h)
ucs_gstream.h: function ucs_gstream_gone is gone; it was: UCX_ST_0.1, void (void)
STEOF
    # A function that an older release lacks, though its version has it
    abi_copy
    sed -i '/ ucp_st_note_end:/d; s/^# release .*/# release 0.0.1/' "$abi"/contrib/abi/*
    abi "an old version" 1 <<'STEOF'
ucp_st_worker.h: function ucp_st_note_end is new, with a version of symbols that was released without it: UCX_ST_0.1, void (ucp_st_note_h)
STEOF
fi

# What is written in Python
if command -v python3 >/dev/null; then
    for script in st-trace-advise st-trace-merge st-trace-plot; do
        expect "$script compiles" 0 '' python3 -c \
            'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' \
            "$top/contrib/$script"
        expect "$script --help" 0 '^usage: ' "$top/contrib/$script" --help
        expect "$script without arguments" 2 'usage' "$top/contrib/$script"
    done
    echo 'raise ImportError' > "$temp/matplotlib.py"
    expect "no matplotlib" 1 'needs matplotlib .package python3-matplotlib' \
        env PYTHONPATH="$temp" "$top/contrib/st-trace-plot" /nonexistent \
        -o "$temp/x.svg" --panel a=b
    bench=$top/bench/run-all
    expect "run-all --help" 0 '^usage: ' "$bench" --help
    for words in '--nonsense' '--bench pingpong,x' '--sizes 8' '--sizes 8:4' \
                 '--sizes 8:64:1' '--sizes 8:4x' '--runs 0' '--limit -1' \
                 '--check x'; do
        # shellcheck disable=SC2086 # an option and its value
        expect "run-all $words" 2 'usage' "$bench" $words
    done
    expect "run-all, hosts and a launcher" 2 'exclude each other' \
        "$bench" --hosts a,b --launch srun
    figure=$top/bench/paper-figure
    expect "paper-figure --help" 0 '^usage: ' "$figure" --help
    expect "paper-figure, nothing named" 2 'name a figure' "$figure"
    expect "paper-figure, no such figure" 2 'no figure 003-99' "$figure" 003-99
    expect "paper-figure, nothing built" 77 'st_faces was not built' \
        "$figure" --build "$temp" 000-9
    expect "slingshot-check.sh, no provider cxi" 1 'there is no libfabric in /none' \
        "$top/contrib/slingshot-check.sh" --run "$temp" --libfabric /none
    expect "slingshot-check.sh, no build" 1 'no build folder /none' \
        "$top/contrib/slingshot-check.sh" --pack "$temp/x" --build /none
    expect "run-all, nothing built" 1 'st_wrt is missing: build it' \
        "$bench" --build "$temp" --bench wrt
    expect "run-all, no such file" 1 'No such file' "$bench" --from "$temp/x"
    echo '{"format": "other"}' > "$temp/x.json"
    expect "run-all, another file" 1 'is not what run-all writes' \
        "$bench" --from "$temp/x.json"
fi

# What slingshot-check.sh runs on a system with cards, of which it is told, in a
# pack whose scripts only say how they were called
pack=$temp/pack
mkdir -p "$pack"/{contrib,bench} "$temp/cxi/lib/pkgconfig"
printf 'Name: x\nDescription: x\nVersion: 1.22.0\n' \
    >"$temp/cxi/lib/pkgconfig/libfabric.pc"
echo libcxi.so.1 >"$temp/cxi/lib/libfabric.so.1"
echo commit=abc >"$pack/pack.facts"
for name in contrib/run-on-cxi.sh contrib/ucx-st-run bench/run-all \
            bench/paper-figure; do
    printf '#!/bin/sh\necho "%s: $*"\n' $name >"$pack/$name"
    chmod +x "$pack/$name"
done
mkdir -p "$pack/build-cxi-1.22.0/src/tools"
echo 'mkdir -p build-cxi-1.22.0; exit 3' >>"$pack/contrib/run-on-cxi.sh"
echo 'echo "# Streams: HIP: on: x"' >>"$pack/contrib/ucx-st-run"
ln -s /bin/true "$pack/build-cxi-1.22.0/src/tools/ucx_st_info"
expect "slingshot-check.sh, a step fails" 1 'acceptance: FAILED, status 3 .*ok' \
    env SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 "$top/contrib/slingshot-check.sh" \
    --run "$pack" --libfabric "$temp/cxi" --per-node 4 --out "$temp/report"
for words in 'run-on-cxi.sh: --no-deps --hardware --libfabric .* --launch srun' \
             'ucx-st-run: -q srun --mpi=pmix -N 1 -n 1 .*ucx_st_info -dlsc' \
             'run-all: .*--nodes 2 --launch srun --mpi=pmix --per-node 4 --counts' \
             'run-all: .*--stream hip --bench' 'paper-figure: .*--stream hip' \
             'acceptance . FAILED, status 3'; do
    expect "slingshot-check.sh's report" 0 '' grep -q "$words" \
        "$temp/report/report.md"
done
expect "slingshot-check.sh, on one node" 1 'acceptance: FAILED' \
    env SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=1 "$top/contrib/slingshot-check.sh" \
    --run "$pack" --libfabric "$temp/cxi" --quick --out "$temp/report1"
expect "slingshot-check.sh, tests of one node" 0 '' grep -qF \
    -- "--quick --launch srun --mpi=pmix *-cxi*/*" "$temp/report1/report.md"

# The script as it is installed
mkdir -p "$temp/prefix/bin" "$temp/prefix/lib"
cp "$run" "$temp/prefix/bin/"
expect "installed, no library" 1 'was found neither' \
    env -u ST_BUILDDIR "$temp/prefix/bin/ucx-st-run" true
: > "$temp/prefix/lib/$plugin"
expect "installed" 0 "LD_PRELOAD=$temp/prefix/lib/$plugin" \
    env -u ST_BUILDDIR "$temp/prefix/bin/ucx-st-run" --print true

# LD_PRELOAD takes no blank, LD_LIBRARY_PATH no colon
ln -s "$build" "$temp/a blank"
# shellcheck disable=SC2016 # for the shell that is run
expect "a folder with a blank" 0 'cxitrig[^ ]*$' \
    env ST_BUILDDIR="$temp/a blank" "$run" -q \
    bash -c 'grep -m 1 -o "/[^ ]*cxitrig.*" /proc/$$/maps'
ln -s "$build" "$temp/a:colon"
expect "a folder with a colon" 1 'takes no folder with ":".*install to another' \
    env ST_BUILDDIR="$temp/a:colon" "$run" true

echo "$count checks"
exit $status
