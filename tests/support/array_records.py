# SPDX-License-Identifier: Apache-2.0
"""ArrayRecord files of a few small records, in the layout of their own writer (Riegeli's chunks of one block)."""

import struct

_MASK = 2**64 - 1
_KEY = (0x2F696C6567656952, 0x0A7364726F636572) * 2
_BLOCK = 1 << 16


def _halves(x):
    return x >> 32 | x << 32 & _MASK


def _shuffled(high, low):
    """Returns the bytes of two lanes as HighwayHash mixes them: the index says which byte of both comes where."""
    both = struct.pack("<QQ", low, high)
    return struct.unpack("<QQ", bytes(both[i] for i in (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)))


class _State:
    def __init__(self):
        self.mul0 = [0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3]
        self.mul1 = [0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377]
        self.v0 = [mul ^ key for mul, key in zip(self.mul0, _KEY)]
        self.v1 = [mul ^ _halves(key) for mul, key in zip(self.mul1, _KEY)]

    def update(self, lanes):
        for i, lane in enumerate(lanes):
            self.v1[i] = (self.v1[i] + self.mul0[i] + lane) & _MASK
            self.mul0[i] ^= (self.v1[i] & 0xFFFFFFFF) * (self.v0[i] >> 32)
            self.v0[i] = (self.v0[i] + self.mul1[i]) & _MASK
            self.mul1[i] ^= (self.v0[i] & 0xFFFFFFFF) * (self.v1[i] >> 32)
        for to, of in ((self.v0, self.v1), (self.v1, self.v0)):
            for i in (0, 2):
                low, high = _shuffled(of[i + 1], of[i])
                to[i], to[i + 1] = (to[i] + low) & _MASK, (to[i + 1] + high) & _MASK

    def last(self, rest):
        size = len(rest)
        for i in range(4):
            self.v0[i] = (self.v0[i] + (size << 32) + size) & _MASK
            parts = [part << size | part >> 32 - size for part in (self.v1[i] & 0xFFFFFFFF, self.v1[i] >> 32)]
            self.v1[i] = parts[0] & 0xFFFFFFFF | (parts[1] & 0xFFFFFFFF) << 32
        packet = bytearray(32)
        whole, odd = size & ~3, size & 3
        packet[:whole] = rest[:whole]
        if size & 16:
            packet[28:] = rest[-4:]
        elif odd:
            packet[16:19] = bytes([rest[whole], rest[whole + (odd >> 1)], rest[size - 1]])
        self.update(struct.unpack("<4Q", packet))


def _hash(data):
    state = _State()
    end = len(data) & ~31
    for at in range(0, end, 32):
        state.update(struct.unpack_from("<4Q", data, at))
    if end < len(data):
        state.last(data[end:])
    for _ in range(4):
        state.update([_halves(state.v0[i]) for i in (2, 3, 0, 1)])
    return (state.v0[0] + state.v1[0] + state.mul0[0] + state.mul1[0]) & _MASK


def _varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _chunk(records, kind="r"):
    sizes = b"".join(_varint(len(record)) for record in records)
    data = b"" if kind == "s" else b"\0" + _varint(len(sizes)) + sizes + b"".join(records)
    decoded = sum(map(len, records))
    head = struct.pack("<QQQQ", len(data), _hash(data), len(records) << 8 | ord(kind), decoded)
    return struct.pack("<Q", _hash(head)) + head + data


def array_record(records):
    """Returns the file: records, a footer with their positions, and the footer's position in a block of its own."""
    file = bytes(24) + _chunk([], "s")
    at = len(file)
    file += _chunk(records)
    about = b"\x08\x01\x10\x01\x18" + _varint(len(records))
    footer = [b"\x0a" + _varint(len(about)) + about, b"\x08" + _varint(at) + b"\x18" + _varint(len(records))]
    end = len(file)
    file = (file + _chunk(footer)).ljust(_BLOCK, b"\0")
    tail = b"\x08" + _varint(end) + b"\x10" + _varint(0x71930E704FDAE05E)
    return (file + bytes(24) + _chunk([tail])).ljust(2 * _BLOCK, b"\0")
