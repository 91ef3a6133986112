# SPDX-License-Identifier: BSD-3-Clause
# Language level, warnings and sanitizers.

# ST_FAIL(SENTENCE): stops configure with one sentence on one line.
AC_DEFUN([ST_FAIL], [AC_MSG_ERROR(m4_normalize([$1]))])

# ST_COMPILER: sets BASE_CFLAGS and BASE_LDFLAGS.
AC_DEFUN([ST_COMPILER], [
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror],
            [turn compiler warnings into errors @<:@in a git checkout@:>@])],
        [], [AS_IF([test -e "$srcdir/.git"], [enable_werror=yes],
                   [enable_werror=no])])
    AC_ARG_ENABLE([sanitizer],
        [AS_HELP_STRING([--enable-sanitizer=LIST],
            [build with sanitizers: "address,undefined" or "thread"])],
        [], [enable_sanitizer=no])

    # Functions of an operations table take what the table says, used or not,
    # and UCX ends its tables of settings by {NULL}.
    st_warn="-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers"
    AS_IF([test "x$enable_werror" != xno], [st_warn="$st_warn -Werror"])

    st_san=
    AS_CASE([$enable_sanitizer],
        [no], [ST_SANITIZER=none],
        [yes], [ST_FAIL([--enable-sanitizer needs a list, for example
                              --enable-sanitizer=address,undefined])],
        [ST_SANITIZER=$enable_sanitizer
         st_san="-fsanitize=$enable_sanitizer -fno-omit-frame-pointer"
         AS_CASE([,$enable_sanitizer,], [*,undefined,*],
                 [# UCX's inline functions copy nothing from NULL
                  st_san="$st_san -fno-sanitize-recover=undefined"
                  st_san="$st_san -fno-sanitize=nonnull-attribute"],
             [*,thread,*],
                 [# It says that it does not see fences; code that relies on
                  # one says why nothing else is shared there
                  st_san="$st_san -Wno-tsan"])
         st_save_CFLAGS=$CFLAGS
         CFLAGS="$CFLAGS $st_san"
         AC_MSG_CHECKING([whether the compiler can sanitize $enable_sanitizer])
         AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
             [AC_MSG_RESULT([no])
              ST_FAIL([the compiler cannot build with
                            --enable-sanitizer=$enable_sanitizer])])
         CFLAGS=$st_save_CFLAGS])

    AC_SUBST([BASE_CFLAGS], ["-std=gnu11 $st_warn $st_san"])
    AC_SUBST([BASE_LDFLAGS], ["$st_san"])
    AC_SUBST([ST_SANITIZER])
    AM_CONDITIONAL([HAVE_SANITIZER], [test "x$ST_SANITIZER" != xnone])
])
