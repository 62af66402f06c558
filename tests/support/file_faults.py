# SPDX-License-Identifier: Apache-2.0
"""FileFaults controls fault_shim.cc, the library that LEAT_FAULT_SHIM names: which operations of a process fail, and
how."""

import mmap
import os
import pathlib
import struct
import unittest


class FileFaults:
    """Makes files below a folder fail for the process that was started with `env`, from now on and until `clear`."""

    OPERATIONS = ("open", "read", "sync", "accept", "write", "list")
    HANG, SHORT, COPY = 10_000, 10_001, 10_002
    BYTES, HITS_AT, AHEAD_AT, PATH_AT = 4096, 32, 64, 72

    def __init__(self, path, below):
        shim = os.environ.get("LEAT_FAULT_SHIM", "")
        if not os.path.exists(shim):
            raise unittest.SkipTest("LEAT_FAULT_SHIM names no library")
        below = str(below).encode()
        pathlib.Path(path).write_bytes(bytes(self.PATH_AT) + below + bytes(self.BYTES - self.PATH_AT - len(below)))
        with open(path, "r+b") as file:
            self._words = mmap.mmap(file.fileno(), self.BYTES)
        self.env = {"LD_PRELOAD": shim, "LEAT_FAULT_SWITCH": str(path),
                    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}

    def set(self, **faults):
        """Sets faults: operation=errno, HANG, SHORT, COPY (for sync), or 0 for none."""
        for operation, fault in faults.items():
            struct.pack_into("<I", self._words, 4 * self.OPERATIONS.index(operation), fault)

    def set_storage(self, fault):
        """Fails as a mount does: listing, opening and reading."""
        self.set(open=fault, read=fault, list=fault)

    def clear(self):
        self.set(**dict.fromkeys(self.OPERATIONS, 0))

    def hits(self, *operations):
        """Returns how often the process called these operations while they were set to fail."""
        return sum(struct.unpack_from("<I", self._words, self.HITS_AT + 4 * self.OPERATIONS.index(operation))[0]
                   for operation in operations)

    @staticmethod
    def lose_power(folder):
        """Simulates a power loss, with sync=COPY since the folder was made, after all processes have ended: files keep
        only their synced data. Names stay as they are: a removed one does not come back."""
        for file in list(pathlib.Path(folder).rglob("*")):
            if not file.is_file() or file.name.endswith((".synced", ".synced-part")):
                continue
            synced = file.with_name(file.name + ".synced")
            if synced.exists():
                synced.rename(file)
            else:
                file.unlink()
        for rest in [*pathlib.Path(folder).rglob("*.synced"), *pathlib.Path(folder).rglob("*.synced-part")]:
            rest.unlink()

    def jump(self, seconds):
        """Moves the process's wall clock ahead of the machine's."""
        struct.pack_into("<q", self._words, self.AHEAD_AT, round(seconds * 1e9))

    close = clear
