"""npm's s3rver, installed into the build tree and run on loopback."""
import contextlib
import fcntl
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

BUILD = pathlib.Path(os.environ["VARVE_BUILD"])
S3RVER = BUILD / "node_modules" / "s3rver" / "bin" / "s3rver.js"
VERSION = "3.7.1"
BUCKET = "varve-test"
PATIENCE = 60  # seconds: a machine may have other things to do


def skip(why):
    print(f"skip: {why}", file=sys.stderr)
    sys.exit(77)


def install():
    """One test at a time."""
    with open(BUILD / "npm.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not S3RVER.exists():
            fetch()


def fetch():
    if not shutil.which("npm") or not shutil.which("node"):
        skip("no npm and node to run the s3rver server with")
    try:
        r = subprocess.run(["npm", "install", "--prefix", str(BUILD), "--no-save", "--no-package-lock", "--no-audit",
                            "--no-fund", f"s3rver@{VERSION}"], capture_output=True, text=True, timeout=100)
    except subprocess.TimeoutExpired:
        skip("npm does not get s3rver in time (no network?)")
    if r.returncode or not S3RVER.exists():
        skip("npm cannot install s3rver (no network?): " + r.stderr.strip()[-300:])


def node_version():
    return int(subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.lstrip("v").split(".")[0])


class Server:
    """s3rver on a port of its own; it can be killed and started again on the same files."""

    def __init__(self, directory):
        self.directory = directory
        for _ in range(5):  # nobody keeps a port for a server that is only about to start
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                self.port = s.getsockname()[1]
            if self.start():
                return
        sys.exit("s3rver does not start")

    def start(self):
        """Whether it listens: it ends at once if it cannot."""
        # s3rver's continuation tokens use a cipher that OpenSSL 3 keeps apart
        old = ["--openssl-legacy-provider"] if node_version() >= 17 else []
        self.process = subprocess.Popen(["node", *old, str(S3RVER), "-d", str(self.directory), "-a", "127.0.0.1", "-p",
                                         str(self.port), "-s", "--configure-bucket", BUCKET],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return True
            time.sleep(0.1)
        self.kill()
        return False

    def kill(self):
        self.process.kill()
        self.process.wait()
