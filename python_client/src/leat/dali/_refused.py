# SPDX-License-Identifier: Apache-2.0
"""Names of DALI that Leat refuses: each with the reason and what to write instead.

The functions that refuse, `python -m leat.dali.check` and the table of docs/guide/move-from-dali-refused.md use this
list; `python -m leat.dali.check --refused` prints the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from leat._graphs.operators import nearest
from leat.errors import Unimplemented


class Refusal(NamedTuple):
    """The reason why a name is refused, and what to write instead."""

    why: str
    instead: str

    def of(self, name: str) -> str:
        """Returns the message."""
        return f"{name}: {self.why}; {self.instead}"


_FUNCTION = "call fn.python_function, or a jax_function"
_BOXES = "boxes, points and masks are values like others, which no operator knows as such"
# Names that share a reason.
_GROUPS = (
    (
        "fn.audio_decoder fn.audio_resample fn.decoders.audio fn.mel_filter_bank fn.mfcc fn.nemo_asr_reader "
        "fn.nonsilent_region fn.power_spectrum fn.preemphasis_filter fn.readers.nemo_asr fn.spectrogram fn.to_decibels",
        Refusal("workers decode and compute no audio", "compute it in fn.python_function"),
    ),
    (
        "fn.decoders.video fn.element_extract fn.inputs fn.optical_flow fn.per_frame fn.readers.sequence "
        "fn.readers.video fn.readers.video_resize fn.sequence_rearrange fn.sequence_reader fn.video_reader "
        "fn.video_reader_resize",
        Refusal("values are single images: there are no videos and no sequences", "read single frames as files"),
    ),
    (
        "fn.batch_permutation fn.permute_batch",
        Refusal(
            "rows of a batch come from several workers, and none of them sees all rows",
            "permute the arrays of the batch, or mix in a jax_function",
        ),
    ),
    (
        "fn.bb_flip fn.bbox_paste fn.bbox_rotate fn.box_encoder fn.coord_flip fn.coord_transform fn.random_bbox_crop "
        "fn.roi_random_crop fn.segmentation fn.ssd_random_crop",
        Refusal(_BOXES, _FUNCTION),
    ),
    (
        "fn.clahe fn.debayer fn.dump_image fn.filter fn.grid_mask fn.jitter fn.laplacian fn.multi_paste fn.paste "
        "fn.reductions fn.sphere fn.water",
        Refusal("workers do not compute it", _FUNCTION),
    ),
    (
        "fn.dl_tensor_python_function fn.numba_function fn.plugin fn.torch_python_function",
        Refusal("functions run in the training's process, on arrays of NumPy or JAX", _FUNCTION),
    ),
    ("fn.experimental", Refusal("workers compute none of DALI's experiments", "use what has left fn.experimental")),
    (
        "fn.get_property",
        Refusal("workers give no metadata as values", "iterator.samples() says which samples they are"),
    ),
    ("fn.io", Refusal("workers read through readers alone", "use fn.readers.file, or an external_source")),
    ("fn.random_crop_generator", Refusal("windows are not drawn by themselves", "use fn.random_resized_crop")),
    ("fn.readers.mxnet", Refusal("Leat reads no RecordIO", "write the records as TFRecord, WebDataset or files")),
    ("fn.subscript", Refusal("indices are no operator of their own", "write node[…]")),
    (
        "fn.decoders.inflate fn.decoders.numpy",
        Refusal("workers decode images alone", "use fn.readers.numpy, or decode it in fn.python_function"),
    ),
    (
        "fn.fast_resize_crop_mirror",
        Refusal("there is one resampling", "use fn.resize_crop_mirror(antialias=False)"),
    ),
    ("fn.tensor_resize", Refusal("resampling is of images", "use fn.resize")),
    (
        "fn.transforms fn.transform_translation",
        Refusal("matrices are constants", "compute it with NumPy, for fn.warp_affine(matrix=…)"),
    ),
    (
        " ".join(
            f"math.{name}"
            for name in "sqrt rsqrt cbrt exp log log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh "
            "acosh atanh fpow atan2".split()
        ),
        Refusal("workers do not compute it", "fn.lookup_table does for bytes, a jax_function for all else"),
    ),
    (
        "tensors.TensorGPU tensors.TensorListGPU",
        Refusal(
            "what Pipeline.run gives is in the host's memory",
            "the iterators of plugin.jax and plugin.pytorch put it on a device",
        ),
    ),
    (
        "Pipeline.deserialize Pipeline.serialize",
        Refusal(
            "a graph holds functions of this process, which are not stored",
            "call the function that defines it where it is needed: pipelines of one graph share a job",
        ),
    ),
    (
        "plugin.mxnet plugin.paddle plugin.tf plugin.numba plugin.pytorch.experimental",
        Refusal("there is no such plugin", "use plugin.jax or plugin.pytorch"),
    ),
    (
        "experimental experimental.dynamic",
        Refusal("operators are computed by workers, as a graph, not one by one", "write a pipeline with pipeline_def"),
    ),
)
NAMES: dict[str, Refusal] = {name: refusal for names, refusal in _GROUPS for name in names.split()}

_VOLUMES = Refusal("values are single images: there are no volumes", "leave it out")
# Arguments that are refused unless they have their defaults, by operator.
ARGUMENTS: dict[tuple[str, str], Refusal] = {
    ("fn.crop", "crop_d"): _VOLUMES,
    ("fn.crop_mirror_normalize", "crop_d"): _VOLUMES,
    ("fn.decoders.image_crop", "crop_d"): _VOLUMES,
    **{("fn.resize_crop_mirror", name): _VOLUMES for name in ("crop_d", "resize_z")},
    ("fn.resize", "resize_z"): _VOLUMES,
    ("fn.rotate", "axis"): _VOLUMES,
    ("fn.normalize", "batch"): Refusal("workers do not see the whole batch", "normalize each sample"),
    ("fn.resize", "save_attrs"): Refusal("workers give no second output there", "take input.shape() before"),
}


def unimplemented(name: str) -> Unimplemented:
    """Returns the error for a name in NAMES."""
    return Unimplemented(NAMES[name].of(name))


def missing(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Returns the error for a name that a module does not have."""
    refusal = NAMES.get(f"{module}.{name}")
    if refusal is not None:
        return AttributeError(refusal.of(f"{module}.{name}"))
    return AttributeError(f"leat.dali.{module} has no operator {name!r}{nearest(name, known)}")


