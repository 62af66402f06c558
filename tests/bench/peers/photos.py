# SPDX-License-Identifier: Apache-2.0
"""Chooses the photos to measure: those named, those of LEAT_TEST_DATA, or drawn ones."""

import hashlib
import os
import pathlib
import shutil
import subprocess

DRAWN = 500


def files(folder):
    """Returns every .jpg and .jpeg below `folder`, sorted. Raises FileNotFoundError if there is none."""
    found = sorted(os.path.join(place, name) for place, _, names in os.walk(folder, followlinks=True)
                   for name in names if name.lower().endswith((".jpg", ".jpeg")))
    if not found:
        raise FileNotFoundError(f"{folder}: want .jpg or .jpeg files in it, or in folders of it")
    return found


def choose(named, maker, place):
    """Returns (folder, description of its contents). The program `maker` draws photos in `place`, once."""
    data = os.environ.get("LEAT_TEST_DATA")
    if named is None and not data:
        return drawn(maker, place), f"{DRAWN} photos drawn by leat_make_photos (--images DIR: real ones)"
    folder = pathlib.Path(named or pathlib.Path(data, "imagenet-sample")).resolve()
    try:
        return folder, f"{len(files(folder))} photos of {folder}"
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error} (by {'--images' if named else 'LEAT_TEST_DATA'})") from None


def drawn(maker, place):
    """Returns the folder of drawn photos; they are made beside it, so that a folder with its name is complete."""
    maker, place = pathlib.Path(maker), pathlib.Path(place)
    if not os.access(maker, os.X_OK):
        raise FileNotFoundError(f"no {maker} to draw photos: build target leat_make_photos, or give --images DIR")
    folder = place / f"photos-{DRAWN}-{hashlib.sha256(maker.read_bytes()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    making = place / "photos.making"
    for other in [making, *place.glob("photos-*")]:
        shutil.rmtree(other, ignore_errors=True)
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([maker, making, str(DRAWN)], capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(making, ignore_errors=True)
        raise OSError(f"{maker}: {(done.stderr.strip().splitlines() or [f'exit code {done.returncode}'])[-1]}")
    making.rename(folder)
    return folder
