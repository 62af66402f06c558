# SPDX-License-Identifier: Apache-2.0
"""Readers: DALI's arguments, and their meaning for shards."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NoReturn

from leat._graphs.graph import Node
from leat.dali import _current, _node, _refused, types
from leat.dali import tfrecord as _tfrecord
from leat.dali._node import DataNode, ReaderOperation
from leat.dali._operator import operator, seed_of
from leat.dali.fn import _files, _regions
from leat.errors import InvalidArgument, Unimplemented


@dataclasses.dataclass
class Reader:
    """A reader's arguments about names, shards and order.

    Attributes:
        op: DALI's name of the reader.
        across: with random_shuffle, shards that do not stick are parts of one permutation of all samples, made anew for
            each pass.
    """

    op: str
    name: str | None = None
    num_shards: int = 1
    shard_id: int = 0
    random_shuffle: bool = False
    pad_last_batch: bool = False
    stick_to_shard: bool = False
    shuffle_after_epoch: bool = False
    across: bool = False
    # Outputs that are image files if something decodes them: their index, the argument's texts then and otherwise.
    either: dict[int, tuple[str, str]] = dataclasses.field(default_factory=dict)


_HINTS = "dont_use_mmap initial_fill lazy_init prefetch_queue_depth read_ahead skip_cached_images tensor_init_bytes"
_SHARDS: dict[str, Any] = {
    "num_shards": 1,
    "pad_last_batch": False,
    "random_shuffle": False,
    "shard_id": 0,
    "stick_to_shard": False,
}
_SHUFFLES: dict[str, Any] = {**_SHARDS, "shuffle_after_epoch": False, "shuffle_after_epoch_seed": None}
# The region that readers.numpy keeps: arguments of fn.slice, as DALI names them there.
_REGION = dict.fromkeys(f"{kind}roi_{part}" for kind in ("", "rel_") for part in ("start", "end", "shape"))


def _reader(op: str, name: str | None, shards: dict[str, Any], *, across: bool = False) -> Reader:
    where = f"fn.{op}"
    seed = shards.pop("shuffle_after_epoch_seed", None)
    if seed is not None and shards.get("shuffle_after_epoch"):
        _current.add_seed(seed_of(f"{where}: shuffle_after_epoch_seed", seed))
    for key in ("random_shuffle", "pad_last_batch", "stick_to_shard", "shuffle_after_epoch"):
        value = shards.get(key, False)
        if not isinstance(value, (bool, int)):
            raise TypeError(f"{where}: {key} = {value!r:.40}; expected True or False")
        shards[key] = bool(value)
    for key, least in (("num_shards", 1), ("shard_id", 0)):
        value = shards.setdefault(key, _SHARDS[key])
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{where}: {key} = {value!r:.40}; expected a whole number")
        shards[key] = value.__index__()
        if shards[key] < least:
            raise InvalidArgument(f"{where}: {key} = {value}; expected at least {least}")
    reader = Reader(op, name, across=across, **shards)
    if reader.shard_id >= reader.num_shards:
        raise InvalidArgument(
            f"{where}: num_shards needs to be greater than shard_id; got num_shards = {reader.num_shards} and "
            f"shard_id = {reader.shard_id}"
        )
    if reader.shuffle_after_epoch and (reader.random_shuffle or reader.stick_to_shard):
        which = "random_shuffle" if reader.random_shuffle else "stick_to_shard"
        raise InvalidArgument(f"{where}: shuffle_after_epoch excludes {which}; expected one of them")
    if reader.shuffle_after_epoch:
        reader.random_shuffle = reader.across = True
    return reader


def _nodes(reader: Reader, op: str, **args: Any) -> list[Node]:
    result = _node.apply(op, **args)
    result = list(result) if isinstance(result, tuple) else [result]
    operation = ReaderOperation(result[0]._operation, reader)
    return [Node(operation, i) for i in range(len(result))]


def _file(node: Node) -> DataNode:
    return DataNode(node, sizes=(None,), dtype="uint8", encoded=True)


def _one(node: Node, dtype: str | None) -> DataNode:
    """Returns a number as in DALI: a sample of one element."""
    return DataNode(_node.apply("reshape", node, shape=(1,)), sizes=(1,), dtype=dtype)


@operator("readers.file", hints=_HINTS, random=True, more=_SHUFFLES)
def file(
    *,
    name: str | None = None,
    file_root: Any = None,
    file_list: Any = None,
    files: Sequence[Any] | None = None,
    labels: Sequence[int] | None = None,
    file_filters: Any = None,
    dir_filters: Any = None,
    case_sensitive_filter: bool = False,
    **shards: Any,
) -> tuple[DataNode, DataNode]:
    """Files, of a folder with one sub-folder per class, of a list, or as given -> encoded image, label (1,)."""
    reader = _reader("readers.file", name, shards, across=True)
    op, args = _files.reading(
        file_root=file_root,
        file_list=file_list,
        files=files,
        labels=labels,
        file_filters=file_filters,
        dir_filters=dir_filters,
        case_sensitive_filter=case_sensitive_filter,
    )
    encoded, label = _nodes(reader, op, **args)
    return _file(encoded), _one(label, "int32")


def _paths(where: str, value: Any) -> list[str]:
    values = [value] if isinstance(value, str) or hasattr(value, "__fspath__") else _files.ordered(where, value)
    if not values:
        raise InvalidArgument(f"{where} is empty; expected a path, or a list of them")
    return [each.__fspath__() if hasattr(each, "__fspath__") else each for each in values]


def _indexes(where: str, value: Any, of: str, count: int) -> list[str] | None:
    """Returns an index file for each file that is read; None: none are given, which an empty list means as well."""
    if value is None or isinstance(value, (list, tuple)) and not value:
        return None
    paths = _paths(where, value)
    if len(paths) != count:
        raise InvalidArgument(f"{where} has {len(paths)} files and {of} {count}; expected as many, or none")
    return paths


def _refuse(where: str, **given: tuple[Any, Any, str]) -> None:
    """Raises for an argument that is not its default: {name: (value, default, remedy)}."""
    for name, (value, default, remedy) in given.items():
        if value != default:
            raise Unimplemented(f"{where}: {name} = {value!r:.60} is not supported; {remedy}")


@operator("readers.caffe2", hints=_HINTS, random=True, more=_SHARDS)
def caffe2(
    *,
    path: Any,
    name: str | None = None,
    additional_inputs: int = 0,
    bbox: bool = False,
    image_available: bool = True,
    label_type: int = 0,
    num_labels: int = 1,
    **shards: Any,
) -> tuple[DataNode, DataNode]:
    """LMDB of Caffe2's TensorProtos -> encoded image, label (1,)."""
    where = "fn.readers.caffe2"
    one = "Leat reads an image and one label of each record"
    _refuse(
        where,
        additional_inputs=(additional_inputs, 0, one),
        bbox=(bbox, False, one),
        image_available=(image_available, True, one),
        label_type=(label_type, 0, one),
    )
    encoded, label = _nodes(
        _reader("readers.caffe2", name, shards), "readers.caffe2", path=_paths(f"{where}: path", path)
    )
    return _file(encoded), _one(label, None)


