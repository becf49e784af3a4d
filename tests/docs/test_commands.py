#!/usr/bin/env python3
# ctest: TIMEOUT 400 PROCESSORS 2
"""Every block of code in the documentation and the manual is run or compiled. README.md, beside this file, says how."""
import concurrent.futures
import contextlib
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import page
from page import BUILD, ROOT

sys.path.insert(0, str(ROOT / "tests" / "store" / "s3"))
import s3_server  # noqa: E402

CACHE = (BUILD / "CMakeCache.txt").read_text()
CC, CXX, FC = (os.environ.get(*words) for words in (("CC", "cc"), ("CXX", "c++"), ("FC", "gfortran")))
COMMAND_SECONDS, PAGE_SECONDS = 300, 900  # what takes longer hangs


class Failed(Exception):
    pass


class Installed:
    """varve under a prefix of its own, and what this machine has beside it."""

    def __init__(self, folder):
        self.prefix, self.known = folder / "prefix", {}
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.prefix], check=True, stdout=subprocess.DEVNULL,
                       env={k: v for k, v in os.environ.items() if k != "DESTDIR"})
        libraries = next(self.prefix.rglob("varve.pc")).parents[1]
        outer = {k: v for k, v in os.environ.items() if not k.startswith(("VARVE_", "AWS_")) and not k.lower().endswith("_proxy")}
        path = {"PATH": f"{self.prefix / 'bin'}:{outer['PATH']}:/usr/sbin:/sbin", "PKG_CONFIG_PATH": libraries / "pkgconfig",
                "LD_LIBRARY_PATH": libraries, "CMAKE_PREFIX_PATH": self.prefix, "MANPATH": self.prefix / "share/man"}
        # ranks may outnumber cores and be run by root
        mpi = {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1, "OMPI_MCA_rmaps_base_oversubscribe": 1,
               "OMPI_MCA_mpi_yield_when_idle": 1, "OMPI_MCA_hwloc_base_binding_policy": "none"}
        more = {**path, **mpi, "varve_source": ROOT, "varve_build": BUILD, "LC_ALL": "C.UTF-8"}
        self.env = {**outer, **{k: str(v) for k, v in more.items()}}

    def does(self, command):
        return subprocess.run(["sh", "-c", command], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=COMMAND_SECONDS).returncode == 0

    def lacks(self, words):
        """The first of the words that is not here, or None."""
        for word in words:
            if word not in self.known:
                if word not in NEEDS:
                    raise Failed(f"'needs: {word}' is none of: {' '.join(sorted(NEEDS))}")
                self.known[word] = self.does(NEEDS[word])
            if not self.known[word]:
                return word
        return None


def imports(module):
    return f"/usr/bin/python3 -c 'import {module}'"


def has_command(name):
    return f"command -v {name}"


NEEDS = {
    "mpi": "pkg-config --exists varve_mpi && command -v mpicc && command -v mpirun",
    "fortran": "pkg-config --exists varve_fortran && command -v gfortran",
    "cpp": "command -v c++",
    "preload": "varve config | grep -q 'captures .*heap' && setarch -R true",
    "criu": "varve image check",
    "root": "test $(id -u) = 0",
    "cuda": "varve config | grep -q 'spaces .*cuda' && test -e /dev/nvidia0",
    "report": "varve config | grep -q 'reports .*page'",
    "s3": "varve config | grep -q 'stores .*s3'",
    "zstd": "varve config | grep -q 'codecs .*zstd'",
    "slurm": "command -v slurmctld && command -v srun && command -v munged",
    "h5py": imports("h5py"), "numpy": imports("numpy"), "netcdf4": imports("netCDF4"),
    **{name: has_command(name) for name in ("chromium", "cmake", "gdb", "jq", "node", "man", "curl", "h5dump", "ncdump", "strace", "tmux")},
}


# --- a shell that runs a page's commands one by one

