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
        -L ofi,cas,fo,inout,te,ans
}

# Public headers are documented without a warning.
check_doxygen()
{
    local out
    need doxygen
    out=$(mktemp -d)
    # shellcheck disable=SC2064 # the name of now is meant
    trap "rm -rf '$out'" EXIT
    doxygen -q - <<STEOF
PROJECT_NAME         = ucx-st
INPUT                = $(echo src/*/api/*.h src/*/*/api/*.h \
                              contrib/openmpi/mpix_queue/mpix_queue.h)
OUTPUT_DIRECTORY     = $out
GENERATE_HTML        = YES
GENERATE_LATEX       = NO
HAVE_DOT             = NO
GENERATE_XML         = NO
OPTIMIZE_OUTPUT_FOR_C = YES
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION      = YES
WARN_IF_UNDOCUMENTED = YES
WARN_IF_DOC_ERROR    = YES
WARN_NO_PARAMDOC     = YES
WARN_AS_ERROR        = FAIL_ON_WARNINGS
INPUT_FILTER         = "sed '1s|^|/** @file */ |'"
STEOF
}

case ${1:-} in
shellcheck|codespell|doxygen) "check_$1" ;;
*) sed -n 's/^# usage/usage/p' "$0" >&2; exit 2 ;;
esac
