# SPDX-License-Identifier: Apache-2.0
"""connect and Service: from an address to jobs."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Sequence
from typing import Any, Literal

from leat._graphs.mixture import Mixture
from leat._graphs.options import chosen, flag, seconds, share, whole
from leat._graphs.pipeline import Pipeline, spec_of
from leat._library import native
from leat._service import context, credentials, private, waiting
from leat._service.job import Job
from leat.errors import AlreadyExists, DatasetChanged, Error, InvalidArgument, NotFound, one_line

_ORDERS = {"global": "ORDER_GLOBAL_SHUFFLE", "shard": "ORDER_SHARD_SHUFFLE", "sequential": "ORDER_SEQUENTIAL"}
_LAST_BATCHES = {name: f"LAST_BATCH_{name.upper()}" for name in ("drop", "fill", "pad", "partial", "stream", "mask")}
_DECODERS = {name: f"DECODER_CLASS_{name.upper()}" for name in ("exact", "nvjpeg", "nvjpeg_shared", "auto")}
_POLICIES = {name: f"BAD_SAMPLE_POLICY_{name.upper()}" for name in ("fail", "replace", "zero")}
_LISTS = ("status", "workers", "jobs", "datasets", "shards", "consumers", "private")
_MAX_SEED = 2**64 - 1

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
    cache: int | str | None = None,
    disk_cache: tuple[str | os.PathLike[str], int | str] | None = None,
    devices: str | int | Sequence[int] | None = None,
) -> Service:
    """Connects to a Leat service, or to a private one on this machine.

        with leat.connect() as service:  # a private service
            job = service.job("train", train, batch=64, seed=7)

        leat.connect("host:7411", access_token_file="token", ca="ca.pem")

    A private service is shared by the processes of this user that connect with the same options from the same working
    folder (with the same package, and the same LEAT_PRIVATE_NAME). The first one starts it in a process of its own, and
    it stops when the last one has disconnected. So a job name means the same job for all of them.
    `logging.getLogger("leat")` reports at level INFO which service is used.

    Args:
        address: the coordinator's address, "host:7411". None: the address and files of the context that LEAT_CONTEXT
            names; without that, LEAT_COORDINATOR; without that, a private service.
        access_token: the secret that every caller of the service must present. None: `access_token_file`,
            LEAT_ACCESS_TOKEN, or the file LEAT_ACCESS_TOKEN_FILE.
        access_token_file: a file with the access token. It is read again while the script runs, so the token can be
            replaced.
        ca: a PEM file of the authorities to trust, or "system" for those that this machine trusts; either enables TLS.
            None: the value of LEAT_TLS_CA.
        cert: with `key`: PEM files of this client's certificate and key. None: the files LEAT_TLS_CERT, LEAT_TLS_KEY.
        key: see `cert`.
        timeout: seconds for connecting, and for each call without a time-out of its own.
        workers: private service only: the number of worker processes (default 1). This and the options below are
            ignored, with a log line, if LEAT_COORDINATOR gives the address, and are refused together with `address`.
        threads: private service only: decoding threads of each worker (default: this machine's cores / workers).
        cache: private service only: memory for stored samples, in bytes or as "8GiB"; 0: none (default: what the
            buffers leave of three sixteenths of the machine's memory, for each worker).
        disk_cache: private service only: a folder and its size limit, ("/scratch/leat", "200GiB"), for data read from
            S3, GCS and HTTP (default: none).
        devices: private service only: the GPUs that its workers may compute on, "all", or numbers as [0, 1] (default:
            LEAT_PRIVATE_DEVICES; without that none, since the trainer uses them).

    Returns:
        The service; use it as a context manager, or call its `close`.

    Raises:
        leat.Unavailable: no service answers at the address, or a private one is not ready in time.
        leat.Unauthenticated: the access token is missing or wrong.
        leat.InvalidArgument: an option is wrong.

    docs/start/first-batch.md is a whole program. `leat doctor` examines this machine and the service.
    """
    if address is not None and not (isinstance(address, str) and address.strip()):
        raise InvalidArgument(f"address is {address!r:.80}; expected HOST:PORT, or None for the environment's")
    named = address
    environ = os.environ if named else context.environment()
    address = named or credentials.variable("LEAT_COORDINATOR", environ)
    options: dict[str, Any] = {"timeout_s": seconds("timeout", timeout)}
    if address is None:
        credentials.refuse(
            access_token=access_token, access_token_file=access_token_file, ca=ca, cert=cert, key=key
        )
        options["daemon_dir"] = str(native.folder)
        options.update(private.options(workers, threads, cache, disk_cache, devices))
    else:
        given = {"workers": workers, "threads": threads, "cache": cache, "disk_cache": disk_cache, "devices": devices}
        for name, value in given.items():
            if value is None:
                continue
            if named is not None:
                raise InvalidArgument(f"{name} is an option of a private service only; address is {address!r}")
            # The script names no address, so it may also be meant to run without LEAT_COORDINATOR, for example on a
            # laptop.
            private.logger.info(
                "%s is an option of a private service and is not used: LEAT_COORDINATOR is %s", name, address
            )
        options["address"] = address
        token = credentials.access_token(access_token, access_token_file, environ)
        options["access_token"], options["access_token_file"] = token
        options["ca_pem"] = credentials.pem("ca", ca, environ)
        options["cert_pem"] = credentials.pem("cert", cert, environ)
        options["key_pem"] = credentials.pem("key", key, environ)
    return Service({name: value for name, value in options.items() if value is not None})


def _name(name: Any) -> str:
    if isinstance(name, str):
        return name
    raise InvalidArgument(f"name = {name!r:.80}; expected a text")


def _wish(replace: bool, relist: Literal["auto"] | bool) -> str:
    """Checks both arguments of Service.job, and returns the C interface's word for `relist`."""
    flag("replace", replace)
    if isinstance(relist, str) and relist == "auto":
        return "auto"
    if not isinstance(relist, bool):
        raise InvalidArgument(f"relist = {relist!r:.40}; expected 'auto', True or False")
    return "always" if relist else "never"


def _add_pipelines(spec: dict[str, Any], pipeline: Pipeline | Mixture) -> None:
    if isinstance(pipeline, Pipeline):
        spec.update(spec_of(pipeline))
        return
    if spec["last_batch"] != _LAST_BATCHES["drop"]:
        raise InvalidArgument("last_batch: expected none for a mixture, whose ends= says where an epoch ends")
    spec.update(pipeline._spec())
    spec["last_batch"] = _LAST_BATCHES["stream" if pipeline._ends is None else "drop"]


def _add_parts(spec: dict[str, Any], num_parts: int | None, rotate_parts: bool, mix_parts: bool) -> None:
    if num_parts is not None:
        spec["num_parts"] = whole("num_parts", num_parts, 1, 2**20)
    if flag("rotate_parts", rotate_parts):
        spec["rotate_parts"] = True
    if flag("mix_parts", mix_parts):
        spec["mix_parts"] = True


class Service:
    """A connection to a coordinator, and through it to the workers; made by `leat.connect`.

    It is a context manager. Jobs, iterators and batches keep what they need alive after it is closed; a private service
    stops with the last of them.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        text = native.json_text(options)
        out = native.Cell("leat_service_free")
        native.make(native.lib.leat_connect, text, out=out)
        self._handle = native.Handle(out, "service")
        waiting.listen(self._handle)
        self._address: str = self._handle.call(native.lib.leat_service_address).decode()
        self._embedded = "address" not in options
        if self._embedded:
            private.tell(self.get("private"))

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._handle.closed else self.address + (" (private)" if self._embedded else "")
        return f"<leat service {state}>"

    @property
    def address(self) -> str:
        """The coordinator's address; for a private service, its socket."""
        self._handle.check()
        return self._address

    def close(self) -> None:
        """Ends the connection. Idempotent."""
        self._handle.close()

    def job(
        self,
        name: str,
        pipeline: Pipeline | Mixture | None = None,
        *,
        batch: int | None = None,
        seed: int = 0,
        augment_seed: int | None = None,
        shuffle: Literal["global", "shard", "sequential"] | bool = "global",
        last_batch: Literal["drop", "fill", "pad", "partial", "stream", "mask"] = "drop",
        num_parts: int | None = None,
        rotate_parts: bool = False,
        mix_parts: bool = False,
        shuffle_window: int | None = None,
        on_bad_sample: Literal["fail", "replace", "zero"] = "fail",
        max_bad: float | None = None,
        decoder: Literal["exact", "nvjpeg", "nvjpeg_shared", "auto"] = "exact",
        replace: bool = False,
        relist: Literal["auto"] | bool = "auto",
        timeout: float = 300.0,
    ) -> Job:
        """Creates a job, or attaches to the existing job of this name and the same spec.

        It waits until a worker has listed a new dataset. If that takes more than two seconds,
        `logging.getLogger("leat")` says at level WARNING what it waits for, and how much was found so far.

        A job keeps the listing of its dataset that it was created with, so that all hosts of a training agree. `relist`
        decides what happens if the dataset was listed before:

        ========  ===========================================  =====================================================
        relist    a new job                                    an existing job
        ========  ===========================================  =====================================================
        "auto"    A check of the dataset, of at most a         Warns with `leat.DatasetChanged` if the check finds a
                  second; it is listed again if it changed.    change. With `replace` the job is created anew.
        True      It is listed again without a check.          The same; with `replace` the job is created anew anyway.
        False     The old listing is used.                     No check, and no warning.
        ========  ===========================================  =====================================================

        The check compares the text of lists and annotations, the size and time of files, the times of directories, and
        the listing of a remote prefix. It samples datasets of many thousand files: then a file that was rewritten in
        place may be missed, and reading it fails with leat.FailedPrecondition, which names it.

        Args:
            name: 1–128 letters, digits, '.', '_' and '-'.
            pipeline: a pipeline that `leat.pipeline` made, or a mixture of several (`leat.mix`). None, without
                `batch`: attach to an existing job, whatever its spec.
            batch: rows of the global batch, over all hosts.
            seed: the seed of the order and of every random operator; 0 … 2**64-1.
            augment_seed: the seed of random operators, so that `seed` is that of the order alone: two runs can have the
                same rows with other augmentations, or the other way round. None: `seed` serves both.
            shuffle: "global" (True) permutes all samples, "shard" permutes shards and samples within a window of
                shards, "sequential" (False) keeps the dataset's order.
            last_batch: what happens to the samples left over at the end, which do not fill a batch: "drop" drops them,
                "fill" adds samples from the beginning, "pad" repeats the last sample, "mask" pads and clears these
                rows' entries of the bool array "valid", which every batch has, and "partial" hands out a smaller batch.
                "stream": no batch is the last; passes over the data follow one another, also inside a batch, in one
                epoch that does not end (`len` is 2**40). A mixture takes none of them: its `ends` decides.
            num_parts: cuts the dataset into this many contiguous parts, each with its own rows of the batch (what
                DALI means by num_shards); None: rows come from the whole dataset.
            rotate_parts: in epoch e the rows of part k read part (k + e) % num_parts.
            mix_parts: each epoch shuffles the whole dataset and cuts that order into parts, so that samples change
                parts. Without it a part keeps its samples and shuffles them.
            shuffle_window: shards in the window of shuffle="shard" (default 16).
            on_bad_sample: "fail" the iterator, "replace" it by another sample, or "zero" the row and clear its entry of
                the array "valid", which every batch has.
            max_bad: the fraction of the dataset's samples that may be bad under "replace" and "zero", 0.0 to 1.0. When
                more different samples are bad, the job's iterators end with leat.DataLoss. None: any fraction. The
                contents of batches do not depend on it.
            decoder: "exact" gives the same bytes on every machine; "nvjpeg" decodes on GPUs, and needs workers that
                have one; "nvjpeg_shared" does that with three quarters of the files, by a fixed hash, and with the
                others what "exact" does; "auto" is resolved when the job is created: "nvjpeg" if every GPU of every
                ready worker has JPEG engines, otherwise "exact" (`Job.decoder` says which). "auto" attaches to a job
                of either.
            replace: first deletes a job of this name that has another spec or whose dataset has changed, for notebooks
                whose cells change. Its iterators, also those of other processes, may end with leat.NotFound.
            relist: whether a dataset that was listed before is listed again: see above.
            timeout: seconds; indexing a new dataset takes most of the time.

        Returns:
            The job.

        Raises:
            leat.AlreadyExists: a job of this name has another spec; the text says what differs.
            leat.NotFound: no such path; or no such job, when attaching.
            leat.InvalidArgument: a value is wrong; the text names it and what was expected.
            leat.FailedPrecondition: workers are ready, but none has the decoder.
            leat.DeadlineExceeded: the job was not ready within the time-out.
        """
        if pipeline is None and batch is None:
            return self._existing(_name(name))
        if not isinstance(pipeline, (Pipeline, Mixture)):
            raise InvalidArgument(
                f"pipeline = {pipeline!r:.80}; expected a function with @leat.pipeline"
                + (", called with its arguments" if callable(pipeline) else "")
            )
        if shuffle is True or shuffle is False:
            shuffle = "global" if shuffle else "sequential"
        spec: dict[str, Any] = {
            "name": _name(name),
            "seed": str(whole("seed", seed, 0, _MAX_SEED)),
            "batch": whole("batch", batch, 1, 2**20),
            "order": chosen("shuffle", shuffle, _ORDERS),
            "last_batch": chosen("last_batch", last_batch, _LAST_BATCHES),
            "decoder_class": chosen("decoder", decoder, _DECODERS),
            "on_bad_sample": chosen("on_bad_sample", on_bad_sample, _POLICIES),
        }
        _add_pipelines(spec, pipeline)
        if augment_seed is not None:
            spec["augment_seed"] = str(whole("augment_seed", augment_seed, 0, _MAX_SEED))
        if max_bad is not None:
            spec["max_bad"] = share("max_bad", max_bad)
        _add_parts(spec, num_parts, rotate_parts, mix_parts)
        if shuffle_window is not None:
            spec["shuffle_window"] = whole("shuffle_window", shuffle_window, 1, 2**31)
        wish = _wish(replace, relist)
        timeout_s = seconds("timeout", timeout)
        try:
            job = self._create(pipeline, spec, wish, timeout_s)
        except AlreadyExists:
            if not replace:
                raise
        else:
            if not job._attached or not (replace and (job.dataset_changed or relist is True)):
                if job.dataset_changed:
                    warnings.warn(
                        f"job {one_line(name)} keeps the listing of its dataset, which has changed since "
                        f"({one_line(job.dataset_changed)});"
                        " service.job(…, replace=True) makes the job anew from what is there now (role operator)",
                        DatasetChanged,
                        stacklevel=2,
                    )
                return job
        with contextlib.suppress(NotFound):  # another process deleted it first
            self.delete_job(name)
        return self._create(pipeline, spec, wish, timeout_s)

    def _create(self, pipeline: Pipeline | Mixture, spec: dict[str, Any], relist: str, timeout_s: float) -> Job:
        text = native.json_text(spec)
        out = native.Cell("leat_job_free")
        try:
            with waiting.aloud(spec["name"]):
                self._handle.make(native.lib.leat_job_create, text, relist.encode(), timeout_s, out=out)
        except Error as error:
            explain = pipeline.explain if isinstance(pipeline, Pipeline) else pipeline._explain
            raise explain(error) from None
        return Job(self, out, pipeline._source if isinstance(pipeline, Pipeline) else None)

    def _existing(self, name: str) -> Job:
        out = native.Cell("leat_job_free")
        self._handle.make(native.lib.leat_job_get, native.text(name, "name"), out=out)
        return Job(self, out)

    def get(
        self,
        what: Literal["status", "workers", "jobs", "datasets", "shards", "consumers", "private"],
        name: str | None = None,
    ) -> Any:
        """Returns what `leat get` shows to operators, as parsed JSON. `name`: the dataset, for "shards".

        "private": for a private service, the process that runs it, whether this connection started it, how many
        processes shared it then, and its options; None for any other service.
        """
        ask = native.lib.leat_service_get
        out = native.Cell("leat_string_free")
        what = chosen("what", what, {each: each for each in _LISTS})
        if (name is not None) != (what == "shards"):
            raise InvalidArgument(f"get({what!r}), name = {name!r:.80}; expected the dataset's of 'shards', else None")
        self._handle.make(ask, what.encode(), native.text(None if name is None else _name(name), "name"), out=out)
        return json.loads(out.text() or "null")

    def delete_job(self, name: str) -> None:
        """Deletes a job. Raises leat.NotFound."""
        self._handle.do(native.lib.leat_service_do, b"delete-job", native.text(_name(name), "name"))
