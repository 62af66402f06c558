# SPDX-License-Identifier: Apache-2.0
"""Storage on an independent server: OpenStack Swift's S3 API, which checks signatures."""

import concurrent.futures
import functools
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import unittest

import cluster
import swift

TOOL = os.environ.get("LEAT_STORAGE_TOOL", "storage_tool")
PATIENCE_S = 120
PIPE_BYTES = 4096  # a tool that prints a line per object blocks well before the hundredth
PHOTOS = 500
PUTS_AT_A_TIME = 4


class World:
    """One Swift for all tests; its proxy may be killed and started again."""

    folder, swift = None, None


def setUpModule():
    if swift.missing():
        raise unittest.SkipTest(swift.missing())
    folder = tempfile.TemporaryDirectory(prefix="leat-swift-")
    unittest.addModuleCleanup(folder.cleanup)
    World.folder = pathlib.Path(folder.name)
    World.swift = swift.Swift(World.folder / "swift")
    unittest.addModuleCleanup(World.swift.close)
    World.swift.start()


def put_all(bucket, objects):
    """Puts several objects at a time."""
    with concurrent.futures.ThreadPoolExecutor(PUTS_AT_A_TIME) as pool:
        list(pool.map(lambda item: World.swift.put(f"/{bucket}/{item[0]}", item[1]), objects.items()))


@functools.cache
def photos():
    """Returns a folder of photos in classes; the bucket "photos" has the same."""
    folder = World.folder / "photos"
    subprocess.run([cluster.program("MAKE_PHOTOS"), str(World.folder / "made"), str(PHOTOS), "--max-side", "240"],
                   check=True, stdout=subprocess.DEVNULL)
    objects = {}
    for i, photo in enumerate(sorted((World.folder / "made").rglob("*.jpg"))):
        name = f"class {i % 7}/{i:03}.jpg"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(photo, folder / name)
        objects[name] = (folder / name).read_bytes()
    World.swift.put("/photos")
    put_all("photos", objects)
    return folder


