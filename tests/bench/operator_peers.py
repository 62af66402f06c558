# SPDX-License-Identifier: Apache-2.0
"""Other libraries' operators on the data that operator_bench left in FOLDER, one thread.

    operator_peers.py pillow|dali|torchvision FOLDER

measured_cases.h describes the protocol. Results stay in the library's own memory: no library pays for a conversion.
"""

import io
import pathlib
import sys

import numpy as np
from asking import measure_cases

SMALL = 224
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
MATRIX = (0.9, 0.2, -3.5, -0.15, 1.1, 8.25)


class Inputs:
    def __init__(self, folder):
        count, self.height, self.width = map(int, (folder / "sizes").read_text().split())
        self.files = [(folder / f"{i}.jpg").read_bytes() for i in range(count)]
        self.photo = np.fromfile(folder / "photo.raw", np.uint8).reshape(count, self.height, self.width, 3)
        self.small = np.fromfile(folder / "small.raw", np.uint8).reshape(count, SMALL, SMALL, 3)
        self.labels = (np.arange(count) * 997 % 1000).astype(np.int32)

    def window(self, random):
        """Draws a window as random_resized_crop does: left, top, right, bottom."""
        for _ in range(10):
            area = self.width * self.height * random.uniform(0.08, 1)
            aspect = np.exp(random.uniform(np.log(3 / 4), np.log(4 / 3)))
            width, height = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
            if width <= self.width and height <= self.height:
                break
        else:
            width = height = min(self.width, self.height)
        left, top = random.randint(0, self.width - width), random.randint(0, self.height - height)
        return left, top, left + width, top + height


def of_each(run, items):
    """Returns a pass of `run` over the items; the results live as long as the pass, as a batch's do."""

    def once():
        return len([run(item) for item in items])

    return once


def pillow(data):
    import random

    from PIL import Image

    images = {name: [Image.fromarray(one) for one in getattr(data, name)] for name in ("photo", "small")}
    transposes, filters = Image.Transpose, Image.Resampling

    def decoded(file):
        image = Image.open(io.BytesIO(file))
        image.load()
        return image

    def distorted(image):
        file = io.BytesIO()
        image.save(file, "JPEG", quality=50)
        return decoded(file.getvalue())

    def resized(image, resample=filters.BILINEAR, size=(SMALL, SMALL)):
        return image.resize(size, resample)

    left, top = (data.width - SMALL) // 2, (data.height - SMALL) // 2
    window = (left, top, left + SMALL, top + SMALL)
    on = {
        "decode": (data.files, decoded),
        "decode, random_resized_crop": (
            data.files,
            lambda f: decoded(f).resize((SMALL, SMALL), filters.BILINEAR, box=data.window(random)),
        ),
        "decode, resize": (data.files, lambda f: resized(decoded(f))),
        "resize linear": (images["photo"], resized),
        "resize cubic": (images["photo"], lambda i: resized(i, filters.BICUBIC)),
        "resize lanczos3": (images["photo"], lambda i: resized(i, filters.LANCZOS)),
        "resize nearest": (images["photo"], lambda i: resized(i, filters.NEAREST)),
        "resize linear, larger": (images["small"], lambda i: resized(i, size=(data.width, data.height))),
        "crop": (images["photo"], lambda i: i.crop(window)),
        "flip": (images["small"], lambda i: i.transpose(transposes.FLIP_LEFT_RIGHT)),
        "flip vertical": (images["small"], lambda i: i.transpose(transposes.FLIP_TOP_BOTTOM)),
        "rotate": (images["small"], lambda i: i.rotate(12.5, filters.BILINEAR)),
        "warp_affine": (
            images["small"],
            lambda i: i.transform((SMALL, SMALL), Image.Transform.AFFINE, MATRIX, filters.BILINEAR),
        ),
        "color_space_conversion gray": (images["small"], lambda i: i.convert("L")),
        "jpeg_compression_distortion": (images["small"], distorted),
        "lookup_table": (images["small"], lambda i: i.point(list(range(256)) * 3)),
    }
    return {name: of_each(run, items) for name, (items, run) in on.items()}


