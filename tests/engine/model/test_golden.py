"""Every golden store decodes: by the library, by `varve verify`, and by the independent reader."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

build, source = pathlib.Path(os.environ["VARVE_BUILD"]), pathlib.Path(os.environ["VARVE_SOURCE"])


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def codecs_missing():
    shown = run(os.environ["VARVE_BIN"], "config").stdout
    return [codec for codec in ("lz4", "zstd") if codec not in shown]


def check(store):
    for command in ([build / "tests/golden_check", "check", store], [os.environ["VARVE_BIN"], "verify", store],
                    [sys.executable, source / "tools/layer_read.py", "check", store]):
        done = run(*command)
        assert done.returncode == 0, "%s: %s%s" % (command, done.stdout, done.stderr)


def refuse(store):
    """A build that lacks a codec says so, and gives nothing wrong."""
    for command in ([build / "tests/golden_check", "check", store], [os.environ["VARVE_BIN"], "verify", store]):
        done = run(*command)
        told = done.stdout + done.stderr
        assert done.returncode == 1 and "built without" in told, "%s: %d, %s" % (command, done.returncode, told)


def main():
    stores = sorted(path for path in (source / "tests/golden").iterdir() if path.is_dir())
    assert stores, "no golden store"
    able = not codecs_missing()
    folder = pathlib.Path(tempfile.mkdtemp(dir=build))
    try:
        for golden in stores:
            shutil.copytree(golden, folder / golden.name)
            (check if able else refuse)(folder / golden.name)
            print(golden.name, "decodes" if able else "is refused: built without " + ", ".join(codecs_missing()))
    finally:
        shutil.rmtree(folder)


main()