@operator("readers.caffe", hints=_HINTS, random=True, more=_SHARDS)
def caffe(
    *, path: Any, name: str | None = None, image_available: bool = True, label_available: bool = True, **shards: Any
) -> Any:
    """LMDB of Caffe's Datum -> encoded image, label (1,)."""
    where = "fn.readers.caffe"
    _refuse(where, image_available=(image_available, True, "Leat reads an image of each record"))
    encoded, label = _nodes(
        _reader("readers.caffe", name, shards), "readers.caffe", path=_paths(f"{where}: path", path)
    )
    return (_file(encoded), _one(label, "int32")) if label_available else _file(encoded)


def _feature_type(feature: _tfrecord.Feature) -> str:
    if feature.dtype == _tfrecord.string:
        return "encoded"
    if feature.shape is None:
        return f"{feature.dtype}[?]"
    count = 1
    for size in feature.shape:
        count *= size
    return f"{feature.dtype}[{count}]"


def _feature_node(node: Node, feature: _tfrecord.Feature) -> DataNode:
    if feature.dtype == _tfrecord.string:
        return _file(node)
    if feature.shape is not None:
        shape = feature.shape
        value = node if len(shape) == 1 else _node.apply("reshape", node, shape=shape)
        return DataNode(value, sizes=shape, dtype=feature.dtype)
    if not feature.tail:
        return DataNode(node, sizes=(None,), dtype=feature.dtype)
    value = _node.apply("reshape", node, shape=(-1, *feature.tail))
    return DataNode(value, sizes=(None, *feature.tail), dtype=feature.dtype)


