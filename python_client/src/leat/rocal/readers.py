# SPDX-License-Identifier: Apache-2.0
"""Readers, as in `amd.rocal.fn.readers`. A pipeline has one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from leat import fn
from leat._graphs.graph import Node
from leat._graphs.options import whole
from leat.errors import InvalidArgument, Unimplemented
from leat.rocal import types
from leat.rocal._checked import Refused, operator, refused
from leat.rocal._source import SHARDING, Encoded, Label, Sharding, Source
from leat.rocal._tensor import Tensor, constant_of
from leat.rocal.pipeline import Pipeline

__all__ = [
    "caffe",
    "caffe2",
    "cifar10",
    "coco",
    "file",
    "mxnet",
    "numpy",
    "sequence_reader",
    "tfrecord",
    "video",
    "video_resize",
    "webdataset",
]

# Arguments that rocAL's readers take and its decoders decide.
_OF_DECODERS = {"stick_to_shard": False, "pad_last_batch": False}


def _path(where: str, value: Any) -> str:
    """Returns a path or URI, as workers see it."""
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str) or not text:
        raise InvalidArgument(f"{where} = {value!r}; expected a path or a URI")
    return text


def _files_in(where: str, value: Any) -> str:
    """Returns the path of a file, or that of a folder as readers take all of its files."""
    path = _path(where, value)
    return os.path.join(path, "") if os.path.isdir(path) else path


def _reads(source: Source) -> tuple[Encoded, Label]:
    Pipeline.current(source.where).read(source)
    return Encoded(source), Label(source)


def _read_shard(source: Source, given: Mapping[str, Any]) -> None:
    """Makes it the pipeline's reader, of the shard that the reader's arguments name."""
    sharding = Sharding.of(source.where, **{name: given[name] for name in SHARDING})
    source.shard(source.where, sharding)
    Pipeline.current(source.where).read(source)


@operator("readers.file", **_OF_DECODERS)
def file(file_root: Any = "", file_filters: Any = None, file_list: Any = "") -> tuple[Encoded, Label]:
    """Reads JPEG files from one folder per class, or those that a list names.

    Args:
        file_root: the folder, whose sub-folders in byte order are the classes 0, 1, …
        file_filters: not in Leat.
        file_list: a text file: names, below `file_root` or beside the list, and their labels.

    Returns:
        The encoded images and their labels.
    """
    if file_filters is not None:
        raise Unimplemented("fn.readers.file: file_filters; expected none, or a file_list of the files that are wanted")

    def make(file_root: Any, file_list: Any) -> tuple[Node, Node]:
        if file_list:
            root = _path("fn.readers.file: file_root", file_root) if file_root else ""
            return fn.readers.file_list(_path("fn.readers.file: file_list", file_list), root=root)
        return fn.readers.image_folder(_path("fn.readers.file: file_root", file_root))

    return _reads(Source("fn.readers.file", "labelReader", make, file_root=file_root, file_list=file_list))


@operator("readers.cifar10")
def cifar10(
    file_root: Any = "",
    num_shards: int = 1,
    image_type: Any = types.RGB_PLANAR,
    filename_prefix: str = "data_batch_",
    random_shuffle: bool = False,
    shard_id: int = 0,
    stick_to_shard: bool = True,
    shard_size: int = -1,
    last_batch_policy: Any = types.LAST_BATCH_FILL,
    pad_last_batch: bool = True,
) -> Tensor:
    """Reads CIFAR-10's binary files.

    Args:
        file_root: the folder of the files.
        num_shards: into how many parts the samples are cut.
        image_type: types.RGB_PLANAR.
        filename_prefix: the prefix of the files' names: "test_batch" is the test set.
        random_shuffle: a new order of the part in every epoch.
        shard_id: the part that is read.
        stick_to_shard: every epoch reads this part; otherwise the next one reads the next part.
        shard_size: samples of an epoch; -1: the whole part.
        last_batch_policy: for the samples that fill no batch.
        pad_last_batch: LAST_BATCH_FILL repeats the last sample; otherwise it continues with the part's first ones.

    Returns:
        The images: uint8, channels first. Iterators add the labels.
    """
    where, given = "fn.readers.cifar10", locals()
    root = _path(f"{where}: file_root", file_root)
    if constant_of(f"{where}: image_type", image_type, types.Color) is not types.RGB_PLANAR:
        raise Unimplemented(f"{where}: image_type = {image_type!r}; expected types.RGB_PLANAR")

    def make() -> tuple[Node, Node]:
        return fn.readers.cifar10(root, prefix=filename_prefix)

    source = Source(where, "labelReader", make)
    _read_shard(source, given)
    return Tensor(source.encoded(), "uint8", types.NCHW)


@operator("readers.numpy", seed=0)
def numpy(
    file_root: Any = "",
    files: Any = (),
    num_shards: int = 1,
    random_shuffle: bool = False,
    shard_id: int = 0,
    stick_to_shard: bool = True,
    shard_size: int = -1,
    last_batch_policy: Any = types.LAST_BATCH_FILL,
    pad_last_batch: bool = True,
) -> Tensor:
    """Reads NumPy's .npy files, one per sample; there are no labels.

    Args:
        file_root: a folder: the .npy files below it, in byte order.
        files: paths, in this order, instead of file_root.
        num_shards: as in `cifar10`, like all that follow.

    Returns:
        The arrays.
    """
    where, given = "fn.readers.numpy", locals()
    paths = [_path(f"{where}: files", each) for each in files]
    if bool(file_root) == bool(paths):
        raise InvalidArgument(f"{where}: file_root = {file_root!r}, {len(paths)} files; expected one of the two")

    def make() -> tuple[Node, None]:
        if paths:
            return fn.readers.numpy(files=paths), None
        return fn.readers.numpy(path=_path(f"{where}: file_root", file_root)), None

    source = Source(where, "NumpyReader", make)
    source.has_labels = False
    _read_shard(source, given)
    return Tensor(source.encoded())


def _lmdb(where: str, name: str, path: Any, bbox: Any) -> tuple[Encoded, Label]:
    if bbox:
        raise Unimplemented(f"{where}: bbox = {bbox!r}; Leat reads images and their classes")

    def make(path: Any) -> tuple[Node, Node]:
        reader = fn.readers.caffe if name == "CaffeReader" else fn.readers.caffe2
        return reader(_path(f"{where}: path", path))

    return _reads(Source(where, name, make, path=path))


@operator("readers.caffe", **_OF_DECODERS)
def caffe(path: Any, bbox: bool = False) -> tuple[Encoded, Label]:
    """Reads an LMDB of Caffe's Datum. Returns the encoded images and their labels."""
    return _lmdb("fn.readers.caffe", "CaffeReader", path, bbox)


