#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Links a program of the tests, which runs in the build folder and is never
# installed: as libtool would, but as one command in place of some sixty, and to a
# program that needs no script around it. Usage: link-test.sh COMPILER ARGUMENT...
#
# A library of ours, DIR/NAME.la, is DIR/.libs/NAME.so with a path to it, or else
# DIR/.libs/NAME.a.
set -eu
words=()
paths=()
for word; do
    case $word in
    *.la)
        dir=${word%/*}
        [ "$dir" != "$word" ] || dir=.
        name=${word##*/}
        name=$dir/.libs/${name%.la}
        if [ -e "$name.so" ]; then
            words+=("$name.so")
            paths+=("-Wl,-rpath,$PWD/$dir/.libs")
        else
            words+=("$name.a")
        fi
        ;;
    *) words+=("$word") ;;
    esac
done
# The old kind of path is for the libraries of these libraries, too
exec "${words[@]}" "${paths[@]}" -Wl,--disable-new-dtags
