# SPDX-License-Identifier: Apache-2.0
"""The program of docs/run/ray.md that starts a pool of Ray, which the test of the engine runs on this machine."""

import leat.ray
import ray

ray.init("auto")
files = {"access_token_file": "/etc/leat/token", "tls_ca": "/etc/leat/ca.pem",
         "tls_cert": "/etc/leat/{host}.pem", "tls_key": "/etc/leat/{host}.key"}
pool = leat.ray.Pool("cpu", min=1, max=16, cpus=4, coordinator="head:7411", flags=["--allow=/data"], **files)
pool.up()
