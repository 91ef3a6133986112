# SPDX-License-Identifier: BSD-3-Clause
# The emulated card, part of the transport's library.

# ST_CHECK_CXIEMU: sets HAVE_CXIEMU, ST_CXIEMU. Tests need the card: without it
# they are not built.
AC_DEFUN([ST_CHECK_CXIEMU], [
    AC_ARG_WITH([cxiemu],
        [AS_HELP_STRING([--without-cxiemu],
            [build without the emulated card, for systems that have Cassini
             cards; tests are left out, too])],
        [], [with_cxiemu=yes])
    AS_CASE([$with_cxiemu],
        [no], [ST_CXIEMU="left out, and the tests with it"],
        [ST_CXIEMU=yes])
    AM_CONDITIONAL([HAVE_CXIEMU], [test "$with_cxiemu" != no])
])
