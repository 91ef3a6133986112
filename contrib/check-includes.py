#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that each folder includes only what its layer may include."""
import os
import re
import sys

os.chdir(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

LIBC = (r"(aio|assert|ctype|dirent|dlfcn|endian|errno|execinfo|fcntl|float|getopt|"
        r"ifaddrs|inttypes|libgen|limits|link|locale|malloc|math|netdb|poll|"
        r"pthread|sched|semaphore|signal|stdalign|stdarg|stdatomic|stdbool|"
        r"stddef|stdint|stdio|stdlib|string|strings|syslog|time|ucontext|unistd)"
        r"\.h|(sys|linux|net|netinet|arpa)/.*|config\.h|ucx_st_config\.h")
OURS = (r"ucs_gstream(_event|_group|_memory)?\.h|ucs_trace\.h|uct_trig(_stats)?\.h|"
        r"ucp_st(_batch|_channel|_def|_device|_mem|_msg|_rma)?\.h|"
        r"mpix_(queue(_device)?|mpi|win)\.h")
# What libucx-dev installs
UCX_API = (r"ucp/api/.*|uct/api/.*|"
           r"ucs/(arch|config|datastruct|memory|sys|time|type)/.*")
OUTSIDE = rf"mpi\.h|{OURS}|{UCX_API}"

# Folder, what its files may include beside libc's and their own folder's, and
# for some files, by their names, what else
FOLDERS = [
    ("src/ucs_ext",
     r"ucs/.*|ucs_(backoff|ext_config|fork|gpu|gstream(_copy|_event|_gate|_group|_ipc|_memory|_move|_pair|_word)?|"
     r"hiprtc|ledger|loaded|memfd|thread)\.h",
     r"gstream_(hip|cuda)", r"hip/.*|cuda.*"),
    ("src/prov/cxiemu",
     r"rdma/.*|cxiemu\.h|ucs_(backoff|fork|gpu|ledger|memfd|thread)\.h"),
    # The version of the running UCX is told by ucp alone
    ("src/uct/cxi_trig",
     r"ucs_ext/.*|ucs_(backoff|fork|gpu|gstream(_memory)?|ledger|memfd|thread|trace)\.h|"
     r"uct_trig(_stats)?\.h|ucm/api/.*|ucs/.*|uct/(api|base)/.*|rdma/.*|cxiemu\.h",
     r"/cxi_trig_guard\.c$", r"ucp/api/.*"),
    ("src/ucp/st",
     r"ucs_ext/.*|ucs_(backoff|ext_config|fork|gstream(_copy|_gate|_ipc|_memory|_move|_pair(_device)?)?|"
     r"memfd|thread|trace)\.h|ucs/.*|ucp/api/.*|uct/api/.*|uct_trig\.h|"
     r"ucp_st(_batch|_channel|_def|_msg)?\.h",
     r"/st_direct_copy\.c$", r"emmintrin\.h"),
    ("src/tools", rf"{OUTSIDE}|ucs_ext_config\.h"),
    ("contrib", OUTSIDE,
     r"/hook_", r"ompi_config\.h|ompi/mca/hook/.*"),
    ("contrib/openmpi/mpix_queue", rf"{OUTSIDE}|ucs_(backoff|gstream_gate|thread)\.h|mpix_(halo|host_\w+)\.h",
     r"/(mpix_f08|mp)\.h$", r"ISO_Fortran_binding\.h|cuda(_runtime)?\.h"),
    # What the programs share
    ("bench", rf"{OUTSIDE}|st_(counts|number|report|stream)\.h|ucs_hiprtc\.h|"
              r"compat/(mp|mpich_stream)\.h",
     r"/trig_|/bench_gpu\.c$", r"rdma/.*|cxiemu\.h|mpi-ext\.h"),
    ("examples", OUTSIDE,
     r"/(cxi_chain\.c|gpu\.h|st_mpich\.c|st_win\.c)$",
     r"rdma/.*|hip/hip_runtime\.h|cuda_runtime\.h|mpix_host_stream\.h"),
    # The emulated NIC needs no header of others
    ("test/cassini", r"setjmp\.h|complex\.h|cxi/cxiemu_decode\.h|st_cunit\.h"),
    # The stand-ins for GPU runtimes need none, either, but for the kernels
    ("test/standin", r"standin_(control|cuda|hip)\.h",
     r"/standin_(module|rtc)\.c$|_kernels\.[ch]$",
     r"elf\.h|\.\./\.\./(src/ucs_ext/gstream|bench/bench)_kernels\.cu|"
     r"forward_(bench_)?ptx\.h|ucp_st_device\.h|"
     r"\.\./\.\./examples/gpu/st_device_kernels\.h"),
    ("test/integration", rf"{OUTSIDE}|CUnit/.*",
     r"/fab_|/compat_|/mpix_(device|fifo_random|once)\.c$",
     r"setjmp\.h|rdma/.*|mpi(x_queue_comm|_queue_paper|x_host_stream)\.h|"
     r"(compat/)?(mp|mpich_stream|stream-triggering)\.h"),
]
OWN = {folder for folder, *_ in FOLDERS}
# Files of src/ucs_ext that the emulated card or the benchmarks share with the
# libraries: they include nothing of theirs but their own header, and what finds
# loaded libraries
SHARED = ["backoff", "fork", "gpu", "hiprtc", "ledger", "loaded", "memfd", "thread"]
# The folders of a layer: which headers of the layer each may include. Those of
# src/ucp/st that are not of a lane include its header for them alone.
LAYERS = {
    "src/ucp/st": {
        "api": r"",
        "ctrl": r"ctrl/.*|core/st_(component|log|peer|process|proto|ucp|worker)\.h",
        "core": r"(core|ctrl)/.*",
        "trig": r"(core|ctrl|trig)/.*",
        "direct": r"(core|ctrl|direct)/.*",
        "host": r"(core|ctrl|host)/.*",
        "rma": r"(core|ctrl|rma)/.*|(trig|direct)/st_(trig|direct)_rma\.h",
        "tag": r"(core|ctrl|tag)/.*|trig/st_trig_rma\.h",
        "channel": r"channel/.*|core/st_(log|stack)\.h",
    },
    "src/prov/cxiemu": {
        "base": r"cxiemu\.h|base/.*",
        "nic": r"cxiemu\.h|(base|nic)/.*",
        "obj": r"cxiemu\.h|(base|nic|obj)/.*",
        "cxi": r"cxiemu\.h|(base|nic|obj|cxi)/.*",
        "op": r"cxiemu\.h|(base|nic|obj|cxi|op)/.*",
        "run": r"cxiemu\.h|(base|nic|obj|cxi|op|run)/.*",
        "fabric": r"cxiemu\.h|(base|nic|obj|cxi|op|run|fabric)/.*",
    },
    "contrib/openmpi/mpix_queue": {
        "binding": r"binding/.*",
        "request": r"mpix_\w+\.h|(binding|request)/.*",
        "coll": r"mpix_\w+\.h|(binding|request|coll)/.*",
        "once": r"mpix_\w+\.h|(binding|request|once)/.*",
        "call": r"mpix_\w+\.h|(binding|request|coll|once|call)/.*",
        "win": r"mpix_\w+\.h|(binding|request|coll|once|call|win)/.*",
        "halo": r"mpix_\w+\.h|(binding|request|halo)/.*",
        "compat": r"mpix_\w+\.h|(binding|request|once|call|compat)/.*",
        "fortran": r"mpix_\w+\.h|fortran/.*",
    },
}
INCLUDE = re.compile(r'^ *# *include *[<"]([^>"]*)[>"]', re.M)
faults = 0


def complain(path, name):
    global faults
    faults += 1
    print(f"{path}: may not include {name}")


def includes(path):
    with open(path, encoding="utf-8") as file:
        return INCLUDE.findall(file.read())


def sources(folder):
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".")
                            and f"{path}/{name}" not in OWN)
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.join(path, name)


