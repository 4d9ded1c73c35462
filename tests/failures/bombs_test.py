"""Images that ask for far more than they are: rejected with a reason, in bounded memory; the run goes on."""
import csv
import io
import os
import struct
import sys
import zlib

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../decode"))
from limits import run_limited
from packing import Workspace, check, run
from image_files import png_chunk, saved

MEMORY = 512 << 20
HUGE = 65500
IMAGE = Image.fromarray(np.random.default_rng(1).integers(0, 256, (30, 40, 3), dtype=np.uint8))


def png(width, height, data, depth=8, color_type=2, before=b""):
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + before + png_chunk(b"IDAT", data)
            + png_chunk(b"IEND", b""))


def zeros(count):
    """A zlib stream of so many zeros, a thousandth of that long."""
    deflate, stream = zlib.compressobj(9), b""
    for _ in range(count >> 20):
        stream += deflate.compress(bytes(1 << 20))
    return stream + deflate.compress(bytes(count & 0xFFFFF)) + deflate.flush()


def jpeg_of_size(width, height, **options):
    """A small JPEG whose header claims another size."""
    data = bytearray(saved(IMAGE, "JPEG", **options))
    frame = data.index(b"\xff\xc2" if options.get("progressive") else b"\xff\xc0")
    data[frame + 5:frame + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def jpeg_of_scans(count):
    """A progressive JPEG whose last scan comes again and again."""
    data = saved(Image.new("RGB", (2000, 2000)), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * count + data[-2:]


def gif(screen, frame, data=b"\x02\x02\x4c\x01\x00"):
    return (b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0) + bytes(6) + b"\x2c"
            + struct.pack("<HHHHB", 0, 0, *frame, 0) + data + b"\x3b")


def with_exif(exif):
    data = saved(IMAGE, "JPEG")
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 8) + b"Exif\0\0" + exif + data[2:]


def webp(kind, data):
    data = b"WEBP" + kind + struct.pack("<I", 10 if kind == b"VP8X" else len(data)) + data
    return b"RIFF" + struct.pack("<I", len(data)) + data


