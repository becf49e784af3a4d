# ctest: TIMEOUT 300 COST 15
"""Stores written by the engine, read by tools/layer_read.py, which knows docs/format.md and nothing else."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

build, source = pathlib.Path(os.environ["VARVE_BUILD"]), pathlib.Path(os.environ["VARVE_SOURCE"])
sys.path.insert(0, str(source / "tools"))
import layer_read  # noqa: E402

names = {"a": "a", "b": "b/with slash", "c": "c", "d": "d:colon", "e": "e@at"}


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, **more)


def check(store):
    problems = layer_read.check(str(store))
    assert not problems, problems


def compare(store, dumps):
    """Every region of every live epoch, as the model kept it."""
    files = sorted(dumps.iterdir())
    assert len(files) > 10, "the model left too little to compare"
    for file in files:
        epoch, region = file.name.split(".")
        lineage, number = layer_read.find_epoch(str(store), "model@" + epoch)
        out = b"".join(layer_read.extract(lineage, lineage.layer(number, 0), names[region].encode()))
        assert out == file.read_bytes(), "epoch %s, region %s" % (epoch, region)
    out = run(sys.executable, layer_read.__file__, "extract", store, "model@" + epoch, names[region], capture_output=True).stdout
    assert out == file.read_bytes(), "by the command"
    print("seed: %d regions equal" % len(files))


def compare_bundles(store):
    """The same store with every layer in a bundle."""
    run(build / "tests/bundle_check", store, "model")
    assert not list(store.rglob("*.layer")), "a layer is not in a bundle"
    run(os.environ["VARVE_BIN"], "verify", store, "model", stdout=subprocess.DEVNULL)
    check(store)
    compare(store, store.with_suffix(".model"))


def main():
    layer_read.self_test()
    folder = pathlib.Path(tempfile.mkdtemp(dir=build))
    try:
        for seed in (3, 4, 5, 7, 8):
            store = folder / str(seed)
            run(build / "tests/test_engine_random_histories", store, seed, 100)
            check(store)
            compare(store, store.with_suffix(".model"))
            if seed == 3:
                compare_bundles(store)
            shutil.rmtree(store.with_suffix(".model"))
    finally:
        shutil.rmtree(folder)


main()
