# SPDX-License-Identifier: Apache-2.0
"""readers.webdataset against the webdataset library, and DALI's reader, on archives that the library and tar write.

    ninja -C build/dev dump_source
    python tests/parity/readers_webdataset.py build/dev/tests/parity/dump_source [wds2idx.py]

Needs webdataset or nvidia-dali (each half runs if its library is installed). With DALI's tool wds2idx.py, its indexes
are compared too. DALI (2.4) gets archives without long names: in archives with them it takes pax records for samples of
their own, and its tool gives offsets of headers.
"""

import hashlib
import io
import os
import random
import subprocess
import sys
import tarfile
import tempfile


def add(archive, name, data, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.type = len(data), kind
    archive.addfile(info, io.BytesIO(data))


def write(directory, rng, long_names):
    """Writes archives by Python's tarfile, in its three formats: long names, links, directories, any component
    order."""
    os.mkdir(directory)
    paths = []
    for name, form in (("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT), ("ustar", tarfile.USTAR_FORMAT)):
        path = os.path.join(directory, name + ".tar")
        with tarfile.open(path, "w", format=form) as archive:
            for i in range(60):
                deep = "dir.x/" if i % 5 == 2 else ""
                if long_names and i % 7 == 3:
                    deep = "d" * 90 + "/" + "e" * 60 + "/"
                if i % 10 == 1:
                    add(archive, f"dir{i}", b"", tarfile.DIRTYPE)
                    add(archive, f"link{i}.jpg", b"", tarfile.SYMTYPE)
                parts = [("jpg" if i % 3 else "jpeg", rng.randbytes(rng.choice([1, 511, 512, 513, 40000]))),
                         ("cls", str(i).encode()), ("json", b"{}")]
                rng.shuffle(parts)
                for ext, data in parts:
                    add(archive, f"{deep}{i:04}.{ext}", data)
        paths.append(path)
    return paths


def write_by_library(directory, rng):
    import webdataset as wds

    path = os.path.join(directory, "library.tar")
    with wds.TarWriter(path) as sink:
        for i in range(100):
            sink.write({"__key__": f"s/{i:05}", "jpg": rng.randbytes(rng.randrange(3000)), "cls": i, "json": {"i": i}})
    return path


def field(data):
    return hashlib.sha256(data).hexdigest()


def by_library(paths):
    import webdataset as wds

    for sample in wds.WebDataset(paths, shardshuffle=False):
        yield field(sample["jpg"] if "jpg" in sample else sample["jpeg"]), int(sample["cls"])


def by_dali(paths, count, indexes=None):
    from nvidia.dali import fn, pipeline_def

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe():
        more = {"index_paths": indexes} if indexes else {}
        return tuple(fn.readers.webdataset(paths=paths, ext=["jpg;jpeg", "cls"], missing_component_behavior="error",
                                           **more))

    built = pipe()
    built.build()
    for _ in range(count):
        image, label = (out.at(0) for out in built.run())
        yield field(image.tobytes()), int(label.tobytes())


def dump(program, paths, *args):
    command = [program, "readers.webdataset", "paths:=" + "|".join(paths), "ext:=jpg;jpeg|cls", "types:=encoded|int64",
               *args]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    by_hash = {field(i.to_bytes(8, "little", signed=True)): i for i in range(1000)}
    lines = [line.replace("[]", "").split() for line in run.stdout.splitlines()]
    return [(image, by_hash[label]) for _, image, label in lines]


def same(name, ours, theirs):
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a != b:
            sys.exit(f"{name}: sample {i} differs\n  leat {a}\n  {name} {b}")
    print(f"{name}: {len(ours)} samples are the same")


def have(module):
    try:
        __import__(module)
        return True
    except ImportError:
        print(f"{module}: not installed, not compared")
        return False


def main():
    program, rng = sys.argv[1], random.Random(6)
    with tempfile.TemporaryDirectory() as directory:
        if have("webdataset"):
            paths = write(os.path.join(directory, "long"), rng, long_names=True)
            paths.append(write_by_library(directory, rng))
            same("webdataset", dump(program, paths), list(by_library(paths)))
        paths = write(os.path.join(directory, "short"), rng, long_names=False)
        ours = dump(program, paths)
        dali = have("nvidia.dali")
        if dali:
            same("dali", ours, list(by_dali(paths, len(ours))))
        if len(sys.argv) > 2:
            indexes = []
            for path in paths:
                indexes.append(path + ".idx")
                subprocess.run([sys.executable, sys.argv[2], path, indexes[-1]], check=True, capture_output=True)
            same("leat with DALI's index", dump(program, paths, "index:=" + "|".join(indexes)), ours)
            if dali:
                same("dali with its index", ours, list(by_dali(paths, len(ours), indexes)))


if __name__ == "__main__":
    main()
