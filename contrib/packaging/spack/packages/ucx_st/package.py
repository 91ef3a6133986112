# SPDX-License-Identifier: BSD-3-Clause
"""Spack's recipe of UCX-ST; contrib/packaging/README.md says how it is used."""

import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class UcxSt(AutotoolsPackage):
    """Messages in the order of a stream, for UCX and MPI: the stream triggers
    the network card, and no host thread waits."""

    # There is no archive of a release yet: "spack develop" names a tree

    license("BSD-3-Clause")

    version("0.1.0")

    variant("mpi", default=True, description="The MPI layer and its benchmarks")
    variant("fortran", default=True, when="+mpi", description="The Fortran module")
    variant("cxiemu", default=True, description="The emulated network card")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", when="+fortran", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("gawk", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("libfabric@1.17:")
    depends_on("libfabric@1.21: fabrics=cxi", when="~cxiemu")
    depends_on("ucx@1.13:1.22 +thread_multiple")
    depends_on("mpi", when="+mpi")
    requires("^[virtuals=mpi] openmpi", "^[virtuals=mpi] mpich", policy="one_of", when="+mpi")

    # The private headers of UCX, which Spack's package does not install: those of
    # the same minor version
    for ucx_version, sha256 in (
        ("1.22.0", "258941cddd14ca60d38c0d31b9b09ec1052c901086841011a498da8b55a3cb24"),
        ("1.21.0", "2374d2fcf3186fbfd5e27633ab153aabaeb6b4f503a88563d2aca67cf51ed2c1"),
        ("1.20.1", "545c419a7b5e04643cb8bff5a19b3b5071a8f8f0605f1e8efb36f8f3d7bfb9d3"),
        ("1.19.1", "dea5d821fce05b6ffe175a74e6e148386dd85791409fc71242f3d1369100fd8a"),
        ("1.18.1", "8018dd75f11b5e8d6e57dcdb5b798d2c1f000982c353efde1f3170025c6c3b4c"),
        ("1.17.0", "34658e282f99f89ce7a991c542e9727552734ac6ad408c52f22b4c2653b04276"),
        ("1.16.0", "f73770d3b583c91aba5fb07557e655ead0786e057018bfe42f0ebe8716e9d28c"),
        ("1.15.0", "4b202087076bc1c98f9249144f0c277a8ea88ad4ca6f404f94baa9cb3aebda6d"),
        ("1.14.1", "baa0634cafb269a3112f626eb226bcd2ca8c9fcf0fec3b8e2a3553baad5f77aa"),
        ("1.13.1", "efc37829b68e131d2acc82a3fd4334bfd611156a756837ffeb650ab9a9dd3828"),
    ):
        resource(
            name="ucx-source",
            url="https://github.com/openucx/ucx/releases/download/"
            "v{0}/ucx-{0}.tar.gz".format(ucx_version),
            sha256=sha256,
            destination="",
            placement="ucx-source",
            when="^ucx@" + ucx_version.rpartition(".")[0],
        )

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()

    def configure_args(self):
        spec = self.spec
        args = [
            "--with-ucx=" + spec["ucx"].prefix,
            "--with-libfabric=" + spec["libfabric"].prefix,
            "--without-cunit",
            "--disable-werror",
        ]
        # A tree of "spack develop" has no resources, but .deps/ucx-VERSION
        source = join_path(self.stage.source_path, "ucx-source")
        if os.path.isdir(source):
            args.append("--with-ucx-source=" + source)
        if spec.satisfies("+mpi"):
            args.append("--with-mpi=" + spec["mpi"].prefix)
        else:
            args.append("--without-mpi")
        args.append("FC=" + (spec["mpi"].mpifc if spec.satisfies("+fortran") else "no"))
        if spec.satisfies("~cxiemu"):
            args.append("--without-cxiemu")
        return args

    def test_info(self):
        """the program that tells of devices and lanes starts"""
        which(self.prefix.bin.ucx_st_info)("-l")
