# SPDX-License-Identifier: Apache-2.0
"""Photos from a SQLite database, which the training script reads itself and the workers decode.

    python docs/examples/own_source.py FOLDER    # the program first copies the photos into photos.db
"""

import pathlib
import sqlite3
import sys

import leat
from leat import fn

FILE = "photos.db"


def copy(folder: str) -> None:
    photos = sorted(file for file in pathlib.Path(folder).glob("*/*") if file.suffix.lower() in {".jpg", ".jpeg"})
    if not photos:
        sys.exit(f"{folder}: want a folder of each class, with .jpg or .jpeg files")
    classes = sorted({photo.parent.name for photo in photos})
    pathlib.Path(FILE).unlink(missing_ok=True)
    with sqlite3.connect(FILE) as database:
        database.execute("CREATE TABLE photos (number INTEGER PRIMARY KEY, file BLOB, label INTEGER)")
        rows = ((number, photo.read_bytes(), classes.index(photo.parent.name)) for number, photo in enumerate(photos))
        database.executemany("INSERT INTO photos VALUES (?, ?, ?)", rows)


class Photos:
    """A sequence of samples. A thread of Leat's calls it, so the connection may be used by any thread."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(FILE, check_same_thread=False)

    def __len__(self) -> int:
        return self.database.execute("SELECT COUNT(*) FROM photos").fetchone()[0]

    def __getitem__(self, number: int) -> tuple[bytes, int]:
        return self.database.execute("SELECT file, label FROM photos WHERE number = ?", (number,)).fetchone()


@leat.pipeline
def pipeline(source: Photos) -> dict[str, leat.Node]:
    encoded, label = leat.external_source(source, ("encoded", "int32"), name="photos.db, version 1")
    return {"image": fn.random_resized_crop(fn.decode(encoded), size=(64, 64)), "label": label}


def main(folder: str) -> None:
    copy(folder)
    with leat.connect() as service:
        job = service.job("own-source", pipeline(Photos()), batch=32, seed=7)
        print(job)
        for step, batch in enumerate(job.batches(epochs=1)):
            print(f"step {step}: {batch['image'].shape}, labels {batch['label'][:4]}")


if __name__ == "__main__":
    main(sys.argv[1])