@operator("readers.caffe2", **_OF_DECODERS)
def caffe2(path: Any, bbox: bool = False) -> tuple[Encoded, Label]:
    """Reads an LMDB of Caffe2's TensorProtos. Returns the encoded images and their labels."""
    return _lmdb("fn.readers.caffe2", "Caffe2Reader", path, bbox)


@operator(
    "readers.coco",
    ltrb=True,
    ratio=False,
    avoid_class_remapping=False,
    aspect_ratio_grouping=False,
    is_foreground=False,
    value=0,
    is_threshold=True,
    **_OF_DECODERS,
)
def coco(
    annotations_file: Any = "",
    polygon_masks: bool = False,
    pixelwise_masks: bool = False,
    is_box_encoder: bool = False,
    is_box_iou_matcher: bool = False,
) -> tuple[Encoded, list[Any], list[Any]]:
    """Reads the images of COCO's annotations; boxes and labels are not handed out.

    Args:
        annotations_file: the JSON file of instances; the decoder's file_root is the images' folder.
        polygon_masks: not in Leat, like all that follow.

    Returns:
        The encoded images, and two empty lists in the places of labels and boxes.
    """
    where = "fn.readers.coco"
    for name, given in (
        ("polygon_masks", polygon_masks),
        ("pixelwise_masks", pixelwise_masks),
        ("is_box_encoder", is_box_encoder),
        ("is_box_iou_matcher", is_box_iou_matcher),
    ):
        if given:
            raise Unimplemented(f"{where}: {name}; leat.rocal reads the images alone (leat.fn.readers.coco reads all)")

    def make(annotations_file: Any, file_root: Any = "") -> tuple[Node, None]:
        annotations = _path(f"{where}: annotations_file", annotations_file)
        root = _path(f"{where}: file_root", file_root) if file_root else ""
        (image,) = fn.readers.coco(annotations, root=root, outputs=("image",))
        return image, None

    source = Source(where, "COCOReader", make, annotations_file=annotations_file)
    source.has_labels = False
    Pipeline.current(where).read(source)
    return Encoded(source), [], []