def torchvision(data):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, encode_jpeg
    from torchvision.transforms.v2 import InterpolationMode as Mode
    from torchvision.transforms.v2 import RandomResizedCrop
    from torchvision.transforms.v2 import functional as fn

    torch.set_num_threads(1)
    # The layout in which torchvision is fastest: (c, h, w) with interleaved channels.
    images = {name: list(torch.from_numpy(getattr(data, name)).permute(0, 3, 1, 2)) for name in ("photo", "small")}
    files = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in data.files]
    random_crop = RandomResizedCrop(SMALL, antialias=True)
    size = [SMALL, SMALL]

    def decoded(file):
        return decode_jpeg(file, mode=ImageReadMode.RGB)

    def normalized(image):
        return fn.normalize(image.to(torch.float32), MEAN, STD)

    photo, small = images["photo"], images["small"]
    on = {
        "decode": (files, decoded),
        "decode, random_resized_crop": (files, lambda f: random_crop(decoded(f))),
        "decode, resize": (files, lambda f: fn.resize(decoded(f), size, antialias=True)),
        "resize linear": (photo, lambda i: fn.resize(i, size, Mode.BILINEAR, antialias=True)),
        "resize linear, no antialias": (photo, lambda i: fn.resize(i, size, Mode.BILINEAR, antialias=False)),
        "resize cubic": (photo, lambda i: fn.resize(i, size, Mode.BICUBIC, antialias=True)),
        "resize cubic, no antialias": (photo, lambda i: fn.resize(i, size, Mode.BICUBIC, antialias=False)),
        "resize nearest": (photo, lambda i: fn.resize(i, size, Mode.NEAREST)),
        "resize linear, larger": (small, lambda i: fn.resize(i, [data.height, data.width], antialias=True)),
        "crop": (photo, lambda i: fn.center_crop(i, size).clone()),  # without clone it is a view
        "flip": (small, fn.horizontal_flip),
        "flip vertical": (small, fn.vertical_flip),
        "crop_mirror_normalize": (photo, lambda i: normalized(fn.horizontal_flip(fn.center_crop(i, size)))),
        "rotate": (small, lambda i: fn.rotate(i, 12.5, Mode.BILINEAR)),
        "gaussian_blur": (small, lambda i: fn.gaussian_blur(i, [13, 13], [1.7, 1.7])),
        "erase": (small, lambda i: fn.erase(i, 60, 40, 80, 100, torch.zeros(3, 1, 1, dtype=torch.uint8))),
        "pad": (small, lambda i: fn.pad(i, [0, 0, 32, 32])),
        "transpose": (small, lambda i: i.contiguous()),
        "normalize": (small, normalized),
        "brightness_contrast": (small, lambda i: fn.adjust_contrast(fn.adjust_brightness(i, 1.2), 0.8)),
        "hue": (small, lambda i: fn.adjust_hue(i, 0.08)),
        "color_space_conversion gray": (small, fn.rgb_to_grayscale),
        "jpeg_compression_distortion": (
            [i.contiguous() for i in small],
            lambda i: decoded(encode_jpeg(i, quality=50)),
        ),
        "cast float32": (small, lambda i: i.to(torch.float32)),
        "one_hot": (
            list(torch.from_numpy(data.labels.astype(np.int64))),
            lambda i: torch.nn.functional.one_hot(i, 1000),
        ),
    }
    return {name: of_each(run, items) for name, (items, run) in on.items()}


