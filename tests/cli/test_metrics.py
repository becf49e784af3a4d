#!/usr/bin/env python3
"""The option `metrics`: files that Prometheus reads, complete at any moment, with the figures of the session."""
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

import command

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'({NAME})\{{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)+)\}} (\d+(?:\.\d+)?)')
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
METRICS = {
    "varve_session_open": "gauge", "varve_session_start_time_seconds": "gauge", "varve_epoch": "gauge",
    "varve_epoch_durable_time_seconds": "gauge", "varve_memory_bytes": "gauge", "varve_epochs_total": "counter",
    "varve_epoch_failures_total": "counter", "varve_restarts_total": "counter", "varve_new_bytes_total": "counter",
    "varve_stored_bytes_total": "counter", "varve_layer_bytes_total": "counter", "varve_blocked_seconds_total": "counter",
    "varve_flush_seconds_total": "counter"}
PAGES = 64


def parse(data):
    """({name: value}, labels) of a file in the text format 0.0.4: strictly, with HELP and TYPE in front of each metric, once."""
    text = data.decode()
    assert text.endswith("\n") and "\n\n" not in text, text
    values, labels, lines = {}, None, text[:-1].split("\n")
    for help_line, type_line, sample in triples(lines):
        name = re.fullmatch(rf"# HELP ({NAME}) (\S.*\.)", help_line)[1]
        kind = re.fullmatch(rf"# TYPE {name} (counter|gauge)", type_line)[1]
        found = SAMPLE.fullmatch(sample)
        assert found and found[1] == name and name not in values, sample
        assert METRICS[name] == kind and (kind == "counter") == name.endswith("_total"), name
        pairs = LABEL.findall(found[2])
        own = {key: re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value) for key, value in pairs}
        assert len(own) == len(pairs) and labels in (None, own), sample
        labels, values[name] = own, float(found[3])
    return values, labels


def triples(lines):
    assert len(lines) % 3 == 0, lines
    return zip(lines[::3], lines[1::3], lines[2::3])


class Tiers(command.Case):
    def test_newest_epoch_of_each(self):
        metrics, tier, other = self.folder / "node", self.folder / "tier", self.folder / "other"
        metrics.mkdir()
        for i in range(5):
            self.file("data", command.noise(4096))
            self.varve("pack", "-o", f"metrics={metrics}", "-o", f"tiers={tier} every=2; {other} every=3", self.store, "a", "data")
        text = (metrics / "varve-a.r0.prom").read_text()
        self.assertEqual(text.count("# TYPE varve_tier_epoch gauge\n"), 1)
        found = re.findall(r'\nvarve_tier_epoch\{store="([^"]*)",lineage="a",rank="0"\} (\d+)(?=\n)', text)
        self.assertEqual(found, [(str(tier), "4"), (str(other), "3")])


