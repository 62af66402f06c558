# SPDX-License-Identifier: Apache-2.0
"""The service, its jobs, what it asks of its callers, and the commands of the wheel.

The folder must not import JAX or torch.

Begin reading at `client.py`, then `job.py`. The folder is shown at work by
`tests/python/unit/_service/test_client.py`.
"""
