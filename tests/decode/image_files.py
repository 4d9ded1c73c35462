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
        stream = []
        for row in part.reshape(part.shape[0], -1):
            if depth == 16:
                stream.append(b"\0" + row.astype(">u2").tobytes())
            else:
                bits = np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, 8 - depth:]
                stream.append(b"\0" + np.packbits(bits.reshape(-1)).tobytes())
        return b"".join(stream)

    if interlaced:
        parts = [values[y::dy, x::dx] for x, y, dx, dy in PASSES]
        body = b"".join(lines(part) for part in parts if part.shape[0] and part.shape[1])
    else:
        body = lines(values)
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + extra
            + png_chunk(b"IDAT", zlib.compress(body)) + png_chunk(b"IEND", b""))


def without_clear_code(gif):
    """A GIF of one frame without the clear code that its codes begin with."""
    at = 13 + (6 << (gif[10] & 7) if gif[10] & 0x80 else 0)
    while gif[at] == 0x21:
        at += 2
        while gif[at]:
            at += gif[at] + 1
        at += 1
    at += 10 + (6 << (gif[at + 9] & 7) if gif[at + 9] & 0x80 else 0)
    bits, start, codes = gif[at], at + 1, b""
    at = start
    while gif[at]:
        codes += gif[at + 1:at + 1 + gif[at]]
        at += gif[at] + 1
    number = int.from_bytes(codes, "little")
    assert number & ((2 << bits) - 1) == 1 << bits
    codes = (number >> bits + 1).to_bytes(len(codes), "little")
    blocks = [codes[first:first + 255] for first in range(0, len(codes), 255)]
    return gif[:start] + b"".join(bytes([len(block)]) + block for block in blocks) + gif[at:]


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


def riff_chunk(kind, data):
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def framed_webp(canvas, place, size, still, has_alpha):
    """An animation whose only frame, a still image, lies somewhere on a canvas; offsets are even."""
    def numbers(*values):
        return b"".join(struct.pack("<I", value)[:3] for value in values)

    chunks, at = [], 12
    while at < len(still):
        length = 8 + struct.unpack_from("<I", still, at + 4)[0]
        chunks.append(still[at:at + length + length % 2])
        at += length + length % 2
    frame = b"".join(chunk for chunk in chunks if chunk[:4] in (b"ALPH", b"VP8 ", b"VP8L"))
    data = (riff_chunk(b"VP8X", struct.pack("<I", 18 if has_alpha else 2) + numbers(canvas[0] - 1, canvas[1] - 1))
            + riff_chunk(b"ANIM", b"\xff" * 4 + b"\0\0")
            + riff_chunk(b"ANMF", numbers(place[0] // 2, place[1] // 2, size[0] - 1, size[1] - 1, 100) + b"\0" + frame))
    return b"RIFF" + struct.pack("<I", len(data) + 4) + b"WEBP" + data


def packed_samples(rows, bits, order):
    """The bytes of an array (height, samples a row); each row begins on a byte."""
    if bits >= 8:
        return rows.astype(order + "u%d" % (bits // 8)).tobytes()
    digits = np.unpackbits(rows.astype(np.uint8)[:, :, None], axis=2)[:, :, 8 - bits:]
    return np.packbits(digits.reshape(rows.shape[0], -1), axis=1).tobytes()


def tiff_parts(values, bits, order, planar, tile, strip_rows):
    """Strips or tiles, plane by plane."""
    height, width, samples = values.shape
    part_height, part_width = (tile[1], tile[0]) if tile else (strip_rows or height, width)
    for plane in [values[:, :, k:k + 1] for k in range(samples)] if planar else [values]:
        for y in range(0, height, part_height):
            for x in range(0, width, part_width):
                part = plane[y:y + part_height, x:x + part_width]
                if tile:
                    part = np.pad(part, ((0, tile[1] - part.shape[0]), (0, tile[0] - part.shape[1]), (0, 0)))
                yield packed_samples(part.reshape(part.shape[0], -1), bits, order)


def tiff(values, bits=8, photometric=1, extras=(), planar=False, tile=None, strip_rows=None, byte_order="<", big=False,
         deflated=False, palette=None, tags=()):
    """A TIFF of an array (height, width, samples); `tags` are further or other ones: {tag: (type, numbers)}."""
    height, width, samples = values.shape
    parts = list(tiff_parts(values, bits, byte_order, planar, tile, strip_rows))
    parts = [zlib.compress(part) for part in parts] if deflated else parts
    header_bytes = 16 if big else 8
    offsets = [header_bytes + sum(len(part) for part in parts[:k]) for k in range(len(parts))]
    entries = {256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * samples), 259: (3, [8 if deflated else 1]),
               262: (3, [photometric]), 277: (3, [samples]), 284: (3, [2 if planar else 1])}
    entries.update({322: (4, [tile[0]]), 323: (4, [tile[1]]), 324: (4, offsets), 325: (4, [len(part) for part in parts])}
                   if tile else {273: (4, offsets), 278: (4, [strip_rows or height]), 279: (4, [len(part) for part in parts])})
    entries.update({338: (3, list(extras))} if extras else {})
    entries.update({320: (3, list(palette))} if palette is not None else {})
    entries.update(tags)
    body = b"".join(parts) + b"\0" * (sum(len(part) for part in parts) % 2)
    directory_offset = header_bytes + len(body)
    word = "Q" if big else "I"
    room, entry_bytes = (8, 20) if big else (4, 12)
    behind = directory_offset + (8 if big else 2) + entry_bytes * len(entries) + room
    directory, extra = struct.pack(byte_order + ("Q" if big else "H"), len(entries)), b""
    for tag, (kind, numbers) in sorted(entries.items()):
        data = struct.pack("%s%d%s" % (byte_order, len(numbers), {3: "H", 4: "I"}[kind]), *numbers)
        directory += struct.pack(byte_order + "HH" + word, tag, kind, len(numbers))
        if len(data) > room:
            directory += struct.pack(byte_order + word, behind + len(extra))
            extra += data + b"\0" * (len(data) % 2)
        else:
            directory += data + b"\0" * (room - len(data))
    magic = b"II" if byte_order == "<" else b"MM"
    start = struct.pack(byte_order + "HHHQ", 43, 8, 0, directory_offset) if big else \
        struct.pack(byte_order + "HI", 42, directory_offset)
    return magic + start + body + directory + struct.pack(byte_order + word, 0) + extra


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
