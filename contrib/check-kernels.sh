#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Whether the committed PTX text is what clang makes of the kernels for GPUs.
set -euo pipefail
dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../src/ucs_ext" && pwd)
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

# A CUDA that is there is not looked at
$clang -x cuda --cuda-gpu-arch=sm_70 --cuda-path=/nonexistent -nocudainc \
    -nocudalib --cuda-device-only -O2 -Wall -Wextra -Werror -S \
    "$dir/gstream_kernels.cu" -o "$work/ptx"
if grep -n '\.local' "$work/ptx"; then
    echo "a kernel uses local memory"
    exit 1
fi
[ "${1:-}" != --update ] || cp "$work/ptx" "$dir/gstream_kernels.ptx"
diff "$dir/gstream_kernels.ptx" "$work/ptx" && exit
echo "gstream_kernels.ptx is stale: run contrib/check-kernels.sh --update"
exit 1
