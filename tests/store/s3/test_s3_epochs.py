# ctest: TIMEOUT 300
"""Whole epochs in S3: a program that checkpoints there, is killed, restarts; the command on what it left."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import s3_proxy
from s3_server import BUCKET, BUILD, Server, install

VARVE = os.environ["VARVE_BIN"]
HEAT = BUILD / "examples" / "heat3d"
SIZE = ["--n", "40", "--steps", "60", "--every", "5"]


class World:
    def __init__(self, endpoint):
        self.store = f"s3://{BUCKET}/some/prefix"
        self.env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("AWS_")}
        self.env.update(AWS_ACCESS_KEY_ID=s3_proxy.ACCESS, AWS_SECRET_ACCESS_KEY=s3_proxy.SECRET,
                        VARVE_S3_ENDPOINT=endpoint, VARVE_S3_RETRIES="2", VARVE_KEEP="0")

    def run(self, *command, code=0, **env):
        done = subprocess.run(list(map(str, command)), env={**self.env, **env}, capture_output=True, text=True, timeout=100)
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *command):
        return json.loads(self.run(VARVE, *command, "--json"))


def checksum(text):
    return re.search(r"checksum\s+(\w+)", text).group(1)


def killed_and_restarted(w):
    """As `make demo`, with the checkpoints in S3."""
    want = checksum(w.run(HEAT, *SIZE))
    process = subprocess.Popen([str(HEAT), "--store", w.store, "--lineage", "heat", *SIZE], env=w.env,
                               stdout=subprocess.PIPE, text=True)
    lines = [process.stdout.readline() for _ in range(4)]
    assert any("epoch" in line for line in lines), lines
    process.send_signal(signal.SIGKILL)
    process.wait()
    said = w.run(HEAT, "--store", w.store, "--lineage", "heat", *SIZE)
    assert checksum(said) == want, f"{said}\nnot {want}"


def command(w):
    assert "heat" in w.run(VARVE, "ls", w.store)
    found = w.json("ls", w.store)
    assert found["bytes_disk"] == sum(x["bytes_disk"] for x in found["lineages"]) > 40 ** 3 * 8
    newest = found["lineages"][0]["epoch"]
    w.run(VARVE, "label", w.store, f"heat@{newest}", "end")
    assert w.json("show", w.store, "heat@end")["epoch"] == newest == w.json("show", w.store, "heat@latest")["epoch"]
    assert w.json("ls", w.store, "heat")["epochs"][-1]["labels"] == ["end"]
    assert "epoch" in w.run(VARVE, "show", w.store, "heat").lower()
    w.run(VARVE, "verify", w.store)
    with tempfile.TemporaryDirectory() as d:
        w.run(VARVE, "extract", w.store, "heat:T", "-o", f"{d}/T.npy")
        before = pathlib.Path(f"{d}/T.npy").read_bytes()
        w.run(VARVE, "drop", w.store, "heat", "--keep", "1")
        w.run(VARVE, "gc", w.store, "heat")
        w.run(VARVE, "verify", w.store)
        w.run(VARVE, "extract", w.store, "heat:T", "-o", f"{d}/again.npy")
        assert pathlib.Path(f"{d}/again.npy").read_bytes() == before


def refused(w):
    said = w.run(VARVE, "ls", w.store, code=2, AWS_SECRET_ACCESS_KEY="wrong")
    assert "AWS_SECRET_ACCESS_KEY" in said, said
    said = w.run(VARVE, "ls", "s3://no-such-bucket/x", code=2)
    assert "no-such-bucket" in said, said
    said = w.run(VARVE, "ls", w.store, "nobody", code=2)
    assert "nobody" in said, said
    said = w.run(VARVE, "ls", w.store, code=2, AWS_ACCESS_KEY_ID="")
    assert "AWS_ACCESS_KEY_ID" in said, said


def many_under_way(w, proxy):
    """A store that is far away is asked for many things at a time, however few cores there are."""
    env = dict(VARVE_BLOCK="16KiB", VARVE_CODEC="none", VARVE_THREADS="1")
    want = checksum(w.run(HEAT, "--store", w.store, "--lineage", "far", *SIZE, **env))
    proxy.fault(lambda method, path: method == "GET" and path.endswith(".layer"), "slow")
    for command in ([HEAT, "--store", w.store, "--lineage", "far", *SIZE], [VARVE, "verify", w.store, "far"]):
        proxy.most = 0
        said = w.run(*command, **env)
        assert proxy.most > 4, f"{command}: at most {proxy.most} requests at a time\n{said}"
        assert command[0] != HEAT or checksum(said) == want
    proxy.rules.clear()


def outage_at_restart(w, proxy):
    """Requests for the newest layer fail: that is an error, and costs no epoch. An older one would be restored, and keep=1 would delete the newest."""
    job = [HEAT, "--store", w.store, "--lineage", "away", *SIZE]
    w.run(*job, VARVE_KEEP="3")
    before = [e["epoch"] for e in w.json("ls", w.store, "away")["epochs"]]
    of_newest = lambda path: path.split("?")[0].endswith(f"/{before[-1]:010}.r0.layer")  # noqa: E731
    for what in "cut", "cut-answer", (503, s3_proxy.error("SlowDown").encode()):
        proxy.fault(lambda method, path: of_newest(path) and (method == "GET" or what != "cut-answer"), what)
        said = w.run(*job, code=1, VARVE_KEEP="1", VARVE_S3_RETRIES="1")
        assert "cannot be reached" in said and "restarted" not in said, said
        proxy.rules.clear()
        after = [e["epoch"] for e in w.json("ls", w.store, "away")["epochs"]]
        assert after == before, f"{what}: {after}, there were {before}"
    assert f"epoch {before[-1]}" in w.run(*job), "not the newest"


def outage_at_drop(w, proxy):
    """A record that cannot be read says nothing about its epoch, which is as young as the others."""
    w.run(HEAT, "--store", w.store, "--lineage", "young", *SIZE)
    before = [e["epoch"] for e in w.json("ls", w.store, "young")["epochs"]]
    for words in ("--keep-within", "7d"), ("--keep", "2"):
        of_one = f"/{before[0 if words[0] == '--keep-within' else -1]:010}.commit"
        proxy.answer(lambda method, path: method == "GET" and path.split("?")[0].endswith(of_one), 503, s3_proxy.error("SlowDown"), times=2)
        said = w.run(VARVE, "drop", w.store, "young", *words, code=2, VARVE_S3_RETRIES="1")
        assert "nothing was dropped" in said, said
        proxy.rules.clear()
        assert [e["epoch"] for e in w.json("ls", w.store, "young")["epochs"]] == before


def server_dies(w, proxy, server):
    """In the middle of a run, before its third commit: the checkpoint fails, the last whole epoch restores when the server is back."""
    commits = set()

    def kill_at_third(method, path):
        if method == "PUT" and path.endswith(".commit"):
            commits.add(path)
            if len(commits) == 3:
                server.kill()
        return False

    proxy.fault(kill_at_third, None)
    said = w.run(HEAT, "--store", w.store, "--lineage", "dies", *SIZE, code=1)
    assert len(commits) >= 3 and "s3" in said, said
    proxy.rules.clear()
    assert server.start(), "it does not start again"
    w.run(VARVE, "verify", w.store, "dies")
    assert checksum(w.run(HEAT, "--store", w.store, "--lineage", "dies", *SIZE)) == checksum(w.run(HEAT, *SIZE))


def main():
    install()
    with tempfile.TemporaryDirectory() as d:
        server = Server(pathlib.Path(d))
        proxy = s3_proxy.Proxy(server.port)
        try:
            w = World(f"http://127.0.0.1:{proxy.port}")
            for case in (killed_and_restarted, command, refused):
                case(w)
                print(case.__name__, "fine")
            many_under_way(w, proxy)
            outage_at_restart(w, proxy)
            outage_at_drop(w, proxy)
            server_dies(w, proxy, server)
        finally:
            server.kill()


main()
