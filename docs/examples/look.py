# SPDX-License-Identifier: Apache-2.0
"""Looks at the batches of a job without a training: samples, rows, files, draws, and a sheet of the pictures.

    python docs/examples/look.py FOLDER
"""

import subprocess
import sys

import leat
from leat import fn


@leat.pipeline
def photos(folder: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=(96, 96))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}


def main(folder: str) -> None:
    with leat.connect() as service:
        job = service.job("look", photos(folder), batch=32, seed=7, replace=True)
        print(job.schema)

        sample = job.sample(0)  # one row's arrays; a notebook shows them as pictures
        print("sample 0:", sample["image"].shape, job.classes[sample["label"]])

        print("samples of step 2:", job.samples(epoch=0, step=2)[:6])
        row = job.why(step=2, row=5)
        assert row.record is not None
        print("row 5 of step 2:", row.record.path)
        for draw in row.draws:
            print(" ", draw.op, draw.name, draw.value)

        private = f"--private={service.get('private')['pid']}"  # this script's, should several run on the machine
        subprocess.run(["leat", private, "sheet", "look", "--step", "2", "-o", "sheet.png"], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
