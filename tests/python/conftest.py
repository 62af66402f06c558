# SPDX-License-Identifier: Apache-2.0
"""Sets up eight emulated CPU devices, no service of the developer's own, and the modules of tests/support."""

import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
_CREDENTIALS = "LEAT_ACCESS_TOKEN", "LEAT_ACCESS_TOKEN_FILE", "LEAT_TLS_CA", "LEAT_TLS_CERT", "LEAT_TLS_KEY"
for name in ("LEAT_COORDINATOR", *_CREDENTIALS):
    os.environ.pop(name, None)