class S3Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.swift = World.swift
        rng = random.Random(5)
        cls.objects = {f"d/{i:04}": rng.randbytes(rng.randrange(1, 300_000)) for i in range(30)}
        cls.objects["d/a b/ü+&<%25>~.jpg"] = b"odd"
        cls.objects["d/empty"] = b""
        cls.objects["other"] = b"elsewhere"
        cls.swift.put("/bucket")
        put_all("bucket", cls.objects)

    def environment(self, **changes):
        out = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        out.update(HOME=str(World.folder), no_proxy="127.0.0.1", AWS_ENDPOINT_URL=self.swift.url,
                   AWS_ACCESS_KEY_ID=swift.KEY_ID, AWS_SECRET_ACCESS_KEY=swift.SECRET, AWS_REGION=swift.REGION)
        out.update(changes)
        return out

    def tool(self, *arguments, **changes):
        return subprocess.run([TOOL, *arguments], env=self.environment(**changes), capture_output=True,
                              timeout=PATIENCE_S)

    def good(self, *arguments):
        done = self.tool(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout

    def test_a_listing_has_names_sizes_and_the_identities_of_stat(self):
        lines = self.good("list", "s3://bucket/d").decode().splitlines()
        wanted = sorted((key[2:], body) for key, body in self.objects.items() if key.startswith("d/"))
        wanted.sort(key=lambda item: item[0].encode())
        self.assertEqual([line.split("\t")[:2] for line in lines], [[name, str(len(body))] for name, body in wanted])
        for line in lines[:3] + lines[-3:]:
            name, _, identity = line.split("\t")
            stat = self.good("stat", f"s3://bucket/d/{name}").decode().rstrip("\n").split("\t")
            self.assertEqual(stat[2], identity)

    def test_objects_come_as_they_were_put(self):
        self.assertEqual(self.hashes(self.good("hash", "s3://bucket/d")), self.wanted("d/"))

    def test_any_range_can_be_read(self):
        body = self.objects["d/0007"]
        for first, size in ((0, 1), (5, 0), (1, len(body) - 1), (len(body) - 1, 1), (0, len(body))):
            self.assertEqual(self.good("range", "s3://bucket/d/0007", str(first), str(size)), body[first:first + size])

    def test_errors_are_clear_and_hold_no_secret(self):
        for arguments, changes, words in (
                (("stat", "s3://bucket/none"), {}, ("NOT_FOUND", "s3://bucket/none", "NoSuchKey")),
                (("list", "s3://no-bucket/x"), {}, ("NOT_FOUND", "NoSuchBucket")),
                (("stat", "s3://bucket/d/0000"), {"AWS_SECRET_ACCESS_KEY": "wrong-secret"},
                 ("PERMISSION_DENIED", "SignatureDoesNotMatch", "AWS_ACCESS_KEY_ID")),
                (("stat", "s3://bucket/d/0000"), {"AWS_ACCESS_KEY_ID": "no:body"},
                 ("PERMISSION_DENIED", "AWS_ACCESS_KEY_ID")),
                (("list", "s3://bucket/d"), {"AWS_REGION": "us-west-9"},
                 ("FAILED_PRECONDITION", swift.REGION, "us-west-9", "AWS_REGION")),
                (("stat", "s3://bucket/d/0000"), {"AWS_REGION": "us-west-9"},
                 ("FAILED_PRECONDITION", swift.REGION, "us-west-9")),
                (("range", "s3://bucket/d/empty", "0", "1"), {}, ("OUT_OF_RANGE", "1 bytes at 0"))):
            with self.subTest(arguments=arguments, changes=changes):
                done = self.tool(*arguments, **changes)
                self.assertEqual(done.returncode, 1)
                said = done.stderr.decode()
                for word in words:
                    self.assertIn(word, said)
                for secret in ("wrong-secret", swift.SECRET, swift.KEY_ID, "no:body"):
                    self.assertNotIn(secret, said)

    def test_an_object_that_changes_is_an_error_that_names_it(self):
        put_all("bucket", {f"change/{i:03}": b"before" for i in range(100)})
        with subprocess.Popen([TOOL, "hash", "s3://bucket/change"], env=self.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, bufsize=0, pipesize=PIPE_BYTES) as process:
            process.stdout.readline()
            # Objects that are put later are opened by the listing's facts.
            process.send_signal(signal.SIGSTOP)
            for i in range(90, 100):
                self.swift.put(f"/bucket/change/{i:03}", b"another")
            process.send_signal(signal.SIGCONT)
            said = process.communicate(timeout=PATIENCE_S)[1].decode()
        self.assertEqual(process.returncode, 1)
        self.assertIn("FAILED_PRECONDITION", said)
        self.assertRegex(said, r"s3://bucket/change/090.*was size=6 etag=.*is size=7 etag=")

    def test_a_server_that_is_killed_and_started_again_costs_no_byte(self):
        folder = photos()
        wanted = {str(photo.relative_to(folder)): hashlib.sha256(photo.read_bytes()).hexdigest()
                  for photo in folder.rglob("*.jpg")}
        self.assertEqual(len(wanted), PHOTOS)
        with subprocess.Popen([TOOL, "hash", "s3://photos"], env=self.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, bufsize=0, pipesize=PIPE_BYTES) as process:
            said = [process.stdout.readline() for _ in range(50)]
            self.swift.kill_proxy()
            self.swift.start_proxy()
            rest, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, errors.decode())
        self.assertEqual(self.hashes(b"".join(said) + rest), wanted)

    def hashes(self, text):
        return {name: digest for digest, name in (line.split("\t") for line in text.decode().splitlines())}

    def wanted(self, prefix):
        return {key[len(prefix):]: hashlib.sha256(body).hexdigest()
                for key, body in self.objects.items() if key.startswith(prefix)}


