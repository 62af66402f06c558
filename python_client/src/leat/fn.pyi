# SPDX-License-Identifier: Apache-2.0
# Written by `python -m leat._stubs`; a test compares it with the library.
from collections.abc import Sequence
from typing import Literal

from leat._graph import Node as Node

def decode(input: Node, /, output: Literal['rgb', 'gray'] = 'rgb', orient: bool = True) -> Node:
    """encoded image -> uint8 (height, width, 3 or 1).

    Args:
        input: a node (positional)
        output: colours of the result (string; one of 'rgb', 'gray'; default 'rgb')
        orient: turn the image as its EXIF orientation says (bool; default True)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def random_resized_crop(input: Node, /, size: int | Sequence[int], area: float | Sequence[float] = (0.08, 1.0), aspect: float | Sequence[float] = (0.75, 1.3333333333333333), attempts: int = 10, interpolation: Literal['linear', 'nearest', 'cubic', 'lanczos3'] = 'linear', antialias: bool = True) -> Node:
    """a random window, resized. Draws anew for each sample and epoch.

    Args:
        input: a node (positional)
        size: height and width of the result, or one number for both (ints; 1 … 65500; required)
        area: least and largest part of the image's area (floats; 1e-06 … 1; default (0.08, 1.0))
        aspect: least and largest width / height; drawn log-uniformly (floats; 0.001 … 1000; default (0.75, 1.3333333333333333))
        attempts: windows drawn before the central one is taken (int; 1 … 100; default 10)
        interpolation: the filter; cubic has a = -0.5 (string; one of 'linear', 'nearest', 'cubic', 'lanczos3'; default 'linear')
        antialias: widen the filter by the scale when shrinking, as Pillow does; nearest never is (bool; default True)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def resize(input: Node, /, size: int | Sequence[int], mode: Literal['stretch', 'not_smaller', 'not_larger'] = 'stretch', interpolation: Literal['linear', 'nearest', 'cubic', 'lanczos3'] = 'linear', antialias: bool = True) -> Node:
    """the whole image, resized.

    Args:
        input: a node (positional)
        size: height and width, or one number for both (ints; 1 … 65500; required)
        mode: stretch: exactly size; otherwise the aspect is kept and size is the least, or the largest (string; one of 'stretch', 'not_smaller', 'not_larger'; default 'stretch')
        interpolation: the filter; cubic has a = -0.5 (string; one of 'linear', 'nearest', 'cubic', 'lanczos3'; default 'linear')
        antialias: widen the filter by the scale when shrinking, as Pillow does; nearest never is (bool; default True)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def crop(input: Node, /, size: int | Sequence[int], pos_y: float | Node = 0.5, pos_x: float | Node = 0.5) -> Node:
    """a window of the image; an image smaller than it is a bad sample.

    Args:
        input: a node (positional)
        size: height and width, or one number for both (ints; 1 … 65500; required)
        pos_y: 0: at the top, 1: at the bottom (float, or a node: one value a sample; 0 … 1; default 0.5)
        pos_x: 0: at the left, 1: at the right (float, or a node: one value a sample; 0 … 1; default 0.5)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def flip(input: Node, /, horizontal: bool | Node = True, vertical: bool | Node = False) -> Node:
    """the image mirrored.

    Args:
        input: a node (positional)
        horizontal: mirror left and right (bool, or a node: one value a sample; default True)
        vertical: mirror top and bottom (bool, or a node: one value a sample; default False)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def coin_flip(probability: float = 0.5) -> Node:
    """a random bool a sample. Draws anew for each sample and epoch.

    Args:
        probability: of true (float; 0 … 1; default 0.5)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def uniform(low: float = 0.0, high: float = 1.0) -> Node:
    """a random float32 a sample. Draws anew for each sample and epoch.

    Args:
        low: least value (float; default 0.0)
        high: upper bound, excluded (float; default 1.0)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def normalize(input: Node, /, mean: float | Sequence[float], std: float | Sequence[float], scale: float = 1.0, shift: float = 0.0, dtype: Literal['float32', 'float16'] = 'float32') -> Node:
    """(x - mean) * (scale / std) + shift.

    Args:
        input: a node (positional)
        mean: one number, or one a channel (floats; required)
        std: one number, or one a channel (floats; 1e-30 … 1e+30; required)
        scale: factor of the result (float; default 1.0)
        shift: added to the result (float; default 0.0)
        dtype: type of the result (string; one of 'float32', 'float16'; default 'float32')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def cast(input: Node, /, dtype: Literal['bool', 'uint8', 'int32', 'int64', 'float16', 'float32']) -> Node:
    """the same values in another type.

    Args:
        input: a node (positional)
        dtype: type of the result; to integers: halves to even, saturated (string; one of 'bool', 'uint8', 'int32', 'int64', 'float16', 'float32'; required)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def transpose(input: Node, /, perm: int | Sequence[int]) -> Node:
    """the axes in another order.

    Args:
        input: a node (positional)
        perm: axis i of the result is axis perm[i] of the input (ints; 0 … 7; required)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

class readers:
    @staticmethod
    def image_folder(path: str, repeat: int = 1) -> tuple[Node, Node]:
        """JPEG files of a folder of classes -> encoded image, label (int32).

        Args:
            path: the folder; its sub-folders in byte order are the classes 0, 1, … (string; required)
            repeat: how often an epoch passes over the files (int; 1 … 1e+09; default 1)

        Returns:
            A tuple of 2 nodes.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """
