# SPDX-License-Identifier: Apache-2.0
"""Batches as arrays of JAX and of torch, from host memory or in that of GPUs.

A module here imports its framework, so nothing that is imported without it may import the module.

The folder must not know how a service is found or a job is made.

Begin reading at `assembling.py`, which makes a global array of a batch; `jax_device.py` and `torch_device.py` are for
batches that are in a GPU's memory already. The folder is shown at work by `tests/python/unit/_arrays/`.
"""
