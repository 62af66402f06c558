# SPDX-License-Identifier: Apache-2.0
"""The library libleat.so, its memory as arrays, and waits for it that Ctrl-C ends.

The folder must not know pipelines, jobs or frameworks.

Begin reading at `native.py`: every call of the library goes through it. The folder is shown at work by
`tests/python/unit/_library/test_dlpack.py` and `test_interrupted_calls.py`.
"""
