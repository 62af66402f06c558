# SPDX-License-Identifier: Apache-2.0
"""The coordinator over a state that a newer release wrote, and its records of long lists and changed datasets.

A newer release leaves events and fields that are unknown here. Field numbers and layouts are written out, so that a
change of either fails.
"""

import hashlib
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import unittest

import cluster

PHOTOS, BATCH = 24, 8
CREATED, FOREIGN = 4, 100  # a kind of leat.stored.v1.Event, and an unknown kind
CRC32C = [0] * 256
for index in range(256):
    crc = index
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    CRC32C[index] = crc


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(message):
    """Returns [(number, value)] of a protobuf message: ints, and bytes."""
    found, at = [], 0
    while at < len(message):
        tag, at = read_varint(message, at)
        value, at = read_varint(message, at)
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        found.append((tag >> 3, value))
    return found


def message(found):
    return b"".join(varint(number << 3) + varint(value) if isinstance(value, int) else
                    varint(number << 3 | 2) + varint(len(value)) + value for number, value in found)


def kind(record):
    return next(number for number, _ in fields(record) if number != 1)


def changed(record, change):
    """Returns an event with the fields of its kind replaced by `change(fields)`."""
    return message([(number, value if number == 1 else message(change(fields(value))))
                    for number, value in fields(record)])


class State:
    """The files of a coordinator that does not run."""

    def __init__(self, folder):
        self._folder = folder
        self._database = sqlite3.connect(folder / "leat.db")
        self.records = [record for record, in self._database.execute("SELECT record FROM events ORDER BY seq")]

    def write(self, records):
        """Replaces the records."""
        base, previous = self._database.execute("SELECT base_seq, base_hash FROM meta").fetchone()
        with self._database:
            self._database.execute("DELETE FROM events")
            for sequence, record in enumerate(records, base + 1):
                previous = hashlib.sha256(previous + struct.pack("<QQ", sequence, len(record)) + record).digest()
                self._database.execute("INSERT INTO events VALUES(?,?,?,?)",
                                       (sequence, crc32c(record), previous, record))
        mark = (b"LEATHW01" + struct.pack("<Q", base + len(records)) + previous).ljust(60, b"\0")
        (self._folder / "high-water").write_bytes(2 * (mark + struct.pack("<I", crc32c(mark))))

    def close(self):
        self._database.close()


