"""Ranks of torch.distributed over gloo: processes that are forked from this one, which has loaded PyTorch already."""
import os
import pathlib
import signal
import socket
import sys
import time
import traceback

import package


def interposed():
    """Starts the test again as `python3 -m varve` starts programs, where there is libvarve_interpose.so."""
    from varve import _native
    if package.INTERPOSE.exists() and not _native.is_interposed():
        os.environ["LD_PRELOAD"] = ":".join([str(package.INTERPOSE), *filter(None, [os.environ.get("LD_PRELOAD")])])
        os.execv(sys.executable, [sys.executable, *sys.argv])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(n, function, *arguments, init=True):
    """function(rank, ...) in n processes, with torch.distributed if there are several, unless the function starts it. Returns their numbers."""
    port, pids = str(free_port()), []
    for rank in range(n):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                if n > 1:
                    os.environ.update(RANK=str(rank), WORLD_SIZE=str(n), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
                if n > 1 and init:
                    import torch.distributed as dist
                    dist.init_process_group("gloo")
                function(rank, *arguments)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        pids.append(pid)
    return pids


def wait(pids):
    """Their exit statuses."""
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def run(n, function, *arguments, **more):
    statuses = wait(start(n, function, *arguments, **more))
    assert statuses == [0] * n, f"{function.__name__} on {n} ranks: {statuses}"


def kill_when(pids, condition, delay, limit=120):
    """Ends all of them by SIGKILL, so many seconds after the condition holds; or waits for them if they end before. Were they killed?"""
    end = time.monotonic() + limit
    while not condition() and time.monotonic() < end and all(pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z" for p in pids):
        time.sleep(0.002)
    time.sleep(delay)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return -9 in wait(pids)
