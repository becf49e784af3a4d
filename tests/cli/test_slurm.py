#!/usr/bin/env python3
# ctest: TIMEOUT 300 PROCESSORS 2
"""The script of docs/slurm.md, run by a Slurm of our own on this machine: it comes to its time limit, is queued again, and ends with the right result."""
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import run_case
from run_case import BUILD, REAL, SOURCE, Case

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun")
MPICC = re.search(r"^MPI_C_COMPILER:FILEPATH=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M) if os.environ.get("VARVE_MPIEXEC") else None
PATIENCE = 100
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
MpiDefault=pmix
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm(Case):
    def setUp(self):
        super().setUp()
        if REAL.exists():
            del self.env["VARVE_PRELOAD"]
        place = self.folder / "slurm"
        for folder in (place, place / "spool", place / "state"):
            folder.mkdir(mode=0o755)
        self.folder.chmod(0o755)
        (place / "munge.key").write_bytes(os.urandom(1024))
        (place / "munge.key").chmod(0o400)
        ports = free_ports(2)
        (place / "slurm.conf").write_text(CONF.format(folder=place, host=socket.gethostname().split(".")[0], port_1=ports[0], port_2=ports[1],
                                                      cores=os.cpu_count()))
        self.place = place
        self.env["SLURM_CONF"] = str(place / "slurm.conf")
        self.env["PATH"] = f"{BUILD}:{os.environ['PATH']}:/usr/sbin"
        for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"):
            self.env.pop(name, None)
        self.serve("munged", "-F", "--key-file", place / "munge.key", "--socket", place / "munge.socket", "--pid-file", place / "munge.pid",
                   "--log-file", place / "munge.log", "--seed-file", place / "munge.seed")
        self.until(lambda: (place / "munge.socket").exists(), "munged listens")
        self.serve("slurmctld", "-D")
        self.serve("slurmd", "-D")
        self.until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%t"), "there is a node")

    def serve(self, *words):
        """A daemon, until the test is over: those started last end first."""
        with open(self.place / f"{words[0]}.out", "wb") as out:
            p = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.env, cwd=self.place,
                                 preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG: not after us
        self.addCleanup(self.dismiss, p)

    def dismiss(self, p):
        p.terminate()
        try:
            p.wait(20)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()

    def until(self, what, words):
        end = time.time() + PATIENCE
        while time.time() < end:
            got = what()
            if got:
                return got
            time.sleep(0.1)
        logs = "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in [*self.place.glob("*.out"), *self.place.glob("*.log"),
                                                                                                     *self.folder.glob("slurm-*.out")])
        self.fail(f"waited in vain: {words}\n{logs}")

    def ask(self, *words):
        p = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=self.env, cwd=self.folder, timeout=60)
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

    def write_script(self):
        script = re.search(r"^```bash\n(#!/bin/bash\n.*?)^```", (SOURCE / "docs/slurm.md").read_text(), re.S | re.M)[1]
        self.file("job.sh", script.encode())

    def test_time_limit(self):
        """Told before its time limit, it ends with a checkpoint, is queued again, and goes on."""
        self.write_script()
        # a minute is the shortest limit; 59 s before it is when slurmctld next looks, which it does every 30 s
        self.submit("--time", "1", "--signal", "B:USR1@59", "job.sh", self.program, 1800, 20)
        self.until(lambda: "begins at its start" in self.output(), "it runs")
        self.until(lambda: "the last checkpoint was asked for" in self.output(), "the limit is near")
        self.until(lambda: "right after 1800 steps" in self.output(), "it ends")
        self.assertIn("goes on from epoch 1", self.output())
        self.assertEqual(self.steps().count(1), 1)
        self.assertLess(len(self.steps()), 2200)  # only what came between a checkpoint and the end was done twice
        self.until(lambda: self.state() in ("", "COMPLETED"), "and is not queued again")

    def test_told_twice(self):
        self.write_script()
        self.submit("job.sh", self.program, 200, 20)
        for epoch in (1, 2):
            n = len(self.steps())
            self.until(lambda: len(self.steps()) > n + 10, "it works")
            self.ask("scancel", "--batch", "--signal=USR1", self.job)
            self.until(lambda: f"goes on from epoch {epoch}" in self.output(), "it is queued again and goes on")
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


if __name__ == "__main__":
    lacking = [n for n in NEEDED if not shutil.which(n, path=os.environ["PATH"] + ":/usr/sbin")]
    if lacking:
        print(f"skipped: no Slurm here ({', '.join(lacking)}; Debian: apt-get install slurmctld slurmd slurm-client munge)")
        sys.exit(77)
    if os.geteuid() != 0:
        print("skipped: slurmd starts jobs as their users, and so is root's")
        sys.exit(77)
    run_case.main(*([MPICC[1], "-mpi", ["-DMPI"], ["-lvarve_mpi"]] if MPICC else []))
