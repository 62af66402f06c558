# SPDX-License-Identifier: Apache-2.0
"""selection_puller.py KIND PATH: a trainer without a model, of a dataset and of a selection of it, for packing.py.

KIND is `where` (photos in the folder PATH, and those of them that a condition chooses, which are all), `tokens` (the
same for the token file PATH) or `balanced` (photos, and the same with classes in balance). Both jobs are pulled in
slices that take turns. It prints a line "RESULT {json}" with the ratio of the selection's rows a second to the plain
ones.
"""

import argparse
import json
import statistics

from source_puller import BATCH, SLICES, WARM, photos, slice_rate, take
from token_files import LENGTH

import leat
from leat import fn


@leat.pipeline
def token_rows(file):
    tokens = fn.readers.tokens([file])
    return {"tokens": fn.slice(tokens, start=[0], shape=[LENGTH], out_of_bounds_policy="pad")}


def pipelines(kind, path):
    """Returns a pipeline, and a selection of it."""
    if kind == "tokens":
        return token_rows(path), token_rows(path).select(where="length >= 1")
    if kind == "where":
        return photos(path, 224), photos(path, 224).select(where='name like "*"')
    return photos(path, 224), photos(path, 224).select(weights="balanced")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("where", "tokens", "balanced"))
    parser.add_argument("path")
    parser.add_argument("--address", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    args = parser.parse_args()
    with leat.connect(args.address) as service:
        plain, selected = (service.job(name, pipeline, batch=BATCH, seed=7).batches(epochs=0)
                           for name, pipeline in zip(("plain", "selected"), pipelines(args.kind, args.path)))
        with plain, selected:
            for batches in (plain, selected):  # a pass, which fills the caches
                take(batches, WARM)
            slices = [[slice_rate(batches, 2 * args.seconds / SLICES) for batches in (plain, selected)]
                      for _ in range(SLICES)]
    ratio = statistics.median(selected / plain for plain, selected in slices)
    print("RESULT", json.dumps({"ratio": ratio, "slices": slices}), flush=True)


if __name__ == "__main__":
    main()
