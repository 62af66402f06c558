# SPDX-License-Identifier: Apache-2.0
"""The rate of torchvision's decode_jpeg on the GPU over the files of a folder, as JSON. Files are read beforehand."""

import json
import pathlib
import sys
import time


def main():
    folder, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    encoded = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (".jpg", ".jpeg", ".jpe"):
            tensor = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
            try:  # nvJPEG refuses some files; only those that it takes are counted
                decode_jpeg([tensor], mode=ImageReadMode.RGB, device="cuda")
                encoded.append(tensor)
            except RuntimeError:
                pass
    if not encoded:
        sys.exit("torchvision decodes none of the files on the GPU")
    done, begin = 0, None
    started = time.perf_counter()
    while begin is None or time.perf_counter() - begin < seconds:
        for first in range(0, len(encoded), 64):
            group = encoded[first:first + 64]
            decode_jpeg(group, mode=ImageReadMode.RGB, device="cuda")
            done += len(group)
        torch.cuda.synchronize()
        if begin is None and time.perf_counter() - started > seconds / 10:
            begin, done = time.perf_counter(), 0
    rate = done / (time.perf_counter() - begin)
    print(json.dumps({"rate": rate, "files": len(encoded)}))


if __name__ == "__main__":
    main()
