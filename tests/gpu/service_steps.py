# SPDX-License-Identifier: Apache-2.0
"""Steps with real daemons: the same bytes on every transport, memory shared by processes that are killed, and rates."""

import os
import sys
import time

import cluster
import machine
import service
from tool_steps import utilisation, without_gpu

TRANSPORTS = ("grpc", "shm", "cuda")
FIRST_TRANSPORTS = ("shm", "cuda")  # grpc, which needs no GPU, is in the rest (`transports`)
SLACK_BYTES = 64 << 20  # of the device; killed processes may have left as much to the driver


def batch(context):
    return 16 if context.quick else 128


def until(condition, seconds):
    """Repeats until the condition holds, or the time is over. Each check is a call to another process."""
    end = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < end:
        pass
    return answer


def differ(hashes, wanted):
    if hashes == wanted:
        return f"{len(hashes)} batches"
    if len(hashes) != len(wanted):
        return f"{len(hashes)} batches, not {len(wanted)}"
    return f"{sum(a != b for a, b in zip(hashes, wanted))} of {len(wanted)} batches differ"


def compare(lines, running, name, spec, epochs, wanted, whose, transports=TRANSPORTS):
    for transport in transports:
        what = f"class {name}, transport {transport}: hashes are {whose}"
        try:
            hashes, used = running.consume(spec, epochs, transport)
        except RuntimeError as error:
            lines.check(what, False, str(error))
            continue
        lines.check(what, hashes == wanted, differ(hashes, wanted))
        lines.check(f"class {name}: the transport was {transport}", used == transport, f"it says {used}")


def same_bytes(context, lines):
    """One coordinator and one GPU worker: the same bytes on every transport."""
    folder, epochs = context.folder / "service", 1
    running = service.Service(context, folder)
    try:
        lines.check("the worker took GPU 0", running.said("gpu.ready"), running.about())
        ready = running.ready_seconds()
        if ready is not None:
            lines.figure("seconds from start to gpu.ready", ready, "s", "of a worker")
        exact = service.spec(folder, "exact", context.photos, batch(context))
        wanted = service.oracle(context, exact, epochs)
        compare(lines, running, "exact", exact, epochs, wanted, "the oracle's", FIRST_TRANSPORTS)
        decoders = ["exact"] + nvjpeg(context, lines, running, folder, epochs)
        frameworks(context, lines, running, folder, epochs, wanted)
        gpu_rows(lines, running, decoders)
        codes = running.stop()
        lines.check("the daemons drain and exit with 0", codes == [0, 0], str(codes))
    finally:
        running.close()


def nvjpeg(context, lines, running, folder, epochs):
    """Returns the decoders that this step has used."""
    if running.said("gpu.no_nvjpeg"):
        lines.missing("class nvjpeg", "no libnvjpeg: deploy/bundle --with-nvjpeg, or LEAT_NVJPEG_LIBRARY")
        return []
    job = service.spec(folder, "nvjpeg", context.photos, batch(context), "NVJPEG")
    try:
        wanted, _ = running.consume(job, epochs, "grpc")
    except RuntimeError as error:
        lines.check("class nvjpeg over transport grpc", False, str(error))
        return []
    compare(lines, running, "nvjpeg", job, epochs, wanted, "those of the first pass", FIRST_TRANSPORTS)
    return ["hardware", "cuda"]


def gpu_rows(lines, running, decoders):
    """Checks that the GPU has computed rows, since only then the bytes are its work. Counts come with the next
    heartbeat."""
    decoded = lambda counts: counts["hardware"] + counts["cuda"]  # noqa: E731
    counts = until(lambda: (counts := running.gpu_rows())["exact"] and (len(decoders) == 1 or decoded(counts)) and
                   counts, 15) or running.gpu_rows()
    by = ", ".join(f"{name} {count}" for name, count in counts.items())
    lines.check("class exact: rows went through the GPU", counts["exact"], by)
    if len(decoders) > 1:
        lines.check("class nvjpeg: rows were decoded by the GPU", decoded(counts), by)


