# SPDX-License-Identifier: Apache-2.0
"""A dataset that has changed since it was listed: a new job reads the present data, and an existing job does not.

Each kind of dataset is made from numbers; a sample's pixels or elements are its number. The samples that a new job
reads are compared with the written numbers, and with the previous ones.
"""

import io
import json
import os
import shutil
import struct
import tarfile
import warnings
import zlib

import numpy as np
import pytest
from array_records import array_record

import leat
from leat import fn

SIDE = 4


def png(number):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + bytes([number] * 3 * SIDE)) * SIDE
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def photos(root, numbers):
    """Makes a picture for each number, in order."""
    root.mkdir(parents=True)
    for place, number in enumerate(numbers):
        (root / f"{place:03}.png").write_bytes(png(number))
    return root


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tf_example(number):
    """Returns an Example with one int64 feature, "x"."""

    def field(tag, data):
        return bytes([tag << 3 | 2, len(data)]) + data

    feature = field(3, field(1, bytes([number])))
    return field(1, field(1, field(1, b"x") + field(2, feature)))


class Folder:
    def write(self, root, numbers):
        photos(root / "class", numbers)

    @staticmethod
    def read(root):
        return fn.crop(fn.decode(fn.readers.image_folder(root)[0]), size=1)


class FileList:
    """The pictures stay; the list changes."""

    def write(self, root, numbers):
        photos(root, range(40))
        (root / "list").write_text("".join(f"{number:03}.png {number}\n" for number in numbers))

    @staticmethod
    def read(root):
        return fn.readers.file_list(f"{root}/list")[1]


class Files(Folder):
    """The names stay; a picture changes."""

    @staticmethod
    def read(root):
        names = [f"{root}/class/{place:03}.png" for place in range(2)]
        return fn.crop(fn.decode(fn.readers.files(names)[0]), size=1)


class WebDataset:
    def write(self, root, numbers):
        root.mkdir(parents=True)
        for place, number in enumerate(numbers):
            with tarfile.open(root / f"{place:03}.tar", "w") as archive:
                member = tarfile.TarInfo("sample.cls")
                member.size = len(str(number))
                archive.addfile(member, io.BytesIO(str(number).encode()))

    @staticmethod
    def read(root):
        return fn.readers.webdataset([f"{root}/*.tar"], ext=["cls"], types=["int64"])[0]


class TfRecord:
    def write(self, root, numbers):
        root.mkdir(parents=True)
        with open(root / "x.tfrecord", "wb") as file:
            for number in numbers:
                data = tf_example(number)
                size = struct.pack("<Q", len(data))
                file.write(size + masked(size) + data + masked(data))

    @staticmethod
    def read(root):
        return fn.readers.tfrecord([f"{root}/x.tfrecord"], features=["x"], types=["int64"])[0]


class NumpyFiles:
    def write(self, root, numbers):
        root.mkdir(parents=True)
        for place, number in enumerate(numbers):
            np.save(root / f"{place:03}.npy", np.array([number], np.int32))

    @staticmethod
    def read(root):
        return fn.readers.numpy(path=root)


class NumpyArray:
    def write(self, root, numbers):
        root.mkdir(parents=True)
        np.save(root / "x.npy", np.array(numbers, np.int32))

    @staticmethod
    def read(root):
        return fn.readers.numpy(array=f"{root}/x.npy")


class Idx:
    def write(self, root, numbers):
        root.mkdir(parents=True)
        head = struct.pack(">BBBBI", 0, 0, 12, 1, len(numbers))
        (root / "x").write_bytes(head + struct.pack(f">{len(numbers)}i", *numbers))

    @staticmethod
    def read(root):
        return fn.readers.idx(f"{root}/x")[0]


class Cifar10:
    record, reader = 3073, "cifar10"

    def write(self, root, numbers):
        root.mkdir(parents=True)
        (root / "data_batch_1.bin").write_bytes(b"".join(bytes([number] * self.record) for number in numbers))

    def read(self, root):
        return fn.crop(getattr(fn.readers, self.reader)([root], prefix="data_batch")[0], size=1)


class Cifar100(Cifar10):
    record, reader = 3074, "cifar100"