class Metrics(command.Case):
    def setUp(self):
        super().setUp()
        self.metrics = self.folder / "node"
        self.metrics.mkdir()
        self.file("data", command.noise(PAGES * 4096))

    def read(self, rank=0, lineage="heat"):
        path = self.metrics / f"varve-{lineage}.r{rank}.prom"
        data = path.read_bytes()
        if shutil.which("promtool"):
            p = subprocess.run(["promtool", "check", "metrics"], input=data, capture_output=True)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return parse(data)

    def options(self, more=""):
        return f"metrics={self.metrics} codec=none {more}"

    def lay_down(self, *words, **more):
        return self.write("region", "T", "bytes", PAGES * 4096, "load", "T", "data", *words, options=self.options(), **more)

    def test_figures(self):
        before = time.time()
        self.assertEqual(self.lay_down("checkpoint", "tick", "T", 2, "checkpoint"), [1, 4])
        m, labels = self.read()
        self.assertEqual(set(m), set(METRICS))
        self.assertEqual(labels, {"store": str(self.store), "lineage": "heat", "rank": "0"})
        self.assertEqual([m[f"varve_{k}"] for k in ("session_open", "epoch", "epochs_total", "epoch_failures_total", "restarts_total")], [0, 4, 4, 0, 0])
        self.assertEqual([m[f"varve_{k}"] for k in ("memory_bytes", "new_bytes_total", "stored_bytes_total")],
                         [PAGES * 4096, (PAGES + 2) * 4096, (PAGES + 2) * 4096])
        layers = [p.stat().st_size for p in (self.store / "heat").rglob("*.layer")]
        self.assertEqual(m["varve_layer_bytes_total"], sum(layers))
        self.assertGreater(m["varve_blocked_seconds_total"], 0)
        self.assertGreater(m["varve_flush_seconds_total"], 0)
        self.assertTrue(before - 1 < m["varve_session_start_time_seconds"] <= m["varve_epoch_durable_time_seconds"] < time.time() + 1, m)
        self.assertEqual([p.name for p in self.metrics.iterdir()], ["varve-heat.r0.prom"])

    def test_restart_before_any_epoch(self):
        self.lay_down("checkpoint")
        self.assertEqual(self.write("region", "T", "bytes", PAGES * 4096, "restart", 0, options=self.options()), [])
        m, _ = self.read()
        self.assertEqual([m[f"varve_{k}"] for k in ("epoch", "epochs_total", "restarts_total")], [1, 0, 1])
        self.assertNotIn("varve_epoch_durable_time_seconds", m)  # an age since 1970 would be an alarm

    def test_open_session(self):
        """While the session is open, and of one that is killed, the file says so."""
        words = ["region", "T", "bytes", PAGES * 4096, "checkpoint", "hold"]
        p = subprocess.Popen([str(w) for w in (command.WRITER, self.store, "heat", self.options("mode=sync"), *words)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), b"1\n")
        self.assertEqual(self.read()[0]["varve_session_open"], 1)
        p.kill()
        p.communicate()
        self.assertEqual(self.read()[0]["varve_session_open"], 1)

    def test_ranks(self):
        self.write("ranks", 3, "region", "T", "bytes", PAGES * 4096, "load", "T", "data", "checkpoint", options=self.options())
        found = [self.read(rank) for rank in range(3)]
        self.assertEqual([labels["rank"] for _, labels in found], ["0", "1", "2"])
        self.assertEqual([m["varve_epoch"] for m, _ in found], [1, 1, 1])
        self.assertEqual(sum(m["varve_new_bytes_total"] for m, _ in found), PAGES * 4096)

    def test_failed_epoch(self):
        """An epoch that does not fit is a failure; what the session had stored before stays counted."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (PAGES * 2048, PAGES * 2048))
        words = ["region", "T", "bytes", PAGES * 4096, "poke", "T", 0, "01", "checkpoint", "load", "T", self.folder / "data", "checkpoint"]
        p = subprocess.run([str(w) for w in (command.WRITER, self.store, "heat", self.options("mode=sync"), *words)], capture_output=True, text=True,
                           preexec_fn=limit)
        self.assertEqual((p.returncode, p.stdout), (2, "1\n"), p.stderr)
        m, _ = self.read()
        self.assertEqual([m[f"varve_{k}"] for k in ("epoch", "epochs_total", "epoch_failures_total", "new_bytes_total")], [1, 1, 1, 4096])

    def test_odd_store_names(self):
        for i, name in enumerate((b'a "b" \\ c', b"two\nlines", "Größe".encode(), b"\xff\xfe")):
            store = os.fsdecode(os.fsencode(self.folder) + b"/" + name)
            self.lay_down("checkpoint", store=store, lineage=f"l{i}")
            wanted = store if i < 3 else str(self.folder) + "/\ufffd\ufffd"
            self.assertEqual(self.read(lineage=f"l{i}")[1]["store"], wanted)

    def test_always_complete(self):
        """A reader that never stops finds a whole file at every moment."""
        words = ["region", "T", "bytes", PAGES * 4096, "tick", "T", 300]
        p = subprocess.Popen([str(w) for w in (command.WRITER, self.store, "heat", self.options(), *words)], stdout=subprocess.DEVNULL)
        seen, path = [], self.metrics / "varve-heat.r0.prom"
        while p.poll() is None:
            if path.exists():
                seen.append(parse(path.read_bytes())[0]["varve_epochs_total"])
        self.assertEqual(p.returncode, 0)
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(self.read()[0]["varve_epochs_total"], 300)

    def test_not_written(self):
        """A folder that is missing costs a warning, not the epoch."""
        self.metrics.rmdir()
        p = subprocess.run([str(w) for w in (command.WRITER, self.store, "heat", self.options(), "region", "T", "bytes", 4096, "checkpoint", "checkpoint")],
                           capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout), (0, "1\n2\n"), p.stderr)
        self.assertIn(f"metrics are not written: cannot create '{self.metrics}/.varve-heat.r0.prom-", p.stderr)
        self.assertIn("(create the folder of the option metrics)", p.stderr)
        self.assertEqual(p.stderr.count("metrics are not written"), 1, p.stderr)

    def test_relative_folder(self):
        p = subprocess.run([str(command.WRITER), str(self.store), "heat", "metrics=node", "region", "T", "bytes", "4096", "checkpoint"], cwd=self.folder,
                           capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(self.read()[0]["varve_epoch"], 1)


if __name__ == "__main__":
    unittest.main()
