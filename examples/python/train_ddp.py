#!/usr/bin/env python3
"""Training on several ranks, which continues after a kill, bit for bit.

    python3 -m varve train_ddp.py [STORE [LOSSES.json [STEPS]]]
    torchrun --nproc_per_node=4 --no_python python3 -m varve train_ddp.py [STORE [LOSSES.json [STEPS]]]

Without torchrun:

    export WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
    for r in 0 1 2 3; do RANK=$r python3 -m varve train_ddp.py & done; wait
"""
import json
import os
import sys

import torch
import torch.distributed as dist
import varve.torch

store = sys.argv[1] if len(sys.argv) > 1 else "ckpt"
result = sys.argv[2] if len(sys.argv) > 2 else "losses.json"
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 300

if "WORLD_SIZE" in os.environ:                                # set by torchrun
    dist.init_process_group("gloo")
rank = dist.get_rank() if dist.is_initialized() else 0
torch.manual_seed(1)                                          # the same weights on all ranks
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(256, 1))
trained = torch.nn.parallel.DistributedDataParallel(model) if dist.is_initialized() else model
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
trained(torch.zeros(1, 64)).sum().backward()                  # DDP's first step in a process orders the sums of all later steps
optimizer.zero_grad()                                         # the step has no other effect
torch.manual_seed(100 + rank)                                 # other data on each rank
state = {"step": 0, "losses": []}

with varve.torch.Checkpointer(store, "train", keep=3) as ck:
    ck.protect(model=model, optimizer=optimizer, scheduler=scheduler, state=state, random=varve.torch.RandomState())
    if ck.restart() and rank == 0:                            # from the newest epoch, the same on all ranks
        print(f"continues at step {state['step']}", flush=True)
    while state["step"] < steps:
        if ck.due():
            ck.checkpoint()
        for _ in range(min(5, steps - state["step"])):
            x = torch.randn(32, 64)
            loss = ((trained(x) - x.square().sum(1, keepdim=True)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            state["losses"].append(loss.item())
            state["step"] += 1

if rank == 0:
    with open(result, "w") as f:
        json.dump(state["losses"], f)
    print(f"the last loss is {state['losses'][-1]:.6f}")
