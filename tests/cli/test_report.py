#!/usr/bin/env python3
# ctest: TIMEOUT 400 COST 40
"""varve report: its data against what the other verbs say, and its page in a real browser."""
import json
import pathlib
import random
import re
import resource
import struct
import subprocess
import unittest

import browser
import command

PARTS = ["bytes_unchanged", "bytes_zero", "bytes_dup_time", "bytes_dup_space", "bytes_dup_ranks", "bytes_new"]
HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "<!-- --><b>", "a\"b'c`d\\e", "\u2028\u202e]]>",
           "__proto__"]


class Report(command.Case):
    def setUp(self):
        super().setUp()
        self.rnd = random.Random(7)

    def lineage(self, name="heat"):
        one, = self.json("report", self.store, name)["lineages"]
        return one

    def ranks_lineage(self):
        """Three ranks, five epochs: content shared, moved, twice, zero and new."""
        self.file("u", self.rnd.randbytes(40 * 4096))
        words = ["ranks", 3, "region", "u", "bytes", 40 * 4096, "load", "u", "u", "region", "z", "f64", "16x32", "checkpoint"]
        for i in range(4):
            words += ["poke", "u", 4096 * i + 9, "%02x" % (i + 1), "only", 1, "poke", "u", 4096 * (20 + i), "77" * (i + 1), "checkpoint"]
        self.write(*words, options="codec=none")

    # ---- the data

    def test_equals_show(self):
        self.ranks_lineage()
        d = self.lineage()
        for e in d["epochs"]:
            show = self.json("show", self.store, f"heat@{e['first']}")
            self.assertEqual((e["first"], e["n"], e["ranks"], e["layers_told"]), (e["last"], 1, 3, 3))
            self.assertEqual(e["time_ns"], show["time_ns"])
            for key in PARTS + ["bytes_memory", "bytes_stored", "bytes_layer"]:
                self.assertEqual(e.get(key, 0), sum(r[key] for r in show["per_rank"]), key)
            self.assertEqual(sum(e.get(k, 0) for k in PARTS), e["bytes_memory"])
            self.assertAlmostEqual(e["seconds_blocked"], max(r["seconds_blocked"] for r in show["per_rank"]))
            for key, stat in (("bytes_dirty", "bytes.dirty"), ("bytes_lent", "bytes.lent"), ("bytes_copied", "bytes.copied")):
                self.assertEqual(e.get(key, 0), sum(r["stats"].get(stat, 0) for r in show["per_rank"]), key)
        self.assertGreater(sum(e.get("bytes_dup_ranks", 0) for e in d["epochs"]), 0)
        t = d["totals"]
        for key in PARTS + ["bytes_memory", "bytes_stored", "bytes_layer"]:
            self.assertEqual(t.get(key, 0), sum(e.get(key, 0) for e in d["epochs"]), key)
        self.assertEqual(t["bytes_on_disk"], sum(p.stat().st_size for p in self.store.rglob("*.layer")))
        newest = self.json("show", self.store, "heat")
        self.assertEqual([(r["first"], r["last"], r["bytes_memory"], r.get("bytes_new", 0), r["bytes_layer"]) for r in d["per_rank"]],
                         [(r["rank"], r["rank"], r["bytes_memory"], r["bytes_new"], r["bytes_layer"]) for r in newest["per_rank"]])
        self.assertEqual(sum(r["bytes_stored_all"] for r in d["per_rank"]), t["bytes_stored"])

    def test_restore(self):
        """What a restart reads is what the run tables say."""
        self.ranks_lineage()
        d = self.lineage()["restore"]
        by_epoch, zero, heads = {}, 0, 0
        for r in self.json("show", self.store, "heat", "--runs")["per_rank"]:
            heads += r["heads_read"]
            for run in (run for g in r["regions"] for run in g["run_list"]):
                if run["source"] == "zero":
                    zero += run["length"]
                else:
                    by_epoch[run["epoch"]] = by_epoch.get(run["epoch"], 0) + run["length"]
        self.assertEqual({s["epoch"]: s["bytes"] for s in d["sources"]}, by_epoch)
        self.assertEqual((d["epoch"], d["bytes_zero"], d["heads"], d["partial"], d["ranks_not_told"]), (5, zero, heads, False, 0))
        self.assertEqual([c["codec"] for c in d["codecs"]], ["none"])
        self.assertEqual(sum(s["bytes_read"] for s in d["sources"]), sum(c["bytes_stored"] for c in d["codecs"]))
        self.assertEqual(sum(s["blocks"] for s in d["sources"]), sum(c["blocks"] for c in d["codecs"]))

    def many_sources(self):
        """251 epochs, and one page of the newest in each of the 250 after the first."""
        self.file("u", self.rnd.randbytes(250 * 4096))
        words = ["region", "u", "bytes", 250 * 4096, "load", "u", "u", "checkpoint"]
        for i in range(250):
            words += ["poke", "u", 4096 * i, "%04x" % (i + 1), "checkpoint"]
        self.write(*words, options="codec=none")

    def test_restore_of_many(self):
        """Of more than 200 epochs the oldest are told together, and how many they are."""
        self.many_sources()
        d = self.lineage()["restore"]
        older, = d["older"]
        self.assertEqual((len(d["sources"]), older["epochs"], older["epoch"], older["layers"], older["bytes"]), (200, 50, 51, 50, 50 * 4096))
        self.assertEqual(older["bytes_read"] + sum(s["bytes_read"] for s in d["sources"]), sum(c["bytes_stored"] for c in d["codecs"]))

    def test_regions_and_changes(self):
        self.file("u", self.rnd.randbytes(50 * 4096))
        self.write("region", "u", "bytes", 50 * 4096, "load", "u", "u", "region", "T", "f64", "16x32", "checkpoint",
                   "checkpoint",
                   "poke", "u", 4096, "aa", "poke", "u", 5 * 4096, "bb", "checkpoint",
                   "poke", "T", 0, "01", "checkpoint",
                   "unprotect", "T", "checkpoint", options="codec=none")
        d = self.lineage()
        changes = {c["name"]: c for c in d["changes"]}
        self.assertEqual(changes["u"]["per_mille"], [1000, 0, 40, 0, 0])
        self.assertEqual(changes["T"]["per_mille"], [1000, 0, 0, 1000, -1])
        self.assertEqual(changes["u"]["bytes_changed"], 52 * 4096)
        r, = d["regions"]
        self.assertEqual((r["name"], r["type"], r["shape"], r["bytes"], r["ranks"], r["codecs"]),
                         ("u", "bytes", [], 50 * 4096, 1, {"none": 50 * 4096}))

    def test_keyframe(self):
        """A chain that begins anew is compared with what was before: of what changed nothing is lost, nothing is made up."""
        self.file("u", self.rnd.randbytes(64 * 4096))
        words = ["region", "u", "bytes", 64 * 4096, "load", "u", "u", "checkpoint"]
        for i in range(140):
            words += ["poke", "u", 4096 * (i * 7 % 64), "%02x" % (i % 251 + 1) * 5, "checkpoint"]
        self.write(*words, options="codec=none")
        self.assertLess(self.json("show", self.store, "heat")["per_rank"][0]["depth"], 130)  # so there is one on the way
        changes, = self.lineage()["changes"]
        self.assertEqual(changes["per_mille"], [1000] + [16] * 140)
        want = [[1000] + [250 if i * 7 % 64 // 4 == b else 0 for i in range(140)] for b in range(16)]  # a page is a quarter of a part
        self.assertEqual(changes["bands"], want)

    def test_bands(self):
        """Parts of regions: of all ranks together, over the edges of parts, and only where they tell something."""
        self.file("u", self.rnd.randbytes(40 * 4096))
        self.file("v", self.rnd.randbytes(128 * 4096))
        page = "ab" * 4096
        self.write("ranks", 2, "region", "u", "bytes", 40 * 4096, "load", "u", "u", "region", "v", "bytes", 128 * 4096, "region", "w", "bytes", 4096,
                   "region", "z", "bytes", 64 * 4096, "checkpoint", "load", "v", "v", "checkpoint",
                   "only", 1, "poke", "u", 2 * 4096, page, "poke", "w", 0, "01", "checkpoint", "unprotect", "u", "checkpoint", options="codec=none")
        changes = {c["name"]: c for c in self.lineage()["changes"]}
        self.assertNotIn("bands", changes["v"])  # it changed as a whole
        self.assertNotIn("bands", changes["w"])
        self.assertNotIn("bands", changes["z"])
        # two and a half pages are a part: the third page is half in the first and half in the second; the other rank's is as it was
        self.assertEqual(changes["u"]["bands"], [[1000, 0, 100, -1], [1000, 0, 100, -1]] + [[1000, 0, 0, -1]] * 14)

    def test_bands_have_a_bound(self):
        """However many regions, the map has no more than 64 rows."""
        words = [w for i in range(30) for w in ("region", f"r{i}", "bytes", 16 * 4096)] + ["checkpoint"]
        self.write(*words, *[w for i in range(30) for w in ("poke", f"r{i}", 4096 * (i % 16), "01")], "checkpoint")
        changes = self.lineage()["changes"]
        self.assertEqual(sum("bands" in c for c in changes), 2)
        self.assertEqual(sum(len(c.get("bands", [0])) for c in changes), 60)

    def test_codecs(self):
        self.file("soft", bytes(range(256)) * 4096)
        self.file("hard", self.rnd.randbytes(1 << 20))
        self.write("region", "soft", "bytes", 1 << 20, "load", "soft", "soft",
                   "region", "hard", "bytes", 1 << 20, "load", "hard", "hard", "checkpoint")
        d = self.lineage()
        for r in d["regions"]:
            self.assertEqual(sum(r["codecs"].values()) + r["bytes_zero"], r["bytes"])
        blocks = self.json("show", self.store, "heat", "--blocks")["per_rank"][0]["block_list"]
        for c in d["restore"]["codecs"]:
            these = [b for b in blocks if b["codec"] == c["codec"]]
            self.assertEqual((c["blocks"], c["bytes"], c["bytes_stored"]),
                             (len(these), sum(b["bytes"] for b in these), sum(b["bytes_stored"] for b in these)))

    def test_gc(self):
        self.file("u", self.rnd.randbytes(1 << 20))
        self.file("v", self.rnd.randbytes(1 << 20))
        self.write("region", "u", "bytes", 1 << 20, "load", "u", "u", "checkpoint",
                   "load", "u", "v", "checkpoint", "checkpoint", options="codec=none")
        self.commit(1).unlink()
        g = self.lineage()["gc"]
        dry, = self.json("gc", self.store, "heat", "--dry-run")["lineages"]
        self.assertEqual(g, {k: v for k, v in dry.items() if k != "lineage"})
        self.assertGreater(g["bytes_before"] - g["bytes_after"], 1 << 19)

    def test_running(self):
        """A lineage that is being written can be looked at; its lock stays where it is."""
        words = [command.WRITER, self.store, "heat", "", "region", "x", "u64", "4", "tick", "x", "3", "hold"]
        p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env)
        self.assertEqual(p.stdout.readline(), "held\n")
        self.assertEqual(self.lineage()["totals"]["epochs"], 3)
        self.assertIn("being written", self.fails("gc", self.store, "heat"))
        p.communicate("")
        self.assertEqual(p.returncode, 0)

    def test_packed(self):
        words = b"{'descr': '<f8', 'fortran_order': False, 'shape': (64, 64), }"
        head = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + words.ljust(117) + b"\n"
        for step in range(3):
            folder = self.folder / f"step{step}"
            folder.mkdir()
            for i in range(5):
                (folder / f"T{i}.npy").write_bytes(head + self.rnd.randbytes(32768))
            (folder / "notes").write_bytes(b"as they were " * 300)
            self.varve("-q", "pack", self.store, "files", f"step{step}")
        d = self.lineage("files")
        show = self.json("show", self.store, "files")["per_rank"][0]
        key = lambda v: v["key"]
        self.assertEqual(sorted(d["variables"], key=key), sorted(show["variables"], key=key))
        self.assertEqual((d["files_total"], d["scheme"], sorted(f["name"] for f in d["files"])),
                         (6, show["scheme"], sorted(f["name"] for f in show["files"])))
        self.assertTrue(all(c["variable"] for c in d["changes"]))
        big = max(d["variables"], key=lambda v: v["bytes"])["key"]
        self.assertEqual(next(c for c in d["changes"] if c["name"] == big)["per_mille"], [1000] * 3)

    def test_damage(self):
        """What cannot be read is named, and the rest is told."""
        self.write("region", "x", "u64", 512, "tick", "x", 6)
        self.flip(self.commit(2), 20)
        self.flip(self.layer(4), self.layer(4).stat().st_size - 20)
        self.layer(5).unlink()
        d = self.lineage()
        self.assertEqual([e.get("damaged", 0) for e in d["epochs"]], [0, 1, 0, 0, 0, 0])
        self.assertEqual([e["layers_told"] for e in d["epochs"]][:5], [1, 0, 1, 0, 0])
        self.assertEqual({p["epoch"] for p in d["problems"]} >= {2, 4, 5}, True)
        self.assertIn("error", d["gc"])

    def test_places(self):
        """One of several stores: of the layers in the others, what the commit records say."""
        jobs = self.folder / "job"
        jobs.mkdir()
        subprocess.run([command.WRITER.with_name("places_check"), jobs, "4", "3", "mode=sync"], check=True, env=self.env)
        d, = self.json("report", jobs / "p1", "job")["lineages"]
        self.assertEqual([(e["ranks"], e["layers"], e["layers_told"]) for e in d["epochs"]], [(4, 4, 1)] * 3)
        self.assertEqual([r["layers_told"] for r in d["per_rank"]], [0, 1, 0, 0])
        self.assertTrue(all(r["bytes_memory"] for r in d["per_rank"]))
        self.assertEqual((d["restore"]["ranks_not_told"], d["problems"]), (3, []))
        self.assertIn("one of several stores", d["gc"]["error"])

    def test_empty(self):
        self.write()
        d = self.lineage()
        self.assertEqual((d["totals"]["epochs"], d["epochs"], d["per_rank"], d["changes"], d["regions"]), (0, [], [], [], []))
        self.assertEqual(self.json("report", self.store, "cold", status=2)["code"], -4)

    def test_whole_store(self):
        for name in "a", "b":
            self.write("region", "x", "u64", 4, "tick", "x", 2, lineage=name)
        self.write(lineage="empty")
        self.flip(self.store / "empty" / "lineage", 20)
        d = self.json("report", self.store)
        self.assertEqual(([one["lineage"] for one in d["lineages"]], d["lineages_total"]), (["a", "b", "empty"], 3))
        self.assertIn("lineage", d["lineages"][2]["error"])  # of one that cannot be read, why; and the others are told of

    def test_many(self):
        """Thousands of epochs or ranks are put together in rows, and nothing of their sums is lost."""
        self.write("region", "x", "u64", 512, "tick", "x", 2300)
        d = self.lineage()
        self.assertEqual((len(d["epochs"]), d["epochs"][0]["n"], d["totals"]["epochs_shown"]), (767, 3, 2300))
        self.assertEqual([(e["first"], e["last"]) for e in (d["epochs"][0], d["epochs"][-1])], [(1, 3), (2299, 2300)])
        rows = self.json("ls", self.store, "heat", "--all")["epochs"]
        self.assertEqual(d["totals"]["bytes_layer"], sum(r["bytes_layer"] for r in rows))
        self.assertEqual(len(d["changes"][0]["per_mille"]), 767)
        some = self.json("report", self.store, "heat", "--newest", 50)["lineages"][0]
        self.assertEqual((some["totals"]["epochs"], some["totals"]["epochs_shown"], some["epochs"][0]["first"]), (2300, 50, 2251))

    def test_many_ranks(self):
        least = 1024  # files that so many threads of one process have open
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < least:
            self.skipTest("no process may open that many files here")
        if soft != resource.RLIM_INFINITY and soft < least:
            resource.setrlimit(resource.RLIMIT_NOFILE, (least, hard))
            self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.write("ranks", 300, "region", "x", "u64", 8, "only", 299, "poke", "x", 0, "07", "checkpoint", options="buffer=64KiB")
        d = self.lineage()
        self.assertEqual((len(d["per_rank"]), d["per_rank"][0]["n"], d["per_rank"][-1]["last"]), (150, 2, 299))
        self.assertEqual(sum(r["bytes_memory"] for r in d["per_rank"]), 300 * 64)

    def test_many_regions(self):
        """The page stays small, whatever there is."""
        folder = self.folder / "many"
        folder.mkdir()
        for i in range(1500):
            (folder / f"f{i}-{'x' * 60}").write_bytes(b"%d" % i)
        self.varve("-q", "pack", self.store, "heat", "many")
        p = self.run_raw("report", self.store, "heat", "--json")
        d = json.loads(p.stdout)["lineages"][0]
        self.assertEqual((d["files_total"], len(d["files"]), d["regions_total"], len(d["regions"])), (1500, 200, 1501, 200))
        self.assertLess(len(p.stdout), 200000)

    # ---- the command

    def has_page(self):
        return "page" in self.json("config")["reports"]

    def test_mistakes(self):
        self.write("region", "x", "u64", 4, "checkpoint")
        if not self.has_page():
            for words in (["-o", "x.html"], ["--png", "x"], []):
                self.assertIn("not built in", self.fails("report", self.store, *words))
            self.assertEqual(self.json("report", self.store)["lineages"][0]["totals"]["epochs"], 1)
            return
        self.assertIn("where to", self.fails("report", self.store))
        self.assertIn("say which", self.fails("report", self.store, "--png", "x"))
        self.assertIn("cannot create", self.fails("report", self.store, "-o", "no/such/folder.html"))
        for option, path in (("-o", self.layer(1)), ("-o", self.store / "x.html"), ("--png", self.store), ("--png", self.store / "pictures")):
            self.assertIn("inside the store", self.fails("report", self.store, "heat", option, path))
        self.varve("verify", self.store)
        self.fails("report", self.store, "heat", "--newest", "0")
        p = self.run_raw("report", self.store, "heat", "--png", "pictures", env={"PATH": "/nowhere"})
        self.assertIn(b"install chromium", p.stderr)
        self.assertEqual(p.returncode, 2)

    def test_output(self):
        if not self.has_page():
            self.skipTest("the page is not built in")
        self.write("region", "x", "u64", 4, "checkpoint")
        self.assertRegex(self.varve("report", self.store, "-o", "a.html"), r"^a.html: [\d.]+ KiB\n$")
        self.assertEqual(self.varve("-q", "report", self.store, "-o", "b.html"), "")
        page = self.varve("report", self.store, "-o", "-")
        self.assertTrue(page.startswith("<!doctype html>"))
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.run_raw("report", self.store, "-o", "-", stdout=full, stderr=subprocess.PIPE).returncode, 2)

    def test_page_holds_the_data(self):
        """Names cannot end the element that they are in, and the data is all there."""
        if not self.has_page():
            self.skipTest("the page is not built in")
        self.write(*[w for name in HOSTILE for w in ("region", name, "u8", 16)], "checkpoint")
        self.varve("-q", "report", self.store, "-o", "page.html")
        text = (self.folder / "page.html").read_text()
        inside, = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
        self.assertNotIn("<", inside)
        want = self.json("report", self.store)
        got = json.loads(inside)
        for d in want, got:
            d.pop("made"), d.pop("made_ns")
        self.assertEqual(got, want)
        self.assertEqual({r["name"] for r in got["lineages"][0]["regions"]}, set(HOSTILE))
        self.assertEqual(len(re.findall(r"<script", text)), 2)
        self.assertNotRegex(text.replace(inside, ""), r"https?://(?!www\.w3\.org)[a-z]+\.[a-z]+/\S+\.(js|css|woff)")
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)


