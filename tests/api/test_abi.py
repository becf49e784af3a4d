#!/usr/bin/env python3
# ctest: COST 5
"""Programs and libraries of different releases: the version in the header is that of the project; structs that are shorter or longer in the
program than in the library are filled without an overrun, and end in zeros; the old names of the handle, and a namespace instead."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(os.environ["VARVE_SOURCE"]), pathlib.Path(os.environ["VARVE_BUILD"])
CC, CXX = os.environ.get("CC", "cc"), os.environ.get("CXX", "")
SANITIZE = re.search(r"^VARVE_SANITIZE:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1]
INTERPOSE = ["-lvarve_interpose"] if (BUILD / "libvarve_interpose.so").exists() else []
LINK = [f"-L{BUILD}", "-Wl,--no-as-needed", *INTERPOSE, "-lvarve", f"-Wl,-rpath,{BUILD}", *([f"-fsanitize={SANITIZE.replace(';', ',')}"] if SANITIZE else [])]

VERSION = r"""
#include <stdio.h>
#include <varve/varve.h>
#if VARVE_VERSION < 100
#error "VARVE_VERSION is not a number for the preprocessor"
#endif
int main(void)
{
	printf("%d.%d.%d %s %d\n", VARVE_VERSION_MAJOR, VARVE_VERSION_MINOR, VARVE_VERSION_PATCH, varve_version(), VARVE_VERSION);
	return 0;
}
"""

# GUARD is a byte that no struct has. Each struct lies in memory that is full of it, and may be written as far as it reaches.
SIZES = r"""
#include <stdio.h>
#include <string.h>
#include <varve/varve.h>
enum { GUARD = 0xa5, ROOM = 4096 };
static _Alignas(16) unsigned char stats[ROOM], info[ROOM];
static size_t written(const unsigned char *p)
{
	size_t n = ROOM;

	while (n && p[n - 1] == GUARD)
		n--;
	return n;
}
static size_t zeros(const unsigned char *p, size_t n)
{
	size_t from = n;

	while (from && !p[from - 1])
		from--;
	return n - from;
}
#ifdef OLD
int old_stats(varve *v, struct varve_stats *out) __asm__("varve_stats");
int old_region(varve *v, uint64_t epoch, const char *name, struct varve_region_info *out) __asm__("varve_region");
#else
#define old_stats varve_stats
#define old_region varve_region
#endif
int main(void)
{
	static double x[4] = { 1, 2, 3, 4 };
	size_t shape[1] = { 4 };
	varve *v;

	memset(stats, GUARD, ROOM);
	memset(info, GUARD, ROOM);
	if (varve_open("mem:abi", "a", "mode=sync", &v) || varve_protect_array(v, "x", x, VARVE_F64, 1, shape) || varve_checkpoint(v))
		return 1;
	if (old_stats(v, (struct varve_stats *)stats) || old_region(v, VARVE_LATEST, "x", (struct varve_region_info *)info))
		return 2;
	printf("%zu %zu %zu %zu ", sizeof(struct varve_stats), written(stats), sizeof(struct varve_region_info), written(info));
	printf("%d %d ", ((struct varve_stats *)stats)->bytes_memory == sizeof(x), ((struct varve_region_info *)info)->bytes == sizeof(x));
	printf("%zu\n", zeros(info, sizeof(struct varve_region_info)));
	return varve_close(v);
}
"""

OLD_NAMES = "#include <varve/varve.h>\nstruct varve;\nint f(varve *v);\nint f(varve *v) { varve_session *s = v; struct varve *t = s; return varve_close(t); }\n"
NEW_NAMES = "#define VARVE_NO_OLD_NAMES\n#include <varve/varve.h>\n#include <varve/varve_comm.h>\nint varve(varve_session *v);\n" \
            "int varve(varve_session *v) { return varve_close(v); }\n"
OLD_CPP = OLD_NAMES + "#include <varve/varve.hpp>\n::varve *get(varve::session &s) { return s.get(); }\n"
NAMESPACE = """#define VARVE_NO_OLD_NAMES
#include <varve/varve.h>
namespace varve { struct mine {}; }
#include <varve/varve.hpp>
#include <cstdio>
namespace varve { inline int of_the_program(session &s) { return s.get() != nullptr; } }
int main()
{
	int x = 1;
	std::vector<int> y(3);
	varve::session s("mem:names", "a");
	::varve_session *handle = s.get();

	s.protect("x", x);
	s.protect("y", y, varve::pinned);
	try {
		s.restart_region("none", &x, 1);
	} catch (const varve::error &e) {
		std::printf("%d %d %d\\n", varve::of_the_program(s), e.code() == VARVE_ENOENT, varve_test(handle, VARVE_LATEST));
	}
	return varve::checkpoint_here();
}
"""


def compile(work, text, *flags, compiler=CC, include=SOURCE / "include", suffix="c"):
    source = work / f"program.{suffix}"
    source.write_text(text)
    done = subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Werror", f"-I{include}", source], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: {done.stderr}\n{text}")


def output(work, text, *flags, **how):
    compile(work, text, "-o", work / "program", *flags, *LINK, **how)
    done = subprocess.run([work / "program"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.split()


def expect(what, got, wanted):
    print(f"{what}: {got}")
    if got != wanted:
        sys.exit(f"FAILED {what}: wanted {wanted}")


def check_version(work):
    project = re.search(r"^project\(varve VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
    major, minor, patch = map(int, project.split("."))
    expect("version", output(work, VERSION), [project, project, str(major * 10000 + minor * 100 + patch)])


def header(work, change):
    """A folder with the headers of another release."""
    folder = work / "include" / "varve"
    folder.mkdir(parents=True, exist_ok=True)
    text = (SOURCE / "include/varve/varve.h").read_text()
    for struct in ("varve_stats", "varve_region_info"):
        text, n = re.subn(rf"(?<=\nstruct {struct} \{{\n)(.*?)(?=\n\}};)", lambda m: change(m[1]), text, flags=re.S)
        assert n == 1, struct
    (folder / "varve.h").write_text(text)
    return folder.parent


def check_sizes(work):
    same = output(work, SIZES)
    sizes, ends = [int(same[0]), int(same[2])], int(same[6])
    expect("the same release", same, [same[0], same[0], same[2], same[2], "1", "1", same[6]])
    expect("an old program, which passes no size", output(work, SIZES, "-DOLD"), same)
    shorter = output(work, SIZES, include=header(work, lambda members: members.rsplit("\n", 1)[0]))
    assert int(shorter[0]) < sizes[0] and int(shorter[2]) < sizes[1], shorter
    expect("a program with shorter structs", shorter[:6], [shorter[0], shorter[0], shorter[2], shorter[2], "1", "1"])
    longer = output(work, SIZES, include=header(work, lambda members: members + "\n\tuint64_t later[5];"))
    expect("a program with longer structs", longer, [str(sizes[0] + 40), str(sizes[0] + 40), str(sizes[1] + 40), str(sizes[1] + 40), "1", "1", str(ends + 40)])
    expect("an old program with the headers of a later release", output(work, SIZES, "-DOLD", include=work / "include")[1:4:2], [same[0], same[2]])


def check_names(work):
    compile(work, OLD_NAMES, "-fsyntax-only")
    compile(work, NEW_NAMES, "-fsyntax-only")
    if CXX:
        how = {"compiler": CXX, "suffix": "cpp"}
        compile(work, OLD_CPP, "-std=c++17", "-fsyntax-only", **how)
        expect("a namespace", output(work, NAMESPACE, "-std=c++17", "-Wno-shadow", **how), ["1", "1", "1"])


with tempfile.TemporaryDirectory(prefix="varve-abi-") as folder:
    check_version(pathlib.Path(folder))
    check_sizes(pathlib.Path(folder))
    check_names(pathlib.Path(folder))
