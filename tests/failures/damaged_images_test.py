"""Images that are not what they seem: damage that a crop hides, odd headers, time, bytes in reasons, fast decoding of turned ones."""
import csv
import io
import os
import subprocess
import sys
import zlib

import h5py
import numpy as np
from PIL import Image, ImageOps

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../decode"))
from packing import Workspace, check, run
from picture_files import png_chunk, saved


def photo(seed, width=512, height=384):
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)).resize((width, height), Image.BICUBIC)
    return Image.fromarray((np.asarray(coarse, np.int16) + rng.integers(-12, 12, (height, width, 3))).clip(0, 255).astype(np.uint8))


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def packed(root, out, *arguments):
    """Packs class folders; gives the rejects' reasons by file."""
    run("pack-images", root, "--max-errors", "100%", "--force", "--progress", "none", "--output", out, *arguments)
    with open(f"{out}/rejects.csv", newline="", encoding="utf-8") as file:
        text = file.read()
    check("\0" not in text, "a NUL in rejects.csv")
    return {row["file"]: row["reason"] for row in csv.DictReader(io.StringIO(text))}


def test_damage_that_a_crop_hides_is_found(space):
    """98 of 150 photos with a hole were packed with wrong pixels."""
    rng = np.random.default_rng(7)
    warned = set()
    for index in range(60):
        data = bytearray(saved(photo(index), "JPEG", quality=90))
        at = int(rng.integers(1000, len(data) - 5000))
        data[at:at + 4096] = bytes(4096)
        write(space(f"holes/x/{index:02}.jpg"), data)
        told = subprocess.run(["djpeg", "-outfile", "/dev/null", space(f"holes/x/{index:02}.jpg")], stderr=subprocess.PIPE, check=False)
        if told.stderr:
            warned.add(f"x/{index:02}.jpg")
    write(space("holes/x/good.jpg"), saved(photo(99), "JPEG"))
    check(len(warned) > 40, "djpeg warns about", len(warned))
    rejected = set(packed(space("holes"), space("holes-out"), "--resize", "256", "--crop", "224x224"))
    check(warned <= rejected and "x/good.jpg" not in rejected, warned - rejected)
    region = packed(space("holes"), space("holes-out"), "--resize", "256", "--crop", "224x224", "--check", "region")
    check(len(region) < len(rejected), "--check region looks as far as the whole check")
    print(f"  djpeg warns about {len(warned)} of 60: {len(rejected)} rejected, {len(region)} with --check region")


def test_rejects_hold_no_raw_bytes_of_a_damaged_file(space):
    good = saved(photo(1, 40, 30), "PNG")
    at = good.index(b"IDAT") - 4
    write(space("raw/x/chunk.png"), good[:at] + png_chunk(b"\x00\xffA\x80", b"") + good[at:])
    write(space("raw/x/good.png"), good)
    reasons = packed(space("raw"), space("raw-out"), "--resize", "16x16")
    check(reasons == {"x/chunk.png": "damaged PNG: unknown chunk \\x00\\xffA\\x80"}, reasons)
    with open(space("raw-out/part-00000.json"), encoding="utf-8") as file:
        check("\\\\x00\\\\xffA" in file.read(), "the part's record holds the same text")


def test_a_jpeg_of_many_scans_ends_at_the_limit_of_time(space):
    data = saved(photo(1, 4000, 4000), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    write(space("slow/x/scans.jpg"), data[:-2] + data[last:-2] * 85 + data[-2:])
    write(space("slow/x/good.jpg"), saved(photo(2), "JPEG"))
    reasons = packed(space("slow"), space("slow-out"), "--resize", "16x16", "--max-seconds-per-image", 1, "--accept-warnings")
    check(list(reasons) == ["x/scans.jpg"] and "--max-seconds-per-image" in reasons["x/scans.jpg"], reasons)


def test_fast_decoding_does_not_shift_turned_images(space):
    """Sides that are no multiple of the shrink: the partly covered pixels lie at the other side of a turned image."""
    upright = photo(5, 1021, 1019)
    turns = {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM, 5: Image.TRANSPOSE,
             6: Image.ROTATE_90, 7: Image.TRANSVERSE, 8: Image.ROTATE_270}
    differences = []
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        stored = upright if orientation == 1 else upright.transpose(turns[orientation])
        write(space(f"turned{orientation}/x/a.jpg"), saved(stored, "JPEG", quality=98, subsampling=0, exif=exif))
        pixels = []
        for decode in ("exact", "fast"):
            packed(space(f"turned{orientation}"), space("turned-out"), "--resize", "64x64", "--decode", decode)
            with h5py.File(space("turned-out/part-00000.h5")) as part:
                pixels.append(part["images"][0].astype(float))
        differences.append(np.abs(pixels[0] - pixels[1]).mean())
    print("  fast against exact, by orientation:", [round(each, 2) for each in differences])
    check(max(differences) < 1.15 * differences[0], differences)


def raw_profile(orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    data = exif.tobytes()
    lines = data.hex()
    lines = "\n".join(lines[at:at + 72] for at in range(0, len(lines), 72))
    return f"\nexif\n{len(data):8}\n{lines}\n".encode()


def test_png_orientation_in_xmp_and_raw_profiles_is_seen(space):
    """What Pillow's exif_transpose turns was packed as stored."""
    xmp = lambda digit: b'<x:xmpmeta><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>' % digit
    text = {"profile": png_chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw_profile(6))),
            "plain-profile": png_chunk(b"tEXt", b"Raw profile type exif\0" + raw_profile(3)),
            "xmp": png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp(8)),
            "packed-xmp": png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(xmp(5))),
            "element": png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<tiff:Orientation>7</tiff:Orientation>"),
            "profile-wins": png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp(8))
                            + png_chunk(b"tEXt", b"Raw profile type exif\0" + raw_profile(1)),
            "nonsense": png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp(9))}
    plain = saved(photo(3, 41, 29), "PNG")
    for name, chunk in text.items():
        data = plain[:33] + chunk + plain[33:]
        write(space(f"png-{name}/x/a.png"), data)
        packed(space(f"png-{name}"), space("png-out"), "--crop", "50x50")
        expected = Image.new("RGB", (50, 50))
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        expected.paste(upright, ((50 - upright.width) // 2, (50 - upright.height) // 2))
        with h5py.File(space("png-out/part-00000.h5")) as part:
            check(np.array_equal(part["images"][0], np.asarray(expected)), name, "differs from Pillow's")


with Workspace() as workspace:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test(workspace)
            print(name, "passed")
