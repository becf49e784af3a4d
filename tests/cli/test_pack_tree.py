#!/usr/bin/env python3
# ctest: TIMEOUT 120 COST 15
"""varve pack and unpack: trees with links, folders and attributes; many small files; files with holes."""
import os
import pathlib
import random
import shutil
import stat
import struct
import subprocess
import sys
import unittest

import command

MPIEXEC = os.environ.get("VARVE_MPIEXEC")
READER = pathlib.Path(os.environ["VARVE_SOURCE"]) / "tools" / "layer_read.py"


def tree(folder):
    """{name: (type and mode, time, bytes or target)} of all that is below; of folders the mode alone."""
    found = {}
    for path in pathlib.Path(folder).rglob("*"):
        st = path.lstat()
        data = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (st.st_mode, None if path.is_dir() else st.st_mtime_ns, data)
    return found


class Tree(command.Case):
    def setUp(self):
        super().setUp()
        self.set = self.folder / "set"
        self.set.mkdir()
        self.out = self.folder / "out"

    def layers(self):
        return sorted(self.store.rglob("*.layer"))

    def pack(self, *words, status=0):
        return self.varve("pack", self.store, "run", "-C", self.set, *words, ".", status=status)

    def unpack(self, *words, status=0):
        return self.varve("unpack", self.store, "run", "-C", self.out, *words, status=status)

    def second_reader(self):
        subprocess.run([sys.executable, READER, "check", self.store], check=True)


def acl(user):
    """What the kernel has for u::rw-,u:USER:r--,g::r--,m::r--,o::---"""
    entries = [(1, 6, 0xffffffff), (2, 4, user), (4, 4, 0xffffffff), (16, 4, 0xffffffff), (32, 0, 0xffffffff)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)


def attrs(path):
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)
            if name.startswith(("user.", "system.posix_acl"))}


def can_have(path, name, value):
    try:
        os.setxattr(path, name, value)
        return True
    except OSError:
        return False


