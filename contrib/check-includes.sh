#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that each folder includes only what its layer may include.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

libc='(aio|assert|ctype|dirent|dlfcn|endian|errno|execinfo|fcntl|float|getopt|'
libc+='ifaddrs|inttypes|libgen|limits|link|locale|malloc|math|netdb|poll|'
libc+='pthread|sched|semaphore|signal|stdalign|stdarg|stdatomic|stdbool|'
libc+='stddef|stdint|stdio|stdlib|string|strings|syslog|time|ucontext|unistd)\.h|'
libc+='(sys|linux|net|netinet|arpa)/.*'
config='config\.h|ucx_st_config\.h'
ours='ucs_gstream(_event|_group|_memory)?\.h|ucs_trace\.h|uct_trig(_stats)?\.h|ucp_st\.h|ucp_st_batch\.h|ucp_st_def\.h|ucp_st_mem\.h|ucp_st_rma\.h|ucp_st_channel\.h|ucp_st_msg\.h|mpix_queue\.h|mpix_mpi\.h'
# What libucx-dev installs
ucx_api='ucp/api/.*|uct/api/.*|'
ucx_api+='ucs/(arch|config|datastruct|memory|sys|time|type)/.*'
outside="mpi\.h|$ours|$ucx_api"
status=0
files=0

# Usage: includes FILE
includes()
{
    sed -n 's/^ *# *include *[<"]\([^>"]*\)[>"].*/\1/p' "$1"
}

# Reports the includes of a file that match neither the rule of its folder nor
# a file of its own folder, or of the layer's ($layer). Another folder is named
# from the layer's on, never by "..".
# Usage: check_file FILE RULE
check_file()
{
    local file=$1 rule=$2 dir name
    dir=$(dirname "$file")
    files=$((files + 1))
    while IFS= read -r name; do
        [[ $name =~ ^($libc|$config|$rule)$ ]] && continue
        if [[ $name != *..* ]]; then
            [ -e "$dir/$name" ] && continue
            [[ $name == */* ]] && [ -e "$layer/$name" ] && continue
            [ "${dir##*/}" = api ] && [ -e "${dir%/*}/$name" ] && continue
        fi
        echo "$file: may not include $name"
        status=1
    done < <(includes "$file")
}

# The folders of src/ucp/st: which of their headers each may include. Of a lane
# those that are not one include its header for them alone.
# Usage: check_st FOLDER RULE
check_st()
{
    local folder=$1 rule=$2 file name
    while IFS= read -r file; do
        while IFS= read -r name; do
            [ -e "src/ucp/st/$name" ] || continue
            [[ $name =~ ^($rule)$ ]] && continue
            echo "$file: may not include $name"
            status=1
        done < <(includes "$file")
    done < <(find "src/ucp/st/$folder" -name '*.[ch]' | sort)
}

# Usage: check_folder DIR RULE [EXTRA-PATTERN EXTRA-RULE]; files whose name
# matches the pattern may include what the extra rule says, too.
check_folder()
{
    local dir=$1 rule=$2 pattern=${3:-} extra=${4:-} file
    layer=$dir
    [ -d "$dir" ] || return 0
    while IFS= read -r file; do
        if [ -n "$pattern" ] && [[ $file =~ $pattern ]]; then
            check_file "$file" "$rule|$extra"
        else
            check_file "$file" "$rule"
        fi
    done < <(find "$dir" -name '*.[ch]' -not -path '*/.*' | sort)
}

check_folder src/ucs_ext 'ucs/.*|ucs_(ext_config|fork|gpu|gstream(_copy|_event|_group|_ipc|_memory)?|ledger|memfd|thread)\.h' \
    'gstream_(hip|cuda)' 'hip/.*|cuda.*'
# What the emulated card shares with the libraries includes nothing of theirs
check_file src/ucs_ext/ledger.c 'ucs_ledger\.h'
check_file src/ucs_ext/gpu.c 'ucs_gpu\.h'
for name in fork memfd thread; do
    check_file src/ucs_ext/$name.c "ucs_$name\.h"
done
for name in fork gpu ledger memfd thread; do
    check_file src/ucs_ext/api/ucs_$name.h ''
done
check_folder src/prov/cxiemu 'rdma/.*|cxiemu\.h|ucs_(fork|gpu|ledger|memfd|thread)\.h'
# The version of the running UCX is told by ucp alone
check_folder src/uct/cxi_trig \
    'ucs_ext/.*|ucs_(fork|gpu|gstream(_memory)?|ledger|memfd|thread|trace)\.h|uct_trig(_stats)?\.h|ucm/api/.*|ucs/.*|uct/(api|base)/.*|rdma/.*|cxiemu\.h' \
    '/cxi_trig_guard\.c$' 'ucp/api/.*'
check_folder src/ucp/st \
    'ucs_ext/.*|ucs_(ext_config|fork|gstream(_copy|_ipc|_memory)?|memfd|thread|trace)\.h|ucs/.*|ucp/api/.*|uct/api/.*|uct_trig\.h|ucp_st\.h|ucp_st_batch\.h|ucp_st_def\.h|ucp_st_channel\.h|ucp_st_msg\.h' \
    '/st_direct_copy\.c$' 'emmintrin\.h'
check_st api ''
check_st core 'core/.*'
check_st ctrl '(core|ctrl)/.*'
for lane in trig direct host; do
    check_st $lane "(core|ctrl|$lane)/.*"
done
check_st rma '(core|ctrl|rma)/.*|(trig|direct)/st_(trig|direct)_rma\.h'
check_st tag '(core|ctrl|tag)/.*'
check_folder src/tools "$outside|ucs_ext_config\.h"
check_folder contrib "$outside|ucs_thread\.h" '/hook_|/mpix_f08\.h$' \
    'ompi_config\.h|ompi/mca/hook/.*|ISO_Fortran_binding\.h'
# What the programs share
check_folder bench "$outside|st_(counts|number|report|stream)\.h" \
    '/trig_' 'rdma/.*|cxiemu\.h'
check_folder examples "$outside" '/(cxi_chain\.c|gpu\.h)$' \
    'rdma/.*|hip/hip_runtime\.h|cuda_runtime\.h'
# The emulated NIC needs no header of others
check_folder test/cassini 'setjmp\.h|complex\.h|cxi/cxiemu_decode\.h|st_cunit\.h'
# The stand-ins for GPU runtimes need none, either
check_folder test/standin 'standin_(cuda|hip)\.h'
check_folder test/integration "$outside|CUnit/.*" '/fab_|/compat_|/mpix_(device|once)\.c$' \
    'setjmp\.h|rdma/.*|mpi(x_queue_comm|_queue_paper|x_host_stream)\.h|(compat/)?stream-triggering\.h'

echo "$files files checked"
exit $status
