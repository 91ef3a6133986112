#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Whether the committed PTX text is what clang makes of the kernels for GPUs: the
# library's, and those of the benchmarks.
set -euo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ST_TOP"
# Debian 12's; others write the same in another way
clang='clang-14'

case ${1:-} in
""|--update) ;;
*) echo "usage: contrib/check-kernels.sh [--update]"; exit 2 ;;
esac
if ! command -v $clang >/dev/null; then
    echo "there is no $clang, which the committed text was made by"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rc=0
for name in src/ucs_ext/gstream_kernels bench/bench_kernels; do
    if ! st_ptx $clang "$name.cu" "$work/ptx" -ffp-contract=off \
         -Isrc/ucs_ext/api; then
        rc=1
    elif [ "${1:-}" = --update ]; then
        cp "$work/ptx" "$name.ptx"
    elif ! diff "$name.ptx" "$work/ptx"; then
        echo "$name.ptx is stale: run contrib/check-kernels.sh --update"
        rc=1
    fi
done
exit $rc
