#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 15
"""The RPM packages are made of this build by packaging/rpm/varve.spec: every installed file is in one of them, and the command runs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = (pathlib.Path(os.environ[name]) for name in ("VARVE_SOURCE", "VARVE_BUILD"))
SPEC = SOURCE / "packaging/rpm/varve.spec"
CACHE = (BUILD / "CMakeCache.txt").read_text()
CONFIG = (BUILD / "include/vv_config.h").read_text()
TOOLS = ("rpmspec", "rpmbuild", "rpm2cpio", "cpio")


def run(*command, **options):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=options.pop("text", True), **options)
    if p.returncode != 0:
        sys.exit(f"{command}: exit {p.returncode}\n{p.stdout[-4000:]}{p.stderr[-4000:]}")
    return p.stdout


def expect(what, got, wanted):
    print(f"{what}: {got}")
    if got != wanted:
        sys.exit(f"{what}: wanted {wanted}")


def conditions():
    built = {name: f"#define VV_HAVE_{name.upper()} 1" in CONFIG for name in ("mpi", "fortran", "jemalloc")}
    return [word for name in built for word in ("--with" if built[name] else "--without", name)]


def macros(work):
    """The build is the one that is there. Fedora has these macros, Debian's rpm has not."""
    libdir = re.search(r"^CMAKE_INSTALL_LIBDIR:\w+=(.+)$", CACHE, re.M)[1]
    given = {"_topdir": work, "_libdir": f"/usr/{libdir}", "_mandir": "/usr/share/man", "debug_package": "%{nil}", "cmake": ": configured with",
             "cmake_build": ": built with", "cmake_install": f"DESTDIR=%{{buildroot}} cmake --install '{BUILD}' --prefix /usr && rm -rf %{{buildroot}}/usr/lib/python3*", "ctest": ": tested with",
             "__strip": "/bin/true", "_binary_payload": "w1.gzdio", "_source_payload": "w1.gzdio"}
    return [word for name, value in given.items() for word in ("--define", f"{name} {value}")]


def make(work, version):
    """From a source package with the files that the spec names."""
    source = work / f"SOURCES/varve-{version}"
    source.mkdir(parents=True)
    for name in ("LICENSE", "README.md", "CHANGELOG.md"):
        shutil.copy(SOURCE / name, source)
    run("tar", "czf", f"{source}.tar.gz", "-C", source.parent, source.name)
    run("rpmbuild", "-ba", "--nodeps", *conditions(), *macros(work), SPEC, env={k: v for k, v in os.environ.items() if k != "DESTDIR"})
    return sorted(work.glob("RPMS/*/*.rpm"))


def unpack(work, packages):
    root = work / "root"
    root.mkdir()
    for package in packages:
        data = run("rpm2cpio", package, text=False)
        run("cpio", "-idm", "--quiet", "--no-absolute-filenames", input=data, text=False, cwd=root)
    return root


def options_agree():
    """The spec sets every option of an optional part."""
    known = set(re.findall(r"^(VARVE_WITH_\w+):STRING=", CACHE, re.M))
    expect("options that the spec does not set", known - set(re.findall(r"-D(VARVE_WITH_\w+)=", SPEC.read_text())), set())


options_agree()
version = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.+)$", CACHE, re.M)[1]
missing = [name for name in TOOLS if not shutil.which(name)]
if missing:
    print(f"skipped: no {missing[0]} here (packages rpm, cpio)")
    sys.exit(77)
run("rpmspec", "-P", SPEC)
with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    packages = make(work, version)
    expect("packages", [re.match(r"(varve(?:-[a-z]+)?)-\d", p.name)[1] for p in packages], ["varve", "varve-devel", "varve-libs"])
    root = unpack(work, packages)
    lib = next(root.rglob("libvarve.so.0")).parent
    expect("varve --version", run(root / "usr/bin/varve", "--version", env={**os.environ, "LD_LIBRARY_PATH": str(lib)}).strip(), f"varve {version}")
    for name in ("usr/include/varve/varve.h", "usr/share/man/man1/varve.1*", "usr/share/man/man3/varve_open.3*"):
        expect(name, bool(list(root.glob(name))), True)
