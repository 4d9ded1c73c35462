"""The folder of a split is verified and described as a whole; a loader, for which train and test are not one, names the
packs."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from packing import Workspace, check, make_images, pack, run  # noqa: E402

SHARES = ["test", "train", "validation"]


def check_split(split, packer_text, packs_next):
    check(packs_next in packer_text, packer_text)
    verified = json.loads(run("pack-verify", split, "--json"))
    described = json.loads(run("pack-info", split, "--json"))
    check(list(verified) == SHARES == list(described), verified, described)
    check(all(not report["problems"] for report in verified.values()), verified)
    check(run("pack-verify", split).count(": whole") == 3)
    check(run("pack-info", split).count("a finished pack") == 3)
    check("holds several packs; name one of them" in run("pack-bench", split, expect=65))
    part = next(name for name in sorted(os.listdir(os.path.join(split, "test"))) if name.startswith("part-00000."))
    path = os.path.join(split, "test", part)
    with open(path, "r+b") as file:
        file.seek(-20, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-20, os.SEEK_END)
        file.write(bytes([byte ^ 1]))
    text = run("pack-verify", split, expect=65)
    check(text.count(": whole") == 2 and path in text, text)
    os.remove(os.path.join(split, "train", "manifest.json"))
    check("no finished pack" in run("pack-verify", split, expect=65))


if __name__ == "__main__":
    with Workspace() as space:
        root, split = space("root"), space("split")
        make_images(root, 120)
        text = pack(root, split, "--split", "train=0.8,validation=0.1,test=0.1")
        check_split(split, text, f"next: pack-info {split}; pack-verify {split}\n")
        table, split = space("ratings.csv"), space("ratings")
        with open(table, "w") as file:
            file.write("user,item,rating\n")
            file.writelines(f"{user},{(user * 7 + k * k) % 50},{1 + k % 5}\n" for user in range(300) for k in range(9))
        text = run("pack-sparse", table, "--split-by", "users", "--validation", "30", "--test", "30", "--output", split)
        check_split(split, text, f"next: pack-verify {split}; pack-bench {split}/")
    print("splits of images and ratings are verified and described as a whole")
