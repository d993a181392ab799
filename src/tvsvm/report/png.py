"""Small pictures as PNG in a data URI, with nothing but zlib."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST_SIDE = 64
COLOR_TYPES = {1: 0, 3: 2, 4: 6}  # channels to PNG's code: grey, RGB, RGB with alpha


def thumbnail_uri(pixels: NDArray[Any]) -> str:
    """Data URI of pixels of shape (height, width[, 3 or 4]), thinned out to at most 64 a side.

    uint8 is shown as it is, anything else with its smallest value black and its largest white.
    """
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    if pixels.ndim not in (2, 3) or channels not in COLOR_TYPES or pixels.size == 0:
        raise ValueError(
            "An image must be of shape (height, width), (height, width, 3) or (height, width, 4). "
            f"Got {pixels.shape}; reshape it."
        )
    step = -(-max(pixels.shape[:2]) // LONGEST_SIDE)
    small = _as_bytes(pixels[::step, ::step])
    height, width = small.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPES[channels], 0, 0, 0)
    # Every line begins with its filter, here none.
    lines = np.hstack([np.zeros((height, 1), np.uint8), small.reshape(height, -1)])
    chunks = (
        (b"IHDR", header),
        (b"IDAT", zlib.compress(lines.tobytes())),
        (b"IEND", b""),
    )
    png = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _as_bytes(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint8:
        return pixels
    values = np.nan_to_num(pixels.astype(np.float64))
    low, high = values.min(), values.max()
    return np.round(255 * (values - low) / max(high - low, 1e-300)).astype(np.uint8)


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
