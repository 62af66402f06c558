# SPDX-License-Identifier: Apache-2.0
"""Sections of the table about datasets larger than a worker's memory: on slow storage, and over several workers.

The photos are put into archives several times, under different names, so that caches see as many records.
"""

import http.server
import io
import itertools
import json
import pathlib
import shutil
import subprocess
import tarfile
import threading
import time

from peers import LIMIT
from puller import BATCH
from service import Service, puller, result_of

MIB = 1 << 20
EPOCHS, EPOCHS_BYTES = 10, 550 * MIB  # about 5,000 photos
SLOW_BYTES_PER_S = 50e6
SLOW_BYTES = 256 * MIB  # size of the archives
CLUSTER_WORKERS, CLUSTER_FORMS, CLUSTER_CACHE = 4, 3 << 30, 1 << 30
# Workers decide once per epoch what to keep. Shards move once more when the coordinator knows the workers' rates, which
# takes their first ten heartbeats with rows.
SETTLE_EPOCHS, SETTLE_S = 6, 20


def make_archives(images, folder, total, count=64):
    """Makes archives of about `total` bytes together; returns their paths, and how many photos are in them."""
    photos = sorted(path for path in pathlib.Path(images).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    folder.mkdir()
    paths = [folder / f"{number}.tar" for number in range(count)]
    archives = [tarfile.open(path, "w") for path in paths]
    size = records = 0
    for photo in itertools.cycle(photos):
        if size >= total:
            break
        for name, data in ((f"{records:06}.jpg", photo.read_bytes()), (f"{records:06}.cls", b"0")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archives[records % count].addfile(info, io.BytesIO(data))
            size += len(data)
        records += 1
    for archive in archives:
        archive.close()
    return paths, records


class SlowServer:
    """Serves a folder's files over http with ranges, at most so many bytes per second in all."""

    def __init__(self, folder, bytes_per_s):
        self._lock, self._free_at, self._bytes_per_s = threading.Lock(), 0.0, bytes_per_s
        slow = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self):
                slow.answer(self, folder / self.path[1:], with_body=False)

            def do_GET(self):
                slow.answer(self, folder / self.path[1:], with_body=True)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # ignores workers that have gone
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler, path, with_body):
        size = path.stat().st_size
        first, end = 0, size
        if asked := handler.headers.get("Range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            first, end = int(first), min(size, int(last) + 1 if last else size)
        handler.send_response(206 if asked else 200)
        if asked:
            handler.send_header("Content-Range", f"bytes {first}-{end - 1}/{size}")
        handler.send_header("ETag", '"1"')
        handler.send_header("Accept-Ranges", "bytes")
        handler.send_header("Content-Length", str(end - first))
        handler.end_headers()
        if not with_body:
            return
        with path.open("rb") as file:
            file.seek(first)
            while first < end:
                part = file.read(min(end - first, 64 << 10))
                self._wait_for(len(part))
                handler.wfile.write(part)
                first += len(part)

    def _wait_for(self, size):
        """Waits until the line has carried everything that was sent before."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + size / self._bytes_per_s
            wait = self._free_at - now
        time.sleep(max(0, wait))


class Epochs:
    """A trainer that pulls an epoch when it is told to, as `with` block."""

    def __init__(self, args, address, images):
        self._process = puller(args, "epochs", "--address", address, images=images, stdin=subprocess.PIPE)

    def __enter__(self):
        if self._process.stdout.readline() != "ready\n":
            raise RuntimeError(f"a trainer did not begin; exit code {self._process.wait()}")
        return self

    def __exit__(self, kind, *_):
        self._process.stdin.close()
        if kind is None:
            result_of(self._process)
        else:
            self._process.kill()

    def next(self, step_s=0.0):
        """Returns images per second of the next epoch; each step takes the trainer `step_s` seconds."""
        self._process.stdin.write(f"{step_s}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a trainer ended; exit code {self._process.wait()}")
        return float(line)

    def settle(self):
        """Pulls epochs until workers have decided what to keep."""
        begin = time.monotonic()
        for count in itertools.count(1):
            self.next()
            if count >= SETTLE_EPOCHS and time.monotonic() - begin >= SETTLE_S:
                return


def measure_storage(args, out):
    """Measures the first and second epoch of a dataset twice as large as the workers' caches, from a slow server; and
    later epochs from local files with and without these caches."""
    rounds = out["storage"] = []
    archives, _ = make_archives(args.images, args.folder / "archives", SLOW_BYTES)
    total = sum(path.stat().st_size for path in archives)
    local = ",".join(map(str, archives))
    cache = ("--cache", str(total // 4))  # for each of two workers
    for number in range(args.rounds):
        one = {}
        with SlowServer(archives[0].parent, SLOW_BYTES_PER_S) as server:
            url = ",".join(f"{server.url}/{path.name}" for path in archives)
            with _service(args, f"slow{number}", cache) as service, \
                    Epochs(args, service.coordinator.address, url) as epochs:
                one["slow, first epoch"], one["slow, second epoch"] = epochs.next(), epochs.next()
        with _service(args, f"with{number}", cache) as own, \
                _service(args, f"without{number}", ("--cache", "0")) as bare, \
                Epochs(args, own.coordinator.address, local) as cached, \
                Epochs(args, bare.coordinator.address, local) as plain:
            rates = {cached: [], plain: []}
            for epochs in rates:
                epochs.next()
            for turn in range(6):  # in turns, so that a noisy machine hits both alike
                for epochs in sorted(rates, key=lambda each: (each is plain) == (turn % 2 == 0)):
                    rates[epochs].append(epochs.next())
        one["fast, with caches"] = sum(rates[cached]) / len(rates[cached])
        one["fast, without"] = sum(rates[plain]) / len(rates[plain])
        one["slow, second to first"] = one["slow, second epoch"] / one["slow, first epoch"]
        one["fast, with to without"] = one["fast, with caches"] / one["fast, without"]
        rounds.append(one)


def measure_epochs(args, out):
    """Measures ten epochs of photos that the workers have not seen, with the decoded forms kept by default and with
    none: images per second of each epoch, and the ratio of rows delivered so far with the default to those without. The
    same with caches for half of the photos, and for twice as many, and for a trainer that is half as fast."""
    rounds = out["epochs"] = []
    archives, _ = make_archives(args.images, args.folder / "epochs", EPOCHS_BYTES)
    local = ",".join(map(str, archives))
    for number in range(args.rounds):
        one = {}
        if args.yardstick:
            one["limit, img/s"] = args.measured.rate(LIMIT)
        _measure_epochs(args, number, local, "", (), 0.0, one)
        # Each of two workers has half of the photos.
        _measure_epochs(args, number, local, "half the room, ", ("--cache", str(EPOCHS_BYTES)), 0.0, one)
        _measure_epochs(args, number, local, "twice the room, ", ("--cache", str(EPOCHS_BYTES // 4)), 0.0, one)
        step_s = 2 * BATCH / one["none, epoch 2, img/s"]
        _measure_epochs(args, number, local, "slow trainer, ", (), step_s, one)
        rounds.append(one)


def _measure_epochs(args, number, photos, case, flags, step_s, one):
    folder = f"{case.replace(' ', '-').rstrip(',-')}{number}"
    took = {"all": 0.0, "none": 0.0}
    with _service(args, f"all-{folder}", ("--forms", "all", *flags)) as own, \
            _service(args, f"none-{folder}", ("--forms", "none", *flags)) as bare, \
            Epochs(args, own.coordinator.address, photos) as with_forms, \
            Epochs(args, bare.coordinator.address, photos) as without:
        for epoch in range(1, EPOCHS + 1):
            turns = {"all": with_forms, "none": without}
            for name in sorted(turns, reverse=(number + epoch) % 2 == 0):
                rate = one[f"{case}{name}, epoch {epoch}, img/s"] = turns[name].next(step_s)
                took[name] += 1 / rate
            one[f"{case}so far after epoch {epoch}"] = took["none"] / took["all"]


def measure_cluster(args, out):
    """Measures four workers whose caches together are a third larger than the decoded forms of all photos: the share of
    rows that are decoded by a form, and what is lost with one of the workers."""
    rounds = out["cluster"] = []
    for number in range(args.rounds):
        folder = args.folder / f"cluster{number}"
        folder.mkdir()
        # The forms are a photo's file and its pixels, which are about five times as large.
        archives, records = make_archives(args.images, folder / "archives", CLUSTER_FORMS // 6)
        local = ",".join(map(str, archives))
        flags = ("--forms", "pixels", "--cache", str(CLUSTER_CACHE))
        with Service(args, folder, workers=CLUSTER_WORKERS, flags=flags) as service, \
                Epochs(args, service.coordinator.address, local) as epochs:
            epochs.settle()
            counts = _Counts(args, service.coordinator.address)
            one = {"forms, GiB": counts.form_bytes / (1 << 30), "photos": records}
            one["img/s"], one["hits"] = epochs.next(), counts.hit_share()
            lost = counts.share_of("w0")
            service.workers[0].kill9()
            one["its share"] = lost
            one["img/s after a kill -9"], one["hits after"] = epochs.next(), counts.hit_share()
            epochs.settle()
            counts.hit_share()
            one["img/s later"], one["hits later"] = epochs.next(), counts.hit_share()
        rounds.append(one)
        shutil.rmtree(folder / "archives")


def _service(args, name, flags):
    folder = args.folder / name
    folder.mkdir()
    return Service(args, folder, flags=flags)


class _Counts:
    """The counts of workers since the last call."""

    def __init__(self, args, address):
        self._argv = [str(args.native / "leat"), "--coordinator", address, "get", "workers", "-o", "json"]
        self.form_bytes, self._last = 0, {}
        self.hit_share()

    def _read(self):
        time.sleep(2.5)  # the next heartbeats
        workers = json.loads(subprocess.run(self._argv, check=True, capture_output=True, text=True).stdout)["workers"]
        counts = {}
        for worker in workers:
            datasets = worker["stats"].get("cached_datasets", [])
            forms = [form for dataset in datasets for form in dataset.get("forms", [])]
            counts[worker["name"]] = {"rows": int(worker["stats"].get("rows_total", 0)),
                                      "bytes": sum(int(form.get("bytes", 0)) for form in forms),
                                      "hits": sum(int(form.get("hits_total", 0)) for form in forms)}
        return counts

    def hit_share(self):
        """Returns the share of rows that were decoded by a form."""
        now = self._read()
        self.form_bytes = sum(each["bytes"] for each in now.values())
        grown = {what: sum(each[what] - self._last.get(name, {}).get(what, 0) for name, each in now.items())
                 for what in ("rows", "hits")}
        self._last = now
        return grown["hits"] / max(1, grown["rows"])

    def share_of(self, name):
        return self._last[name]["bytes"] / self.form_bytes
