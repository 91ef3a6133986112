#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Creates configure and the Makefile.in files from a fresh checkout.
set -e
cd "$(dirname "$0")"
for tool in autoreconf libtoolize pkg-config; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "autogen.sh: $tool is missing; install the packages" \
             "autoconf, automake, libtool and pkg-config" >&2
        exit 1
    fi
done
mkdir -p config/m4 config/aux
# The rules of the unit tests
awk -f test/unit/suites.awk test/unit/suites.list > test/unit/suites.am
exec autoreconf --install --force --warnings=all,no-obsolete
