"""Makes images and image files for the comparison with Pillow, also such as Pillow does not write."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def image(size, mode, seed):
    """Edges, gradients and noise."""
    random_source = np.random.default_rng(seed)
    width, height = size
    count = len(Image.new(mode, (1, 1)).getbands())
    y, x, c = np.mgrid[0:height, 0:width, 0:count]
    values = (x * 3 + y * 2 + c * 60) % 150 + ((x // 5 + y // 7) % 2) * 70
    values = values + random_source.integers(0, 36, values.shape)
    array = values.astype(np.uint8)
    return Image.fromarray(array if count > 1 else array[:, :, 0], mode)


def saved(image, file_format, **options):
    stream = io.BytesIO()
    image.save(stream, file_format, **options)
    return stream.getvalue()


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def raw_png(values, depth, color_type, extra=b"", interlaced=False):
    """A PNG without line filters from an array (height, width, samples) of samples of `depth` bits."""
    height, width, samples = values.shape

    def lines(part):
        stream = b""
        for row in part.reshape(part.shape[0], -1):
            if depth == 16:
                stream += b"\0" + row.astype(">u2").tobytes()
            else:
                bits = np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, 8 - depth:]
                stream += b"\0" + np.packbits(bits.reshape(-1)).tobytes()
        return stream

    if interlaced:
        parts = [values[y::dy, x::dx] for x, y, dx, dy in PASSES]
        body = b"".join(lines(part) for part in parts if part.shape[0] and part.shape[1])
    else:
        body = lines(values)
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + extra
            + png_chunk(b"IDAT", zlib.compress(body)) + png_chunk(b"IEND", b""))


def bmp(size, bits, palette=b"", masks=None, os2=False, top_first=False, seed=0, alpha_mask=False):
    width, height = size
    stride = (width * bits + 31) // 32 * 4
    body = np.random.default_rng(seed).integers(0, 256, stride * height).astype(np.uint8).tobytes()
    if os2:
        header = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        colors = len(palette) // 4
        head_bytes = 108 if alpha_mask else 40
        header = struct.pack("<IiiHHIIiiII", head_bytes, width, -height if top_first else height, 1, bits,
                             3 if masks else 0, len(body), 0, 0, colors, 0)
        header += struct.pack("<%dI" % len(masks), *masks) if masks else b""
        header += b"\0" * (head_bytes - len(header)) if alpha_mask else b""
    offset = 14 + len(header) + len(palette)
    return b"BM" + struct.pack("<IHHI", offset + len(body), 0, 0, offset) + header + palette + body


def framed_gif(screen, place, image, transparent=None):
    """A GIF whose frame lies somewhere on a screen of another size."""
    data = saved(image, "GIF", **({} if transparent is None else {"transparency": transparent}))
    at = data.index(b"\x2c" + struct.pack("<HHHH", 0, 0, *image.size))
    return (data[:6] + struct.pack("<HH", *screen) + data[10:at + 1] + struct.pack("<HH", *place)
            + data[at + 5:])


def pack_bits(row):
    """Literal and repeated runs, as they come."""
    packed, at = b"", 0
    while at < len(row):
        run = 1
        while at + run < len(row) and run < 128 and row[at + run] == row[at]:
            run += 1
        packed += bytes([257 - run, row[at]]) if run > 1 else bytes([0, row[at]])
        at += run
    return packed


def psd(planes, mode, packed):
    count, height, width = planes.shape
    head = b"8BPS" + struct.pack(">H6xHIIHH", 1, count, height, width, 8, mode) + b"\0" * 12
    if not packed:
        return head + b"\0\0" + planes.tobytes()
    rows = [pack_bits(row.tobytes()) for plane in planes for row in plane]
    return head + b"\0\1" + b"".join(struct.pack(">H", len(row)) for row in rows) + b"".join(rows)
