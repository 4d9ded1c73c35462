"""Images that are not what they seem: damage that a crop hides, odd headers, time, bytes in reasons, fast decoding of turned ones."""
import csv
import io
import json
import os
import subprocess
import sys
import zlib

import h5py
import numpy as np
from PIL import Image, ImageOps

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../decode"))
from packing import Workspace, check, fingerprint, make_images, run, run_tests
from image_files import png_chunk, saved


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
    said = reasons.pop("x/chunk.png").removeprefix("damaged PNG: [00][FF]A[80]: ")
    check(said in ("invalid chunk type", "bad header (invalid type)") and not reasons, said, reasons)
    with open(space("raw-out/part-00000.json"), encoding="utf-8") as file:
        check("[00][FF]A[80]" in file.read(), "the part's record holds the same text")


def test_a_jpeg_of_many_scans_ends_at_the_limit_of_time(space):
    data = saved(photo(1, 4000, 4000), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    write(space("slow/x/scans.jpg"), data[:-2] + data[last:-2] * 85 + data[-2:])
    write(space("slow/x/good.jpg"), saved(photo(2), "JPEG"))
    reasons = packed(space("slow"), space("slow-out"), "--resize", "16x16", "--max-seconds-per-image", 1, "--accept-warnings")
    check(list(reasons) == ["x/scans.jpg"] and "max_seconds_per_image" in reasons["x/scans.jpg"], reasons)


# Four parts of 60 images.
TINY = ["--resize", "16x12", "--chunk-samples", "8", "--part-bytes", "10000"]


def warned(out):
    """Gives warnings.csv as its rows and as warnings by file."""
    with open(f"{out}/warnings.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [int(row["row"]) for row in rows], {row["file"]: row["warning"] for row in rows}


def pack_odd(space, out, *arguments):
    return run("pack-images", space("odd"), *TINY, "--max-errors", "100%", "--progress", "none", "--output", out, *arguments)


def test_rows_packed_with_warnings_are_listed(space):
    """Harmless oddities were packed without a word, and so was damage under --accept-warnings."""
    good = saved(photo(4, 64, 48), "JPEG")
    later = good[:11] + b"\x09" + good[12:]
    table = good.index(b"\xff\xdb")
    odd = [f"x/{index:02}.jpg" for index in range(0, 60, 3)]
    for index in range(60):
        write(space(f"odd/x/{index:02}.jpg"), good if index % 3 else later if index % 2 else good[:table] + b"\1\2\3" + good[table:])
    write(space("odd/x/cut.jpg"), good[:len(good) * 2 // 3])
    out = space("odd-out")
    text = pack_odd(space, out, "--threads", 1)
    check("20 packed with warnings, see " + out + "/warnings.csv" in text, text)
    rows, warnings = warned(out)
    check(rows == sorted(rows) and sorted(warnings) == odd, rows, warnings)
    check("JFIF" in warnings["x/03.jpg"] and "extraneous bytes" in warnings["x/00.jpg"], warnings)
    check(json.loads(run("pack-info", out, "--json"))["warned"] == 20 and "20 packed with warnings" in run("pack-info", out), "pack-info")
    pack_odd(space, space("odd-four"), "--threads", 4)
    check(fingerprint(space("odd-four")) == fingerprint(out), "warnings depend on threads")
    pack_odd(space, space("accepted"), "--accept-warnings")
    check(sorted(warned(space("accepted"))[1]) == [*odd, "x/cut.jpg"], warned(space("accepted")))
    check(warned(space("accepted"))[1]["x/cut.jpg"].startswith("truncated: "), warned(space("accepted")))


def test_warnings_outlive_a_restart_and_a_changed_list_is_found(space):
    out = space("odd-out")
    golden = fingerprint(out)
    for name in ("manifest.json", "warnings.csv", "part-00001.json"):
        os.remove(f"{out}/{name}")
    left = json.loads(run("pack-info", out, "--json", expect=75))
    check(0 < left["warned"] < 20, left)
    pack_odd(space, out)
    check(fingerprint(out) == golden, "warnings differ after a restart")
    run("pack-verify", out)
    with open(f"{out}/warnings.csv", "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"!")
    text = run("pack-verify", out, expect=65)
    check(f"{out}/warnings.csv: checksum" in text and f"{out}/warnings.csv" in text.split("to repair")[1], text)
    os.remove(f"{out}/warnings.csv")
    check("not whole" in pack_odd(space, out) and fingerprint(out) == golden, "a missing warnings.csv is written again")
    text = run("pack-images", space("odd"), "--labels", f"{out}/warnings.csv", *TINY, "--output", space("again"))
    check("20 of 20 rows packed" in text and "--classes PACK keeps them" in text, text)


def test_too_many_rejects_left_no_list_of_warnings(space):
    """rejects.csv was written for the rows so far, warnings.csv was not."""
    rows = make_images(space("bad"), 60, bad=20, odd=True)
    odd = {name for index, (name, _) in enumerate(rows) if index % 7 == 0 and name.endswith("jpg") and index < 40}
    text = run("pack-images", space("bad"), "--labels", space("bad/labels.csv"), *TINY, "--order", "input", "--output", space("bad-out"), expect=1)
    check("rejects.csv (rows so far)" in text, text)
    check(set(warned(space("bad-out"))[1]) == odd, warned(space("bad-out")), odd)


def test_accept_warnings_means_the_same_for_every_format(space):
    """--accept-warnings packed damaged JPEGs alone."""
    image = photo(8, 64, 48)
    formats = {"bmp": "BMP", "gif": "GIF", "jpg": "JPEG", "pgm": "PPM", "png": "PNG", "ppm": "PPM", "tga": "TGA"}
    whole = {}
    for name, kind in formats.items():
        data = saved(image.convert("L") if name == "pgm" else image, kind)
        whole[name] = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        write(space(f"cut/x/{name}.{name}"), data[:len(data) * 2 // 3])
    write(space("cut/x/a.png"), saved(image, "PNG"))
    every = ["--crop", "64x48", "--order", "input"]
    check(len(packed(space("cut"), space("cut-out"), *every)) == len(formats), "damage is a reject")
    reasons = packed(space("cut"), space("cut-out"), *every, "--accept-warnings")
    check(list(reasons) == ["x/png.png"], "only PNG cannot be had in part", reasons)
    listed = warned(space("cut-out"))[1]
    names = sorted(set(formats) - {"png"})
    check(list(listed) == [f"x/{name}.{name}" for name in names], listed)
    check(all(warning.startswith("truncated: ") for warning in listed.values()), listed)
    with h5py.File(space("cut-out/part-00000.h5")) as part:
        samples = dict(zip(names, part["images"][1:]))
    for name in sorted(set(names) - {"jpg"}):
        there = (samples[name] != 0).any(axis=(1, 2))
        equal = (samples[name] == whole[name]).all(axis=(1, 2))
        # What the last block of data of a GIF lacks is read as color 0: some pixels, at most 226.
        check(25 <= there.sum() <= 36 and (there & ~equal).sum() <= (4 if name == "gif" else 0), name, there.sum())
    check(np.array_equal(samples["jpg"][:8], whole["jpg"][:8]) and (samples["jpg"][-8:] == 128).all(), "jpg")


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
    run_tests(globals(), workspace)
