# SPDX-License-Identifier: Apache-2.0
"""An example of each operator, which the reference shows beside the operator, with a picture where it has one.

The names in an example are those of this pipeline, for a photo of 120 by 160 pixels:

    encoded, label = fn.readers.image_folder("/data/train")
    image = fn.decode(encoded)

tests/python/e2e/test_reference.py checks that every operator has an example, and that Leat accepts it.
docs/site/draw_operators.py draws the pictures.
"""

# No picture: the result is no image.
PLAIN = {
    "readers.image_folder": 'encoded, label = fn.readers.image_folder("/data/train")',
    "readers.file_list": 'encoded, label = fn.readers.file_list("/data/train.txt", root="/data/images")',
    "readers.files": 'encoded, label = fn.readers.files(["cat.jpg", "dog.jpg"], labels=[0, 1], root="/data")',
    "readers.coco": 'encoded, boxes, labels = fn.readers.coco("instances_train2017.json", "train2017")',
    "readers.numpy": 'rows = fn.readers.numpy(array="/data/rows.npy")',
    "readers.mds": 'encoded, label = fn.readers.mds("s3://bucket/train", columns=["image", "label"], images="image")',
    "readers.array_record": 'encoded = fn.readers.array_record("/data/train-*.array_record")',
    "readers.tokens": 'tokens = fn.readers.tokens("/data/train.bin", dtype="uint16", end=50256)',
    "pack": (
        'tokens = fn.readers.tokens("/data/train.bin")\n'
        'tokens, segment_ids, positions = fn.pack(tokens, length=4096, how="fit")'
    ),
    "readers.tfrecord": (
        'encoded, label = fn.readers.tfrecord(\n'
        '    "/data/train-*.tfrecord", features=["image/encoded", "image/class/label"], types=["encoded", "int64"])'
    ),
    "readers.webdataset": (
        'encoded, label = fn.readers.webdataset("/data/{000..147}.tar", ext=["jpg", "cls"], types=["encoded", "int64"])'
    ),
    "readers.parquet": (
        'encoded, label = fn.readers.parquet(\n'
        '    "/data/train-*.parquet", columns=["image.bytes", "label"], types=["encoded", "int64"])'
    ),
    "readers.external": '(noise,) = fn.readers.external(1000, types="float32[16]")',
    "readers.caffe": 'encoded, label = fn.readers.caffe("/data/train_lmdb")',
    "readers.caffe2": 'encoded, label = fn.readers.caffe2("/data/train_lmdb")',
    "readers.idx": 'image, label = fn.readers.idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte")',
    "readers.cifar10": 'image, label = fn.readers.cifar10("/data/cifar-10-batches-bin")',
    "readers.cifar100": 'image, fine, coarse = fn.readers.cifar100("/data/cifar-100-binary")',
    "peek_shape": "shape = fn.peek_shape(encoded)  # int64: height, width, channels",
    "stored_bytes": "file = fn.stored_bytes(encoded)  # uint8[?]",
    "coin_flip": "mirrored = fn.flip(image, horizontal=fn.coin_flip(0.5))",
    "uniform": "turned = fn.rotate(image, angle=fn.uniform(-30, 30), keep_size=True)",
    "normal": "brighter = fn.brightness(image, brightness=fn.normal(1.0, 0.2))",
    "choice": "turned = fn.rotate(image, angle=fn.choice([0, 90, 180, 270]))",
    "beta": 'mixed = fn.cutmix_paste(image, fn.partner(image), lam=fn.beta(0.4, 0.4, per="batch"))',
    "length": "height = fn.length(image, axis=0)",
    "reshape": "vector = fn.reshape(fn.crop(image, size=(8, 8)), shape=(192,))",
    "constant": "centred = image - fn.constant([124, 117, 104])",
    "one_hot": "target = fn.one_hot(label, num_classes=10)",
    "cutmix_share": "share = fn.cutmix_share(image, lam=0.7)",
    "neg": "negative = -label",
    "floordiv": "group = label // 10",
    "ge": "second_half = label >= 5",
    "le": "first_half = label <= 4",
    "eq": "is_cat = label == 3",
    "ne": "is_other = label != 3",
}

