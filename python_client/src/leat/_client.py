# SPDX-License-Identifier: Apache-2.0
"""connect, Service and Job: the ways from an address to batches."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from leat import _credentials, _external, _finish, _native
from leat._batches import BatchIterator, Batches, Opened, row_numbers, row_pointer
from leat._buffer import Buffer, arrays, stack_one
from leat._graph import Pipeline
from leat._options import chosen, seconds, whole
from leat.errors import Error, InvalidArgument, OutOfRange

_ORDERS = {"global": "ORDER_GLOBAL_SHUFFLE", "shard": "ORDER_SHARD_SHUFFLE", "sequential": "ORDER_SEQUENTIAL"}
_LAST_BATCHES = {name: f"LAST_BATCH_{name.upper()}" for name in ("drop", "fill", "pad", "partial", "stream")}
_DECODERS = {name: f"DECODER_CLASS_{name.upper()}" for name in ("exact", "nvjpeg", "auto")}
_POLICIES = {name: f"BAD_SAMPLE_POLICY_{name.upper()}" for name in ("fail", "replace", "zero")}
_MAX_SEED = 2**64 - 1

_Iterator = TypeVar("_Iterator", bound=BatchIterator[Any])


class Field(NamedTuple):
    """One array of a batch: its dtype and the shape of one row."""

    dtype: np.dtype
    shape: tuple[int, ...]


def connect(
    address: str | None = None,
    *,
    access_token: str | None = None,
    access_token_file: str | os.PathLike[str] | None = None,
    ca: str | os.PathLike[str] | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    workers: int | None = None,
    threads: int | None = None,
) -> Service:
    """Connects to a Leat service, or starts a private one on this machine.

    Args:
        address: the coordinator, "host:7411". None: the environment's LEAT_COORDINATOR; without that, a private
            coordinator and worker start in the background and stop with this process.
        access_token: what every caller of the service must know. None: `access_token_file`, LEAT_ACCESS_TOKEN, or the
            file LEAT_ACCESS_TOKEN_FILE. (`token` is another thing: the position of an iterator.)
        access_token_file: a file with the access token.
        ca: a PEM file of the authorities to trust; given: TLS. None: the file LEAT_TLS_CA.
        cert: with `key`: PEM files of this client's certificate and key. None: the files LEAT_TLS_CERT, LEAT_TLS_KEY.
        key: see `cert`.
        timeout: seconds for connecting, and for each call without a time-out of its own.
        workers: of the private service: worker processes (default 1).
        threads: of the private service: decoding threads of each worker (default: this machine's cores / workers).

    Returns:
        The service; use it as a context manager, or `close` it.

    Raises:
        leat.Unavailable: nobody answers at the address.
        leat.Unauthenticated: the access token is missing or wrong.
        leat.InvalidArgument: an option is wrong.
    """
    address = address or os.environ.get("LEAT_COORDINATOR") or None
    options: dict[str, Any] = {"timeout_s": seconds("timeout", timeout)}
    if address is None:
        _credentials.refuse(
            access_token=access_token, access_token_file=access_token_file, ca=ca, cert=cert, key=key
        )
        options["daemon_dir"] = str(_native.folder)
        if workers is not None:
            options["embedded_workers"] = whole("workers", workers, 1, 1000)
        if threads is not None:
            options["embedded_threads"] = whole("threads", threads, 1, 10_000)
    else:
        if workers is not None or threads is not None:
            raise InvalidArgument(f"workers and threads are of a private service only; address is {address!r}")
        options["address"] = address
        options["access_token"] = _credentials.access_token(access_token, access_token_file)
        options["ca_pem"] = _credentials.pem("ca", ca)
        options["cert_pem"] = _credentials.pem("cert", cert)
        options["key_pem"] = _credentials.pem("key", key)
    return Service({name: value for name, value in options.items() if value is not None})


class Service:
    """A connection to a coordinator, and through it to the workers; made by `leat.connect`.

    A context manager. Jobs, iterators and batches keep what they need alive
    after it is closed, but a private service stops with the last of them.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        text = _native.text(json.dumps(options))
        pointer = _native.make("leat_service_free", _native.lib.leat_connect, text)
        self._handle = _native.Handle(pointer, "leat_service_free", "service")
        self._embedded = "address" not in options

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._handle.closed else self.address + (" (private)" if self._embedded else "")
        return f"<leat service {state}>"

    @property
    def address(self) -> str:
        """The coordinator's address; of a private service its socket."""
        return _native.lib.leat_service_address(self._handle.get()).decode()

    def close(self) -> None:
        """Ends the connection. Idempotent."""
        self._handle.close()

    def job(
        self,
        name: str,
        pipeline: Pipeline | None = None,
        *,
        batch: int | None = None,
        seed: int = 0,
        shuffle: Literal["global", "shard", "sequential"] | bool = "global",
        last_batch: Literal["drop", "fill", "pad", "partial", "stream"] = "drop",
        num_parts: int | None = None,
        rotate_parts: bool = False,
        shuffle_window: int | None = None,
        on_bad_sample: Literal["fail", "replace", "zero"] = "fail",
        decoder: Literal["exact", "nvjpeg", "auto"] = "exact",
        timeout: float = 300.0,
    ) -> Job:
        """Makes a job, or attaches to the one of this name and the same spec.

        Args:
            name: 1–128 letters, digits, '.', '_' and '-'.
            pipeline: of `leat.pipeline`. None, and no batch: attach to a job that exists, whatever its spec.
            batch: rows of the global batch, over all hosts.
            seed: of the order and of every random operator; 0 … 2**64-1.
            shuffle: "global" (True) permutes all samples, "shard" shards and a window of them, "sequential" (False)
                keeps the dataset's order.
            last_batch: what becomes of the rest that fills no batch: "drop" it, "fill" up from the beginning, "pad"
                with the last sample, or hand out a "partial" batch. "stream": there is no last one; passes over the
                data follow one another, inside a batch too, in one epoch that does not end (`len` is 2**40).
            num_parts: cuts the dataset into this many contiguous parts, each with its own rows of the batch (what
                DALI means by num_shards); None: rows come from the whole dataset.
            rotate_parts: in epoch e the rows of part k read part (k + e) % num_parts.
            shuffle_window: shards in the window of "shard" (default 16).
            on_bad_sample: "fail" the iterator, "replace" by another sample, or "zero" the row and clear its entry of
                the array "valid".
            decoder: "exact" gives the same bytes on every machine; "nvjpeg" decodes on GPUs, and needs workers that
                have one; "auto" is settled when the job is made: "nvjpeg" if every ready worker has it, otherwise
                "exact" (`Job.decoder` says which). "auto" attaches to a job of either.
            timeout: seconds, of which indexing a new dataset takes most.

        Returns:
            The job.

        Raises:
            leat.AlreadyExists: another spec has this name; the text says what differs.
            leat.NotFound: no such path; or no such job, when attaching.
            leat.InvalidArgument: a value is wrong; the text names it and what was expected.
            leat.FailedPrecondition: workers are ready, but none has the decoder.
            leat.DeadlineExceeded: not ready within the time-out.
        """
        if not isinstance(name, str):
            raise InvalidArgument(f"name = {name!r}; expected a text")
        if pipeline is None and batch is None:
            return self._existing(name)
        if not isinstance(pipeline, Pipeline):
            raise InvalidArgument(
                f"pipeline = {pipeline!r:.80}; expected a function with @leat.pipeline"
                + (", called with its arguments" if callable(pipeline) else "")
            )
        if shuffle is True or shuffle is False:
            shuffle = "global" if shuffle else "sequential"
        spec: dict[str, Any] = {
            "name": name,
            "pipeline": pipeline._graph,
            "seed": str(whole("seed", seed, 0, _MAX_SEED)),
            "batch": whole("batch", batch, 1, 2**20),
            "order": chosen("shuffle", shuffle, _ORDERS),
            "last_batch": chosen("last_batch", last_batch, _LAST_BATCHES),
            "decoder_class": chosen("decoder", decoder, _DECODERS),
            "on_bad_sample": chosen("on_bad_sample", on_bad_sample, _POLICIES),
        }
        if num_parts is not None:
            spec["num_parts"] = whole("num_parts", num_parts, 1, 2**20)
        if rotate_parts:
            spec["rotate_parts"] = True
        if shuffle_window is not None:
            spec["shuffle_window"] = whole("shuffle_window", shuffle_window, 1, 2**31)
        return self._create(pipeline, spec, seconds("timeout", timeout))

    def _create(self, pipeline: Pipeline, spec: dict[str, Any], timeout_s: float) -> Job:
        text = _native.text(json.dumps(spec))
        try:
            pointer = self._handle.make("leat_job_free", _native.lib.leat_job_create, text, timeout_s)
        except Error as error:
            raise pipeline.explain(error) from None
        return Job(self, pointer, pipeline._source)

    def _existing(self, name: str) -> Job:
        return Job(self, self._handle.make("leat_job_free", _native.lib.leat_job_get, _native.text(name)))

    def get(
        self,
        what: Literal["status", "workers", "jobs", "datasets", "shards", "consumers"],
        name: str | None = None,
    ) -> Any:
        """What operators see, as `leat get` shows it: parsed JSON. `name`: the dataset of "shards"."""
        ask = _native.lib.leat_service_get
        text = self._handle.make("leat_string_free", ask, _native.text(what), _native.text(name))
        return json.loads(_native.take_text(text) or "null")

    def delete_job(self, name: str) -> None:
        """Forgets a job. Raises leat.NotFound."""
        self._handle.do(_native.lib.leat_service_do, b"delete-job", _native.text(name))


def _get(message: dict[str, Any], name: str, default: Any) -> Any:
    """A field of a message in JSON form, which may have either spelling and lacks zeros."""
    head, *rest = name.split("_")
    return message.get(name, message.get(head + "".join(word.capitalize() for word in rest), default))


def _epoch_and_step(start: Any) -> tuple[int, int]:
    if not isinstance(start, tuple) or len(start) != 2:
        raise InvalidArgument(f"start = {start!r:.40}; expected (epoch, step)")
    return whole("start[0]", start[0], 0, 2**53), whole("start[1]", start[1], 0, 2**53)


_DTYPES = {f"D_TYPE_{name.upper()}": name for name in ("bool", "uint8", "int32", "int64", "float16", "float32")}


class Job:
    """Dataset, pipeline, seed, batch and order under a name: what fixes the bytes of every batch."""

    def __init__(self, service: Service, pointer: int | None, source: _external.Source | None = None) -> None:
        self._service = service
        self._source = source  # of leat.external_source
        self._handle = _native.Handle(pointer, "leat_job_free", "job")
        facts = json.loads(_native.take_text(_native.lib.leat_job_json(pointer)))
        job = facts["job"]
        spec = job["spec"]
        self._facts = job
        self._external = _external.Reader.of(spec)  # None: workers read the samples
        self._steps = int(facts["steps_per_epoch"])
        self.plan_hash: str = facts["plan_hash"]
        self.name: str = spec["name"]
        self.batch = int(spec["batch"])
        self.seed = int(_get(spec, "seed", 0))
        self.decoder: str = _get(spec, "decoder_class", "DECODER_CLASS_EXACT").rpartition("_")[2].lower()
        self.last_batch: str = _get(spec, "last_batch", "LAST_BATCH_DROP").rpartition("_")[2].lower()
        dataset = job.get("dataset", {})
        self.num_samples = int(_get(dataset.get("shards", {}), "num_samples", 0))
        self.classes: tuple[str, ...] = tuple(dataset.get("classes", ()))
        self.schema: dict[str, Field] = {
            field["name"]: Field(
                np.dtype(_DTYPES[field["dtype"]]), tuple(int(size) for size in field.get("shape", ()))
            )
            for field in job["schema"]
        }

    def __len__(self) -> int:
        """Steps of an epoch."""
        return self._steps

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {field.dtype} {field.shape}" for name, field in self.schema.items())
        return (
            f"<leat job {self.name!r}: {self.num_samples:,} samples, {self._steps:,} steps of {self.batch} ({fields}), "
            f"plan {self.plan_hash[:12]}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything about the job: the JSON form of leat.v1.Job."""
        return json.loads(json.dumps(self._facts))

    def batches(
        self,
        epochs: int | None = None,
        *,
        rows: range | slice | np.ndarray | list[int] | None = None,
        token: bytes | None = None,
        start: tuple[int, int] | None = None,
        window: int | None = None,
        max_window_bytes: int | None = None,
        row_timeout: float | None = None,
        progress: bool = False,
        finish: Literal["worker"] = "worker",
        source: Any = None,
    ) -> Batches:
        """Opens an iterator over the batches, in order.

        Args:
            epochs: how many to deliver, counted from the job's first also after a token; 0: without end. None: the one
                that it begins in, to its end.
            rows: of each global batch, in the order wanted; None: all.
            token: of `Batches.token`: go on there, with these or other rows.
            start: epoch and step of the first batch, in place of a token; None: (0, 0).
            window: steps in flight beyond the one handed out, 1 … 64 (default 4).
            max_window_bytes: the window shrinks to stay below (default 4 GiB).
            row_timeout: seconds that a due row may stay away before the iterator fails (default 120).
            progress: shows a tqdm bar with img/s and the part of the time spent waiting.
            finish: where the pipeline's end runs; "device" is for `leat.jax.batches` and `leat.torch.batches`.
            source: of a job whose samples consumers bring, as `leat.external_source` takes it; None: the pipeline's.

        Returns:
            An iterator of dicts of NumPy arrays.

        Raises:
            leat.InvalidArgument: an option is wrong, or the token is of another job.
            leat.FailedPrecondition: the job wants a source, and there is none.
        """
        if _finish.chosen(finish) != "worker":
            raise InvalidArgument(
                "finish = 'device', but NumPy has no device to finish on; expected 'worker', or use "
                "leat.jax.batches or leat.torch.batches"
            )
        return self._open(
            epochs,
            rows=rows,
            token=token,
            start=start,
            window=window,
            max_window_bytes=max_window_bytes,
            row_timeout=row_timeout,
            progress=progress,
            source=source,
        )

    def _open(
        self,
        epochs: int | None = None,
        *,
        rows: range | slice | np.ndarray | list[int] | None = None,
        token: bytes | None = None,
        start: tuple[int, int] | None = None,
        window: int | None = None,
        max_window_bytes: int | None = None,
        row_timeout: float | None = None,
        progress: bool = False,
        finish: str = "worker",
        device: int = -1,
        ahead: bool = False,
        source: Any = None,
        make: Callable[..., _Iterator] = Batches,
    ) -> _Iterator:
        """`batches`, for the frameworks: also arrays of bytes (see _finish), in a GPU's memory, or taken ahead of need.

        Args:
            ahead: batches are taken by a thread that is not the trainer's; it calls `begin_wait` and `end_wait`.
            make: the iterator's class, or what makes one of the arguments of BatchIterator.
        """
        numbers = row_numbers(rows, self.batch)
        count = self.batch if numbers is None else numbers.size
        options: dict[str, Any] = {}
        if epochs is not None:
            epochs = whole("epochs", epochs, 0, 2**53)
        first = None if start is None else _epoch_and_step(start)
        if start is not None and token is not None:
            raise InvalidArgument("expected one of token and start")
        if window is not None:
            options["window"] = whole("window", window, 1, 64)
        if max_window_bytes is not None:
            options["max_window_bytes"] = whole("max_window_bytes", max_window_bytes, 1, 2**53)
        if row_timeout is not None:
            options["row_timeout_s"] = seconds("row_timeout", row_timeout)
        if _finish.chosen(finish) != "worker":
            options["finish"] = finish
        if device >= 0:
            options["device"] = device
        if ahead:
            options["ahead"] = True
        if self._external is not None:
            source = self._chosen_source(source, count)
        elif source is not None:
            raise InvalidArgument(f"source is given, but workers read the samples of job {self.name!r} themselves")

        def open_at(token: bytes | None) -> Opened:
            return self._opened(token, first, epochs, options, numbers, source)

        batches = make(self, open_at, token, count, device=device)
        if progress:
            batches.show_progress()
        return batches

    def _opened(
        self,
        token: bytes | None,
        start: tuple[int, int] | None,
        epochs: int | None,
        options: dict[str, Any],
        rows: np.ndarray | None,
        source: _external.Source | None,
    ) -> Opened:
        """An iterator of the library, at a token's place or at `start`."""
        if token is None:
            epoch, step = start or (0, 0)
            if start is not None:
                options = {**options, "epoch": epoch, "step": step}
            epochs = epoch + 1 if epochs is None else epochs
        elif not isinstance(token, (bytes, bytearray, memoryview)):
            raise InvalidArgument(f"token is {type(token).__name__}; expected the bytes that token() returned")
        else:
            token = bytes(token)
            if not token:
                raise InvalidArgument("token is empty; expected the bytes that token() returned, or None")
        out, feed = ctypes.c_void_p(), ctypes.c_void_p()
        asked = (
            self._handle.get(),
            _native.text(json.dumps({**options, "epochs": epochs or 0})),
            token,
            len(token or b""),
            *row_pointer(rows),
            ctypes.byref(out),
        )
        feeder = None
        if self._external is None:
            _native.check(_native.lib.leat_batches_open(*asked))
        else:
            assert source is not None
            _native.check(_native.lib.leat_batches_open_fed(*asked, ctypes.byref(feed)))
            assert feed.value is not None
            feeder = _external.Feeder(feed.value, self._external, source)
        assert out.value is not None
        return Opened(out.value, epochs, feeder)

    def _chosen_source(self, source: Any, rows: int) -> _external.Source:
        assert self._external is not None
        spec = self._facts["spec"]
        order = _get(spec, "order", "")
        parts = int(_get(spec, "num_parts", 0))
        return self._external.chosen(
            self._source if source is None else source,
            self.name,
            {
                "the job shuffles": order != "ORDER_SEQUENTIAL",
                "its last batch is filled from the beginning": self.last_batch == "fill",
                f"it has {parts} parts": parts > 1,
                f"{rows} of {self.batch} rows are wanted": rows != self.batch,
            },
        )

    def sample(self, index: int, *, timeout: float = 60.0, source: Any = None) -> dict[str, np.ndarray]:
        """One sample, as epoch 0 has it: the arrays of one row.

        Args:
            index: in the dataset's order, 0 … num_samples-1; negative: from the end.
            timeout: seconds.
            source: as of `batches`.

        Raises:
            leat.OutOfRange: no such sample.
        """
        number = whole("index", index, -(2**63), 2**63 - 1)
        if number < 0:
            number += self.num_samples
        if not 0 <= number < self.num_samples:
            raise OutOfRange(f"sample {index}; job {self.name!r} has {self.num_samples} samples")
        buffer = Buffer(self)
        timeout_s = seconds("timeout", timeout)
        if self._external is None:
            self._handle.make("leat_batch_free", _native.lib.leat_job_sample, number, timeout_s, out=buffer.out)
        else:
            chosen = self._external.chosen(
                self._source if source is None else source, self.name, {"one sample is wanted": True}
            )
            fields = self._external.fields(chosen.read(0, number))
            pointer = self._external.pointer(fields)
            ask = _native.lib.leat_job_sample_brought
            self._handle.make("leat_batch_free", ask, number, pointer, len(fields), timeout_s, out=buffer.out)
        return stack_one(arrays(buffer))
