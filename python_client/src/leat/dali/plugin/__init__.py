# SPDX-License-Identifier: Apache-2.0
"""Iterators over pipelines, for JAX and PyTorch; each is imported by its own name."""
