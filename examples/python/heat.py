#!/usr/bin/env python3
"""Heat in a plate: a simulation that continues after a kill, bit for bit.

    python3 -m varve heat.py [STORE [RESULT.npy [STEPS]]]
"""
import sys

import numpy as np
import varve

store = sys.argv[1] if len(sys.argv) > 1 else "ckpt"
result = sys.argv[2] if len(sys.argv) > 2 else "heat.npy"
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 1000

T = np.zeros((256, 256))
T[0] = 100.0  # a hot edge
rng = np.random.default_rng(1)

with varve.open(store, "heat", keep=3) as v:
    v["T"] = T                                # an array, in place
    v["step"] = 0                             # plain values
    v["rng"] = rng.bit_generator.state
    if v.restart():                           # from the newest epoch
        rng.bit_generator.state = v["rng"]
        print(f"continues at step {v['step']}")
    while v["step"] < steps:
        if v.due():
            v["rng"] = rng.bit_generator.state
            v.checkpoint()
        for _ in range(min(10, steps - v["step"])):
            T[1:-1, 1:-1] = 0.25 * (T[:-2, 1:-1] + T[2:, 1:-1] + T[1:-1, :-2] + T[1:-1, 2:])
            T[tuple(rng.integers(1, 255, 2))] += 1.0  # a spark
            v["step"] += 1

np.save(result, T)
print(f"the mean is {T.mean():.6f}")