def python_env(context, folder):
    """Returns the environment with the bundle's package; None without NumPy."""
    if not machine.packages("numpy")["numpy"]:
        return None
    path = (str(service.site(context.top, folder)), os.environ.get("PYTHONPATH", ""))
    return {**context.env, "PYTHONPATH": os.pathsep.join(p for p in path if p)}


def frameworks(context, lines, running, folder, epochs, wanted):
    env = python_env(context, folder)
    for name in ("torch", "jax"):
        what = f"transport cuda, {name}: hashes are the oracle's"
        why = f"no numpy in {sys.executable}" if env is None else without_gpu(name, context)
        if why:
            lines.missing(what, why)
            continue
        try:
            answer = running.pull("exact", name, "cuda", env, "--epochs", epochs)
        except RuntimeError as error:
            lines.check(what, False, str(error))
            continue
        lines.check(what, answer["hashes"] == wanted, differ(answer["hashes"], wanted))
        transport = answer["stats"].get("transport")
        lines.check(f"{name}: the transport was cuda", transport == "cuda", f"it says {transport}")


def sharing(context, lines):
    """Memory that two processes share is released when either ends by SIGKILL."""
    folder = context.folder / "sharing"
    running = service.Service(context, folder)
    try:
        job = service.spec(folder, "exact", context.photos, batch(context))
        wanted = service.oracle(context, job, 1)
        for transport in ("shm", "cuda"):
            consumer_is_killed(lines, running, job, transport, wanted, context)
        lines.check("host memory that consumers share is page-locked", not running.said("gpu.shared_not_pinned"),
                    " ".join(running.said("gpu.shared_not_pinned")[:1])[:300])
        running.workers.append(running.start_worker("second"))
        for transport in ("shm", "cuda"):
            worker_is_killed(lines, running, job, transport, wanted)
    finally:
        running.close()


def consumer_is_killed(lines, running, job, transport, wanted, context):
    hashes, _ = running.consume(job, 1, transport)  # so that the worker has allocated what it keeps
    before = free_bytes()
    for _ in range(3):
        consumer = running.paced(job, transport, "--paced", "--window", "4")
        consumer.pull(2)
        consumer.process.kill()
        consumer.close()
    hashes, _ = running.consume(job, 1, transport)
    lines.check(f"transport {transport}: after three consumers were killed, the next has the oracle's hashes",
                hashes == wanted, differ(hashes, wanted))
    slots = lambda: sum(int(device.get("slots_in_use", 0)) for device in running.stats())  # noqa: E731
    until(lambda: slots() == 0, 15)
    lines.check(f"transport {transport}: no slot is held for them", slots() == 0, f"{slots()} in use")
    if context.fake:
        return  # memory is not shared
    until(lambda: before - free_bytes() <= SLACK_BYTES, 15)
    grown = before - free_bytes()
    lines.check(f"transport {transport}: the device has their memory back", grown <= SLACK_BYTES,
                f"{grown >> 20} MiB more")


def worker_is_killed(lines, running, job, transport, wanted):
    """Kills the last worker in mid-epoch; the first one takes over its rows."""
    consumer = running.paced(job, transport, "--paced", "--window", "3", "--hold", "3")
    try:
        consumer.pull(1)
        running.workers[-1].kill9()
        consumer.finish()
        hashes = [step[2] for step in consumer.steps]
        lines.check(f"transport {transport}: a worker is killed, and every batch has the oracle's hash",
                    hashes == wanted, str(consumer.error) if consumer.error else differ(hashes, wanted))
    finally:
        consumer.close()
    running.workers[-1] = running.start_worker(f"after-{transport}")


def free_bytes():
    gpus, why = machine.probed()
    if not gpus:
        raise RuntimeError(f"the driver does not answer any more: {why}")
    return gpus[0]["free_bytes"]


def torch_graph(context, lines):
    torch_checks(context, lines, "graph", "a torch trainer that captures CUDA graphs")


def torch_streams(context, lines):
    torch_checks(context, lines, "streams", "torch tensors on a second stream")