@operator("readers.tfrecord", hints=_HINTS + " use_o_direct", random=True, more=_SHUFFLES)
def tfrecord(
    *, path: Any, index_path: Any = None, features: dict[str, Any], name: str | None = None, **shards: Any
) -> dict[str, DataNode]:
    """tf.Example records -> a dict of a value for each feature."""
    where = "fn.readers.tfrecord"
    paths = _paths(f"{where}: path", path)
    index = _indexes(f"{where}: index_path", index_path, "path", len(paths))
    if not isinstance(features, dict) or not features:
        raise InvalidArgument(f"{where}: features = {features!r:.60}; expected a dict of names to tfrecord features")
    for key, feature in features.items():
        if not isinstance(feature, _tfrecord.Feature):
            raise InvalidArgument(f"{where}: feature {key!r} is {feature!r:.60}; expected tfrecord.FixedLenFeature")
    reader = _reader("readers.tfrecord", name, shards)
    reader.either = {
        i: ("encoded", "bytes") for i, each in enumerate(features.values()) if each.dtype == _tfrecord.string
    }
    nodes = _nodes(
        reader,
        "readers.tfrecord",
        paths=paths,
        features=list(features),
        types=[_feature_type(each) for each in features.values()],
        index=index,
    )
    return {key: _feature_node(node, feature) for node, (key, feature) in zip(nodes, features.items())}


@operator("readers.webdataset", hints=_HINTS, random=True, more=_SHUFFLES)
def webdataset(
    *,
    paths: Any,
    ext: Any,
    name: str | None = None,
    index_paths: Any = None,
    missing_component_behavior: str = "",
    dtypes: Any = None,
    case_sensitive_extensions: bool = True,
    **shards: Any,
) -> Any:
    """Samples of tar archives -> an output for each extension."""
    where = "fn.readers.webdataset"
    _refuse(where, case_sensitive_extensions=(case_sensitive_extensions, True, "name the alternatives: 'jpg;JPG'"))
    missing = str(missing_component_behavior).lower() or "empty"
    if missing not in ("skip", "empty", "error"):
        raise InvalidArgument(
            f"{where}: missing_component_behavior = {missing_component_behavior!r:.40}; "
            "expected 'skip', 'empty' or 'error'"
        )
    extensions = [ext] if isinstance(ext, str) else _files.ordered(f"{where}: ext", ext)
    words = [dtypes] if isinstance(dtypes, types.DALIDataType) else list(dtypes or ())
    words = words or [types.UINT8] * len(extensions)
    if len(words) != len(extensions):
        raise InvalidArgument(f"{where}: dtypes has {len(words)} types and ext {len(extensions)}; expected as many")
    names = [types.name_of(f"{where}: dtypes", each, types.computed_by(where)) for each in words]
    archives = _paths(f"{where}: paths", paths)
    index = _indexes(f"{where}: index_paths", index_paths, "paths", len(archives))
    reader = _reader("readers.webdataset", name, shards)
    reader.either = {i: ("encoded", "bytes") for i, each in enumerate(names) if each == "uint8"}
    nodes = _nodes(
        reader,
        "readers.webdataset",
        paths=archives,
        ext=extensions,
        types=["encoded" if each == "uint8" else f"{each}[?]" for each in names],
        index=index,
        missing=missing,
    )
    outputs = [
        _file(node) if each == "uint8" else DataNode(node, sizes=(None,), dtype=each)
        for node, each in zip(nodes, names)
    ]
    return outputs[0] if len(outputs) == 1 else outputs


