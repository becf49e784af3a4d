"""The package of the source tree with the library of the build. The tests are skipped where one of them, or NumPy, is missing."""
import os
import pathlib
import sys

SOURCE, BUILD = pathlib.Path(os.environ["VARVE_SOURCE"]), pathlib.Path(os.environ["VARVE_BUILD"])
LIBRARY, INTERPOSE = BUILD / "libvarve.so.0", BUILD / "libvarve_interpose.so.0"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def numpy():
    try:
        import numpy
        return numpy
    except ImportError:
        system = "/usr/bin/python3"  # the system's, where another one comes first in PATH
        if sys.executable != system and os.path.exists(system):
            os.execv(system, [system, *sys.argv])
        skip(f"no NumPy for {sys.executable} (package python3-numpy)")


if not LIBRARY.exists():
    skip("libvarve.so is not built")
if "VARVE_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text():
    skip("a sanitizer in the library must be in the interpreter, too")
os.environ["VARVE_LIBRARY"] = str(LIBRARY)
os.environ["PYTHONPATH"] = str(SOURCE / "python")
sys.path.insert(0, os.environ["PYTHONPATH"])


def torch():
    """PyTorch, on one thread: the machines of tests are small."""
    numpy()
    try:
        import torch
    except ImportError:
        skip(f"no PyTorch for {sys.executable} (package python3-torch)")
    torch.set_num_threads(1)
    return torch
