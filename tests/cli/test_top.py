#!/usr/bin/env python3
# ctest: TIMEOUT 240
"""varve top: a job seen from outside, while it runs, and by nobody's leave."""
import fcntl
import http.server
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest
import urllib.parse

import command

SIZE = 12 << 20


class Writer:
    """writer_check, running until it is told to end."""

    def __init__(self, case, *words, options="", env=None):
        words = [command.WRITER, case.store, "heat", options, *map(str, words), "hold"]
        self.process = subprocess.Popen(words, cwd=case.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**case.env, **(env or {})})
        case.addCleanup(self.end)

    def until_held(self):
        for line in self.process.stdout:
            if line == "held\n":
                return

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(command.PATIENCE)
        self.process.stdout.close()


class Screen:
    """The command on a terminal of its own; what it shows now is what came since the cursor last went home."""

    def __init__(self, case, *words, program=command.BIN, columns=100, lines=20):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            self.fd = 0
            self.resize(columns, lines)  # before anything is drawn
            os.chdir(case.folder)
            os.execvpe(program, [program, *map(str, words)], {**case.env, "TERM": "xterm"})
        self.text, self.status = "", None
        case.addCleanup(self.end)

    def resize(self, columns, lines):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.text += os.read(self.fd, 1 << 16).decode()
            except OSError:  # the other end is closed
                return False
        return True

    def shown(self):
        frames = self.text.split("\033[H")
        whole = frames[-1] if "q quits" in frames[-1] else frames[-2] if len(frames) > 2 else ""
        return re.sub(r"\033\[[?0-9;]*[A-Za-z]", "", whole).replace("\r", "")

    def until(self, pattern, seconds=command.PATIENCE):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.read(0.1):
                break
            if re.search(pattern, self.shown()):
                return self.shown()
        raise AssertionError(f"never seen: {pattern}\n{self.shown()}")

    def press(self, key):
        os.write(self.fd, key)

    def wait(self, seconds=command.PATIENCE):
        """The exit status; everything it writes is read."""
        end = time.monotonic() + seconds
        while self.status is None and time.monotonic() < end:
            self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status

    def end(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class Bucket(http.server.BaseHTTPRequestHandler):
    """A folder as a bucket, and in it an upload under way, of parts that come in two pages."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self, status, body, **more):
        self.send_response(status)
        for name, value in {"content-length": len(body), "etag": '"x"', **more}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        q = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        key = urllib.parse.unquote(url.path).split("/", 2)[2:]
        self.server.asked.append(q)
        if "uploads" in q:
            self.answer(200, self.uploads(q["prefix"]))
        elif "uploadId" in q:
            self.answer(200, self.parts(q))
        elif "list-type" in q:
            self.answer(200, self.listing(q["prefix"]))
        else:
            path = self.server.folder / key[0]
            found = path.is_file()
            data = path.read_bytes() if found else b"<Error><Code>NoSuchKey</Code></Error>"
            at = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
            if found and at:
                first, last = int(at[1]), min(int(at[2]), len(data) - 1)
                self.answer(206, data[first:last + 1], content_range=f"bytes {first}-{last}/{len(data)}")
            else:
                self.answer(200 if found else 404, data)

    def uploads(self, prefix):
        upload = "<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>2026-01-01T00:00:00Z</Initiated></Upload>"
        all_of_them = ("heat/00000000/0000000004.r0.layer", "one"), ("heat/00000000/x/y", "two"), ("heat/index.r0", "three")
        found = "".join(upload % u for u in all_of_them if u[0].startswith(prefix))
        return f"<ListMultipartUploadsResult>{found}</ListMultipartUploadsResult>".encode()

    def parts(self, q):
        if q["uploadId"] != "one":
            return b"<ListPartsResult/>"
        if "part-number-marker" not in q:
            return (b"<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>2</NextPartNumberMarker>" +
                    b"<Part><Size>5242880</Size></Part>" * 2 + b"</ListPartsResult>")
        return b"<ListPartsResult><IsTruncated>false</IsTruncated><Part><Size>1000</Size></Part></ListPartsResult>"

    def listing(self, prefix):
        folder = self.server.folder / prefix
        names = sorted(folder.iterdir()) if folder.is_dir() else []
        files = [f"<Contents><Key>{prefix}{n.name}</Key><Size>{n.stat().st_size}</Size></Contents>" for n in names if n.is_file()]
        folders = [f"<CommonPrefixes><Prefix>{prefix}{n.name}/</Prefix></CommonPrefixes>" for n in names if n.is_dir()]
        return ("<ListBucketResult><IsTruncated>false</IsTruncated>" + "".join(files + folders) + "</ListBucketResult>").encode()


class Top(command.Case):
    def test_quiet_lineage(self):
        self.write("region", "x", "u64", 4, "tick", "x", 5)
        top = self.json("top", self.store, "heat")
        rows = self.json("ls", self.store, "heat")["epochs"]
        self.assertEqual(top["epochs_total"], 5)
        self.assertEqual([[e[k] for k in ("epoch", "time_ns", "bytes_memory", "bytes_stored", "bytes_layer")] for e in top["epochs"]],
                         [[e[k] for k in ("epoch", "time_ns", "bytes_memory", "bytes_stored", "bytes_layer")] for e in rows])
        self.assertEqual((top["writer"], top["flush"], top["next"]), ({"held": False}, None, None))
        last, = self.json("show", self.store, "heat")["per_rank"]
        self.assertAlmostEqual(top["epochs"][-1]["seconds_blocked"], last["seconds_blocked"])
        text = self.varve("top", self.store, "heat")  # no terminal: once
        self.assertIn("no process has the lineage open", text)
        self.assertIn("5 in the store, the newest is 5", text)
        self.assertNotIn("\033", text)
        self.assertEqual(self.varve("top", self.store, "heat", "--once").count("\n"), text.count("\n"))

    def test_nothing_yet(self):
        w = Writer(self)
        w.until_held()
        top = self.json("top", self.store, "heat")
        self.assertEqual((top["epochs"], top["epochs_total"], top["next"]), ([], 0, None))
        self.assertEqual((top["writer"]["held"], top["writer"]["pid"], top["writer"]["name"]), (True, w.process.pid, "writer_check"))
        self.assertIn("none yet", self.varve("top", self.store, "heat"))

    def test_writer(self):
        """The writer is named, its epochs appear, and looking on takes nothing from it."""
        w = Writer(self, "region", "x", "u64", 4, "tick", "x", 3)
        w.until_held()
        top = self.json("top", self.store, "heat")
        self.assertEqual(top["writer"]["pid"], w.process.pid)
        self.assertGreater(top["writer"]["bytes_resident"], 0)
        self.assertEqual(top["next"]["by"], "pace")
        self.assertIn("is being written by", self.fails("gc", self.store, "heat"))  # the lock is the writer's still
        w.end()
        self.assertFalse(self.json("top", self.store, "heat")["writer"]["held"])

    def test_due(self):
        w = Writer(self, "region", "x", "u64", 4, "checkpoint", env={"VARVE_INTERVAL": "1h"})
        w.until_held()
        n = self.json("top", self.store, "heat")["next"]
        self.assertEqual(n["by"], "the writer's environment")
        self.assertTrue(3500 < n["seconds"] <= 3600, n)
        n = json.loads(self.run_raw("top", self.store, "heat", "--json", "-o", "interval=2h").stdout)["next"]
        self.assertTrue(3500 < n["seconds"] <= 3600, n)  # the writer knows better
        self.assertRegex(self.varve("top", self.store, "heat"), r"next     due in (\d+ min|60 min) \(the writer's environment\)")

    def test_until_durable(self):
        """A layer does not know how long its own last step took: the next one does, and the statistics file."""
        stats = self.folder / "stats"
        self.write("region", "x", "u64", 4, "tick", "x", 3, options=f"stats={stats}")
        told = [json.loads(line) for line in stats.read_text().splitlines()]
        first, second, newest = self.json("top", self.store, "heat")["epochs"]
        for epoch, line in zip((first, second), told):
            self.assertAlmostEqual(epoch["seconds_durable"], line["seconds_flush"], places=6)
            self.assertGreaterEqual(epoch["seconds_durable"], epoch["seconds_flush"])
        self.assertNotIn("seconds_durable", newest)
        rows = [line for line in self.varve("top", self.store, "heat").splitlines() if re.match(r" +\d+ ", line)]
        self.assertEqual([(">" in r, "<" in r) for r in rows], [(True, True), (False, False), (False, False)], rows)
        newest = json.loads(self.run_raw("top", self.store, "heat", "--json", "-o", f"stats={stats}").stdout)["epochs"][-1]
        self.assertAlmostEqual(newest["seconds_durable"], told[2]["seconds_flush"], places=6)
        odd = '{"time":1,"lineage":"heat","rank":0,"ok":true,"epoch":%s,"seconds_flush":%s}\n'
        lies = self.file("lies", "".join(odd % e for e in (("3", "inf"), ("3", "nan"), ("3", "-5"), ("x", "1"), ("99", "1"), ("3", ""))).encode() + b'{"lineage":"heat"')
        newest = json.loads(self.run_raw("top", self.store, "heat", "--json", "-o", f"stats={lies}").stdout)["epochs"][-1]
        self.assertNotIn("seconds_durable", newest)
        self.write("restart", 0, "region", "x", "u64", 4, "tick", "x", 2)  # another process does not know of the third
        known = ["seconds_durable" in e for e in self.json("top", self.store, "heat")["epochs"]]
        self.assertEqual(known, [True, True, False, True, False])

    def test_slow_store(self):
        """An epoch that took long to store is shown as long as it took, and the next is not due the sooner for it."""
        self.file("noise", random.Random(2).randbytes(1 << 20))
        w = Writer(self, "region", "x", "bytes", 1 << 20, "load", "x", "noise", "checkpoint", "poke", "x", 0, "00", "checkpoint",
                   options="codec=none bandwidth=1MiB", env={"VARVE_INTERVAL": "1h"})
        w.until_held()
        top = self.json("top", self.store, "heat")
        first, last = top["epochs"]
        self.assertGreater(first["seconds_durable"], 0.5)
        self.assertAlmostEqual(top["next"]["seconds"], 3600 - (top["time_ns"] - last["time_ns"]) / 1e9, delta=0.5)

    def watch_flush(self):
        """Bytes of the first epoch, as often as they are told before it is there."""
        seen = []
        command.wait_for((self.store / "heat" / "lock").exists, "there is a writer")
        while True:
            top = json.loads(self.run_raw("top", self.store, "heat", "--json", "--every", "100ms").stdout)
            if top.get("epochs"):
                return seen
            if top.get("flush"):
                self.assertEqual((top["flush"]["epoch"], top["flush"]["objects"]), (1, 1))
                self.assertTrue(top["writer"]["held"])
                seen.append(top["flush"]["bytes"])

    def test_flush(self):
        """An epoch that is being stored is seen to grow. Where looking takes long, it is stored more slowly."""
        self.file("noise", random.Random(1).randbytes(SIZE))
        for bandwidth in "4MiB", "1MiB", "256KiB":
            w = Writer(self, "region", "x", "bytes", SIZE, "load", "x", "noise", "checkpoint", options=f"codec=none bandwidth={bandwidth}")
            seen = self.watch_flush()
            w.until_held()
            if len(seen) > 3:
                break
            w.end()
            shutil.rmtree(self.store)
        self.assertGreater(len(seen), 3)
        self.assertEqual(seen, sorted(seen))
        self.assertGreater(len(set(seen)), 2)
        self.assertLess(seen[0], SIZE)
        self.assertLessEqual(seen[-1], SIZE + (1 << 20))
        self.assertIsNone(self.json("top", self.store, "heat")["flush"])

    def test_killed_writer(self):
        self.write("region", "x", "u64", 4, "checkpoint")
        left = self.layer(2).with_name(".tmp-0000000002.r0.layer-4711-0")
        left.write_bytes(b"x" * 5000)
        (self.layer(1).with_name(".tmp-")).write_bytes(b"")
        (self.layer(1).with_name(".tmp-what-ever")).mkdir()
        top = self.json("top", self.store, "heat")
        self.assertEqual(top["flush"]["epoch"], 2)
        self.assertIn("left by a writer that is gone", self.varve("top", self.store, "heat"))
        self.assertTrue(left.exists())

    def test_damage(self):
        self.write("region", "x", "u64", 4, "tick", "x", 3)
        self.flip(self.commit(2), 20)
        self.flip(self.layer(3), 30)
        top = self.json("top", self.store, "heat")
        self.assertEqual([e["damaged"] for e in top["epochs"]], [False, True, False])
        self.assertRegex(self.varve("top", self.store, "heat"), r"\n +2 +- +- +- +damaged ")

    def test_many_epochs(self):
        self.write("region", "x", "u64", 4, "tick", "x", 130)
        top = self.json("top", self.store, "heat")
        self.assertEqual((top["epochs_total"], len(top["epochs"]), top["epochs"][-1]["epoch"]), (130, 60, 130))

    def test_statistics_file(self):
        self.write("region", "x", "u64", 4, "checkpoint")
        line = '{"time":1700000000.5,"lineage":"%s","rank":0,"ok":false,"error":"no space \\"here\\"","epoch":2}\n'
        stats = self.file("stats", (line % "other" + line % "heat" + '{"time":1').encode())
        top = json.loads(self.run_raw("top", self.store, "heat", "--json", "-o", f"stats={stats}").stdout)
        self.assertEqual((top["failure"], top["failed"][:10]), ('no space "here"', "2023-11-14"))
        for time in "1e300", "-1e300", "nan", "inf", "x", "":  # no moment at all; and a sentence is told to its end
            lies = self.file("lies", ('{"time":%s,"lineage":"heat","rank":0,"ok":false,"error":"one, two} and {three"}\n' % time).encode())
            top = json.loads(self.run_raw("top", self.store, "heat", "--json", "-o", f"stats={lies}").stdout)
            self.assertEqual((top["failure"], top["failed"][:10]), ("one, two} and {three", "1970-01-01"), time)
        self.assertNotIn("failure", json.loads(self.run_raw("top", self.store, "heat", "--json", "-o", "stats=nowhere").stdout))

    def test_mistakes(self):
        self.write("region", "x", "u64", 4, "checkpoint")
        self.assertIn("no lineage 'cold'", self.fails("top", self.store, "cold"))
        for every in "0", "x", "2h", "-1s":
            self.fails("top", self.store, "heat", "--every", every)
        self.fails("top", self.store)

    def test_s3(self):
        """Uploads under way are seen in a bucket, too, and the holder of its lock."""
        if "s3" not in self.json("config")["stores"]:
            self.skipTest("no S3 in this build")
        self.write("region", "x", "u64", 4, "tick", "x", 3)
        lease = "varve lock 1\nhost far-away\nboot b\nspace s\npid 77\nstart 5\nnonce n\nsince 2026-01-01T00:00:00Z\n"
        (self.store / "heat" / "lock").write_text(lease)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
        server.folder, server.asked = self.store, []
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        options = ["-o", f"s3-endpoint=http://127.0.0.1:{server.server_port}", "-o", "s3-path-style=true"]
        top = json.loads(self.run_raw(*options, "top", "s3://bucket", "heat", "--json", env=keys).stdout)
        self.assertEqual(top.get("writer"), {"held": True, "holder": "pid 77 on far-away"}, top)
        self.assertEqual((top["flush"]["epoch"], top["flush"]["bytes"]), (4, 2 * 5242880 + 1000))
        self.assertEqual([e["epoch"] for e in top["epochs"]], [1, 2, 3])
        self.assertTrue(any("part-number-marker" in q for q in server.asked))
        report = json.loads(self.run_raw(*options, "report", "s3://bucket", "heat", "--json", env=keys).stdout)["lineages"][0]
        here = self.json("report", self.store, "heat")["lineages"][0]
        self.assertEqual({k: v for k, v in report.items() if k != "gc"}, {k: v for k, v in here.items() if k != "gc"})

    # ---- on a terminal

    def test_screen(self):
        self.write("region", "x", "u64", 4, "tick", "x", 40)
        s = Screen(self, "top", self.store, "heat", "--every", "100ms")
        text = s.until(r"\n +40 ")
        self.assertLessEqual(text.count("\n"), 20)
        self.assertTrue(all(len(line) <= 100 for line in text.split("\n")))
        self.assertIn("\033[?1049h", s.text)
        self.write("restart", 0, "region", "x", "u64", 4, "tick", "x", 1)
        s.until(r"\n +41 ")  # it goes on looking
        s.resize(40, 10)
        s.until(r"\A(?![^\0]*[^\n]{41})")
        self.assertLessEqual(s.shown().count("\n"), 10)
        s.press(b"x")
        s.press(b"q")
        self.assertEqual(s.wait(), 0)
        self.assertTrue(s.text.rstrip().endswith("\033[?25h\033[?1049l"), s.text[-60:])

    def test_narrow(self):
        """What does not fit a window is left out by columns, the least important first; sentences go on in the next line."""
        self.write("region", "x", "u64", 4, "tick", "x", 5)
        every = "EPOCH AGE RANKS MEMORY STORED LAYER LESS BLOCKED FLUSH STORED_AT".split()
        spare = "LAYER STORED_AT RANKS MEMORY LESS AGE FLUSH BLOCKED".split()
        fewer = [[c for c in every if c not in spare[:n]] for n in range(len(spare) + 1)]
        found = []
        for columns in 100, 60, 40, 24, 20:
            s = Screen(self, "top", self.store, "heat", "--every", "100ms", columns=columns, lines=60)
            text = s.until(r"\n +1 [^\n]*[sB]\n(?![^\0]*[^\n]{%d})" % (columns + 1))
            head = next(line for line in text.split("\n") if line.startswith("EPOCH"))
            found.append(fewer.index(head.replace("STORED AT", "STORED_AT").split()))
            self.assertRegex(" ".join(text.split()), r"writer none: no process has the lineage open epochs 5 in the store, the newest is 5, \d+ \w+ ago; one every [\d.]+ \w+ lately "
                             "flush nothing is being stored next none is to be expected")
            s.press(b"q")
            self.assertEqual(s.wait(), 0)
        self.assertEqual((found, found[0], found[-1]), (sorted(set(found)), 0, len(spare)))

    def test_interrupted(self):
        """The terminal is as it was before, and the parent knows of the signal."""
        self.write("region", "x", "u64", 4, "checkpoint")
        s = Screen(self, "top", self.store, "heat", "--every", "100ms")
        s.until("q quits")
        os.kill(s.pid, signal.SIGTERM)
        self.assertEqual(os.WTERMSIG(s.wait()), signal.SIGTERM)
        self.assertTrue(s.text.rstrip().endswith("\033[?25h\033[?1049l"))

    def test_suspended(self):
        """^Z gives the terminal back; fg takes it again."""
        self.write("region", "x", "u64", 4, "checkpoint")
        s = Screen(self, "-mc", '"$0" top "$1" heat --every 100ms; echo "stopped: $?"; stty -a; fg', command.BIN, self.store, program="sh")
        s.until("q quits")
        s.press(b"\x1a")
        while "stopped" not in s.text or s.text.count("\033[?1049h") < 2:
            self.assertTrue(s.read(command.PATIENCE))
        between = s.text.partition("stopped: 148")[2].partition("\033[?1049h")[0]
        self.assertIn("susp = ^Z", between)
        self.assertNotIn("-icanon", between)
        s.until("q quits")
        s.press(b"q")
        self.assertEqual(s.wait(), 0)
        self.assertTrue(s.text.rstrip().endswith("\033[?25h\033[?1049l"))

    def test_lineage_vanishes(self):
        self.write("region", "x", "u64", 4, "checkpoint")
        s = Screen(self, "top", self.store, "heat", "--every", "100ms")
        s.until("q quits")
        subprocess.run(["rm", "-r", self.store / "heat"], check=True)
        s.until("none yet")
        s.press(b"q")
        self.assertEqual(s.wait(), 0)


if __name__ == "__main__":
    unittest.main()