def webp_codes(side):
    """Lossless, a group of Huffman codes for every 4 x 4 pixels; a code of one symbol takes four bits."""
    one_symbol = "1000"
    lengths_8 = "0" + "0011" + "".join("100" if k in (2, 11) else "000" for k in range(12))  # all 256 symbols have 8 bits
    any_byte = lengths_8 + "1" + "110" + "01111111" + "1" * 256
    groups = (side // 4) ** 2
    bits = "0" + "1" + "1101" + "1" + "000" + "0" + any_byte * 2 + one_symbol * 3
    bits += "".join(f"{k % 256:08b}{k // 256:08b}" for k in range(groups)) + one_symbol * 5 * groups + "0" * 64
    size = (side - 1) | (side - 1) << 14
    stream = b"".join(int(bits[at:at + 8][::-1], 2).to_bytes(1, "little") for at in range(0, len(bits) // 8 * 8, 8))
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", size) + stream)


def avif(width, height):
    """A file of 20 x 10 pixels that says otherwise."""
    with open(os.path.join(os.path.dirname(__file__), "../fuzz/corpus/decode/avif-lossy"), "rb") as file:
        data = file.read()[8:]
    at = data.index(b"ispe") + 8
    return data[:at] + struct.pack(">II", width, height) + data[at + 8:]


def jxl(width, height):
    """Sizes of 30 bits, all else as a file without further fields has it; no frame."""
    bits, at = 0, 0
    for value, count in ((0, 1), (3, 2), (height - 1, 30), (0, 3), (3, 2), (width - 1, 30), (1, 1)):
        bits |= value << at
        at += count
    return b"\xff\x0a" + bits.to_bytes(9, "little") + bytes(100)


def tiff(tags):
    """Deflated gray; all tags are LONG."""
    tags = {258: 8, 259: 8, 262: 1, 273: 8, 278: 1 << 30, 279: 8, **tags}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    return b"II*\0" + struct.pack("<I8xH", 16, len(tags)) + entries + bytes(4)


def bombs():
    """Name → bytes of what must be rejected."""
    return {
        "jpeg-size.jpg": jpeg_of_size(HUGE, HUGE),
        "jpeg-progressive-size.jpg": jpeg_of_size(HUGE, HUGE, progressive=True),
        "jpeg-just-too-large.jpg": jpeg_of_size(16001, 16000),
        "jpeg-within-limit.jpg": jpeg_of_size(16000, 15999, progressive=True),
        "jpeg-no-width.jpg": jpeg_of_size(0, 30),
        "jpeg-scans.jpg": jpeg_of_scans(3000),
        "png-size.png": png(HUGE, HUGE, zlib.compress(b"")),
        "png-long.png": png(1, 0x7FFFFFFF, zlib.compress(b"")),
        "png-wraps-32-bits.png": png(0x10000, 0x10001, zlib.compress(b"")),
        "png-beyond-31-bits.png": png(0xFFFFFFFF, 0xFFFFFFFF, zlib.compress(b"")),
        "png-no-height.png": png(10, 0, zlib.compress(b"")),
        "png-16-bit.png": png(15000, 15000, zlib.compress(b""), 16, 6),
        "png-inflates.png": png(15000, 15000, zeros(15000 * 45001)),
        "png-inflates-past-its-size.png": png(10, 10, zeros(900 << 20)),
        "gif-screen.gif": gif((HUGE, HUGE), (10, 10)),
        "gif-frame.gif": gif((10, 10), (HUGE, HUGE)),
        "bmp-size.bmp": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 24, *[0] * 6),
        "tga-size.tga": struct.pack("<BBBHHBHHHHBB", 0, 0, 10, 0, 0, 0, 0, 0, 65535, 65535, 24, 0) + b"\xffabc" * 100,
        "pnm-size.ppm": b"P6 99999999999999999999 99999999999999999999 255\n" + bytes(1000),
        "pnm-large.ppm": b"P6 65500 65500 255\n" + bytes(1000),
        "webp-size.webp": webp(b"VP8L", b"\x2f\xff\xff\xff\x0f" + bytes(100)),
        "webp-within-limit.webp": webp(b"VP8L", b"\x2f" + struct.pack("<I", 15998 | 15999 << 14) + bytes(100)),
        "webp-canvas.webp": webp(b"VP8X", b"\2\0\0\0" + b"\xff\xff\0" * 2 + b"ANMF\0\0\0\0"),
        "webp-codes.webp": webp_codes(1024),
        "tiff-size.tif": tiff({256: 30000, 257: 30000}),
        "tiff-within-limit.tif": tiff({256: 16000, 257: 15999}),
        "tiff-wraps-32-bits.tif": tiff({256: 0x10000, 257: 0x10001}),
        "tiff-tiles.tif": tiff({256: 10, 257: 10, 322: 1 << 30, 323: 1 << 30, 324: 8, 325: 8}),
        "tiff-samples.tif": tiff({256: 10, 257: 10, 277: 60000}),
        "avif-size.avif": avif(30000, 30000),
        "avif-within-limit.avif": avif(15999, 15998),
        "avif-small-header.avif": avif(2, 2),
        "jxl-size.jxl": jxl(30000, 30000),
        "jxl-within-limit.jxl": jxl(15999, 15998),
        "svg-entities.svg": b"<!DOCTYPE s [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;&a;'>]><svg>&b;</svg>",
        "zip.jpg": b"PK\x03\x04" + bytes(1000),
    }


def harmless():
    """Name → bytes of what looks odd, yet is an image."""
    tiff = b"II*\0" + struct.pack("<I", 8)
    loop = tiff + struct.pack("<HHHIII", 1, 0x8769, 4, 1, 8, 8)  # a directory that is its own child and successor
    notes = b"".join(png_chunk(b"zTXt", b"note\0\0" + zeros(64 << 20)) for _ in range(3))
    rows = zlib.compress(b"".join(b"\0" + bytes(120) for _ in range(30)))
    crumbs = b"".join(png_chunk(b"IDAT", rows[at:at + 1]) for at in range(len(rows))) + png_chunk(b"IDAT", b"") * 20000
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 40, 30, 8, 2, 0, 0, 0))
    return {
        "exif-loop.jpg": with_exif(loop),
        "exif-large.jpg": with_exif(loop + bytes(65000)),
        "icc-large.jpg": saved(IMAGE, "JPEG", icc_profile=bytes(3 << 20)),
        "png-notes-inflate.png": png(40, 30, rows, before=notes),
        "png-crumbs.png": b"\x89PNG\r\n\x1a\n" + header + crumbs + png_chunk(b"IEND", b""),
        "animated.gif": saved(IMAGE, "GIF", save_all=True, append_images=[IMAGE.rotate(k) for k in range(200)]),
        "cmyk.jpg": saved(IMAGE.convert("CMYK"), "JPEG", progressive=True),
    }


with Workspace() as space:
    os.makedirs(space("root"))
    bad, good = bombs(), harmless()
    with open(space("list.csv"), "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("file", "label"))
        for name, data in {**good, **bad}.items():
            open(space(f"root/{name}"), "wb").write(data)
            rows.writerow((name, "x"))
    for threads in (1, 4):
        out = space(f"out{threads}")
        done = run_limited("pack-images", space("root"), "--labels", space("list.csv"), "--resize", "16x16", "--output", out,
                           "--max-errors", "100%", "--memory-bytes", "512M", "--max-decode-bytes", "256M", "--threads", threads)
        check(done.code == 0, done)
        check(done.peak_bytes < MEMORY, done)
        with open(f"{out}/rejects.csv", newline="") as file:
            reasons = {row["file"]: row["reason"] for row in csv.DictReader(file)}
        check(set(reasons) == set(bad), "wrongly packed:", set(bad) - set(reasons), "wrongly rejected:",
              {name: reasons[name] for name in set(reasons) - set(bad)})
        for name in ("jpeg-size.jpg", "jpeg-just-too-large.jpg", "png-size.png", "gif-frame.gif", "pnm-large.ppm",
                     "webp-size.webp", "tiff-size.tif", "tiff-tiles.tif", "jxl-size.jxl"):
            check("pixels" in reasons[name], name, reasons[name])
        check("too large" in reasons["avif-size.avif"], reasons["avif-size.avif"])
        for name in ("jpeg-within-limit.jpg", "png-inflates.png", "webp-within-limit.webp", "tiff-within-limit.tif",
                     "webp-codes.webp", "avif-within-limit.avif", "jxl-within-limit.jxl"):
            check("memory" in reasons[name], name, reasons[name])
        run("pack-verify", out)
        print(len(bad), "bombs rejected with", threads, "threads, peak", done.peak_bytes >> 20, "MiB")
    for name, reason in sorted(reasons.items()):
        print(f"  {name}: {reason}")
