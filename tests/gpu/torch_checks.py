# SPDX-License-Identifier: Apache-2.0
"""A torch trainer's CUDA graphs, or its second stream, with a job's batches on the first GPU; prints JSON.

torch_checks.py graph|streams --address A --job J. The machine's own Python runs it, with the bundle's package on
PYTHONPATH, and LEAT_TRANSPORT=cuda. The answer: {"checks": [[what, whether it holds, note], …]}.
"""

import argparse
import json
import os

BATCHES = 24  # several windows


def expected(job):
    """Returns the batches through host memory, in order, of as many epochs as are needed."""
    transport = os.environ.pop("LEAT_TRANSPORT", "auto")
    try:
        with job.batches(epochs=-(-BATCHES // len(job))) as it:
            return [{name: array.copy() for name, array in batch.items()} for batch, _ in zip(it, range(BATCHES))]
    finally:
        os.environ["LEAT_TRANSPORT"] = transport


def same(tensors, arrays):
    return all(tensors[name].cpu().numpy().tobytes() == array.tobytes() for name, array in arrays.items())


def busy(torch, seconds=0.02):
    """Queues a computation of this length on the current stream."""
    torch.cuda._sleep(int(seconds * 1.5e9))


def count(wrong, of):
    return f"{wrong} of {of} batches differ" if wrong else f"{of} batches"


def graph(torch, leat, job):
    """Captures in torch's default mode while batches are read ahead, and replays over many later ones."""
    checks, wanted = [], expected(job)
    it = leat.torch.batches(job, device="cuda:0", epochs=0)
    first = next(it)
    static = {name: tensor.clone() for name, tensor in first.items()}
    made, sums = torch.cuda.CUDAGraph(), []
    torch.cuda.synchronize()
    with torch.cuda.graph(made):
        for _ in range(4):  # long enough for the library's threads to run
            taken = next(it)
            kept = {name: tensor.clone() for name, tensor in taken.items()}
            del taken
            sums.append(kept)
        out = {name: tensor.clone() for name, tensor in static.items()}
    checks.append(["a capture in the default mode is not spoilt while batches are read ahead", True, ""])
    wrong = inside = 0
    for step in range(5, BATCHES):
        batch = next(it)
        for name, tensor in batch.items():
            static[name].copy_(tensor)
        del batch
        made.replay()
        torch.cuda.synchronize()
        wrong += not same(out, wanted[step])
        inside += sum(not same(kept, wanted[1 + i]) for i, kept in enumerate(sums))
    checks.append(["replays see the batch that was copied into the graph's input", wrong == 0,
                   count(wrong, BATCHES - 5)])
    checks.append(["a batch that was taken within the capture is the same in every replay", inside == 0,
                   f"{inside} differ" if inside else f"{BATCHES - 5} replays"])
    checks.append(callables(torch, first))
    it.close()
    return checks


def callables(torch, batch):
    """torch.cuda.make_graphed_callables with a batch as its sample."""
    image = batch["image"].float().reshape(batch["image"].shape[0], -1)[:, :256].contiguous() / 255
    module = torch.nn.Linear(256, 8).cuda()
    wanted = module(image)
    graphed = torch.cuda.make_graphed_callables(module, (image.clone(),))
    near = bool(torch.allclose(graphed(image), wanted, rtol=1e-3, atol=1e-3))
    return ["make_graphed_callables works while batches are read ahead", near, ""]


def streams(torch, leat, job):
    """A prefetcher takes batches on a side stream; the main stream, which lags behind, uses them."""
    wanted, passes = expected(job), []
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    it = leat.torch.batches(job, device="cuda:0", epochs=0, window=2)
    for _ in range(BATCHES):
        with torch.cuda.stream(side):
            batch = next(it)
        main.wait_stream(side)
        for tensor in batch.values():
            tensor.record_stream(main)
        busy(torch)
        passes.append({name: tensor.clone() for name, tensor in batch.items()})
        del batch, tensor
    torch.cuda.synchronize()
    wrong = sum(not same(seen, arrays) for seen, arrays in zip(passes, wanted))
    it.close()
    checks = [["batches that a second stream uses late are not overwritten", wrong == 0, count(wrong, BATCHES)]]
    it, wrong = leat.torch.batches(job, device="cuda:0", epochs=0, window=2, view=True), 0
    for arrays in wanted:
        batch = next(it)
        busy(torch)
        seen = {name: tensor.clone() for name, tensor in batch.items()}
        del batch
        wrong += not same(seen, arrays)
    it.close()
    checks.append(["views that are used on their own stream are not overwritten", wrong == 0, count(wrong, BATCHES)])
    return checks


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("graph", "streams"))
    parser.add_argument("--address", required=True)
    parser.add_argument("--job", required=True)
    args = parser.parse_args()
    import leat
    import leat.torch
    import torch
    with leat.connect(args.address) as service:
        job = service.job(args.job)
        checks = {"graph": graph, "streams": streams}[args.what](torch, leat, job)
    print(json.dumps({"checks": checks}))


if __name__ == "__main__":
    main()
