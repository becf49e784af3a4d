#!/usr/bin/env python3
# ctest: TIMEOUT 900 COST 90 PROCESSORS 2
"""The Debian packages are built from the source package, have no finding of lintian, and are installed, used and removed in a folder."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["VARVE_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests/meta"))
import tree

EXAMPLE = SOURCE / "examples/first.c"
FLAGS = ("CFLAGS", "CPPFLAGS", "CXXFLAGS", "FCFLAGS", "FFLAGS", "LDFLAGS", "DESTDIR", "MAKEFLAGS")  # those of debhelper count
TOOLS = ("dpkg-buildpackage", "dpkg-checkbuilddeps", "dh", "lintian", "pkg-config")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, cwd=None, ok=(0,), **env):
    p = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd,
                       env={**{k: v for k, v in os.environ.items() if k not in FLAGS}, **env})
    if p.returncode not in ok:
        print("\n".join(p.stdout.splitlines()[-60:]))
        sys.exit(f"{' '.join(str(c) for c in command)}: exit {p.returncode}")
    return p.stdout


def expect(what, got, wanted):
    print(f"{what}: {got}")
    if got != wanted:
        sys.exit(f"{what}: wanted {wanted}")


def build(work):
    """Without optimisation, for the sake of time; the unit tests are tests of their own."""
    source = work / "varve"
    for path in tree.all_files():
        to = source / path.relative_to(SOURCE)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)
    p = subprocess.run(["dpkg-checkbuilddeps"], cwd=source, capture_output=True, text=True)
    if p.returncode != 0:
        skip(p.stderr.strip())
    run("dpkg-buildpackage", "-us", "-uc", cwd=source, DEB_BUILD_OPTIONS=f"nocheck noopt parallel={os.cpu_count()}")
    shutil.rmtree(source)
    changes, = work.glob("*.changes")
    debs = sorted(work.glob("*.deb"))
    print(*(d.name for d in debs))
    return changes, debs


def options_agree():
    """debian/rules sets every option of an optional part."""
    known = set(re.findall(r"^VARVE_WITH_(\w+):STRING=", (tree.BUILD / "CMakeCache.txt").read_text(), re.M))
    lists = re.findall(r"^(?:present|absent) *= (.+)$", (SOURCE / "debian/rules").read_text(), re.M)
    expect("options that debian/rules does not set, or does not know", known ^ set(" ".join(lists).split()), set())


def install(root, debs):
    """By dpkg itself where root may; other users unpack. Needed packages are those of this machine. The script of python3-varve needs an
    interpreter in the folder, so that package is unpacked."""
    unpacked = [d for d in debs if os.geteuid() != 0 or d.name.startswith("python3-")]
    for deb in unpacked:
        run("dpkg", "-x", deb, root)
    if len(unpacked) == len(debs):
        return
    debs = [d for d in debs if d not in unpacked]
    for folder in ("info", "updates"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    for name in ("status", "available"):
        (root / "var/lib/dpkg" / name).touch()
    run("dpkg", f"--root={root}", "--force-depends", f"--log={root}.log", "-i", *debs)


def use(root, work, version):
    lib = next(root.glob("usr/lib/*/libvarve.so")).parent
    env = {"PATH": f"{root}/usr/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(lib), "PKG_CONFIG_PATH": str(lib / "pkgconfig")}
    expect("varve --version", run("varve", "--version", **env).strip(), f"varve {version}")
    expect("pkg-config", run("pkg-config", "--modversion", "varve", **env).strip(), version)
    flags = run("pkg-config", "--cflags", "--libs", "varve", **env).split()
    run(os.environ.get("CC", "cc"), EXAMPLE, *flags, "-o", work / "first")
    needed = run("ldd", work / "first", **env)
    expect("the program has the packaged library", f"{lib}/libvarve.so.0" in needed, True)
    run(work / "first", work / "store", **env)
    expect("varve verify", "no problem" in run("varve", "verify", work / "store", **env), True)
    module = root / "usr/lib/python3/dist-packages"
    said = run("/usr/bin/python3", "-c", "import varve; print(varve.__file__, varve.native_version())", PYTHONPATH=str(module), **env)
    expect("python3-varve", said.split(), [str(module / "varve/__init__.py"), version])
    if shutil.which("man"):
        expect("man varve_open", "varve_open" in run("man", root / "usr/share/man/man3/varve_open.3.gz", MANPAGER="cat", **env), True)


def remove(root):
    if os.geteuid() != 0:
        return
    for folder in "lib/python3", "share/doc/python3-varve":
        shutil.rmtree(root / "usr" / folder)
    names = [p.stem.split(":")[0] for p in (root / "var/lib/dpkg/info").glob("*.list")]
    run("dpkg", f"--root={root}", "--force-depends", f"--log={root}.log", "--purge", *names)
    expect("left behind", [str(p.relative_to(root)) for p in root.rglob("*varve*")], [])


options_agree()
for name in TOOLS:
    if not shutil.which(name):
        skip(f"no {name} here (packages debhelper, dpkg-dev, lintian, pkg-config)")
version = re.search(r"^project\(varve VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    changes, debs = build(work)
    findings = run("lintian", "--fail-on", "none", "--allow-root", "--tag-display-limit", "0", changes)
    expect("lintian", [line for line in findings.splitlines() if re.match(r"[EW]:", line)], [])
    (work / "root").mkdir()
    install(work / "root", debs)
    use(work / "root", work, version)
    remove(work / "root")
