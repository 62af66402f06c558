# SPDX-License-Identifier: Apache-2.0
"""trainer_loop.py: a trainer that only multiplies matrices in torch, on the first GPU.

It prints "ready", and then computes from the line "start" on its standard input until "stop", which it answers by JSON:
[[time (monotonic, which is the same in every process of a machine), products until then], …].
"""

import json
import queue
import sys
import threading
import time

SIDE, PRODUCTS = 4096, 16  # side of a matrix; products between two readings of the clock
SAMPLE_S = 0.02


def run(torch, matrix, said):
    """Computes until a line is read."""
    samples, done = [[time.monotonic(), 0]], 0
    while said.empty():
        for _ in range(PRODUCTS):
            torch.matmul(matrix, matrix)
        torch.cuda.synchronize()
        done += PRODUCTS
        if time.monotonic() - samples[-1][0] >= SAMPLE_S:
            samples.append([time.monotonic(), done])
    return [*samples, [time.monotonic(), done]]


def listen(said):
    for line in sys.stdin:
        said.put(line.strip())
    said.put("")


def main():
    import torch
    matrix = torch.randn(SIDE, SIDE, device="cuda:0", dtype=torch.bfloat16)
    for _ in range(PRODUCTS):  # loads everything
        torch.matmul(matrix, matrix)
    torch.cuda.synchronize()
    said = queue.Queue()
    threading.Thread(target=listen, args=(said,), daemon=True).start()
    print("ready", flush=True)
    while said.get() == "start":
        samples = run(torch, matrix, said)
        if said.get() != "stop":
            return
        print(json.dumps(samples), flush=True)


if __name__ == "__main__":
    main()
