# SPDX-License-Identifier: Apache-2.0
"""Storage against a server that we did not write: OpenStack Swift's S3 API, which checks signatures."""

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
DATA = pathlib.Path(os.environ.get("LEAT_TEST_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared/data"))
PATIENCE_S = 120
PIPE_BYTES = 4096  # a tool that says a line for each object waits for its reader well before the hundredth


class S3Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if swift.missing():
            raise unittest.SkipTest(swift.missing())
        cls.folder = tempfile.TemporaryDirectory(prefix="leat-swift-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.swift = swift.Swift(cls.folder.name)
        cls.addClassCleanup(cls.swift.close)
        cls.swift.put("/bucket")
        rng = random.Random(5)
        cls.objects = {f"d/{i:04}": rng.randbytes(rng.randrange(1, 300_000)) for i in range(30)}
        cls.objects["d/a b/ü+&<%25>~.jpg"] = b"odd"
        cls.objects["d/empty"] = b""
        cls.objects["other"] = b"elsewhere"
        for key, body in cls.objects.items():
            cls.swift.put(f"/bucket/{key}", body)

    def environment(self, **changes):
        out = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        out.update(HOME=self.folder.name, no_proxy="127.0.0.1", AWS_ENDPOINT_URL=self.swift.url,
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
        for i in range(100):
            self.swift.put(f"/bucket/change/{i:03}", b"before")
        with subprocess.Popen([TOOL, "hash", "s3://bucket/change"], env=self.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, bufsize=0, pipesize=PIPE_BYTES) as process:
            process.stdout.readline()
            # What comes later is opened by what the listing said.
            process.send_signal(signal.SIGSTOP)
            for i in range(90, 100):
                self.swift.put(f"/bucket/change/{i:03}", b"another")
            process.send_signal(signal.SIGCONT)
            said = process.communicate(timeout=PATIENCE_S)[1].decode()
        self.assertEqual(process.returncode, 1)
        self.assertIn("FAILED_PRECONDITION", said)
        self.assertRegex(said, r"s3://bucket/change/090.*was size=6 etag=.*is size=7 etag=")

    def test_a_server_that_is_killed_and_started_again_costs_no_byte(self):
        photos = sorted(DATA.rglob("*.jpg"))[:500]
        if not photos:
            self.skipTest(f"no photos below {DATA} (LEAT_TEST_DATA)")
        wanted = {}
        for i, photo in enumerate(photos):
            body = photo.read_bytes()
            self.swift.put(f"/bucket/photos/{i:04}.jpg", body)
            wanted[f"{i:04}.jpg"] = hashlib.sha256(body).hexdigest()
        with subprocess.Popen([TOOL, "hash", "s3://bucket/photos"], env=self.environment(), stdout=subprocess.PIPE,
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
    """A job whose photos lie in a bucket has the batches of the same job over the same photos on disk."""

    PHOTOS, BATCH, EPOCHS = 100, 20, 2

    def setUp(self):
        super().setUp()
        if swift.missing():
            self.skipTest(swift.missing())
        if not cluster.PHOTOS.is_dir():
            self.skipTest(f"no photos at {cluster.PHOTOS} (LEAT_TEST_DATA)")
        self.swift = swift.Swift(self.folder / "swift")
        self.addCleanup(self.swift.close)

    def put_photos(self):
        """Some photos of many classes: on disk, and in the bucket. Returns the folder."""
        self.swift.put("/bucket")
        everything = sorted(path for path in cluster.PHOTOS.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
        photos = everything[::max(1, len(everything) // self.PHOTOS)][:self.PHOTOS]
        for i, photo in enumerate(photos):
            name = f"class {i % 7}/{i:03}.jpg"
            (self.folder / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(photo, self.folder / "photos" / name)
            self.swift.put(f"/bucket/photos/{name}", photo.read_bytes())
        return self.folder / "photos"

    def job(self, path):
        return self.spec(cluster.train_graph(path, side=64), batch=self.BATCH)

    def oracle(self, path):
        lines = subprocess.run([cluster.program("ORACLE"), str(self.job(path)), str(self.EPOCHS)], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        return [(int(epoch), int(step), sha) for epoch, step, sha in (line.split() for line in lines)]

    def start(self):
        self.start_coordinator()
        env = {"AWS_ENDPOINT_URL": self.swift.url, "AWS_ACCESS_KEY_ID": swift.KEY_ID,
               "AWS_SECRET_ACCESS_KEY": swift.SECRET, "AWS_REGION": swift.REGION, "HOME": str(self.folder),
               "no_proxy": "127.0.0.1"}
        for _ in range(2):
            self.start_worker("--cache", "0", threads=4, env=env)

    def test_batches_are_those_of_the_disk_though_the_server_is_killed(self):
        wanted = self.oracle(self.put_photos())
        self.assertEqual(len(wanted), self.EPOCHS * self.PHOTOS // self.BATCH)
        self.start()
        consumer = self.consumer(self.job("s3://bucket/photos"), "--paced", "--window", 1, epochs=self.EPOCHS)
        consumer.pull(3)
        self.swift.kill_proxy()
        self.swift.start_proxy()
        consumer.pull(2)
        self.swift.kill_proxy()
        self.swift.start_proxy()
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, wanted)

    def test_a_photo_that_changed_is_an_error_that_names_both(self):
        self.put_photos()
        self.start()
        consumer = self.consumer(self.job("s3://bucket/photos"), "--paced", "--window", 1, epochs=self.EPOCHS)
        consumer.pull(1)
        for i in range(self.PHOTOS):
            self.swift.put(f"/bucket/photos/class {i % 7}/{i:03}.jpg", b"no photo any more")
        consumer.finish()
        self.assertIsNotNone(consumer.error)
        self.assertRegex(consumer.error[1], r"s3://bucket/photos/class .*was size=.*is size=17 etag=")


if __name__ == "__main__":
    unittest.main()
