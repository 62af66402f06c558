# SPDX-License-Identifier: Apache-2.0
"""The iterators of leat.dali against the installed DALI's: signatures, and the counting of epochs.

Signatures are those in tests/python/unit/dali/dali_iterators.json, read from DALI's sources, since its JAX plugin
cannot be imported without JAX. Epochs are counted by DALI's own class over fake readers, with every combination of
shards, batches, policies and padding below. `dali_api.py --write FILE` writes the combinations that the unit tests
repeat. Needs nvidia.dali; by hand:

    LEAT_NATIVE_DIR=build/dev/native PYTHONPATH=python_client/src build/parity-venv/bin/python tests/parity/dali_api.py
"""

import ast
import contextlib
import importlib.util
import itertools
import json
import logging
import pathlib
import sys
import types
import warnings

from nvidia.dali.plugin import base_iterator as dali

from leat.dali.plugin import base_iterator as ours

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "python" / "unit"))
import dali_fake  # noqa: E402

TABLE = TESTS / "python" / "unit" / "dali" / "dali_iterators.json"
EPOCHS = 8
FEW = (
    (7, 1, 2),
    (7, 1, 1),
    (47, 2, 3),
    (47, 2, 2),
    (10, 3, 4),
    (24, 2, 4),
    (5, 1, 4),
    (3, 1, 10),
    (11, 4, 2),
    (60, 8, 5),
)


class OurPipeline(dali_fake.FakePipeline):
    """The part of a pipeline that our iterators need; its batches are empty."""

    def __init__(self, samples, shards, batch, shard, pads, sticks):
        super().__init__(samples, batch, shard, shards, pad=pads, stick=sticks)

    def _take(self, step, timeout=None):
        return types.SimpleNamespace(outputs=[], after=step + 1)


class TheirPipeline:
    """The part of a pipeline that DALI's iterator needs; its batches are empty."""

    _enable_checkpointing = enable_checkpointing = is_restored_from_checkpoint = False

    def __init__(self, samples, shards, batch, shard, pads, sticks):
        self.max_batch_size = self.batch_size = batch
        self._meta = {
            "epoch_size": samples,
            "epoch_size_padded": -(-samples // shards) * shards if pads else samples,
            "number_of_shards": shards,
            "shard_id": shard,
            "pad_last_batch": pads,
            "stick_to_shard": sticks,
        }

    def reader_meta(self, name=None):
        return dict(self._meta)

    def build(self):
        pass

    reset = schedule_run = release_outputs = build

    def _check_api_type_scope(self, kind):
        return contextlib.nullcontext()

    def empty(self):
        return False

    def share_outputs(self):
        return []


class Theirs(dali._DaliBaseIterator):
    def __next__(self):
        self._ever_consumed = True
        self._get_outputs()
        self._schedule_runs()
        self._advance_and_check_drop_last()
        dropped, left = self._remove_padded()
        if self._reader_name and any(dropped if self._last_batch_policy.name == "PARTIAL" else ()):
            return [max(0, min(self.batch_size, int(rows))) for rows in left]
        return None


class Ours(ours.BaseIterator):
    def _convert(self, outputs):
        return None

    def _trim(self, batch, rows):
        return rows


def counted(iterator, epochs):
    """Returns (len, size, batches, rows of the last batch) of each epoch."""
    found = []
    for _ in range(epochs):
        it, batches, rows = iter(iterator), 0, None
        length, size = len(it), it.size
        for rows in it:
            batches += 1
            if batches > 10_000:
                return [*found, "without end"]
        found.append((length, int(size), batches, rows))
    return found


def run(module, kind, case, epochs=EPOCHS):
    samples, shards, batch, policy, pads, sticks, local, reset = case
    pipeline = OurPipeline if kind is Ours else TheirPipeline
    pipelines = [pipeline(samples, shards, batch, shard, pads, sticks) for shard in local]
    arguments = {"reader_name": "reader", "auto_reset": reset, "prepare_first_batch": False}
    if kind is Ours:
        arguments = {"size": -1, "fill_last_batch": None, "last_batch_padded": False, **arguments}
    try:
        return counted(kind(pipelines, last_batch_policy=module.LastBatchPolicy[policy], **arguments), epochs)
    except (AssertionError, RuntimeError, ValueError) as error:
        return type(error).__name__


def cases(sizes):
    flags = (False, True)
    for samples, shards, batch in sizes:
        every = range(shards)
        locals_ = {tuple(every), tuple(every[:1]), tuple(every[-1:]), tuple(every[shards // 2 :])}
        for policy, pads, sticks in itertools.product(("FILL", "DROP", "PARTIAL"), flags, flags):
            for local in sorted(locals_):
                yield samples, shards, batch, policy, pads, sticks, local, bool(samples % 2)


def many():
    for shards, batch in itertools.product((1, 2, 3, 4, 8), (1, 2, 3, 4, 7, 10, 32)):
        for samples in (*range(shards, shards + 12), 47, 60, 100, 1009):
            yield samples, shards, batch


def compare_epochs():
    count, wrong, endless = 0, [], 0
    for case in cases(many()):
        theirs, mine = run(dali, Theirs, case), run(ours, Ours, case)
        count += 1
        if "without end" in theirs:
            endless += 1
            mine = mine[: len(theirs) - 1] + ["without end"]
        if theirs != mine:
            wrong.append((case, theirs, mine))
    print(f"{count} iterators, {EPOCHS} epochs of each: {count - len(wrong)} counted as DALI does")
    if endless:
        print(f"  {endless} of them never end in DALI, and are compared up to there")
    for case, theirs, mine in wrong[:5]:
        print(f"  {case}\n    DALI {theirs}\n    Leat {mine}")
    return not wrong


def signature(path, name):
    """Returns [argument, default as Python writes it, or None] of a function or class in a source file."""
    module = ast.parse(path.read_text())
    node = next(node for node in module.body if getattr(node, "name", None) == name)
    if isinstance(node, ast.ClassDef):
        node = next(each for each in node.body if getattr(each, "name", None) == "__init__")
    arguments = [each.arg for each in node.args.args if each.arg != "self"]
    defaults = [None] * (len(arguments) - len(node.args.defaults)) + [ast.unparse(each) for each in node.args.defaults]
    return [[name, default] for name, default in zip(arguments, defaults)]


def compare_signatures():
    root = pathlib.Path(importlib.util.find_spec("nvidia.dali").origin).parent
    good = True
    for entry in json.loads(TABLE.read_text()):
        theirs = signature(root / entry["source"], entry["name"])
        same = theirs == entry["arguments"]
        good &= same
        print(f"{entry['module']}.{entry['name']}: {'the same' if same else f'DALI has {theirs}'}")
    return good


def main(arguments):
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    if arguments[:1] == ["--write"]:
        table = [[*case, run(dali, Theirs, case)] for case in cases(FEW)]
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table)
        pathlib.Path(arguments[1]).write_text(f"[\n{lines}\n]\n")
        return 0
    return 0 if compare_signatures() & compare_epochs() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