@operator(
    "readers.numpy",
    hints=_HINTS + " cache_header_information register_buffers use_o_direct",
    random=True,
    more={**_SHUFFLES, **_REGION},
)
def numpy(
    *,
    name: str | None = None,
    file_root: Any = None,
    file_list: Any = None,
    files: Sequence[Any] | None = None,
    file_filter: str = "*.npy",
    roi_axes: Any = (),
    out_of_bounds_policy: str = "error",
    fill_value: float = 0.0,
    **more: Any,
) -> DataNode:
    """NumPy's .npy files -> an array."""
    region = {each.replace("roi_", ""): more.pop(each, None) for each in _REGION}
    reader = _reader("readers.numpy", name, more, across=True)
    args = _files.arrays(file_root=file_root, file_list=file_list, files=files, file_filter=file_filter)
    result = DataNode(_nodes(reader, "readers.numpy", **args)[0])
    if all(each is None for each in region.values()):
        return result
    return _regions.region("fn.readers.numpy", result, roi_axes or None, region, out_of_bounds_policy, [fill_value])


@operator("readers.coco", hints=_HINTS, random=True, more=_SHUFFLES)
def coco(
    *,
    name: str | None = None,
    annotations_file: Any = "",
    file_root: Any = None,
    images: Sequence[str] | None = None,
    image_ids: bool = False,
    polygon_masks: bool = False,
    pixelwise_masks: bool = False,
    ltrb: bool = False,
    ratio: bool = False,
    skip_empty: bool = False,
    size_threshold: float = 0.1,
    include_iscrowd: bool = True,
    avoid_class_remapping: bool = False,
    preprocessed_annotations: str = "",
    save_preprocessed_annotations: bool = False,
    save_preprocessed_annotations_dir: str = "",
    **shards: Any,
) -> tuple[DataNode, ...]:
    """COCO's instance annotations and their images -> encoded image, boxes, labels, and further requested outputs."""
    where = "fn.readers.coco"
    plain = "Leat indexes the JSON file itself, once"
    _refuse(
        where,
        preprocessed_annotations=(preprocessed_annotations, "", plain),
        save_preprocessed_annotations=(save_preprocessed_annotations, False, plain),
        save_preprocessed_annotations_dir=(save_preprocessed_annotations_dir, "", plain),
    )
    if not annotations_file:
        raise InvalidArgument(f"{where}: annotations_file must be given")
    outputs = ["image", "boxes", "labels"]
    outputs += ["polygons", "vertices"] if polygon_masks else []
    outputs += ["mask"] if pixelwise_masks else []
    outputs += ["image_id"] if image_ids else []
    nodes = _nodes(
        _reader("readers.coco", name, shards),
        "readers.coco",
        annotations=_paths(f"{where}: annotations_file", annotations_file)[0],
        root=None if file_root is None else _paths(f"{where}: file_root", file_root)[0],
        outputs=outputs,
        images=None if images is None else _files.ordered(f"{where}: images", images),
        ltrb=ltrb,
        ratio=ratio,
        skip_empty=skip_empty,
        size_threshold=size_threshold,
        include_iscrowd=include_iscrowd,
        avoid_class_remapping=avoid_class_remapping,
    )
    known = {
        "boxes": {"sizes": (None, 4), "dtype": "float32"},
        "labels": {"sizes": (None,), "dtype": "int32"},
        "polygons": {"sizes": (None, 3), "dtype": "int32"},
        "vertices": {"sizes": (None, 2), "dtype": "float32"},
        "mask": {"sizes": (None, None, 1), "dtype": "int32", "layout": "HWC"},
    }
    result = []
    for node, output in zip(nodes, outputs):
        if output == "image":
            result.append(_file(node))
        elif output == "image_id":
            result.append(_one(_node.apply("cast", node, dtype="int32"), "int32"))
        else:
            result.append(DataNode(node, **known[output]))  # type: ignore[arg-type]
    return tuple(result)


@operator("readers.mxnet", hints=_HINTS, random=True, more=_SHUFFLES)
def mxnet(*, path: Any = None, index_path: Any = None, name: str | None = None, **shards: Any) -> DataNode:
    """Refused: Leat reads no RecordIO."""
    raise _refused.unimplemented("fn.readers.mxnet")


def __getattr__(name: str) -> NoReturn:
    raise _refused.missing("fn.readers", name, ("file", "caffe", "caffe2", "tfrecord", "webdataset", "numpy", "coco"))
