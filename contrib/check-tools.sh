#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a checking tool over the sources.
# usage: contrib/check-tools.sh shellcheck|codespell|doxygen
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Skips (77) when the tool is not installed.
need()
{
    command -v "$1" >/dev/null && return
    echo "skipped: $1 is not installed"
    exit 77
}

check_shellcheck()
{
    need shellcheck
    find contrib test bench docs .ci -type f \
        \( -name '*.sh' -o -path .ci/run -o -name ucx-st-run \) -print0 |
        xargs -0 shellcheck -x
    shellcheck -x autogen.sh
}

check_codespell()
{
    need codespell
    codespell src contrib bench examples test docs config/m4/[cglmu]*.m4 \
        .ci ./*.md NEWS configure.ac Makefile.am autogen.sh \
        --skip '*.in,*/libtool.m4,*/lt*.m4,*.log' \
        -L ofi,cas,fo,inout,te,ans,promis
}

# Public headers are documented without a warning.
check_doxygen()
{
    local out
    need doxygen
    out=$(mktemp -d)
    # shellcheck disable=SC2064 # the name of now is meant
    trap "rm -rf '$out'" EXIT
    {
        cat docs/Doxyfile
        echo "OUTPUT_DIRECTORY = $out"
        echo "WARN_AS_ERROR = FAIL_ON_WARNINGS"
    } | doxygen -
}

case ${1:-} in
shellcheck|codespell|doxygen) "check_$1" ;;
*) sed -n 's/^# usage/usage/p' "$0" >&2; exit 2 ;;
esac
