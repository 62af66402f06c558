# SPDX-License-Identifier: Apache-2.0
"""The compiled part of JAX. What is not named here is not known, and not wrong."""

from typing import Any

class Device:
    id: int
    platform: str
    process_index: int

class Client: ...

class pytree:
    class PyTreeDef: ...

def __getattr__(name: str) -> Any: ...
