# SPDX-License-Identifier: Apache-2.0
"""Runs programs of docs/examples, and checks their losses; tests/docs/run calls it in an environment of its own.

Each case is a function named after its program. It returns a line that says what was checked.
"""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs/examples"
REPORT = EXAMPLES / "last_run.txt"
PACKAGES = ("torch", "torchdata", "lightning", "accelerate", "transformers", "keras", "jax", "numpy", "pyarrow",
            "array_record", "lmdb", "mosaicml-streaming")
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2")
_LIMIT_S = 300


class Failed(Exception):
    """A program or a check failed."""


def python(*arguments, until=None, **environment):
    """Returns the output of a program; with `until` the program is killed when it has printed these words."""
    # A file, since processes that a launcher leaves behind would keep a pipe open.
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, *arguments], stdout=output, stderr=subprocess.STDOUT,
                                   env={**os.environ, "OMP_NUM_THREADS": "1", **environment})

        def text():
            output.seek(0)
            return output.read()

        end = time.monotonic() + _LIMIT_S
        while process.poll() is None and time.monotonic() < end and not (until and until in text()):
            time.sleep(0.002)
        killed = process.poll() is None
        if killed:
            process.kill()
        process.wait()
        if killed != bool(until) or (not until and process.returncode != 0):
            raise Failed(f"{' '.join(map(str, arguments))}: exit code {process.returncode}\n{text()[-3000:]}")
        return text()


def losses(text):
    return [float(loss) for loss in re.findall(r"\bloss'?:? '?([\d.]+)", text)]


def check_falling(text, count):
    found = losses(text)
    if len(found) != count or not found[-1] < found[0]:
        raise Failed(f"losses {found}; expected {count} that fall")
    return found


def check_same(found, expected, what):
    if len(found) != len(expected) or any(abs(a - b) > 2e-3 for a, b in zip(found, expected)):
        raise Failed(f"{what}: losses {found}; expected {expected}")


def train_torch(photos):
    check_falling(python(EXAMPLES / "train_torch.py", photos), 4)
    return "losses fall"


def train_torchrun(photos):
    check_falling(python(*TORCHRUN, EXAMPLES / "train_torchrun.py", photos), 4)
    return "2 processes, losses fall"


def transformer_torchrun(_):
    program = EXAMPLES / "transformer_torchrun.py"
    whole = python(*TORCHRUN, program, "whole")
    python(*TORCHRUN, program, "stopped", "--stop", "25")
    shutil.copytree("stopped", "one")
    steps = [line for line in whole.splitlines() if line.startswith("epoch ")]
    check_falling(whole, 38)
    again = python(*TORCHRUN, program, "stopped")
    if [line for line in again.splitlines() if line.startswith("epoch ")] != steps[25:]:
        raise Failed(f"resumed on 2 processes\n{again[-2000:]}")
    check_same(losses(python(program, "one", RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")),
               losses(whole)[25:], "resumed on 1 process")
    return "stopped and resumed on 2 processes, same losses bit for bit; on 1 process"


def train_lightning(photos):
    program = EXAMPLES / "train_lightning.py"
    one = check_falling(python(program, photos), 4)
    two = python(program, photos, "--devices", "2")
    check_same(losses(two), one, "2 processes")
    if "MEMBER: 2/2" not in two:
        raise Failed(f"train_lightning ran on one process\n{two[-2000:]}")
    shutil.rmtree("checkpoints")
    python(program, photos, until="epoch 1:")
    rest = losses(python(program, photos, "--resume", "checkpoints/last.ckpt"))
    check_same(rest[-1:], one[-1:], "after a kill")
    return "1 and 2 processes have the same losses; killed and resumed"


def train_accelerate(photos):
    program = EXAMPLES / "train_accelerate.py"
    one = check_falling(python(program, photos, "whole"), 4)
    python(program, photos, "killed", until="epoch 1:")
    text = python(*TORCHRUN, program, photos, "killed")
    check_same(losses(text), one[-len(losses(text)):], "resumed on 2 processes")
    if "2 processes" not in text:
        raise Failed(f"train_accelerate ran on one process\n{text[-2000:]}")
    return "killed on 1 process and resumed on 2, same losses"


def train_transformers(photos):
    program = EXAMPLES / "train_transformers.py"
    one = check_falling(python(program, photos, "one"), 12)
    check_same(losses(python(*TORCHRUN, program, photos, "two")), one, "2 processes")
    python(program, photos, "killed", until="'epoch': '2'")
    rest = losses(python(program, photos, "killed"))
    check_same(rest, one[-len(rest):], "after a kill")
    return "1 and 2 processes have the same losses; killed and resumed"


def train_keras(photos):
    for backend in ("torch", "jax"):
        check_falling(python(EXAMPLES / "train_keras.py", photos, KERAS_BACKEND=backend), 4)
    return "backends torch and jax, losses fall"


def resume_torch(photos):
    program = EXAMPLES / "resume_torch.py"
    one = check_falling(python(program, photos, "whole.pt"), 12)
    python(program, photos, "killed.pt", until="step 8:")
    rest = losses(python(program, photos, "killed.pt"))
    check_same(rest, one[-len(rest):], "after a kill")
    return "killed and resumed, same losses"


def formats_packages(photos):
    text = python(EXAMPLES / "formats_packages.py")
    names = re.findall(r"^(\w+): 12 samples", text, re.M)
    if names != ["parquet", "mds", "array_record", "caffe"]:
        raise Failed(f"formats {names}\n{text[-2000:]}")
    return ", ".join(names)


CASES = (train_torch, train_torchrun, transformer_torchrun, train_lightning, train_accelerate, train_transformers,
         train_keras, resume_torch, formats_packages)


def few(folder):
    """Makes a folder of 25 classes with four photos each."""
    for each in sorted(pathlib.Path(os.environ["LEAT_MADE_DATA"], "imagenet-sample").iterdir())[:25]:
        shutil.copytree(each, folder / each.name)
    return str(folder)


def write_report(results):
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    lines = [f"tests/docs/run on {datetime.date.today()}, Python {platform.python_version()}: all passed", "", versions,
             "", *results]
    REPORT.write_text("\n".join(lines) + "\n")


def main(names):
    known = {case.__name__: case for case in CASES}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"docs: no program {unknown[0]}; there are: {' '.join(known)}")
    results, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        photos = few(pathlib.Path(folder, "photos"))
        for name in names or known:
            work = pathlib.Path(folder, name)
            work.mkdir()
            os.chdir(work)
            try:
                results.append(f"{name}: {known[name](photos)}")
                print(results[-1], flush=True)
            except Failed as failure:
                failed += 1
                print(f"{name} FAILED: {failure}", flush=True)
        os.chdir(ROOT)
    if not failed and not names:
        write_report(results)
    print(f"{len(results)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
