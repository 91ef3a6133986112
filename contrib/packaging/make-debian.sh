#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes the folder debian of this tree, for dpkg-buildpackage: a copy of
# contrib/packaging/debian, the changelog, and the private headers of UCX.
set -euo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

usage()
{
    cat <<STEOF
usage: contrib/packaging/make-debian.sh [--help]

Makes the folder debian anew, with which
    dpkg-buildpackage -us -uc
builds Debian packages of this tree. UCX's private headers, which no package has,
go with it: .deps/ucx-VERSION has to be there (contrib/get-ucx-source.sh).
DEBFULLNAME and DEBEMAIL in the environment are the name in the changelog.
STEOF
}

case ${1:-} in
"") ;;
-h|--help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac

version=$(sed -n 's/^AC_INIT(\[ucx-st\], \[\([0-9.]*\)\].*/\1/p' \
              "$ST_TOP/configure.ac")
ucx=$(pkg-config --modversion ucx) || st_die "install the package libucx-dev"
headers=$ST_TOP/.deps/ucx-$ucx
[ -f "$headers/src/uct/base/uct_iface.h" ] ||
    st_die "UCX's private headers are missing in $headers:" \
           "run contrib/get-ucx-source.sh"

cd "$ST_TOP"
rm -rf debian
cp -r contrib/packaging/debian debian
st_ucx_headers "$headers" debian/ucx
maintainer=$(sed -n 's/^Maintainer: //p' debian/control)
if [ -n "${DEBEMAIL:-}" ]; then
    maintainer="${DEBFULLNAME:-$DEBEMAIL} <$DEBEMAIL>"
fi
cat >debian/changelog <<STEOF
ucx-st ($version) UNRELEASED; urgency=medium

  * Built from the sources; NEWS has what is new.

 -- $maintainer  $(date -R -r configure.ac)
STEOF
echo "debian: ucx-st $version, for UCX $ucx"
