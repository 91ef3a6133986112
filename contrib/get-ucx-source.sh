#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fetches the source package of exactly the installed UCX, for its private
# headers, into .deps/ucx-VERSION.
set -euo pipefail
# shellcheck source=contrib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage()
{
    cat <<STEOF
usage: contrib/get-ucx-source.sh [--help]

Fetches the distribution's source package of the installed libucx-dev and
unpacks it into .deps/ucx-VERSION, where configure looks for UCX's private
headers. It uses an apt configuration of its own, made from this machine's
sources; the machine's configuration is not changed, and root is not needed
(except once for "apt-get update" where apt has no package lists at all).
Does nothing when the right version is there, or a tree that was unpacked there
by hand.
STEOF
}

# Sets package, version (of the source package) and release (major.minor.patch).
find_installed()
{
    command -v dpkg-query >/dev/null ||
        st_die "this is not a Debian system: unpack the source of your UCX" \
               "yourself and give configure --with-ucx-source=DIR"
    dpkg-query -W -f '${db:Status-Status}' libucx-dev 2>/dev/null |
        grep -qx installed || st_die "the package libucx-dev is not installed"
    package=$(dpkg-query -W -f '${source:Package}' libucx-dev)
    version=$(dpkg-query -W -f '${source:Version}' libucx-dev)
    binary=$(dpkg-query -W -f '${Version}' libucx-dev)
    release=$(pkg-config --modversion ucx 2>/dev/null) ||
        st_die "pkg-config does not find ucx: install pkg-config"
}

# Prints "URI SUITE/COMPONENT" of the archive that has the installed version.
find_archive()
{
    apt-cache madison libucx-dev 2>/dev/null |
        awk -F ' *\\| *' -v want="$binary" '
            { gsub(/^ +| +$/, "", $2) }
            $2 == want && $3 ~ / Packages$/ { split($3, a, " ");
                                              print a[1], a[2]; exit }'
}

# The same, after an update of the package lists if they are not there.
locate_archive()
{
    local found
    found=$(find_archive)
    if [ -z "$found" ]; then
        st_as_root apt-get -q update >&2 || st_die "apt-get update failed"
        found=$(find_archive)
    fi
    [ -n "$found" ] ||
        st_die "no package archive of this machine has libucx-dev $binary," \
               "the installed version: upgrade it, or give configure" \
               "--with-ucx-source=DIR"
    echo "$found"
}

# Prints the files in which this machine's archives are named.
source_files()
{
    local list parts file
    eval "$(apt-config shell list Dir::Etc::sourcelist/f \
                             parts Dir::Etc::sourceparts/d)"
    for file in "${list:-}" "${parts:-}"/*.list "${parts:-}"/*.sources; do
        [ -f "$file" ] && echo "$file"
    done
}

# Prints the stanza of a deb822 file for archive $2 and suite $3, without the
# fields that find_archive knows.
stanza_rest()
{
    awk -v uri="${2%/}" -v suite="$3" '
        BEGIN { RS = ""; FS = "\n" }
        {
            hit = 0; out = ""; skip = 0; has_suite = 0
            for (i = 1; i <= NF; ++i) {
                if ($i ~ /^#/) continue
                if ($i !~ /^[ \t]/) skip = 0
                if (tolower($i) ~ /^uris:/) {
                    n = split($i, u, /[ \t]+/)
                    for (k = 2; k <= n; ++k) {
                        sub(/\/$/, "", u[k]); if (u[k] == uri) hit = 1
                    }
                }
                if (tolower($i) ~ /^suites:/) {
                    n = split($i, s, /[ \t]+/)
                    for (k = 2; k <= n; ++k)
                        if (s[k] == suite) has_suite = 1
                }
                if (tolower($i) ~ /^(types|uris|suites|components|enabled|architectures):/)
                    skip = 1
                if (!skip) out = out $i "\n"
            }
            if (hit && has_suite) { printf "%s", out; exit }
        }' "$1"
}

# Prints as deb822 fields the options that a one-line entry has.
line_rest()
{
    awk -v uri="${2%/}" -v suite="$3" '
        $1 == "deb" && match($0, /\[[^]]*\]/) {
            opts = substr($0, RSTART + 1, RLENGTH - 2)
            rest = substr($0, RSTART + RLENGTH)
            split(rest, a, /[ \t]+/); sub(/\/$/, "", a[2])
            if (a[2] != uri || a[3] != suite) next
            n = split(opts, o, /[ \t]+/)
            for (i = 1; i <= n; ++i) {
                if (o[i] ~ /^signed-by=/)
                    print "Signed-By: " substr(o[i], 11)
                if (o[i] ~ /^trusted=/)
                    print "Trusted: " substr(o[i], 9)
            }
            exit
        }' "$1"
}

# Writes a source entry for the archive as the machine describes it.
write_sources()
{
    local uri=$1 suite=${2%/*} component=${2##*/} file rest=
    while IFS= read -r file; do
        case $file in
        *.sources) rest=$(stanza_rest "$file" "$uri" "$suite") ;;
        *)         rest=$(line_rest "$file" "$uri" "$suite") ;;
        esac
        [ -z "$rest" ] || break
    done < <(source_files)
    printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: %s\n' \
           "$uri" "$suite" "$component"
    [ -z "$rest" ] || printf '%s\n' "$rest"
}

