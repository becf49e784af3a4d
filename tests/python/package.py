"""The package of the source tree with the library of the build. The tests are skipped where one of them, or NumPy, is missing."""
import os
import pathlib
import re
import subprocess
import sys

SOURCE, BUILD = pathlib.Path(os.environ["VARVE_SOURCE"]), pathlib.Path(os.environ["VARVE_BUILD"])
LIBRARY, INTERPOSE = BUILD / "libvarve.so.0", BUILD / "libvarve_interpose.so.0"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def sanitize():
    """A library with AddressSanitizer needs its runtime in the interpreter: the test starts again with it preloaded."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    sanitizers = re.search(r"^VARVE_SANITIZE:STRING=(.*)$", cache, re.M)[1].split(";")
    if sanitizers == [""] or "libasan" in os.environ.get("LD_PRELOAD", ""):
        return
    compiler = re.search(r"^CMAKE_C_COMPILER:\w+=(.*)$", cache, re.M)[1]
    runtime = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    if "address" not in sanitizers or not os.path.isabs(runtime):
        skip("the interpreter cannot get the runtime of this sanitizer")
    os.environ["LD_PRELOAD"] = os.path.realpath(runtime)
    os.environ["ASAN_OPTIONS"] = f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"  # the interpreter's own
    os.execv(sys.executable, [sys.executable, *sys.argv])


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
sanitize()
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
