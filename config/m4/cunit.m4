# SPDX-License-Identifier: BSD-3-Clause
# CUnit, for the tests.

# ST_CHECK_CUNIT: sets CUNIT_CFLAGS, CUNIT_LIBS, ST_CUNIT_VERSION, HAVE_CUNIT.
AC_DEFUN([ST_CHECK_CUNIT], [
    AC_ARG_WITH([cunit],
        [AS_HELP_STRING([--with-cunit=PREFIX],
            [where CUnit is installed (default: found by pkg-config);
             --without-cunit leaves the tests out])],
        [], [with_cunit=yes])
    CUNIT_CFLAGS= CUNIT_LIBS= ST_CUNIT_VERSION=none
    AS_CASE([$with_cunit],
        [no], [],
        [yes],
        [AS_IF([$PKG_CONFIG --exists cunit], [],
               [ST_FAIL([CUnit is missing: install the package
                              libcunit1-dev, or leave the tests out by
                              --without-cunit])])
         CUNIT_CFLAGS=$($PKG_CONFIG --cflags cunit)
         CUNIT_LIBS=$($PKG_CONFIG --libs cunit)
         ST_CUNIT_VERSION=$($PKG_CONFIG --modversion cunit)],
        [AS_IF([test -f "$with_cunit/include/CUnit/CUnit.h"], [],
               [ST_FAIL([there is no CUnit in $with_cunit: correct
                              --with-cunit=PREFIX])])
         CUNIT_CFLAGS=-I$with_cunit/include
         CUNIT_LIBS="-L$with_cunit/lib -Wl,-rpath,$with_cunit/lib -lcunit"
         ST_CUNIT_VERSION=$with_cunit])
    AC_SUBST([CUNIT_CFLAGS])
    AC_SUBST([CUNIT_LIBS])
    AM_CONDITIONAL([HAVE_CUNIT], [test "x$with_cunit" != xno])
])
