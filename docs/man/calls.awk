# SPDX-License-Identifier: BSD-3-Clause
# Makes a manual page of each call of a header, from its comment: a page in
# scdoc's language for a function, and for a name that stands for one by the
# number of its arguments.
#
#     awk -v dir=DIR -f calls.awk HEADER...

function literal(text)
{
    gsub(/\\/, "\\\\", text)
    gsub(/\*/, "\\*", text)
    return text
}

# Text of a comment: other calls as pages, arguments in italics.
function prose(text)
{
    text = literal(text)
    while (match(text, /@ref [A-Za-z0-9_]+/))
        text = substr(text, 1, RSTART - 1) "*" \
               substr(text, RSTART + 5, RLENGTH - 5) "*(3)" \
               substr(text, RSTART + RLENGTH)
    while (match(text, /@a [A-Za-z0-9_]+/))
        text = substr(text, 1, RSTART - 1) "_" \
               substr(text, RSTART + 3, RLENGTH - 3) "_" \
               substr(text, RSTART + RLENGTH)
    return text
}

function sentence(text)
{
    return toupper(substr(text, 1, 1)) substr(text, 2)
}

# What the page's first line says of the call.
function summary(text)
{
    sub(/\. .*/, "", text)
    sub(/\.$/, "", text)
    sub(/ \(.*/, "", text)
    return tolower(substr(text, 1, 1)) substr(text, 2)
}

# Whose call it is.
function is_mpix(name) { return name ~ /^MPIX_/ }
function is_channel(name) { return name ~ /^ucp_st_(channel|msg)_/ }
function is_device(name) { return name ~ /^ucp_st_device_|_device$|^MPIX_Post/ }

# The header that programs include, and the pages about it.
function include(name, header)
{
    return is_channel(name) || (is_device(name) && header ~ /_device/) ? header : \
           is_mpix(name) ? "mpix_queue.h" : "ucp_st.h"
}

function pages(name)
{
    return is_mpix(name) ? "*mpix_queue*(3), *mpix_host*(3), " : \
           is_channel(name) ? "*ucp_st_channel*(3), " : "*ucp_st*(3), "
}

function page(name, prototype,    file, i, header)
{
    file   = dir "/" name ".3.scd"
    header = FILENAME
    sub(/.*\//, "", header)
    what[name] = summary(text[1])
    print name "(3)\n\n# NAME\n" > file
    print name " - " prose(what[name]) > file
    print "\n# SYNOPSIS\n\n*#include <" include(name, header) ">*\n" > file
    print "*" literal(prototype) "*" > file
    print "\n# DESCRIPTION\n" > file
    for (i = 1; i <= paragraphs; ++i)
        print (text[i] ~ /^```/ ? text[i] : prose(text[i])) "\n" > file
    if (params > 0) {
        print "# PARAMETERS\n" > file
        for (i = 1; i <= params; ++i)
            print "_" param_name[i] "_ (" param_dir[i] ")\n\t" \
                  prose(param_text[i]) "\n" > file
    }
    if (returns != "")
        print "# RETURN VALUE\n\n" prose(returns) "\n" > file
    if (owner != "")
        print "# OWNERSHIP\n\n" prose(sentence(owner)) "\n" > file
    if (threads != "")
        print "# THREADS\n\n" prose(sentence(threads)) "\n" > file
    print "# SEE ALSO\n\n" pages(name) header > file
    close(file)
}

# The page of a name that stands for several calls.
function forms_page(name,    file, i, target)
{
    file = dir "/" name ".3.scd"
    print name "(3)\n\n# NAME\n" > file
    print name " - " prose(what[form_target[name, 1]]) > file
    print "\n# SYNOPSIS\n\n*#include <mpix_queue.h>*\n" > file
    for (i = 1; i <= forms[name]; ++i)
        print "*" literal(form_text[name, i]) "*\n" > file
    print "# DESCRIPTION\n" > file
    print "The number of arguments tells which call it is, in C by a macro, in " \
          "C++ by overloads. Each has a page of its own.\n" > file
    for (i = 1; i <= forms[name]; ++i) {
        target = form_target[name, i]
        print "*" literal(form_text[name, i]) "*\n\t" \
              prose(sentence(what[target])) "; see *" target "*(3)\n" > file
    }
    print "# SEE ALSO\n\n*mpix_queue*(3), *mpix_host*(3), mpix_queue_batch.h" \
          > file
    close(file)
}

# Where the words of a line go: 'where' is the part of the comment, 'new' whether
# the line begins it.
function add(words, new)
{
    if (where == "text") {
        if (new) text[++paragraphs] = words
        else text[paragraphs] = text[paragraphs] " " words
    } else if (where == "param") {
        param_text[params] = param_text[params] (new ? "" : " ") words
    } else if (where == "return") {
        returns = returns (returns == "" ? "" : " ") words
    } else if (where == "owner") {
        owner = owner (owner == "" ? "" : " ") words
    } else if (where == "threads") {
        threads = threads (threads == "" ? "" : " ") words
    }
}

# A comment begins.
/^\/\*\*/ {
    in_comment = 1
    is_new     = 1
    where      = "text"
    paragraphs = params = 0
    returns = owner = threads = ""
    if (/\*\/$/)
        in_comment = has_comment = 0
    next
}

in_comment && /^ \*\// { in_comment = 0; has_comment = 1; prototype = ""; next }

# An example is a paragraph of its own, with its lines as they are
in_comment && /^ \* @code/ { where = "code"; text[++paragraphs] = "```"; next }
in_comment && /^ \* @endcode/ {
    where = "none"
    text[paragraphs] = text[paragraphs] "\n```"
    next
}
in_comment && where == "code" {
    sub(/^ \* ?/, "")
    text[paragraphs] = text[paragraphs] "\n" $0
    next
}

in_comment {
    sub(/^ \* ?/, "")
    line = $0
    sub(/^ +/, line == $0 && line ~ /^ / ? "" : "&", line)
    if (line == "") {
        is_new = 1
        if (where != "text") where = "none"
        next
    }
    if (line ~ /^@param/) {
        match(line, /\[[a-z,]+\]/)
        param_dir[++params] = substr(line, RSTART + 1, RLENGTH - 2)
        sub(/^@param *\[[a-z,]+\] */, "", line)
        param_name[params] = line
        sub(/ .*/, "", param_name[params])
        sub(/^[^ ]+ */, "", line)
        param_text[params] = ""
        where  = "param"
        is_new = 1
    } else if (line ~ /^@return/) {
        sub(/^@return */, "", line)
        where = "return"
    } else if (line ~ /^Ownership:/) {
        sub(/^Ownership: */, "", line)
        where = "owner"
    } else if (line ~ /^Threads:/) {
        sub(/^Threads: */, "", line)
        where = "threads"
    }
    sub(/^ +/, "", line)
    add(line, is_new)
    is_new = 0
    next
}

# The prototype behind a comment.
has_comment {
    prototype = prototype (prototype == "" ? "" : " ") $0
    gsub(/ +/, " ", prototype)
    sub(/^UCS_GSTREAM_FUNC /, "", prototype) # One of kernels, with its body
    sub(/\) \{.*/, ");", prototype)
    if (prototype ~ /^(typedef|enum|#|struct)/ || prototype == "") {
        has_comment = 0
    } else if (prototype ~ /;$/) {
        has_comment = 0
        if (match(prototype, /(MPIX|ucp_st)_[A-Za-z0-9_]+\(/))
            page(substr(prototype, RSTART, RLENGTH - 1), prototype)
    }
    next
}

# In C++ an overload, in C a macro: a form of a name that has several
/^static inline int MPIX_/ {
    alias = $4
    sub(/\(.*/, "", alias)
    form = $0
    sub(/^static inline /, "", form)
    in_form = !/\)$/
    next
}
in_form {
    sub(/^ +/, "")
    form    = form " " $0
    in_form = !/\)$/
    next
}
alias != "" && /return MPIX_/ {
    target = $2
    sub(/\(.*/, "", target)
    i = ++forms[alias]
    form_text[alias, i]   = form ";"
    form_target[alias, i] = target
    alias = ""
}

END {
    for (alias in forms)
        forms_page(alias)
}