def torch_checks(context, lines, which, what):
    """Runs a script of torch's (torch_checks.py) with a worker on the same GPU."""
    folder = context.folder / f"torch_{which}"
    folder.mkdir()
    if why := without_gpu("torch", context):
        lines.missing(what, why)
        return
    env = python_env(context, folder)
    if env is None:
        lines.missing(what, f"no numpy in {sys.executable}")
        return
    running = service.Service(context, folder)
    try:
        job = service.spec(folder, "exact", context.photos, batch(context))
        running.consume(job, 1, "grpc")  # makes the job
        answer = running.script("torch_checks.py", "exact", "cuda", env, which)
        for check in answer["checks"]:
            lines.check(*check)
    except RuntimeError as error:
        lines.check(what, False, str(error))
    finally:
        running.close()


def transports(context, lines):
    """Measures images and bytes of rows per second, by transport, class and consumer."""
    folder, seconds = context.folder / "transports", 0.3 if context.quick else 3.0
    running = service.Service(context, folder)
    engines = machine.Engines(folder)
    try:
        exact = service.spec(folder, "exact", context.photos, batch(context))
        compare(lines, running, "exact", exact, 2, service.oracle(context, exact, 2), "the oracle's", ["grpc"])
        classes = ["exact", "nvjpeg"]
        if running.said("gpu.no_nvjpeg"):
            classes.remove("nvjpeg")
            lines.missing("rates of class nvjpeg", "no libnvjpeg")
        for name in classes:
            job = service.spec(folder, name, context.photos, batch(context), name.upper())
            for transport in TRANSPORTS:
                of = {"class": name, "transport": transport, "consumer": "C++"}
                before = running.counts()
                try:
                    rows, some_bytes, used = running.rate(job, transport, seconds)
                except RuntimeError as error:
                    lines.check(f"class {name}, transport {transport}", False, str(error))
                    continue
                lines.figure("rows to the trainer", rows, "img/s", **of)
                lines.figure("bytes to the trainer", some_bytes / 1e9, "GB/s", **of)
                lines.check(f"class {name}: the transport was {transport}", used == transport, f"it says {used}")
                rows_by_decoder(lines, running.counts() - before, of)
        env = python_env(context, folder)
        for name in classes:
            for transport, framework in (("shm", "numpy"), ("cuda", "torch"), ("cuda", "jax")):
                framework_rate(context, lines, running, env, name, transport, framework, seconds)
        lines.figure("consumers' memories that could not be page-locked",
                     len(running.said("gpu.shared_not_pinned")), "")
    finally:
        running.close()
        utilisation(lines, engines, "transports")


def rows_by_decoder(lines, counts, of):
    """Reports who decoded the rows, and where threads' time went, until the worker's last heartbeat."""
    for what in ("all", "kept coefficients", "kept seek index", "rows_coefficients_total", "rows_codes_total",
                 *(f"rows_{name}_total" for name in service.DECODERS)):
        lines.figure("rows of a worker", counts[what], "", **of, by=what)
    lines.figure("time with a group on the GPU, of a worker", counts["busy STAGE_DEVICE"] / 1e9, "s", **of)
    for what in sorted(counts):
        if what.startswith("busy STAGE_") and what != "busy STAGE_DEVICE":
            lines.figure("threads' time, a row of a worker", counts[what] / 1e3 / max(1, counts["all"]), "us", **of,
                         stage=what.removeprefix("busy STAGE_").lower())


def framework_rate(context, lines, running, env, name, transport, framework, seconds):
    of = {"class": name, "transport": transport, "consumer": framework}
    why = f"no numpy in {sys.executable}" if env is None else ""
    if not why and framework != "numpy":
        why = without_gpu(framework, context)
    if why:
        lines.missing(f"rows to the trainer, class {name}, transport {transport}, {framework}", why)
        return
    try:
        answer = running.pull(name, framework, transport, env, "--rate-s", seconds)
    except RuntimeError as error:
        lines.check(f"class {name}, transport {transport}, {framework}", False, str(error))
        return
    lines.figure("rows to the trainer", answer["rate"], "img/s", **of)
    lines.figure("bytes to the trainer", answer["rate"] * answer["batch_bytes"] / batch(context) / 1e9, "GB/s", **of)
