#!/usr/bin/env python3
# ctest: TIMEOUT 300 PROCESSORS 2
"""Programs that others wrote, under libvarve_preload: they do what they do without."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("VARVE_BUILD", HERE.parents[1] / "build"))
PRELOAD = BUILD / "libvarve_preload.so"
MPIEXEC = os.environ.get("VARVE_MPIEXEC", "")

PYTHON = """
import re, threading
def numbers(n):
    table = {str(i): [j * 1.5 for j in range(i % 17)] for i in range(n)}
    return sum(len(v) + sum(v) for v in table.values()), len(re.findall("7", " ".join(table)))
out = [None] * 4
def work(k):
    out[k] = numbers(20000 + k)
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
import subprocess
print(out, subprocess.run(["echo", "a child"], capture_output=True, text=True).stdout)
"""
PERL = r"""
my %h; for my $i (1..60000) { $h{"k" . ($i * 7919 % 20000)} .= chr(97 + $i % 26); }
my $n = 0; $n += length for values %h; print join(",", (sort keys %h)[0..5]), " $n\n"; print `echo a child`;
"""
SQL = """create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 60000) insert into t select x, 'text ' || (x * 7919 % 60000) from c;
create index i on t(b); delete from t where a % 3 = 0; vacuum;
select count(*), min(b), max(b) from t; select sum(a) from t where b like '%77%';"""
LAMMPS = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 10
run 60
"""


def output(command, preload, **kw):
    env = {**os.environ, **({"LD_PRELOAD": str(PRELOAD)} if preload else {})}
    p = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, **kw)
    if p.returncode != 0:
        sys.exit(f"{command[0]}, {'with' if preload else 'without'} varve: exit {p.returncode}\n{p.stdout}{p.stderr}")
    return p.stdout


def same(name, with_varve, without):
    if with_varve != without:
        sys.exit(f"FAILED: {name}\nwith varve: {with_varve[-2000:]}\nwithout: {without[-2000:]}")
    print(f"{name}: the same, {len(without)} bytes")


def compare(name, command, **kw):
    if not shutil.which(command[0]):
        print(f"{name}: not installed, left out")
        return
    same(name, output(command, True, **kw), output(command, False, **kw))


def check_sort(work):
    text = work / "lines"
    text.write_text("\n".join(str(i * 2654435761 % 1000003) for i in range(300000)))
    compare("sort", ["sort", "-S", "2M", f"-T{work}", "--parallel=4", str(text)])


def check_git(work):
    if not shutil.which("git"):
        print("git: not installed, left out")
        return
    repo = work / "repo"
    git = ["git", "-C", str(repo), "-c", "user.name=n", "-c", "user.email=e", "-c", "gc.auto=0", "-c", "pack.threads=2"]
    repo.mkdir()
    output([*git, "init", "-q"], False)
    for i in range(12):
        for k in range(20):
            (repo / f"file{k}").write_text("".join(f"line {j} of {k} at {i // (k + 1)}\n" for j in range(200)))
        output([*git, "add", "."], False)
        output([*git, "commit", "-q", "-m", f"change {i}", "--allow-empty"], True)
    before = output([*git, "log", "--format=%T", "-p"], False)
    output([*git, "gc", "-q", "--aggressive"], True)
    output([*git, "fsck", "--full", "--strict"], True)
    same("git gc", output([*git, "log", "--format=%T", "-p"], True), before)


def thermo(text):
    return [line for line in text.splitlines() if line.split() and all(c in "0123456789.-+e " for c in line.strip())]


def check_lammps(work):
    if not MPIEXEC or not shutil.which("lmp"):
        print("LAMMPS, or MPI: not installed, left out")
        return
    (work / "in.lj").write_text(LAMMPS)
    run = ["lmp", "-in", str(work / "in.lj"), "-log", "none"]
    with_varve = thermo(output([MPIEXEC, "-n", "2", "env", f"LD_PRELOAD={PRELOAD}", *run], False))
    without = thermo(output([MPIEXEC, "-n", "2", *run], False))
    if len(without) < 7:
        sys.exit(f"LAMMPS has printed no table: {without}")
    same("LAMMPS, 2 ranks", "\n".join(with_varve), "\n".join(without))


if not PRELOAD.exists():
    print("libvarve_preload is not built: no jemalloc here, or a sanitizer")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="varve-here-") as folder:
    folder = pathlib.Path(folder)
    python = "/usr/bin/python3" if pathlib.Path("/usr/bin/python3").exists() else sys.executable
    compare("python3", [python, "-c", PYTHON])
    os.environ["PYTHONMALLOC"] = "malloc"
    compare("python3, every object by malloc", [python, "-c", PYTHON])
    os.environ["PERL_HASH_SEED"] = "0"
    compare("perl", ["perl", "-e", PERL])
    compare("sqlite3", ["sqlite3", ":memory:", SQL])
    check_sort(folder)
    check_git(folder)
    check_lammps(folder)
print("ok")
