# SPDX-License-Identifier: Apache-2.0
"""A training in plain NumPy that saves its state when it receives SIGTERM, and continues with the very next batch.

    python docs/examples/preempted.py FOLDER CHECKPOINT.npz    # train_numpy.py is beside it
    kill %1                                                    # exit code 143; start it again

A batch system that takes the machine away sends SIGTERM, and starts the same command again later.
"""

import os
import signal
import sys

import numpy as np
from train_numpy import EPOCHS, SIZE, Floats, photos, train_step

import leat

stop = False


def on_sigterm(number: int, frame: object) -> None:
    """Only sets a flag: the step that is under way is finished first."""
    global stop
    stop = True


def save(checkpoint: str, weights: Floats, position: bytes) -> None:
    """Writes the file in one step, so that a process that is killed meanwhile leaves the previous one."""
    np.savez(checkpoint + ".new.npz", weights=weights, position=np.frombuffer(position, np.uint8))
    os.replace(checkpoint + ".new.npz", checkpoint)


def main(folder: str, checkpoint: str) -> None:
    signal.signal(signal.SIGTERM, on_sigterm)
    with leat.connect() as service:
        job = service.job("preempted", photos(folder), batch=32, seed=7)
        weights = np.zeros((SIZE * SIZE * 3, len(job.classes)), np.float32)
        with job.batches(epochs=EPOCHS) as batches:
            if os.path.exists(checkpoint):
                with np.load(checkpoint) as saved:
                    weights[:] = saved["weights"]
                    batches.set_state(saved["position"].tobytes())
            for batch in batches:
                loss = train_step(weights, batch["image"], batch["label"])
                print(f"epoch {batches.epoch} step {batches.step}: loss {loss:.4f}", flush=True)
                if stop:
                    save(checkpoint, weights, batches.position())
                    sys.exit(128 + signal.SIGTERM)
            save(checkpoint, weights, batches.position())
    print("the training is complete")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