class StateTest(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        data = self.folder / "data"
        for i, photo in enumerate(sorted(cluster.photos().rglob("*.*"))[:PHOTOS]):
            (data / str(i % 3)).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(photo, data / str(i % 3) / f"{i}{photo.suffix}")
        self.job = self.spec(cluster.train_graph(data, side=32), batch=BATCH, name="job")
        self.expected = self.oracle_steps(self.job, 1)
        self.start_cluster(workers=1)
        self.assert_served()

    def assert_served(self):
        consumer = self.consumer(self.job, epochs=1).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)

    def over(self, change):
        """Stops the coordinator, applies `change` to its state, and starts it again."""
        self.assertEqual(self.coordinator.stop(), 0)
        state = State(self.folder / "state")
        result = change(state)
        state.close()
        self.restart_coordinator()
        self.until("the worker is back", lambda: any(
            worker["state"] == "WORKER_STATE_READY" for worker in self.get("workers")["workers"]))
        return result

    def set_aside(self):
        return [each["summary"] for each in self.get("status")["findings"] if each["code"] == "STATE_SET_ASIDE"]

    def cli(self, *words):
        done = subprocess.run([cluster.program("CLI"), *words, "--coordinator", self.coordinator.address],
                              capture_output=True, text=True, timeout=cluster.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def datasets(self):
        return {dataset["state"]: dataset for dataset in self.datasets_now()}

    def test_a_dataset_that_changed_while_nobody_ran_is_listed_again_for_a_new_job(self):
        self.workers[0].kill9()
        self.assertEqual(self.coordinator.stop(), 0)
        photos = sorted((self.folder / "data" / "0").iterdir())
        photos[0].unlink()
        (self.folder / "data" / "3").mkdir()
        shutil.copyfile(photos[1], self.folder / "data" / "3" / photos[1].name)
        self.restart_coordinator()
        self.start_worker()
        spec = self.spec(cluster.train_graph(self.folder / "data", side=32), batch=BATCH, name="new")
        expected = self.oracle_steps(spec, 1)
        self.assertNotEqual(expected, self.expected)
        for _ in range(2):
            self.assertEqual(self.consumer(spec, epochs=1).finish().steps, expected)
            self.assertEqual(sorted(self.datasets()), ["ready", "replaced"])
            self.assertEqual(self.datasets()["ready"]["jobs"], ["new"])
            self.assertEqual(self.coordinator.stop(), 0)
            self.restart_coordinator()  # it knows the last listing
        # Refreshed by a command: unchanged data stays the same dataset.
        before = self.datasets()["ready"]["dataset"]["id"]
        self.cli("refresh", "dataset", "data")
        self.assertEqual(self.datasets()["ready"]["dataset"]["id"], before)
        self.assertIn("when it was listed", self.cli("describe", "dataset", "data"))
        self.assert_a_backup_is_the_state()

    def assert_a_backup_is_the_state(self):
        """It is made while the coordinator writes, and another coordinator continues from it."""
        state, backup = self.folder / "state", self.folder / "backup"
        before = self.datasets()
        said = self.backup(state, backup)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertRegex(said.stderr, r"/backup has the state of \S+: \d+ events, 2 datasets, \d+ blocks")
        self.assertNotIn("without block", said.stderr)
        self.assertEqual([str(path) for path in backup.rglob("*") if path.stat().st_mode & 0o077], [])
        self.assertEqual(self.coordinator.stop(), 0)
        shutil.rmtree(state)
        shutil.copytree(backup, state)
        self.restart_coordinator()
        self.assertEqual({name: dataset["dataset"] for name, dataset in self.datasets().items()},
                         {name: dataset["dataset"] for name, dataset in before.items()})
        for source, to, why in ((state, backup, "is there"), (self.folder, self.folder / "x", "no state"),
                                (state, self.folder / "none" / "x", "No such file"),
                                (state, state / "x", "is inside")):
            wrong = self.backup(source, to)
            self.assertNotEqual(wrong.returncode, 0)
            self.assertIn(why, wrong.stderr)
        self.assertFalse(list(self.folder.glob("*.unfinished-*")))

    def backup(self, state, to):
        return subprocess.run(
            [cluster.program("CLI"), "state", "backup", str(state), str(to),
             "--daemon-dir", str(pathlib.Path(cluster.program("COORDINATOR")).parent)],
            capture_output=True, text=True, timeout=cluster.PATIENCE_S)

    def test_a_long_list_of_a_job_is_kept_for_the_next_listing(self):
        files = [str(photo) for photo in sorted((self.folder / "data").rglob("*.*"))]
        labels = [str(7 * place % 5003) for place in range(5003)]
        graph = {"nodes": [cluster.node("readers.files", labels={"ints_value": {"values": labels}},
                                        files={"strings_value": {"values": [files[i % PHOTOS] for i in range(5003)]}})],
                 "outputs": [{"name": "label", "ref": {"node": 0, "output": 1}}]}
        spec = self.spec(graph, batch=500, name="listed")
        expected = self.oracle_steps(spec, 1)
        self.assertEqual(self.consumer(spec, epochs=1).finish().steps, expected)
        reader = next(d["dataset"]["reader"] for d in self.datasets_now() if "listed" in d["jobs"])
        self.assertIn("labels=ints{count=5003 sha256=", reader)
        self.assertIn('first=texts["0","7","14"]', reader)
        self.workers[0].kill9()
        self.assertEqual(self.coordinator.stop(), 0)
        shutil.copyfile(files[1], files[0])  # the listing is an old one
        self.restart_coordinator()
        self.start_worker()
        # No client sends the list: the coordinator has it.
        before = self.id_of("listed")
        self.cli("refresh", "dataset", before)
        self.assertEqual(self.oracle_steps(spec, 1), expected)  # only labels differ
        again = self.spec(graph, batch=500, name="again")
        self.assertEqual(self.consumer(again, epochs=1).finish().steps, expected)
        self.assertNotEqual(self.id_of("again"), before)

    def id_of(self, job):
        return next(d["dataset"]["id"] for d in self.datasets_now() if job in d["jobs"])

    def datasets_now(self):
        return json.loads(self.cli("get", "datasets", "-o", "json"))["datasets"]

    def test_what_a_newer_release_wrote_is_kept_and_named_and_the_rest_is_served(self):
        foreign = message([(1, 5), (FOREIGN, b"what only it knows")])

        def as_a_newer(state):
            created = next(record for record in state.records if kind(record) == CREATED)

            def refused(found):
                spec = message([*fields(dict(found)[3]), (1000, b"what makes other batches")])
                return [(1, b"newer"), (2, dict(found)[2]), (3, spec), (4, bytes(32))]

            # An event and a job that are unknown here, and an unknown field that may be ignored.
            known = changed(state.records[0], lambda found: [*found, (1000, b"what else there is")])
            job = changed(created, refused)
            state.write([known, *state.records[1:], foreign, job])
            return job

        job = self.over(as_a_newer)
        for _ in range(2):  # also after a restart, which has written the log anew
            named = "; ".join(self.set_aside())
            self.assertIn("kind 100", named)
            self.assertIn("newer", named)
            self.assert_served()
            # The newer release finds its own records again, byte by byte.
            kept = self.over(lambda state: state.records)
            self.assertIn(foreign, kept)
            self.assertIn(job, kept)


if __name__ == "__main__":
    os.chdir(cluster.tempfile.gettempdir())
    unittest.main()
