# SPDX-License-Identifier: Apache-2.0
"""Pulls a job's batches as a training script does, and prints JSON: hashes of the batches, or the rate.

The machine's own Python runs it, with the bundle's package on PYTHONPATH. Frameworks: numpy; torch and jax, whose
batches are on the first GPU. Hashes are the oracle's: SHA-256 over each field's name, a zero byte, and its bytes.
"""

import argparse
import hashlib
import json
import time


def opened(args, job):
    """Returns (iterator, function that makes a field's bytes, function that waits for a batch)."""
    if args.framework == "numpy":
        return job.batches(epochs=args.epochs), lambda x: x.tobytes(), lambda batch: None
    if args.framework == "torch":
        import leat.torch
        import torch
        it = leat.torch.batches(job, device="cuda:0", epochs=args.epochs)
        return it, lambda x: x.cpu().numpy().tobytes(), lambda batch: torch.cuda.synchronize()
    import jax
    import leat.jax
    import numpy as np
    from jax.sharding import SingleDeviceSharding
    it = leat.jax.batches(job, sharding=SingleDeviceSharding(jax.devices("gpu")[0]), epochs=args.epochs)
    return it, lambda x: np.asarray(x).tobytes(), jax.block_until_ready


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--framework", choices=("numpy", "torch", "jax"), required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rate-s", type=float, default=0, help="do not hash; count for so long, after a tenth of it")
    args = parser.parse_args()
    import leat
    with leat.connect(args.address) as service:
        job = service.job(args.job)
        if args.rate_s:
            args.epochs = 0  # without end
        it, to_bytes, wait = opened(args, job)
        answer = {"hashes": []}
        with it:
            if args.rate_s:
                rows, begin, end = 0, None, None
                started = time.perf_counter()
                for batch in it:
                    wait(batch)
                    now = time.perf_counter()
                    if begin is None:
                        if now - started > args.rate_s / 10:
                            begin, rows = now, 0
                        continue
                    rows += job.batch
                    end = now
                    if now - begin > args.rate_s:
                        break
                answer["rate"] = rows / (end - begin)
                answer["batch_bytes"] = sum(x.nbytes for x in batch.values())
            else:
                for batch in it:
                    digest = hashlib.sha256()
                    for name, field in batch.items():
                        digest.update(name.encode() + b"\0" + to_bytes(field))
                    answer["hashes"].append(digest.hexdigest())
            answer["stats"] = it.stats()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
