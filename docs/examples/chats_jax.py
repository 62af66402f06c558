# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a small transformer in JAX on chats: a loss mask is packed beside the tokens.

    python chats_jax.py FOLDER    # transformer_jax.py and packed_corpora.py are beside it

It makes the chats in FOLDER, and continues from the model that transformer_jax.py has saved there, if there is one. A
chat has several turns. The user says some tokens, and the assistant says them backwards. Only the assistant's tokens
are to be learned.
"""

import io
import pathlib
import sys
import tarfile

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from packed_corpora import LENGTH, VOCABULARY
from transformer_jax import Model, State, initial, train_step

import leat
import leat.jax
from leat import fn

USER, ASSISTANT = VOCABULARY - 2, VOCABULARY - 1  # the tokens that begin a turn
EPOCHS = 6


def make(archive: pathlib.Path) -> None:
    """Makes a WebDataset archive: for each chat its tokens as uint16, and a uint8 for each of them."""
    if archive.exists():
        return
    rng = np.random.default_rng(3)
    with tarfile.open(archive, "w") as tar:
        for number in range(300):
            tokens: list[int] = []
            mask: list[int] = []
            for _ in range(rng.integers(1, 4)):
                said = rng.integers(1, 20, rng.integers(2, 5)).tolist()
                tokens += [USER, *said, ASSISTANT, *reversed(said)]
                mask += [0] * (len(said) + 2) + [1] * len(said)
            for name, data in (("tok", np.array(tokens, np.uint16)), ("mask", np.array(mask, np.uint8))):
                entry = tarfile.TarInfo(f"{number:04}.{name}")
                entry.size = data.nbytes
                tar.addfile(entry, io.BytesIO(data.tobytes()))


@leat.pipeline
def rows(archive: str):
    tokens, mask = fn.readers.webdataset(archive, ext=["tok", "mask"], types=["uint16[?]", "uint8[?]"])
    tokens, mask, segments, positions = fn.pack(tokens, mask, length=LENGTH, how="fit", fill_values=[0, 0])
    tokens = fn.cast(tokens, dtype="int32")
    return {"tokens": tokens, "mask": mask, "segment_ids": segments, "positions": positions}


def main(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    make(folder / "chats.tar")
    model: Model = {name: jnp.asarray(weight) for name, weight in initial().items()}
    if (folder / "checkpoint.npz").exists():
        with np.load(folder / "checkpoint.npz") as saved:  # the weights come first, in the order of their names
            model = {name: jnp.asarray(saved[f"arr_{number}"]) for number, name in enumerate(sorted(model))}
        print("continues from checkpoint.npz")
    zeros = {name: jnp.zeros_like(weight) for name, weight in model.items()}
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows_over_devices, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    state: State = jax.device_put((model, zeros, zeros), everywhere)
    with leat.connect() as service:
        job = service.job("chats", rows(str(folder / "chats.tar")), batch=8, seed=7)
        with leat.jax.batches(job, sharding=rows_over_devices, epochs=EPOCHS) as batches:
            losses: list[float] = []
            learned = 0
            for batch in batches:
                state, loss = train_step(state, batch)
                losses.append(float(loss))
                learned += int(batch["mask"].sum())
                if len(losses) == len(job):
                    print(f"epoch {batches.epoch}: loss {np.mean(losses):.4f} of {learned} tokens", flush=True)
                    losses, learned = [], 0


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
