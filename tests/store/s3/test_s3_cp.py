#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 26
"""varve cp between a directory and S3: there and back, bit by bit; killed, or with a server that fails, it can be repeated."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import s3_proxy
from s3_server import BUCKET, BUILD, Server, install

VARVE = os.environ["VARVE_BIN"]
HEAT = BUILD / "examples" / "heat3d"
SIZE = ["--n", "40", "--every", "5"]


class World:
    def __init__(self, folder, endpoint):
        self.folder = folder
        self.remote = f"s3://{BUCKET}/archive"
        self.env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("AWS_")}
        self.env.update(AWS_ACCESS_KEY_ID=s3_proxy.ACCESS, AWS_SECRET_ACCESS_KEY=s3_proxy.SECRET, VARVE_S3_ENDPOINT=endpoint,
                        VARVE_S3_RETRIES="2", VARVE_KEEP="0")

    def run(self, *command, code=0):
        done = subprocess.run(list(map(str, command)), env=self.env, capture_output=True, text=True, timeout=100)
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *command):
        return json.loads(self.run(VARVE, *command, "--json"))

    def heat(self, *words):
        return re.search(r"checksum\s+(\w+)", self.run(HEAT, *SIZE, *words)).group(1)


def objects(store):
    return {str(p.relative_to(store)): p.read_bytes() for p in sorted(store.rglob("*")) if p.suffix in (".layer", ".commit") or p.name == "lineage"}


def there_and_back(w):
    here, back = w.folder / "here", w.folder / "back"
    want = w.heat("--steps", "60")
    w.heat("--steps", "30", "--store", here, "--lineage", "heat")
    found = w.json("cp", here, w.remote, "heat")
    assert found["epochs"] == found["layers"] > 1, found
    assert w.json("cp", here, w.remote, "heat")["layers"] == 0
    assert w.json("verify", w.remote)["n_problems"] == 0
    w.run(VARVE, "cp", w.remote, back, "heat")
    assert objects(here) == objects(back)
    assert w.heat("--steps", "60", "--store", back, "--lineage", "heat") == want, "the copy does not continue"
    more = w.json("cp", back, w.remote, "heat")
    assert more["epochs"] and more["epochs_there"] == found["epochs"], more
    assert w.heat("--steps", "60", "--store", w.remote, "--lineage", "heat") == want


def interrupted(w, proxy):
    """The server fails at each request in turn, and at some the command is killed."""
    source, goal = w.folder / "back", f"s3://{BUCKET}/interrupted"
    for at in range(0, 60, 6):
        count = [0]

        def is_due(method, path):
            count[0] += method == "PUT"
            return count[0] > at

        proxy.fault(is_due, "cut")
        p = subprocess.Popen([VARVE, "cp", str(source), goal, "heat"], env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if at % 12:
            time.sleep(0.2)
            p.kill()
        p.wait()
        proxy.rules.clear()
        time.sleep(0.05)
        if "heat" in subprocess.run([VARVE, "ls", goal], env=w.env, capture_output=True, text=True).stdout:
            assert w.json("verify", goal)["n_problems"] == 0
    for _ in range(100):  # the lock of a killed process
        p = subprocess.run([VARVE, "cp", str(source), goal, "heat"], env=w.env, capture_output=True, text=True)
        if p.returncode == 0:
            break
        assert "being written" in p.stderr or "lock" in p.stderr, p.stderr
        time.sleep(1)
    assert p.returncode == 0, p.stderr
    back = w.folder / "again"
    w.run(VARVE, "cp", goal, back, "heat")
    assert objects(back) == objects(source)


def damaged(w, directory):
    """A damaged layer in S3 is named, and does not arrive."""
    epoch = w.json("ls", w.remote, "heat")["epochs"][-1]["epoch"]
    hit = [p for p in directory.rglob(f"*{epoch:010}.r0.layer*") if "archive" in str(p) and p.is_file() and p.stat().st_size > 1000]
    assert hit, list(directory.rglob("*"))[:20]
    data = bytearray(hit[0].read_bytes())
    data[100] ^= 1
    hit[0].write_bytes(data)
    goal = w.folder / "damaged"
    said = w.run(VARVE, "cp", w.remote, goal, "heat", code=1)
    assert f"{epoch:010}.r0.layer" in said and f"epoch {epoch} is not copied" in said, said
    assert w.json("verify", goal)["n_problems"] == 0


def main():
    install()
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        (folder / "server").mkdir()
        server = Server(folder / "server")
        proxy = s3_proxy.Proxy(server.port)
        try:
            w = World(folder, f"http://127.0.0.1:{proxy.port}")
            there_and_back(w)
            print("there and back: fine")
            interrupted(w, proxy)
            print("interrupted: fine")
            damaged(w, folder / "server")
        finally:
            server.kill()


main()
