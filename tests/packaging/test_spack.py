#!/usr/bin/env python3
"""The Spack package is Python that Spack can read, and its variants are the optional parts of the build."""
import os
import pathlib
import py_compile
import re
import sys
import tempfile
import types

SOURCE, BUILD = (pathlib.Path(os.environ[name]) for name in ("VARVE_SOURCE", "VARVE_BUILD"))
PACKAGE = SOURCE / "packaging/spack/packages/varve/package.py"
CACHE = (BUILD / "CMakeCache.txt").read_text()


def expect(what, got, wanted):
    print(f"{what}: {got}")
    if got != wanted:
        sys.exit(f"{what}: wanted {wanted}")


class Recorder:
    """Spack's words in a package, written down."""

    def __init__(self):
        self.said = {}

    def module(self):
        m = types.ModuleType("spack.package")
        for word in ("license", "version", "variant", "depends_on", "requires", "conflicts"):
            setattr(m, word, lambda *args, word=word, **named: self.said.setdefault(word, []).append((args, named)))
        m.CMakePackage = type("CMakePackage", (), {
            "define": lambda self, name, value: f"-D{name}={value}",
            "define_from_variant": lambda self, name, variant: f"-D{name}={variant}"})
        m.CudaPackage = type("CudaPackage", (), {})
        self.said["variant"] = [(("cuda",), {"default": False})]  # CudaPackage has it
        return m

    def names(self, word):
        return [args[0] for args, _ in self.said[word]]


def load(recorder):
    """The class of the package. `spack audit` does more, where Spack is."""
    sys.modules["spack"] = types.ModuleType("spack")
    sys.modules["spack.package"] = recorder.module()
    space = {}
    exec(compile(PACKAGE.read_text(), str(PACKAGE), "exec"), space)
    return space["Varve"]


class Spec:
    """With all variants, and cuda_arch=90."""
    variants = {"cuda_arch": types.SimpleNamespace(value=("90",))}

    def satisfies(self, text):
        return True

    def __getitem__(self, name):
        return types.SimpleNamespace(prefix=types.SimpleNamespace(include=f"/{name}/include"))


def arguments(package):
    """The words for CMake."""
    p = package()
    p.spec = Spec()
    return dict(word[2:].split("=", 1) for word in p.cmake_args())


with tempfile.TemporaryDirectory() as folder:
    py_compile.compile(str(PACKAGE), cfile=f"{folder}/package.pyc", doraise=True)
recorder = Recorder()
given = arguments(load(recorder))
options = {name: name.removeprefix("VARVE_WITH_").lower() for name in re.findall(r"^(VARVE_WITH_\w+):STRING=", CACHE, re.M)}
expect("options of CMake, and the variants that set them", {k: v for k, v in given.items() if k.startswith("VARVE_")}, options)
expect("variants", sorted(recorder.names("variant")), sorted(options.values()))
known = set(re.findall(r"^(\w+):\w+=", CACHE, re.M)) | {"CMAKE_CUDA_ARCHITECTURES"}
expect("arguments that CMake does not know", sorted(set(given) - known), [])
conditions = [named["when"] for word in ("depends_on", "conflicts") for _, named in recorder.said[word] if "when" in named]
expect("conditions on no variant", [c for c in conditions if c.lstrip("+~") not in options.values()], [])
wanted = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", (SOURCE / "CMakeLists.txt").read_text())[1]
expect("CMake of the needed version", f"cmake@{wanted}:" in recorder.names("depends_on"), True)
expect("repository", "namespace: varve" in (SOURCE / "packaging/spack/repo.yaml").read_text(), True)