def dali_graphs(data):
    """Returns, by name, the data that is fed, and the graph on it."""
    from nvidia.dali import fn, types

    filters = {"linear": types.INTERP_LINEAR, "cubic": types.INTERP_CUBIC, "lanczos3": types.INTERP_LANCZOS3}
    size = (SMALL, SMALL)
    window = {"crop": size, "mirror": 1, "mean": MEAN, "std": STD, "output_layout": "CHW"}
    shaped = np.array(MEAN, np.float32).reshape(1, 1, 3), np.array(STD, np.float32).reshape(1, 1, 3)
    twist = {"brightness": 1.1, "contrast": 0.9, "hue": 20.0, "saturation": 1.3}
    keys, values = [0, 1, 2, 128, 255], [10.0, 20.0, 30.0, 40.0, 50.0]

    def cropped(files):
        return fn.decoders.image_random_crop(files, random_area=(0.08, 1.0), random_aspect_ratio=(0.75, 4 / 3))

    graphs = {
        "decode": ("files", fn.decoders.image),
        "decode, random_resized_crop": ("files", lambda f: fn.resize(cropped(f), size=size)),
        "decode, resize": ("files", lambda f: fn.resize(fn.decoders.image(f), size=size)),
        "resize nearest": ("photo", lambda i: fn.resize(i, size=size, interp_type=types.INTERP_NN)),
        "resize linear, larger": ("small", lambda i: fn.resize(i, size=(data.height, data.width))),
        "crop": ("photo", lambda i: fn.crop(i, crop=size)),
        "flip": ("small", fn.flip),
        "flip vertical": ("small", lambda i: fn.flip(i, horizontal=0, vertical=1)),
        "crop_mirror_normalize": ("photo", lambda i: fn.crop_mirror_normalize(i, **window)),
        "crop_mirror_normalize float16": (
            "photo",
            lambda i: fn.crop_mirror_normalize(i, dtype=types.FLOAT16, **window),
        ),
        "rotate": ("small", lambda i: fn.rotate(i, angle=12.5, keep_size=True, fill_value=0)),
        "warp_affine": ("small", lambda i: fn.warp_affine(i, matrix=MATRIX, inverse_map=True, fill_value=0)),
        "gaussian_blur": ("small", lambda i: fn.gaussian_blur(i, sigma=1.7)),
        "erase": ("small", lambda i: fn.erase(i, anchor=(60.0, 40.0), shape=(80.0, 100.0), axes=(0, 1))),
        "pad": ("small", lambda i: fn.pad(i, axes=(0, 1), align=(256, 256))),
        "transpose": ("small", lambda i: fn.transpose(i, perm=(2, 0, 1))),
        "normalize": ("small", lambda i: fn.normalize(i, mean=shaped[0], stddev=shaped[1])),
        "brightness_contrast": ("small", lambda i: fn.brightness_contrast(i, brightness=1.2, contrast=0.8)),
        "hue": ("small", lambda i: fn.hue(i, hue=30.0)),
        "hsv": ("small", lambda i: fn.hsv(i, hue=30.0, saturation=1.3, value=0.9)),
        "color_twist": ("small", lambda i: fn.color_twist(i, **twist)),
        "color_space_conversion gray": (
            "small",
            lambda i: fn.color_space_conversion(i, image_type=types.RGB, output_type=types.GRAY),
        ),
        "jpeg_compression_distortion": ("small", lambda i: fn.jpeg_compression_distortion(i, quality=50)),
        "cast float32": ("small", lambda i: fn.cast(i, dtype=types.FLOAT)),
        "lookup_table": ("small", lambda i: fn.lookup_table(i, keys=keys, values=values, dtype=types.UINT8)),
        "one_hot": ("labels", lambda i: fn.one_hot(i, num_classes=1000, dtype=types.FLOAT)),
    }
    for name, interpolation in filters.items():
        for tail, antialias in (("", True), (", no antialias", False)):
            args = {"size": size, "interp_type": interpolation, "antialias": antialias}
            graphs[f"resize {name}{tail}"] = ("photo", lambda i, args=args: fn.resize(i, **args))
    return graphs


def dali(data):
    from nvidia.dali import Pipeline, fn

    count = len(data.files)
    feeds = {
        "files": [np.frombuffer(file, np.uint8) for file in data.files],
        "photo": data.photo,
        "small": data.small,
        "labels": data.labels,
    }
    layouts = {"photo": "HWC", "small": "HWC"}

    def case(source, graph):
        built = []

        def once():
            if not built:
                pipe = Pipeline(
                    count, 1, None, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False, exec_dynamic=False
                )
                with pipe:
                    fed = fn.external_source(lambda: feeds[source], no_copy=True, layout=layouts.get(source))
                    pipe.set_outputs(graph(fed))
                pipe.build()
                built.append(pipe)
            built[0].run()
            return count

        return once

    return {name: case(*graph) for name, graph in dali_graphs(data).items()}


if __name__ == "__main__":
    PEERS = {"pillow": pillow, "dali": dali, "torchvision": torchvision}
    measure_cases(PEERS[sys.argv[1]](Inputs(pathlib.Path(sys.argv[2]))))
