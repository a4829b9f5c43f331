"""Images that no program can shrink to nothing."""

import base64
import random
import struct
import zlib


def png(side=200):
    """Noise, as base64."""
    noise = random.Random(side)
    lines = b"".join(b"\0" + noise.randbytes(side * 3) for _ in range(side))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")).decode()
