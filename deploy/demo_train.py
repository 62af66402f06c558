# SPDX-License-Identifier: Apache-2.0
"""The training of deploy/demo: photos, real processes, a small network. See deploy/demo.

Without PATH it draws its photos, once, with the program in LEAT_MAKE_PHOTOS.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

SIDE, BATCH, SEED = 56, 24, 7
PHOTO = {".jpg", ".jpeg", ".jpe"}
DRAWN_PHOTOS, CLASSES = 2000, 10
NATIVE = pathlib.Path(os.environ["LEAT_NATIVE_DIR"])
FANCY = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def style(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m" if FANCY else text


def say(text: str) -> None:
    print(f"{style('==>', '1')} {text}", flush=True)


def note(text: str) -> None:
    print(f"    {style(text, '2')}", flush=True)


class Daemons:
    """The coordinator and the workers: real processes, which end with this one."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.running = folder, []
        # Daemons end when the write end of this pipe closes, at the latest when this process ends.
        self.lifeline, self._alive = os.pipe()

    def start(self, program: str, *flags: str) -> str:
        """Starts a daemon, waits until it serves, and returns its address."""
        ready, ready_child = os.pipe()
        log = self.folder / f"{program}-{len(self.running)}.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [str(NATIVE / program), *flags, "--ready-fd", str(ready_child), "--lifeline-fd", str(self.lifeline)],
                pass_fds=(ready_child, self.lifeline), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True)
        os.close(ready_child)
        self.running.append(process)
        with open(ready, "rb") as line:
            answered, _, _ = select.select([line], [], [], 30)
            address = line.readline().decode().strip() if answered else ""
        if not address:
            said = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
            raise SystemExit(f"demo: {program} does not start:\n{said}")
        note(f"{program:17} pid {process.pid:<7} {address}")
        return address

    def stop(self) -> None:
        for process in reversed(self.running):
            process.terminate()
        for process in reversed(self.running):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        self.running.clear()


