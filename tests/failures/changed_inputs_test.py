"""Images that changed after they were packed are noticed by a repeated run, and the parts that hold them packed again; those that
were deleted since they were planned are rejects."""
import csv
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import SHIM, SMALL, Workspace, check, fingerprint, make_images, pack, run, run_tests
from PIL import Image
from shard_reader import xxh3


def begin(space, name, count=200):
    """A fresh copy of the images, packed."""
    root, out = space(name), space(name + "-pack")
    make_images(root, count)
    pack(root, out)
    return root, out


def repaint(path):
    size, before = os.path.getsize(path), os.stat(path)
    with Image.open(path) as image:
        turned = image.transpose(Image.ROTATE_180)
    turned.save(path)
    check(os.stat(path).st_mtime_ns != before.st_mtime_ns or os.path.getsize(path) != size, "the test changed nothing")


def check_as_new(space, root, out):
    pack(root, space("new"))
    check(fingerprint(out) == fingerprint(space("new")), out, "differs from a new pack")
    run("pack-verify", out)
    shutil.rmtree(space("new"))


def inputs_of(out):
    return [os.path.join(out, name) for name in os.listdir(out) if name.endswith(".inputs")]


def test_a_changed_image_was_not_noticed(space):
    root, out = begin(space, "changed")
    check("already packed" in pack(root, out), "nothing changed")
    repaint(f"{root}/images/ant/00003.jpg")
    text = pack(root, out)
    check("1 image changed since packed (images/ant/00003.jpg): 1 part packed again" in text, text)
    check("parts kept from earlier runs" in text, text)
    check_as_new(space, root, out)
    check("already packed" in pack(root, out), "the new state is recorded")


def test_a_change_under_an_unfinished_pack(space):
    root, out = begin(space, "unfinished")
    os.remove(out + "/manifest.json")
    repaint(f"{root}/images/bee/00001.jpg")
    check("images/bee/00001.jpg" in pack(root, out), "named")
    check_as_new(space, root, out)


def test_removed_and_added_images(space):
    root, out = begin(space, "removed")
    os.rename(f"{root}/images/cat/00002.jpg", space("kept.jpg"))
    text = pack(root, out)
    check("1 image changed" in text and "1 rejected" in text, text)
    check_as_new(space, root, out)
    check("already packed" in pack(root, out), "still away")
    os.rename(space("kept.jpg"), f"{root}/images/cat/00002.jpg")
    text = pack(root, out)
    check("1 image changed" in text and "0 rejected" in text, text)
    check_as_new(space, root, out)


def test_many_changes_are_named_in_short(space):
    root, out = begin(space, "many")
    golden = fingerprint(out)
    for name in os.listdir(f"{root}/images/ant"):
        os.utime(f"{root}/images/ant/{name}")
    text = pack(root, out)
    check("67 images changed since packed (" in text and ", …)" in text, text)
    check(fingerprint(out) == golden, "only times changed")


def test_trusted_inputs_are_not_compared(space):
    root, out = begin(space, "trusted")
    repaint(f"{root}/images/ant/00003.jpg")
    check("already packed" in pack(root, out, "--trust-inputs"), "--trust-inputs")


def test_a_pack_that_was_copied_without_records_of_inputs(space):
    root, out = begin(space, "copied")
    check(len(inputs_of(out)) > 3, os.listdir(out))
    with open(inputs_of(out)[0], "r+b") as file:
        file.seek(50)
        flipped = file.read(1)[0] ^ 1
        file.seek(50)
        file.write(bytes([flipped]))
    text = pack(root, out)
    check("1 finished part without .inputs" in text and "already packed" in text, text)
    for path in inputs_of(out):
        os.remove(path)
    text = pack(root, out)
    check("without .inputs" in text and "already packed" in text, text)
    run("pack-verify", out)


def test_killed_while_packing_anew(space):
    root, out = begin(space, "killed")
    for nth, op in enumerate(("unlink", "unlink", "unlink", "rename", "rename", "rename", "fsync", "pwrite"), 1):
        repaint(f"{root}/images/ant/00003.jpg")
        repaint(f"{root}/images/bee/00100.png" if os.path.exists(f"{root}/images/bee/00100.png") else f"{root}/images/bee/00001.jpg")
        pack(root, out, expect=(0, -signal.SIGKILL), env={"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:kill", "FAULT_PATH": out})
        pack(root, out)
        check_as_new(space, root, out)


def test_a_record_with_a_class_that_is_not_there_crashed(space):
    """A part's record, its seal right, whose class ids or rows are not this list's was trusted: SIGSEGV."""
    root, out = begin(space, "forged")
    golden = fingerprint(out)
    for before, after in (('"id": 2,', '"id": 200000000,'), ('"file": "part-00001.h5"', '"file": "part-00000.h5"')):
        os.remove(f"{out}/manifest.json")
        with open(f"{out}/part-00001.json") as file:
            body = file.read().rsplit('  "xxh3"', 1)[0]
        check(body.count(before) == 1, before, body)
        body = body.replace(before, after)
        with open(f"{out}/part-00001.json", "w") as file:
            file.write(body + f'  "xxh3": "{xxh3(body.encode()):016x}"\n}}\n')
        pack(root, out)
        check(fingerprint(out) == golden, after, "was taken")


