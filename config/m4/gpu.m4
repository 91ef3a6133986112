# SPDX-License-Identifier: BSD-3-Clause
# GPU runtimes.  They are opened at run time, so that one build serves machines
# with and without GPUs; the options only record where to look first.

# ST_GPU_RUNTIME(OPTION, MACRO, LIBRARY)
AC_DEFUN([ST_GPU_RUNTIME], [
    AC_ARG_WITH([$1],
        [AS_HELP_STRING([--with-$1=PREFIX],
            [where to look for $3 at run time (default: the loader's path)])],
        [], [with_$1=yes])
    AS_CASE([$with_$1],
        [yes], [],
        [no], [AC_DEFINE([$2_DISABLED], [1], [Never open $3])],
        [AC_DEFINE_UNQUOTED([$2_PREFIX], ["$with_$1"], [Where $3 is])])
    AS_IF([test "x$with_$1" != xno], [ST_GPU="$ST_GPU $1"])
])

# ST_CHECK_GPU: defines ST_ROCM_PREFIX, ST_CUDA_PREFIX where given.
# CLANG compiles kernels for AMD's devices: without one, hipRTC does at run time.
AC_DEFUN([ST_CHECK_GPU], [
    ST_GPU=host
    ST_GPU_RUNTIME([rocm], [ST_ROCM], [libamdhip64])
    ST_GPU_RUNTIME([cuda], [ST_CUDA], [libcuda])
    AC_ARG_VAR([CLANG], [clang, for kernels of AMD's devices; may be missing])
    AC_PATH_PROGS([CLANG], [clang clang-19 clang-18 clang-17 clang-16 clang-15],
                  [])
])
