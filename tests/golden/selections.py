# SPDX-License-Identifier: Apache-2.0
"""selections.txt: hashes and rows of jobs whose classes have shares, without the library."""

import struct

# Jobs of one dataset with classes in shares, which job_layout_golden_test.cc
# makes alike: seed, augment_seed, batch, the classes' sizes, their shares
# (None: balanced), and what stands in the plan hash.
SELECTIONS = {
    "balanced": (7, None, 100, [500, 40, 7, 0, 1300, 1], None, "balanced\n"),
    "shares": (
        2**64 - 1, None, 64, [30, 1, 70, 9], {"c0": 0.5, "c2": 3, "*": 1},
        'share "*" 0x1p+0\nshare "c0" 0x1p-1\nshare "c2" 0x1.8p+1\n',
    ),
    "seeds": (7, 8, 24, [5, 20], {"c1": 0.75, "c0": 0.25}, 'share "c0" 0x1p-2\nshare "c1" 0x1.8p-1\n'),
}


def group_weights(sizes, shares):
    """The classes' weights, in their order."""
    if shares is None:
        return [1.0 if size else 0.0 for size in sizes]
    others = [i for i, size in enumerate(sizes) if size and f"c{i}" not in shares]
    return [
        shares.get("*", 0) / len(others) if i in others else float(shares.get(f"c{i}", 0))
        for i in range(len(sizes))
    ]


def selections_file(pipeline, plan_hash, layout_row):
    """`pipeline`, `plan_hash` and `layout_row` are generate.py's."""
    yield "# hash JOB plan_hash"
    for name, (seed, augment, batch, _, _, text) in SELECTIONS.items():
        said = [b"selection", text.encode()]
        data = b"".join(struct.pack("<Q", len(part)) + part for part in said)
        if augment is not None:
            data += struct.pack("<Q", len(b"augment_seed")) + b"augment_seed" + struct.pack("<Q", augment)
        numbers = (seed, batch, 2, 1, 0, 0, 1, 1)
        yield f"hash {name} {plan_hash(pipeline, numbers, bytes(range(32)), raw=data)}"
    yield "# steps JOB steps; row JOB epoch step row sample pass"
    for name, (seed, _, batch, sizes, shares, _) in SELECTIONS.items():
        layout = (seed, batch, [(0, [1])], [sizes], {0: group_weights(sizes, shares)})
        steps = sum(sizes) // batch
        yield f"steps {name} {steps}"
        for epoch in (0, 1, 1000):
            for step in sorted({0, steps // 2, steps - 1}):
                for row in sorted({0, 1, batch // 2, batch - 1}):
                    _, _, number, _, sample = layout_row(layout, epoch * steps + step, row)
                    yield f"row {name} {epoch} {step} {row} {sample} {number}"