class Links(Tree):
    def setUp(self):
        super().setUp()
        for name in "a/b", "empty/too", "shut", "usual":
            (self.set / name).mkdir(parents=True)
        (self.set / "usual/x").write_bytes(b"x")
        (self.set / "a/file").write_bytes(command.noise(100000))
        os.link(self.set / "a/file", self.set / "a/b/same")
        os.link(self.set / "a/file", self.set / "zzz")
        (self.set / "twin").write_bytes(command.noise(100000))  # equal, but another file
        os.symlink("../file", self.set / "a/b/up")
        os.symlink("a/b", self.set / "to folder")
        os.symlink("a/no such", self.set / "dangling")
        os.symlink("to folder/up", self.set / "chain")
        os.utime(self.set / "dangling", ns=(5, 10 ** 18 + 7), follow_symlinks=False)
        (self.set / "shut/in").write_bytes(b"in")
        (self.set / "shut").chmod(0o500)
        (self.set / "empty").chmod(0o1755)
        self.addCleanup(lambda: [p.chmod(0o700) for p in self.folder.rglob("shut")])

    def inodes(self, folder):
        """Names of one file, for each that has several."""
        groups = {}
        for path in pathlib.Path(folder).rglob("*"):
            if path.is_file() and not path.is_symlink():
                groups.setdefault(path.stat().st_ino, []).append(str(path.relative_to(folder)))
        return sorted(sorted(g) for g in groups.values() if len(g) > 1)

    def check(self):
        self.assertEqual(tree(self.set), tree(self.out))
        self.assertEqual(self.inodes(self.out), [["a/b/same", "a/file", "zzz"]])
        self.assertEqual((self.out / "dangling").lstat().st_mtime_ns, 10 ** 18 + 7)

    def test_round_trip(self):
        for words in [], ["--scheme", "agnostic"]:
            if self.run_raw("pack", self.store, "run", "-C", self.set, *words, ".").returncode and words:
                continue  # built without zlib
            shutil.rmtree(self.out, ignore_errors=True)
            self.unpack()
            self.check()
        self.second_reader()
        self.varve("verify", self.store)
        listed = self.json("unpack", self.store, "run", "--list")
        self.assertEqual(sum("hard_link" in f for f in listed["files"]), 3)
        self.assertEqual({e["name"]: e.get("target") for e in listed["links_and_folders"]},
                         {"a/b/up": "../file", "chain": "to folder/up", "dangling": "a/no such", "to folder": "a/b", "empty": None, "empty/too": None,
                          "shut": None})
        self.varve("unpack", self.store, "run", "--test")

    def test_hard_links_are_read_once(self):
        """And stored once, by schemes that know no dedup, too."""
        told = self.json("pack", self.store, "run", "-C", self.set, "--scheme", "agnostic", ".") if self.has_zlib() else None
        if told:
            self.assertLess(told["bytes_new"], 2 * 100000 + 5000)
        self.assertEqual(self.json("pack", self.store, "two", "-C", self.set, "a/b/same", "zzz")["files"], 2)
        self.varve("unpack", self.store, "two", "-C", self.out)
        self.assertEqual(self.inodes(self.out), [["a/b/same", "zzz"]])

    def has_zlib(self):
        return self.run_raw("pack", self.folder / "other store", "x", "-C", self.set, "--scheme", "agnostic", ".").returncode == 0

    def test_some(self):
        """What is asked for comes; of a hard link whose other name is not, the bytes."""
        self.pack()
        self.unpack("zzz", "chain", "empty", "a/b/up")
        self.assertEqual(sorted(tree(self.out)), ["a", "a/b", "a/b/up", "chain", "empty", "empty/too", "zzz"])
        self.assertEqual((self.out / "zzz").read_bytes(), (self.set / "zzz").read_bytes())
        self.assertIn("no file 'a/b/u'", self.fails("unpack", self.store, "run", "-C", self.out, "a/b/u"))

    def test_nothing_is_replaced(self):
        self.pack()
        self.out.mkdir()
        os.symlink("here before", self.out / "chain")
        self.assertIn("'chain'", self.fails("unpack", self.store, "run", "-C", self.out))
        self.assertEqual(os.listdir(self.out), ["chain"])
        (self.out / "zzz").write_bytes(b"old")
        (self.out / "a").mkdir(0o711)
        self.unpack("--force")
        (self.out / "a").chmod(0o755)
        self.check()
        self.unpack("--force")
        self.check()
        self.assertEqual([n for n in os.listdir(self.out) if n.startswith(".varve")], [])

    def test_links_in_the_way(self):
        """Somebody has put links into the target: none is followed, and nothing outside is touched."""
        self.pack()
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        for name in "a", "empty", "shut":
            shutil.rmtree(self.out, ignore_errors=True)
            self.out.mkdir()
            os.symlink(elsewhere, self.out / name)
            self.assertIn("in the way", self.fails("unpack", self.store, "run", "-C", self.out, "--force"))
        self.assertEqual(os.listdir(elsewhere), [])

    def test_left_out(self):
        """What could lead outside, and what is no file, is named and left out."""
        os.symlink("/etc/passwd", self.set / "absolute")
        os.symlink("../../x", self.set / "a/climbs")
        os.symlink("a/../../x", self.set / "sneaks")
        os.mkfifo(self.set / "pipe")
        p = self.run_raw("pack", self.store, "run", "-C", self.set, ".")
        self.assertEqual(p.returncode, 0)
        self.assertEqual(sorted(line.split("'")[1].rsplit("/", 1)[1] for line in p.stderr.decode().splitlines()),
                         ["absolute", "climbs", "pipe", "sneaks"])
        self.unpack()
        for name in "absolute", "a/climbs", "sneaks", "pipe":
            (self.set / name).unlink()
        self.check()

    def test_named_links(self):
        """A link that is named is followed; as a link and as a folder it cannot be packed."""
        self.varve("pack", self.store, "run", "-C", self.set, "to folder/same", "chain")
        self.unpack()
        self.assertEqual({n: v[2] for n, v in tree(self.out).items() if v[2]}, dict.fromkeys(["to folder/same", "chain"], command.noise(100000)))
        self.assertIn("'to folder'", self.fails("pack", self.store, "run", "-C", self.set, ".", "to folder/same"))

    def test_named_links_to_folders(self):
        """With and without a slash: the folder comes back under the link's name, with its mode; its links stay links."""
        (self.set / "odd").mkdir()
        (self.set / "odd").chmod(0o710)
        os.symlink("odd", self.set / "to odd")
        real = tree(self.set / "a/b")
        for words in ["to folder", "to odd"], ["to folder/", "to odd/"]:
            self.varve("pack", self.store, "run", "-C", self.set, *words)
            self.unpack()
            self.assertEqual(tree(self.out / "to folder"), real)
            self.assertEqual((stat.S_IMODE((self.out / "to odd").lstat().st_mode), (self.out / "to odd").is_symlink()), (0o710, False))
            shutil.rmtree(self.out)

    def test_plain_sets_stay_readable(self):
        """Without anything of this the list is of version 1, which older versions read."""
        self.varve("pack", self.store, "plain", "-C", self.set, "usual", "twin")
        self.pack()
        for lineage, version in ("plain", 1), ("run", 2):
            manifest = subprocess.run([sys.executable, READER, "extract", self.store, lineage, ".varve.files"], check=True, capture_output=True).stdout
            self.assertEqual(manifest[:12], b"VARVEFIL" + struct.pack("<HH", version, 0))

    def test_each(self):
        for e in "one", "two":
            os.makedirs(self.folder / "series" / e / "nothing")
            (self.folder / "series" / e / "f").write_text(e)
            os.symlink("f", self.folder / "series" / e / "l")
        self.varve("pack", self.store, "run", "--each", "-C", self.folder / "series", "one", "two")
        self.unpack("--each")
        self.assertEqual(tree(self.folder / "series"), tree(self.out))

    def test_no_links_there(self):
        """A part of the target is another file system: links become files, which is said."""
        self.pack()
        (self.out / "a").mkdir(parents=True)
        p = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$1/a" && "$2" unpack "$3" run -C "$1" && cmp "$1/zzz" "$1/a/file" && '
                            'cmp "$1/a/file" "$1/a/b/same"', "sh", self.out, command.BIN, self.store], capture_output=True, env=self.env)
        if b"mount" in p.stderr or b"unshare" in p.stderr:
            self.skipTest("nothing may be mounted here")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"1 hard link could not be made there and became a file of its own", p.stderr)

    @unittest.skipUnless(MPIEXEC, "built without MPI")
    def test_many_ranks(self):
        mpi = [*MPIEXEC.split(), "-n"]
        subprocess.run([*mpi, "3", command.BIN + "-mpi", "pack", self.store, "run", "-C", self.set, "."], check=True, capture_output=True, env=self.env)
        subprocess.run([*mpi, "2", command.BIN + "-mpi", "unpack", self.store, "run", "-C", self.out], check=True, capture_output=True, env=self.env)
        self.check()


