# SPDX-License-Identifier: Apache-2.0
"""A selection of samples has the oracle's bytes: by any worker, on any number of hosts, and after any death."""

import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import unittest

import cluster
import hosts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
import faults  # noqa: E402

BATCH = 64
PHOTOS = 500
EPOCHS = 2


def numbers(listed):
    """Returns the JSON form of leat.v1.Numbers."""
    return {"samples": {"gaps": [str(b - a) for a, b in zip([0, *listed], listed)]}}


def drawn(count, seed):
    return random.Random(seed).sample(range(PHOTOS), count)


RANGE = {"samples": {"begin": "10", "end": "470", "step": "2"}}
LIST = numbers(drawn(250, 1))


class SelectionTest(hosts.Hosts, cluster.PhotosTest):
    batch = BATCH

    def spec(self, selection=None, name="job", graph=None, **changes):
        if selection is not None:
            changes["selection"] = selection
        graph = graph or cluster.train_graph(cluster.photos(), side=96)
        return super().spec(graph, name=name, **changes)

    def file(self, listed, name="numbers.npy"):
        """Writes a .npy file, and returns the selection of its numbers."""
        header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({len(listed)},), }}".ljust(117) + "\n"
        path = self.folder / name
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                         + struct.pack(f"<{len(listed)}q", *listed))
        return {"samples": {"uri": f"file://{path}"}}

    def assert_oracle(self, consumer, expected):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, expected)
        self.assertIsNotNone(consumer.end)

    def test_ranges_lists_and_files(self):
        self.start_cluster(workers=2)
        for name, selection in {"range": RANGE, "list": LIST, "file": self.file(drawn(300, 2))}.items():
            with self.subTest(name):
                spec = self.spec(selection, name=name)
                expected = self.oracle_steps(spec, EPOCHS)
                self.assertLess(len(expected), EPOCHS * PHOTOS // BATCH)
                self.assert_oracle(self.consumer(spec).finish(), expected)
        for _ in range(2):
            self.start_worker()
        self.assert_oracle(self.consumer(self.spec(LIST, name="list")).finish(), self.oracle_steps(
            self.spec(LIST, name="list"), EPOCHS))

    def test_without_a_service(self):
        spec = self.spec(LIST)
        self.assert_oracle(self.consumer(spec, embedded=True).finish(), self.oracle_steps(spec, EPOCHS))

    def test_a_resume_on_other_hosts_at_another_place(self):
        spec = self.spec(LIST)
        expected = self.oracle_steps(spec, EPOCHS)
        self.start_cluster(workers=2)
        two = self.hosts(spec, 2, "--stop-after", 3)
        self.assertEqual(len(two[0][0].steps), len(two[1][0].steps))
        # The position is of the samples, wherever they are and whatever the job is called.
        copy = shutil.copytree(cluster.photos(), self.folder / "copy")
        moved = self.spec(LIST, name="moved", graph=cluster.train_graph(copy, side=96))
        three = self.hosts(moved, 3, "--resume", two[0][1] / "position")
        self.assertEqual(self.joined(two) + self.joined(three), expected)

    def test_processes_die_while_it_is_listed_and_served(self):
        spec = self.spec(numbers(drawn(450, 3)))
        expected = self.oracle_steps(spec, EPOCHS)
        self.start_coordinator("--index-block-bytes", "256")
        first = self.start_worker("--index-cache", "1100")
        consumer = self.consumer(spec, "--paced", "--window", 1)
        folder = self.folder / "state" / "blocks"
        self.until("some blocks are there", lambda: folder.exists() and len(list(folder.iterdir())) >= 3)
        first.kill9()
        for _ in range(2):
            self.start_worker("--index-cache", "1100")
        consumer.pull(3)
        self.workers[1].kill9()
        consumer.pull(2)
        self.coordinator.kill9()
        self.restart_coordinator("--index-block-bytes", "256")
        self.start_worker("--index-cache", "1100")
        self.assert_oracle(consumer.finish(), expected)
        self.assert_oracle(self.consumer(spec).finish(), expected)  # the job is still known

    def test_a_mixture_of_a_subset_its_complement_and_the_whole(self):
        inside = set(drawn(200, 4))
        graph = cluster.train_graph(cluster.photos(), side=96)
        sources = [{"name": "in", "pipeline": graph, "selection": numbers(sorted(inside))},
                   {"name": "out", "pipeline": graph, "selection": self.file(sorted(set(range(PHOTOS)) - inside))},
                   {"name": "all", "pipeline": graph}]
        spec = {"name": "mix", "sources": sources, "shares": [{"from_step": "0", "weights": [5, 3, 2]}],
                "mix_end": "MIX_END_ALL", "seed": 7, "batch": BATCH, "source_field": "source"}
        path = self.folder / "mix.json"
        path.write_text(json.dumps(spec))
        self.start_cluster(workers=2)
        self.assert_oracle(self.consumer(path, epochs=1).finish(), self.oracle_steps(path, 1))

    def misses(self):
        return sum(int(worker["stats"].get("cache_misses_total", 0)) for worker in self.get("workers")["workers"])

    def test_what_is_cached_of_the_whole_serves_its_parts(self):
        self.start_cluster(workers=1)
        for name in ("whole", "again"):  # the statistics come with heartbeats
            self.assertIsNone(self.consumer(self.spec(name=name), epochs=1).finish().error)
        self.until("all records have been read", lambda: self.misses() >= PHOTOS)
        before = self.misses()
        for name, selection in {"even": RANGE, "list": LIST}.items():
            spec = self.spec(selection, name=name)
            self.assert_oracle(self.consumer(spec, epochs=1).finish(), self.oracle_steps(spec, 1))
        reads = lambda: int(self.get("workers")["workers"][0]["stats"].get("rows_total", 0))
        self.until("the rows are counted", lambda: reads() >= 2 * PHOTOS + 2 * BATCH)
        self.assertEqual(self.misses(), before)

    def test_a_dataset_that_has_changed_is_arranged_anew(self):
        folder = shutil.copytree(cluster.photos(), self.folder / "photos")
        graph = cluster.train_graph(folder, side=96)
        self.start_cluster(workers=1)
        old = self.spec(RANGE, name="old", graph=graph)
        before = self.oracle_steps(old, EPOCHS)
        self.assert_oracle(self.consumer(old).finish(), before)
        photo = next(folder.rglob("*.jpg"))
        for i in range(3):  # before all others
            shutil.copy(photo, folder / sorted(each.name for each in folder.iterdir())[0] / f"!{i}.jpg")
        new = self.spec(RANGE, name="new", graph=graph)
        after = self.oracle_steps(new, EPOCHS)
        self.assertNotEqual(before, after)
        self.assert_oracle(self.consumer(new).finish(), after)

    def test_a_file_of_numbers_that_has_changed_is_read_anew(self):
        self.start_cluster(workers=1)
        for name in ("first", "second"):
            spec = self.spec(self.file(drawn(200, len(name))), name=name)
            self.assert_oracle(self.consumer(spec, epochs=1).finish(), self.oracle_steps(spec, 1))

    def test_conditions_have_equal_steps_on_all_hosts(self):
        self.start_cluster(workers=2)
        for name, where in {
            "index": 'label < 40 and not name like "*3.jpg" or bytes > 60000',
            "records": "width > height and label >= 40",
        }.items():
            with self.subTest(name):
                spec = self.spec({"where": where}, name=name)
                expected = self.oracle_steps(spec, EPOCHS)
                self.assertTrue(2 < len(expected) < EPOCHS * PHOTOS // BATCH, len(expected))
                two = self.hosts(spec, 2)
                self.assertEqual([step[:2] for step in two[0][0].steps], [step[:2] for step in two[1][0].steps])
                self.assertEqual(self.joined(two), expected)

    def test_a_condition_among_numbers_and_a_worker_that_dies(self):
        spec = self.spec({**self.file(drawn(300, 5)), "where": "height <= 100000 and bytes > 5000"}, name="both")
        expected = self.oracle_steps(spec, EPOCHS)
        self.start_cluster(workers=1)
        consumer = self.consumer(spec, "--paced", "--window", 1)
        self.until("it is listed", lambda: self.workers[0].process.poll() is None)
        self.workers[0].kill9()
        for _ in range(2):
            self.start_worker()
        consumer.pull(2)
        self.workers[1].kill9()
        self.assert_oracle(consumer.finish(), expected)

    def test_a_condition_goes_on_where_a_killed_worker_was(self):
        # A record is many samples, so that looking at all of them takes seconds.
        photo = sorted(cluster.photos().rglob("*.jpg"))[0]
        spec = self.spec({"where": f'width > 0 and name like "*{photo.name}"'},
                         graph=cluster.train_graph(cluster.photos(), side=96, repeat=64))
        self.assertRegex(self.assert_goes_on(spec, 32_000), r"Progress +looked at \d+ samples of 32000")

    def assert_goes_on(self, spec, samples):
        """Kills the only worker while it lists; another one goes on behind it. Returns what the CLI said meanwhile."""
        expected = self.oracle_steps(spec, 1)
        self.start_coordinator()
        # A worker says how far it is after a second, so the listing has to take several.
        self._keep(faults.Stutter(self.start_worker(), on_s=0.01, off_s=0.19))
        consumer = self.consumer(spec, epochs=1)
        listed = lambda: [each for each in self.get("datasets")["datasets"] if int(each.get("walked", 0)) > 0]
        dataset, = self.until("some samples were looked at", listed)
        self.assertEqual(dataset["state"], "indexing")
        shown = subprocess.run([cluster.program("CLI"), "--coordinator", self.coordinator.address,
                                "describe", "dataset", dataset["dataset"]["id"]], capture_output=True, text=True)
        self.workers[0].kill9()
        self.start_worker()
        self.assert_oracle(consumer.finish(), expected)
        log = pathlib.Path(self.workers[1].log).read_text()
        went_on = re.search(rf"arrangement\.went_on .*samples={samples} after=(\d+)", log)
        self.assertGreaterEqual(int(went_on[1]), int(dataset["walked"]))
        return shown.stdout

    def parquet(self, rows, **options):
        """Writes a table, and returns its file and the pipeline that reads its ids; skips without Parquet."""
        if "LEAT_PARQUET_LIBRARY" not in os.environ:
            self.skipTest("built without Parquet (LEAT_PARQUET)")
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            self.skipTest("no pyarrow here (deploy/packages/python-tests.txt)")
        draw = random.Random(rows)
        file = self.folder / "table.parquet"
        pyarrow.parquet.write_table(pyarrow.table({
            "id": pyarrow.array(range(rows), pyarrow.int64()),
            "part": pyarrow.array([f"{'abcd'[4 * i // rows]}/{i % 7}" for i in range(rows)]),
            "score": pyarrow.array([draw.randrange(100) / 4 for _ in range(rows)], pyarrow.float64()),
            "maybe": pyarrow.array([None if i % 5 == 0 else i % 11 for i in range(rows)], pyarrow.int32())}),
            file, use_dictionary=False, compression="none", **options)
        return file, pyarrow.parquet.ParquetFile(file).metadata, {
            "nodes": [cluster.node("readers.parquet", paths={"strings_value": {"values": [str(file)]}},
                                   columns={"strings_value": {"values": ["id"]}},
                                   types={"strings_value": {"values": ["int64"]}})],
            "outputs": [{"name": "id", "ref": {"node": 0}}]}

    def test_columns_of_parquet_that_the_pipeline_does_not_read(self):
        _, _, graph = self.parquet(1000, row_group_size=100)
        self.start_cluster(workers=2)
        for name, where in {"text": 'part like "b/*" or part == "d/3"', "number": "score < 12.5 and not maybe >= 5",
                            "both": "id >= 300 and maybe in [1, 2, 3]"}.items():
            with self.subTest(name):
                spec = self.spec({"where": where}, name=name, graph=graph)
                expected = self.oracle_steps(spec, EPOCHS)
                self.assertTrue(2 < len(expected) < EPOCHS * 1000 // BATCH, len(expected))
                consumer = self.consumer(spec, "--paced", "--window", 1)
                consumer.pull(1)
                self.workers[-1].kill9()
                self.start_worker()
                self.assert_oracle(consumer.finish(), expected)

    def test_classes_by_a_column_of_parquet_that_the_pipeline_does_not_read(self):
        _, _, graph = self.parquet(1000, row_group_size=100)
        self.start_cluster(workers=2)
        spec = self.spec({"balanced": True, "by": "part", "where": "score < 12.5"}, graph=graph,
                         last_batch="LAST_BATCH_DROP")
        self.assert_oracle(self.consumer(spec).finish(), self.oracle_steps(spec, EPOCHS))

    def test_row_groups_of_which_statistics_say_enough_are_not_read(self):
        file, metadata, graph = self.parquet(1000, row_group_size=250)
        spec = self.spec({"where": 'part < "b/zzz"'}, graph=graph)
        expected = self.oracle_steps(spec, EPOCHS)
        self.assertEqual(len(expected), EPOCHS * -(-500 // BATCH))
        stored = bytearray(file.read_bytes())
        for group in range(4):
            column = metadata.row_group(group).column(1)
            begin, size = column.data_page_offset, column.total_compressed_size
            stored[begin:begin + size] = b"\xff" * size
        file.write_bytes(stored)
        self.start_cluster(workers=1)
        self.assert_oracle(self.consumer(spec).finish(), expected)

    def test_a_condition_on_parquet_goes_on_where_a_killed_worker_was(self):
        rows = 24_000
        _, _, graph = self.parquet(rows, write_statistics=False, data_page_size=1, write_batch_size=1)
        self.assert_goes_on(self.spec({"where": 'part like "*/3" and maybe != 4'}, graph=graph), rows)

    def test_conditions_that_choose_nothing(self):
        self.start_cluster(workers=1)
        for where, text in {
            "width >= 100000": "where leaves 0 of 500 samples: width >= 100000",
            "widht >= 5": "where: unknown column widht, did you mean width?",
            "label == 'cat'": 'where: column label is an integer, and is compared with the text "cat"',
            "label = 5": "where: = at character 7: want ==",
        }.items():
            ended = self.consumer(self.spec({"where": where})).finish()
            self.assertIn(text, ended.error[1])
        graph = cluster.train_graph(cluster.photos(), side=96)
        sources = [{"name": "all", "pipeline": graph},
                   {"name": "none", "pipeline": graph, "selection": {"where": "width >= 100000"}}]
        spec = {"name": "mix", "sources": sources, "shares": [{"weights": [1, 1]}], "mix_end": "MIX_END_STREAM",
                "last_batch": "LAST_BATCH_STREAM", "seed": 7, "batch": BATCH}
        path = self.folder / "mix.json"
        path.write_text(json.dumps(spec))
        self.assertRegex(self.consumer(path).finish().error[1],
                         'source "none": .*where leaves 0 of 500 samples: width >= 100000')

    def test_numbers_that_are_not_there(self):
        self.start_cluster(workers=1)
        for selection, text in {
            json.dumps(numbers([3, 50_000])): "samples has 50000; want numbers below 500, the samples of dataset",
            json.dumps(numbers([3, 3])): "samples has 3 twice: want each number once",
            json.dumps({"samples": {"uri": f"file://{self.folder}/absent.npy"}}): "absent.npy",
        }.items():
            ended = self.consumer(self.spec(json.loads(selection))).finish()
            self.assertIn(text, ended.error[1])


if __name__ == "__main__":
    unittest.main()
