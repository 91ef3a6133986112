# SPDX-License-Identifier: BSD-3-Clause
# Makes suites.am, which Makefile.am includes, from suites.list.

BEGIN {
    print "# SPDX-License-Identifier: BSD-3-Clause"
    print "# Made by suites.awk from suites.list."
    groups = " gstream wrap objects ledger st uct emu fab mpix cassini standin "
    runs = "^(once|sockets|(nics|lanes|gpus)(,(nics|lanes|gpus))*)$"
}

/^#/ || NF == 0 { next }

NF < 3 || !index(groups, " " $2 " ") || $3 !~ runs {
    print "suites.list:" FNR ": no suite's line: " $0 > "/dev/stderr"
    failed = 1
    exit
}

{
    suite = $1
    sources = (($2 == "emu" || $2 == "fab") ? "prov/" : \
               ($2 == "cassini") ? "../cassini/" : "") suite ".c"
    flags = "$(" $2 "_flags)"
    needs = ""
    for (i = 4; i <= NF; ++i) {
        if ($i ~ /^--wrap=/) {
            flags = flags " -Wl," $i
        } else if ($i == "standins") {
            needs = "$(STANDINS)"
        } else {
            sources = sources " " $i
        }
    }
    print ""
    print suite "_SOURCES = " sources " $(" $2 "_sources)"
    print suite "_LINK = $(LINK) " flags
    print suite "_LDADD = $(" $2 "_libs)"
    if (needs != "") {
        print "EXTRA_" suite "_DEPENDENCIES = " needs
    }
    if ($2 == "mpix") { # Its objects are not those of the library
        print suite "_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)"
    }

    if ($2 == "fab") {
        fab = fab " " suite
        emulated = emulated " " suite ".strict " suite ".fast"
        cxi = cxi " " suite ".cxi"
        sockets = sockets ($3 == "sockets" ? " " suite ".sockets" : "")
    } else if ($2 == "mpix") {
        mpix = mpix " " suite
    } else if ($2 == "cassini") {
        cassini = cassini " " suite
    } else {
        once = once " " suite
    }
}

END {
    if (failed) {
        exit 1
    }
    print ""
    print "ST_SUITES =" once
    print "CASSINI_SUITES =" cassini
    print "MPIX_SUITES =" mpix
    print "FAB_SUITES =" fab
    print "FAB_EMULATED_TESTS =" emulated
    print "FAB_CXI_TESTS =" cxi
    print "FAB_SOCKETS_TESTS =" sockets
}