def is_own(path, name, layer):
    """Whether a header is of the file's folder or, named from there on, of its
    layer's: another folder is never named by "..". """
    folder = os.path.dirname(path)
    return ".." not in name and (
        os.path.exists(f"{folder}/{name}") or
        ("/" in name and os.path.exists(f"{layer}/{name}")) or
        (folder.endswith("/api") and os.path.exists(f"{folder[:-4]}/{name}")))


def check_file(path, rule, layer):
    for name in includes(path):
        if not re.fullmatch(f"{LIBC}|{rule}", name) and \
           not is_own(path, name, layer):
            complain(path, name)


def main():
    count = 0
    for folder, rule, *more in FOLDERS:
        for path in sources(folder):
            extra = more and re.search(more[0], path)
            check_file(path, f"{rule}|{more[1]}" if extra else rule, folder)
            count += 1
    for name in SHARED:
        check_file(f"src/ucs_ext/{name}.c", rf"ucs_({name}|loaded)\.h", "src/ucs_ext")
        check_file(f"src/ucs_ext/api/ucs_{name}.h", "", "src/ucs_ext")
    for layer, folders in LAYERS.items():
        for folder, rule in folders.items():
            for path in sources(f"{layer}/{folder}"):
                for name in includes(path):
                    if os.path.exists(f"{layer}/{name}") and \
                       not re.fullmatch(rule, name):
                        complain(path, name)
    print(f"{count} files checked")
    return 1 if faults else 0


sys.exit(main())
