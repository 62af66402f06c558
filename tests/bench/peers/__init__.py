# SPDX-License-Identifier: Apache-2.0
"""What one would take instead of Leat, measured by the same work on the same images and cores."""

BATCH, SIDE = 64, 224
AREA, ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)

# The yardstick, which is no peer: bare libjpeg-turbo (jpeg_limit.cc).
LIMIT = "limit"
# Name -> module here, its function that gives batches, and what tells the function's peers apart.
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
# Those that read a format of their own, which their module's prepare() makes of the photos before anything is timed.
PREPARED = ("litdata", "mosaic", "ffcv")
