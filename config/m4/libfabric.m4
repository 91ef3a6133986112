# SPDX-License-Identifier: BSD-3-Clause
# libfabric, for the transport.

# ST_CHECK_LIBFABRIC: sets FABRIC_CPPFLAGS, FABRIC_LIBS, ST_FABRIC_VERSION,
# ST_PC_FABRIC, ST_PC_FABRIC_LIBS.
AC_DEFUN([ST_CHECK_LIBFABRIC], [
    AC_ARG_WITH([libfabric],
        [AS_HELP_STRING([--with-libfabric=PREFIX],
            [where libfabric is installed (default: found by pkg-config)])],
        [], [with_libfabric=yes])
    AS_CASE([$with_libfabric],
        [no], [ST_FAIL([UCX-ST cannot be built without libfabric])],
        [yes], [st_fabric_path=$PKG_CONFIG_PATH],
        [st_fabric_lib=$with_libfabric/lib
         AS_IF([test -f "$with_libfabric/lib64/pkgconfig/libfabric.pc"],
               [st_fabric_lib=$with_libfabric/lib64])
         st_fabric_path=$st_fabric_lib/pkgconfig
         AS_IF([test -f "$st_fabric_path/libfabric.pc"], [],
               [ST_FAIL([there is no libfabric in $with_libfabric:
                              correct --with-libfabric=PREFIX])])])
    AS_IF([PKG_CONFIG_PATH=$st_fabric_path $PKG_CONFIG --exists libfabric], [],
          [ST_FAIL([libfabric is missing: install the package
                         libfabric-dev, or name its place by
                         --with-libfabric=PREFIX])])
    AS_IF([PKG_CONFIG_PATH=$st_fabric_path \
           $PKG_CONFIG --atleast-version=1.17 libfabric], [],
          [ST_FAIL([libfabric is too old: version 1.17 or later is
                         needed])])
    ST_FABRIC_VERSION=$(PKG_CONFIG_PATH=$st_fabric_path \
                        $PKG_CONFIG --modversion libfabric)
    FABRIC_CPPFLAGS=$(PKG_CONFIG_PATH=$st_fabric_path \
                      $PKG_CONFIG --cflags libfabric)
    FABRIC_LIBS=$(PKG_CONFIG_PATH=$st_fabric_path \
                  $PKG_CONFIG --libs libfabric)
    # For ucx-st.pc, which may not find the .pc file of another one
    ST_PC_FABRIC=libfabric ST_PC_FABRIC_LIBS=
    AS_CASE([$with_libfabric], [yes], [],
            [FABRIC_LIBS="$FABRIC_LIBS -Wl,-rpath,$st_fabric_lib"
             ST_PC_FABRIC= ST_PC_FABRIC_LIBS=$FABRIC_LIBS])
    AC_SUBST([ST_PC_FABRIC])
    AC_SUBST([ST_PC_FABRIC_LIBS])
    AC_SUBST([FABRIC_CPPFLAGS])
    AC_SUBST([FABRIC_LIBS])
])
