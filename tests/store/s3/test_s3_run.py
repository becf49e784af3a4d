#!/usr/bin/env python3
# ctest: TIMEOUT 120 COST 5
"""A program under `varve run` with a store in S3 is killed: the command leaves no lock behind, which a job on another machine could not take over."""
import os
import pathlib
import subprocess
import sys
import tempfile

import s3_proxy
from s3_server import BUCKET, BUILD, Server, install, skip

VARVE = BUILD / "varve"
PROGRAM = r"""
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve_here.h>
int main(void)
{
	char *p = malloc(1 << 20);
	memset(p, 1, 1 << 20);
	for (int i = 0; i < 3; i++)
		varve_checkpoint_here();
	kill(getpid(), SIGKILL);
}
"""


def main():
    if not (BUILD / "libvarve_preload.so").exists() or " " in str(BUILD) or ":" in str(BUILD):
        skip("no library to preload, or in a path that ld.so does not take")
    install()
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        (folder / "p.c").write_text(PROGRAM)
        subprocess.run([os.environ.get("CC") or "cc", "-I", pathlib.Path(os.environ["VARVE_SOURCE"]) / "include", folder / "p.c", "-o", folder / "p"], check=True)
        (folder / "s3").mkdir()
        server = Server(folder / "s3")
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        env |= {"AWS_ACCESS_KEY_ID": s3_proxy.ACCESS, "AWS_SECRET_ACCESS_KEY": s3_proxy.SECRET, "VARVE_S3_ENDPOINT": f"http://127.0.0.1:{server.port}",
                "VARVE_S3_PATH_STYLE": "true"}
        try:
            p = subprocess.run([VARVE, "run", "--every", "0", "--retries", "0", "--store", f"s3://{BUCKET}/run", "--lineage", "job", "--", folder / "p"],
                               env=env, cwd=folder, capture_output=True, text=True, timeout=100)
            if "built without" in p.stderr:
                skip(p.stderr)
            names = sorted(str(f.relative_to(folder / "s3")) for f in (folder / "s3").rglob("*") if f.is_file())
            assert p.returncode == 128 + 9, (p.returncode, p.stderr)
            assert any("commit" in n for n in names), (names, p.stderr)
            assert not any("/lock" in n for n in names), (names, p.stderr)
        finally:
            server.kill()


sys.exit(main())
