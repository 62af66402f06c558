# SPDX-License-Identifier: Apache-2.0
"""Packed rows have the oracle's bytes: by any worker, on any number of hosts, and after any death."""

import io
import json
import os
import random
import struct
import tarfile
import unittest

import cluster
import array_records
import hosts

BATCH = 8
EPOCHS = 2
DOCUMENTS = 700


def text(value):
    return {"string_value": value}


def number(value):
    return {"int_value": value}


def texts(*values):
    return {"strings_value": {"values": [str(value) for value in values]}}


def field(number, data):
    """Returns a field of bytes as protocol buffers encode it."""
    size, varint = len(data), b""
    while size >= 0x80:
        varint, size = varint + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + varint + bytes([size]) + data


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF)


def packed(path, fields=("tokens", "segments", "positions"), reader=None, **args):
    """Returns the pipeline of rows that are packed of a token file, or of a reader's first output."""
    args = {name: text(value) if isinstance(value, str) else number(value) for name, value in args.items()}
    return {
        "nodes": [
            reader or cluster.node("readers.tokens", files=texts(path)),
            cluster.node("pack", (0, 0), **args),
        ],
        "outputs": [{"name": name, "ref": {"node": 1, "output": i}} for i, name in enumerate(fields)],
    }


class PackingTest(hosts.Hosts, cluster.ClusterTest):
    batch = BATCH
    fields = ("tokens", "segments", "positions")

    def setUp(self):
        super().setUp()
        self.file = self.tokens("text", 1)

    def tokens(self, name, seed):
        """Makes a token file as Megatron-LM writes them; returns the .bin's path."""
        draw = random.Random(seed)
        lengths = [0 if draw.random() < 0.05 else int(draw.lognormvariate(3.5, 1)) for _ in range(DOCUMENTS)]
        offsets, end = [], 0
        for length in lengths:
            offsets.append(end)
            end += 2 * length
        path = self.folder / f"{name}.bin"
        path.write_bytes(struct.pack(f"<{end // 2}H", *(draw.randrange(50_000) for _ in range(end // 2))))
        count = len(lengths)
        path.with_suffix(".idx").write_bytes(
            b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1) + struct.pack(f"<{count}i", *lengths)
            + struct.pack(f"<{count}q", *offsets) + struct.pack(f"<{count + 1}q", *range(count + 1)))
        return path

    def job(self, graph, name="job", **changes):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"name": name, "pipeline": graph, "seed": 7, "batch": BATCH, **changes}))
        return path

    def assert_oracle(self, consumer, expected):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, expected)
        self.assertIsNotNone(consumer.end)

    def test_both_ways(self):
        self.start_cluster(workers=2)
        for name, args in {
            "cut": {"length": 128},
            "targets": {"length": 129, "overlap": 1},
            "fit": {"length": 256, "how": "fit"},
            "few": {"length": 256, "how": "fit", "max_documents": 3, "longer": "drop"},
        }.items():
            with self.subTest(name):
                spec = self.job(packed(self.file, **args), name=name)
                expected = self.oracle_steps(spec, EPOCHS)
                self.assertGreater(len(expected), 8)
                self.assert_oracle(self.consumer(spec).finish(), expected)

    def documents(self):
        """Returns the bytes of each document."""
        count, = struct.unpack_from("<Q", self.file.with_suffix(".idx").read_bytes(), 18)
        lengths = struct.unpack_from(f"<{count}i", self.file.with_suffix(".idx").read_bytes(), 34)
        stored = io.BytesIO(self.file.read_bytes())
        return [stored.read(2 * length) for length in lengths]

    def webdataset(self):
        with tarfile.open(self.folder / "text.tar", "w") as archive:
            for i, document in enumerate(self.documents()):
                member = tarfile.TarInfo(f"{i:06}.tokens")
                member.size = len(document)
                archive.addfile(member, io.BytesIO(document))
        return cluster.node("readers.webdataset", paths=texts(self.folder / "text.tar"), ext=texts("tokens"),
                            types=texts("uint16[?]"))

    def tfrecord(self):
        with open(self.folder / "text.tfrecord", "wb") as file:
            for document in self.documents():
                entry = field(1, b"tokens") + field(2, field(1, field(1, document)))
                example = field(1, field(1, entry))
                size = struct.pack("<Q", len(example))
                file.write(size + masked_crc(size) + example + masked_crc(example))
        return cluster.node("readers.tfrecord", paths=texts(self.folder / "text.tfrecord"), features=texts("tokens"),
                            types=texts("uint16[?]"))

    def array_record(self):
        documents, paths = self.documents(), []
        for i in range(0, len(documents), 100):
            paths.append(self.folder / f"{i:03}.array_record")
            paths[-1].write_bytes(array_records.array_record(documents[i:i + 100]))
        return cluster.node("readers.array_record", paths=texts(*paths), type=text("uint16[?]"))

    def mds(self):
        """Makes two shards of a column of bytes, as language models' data mostly is."""
        documents, shards = self.documents(), []
        folder = self.folder / "mds"
        folder.mkdir()
        for i, part in enumerate((documents[:300], documents[300:])):
            samples = [struct.pack("<I", len(document)) + document for document in part]
            offsets = [4 * (len(part) + 2)]
            for sample in samples:
                offsets.append(offsets[-1] + len(sample))
            shard = struct.pack(f"<I{len(offsets)}I", len(part), *offsets) + b"".join(samples)
            (folder / f"{i}.mds").write_bytes(shard)
            shards.append({
                "column_encodings": ["bytes"], "column_names": ["tokens"], "column_sizes": [None], "compression": None,
                "format": "mds", "samples": len(part), "version": 2, "zip_data": None,
                "raw_data": {"basename": f"{i}.mds", "bytes": len(shard), "hashes": {}}})
        (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
        return cluster.node("readers.mds", path=text(str(folder)), columns=texts("tokens"), types=texts("uint16[?]"))

    def parquet(self):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            return None
        if "LEAT_PARQUET_LIBRARY" not in os.environ:
            return None
        lists = [struct.unpack(f"<{len(document) // 2}H", document) for document in self.documents()]
        pyarrow.parquet.write_table(pyarrow.table({"tokens": pyarrow.array(lists, pyarrow.list_(pyarrow.uint16()))}),
                                    self.folder / "text.parquet", row_group_size=100)
        return cluster.node("readers.parquet", paths=texts(self.folder / "text.parquet"), columns=texts("tokens"),
                            types=texts("uint16[?]"))

    def test_the_same_rows_from_other_formats(self):
        self.start_cluster(workers=2)
        ways = (({"length": 128}, {}), ({"length": 256, "how": "fit"}, {"selection": {"where": "length >= 20"}}))
        expected = [self.oracle_steps(self.job(packed(self.file, **args), **changes), 1) for args, changes in ways]
        for make in (self.webdataset, self.tfrecord, self.array_record, self.mds, self.parquet):
            reader = make()
            for (args, changes), steps in zip(ways, expected) if reader else ():
                with self.subTest(f"{make.__name__}, {args}"):
                    name = f"{make.__name__}-{args['length']}"
                    spec = self.job(packed(None, reader=reader, **args), name=name, **changes)
                    self.assert_oracle(self.consumer(spec, epochs=1).finish(), steps)

    def test_without_a_service(self):
        spec = self.job(packed(self.file, length=256, how="fit"))
        self.assert_oracle(self.consumer(spec, embedded=True).finish(), self.oracle_steps(spec, EPOCHS))

    def test_processes_die_and_blocks_are_small(self):
        spec = self.job(packed(self.file, length=100, overlap=3))
        expected = self.oracle_steps(spec, EPOCHS)
        self.start_coordinator("--index-block-bytes", "256")
        for _ in range(2):
            self.start_worker("--index-cache", "1100")
        consumer = self.consumer(spec, "--paced", "--window", 1)
        consumer.pull(3)
        self.workers[0].kill9()
        consumer.pull(2)
        self.coordinator.kill9()
        self.restart_coordinator("--index-block-bytes", "256")
        self.start_worker("--index-cache", "1100")
        self.assert_oracle(consumer.finish(), expected)

    def test_a_resume_on_other_hosts_in_the_middle_of_a_window(self):
        spec = self.job(packed(self.file, length=256, how="fit"))
        expected = self.oracle_steps(spec, EPOCHS)
        self.start_cluster(workers=2)
        two = self.hosts(spec, 2, "--stop-after", 5)
        four = self.hosts(spec, 4, "--resume", two[0][1] / "position")
        self.assertEqual(self.joined(two) + self.joined(four), expected)

    def test_a_mixture_of_packed_sources_with_deaths_and_a_resume_on_other_hosts(self):
        graph = packed(self.file, length=128, how="fit")
        sources = [
            {"name": "a", "pipeline": graph},
            {"name": "b", "pipeline": packed(self.tokens("other", 2), length=128, how="fit")},
            {"name": "part", "pipeline": graph, "selection": {"samples": {"begin": "10", "end": "600", "step": "3"}}},
            {"name": "short", "pipeline": graph, "selection": {"where": "length >= 10 and length < 60"}},
        ]
        spec = self.folder / "mix.json"
        spec.write_text(json.dumps({
            "name": "mix", "sources": sources, "shares": [{"from_step": "0", "weights": [5, 3, 2, 2]}],
            "mix_end": "MIX_END_ALL", "seed": 7, "batch": BATCH, "source_field": "source"}))
        expected = self.oracle_steps(spec, EPOCHS)
        self.start_cluster(workers=2)
        self.fields = (*self.fields, "source")
        two = self.hosts(spec, 2, "--stop-after", 5)
        consumer = self.consumer(spec, "--paced", "--window", 1)
        consumer.pull(3)
        self.workers[0].kill9()
        consumer.pull(2)
        self.coordinator.kill9()
        self.restart_coordinator()
        self.start_worker()
        four = self.hosts(spec, 4, "--resume", two[0][1] / "position")
        self.assertEqual(self.joined(two) + self.joined(four), expected)
        self.assert_oracle(consumer.finish(), expected)

    def test_what_cannot_be_packed(self):
        self.start_cluster(workers=1)
        for args, wanted in (
            ({"length": 1_000_000}, "pack makes no row of 700 documents with"),
            ({"length": 64, "how": "fit", "longer": "error"}, "more than length=64: want longer="),
            ({"length": 64, "overlap": 64}, "overlap is 64: want less than length, which is 64"),
        ):
            with self.subTest(wanted):
                self.assertIn(wanted, self.consumer(self.job(packed(self.file, **args))).finish().error[1])

    def test_a_job_or_a_source_that_is_empty_after_dropping(self):
        self.start_cluster(workers=1)
        dropped = packed(self.file, length=8, how="fit", longer="drop")
        long = {"where": "length >= 20"}
        wanted = r"pack makes no row of \d+ documents with \d+ elements together: want one of 1 to length=8, since"
        self.assertRegex(self.consumer(self.job(dropped, selection=long)).finish().error[1], wanted)
        spec = self.folder / "mix.json"
        spec.write_text(json.dumps({
            "name": "mix", "sources": [{"name": "all", "pipeline": packed(self.file, length=8, how="fit")},
                                       {"name": "none", "pipeline": dropped, "selection": long}],
            "shares": [{"weights": [1, 1]}], "mix_end": "MIX_END_ALL", "seed": 7, "batch": BATCH}))
        self.assertRegex(self.consumer(spec).finish().error[1], f'source "none": .*{wanted}')

    def test_a_document_that_has_changed_makes_no_wrong_row(self):
        self.start_cluster(workers=1)
        consumer = self.consumer(self.job(packed(self.file, length=128)), "--paced", "--window", 1)
        consumer.pull(1)
        self.file.write_bytes(self.file.read_bytes()[::-1] + b"xx")
        self.workers[0].kill9()  # with all that it has read
        self.start_worker()
        ended = consumer.finish()
        self.assertIsNotNone(ended.error)
        self.assertIn("text.bin", ended.error[1])


if __name__ == "__main__":
    unittest.main()