# Makes the folder temp, in which root's apt can download as its own user, without
# rights: it may enter and write it.
make_temp()
{
    local user
    temp=$(mktemp -d "${TMPDIR:-/tmp}/ucx-source.XXXXXX")
    # shellcheck disable=SC2064 # the name of now is meant
    trap "rm -rf '$temp'" EXIT
    [ "$(id -u)" -eq 0 ] || return 0
    eval "$(apt-config shell user APT::Sandbox::User)"
    chown "${user:-root}" "$temp"
}

# Downloads and unpacks into the current folder, by an apt of its own.
fetch()
{
    local here=$PWD options
    mkdir -p apt/lists/partial apt/cache/archives/partial
    options=(-q -o "Dir::Etc::sourcelist=$here/apt/ucx.sources"
             -o Dir::Etc::sourceparts=/dev/null
             -o "Dir::State::lists=$here/apt/lists"
             -o "Dir::Cache=$here/apt/cache"
             -o Acquire::Languages=none -o Acquire::Retries=3)
    apt-get "${options[@]}" update ||
        st_die "the source lists could not be fetched"
    apt-get "${options[@]}" --only-source source "$package=$version" ||
        st_die "the archive lists the source package $package $version, but" \
               "it could not be fetched: unpack that source into $target" \
               "yourself"
}

main()
{
    local target archive temp unpacked
    case ${1:-} in
    -h|--help) usage; return ;;
    "") ;;
    *) usage >&2; exit 2 ;;
    esac

    find_installed
    target=$ST_TOP/.deps/ucx-$release
    if [ "$(cat "$target/.source-version" 2>/dev/null)" = "$version" ]; then
        echo "$target: UCX $version is there"
        return
    fi
    if [ -f "$target/src/uct/base/uct_iface.h" ] &&
       [ ! -e "$target/.source-version" ]; then
        echo "$target: a tree is there that was unpacked by hand"
        return
    fi
    command -v dpkg-source >/dev/null ||
        st_die "dpkg-source is missing: install the package dpkg-dev"

    archive=$(locate_archive)
    make_temp
    cd "$temp"
    mkdir apt
    # shellcheck disable=SC2086 # two words
    write_sources $archive > apt/ucx.sources
    fetch
    unpacked=$(find . -maxdepth 1 -type d -name "$package-*" | head -n 1)
    [ -f "$unpacked/src/uct/base/uct_iface.h" ] ||
        st_die "the source package $package $version has no private headers"
    echo "$version" > "$unpacked/.source-version"
    mkdir -p "$ST_TOP/.deps"
    rm -rf "$target"
    mv -T "$unpacked" "$target"
    echo "$target: UCX $version was unpacked"
}

main "$@"
