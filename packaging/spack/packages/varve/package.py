# spack repo add packaging/spack, then: spack install varve. docs/install.md has more.
from spack.package import *


class Varve(CMakePackage, CudaPackage):
    """Checkpoint-restart that stores only changed data, in the background."""

    license("BSD-3-Clause")

    # No release is published yet. The sources are those around this file:
    #   spack dev-build varve@main    in the source tree
    version("main")

    variant("zstd", default=True, description="Compression with zstd")
    variant("lz4", default=True, description="Compression with lz4")
    variant("zlib", default=True, description="Chunks of HDF5 files that deflate has compressed")
    variant("szip", default=False, description="Chunks of HDF5 files that szip has compressed (libaec)")
    variant("isal", default=False, description="Parity at the speed of memory (isa-l)")
    variant("curl", default=True, description="Stores in S3")
    variant("fuse", default=False, description="varve mount")
    variant("mpi", default=True, description="libvarve_mpi and varve-mpi, for many ranks")
    variant("fortran", default=True, description="Fortran modules")
    variant("jemalloc", default=False, description="libvarve_preload, for programs that declare nothing")
    variant("report", default=False, description="The page of 'varve report'; needs npm and a network")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("xxhash")
    depends_on("zstd", when="+zstd")
    depends_on("lz4", when="+lz4")
    depends_on("zlib-api", when="+zlib")
    depends_on("libaec", when="+szip")
    depends_on("isa-l", when="+isal")
    depends_on("curl", when="+curl")
    depends_on("libfuse@3.12:", when="+fuse")
    depends_on("mpi@3:", when="+mpi")
    depends_on("cuda@11.8:", when="+cuda")
    depends_on("jemalloc", when="+jemalloc")
    depends_on("node-js", type="build", when="+report")
    depends_on("npm", type="build", when="+report")

    requires("platform=linux")
    conflicts("%gcc@:11", when="+fortran", msg="the Fortran modules need gfortran 12 or later")

    def cmake_args(self):
        names = ("zstd", "lz4", "zlib", "szip", "isal", "curl", "fuse", "mpi", "cuda", "fortran", "jemalloc", "report")
        args = [self.define_from_variant(f"VARVE_WITH_{name.upper()}", name) for name in names]
        args.append(self.define("XXHASH_INCLUDE_DIR", self.spec["xxhash"].prefix.include))
        if self.spec.satisfies("+cuda") and self.spec.variants["cuda_arch"].value != ("none",):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args

    # the target install would build the examples, tests and benchmarks first
    build_targets = ["installed"]

    def install(self, spec, prefix):
        cmake("--install", self.build_directory)
