# SPDX-License-Identifier: BSD-3-Clause
# Not for Automake, which would take these lines for rules.
#
# What libtool says of each library and program that it installs ("relinking",
# "remember to run", "has not been installed in") asks for nothing to be done.
# For these targets alone: with this option libtool 2.4.7 compiles and links
# without end, so what they depend on must not have it.
install-libLTLIBRARIES install-componentLTLIBRARIES install-providerLTLIBRARIES \
install-binPROGRAMS install-pkglibexecPROGRAMS: \
    private AM_LIBTOOLFLAGS = --warnings=none
