#!/usr/bin/env python3
# ctest: TIMEOUT 120 COST 5
"""varve rebuild: stores of ranks are lost, and come back byte for byte; damage is repaired; one loss too many is told."""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

build = pathlib.Path(os.environ["VARVE_BUILD"])
program = build / "examples/heat_elastic"
if not program.exists() or not os.environ.get("VARVE_MPIEXEC"):
    print("skip: varve was built without MPI")
    sys.exit(77)
NAMES = ["s0", "s1", "s2", "s3"]


FEW = 12  # descriptors: the command raises its own limit, since all layers of a set are open together


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def command(folder, *words, want=0):
    done = subprocess.run([build / "varve", "rebuild", *words, "heat", *NAMES], cwd=folder, capture_output=True, text=True, preexec_fn=few_files)
    assert done.returncode == want, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def same(folder):
    done = subprocess.run(["diff", "-r", "-x", "lock", "-x", "index.*", "-x", "verified", "now", "saved"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


with tempfile.TemporaryDirectory() as top:
    top = pathlib.Path(top)
    now = top / "now"
    now.mkdir()
    env = dict(os.environ, VARVE_REDUNDANCY="rs:2+2", VARVE_FAILURE_DOMAIN="store")
    line = f"exec {program} s${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} 32 15 5"
    subprocess.run([os.environ["VARVE_MPIEXEC"], "-n", "4", "sh", "-c", line], cwd=now, env=env, check=True, stdout=subprocess.DEVNULL)
    shutil.copytree(now, top / "saved")
    assert command(now, "--dry-run").count("rs:2+2, 0 objects missing, bears the loss of 2 more stores") == 3
    for lost in (["s0"], ["s1", "s3"], ["s2", "s0"]):
        for name in lost:
            shutil.rmtree(now / name)
            (now / name).mkdir()
        told = command(now, "--dry-run")
        assert told.count(f"{2 * len(lost)} objects missing, bears the loss of {2 - len(lost)} more store") == 3, told
        told = command(now)
        assert f"{6 * len(lost)} objects written" in told and told.count("bears the loss of 2") == 3, told
        same(top)
    shown = subprocess.run([build / "varve", "show", "s1", "heat"], cwd=now, capture_output=True, text=True, check=True).stdout
    assert re.search(r"  parity        rs:2\+2; this store has that of 1 of 4 ranks, [0-9.]+ KiB\n", shown), shown
    shown = json.loads(subprocess.run([build / "varve", "show", "--json", "s1", "heat"], cwd=now, capture_output=True, check=True).stdout)
    assert shown["redundancy"] == "rs:2+2" and shown["parity_ranks"] == 1 and shown["bytes_parity"] > 4096, shown
    verify = subprocess.run([build / "varve", "verify", "s1"], cwd=now, capture_output=True, text=True)
    assert verify.returncode == 0 and "heat: 3 parity objects; 'varve rebuild --dry-run heat STORE...'" in verify.stdout, verify
    for place in (30, -30, 5000):
        parity = next((now / "s1").glob("heat/*/*2.r1-of-4.parity"))
        whole = parity.read_bytes()
        parity.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place:][1:])
        verify = subprocess.run([build / "varve", "verify", "s1", "heat@2"], cwd=now, capture_output=True, text=True)
        assert verify.returncode == 1 and parity.name in verify.stdout, (place, verify)
        assert "1 objects written" in command(now, "--scan")
        same(top)
    layer = next((now / "s1").glob("heat/*/*2.r1.layer"))
    with layer.open("r+b") as file:
        file.seek(5000)
        file.write(b"damage")
    told = command(now, "--scan", "--dry-run")
    assert "epoch 2: rs:2+2, 0 objects missing, 1 damaged, bears the loss of 1 more store\n" in told and told.count(" 0 damaged, bears") == 2, told
    assert "1 objects written" in command(now, "--scan")
    same(top)
    # The layer's checks are lost with its parity: the damage is found before other parity is made from it.
    with layer.open("r+b") as file:
        for place in range(900, layer.stat().st_size - 6, 4096):
            file.seek(place)
            file.write(b"damage")
    for store, rank in (("s1", 1), ("s2", 2)):
        next((now / store).glob(f"heat/*/*2.r{rank}-of-4.parity")).unlink()
    assert "3 objects written" in command(now)
    same(top)
    # A damaged record of an epoch is replaced by another store's.
    record = next((now / "s3").glob("heat/*/*2.commit"))
    record.write_bytes(record.read_bytes()[:-9])
    command(now)
    same(top)
    # Something in the way of one object: the others are written all the same.
    parity = next((now / "s1").glob("heat/*/*1.r1-of-4.parity"))
    parity.unlink()
    parity.mkdir()
    shutil.rmtree(now / "s2")
    (now / "s2").mkdir()
    told = command(now, want=2)
    assert "4 objects written" in told and "cannot rename" in told and told.count("0 objects missing, bears the loss of 2 more stores") == 2, told
    parity.rmdir()
    command(now)
    same(top)
    wrong = subprocess.run([build / "varve", "rebuild", "heat", "s0"], cwd=now, capture_output=True, text=True)
    assert wrong.returncode == 2 and "STORE is missing" in wrong.stderr, wrong
    for name in NAMES[1:]:
        shutil.rmtree(now / name)
        (now / name).mkdir()
    told = json.loads(subprocess.run([build / "varve", "rebuild", "--json", "heat", *NAMES], cwd=now, capture_output=True, text=True).stdout)
    assert [one["bears"] for one in told["epochs"]] == [-1, -1, -1] and told["written"] == 0, told
    assert "rs:2+2 bears the loss of 2 failure domains" in command(now, want=1)
    # One process sees one store: it is told what to do.
    def alone():
        return subprocess.run([os.environ["VARVE_MPIEXEC"], "-n", "1", program, "s0", "32", "20", "5"], cwd=now, capture_output=True, text=True)

    shutil.rmtree(now)
    shutil.copytree(top / "saved", now)
    shutil.rmtree(now / "s1")
    (now / "s1").mkdir()
    done = alone()
    assert done.returncode != 0 and "run 'varve rebuild heat s0 STORE...' over the stores of all ranks" in done.stderr, done
    told = subprocess.run([build / "varve", "extract", "s0", "heat@3:T", "--global", "-o", "T.npy"], cwd=now, capture_output=True, text=True)
    assert told.returncode == 1 and "run 'varve rebuild heat s0 STORE...'" in told.stderr, told
    command(now)
    for name in NAMES[1:]:
        subprocess.run([build / "varve", "cp", "-q", name, "s0", "heat"], cwd=now, check=True)
    done = alone()
    assert done.returncode == 0 and "restarted from epoch 3" in done.stdout, done
    # A store that was lost and not replaced, and one that is named twice.
    for names, words in ((["s0", "lost", "s2", "s3"], "store 'lost' does not exist: if it was lost, name an empty folder"),
                         (["s0", "s2", "./s0", "s3"], "'s0' and './s0' are one store: name each store once"),
                         (["s0", "s2", "dir:s0", "s3"], "'s0' and 'dir:s0' are one store: name each store once")):
        wrong = subprocess.run([build / "varve", "rebuild", "--dry-run", "heat", *names], cwd=now, capture_output=True, text=True)
        assert wrong.returncode == 2 and words in wrong.stderr, wrong
    # Epochs without parity are listed, too.
    plain = top / "plain"
    plain.mkdir()
    subprocess.run([os.environ["VARVE_MPIEXEC"], "-n", "4", "sh", "-c", line], cwd=plain, check=True, stdout=subprocess.DEVNULL)
    told = command(plain, "--dry-run")
    assert [f"epoch {e}: no parity, 0 layers missing" for e in (1, 2, 3)] == told.splitlines(), told
    shutil.rmtree(plain / "s2")
    (plain / "s2").mkdir()
    told = command(plain, want=1)
    assert told.count("no parity, 1 layer missing, which nothing can bring back") == 3, told
    # A node was away while epoch 1 was dropped, and has its part still. That is no loss, and the others do not get its record.
    shutil.rmtree(plain)
    subprocess.run([os.environ["VARVE_MPIEXEC"], "-n", "4", "sh", "-c", line], cwd=(plain.mkdir() or plain), check=True, stdout=subprocess.DEVNULL)
    for folder in (plain, top / "saved"):
        away = top / "away"
        shutil.copytree(folder, away)
        for name in NAMES[1:]:
            for one in (away / name).glob("heat/*/0000000001.*"):
                one.unlink()
        for words in (("--dry-run",), (), ("--scan",)):
            told = command(away, *words)
            assert "epoch 1: dropped, and only a part of it is left\n" in told and "lost" not in told, told
        assert not list((away / "s1").glob("heat/*/0000000001.*"))
        told = json.loads(subprocess.run([build / "varve", "rebuild", "--json", "heat", *NAMES], cwd=away, capture_output=True, check=True).stdout)
        assert [one.get("gone", False) for one in told["epochs"]] == [True, False, False], told
        # Layers of a dropped epoch that others need are lost, if too few stores have theirs.
        shutil.rmtree(away)
        shutil.copytree(folder, away)
        for name in NAMES:
            for one in (away / name).glob("heat/*/0000000001." + ("commit" if name == "s3" else "*")):
                one.unlink()
        command(away, want=0 if folder == plain else 1)
        shutil.rmtree(away)
    # Of two sets, one is lost as a whole.
    two = top / "two"
    two.mkdir()
    subprocess.run([os.environ["VARVE_MPIEXEC"], "-n", "4", "sh", "-c", line], cwd=two, env=dict(env, VARVE_REDUNDANCY="partner"), check=True,
                   stdout=subprocess.DEVNULL)
    assert command(two, "--dry-run").count("partner, 0 objects missing, bears the loss of 1 more store\n") == 3
    # The parity of one set, and then that of both, is gone; all layers are there.
    shutil.copytree(two, top / "bare")
    for names in (("s1", "s3"), ("s0", "s2")):
        for name in names:
            for parity in (top / "bare" / name).glob("heat/*/*.parity"):
                parity.write_bytes(b"")
        told = command(top / "bare", "--dry-run")
        want = "partner, 2 objects missing, bears the loss of 0 more stores" if names[0] == "s1" else "no parity, 0 layers missing"
        assert told.count(want) == 3, told
    for name in ("s1", "s3"):
        shutil.rmtree(two / name)
        (two / name).mkdir()
    told = command(two, want=1)
    assert told.count("partner, 4 objects missing, more than can be computed") == 3, told
