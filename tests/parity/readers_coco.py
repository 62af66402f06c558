# SPDX-License-Identifier: Apache-2.0
"""readers.coco against DALI's, on made-up annotations of photos.

    ninja -C build/dev dump_source
    python tests/parity/readers_coco.py build/dev/tests/parity/dump_source

The photos are those of LEAT_TEST_DATA, or of LEAT_MADE_DATA, the build's test-data/. Wants numpy, pillow and
nvidia.dali.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from nvidia.dali import fn, pipeline_def
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import test_data  # noqa: E402

COUNT = 120
CATEGORIES = [18, 3, 90, 44, 1, 7, 12]
CROWD = 90  # Once per image: of several runs of a category, or runs and polygons, DALI's mask has only one.


def text_of_runs(runs):
    """Returns COCO's text: each run from the fourth on minus the one two before it, five bits per character."""
    text = ""
    for i, run in enumerate(runs):
        value = run - runs[i - 2] if i > 2 else run
        more = True
        while more:
            bits = value & 31
            value >>= 5
            more = value != (-1 if bits & 16 else 0)
            text += chr(48 + bits + 32 * more)
    return text


def segmentation(rng, height, width, crowd):
    # The first and the last pixels are empty: where labels overlap there, DALI's mask has the lesser one.
    if not crowd:
        corners = [(int(rng.integers(3, 14)), 2) for _ in range(rng.integers(1, 4))]
        return [np.round(rng.uniform([1, 1], [width - 3, height - 3], each), 2).ravel().tolist() for each in corners]
    cuts = np.sort(rng.choice(np.arange(1, height * width - 1), 2 * int(rng.integers(1, 200)), replace=False))
    runs = np.diff([0, *cuts, height * width]).tolist()
    return {"size": [height, width], "counts": text_of_runs(runs) if rng.random() < 0.5 else runs}


def annotations(root, rng):
    names = [str(path.relative_to(root)) for path in test_data.images(root)[:COUNT]]
    if len(names) < COUNT:
        sys.exit(f"{root}: {len(names)} photos, want {COUNT}")
    images, objects = [], []
    for image_id, name in zip(rng.permutation(10_000)[:COUNT].tolist(), rng.permutation(names).tolist(), strict=True):
        width, height = Image.open(root / name).size
        images.append({"id": image_id, "file_name": name, "height": height, "width": width, "license": 1})
        crowd_at = int(rng.integers(0, 16))
        for i in range(rng.integers(0, 9)):
            crowd = i == crowd_at
            box = np.round(rng.uniform([0, 0, 0, 0], [width / 2, height / 2, width / 2, height / 2]), 3)
            if rng.random() < 0.1:
                box[2 + int(rng.integers(2))] = 0.09
            objects.append({"id": len(objects) + 100, "image_id": image_id, "iscrowd": int(crowd), "area": 1.5,
                            "category_id": CROWD if crowd else int(rng.choice([c for c in CATEGORIES if c != CROWD])),
                            "bbox": box.tolist(), "segmentation": segmentation(rng, height, width, crowd)})
    rng.shuffle(objects)
    return {"info": {"year": 2026}, "annotations": objects, "images": images,
            "categories": [{"id": each, "name": str(each)} for each in CATEGORIES]}


def dali(outputs, **arguments):
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def theirs():
        return tuple(fn.readers.coco(**arguments, image_ids=True, name="coco"))

    pipeline = theirs()
    pipeline.build()
    lines = []
    for i in range(pipeline.epoch_size("coco")):
        line = f"{i}"
        for name, output in zip(outputs, pipeline.run(), strict=True):
            value = np.asarray(output[0])
            shape = list(value.shape) if name not in ("image", "image_id") else []
            if name == "image_id":
                value = value.astype(np.int64)
            line += f" [{','.join(map(str, shape))}]{hashlib.sha256(value.tobytes()).hexdigest()}"
        lines.append(line)
    return lines


def leat(program, *arguments):
    done = subprocess.run([program, "readers.coco", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"readers.coco: {done.stderr}")
    return done.stdout.splitlines()


def compare(program, file, root, **arguments):
    """Compares the fields. The arguments are DALI's; ours have the same names, except for masks."""
    kinds = {"polygon_masks": ["polygons", "vertices"], "pixelwise_masks": ["mask"]}
    outputs = ["image", "boxes", "labels", *(name for kind in kinds if arguments.get(kind) for name in kinds[kind])]
    outputs.append("image_id")
    ours = leat(program, f"annotations={file}", f"root={root}", "outputs:=" + "|".join(outputs),
                *(f"images:={'|'.join(value)}" if name == "images" else f"{name}?={str(value).lower()}"
                  for name, value in arguments.items() if name not in kinds))
    wanted = dali(outputs, annotations_file=str(file), file_root=str(root), **arguments)
    title = ", ".join(arguments) or "defaults"
    for one, other in zip(ours, wanted, strict=True):
        for name, mine, theirs in zip(["number", *outputs], one.split(), other.split(), strict=True):
            if mine != theirs:
                sys.exit(f"{title}: sample {one.split()[0]}: {name} differs\n  leat {mine}\n  DALI {theirs}")
    print(f"{title}: {len(wanted)} samples are the same")


def main():
    root = test_data.best("imagenet-sample")
    everything = annotations(root, np.random.default_rng(8))
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "instances.json"
        file.write_text(json.dumps(everything))
        names = [image["file_name"] for image in everything["images"]]
        for arguments in ({}, {"ltrb": True, "ratio": True}, {"skip_empty": True}, {"include_iscrowd": False},
                          {"avoid_class_remapping": True}, {"images": [*names[5:40], *names[:9]]},
                          {"polygon_masks": True}, {"polygon_masks": True, "ratio": True, "skip_empty": True},
                          {"pixelwise_masks": True}):
            compare(sys.argv[1], file, root, **arguments)


if __name__ == "__main__":
    main()