class Coco:
    """The pictures stay; the annotations name others."""

    def write(self, root, numbers):
        photos(root, range(40))
        images = [{"id": place, "file_name": f"{number:03}.png"} for place, number in enumerate(numbers)]
        (root / "x.json").write_text(json.dumps({"images": images, "annotations": [], "categories": []}))

    @staticmethod
    def read(root):
        return fn.crop(fn.decode(fn.readers.coco(f"{root}/x.json", outputs=["image"])[0]), size=1)


class Mds:
    def write(self, root, numbers):
        root.mkdir(parents=True)
        config = b"{}"
        begin = 4 + 4 * (len(numbers) + 1) + len(config)
        ends = [begin + 8 * place for place in range(len(numbers) + 1)]
        data = struct.pack(f"<I{len(ends)}I", len(numbers), *ends) + config + struct.pack(f"<{len(numbers)}q", *numbers)
        (root / "shard.00000.mds").write_bytes(data)
        shard = {
            "column_names": ["x"], "column_encodings": ["int"], "column_sizes": [8], "compression": None, "hashes": [],
            "format": "mds", "raw_data": {"basename": "shard.00000.mds", "bytes": len(data), "hashes": {}},
            "samples": len(numbers), "size_limit": 1 << 26, "version": 2, "zip_data": None,
        }
        (root / "index.json").write_text(json.dumps({"shards": [shard], "version": 2}))

    @staticmethod
    def read(root):
        return fn.readers.mds(root, columns=["x"])[0]


def protobuf(*fields):
    """Returns a message of numbers and texts, each below 128 or of less than 16 KiB."""
    out = b""
    for tag, value in fields:
        if isinstance(value, int):
            out += bytes([tag << 3, value])
        else:
            out += bytes([tag << 3 | 2, len(value) & 127 | 128, len(value) >> 7]) + value
    return out


def lmdb(values):
    """Returns an LMDB of a few small values, which are in one leaf."""
    page, nodes, upper = 4096, [], 4096
    leaf = bytearray(page)
    for key, value in enumerate(values):
        node = struct.pack("<HHHH", len(value), 0, 0, 8) + b"%08d" % key + value
        upper -= len(node) + len(node) % 2
        leaf[upper : upper + len(node)] = node
        nodes.append(upper)
    leaf[:16] = struct.pack("<QHHHH", 2, 0, 2, 16 + 2 * len(nodes), upper)
    leaf[16 : 16 + 2 * len(nodes)] = struct.pack(f"<{len(nodes)}H", *nodes)
    none = 2**64 - 1
    free = struct.pack("<IHHQQQQQ", page, 0, 0, 0, 0, 0, 0, none)
    main = struct.pack("<IHHQQQQQ", 0, 0, 1, 0, 1, 0, len(nodes), 2)
    meta = struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 20) + free + main
    pages = [struct.pack("<QHHHH", i, 0, 8, 0, 0) + meta + struct.pack("<QQ", 2, i) for i in range(2)]
    return b"".join(each.ljust(page, b"\0") for each in pages) + leaf


class Caffe:
    reader = "caffe"

    def value(self, number):
        return protobuf((1, 3), (2, SIDE), (3, SIDE), (4, png(number)), (5, number), (7, 1))

    def write(self, root, numbers):
        root.mkdir(parents=True)
        (root / "data.mdb").write_bytes(lmdb([self.value(number) for number in numbers]))

    def read(self, root):
        return fn.crop(fn.decode(getattr(fn.readers, self.reader)(root)[0]), size=1)


class Caffe2(Caffe):
    reader = "caffe2"

    def value(self, number):
        image = protobuf((2, 4), (6, png(number)))
        return protobuf((1, image), (1, protobuf((1, 1), (2, 2), (4, number))))


class ArrayRecord:
    def write(self, root, numbers):
        root.mkdir(parents=True)
        (root / "x.array_record").write_bytes(array_record([png(number) for number in numbers]))

    @staticmethod
    def read(root):
        return fn.crop(fn.decode(fn.readers.array_record([f"{root}/x.array_record"])), size=1)


