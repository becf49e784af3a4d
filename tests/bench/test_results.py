#!/usr/bin/env python3
# ctest: TIMEOUT 180 PROCESSORS 2
"""Files of results: what bench/run writes is what bench/compare and bench/page read; the pages in docs are what the results say."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = pathlib.Path(os.environ["VARVE_SOURCE"]), os.environ["VARVE_BUILD"]
RUN = {"run": {"date": "2026-01-01 00:00", "commit": "abc", "arch": "riscv64", "cpu": "x", "cores": 2, "memory_gib": 1, "kernel": "7", "command": "bench/run x"}}


def row(bench="a.b", case="c", metric="time", value=1.0, unit="ms", **more):
    return {"bench": bench, "case": case, "metric": metric, "value": value, "unit": unit} | more


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="varve-bench-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def file(self, name, *lines):
        path = self.folder / name
        path.write_text("".join(line + "\n" if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
        return path

    def call(self, rc, program, *words, cwd=SOURCE):
        done = subprocess.run([sys.executable, cwd / "bench" / program, *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, rc, done.stdout + done.stderr)
        return done


class Compare(Case):
    def compare(self, rc, before, after, *options):
        return self.call(rc, "compare", *options, self.file("before", RUN, *before), self.file("after", RUN, *after)).stdout

    def test_what_takes_longer_is_flagged(self):
        said = self.compare(1, [row(value=10), row(case="d", value=10)], [row(value=11.5), row(case="d", value=10.5)])
        self.assertEqual(len([line for line in said.splitlines() if "WORSE" in line]), 1, said)
        self.assertIn("1.15", said)
        self.assertIn("2 results in both: 1 worse", said)

    def test_rates_are_worse_when_they_fall(self):
        self.compare(1, [row(metric="rate", unit="GB/s", value=2)], [row(metric="rate", unit="GB/s", value=1)])
        self.assertIn("better", self.compare(0, [row(metric="rate", unit="GB/s", value=1)], [row(metric="rate", unit="GB/s", value=2)]))

    def test_of_a_time_less_is_better(self):
        for metric, unit in (("whole_run", "ms/epoch"), ("time", "ms/epoch"), ("whole_run_vs_best", "x"), ("call", "ms")):
            with self.subTest(metric=metric, unit=unit):
                self.assertIn("WORSE", self.compare(1, [row(metric=metric, unit=unit, value=1)], [row(metric=metric, unit=unit, value=2)]))

    def test_a_target_says_which_way_is_better(self):
        more, less = {"target": ">= 1", "ok": True}, {"target": "<= 9", "ok": True}
        self.compare(1, [row(metric="q", unit="x", value=4, **more)], [row(metric="q", unit="x", value=2, **more)])
        self.compare(1, [row(metric="q", unit="x", value=2, **less)], [row(metric="q", unit="x", value=4, **less)])
        self.compare(0, [row(metric="q", unit="x", value=4)], [row(metric="q", unit="x", value=2)])  # nobody can say

    def test_what_is_not_ours_is_not_judged(self):
        said = self.compare(0, [row(metric="memcpy", value=1, baseline=True), row(value=1)], [row(metric="memcpy", value=9, baseline=True), row(value=1)])
        self.assertNotIn("memcpy", said)
        self.assertIn("2 results in both: 0 worse", said)
        self.assertIn("memcpy", self.compare(0, [row(metric="memcpy", value=1)], [row(metric="memcpy", value=9, baseline=True)], "--all"))
        self.compare(1, [row(value=1, baseline="no")], [row(value=9, baseline="no")])

    def test_a_target_that_is_missed_now_is_worse_however_little(self):
        said = self.compare(1, [row(value=1.0, target="<= 1", ok=True)], [row(value=1.001, target="<= 1", ok=False)])
        self.assertIn("target missed", said)

    def test_the_limit_is_a_choice(self):
        files = self.file("b", RUN, row(value=10)), self.file("a", RUN, row(value=14))
        self.call(1, "compare", *files)
        self.call(0, "compare", "--worse", "1.5", *files)
        self.call(2, "compare", "--worse", "0.5", *files)
        self.call(2, "compare", "--worse", "nan", *files)

    def test_what_is_only_in_one_is_counted(self):
        said = self.compare(0, [row(), row(case="gone")], [row(), row(case="new"), row(case="newer")])
        self.assertIn("1 only before; 2 only after", said)
        self.assertNotIn("not run again", said)
        said = self.compare(0, [row(), row(bench="a.gone"), row(bench="a.gone", case="d"), row(bench="a.other")], [row()])
        self.assertIn("\nnot run again, or not to its end: a.gone, a.other\n", said)

    def test_a_later_run_in_a_file_takes_the_place_of_an_earlier(self):
        two = self.file("two", RUN, row(value=50), row(case="no more", value=1), row(bench="other", value=3), RUN, row(value=10))
        said = self.call(0, "compare", "--all", self.file("one", RUN, row(value=10), row(bench="other", value=3)), two).stdout
        self.assertIn("2 results in both: 0 worse", said)
        self.assertNotIn("only after", said)

    def test_files_that_are_none(self):
        good = self.file("good", RUN, row())
        for name, lines in (("empty", []), ("words", ["hello"]), ("list", ["[1,2]"]), ("lacks", [{"bench": "a"}]), ("text", [row(value="fast")]),
                            ("none", [row(value=None)]), ("only a run", [RUN]), ("target", [row(target=5)]), ("goal", [row(target="<= lots", ok=True)]), ("unit", [row(unit=None)]),
                            ("names", [row(bench=[1])]), ("no run", [{"run": 5}, row()]), ("deep", ["[" * 100000]), ("nan", ['{"bench":"a","case":"c","metric":"m","value":NaN,"unit":"s"}']),
                            ("half", ['{"bench":"a","case":"\\ud800","metric":"m","value":1,"unit":"s"}'])):
            said = self.call(2, "compare", good, self.file(name, *lines)).stderr
            self.assertIn(name, said)
            self.assertEqual(len(said.splitlines()), 1, said)
        (self.folder / "bytes").write_bytes(b"\xff\xfe\x00")
        self.call(2, "compare", good, self.folder / "bytes")
        self.call(2, "compare", good, self.folder / "not there")
        self.call(2, "compare", good, self.folder)

    def test_from_nothing_and_to_nothing(self):
        self.compare(1, [row(value=0)], [row(value=5)])
        self.compare(1, [row(value=-1)], [row(value=3)])
        self.compare(1, [row(metric="rate", unit="MB/s", value=1)], [row(metric="rate", unit="MB/s", value=0)])
        self.compare(0, [row(value=5)], [row(value=0)])
        self.compare(0, [row(value=0)], [row(value=0)])

    def test_the_words_of_a_metric_tell_the_way(self):
        for metric, more in (("overhead_vs_iteration", False), ("less_than_sync", True), ("ratio", True), ("varve_zstd", True), ("wait", False), ("lazy, runs / criu", False)):
            with self.subTest(metric):
                self.compare(0 if more else 1, [row(metric=metric, unit="x", value=1)], [row(metric=metric, unit="x", value=9)])

    def test_other_sizes_are_told(self):
        def of(command):
            return {"run": RUN["run"] | {"command": command}}
        plain = self.file("plain", of("bench/run x --out a.json"), row())
        for words, told in (("--size 16M x", "--size 16M"), ("--size=16M x", "--size 16M"), ("x --full --out b", "--full"), ("--ranks 2 --pass=--alpha=5us x", "--pass --alpha=5us --ranks 2")):
            other = self.file("other", of("bench/run " + words), row())
            said = self.call(0, "compare", plain, other).stdout
            self.assertIn(f"note: not measured alike, before with no option, after with {told}:", said)
            self.assertNotIn("note", self.call(0, "compare", other, other).stdout)
        self.assertNotIn("note", self.call(0, "compare", plain, self.file("same", of("bench/run y x"), row())).stdout)

    def test_a_pager_that_ends_early(self):
        many = self.file("many", RUN, *(row(case=f"case {i} {'x' * 200}") for i in range(2000)))
        done = subprocess.run(f"'{sys.executable}' '{SOURCE}/bench/compare' --all '{many}' '{many}' | head -1", shell=True, text=True, capture_output=True)
        self.assertEqual(done.stderr, "")

    def test_nothing_in_common(self):
        self.compare(2, [row()], [row(case="other")])


class Run(Case):
    def test_results_can_be_compared(self):
        out = self.folder / "out.json"
        done = self.call(0, "run", "--build", BUILD, "--size", "1M", "--rounds", "1", "--out", out, "ckpt.metadata")
        self.assertEqual(done.stdout, out.read_text())
        run, *rows = map(json.loads, out.read_text().splitlines())
        self.assertTrue(run["run"]["cores"] > 0 and run["run"]["arch"] and "ckpt.metadata" in run["run"]["command"])
        self.assertIn("layer", [r["metric"] for r in rows])
        self.call(0, "compare", out, out)
        *_, summary, last = done.stderr.split("\n\n")  # where the minutes went, and what became of each
        judged = [r["ok"] for r in rows if "ok" in r]
        self.assertRegex(summary, rf"\Abench +seconds +met +missed\nckpt.metadata +\d+ +{judged.count(True)}(  {judged.count(False)} MISSED)?\Z")
        self.assertRegex(last, rf"\A{judged.count(True)} of {len(judged)} targets met.*; [\d.]+ minutes\n\Z")

    def test_one_that_cannot_be_run_does_not_stop_the_others(self):
        done = self.call(2, "run", "--build", BUILD, "--size", "1M", "--pass=--no-such-option", "ckpt.metadata", "store.write")
        self.assertIn("could not be run: store.write, ckpt.metadata", done.stderr)
        for name in "store.write", "ckpt.metadata":
            self.assertRegex(done.stderr, rf"\n{name} +\d+ +FAILED\n")

    def test_old_results_stay_until_there_are_new_ones(self):
        old = self.file("old.json", RUN, row())
        self.call(2, "run", "--build", BUILD, "--dir", self.folder / "no such", "--out", old, "ckpt.metadata")
        self.call(2, "run", "--build", BUILD, "--ranks", "0", "--out", old, "ckpt.metadata")
        self.assertIn("a.b", old.read_text())

    def test_no_room(self):
        """At full size what this machine cannot hold is said, and not begun."""
        done = self.call(0, "run", "--build", BUILD, "--full", "--ranks", "4096", "collective.best")
        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
        self.assertRegex(done.stderr, r"\ncollective.best +0 +needs (MPI|\d+ GiB of memory for 4096 ranks)\n")

    def test_nowhere_to_write(self):
        self.assertIn("--out", self.call(2, "run", "--build", BUILD, "--out", self.folder / "no" / "such", "ckpt.metadata").stderr)


@unittest.skipIf(sys.version_info < (3, 11), "needs Python 3.11 (tomllib)")
class Page(Case):
    def copy(self):
        for name in ("bench", "docs", "README.md"):
            (shutil.copytree if (SOURCE / name).is_dir() else shutil.copy)(SOURCE / name, self.folder / name)
        return self.folder

    def test_the_pages_are_what_the_results_say(self):
        self.call(0, "page", "--check")

    def test_another_result_makes_another_page(self):
        tree = self.copy()
        for path in (tree / "bench/results").glob("*.json"):
            path.write_text(re.sub('"value":-?', '"value":7', path.read_text()))
        said = self.call(1, "page", "--check", cwd=tree).stdout
        for name in ("docs/benchmarks.md", "docs/timeline.svg", "docs/index.md", "README.md"):
            self.assertIn(name, said)
        self.call(0, "page", cwd=tree)
        self.call(0, "page", "--check", cwd=tree)
        self.assertRegex((tree / "README.md").read_text(), r"\n\| Time that a program waits .* \| \*\*7\d+ ms\*\* \| ")
        self.assertRegex((tree / "docs/benchmarks.md").read_text(), r"\n\| \*\*varve\*\* \| .*\*\*7\d[\d.]* x memcpy, .*; 7\d[\d.]* x raw write, durable\*\* .* \| \*\*7\d[\d.]* x\*\* ")

    def test_a_benchmark_that_was_run_again_takes_the_place(self):
        tree = self.copy()
        old = min((tree / "bench/results").glob("*.json"))
        run = json.loads(old.read_text().splitlines()[0])["run"] | {"commit": "renewed", "command": "bench/run ckpt"}
        again = self.file("again.json", {"run": run}, row("ckpt.metadata", "0%", "layer", 4321, "B", target="<= 9", ok=False),
                          row("ckpt.metadata", "x", "not shown", 1, "B"))
        self.call(0, "page", "--take", again, cwd=tree)
        page = (tree / "docs/benchmarks.md").read_text()
        self.assertIn("4321 B, missed", page)
        self.assertIn("renewed", page)
        self.assertNotIn("not shown", old.read_text())
        self.assertEqual(len([line for line in old.read_text().splitlines() if '"ckpt.metadata"' in line]), 1)
        before = old.read_text()
        part = next(json.loads(line) for line in before.splitlines() if '"async.block"' in line)
        for wrong, lines in (("--size", [{"run": run | {"command": "bench/run --size 1M ckpt"}}, row("ckpt.metadata", "0%", "layer", target="<= 9", ok=False)]),
                             ("no 'memory_gib'", [{"run": {k: v for k, v in run.items() if k != "memory_gib"}}, row("ckpt.metadata", "0%", "layer", target="<= 9", ok=False)]),
                             ("no 'date'", [{"run": run | {"date": {"a": 1}}}, row("ckpt.metadata", "0%", "layer", target="<= 9", ok=False)]),
                             ("no 'command'", [{"run": run | {"command": "a\n## b"}}, row("ckpt.metadata", "0%", "layer", target="<= 9", ok=False)]),
                             ("no name", [{"run": run | {"arch": "../../evil"}}, row("ckpt.metadata", "0%", "layer", target="<= 9", ok=False)]),
                             ("not all of async.block", [{"run": run}, part])):
            self.assertIn(wrong, self.call(2, "page", "--take", self.file("wrong.json", *lines), cwd=tree).stderr)
            self.assertEqual(old.read_text(), before)
        self.assertIn("which machine", self.call(2, "page", "--take", self.file("nameless", row(target="<= 1", ok=True)), cwd=tree).stderr)

    def test_words_of_a_file_are_no_elements_of_a_page(self):
        tree = self.copy()
        run = json.loads(min((tree / "bench/results").glob("*.json")).read_text().splitlines()[0])["run"] | {"command": "bench/run `<script>x</script>`"}
        evil = self.file("evil.json", {"run": run}, row("ckpt.metadata", "<!-- bench/page: end --><b>", "layer", 5, "<b>", target="<= 9", ok=True))
        self.call(0, "page", "--take", evil, cwd=tree)
        page = (tree / "docs/benchmarks.md").read_text()
        self.assertIn("`bench/run '&lt;script>x&lt;/script>'`", page)
        self.assertIn("&lt;!-- bench/page: end -->&lt;b>", page)
        self.assertNotRegex(page, "<script|<b>|<!--")

    def test_a_second_machine_of_an_architecture_has_a_column_of_its_own(self):
        tree = self.copy()
        old = min((tree / "bench/results").glob("*.json"))
        before, run = old.read_text(), json.loads(old.read_text().splitlines()[0])["run"]
        small = self.file("small.json", {"run": run | {"cores": 77}}, row("ckpt.metadata", "0%", "layer", 4321, "B", target="<= 9", ok=False))
        self.call(0, "page", "--take", small, cwd=tree)
        self.assertEqual(old.read_text(), before)
        self.assertIn(f"{old.stem}_77cores", (tree / "docs/benchmarks.md").read_text())
        self.assertIn("4321 B, missed", (tree / "docs/benchmarks.md").read_text())
        third = self.file("third.json", {"run": run | {"cores": 77, "cpu": "a third"}}, row("ckpt.metadata", "0%", "layer", 5, "B", target="<= 9", ok=True))
        self.assertIn("another machine", self.call(2, "page", "--take", third, cwd=tree).stderr)

    def test_the_headlines_say_how_much_better(self):
        """The last column is ours against the best of the others: computed, in its direction, and worse is told as such."""
        tree = self.copy()
        results = min((tree / "bench/results").glob("*.json"))
        run = results.read_text().splitlines()[0]
        ours = {"bench": "x.y", "case": "c", "metric": "m"}
        papers = tree / "bench/papers.toml"
        text = papers.read_text()
        for value, more, cell in ((0.5, "best = 8", "**16 x**"), (10, "best = 8", "1.2 x worse"), (8.1, "best = 8", "equal"), (0.01, "best = 8", "**800 x**"), (16, 'best = 8\nbetter = "more"', "**2 x**"),
                                  (3, "", "-"), (0, "best = 8", "-")):
            with self.subTest(value=value, more=more):
                row_of = json.dumps(row(**ours, value=value, unit="x", target="<= 9", ok=True))
                (tree / "bench/results" / "riscv.json").write_text(f"{run}\n{row_of}\n")
                papers.write_text(text[:text.index("[[headline]]")] + text[text.index("[beside]"):] + f'''[[headline]]\nwhat = "W"\npaper = "P"\npeer = "Q"\nread = "x R"\nours = {{ bench = "x.y", case = "c", metric = "m" }}\n{more}\n''')
                self.call(0, "page", cwd=tree)
                self.assertIn(f"\n| W<br><sub>x R; {'more' if 'more' in more else 'less'} is better</sub> | P | Q | **{value:g}** x | {cell} |\n", (tree / "docs/benchmarks.md").read_text())

    def test_a_figure_without_a_result_is_named(self):
        tree = self.copy()
        for path in (tree / "bench/results").glob("*.json"):
            path.write_text("\n".join(line for line in path.read_text().splitlines() if '"collective.best"' not in line) + "\n")
        self.assertIn("collective.best", self.call(2, "page", cwd=tree).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
