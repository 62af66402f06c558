# SPDX-License-Identifier: Apache-2.0
"""The one exception of this package."""


class BuildError(Exception):
    """The package cannot be built; the text says why, and what to do."""
