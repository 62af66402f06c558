# SPDX-License-Identifier: Apache-2.0
"""selections.txt and sample_weights.txt: hashes and rows of jobs whose classes or samples have shares, without the library."""

import fractions
import hashlib
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


def selection_hash(pipeline, plan_hash, numbers, text, augment=None):
    """The plan hash of a job with this text of its selection; `pipeline` and `plan_hash` are generate.py's."""
    said = [b"selection", text.encode()]
    data = b"".join(struct.pack("<Q", len(part)) + part for part in said)
    if augment is not None:
        data += struct.pack("<Q", len(b"augment_seed")) + b"augment_seed" + struct.pack("<Q", augment)
    return plan_hash(pipeline, numbers, bytes(range(32)), raw=data)


def selections_file(pipeline, plan_hash, layout_row):
    """`pipeline`, `plan_hash` and `layout_row` are generate.py's."""
    yield "# hash JOB plan_hash"
    for name, (seed, augment, batch, _, _, text) in SELECTIONS.items():
        numbers = (seed, batch, 2, 1, 0, 0, 1, 1)
        yield f"hash {name} {selection_hash(pipeline, plan_hash, numbers, text, augment)}"
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


# Jobs whose samples have weights, which rounded_weight_golden_test.cc makes
# alike from the weights in the file: seed, batch, and the weights.
def weighed_jobs(mix64):
    def cubes(count, salt):
        unit = [(mix64(salt + i) >> 11) / 2**53 for i in range(count)]
        return [0.0 if i % 17 == 5 else 5 * each * each * each + 1e-4 for i, each in enumerate(unit)]

    return {
        "cubes": (7, 50, cubes(400, 1000)),
        "few": (2**64 - 1, 8, [1.0, 2.0, 0.0, 1.0, 0.5, 2.0, 2.0003, 0.75, 1e-5, 10.0]),
        "alike": (3, 4, [0.1] * 9),
    }


def ten_bits(weight):
    """The weight's mantissa of ten bits, 512 to 1023, and its exponent: exactly, by fractions."""
    exact, exponent = fractions.Fraction(weight), 0
    while exact >= 1024:
        exact, exponent = exact / 2, exponent + 1
    while exact < 512:
        exact, exponent = exact * 2, exponent - 1
    mantissa = int(exact + fractions.Fraction(1, 2))
    return (512, exponent + 1) if mantissa == 1024 else (mantissa, exponent)


def sample_weights_file(pipeline, plan_hash, layout_row, mix64):
    yield "# weight JOB sample weight mantissa exponent; the first two of a job's lines are its seed and batch"
    jobs = weighed_jobs(mix64)
    groups = {}  # by job: (weight, samples), in their order
    for name, (seed, batch, weights) in jobs.items():
        yield f"seed {name} {seed}"
        yield f"batch {name} {batch}"
        found = {}
        for sample, weight in enumerate(weights):
            mantissa, exponent = ten_bits(weight) if weight else (0, 0)
            yield f"weight {name} {sample} {weight.hex()} {mantissa} {exponent}"
            if weight:
                found.setdefault((exponent, mantissa), []).append(sample)
        least = min(found)[0]
        groups[name] = [(mantissa << (exponent - least), found[exponent, mantissa]) for exponent, mantissa in sorted(found)]
    yield "# group JOB group samples weight; hash JOB plan_hash"
    for name, (seed, batch, weights) in jobs.items():
        for number, (weight, samples) in enumerate(groups[name]):
            yield f"group {name} {number} {len(samples)} {weight}"
        digest = hashlib.sha256(struct.pack(f"<{len(weights)}d", *weights)).hexdigest()
        text = f"weights list {len(weights)} {digest}\n"
        yield f"hash {name} {selection_hash(pipeline, plan_hash, (seed, batch, 2, 1, 0, 0, 1, 1), text)}"
    yield "# row JOB epoch step row sample pass; the sample is one of those that have the weights"
    for name, (seed, batch, _) in jobs.items():
        sizes = [len(samples) for _, samples in groups[name]]
        order = [sample for _, samples in groups[name] for sample in samples]
        layout = (seed, batch, [(0, [1])], [sizes], {0: tuple(weight * len(samples) for weight, samples in groups[name])})
        steps = sum(sizes) // batch
        for epoch in (0, 1, 1000):
            for step in sorted({0, steps // 2, steps - 1}):
                for row in range(0, batch, max(1, batch // 10)):
                    _, _, number, _, item = layout_row(layout, epoch * steps + step, row)
                    yield f"row {name} {epoch} {step} {row} {order[item]} {number}"
