"""Writes a PNG with nothing but Python's standard library."""

import struct
import zlib


def write(path, width, height, pixels):
    """Writes `pixels`, a bytes-like of height rows of width red, green and blue bytes."""

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    row = 3 * width
    raw = b"".join(b"\0" + bytes(pixels[y * row : (y + 1) * row]) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


STOPS = ((4, 4, 20), (80, 18, 123), (182, 54, 121), (251, 136, 97), (254, 210, 120), (252, 253, 240))


def heat(value):
    """A colour for a value from 0 to 1: black, violet, red, orange, yellow, white."""
    value = min(max(value, 0.0), 1.0) * 5
    stop = min(int(value), 4)
    part = value - stop
    return tuple(int(low + part * (high - low)) for low, high in zip(STOPS[stop], STOPS[stop + 1]))