def found(name: str) -> Refusal | None:
    """Returns why a name, or a group that contains it, is refused; None: it is not refused."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        refusal = NAMES.get(".".join(parts[:end]))
        if refusal is not None:
            return refusal
    return None


# These refusals belong to no single operator or argument; docs/guide/move-from-dali-refused.md lists them.
_GENERAL = (
    ("samples of several shapes in a batch of `DALIGenericIterator`, or for a `jax_function`", "each takes whole "
     "arrays", "resize, crop or pad them, or use `DALIRaggedIterator` or `Pipeline.run`"),
    ("values of unknown length before `fn.cat`, and batches of `feed_input` of unknown axes before reshape, stack and "
     "`node[1]`", "the graph's shapes are found before there is data", "fn.crop, fn.resize or fn.reshape before "
     "`fn.cat`; external_source(ndim=…) or external_source(layout=…)"),
    ("`if` on a node in a helper or a class's `__call__` that the pipeline calls", "the pipeline's own function alone "
     "is rewritten", "let it return both values, and choose between them in that function"),
    ("`x[0] = …` or `x.y = …` in an `if` on a node, and a node that one branch leaves in a list", "both branches are "
     "traced, and what they leave there would be for all samples", "assign a name in both branches"),
    ("sizes, matrices, means and fill values that vary from sample to sample", "they are constants of the graph",
     "choose among several results with `if`"),
    ("types other than BOOL, UINT8, INT32, INT64, FLOAT16 and FLOAT", "workers compute these", "use the next wider"),
)  # fmt: skip


def table() -> str:
    """Returns the table of docs/guide/move-from-dali-refused.md."""
    rows = [(", ".join(f"`{name}`" for name in names.split()), *refusal) for names, refusal in _GROUPS]
    by_reason: dict[Refusal, list[str]] = {}
    for (operator, argument), refusal in ARGUMENTS.items():
        by_reason.setdefault(refusal, []).append(f"`{operator}({argument}=)`")
    rows += [(", ".join(names), *refusal) for refusal, names in by_reason.items()]
    lines = ["| what | why | instead |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in [*rows, *_GENERAL])]) + "\n"