class S3JobTest(cluster.ClusterTest):
    """A job whose photos are in a bucket has the batches of the same job over the same photos on disk."""

    BATCH = 50

    def job(self, path, **changes):
        return self.spec(cluster.train_graph(path, side=64), **{"batch": self.BATCH, **changes})

    def oracle(self, spec):
        lines = subprocess.run([cluster.program("ORACLE"), str(spec), "1"], check=True, capture_output=True,
                               text=True).stdout.splitlines()
        return [(int(epoch), int(step), sha) for epoch, step, sha in (line.split() for line in lines)]

    def start(self):
        self.start_coordinator()
        for _ in range(2):
            self.start_reader()

    def start_reader(self, *flags):
        """Starts a worker that reads the bucket and keeps nothing in memory."""
        env = {"AWS_ENDPOINT_URL": World.swift.url, "AWS_ACCESS_KEY_ID": swift.KEY_ID,
               "AWS_SECRET_ACCESS_KEY": swift.SECRET, "AWS_REGION": swift.REGION, "HOME": str(self.folder),
               "no_proxy": "127.0.0.1"}
        return self.start_worker("--cache", "0", *flags, threads=4, env=env)

    def stats(self, worker):
        """Returns a worker's statistics when the coordinator knows of all its rows."""
        def seen():
            stats = [each["stats"] for each in self.get("workers")["workers"] if each["name"] == worker.name]
            return stats[0] if stats and int(stats[0].get("rows_total", 0)) >= PHOTOS else None
        return self.until("the worker's figures", seen)

    def entries(self, kept):
        """Returns the number of ranges that a disk cache would find again if its worker were killed."""
        return sum(index.read_bytes().count(b"leatdc01") for index in kept.glob("*.index"))

    def test_batches_are_those_of_the_disk_though_the_server_is_killed(self):
        wanted = self.oracle(self.job(photos()))
        self.assertEqual(len(wanted), PHOTOS // self.BATCH)
        self.start()
        # The steps after the one that is taken are being read when the server dies.
        consumer = self.consumer(self.job("s3://photos"), "--paced", "--window", 3, "--timeout-s", PATIENCE_S, epochs=1)
        for _ in range(2):
            consumer.pull(3)
            World.swift.kill_proxy()
            World.swift.start_proxy()
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, wanted)

    def test_what_a_worker_keeps_on_disk_outlives_it_and_is_not_asked_for_again(self):
        wanted = self.oracle(self.job(photos()))
        # Entries are counted below: without decoded forms there is one per photo.
        flags = "--disk-cache", str(self.folder / "kept"), "--disk-cache-bytes", "256MiB", "--forms", "none"
        self.start_coordinator()
        first = self.start_reader(*flags)
        self.assertEqual(self.consumer(self.job("s3://photos"), epochs=1).finish().steps, wanted)
        self.assertEqual(int(self.stats(first).get("disk_cache_hits_total", 0)), 0)
        # A photo is written after the answer, and its index entry after the photo.
        self.until("an entry for each photo", lambda: self.entries(self.folder / "kept") == PHOTOS)
        first.kill9()
        second = self.start_reader(*flags)
        self.assertEqual(self.consumer(self.job("s3://photos"), epochs=1).finish().steps, wanted)
        stats = self.stats(second)
        self.assertEqual(int(stats["disk_cache_hits_total"]), PHOTOS)
        self.assertEqual(int(stats.get("disk_cache_misses_total", 0)), 0)

    def test_a_photo_that_changed_is_an_error_that_names_both(self):
        names = [f"class {i % 7}/{i:03}.jpg" for i in range(60)]
        World.swift.put("/changing")
        put_all("changing", {name: (photos() / name).read_bytes() for name in names})
        self.start()
        consumer = self.consumer(self.job("s3://changing", batch=20), "--paced", "--window", 1, epochs=2)
        consumer.pull(1)
        put_all("changing", {name: b"no photo any more" for name in names})
        consumer.finish()
        self.assertIsNotNone(consumer.error)
        self.assertRegex(consumer.error[1], r"s3://changing/class .*was size=.*is size=17 etag=")


if __name__ == "__main__":
    unittest.main()
