"""Compares decoded images with Pillow's: whole images, random regions and channels, bit for bit but for 16-bit
BMP (a level). What Pillow reads and stb_image does not is a reject. Pillow 10 and later differ where tools/pixels.md says;
there these cases are left out.

Usage: pillow_test.py PATH_OF_DECODE_PROBE
"""

import io
import os
import random
import struct
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import PIL
from PIL import Image

sys.dont_write_bytecode = True  # the folder of the sources stays as it is

from image_files import bmp, framed_gif, framed_webp, image, png_chunk, raw_png, saved, tiff, without_clear_code  # noqa: E402

IS_PROMISED_PILLOW = int(PIL.__version__.split(".")[0]) < 10
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
SIZES = [(1, 1), (7, 5), (16, 16), (33, 47), (130, 98)]  # 130, 98: two pixels in the last MCU


class Probe:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def decode(self, path, region=(0, 0, 0, 0), channels=0):
        line = "1 %d %d %d %d %d %s\n" % (*region, channels, path)
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode().split()
        if answer[0] != "ok":
            return None, " ".join(answer[1:])
        header = dict(zip(("format", "width", "height", "channels", "orientation"),
                          answer[1:2] + [int(word) for word in answer[2:6]]))
        width, height, count = (int(word) for word in answer[6:9])
        pixels = np.frombuffer(self.process.stdout.read(width * height * count), np.uint8)
        return header, pixels.reshape(height, width, count)


class Comparison:
    def __init__(self, probe, folder):
        self.probe, self.folder = probe, folder
        self.files = self.comparisons = 0
        self.problems = []

    def write(self, data):
        path = os.path.join(self.folder, "image")
        with open(path, "wb") as file:
            file.write(data)
        self.files += 1
        return path

    def check_reject(self, name, data, reason):
        """What Pillow reads and stb_image does not is a reject."""
        header, got = self.probe.decode(self.write(data))
        if header is not None or got != reason:
            self.problems.append("%s: %s, not rejected with: %s" % (name, got, reason))

    def check(self, name, data, channels=(1, 3, 4), regions=3, orientation=1, natural=None, pixels=None, levels=0):
        """`pixels`: what to expect instead of Pillow's image; an RGBA, RGB or L array. `levels`: by how much a
        value may differ."""
        path = self.write(data)
        image = Image.open(io.BytesIO(data)) if pixels is None else Image.fromarray(pixels)
        width, height = image.size
        places = [(0, 0, 0, 0)] + [random_region(width, height) for _ in range(regions)]
        for count in channels:
            whole = np.asarray(image.convert(MODES[count])).reshape(height, width, count)
            for place in places:
                self.comparisons += 1
                header, got = self.probe.decode(path, place, count)
                if header is None:
                    self.problems.append("%s: %s" % (name, got))
                    return
                x, y, w, h = place if place[2] else (0, 0, width, height)
                if (np.abs(got.astype(int) - whole[y:y + h, x:x + w]) > levels).any():
                    self.problems.append("%s: %d channels, region %s differ" % (name, count, place))
                    return
        header, got = self.probe.decode(path)
        if (header["width"], header["height"], header["orientation"]) != (width, height, orientation):
            self.problems.append("%s: header %s" % (name, header))
        if header["channels"] != got.shape[2] or (natural and header["channels"] != natural):
            self.problems.append("%s: %d channels in the header, %d decoded, %s expected"
                               % (name, header["channels"], got.shape[2], natural))


def random_region(width, height):
    x, y = random.randrange(width), random.randrange(height)
    return x, y, random.randint(1, width - x), random.randint(1, height - y)


