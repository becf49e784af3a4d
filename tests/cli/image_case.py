"""What the tests of `varve image` share: programs that are frozen and brought back, and looking at processes."""
import os
import pathlib
import signal
import subprocess

import command
from command import is_alive, is_in, wait_for

SHELL = ("sh", "-c", '"$@" & wait', "sh")  # before a program: it lies in the session of a shell, whoever's session the test is in


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace")  # anybody's, in any code
    except (FileNotFoundError, ProcessLookupError):
        return ""


def name_of(pid):
    """The one by which killall finds it."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def strays(folder):
    """What runs as criu, with its files in this folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        words = command_of(path.name).split("\0")
        if words[0].endswith("criu") and any(word.startswith(f"{folder}/") for word in words):
            found.append((int(path.name), " ".join(words)))
    return found


def kill(pid, number=signal.SIGKILL):
    """If it is still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def has_told(path):
    """Is there a word in it? One that exists may still be empty: a program that is frozen in that moment has it open, as short as it is then."""
    return path.exists() and path.read_text().strip() != ""


def links_of(pid):
    """What its descriptors lead to."""
    found = {}
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                found[number] = os.readlink(f"/proc/{pid}/fd/{number}")
            except (FileNotFoundError, ProcessLookupError):
                pass
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def open_files(pid, state):
    """But for those whose names begin like this: they are open for moments only."""
    return sorted(number for number, link in links_of(pid).items() if not link.startswith(str(state)))


def forget(path):
    """What a program has told so far, while it tells nothing; the file stays as long as it was."""
    with open(path, "r+") as f:
        f.write(" " * (path.stat().st_size - 1) + "\n")


def first_told(path):
    """The first step that was told since."""
    wait_for(lambda: len(path.read_text().split()) == 4, "the program tells something")
    return int(path.read_text().split()[2])


def children(pid):
    try:
        return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def children_of_all(pid):
    """Those of all its threads, of which some may end meanwhile."""
    found = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            try:
                found += [int(c) for c in (task / "children").read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                pass
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


class Case(command.Case):
    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = str(self.folder)  # a command that is killed leaves criu's folder behind
        self.addCleanup(self.end_strays)

    def end_strays(self):
        """However a test went, no criu may be left of it."""
        try:
            wait_for(lambda: not strays(self.folder), "criu has ended")
        except AssertionError as e:
            left = strays(self.folder)
            for pid, _ in left:
                kill(pid)
            raise AssertionError(f"left behind: {left}") from e


class Several(Case):
    """Programs that belong together, each in a session of its own; what the one of number I has come to is in state.I."""

    def launch(self, program, n, kind, *words):
        self.running = []
        for i in range(n):
            p = subprocess.Popen([program, kind, self.folder / f"state.{i}", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True, cwd=self.folder)
            self.addCleanup(self.end, p)
            self.running.append(p)

    def end(self, p):
        """It, or what was brought back under its number."""
        if p.poll() is None:
            p.kill()
            p.wait()
        elif is_in(p.pid, self.folder):
            kill(p.pid)
        wait_for(lambda: not pathlib.Path(f"/proc/{p.pid}").exists() or (is_alive(p.pid) and not is_in(p.pid, self.folder)), "its number is free, or another's")

    def ranks_of(self, pid):
        """Those below mpirun that have become the command, by age."""
        found = []
        for child in children(pid):
            found += [child] if name_of(child) == "varve-mpi" else self.ranks_of(child)
        return sorted(found)

    def are_under_way(self, r):
        """MPI has begun on all ranks: they are at the store, or at criu. The death of a rank before can leave Open MPI's mpirun, and other ranks, waiting for each
        other (PMIx 4.2)."""
        def is_at_work():
            files = [link for rank in self.ranks_of(r.pid) for link in links_of(rank).values()]
            return strays(self.folder) or any(link.startswith(f"{self.store}/") for link in files)
        wait_for(lambda: r.poll() is not None or is_at_work(), "the ranks are at work")

    def said(self, i):
        path = self.folder / f"state.{i}"
        return (path.read_text().split() if path.exists() else []) or ["0", "ok"]

    def step(self, i):
        words = self.said(i)
        self.assertEqual(words[1], "ok", words)
        return int(words[0])

    def forget(self, i):
        forget(self.folder / f"state.{i}")

    def first(self, i):
        return first_told(self.folder / f"state.{i}")


class Programs(Case):
    """Programs that are frozen and come back."""

    def start(self, *words, output="out"):
        """A program in a session of its own, its output added to a file."""
        with open(self.folder / output, "ab") as out:
            p = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=self.folder)
        self.addCleanup(self.end, p)
        return p

    def end(self, p):
        if p.poll() is None:
            p.kill()
        p.wait()

    def kill_pid(self, pid):
        """One that we had brought back. It is our grandchild, and surely ours: its number was that of a child."""
        if is_alive(pid):
            kill(pid)

    def dump(self, p, *more, lineage="a"):
        return self.json("image", "dump", "--pid", p.pid, self.store, lineage, *more)

    def restore(self, p, *more, spec="a"):
        """In the background: it waits for the program. p has ended, so its number is free."""
        p.wait()
        r = subprocess.Popen([command.BIN, "image", "restore", self.store, spec, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=self.env, cwd=self.folder)
        self.addCleanup(lambda: (self.kill_pid(p.pid), r.communicate()))
        line = r.stdout.readline()
        self.assertIn(f"process {p.pid} runs again", line, line or r.stderr.read())
        return r

    def state(self, name="state"):
        path = self.folder / name
        words = (path.read_text().split() if path.exists() else []) or ["0", "ok"]
        self.assertEqual(words[1], "ok")
        return int(words[0])

    def goes_on(self, name="state", steps=3):
        first = self.state(name)
        wait_for(lambda: self.state(name) >= first + steps, "the program goes on")

    def lines(self, output="out"):
        text = (self.folder / output).read_text()
        return text[:text.rfind("\n") + 1].splitlines()
