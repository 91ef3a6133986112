#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds, and runs the tests, in a fresh, minimal Debian 13: UCX 1.18, libfabric
# 2.1, OpenMPI 5.0.
set -euo pipefail

usage()
{
    cat <<STEOF
usage: contrib/check-debian13.sh [--dir DIR] [--keep] [--ucx-source TREE]
                                 [-- ARGUMENT...]

Makes a minimal Debian 13 system in a temporary folder and runs
./contrib/run-tests.sh in it, with the ARGUMENTs; see check-fresh.sh --help, of
which these are options. Needs root, debootstrap, git and about 3 GB.
STEOF
}

case ${1:-} in
-h|--help) usage; exit 0 ;;
--dir|--keep|--ucx-source|--|"") ;;
*) usage >&2; exit 2 ;;
esac
exec "$(dirname "${BASH_SOURCE[0]}")/check-fresh.sh" --suite trixie \
    --only run-tests "$@"
