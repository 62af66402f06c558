# SPDX-License-Identifier: Apache-2.0
"""The batches of a job one after another, and the samples that this process feeds to a job.

The folder must not know how a service is found, JAX or torch; `array_spec.py` alone takes a type of CLU's.

Begin reading at `batches.py`, whose head says why Ctrl-C neither loses nor repeats a batch. The folder is shown at work
by `tests/python/unit/_iterators/test_batches.py` and `test_interrupts.py`.
"""
