#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compiles each public header alone, as C11, as C++17 and, in extern "C", as C++11,
# all of them together, which finds names with two meanings, and contrib/charm.
# usage: contrib/check-headers.sh [BUILD-FOLDER]
set -euo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
top=$ST_TOP
build=$(cd "${1:-$top/build}" && pwd)
[ -f "$build/config.status" ] || {
    echo "check-headers.sh: $build is not a configured build folder" >&2
    exit 1
}

read -ra flags <<<"$(st_value "$build" UCX_CPPFLAGS) $(st_value "$build" FABRIC_CPPFLAGS) \
                $(st_value "$build" MPI_CFLAGS)"
cc=$(st_value "$build" CC)
cxx=$(st_value "$build" CXX)
warnings=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only)
# OpenMPI's own header is not ours to be pedantic about
for ((i = 0; i < ${#flags[@]}; ++i)); do
    flags[i]=${flags[i]/#-I/-isystem}
done
for dir in src/ucs_ext/api src/uct/cxi_trig/api src/ucp/st/api \
           src/prov/cxiemu/api \
           contrib/openmpi/mpix_queue contrib/openmpi/mpix_queue/compat; do
    flags+=("-I$top/$dir")
done

# Later versions of UCX than 1.13 use extensions of GNU in their own headers
c=c11
echo '#include <ucs/config/parser.h>' |
    $cc -x c -std=c11 -fsyntax-only "${flags[@]}" - 2>/dev/null || c=gnu11

status=0
count=0
all=
with_mpi=$(st_value "$build" MPI_LIBS)
for header in "$top"/src/*/api/*.h "$top"/src/*/*/api/*.h \
              "$top"/src/prov/cxiemu/api/rdma/*.h \
              "$top"/contrib/openmpi/mpix_queue/mpix_{queue,queue_*,halo,host_*,mpi,win}.h \
              "$top"/contrib/openmpi/mpix_queue/compat/*.h; do
    [ -f "$header" ] || continue
    case $header in
    */compat/mpix_libmp.h) continue ;; # Not public
    */mpix_queue/*.h) [ -n "$with_mpi" ] || continue ;;
    esac
    case $header in
    */api/*) name=${header##*/api/} ;;
    *) name=${header##*/} ;;
    esac
    all+="#include <$name>"$'\n'
    # Twice, as the include guard has to work, and with a use of nothing; in C++ as
    # programs may include headers of C
    for language in "$cc -x c -std=$c" "$cxx -x c++ -std=c++11" \
                    "$cxx -x c++ -std=c++17"; do
        begin='' end=''
        [[ $language != *c++11 ]] || begin='extern "C" {' end='}'
        if ! printf '%s\n#include <%s>\n%s\n#include <%s>\nint st_unused;\n' \
                 "$begin" "$name" "$end" "$name" |
             $language "${warnings[@]}" "${flags[@]}" -; then
            echo "$name: does not compile alone with $language"
            status=1
        fi
        count=$((count + 1))
    done
done

for language in "$cc -x c -std=$c" "$cxx -x c++ -std=c++17" "$cxx -x c++ -std=c++20"
do
    if ! $language "${warnings[@]}" "${flags[@]}" - <<<"$all"; then
        echo "all headers: do not compile together with $language"
        status=1
    fi
    count=$((count + 1))
done

# Calls that the number of arguments tells apart: macros in C, overloads in C++;
# and programs for other interfaces
if [ -n "$with_mpi" ]; then
    for program in "$top"/examples/st_{hpe,mpich}.c "$top"/test/integration/compat_*.c
    do
        api=${program##*/*_} # What ucx-st-mpicc --api puts in front
        api=$top/contrib/openmpi/mpix_queue/compat/${api%.c}
        more=()
        [ ! -d "$api" ] || more=(-I "$api")
        for language in "$cc -x c -std=c11" "$cxx -x c++ -std=c++11"; do
            if ! $language "${warnings[@]}" -Wno-unused-parameter \
                 "${more[@]}" "${flags[@]}" "$program"; then
                echo "${program##*/}: does not compile with $language"
                status=1
            fi
            count=$((count + 1))
        done
    done
fi

# The part of machine.C of Charm++, behind the names that it uses of it
charm='
#include <ucp/api/ucp.h>
typedef struct PCQueueTag *PCQueue;
PCQueue PCQueueCreate();
void PCQueueDestroy(PCQueue);
void PCQueuePush(PCQueue, char*);
char *PCQueuePop(PCQueue);
void CmiAbort(const char*, ...);
void CmiChannelHandler(void*);
int CmiNodeOf(int);
int CmiMyPe();
typedef struct {
    const void *dest_ptr;
    size_t size;
    uint64_t tag;
} DeviceRdmaOp;
#ifdef UCX_MSG_TAG_CHANNEL
enum class CommType : char {};
void UcxDeviceRecvHandler(DeviceRdmaOp*, CommType);
#else
enum class DeviceRecvType : char {};
void UcxInvokeRecvHandler(DeviceRdmaOp*, DeviceRecvType);
#endif
#define UCX_CHECK_STATUS(status, name) if (status != UCS_OK) { CmiAbort(name); }
#include "machine-ucp-st.C"
int UcxStCalls(ucp_worker_h worker, ucp_ep_h *eps)
{
    UcxStInit(worker, eps);
    UcxStExit();
    return UcxStAdvance();
}'
for channels in "" -DUCX_MSG_TAG_CHANNEL; do
    for build in "" -DCMK_SMP -DCMK_CUDA "-DCMK_SMP -DCMK_CUDA"; do
        read -ra set <<<"$build $channels"
        if ! $cxx -x c++ -std=gnu++11 "${warnings[@]}" "${set[@]}" \
             "-I$top/contrib/charm" "${flags[@]}" - <<<"$charm"; then
            echo "machine-ucp-st.C: does not compile with ${set[*]}"
            status=1
        fi
        count=$((count + 1))
    done
done
echo "$count compilations"
exit $status
