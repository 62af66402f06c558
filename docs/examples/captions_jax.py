# SPDX-License-Identifier: Apache-2.0
"""Trains a small model of images and captions in JAX: a caption finds its image among those of the batch.

    python captions_jax.py FOLDER

It makes the pairs in FOLDER: WebDataset archives with an image and the tokens of its caption for each sample.
"""

import io
import pathlib
import struct
import sys
import tarfile
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from numpy.typing import NDArray

import leat
import leat.jax
from leat import fn

LENGTH, SIZE, WIDTH, EPOCHS, RATE = 8, 8, 32, 6, 0.3
COLOURS = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "white": (255, 255, 255),
}
WORDS = ["", "a", "square", "over", *COLOURS]  # the number of a word is its token; 0 fills up
Model = dict[str, jax.Array]
Batch = dict[str, jax.Array]


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Returns a PNG file, of pixels of the shape (height, width, 3)."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", size) + part(b"IDAT", zlib.compress(lines)) + part(b"IEND", b"")


def make(folder: pathlib.Path) -> None:
    """Makes two archives of pairs such as an image of red over blue, with "a red square over a blue square"."""
    if (folder / "pairs-1.tar").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    for shard in range(2):
        with tarfile.open(folder / f"pairs-{shard}.tar", "w") as archive:
            for number in range(160):
                upper, lower = rng.choice(list(COLOURS), 2)
                pixels = np.repeat([[COLOURS[upper]], [COLOURS[lower]]], 16, axis=0).repeat(32, axis=1)
                noisy = (pixels + rng.normal(0, 20, pixels.shape)).clip(0, 255).astype(np.uint8)
                caption = f"a {upper} square over a {lower} square" if number % 2 else f"{upper} over {lower}"
                tokens = np.array([WORDS.index(word) for word in caption.split()], np.uint16)
                for name, data in (("png", png(noisy)), ("tok", tokens.tobytes())):
                    entry = tarfile.TarInfo(f"{shard}{number:04}.{name}")
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))


@leat.pipeline
def pairs(archives: str):
    encoded, tokens = fn.readers.webdataset(archives, ext=["jpg;png", "tok"], types=["encoded", "uint16[?]"])
    image = fn.random_resized_crop(fn.decode(encoded), size=SIZE, area=(0.8, 1.0))
    caption = fn.slice(tokens, start=[0], shape=[LENGTH], out_of_bounds_policy="pad")
    return {
        "image": fn.normalize(image, mean=(127.5, 127.5, 127.5), std=(127.5, 127.5, 127.5)),
        "caption": fn.cast(caption, dtype="int32"),
        "words": fn.length(tokens),
    }


def initial() -> Model:
    rng = np.random.default_rng(0)
    shapes = {"image": (SIZE * SIZE * 3, WIDTH), "words": (LENGTH, len(WORDS), WIDTH)}
    return {name: jnp.asarray(rng.normal(0, 0.1, shape), jnp.float32) for name, shape in shapes.items()}


def unit(x: jax.Array) -> jax.Array:
    return x / jnp.sqrt((x**2).sum(-1, keepdims=True))


def scores_of(model: Model, batch: Batch) -> jax.Array:
    """Returns how well each caption (row) fits each image (column) of the batch."""
    image = batch["image"].reshape(batch["image"].shape[0], -1) @ model["image"]
    places = jnp.arange(LENGTH)
    real = places < batch["words"][:, None]
    words = (model["words"][places, batch["caption"]] * real[..., None]).sum(1)
    return 10 * unit(words) @ unit(image).swapaxes(0, 1)


def loss_of(model: Model, batch: Batch) -> jax.Array:
    scores = scores_of(model, batch)
    return -(jnp.diag(jax.nn.log_softmax(scores, 0)) + jnp.diag(jax.nn.log_softmax(scores, 1))).mean() / 2


@jax.jit
def train_step(model: Model, batch: Batch) -> tuple[Model, jax.Array]:
    loss, slopes = jax.value_and_grad(loss_of)(model, batch)
    return {name: model[name] - RATE * slope for name, slope in slopes.items()}, loss


def main(folder: pathlib.Path) -> None:
    make(folder)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    model: Model = jax.device_put(initial(), everywhere)
    with leat.connect() as service:
        job = service.job("captions", pairs(str(folder / "pairs-{0..1}.tar")), batch=16, seed=7)
        losses: list[float] = []
        with leat.jax.batches(job, sharding=rows, epochs=EPOCHS) as batches:
            for batch in batches:
                model, loss = train_step(model, batch)
                losses.append(float(loss))
                if len(losses) == len(job):
                    print(f"epoch {batches.epoch}: loss {np.mean(losses):.4f}", flush=True)
                    losses.clear()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
