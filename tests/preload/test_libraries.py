#!/usr/bin/env python3
# ctest: TIMEOUT 120
"""Libraries that a program loads: its own must lie where they lay, and whoever is refused is told which does not; those of MPI and the like, and
what only they need, may lie anywhere, and their memory is not the program's."""
import pathlib
import re
import subprocess
import tempfile

from test_here import CC, Job, compile, expect

ALLOCATE = "#include <stdlib.h>\n#include <string.h>\nextern void %s(size_t);\nvoid *volatile %s_kept;\n" \
           "void %s(size_t n) { %s_kept = malloc(n); memset(%s_kept, 1, n); %s }\n"


def library(work, name, *needs, size=0, more=""):
    """It allocates, and so do those that it needs."""
    source, out = work / f"{name}.c", work / f"{name}.so"
    stem = re.sub("[^a-z]", "_", name)
    calls = "".join(f"extern void {n}_allocate(size_t); {n}_allocate(n); " for n in needs)
    text = ALLOCATE % (*(f"{stem}_allocate", stem, f"{stem}_allocate", stem, stem), calls)
    source.write_text(text + f"void allocate(size_t n) {{ {stem}_allocate(n); }}\nchar {stem}_room[{size + 1}] = {{ 1 }};\n{more}\n")
    subprocess.run([CC, "-shared", "-fPIC", "-O1", source, "-o", out, f"-Wl,-soname,{name}.so", f"-Wl,-rpath,{work}", f"-L{work}",
                    "-Wl,--build-id", *(f"-l:{n}.so" for n in needs)], check=True)
    return out


class Loader:
    def __init__(self, work, program):
        self.work, self.program, self.n = work, program, 0

    def fresh(self, *libraries, **env):
        self.n += 1
        self.job = Job(self.work, f"case{self.n}", self.program, VARVE_INTERVAL="0", **env)
        status, out, err = self.job.run(3, 0, *self.odd(libraries, 100))
        expect("it runs", (status, out) == (0, "3\n") and self.job.told("durable"), status, out, err)

    def odd(self, libraries, n):
        return [word for one in libraries for word in (one if isinstance(one, tuple) else (one, n))]

    def again(self, *libraries, gap=0, odd=100):
        return self.job.run(6, gap, *self.odd(libraries, odd))

    def goes_on(self, what, *libraries, **how):
        status, out, err = self.again(*libraries, **how)
        expect(f"{what}: it goes on", (status, out) == (0, "6\n") and self.job.told("restored"), status, out, err)

    def refused(self, what, words, *libraries, **how):
        status, out, err = self.again(*libraries, **how)
        expect(f"{what}: refused, and told", status == 76 and re.search(words, err) and not self.job.told("restored"), status, out, err)


def check_lazy(work):
    """Addresses of functions in the executable's variables are the loader's: a library that was built again has other ones."""
    def build(more):
        (work / "libout.c").write_text(f"{more}int outside(void) {{ return 7; }}\n")
        subprocess.run([CC, "-shared", "-fPIC", "-O1", work / "libout.c", "-o", work / "libout.so"], check=True)
    build("")
    for how in ("lazy", "norelro", "now"):
        program = compile(work, "here_lazy.c", f"-L{work}", "-lout", f"-Wl,-rpath,{work}", "-Wl,-z,lazy", f"-Wl,-z,{how}")
        job = Job(work, f"lazy-{how}", program, VARVE_INTERVAL="0", VARVE_RUN_GLOBALS="1", VARVE_RUN_OUTSIDE="libout")
        build("")
        status, out, err = job.run(3)
        expect(f"{how}: it runs", (status, out) == (0, "3\n") and job.told("durable"), status, out, err)
        build("int before(void) { return 1; }\n")
        status, out, err = job.run(6)
        expect(f"{how}: it goes on with another library outside", (status, out) == (0, "6\n") and job.told("restored"), status, out, err)


def main():
    gap = 4 << 20
    with tempfile.TemporaryDirectory(prefix="varve-libraries-") as work:
        work = pathlib.Path(work)
        check_lazy(work)
        l = Loader(work, compile(work, "here_libraries.c"))
        plug, deeper = library(work, "plug"), library(work, "deeper")
        deep = library(work, "deep", "deeper")
        fake = library(work, "mca_fake", "deep")
        both = library(work, "both", "deep")

        l.fresh(plug)
        l.goes_on("the same libraries", plug)
        l.fresh(plug)
        l.refused("one that has moved", r"library 'plug\.so' lies at 0x[0-9a-f]+, it lay at 0x[0-9a-f]+: .*VARVE_RUN_OUTSIDE", plug, gap=gap)
        l.refused("one that is missing", r"library 'plug\.so', which the program had, is not loaded")
        l.goes_on("one more", plug, (deeper, 0))
        l.fresh(plug)
        library(work, "plug", size=1 << 20)
        l.refused("another one", r"library 'plug\.so' is another one: it has \d+ bytes, it had \d+", plug)
        l.fresh(plug)
        library(work, "plug", size=1 << 20, more="int other(void) { return 1; }")
        l.refused("another build of the same size", r"library 'plug\.so' is another one: it was built again", plug)
        l.fresh(plug, VARVE_RUN_OUTSIDE="libnone:plug")
        l.goes_on("one that is said to be outside", plug, gap=gap, odd=5000)
        l.fresh((plug, 0))
        l.job.env["VARVE_RUN_OUTSIDE"] = "plug"
        l.goes_on("one that is said to be outside since", (plug, 0), gap=gap)

        early = library(work, "early", more="__attribute__((constructor)) static void begin(void) { early_kept = malloc(1); }")
        linked = Loader(work / "linked", compile(work, "here_libraries.c", "-Wl,--no-as-needed", early, f"-Wl,-rpath,{work}"))
        linked.work.mkdir()
        linked.fresh(early)
        linked.refused("one that comes with the program, and allocates before all", r"in all, \d+ objects", early, odd=5000)
        linked.fresh(early, VARVE_RUN_OUTSIDE="early")
        linked.goes_on("such a one is said to be outside", early, odd=5000)

        l.fresh(fake)
        l.goes_on("what only MPI needs has moved, and allocates otherwise", fake, gap=gap, odd=5000)
        l.fresh(fake, both)
        l.refused("what MPI needs, and the program as well", r"library 'deep\.so' lies at", fake, both, gap=gap)
        l.refused("it allocates otherwise", r"in all, \d+ objects", fake, both, odd=5000)
        l.fresh(plug)
        l.goes_on("one of MPI's is loaded this time", plug, fake)


if __name__ == "__main__":
    main()