class Shell:
    def __init__(self, folder, env):
        self.place, self.count = folder / "shell", 0
        self.place.mkdir()
        self.mark = f"varve_docs={folder}"
        self.ends = time.monotonic() + PAGE_SECONDS
        self.bash = subprocess.Popen(["bash", "--norc", "--noprofile"], cwd=folder / "scratch", env={**env, "varve_docs": str(folder)},
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        # A reader's shell outlives a SIGTERM, one at a terminal ignores it; what it starts does not.
        self.bash.stdin.write(b"trap : TERM\n")

    def run(self, text):
        """(status, output); the status is None if it did not end in time."""
        self.count += 1  # what runs on behind it keeps its output to itself
        script, output = (self.place / f"{name}-{self.count}" for name in ("script", "output"))
        script.write_text(text)
        try:
            self.bash.stdin.write(f". {shlex.quote(str(script))} </dev/null >{shlex.quote(str(output))} 2>&1; echo $?\n".encode())
            self.bash.stdin.flush()
        except BrokenPipeError:
            raise Failed("a command before this one has ended the page's shell")
        ready, _, _ = select.select([self.bash.stdout], [], [], max(0, min(COMMAND_SECONDS, self.ends - time.monotonic())))
        line = self.bash.stdout.readline() if ready else b""
        said = output.read_text(errors="replace") if output.exists() else ""
        if ready and not line:  # it ended the shell itself
            status = self.bash.wait()
            return status, said + (f"--- the page's shell was killed by signal {-status}\n" if status < 0 else "")
        return int(line) if line else None, said

    def close(self):
        """Whatever a page has started ends with it."""
        self.bash.kill()
        quiet = 0  # in the midst of execve(2) a process has no environment: look twice
        for _ in range(200):
            mine = [int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*") if self.started(p)]
            for pid in mine:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            quiet = 0 if mine else quiet + 1
            if quiet == 2:
                break
            time.sleep(0.02)
        self.bash.wait()
        for end in (self.bash.stdin, self.bash.stdout):
            with contextlib.suppress(OSError):
                end.close()

    def started(self, process):
        """Whether it is the page's, in whatever session: told by its environment."""
        try:
            return self.mark.encode() in (process / "environ").read_bytes().split(b"\0")
        except OSError:
            return False


# --- what is expected

UNIT = r"(?:[KMGTP]?i?B|bytes?|ns|us|ms|s|min|h|d|%|x)(?:/s)?"
NOTICE = re.compile(r"\S*: line \d+: +\d+ (Killed|Terminated|Aborted|Segmentation fault)\b.*")
FOLDS = [
    (NOTICE, r"\1"),  # as a terminal has it
    (re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?)?|\b\d\d:\d\d:\d\d\b"), "#"),
    (re.compile(rf"(?<![\w.#])\d[\d,]*(?:\.\d+)? ?{UNIT}(?![\w/])"), "#"),
    (re.compile(r"\b(pid|process) \d+"), r"\1 #"),
    (re.compile(r"\s+"), " "),
]


def fold(line):
    for pattern, by in FOLDS:
        line = pattern.sub(by, line)
    return line.strip()


def pattern(lines):
    """A regular expression for output of which these lines are the description; a group for each line but `...`."""
    parts = []
    for line in lines:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append("(" + ".*".join(re.escape(fold(part)) for part in re.split(r" ?\.\.\. ?", line)) + r")\n")
    return "".join(parts)


def match(expected, said):
    """[(line of the page, line of the output)], or None if they differ. A shell that is no terminal's also tells when what it started before was
    killed: that may come at any time."""
    lines = said.splitlines()
    for chosen in lines, [line for line in lines if not NOTICE.fullmatch(line)]:
        text = "".join(fold(line) + "\n" for line in chosen)
        if found := re.fullmatch(pattern(expected), text):
            told = [line for line in expected if line.strip() != "..."]
            return [(line, chosen[text.count("\n", 0, found.start(i + 1))]) for i, line in enumerate(told)]
    return None


# --- numbers that a page shows

SIZES = {"B": 1, "byte": 1, "bytes": 1, **{f"{c}iB": 1 << 10 * i for i, c in enumerate("KMGTP", 1)}, **{f"{c}B": 1000 ** i for i, c in enumerate("kMGTP", 1)}}
SIZE = re.compile(rf"(?<![\w.#])(\d[\d,]*(?:\.\d+)?) ?({'|'.join(SIZES)}|x)(?![\w/])")
NEAR, FEW = 1.25, 256  # compressors and file formats differ a little by their version; so many bytes are nothing


def sizes(text):
    return [(float(n.replace(",", "")) * SIZES.get(unit, 1), unit == "x", f"{n} {unit}") for n, unit in SIZE.findall(text)]


def stale(shown, said):
    """(as shown, as it is) of sizes and ratios that are not near each other. Beyond `...` only the ends of the lines can be compared."""
    real = sizes(said)
    parts = [sizes(part) for part in shown.split("...")]
    pairs = list(zip(parts[0], real))
    if len(parts) > 1 and parts[-1]:
        pairs += zip(parts[-1], real[-len(parts[-1]):])
    return [(a[2], b[2]) for a, b in pairs if a[1] == b[1] and not (a[0] <= NEAR * b[0] and b[0] <= NEAR * a[0])
            and (a[1] or abs(a[0] - b[0]) > FEW)]


def steps(text):
    """(command, lines of output, status) of a console block; the lines are None where nothing is said of the output."""
    lines, found = text.split("\n")[:-1], []
    while lines:
        if not lines[0].startswith("$ "):
            raise Failed("a console block begins with a command: '$ ...'")
        command = [lines.pop(0)[2:]]
        while lines and (command[-1].endswith("\\") or lines[0].startswith("> ")):
            command.append(re.sub("^> ", "", lines.pop(0)))
        output, status = [], 0
        while lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        if output and (ended := re.fullmatch(r"\[exit (\d+)\]", output[-1])):
            status = int(ended[1])
            output.pop()
        while output and not output[-1].strip():
            output.pop()
        found.append(("\n".join(command), output or None, status))
    return found


# --- code that is only compiled

def mpi_flags(language):
    found = re.search(rf"^MPI_{language}_COMPILER_INCLUDE_DIRS:\w+=(.+)$", CACHE, re.M)
    return [word for folder in found[1].split(";") for word in ("-isystem" if language == "C" else "-I", folder)] if found else []


def split_includes(text):
    lines = text.split("\n")
    return "\n".join(x for x in lines if re.match(r"#\s*include", x)), "\n".join("" if re.match(r"#\s*include", x) else x for x in lines)


def whole(block, number):
    """The block as something that compiles."""
    notes, text = block.notes, block.text
    if block.language == "fortran":
        if "fragment" not in notes:
            return text
        return f"subroutine fragment{number}()\nuse varve\n{notes['fragment']}\n{text}end subroutine\n"
    includes, text = split_includes(text)
    spaced = block.language == "cpp" and "int main(" not in text
    opening, closing = (f"namespace block{number} {{\n", "}\n") if spaced else ("", "")
    if "fragment" in notes or "before" in notes:
        includes = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + includes
        includes += "\n#include <varve/varve.hpp>" if block.language == "cpp" else "\n#include <varve/varve.h>"
        opening += notes.get("fragment", "") + notes.get("before", "") + "\n"
    if "fragment" in notes:
        arguments = "" if block.language == "cpp" else "void"
        opening, closing = opening + f"int fragment({arguments});\nint fragment({arguments})\n{{\n", "\nreturn 0;\n}\n" + closing
    return f"{includes}\n{opening}#line {block.line}\n{text}\n{closing}"


def compile_blocks(name, blocks, installed, folder):
    """Blocks that are no files. C++ is slow to compile, and so a page's blocks are one file there, each in a namespace, but for programs."""
    modules = next(installed.prefix.rglob("varve.mod"), None)
    commands = {
        "c": [CC, "-x", "c", "-std=c17", "-D_GNU_SOURCE", f"-I{installed.prefix}/include", *mpi_flags("C")],
        "cpp": [CXX, "-x", "c++", "-std=c++17", f"-I{installed.prefix}/include", *mpi_flags("C")],
        "fortran": [FC, "-x", "f95", "-ffree-form", *([f"-I{modules.parent}"] if modules else []), *mpi_flags("Fortran")],
    }
    for language, command in commands.items():
        chosen = [(b.line, whole(b, i), b.notes) for i, b in enumerate(blocks) if b.language == language]
        parts = [c for c in chosen if language == "cpp" and "int main(" not in c[1]]
        if parts:
            together = {k: v for _, _, notes in parts for k, v in notes.items()}
            chosen = [c for c in chosen if c not in parts] + [(parts[0][0], "\n".join(text for _, text, _ in parts), together)]
        for line, text, notes in chosen:
            quiet = ["-Wno-unused"] if "fragment" in notes or "before" in notes else []
            done = subprocess.run([*command, "-fsyntax-only", "-Werror", "-Wall", "-Wextra", *quiet, "-"], input=text, text=True, cwd=folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS, env=installed.env)
            if done.returncode:
                raise Failed(f"{name}:{line}: does not compile\n{done.stdout}")


# --- a page

class Reading:
    """One page, run from top to bottom."""

    def __init__(self, text, installed, folder, loud):
        self.page, self.installed, self.folder, self.loud = text, installed, folder, loud
        self.ran, self.skipped, self.stale, self.compiled, self.server = 0, [], [], [], None
        for name in ("scratch", "home"):
            (folder / name).mkdir()
        self.env = {**installed.env, "HOME": str(folder / "home"), "TMPDIR": str(folder)}

    def inner(self, text):
        return re.sub(r"(?<![\w.}])/scratch\b", str(self.folder / "scratch"), text)

    def outer(self, text):
        return text.replace(str(self.folder / "scratch"), "/scratch").replace(str(self.installed.prefix), "/usr/local")

    def read(self):
        try:
            self.serve()
            self.shell = Shell(self.folder, self.env)
            try:
                for block in self.page.blocks:
                    self.do(block)
            finally:
                self.shell.close()
        finally:
            if self.server:
                self.server.kill()
        compile_blocks(self.page.name, self.compiled, self.installed, self.folder)

    def serve(self):
        """An S3 server, for pages that want one; its buckets are those that the page names."""
        text = "\n".join(self.page.lines)
        if "needs: s3" not in text or self.installed.lacks(["s3"]):
            return
        try:
            s3_server.install()
        except SystemExit:
            self.installed.known["s3"] = False
            return
        for bucket in set(re.findall(r"s3://([a-z0-9.-]+)", text)):
            (self.folder / "buckets" / bucket).mkdir(parents=True, exist_ok=True)
        self.server = s3_server.Server(self.folder / "buckets")
        self.env.update(AWS_ACCESS_KEY_ID="S3RVER", AWS_SECRET_ACCESS_KEY="S3RVER", VARVE_S3_PATH_STYLE="yes",
                        VARVE_S3_ENDPOINT=f"http://127.0.0.1:{self.server.port}")

    def do(self, block):
        runs = block.language in ("console", "sh", "bash", "run", "c", "cpp", "fortran") or "file" in block.notes
        if "not run" in block.notes:
            if not block.notes["not run"]:
                raise Failed(f"{self.page.name}:{block.line}: 'not run' without a reason")
            self.skipped.append(block.notes["not run"])
        elif runs and (lacking := self.lacking(block)):
            self.skipped.append(f"no {lacking} here")
        elif "file" in block.notes:
            self.save(block)
        elif block.language in ("c", "cpp", "fortran"):
            self.compiled.append(block)
            self.ran += 1
        elif block.language in ("sh", "bash", "run"):
            # where the last line is a list of && that fails, set -e does not end it
            self.command(block, block.text, None, 0, "set -e\n{}varve_status=$?\nset +e\nreturn $varve_status\n")
            self.ran += block.language != "run"
        elif block.language == "console":
            for step in steps(block.text):
                self.command(block, *step)
            self.ran += 1

    def lacking(self, block):
        needs = [*self.page.needs, *block.notes.get("needs", "").split()]
        needs += [block.language] if block.language in ("cpp", "fortran") else []
        if block.language in ("c", "cpp", "fortran") and re.search(r"varve_mpi|mpi\.h|\bMPI_|use mpi", block.text + "".join(block.notes.values())):
            needs.append("mpi")
        return self.installed.lacks(needs)

    def save(self, block):
        path = (self.folder / "scratch" / block.notes["file"]).resolve()
        if self.folder / "scratch" not in path.parents:
            raise Failed(f"{self.page.name}:{block.line}: a file outside the page's folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.inner(block.text))
        path.chmod(0o755 if block.text.startswith("#!") else 0o644)
        self.ran += 1

    def command(self, block, text, expected, wanted, form="{}\n"):
        status, said = self.shell.run(form.format(self.inner(text)))
        said = self.outer(said)
        if self.loud:
            print(f"$ {text.strip()}\n{said}", end="" if said.endswith("\n") else "\n", flush=True)
        where = f"{self.page.name}:{block.line}: $ {text.strip()}\n{said.rstrip()}"
        if status is None:
            raise Failed(f"{where}\n--- it did not end in time")
        if status != wanted:
            raise Failed(f"{where}\n--- status {status}, not {wanted}")
        lines = match(expected, said) if expected is not None else []
        if lines is None:
            raise Failed(f"{where}\n--- the page says\n" + "\n".join(expected))
        self.stale += [f"{self.page.name}:{block.line}: $ {text.strip()}: the page shows {a}, it is {b}: {now.strip()}" for shown, now in lines for a, b in stale(shown, now)]


def read(text, installed, work, loud):
    """(problems, a line that says what was done)"""
    problems = list(text.problems)
    folder = work / re.sub(r"\W+", "-", text.name)
    folder.mkdir()
    reading = Reading(text, installed, folder.resolve(), loud)
    try:
        reading.read()
    except Failed as failure:
        problems.append(str(failure))
    if not installed.lacks(["zstd"]):  # without a compressor sizes are others
        problems += reading.stale
    shutil.rmtree(folder, ignore_errors=True)
    reasons = "; ".join(sorted(set(reading.skipped)))
    return problems, f"{text.name}: {reading.ran} blocks run" + (f", {len(reading.skipped)} skipped: {reasons}" if reasons else "")


def sanitized():
    if re.search(r"^VARVE_SANITIZE:\w+=.", CACHE, re.M):
        print("skipped: programs of the documentation are not linked with a sanitizer")
        return True
    return False


def main(names):
    if sanitized():
        return 77
    chosen, count, wrong = page.pages(names), 0, 0
    # criu has sockets in folders of the pages
    with tempfile.TemporaryDirectory(prefix="varve-docs-", dir=None if len(tempfile.gettempdir()) < 16 else "/tmp") as folder:
        work = pathlib.Path(folder).resolve()
        installed = Installed(work)
        with concurrent.futures.ThreadPoolExecutor(1 if names else 4) as pool:
            for problems, line in pool.map(lambda p: read(p, installed, work, bool(names)), [p for p in chosen if p.blocks or p.problems]):
                print("\n".join([*problems, line]), flush=True)
                wrong += len(problems)
                count += 1
    print("\n".join(f"not run: {p.name}:{b.line}: {b.notes['not run']}" for p in chosen for b in p.blocks if "not run" in b.notes))
    print(f"{count} pages, {wrong} problems")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
