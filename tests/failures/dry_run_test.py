"""--dry-run refuses what the run refuses, with the same exit code, and writes nothing."""
import fcntl
import os
import re
import shutil
import subprocess
import sys

from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import sparse_packs
from packing import BIN, SMALL, Workspace, check, make_images


def exit_code(command, *arguments):
    done = subprocess.run([f"{BIN}/{command}", *arguments, "--progress", "none"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    return done.returncode, done.stdout.decode()


def entries(folder):
    return sorted(os.path.join(at, name) for at, folders, files in os.walk(folder) for name in folders + files)


def check_alike(space, output, expected, *command):
    """`command` with --dry-run and without it ends with the code `expected`; the first leaves everything as it was."""
    before = entries(space.path)
    dry, text = exit_code(*command, "-o", output, "--dry-run")
    check(entries(space.path) == before, command, "a dry run wrote something")
    real, said = exit_code(*command, "-o", output)
    check(dry == real == expected, command, output, "dry run", dry, text, "run", real, said)


def check_sheet(space, root):
    """--sheet names 16 images, and what would be rejected; without --dry-run it is an error."""
    flags = ["pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, "-o", space("drawn"), "--sheet", space("sheet.png")]
    code, text = exit_code(*flags, "--dry-run")
    lines = [line.split() for line in text[text.index("sheet.png: left"):].splitlines()[1:]]
    check(code == 0 and [line[0] for line in lines] == [str(number) for number in range(1, 17)], text)
    check(all(line[2:] == ["64x48", "->", "16x12"] for line in lines[:15]), text)
    check("would be rejected: truncated" in " ".join(lines[15]), text)
    check(not os.path.exists(space("drawn")), "a dry run wrote something")
    code, text = exit_code(*flags)
    check(code == 2 and "--sheet: found" in text and "without --dry-run" in text, text)


def check_findings(space):
    """The worst three that can be known before: rejects, classes that a pack lacks, few images, enlarged ones."""
    root = space("found")
    make_images(f"{root}/made", 40)
    for number, name in enumerate(["ant"] * 24 + ["bee"] * 15 + ["fox"]):
        os.makedirs(f"{root}/photos/{name}", exist_ok=True)
        shutil.copy(f"{root}/made/images/bee/00001.jpg", f"{root}/photos/{name}/{number}.jpg")
    flags = ["pack-images", f"{root}/photos", "-o", space("found-pack"), "--dry-run"]
    found = lambda *more: [line for line in exit_code(*flags, *more)[1].splitlines() if line.startswith("found: ")]
    check(found("--resize", "8x8") == ["found: 1 class of 3 with few images: class fox has 1, class ant 24"], found("--resize", "8x8"))
    open(f"{root}/photos/ant/broken.jpg", "w").close()
    lines = found("--split", "train=0.75,val=0.25", "--resize", "300x300")
    check([line.split(", the first")[0] for line in lines] == [
        "found: 1 of 41 files that were looked at would be rejected", "found: val lacks 1 class",
        "found: 1 class of 3 with few images: class fox has 1, class ant 25"] and "ant/broken.jpg" in lines[0], lines)
    os.remove(f"{root}/photos/fox/39.jpg")
    shutil.rmtree(f"{root}/photos/fox")
    os.remove(f"{root}/photos/ant/broken.jpg")
    lines = found("--resize", "300x300")
    check(len(lines) == 1 and lines[0].startswith("found: 39 of 39 files that were looked at are enlarged, the first"), lines)
    check(found("--resize", "8x8") == [], "nothing to find")
    for number in range(39):  # masks of half the height, and one that is missing
        name = f"{'ant' if number < 24 else 'bee'}/{number}"
        os.makedirs(os.path.dirname(f"{root}/masks/{name}"), exist_ok=True)
        width, height = Image.open(f"{root}/photos/{name}.jpg").size
        Image.new("L", (width, height if number % 2 else height // 2)).save(f"{root}/masks/{name}.png")
    os.remove(f"{root}/masks/ant/1.png")
    lines = found("--pair", f"{root}/masks", "--sizes", "own")
    check(len(lines) == 1 and lines[0].startswith("found: 21 of 39 files that were looked at would be rejected, the first is ant/0.jpg: "
                                                  "its mask ant/0.png: "), lines)


def check_space(space, root):
    """What a pack takes is foreseen: of images of their own sizes from their files, of photographs from the codec."""
    flags = ["pack-images", root, "--labels", f"{root}/labels.csv", "-o", space("own"), "--sizes", "own", "--dry-run"]
    foreseen = re.search(r"about ([\d.]+) kB on disk\n", exit_code(*flags)[1])
    files = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(f"{root}/images") for name in names)
    check(foreseen and abs(float(foreseen[1]) * 1000 / files - 1) < 0.1, foreseen and foreseen[0], files)
    small = [*flags[:6], *SMALL, "--container", "shard", "--dry-run"]
    text = exit_code(*small)[1]
    check(re.search(r"codec photo, at least [\d.]+ kB, photographs about [\d.]+ kB on disk\n", text), text)


def check_outputs(space, command, other, split):
    """`other`: the same with another spec; `split`: the command's flags for a split."""
    name = command[0]
    with open(space(f"{name}-file"), "w") as file:
        file.write("no folder\n")
    check_alike(space, space(f"{name}-file"), 73, *command)
    check_alike(space, space(f"{name}-file/below"), 73, *command)
    check_alike(space, space("n" * 300), 73, *command)
    os.makedirs(space(f"{name}-strange"))
    with open(space(f"{name}-strange/thesis.tex"), "w") as file:
        file.write("not a pack's\n")
    check_alike(space, space(f"{name}-strange"), 73, *command)

    code, text = exit_code(*command, "-o", space(f"{name}-pack"))
    check(code == 0, text)
    check_alike(space, space(f"{name}-pack"), 73, *other)
    check_alike(space, space(f"{name}-pack/inside"), 2, *command)
    check_alike(space, space(f"{name}-pack"), 0, *command)
    check(exit_code(*other, "-o", space(f"{name}-pack"), "--force", "--dry-run")[0] == 0, "--force would remove it")

    locked = os.open(space(f"{name}-pack"), os.O_RDONLY)
    fcntl.flock(locked, fcntl.LOCK_EX)
    check_alike(space, space(f"{name}-pack"), 75, *command)
    os.close(locked)

    code, text = exit_code(*command, *split, "-o", space(f"{name}-split"))
    check(code == 0, text)
    shutil.rmtree(space(f"{name}-split/train"))
    check_alike(space, space(f"{name}-split"), 73, *other, *split)


with Workspace() as space:
    root = space("photos")
    make_images(root, 60)
    images = ["pack-images", root, "--labels", f"{root}/labels.csv", *SMALL]
    check_outputs(space, images, [*images, "--seed", "5"], ["--split", "train=0.5,test=0.5"])
    check_alike(space, space("stale"), 0, *images, "--split", "train=0.5,test=0.5")
    check_alike(space, space("stale"), 73, *images, "--split", "train=0.5,val=0.5")
    make_images(space("damaged"), 64, bad=4)
    check_sheet(space, space("damaged"))
    check_space(space, root)
    check_findings(space)
    print("pack-images passed")
    source = sparse_packs.write_csv(space("ratings.csv"), sparse_packs.random_ratings(1))
    ratings = ["pack-sparse", source, *sparse_packs.SMALL]
    check_outputs(space, ratings, [*ratings, "--seed", "5"], ["--split-by", "ratio", "--test", "0.2"])
    check_alike(space, space("pack-images-pack"), 73, *ratings)
    check_alike(space, space("pack-sparse-pack"), 73, *images)
    more = sparse_packs.write_csv(space("more.csv"), sparse_packs.random_ratings(2))
    check_alike(space, space("pack-sparse-pack"), 73, "pack-sparse", more, *sparse_packs.SMALL)
    check_alike(space, space("empty"), 2, *ratings, "--split-by", "users", "--test", "0.0001")
    print("pack-sparse passed")
