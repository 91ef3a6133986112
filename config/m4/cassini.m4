# SPDX-License-Identifier: BSD-3-Clause
# The emulated NIC below libfabric's own cxi provider, in test/cassini.

# ST_CHECK_CASSINI: sets HAVE_CASSINI, ST_CASSINI. It decodes x86-64 stores.
AC_DEFUN([ST_CHECK_CASSINI], [
    AS_CASE([$host_cpu],
            [x86_64], [ST_CASSINI="test/cassini"],
            [ST_CASSINI="no (x86-64 only)"])
    AM_CONDITIONAL([HAVE_CASSINI], [test "$ST_CASSINI" = test/cassini])
    AC_SUBST([ST_CASSINI])
])