def test_an_image_that_was_deleted_made_each_run_of_its_plan_ask_for_another(space):
    """pack-images rejects what is deleted between listing and packing; pack-run ended with 75 as long as it was gone."""
    root = space("listed")
    make_images(root, 160)
    images, first = f"{root}/images", f"{root}/images/ant/00000.png"
    for number, gone in enumerate((f"{images}/bee/00001.jpg", first)):
        for arguments in (SMALL, [*SMALL, "--labels", f"{root}/labels.csv"]):
            out = space(f"listed-pack{number}{len(arguments)}")
            run("pack-images", images if arguments is SMALL else root, *arguments, "--order", "input", "-o", out, "--plan", 2)
            os.rename(gone, space("away-image"))
            run("pack-run", out, "--task", 0)
            check("159 of 160 rows packed, 1 rejected" in run("pack-run", out), "no reject")
            with open(f"{out}/rejects.csv", newline="") as file:
                check([(row["file"].split("/")[-2:], row["reason"]) for row in csv.DictReader(file)] == [(gone.split("/")[-2:], "no such file")], out)
            os.rename(space("away-image"), gone)


def test_links_to_a_store_that_is_not_mounted_became_rejects(space):
    """Tasks ended with 0, and their images were lost: a link whose target is gone was taken for a deleted image."""
    root, out, store = space("linked"), space("linked-pack"), space("store")
    make_images(root, 160)
    os.rename(f"{root}/images", store)
    for folder, _, names in os.walk(store):
        below = os.path.join(root, "images", os.path.relpath(folder, store))
        os.makedirs(below, exist_ok=True)
        for name in names:
            os.symlink(os.path.join(folder, name), os.path.join(below, name))
    run("pack-images", f"{root}/images", *SMALL, "--follow-symlinks", "--max-errors", "100%", "-o", out, "--plan", 2)
    os.rename(store, space("unmounted"))
    run("pack-run", out, "--task", 1, expect=75)
    os.rename(space("unmounted"), store)
    check("160 rows packed" in (text := run("pack-run", out)), text)


def test_a_link_whose_target_was_deleted_made_each_run_of_its_plan_ask_for_another(space):
    """The target's folder is there and holds others, so that its file system is mounted."""
    root, out = space("dangling"), space("dangling-pack")
    make_images(root, 160)
    file, store = f"{root}/images/bee/00001.jpg", space("dangling-store")
    os.makedirs(store)
    os.rename(file, f"{store}/1.jpg")
    os.symlink("1.jpg", f"{store}/link")
    os.symlink(f"{store}/link", file)
    run("pack-images", f"{root}/images", *SMALL, "--follow-symlinks", "-o", out, "--plan", 2)
    os.remove(f"{store}/1.jpg")
    check("159 of 160 rows packed, 1 rejected" in (text := run("pack-run", out)), text)


def test_a_listed_file_whose_folder_went_away_is_no_reject(space):
    root, out = space("moved"), space("moved-pack")
    make_images(root, 160)
    run("pack-images", f"{root}/images", *SMALL, "--max-errors", "100%", "-o", out, "--plan", 2)
    for name in ("bee", "ant"):  # the first file of the list is an ant
        os.rename(f"{root}/images/{name}", space("away"))
        for make in (False, True):  # a bare mount point
            text = run("pack-run", out, expect=75)
            check("was there when the pack was planned" in text or "its file system mounted" in text or "is empty" in text, text)
            if not make:
                os.mkdir(f"{root}/images/{name}")
        os.rmdir(f"{root}/images/{name}")
        os.rename(space("away"), f"{root}/images/{name}")
    check("160 of 160 rows packed, 0 rejected" in run("pack-run", out), "packed once it is back")


def test_opposite_changes_of_an_image_and_its_mask_cancelled(space):
    """Their sizes and times were added up."""
    root, out = space("paired"), space("paired-pack")
    os.makedirs(f"{root}/images")
    os.makedirs(f"{root}/masks")
    for number in range(20):
        Image.new("RGB", (16, 12), (number * 10, 0, 0)).save(f"{root}/images/{number:02}.png")
        Image.new("L", (16, 12), number % 3).save(f"{root}/masks/{number:02}.png")
    arguments = ("pack-images", f"{root}/images", "--pair", f"{root}/masks", "--progress", "none", "-o", out)
    run(*arguments)
    check("already packed" in run(*arguments), "nothing changed")
    image, mask = f"{root}/images/03.png", f"{root}/masks/03.png"
    image_time, mask_time = os.stat(image).st_mtime_ns, os.stat(mask).st_mtime_ns
    os.utime(image, ns=(0, image_time + 5))
    os.utime(mask, ns=(0, mask_time - 5))
    text = run(*arguments)
    check("1 image changed since packed (03.png)" in text, text)


with Workspace() as workspace:
    run_tests(globals(), workspace)
