"""What the benchmarks that are scripts share: lines of results on stdout, words on stderr."""
import json
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


def tell(bench, case, metric, value, unit, at_most=None, at_least=None):
    line = {"bench": bench, "case": case, "metric": metric, "value": float(f"{value:.10g}"), "unit": unit}
    if at_most is not None:
        line |= {"target": f"<= {at_most:g}", "ok": value <= at_most}
    if at_least is not None:
        line |= {"target": f">= {at_least:g}", "ok": value >= at_least}
    print(json.dumps(line, separators=(",", ":")), flush=True)


def bytes_of(text):
    """256M and its like."""
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper())
    return int(text[:-1]) << unit if unit else int(text)
