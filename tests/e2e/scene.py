# SPDX-License-Identifier: Apache-2.0
"""leat_scene, a coordinator with a simulated clock; and pictures of its page that are small enough for the docs."""

import base64
import os
import struct
import subprocess
import zlib

import cluster
from cluster import PATIENCE_S, program

AT_S = 1772445600  # 2026-03-02 10:00 UTC
WIDTHS = (1400, 400)


class Scene:
    """A scene of scene.cc, always at the same time of day, unless another one is given."""

    def __init__(self, name, at_s=AT_S):
        self.process = subprocess.Popen([program("SCENE"), name, str(at_s)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0, env={**os.environ, "TZ": "UTC"})
        self.http, self.grpc = cluster.read_line(self.process.stdout, "leat_scene").split()
        self.page = f"http://{self.http}/"

    def goes_on(self, seconds):
        self.process.stdin.write(f"{seconds}\n".encode())
        line = cluster.read_line(self.process.stdout, "leat_scene")
        if line != "ready":
            raise AssertionError(f"leat_scene said {line!r}")

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()


# The bytes of a picture's pixels, unpacked by a browser.
PIXELS = """const done = arguments[1];
fetch("data:image/png;base64," + arguments[0]).then((answer) => answer.blob()).then(createImageBitmap).then((image) => {
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const reader = new FileReader();
  reader.onload = () => done([image.width, image.height, reader.result.split(",")[1]]);
  reader.readAsDataURL(new Blob([data]));
});"""


def small_png(browser, picture, most=None):
    """Reduces a picture that the browser has made to 256 colours at most, which takes a third of the bytes.

    `picture` is in base64; the result has its first `most` lines.
    """
    import numpy
    browser.open("about:blank")
    width, height, pixels = browser.driver.execute_async_script(PIXELS, picture)
    pixels = numpy.frombuffer(base64.b64decode(pixels), numpy.uint8).reshape(height, width, 4)
    height = min(height, most or height)
    pixels = pixels[:height, :, :3].reshape(-1, 3).astype(numpy.int32)
    colours, places, counts = numpy.unique(pixels[:, 0] << 16 | pixels[:, 1] << 8 | pixels[:, 2],
                                           return_inverse=True, return_counts=True)
    # The most frequent colours; the others become the nearest of these.
    colours = numpy.stack([colours >> 16, colours >> 8 & 255, colours & 255], 1)
    palette = colours[numpy.argsort(-counts)[:256]]
    nearest = [numpy.abs(palette - colour).sum(1).argmin() for colour in colours]
    places = numpy.array(nearest, numpy.uint8)[places]
    lines = numpy.zeros((height, width + 1), numpy.uint8)
    lines[:, 1:] = places.reshape(height, width)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
            + chunk(b"PLTE", palette.astype(numpy.uint8).tobytes())
            + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b""))