class Attributes(Tree):
    def setUp(self):
        super().setUp()
        (self.set / "folder").mkdir()
        self.file = self.set / "folder/file"
        self.file.write_bytes(command.noise(5000))
        if not can_have(self.file, "user.empty", b"") or not can_have(self.file, "user.large", bytes(range(256)) * 7):
            self.skipTest("the file system has no extended attributes")
        self.acls = can_have(self.file, "system.posix_acl_access", acl(1234)) and can_have(self.set / "folder", "system.posix_acl_default", acl(77))
        can_have(self.set / "folder", "user.of", b"folder")
        (self.set / "locked").write_bytes(b"x")
        os.setxattr(self.set / "locked", "user.k", b"v")
        (self.set / "locked").chmod(0o444)

    def test_round_trip(self):
        self.pack()
        self.unpack()
        self.assertEqual(tree(self.set), tree(self.out))
        for name in "folder", "folder/file", "locked":
            self.assertEqual(attrs(self.set / name), attrs(self.out / name))
        self.assertEqual(len(attrs(self.out / "folder/file")), 3 if self.acls else 2)
        self.second_reader()

    def test_not_kept(self):
        """Privileges are not packed, which is said; nor is it silent where the target takes none."""
        if not can_have(self.file, "trusted.x", b"1"):
            self.skipTest("only root may")
        p = self.run_raw("pack", self.store, "run", "-C", self.set, ".")
        self.assertEqual((p.returncode, p.stderr.decode()),
                         (0, "varve: 1 extended attribute is not packed: trusted.x of 'folder/file': it is a privilege or of this host\n"))
        self.assertEqual(self.json("pack", self.store, "run", "-C", self.set, ".")["attributes_left"], 1)
        self.out.mkdir()
        p = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t ramfs none "$1" && "$2" unpack "$3" run -C "$1"', "sh", self.out, command.BIN,
                            self.store], capture_output=True, env=self.env)
        if b"mount" in p.stderr or b"unshare" in p.stderr:
            self.skipTest("nothing may be mounted here")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stderr, b"extended attributes could not be kept: [a-z._]+ of '[a-z/]+': Operation not supported")

    def test_delete(self):
        """A file whose attributes have changed since is not what was packed."""
        self.varve("pack", self.store, "run", "--each", "-C", self.set, "folder")
        os.setxattr(self.file, "user.later", b"1")
        p = self.run_raw("pack", self.store, "run", "--each", "--delete", "-C", self.set, "folder")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertFalse(self.file.exists())
        self.unpack()
        self.assertEqual(os.getxattr(self.out / "folder/file", "user.later"), b"1")

    def test_too_many_names(self):
        """Linux does not list them, and they are not taken for none."""
        if not all(can_have(self.file, f"user.{i:04}{'n' * 240}", b"v") for i in range(300)):
            self.skipTest("the file system holds fewer names than Linux can list")
        p = self.run_raw("pack", self.store, "run", "-C", self.set, "folder/file", "--delete")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"1 extended attribute is not packed: all attributes of 'folder/file': Argument list too long\n", p.stderr)
        self.assertIn(b"is kept: its extended attributes cannot be read", p.stderr)
        self.assertTrue(self.file.exists())


