"""The houses of the source tree and the order among them: one place for what test_layers (includes) and test_calls (symbols) enforce."""
import tree

PLUGS = {"space", "track", "codec", "store", "comm", "reader"}
BELOW_ENGINE = {"base", "core", "gpu"} | PLUGS
FRONT_ENDS = {"cli", "preload", "image", "fortran", "bench"}
MAY = {  # layer: the layers that it may use, besides its own
    "base": set(),
    "core": {"base"},
    **{plug: {"base", "core"} for plug in PLUGS},
    "gpu": {"base", "core", "space"},
    "engine": BELOW_ENGINE,
    **{front: BELOW_ENGINE | {"engine"} for front in FRONT_ENDS},
    "cli": BELOW_ENGINE | {"engine", "image"},
    "examples": set(),  # what a user has: the public headers
}
# Inside a layer: a house may use itself and the houses to its left. Houses of one set may not use each other. "" is the layer's own folder.
ORDER = {
    "core": [{"format"}, {"dedup"}, {"ranks"}, {"plan"}],
    "engine": [{""}, {"lineage"}, {"read"}, {"ranks"}, {"write"}, {"grains", "upkeep"}, {"memory"}, {"handle", "tiers"}, {"epoch"}, {"session"}, {"files"}],
    "image": [{"process"}, {"criu"}, {"check"}, {"save"}, {"restore"}, {""}],
    "cli": [{"base"}, {"run", "pack", "report", "top", "mount", "image"}, {"cmd"}, {"main"}],
    "store": [{"backend"}, {"dir", "ram", "s3"}, {""}],
}


def place(path):
    """(layer, house) of a file of the tree."""
    parts = path.relative_to(tree.ROOT).parts
    if parts[0] != "src":
        return parts[0], ""
    return parts[1], parts[2] if len(parts) > 3 else ""


def rank(layer, house):
    """The position of a house in its layer; None: it has no place there."""
    return next((i for i, houses in enumerate(ORDER[layer]) if house in houses), None)


def objection(user, used):
    """Why a file at `user` may not use one at `used`, both (layer, house); None: it may."""
    (layer, house), (other, room) = user, used
    if layer != other:
        return None if other in MAY.get(layer, ()) else f"{layer}/ may not use {other}/"
    if layer not in ORDER or house == room:
        return None
    here, there = rank(layer, house), rank(layer, room)
    if here is None or there is None:
        return f"{layer}/{house if here is None else room} is no house of tests/meta/houses.py"
    return None if there < here else f"{layer}/{house} may not use {layer}/{room}, which stands to its right or beside it"