def check_jpeg(comparison):
    for seed, size in enumerate(SIZES):
        for subsampling in (0, 1, 2):
            for quality in (30, 85, 97):
                for progressive in (False, True):
                    name = "jpeg %s s%d q%d p%d" % (size, subsampling, quality, progressive)
                    data = saved(image(size, "RGB", seed), "JPEG", subsampling=subsampling, quality=quality,
                                 progressive=progressive)
                    comparison.check(name, data, regions=12, natural=3)
        for progressive in (False, True):
            gray = saved(image(size, "L", seed), "JPEG", progressive=progressive)
            comparison.check("gray jpeg %s p%d" % (size, progressive), gray, natural=1)
            cmyk = saved(image(size, "CMYK", seed), "JPEG", progressive=progressive)
            comparison.check("cmyk jpeg %s p%d" % (size, progressive), cmyk, natural=3)
            adobe = cmyk.index(b"\xff\xee")
            unmarked = cmyk[:adobe] + cmyk[adobe + 2 + struct.unpack_from(">H", cmyk, adobe + 2)[0]:]
            comparison.check("unmarked cmyk jpeg %s" % (size,), unmarked, natural=3)
            ycck = bytearray(cmyk)  # the same samples, called YCCK
            ycck[adobe + 15] = 2
            comparison.check("ycck jpeg %s" % (size,), bytes(ycck), natural=3)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        exif[0x10F] = "camera"
        data = saved(image((20, 10), "RGB", 1), "JPEG", exif=exif)
        comparison.check("jpeg orientation %d" % orientation, data, orientation=orientation)
        png = saved(image((20, 10), "RGB", 1), "PNG", exif=exif)
        comparison.check("png orientation %d" % orientation, png, orientation=orientation)
        check_exif_places(comparison, png, orientation)


def check_exif_places(comparison, png, orientation):
    """Where and how often a PNG may have its eXIf; the orientation that Pillow finds is the one to find."""
    begin = png.index(b"eXIf") - 4
    end = begin + 12 + struct.unpack_from(">I", png, begin)[0]
    chunk, without = png[begin:end], png[:begin] + png[end:]
    last = without[:-12] + chunk + without[-12:]
    upside_down = Image.Exif()
    upside_down[0x112] = 3
    for name, data in (("behind the pixels", last),
                       ("twice", last[:begin] + png_chunk(b"eXIf", upside_down.tobytes()[6:]) + last[begin:]),
                       ("cut short", without[:begin] + png_chunk(b"eXIf", chunk[8:20]) + without[begin:]),
                       ("empty", without[:begin] + png_chunk(b"eXIf", b"") + without[begin:])):
        pillow = Image.open(io.BytesIO(data))
        pillow.load()
        try:
            expected = pillow.getexif().get(0x112, 1)
        except Exception:  # what Pillow cannot read is no orientation
            expected = 1
        comparison.check("png orientation %d, eXIf %s" % (orientation, name), data, orientation=expected)


