# SPDX-License-Identifier: Apache-2.0
"""readers.tokens against Megatron's IndexedDataset, on files that its IndexedDatasetBuilder makes.

    ninja -C build/dev dump_source
    python tests/parity/readers_tokens.py build/dev/tests/parity/dump_source

Wants megatron-core, whose other modules are not loaded, and torch, of any release.
"""

import hashlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import types

import numpy as np
import torch

DTYPES = ["uint8", "int8", "int16", "uint16", "int32", "int64", "float32"]


def indexed_dataset():
    """Returns the module. The package itself imports what trains models, which wants a newer torch and CUDA."""
    root = importlib.metadata.distribution("megatron-core").locate_file("megatron/core")
    packages = {"megatron": root.parent, "megatron.core": root, "megatron.core.datasets": root / "datasets"}
    for name, path in packages.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(path)]
    sys.modules["megatron.core.utils"] = types.ModuleType("megatron.core.utils")
    sys.modules["megatron.core.utils"].log_single_rank = lambda *_: None
    clients = types.ModuleType("megatron.core.msc_utils")
    clients.MultiStorageClientFeature = types.SimpleNamespace(is_enabled=lambda: False)
    sys.modules["megatron.core.msc_utils"] = clients
    from megatron.core.datasets import indexed_dataset as module

    return module


def write(module, prefix, dtype, multimodal, rng):
    builder = module.IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.dtype(dtype).type, multimodal=multimodal)
    for _ in range(500):
        for _ in range(rng.integers(0, 4)):
            tokens = torch.from_numpy(rng.integers(0, 100, rng.integers(0, 300)))
            builder.add_item(tokens, **({"mode": 1} if multimodal else {}))
        builder.end_document()
    builder.finalize(f"{prefix}.idx")


def line(i, tokens):
    return f"{i} [{len(tokens)}]{hashlib.sha256(tokens.tobytes()).hexdigest()}"


def main():
    module = indexed_dataset()
    for dtype in DTYPES:
        for multimodal in (False, True):
            with tempfile.TemporaryDirectory() as directory:
                prefix = os.path.join(directory, "a")
                write(module, prefix, dtype, multimodal, np.random.default_rng(5))
                theirs = module.IndexedDataset(prefix, multimodal=multimodal)
                sequences = [theirs[i][0] if multimodal else theirs[i] for i in range(len(theirs))]
                ends = theirs.document_indices
                none = np.zeros(0, dtype)
                documents = [np.concatenate([none, *sequences[a:b]]) for a, b in zip(ends[:-1], ends[1:])]
                for unit, wanted in ("document", documents), ("sequence", sequences):
                    assert all(each.dtype == dtype for each in wanted)
                    done = subprocess.run(
                        [sys.argv[1], "readers.tokens", f"files:={prefix}.bin", f"unit={unit}"],
                        capture_output=True, text=True)
                    if done.returncode != 0:
                        sys.exit(f"{dtype}: {done.stderr}")
                    for i, (ours, tokens) in enumerate(zip(done.stdout.splitlines(), wanted, strict=True)):
                        if ours != line(i, tokens):
                            sys.exit(f"{dtype}: differ\n  leat     {ours}\n  megatron {line(i, tokens)}")
                    of = ", multimodal" if multimodal else ""
                    print(f"{dtype}{of}: {len(wanted)} {unit}s are the same")


if __name__ == "__main__":
    main()
