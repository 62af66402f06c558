# SPDX-License-Identifier: Apache-2.0
"""The package over the real library and daemons, as a private service; LEAT_NATIVE_DIR is their folder."""

import base64
import hashlib
import os
import pathlib
import time

import pytest
import test_data

import leat
from leat import fn

# Tests that run at the same time, also in other trees, share no service.
os.environ["LEAT_PRIVATE_NAME"] = f"tests-{os.getpid()}"

# 32 × 24 pixels.
TINY_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4x9"
    "lnN+gXz/2wBDARUXFx4aHjshITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHz/wAARCAAYACAD"
    "ASIAAhEBAxEB/8QAFwABAQEBAAAAAAAAAAAAAAAABAADBv/EABcQAAMBAAAAAAAAAAAAAAAAAAADBGH/xAAYAQADAQEAAAAAAAAAAAAAAAACAwUE"
    "Bv/EABcRAAMBAAAAAAAAAAAAAAAAAAABAwL/2gAMAwEAAhEDEQA/AOZXPglc+C1z4JXPgK0DG4Rc+CVz4LXPglc+DForRuYLnwSufCIyJnIx2xK5"
    "8ErnwiGJleO2f//Z"
)


def pytest_collection_modifyitems(items):
    if leat.__version__.endswith("-fake"):
        raise pytest.UsageError("these tests need LEAT_NATIVE_DIR to be the folder of the real libleat.so and daemons")


def children_of(parent):
    """Returns process numbers, by the program that they run."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            program = os.readlink(entry / "exe") if entry.name.isdigit() else ""
            status = (entry / "status").read_text() if "leat-" in program else ""
        except OSError:
            continue
        if f"\nPPid:\t{parent}\n" in status:
            found[int(entry.name)] = pathlib.Path(program).name
    return found


def daemons_of(service):
    """Returns process numbers of a private service's daemons, by program."""
    return children_of(service.get("private")["pid"])


def wait_until_gone(pids, seconds=20):
    deadline = time.monotonic() + seconds
    while any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def make_folder(root, files, classes=4):
    """Makes `files` pictures in `classes` sub-folders; sample i has label i * classes // files."""
    for i in range(files):
        folder = root / f"class{i * classes // files}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i:04}.jpg").write_bytes(TINY_JPEG)
    return root


@leat.pipeline
def train(path, size=16):
    encoded, label = fn.readers.image_folder(path)
    image = fn.random_resized_crop(fn.decode(encoded), size=size)
    image = fn.flip(image, horizontal=fn.coin_flip(0.5))
    return {"image": image, "label": label}


def digest(batch):
    """Returns the oracle hash of a batch: each field's name, a zero byte and its bytes."""
    sha = hashlib.sha256()
    for name, array in batch.items():
        sha.update(name.encode() + b"\0" + array.tobytes())
    return sha.hexdigest()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("pictures"), 100)


@pytest.fixture(scope="session")
def ten(tmp_path_factory):
    """Makes ten files of ten classes: the label is the file's number."""
    return make_folder(tmp_path_factory.mktemp("ten"), 10, classes=10)


@pytest.fixture(scope="session")
def photos():
    return test_data.made("imagenet-sample")


@pytest.fixture(scope="session")
def service():
    with leat.connect() as service:
        yield service


@pytest.fixture(scope="session")
def job(service, folder):
    return service.job("tiny", train(folder), batch=16, seed=7)
