# SPDX-License-Identifier: BSD-3-Clause
# Fortran 2008 with MPI, for the module of the MPI layer. It is left out where
# there is none.

# ST_PROG_MPIFORT: sets FC. Before LT_INIT.
AC_DEFUN([ST_PROG_MPIFORT], [
    AS_CASE([$FC,$with_mpi],
        [,/*], [AS_IF([test -x "$with_mpi/bin/mpifort"],
                      [FC=$with_mpi/bin/mpifort])])
    AC_PROG_FC([mpifort.openmpi mpifort])
])

# ST_CHECK_MPI_FORTRAN: after ST_CHECK_MPI. Sets BASE_FCFLAGS, ST_MPI_FORTRAN,
# HAVE_MPI_FORTRAN.
AC_DEFUN([ST_CHECK_MPI_FORTRAN], [
    ST_MPI_FORTRAN=none
    AC_LANG_PUSH([Fortran])
    AC_FC_SRCEXT([f90], [st_fortran=$with_mpi], [st_fortran=no])
    AS_CASE([$st_fortran], [no], [],
        [AC_MSG_CHECKING([whether $FC has the module mpi_f08])
         AC_LINK_IFELSE([AC_LANG_SOURCE([ST_MPI_FORTRAN_PROGRAM])],
             [AC_MSG_RESULT([yes])
              ST_MPI_FORTRAN=$FC],
             [AC_MSG_RESULT([no])])])
    AC_LANG_POP([Fortran])

    # Descriptors of arrays in C
    AC_CHECK_HEADER([ISO_Fortran_binding.h], [], [ST_MPI_FORTRAN=none])

    # MPI's integers are those of C, though they do not say so
    st_fcflags="-std=f2018 -Wall -Wno-c-binding-type"
    AS_IF([test "x$enable_werror" != xno], [st_fcflags="$st_fcflags -Werror"])
    AC_SUBST([BASE_FCFLAGS], ["$st_fcflags $st_san"])
    AM_CONDITIONAL([HAVE_MPI_FORTRAN], [test "x$ST_MPI_FORTRAN" != xnone])
])

# What the module needs: handles in interfaces to C, optional arguments, and
# buffers of any type.
AC_DEFUN([ST_MPI_FORTRAN_PROGRAM], [[
program conftest
    use mpi_f08
    implicit none
    interface
        subroutine free(buf, comm, ierror) bind(C)
            import
            type(*), dimension(..), asynchronous :: buf
            type(MPI_Comm), intent(in) :: comm
            integer, optional, intent(out) :: ierror
        end subroutine
    end interface
    call MPI_Init()
    call free(MPI_COMM_WORLD%MPI_VAL, MPI_COMM_WORLD)
end program
]])
