# SPDX-License-Identifier: Apache-2.0
"""step.py NAME CONTEXT LINES: runs one step that is written in Python. runner.py starts it."""

import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import service_steps  # noqa: E402
import tool_steps  # noqa: E402
import trainer_steps  # noqa: E402
from findings import Lines  # noqa: E402
from runner import Context  # noqa: E402

STEPS = {"machine": tool_steps.describe, "photos": tool_steps.photos, "kernels": tool_steps.kernels,
         "memcheck": tool_steps.memcheck, "initcheck": tool_steps.initcheck, "torchvision": tool_steps.torchvision,
         "service": service_steps.same_bytes, "sharing": service_steps.sharing, "transports": service_steps.transports,
         "nvjpeg": tool_steps.watched("nvjpeg"), "slots": tool_steps.watched("slots"),
         "trainer": trainer_steps.trainer, "mps": trainer_steps.mps, "torch_graph": service_steps.torch_graph,
         "torch_streams": service_steps.torch_streams}


def main():
    name, context, lines = sys.argv[1:]
    given = json.loads(pathlib.Path(context).read_text())
    paths = {key: pathlib.Path(given[key]) for key in ("top", "folder", "photos")}
    context = Context(**paths, env=dict(os.environ), quick=given["quick"], fake=given["fake"])
    try:
        STEPS[name](context, Lines(lines))
    except (RuntimeError, AssertionError) as error:
        sys.exit(f"{type(error).__name__}: {error}"[:500])


if __name__ == "__main__":
    main()