def drawn_photos(out: pathlib.Path) -> pathlib.Path:
    """Returns the folder of drawn photos. They are drawn once, under another name until they are complete."""
    program = os.environ.get("LEAT_MAKE_PHOTOS", "")
    if not program:
        raise SystemExit("demo: no PATH to photos, and LEAT_MAKE_PHOTOS does not name the program that draws some")
    # A different kind of drawing gets a folder of another name.
    folder = out / f"photos-{DRAWN_PHOTOS}"
    if folder.is_dir():
        return folder
    say(f"drawing {DRAWN_PHOTOS} photos of {CLASSES} things")
    out.mkdir(parents=True, exist_ok=True)
    for left in out.glob("photos-*.part-*"):
        shutil.rmtree(left, ignore_errors=True)
    part = pathlib.Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=out))
    try:
        part.chmod(0o755)
        begin = time.perf_counter()
        done = subprocess.run([program, str(part), str(DRAWN_PHOTOS), "--classes", str(CLASSES)],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SystemExit(f"demo: {program} failed with exit code {done.returncode}: {done.stderr.strip()}")
        os.rename(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    note(f"{folder}, drawn in {time.perf_counter() - begin:.0f} s and kept")
    return folder


def photos_of(root: pathlib.Path) -> list[pathlib.Path]:
    return sorted(p for p in root.rglob("*") if p.suffix.lower() in PHOTO and p.is_file())


def classes_of(root: pathlib.Path, photos: list[pathlib.Path]) -> dict[str, list[pathlib.Path]] | None:
    """Returns the photos by class, or None if there are no classes to learn."""
    folders: dict[str, list[pathlib.Path]] = {}
    for photo in photos:
        parts = photo.relative_to(root).parts
        folders.setdefault(parts[0] if len(parts) > 1 else "", []).append(photo)
    enough = len(folders) > 1 and len(photos) >= 8 * len(folders)
    return folders if enough else None


def split(classes: dict[str, list[pathlib.Path]], folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Makes two image folders of links: four of five photos for training, the fifth for testing."""
    for name, photos in classes.items():
        for number, photo in enumerate(photos):
            target = folder / ("heldout" if number % 5 == 4 else "train") / (name or "photos")
            target.mkdir(parents=True, exist_ok=True)
            (target / f"{number:06}{photo.suffix}").symlink_to(photo.resolve())
    return folder / "train", folder / "heldout"


def pipelines(train: pathlib.Path, heldout: pathlib.Path, upside_down: bool):
    """Returns the graphs. Without classes the task is to tell whether a photo was turned upside down: a coin is the
    label."""
    import leat
    from leat import fn

    @leat.pipeline
    def learn():
        encoded, label = fn.readers.image_folder(str(train))
        image = fn.random_resized_crop(fn.decode(encoded), size=(SIDE, SIDE), area=(0.6, 1.0))
        image = fn.flip(image, horizontal=fn.coin_flip(0.5))
        if upside_down:
            label = fn.coin_flip(0.5)
            image = fn.flip(image, horizontal=False, vertical=label)
        return {"image": image, "label": label}

    @leat.pipeline
    def test():
        encoded, label = fn.readers.image_folder(str(heldout))
        image = fn.resize(fn.decode(encoded), size=(SIDE, SIDE))
        if upside_down:
            label = fn.coin_flip(0.5)
            image = fn.flip(image, horizontal=False, vertical=label)
        return {"image": image, "label": label}

    return learn(), test()


def network(num_classes: int, steps: int):
    """Returns a convolutional network with Adam, in plain JAX: parameters, train step, count of right answers."""
    import jax
    import jax.numpy as jnp

    widths = (3, 48, 64, 96)
    keys = iter(jax.random.split(jax.random.PRNGKey(SEED), 8))
    params = [{"w": jax.random.normal(next(keys), (3, 3, a, b)) * (2 / (9 * a)) ** 0.5, "scale": jnp.ones(b),
               "b": jnp.zeros(b)} for a, b in zip(widths, widths[1:])]
    params.append({"w": jnp.zeros((2 * widths[-1], num_classes)), "b": jnp.zeros(num_classes)})

    def logits(params, image):
        x = image.astype(jnp.float32)
        x = (x - x.mean((1, 2), keepdims=True)) / 64
        for layer in params[:-1]:
            x = jax.lax.conv_general_dilated(x, layer["w"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = (x - x.mean((1, 2, 3), keepdims=True)) / jnp.sqrt(x.var((1, 2, 3), keepdims=True) + 1e-4)
            x = jax.nn.relu(x * layer["scale"] + layer["b"])
        # The mean and the maximum of each feature over the image.
        x = jnp.concatenate([x.mean((1, 2)), x.max((1, 2))], -1)
        return x @ params[-1]["w"] + params[-1]["b"]

    def loss(params, image, label):
        scores = logits(params, image)
        label = label.astype(jnp.int32)
        right = (scores.argmax(-1) == label).sum()
        wanted = 0.9 * jax.nn.one_hot(label, num_classes) + 0.1 / num_classes
        return -(jax.nn.log_softmax(scores) * wanted).sum(-1).mean(), right

    @jax.jit
    def step(state, image, label):
        params, mean, square, count = state
        (value, right), grads = jax.value_and_grad(loss, has_aux=True)(params, image, label)
        count += 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
        done = count / steps  # the rate rises over a fifth of the steps, and then falls
        rate = 6e-3 * jnp.minimum(done / 0.2, (1 - done) / 0.8 + 0.01)
        rate *= (1 - 0.99**count) ** 0.5 / (1 - 0.9**count)
        params = jax.tree.map(lambda p, m, s: p - rate * m / (s**0.5 + 1e-8), params, mean, square)
        return (params, mean, square, count), value, right

    @jax.jit
    def count_right(params, image, label):
        return loss(params, image, label)[1]

    zeros = jax.tree.map(jnp.zeros_like, params)
    return (params, zeros, zeros, jnp.zeros(())), step, count_right


def train(job, test_job, epochs: int, classes: list[str], while_training: Callable[[], None]) -> None:
    import jax
    import leat.jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    started = time.perf_counter()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    state, step, count_right = network(len(classes), epochs * len(job))
    state = jax.device_put(state, NamedSharding(mesh, PartitionSpec()))
    test = list(test_job.batches(epochs=1))
    tested = sum(len(batch["label"]) for batch in test)
    biggest = max(sum(int((b["label"] == c).sum()) for b in test) for c in range(len(classes))) / tested
    note(f"{jax.device_count()} emulated devices, {len(job)} steps of {job.batch} photos an epoch; always saying the "
         f"commonest class would be right on {biggest:.1%} of the {tested} held-out photos")
    print(style(f"    {'epoch':>5} {'loss':>8} {'train acc':>10} {'held-out acc':>13} {'img/s':>8} {'stall':>7}", "1"))

    with leat.jax.batches(job, sharding=sharding, epochs=epochs) as batches:
        for epoch in range(epochs):
            begin, waited, losses, right = time.perf_counter(), 0.0, [], []
            for _ in range(len(job)):
                asked = time.perf_counter()
                batch = next(batches)
                waited += time.perf_counter() - asked
                state, value, correct = step(state, batch["image"], batch["label"])
                # Waits for the devices: emulated ones starve each other when many steps are in flight.
                losses.append(float(value))
                right.append(int(correct))
            rows = len(job) * job.batch
            loss, accuracy = sum(losses) / len(job), sum(right) / rows
            elapsed = time.perf_counter() - begin
            params = jax.device_put(state[0], jax.devices()[0])
            held_out = sum(int(count_right(params, b["image"], b["label"])) for b in test) / tested
            line = (f"    {epoch + 1:>5} {loss:>8.3f} {accuracy:>10.1%} {held_out:>13.1%} {rows / elapsed:>8.0f} "
                    f"{waited / elapsed:>7.1%}")
            print(line, flush=True)
        note(f"{held_out:.1%} of the held-out photos are right; always saying the commonest class would be on "
             f"{biggest:.1%}. Learned in {time.perf_counter() - started:.0f} s from {epochs * rows} photos, which the "
             "workers decoded meanwhile")
        note(f"a position of {len(batches.position())} bytes in the checkpoint would resume at exactly this batch, on "
             "any number of hosts")
        while_training()


def command(*words: str, address: str) -> None:
    print(style(f"    $ leat {' '.join(words)}", "1"), flush=True)
    done = subprocess.run([str(NATIVE / "leat"), *words], env={**os.environ, "LEAT_COORDINATOR": address},
                          capture_output=True, text=True, timeout=60)
    for line in (done.stdout + done.stderr).splitlines():
        print(f"    {line}")
    # 6: the service is up and has a finding, which the command has just printed.
    if done.returncode not in (0, 6):
        raise SystemExit(f"demo: leat {words[0]} failed with exit code {done.returncode}")


def operator(address: str) -> None:
    say("what the operator sees meanwhile")
    command("status", address=address)


def run(args: argparse.Namespace, folder: pathlib.Path, daemons: Daemons) -> None:
    path = args.path or drawn_photos(args.out)
    photos = photos_of(path)
    if len(photos) < 2 * BATCH:
        raise SystemExit(f"demo: {len(photos)} JPEG photos in {path}: want at least {2 * BATCH}")
    classes = classes_of(path, photos)
    train_folder, heldout = split(classes or {"": photos}, folder / "photos")
    names = sorted(classes) if classes else ["upright", "upside down"]
    say(f"{len(photos)} photos from {path}")
    note(f"question: {' or '.join(names) if len(names) < 6 else f'which of {len(names)} classes'}? Learned from four "
         "photos of five, tested on the fifth")

    say("a coordinator and two workers")
    threads = str(max(1, (os.cpu_count() or 2) // 2))
    address = daemons.start("leat-coordinator", "--listen", "127.0.0.1:0", "--state", str(folder / "state"))
    for name in ("mill-1", "mill-2"):
        daemons.start("leat-worker", "--coordinator", address, "--name", name, "--threads", threads)

    say("training, through leat.jax")
    import leat
    with leat.connect(address) as service:
        learn, test = pipelines(train_folder, heldout, upside_down=classes is None)
        job = service.job("demo", learn, batch=BATCH, seed=SEED, shuffle="global", last_batch="fill")
        test_job = service.job("demo-heldout", test, batch=BATCH, seed=SEED, shuffle=False, last_batch="partial")
        train(job, test_job, args.epochs, names, lambda: operator(address))
        args.out.mkdir(parents=True, exist_ok=True)
        say("a contact sheet of the first batch")
        command("sheet", "demo", "-o", str(args.out / "sheet.png"), address=address)


def main() -> None:
    parser = argparse.ArgumentParser(prog="deploy/demo")
    parser.add_argument("path", type=pathlib.Path, nargs="?")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/demo"))
    args = parser.parse_args()
    if args.epochs < 1:
        parser.error(f"--epochs {args.epochs}: want 1 or more")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="leat-demo-") as folder:
        daemons = Daemons(pathlib.Path(folder))
        try:
            run(args, pathlib.Path(folder), daemons)
        except KeyboardInterrupt:
            print()
            sys.exit("demo: interrupted")
        finally:
            daemons.stop()
            say("everything is stopped")
    note(f"{time.perf_counter() - begin:.0f} s; the contact sheet is {args.out / 'sheet.png'}")


if __name__ == "__main__":
    try:
        main()
        code = 0
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 1
        if isinstance(stopped.code, str):
            print(stopped.code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # interrupted XLA threads crash in the interpreter's own exit
