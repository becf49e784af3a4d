#!/usr/bin/env python3
"""varve config: each value, and where it came from."""
import json
import os
import unittest

import command


class Config(command.Case):
    def option(self, name, *words, **more):
        p = self.run_raw("config", name, "--json", *words, **more)
        self.assertEqual(p.returncode, 0, p.stdout)
        o, = json.loads(p.stdout)["options"]
        return o["value"], o["origin"]

    def test_all(self):
        text = self.varve("config", "--all")
        found = self.json("config")
        self.assertGreater(len(found["options"]), 10)
        for o in found["options"]:
            self.assertIn(o["name"], text)
            self.assertIn(o["help"], text)
            self.assertEqual((o["value"], o["origin"]), (o["default"], "default"))
        self.assertIn("none", found["codecs"])
        self.assertLessEqual({"dir", "mem", "ram"}, set(found["stores"]))
        self.assertIn("plug", found["comms"])
        self.assertIn("host", found["spaces"])
        self.assertEqual(found["languages"][:2], ["c", "c++"])
        self.assertIn("  for      " + " ".join(found["languages"]) + "\n", text)
        self.assertEqual(found["digests"], ["xxh3", "sha256"])
        self.assertIn(found["version"], self.varve("--version"))
        self.assertIn(found["architecture"], text)

    def test_tiers(self):
        """Without --all: the fourteen that every user needs, and any other that is set."""
        few = self.varve("config")
        for o in self.json("config")["options"]:
            self.assertEqual(f"\n{o['name']} " in few, o["tier"] == "everyday", o["name"])
        self.assertEqual(sum(o["tier"] == "everyday" for o in self.json("config")["options"]), 14)
        self.assertIn("--all shows them", few)
        self.assertIn("\nbuffer ", self.varve("config", "-o", "buffer=1MiB"))

    def test_comparison(self):
        """Options that serve for comparison alone stand under a heading of their own, if they are shown."""
        heading = "\nFor comparison with published algorithms:\n"
        names = {o["name"] for o in self.json("config")["options"] if o["tier"] == "comparison"}
        before, found = self.varve("config", "--all").split(heading)
        rows = found.split("\n\n")[0].splitlines()
        self.assertEqual({row.split()[0] for row in rows[1:]}, names)
        self.assertFalse(names & {row.split()[0] for row in before.splitlines() if row})
        self.assertNotIn(heading, self.varve("config"))
        self.assertIn(heading, self.varve("config", "-o", "eager=no"))

    def test_store(self):
        """The way to the disk is tried, and leaves nothing behind."""
        store = self.folder / "store"
        self.assertIn(str(store), self.fails("config", "--store", store))
        store.mkdir()
        want = "past the page cache"
        try:
            os.close(os.open(store / "try", os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
        except OSError:
            want = "cannot write past it"
        (store / "try").unlink(missing_ok=True)
        if not str(store).startswith("/dev/shm"):
            self.assertIn(want, self.varve("config", "--store", store))
        self.assertIn("as io=buffered asks", self.varve("config", "--store", store, "-o", "io=buffered"))
        self.assertIn("page cache", self.json("config", "--store", store)["large_files"])
        self.assertEqual(list(store.iterdir()), [])
        if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK):
            memory = f"/dev/shm/varve-test-config-{os.getpid()}"
            os.mkdir(memory)
            try:
                self.assertIn("cannot write past it", self.varve("config", "--store", memory))
            finally:
                os.rmdir(memory)

    def test_vectors(self):
        """What the processor has, and no more of it than VARVE_CPU says."""
        levels = ["baseline", "avx2", "avx512"]
        most = self.json("config")["vectors"]["processor"]
        self.assertIn(most, levels)
        for said in levels:
            p = self.run_raw("config", "--json", env={"VARVE_CPU": said})
            self.assertEqual((p.returncode, p.stderr), (0, b""))
            used = min(levels.index(said), levels.index(most))
            self.assertEqual(json.loads(p.stdout)["vectors"], {"processor": most, "used": levels[used]})
            text = self.varve("config", env={"VARVE_CPU": said})
            self.assertIn(f"  vectors  {levels[used]}", text)
            self.assertEqual("held there by VARVE_CPU" in text, levels[used] != most)
        p = self.run_raw("config", "--json", env={"VARVE_CPU": "mmx"})
        self.assertEqual((p.returncode, json.loads(p.stdout)["vectors"]["used"]), (0, most))
        self.assertEqual(p.stderr.decode(), "varve: warning: VARVE_CPU=mmx is passed over: it is baseline, avx2 or avx512\n")

    def test_sources(self):
        self.assertEqual(self.option("codec"), ("auto", "default"))
        self.file("varve.conf", b"# mine\ncodec = lz4\n[more]\nkeep = 5\n")
        self.assertEqual(self.option("codec"), ("lz4", "varve.conf:2"))
        self.assertEqual(self.option("keep"), ("5", "varve.conf:4"))
        self.assertEqual(self.option("codec", env={"VARVE_CODEC": "zstd"}), ("zstd", "VARVE_CODEC"))
        self.assertEqual(self.option("codec", "-o", "codec=none", env={"VARVE_CODEC": "zstd"}), ("none", "command line"))
        self.assertEqual(self.option("s3-endpoint", "--option=s3-endpoint=http://h:1/a b,c")[0], "http://h:1/a b,c")
        other = self.file("other.conf", b"codec=zstd:7\n")
        self.assertEqual(self.option("codec", env={"VARVE_CONF": str(other)})[0], "zstd:7")
        self.assertIn("from     varve.conf:2", self.varve("config", "codec"))

    def test_a_slip_in_the_environment(self):
        """Of all that begins with VARVE_ only what looks like an option is spoken of, once."""
        for name, meant in (("VARVE_KEP", "VARVE_KEEP"), ("VARVE_KEEP_EVRY", "VARVE_KEEP_EVERY"), ("VARVE_SOURCE", None), ("VARVE_RUN_STORE", None)):
            with self.subTest(name):
                done = self.run_raw("config", env={name: "3"})
                self.assertEqual(done.returncode, 0)
                self.assertEqual(done.stderr.decode(), f"varve: warning: {name} in the environment is no option, and does nothing; did you mean {meant}?\n" if meant else "")

    def test_wrong(self):
        self.assertIn("did you mean 'codec'", self.fails("config", "codek"))
        self.assertIn("unknown option 'nix'", self.fails("config", "-o", "nix=1"))
        self.assertIn("unknown option 'keap'; did you mean 'keep'?", self.fails("config", "-c", "keap=1"))
        self.assertIn("none|lz4", self.fails("config", "-o", "codec=gzip"))
        self.assertIn("name=value", self.fails("config", "-o", "codec"))
        self.file("varve.conf", b"keep = lots\n")
        self.assertIn("varve.conf:1", self.fails("config"))
        self.assertIn("varve.conf:1", self.fails("ls", self.folder))


if __name__ == "__main__":
    unittest.main()
