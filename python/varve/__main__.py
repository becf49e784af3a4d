"""python3 -m varve PROGRAM.py [ARGUMENT...]: runs a program with libvarve_interpose.so, so that checkpoints are stored in the background."""
import os
import sys

from ._native import INTERPOSE, is_interposed, places


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python3 -m varve PROGRAM.py [ARGUMENT...], or -m MODULE, or -c TEXT")
    place = places(INTERPOSE)[0]
    named = os.environ.get("VARVE_LIBRARY")
    if named:
        place = os.path.join(os.path.dirname(os.path.abspath(named)), INTERPOSE)
    if any(c in place for c in " :"):
        sys.exit(f"varve: the dynamic linker takes no blank and no colon in the path '{place}'")
    before = os.environ.get("LD_PRELOAD")
    if not is_interposed():
        os.environ["LD_PRELOAD"] = f"{place}:{before}" if before else place
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


main()
