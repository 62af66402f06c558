# SPDX-License-Identifier: Apache-2.0
"""SIGINT ends every wait of the package. Each test interrupts a process of its own."""

import signal
import subprocess
import sys

import pytest

INTERRUPTED = """
import ctypes, os, sys, leat
from leat import fn
library = ctypes.CDLL(os.path.join(os.environ["LEAT_NATIVE_DIR"], "libleat.so"))
library.fake_set_delay.argtypes = [ctypes.c_double]
job = leat.connect().job("a", leat.pipeline(lambda: fn.readers.image_folder("/x")[1]), batch=10)
it = job.batches()
library.fake_set_delay(600)
try:
    print("waiting", flush=True)
    next(it)
except KeyboardInterrupt:
    library.fake_set_delay(0)
    assert next(it)["label"][0] == 0
    sys.exit(42)
"""


def test_control_c_works_while_waiting():
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "waiting\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=30) == 42


def test_control_c_works_while_a_job_is_made():
    head, _, _ = INTERRUPTED.partition("job = ")
    code = head + """
service = leat.connect()
library.fake_set_delay(600)
pipeline = leat.pipeline(lambda: fn.readers.image_folder("/x")[1])
try:
    print("waiting", flush=True)
    service.job("slow", pipeline, batch=10)
except KeyboardInterrupt:
    service.job("quick", pipeline, batch=10)
    sys.exit(42)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "waiting\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=30) == 42


WAITS = {
    "a job": ("pass", 'service.job("slow", pipeline, batch=10)'),
    "a batch": ("it = job.batches(epochs=0)", "all(it)"),
    "a placed batch": (
        "import jax, leat.jax; it = leat.jax.batches(job, devices=jax.devices()[:1], epochs=0); next(it)",
        "all(it)",
    ),
}


@pytest.mark.parametrize("before, wait", WAITS.values(), ids=WAITS)
def test_control_c_in_the_moment_before_a_wait_ends_it(before, wait):
    """Such a signal ends no system call of the main thread; here, because another thread gets it."""
    if "jax" in before:
        pytest.importorskip("jax")
    head, _, _ = INTERRUPTED.partition("job = ")
    code = f"""
import _thread, signal, time
_thread.start_new_thread(time.sleep, (600,))
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGINT}})
{head}
service = leat.connect()
pipeline = leat.pipeline(lambda: fn.readers.image_folder("/x")[1])
job = service.job("quick", pipeline, batch=10)
{before}
library.fake_set_delay(600)
_thread.start_new_thread(lambda: (time.sleep(0.5), os.kill(os.getpid(), signal.SIGINT)), ())
try:
    {wait}
except KeyboardInterrupt:
    os._exit(42)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 42


def test_the_interpreter_may_end_with_batches_alive():
    code = INTERRUPTED.partition("library.fake_set_delay(600)")[0] + "keep = next(it); import sys; sys.keep = keep, it"
    subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", code], check=True, timeout=60)