@unittest.skipUnless(browser.find(), "no chromium here to open the page with")
class Page(command.Case):
    """The page, opened from a file."""

    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser(browser.find())
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        if "page" not in self.json("config")["reports"]:
            self.skipTest("the page is not built in")
        self.rnd = random.Random(3)

    def make(self):
        """Two ranks, twelve epochs, several regions; and names that would be elements, if they could."""
        self.file("u", self.rnd.randbytes(64 * 4096))
        words = ["ranks", 2, "region", "u", "bytes", 64 * 4096, "load", "u", "u", "region", "T", "f64", "64x64"]
        for name in HOSTILE:
            words += ["region", name, "u8", 64]
        for i in range(12):
            words += ["poke", "u", 4096 * i, "%02x" % (i + 1), "only", 1, "poke", "T", 8 * i, "3f", "checkpoint"]
        self.write(*words)

    def open(self, *words, **how):
        self.varve("-q", "report", self.store, *words, "-o", "page.html")
        self.browser.open((self.folder / "page.html").as_uri() + how.pop("figure", ""), **how)
        return self.browser

    def clean(self, b):
        """No complaint, no request, nothing that a name could have made."""
        self.assertEqual(b.console, [])
        self.assertEqual([r for r in b.requests if not r.startswith(("file:", "data:"))], [])
        self.assertEqual(len([r for r in b.requests if r.startswith("file:")]), 1)
        self.assertEqual(b.run("document.querySelectorAll('img, iframe, object, b b, #page script').length"), 0)

    def drawn(self, b, selector):
        """How many colours a canvas shows."""
        return b.run(f"""(() => {{ const c = document.querySelector({json.dumps(selector)});
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
            for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
            return seen.size; }})()""")

    def table(self, caption):
        return f"[...document.querySelectorAll('table')].find(t => t.caption.textContent === {json.dumps(caption)})"

    def cells(self, b, caption):
        """A table's rows, by its caption."""
        return b.run(f"[...{self.table(caption)}.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent))")

    def press(self, b, text, inside="body"):
        buttons = f"[...document.querySelectorAll({json.dumps(inside + ' button')})]"
        b.run(f"{buttons}.find(b => b.textContent === {json.dumps(text)}).click()")
        b.settle()

    def test_page(self):
        self.make()
        b = self.open("heat")
        self.clean(b)
        self.assertEqual(b.run("document.querySelectorAll('.plot canvas').length"), 4)  # parts, stages, times, ranks
        for i in range(4):
            b.run(f"document.querySelectorAll('.plot canvas')[{i}].id = 'plot{i}'")
            self.assertGreater(self.drawn(b, f"#plot{i}"), 3)
        self.assertGreater(self.drawn(b, ".heat canvas"), 1)
        d = self.json("report", self.store, "heat")["lineages"][0]
        names = b.run("[...document.querySelectorAll('.names li')].map(n => n.textContent)")
        self.assertEqual(names, [c["name"] for c in d["changes"]])
        self.assertTrue(set(HOSTILE) <= set(names))
        self.assertIn("Bytes that several ranks read are counted once for each rank", b.run("document.body.textContent"))

    def test_halves(self):
        """A number halfway between two is rounded as the command rounds it."""
        numbers = [i * 1024 // 8 for i in range(8, 9000)]
        self.assertEqual(self.node("words.js", "bytes", f"{numbers}.map(bytes)"), [size(n) for n in numbers])

    def node(self, module, names, script):
        """What a script of the page's own functions says."""
        path = (pathlib.Path(__file__).parents[2] / "report/src" / module).as_uri()
        done = subprocess.run(["node", "--input-type=module", "-e", f"import {{ {names} }} from '{path}'; console.log(JSON.stringify({script}))"],
                              check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def test_scale(self):
        """Marks of axes: round numbers, also where rows are of several epochs; and 0 has a place of its own where it occurs."""
        scale = "logScale([5, 0, 3000], 2)"
        low, high = self.node("scale.js", "logScale", scale + ".range")
        ticks = self.node("scale.js", "logScale, logTicks", f"logTicks({scale}, 5)")
        self.assertTrue(low < 4 and high == 4096)
        self.assertEqual(ticks, [low, 4, 16, 64, 256, 1024, 4096])
        self.assertEqual(self.node("scale.js", "logScale", "[logScale([5, null, 3000], 2).range, logScale([0, null], 2), logScale([8], 2).range]"), [[4, 4096], None, [8, 16]])
        rows = "Array.from({ length: 767 }, (_, i) => ({ first: 3 * i + 1, last: 3 * i + 3, n: 3 }))"
        marks = self.node("scale.js", "rowTicks", f"[...rowTicks({rows}, 10)]")
        self.assertEqual(marks, [[i, str(3 * i + 3)] for i in range(99, 767, 100)])
        self.assertEqual(self.node("scale.js", "rowTicks", "[...rowTicks([{ first: 0, last: 0, n: 1 }, { first: 7, last: 7, n: 1 }], 9)]"), [[0, "0"], [1, "7"]])

    def test_nothing_is_seen(self):
        """An epoch that stores nothing is at the foot of the chart, not on the line between its neighbours."""
        self.file("u", self.rnd.randbytes(64 * 4096))
        words = ["region", "u", "bytes", 64 * 4096, "load", "u", "u", "checkpoint"]
        for i in range(6):
            words += ["poke", "u", 4096 * i, "%02x" % (i + 1), "checkpoint", "checkpoint"]
        self.write(*words, options="codec=none")
        b = self.open("heat")
        b.run("document.querySelectorAll('.plot canvas')[1].id = 'stages'")
        lowest = b.run("""(() => { const c = document.querySelector('#stages'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let low = 0;
            for (let i = 0; i < d.length; i += 4) if (d[i] === 0 && d[i + 1] === 0x72 && d[i + 2] === 0xb2) low = Math.floor(i / 4 / c.width);
            return low / c.height; })()""")  # of the line of what was stored
        self.assertGreater(lowest, 0.8)
        self.clean(b)

    def test_many_sources(self):
        """What a restart reads is said of all epochs, also of those that are told together."""
        Report.many_sources(self)
        b = self.open("heat")
        d = self.json("report", self.store, "heat")["lineages"][0]["restore"]
        tile = b.run("[...document.querySelectorAll('.tile')].find(t => t.textContent.startsWith('A restart reads')).textContent")
        self.assertIn(size(sum(c["bytes_stored"] for c in d["codecs"])) + "from 250 epochs", tile)
        text = b.run("document.body.textContent")
        self.assertIn("and blocks of 250 epochs", text)
        self.assertIn("243 older epochs", text)
        self.clean(b)

    def test_numbers(self):
        """What the page says is what 'varve show' says, in the same words."""
        self.make()
        b = self.open("heat")
        rows = self.cells(b, "Epochs")
        self.assertEqual([r[0] for r in rows], [str(e) for e in range(12, 0, -1)])
        heads = b.run(f"[...{self.table('Epochs')}.tHead.rows[0].cells].map(c => c.textContent)")
        for row in rows:
            show = self.json("show", self.store, f"heat@{row[0]}")
            cell = dict(zip(heads, row))
            for head, key in (("In memory", "bytes_memory"), ("New", "bytes_new"), ("Compressed", "bytes_stored"), ("Layer", "bytes_layer")):
                self.assertEqual(cell[head], size(sum(r[key] for r in show["per_rank"])), head)
        t = self.json("report", self.store, "heat")["lineages"][0]["totals"]
        tiles = dict(b.run("[...document.querySelectorAll('.tile')].map(t => ['dt', 'b'].map(k => t.querySelector(k).textContent))"))
        self.assertEqual(tiles["Checkpointed"], size(t["bytes_memory"]))
        self.assertEqual(tiles["Layers"], size(t["bytes_layer"]))
        self.assertTrue(abs(float(tiles["Reduction"].rstrip("×")) - t["bytes_memory"] / t["bytes_layer"]) < 0.06)
        rows = self.json("report", self.store, "heat")["lineages"][0]["epochs"][1:]
        mean = {key: sum(r.get(key, 0) for r in rows) / len(rows) for key in ("bytes_memory", "bytes_new", "bytes_layer")}
        said = b.run("document.querySelector('.verdict').textContent")
        self.assertRegex(said, rf"holds {size(mean['bytes_memory'])}, of which {size(mean['bytes_new'])} \(.* %\) is new, and its layers take {size(mean['bytes_layer'])}\.")
        self.assertRegex(said, r"The program waits [\d.]+ [mµ]?s.*Most changed data is in u \(")
        legend = b.run("document.querySelector('.chart .under').textContent")  # of the newest epoch
        last = self.json("report", self.store, "heat")["lineages"][0]["epochs"][-1]
        self.assertIn("epoch 12", legend)
        self.assertIn("new" + size(last["bytes_new"]), legend)
        regions = {r[0]: r for r in self.cells(b, "Regions, the largest first")}
        self.assertEqual(regions["T"][1:4], ["f64", "64 × 64", size(2 * 32768)])

    def test_sort(self):
        self.make()
        b = self.open("heat")
        def column(i):
            return [r[i] for r in self.cells(b, "Epochs")]
        self.assertEqual(column(0)[0], "12")
        b.run(f"{self.table('Epochs')}.querySelector('th button').click()")
        self.assertEqual(column(0), [str(e) for e in range(1, 13)])
        self.assertEqual(b.run(f"{self.table('Epochs')}.querySelector('th').getAttribute('aria-sort')"), "ascending")
        b.run(f"[...{self.table('Regions, the largest first')}.querySelectorAll('th button')].find(h => h.textContent === 'Type').click()")
        kinds = [r[1] for r in self.cells(b, "Regions, the largest first")]
        self.assertEqual(kinds, sorted(kinds))
        self.clean(b)

    def test_keyboard(self):
        """All that a pointer does, keys do: charts, heat map, tables."""
        self.make()
        b = self.open("heat")
        b.run("document.querySelector('.plot').focus()")
        for key, epoch in (("Home", 1), ("ArrowRight", 2), ("End", 12), ("ArrowLeft", 11)):
            b.run(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))")
            b.settle()
            self.assertEqual(b.run("document.querySelector('.where').textContent"), f"epoch {epoch}")
        self.assertRegex(b.run("document.querySelector('.chart [aria-live]').textContent"), r"^epoch 11: new [\d.]+ [KM]?i?B, ")
        b.run("document.querySelector('.heat canvas').focus()")
        b.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }))")
        self.assertRegex(b.run("document.querySelector('.readout').textContent"), r"^u, part 1 of 16, epoch 11: .* changed$")
        for key, said in (("ArrowDown", "^u, part 2 of 16, epoch 11: "), ("Home", "^u, part 2 of 16, epoch 1: "), ("End", "epoch 12: "), ("ArrowUp", "part 1 of 16, epoch 12: ")):
            b.run(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}' }}))")
            self.assertRegex(b.run("document.querySelector('.readout').textContent"), said)
        b.run("document.body.focus()")
        self.assertEqual(b.run("[...document.querySelectorAll('button, .plot, .cells canvas, .scroll')].filter(e => e.tabIndex < 0).length"), 0)
        self.press(b, "share")
        self.assertRegex(b.run("document.querySelector('.chart .legend').textContent"), r"new[\d.]+ %")
        self.clean(b)

    def test_dark(self):
        self.make()
        paper = "getComputedStyle(document.body).backgroundColor"
        b = self.open("heat")
        light = b.run(paper)
        b = self.open("heat", dark=True)
        dark = b.run(paper)
        self.assertEqual((light, dark), ("rgb(255, 255, 255)", "rgb(21, 24, 28)"))
        self.press(b, "Light", "header")
        self.assertEqual(b.run(paper), light)
        for where in "body", ".lead", ".where", ".tile span", ".legend", "thead button":  # words can be read on both
            for button in "Dark", "Light":
                self.press(b, button, "header")
                self.assertGreater(b.run(CONTRAST % json.dumps(where)), 4.5, (where, button))
        self.clean(b)

    def test_print(self):
        """On paper it is light, and no table is cut off; afterwards it is as it was."""
        self.make()
        b = self.open("heat", dark=True)
        b.run("""window.seen = []; for (const when of ['beforeprint', 'afterprint']) addEventListener(when, () => seen.push(document.documentElement.dataset.theme,
            Math.max(...[...document.querySelectorAll('canvas')].map(c => c.clientWidth)) <= 700))""")
        self.assertTrue(b.call("Page.printToPDF")["data"])
        self.assertEqual(b.run("window.seen"), ["light", True, "dark", False])
        b.call("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(b.run("getComputedStyle(document.querySelector('.scroll')).overflowX"), "visible")
        self.assertEqual(b.run("[...document.querySelectorAll('header button, .switch')].filter(e => e.offsetParent).length"), 0)
        self.assertEqual(b.run("[...document.querySelectorAll('.cut')].filter(e => e.offsetParent).length"), 0)
        b.call("Emulation.setEmulatedMedia", media="")

    def test_print_of_many(self):
        """A table that has more rows than paper gets says so."""
        self.write("region", "x", "u64", 512, "tick", "x", 40)
        b = self.open("heat")
        said = "[...document.querySelectorAll('.cut')].filter(e => e.offsetParent).map(e => e.textContent)"
        self.assertEqual(b.run(said), [])
        b.call("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(b.run(said), ["12 of 40 rows; the page shows the others on a screen."])
        self.press(b, "show all 40 rows")
        self.assertEqual(b.run(said), [])
        b.call("Emulation.setEmulatedMedia", media="")

    def restarted(self):
        """Three sessions of three epochs."""
        for session in range(3):
            words = ["region", "u", "bytes", 4096 * 8] + (["restart", 0] if session else [])
            for i in range(3):
                words += ["poke", "u", 4096 * i, f"{session:02x}{i:02x}07", "checkpoint"]
            self.write(*words)

    def test_restarts(self):
        self.restarted()
        d = self.json("report", self.store, "heat")["lineages"][0]
        self.assertEqual([e.get("restarts", 0) for e in d["epochs"]], [0, 0, 0, 1, 0, 0, 1, 0, 0])
        b = self.open("heat")
        marks = "[...document.querySelectorAll('.legend li')].filter(l => l.textContent.startsWith('restart')).map(l => l.textContent)"
        self.assertEqual(b.run(marks), ["restart2"] * 4)  # parts, stages, times, changes
        self.write("region", "x", "f64", 100, "checkpoint", "checkpoint", lineage="calm")
        b = self.open("calm")
        self.assertEqual(b.run(marks), [])

    def test_labels(self):
        self.write("region", "x", "f64", 1000, "checkpoint", "poke", "x", 8, "01", "checkpoint", "poke", "x", 8, "02", "label", "step-400", "checkpoint")
        b = self.open("heat")
        self.assertIn("epoch 3 (step-400)", b.run("[...document.querySelectorAll('.where')].map(w => w.textContent)"))
        heads = "[...document.querySelectorAll('section:last-of-type th[scope=col]')].map(h => h.textContent)"
        self.assertEqual(b.run(heads)[:2], ["Epoch", "Labels"])
        self.assertEqual(b.run("document.querySelector('section:last-of-type tbody td').textContent"), "step-400")
        self.varve("label", self.store, "heat@3", "step-400", "--remove")
        b = self.open("heat")
        self.assertNotIn("Labels", b.run(heads))

    def test_legend_has_the_dashes(self):
        self.make()
        b = self.open("heat")
        found = b.run("Object.fromEntries([...document.querySelectorAll('.legend li')].filter(l => l.querySelector('.line'))"
                      ".map(l => [l.querySelector('span').textContent, l.querySelector('.line').style.background]))")
        self.assertEqual(found["new"], "var(--c)")
        self.assertIn("0px 2px, transparent 2px 6px)", found["compared (dirty)"])
        self.assertIn("0px 7px, transparent 7px 11px)", found["whole layer"])
        self.assertEqual(len({found[k] for k in ("compared (dirty)", "whole layer", "asking other ranks")}), 3)

    def test_packed_series(self):
        """No program has waited for it, and none has restarted."""
        for step in range(3):
            self.file("field", struct.pack("<2000d", *[i * 0.5 + step for i in range(2000)]))
            self.varve("pack", self.store, "files", "field")
        b = self.open("files")
        text = b.run("document.querySelector('#page').textContent")
        for words in "program waits", "Program blocked", "program blocked", "restart2":
            self.assertNotIn(words, text)
        self.assertIn("Packing it took", text)

    def test_last_verify(self):
        self.restarted()
        said = "document.querySelector('#page').textContent.match(/Not verified yet|Last verify: [^.]*[.]|Epochs above \\d+ are newer/g)"
        self.assertEqual(self.open("heat").run(said), ["Not verified yet"])
        self.varve("verify", self.store)
        found, = self.open("heat").run(said)
        self.assertRegex(found, r"^Last verify: 20\S+ \S+, no problem in 9 epochs\.$")
        self.write("region", "u", "bytes", 4096 * 8, "restart", 0, "checkpoint")
        self.assertEqual(self.open("heat").run(said)[1], "Epochs above 9 are newer")
        self.flip(self.layer(1), 30)
        self.varve("verify", self.store, status=1)
        self.assertIn("1 problem in 10 epochs", self.open("heat").run(said)[0])
        (self.store / "heat" / "verified").write_text("nonsense")
        self.assertEqual(self.open("heat").run(said), ["Not verified yet"])

    def test_phone_names_the_rows(self):
        """On a narrow screen a name has the whole width, above its row, and is not cut."""
        name = "temperature/of/the/whole/domain"
        self.write("region", name, "f64", 512, "region", "v", "f64", 512, "checkpoint", "poke", name, 0, "01", "checkpoint", "poke", "v", 9, "02", "checkpoint")
        where = "[...document.querySelectorAll('.names li')].map(l => [l.scrollWidth <= l.clientWidth, l.getBoundingClientRect().height, l.querySelector('.head').scrollWidth <= l.querySelector('.head').clientWidth])"
        b = self.open("heat", width=390, height=844)
        for fits, height, head in b.run(where):
            self.assertTrue(fits and head and height >= 16)
        self.assertEqual(b.run("document.querySelectorAll('.heat.narrow').length"), 1)
        b = self.open("heat", width=1366)
        self.assertEqual(b.run("document.querySelectorAll('.heat.narrow').length"), 0)

    def test_phone(self):
        self.make()
        for dark in False, True:
            b = self.open("heat", width=390, height=844, dark=dark)
            self.assertLessEqual(b.run("document.documentElement.scrollWidth"), 390)
            self.assertEqual(b.run("[...document.querySelectorAll('canvas')].filter(c => c.getBoundingClientRect().right > 390).length"), 0)
            self.clean(b)

    def test_empty_states(self):
        self.write(lineage="nothing")
        b = self.open("nothing")
        self.assertIn("No epoch yet", b.run("document.body.textContent"))
        self.clean(b)
        self.write("region", "x", "f64", 100, "checkpoint", lineage="one")
        b = self.open("one")
        self.assertEqual(b.run("document.querySelectorAll('.bars').length"), 2)
        self.assertIn("nothing to balance", b.run("document.body.textContent"))
        self.clean(b)
        b = self.open()  # both
        self.press(b, "nothing", "main")
        self.assertEqual(b.run("document.querySelector('h2.lineage').textContent"), "nothing")
        self.press(b, "one", "main")
        self.assertEqual(b.run("document.querySelector('h2.lineage').textContent"), "one")
        self.assertEqual(b.run("[...document.querySelectorAll('[aria-current=true]')].map(e => e.textContent)"), ["one"])
        self.clean(b)
        self.layer(1, "one").unlink()
        b = self.open("one")
        self.assertIn("hold no statistics", b.run("document.body.textContent"))
        self.clean(b)
        self.flip(self.commit(1, "one"), 20)
        b = self.open("one")
        self.assertIn("1 problem found", b.run("document.querySelector('.notice').textContent"))
        self.assertIn("No epoch has a readable record", b.run("document.body.textContent"))
        self.clean(b)

    def test_damage(self):
        self.write("region", "x", "u64", 4, "tick", "x", 4)
        self.flip(self.commit(2), 20)
        self.layer(3).unlink()
        b = self.open("heat")
        self.assertIn("epoch 3: the layer of rank 0 is not there", b.run("document.querySelector('.notice').textContent"))
        self.assertIn("2 (damaged)", [r[0] for r in self.cells(b, "Epochs")])
        self.assertIn("in 3 epochs", b.run("document.querySelector('.tile').textContent"))  # means are of those that can be read
        self.clean(b)
        self.flip(self.commit(4), 20)  # the newest, so that an older one is restored
        b = self.open("heat")
        self.assertRegex(b.run("[...document.querySelectorAll('.tile')].find(t => t.textContent.startsWith('A restart reads')).textContent"), "for 32 B$")
        self.clean(b)

    def test_unknown(self):
        """What is not known is not 0: not in tables, not in means, not in charts."""
        self.file("u", self.rnd.randbytes(64 * 4096))
        words = ["region", "u", "bytes", 64 * 4096, "load", "u", "u", "checkpoint"]
        for i in range(5):
            words += ["poke", "u", 4096 * i, "%02x" % (i + 1), "checkpoint"]
        self.write(*words, options="codec=none")
        self.flip(self.commit(3), 20)
        self.layer(4).unlink()
        b = self.open("heat")
        heads = b.run(f"[...{self.table('Epochs')}.tHead.rows[0].cells].map(c => c.textContent)")
        rows = {r[0]: dict(zip(heads, r)) for r in self.cells(b, "Epochs")}
        self.assertEqual([rows["4"][k] for k in ("In memory", "New", "Compressed", "Blocked")], ["256 KiB", "–", "4.00 KiB", "–"])
        self.assertEqual({v for k, v in rows["3 (damaged)"].items() if not k.startswith("Epoch")}, {"–"})
        self.assertEqual(rows["5"]["New"], "4.00 KiB")
        self.assertIn("of which 4.00 KiB (1.6 %) is new", b.run("document.querySelector('.verdict').textContent"))
        d = self.json("report", self.store, "heat")["lineages"][0]
        blocked = b.run("[...document.querySelectorAll('.tile')].find(t => t.textContent.startsWith('Program blocked')).querySelector('b').textContent")
        want = d["totals"]["seconds_blocked"] / 4
        self.assertAlmostEqual(float(blocked.split()[0]) * {"µs": 1e-6, "ms": 1e-3, "s": 1}[blocked.split()[1]], want, delta=want / 50)
        b.run("document.querySelectorAll('.plot')[1].focus()")
        for key in "Home", "ArrowRight", "ArrowRight":
            b.run(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))")
        b.settle()
        self.assertRegex(b.run("document.querySelectorAll('.chart .under')[1].textContent"), "^epoch 3in memory–")
        b.run("document.querySelector('.heat canvas').focus()")
        b.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home' }))")
        for _ in range(2):
            b.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }))")
        self.assertRegex(b.run("document.querySelector('.readout').textContent"), "epoch 3: no data$")
        self.clean(b)

    def test_places(self):
        """Of one of several stores it is not said what is new in all of them."""
        jobs = self.folder / "job"
        jobs.mkdir()
        subprocess.run([command.WRITER.with_name("places_check"), jobs, "4", "3", "mode=sync"], check=True, env=self.env)
        self.varve("-q", "report", jobs / "p1", "job", "-o", "page.html")
        b = self.browser
        b.open((self.folder / "page.html").as_uri())
        self.assertRegex(b.run("document.querySelector('.verdict').textContent"), r"holds [\d.]+ KiB and its layers take [\d.]+ KiB\. $")
        heads = b.run(f"[...{self.table('Epochs')}.tHead.rows[0].cells].map(c => c.textContent)")
        row = dict(zip(heads, self.cells(b, "Epochs")[0]))
        self.assertTrue(row["New"].startswith("≥ ") and not row["Compressed"].startswith("≥ "), row)
        ranks = self.cells(b, "Ranks in epoch 3")
        self.assertEqual([r[2] == "–" for r in ranks], [True, False, True, True])
        self.clean(b)

    def test_thousands(self):
        """2300 epochs: rows of several, drawn at once, on a page that stays small."""
        self.write("region", "x", "u64", 512, "tick", "x", 2300)
        b = self.open("heat")
        self.assertLess((self.folder / "page.html").stat().st_size, 1 << 20)
        self.assertIn("each of up to 3 epochs", b.run("document.body.textContent"))
        self.press(b, "show all 767 rows")
        self.assertEqual(len(self.cells(b, "Epochs")), 767)
        self.clean(b)

    def test_figures(self):
        self.make()
        for name in "dedup", "stored", "time", "changes", "ranks", "restore":
            b = self.open("heat", figure=f"#figure={name}&height=400", width=960, height=400)
            self.assertEqual(b.run("document.querySelectorAll('figure').length"), 1)
            self.assertLessEqual(b.run("document.documentElement.scrollHeight"), 400, name)
            self.assertEqual(b.run("document.querySelectorAll('table, header').length"), 0)
            self.clean(b)

    def test_figure_of_many_regions(self):
        """A picture has as many rows as can be read."""
        self.write(*[w for i in range(60) for w in ("region", f"r{i}", "u64", 8)], "checkpoint", "checkpoint")
        b = self.open("heat", figure="#figure=changes&height=460", width=960, height=460)
        self.assertEqual(b.run("document.querySelectorAll('.names li').length"), 28)
        self.assertGreaterEqual(b.run("parseFloat(getComputedStyle(document.querySelector('.names li')).fontSize)"), 8)
        self.assertIn("the 28 that changed most", b.run("document.querySelector('figcaption').textContent"))

    def test_png(self):
        self.make()
        place = self.folder / ("long" * 20)  # no place for sockets, which a browser makes
        place.mkdir()
        out = self.varve("report", self.store, "heat", "--png", "pictures", env={"TMPDIR": str(place)}, timeout=300)
        self.assertEqual(out, "pictures: 6 pictures\n")
        for name, height in (("dedup", 420), ("restore", 180)):
            data = (self.folder / "pictures" / f"{name}.png").read_bytes()
            self.assertEqual((data[:8], struct.unpack(">II", data[16:24])), (b"\x89PNG\r\n\x1a\n", (1920, 2 * height)))
            self.assertGreater(len(data), 8000)
        self.assertEqual(len(list((self.folder / "pictures").iterdir())), 6)


# the contrast of an element's words with the page, by WCAG
CONTRAST = """(() => {
    const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const light = c => { const [r, g, b] = c.match(/[0-9.]+/g).map(v => linear(v / 255)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const e = document.querySelector(%s), back = getComputedStyle(e.closest('.tile') ?? document.body).backgroundColor;
    const [a, b] = [light(getComputedStyle(e).color), light(back)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05); })()"""


def size(n):
    """As src/cli/base/text.c has it."""
    if n < 1024:
        return f"{round(n)} B"
    v, u = n / 1024, 0
    while v >= 999.5 and u < 5:
        v, u = v / 1024, u + 1
    return f"{v:.{2 if v < 9.995 else 1 if v < 99.95 else 0}f} {('KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB')[u]}"


if __name__ == "__main__":
    if not browser.find():
        print("no chromium here: the page is not opened, only its data is tested")
    unittest.main()
