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


def main():
    stores = sorted(path for path in (source / "tests/golden").iterdir() if path.is_dir())
    assert stores, "no golden store"
    if codecs_missing():
        print("skipped: built without", ", ".join(codecs_missing()))
        sys.exit(77)
    folder = pathlib.Path(tempfile.mkdtemp(dir=build))
    try:
        for golden in stores:
            shutil.copytree(golden, folder / golden.name)
            check(folder / golden.name)
            print(golden.name, "decodes")
    finally:
        shutil.rmtree(folder)


main()
