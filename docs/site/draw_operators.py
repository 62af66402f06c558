# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/operators: what each operator does to one photo. Run it after a change of operator_examples.py:

    python docs/site/draw_operators.py [NAME ...]

It needs a built Leat (PYTHONPATH, LEAT_NATIVE_DIR) and Pillow. The photo is a landscape that this program paints, at
four times of the day, so that mixing operators have partners.
"""

import pathlib
import sys
import tempfile

import leat
import numpy as np
import operator_examples
from leat import fn
from PIL import Image

FOLDER = pathlib.Path(__file__).parents[1] / "images" / "operators"
HEIGHT, WIDTH = 120, 160
GAP = 12
MAX_BYTES = 15_000
# Top and bottom of the sky, its light on the land, and the place of the sun.
TIMES = (
    ((70, 130, 210), (200, 225, 245), (1.0, 1.0, 1.0), (0.78, 0.2)),
    ((60, 50, 120), (250, 160, 90), (1.0, 0.75, 0.6), (0.25, 0.42)),
    ((10, 14, 40), (50, 60, 110), (0.35, 0.4, 0.65), (0.6, 0.15)),
    ((150, 160, 170), (215, 215, 215), (0.8, 0.85, 0.9), (0.4, -0.5)),
)


def scene(time):
    """Returns a painted landscape with a house, uint8 (HEIGHT, WIDTH, 3)."""
    high, low, light, sun = (np.array(each, float) for each in TIMES[time])
    scale = 3
    y, x = np.mgrid[0 : 1 : HEIGHT * scale * 1j, 0 : 1 : WIDTH * scale * 1j]
    draw = np.random.default_rng(7)
    picture = high + (low - high) * y[..., None]
    distance = np.hypot((x - sun[0]) * WIDTH / HEIGHT, y - sun[1])
    picture += (255 - picture) * np.clip(1 - (distance - 0.06) / 0.04, 0, 1)[..., None]
    for base, height, colour in ((0.5, 0.16, (110, 125, 150)), (0.6, 0.1, (70, 105, 80))):
        waves = sum(np.sin(x * k + p) / n for n, (k, p) in enumerate(draw.uniform((3, 0), (14, 6), (5, 2)), 1))
        picture[y > base - height * waves / 2] = np.array(colour) * light
    grass = np.array((95, 140, 60)) * light * (1.15 - 0.5 * (y - 0.6))[..., None]
    spots = np.kron(draw.normal(0, 9, (HEIGHT, WIDTH)), np.ones((scale, scale)))[..., None]
    picture = np.where((y > 0.66)[..., None], grass + spots, picture)
    road = (np.abs(x - 0.3 - 0.25 * (y - 0.66)) < 0.02 + 0.28 * (y - 0.66)) & (y > 0.66)
    picture[road] = np.array((190, 175, 150)) * light

    def paint(where, colour):
        picture[where] = np.array(colour) * light

    paint((x > 0.52) & (x < 0.8) & (y > 0.52) & (y < 0.8), (205, 85, 65))
    paint((np.abs(x - 0.66) < (y - 0.34) * 0.95) & (y > 0.34) & (y < 0.53), (95, 60, 55))
    for left in (0.56, 0.7):
        paint((x > left) & (x < left + 0.06) & (y > 0.58) & (y < 0.67), (245, 230, 150))
    paint((x > 0.635) & (x < 0.685) & (y > 0.64) & (y < 0.8), (70, 50, 45))
    paint((np.abs(x - 0.15) < 0.012) & (y > 0.5) & (y < 0.78), (80, 60, 40))
    paint(np.hypot((x - 0.15) * 1.5, y - 0.42) < 0.15, (40, 100, 50))
    picture = picture.reshape(HEIGHT, scale, WIDTH, scale, 3).mean((1, 3))
    return np.clip(picture, 0, 255).astype(np.uint8)


def drawable(value):
    """Returns a result as uint8 RGB: bools are black and white, and what is no colour is stretched to the range."""
    value = value.astype(np.float32) * (255 if value.dtype == bool else 1)
    if value.min() < -1 or value.max() <= 8:
        value = (value - value.min()) * 255 / max(value.max() - value.min(), 1e-6)
    value = np.clip(value, 0, 255).round().astype(np.uint8)
    if value.shape[0] == 3:  # channels first
        value = np.ascontiguousarray(value.transpose(1, 2, 0))
    return np.repeat(value, 3, axis=2) if value.shape[2] == 1 else value


def results(service, folder, name, code):
    """Returns the example's results for the four photos."""

    @leat.pipeline
    def pipeline():
        encoded, label = fn.readers.image_folder(folder)
        photo = fn.resize(fn.decode(encoded), size=(HEIGHT, WIDTH))
        value = operator_examples.run(code, fn, encoded, label, photo)
        padded = fn.pad(value, axes=(0, 1), shape=(256, 256))
        return {"value": padded, "height": fn.length(value, axis=0), "width": fn.length(value, axis=1)}

    batch = 4 if "partner" in code or name in ("mixup", "cutmix") else 1
    job = service.job(f"draw-{name}", pipeline, batch=batch, seed=6, shuffle=False)
    shown = []
    for step, values in enumerate(job.batches(epochs=3)):
        if step % len(job) == 0:  # its first row is the first photo
            value, height, width = (np.array(values[field])[0] for field in ("value", "height", "width"))
            shown.append(drawable(value[: int(height), : int(width)]))
    return shown


def strip(pictures):
    """Returns the pictures side by side on a transparent ground."""
    height = max(each.shape[0] for each in pictures)
    width = sum(each.shape[1] for each in pictures) + GAP * (len(pictures) - 1)
    sheet, left = Image.new("RGBA", (width, height)), 0
    for each in pictures:
        sheet.paste(Image.fromarray(each), (left, (height - each.shape[0]) // 2))
        left += each.shape[1] + GAP
    return sheet


def save(name, sheet):
    """Writes a picture of at most MAX_BYTES."""
    path = FOLDER / f"{name}.webp"
    for quality in range(85, 5, -5):
        sheet.save(path, quality=quality, method=6)
        if path.stat().st_size <= MAX_BYTES:
            return print(f"{path.name}: {path.stat().st_size} bytes")
    raise SystemExit(f"{path}: {path.stat().st_size} bytes; want at most {MAX_BYTES}")


def main(names):
    wanted = {**operator_examples.DRAWN, **operator_examples.RANDOM}
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, leat.connect() as service:
        photos = [scene(time) for time in range(len(TIMES))]
        (pathlib.Path(folder) / "photos").mkdir()
        for i, photo in enumerate(photos):
            Image.fromarray(photo).save(f"{folder}/photos/{i}.png")
        for name in names or wanted:
            count = 3 if name in operator_examples.RANDOM else 1
            save(name, strip([photos[0], *results(service, folder, name, wanted[name])[:count]]))


if __name__ == "__main__":
    main(sys.argv[1:])
