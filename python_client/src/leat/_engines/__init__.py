# SPDX-License-Identifier: Apache-2.0
"""A worker below a process of another engine: `leat.ray` and `leat.dask` start workers by it.

The folder must not import Ray or Dask.

Begin reading at `daemon.py`. The folder is shown at work by `tests/python/unit/_engines/test_daemon.py`.
"""