@operator("readers.tfrecord", **_OF_DECODERS)
def tfrecord(path: Any, user_feature_key_map: Any, features: Any, reader_type: int = 0) -> dict[str, Any]:
    """Reads images and classes from TFRecord files.

    Args:
        path: a file, or a folder of them.
        user_feature_key_map: the features' names by rocAL's names: "image/encoded" and "image/class/label".
        features: a dict whose keys are among those.
        reader_type: 0: classification. Detection is not in Leat.

    Returns:
        A dict: "image/encoded" gives the encoded images, "image/class/label" their labels.
    """
    where = "fn.readers.tfrecord"
    if whole(f"{where}: reader_type", reader_type, 0, 1) == 1:
        raise Unimplemented(f"{where}: reader_type = 1 (detection); Leat reads images and their classes")
    if not isinstance(user_feature_key_map, Mapping) or not isinstance(features, Mapping):
        raise InvalidArgument(f"{where}: user_feature_key_map and features; expected two dicts")
    missing = [key for key in (*features, "image/encoded", "image/class/label") if key not in user_feature_key_map]
    if missing:
        raise InvalidArgument(
            f"{where}: user_feature_key_map has no {missing[0]!r}; it has {sorted(user_feature_key_map)}"
        )

    def make(path: Any, raw: bool = False) -> tuple[Node, Node]:
        files = _files_in(f"{where}: path", path)
        image, label = fn.readers.tfrecord(
            files,
            features=[user_feature_key_map["image/encoded"], user_feature_key_map["image/class/label"]],
            types=["bytes" if raw else "encoded", "int64"],
        )
        return image, fn.cast(label, dtype="int32")

    encoded, label = _reads(Source(where, "TFRecordReaderClassification", make, path=path))
    return {**features, "image/encoded": encoded, "image/class/label": label}


_IMAGES = ("jpg", "jpeg", "jpe", "png", "bmp", "webp", "tif", "tiff")
_MISSING: dict[types.MissingComponent, Any] = {
    types.MISSING_COMPONENT_ERROR: "error",
    types.MISSING_COMPONENT_SKIP: "skip",
    types.MISSING_COMPONENT_EMPTY: "empty",
}


def _components(where: str, ext: Any) -> tuple[str, str | None]:
    """Returns the image's extensions, and that of the class if there is one."""
    names = [name for each in ext for name in ([each] if isinstance(each, str) else sorted(each))]
    parts = [part for name in names for part in name.split(";")]
    images = [part for part in parts if part.lower() in _IMAGES]
    others = [part for part in parts if part not in images and part != "cls"]
    if others:
        raise Unimplemented(f"{where}: ext has {others[0]!r}; Leat reads images ({', '.join(_IMAGES)}) and 'cls'")
    if not images:
        raise InvalidArgument(f"{where}: ext = {ext!r} has no image; expected one of {', '.join(_IMAGES)}")
    return ";".join(images), "cls" if "cls" in parts else None


@operator("readers.webdataset", **_OF_DECODERS)
def webdataset(
    path: Any, index_paths: Any = "", ext: Any = None, missing_components_behavior: Any = types.MISSING_COMPONENT_ERROR
) -> Encoded:
    """Reads images and classes from tar archives.

    Args:
        path: an archive, or a folder of them.
        index_paths: index files, one per archive, or none.
        ext: sets of extensions, [{"jpg", "cls"}]: one of an image, and "cls" or none.
        missing_components_behavior: how to treat a sample without one of its components.

    Returns:
        The encoded images. Iterators for torch add the classes.
    """
    where = "fn.readers.webdataset"
    image, label = _components(where, ext or ())
    behaviour = constant_of(
        f"{where}: missing_components_behavior", missing_components_behavior, types.MissingComponent
    )
    paths = [index_paths] if isinstance(index_paths, (str, os.PathLike)) else list(index_paths)
    index = [_path(f"{where}: index_paths", each) for each in paths if each]

    def make(path: Any) -> tuple[Node, Node | None]:
        archives = _files_in(f"{where}: path", path)
        outputs = fn.readers.webdataset(
            archives,
            ext=[image, label] if label else [image],
            types=["encoded", "int32"] if label else ["encoded"],
            missing=_MISSING[behaviour],
            **({"index": index} if index else {}),
        )
        return (outputs[0], outputs[1]) if label else (outputs[0], None)

    source = Source(where, "WebDatasetReader", make, path=path)
    source.has_labels = label is not None
    Pipeline.current(where).read(source)
    return Encoded(source)


mxnet: Refused = refused("readers.mxnet")
sequence_reader: Refused = refused("readers.sequence_reader")
video: Refused = refused("readers.video")
video_resize: Refused = refused("readers.video_resize")