class Parquet:
    def write(self, root, numbers):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        worker = os.path.realpath(os.path.join(os.environ["LEAT_NATIVE_DIR"], "leat-worker"))
        if not any(name.startswith("libleat_parquet-") for name in os.listdir(os.path.dirname(worker))):
            pytest.skip("built without Parquet (LEAT_PARQUET)")
        root.mkdir(parents=True)
        parquet.write_table(pyarrow.table({"x": pyarrow.array(numbers, pyarrow.int64())}), root / "x.parquet")

    @staticmethod
    def read(root):
        return fn.readers.parquet([f"{root}/x.parquet"], columns=["x"], types=["int64"])[0]


KINDS = [
    Folder, FileList, Files, WebDataset, TfRecord, NumpyFiles, NumpyArray, Idx, Cifar10, Cifar100, Coco, Mds,
    Caffe, Caffe2, Parquet, ArrayRecord,
]
BEFORE = [1, 2]
AFTER = {"added": [1, 2, 3], "removed": [1], "rewritten": [1, 9], "turned round": [2, 1]}


@leat.pipeline
def values(kind, root):
    return {"x": kind().read(str(root))}


def numbers_of(job):
    return [int(batch["x"].reshape(-1)[0]) for batch in job.batches()]


def replace(kind, root, numbers):
    """Replaces the dataset by a new one."""
    shutil.rmtree(root, ignore_errors=True)
    kind().write(root, numbers)


@pytest.fixture(scope="module")
def service():
    with leat.connect() as connected:
        yield connected


