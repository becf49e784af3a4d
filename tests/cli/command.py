"""What the tests of the command share: running it, laying down epochs, reading layer files and .npy."""
import ast
import ctypes
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BIN = os.environ["VARVE_BIN"]
WRITER = pathlib.Path(os.environ["VARVE_BUILD"]) / "tests" / "writer_check"
MASK = (1 << 64) - 1
PATIENCE = 180  # seconds: a machine may have other things to do
SECTIONS = ["", "IDENT", "REGIONS", "SOURCES", "RUNS", "STATS", "BLOCKS", "DIGESTS", "COPIES", "ERAS"]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts us in the background has it ignored, by all that we start, too


def place():
    """Where tests/support/place.h has its folders, too: where TMPDIR says, else in memory, if there is room, for there syncing costs nothing."""
    memory = "/dev/shm"
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 2 << 30:
        return None
    return memory


def wait_for(what, words):
    """What it gives, as soon as that is something."""
    end = time.time() + PATIENCE
    while time.time() < end:
        got = what()
        if got:
            return got
        time.sleep(0.005)
    raise AssertionError(f"waited in vain: {words}")


def is_alive(pid):
    """Does it run? (One that has ended and is not waited for does not.)"""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_in(pid, folder):
    """Does it run, in this folder? Its number may be a stranger's by now, which must not be killed."""
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", folder)
    except OSError:
        return False


def noise(n, seed=1):
    """n bytes that no coder makes smaller, the same every time."""
    out = bytearray()
    while len(out) < n:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        out += struct.pack("<Q", z ^ (z >> 31))
    return bytes(out[:n])


def read_npy(data):
    """(descr, shape, bytes) of a .npy file, version 1.0."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    n, = struct.unpack("<H", data[8:10])
    assert (10 + n) % 64 == 0 and data[10 + n - 1] == 0x0A
    head = ast.literal_eval(data[10:10 + n].decode())
    assert sorted(head) == ["descr", "fortran_order", "shape"] and head["fortran_order"] is False
    return head["descr"], head["shape"], data[10 + n:]


def sections(layer):
    """{name: (offset, length)} of a layer file, from its trailer and directory (docs/format.md, section 3)."""
    at, n = struct.unpack_from("<QI", layer, len(layer) - 48)
    found = {}
    for i in range(n):
        kind, _, off, length = struct.unpack_from("<IIQQ", layer, at + 32 * i)
        found[SECTIONS[kind]] = (off, length)
    return found


def copy_for_others(case):
    """The command where every user can run it, until the test is over: the build may lie in a folder of root's alone."""
    folder = tempfile.mkdtemp(prefix="varve-command-")
    case.addCleanup(shutil.rmtree, folder)
    os.chmod(folder, 0o755)
    return shutil.copy(BIN, folder)


def hear_of_orphans():
    """Runs on in a child. This process hears of the end of all whose parents have ended before them: the first process of the machine may take its time for that,
    or never do it, and until then their numbers are taken."""
    libc = ctypes.CDLL(None)
    libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    tests = os.fork()
    if tests == 0:
        libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: not after us
        return
    while True:
        pid, status = os.wait()
        if pid == tests:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def main_with_images(source=None):
    """The tests of a script that freezes processes; skipped where that cannot be. The program, compiled, is the script's PROGRAM."""
    hear_of_orphans()
    check = subprocess.run([BIN, "image", "check"], capture_output=True, text=True)
    if check.returncode:
        print("skipped: processes cannot be frozen here:", (check.stdout + check.stderr).strip())
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="varve-image-") as folder:
        if source:
            program = sys.modules["__main__"].PROGRAM = os.path.join(folder, "program")
            subprocess.run([os.environ["CC"], "-O1", "-D_GNU_SOURCE", "-pthread", "-o", program, pathlib.Path(__file__).with_name(source)], check=True)
        unittest.main()


REPLACING = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int replaced_open(const char *path, int flags, unsigned mode)
{
	size_t n = strlen(path), k = strlen(NAME);
	if (n >= k && strcmp(path + n - k, NAME) == 0) {
		syscall(SYS_unlinkat, AT_FDCWD, path, 0);
		(void)!symlink(TARGET, path);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open(const char *path, int flags, ...)
{
	va_list more;
	va_start(more, flags);
	unsigned mode = va_arg(more, unsigned);
	va_end(more);
	return replaced_open(path, flags, mode);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
"""


def replacing(case, name, target):
    """A library to be preloaded: before a file of this name is opened, a link to the target takes its place."""
    source, library = case.file("replacing.c", REPLACING.encode()), case.folder / "replacing.so"
    subprocess.run([os.environ.get("CC") or "cc", "-O1", "-shared", "-fPIC", f'-DNAME="{name}"', f'-DTARGET="{target}"', "-o", library, source], check=True)
    return library


class Case(unittest.TestCase):
    """A folder of its own, with a store in it whose path has a blank."""
    IN_MEMORY = True

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="varve-cli-", dir=place() if self.IN_MEMORY else None))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.store = self.folder / "a store"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("VARVE_")}

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def write(self, *words, lineage="heat", options="", store=None):
        """Lays down epochs with writer_check; the numbers it printed."""
        p = subprocess.run([WRITER, store or self.store, lineage, options, *map(str, words)], capture_output=True,
                           text=True, env=self.env, cwd=self.folder)
        self.assertEqual(p.returncode, 0, p.stderr)
        return [int(n) for n in p.stdout.split()]

    def run_raw(self, *words, timeout=100, **more):
        return subprocess.run([BIN, *map(str, words)], capture_output="stdout" not in more, cwd=self.folder,
                              env={**self.env, **more.pop("env", {})}, timeout=timeout, **more)

    def varve(self, *words, status=0, **more):
        """Runs the command; its standard output. Errors say 'varve: ...', and only then is stderr used."""
        p = self.run_raw(*words, **more)
        out, err = p.stdout.decode(), p.stderr.decode()
        self.assertEqual(p.returncode, status, f"{words}: {out}{err}")
        if status == 0:
            self.assertEqual(err, "")
        return out

    def fails(self, *words, status=2):
        """Runs the command, which must fail; its message, without 'varve: '."""
        p = self.run_raw(*words)
        err = p.stderr.decode()
        self.assertEqual(p.returncode, status, f"{words}: {p.stdout}{err}")
        self.assertTrue(err.startswith("varve: ") and err.count("\n") == 1, err)
        return err[len("varve: "):].strip()

    def json(self, *words, status=0):
        """The one JSON object on standard output; stderr stays empty, errors too are in the object."""
        p = self.run_raw(*words, "--json")
        self.assertEqual(p.returncode, status, f"{words}: {p.stdout}{p.stderr}")
        self.assertEqual(p.stderr, b"")
        self.assertEqual(p.stdout.count(b"\n"), 1)
        return json.loads(p.stdout)

    def layer(self, epoch, lineage="heat", rank=0):
        return self.store / lineage / f"{epoch // 100:08}" / f"{epoch:010}.r{rank}.layer"

    def commit(self, epoch, lineage="heat"):
        return self.store / lineage / f"{epoch // 100:08}" / f"{epoch:010}.commit"

    def flip(self, path, at):
        data = bytearray(path.read_bytes())
        data[at] ^= 0x40
        path.write_bytes(data)
