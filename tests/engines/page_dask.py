# SPDX-License-Identifier: Apache-2.0
"""The program of docs/run/ray.md that starts Dask's workers, which the test of the engine runs on this machine."""

import distributed
import leat.dask

files = {"access_token_file": "/etc/leat/token", "tls_ca": "/etc/leat/ca.pem",
         "tls_cert": "/etc/leat/{host}.pem", "tls_key": "/etc/leat/{host}.key"}
client = distributed.Client("scheduler:8786")
client.register_plugin(leat.dask.Workers("cpu", threads=2, coordinator="head:7411", flags=["--allow=/data"], **files))
