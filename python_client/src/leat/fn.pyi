# SPDX-License-Identifier: Apache-2.0
# Written by `python -m leat._graphs.stubs`; a test compares it with the library.
from collections.abc import Sequence
from typing import Literal

from leat._graphs.compositions import cutmix as cutmix
from leat._graphs.compositions import mixup as mixup
from leat._graphs.graph import Node as Node

def decode(input: Node, /, output: Literal['rgb', 'gray', 'bgr', 'ycbcr'] = 'rgb', orient: bool = True, reduce: Literal['none', 'auto'] = 'none') -> Node:
    """encoded image -> uint8 (height, width, 3 or 1); JPEG, PNG, WebP, BMP, TIFF, JPEG 2000; 16 bits are scaled to 8, alpha is dropped.

    Args:
        input: a node (positional)
        output: colours of the result; ycbcr: BT.601, Y in 16 to 235 (string; one of 'rgb', 'gray', 'bgr', 'ycbcr'; default 'rgb')
        orient: turn the image as its EXIF orientation says (bool; default True)
        reduce: auto: a JPEG is decoded at 1/2, 1/4 or 1/8 where the resize behind it shrinks by as much or more, which is faster and not exactly the same picture; between them there may be crop, random_crop and window. Other formats are decoded whole (string; one of 'none', 'auto'; default 'none')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def random_resized_crop(input: Node, /, size: int | Sequence[int], area: float | Sequence[float] = (0.08, 1.0), aspect: float | Sequence[float] = (0.75, 1.3333333333333333), attempts: int = 10, interpolation: Literal['linear', 'nearest', 'cubic', 'lanczos3', 'gaussian'] = 'linear', antialias: bool = True, rule: Literal['pillow', 'dali'] = 'pillow') -> Node:
    """a random window, resized. Draws anew for each sample and epoch.

    Args:
        input: a node (positional)
        size: height and width of the result, or one number for both (ints; 1 … 65,500; required)
        area: least and largest part of the image's area (floats; 1e-06 … 1; default (0.08, 1.0))
        aspect: least and largest width / height; drawn log-uniformly (floats; 0.001 … 1,000; default (0.75, 1.3333333333333333))
        attempts: windows drawn before the central one is taken (int; 1 … 100; default 10)
        interpolation: the filter; cubic has a = -0.5, gaussian is exp(-4 x²) cut off at 1 (string; one of 'linear', 'nearest', 'cubic', 'lanczos3', 'gaussian'; default 'linear')
        antialias: widen the filter by the scale when shrinking, as Pillow does; nearest never is (bool; default True)
        rule: the arithmetic. pillow: fixed point, bytes between the passes, what lies outside the image does not count; fastest, and on GPUs, too. dali: float32, the edge goes on outside the image, linear between a filter's points, the cheaper pass first; a random window is a region, whose surroundings count (string; one of 'pillow', 'dali'; default 'pillow')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def resize(input: Node, /, size: int | Sequence[int] = (), mode: Literal['stretch', 'not_smaller', 'not_larger', 'default'] = 'stretch', interpolation: Literal['linear', 'nearest', 'cubic', 'lanczos3', 'gaussian'] = 'linear', antialias: bool = True, shorter: float | Node = 0.0, longer: float | Node = 0.0, max_size: int | Sequence[int] = (), roi_start: float | Sequence[float] = (), roi_end: float | Sequence[float] = (), roi_relative: bool = False, subpixel_scale: bool = False, min_filter: Literal['same', 'linear', 'nearest', 'cubic', 'lanczos3', 'gaussian'] = 'same', mag_filter: Literal['same', 'linear', 'nearest', 'cubic', 'lanczos3', 'gaussian'] = 'same', rule: Literal['pillow', 'dali'] = 'pillow') -> Node:
    """the image, or a region of it, resized; exactly one of size, shorter and longer.

    Args:
        input: a node (positional)
        size: height and width, or one number for both; 0: that side follows by the mode (ints; 0 … 65,500; default ())
        mode: stretch: exactly size, and a side of 0 stays as it is; default: exactly size, and a side of 0 keeps the aspect; otherwise the aspect is kept and size is the least, or the largest (string; one of 'stretch', 'not_smaller', 'not_larger', 'default'; default 'stretch')
        interpolation: the filter; cubic has a = -0.5, gaussian is exp(-4 x²) cut off at 1 (string; one of 'linear', 'nearest', 'cubic', 'lanczos3', 'gaussian'; default 'linear')
        antialias: widen the filter by the scale when shrinking, as Pillow does; nearest never is (bool; default True)
        shorter: length of the shorter side, the aspect is kept; 0: not given (float, or a node: one value a sample; 0 … 65,500; default 0.0)
        longer: length of the longer side, the aspect is kept; 0: not given (float, or a node: one value a sample; 0 … 65,500; default 0.0)
        max_size: greatest height and width, or one number for both; the aspect is kept where the mode, shorter or longer keeps it; none: no limit (ints; 1 … 65,500; default ())
        roi_start: upper left corner of the region that is resized: y and x, or one number for both; none: all of the image. Pixels around the region count where the filter reaches them (floats; 0 … 65,500; default ())
        roi_end: its lower right corner; a region beyond the image is a bad sample (floats; 0 … 65,500; default ())
        roi_relative: roi_start and roi_end are shares of the height and width (bool; default False)
        subpixel_scale: where a side is rounded, the region is widened or narrowed, so that both sides keep one scale, as DALI does (bool; default False)
        min_filter: the filter along a side that becomes smaller; same: interpolation (string; one of 'same', 'linear', 'nearest', 'cubic', 'lanczos3', 'gaussian'; default 'same')
        mag_filter: the filter along a side that does not; same: interpolation (string; one of 'same', 'linear', 'nearest', 'cubic', 'lanczos3', 'gaussian'; default 'same')
        rule: the arithmetic. pillow: fixed point, bytes between the passes, what lies outside the image does not count; fastest, and on GPUs, too. dali: float32, the edge goes on outside the image, linear between a filter's points, the cheaper pass first; a random window is a region, whose surroundings count (string; one of 'pillow', 'dali'; default 'pillow')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def crop(input: Node, /, size: int | Sequence[int], pos_y: float | Node = 0.5, pos_x: float | Node = 0.5) -> Node:
    """a window of the image; an image smaller than it is a bad sample.

    Args:
        input: a node (positional)
        size: height and width, or one number for both (ints; 1 … 65,500; required)
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

