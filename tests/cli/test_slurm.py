#!/usr/bin/env python3
# ctest: TIMEOUT 300 COST 60
"""The script of docs/slurm.md, run by a Slurm of our own on this machine: it comes to its time limit, is queued again, and ends with the right result."""
import ctypes
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import run_case
from run_case import BUILD, REAL, SOURCE, Case

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun")
MPICC = re.search(r"^MPI_C_COMPILER:FILEPATH=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M) if os.environ.get("VARVE_MPIEXEC") else None
PATIENCE = 100
UNPACKED = SOURCE / "build/packages"  # where tools/setup puts a Slurm that is not installed
PLUGINS = next(UNPACKED.glob("usr/lib/*/slurm*"), None)
PATH = ":".join([f"{UNPACKED}/usr/bin", f"{UNPACKED}/usr/sbin", os.environ["PATH"], "/usr/sbin"])
LIBRARIES = [str(folder) for folder in (PLUGINS, *UNPACKED.glob("usr/lib/*-*"), *UNPACKED.glob("lib/*-*")) if folder]
CONF = """
ClusterName=varve
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port_1}
SlurmdPort={port_2}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=pmix
ReturnToService=2
KillWait=5
SlurmdParameters=config_overrides
# more processors than there may be: no job waits for another
NodeName={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(n):
    """Below those that the kernel gives to whoever connects: another test would soon have one of these."""
    ports = []
    while len(ports) < n:
        port = random.randrange(12000, 30000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class Slurm(Case):
    @classmethod
    def setUpClass(cls):
        """One Slurm for all. The job that comes to its time limit is submitted at once, for it waits longest; its test is the last by name."""
        cls.folders = []  # of jobs
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="varve-slurm-"))
        cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
        for folder in ("spool", "state"):
            (cls.place / folder).mkdir()
        cls.place.chmod(0o755)
        key = cls.place / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        conf = cls.place / "slurm.conf"
        ports = free_ports(2)
        conf.write_text(CONF.format(folder=cls.place, host=socket.gethostname().split(".")[0], port_1=ports[0], port_2=ports[1])
                        + (f"PluginDir={PLUGINS}\n" if PLUGINS else ""))
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("VARVE_", "SLURM_"))}
        cls.daemons = {**plain, "SLURM_CONF": str(conf), "PATH": f"{BUILD}:{PATH}"}
        if LIBRARIES:
            cls.daemons["LD_LIBRARY_PATH"] = ":".join([*LIBRARIES, *filter(None, [plain.get("LD_LIBRARY_PATH")])])
        cls.serve("munged", "-F", "--key-file", key, "--socket", cls.place / "munge.socket", "--pid-file", cls.place / "munge.pid",
                  "--log-file", cls.place / "munge.log", "--seed-file", cls.place / "munge.seed")
        cls.until((cls.place / "munge.socket").exists, "munged listens")
        cls.serve("slurmctld", "-D")
        cls.serve("slurmd", "-D", *(["-d", UNPACKED / "usr/sbin/slurmstepd"] if PLUGINS else []))
        cls.until(lambda: "idle" in subprocess.run([shutil.which("sinfo", path=PATH), "-h", "-o", "%t"], capture_output=True, text=True, env=cls.daemons).stdout, "there is a node")
        cls.limited = cls("test_time_limit")
        cls.addClassCleanup(cls.limited.doCleanups)
        cls.limited.setUp()
        # a minute is the shortest limit; 59 s before it is when slurmctld next looks, which it does every 30 s
        cls.limited.submit_script("--time", "1", "--signal", "B:USR1@59", "job.sh", cls.limited.program, 1800, 20)

    def setUp(self):
        super().setUp()
        if REAL.exists():
            del self.env["VARVE_PRELOAD"]
        self.folder.chmod(0o755)
        self.env.update({name: self.daemons[name] for name in ("SLURM_CONF", "PATH", "LD_LIBRARY_PATH") if name in self.daemons})
        for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"):
            self.env.pop(name, None)
        self.folders.append(self.folder)

    @classmethod
    def serve(cls, *words):
        """A daemon, until the tests are over: those started last end first."""
        with open(cls.place / f"{words[0]}.out", "wb") as out:
            p = subprocess.Popen([shutil.which(words[0], path=PATH), *map(str, words[1:])], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=cls.daemons, cwd=cls.place,
                                 preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG: not after us
        cls.addClassCleanup(cls.dismiss, p)

    @staticmethod
    def dismiss(p):
        p.terminate()
        try:
            p.wait(20)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()

    @classmethod
    def until(cls, what, words):
        end = time.time() + PATIENCE
        while time.time() < end:
            got = what()
            if got:
                return got
            time.sleep(0.1)
        logs = [*cls.place.glob("*.out"), *cls.place.glob("*.log"), *(path for folder in cls.folders for path in folder.glob("slurm-*.out"))]
        raise AssertionError(f"waited in vain: {words}\n" + "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in logs))

    def ask(self, *words):
        p = subprocess.run([shutil.which(words[0], path=PATH), *map(str, words[1:])], capture_output=True, text=True, env=self.env, cwd=self.folder, timeout=60)
        return p.stdout

    def submit(self, *words):
        out = self.ask("sbatch", "--parsable", *words)
        self.assertRegex(out, r"^\d+", "sbatch")
        self.job = out.strip()
        self.addCleanup(self.ask, "scancel", "--full", self.job)

    def output(self):
        path = self.folder / f"slurm-{self.job}.out"
        return path.read_text() if path.exists() else ""

    def state(self):
        return self.ask("squeue", "-h", "-j", self.job, "-o", "%T").strip()

    def submit_script(self, *words):
        """With the script of the manual, as job.sh."""
        script = re.search(r"^```bash\n(#!/bin/bash\n.*?)^```", (SOURCE / "docs/slurm.md").read_text(), re.S | re.M)[1]
        self.file("job.sh", script.encode())
        self.submit(*words)

    def test_asked_twice(self):
        self.submit_script("job.sh", self.program, 200, 20)
        for epoch in (1, 2):
            n = len(self.steps())
            self.until(lambda: len(self.steps()) > n + 10, "it works")
            self.ask("scancel", "--batch", "--signal=USR1", self.job)
            self.until(lambda: f"continues from epoch {epoch}" in self.output(), "it is queued again and goes on")
        self.until(lambda: "right after 200 steps" in self.output(), "it ends")
        self.until(lambda: self.state() in ("", "COMPLETED"), "and is not queued again")

    def test_ranks(self):
        """In a job `varve run -n` asks srun; a rank dies, and all come back."""
        if not MPICC or "pmix" not in self.ask("srun", "--mpi=list") + self.ask("sh", "-c", "srun --mpi=list 2>&1"):
            self.skipTest("no MPI, or no PMIx for srun")
        if not REAL.exists():
            self.env["VARVE_PRELOAD"] = str(run_case.PLACE / "stand-in-mpi.so")
        self.file("job.sh", b"#!/bin/sh\nexec varve run -n 2 --store ckpt --every 0.2 -- \"$@\"\n")
        self.submit("-n", "2", "--overcommit", "job.sh", run_case.PLACE / "program-mpi", 40, 20, "20=1:9")
        self.until(lambda: self.output().count("right after 40 steps") == 2, "both ranks end")
        self.assertIn("process", self.output())
        self.assertIn("started: srun", self.output())
        self.assertIn("restart 1 of 3", self.output())
        self.assertEqual((self.steps(0).count(1), self.steps(1).count(1)), (1, 1))

    def test_time_limit(self):
        """Told before its time limit, it ends with a checkpoint, is queued again, and goes on."""
        job = self.limited
        self.until(lambda: "begins at its start" in job.output(), "it runs")
        self.until(lambda: "the last checkpoint was asked for" in job.output(), "the limit is near")
        self.until(lambda: "right after 1800 steps" in job.output(), "it ends")
        self.assertIn("continues from epoch 1", job.output())
        self.assertIn("the program ended, as asked: it was killed by signal 15", job.output())
        self.assertEqual(job.steps().count(1), 1)
        self.assertLess(len(job.steps()), 2200)  # only what came between a checkpoint and the end was done twice
        self.until(lambda: job.state() in ("", "COMPLETED"), "and is not queued again")


if __name__ == "__main__":
    lacking = [n for n in NEEDED if not shutil.which(n, path=PATH)]
    if lacking:
        print(f"skipped: no Slurm here ({', '.join(lacking)}; Debian: tools/setup test)")
        sys.exit(77)
    if os.geteuid() != 0:
        print("skipped: slurmd starts jobs as their users, and so is root's")
        sys.exit(77)
    run_case.main(*([MPICC[1], "-mpi", ["-DMPI"], ["-lvarve_mpi"]] if MPICC else []))
