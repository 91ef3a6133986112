# SPDX-License-Identifier: BSD-3-Clause
# MPI, for the MPI layer, the benchmarks and the integration tests.

# ST_CHECK_MPI: sets MPI_CFLAGS, MPI_LIBS, MPIRUN, ST_MPI_VERSION, HAVE_MPI,
# OMPI_COMPONENT_DIR, ST_MPI_HOOK, HAVE_MPI_HOOK.
AC_DEFUN([ST_CHECK_MPI], [
    AC_ARG_WITH([mpi],
        [AS_HELP_STRING([--with-mpi=PREFIX],
            [where OpenMPI or MPICH is installed (default: OpenMPI, found by
             pkg-config, or that of mpicc); --without-mpi leaves the MPI layer, the benchmarks and
             their tests out])],
        [], [with_mpi=yes])
    MPI_CFLAGS= MPI_LIBS= ST_MPI_VERSION=none
    AS_CASE([$with_mpi],
        [no], [],
        [yes],
        [AS_IF([$PKG_CONFIG --exists ompi-c],
               [MPI_CFLAGS=$($PKG_CONFIG --cflags ompi-c)
                MPI_LIBS=$($PKG_CONFIG --libs ompi-c)
                ST_MPI_VERSION=$($PKG_CONFIG --modversion ompi-c)],
               [AC_PATH_PROG([MPICC], [mpicc])
                ST_MPI_WRAPPER([$MPICC])])
         AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun])],
        [MPICC=$with_mpi/bin/mpicc
         MPIRUN=$with_mpi/bin/mpirun
         ST_MPI_WRAPPER([$MPICC])])
    AC_ARG_WITH([openmpi-component-dir],
        [AS_HELP_STRING([--with-openmpi-component-dir=DIR],
            [where the component goes that loads the transport into every
             program of OpenMPI (LIBDIR/ucx-st/openmpi, which OpenMPI has to be
             told; `ompi_info --path pkglibdir` has OpenMPI's own);
             --without-... leaves it out])],
        [], [with_openmpi_component_dir=yes])
    ST_MPI_HOOK=none
    AS_CASE([$with_mpi], [no], [], [ST_MPI_LINK])
    AS_CASE([$with_mpi,$with_openmpi_component_dir],
        [no,*|*,no], [],
        [ST_MPI_HEADERS])
    AS_CASE([$with_openmpi_component_dir],
        [yes|no], [OMPI_COMPONENT_DIR='${libdir}/ucx-st/openmpi'],
        [OMPI_COMPONENT_DIR=$with_openmpi_component_dir])
    AC_SUBST([OMPI_COMPONENT_DIR])
    AM_CONDITIONAL([HAVE_MPI_HOOK], [test "x$ST_MPI_HOOK" != xnone])
    AC_SUBST([MPI_CFLAGS])
    AC_SUBST([MPI_LIBS])
    AC_SUBST([MPIRUN])
    AM_CONDITIONAL([HAVE_MPI], [test "x$with_mpi" != xno])
])

# ST_MPI_WRAPPER(MPICC): asks the compiler wrapper for its flags: OpenMPI's, or
# MPICH's, which prints them with the compiler.
AC_DEFUN([ST_MPI_WRAPPER], [
    AS_IF([test -n "$1" && test -x "$1"], [],
          [ST_FAIL([MPI is missing: install the package libopenmpi-dev,
                         name its place by --with-mpi=PREFIX, or build without
                         the MPI layer by --without-mpi])])
    AS_IF([MPI_CFLAGS=$($1 --showme:compile 2>/dev/null) &&
           MPI_LIBS=$($1 --showme:link 2>/dev/null)],
          [ST_MPI_VERSION=$($1 --showme:version |
                            sed 's/.*MPI \(@<:@0-9.@:>@*\).*/\1/')],
          [st_info=$($1 -compile_info 2>/dev/null)],
          [# gcc takes MPI_STATUSES_IGNORE for an array, as the header has it
           MPI_CFLAGS="-Wno-stringop-overflow "
           MPI_CFLAGS=$MPI_CFLAGS$(echo "$st_info" | tr ' ' '\n' |
                         grep '^-@<:@ID@:>@' | tr '\n' ' ')
           MPI_LIBS=$($1 -link_info | tr ' ' '\n' |
                      grep -e '^-@<:@Ll@:>@' -e '^-Wl,' | tr '\n' ' ')
           ST_MPI_VERSION=$($1 -v 2>&1 |
                            sed -n 's/^.* for \(MPICH\) version /\1 /p')],
          [ST_FAIL([$1 is not OpenMPI's, nor MPICH's: install the package
                         libopenmpi-dev, or name OpenMPI's place by
                         --with-mpi=PREFIX])])
])

# Components need headers that not every package of OpenMPI has, or has whole.
AC_DEFUN([ST_MPI_HEADERS], [
    st_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
    AC_MSG_CHECKING([for OpenMPI's headers of components])
    AC_COMPILE_IFELSE(
        [AC_LANG_SOURCE([[#include <ompi_config.h>
            #include <ompi/mca/hook/hook.h>
            const ompi_hook_base_component_t component = {
                .hookm_version = {OMPI_HOOK_BASE_VERSION_1_0_0}
            };]])],
        [ST_MPI_HOOK=cxitrig],
        [AS_CASE([$with_openmpi_component_dir],
            [yes], [],
            [AC_MSG_RESULT([no])
             ST_FAIL([OpenMPI's headers of components are missing, which
                      --with-openmpi-component-dir needs])])])
    AC_MSG_RESULT([$ST_MPI_HOOK])
    CPPFLAGS=$st_save_CPPFLAGS
])

# Checks that a program can be linked, and that the launcher is there.
AC_DEFUN([ST_MPI_LINK], [
    st_save_CPPFLAGS=$CPPFLAGS
    st_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
    LIBS="$MPI_LIBS $LIBS"
    AC_MSG_CHECKING([whether MPI ($ST_MPI_VERSION) links])
    AC_LINK_IFELSE(
        [AC_LANG_PROGRAM([[#include <mpi.h>
            #if !defined(OPEN_MPI) && !defined(MPICH_VERSION)
            #error only OpenMPI and MPICH are supported
            #endif]], [[return MPI_Init(0, 0);]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         ST_FAIL([cannot link a program of OpenMPI or MPICH: install the package
                       libopenmpi-dev, or correct --with-mpi=PREFIX])])
    CPPFLAGS=$st_save_CPPFLAGS
    LIBS=$st_save_LIBS
    AS_IF([test -n "$MPIRUN" && test -x "$MPIRUN"], [],
          [ST_FAIL([mpirun is missing: install the package openmpi-bin, or
                         build without the MPI layer by --without-mpi])])
])