def random_crop(input: Node, /, area: float | Sequence[float] = (0.08, 1.0), aspect: float | Sequence[float] = (0.75, 1.3333333333333333), attempts: int = 10) -> Node:
    """a random window; its size differs from sample to sample. Behind a decode, no more than it is decoded. Draws anew for each sample and epoch.

    Args:
        input: a node (positional)
        area: least and largest part of the image's area (floats; 1e-06 … 1; default (0.08, 1.0))
        aspect: least and largest width / height; drawn log-uniformly (floats; 0.001 … 1,000; default (0.75, 1.3333333333333333))
        attempts: windows drawn before the central one is taken (int; 1 … 100; default 10)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def window(input: Node, /, height: float | Node, width: float | Node, y: float | Node = 0.0, x: float | Node = 0.0, normalized_anchor: bool = False, normalized_shape: bool = False) -> Node:
    """the window of the image at a place, of a size; one that is not inside the image is a bad sample. Behind a decode, no more than it is decoded.

    Args:
        input: a node (positional)
        height: its height in pixels, rounded (float, or a node: one value a sample; 0 … 65,500; required)
        width: its width (float, or a node: one value a sample; 0 … 65,500; required)
        y: its first row, rounded (float, or a node: one value a sample; 0 … 65,500; default 0.0)
        x: its first column (float, or a node: one value a sample; 0 … 65,500; default 0.0)
        normalized_anchor: y and x are shares of the image's height and width (bool; default False)
        normalized_shape: height and width are shares of the image's (bool; default False)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def peek_shape(input: Node, /, orient: bool = True) -> Node:
    """encoded image -> its height, width and channels (int64), without decoding it; channels are 1 of a gray image, else 3: alpha is not counted.

    Args:
        input: a node (positional)
        orient: of the image as its EXIF orientation turns it (bool; default True)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def stored_bytes(input: Node, /) -> Node:
    """encoded image -> the bytes of its file (uint8).

    Args:
        input: a node (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def pad(input: Node, /, fill_value: float = 0.0, axes: int | Sequence[int] = (), align: int | Sequence[int] = (), shape: int | Sequence[int] = ()) -> Node:
    """the value, extended at the ends of its axes.

    Args:
        input: a node (positional)
        fill_value: of what is added; rounded and saturated (float; -1e+30 … 1e+30; default 0.0)
        axes: which are extended; none: all (ints; 0 … 7; default ())
        align: sizes are rounded up to a multiple: one number, or one an axis (ints; 1 … 1,000,000,000; default ())
        shape: least sizes of the axes, 0: as it is. An axis whose size differs from sample to sample gets this size; a larger sample is a bad one (ints; 0 … 1,000,000,000; default ())

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def reshape(input: Node, /, shape: int | Sequence[int] = (), axes: int | Sequence[int] = ()) -> Node:
    """the same elements in other axes.

    Args:
        input: a node (positional)
        shape: sizes; one may be -1: what the others leave; none: a scalar (ints; -1 … 1,000,000,000; default ())
        axes: for each of the sizes the axis of the input whose size it is instead, or -1; none: each is as given (ints; -1 … 7; default ())

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def slice(input: Node, /, axes: int | Sequence[int] = (), start: int | Sequence[int] = (), rel_start: float | Sequence[float] = (), shape: int | Sequence[int] = (), rel_shape: float | Sequence[float] = (), end: int | Sequence[int] = (), rel_end: float | Sequence[float] = (), offset_0: float | Node = 0.0, offset_1: float | Node = 0.0, out_of_bounds_policy: Literal['error', 'pad', 'trim'] = 'error', fill_values: float | Sequence[float] = (0.0,)) -> Node:
    """a part of the value.

    Args:
        input: a node (positional)
        axes: which are sliced; none: all, in their order (ints; 0 … 7; default ())
        start: first elements; none: 0 (ints; -1,000,000,000 … 1,000,000,000; default ())
        rel_start: the same as a share of the size (floats; -1,000 … 1,000; default ())
        shape: numbers of elements (ints; 1 … 1,000,000,000; default ())
        rel_shape: the same as a share of the size (floats; 0 … 1,000; default ())
        end: behind the last elements; none: all of the axis (ints; -1,000,000,000 … 1,000,000,000; default ())
        rel_end: the same as a share of the size (floats; -1,000 … 1,000; default ())
        offset_0: added to the start in the first axis (float, or a node: one value a sample; -1,000,000,000 … 1,000,000,000; default 0.0)
        offset_1: added to the start in the second axis (float, or a node: one value a sample; -1,000,000,000 … 1,000,000,000; default 0.0)
        out_of_bounds_policy: what lies outside the input: a bad sample, filled, or left out (string; one of 'error', 'pad', 'trim'; default 'error')
        fill_values: of what lies outside; one number, or one for each of the last axis (floats; -1e+30 … 1e+30; default (0.0,))

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def erase(input: Node, /, axes: int | Sequence[int] = (), anchor: float | Sequence[float] = (), shape: float | Sequence[float] = (), normalized: bool = False, centered_anchor: bool = False, y: float | Node = 0.0, x: float | Node = 0.0, height: float | Node = 0.0, width: float | Node = 0.0, enable: bool | Node = True, fill_value: float | Sequence[float] = (0.0,)) -> Node:
    """the value with regions filled.

    Args:
        input: a node (positional)
        axes: of the regions; none: all but the last (ints; 0 … 7; default ())
        anchor: least corners of the regions, one behind the other; none: 0 (floats; -1,000,000,000 … 1,000,000,000; default ())
        shape: sizes of the regions, one behind the other (floats; 0 … 1,000,000,000; default ())
        normalized: anchor, shape, y, x, height, width are shares of the size (bool; default False)
        centered_anchor: anchor, y, x are centres (bool; default False)
        y: one more region: its place in the first axis (float, or a node: one value a sample; -1,000,000,000 … 1,000,000,000; default 0.0)
        x: the same in the second (float, or a node: one value a sample; -1,000,000,000 … 1,000,000,000; default 0.0)
        height: its size in the first axis; 0: there is none (float, or a node: one value a sample; 0 … 1,000,000,000; default 0.0)
        width: the same in the second (float, or a node: one value a sample; 0 … 1,000,000,000; default 0.0)
        enable: false: nothing is erased (bool, or a node: one value a sample; default True)
        fill_value: one number, or one for each of the last axis (floats; -1e+30 … 1e+30; default (0.0,))

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def crop_mirror_normalize(input: Node, /, crop: int | Sequence[int] = (), pos_y: float | Node = 0.5, pos_x: float | Node = 0.5, mirror: bool | Node = False, mean: float | Sequence[float] = (0.0,), std: float | Sequence[float] = (1.0,), scale: float = 1.0, shift: float = 0.0, dtype: Literal['float32', 'float16', 'uint8'] = 'float32', output_layout: Literal['CHW', 'HWC'] = 'CHW', pad_output: bool = False, rounding: Literal['round', 'truncate'] = 'round', out_of_bounds_policy: Literal['error', 'pad', 'trim'] = 'error', fill_values: float | Sequence[float] = (0.0,)) -> Node:
    """a window, mirrored, (x - mean) * (scale / std) + shift.

    Args:
        input: a node (positional)
        crop: height and width, or one number for both; none: the whole image (ints; 1 … 65,500; default ())
        pos_y: 0: at the top, 1: at the bottom (float, or a node: one value a sample; 0 … 1; default 0.5)
        pos_x: 0: at the left, 1: at the right (float, or a node: one value a sample; 0 … 1; default 0.5)
        mirror: mirror left and right (bool, or a node: one value a sample; default False)
        mean: one number, or one a channel (floats; -1e+30 … 1e+30; default (0.0,))
        std: one number, or one a channel (floats; 1e-30 … 1e+30; default (1.0,))
        scale: factor of the result (float; default 1.0)
        shift: added to the result (float; default 0.0)
        dtype: type of the result; to uint8: rounded, saturated (string; one of 'float32', 'float16', 'uint8'; default 'float32')
        output_layout: order of the axes (string; one of 'CHW', 'HWC'; default 'CHW')
        pad_output: a fourth channel of zeros behind three (bool; default False)
        rounding: of the window's place (string; one of 'round', 'truncate'; default 'round')
        out_of_bounds_policy: what lies outside the input: a bad sample, filled, or left out (string; one of 'error', 'pad', 'trim'; default 'error')
        fill_values: of the result outside the image; one number, or one a channel (floats; -1e+30 … 1e+30; default (0.0,))

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def rotate(input: Node, /, angle: float | Node, keep_size: bool = False, size: int | Sequence[int] = (), fill_value: float | Sequence[float] = (), interpolation: Literal['linear', 'nearest'] = 'linear', rule: Literal['fixed', 'dali'] = 'fixed') -> Node:
    """the image turned about its centre.

    Args:
        input: a node (positional)
        angle: degrees, counter-clockwise as one sees it (float, or a node: one value a sample; -1,000,000 … 1,000,000; required)
        keep_size: the result has the image's size (bool; default False)
        size: height and width of the result, or one number for both; none: what holds the whole of it (ints; 1 … 65,500; default ())
        fill_value: outside the image; none: the nearest pixel of its edge (floats; -1e+30 … 1e+30; default ())
        interpolation: between pixels (string; one of 'linear', 'nearest'; default 'linear')
        rule: the arithmetic. fixed: positions in 64-bit fixed point, exact to 2^-32; fastest. dali: positions in float32, each the previous one in its row plus a step, except every 256th (string; one of 'fixed', 'dali'; default 'fixed')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def warp_affine(input: Node, /, matrix: float | Sequence[float] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0), inverse_map: bool = True, angle: float | Node = 0.0, scale: float | Node = 1.0, shear_x: float | Node = 0.0, shear_y: float | Node = 0.0, translate_x: float | Node = 0.0, translate_y: float | Node = 0.0, size: int | Sequence[int] = (), fill_value: float | Sequence[float] = (), interpolation: Literal['linear', 'nearest'] = 'linear', rule: Literal['fixed', 'dali'] = 'fixed') -> Node:
    """the image under an affine map.

    Args:
        input: a node (positional)
        matrix: (x, y) -> (m0 x + m1 y + m2, m3 x + m4 y + m5); the centre of the first pixel is (0.5, 0.5) (floats; -1,000,000 … 1,000,000; default (1.0, 0.0, 0.0, 0.0, 1.0, 0.0))
        inverse_map: the matrix leads from the result to the image (bool; default True)
        angle: moreover, the result is turned about its centre: degrees, counter-clockwise (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 0.0)
        scale: and enlarged before that (float, or a node: one value a sample; 0.001 … 1,000; default 1.0)
        shear_x: and before that sheared: x + shear_x * y (float, or a node: one value a sample; -1,000 … 1,000; default 0.0)
        shear_y: and before that sheared: y + shear_y * x (float, or a node: one value a sample; -1,000 … 1,000; default 0.0)
        translate_x: and at last moved to the right, in pixels (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 0.0)
        translate_y: and moved down, in pixels (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 0.0)
        size: height and width of the result, or one number for both; none: the image's (ints; 1 … 65,500; default ())
        fill_value: outside the image; none: the nearest pixel of its edge (floats; -1e+30 … 1e+30; default ())
        interpolation: between pixels (string; one of 'linear', 'nearest'; default 'linear')
        rule: the arithmetic. fixed: positions in 64-bit fixed point, exact to 2^-32; fastest. dali: positions in float32, each the previous one in its row plus a step, except every 256th (string; one of 'fixed', 'dali'; default 'fixed')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def gaussian_blur(input: Node, /, sigma: float | Node = 0.0, window_size: int = 0) -> Node:
    """blurred; the border mirrors the image, its edge not repeated.

    Args:
        input: a node (positional)
        sigma: in pixels; 0: ((window_size - 1) / 2 - 1) * 0.3 + 0.8 (float, or a node: one value a sample; 0 … 1,000; default 0.0)
        window_size: diameter of the kernel, odd; 0: 2 * ceil(3 * sigma) + 1 (int; 0 … 8,191; default 0)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def jpeg_compression_distortion(input: Node, /, quality: float | Node = 50.0) -> Node:
    """what JPEG of that quality, with halved colours, leaves.

    Args:
        input: a node (positional)
        quality: of libjpeg's scale; rounded to an integer (float, or a node: one value a sample; 1 … 100; default 50.0)

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

def cast(input: Node, /, dtype: Literal['bool', 'uint8', 'int32', 'int64', 'float16', 'float32', 'int8', 'int16', 'uint16', 'uint32', 'bfloat16']) -> Node:
    """the same values in another type.

    Args:
        input: a node (positional)
        dtype: type of the result; to integers: halves to even, saturated, 0 for a NaN; to float16 and bfloat16: by way of float32, each time the nearest, halves to even, beyond the greatest infinite; operators do not compute with int8, int16, uint16, uint32 and bfloat16 (string; one of 'bool', 'uint8', 'int32', 'int64', 'float16', 'float32', 'int8', 'int16', 'uint16', 'uint32', 'bfloat16'; required)

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

