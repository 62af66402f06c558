# SPDX-License-Identifier: Apache-2.0
"""Pipelines as graphs, the table of operators, and the pages that are written from this table.

`options.py` checks the arguments of all calls, since its errors name the nearest choice as those of operators do.

The folder must not know services, jobs or batches.

Begin reading at `graph.py`, then `operators.py`. The folder is shown at work by
`tests/python/unit/_graphs/test_pipeline.py`.
"""