# The picture shows the photo and the result.
DRAWN = {
    "decode": 'gray = fn.decode(encoded, output="gray")',
    "resize": "small = fn.resize(image, size=(60, 120))",
    "crop": "window = fn.crop(image, size=(80, 80), pos_y=1.0, pos_x=0.4)",
    "flip": "mirrored = fn.flip(image, horizontal=True)",
    "window": "window = fn.window(image, y=30, x=20, height=70, width=110)",
    "pad": "padded = fn.pad(image, axes=(0, 1), shape=(140, 180), fill_value=90)",
    "slice": "part = fn.slice(image, axes=(0, 1), rel_start=(0.25, 0), rel_shape=(0.5, 1))",
    "erase": "erased = fn.erase(image, anchor=(30, 60), shape=(50, 50), axes=(0, 1), fill_value=90)",
    "crop_mirror_normalize": (
        "tensor = fn.crop_mirror_normalize(\n"
        "    image, crop=(80, 80), mirror=True, mean=[124, 117, 104], std=[59, 57, 57], dtype=\"float32\")"
    ),
    "rotate": "turned = fn.rotate(image, angle=20, fill_value=90)",
    "warp_affine": "sheared = fn.warp_affine(image, shear_x=0.3, translate_x=-20, fill_value=90)",
    "gaussian_blur": "blurred = fn.gaussian_blur(image, sigma=2.5)",
    "jpeg_compression_distortion": "rough = fn.jpeg_compression_distortion(image, quality=4)",
    "normalize": "tensor = fn.normalize(image, mean=[124, 117, 104], std=[59, 57, 57])",
    "cast": 'tensor = fn.cast(image, dtype="float32")',
    "transpose": "sideways = fn.transpose(image, perm=(1, 0, 2))",
    "brightness": "darker = fn.brightness(image, brightness=0.5)",
    "contrast": "stronger = fn.contrast(image, contrast=1.8)",
    "brightness_contrast": "paler = fn.brightness_contrast(image, brightness_shift=0.2, contrast=0.6)",
    "hue": "turned = fn.hue(image, hue=90)",
    "saturation": "muted = fn.saturation(image, saturation=0.3)",
    "hsv": "changed = fn.hsv(image, hue=-60, saturation=1.4, value=0.9)",
    "color_twist": "twisted = fn.color_twist(image, brightness=1.1, contrast=1.3, hue=30, saturation=1.5)",
    "color_space_conversion": 'gray = fn.color_space_conversion(image, image_type="rgb", output_type="gray")',
    "add": "brighter = fn.min(image + 60.0, 255)",
    "sub": "darker = fn.max(image - 60.0, 0)",
    "mul": "darker = image * 0.5",
    "div": "darker = image / 2",
    "min": "cut_off = fn.min(image, 140)",
    "max": "lifted = fn.max(image, 110)",
    "lt": "dark = image < 100",
    "gt": "bright = image > 150",
    "abs": "distance = fn.abs(image - 128.0)",
    "invert": "negative = fn.invert(image)",
    "bitwise_and": "four_levels = image & 192",
    "bitwise_or": "lifted = image | 128",
    "bitwise_xor": "solarized = image ^ 128",
    "where": "clipped = fn.where(image < 128, image, 255)",
    "lookup_table": (
        'three_levels = fn.lookup_table(\n'
        '    image, keys=list(range(256)), values=[v // 86 * 127 for v in range(256)], dtype="uint8")'
    ),
    "standardize": "tensor = fn.standardize(image, axes=(0, 1))",
    "partner": "other = fn.partner(image)",
    "cutmix_paste": "mixed = fn.cutmix_paste(image, fn.partner(image), lam=0.75)",
    "augment": 'solarized = fn.augment(image, "solarize", magnitude=128)',
    "equalize": "equalized = fn.equalize(image)",
}

# The picture shows the photo and the results of three samples or epochs.
RANDOM = {
    "random_resized_crop": "view = fn.random_resized_crop(image, size=(90, 90))",
    "random_crop": "view = fn.random_crop(image, area=(0.2, 0.7))",
    "noise_gaussian": "noisy = fn.noise_gaussian(image, stddev=fn.uniform(10, 40))",
    "noise_salt_and_pepper": "noisy = fn.noise_salt_and_pepper(image, prob=0.05)",
    "noise_shot": "noisy = fn.noise_shot(image, factor=fn.uniform(5, 30))",
    "auto_augment": 'view = fn.auto_augment(image, policy="svhn")',
    "rand_augment": "view = fn.rand_augment(image, n=2, m=12)",
    "trivial_augment_wide": "view = fn.trivial_augment_wide(image)",
    "cutmix": "mixed, target = fn.cutmix(image, label, num_classes=10)",
    "mixup": "mixed, target = fn.mixup(image, label, num_classes=10)",
}

ALL = {**PLAIN, **DRAWN, **RANDOM}


def run(code, fn, encoded, label, image):
    """Runs an example, and returns the first value that it assigns."""
    names = {"fn": fn, "encoded": encoded, "label": label, "image": image}
    exec(code, names)
    first = code.partition("=")[0].strip(" (),").split(",")[0]
    return names[first]