def length(input: Node, /, axis: int = 0) -> Node:
    """the number of elements along an axis (int32): what a value whose size differs from sample to sample had before it was padded.

    Args:
        input: a node (positional)
        axis: which is measured (int; 0 … 7; default 0)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def brightness(input: Node, /, brightness: float | Node = 1.0, brightness_shift: float | Node = 0.0, dtype: Literal['input', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'input') -> Node:
    """x * brightness + brightness_shift * range.

    Args:
        input: a node (positional)
        brightness: factor; 1 keeps the image (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        brightness_shift: added; 1 is the largest value of the result's type, 1 for floats (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 0.0)
        dtype: type of the result: the input's, or another; to integers: halves to even, saturated (string; one of 'input', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'input')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def contrast(input: Node, /, contrast: float | Node = 1.0, contrast_center: float | Sequence[float] = (), dtype: Literal['input', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'input') -> Node:
    """contrast_center + contrast * (x - contrast_center).

    Args:
        input: a node (positional)
        contrast: factor of the distance from the centre; 0 gives one gray (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        contrast_center: the value that contrast keeps; none: the middle of the input's type, 128 for uint8, 0.5 for floats (floats; default ())
        dtype: type of the result: the input's, or another; to integers: halves to even, saturated (string; one of 'input', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'input')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def brightness_contrast(input: Node, /, brightness: float | Node = 1.0, brightness_shift: float | Node = 0.0, contrast: float | Node = 1.0, contrast_center: float | Sequence[float] = (), dtype: Literal['input', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'input') -> Node:
    """brightness_shift * range + brightness * (contrast_center + contrast * (x - contrast_center)).

    Args:
        input: a node (positional)
        brightness: factor; 1 keeps the image (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        brightness_shift: added; 1 is the largest value of the result's type, 1 for floats (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 0.0)
        contrast: factor of the distance from the centre; 0 gives one gray (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        contrast_center: the value that contrast keeps; none: the middle of the input's type, 128 for uint8, 0.5 for floats (floats; default ())
        dtype: type of the result: the input's, or another; to integers: halves to even, saturated (string; one of 'input', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'input')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def hue(input: Node, /, hue: float | Node = 0.0, dtype: Literal['input', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'input') -> Node:
    """colours turned around the gray axis of YIQ; RGB images.

    Args:
        input: a node (positional)
        hue: angle by which colours are turned, in degrees (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 0.0)
        dtype: type of the result: the input's, or another; to integers: halves to even, saturated (string; one of 'input', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'input')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def saturation(input: Node, /, saturation: float | Node = 1.0, dtype: Literal['input', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'input') -> Node:
    """distances from gray, in YIQ, times a factor; RGB images.

    Args:
        input: a node (positional)
        saturation: factor of the colours; 0 gives grays (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        dtype: type of the result: the input's, or another; to integers: halves to even, saturated (string; one of 'input', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'input')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def hsv(input: Node, /, hue: float | Node = 0.0, saturation: float | Node = 1.0, value: float | Node = 1.0, dtype: Literal['input', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'input') -> Node:
    """hue, saturation and value, as one linear map in YIQ; RGB images.

    Args:
        input: a node (positional)
        hue: angle by which colours are turned, in degrees (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 0.0)
        saturation: factor of the colours; 0 gives grays (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        value: factor of it all (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        dtype: type of the result: the input's, or another; to integers: halves to even, saturated (string; one of 'input', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'input')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def color_twist(input: Node, /, brightness: float | Node = 1.0, contrast: float | Node = 1.0, hue: float | Node = 0.0, saturation: float | Node = 1.0, dtype: Literal['input', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'input') -> Node:
    """hue and saturation in YIQ, then contrast around the middle, then brightness: one linear map; RGB images.

    Args:
        input: a node (positional)
        brightness: factor; 1 keeps the image (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        contrast: factor of the distance from the centre; 0 gives one gray (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        hue: angle by which colours are turned, in degrees (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 0.0)
        saturation: factor of the colours; 0 gives grays (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 1.0)
        dtype: type of the result: the input's, or another; to integers: halves to even, saturated (string; one of 'input', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'input')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def color_space_conversion(input: Node, /, image_type: Literal['rgb', 'bgr', 'gray', 'ycbcr'], output_type: Literal['rgb', 'bgr', 'gray', 'ycbcr']) -> Node:
    """the same colours in another space.

    Args:
        input: a node (positional)
        image_type: colours of the input (string; one of 'rgb', 'bgr', 'gray', 'ycbcr'; required)
        output_type: colours of the result; ycbcr is that of ITU-R BT.601, 16 to 235 and 16 to 240 (string; one of 'rgb', 'bgr', 'gray', 'ycbcr'; required)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def constant(values: float | Sequence[float], dtype: Literal['bool', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'float32', shape: int | Sequence[int] = ()) -> Node:
    """the same value for every sample.

    Args:
        values: one number, or those of a row-major tensor (floats; required)
        dtype: type of the result; to integers: halves to even, saturated (string; one of 'bool', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'float32')
        shape: sizes of the axes; none: a scalar if there is one value, otherwise one axis (ints; 1 … 65,500; default ())

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def add(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a + b; integers wrap around.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def sub(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a - b; integers wrap around.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def mul(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a * b; integers wrap around.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def div(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a / b; of integers as float32.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def floordiv(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a / b of integers, rounded down; a divisor of 0 is a bad sample.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def min(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """the lesser of a and b.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def max(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """the greater of a and b.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def lt(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a < b, as bool.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def le(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a <= b, as bool.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def gt(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a > b, as bool.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def ge(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a >= b, as bool.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def eq(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a == b, as bool.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def ne(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a != b, as bool.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def bitwise_and(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a & b of integers, or of bools.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def bitwise_or(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a | b of integers, or of bools.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def bitwise_xor(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], /) -> Node:
    """a ^ b of integers, or of bools.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def neg(input: Node, /) -> Node:
    """-a; integers wrap around.

    Args:
        input: a node (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def abs(input: Node, /) -> Node:
    """a without its sign.

    Args:
        input: a node (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def invert(input: Node, /) -> Node:
    """not a, of bools; every bit of integers.

    Args:
        input: a node (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def where(input0: Node | float | Sequence[float], input1: Node | float | Sequence[float], input2: Node | float | Sequence[float], /) -> Node:
    """where the first is true a, elsewhere b; if it is one flag a sample, only the chosen one is computed, and it need not have the other's size.

    Args:
        input0: a node, or numbers (positional)
        input1: a node, or numbers (positional)
        input2: a node, or numbers (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def lookup_table(input: Node, /, keys: int | Sequence[int], values: float | Sequence[float], default_value: float = 0.0, dtype: Literal['bool', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'float32') -> Node:
    """values[i] where x is keys[i].

    Args:
        input: a node (positional)
        keys: values of the input; of equal ones the last counts (ints; 0 … 65,535; required)
        values: what they become (floats; required)
        default_value: of what is not among the keys (float; default 0.0)
        dtype: type of the result; to integers: halves to even, saturated (string; one of 'bool', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'float32')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def one_hot(input: Node, /, num_classes: int, on_value: float = 1.0, off_value: float = 0.0, dtype: Literal['bool', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'float32') -> Node:
    """classes as vectors; a sample of one element is a scalar.

    Args:
        input: a node (positional)
        num_classes: size of the result's last axis; a class that is not below it is a bad sample (int; 1 … 10,000,000; required)
        on_value: at the class's place (float; default 1.0)
        off_value: elsewhere (float; default 0.0)
        dtype: type of the result (string; one of 'bool', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'float32')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def standardize(input: Node, /, axes: int | Sequence[int] = (), mean: float | Sequence[float] = (), stddev: float | Sequence[float] = (), ddof: int = 0, epsilon: float = 0.0, scale: float = 1.0, shift: float = 0.0, dtype: Literal['uint8', 'int32', 'int64', 'float16', 'float32'] = 'float32') -> Node:
    """scale * (x - mean) / stddev + shift, with the sample's own statistics; a deviation of 0 gives shift.

    Args:
        input: a node (positional)
        axes: over which statistics are computed; none: over all (ints; 0 … 7; default ())
        mean: none: computed; otherwise one number, or one for each place of the axes that are kept (floats; default ())
        stddev: as mean (floats; 1e-30 … 1e+30; default ())
        ddof: the variance is the sum of squares / (n - ddof) (int; 0 … 1,000,000,000; default 0)
        epsilon: added to the variance, given or computed (float; 0 … 1e+30; default 0.0)
        scale: factor of the result (float; default 1.0)
        shift: added to the result (float; default 0.0)
        dtype: type of the result (string; one of 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'float32')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def normal(mean: float | Node = 0.0, stddev: float | Node = 1.0) -> Node:
    """a random float32 a sample, normally distributed. Draws anew for each sample and epoch.

    Args:
        mean: of the distribution (float, or a node: one value a sample; -1e+30 … 1e+30; default 0.0)
        stddev: of the distribution (float, or a node: one value a sample; 0 … 1e+30; default 1.0)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def choice(values: float | Sequence[float], probabilities: float | Sequence[float] = (), dtype: Literal['bool', 'uint8', 'int32', 'int64', 'float16', 'float32'] = 'float32') -> Node:
    """one of the values a sample, at random. Draws anew for each sample and epoch.

    Args:
        values: one of these values is drawn (floats; required)
        probabilities: one a value; none: all alike (floats; 0 … 1; default ())
        dtype: type of the result (string; one of 'bool', 'uint8', 'int32', 'int64', 'float16', 'float32'; default 'float32')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def noise_gaussian(input: Node, /, mean: float | Node = 0.0, stddev: float | Node = 1.0) -> Node:
    """normally distributed noise added to every value. Draws anew for each sample and epoch.

    Args:
        input: a node (positional)
        mean: of the distribution (float, or a node: one value a sample; -1e+30 … 1e+30; default 0.0)
        stddev: of the distribution (float, or a node: one value a sample; 0 … 1e+30; default 1.0)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def noise_salt_and_pepper(input: Node, /, prob: float | Node = 0.05, salt_vs_pepper: float | Node = 0.5, salt_val: float | Sequence[float] = (), pepper_val: float | Sequence[float] = (), per_channel: bool = False) -> Node:
    """values replaced by the largest or the least, at random. Draws anew for each sample and epoch.

    Args:
        input: a node (positional)
        prob: that a value is replaced (float, or a node: one value a sample; 0 … 1; default 0.05)
        salt_vs_pepper: that it is replaced by salt rather than pepper (float, or a node: one value a sample; 0 … 1; default 0.5)
        salt_val: none: the type's largest value, 1 for floats (floats; default ())
        pepper_val: none: the type's least value, -1 for floats (floats; default ())
        per_channel: draw for each value rather than for each pixel (all values of the last axis) (bool; default False)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def noise_shot(input: Node, /, factor: float | Node = 20.0) -> Node:
    """Poisson(max(0, x) / factor) * factor. Draws anew for each sample and epoch.

    Args:
        input: a node (positional)
        factor: by which one event raises a value; 0: no noise (float, or a node: one value a sample; 0 … 1e+30; default 20.0)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def partner(input: Node, /) -> Node:
    """the value that the input has in another row of the same step: its partner is the row that is k rows further on, and after the last row comes the first; k is drawn for each step, so that each row is the partner of one other row; all partners in a pipeline are of the same row; in a step of one row the row is its own partner.

    Args:
        input: a node (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def beta(alpha: float | Node = 1.0, beta: float | Node = 1.0, per: Literal['sample', 'batch'] = 'sample') -> Node:
    """a random float32 of the beta distribution on [0, 1]; alpha = beta = 1: all numbers alike. Draws anew for each sample and epoch.

    Args:
        alpha: of the distribution (float, or a node: one value a sample; 0.001 … 1,000,000; default 1.0)
        beta: of the distribution (float, or a node: one value a sample; 0.001 … 1,000,000; default 1.0)
        per: what a number is drawn for; batch: all rows of a step have the same (string; one of 'sample', 'batch'; default 'sample')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def cutmix_paste(input0: Node, input1: Node, /, lam: float | Node, center_y: float | Node = 0.5, center_x: float | Node = 0.5) -> Node:
    """the first image with a box of the second, which has the same size, in its place; the box's sides are sqrt(1 - lam) of the image's, as in CutMix and torchvision.

    Args:
        input0: a node (positional)
        input1: a node (positional)
        lam: share of the image that is kept, before the box is cut off at the image's edges (float, or a node: one value a sample; 0 … 1; required)
        center_y: of the box, as a share of the height (float, or a node: one value a sample; 0 … 1; default 0.5)
        center_x: of the box, as a share of the width (float, or a node: one value a sample; 0 … 1; default 0.5)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def cutmix_share(input: Node, /, lam: float | Node, center_y: float | Node = 0.5, center_x: float | Node = 0.5) -> Node:
    """the share of an image that cutmix_paste keeps, given the same arguments: the label's lambda.

    Args:
        input: a node (positional)
        lam: share of the image that is kept, before the box is cut off at the image's edges (float, or a node: one value a sample; 0 … 1; required)
        center_y: of the box, as a share of the height (float, or a node: one value a sample; 0 … 1; default 0.5)
        center_x: of the box, as a share of the width (float, or a node: one value a sample; 0 … 1; default 0.5)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def pack(*inputs: Node, length: int, how: Literal['cut', 'fit'] = 'cut', overlap: int = 0, longer: Literal['cut', 'drop', 'error'] = 'cut', max_documents: int = 0, fill_values: float | Sequence[float] = (0.0,)) -> tuple[Node, ...]:
    """puts documents into rows of one length: values of a reader, whose first axis is open, in rows of `length`; then segment_ids, which count the row's documents from 1 (0: padding), and positions, which count each piece's elements from 0 (both int32[length]); a row is a sample of the dataset, so it has the same documents in each epoch.

    Args:
        inputs: nodes, one or more (positional)
        length: elements of a row (int; 1 … 16,777,216; required)
        how: "cut": documents follow one another, and every length elements are a row; "fit": a document stands in one row, and rows have padding (string; one of 'cut', 'fit'; default 'cut')
        overlap: elements that a row has from the end of the row before it; 1 gives inputs and targets. how="fit": the pieces of a document that is cut (int; 0 … 16,777,215; default 0)
        longer: what how="fit" does with a document that is longer than a row (string; one of 'cut', 'drop', 'error'; default 'cut')
        max_documents: pieces of documents in a row of how="fit"; 0: any number (int; 0 … 65,536; default 0)
        fill_values: padding of each value, or one number for all (floats; default (0.0,))

    Returns:
        A tuple of nodes: one for each input, and 2 more.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def augment(input: Node, /, operation: Literal['auto_contrast', 'brightness', 'color', 'contrast', 'equalize', 'identity', 'invert', 'posterize', 'rotate', 'sharpness', 'shear_x', 'shear_y', 'solarize', 'solarize_add', 'translate_x', 'translate_y'], magnitude: float | Node = 0.0, fill_value: float = 128.0, border: Literal['fill', 'edge'] = 'fill', interpolation: Literal['linear', 'nearest'] = 'linear', rule: Literal['fixed', 'dali'] = 'fixed') -> Node:
    """one operation of the policies of automatic augmentation; images of 3 channels (RGB) or 1.

    Args:
        input: a node (positional)
        operation: what is done (string; one of 'auto_contrast', 'brightness', 'color', 'contrast', 'equalize', 'identity', 'invert', 'posterize', 'rotate', 'sharpness', 'shear_x', 'shear_y', 'solarize', 'solarize_add', 'translate_x', 'translate_y'; required)
        magnitude: rotate: degrees, counter-clockwise; shear_x, shear_y: x + magnitude * y, y + magnitude * x; translate_x, translate_y: pixels to the right, down; brightness, color, contrast, sharpness: a factor, 1 keeps the image; posterize: the bits kept, 0 as 1; solarize: the least value inverted; solarize_add: what is added below 128; the others have none (float, or a node: one value a sample; -1,000,000 … 1,000,000; default 0.0)
        fill_value: outside the image, where it is moved, turned or sheared; rounded (float; 0 … 255; default 128.0)
        border: outside the image: fill_value, or the nearest pixel of its edge (string; one of 'fill', 'edge'; default 'fill')
        interpolation: between pixels, where the image is moved, turned or sheared (string; one of 'linear', 'nearest'; default 'linear')
        rule: the arithmetic. fixed: positions in 64-bit fixed point, exact to 2^-32; fastest. dali: positions in float32, each the previous one in its row plus a step, except every 256th (string; one of 'fixed', 'dali'; default 'fixed')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def auto_augment(input: Node, /, policy: Literal['image_net', 'reduced_cifar10', 'reduced_image_net', 'svhn'] = 'image_net', max_translate_abs: float | Sequence[float] = (), max_translate_rel: float | Sequence[float] = (), fill_value: float = 128.0, border: Literal['fill', 'edge'] = 'fill', interpolation: Literal['linear', 'nearest'] = 'linear', rule: Literal['fixed', 'dali'] = 'fixed') -> Node:
    """AutoAugment: one of the policy's 25 sequences of at most two operations, each done with a probability of its own; images of 3 channels (RGB) or 1. Draws anew for each sample and epoch.

    Args:
        input: a node (positional)
        policy: the dataset that the policy was found for (string; one of 'image_net', 'reduced_cifar10', 'reduced_image_net', 'svhn'; default 'image_net')
        max_translate_abs: the greatest translation in pixels; one number, or height and width; neither this nor max_translate_rel: 250 pixels (floats; 0 … 65,500; default ())
        max_translate_rel: the same in parts of the image's sides (floats; 0 … 16; default ())
        fill_value: outside the image, where it is moved, turned or sheared; rounded (float; 0 … 255; default 128.0)
        border: outside the image: fill_value, or the nearest pixel of its edge (string; one of 'fill', 'edge'; default 'fill')
        interpolation: between pixels, where the image is moved, turned or sheared (string; one of 'linear', 'nearest'; default 'linear')
        rule: the arithmetic. fixed: positions in 64-bit fixed point, exact to 2^-32; fastest. dali: positions in float32, each the previous one in its row plus a step, except every 256th (string; one of 'fixed', 'dali'; default 'fixed')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def rand_augment(input: Node, /, n: int, m: int, num_magnitude_bins: int = 31, monotonic_mag: bool = True, excluded: Literal['translate_x', 'translate_y', 'shear_x', 'shear_y', 'rotate', 'brightness', 'contrast', 'color', 'sharpness', 'posterize', 'solarize', 'equalize', 'auto_contrast', 'identity'] | Sequence[Literal['translate_x', 'translate_y', 'shear_x', 'shear_y', 'rotate', 'brightness', 'contrast', 'color', 'sharpness', 'posterize', 'solarize', 'equalize', 'auto_contrast', 'identity']] = (), max_translate_abs: float | Sequence[float] = (), max_translate_rel: float | Sequence[float] = (), fill_value: float = 128.0, border: Literal['fill', 'edge'] = 'fill', interpolation: Literal['linear', 'nearest'] = 'linear', rule: Literal['fixed', 'dali'] = 'fixed') -> Node:
    """RandAugment: n operations drawn of 14, with replacement; images of 3 channels (RGB) or 1. Draws anew for each sample and epoch.

    Args:
        input: a node (positional)
        n: how many operations, one after the other (int; 1 … 64; required)
        m: the bin of all their magnitudes (int; 0 … 100,000; required)
        num_magnitude_bins: how many magnitudes an operation has, at equal distances (int; 1 … 100,000; default 31)
        monotonic_mag: a greater bin is a stronger operation; otherwise posterize, solarize and the factors have AutoAugment's ranges (bool; default True)
        excluded: operations that are never drawn (strings; one of 'translate_x', 'translate_y', 'shear_x', 'shear_y', 'rotate', 'brightness', 'contrast', 'color', 'sharpness', 'posterize', 'solarize', 'equalize', 'auto_contrast', 'identity'; default ())
        max_translate_abs: the greatest translation in pixels; one number, or height and width; neither this nor max_translate_rel: 100 pixels (floats; 0 … 65,500; default ())
        max_translate_rel: the same in parts of the image's sides (floats; 0 … 16; default ())
        fill_value: outside the image, where it is moved, turned or sheared; rounded (float; 0 … 255; default 128.0)
        border: outside the image: fill_value, or the nearest pixel of its edge (string; one of 'fill', 'edge'; default 'fill')
        interpolation: between pixels, where the image is moved, turned or sheared (string; one of 'linear', 'nearest'; default 'linear')
        rule: the arithmetic. fixed: positions in 64-bit fixed point, exact to 2^-32; fastest. dali: positions in float32, each the previous one in its row plus a step, except every 256th (string; one of 'fixed', 'dali'; default 'fixed')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def trivial_augment_wide(input: Node, /, num_magnitude_bins: int = 31, excluded: Literal['translate_x', 'translate_y', 'shear_x', 'shear_y', 'rotate', 'brightness', 'contrast', 'color', 'sharpness', 'posterize', 'solarize', 'equalize', 'auto_contrast', 'identity'] | Sequence[Literal['translate_x', 'translate_y', 'shear_x', 'shear_y', 'rotate', 'brightness', 'contrast', 'color', 'sharpness', 'posterize', 'solarize', 'equalize', 'auto_contrast', 'identity']] = (), max_translate_abs: float | Sequence[float] = (), max_translate_rel: float | Sequence[float] = (), fill_value: float = 128.0, border: Literal['fill', 'edge'] = 'fill', interpolation: Literal['linear', 'nearest'] = 'linear', rule: Literal['fixed', 'dali'] = 'fixed') -> Node:
    """TrivialAugment (wide): one operation drawn of 14, at a magnitude drawn; images of 3 channels (RGB) or 1. Draws anew for each sample and epoch.

    Args:
        input: a node (positional)
        num_magnitude_bins: how many magnitudes an operation has, at equal distances (int; 1 … 100,000; default 31)
        excluded: operations that are never drawn (strings; one of 'translate_x', 'translate_y', 'shear_x', 'shear_y', 'rotate', 'brightness', 'contrast', 'color', 'sharpness', 'posterize', 'solarize', 'equalize', 'auto_contrast', 'identity'; default ())
        max_translate_abs: the greatest translation in pixels; one number, or height and width; neither this nor max_translate_rel: 32 pixels (floats; 0 … 65,500; default ())
        max_translate_rel: the same in parts of the image's sides (floats; 0 … 16; default ())
        fill_value: outside the image, where it is moved, turned or sheared; rounded (float; 0 … 255; default 128.0)
        border: outside the image: fill_value, or the nearest pixel of its edge (string; one of 'fill', 'edge'; default 'fill')
        interpolation: between pixels, where the image is moved, turned or sheared (string; one of 'linear', 'nearest'; default 'linear')
        rule: the arithmetic. fixed: positions in 64-bit fixed point, exact to 2^-32; fastest. dali: positions in float32, each the previous one in its row plus a step, except every 256th (string; one of 'fixed', 'dali'; default 'fixed')

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

def equalize(input: Node, /) -> Node:
    """each channel's values spread over the whole range by their distribution, as OpenCV does it.

    Args:
        input: a node (positional)

    Returns:
        A node.

    Raises:
        leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
    """

class readers:
    @staticmethod
    def image_folder(path: str, repeat: int = 1, hidden: bool = False) -> tuple[Node, Node]:
        """image files of a folder of classes -> encoded image, label (int32).

        Args:
            path: the folder, a path or URI (file://, s3://bucket/prefix, gs://bucket/prefix); its sub-folders in byte order are the classes 0, 1, … (string; required)
            repeat: how often an epoch passes over the files (int; 1 … 1,000,000,000; default 1)
            hidden: names that begin with a dot are taken, too: folders of the root are classes (bool; default False)

        Returns:
            A tuple of 2 nodes.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def file_list(path: str, root: str = '') -> tuple[Node, Node]:
        """files that a list names, in its order -> encoded image, label (int32).

        Args:
            path: a text file, by path or URI; a line is a file's name, blanks and its label, a whole number; names may have blanks in them (string; required)
            root: the folder or URI that relative names are below; empty: the list's own folder (string; default '')

        Returns:
            A tuple of 2 nodes.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def files(files: str | Sequence[str], labels: int | Sequence[int] = (), root: str = '') -> tuple[Node, Node]:
        """files -> encoded image, label (int32).

        Args:
            files: paths or URIs, in this order; up to 4194304 entries (strings; required)
            labels: as many labels; none: each file's position; up to 4194304 entries (ints; 0 … 2,147,483,647; default ())
            root: the folder or URI that relative names are below; empty: the process's working folder (string; default '')

        Returns:
            A tuple of 2 nodes.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def coco(annotations: str, root: str = '', outputs: Literal['image', 'boxes', 'labels', 'image_id', 'polygons', 'vertices', 'mask'] | Sequence[Literal['image', 'boxes', 'labels', 'image_id', 'polygons', 'vertices', 'mask']] = ('image', 'boxes', 'labels'), images: str | Sequence[str] = (), ltrb: bool = False, ratio: bool = False, skip_empty: bool = False, size_threshold: float = 0.1, include_iscrowd: bool = True, avoid_class_remapping: bool = False) -> tuple[Node, ...]:
        """COCO's instance annotations and their images -> an output for each of outputs; coordinates are of the image as it is stored: decode with orient=False.

        Args:
            annotations: the JSON file of instances, by path or URI (string; required)
            root: the folder or URI that relative names are below; empty: the annotations' own folder (string; default '')
            outputs: what is read, in this order: boxes float32 (n, 4), x, y, width, height; labels int32 (n,); image_id int64; polygons int32 (p, 3), each its object's place among the boxes, its first vertex, and the one behind its last; vertices float32 (v, 2); mask int32 (height, width, 1), the label of each pixel, 0: none; where objects overlap, the greatest (strings; one of 'image', 'boxes', 'labels', 'image_id', 'polygons', 'vertices', 'mask'; default ('image', 'boxes', 'labels'))
            images: file names, as the annotations have them: these images in this order; none: all, in the order of their ids; up to 4194304 entries (strings; default ())
            ltrb: boxes are left, top, right, bottom (bool; default False)
            ratio: boxes and vertices are shares of the image's size (bool; default False)
            skip_empty: pass over images without objects (bool; default False)
            size_threshold: objects of less width or height are passed over (float; 0 … 1,000,000; default 0.1)
            include_iscrowd: also objects that are crowds (bool; default True)
            avoid_class_remapping: labels are the ids of the categories; otherwise 1, 2, … in the order of the file (bool; default False)

        Returns:
            A tuple of nodes, one for each of outputs; of one, too: (x,) = fn.readers.coco(…).

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def numpy(files: str | Sequence[str] = (), path: str = '', pattern: str = '*.npy', array: str = '', order: Literal['path', 'folders'] = 'path') -> Node:
        """NumPy's .npy files -> an array of bool, int8, int16, int32, int64, uint8, uint16, uint32, float16, float32 or bfloat16; exactly one of files, path and array.

        Args:
            files: .npy files, one a sample, in this order; up to 4194304 entries (strings; default ())
            path: a folder; the files below it are the samples. Names that begin with a dot are passed over, but not with order="folders" (string; default '')
            pattern: which files below path: of the path below it, where * also matches /; with order="folders" of the file's own name (string; default '*.npy')
            array: one .npy file whose first axis is the samples; only rows that are wanted are read (string; default '')
            order: path: files at any depth, in the byte order of their paths; folders: path's own files by name, then those of its folders, one after the other, and none deeper (DALI's order) (string; one of 'path', 'folders'; default 'path')

        Returns:
            A node.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def mds(path: str, columns: str | Sequence[str], images: str | Sequence[str] = (), verify: bool = False, types: str | Sequence[str] = ()) -> tuple[Node, ...]:
        """MosaicML Streaming's MDS shards, raw or compressed by zstd, gz or br -> an output a column: jpeg and png encoded images; bytes and str uint8; float64 as float32, other numbers and arrays of declared shape as they are.

        Args:
            path: the folder or URI that has index.json (string; required)
            columns: the columns that are read, each an output (strings; required)
            images: those of them stored as bytes that are encoded images (strings; default ())
            verify: read every shard when listing and check its hash in index.json; compressed shards are checked when they are unpacked anyway (bool; default False)
            types: of each column, instead of images; none: as index.json says. A column of bytes is "encoded" (an image), "bytes", or its bytes as elements, little-endian ("uint16[?]", "float32[28,28]"); any other has the type of its encoding ("int64") (strings; default ())

        Returns:
            A tuple of nodes, one for each of columns; of one, too: (x,) = fn.readers.mds(…).

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def array_record(paths: str | Sequence[str], type: str = 'encoded') -> Node:
        """ArrayRecord files, chunks uncompressed or compressed by zstd or brotli -> the record; chunks' hashes are checked; read groups (group_size over 1) in the order of shards, since a record is read with its group.

        Args:
            paths: ArrayRecord files, folders of such or patterns, in this order; up to 4194304 entries (strings; required)
            type: what a record is: encoded (an image), bytes (uint8), or raw elements, such as uint16[?] or float32[28,28] (string; default 'encoded')

        Returns:
            A node.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def tfrecord(paths: str | Sequence[str], features: str | Sequence[str], types: str | Sequence[str], index: str | Sequence[str] = ()) -> tuple[Node, ...]:
        """tf.Example records -> an output for each feature; checksums are checked; a record without the feature is a bad sample (there are no defaults).

        Args:
            paths: TFRecord files, uncompressed: paths or URIs of files; of directories (with a slash at the end), or patterns with * ? [] in the last parts, which stand for the files in the byte order of their names; {000..123} and {a,b} stand for each in turn; up to 4194304 entries (strings; required)
            features: names in each tf.Example, one for each output (strings; required)
            types: of each feature: "encoded" (an image file), "bytes" or "uint8[28,28]" of a bytes feature, and of int8, int16, uint16, uint32 and bfloat16 ("uint16[?]": its bytes as elements, little-endian); "int64", "float32" (one number), "float32[4]" (that many), "int64[?]" (any number) (strings; required)
            index: index files of DALI's, one for each file (lines of offset and size, as tfrecord2idx writes them); without them the files are walked once when the dataset is indexed; up to 4194304 entries (strings; default ())

        Returns:
            A tuple of nodes, one for each of features; of one, too: (x,) = fn.readers.tfrecord(…).

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def webdataset(paths: str | Sequence[str], ext: str | Sequence[str], types: str | Sequence[str], index: str | Sequence[str] = (), missing: Literal['error', 'skip', 'empty'] = 'error') -> tuple[Node, ...]:
        """samples of tar archives: neighbouring files that have the same path up to the first dot of the name -> an output for each extension.

        Args:
            paths: tar archives, uncompressed: paths or URIs of files; of directories (with a slash at the end), or patterns with * ? [] in the last parts, which stand for the files in the byte order of their names; {000..123} and {a,b} stand for each in turn; up to 4194304 entries (strings; required)
            ext: the extension of each output's component, what follows the first dot of the file's name; alternatives are separated by semicolons ("jpg;jpeg;png"): the first in the archive counts (strings; required)
            types: of each output: "encoded" (an image file), "bytes", "float32[?]", "uint8[28,28]" (the component's bytes as elements, little-endian); "int32", "int64" (one number, written in decimal digits) (strings; required)
            index: index files of DALI's, one for each file (v1.1 or v1.2, as wds2idx writes them); without them the files are walked once when the dataset is indexed; up to 4194304 entries (strings; default ())
            missing: what a sample without one of the components is: an error of the whole dataset, passed over, or without elements in that output (string; one of 'error', 'skip', 'empty'; default 'error')

        Returns:
            A tuple of nodes, one for each of ext; of one, too: (x,) = fn.readers.webdataset(…).

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def parquet(paths: str | Sequence[str], columns: str | Sequence[str], types: str | Sequence[str]) -> tuple[Node, ...]:
        """Parquet files, every codec and encoding of Arrow -> an output for each column; what is stored narrower may be read wider (int8 as int32), float64 as float32; a null is a bad sample; lists of lists, decimals, dates and times are refused; row groups are read a page at a time, in the order of shards best; needs Arrow's libraries beside the worker.

        Args:
            paths: Parquet files: paths or URIs of files; of directories (with a slash at the end), or patterns with * ? [] in the last parts, which stand for the files in the byte order of their names; {000..123} and {a,b} stand for each in turn; up to 4194304 entries (strings; required)
            columns: those that are read, one for each output: names, of a structure's member with dots ("image.bytes") (strings; required)
            types: of each column: "encoded" (an image file), "bytes" or "uint8[28,28]" of binary and text columns; "int64", "float32" (one number); "int64[?]", "float32[512]" (a list's numbers) (strings; required)

        Returns:
            A tuple of nodes, one for each of columns; of one, too: (x,) = fn.readers.parquet(…).

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def external(num_samples: int, types: str | Sequence[str], name: str = 'external') -> tuple[Node, ...]:
        """samples that consumers supply as they iterate (leat.external_source, leat::SampleSource) -> an output for each of types; on_bad_sample "replace" is refused.

        Args:
            num_samples: how many samples the source has (int; 1 … 281,474,976,710,656; required)
            types: of each output: "encoded" (an image file), "bytes", "int32" (one number), "uint8[28,28]", "uint8[?,?,3]" (sizes that differ from sample to sample) (strings; required)
            name: of the data: equal arguments promise equal samples (string; default 'external')

        Returns:
            A tuple of nodes, one for each of types; of one, too: (x,) = fn.readers.external(…).

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def caffe(path: str | Sequence[str]) -> tuple[Node, Node]:
        """LMDB of Caffe's Datum -> encoded image or uint8 (h, w, c), label (int32).

        Args:
            path: LMDB folders (with data.mdb) or files, one after the other; samples are in the order of their keys (strings; required)

        Returns:
            A tuple of 2 nodes.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def caffe2(path: str | Sequence[str]) -> tuple[Node, Node]:
        """LMDB of Caffe2's TensorProtos -> encoded image or uint8 (h, w, c), label (int32 or float32).

        Args:
            path: LMDB folders (with data.mdb) or files, one after the other; samples are in the order of their keys (strings; required)

        Returns:
            A tuple of 2 nodes.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def idx(images: str, labels: str = '') -> tuple[Node, Node]:
        """idx files (MNIST) -> record (height and width become (h, w, 1)), label (int32).

        Args:
            images: an idx file of uint8, int32 or float32, as it is or gzipped; its first axis counts the records (string; required)
            labels: an idx file of as many uint8 or int32; empty: the labels are -1 (string; default '')

        Returns:
            A tuple of 2 nodes.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def cifar10(paths: str | Sequence[str], prefix: str = 'data_batch_') -> tuple[Node, Node]:
        """CIFAR-10 in binary -> image uint8 (32, 32, 3), label (int32).

        Args:
            paths: files, or folders: of a folder the files whose names begin with "prefix" and end with ".bin", in byte order (strings; required)
            prefix: of files in folders; "test_batch" is the test set (string; default 'data_batch_')

        Returns:
            A tuple of 2 nodes.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def cifar100(paths: str | Sequence[str], prefix: str = 'train') -> tuple[Node, Node, Node]:
        """CIFAR-100 in binary -> image uint8 (32, 32, 3), fine label (int32), coarse label (int32).

        Args:
            paths: files, or folders: of a folder the files whose names begin with "prefix" and end with ".bin", in byte order (strings; required)
            prefix: of files in folders; "test" is the test set (string; default 'train')

        Returns:
            A tuple of 3 nodes.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """

    @staticmethod
    def tokens(files: str | Sequence[str], dtype: Literal['', 'uint8', 'int8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'float16', 'float32', 'bfloat16'] = '', end: int = -1, unit: Literal['document', 'sequence'] = 'document') -> Node:
        """documents of token files (Megatron's .bin and .idx, elements only, or .npy of one axis) -> the tokens, in the files' type and any number.

        Args:
            files: paths or URIs of files; of directories (with a slash at the end: their .bin and .npy), or patterns with * ? [] in the last parts, which stand for the files in the byte order of their names; {000..123} and {a,b} stand for each in turn; up to 4194304 entries (strings; required)
            dtype: files that are no .npy have only elements, of this type, little-endian; empty: they are Megatron's .bin, each with its .idx beside it (string; one of '', 'uint8', 'int8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'float16', 'float32', 'bfloat16'; default '')
            end: a token with which each document ends, in files without an .idx; -1: a file is one document (int; -1 … 9,000,000,000,000,000; default -1)
            unit: what of a .bin a sample is: the .idx joins sequences to documents (string; one of 'document', 'sequence'; default 'document')

        Returns:
            A node.

        Raises:
            leat.InvalidArgument: an unknown argument, or a value of the wrong type or range.
        """
