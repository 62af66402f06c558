#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden vectors of core/ beside itself: a second implementation.

It shares nothing with the C++ one but the definitions, so a file that the C++
tests accept was computed twice. Changing a line of a file orphans every token
that users hold: that is a decision, never a repair of a test.

    tests/golden/generate.py          writes the files
    tests/golden/generate.py --check  exits 1 if a file differs
"""

import hashlib
import heapq
import pathlib
import struct
import sys

import conditions
import packing
import selections

FOLDER = pathlib.Path(__file__).resolve().parent
M32, M64 = 2**32 - 1, 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix64(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & M64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def mix_key(seed, epoch, salt):
    x = mix64((salt + GOLDEN) & M64)
    x = mix64(((x ^ seed) + GOLDEN) & M64)
    return mix64(((x ^ epoch) + GOLDEN) & M64)


def round_function(half, key):
    x = (half + key) & M32
    x ^= x >> 16
    x = x * 0x7FEB352D & M32
    x ^= x >> 15
    x = x * 0x846CA68B & M32
    return x ^ x >> 16


def permute(n, key, i):
    bits = (n - 1).bit_length()
    right_bits = bits // 2
    right_mask, left_mask = 2**right_bits - 1, 2 ** (bits - right_bits) - 1
    keys, state = [], key
    for _ in range(12 if bits <= 16 else 6):
        state = (state + GOLDEN) & M64
        word = mix64(state)
        keys += [word & M32, word >> 32]
    while True:
        left, right = i >> right_bits, i & right_mask
        for even, odd in zip(keys[::2], keys[1::2]):
            left ^= round_function(right, even) & left_mask
            right ^= round_function(left, odd) & right_mask
        i = left << right_bits | right
        if i < n:
            return i


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & M32, p0 >> 32 ^ c[3] ^ k[1], p0 & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c


def draws(seed, epoch, sample, op, count):
    key = mix_key(seed, epoch, 0x64726177)
    out, block = [], 0
    while len(out) < count:
        out += philox(
            (block, op, sample & M32, sample >> 32), (key & M32, key >> 32)
        )
        block += 1
    return out[:count]


def plan_hash(text, numbers, fingerprint, said=None, raw=b""):
    def field(data):
        return struct.pack("<Q", len(data)) + data

    data = field(b"leat.plan.v1") + field(text)
    numbers = [struct.pack("<Q", number) for number in numbers]
    data += b"".join(numbers[:5]) + (field(said) if said else b"") + raw + b"".join(numbers[5:])
    return hashlib.sha256(data + fingerprint).hexdigest()


def permutation_file():
    yield "# n key i value"
    sizes = [1, 2, 3, 5, 7, 64, 1000, 4097, 65535, 65536, 65537, 1281167]
    sizes += [10**7, 10**9, 2**32 + 1, 10**12 + 39, 2**47 + 1, 2**48]
    for n in sizes:
        for key in (0, 1, M64, 0x0123456789ABCDEF):
            for i in sorted({0, 1 % n, n // 2, n - 1}):
                yield f"{n} {key} {i} {permute(n, key, i)}"


def mix_key_file():
    yield "# seed epoch salt value"
    for args in ((0, 0, 0), (7, 0, 0), (0, 7, 0), (0, 0, 7), (M64, M64, M64), (42, 3, 5)):
        yield " ".join(map(str, (*args, mix_key(*args))))


def philox_file():
    yield "# counter (4 words) key (2 words) block (4 words), hexadecimal."
    yield "# The first three are those that Random123 publishes for philox4x32-10."
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    for words in ([0] * 6, [M32] * 6, pi, [1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 0, 0]):
        block = philox(words[:4], words[4:])
        yield " ".join(f"{word:08x}" for word in [*words, *block])


def draws_file():
    yield "# seed epoch sample op, then the first 6 words of 32 bits"
    for args in ((0, 0, 0, 0), (7, 0, 0, 0), (7, 1, 0, 0), (7, 1, 9, 0), (7, 1, 9, 3),
                 (M64, M64, 2**48 - 1, M32)):
        yield " ".join(map(str, (*args, *draws(*args, 6))))


# The fields of each spec: seed, batch, order, last_batch, num_parts,
# shuffle_window (0 unless the order is 3), decoder_class, on_bad_sample.
PLANS = {
    "usual": (7, 1024, 2, 1, 0, 0, 1, 1),
    "sequential": (0, 1, 1, 4, 0, 0, 1, 2),
    "shard": (M64, 2**20, 3, 2, 8, 16, 2, 3),
    "stream": (7, 1024, 2, 5, 0, 0, 1, 1),
}
PIPELINE = (
    b'0 readers.image_folder path="/data" repeat=1\n'
    b'1 decode (0:0) orient=true output="rgb"\n'
    b'output "image" 1:0\n'
    b'output "label" 0:1\n'
)
# A stream in which a number is drawn for each step says so behind num_parts.
STEP_PIPELINE = PIPELINE.replace(
    b'output "image"', b'2 beta alpha=0x1p+0 beta=0x1p+0 per="batch"\noutput "image"'
) + b'output "lam" 2:0\n'
# At its default an argument that operators got later is not said.
REDUCED_PIPELINE = PIPELINE.replace(b'output="rgb"\n', b'output="rgb" reduce="auto"\n')


def plan_hash_file():
    yield "# name of the spec in plan_hash_test.cc, plan hash"
    for name, numbers in PLANS.items():
        yield f"{name} {plan_hash(PIPELINE, numbers, bytes(range(32)))}"
    said = plan_hash(STEP_PIPELINE, PLANS["stream"], bytes(range(32)), b"draws_for_steps")
    yield f"stream_with_a_draw_for_steps {said}"
    yield f"reduced {plan_hash(REDUCED_PIPELINE, PLANS['usual'], bytes(range(32)))}"


# Mixtures of shares.txt, which share_tree_test.cc makes alike: users' weights,
# or whole numbers.
def fibonacci(count):
    numbers = [1, 1]
    while len(numbers) < count:
        numbers.append(numbers[-2] + numbers[-1])
    return numbers


MIXTURES = {
    "one": [3.0],
    "three": [0.7, 0.2, 0.1],
    "gap": [0.5, 0.0, 0.49, 0.01, 0.0],
    "even_7": [1.0] * 7,
    "zipf_100": [1 / (i + 1) for i in range(100)],
    "zipf_1000": [1 / (i + 1) for i in range(1000)],
}
WHOLE_MIXTURES = {
    "fibonacci_80": fibonacci(80),
    "largest": [2**56 - 3, 1, 1, 1],
    "wide": [2**55, 2**53 - 7, 3, 2**54 + 1, 0, 2**48 + 12345, 1],
}


def whole_weights(weights):
    total = 0.0
    for weight in weights:
        total += weight
    return [int(weight * 2.0**32 / total + 0.5) for weight in weights]


class Share:
    """A node of the tree of shares: a leaf, or a left and a right child."""

    def __init__(self, weight, leaf=None, left=None, right=None):
        self.weight, self.leaf, self.left, self.right = weight, leaf, left, right

    def lefts(self, k):
        return (k * self.left.weight + self.weight // 2) // self.weight

    def locate(self, k):
        if self.left is None:
            return self.leaf, k
        left = self.lefts(k)
        if self.lefts(k + 1) > left:
            return self.left.locate(left)
        return self.right.locate(k - left)

    def counts(self, k):
        if self.left is None:
            return {self.leaf: k}
        left = self.lefts(k)
        return {**self.left.counts(left), **self.right.counts(k - left)}


def share_tree(weights):
    heap = [(weight, leaf, Share(weight, leaf)) for leaf, weight in enumerate(weights) if weight]
    births = len(weights)
    heapq.heapify(heap)
    while len(heap) > 1:
        _, _, first = heapq.heappop(heap)
        _, _, second = heapq.heappop(heap)
        both = Share(first.weight + second.weight, None, second, first)
        heapq.heappush(heap, (both.weight, births, both))
        births += 1
    return heap[0][2]


# Mixtures with sources and steps, which share_layout_test.cc makes alike: seed,
# batch, segments, and the sizes of each source's groups with their weights.
LAYOUTS = {
    "plain": (7, 10, [(0, [7, 2, 1])], [[60], [40], [5]], {}),
    "scheduled": (
        M64, 200, [(0, [0.7, 0.2, 0.1, 0]), (3, [0.5, 0.5, 0, 0]), (4, [0, 1, 1, 2])],
        [[1000], [77], [12], [5]], {},
    ),
    "grouped": (42, 130, [(0, [0.25, 0.75])], [[500, 40, 7, 1300, 1], [900]], {0: [1] * 5}),
    "alone": (42, 64, [(0, [1])], [[30, 0, 70]], {0: [0.9, 0, 0.1]}),
}
SALTS = {"order": 0x6F72646572000000, "srcs": 0x7372637300000000, "mixr": 0x6D69787200000000}


def segment_at(shares, step):
    return max(segment for segment, (begin, _) in enumerate(shares) if begin <= step)


def rows_before(shares, batch, source, step):
    rows = 0
    for segment in range(segment_at(shares, step) + 1):
        begin, weights = shares[segment]
        end = shares[segment + 1][0] if segment + 1 < len(shares) else step
        tree = share_tree(whole_weights(weights))
        rows += tree.counts(min(end, step) * batch).get(source, 0) - tree.counts(begin * batch).get(source, 0)
    return rows


def layout_row(layout, step, row):
    """(source, group, pass, position, sample of the source) of a row; `step` counts over all epochs."""
    seed, batch, shares, sizes, groups = layout
    run = row // 64
    key = mix_key(mix_key(seed, step, SALTS["mixr"]), run, 0)
    place = run * 64 + permute(min(64, batch - run * 64), key, row % 64)
    begin, weights = shares[segment_at(shares, step)]
    tree = share_tree(whole_weights(weights))
    source, index = tree.locate(step * batch + place)
    stream_row = rows_before(shares, batch, source, begin) + index - tree.counts(begin * batch).get(source, 0)
    group, start, size = 0, 0, sum(sizes[source])
    if source in groups:
        weights = groups[source]  # a tuple: whole numbers
        weights = weights if isinstance(weights, tuple) else whole_weights(weights)
        group, stream_row = share_tree(weights).locate(stream_row)
        start, size = sum(sizes[source][:group]), sizes[source][group]
    number, position = divmod(stream_row, size)
    seed = seed if len(sizes) == 1 else mix_key(seed, source, SALTS["srcs"])
    order = mix_key(seed, number, SALTS["order"] + group)
    return source, group, number, position, start + permute(size, order, position)


def steps_by(layout, end):
    _, batch, shares, sizes, _ = layout
    step = 0
    while True:
        rows = [rows_before(shares, batch, source, step + 1) for source in range(len(sizes))]
        full = [row >= sum(size) for row, size in zip(rows, sizes)]
        over = [row > sum(size) for row, size in zip(rows, sizes)]
        if end == "first" and any(over):
            return step
        if end == "all" and all(full):
            return step + 1
        step += 1


def layout_lines():
    yield "# row LAYOUT step row source group pass position sample"
    for name, layout in LAYOUTS.items():
        batch = layout[1]
        for step in (0, 1, 2, 3, 4, 5, 1000, 2**31, 2**40 - 1):
            for row in sorted({0, 1, min(63, batch - 1), min(64, batch - 1), batch - 2, batch - 1}):
                yield " ".join(map(str, ("row", name, step, row, *layout_row(layout, step, row))))
    yield "# before LAYOUT step source rows"
    for name, (_, batch, shares, sizes, _) in LAYOUTS.items():
        for step in (1, 2, 3, 4, 5, 10**6):
            for source in range(len(sizes)):
                yield f"before {name} {step} {source} {rows_before(shares, batch, source, step)}"
    yield "# steps LAYOUT end steps"
    for name in ("plain", "grouped", "alone"):
        for end in ("first", "all"):
            yield f"steps {name} {end} {steps_by(LAYOUTS[name], end)}"


def shares_file():
    yield "# whole MIXTURE leaf weight: what the users' weight of the leaf becomes"
    for name, weights in MIXTURES.items():
        whole = whole_weights(weights)
        for leaf in sorted({0, 1 % len(whole), len(whole) // 2, len(whole) - 1}):
            yield f"whole {name} {leaf} {whole[leaf]}"
        yield f"whole {name} sum {sum(whole)}"
    yield "# locate MIXTURE k leaf index; count MIXTURE leaf k rows"
    wholes = {name: whole_weights(weights) for name, weights in MIXTURES.items()}
    for name, weights in {**wholes, **WHOLE_MIXTURES}.items():
        tree = share_tree(weights)
        for k in (0, 1, 2, 3, 10, 63, 64, 1000, M32, 2**32, 2**32 + 12345, 10**12 + 39, 2**56 + 5, 2**60 - 1):
            leaf, index = tree.locate(k)
            yield f"locate {name} {k} {leaf} {index}"
            counts = tree.counts(k)
            for leaf in sorted({0, len(weights) // 2, len(weights) - 1, leaf}):
                yield f"count {name} {leaf} {k} {counts.get(leaf, 0)}"
    yield from layout_lines()


def conditions_file():
    yield from conditions.lines(lambda i: mix64(i * GOLDEN & M64))


FILES = {
    "permutation.txt": permutation_file,
    "mix_key.txt": mix_key_file,
    "philox.txt": philox_file,
    "draws.txt": draws_file,
    "plan_hash.txt": plan_hash_file,
    "shares.txt": shares_file,
    "packing.txt": lambda: packing.packing_file(mix64),
    "conditions.txt": conditions_file,
    "selections.txt": lambda: selections.selections_file(PIPELINE, plan_hash, layout_row),
    "sample_weights.txt": lambda: selections.sample_weights_file(PIPELINE, plan_hash, layout_row, mix64),
}


def main():
    check = sys.argv[1:] == ["--check"]
    bad = 0
    for name, lines in FILES.items():
        text = "\n".join(lines()) + "\n"
        path = FOLDER / name
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path}: differs from what generate.py computes")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
