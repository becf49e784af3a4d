"""What pyproject.toml cannot say: the package has libvarve.so, which CMake builds, and one wheel serves every Python of a platform.

    CMAKE_ARGS   more arguments for cmake, for example -DVARVE_WITH_CUDA=OFF
    VARVE_BUILD  a build folder that is there: its libraries are taken, and nothing is compiled
"""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    try:
        from wheel.bdist_wheel import bdist_wheel
    except ImportError:
        sys.exit(f"error: {sys.executable} has no package wheel, which --no-build-isolation needs; install it (Debian: python3-wheel), and make a "
                 f"virtual environment that sees it: python3 -m venv --system-site-packages DIR")

SOURCE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ("libvarve.so.0", "libvarve_interpose.so.0", "libvarve_mpi.so.0")
ABSENT = ("PYTHON", "REPORT", "FUSE", "FORTRAN", "JEMALLOC")  # not in these libraries


def cmake(*arguments):
    try:
        subprocess.run(["cmake", *map(str, arguments)], check=True)
    except FileNotFoundError:
        sys.exit("error: cmake is missing, which builds libvarve.so; install it (docs/install.md lists all that varve needs)")
    except subprocess.CalledProcessError:
        sys.exit("error: cmake could not build libvarve.so; its message is above")


def compiled(folder):
    """A build folder with the libraries."""
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not os.environ.get("CMAKE_GENERATOR") else []
    absent = [f"-DVARVE_WITH_{name}=OFF" for name in ABSENT]
    cmake("-S", SOURCE, "-B", folder, "--log-level=NOTICE", *generator, *absent, *shlex.split(os.environ.get("CMAKE_ARGS", "")))
    cmake("--build", folder, "--target", "python_libraries", "--parallel", os.cpu_count() or 1)
    return folder


class Build(build_py):
    def run(self):
        super().run()
        if getattr(self, "editable_mode", False):
            return  # the source tree stays as it is; VARVE_LIBRARY names the library
        named = os.environ.get("VARVE_BUILD")
        folder = pathlib.Path(named) if named else compiled(pathlib.Path(self.get_finalized_command("build").build_temp).resolve())
        for name in LIBRARIES:
            if (folder / name).exists():
                shutil.copyfile(folder / name, pathlib.Path(self.build_lib) / "varve" / name)
            elif name == LIBRARIES[0]:
                sys.exit(f"error: VARVE_BUILD is '{folder}', which has no {name}; build varve there, or unset it")


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Platform(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=Platform)
