# SPDX-License-Identifier: Apache-2.0
"""Loaders that one would use instead of Leat, measured by the same work on the same images and cores."""

BATCH, SIDE = 64, 224
AREA, ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)

# The yardstick, which is not a peer: bare libjpeg-turbo (jpeg_limit.cc).
LIMIT = "limit"
# Name -> module here, its function that gives batches, and the arguments that distinguish the function's peers.
PEERS = {
    "tfdata": ("of_tensorflow", "in_process", {}),
    "tfdata_cache": ("of_tensorflow", "cached", {}),
    "tfdata_service": ("of_tensorflow", "by_service", {}),
    "torch_pil": ("of_torch_pillow", "batches", {}),
    "torch_v2": ("of_torchvision", "batches", {}),
    "torchcodec": ("of_torchcodec", "batches", {}),
    "grain_pil": ("of_grain", "pillow", {}),
    "dali_cpu_fused": ("of_dali", "batches", {"fused": True}),
    "dali_cpu": ("of_dali", "batches", {"fused": False}),
    "ray_data": ("of_ray", "pillow", {}),
    "spdl": ("of_spdl", "batches", {}),
    "litdata": ("of_litdata", "batches", {}),
    "mosaic": ("of_mosaic", "batches", {}),
    "ffcv": ("of_ffcv", "batches", {}),
}
# Peers that read a format of their own, which their module's prepare() makes from the photos before timing starts.
PREPARED = ("litdata", "mosaic", "ffcv")
