# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.data_node`: the module that scripts for DALI import `DataNode` from."""

from leat.dali._node import DataNode

__all__ = ["DataNode"]
