"""What the benchmarks that are scripts share: arguments, lines of results on stdout, words on stderr."""
import argparse
import json
import re
import subprocess
import sys


def say(*words):
    print("bench:", *words, file=sys.stderr, flush=True)


def die(message):
    say(message)
    sys.exit(2)


def skip(message):
    """What the benchmark needs is not there: bench/run goes on, and is not to blame."""
    say("skipped:", message)
    sys.exit(77)


def tell(bench, case, metric, value, unit, at_most=None, at_least=None, baseline=False):
    """baseline: a figure of what we are compared with; if it changes, we have not become better or worse."""
    line = {"bench": bench, "case": case, "metric": metric, "value": float(f"{value:.10g}"), "unit": unit}
    if at_most is not None:
        line |= {"target": f"<= {at_most:g}", "ok": value <= at_most}
    if at_least is not None:
        line |= {"target": f">= {at_least:g}", "ok": value >= at_least}
    if baseline:
        line["baseline"] = True
    print(json.dumps(line, separators=(",", ":")), flush=True)


def bytes_of(text):
    """256M and its like."""
    found = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}': want a number such as 256M or 1G")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]


def arguments(names, full, size=bytes_of):
    """A parser of what bench/run says to all of them; full: what --full makes larger."""
    p = argparse.ArgumentParser(description=f"Benchmarks: {', '.join(names)}; bench/run starts them.")
    p.add_argument("names", nargs="+", choices=list(names))
    for name in "--build", "--dir":
        p.add_argument(name, required=True)
    p.add_argument("--full", action="store_true", help=full)
    p.add_argument("--size", type=size)
    p.add_argument("--rounds", type=int)
    p.add_argument("--data")
    return p


def entry(main):
    """Runs it as a program, whose exit status is what it gives; 2 if it cannot do its work."""
    try:
        sys.exit(main())
    except (OSError, subprocess.CalledProcessError) as e:
        die(e)
