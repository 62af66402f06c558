# SPDX-License-Identifier: Apache-2.0
"""The second implementation of core/packing: plain loops over all documents.

generate.py writes packing.txt with it.
"""

import bisect
import hashlib

WINDOW_DOCUMENTS, WINDOW_PIECES = 16384, 65536


def pieces_of(packing, document, size):
    """The pieces (document, begin, size) that best fit makes of a document."""
    length, overlap = packing["length"], packing["overlap"]
    if size > length and packing["longer"] == "drop":
        return []
    pieces, begin = [], 0
    while size > 0:
        pieces.append((document, begin, min(length, size - begin)))
        if begin + length >= size:
            break
        begin += length - overlap
    return pieces


def windows(packing, lengths):
    """The documents of each window, as (first, end)."""
    first = pieces = 0
    for document, size in enumerate(lengths):
        left = len(lengths) - document - 1
        if packing["how"] == "fit":
            pieces += len(pieces_of(packing, document, size))
        whole = document + 1 - first >= WINDOW_DOCUMENTS and left >= WINDOW_DOCUMENTS
        if whole or pieces >= WINDOW_PIECES or left == 0:
            yield first, document + 1
            first, pieces = document + 1, 0


def fit(packing, lengths, first, end):
    """The rows of a window, each a list of pieces."""
    pieces = [piece for document in range(first, end) for piece in pieces_of(packing, document, lengths[document])]
    rows, rooms, stacks = [], [], {}
    for piece in sorted(pieces, key=lambda piece: -piece[2]):  # sorted() is stable
        place = bisect.bisect_left(rooms, piece[2])
        if place == len(rooms):
            row, room = [], packing["length"]
            rows.append(row)
        else:
            room = rooms[place]
            row = stacks[room].pop()
            if not stacks[room]:
                del rooms[place], stacks[room]
        row.append(piece)
        room -= piece[2]
        if room and len(row) != packing["max_documents"]:
            if room not in stacks:
                bisect.insort(rooms, room)
            stacks.setdefault(room, []).append(row)
    return sorted(sorted(row) for row in rows)


def cut(packing, lengths):
    """All rows of documents that follow one another: each element is looked at."""
    length, step = packing["length"], packing["length"] - packing["overlap"]
    total = sum(lengths)
    ends, end = [], 0
    for size in lengths:
        end += size
        ends.append(end)
    for begin in range(0, total - length + 1, step):
        row, at = [], begin
        while at < begin + length:
            document = bisect.bisect_right(ends, at)
            start = ends[document] - lengths[document]
            stop = min(ends[document], begin + length)
            row.append((document, at - start, stop - at))
            at = stop
        yield row


PACKINGS = {
    "cut": dict(how="cut", length=2048, overlap=0, longer="cut", max_documents=0),
    "cut_targets": dict(how="cut", length=4097, overlap=1, longer="cut", max_documents=0),
    "fit": dict(how="fit", length=2048, overlap=0, longer="cut", max_documents=0),
    "fit_targets": dict(how="fit", length=513, overlap=1, longer="cut", max_documents=0),
    "fit_drop": dict(how="fit", length=1000, overlap=0, longer="drop", max_documents=0),
    "fit_few": dict(how="fit", length=8192, overlap=0, longer="cut", max_documents=4),
    "fit_short": dict(how="fit", length=7, overlap=3, longer="cut", max_documents=0),
}


# The packings of each corpus: small ones have pieces of all kinds, large ones take several windows.
PACKED = {
    "few": list(PACKINGS),
    "small": list(PACKINGS),
    "large": ["cut_targets", "fit", "fit_few"],
    "huge": ["fit_targets"],
}


def corpora(mix64):
    """Lengths of documents by a formula that windows_test.cc has, too: mostly short, a few long, some empty."""

    def size(salt, document):
        word = mix64((salt << 32) + document)
        bits = word & 15
        return 0 if bits == 15 else (word >> 8) % (16 << bits % 10) + (word >> 40) % 32

    return {
        "few": [size(1, document) for document in range(5)],
        "small": [size(2, document) for document in range(1000)],
        "large": [size(3, document) for document in range(50000)],
        "huge": [size(4, document) for document in range(100)] + [40000000] + [size(5, document) for document in range(400)],
    }


def text(row):
    return ",".join(f"{document}:{begin}+{size}" for document, begin, size in row)


def packing_file(mix64):
    yield "# window CORPUS PACKING window documents elements rows (of its own, where packing fits)"
    yield "# row CORPUS PACKING row document:begin+size,…"
    yield "# rows CORPUS PACKING rows, SHA-256 of all rows as such texts, each with a line feed behind it"
    for corpus, lengths in corpora(mix64).items():
        for name in PACKED[corpus]:
            packing = PACKINGS[name]
            found = list(windows(packing, lengths))
            rows = []
            for window, (first, end) in enumerate(found):
                own = fit(packing, lengths, first, end) if packing["how"] == "fit" else []
                yield f"window {corpus} {name} {window} {end - first} {sum(lengths[first:end])} {len(own)}"
                rows += own
            if packing["how"] == "cut":
                rows = list(cut(packing, lengths))
            for row in sorted({0, len(rows) // 2, len(rows) - 1} if rows else ()):
                yield f"row {corpus} {name} {row} {text(rows[row])}"
            digest = hashlib.sha256("".join(text(row) + "\n" for row in rows).encode()).hexdigest()
            yield f"rows {corpus} {name} {len(rows)} {digest}"
