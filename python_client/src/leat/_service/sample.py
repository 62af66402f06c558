# SPDX-License-Identifier: Apache-2.0
"""Sample: the arrays of one row, which a notebook shows."""

import numpy as np

from leat._service import show


class Sample(dict[str, np.ndarray]):
    """The arrays of one row."""

    def _repr_html_(self) -> str:
        return show.sample(self)