# The names of Files are arguments: other names are another dataset.
@pytest.mark.parametrize(
    "kind, change",
    [(kind, change) for kind in KINDS for change in AFTER if kind is not Files or change == "rewritten"],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_new_job_reads_what_is_there_now(service, tmp_path, kind, change):
    root = tmp_path / "data"
    name = f"{kind.__name__}-{change.replace(' ', '-')}"
    kind().write(root, BEFORE)
    first = service.job(name, values(kind, root), batch=1, shuffle=False)
    assert numbers_of(first) == BEFORE
    replace(kind, root, AFTER[change])
    assert numbers_of(service.job(f"{name}-2", values(kind, root), batch=1, shuffle=False)) == AFTER[change]
    with pytest.warns(leat.DatasetChanged, match=f"job {name} keeps .*{tmp_path}|listed again"):
        assert service.job(name, values(kind, root), batch=1, shuffle=False).num_samples == len(BEFORE)
    new = service.job(name, values(kind, root), batch=1, shuffle=False, replace=True)
    assert numbers_of(new) == AFTER[change]
    with warnings.catch_warnings():
        warnings.simplefilter("error", leat.DatasetChanged)
        service.job(name, values(kind, root), batch=1, shuffle=False)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_link_that_moves_on(service, tmp_path, kind):
    root = tmp_path / "current"
    for version, numbers in {"v1": [3, 4], "v2": [5, 6]}.items():
        kind().write(tmp_path / version, numbers)
    name = f"link-{kind.__name__}"
    for version, expected in {"v1": [3, 4], "v2": [5, 6]}.items():
        root.unlink(missing_ok=True)
        root.symlink_to(version)
        assert numbers_of(service.job(f"{name}-{version}", values(kind, root), batch=1, shuffle=False)) == expected
    root.unlink()
    root.symlink_to("v1")
    assert numbers_of(service.job(f"{name}-again", values(kind, root), batch=1, shuffle=False)) == [3, 4]


def test_a_list_for_each_epoch(service, tmp_path):
    root = tmp_path / "data"
    FileList().write(root, [0])
    for epoch in range(20):
        order = [(epoch + place) % 10 for place in range(10)]
        (root / "list").write_text("".join(f"{number:03}.png {number}\n" for number in order))
        assert numbers_of(service.job(f"epoch-{epoch}", values(FileList, root), batch=1, shuffle=False)) == order


# Such lists exceed the size of a message.
def test_a_list_of_a_script_with_an_entry_for_each_sample(service, tmp_path):
    many = 70_000
    photos(tmp_path / "data", BEFORE)
    names = [f"{tmp_path}/data/{place % 2:03}.png" for place in range(many)]
    labels = [place * 7 % 1009 for place in range(many)]

    def listed():
        image, label = fn.readers.files(names, labels=labels)
        return {"x": fn.crop(fn.decode(image), size=1), "label": label}

    def rows(name, pipeline):
        made = service.job(name, pipeline, batch=1000, shuffle=False)
        assert made.num_samples == many
        batch = next(iter(made.batches(rows=[0, 1, 999])))
        return batch["x"].reshape(3, -1)[:, 0].tolist(), batch["label"].tolist()

    pipeline = leat.pipeline(listed)
    assert rows("many", pipeline) == ([1, 2, 2], [0, 7, 999 * 7 % 1009])
    (dataset,) = [d for d in service.get("datasets")["datasets"] if "many" in d["jobs"]]
    reader = dataset["dataset"]["reader"]
    assert f"files=texts{{count={many} sha256=" in reader and len(reader) < 2000
    # The check compares the files that the list names; another list is another dataset.
    (tmp_path / "data/000.png").write_bytes(png(9))
    assert rows("many-rewritten", pipeline)[0] == [9, 2, 2]
    labels[1] = 5
    assert rows("many-edited", leat.pipeline(listed))[1] == [0, 5, 999 * 7 % 1009]
    with pytest.raises(leat.InvalidArgument, match=r"readers.files: labels\[69999\] = 'x' \(str\)"):
        labels[-1] = "x"
        leat.pipeline(listed)


def test_relist(service, tmp_path):
    root = tmp_path / "data"
    FileList().write(root, BEFORE)

    def job(name, **options):
        return service.job(name, values(FileList, root), batch=1, shuffle=False, **options)

    assert numbers_of(job("relist-a")) == BEFORE
    (root / "list").write_text("007.png 7\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error", leat.DatasetChanged)
        assert numbers_of(job("relist-a", relist=False)) == BEFORE
        assert numbers_of(job("relist-b", relist=False)) == BEFORE
    assert numbers_of(job("relist-c", relist=True)) == [7]
    (dataset,) = [d for d in service.get("datasets")["datasets"] if "relist-c" in d["jobs"]]
    assert dataset["state"] == "ready"
    (dataset,) = [d for d in service.get("datasets")["datasets"] if "relist-a" in d["jobs"]]
    assert dataset["state"] == "replaced"
    with pytest.raises(leat.InvalidArgument, match="relist = 'always'; expected 'auto', True or False"):
        job("relist-d", relist="always")


def test_a_job_that_is_read_keeps_its_rows(service, tmp_path):
    root = tmp_path / "data"
    NumpyArray().write(root, list(range(10)))
    old = iter(service.job("kept", values(NumpyArray, root), batch=1, shuffle=False).batches())
    read = [int(next(old)["x"][0]) for _ in range(3)]
    os.replace(root / "x.npy", root / "old.npy")
    np.save(root / "x.npy", np.arange(10, 20, dtype=np.int32))
    assert numbers_of(service.job("new", values(NumpyArray, root), batch=1, shuffle=False)) == list(range(10, 20))
    try:
        read += [int(batch["x"][0]) for batch in old]
    except leat.Error as error:
        assert "x.npy" in str(error) and "changed" in str(error)  # its next read names the file
    assert read == list(range(len(read)))


def test_scripts_of_dali(tmp_path):
    dali = pytest.importorskip("leat.dali")
    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def labels():
        files, label = dali.fn.readers.file(file_root=str(tmp_path / "data"), file_list=str(tmp_path / "data/list"))
        return label

    for numbers in (BEFORE, [5, 6, 7]):
        replace(FileList, tmp_path / "data", numbers)
        pipe = labels()
        pipe.build()
        assert [int(pipe.run()[0].as_array().reshape(-1)[0]) for _ in numbers] == numbers


def test_scripts_of_dali_with_more_labels_than_a_message_takes(tmp_path):
    dali = pytest.importorskip("leat.dali")
    photos(tmp_path / "data", [1])
    many = 5000

    @dali.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def labels():
        files = [f"{tmp_path}/data/000.png"] * many
        return dali.fn.readers.file(files=files, labels=list(range(many, 0, -1)))[1]

    pipe = labels()
    pipe.build()
    assert pipe.run()[0].as_array().reshape(-1).tolist() == [5000, 4999, 4998, 4997]
