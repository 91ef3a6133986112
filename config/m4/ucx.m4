# SPDX-License-Identifier: BSD-3-Clause
# The installed UCX, its private headers and its build configuration.

# ST_UCX_HEADER_VERSION(FILE): major.minor.patch of an uct/api/version.h
AC_DEFUN([ST_UCX_HEADER_VERSION], [$(awk '
    /define UCT_VERNO_MAJOR/ { a = $[]3 }
    /define UCT_VERNO_MINOR/ { b = $[]3 }
    /define UCT_VERNO_PATCH/ { c = $[]3 }
    END { print a "." b "." c }' "$1")])

# The newest minor version of UCX 1 that this was run with; see docs/versions.md
m4_define([ST_UCX_RUN_MINOR], [23])

# ST_CHECK_UCX: sets UCX_CPPFLAGS, UCX_LIBS, UCX_PRIVATE_CPPFLAGS,
# UCX_SOURCE_DIR and ST_UCX_VERSION, and writes ucx-config/config.h.
AC_DEFUN([ST_CHECK_UCX], [
    AC_ARG_WITH([ucx],
        [AS_HELP_STRING([--with-ucx=PREFIX],
            [where UCX is installed (default: found by pkg-config)])],
        [], [with_ucx=yes])
    AC_ARG_WITH([ucx-source],
        [AS_HELP_STRING([--with-ucx-source=DIR],
            [source tree of the same UCX version, for its private headers
             (default: .deps/ucx-VERSION, see contrib/get-ucx-source.sh)])],
        [], [with_ucx_source=yes])
    ST_UCX_INSTALLED
    ST_UCX_SOURCE
    ST_UCX_CONFIG
    ST_UCX_NEWER
])

# Finds the library: UCX_CPPFLAGS, UCX_LIBS, ST_UCX_VERSION, st_ucx_info.
AC_DEFUN([ST_UCX_INSTALLED], [
    st_ucx_rpath=
    AS_CASE([$with_ucx],
        [no], [ST_FAIL([UCX-ST cannot be built without UCX])],
        [yes],
        [AS_IF([$PKG_CONFIG --exists ucx], [],
               [ST_FAIL([UCX is missing: install the package libucx-dev,
                              or name its place by --with-ucx=PREFIX])])
         st_ucx_inc=$($PKG_CONFIG --variable=includedir ucx)
         st_ucx_libdir=$($PKG_CONFIG --variable=libdir ucx)
         st_ucx_prefix=$($PKG_CONFIG --variable=prefix ucx)],
        [st_ucx_prefix=$with_ucx
         st_ucx_inc=$with_ucx/include
         st_ucx_libdir=$with_ucx/lib])
    AS_IF([test -f "$st_ucx_inc/uct/api/version.h"], [],
          [ST_FAIL([UCX's headers are missing in $st_ucx_inc: install the
                         package libucx-dev, or correct --with-ucx=PREFIX])])
    ST_UCX_VERSION=ST_UCX_HEADER_VERSION([$st_ucx_inc/uct/api/version.h])

    UCX_CPPFLAGS=
    UCX_LIBS="-lucp -luct -lucs"
    AS_IF([test "x$st_ucx_inc" != x/usr/include],
          [UCX_CPPFLAGS="-isystem $st_ucx_inc"
           UCX_LIBS="-L$st_ucx_libdir -Wl,-rpath,$st_ucx_libdir $UCX_LIBS"])

    st_save_LIBS=$LIBS
    LIBS="$UCX_LIBS $LIBS"
    AC_MSG_CHECKING([whether UCX $ST_UCX_VERSION links])
    AC_LINK_IFELSE(
        [AC_LANG_PROGRAM([[const char *ucp_get_version_string(void);]],
                         [[ucp_get_version_string();]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         ST_FAIL([cannot link with $UCX_LIBS: install the package
                       libucx-dev, or correct --with-ucx=PREFIX])])
    LIBS=$st_save_LIBS

    st_ucx_info=$st_ucx_prefix/bin/ucx_info
    AS_IF([test -x "$st_ucx_info"], [],
          [ST_FAIL([the program $st_ucx_info is missing: install the
                         package ucx-utils])])
    AC_SUBST([UCX_CPPFLAGS])
    AC_SUBST([UCX_LIBS])
    AC_SUBST([ST_UCX_VERSION])
])

# Says so where the version is newer than what was run.
AC_DEFUN([ST_UCX_NEWER], [
    st_ucx_minor=${ST_UCX_VERSION#*.}
    st_ucx_minor=${st_ucx_minor%%.*}
    AS_IF([test "${ST_UCX_VERSION%%.*}" -gt 1 ||
           test "$st_ucx_minor" -gt ST_UCX_RUN_MINOR],
          [AC_MSG_WARN(m4_normalize([UCX $ST_UCX_VERSION is newer than
                       1.ST_UCX_RUN_MINOR, the newest version that UCX-ST was
                       run with: if it compiles, run the tests before you rely
                       on it]))])
])

# ST_UCX_SOURCE_PART(NAME): a part of the version in the tree's configure.ac
AC_DEFUN([ST_UCX_SOURCE_PART], [$(sed -n \
    's/^.*ucx_ver_$1@:>@, *\(@<:@0-9@:>@*\).*/\1/p' \
    "$UCX_SOURCE_DIR/configure.ac" 2>/dev/null)])

# Finds the source tree and refuses one of another minor version.
AC_DEFUN([ST_UCX_SOURCE], [
    AC_MSG_CHECKING([for UCX's private headers])
    st_src=$with_ucx_source
    AS_CASE([$with_ucx_source],
        [no], [ST_FAIL([UCX-ST cannot be built without UCX's source])],
        [yes], [st_src=$srcdir/.deps/ucx-$ST_UCX_VERSION])
    AS_IF([test -f "$st_src/src/uct/base/uct_iface.h"], [],
          [AC_MSG_RESULT([no])
           ST_FAIL([UCX's private headers are missing in $st_src: run
                         contrib/get-ucx-source.sh, or name a source tree of
                         UCX $ST_UCX_VERSION by --with-ucx-source=DIR])])
    UCX_SOURCE_DIR=$(cd "$st_src" && pwd)
    st_src_version=ST_UCX_SOURCE_PART([major]).ST_UCX_SOURCE_PART([minor])
    AS_CASE([$ST_UCX_VERSION],
        [$st_src_version.*], [AC_MSG_RESULT([$UCX_SOURCE_DIR])],
        [AC_MSG_RESULT([mismatch])
         ST_FAIL([UCX $ST_UCX_VERSION is installed, but the private
                       headers in $UCX_SOURCE_DIR are of version
                       $st_src_version: both must be of one minor version])])
    AC_SUBST([UCX_SOURCE_DIR])
])

# The installed library's own config.h goes into a folder of its own: macros
# such as ENABLE_STATS and ENABLE_ASSERT change the layout of UCX's structures,
# so the private headers must see exactly what the library was built with.
AC_DEFUN([ST_UCX_CONFIG], [
    AC_MSG_CHECKING([for UCX's build configuration])
    mkdir -p ucx-config
    cat > ucx-config/config.h.new <<STEOF
/* Configuration of the installed UCX $ST_UCX_VERSION, from "ucx_info -b". */
STEOF
    $st_ucx_info -b | grep '^#define' |
        grep -Ev '^#define (PACKAGE|VERSION|LT_OBJDIR)' \
        >> ucx-config/config.h.new
    AS_IF([grep -q '^#define ENABLE_ASSERT\|^#define UCX_CONFIG_H' \
           ucx-config/config.h.new],
          [AC_MSG_RESULT([ucx-config/config.h])],
          [AC_MSG_RESULT([no])
           ST_FAIL(["$st_ucx_info -b" does not tell how UCX was built])])
    AS_IF([cmp -s ucx-config/config.h.new ucx-config/config.h],
          [rm -f ucx-config/config.h.new],
          [mv -f ucx-config/config.h.new ucx-config/config.h])
    st_info_version=$($st_ucx_info -v |
        sed -n 's/^# .*ersion:* *\(@<:@0-9.@:>@*\).*/\1/p' | head -n 1)
    AS_IF([test "x${st_info_version%.*}" = "x${ST_UCX_VERSION%.*}"], [],
          [ST_FAIL([UCX's headers are of version $ST_UCX_VERSION, but
                         $st_ucx_info is of version $st_info_version])])
    UCX_PRIVATE_CPPFLAGS="-isystem $UCX_SOURCE_DIR/src"
    AC_SUBST([UCX_PRIVATE_CPPFLAGS])
])