def check_raw_png(comparison, size, seed, interlaced):
    random_source = np.random.default_rng(seed)
    name = " %s interlaced %d" % (size, interlaced)

    def samples(depth, count):
        return random_source.integers(0, 1 << depth, (size[1], size[0], count))

    for depth in (1, 2, 4, 8):
        gray = samples(depth, 1)
        comparison.check("gray%d png" % depth + name, raw_png(gray, depth, 0, interlaced=interlaced), natural=1)
        # Pillow compares scaled grays with the unscaled transparent one, so alpha is checked against the format.
        value = int(gray[0, 0, 0])
        scaled = (gray * (255 // ((1 << depth) - 1))).astype(np.uint8)
        alpha = np.where(gray == value, 0, 255).astype(np.uint8)
        comparison.check("gray%d tRNS png" % depth + name,
                         raw_png(gray, depth, 0, png_chunk(b"tRNS", struct.pack(">H", value)), interlaced),
                         natural=2, pixels=np.concatenate([scaled, scaled, scaled, alpha], axis=2))
        used = max(2, (1 << depth) - (1 if IS_PROMISED_PILLOW else 0))  # the last index has no entry
        palette = random_source.integers(0, 256, used * 3).astype(np.uint8).tobytes()
        indices = samples(depth, 1)
        colors = png_chunk(b"PLTE", palette)
        comparison.check("palette%d png" % depth + name, raw_png(indices, depth, 3, colors, interlaced), natural=3)
        alphas = png_chunk(b"tRNS", random_source.integers(0, 256, used // 2).astype(np.uint8).tobytes())
        comparison.check("palette%d tRNS png" % depth + name,
                         raw_png(indices, depth, 3, colors + alphas, interlaced), natural=4)
        grays = png_chunk(b"PLTE", bytes(v for v in palette[:used] for _ in range(3)))
        comparison.check("gray palette%d png" % depth + name, raw_png(indices, depth, 3, grays, interlaced),
                         natural=1)
    rgb = samples(8, 3)
    rgb[0, 0] = (1, 2, 3)
    comparison.check("rgb tRNS png" + name,
                     raw_png(rgb, 8, 2, png_chunk(b"tRNS", struct.pack(">HHH", 1, 2, 3)), interlaced), natural=4)
    for color_type, count, natural in ((2, 3, 3), (4, 2, 2), (6, 4, 4)):
        deep = samples(16, count)
        comparison.check("16-bit type %d png" % color_type + name,
                         raw_png(deep, 16, color_type, interlaced=interlaced), natural=natural)
    deep = samples(16, 1)
    comparison.check("16-bit gray png" + name, raw_png(deep, 16, 0, interlaced=interlaced), natural=1,
                     pixels=(deep[:, :, 0] >> 8).astype(np.uint8))


def check_png(comparison):
    for seed, size in enumerate(SIZES):
        for mode, natural in (("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4)):
            comparison.check("%s png %s" % (mode, size), saved(image(size, mode, seed), "PNG"), natural=natural)
        for mode in ("1", "P"):
            comparison.check("%s png %s" % (mode, size), saved(image(size, "RGB", seed).convert(mode), "PNG"))
        for interlaced in (False, True):
            check_raw_png(comparison, size, seed, interlaced)
    # So large that no slack hides it: what it inflates to, indices and colors are in memory together.
    check_raw_png(comparison, (400, 300), len(SIZES), True)
    check_raw_png(comparison, (3, 20_000), len(SIZES) + 1, True)
    for bits in (2, 4, 8):
        paletted = image((400, 300), "RGB", 7).quantize(1 << bits)
        comparison.check("P png of %d bits with transparency" % bits, saved(paletted, "PNG", bits=bits, transparency=1),
                         natural=4)


def check_bmp(comparison):
    random_source = np.random.default_rng(5)
    for seed, size in enumerate(SIZES):
        for mode in ("1", "L", "P", "RGB", "RGBA"):
            comparison.check("%s bmp %s" % (mode, size), saved(image(size, "RGB", seed).convert(mode), "BMP"))
        for bits in (1, 4, 8):
            colors = 1 << bits
            palette = random_source.integers(0, 256, (colors, 4)).astype(np.uint8)
            name = "bmp %s of %d bits" % (size, bits)
            comparison.check(name, bmp(size, bits, palette.tobytes(), seed=seed), natural=3)
            comparison.check("top first " + name, bmp(size, bits, palette.tobytes(), top_first=True, seed=seed))
            comparison.check("OS/2 " + name, bmp(size, bits, palette[:, :3].tobytes(), os2=True, seed=seed))
        if IS_PROMISED_PILLOW:
            comparison.check("short palette bmp %s" % (size,), bmp(size, 8, palette[:77].tobytes(), seed=seed))
        for bits, masks in ((16, None), (24, None), (32, None), (16, (0xF800, 0x7E0, 0x1F)),
                            (16, (0x7C00, 0x3E0, 0x1F)), (32, (0xFF0000, 0xFF00, 0xFF)),
                            (32, (0xFF000000, 0xFF0000, 0xFF00))):
            comparison.check("bmp %s of %d bits, masks %s" % (size, bits, masks),
                             bmp(size, bits, masks=masks, seed=seed), natural=3, levels=1 if bits == 16 else 0)
        for masks in ((0xFF000000, 0xFF0000, 0xFF00, 0xFF), (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
                      (0xFF0000, 0xFF00, 0xFF, 0xFF000000)):
            comparison.check("bmp %s, masks %s" % (size, masks),
                             bmp(size, 32, masks=masks, alpha_mask=True, seed=seed), natural=4)


def check_gif(comparison):
    for seed, size in enumerate(SIZES + [(300, 280)]):
        colors = image(size, "RGB", seed)
        for count in (2, 7, 16, 200):
            for interlace in (0, 1):
                paletted = colors.quantize(count)
                name = "gif %s of %d colours, interlace %d" % (size, count, interlace)
                comparison.check(name, saved(paletted, "GIF", interlace=interlace))
                comparison.check("transparent " + name,
                                 saved(paletted, "GIF", interlace=interlace, transparency=paletted.getpixel((0, 0))))
        gray = saved(image(size, "L", seed), "GIF")
        comparison.check("gray gif %s" % (size,), gray, natural=1)
        comparison.check("gif %s without a first clear code" % (size,), without_clear_code(gray), natural=1)
        paletted = colors.quantize(16)
        screen, place = (size[0] + 9, size[1] + 4), (5, 2)
        comparison.check("gif %s on a screen" % (size,), framed_gif(screen, place, paletted))
        comparison.check("gif %s on a screen, transparent" % (size,), framed_gif(screen, place, paletted, 3))
        comparison.check("gif %s beyond its screen" % (size,), framed_gif((2, 2), place, paletted))
        frames = [image(size, "RGB", seed + k).quantize(16) for k in range(3)]
        comparison.check("animated gif %s" % (size,),
                         saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))


def check_tga(comparison):
    for seed, size in enumerate(SIZES):
        for mode, natural in (("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4), ("P", 3)):
            drawn = image(size, "RGB" if mode == "P" else mode, seed)
            drawn = drawn.quantize(50) if mode == "P" else drawn
            for compression in (None, "tga_rle"):
                for orientation in (1, -1):
                    data = bytearray(saved(drawn, "TGA", compression=compression, orientation=orientation))
                    name = "%s tga %s %s %d" % (mode, size, compression, orientation)
                    comparison.check(name, bytes(data), natural=natural)
                    data[17] |= 0x10
                    comparison.check_reject("mirrored " + name, bytes(data), "TGA from right to left is not supported")
        body = np.random.default_rng(seed).integers(0, 256, size[0] * size[1] * 2).astype(np.uint8).tobytes()
        header = struct.pack("<BBBHHBHHHHBB", 0, 0, 2, 0, 0, 0, 0, 0, size[0], size[1], 16, 0)
        without_alpha = (1, 3, 4) if IS_PROMISED_PILLOW else (1, 3)
        comparison.check("16-bit tga %s" % (size,), header + body, natural=3, channels=without_alpha)
        for bits in (16, 24):  # Pillow cannot read 32
            palette = np.random.default_rng(seed).integers(0, 256, 40 * bits // 8).astype(np.uint8).tobytes()
            indices = bytes(value % 40 for value in body[:size[0] * size[1]])
            for first in (0, 5):
                header = struct.pack("<BBBHHBHHHHBB", 3, 1, 1, first, 40, bits, 0, 0, size[0], size[1], 8, 0x20)
                name, data = "%d-bit palette tga %s" % (bits, size), header + b"id." + palette + indices
                if first == 0:
                    comparison.check(name, data, natural=3, channels=without_alpha if bits == 16 else (1, 3, 4))
                else:
                    comparison.check_reject(name, data, "TGA whose palette begins late is not supported")


def check_pnm(comparison):
    for seed, size in enumerate(SIZES):
        for mode, natural in (("L", 1), ("RGB", 3)):
            data = saved(image(size, mode, seed), "PPM")
            comparison.check("%s pnm %s" % (mode, size), data, natural=natural)
        for largest in (1, 3, 100, 254, 255, 256, 1023, 4095, 65535):
            values = np.random.default_rng(seed).integers(0, largest + 1, (size[1], size[0], 3))
            body = values.astype(">u2" if largest > 255 else np.uint8).tobytes()
            data = b"P6 # a comment\n%d\t%d\n%d\n" % (*size, largest) + body
            comparison.check("pnm %s up to %d" % (size, largest), data, natural=3)
            gray = values[:, :, 0]
            body = gray.astype(">u2" if largest > 255 else np.uint8).tobytes()
            # Pillow keeps 16 bits of gray and then saturates.
            scaled = np.array([[round(int(v) / largest * 255) for v in row] for row in gray], np.uint8)
            comparison.check("gray pnm %s up to %d" % (size, largest),
                             b"P5\n%d %d %d\n" % (*size, largest) + body, natural=1, pixels=scaled)


def check_webp(comparison):
    for seed, size in enumerate(SIZES + [(700, 500)]):
        for mode, natural in (("RGB", 3), ("RGBA", 4)):
            drawn = image(size, mode, seed)
            for options in ({"quality": 30}, {"quality": 95, "method": 6}, {"quality": 80, "method": 0},
                            {"lossless": True}, {"lossless": True, "exact": True, "quality": 100}):
                comparison.check("%s webp %s %s" % (mode, size, options), saved(drawn, "WEBP", **options),
                                 natural=natural)
            frames = [image(size, mode, seed + k) for k in range(3)]
            for lossless in (False, True):
                data = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=lossless)
                comparison.check("animated %s webp %s lossless %d" % (mode, size, lossless), data)
                still = saved(drawn, "WEBP", lossless=lossless)
                comparison.check("%s webp %s lossless %d on a canvas" % (mode, size, lossless),
                                 framed_webp((size[0] + 9, size[1] + 4), (6, 2), size, still, mode == "RGBA"))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        exif[0x10F] = "camera"
        data = saved(image((20, 10), "RGB", 1), "WEBP", exif=exif)
        comparison.check("webp orientation %d" % orientation, data, orientation=orientation)


def check_written_tiff(comparison, size, seed):
    """What Pillow writes by libtiff and by itself."""
    lossless = (None, "packbits", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate")
    for mode, natural in (("1", 1), ("L", 1), ("LA", 2), ("P", 3), ("RGB", 3), ("RGBX", 3), ("RGBA", 4), ("CMYK", 3)):
        drawn = image(size, "RGB", seed).convert(mode) if mode in "1P" else image(size, mode, seed)
        for compression in lossless + (("group3", "group4") if mode == "1" else ()):
            name = "%s tiff %s %s" % (mode, size, compression)
            comparison.check(name, saved(drawn, "TIFF", compression=compression), natural=natural)
            if compression == "tiff_lzw" and mode not in "1":
                comparison.check("predicted " + name,
                                 saved(drawn, "TIFF", compression=compression, tiffinfo={317: 2}), natural=natural)
        if mode in ("L", "RGB", "CMYK"):
            for quality in (30, 95):
                comparison.check("%s tiff %s jpeg %d" % (mode, size, quality),
                                 saved(drawn, "TIFF", compression="jpeg", quality=quality), natural=natural)
    pages = saved(drawn, "TIFF", save_all=True, append_images=[image((9, 9), "L", 1)])
    comparison.check("tiff %s of two pages" % (size,), pages, natural=3)


def check_raw_tiff(comparison, size, seed, layout):
    """Strips and tiles of any samples; both byte orders."""
    random_source = np.random.default_rng(seed)

    def samples(bits, count):
        return random_source.integers(0, 1 << bits, (size[1], size[0], count))

    def check(name, values, natural=None, pixels=None, **options):
        comparison.check("%s tiff %s %s" % (name, size, layout), tiff(values, **layout, **options), natural=natural,
                         pixels=pixels, regions=2)

    # Of planes that are not compressed Pillow decodes three or four of 8 bits; it clips gray of 16 bits.
    is_planar = layout.get("planar", False)
    for bits in () if is_planar else (1, 2, 4, 8):
        gray = samples(bits, 1)
        check("gray%d" % bits, gray, 1, bits=bits)
        check("white gray%d" % bits, gray, 1, bits=bits, photometric=0)
        palette = random_source.integers(0, 1 << 16, 3 << bits)
        check("palette%d" % bits, gray, 3, bits=bits, photometric=3, palette=palette)
        check("gray palette%d" % bits, gray, 1, bits=bits, photometric=3, palette=list(palette[:1 << bits]) * 3)
    deep = samples(16, 1)
    check("gray16", deep, 1, bits=16, pixels=(deep[:, :, 0] >> 8).astype(np.uint8))
    check("white gray16", deep, 1, bits=16, photometric=0, pixels=(255 - (deep[:, :, 0] >> 8)).astype(np.uint8))
    for bits in (8, 16) if not is_planar or layout.get("deflated") else (8,):
        check("rgb%d" % bits, samples(bits, 3), 3, bits=bits, photometric=2)
        check("rgba%d" % bits, samples(bits, 4), 4, bits=bits, photometric=2, extras=(2,))
        if layout.get("deflated"):
            check("associated alpha %d" % bits, samples(bits, 4), 4, bits=bits, photometric=2, extras=(1,))
    check("cmyk", samples(8, 4), 3, photometric=5)
    if not is_planar:
        check("gray alpha", samples(8, 2), 2, extras=(2,))
        check("palette alpha", samples(8, 2), 4, photometric=3, extras=(2,), palette=palette)
        check("rgbx", samples(8, 4), 3, photometric=2, extras=(0,))
        for bits in (8, 16):
            check("rgb%d of four" % bits, samples(bits, 4), 4, bits=bits, photometric=2)
            check("associated alpha %d" % bits, samples(bits, 4), 4, bits=bits, photometric=2, extras=(1,))
        check("rgb of six", samples(8, 6), 4, photometric=2, extras=(2, 0, 0))
        check("cmyk of five", samples(8, 5), 3, photometric=5, extras=(0,))


def check_tiff(comparison):
    for seed, size in enumerate(SIZES):
        check_written_tiff(comparison, size, seed)
        for layout in ({}, {"strip_rows": 3, "byte_order": ">"}, {"tile": (16, 32), "deflated": True}, {"planar": True},
                       {"planar": True, "strip_rows": 5, "deflated": True}, {"tile": (48, 16), "big": True},
                       {"planar": True, "tile": (16, 16), "byte_order": ">"}):
            check_raw_tiff(comparison, size, seed, layout)
    # Of a last strip that has all its rows Pillow's libtiff leaves some bytes unwritten.
    for height in (20, 31, 33):
        for planar in (False, True):
            pixels = np.asarray(image((40, 48), "RGB", height))
            data = tiff(pixels[:(height + 15) // 16 * 16], photometric=2, planar=planar, strip_rows=16, deflated=True,
                        tags={257: (4, [height])})
            comparison.check("tiff of a long last strip", data, natural=3, pixels=pixels[:height])
    gray = np.random.default_rng(3).integers(0, 256, (11, 13, 1))
    comparison.check("tiff of reversed bits", tiff(gray, tags={266: (3, [2])}))
    for orientation in range(1, 9):
        data = tiff(gray, tags={274: (3, [orientation])})
        comparison.check("tiff orientation %d" % orientation, data, orientation=orientation,
                         pixels=gray[:, :, 0].astype(np.uint8))
    for reason, options in (("of floating-point samples", {"bits": 32, "tags": {339: (3, [3])}}),
                            ("of signed samples", {"tags": {339: (3, [2])}}),
                            ("of 32 bits a sample", {"bits": 32}),
                            ("in CIE L*a*b*", {"photometric": 8}),
                            ("of 1 samples a pixel", {"photometric": 2}),
                            ("with Zstandard compression", {"tags": {259: (3, [50000])}}),
                            ("with compression 34676", {"tags": {259: (3, [34676])}})):
        comparison.check_reject("tiff " + reason, tiff(gray, **options), "TIFF %s is not supported" % reason)


def main():
    random.seed(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(Probe(sys.argv[1]), folder)
        for check in (check_jpeg, check_png, check_bmp, check_gif, check_tga, check_pnm,
                      check_tiff, check_webp):
            check(comparison)
    for error in comparison.problems:
        print(error)
    print("%d files, %d comparisons, %d problems" % (comparison.files, comparison.comparisons, len(comparison.problems)))
    return 1 if comparison.problems or comparison.files < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
