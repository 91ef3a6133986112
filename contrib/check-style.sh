#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks the rules of style that a script can check.
# usage: contrib/check-style.sh [--diff] [--words [PATH...]]
#   --diff   also show what clang-format would change since HEAD (advice only)
#   --words  only list the words that docs/glossary.md has replaced, in PATHs
#            (default: all files); status 1 if there are any
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

max_function=100
max_params=5
max_file=800
max_line=80
max_median=20
max_p90=60
max_cell=420
status=0

# Words of ours that the field has another word for: docs/glossary.md. Names in
# the code count, too ("_" ends a word).
old_words='bells?|kick(s|ed|er|ers|ing)?|promise[sd]?|promising|desks?|limbo'
old_words+='|zombies?|graves?|(im)?patien(t|tly|ce)|doze[sd]?|dozing'
old_words+='|rouse[sd]?|rousing|nudge[sd]?|nudging|naps?|napping'
# A sentence names what acts: "the receiver copies", not "who receives copies"
old_who='(?<!those )(?<!people )(?<!users )(?<![a-z_])who [a-z]'

complain()
{
    echo "$*"
    status=1
}

# Every file that we wrote in a language with comments
all_files()
{
    find src contrib bench examples test docs config .ci -type f \
        \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.am' \
           -o -name '*.m4' -o -name '*.scd' -o -name '*.pml' \
           -o -name ucx-st-run -o -name 'st-trace-*' -o -name run \
           -o -name run-all \) \
        -not -path 'config/aux/*' -not -name 'libtool.m4' -not -name 'lt*.m4' -not -path '*/.*/*' |
        sort
    echo configure.ac
    echo Makefile.am
    echo autogen.sh
}

check_file_rules()
{
    local file lines
    while IFS= read -r file; do
        head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' ||
            complain "$file: no SPDX line at its top"
        lines=$(wc -l < "$file")
        [ "$lines" -le $max_file ] ||
            complain "$file: $lines lines (at most $max_file)"
        ! grep -nP '\t' "$file" /dev/null | grep -qE '\.([ch]|pml):' ||
            complain "$file: has tabs"
        # check_c_rules() looks at the lines of C
        [[ $file != *.pml ]] || ! grep -qE ".{$((max_line + 1))}" "$file" ||
            complain "$file: has lines above $max_line columns"
        ! grep -qE ' +$' "$file" || complain "$file: has spaces at line ends"
    done < <(all_files)
}

# Length and parameters of functions, and lines, of the C files.  A function's
# body is between a "{" and a "}" in the first column.  Tables that others
# define (UCT, UCP and libfabric functions, MPI calls, UCX's class macros, the
# runtimes of GPUs) set the parameters of the functions in them, and so does the C library.
# shellcheck disable=SC2016 # the dollars are of awk
check_c_rules()
{
    find src contrib bench examples test -name '*.[ch]' \
        -not -path '*/.*/*' | sort |
    xargs awk -v max_fn=$max_function -v max_par=$max_params \
              -v max_line=$max_line '
        function params(sig,   i, c, depth, n, open) {
            n = 0; depth = 0; open = 0
            for (i = 1; i <= length(sig); ++i) {
                c = substr(sig, i, 1)
                if (c == "(") { if (++depth == 1) { open = 1; n = 1 } }
                else if (c == ")") { if (--depth == 0 && open) return n }
                else if (c == "," && depth == 1) ++n
            }
            return n
        }
        function name_of(sig) {
            if (match(sig, /[A-Za-z_0-9]+ *\(/))
                return substr(sig, RSTART, RLENGTH - 1)
            return "?"
        }
        FNR == 1 { sig = ""; inside = 0 }
        length($0) > max_line {
            printf "%s:%d: %d columns\n", FILENAME, FNR, length($0); bad = 1
        }
        /ucp_stream_/ {
            printf "%s:%d: ucp_stream_ is a name of UCP\n", FILENAME, FNR
            bad = 1
        }
        /^\{/ && sig ~ /\(/ && sig !~ /^(typedef|struct|enum|union)/ {
            inside = 1; start = FNR; fn = name_of(sig); np = params(sig)
            foreign = sig ~ /UCS_CLASS|UCS_F_|CU_|^MPIX?_|MPIX?_[A-Z]/ ||
                      fn ~ /_(am_zcopy|am_short|put_zcopy|get_bcopy|get_zcopy)$/ ||
                      fn ~ /_(atomic[a-z0-9_]*|am_short_iov|connect_to_ep_v2)$/ ||
                      fn ~ /^ucp_tag_|^ucp_am_send_nbx$|_am_handler$|(^fi|_emu)_getinfo$/ ||
                      sig ~ /^static ucs_log_func_rc_t/ || fn ~ /^cxil_/ ||
                      (FILENAME ~ /\/st_intercept/ && fn ~ /^mmap/) ||
                      fn ~ /^process_vm_/ ||
                      fn ~ /^(cu|hip)[A-Z]/ ||
                      (FILENAME ~ /src\/prov\/|\/fab_intercept/ &&
                       sig ~ /struct fi(d|_info)/)
            if (np > max_par && !foreign) {
                printf "%s:%d: %s has %d parameters (at most %d)\n",
                       FILENAME, FNR, fn, np, max_par
                bad = 1
            }
            next
        }
        /^\}/ && inside {
            len = FNR - start - 1
            print len > lengths
            if (len > max_fn) {
                printf "%s:%d: %s has %d lines (at most %d)\n", FILENAME,
                       start, fn, len, max_fn
                bad = 1
            }
            inside = 0; sig = ""; next
        }
        !inside {
            if ($0 ~ /^[ \t]*$/ || $0 ~ /[;}]$/ || $0 ~ /^#/ ||
                $0 ~ /^ ?[\/*]/)
                sig = ""
            else
                sig = sig " " $0
            sub(/^ +/, "", sig)
        }
        END { exit bad }' lengths="$1"
}

# Median and 90th percentile of the function lengths.
check_lengths()
{
    local count median p90
    count=$(wc -l < "$1")
    [ "$count" -gt 0 ] || return 0
    median=$(sort -n "$1" | sed -n "$(((count + 1) / 2))p")
    p90=$(sort -n "$1" | sed -n "$(((count * 9 + 9) / 10))p")
    echo "$count functions: median $median, 90th percentile $p90 lines"
    [ "$median" -le $max_median ] ||
        complain "the median function is above $max_median lines"
    [ "$p90" -le $max_p90 ] ||
        complain "the 90th percentile is above $max_p90 lines"
}

# Where old words are; this file has to name them.
list_old_words()
{
    local paths=("$@")

    [ ${#paths[@]} -gt 0 ] ||
        paths=(src contrib bench examples test docs config README.md
               CONTRIBUTING.md NEWS)
    grep -rnPiI --exclude=check-style.sh --exclude-dir='.*' \
        --exclude-dir=aux --exclude='libtool.m4' --exclude='lt*.m4' \
        --exclude=Makefile.in --exclude=suites.am \
        "(?<![a-z])($old_words)(?![a-z])|$old_who" \
        "${paths[@]}"
}

# The files, functions and types that documents name exist.
# shellcheck disable=SC2016 # the backquotes are of Markdown
check_docs_names()
{
    local name files where=(src contrib/openmpi test bench)
    files=$(all_files)
    while IFS= read -r name; do
        grep -rqw --include='*.[ch]' --include='*.pml' -- "$name" \
            "${where[@]}" ||
            complain "documents name $name, which no source has"
    done < <(grep -ohP '`\K(ucp_st|uct|ucs|gstream|cxiemu|MPIX)_\w+(?=(\(\))?`)' \
                 README.md CONTRIBUTING.md docs/*.md | sort -u)
    while IFS= read -r name; do
        grep -qE "(^|/)$name\$" <<<"$files" ||
            complain "documents name $name, which is no file"
    done < <(grep -ohP '`\K[\w/-]+\.[ch](?=`)' \
                 README.md CONTRIBUTING.md docs/*.md | sort -u)
}

# Anchors of a document's headings.
anchors_of()
{
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# Links of documents lead to files and headings that are there.
check_docs_links()
{
    local file link path
    for file in README.md CONTRIBUTING.md docs/*.md contrib/*/README.md \
                test/*/README.md; do
        while IFS= read -r link; do
            path=${link%%#*}
            path=${path:+$(dirname "$file")/$path}
            path=${path:-$file}
            if [ ! -e "$path" ]; then
                complain "$file: there is no $link"
            elif [[ $link = *#* ]] &&
                 ! anchors_of "$path" | grep -qxF -- "${link#*#}"; then
                complain "$file: $link has no such heading"
            fi
        done < <(grep -ohP '\]\(\K(?!https?:)[^) ]+(?=\))' "$file")
    done
}

# The cells of documents' tables are short; details are in the text.
check_docs_cells()
{
    local cell
    while IFS= read -r cell; do
        complain "a table has a cell of $cell"
    done < <(awk -F '|' -v max=$max_cell '/^\|/ {
                 for (i = 1; i <= NF; ++i)
                     if (length($i) > max)
                         printf "%d characters: %s:%d\n", length($i), FILENAME,
                                FNR
             }' README.md CONTRIBUTING.md docs/*.md)
}

show_format_diff()
{
    command -v git-clang-format-14 >/dev/null ||
        { echo "(clang-format 14 is not installed)"; return; }
    git-clang-format-14 --diff HEAD -- '*.c' '*.h' || true
}

if [ "${1:-}" = --words ]; then
    if list_old_words "${@:2}"; then
        exit 1
    fi
    exit 0
fi

lengths=$(mktemp)
# shellcheck disable=SC2064 # the name of now is meant
trap "rm -f '$lengths'" EXIT
! list_old_words || complain "old words: docs/glossary.md has the new ones"
check_file_rules
check_c_rules "$lengths" || status=1
check_lengths "$lengths"
check_docs_names
check_docs_links
check_docs_cells
[ "${1:-}" != --diff ] || show_format_diff
exit $status
