#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that what is distributed has every file of the sources.
# usage: contrib/check-dist.sh [BUILD-FOLDER]
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "${1:-$top/build}" && pwd)
cd "$top"
git ls-files >/dev/null 2>&1 || { echo "skipped: this is no git checkout"; exit 77; }
name=files-$$
trap 'rm -rf "$build/$name"' EXIT
make -s -C "$build" distdir distdir=$name top_distdir=$name >/dev/null
missing=$(comm -23 <(git ls-files | grep -v '^\.gitignore$' | sort) \
               <(cd "$build/$name" && find . -type f | sed 's,^\./,,' | sort))
[ -z "$missing" ] || { echo "not distributed:"; echo "$missing"; exit 1; }
echo "$(git ls-files | wc -l) files are distributed"