class Small(Tree):
    def test_small_files(self):
        """A digest for each would take more than its bytes."""
        files = 5000
        for i in range(files):
            (self.set / f"f{i}").write_text(f"file {i}\n")
            os.utime(self.set / f"f{i}", ns=(1, 10 ** 18))
        (self.set / "nothing").write_bytes(b"")
        self.pack()
        layer = self.layers()[0].read_bytes()
        self.assertLess(command.sections(layer)["DIGESTS"][1], files)
        if "zstd" in self.varve("config"):
            self.assertLess(len(layer), 10 * files)
        (self.set / "f2500").write_text("another\n")
        told = self.json("pack", self.store, "run", "-C", self.set, ".")
        kind = [k for k in told["variables"] if k["key"] == "(small files)"][0]
        self.assertEqual(kind["instances"], files)
        self.assertLess(kind["bytes_new"], 8000)
        self.unpack()
        self.assertEqual(tree(self.set), tree(self.out))
        self.varve("verify", self.store)
        self.second_reader()


class Sparse(Tree):
    def poke(self, name, size, pieces):
        with open(self.set / name, "wb") as f:
            for at, data in pieces:
                f.seek(at)
                f.write(data)
            f.truncate(size)

    def test_holes_are_not_read(self):
        """To read this file would take the better part of an hour."""
        size = 900 << 30
        pieces = [(0, b"begin"), (5 << 30, b"x" * 5000), ((800 << 30) + 12345, b"odd"), (size - 3, b"end")]
        self.poke("vast", size, pieces)
        with open(self.set / "vast", "rb") as f:
            if os.lseek(f.fileno(), 1 << 20, os.SEEK_DATA) < 1 << 30:
                self.skipTest("the file system does not tell of holes")
        (self.set / "other").write_bytes(command.noise(100000))
        self.assertEqual(self.json("pack", self.store, "run", "-C", self.set, ".")["bytes"], size + 100000)
        self.unpack()
        self.assertEqual((self.out / "vast").stat().st_size, size)
        self.assertLess((self.out / "vast").stat().st_blocks * 512, 64 << 20)
        with open(self.out / "vast", "rb") as f:
            for at, data in pieces:
                f.seek(at)
                self.assertEqual(f.read(len(data)), data)
        self.second_reader()
        self.assertIn("2 files deleted, 0 kept", self.pack("--delete"))

    def test_any_holes(self):
        """Of bytes of no known format, of arrays, and of both at odd places."""
        head = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1048576,), }".ljust(117) + b"\n"
        pick = random.Random(3)
        for i in range(3):
            pieces = [(pick.randrange(8 << 20), command.noise(pick.choice([1, 4096, 100000]), i * 9 + k)) for k in range(5)]
            self.poke(f"x{i}", 9 << 20, pieces)
            self.poke(f"y{i}.npy", len(head) + (8 << 20), [(0, head), *((128 + at // 2, data) for at, data in pieces)])
        self.poke("only a hole", 3 << 20, [])
        for words in [], ["-o", "codec=none"], ["--scheme", "aware-block"]:
            shutil.rmtree(self.store, ignore_errors=True)
            shutil.rmtree(self.out, ignore_errors=True)
            if self.run_raw("pack", self.store, "run", "-C", self.set, *words, ".").returncode and words[0] == "--scheme":
                continue  # built without zlib
            self.unpack()
            self.assertEqual(tree(self.set), tree(self.out))
            self.varve("verify", self.store)


if __name__ == "__main__":
    unittest.main()
