#!/usr/bin/env python3
"""Pointers in the state that lead to memory which is not in it are told of: where, whose, once; and those that are right after a restart are not."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import test_here
from test_here import BUILD, CC, HERE, MPIEXEC, PRELOAD, SOURCE, Job, compile, expect

TOLD = re.compile(r"warning: (.*), byte (\d+), points to 0x[0-9a-f]+, memory of (.+?), which is not saved")


def told(work, program, what, **env):
    status, out, err = Job(work, f"stray.{what}.{len(env)}", program, VARVE_INTERVAL="0", **env).run(what)
    expect(f"{what}: it runs", status == 0, status, out, err)
    return TOLD.findall(err)


def check(work):
    program = compile(work, "here_outside_pointers.c")
    for what in ("", "except", "closed"):
        expect(f"'{what}': nothing is told", told(work, program, what) == [], told(work, program, what))
    found = told(work, program, "stream")
    expect("a stream, once", len(found) == 1 and found[0][1:] == ("32", "libc.so.6") and "the object of up to" in found[0][0], found)
    expect("switched off", told(work, program, "stream", VARVE_RUN_POINTERS="off") == [])
    found = told(work, program, "variable")
    expect("a variable, by its name", found == [("variable", "0", "libc.so.6")], found)
    found = told(work, program, "shared")
    expect("shared memory", len(found) == 1 and found[0][1] == "32" and found[0][2].startswith("/dev/shm/varve-stray-"), found)


def check_cuda(work):
    """Device memory lies in addresses that are reserved without rights: only CUDA knows which."""
    library, program = work / "libcuda.so.1", work / "stray_cuda"
    subprocess.run([CC, "-shared", "-fPIC", "-O2", "-Wl,-soname,libcuda.so.1", HERE / "stand_in_cuda.c", "-o", library], check=True)
    subprocess.run([CC, "-D_GNU_SOURCE", "-DWITH_CUDA", "-O2", f"-I{SOURCE / 'include'}", HERE / "here_outside_pointers.c", "-o", program, library,
                    f"-Wl,-rpath,{work}"], check=True)
    found = told(work, program, "cuda")
    expect("device memory", len(found) == 1 and found[0][1:] == ("32", "CUDA"), found)
    found = told(work, program, "beside")
    expect("reserved addresses without device memory", found == [], found)
    print("device memory, of a stand-in for CUDA", flush=True)


def check_real_cuda(work):
    library = next((line.split("=> ")[1] for line in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout.splitlines()
                    if line.strip().startswith("libcuda.so.1 ")), None)
    if not library:
        print("no CUDA driver: real device memory is left out")
        return
    program = work / "stray_real_cuda"
    subprocess.run([CC, "-D_GNU_SOURCE", "-DWITH_CUDA", "-O2", f"-I{SOURCE / 'include'}", HERE / "here_outside_pointers.c", "-o", program, library], check=True)
    if subprocess.run([program], capture_output=True).returncode == 5:
        print("no CUDA device: real device memory is left out")
        return
    found = [x for x in told(work, program, "real") if x[2] == "CUDA"]
    expect("real device memory", found)
    print("device memory:", found, flush=True)


def check_mpi(work):
    wrapper = shutil.which("mpicc")
    if not MPIEXEC or not wrapper or not (BUILD / "libvarve_preload_mpi.so").exists():
        print("no MPI: its program is left out")
        return
    program = work / "stray_mpi"
    subprocess.run([wrapper, "-D_GNU_SOURCE", "-DWITH_MPI", "-O2", f"-I{SOURCE / 'include'}", HERE / "here_outside_pointers.c", "-o", program], check=True)
    job = Job(work, "stray.mpi", MPIEXEC, "-n", "2", "env", f"LD_PRELOAD={PRELOAD}", program, LD_PRELOAD="", VARVE_INTERVAL="0")
    status, out, err = job.run()
    found = TOLD.findall(err)
    expect("it runs", status == 0, status, out, err)
    if "pointer" in out:
        expect("a communicator, by rank 0 alone", len(found) == 1 and found[0][1] == "32" and found[0][2].startswith("libmpi.so"), found, err)
    else:
        expect("handles that are numbers", found == [], found)


if not PRELOAD.exists():
    print("libvarve_preload is not built: no jemalloc here, or a sanitizer")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="varve-stray-") as folder:
    check(pathlib.Path(folder))
    check_cuda(pathlib.Path(folder))
    check_real_cuda(pathlib.Path(folder))
    check_mpi(pathlib.Path(folder))
print("ok")
