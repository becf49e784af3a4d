#!/usr/bin/env python3
"""Before and after the tests: suite.py begin|end PLACE. Ranks of MPI have their shared memory in PLACE, which is removed with whatever killed ones left there.
Outside of it nothing may be left of the tests, or of programs that they start."""
import fnmatch
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

LIST = pathlib.Path(os.environ["VARVE_BUILD"]) / "tests" / "suite.json"
NAMES = ("varve-*", "vader_segment.*", "sm_segment.*", "ompi.*", "pmix*", "*org.chromium.*", "*com.google.Chrome.*")
PATIENCE = 10  # seconds: what was killed may still be ending


def found():
    """What lies about that a test may have made, and is this user's."""
    paths = set()
    for folder in {tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"}:
        for path in pathlib.Path(folder).glob("*"):
            if any(fnmatch.fnmatch(path.name, name) for name in NAMES) and not path.name.startswith("varve-suite-"):
                try:
                    paths |= {str(path)} if path.lstat().st_uid == os.getuid() else set()
                except FileNotFoundError:
                    pass
    return paths


def others():
    """Does a suite of another build run on this machine? Then nobody can tell whose something is."""
    own = f"VARVE_BUILD={os.environ['VARVE_BUILD']}".encode()
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            words = [word for word in path.read_bytes().split(b"\0") if word.startswith(b"VARVE_BUILD=")]
        except OSError:
            continue
        if words and own not in words:
            return True
    return False


def begin(place):
    place.mkdir(exist_ok=True)
    place.chmod(0o711)  # some tests have children of another user
    LIST.write_text(json.dumps({"found": sorted(found()), "others": others()}))


def end(place):
    shutil.rmtree(place, ignore_errors=True)
    before = json.loads(LIST.read_text())
    limit = time.monotonic() + PATIENCE
    while left := found() - set(before["found"]):
        if before["others"] or others():
            print("not compared: another build's tests run on this machine")
            return 0
        if time.monotonic() > limit:
            break
        time.sleep(0.2)
    for path in sorted(left):
        print(f"left behind: {path}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit({"begin": begin, "end": end}[sys.argv[1]](pathlib.Path(sys.argv[2])))
