#!/usr/bin/env python3
"""docs/houses.svg shows the houses as houses.py has them."""
import subprocess
import sys
import tree

done = subprocess.run([sys.executable, tree.ROOT / "tools/houses_svg.py", "--check"], capture_output=True, text=True)
tree.finish(done.stderr.split("\n")[:1] if done.returncode else [], "the picture of the houses")
