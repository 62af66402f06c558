# SPDX-License-Identifier: Apache-2.0
"""Sections of the table about tensors on their way to the trainer: from memory to memory, without and with TLS; and the
processor time of a trainer's process while workers decode on the same cores. The measure is a bare loop on gRPC."""

import os
import subprocess

from peers.runner import median
from service import Service, puller, result_of

# Rows of the table: the puller, and its transport.
FLOOR, LIBRARY, SHARED = "bare gRPC loop", "leat", "leat, shared memory"
STREAMS = {FLOOR: ("floor", "grpc"), LIBRARY: ("leat", "grpc"), SHARED: ("leat", "shm")}
TITLES = {
    "stream": "Raw stream: tensors into the client's buffer, on one host (by bytes: loopback, 2 MiB messages)",
    "tls": "The same by TLS, as between two hosts",
}
# Bounds for the client's time: by bytes as a multiple of the bare loop's, in shared memory as a fraction of it.
MOST_BY_BYTES, MOST_SHARED = 1.4, 0.3


class SyntheticServer:
    """Sends rows that cost nothing to make, as `with` block. `tls`: with a certificate of its own, in `folder`."""

    def __init__(self, args, folder, tls):
        self._args, self._argv, self._roots = args, [args.bench_bin / "bench_server"], []
        if tls:
            cert, key = folder / "cert.pem", folder / "key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                            "-days", "2", "-subj", "/CN=leat", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                            "-out", cert], check=True, stderr=subprocess.DEVNULL)
            self._argv, self._roots = [*self._argv, cert, key], [cert]

    def __enter__(self):
        self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._address = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()

    def pull(self, name):
        """Returns GB/s, the client's CPU seconds per GB, and how many rows it copied. Raises RuntimeError with the
        reason."""
        mode, transport = STREAMS[name]
        argv = [self._args.bench_bin / "bench_stream_rate", mode, self._address, str(self._args.seconds), *self._roots]
        done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "LEAT_TRANSPORT": transport})
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return tuple(map(float, done.stdout.split()))


def _measure(args, out, section, names):
    folder = args.folder / section
    folder.mkdir()
    rounds = out[section] = []
    with SyntheticServer(args, folder, tls=section == "tls") as server:
        for _ in range(args.rounds):
            one = {}
            for name in names:
                try:
                    one[name], one[name + " cpu_s_per_gb"], one[name + " copied_rows"] = server.pull(name)
                except RuntimeError as error:
                    one[name] = str(error)
            rounds.append(one)


def measure_stream(args, out):
    """Measures tensors from memory to memory: the library, by each transport, against a bare loop of the same message
    size; and CPU time beside workers that decode."""
    _measure(args, out, "stream", tuple(STREAMS))
    _measure_beside(args, out)


def measure_tls(args, out):
    """Measures the same by TLS. Shared memory is within one host, and needs none."""
    _measure(args, out, "tls", (FLOOR, LIBRARY))


def _measure_beside(args, out):
    """Measures the client's CPU seconds per GB while two workers keep all cores busy: for the library, and for the bare
    loop beside a trainer that takes their rows."""
    rounds = out["beside decoding, cpu_s_per_gb"] = []
    for number in range(args.rounds):
        one = {}
        folder = args.folder / f"beside{number}"
        folder.mkdir()
        with Service(args, folder, flags=("--forms", "none")) as service, \
                SyntheticServer(args, folder, tls=False) as server:
            argv = ("numpy", "--address", service.coordinator.address)
            for name, transport in ((LIBRARY, "grpc"), (SHARED, "shm")):
                one[name] = result_of(puller(args, *argv, LEAT_TRANSPORT=transport))["cpu_s_per_gb"]
            trainer = puller(args, *argv, LEAT_TRANSPORT="shm")
            try:
                one[FLOOR] = server.pull(FLOOR)[1]
            finally:
                trainer.kill()
                trainer.wait()
        rounds.append(one)


def show(out):
    for section, title in TITLES.items():
        rounds = out.get(section, [])
        if not rounds:
            continue
        print(f"\n{title}")
        for name in (name for name in STREAMS if name in rounds[0]):
            values = [one[name] for one in rounds]
            if median(values) is None:
                print(f"{name:24}  failed: {values[0]}")
                continue
            ratio = median([one[name] / one[FLOOR] for one in rounds
                            if isinstance(one[name], float) and isinstance(one[FLOOR], float)])
            cpu = median([one.get(name + " cpu_s_per_gb") for one in rounds])
            copied = median([one.get(name + " copied_rows") for one in rounds])
            print(f"{name:24}{median(values):6.2f} GB/s{ratio:8.2f}   client CPU {cpu:.2f} s/GB   "
                  f"rows copied {copied:6.0f}   "
                  + ", ".join(f"{value:.2f}" for value in values if isinstance(value, float)))
    show_beside(out.get("beside decoding, cpu_s_per_gb", []))


def show_beside(rounds):
    """Prints the rounds, and a last line that says whether the client stays within its bounds."""
    if not rounds:
        return
    print("\nClient CPU, s/GB, while two workers decode on the same cores")
    for name in STREAMS:
        print(f"{name:24}{median([one[name] for one in rounds]):6.2f}   "
              + ", ".join(f"{one[name]:.2f}" for one in rounds))
    by_bytes = median([one[LIBRARY] / one[FLOOR] for one in rounds])
    shared = median([one[SHARED] / one[LIBRARY] for one in rounds])
    kept = by_bytes <= MOST_BY_BYTES and shared <= MOST_SHARED
    print(f"by bytes {by_bytes:.2f} of the bare loop's (at most {MOST_BY_BYTES}), in shared memory {shared:.2f} of "
          f"that by bytes (at most {MOST_SHARED}): {'kept' if kept else 'NOT KEPT'}")
