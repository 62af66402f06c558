# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.data_node`: where scripts of DALI import `DataNode` from."""

from leat.dali._node import DataNode

__all__ = ["DataNode"]
