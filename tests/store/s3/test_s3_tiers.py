#!/usr/bin/env python3
# ctest: TIMEOUT 200 COST 8
"""A tier in S3: a program goes on from it when its folder is lost, and says so when the server does not answer."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import s3_proxy
from s3_server import BUCKET, BUILD, Server, install

HEAT = (BUILD / "examples" / "heat3d", "--n", "40", "--every", "5")
TIER = f"s3://{BUCKET}/tier"
NOBODY = "http://127.0.0.1:1"  # refuses


class World:
    def __init__(self, folder, endpoint):
        self.near = folder / "near"
        self.env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith(("AWS_", "VARVE_S3"))}
        self.env.update(AWS_ACCESS_KEY_ID=s3_proxy.ACCESS, AWS_SECRET_ACCESS_KEY=s3_proxy.SECRET, VARVE_S3_ENDPOINT=endpoint, VARVE_S3_RETRIES="0")

    def run(self, *command, well=True):
        done = subprocess.run(list(map(str, command)), env=self.env, capture_output=True, text=True, timeout=100)
        assert (done.returncode == 0) == well, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def heat(self, steps, well=True):
        said = self.run(*HEAT, "--steps", steps, "--store", self.near, "--lineage", "heat", well=well)
        return re.search(r"checksum\s+(\w+)", said).group(1) if well else said

    def is_whole(self, store):
        found = json.loads(self.run(os.environ["VARVE_BIN"], "verify", store, "--json"))
        return found["n_problems"] == 0 and found["epochs"] > 0


def check(w, endpoint):
    want = re.search(r"checksum\s+(\w+)", w.run(*HEAT, "--steps", 60)).group(1)
    w.env["VARVE_TIERS"] = f"{TIER} every=2 keep=2"
    w.heat(30)
    assert w.is_whole(TIER)
    shutil.rmtree(w.near)
    assert w.heat(60) == want, "it does not continue from the tier"
    assert w.is_whole(TIER) and w.is_whole(w.near)

    w.env["VARVE_S3_ENDPOINT"] = NOBODY
    said = w.heat(60, well=False)
    assert TIER in said and "may have a newer epoch" in said, said
    shutil.rmtree(w.near)
    said = w.heat(60, well=False)
    assert TIER in said and "has no epoch" in said, said
    w.env["VARVE_S3_ENDPOINT"] = endpoint
    assert w.heat(60) == want
    assert w.is_whole(w.near)


def main():
    install()
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "server").mkdir()
        server = Server(pathlib.Path(folder) / "server")
        endpoint = f"http://127.0.0.1:{server.port}"
        try:
            check(World(pathlib.Path(folder), endpoint), endpoint)
        finally:
            server.kill()


main()
