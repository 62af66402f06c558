# SPDX-License-Identifier: Apache-2.0
"""A small CNN, trained data-parallel by jax.pmap, from the idx files of Fashion-MNIST or MNIST.

    python docs/examples/pmap_cnn.py FOLDER [--epochs 5]

FOLDER has train-images-idx3-ubyte.gz and so on, as they are downloaded. With devices= a batch has pmap's layout: an
axis of the devices in front. Without GPUs, eight devices are emulated.
"""

import argparse
import functools
import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402
from leat import fn  # noqa: E402

Parameters = dict[str, dict[str, jax.Array]]


@leat.pipeline
def pictures(folder: str, part: str) -> dict[str, leat.Node]:
    image, label = fn.readers.idx(
        f"{folder}/{part}-images-idx3-ubyte.gz", labels=f"{folder}/{part}-labels-idx1-ubyte.gz"
    )
    return {"image": image, "label": label}  # uint8 (28, 28, 1): a quarter of what floats would be


def parameters(key: jax.Array) -> Parameters:
    shapes: dict[str, tuple[int, ...]] = {
        "conv1": (3, 3, 1, 32),
        "conv2": (3, 3, 32, 64),
        "dense1": (7 * 7 * 64, 256),
        "dense2": (256, 10),
    }
    return {
        name: {
            "w": jax.random.normal(part, shape) * np.sqrt(2 / np.prod(shape[:-1])).astype(np.float32),
            "b": jnp.zeros(shape[-1]),
        }
        for (name, shape), part in zip(shapes.items(), jax.random.split(key, len(shapes)))
    }


def logits(params: Parameters, image: jax.Array) -> jax.Array:
    x = image.astype(jnp.float32) / 255
    for name in ("conv1", "conv2"):
        layer = params[name]
        x = jax.lax.conv_general_dilated(x, layer["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + layer["b"])
        x = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    x = jax.nn.relu(x.reshape(len(x), -1) @ params["dense1"]["w"] + params["dense1"]["b"])
    return x @ params["dense2"]["w"] + params["dense2"]["b"]


def loss_of(params: Parameters, image: jax.Array, label: jax.Array) -> jax.Array:
    right = jax.nn.one_hot(label, 10)
    return -(jax.nn.log_softmax(logits(params, image)) * right).sum(-1).mean()


def stepped(parameter: jax.Array, gradient: jax.Array) -> jax.Array:
    return parameter - 0.1 * gradient


@functools.partial(jax.pmap, axis_name="device")
def update(params: Parameters, image: jax.Array, label: jax.Array) -> tuple[Parameters, jax.Array]:
    """One step on each device's rows. The gradients' mean is the same everywhere, and so the parameters stay equal."""
    loss, grads = jax.value_and_grad(loss_of)(params, image, label)
    loss, grads = jax.lax.pmean((loss, grads), axis_name="device")
    return jax.tree_util.tree_map(stepped, params, grads), loss


def check_equal_on_all_devices(params: Parameters) -> None:
    for leaf in jax.tree_util.tree_leaves(params):
        copies = np.asarray(leaf)
        assert (copies == copies[:1]).all(), "the devices' parameters differ"


def accuracy(job: leat.Job, params: Parameters) -> float:
    @jax.jit
    def predict(image: jax.Array) -> jax.Array:
        return logits(params, image).argmax(-1)

    return float(np.mean([np.mean(predict(jnp.asarray(batch["image"])) == batch["label"]) for batch in job.batches()]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, help="of each epoch; all if not given")
    parser.add_argument("--check", action="store_true", help="that the parameters are equal after each step")
    args = parser.parse_args()
    devices = jax.local_devices()
    params = parameters(jax.random.PRNGKey(42))

    def on_each(leaf: jax.Array) -> jax.Array:
        return jnp.stack([leaf] * len(devices))

    def of_the_first(leaf: jax.Array) -> np.ndarray:
        return np.asarray(leaf[0])

    replicas = jax.tree_util.tree_map(on_each, params)
    with leat.connect() as service:
        job = service.job("train", pictures(args.folder, "train"), batch=args.batch, seed=7)
        print(f"{len(devices)} devices, {len(job)} steps of {job.batch} pictures")
        steps = min(args.steps or len(job), len(job))
        for epoch in range(args.epochs):
            losses: list[jax.Array] = []
            with leat.jax.batches(job, devices=devices, start=(epoch, 0)) as batches:
                for _, batch in zip(range(steps), batches):  # image: uint8 (devices, batch / devices, 28, 28, 1)
                    replicas, loss = update(replicas, batch["image"], batch["label"])
                    losses.append(loss[0])
                    if jax.default_backend() == "cpu":  # with few cores, emulated devices wait for one another for ever
                        jax.block_until_ready(loss)  # if several steps are under way
                    if args.check:
                        check_equal_on_all_devices(replicas)
            print(f"epoch {epoch + 1}: loss {float(sum(losses)) / steps:.4f}", flush=True)
        params = jax.tree_util.tree_map(of_the_first, replicas)
        test = service.job("test", pictures(args.folder, "t10k"), batch=500, shuffle=False)
        print(f"accuracy {accuracy(test, params):.4f}")
    if args.check:
        print(f"parameters equal on {len(devices)} devices after each of {args.epochs * steps} steps")


if __name__ == "__main__":
    main()
