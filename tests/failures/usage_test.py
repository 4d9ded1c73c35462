"""Wrong use and hostile input: the documented exit code and a message that helps."""
import csv
import os
import shlex
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import Workspace, check, fingerprint, make_images, pack, run

with Workspace() as space:
    root = space("photos")
    make_images(root, 30)
    labels = f"{root}/labels.csv"
    for arguments, words in ((["--nonsense"], "nonsense"), ([root], "--output"), ([root, "-o", space("x"), "--resize", "0x4"], "resize"),
                             ([root, "-o", space("x"), "--resample", "blur"], "bilinear"),
                             ([root, "-o", space("x"), "--codec", "photo"], "deflate"),
                             ([root, "-o", space("x"), "--codec", "deflate:99"], "level"),
                             ([root, "-o", space("x"), "--memory-bytes", "lots"], "memory"),
                             ([root, "-o", space("x"), "--resize", "9000x9000", "--container", "shard"], "expected at most 134217728"),
                             ([root, "-o", space("x"), "--split", "a=0.5"], "add up"),
                             ([root, "-o", space("x"), "--codec", "lz4"], "expected one of none, deflate, zstd"),
                             ([root, "-o", space("x"), "--resize", "64X64"], "--resize: expected WxH or N"),
                             ([root, "-o", space("x"), "--crop", "64x"], "--crop: expected WxH or N, with sides of 1 to 65535 pixels, found '64x'"),
                             ([root, "-o", space("x"), "--max-errors", "200%"], "expected a count or a share like 0.1 or 10%, found '200%'"),
                             ([root, "-o", space("x"), "--reszie", "8"], 'not expected: --reszie; did you mean "--resize"?'),
                             ([root, "-o", space("x"), "--size", "own"], 'not expected: --size; did you mean "--sizes"?'),
                             ([root, "-o", space("x"), "--size=own"], 'not expected: --size=own; did you mean "--sizes"?'),
                             ([root, "-o", space("x"), "--size", "64"], 'not expected: --size; did you mean "--resize"?'),
                             ([root, "-o", space("x"), "--part-samples", "8"], "--part-samples: is for --sizes own"),
                             ([root, "-o", space("x"), "--split-folder", "a,b"], '--split-folder; did you mean "--split-folders"?'),
                             ([root, "-o", space("x"), "--container", "zarr"], "--container: found zarr, expected one of hdf5, shard"),
                             ([root, labels, "-o", space("x")], "expected one folder, or archives alone"),
                             # It made the folder --seed.
                             ([root, "-o", "--seed", "3"], "-o: expected a value, found the flag --seed"),
                             ([root, "--labels", "-o", space("x")],
                              "--labels: expected a value, found the flag -o; --labels=-o is that text"),
                             # These had no effect, without a word.
                             ([root, "-o", space("x"), "--pad-color", "white", "--resize", "8x8"], "--pad-color: is for --fit, which pads"),
                             ([root, "-o", space("x"), "--mask-pad", "255", "--resize", "8x8"],
                              "--mask-pad: is for --fit and --crop, which pad; loaders have mask_padding"),
                             ([root, "-o", space("x"), "--resample", "lanczos", "--crop", "4"],
                              "--resample: is for images that are resized: give --resize or --fit, or with --sizes own --max-side or --short-side"),
                             ([root, "-o", space("x"), "--resample", "box", "--sizes", "own"], "or with --sizes own --max-side or --short-side"),
                             ([root, "-o", space("x"), "--on-error", "fail", "--max-errors", "3"],
                              "--max-errors is for bad images that are left out: give --on-error skip"),
                             (["s3://bucket/photos", "-o", space("x")],
                              "ROOT: s3://bucket/photos is on a server, expected files here: mount it (mount-s3, rclone mount), or "
                              "copy it: aws s3 sync s3://bucket/photos photos; a finished pack"),
                             (["https://host/shard.tar", "-o", space("x")], "copy it: wget https://host/shard.tar;"),
                             (["https://me:secret@host/shard.tar?key=secret", "-o", space("x")], "ROOT: https://host/shard.tar is on"),
                             ([root, "--labels", "s3://bucket/a.csv", "-o", space("x")], "--labels: s3://bucket/a.csv is on a server"),
                             ([root, "-o", "s3://bucket/train"], "--output: s3://bucket/train is on a server, expected a folder here"),
                             (["--first", "--second"], "--first --second"), ([], "ROOT is required")):
        text = run("pack-images", *arguments, expect=2)
        check(words in text and text.endswith("Try 'pack-images --help'.\n"), arguments, text)
    for command in ("pack-bench", "pack-images", "pack-info", "pack-merge", "pack-run", "pack-sparse", "pack-verify"):
        text = run(command, "--help")
        check("Examples" in text or command not in ("pack-images", "pack-sparse"), "examples in the help")
        check(all(len(line) <= 100 for line in text.splitlines()), command, "a line of the help is wider than 100 columns", text)
    # A folder in brackets was another folder: they were taken off.
    os.mkdir(space("[photos]"))
    before = os.getcwd()
    os.chdir(space("."))
    text = run("pack-images", "[photos]", "-o", "x", "--save-config", "brackets.toml", expect=65)
    os.chdir(before)
    check("[photos]" in text, text)
    with open(space("brackets.toml")) as file:
        check("ROOT='[photos]'" in file.read().replace('"', "'"), "recipe")
    check("--seed: is given twice, expected once" in run("pack-images", root, "-o", space("x"), "--seed", "1", "--seed", "2", expect=2), "twice")
    # CLI11 2.4 escaped every byte above ASCII, which 2.1 read as it stands.
    for name in ("café", 'say "hi"', "it's"):
        run("pack-images", name, "-o", "x", "--save-config", space("names.toml"), expect=65)
        with open(space("names.toml"), encoding="utf-8") as file:
            check(name != "café" or 'ROOT="café"' in file.read(), "a recipe for any version of CLI11")
        check(f"{name}:" in run("pack-images", "--config", space("names.toml"), expect=65), name)
    check("HDF5" in run("pack-images", "--version"), "library versions")
    check("no finished pack" in run("pack-info", root, expect=65), "pack-info of no pack")
    run("pack-verify", space("nowhere"), expect=65)
    for command in ("pack-verify", "pack-info"):
        text = run(command, space("a"), space("b"), expect=2)
        check(f"not expected: {space('b')}; PATH is one: run the command for each, or for the folder that holds them" in text, text)
    # Commands said "Value 0 not in range", where pack-images says what it expects.
    for command, flag in (("pack-verify", "--threads"), ("pack-bench", "--epochs")):
        text = run(command, root, flag, "0", expect=2)
        check(f"{flag}: expected a whole number from 1 to" in text and "found '0'" in text, text)
    print("usage passed")

    for arguments in ([space("nowhere")], [root, "--labels", space("nowhere")]):
        text = run("pack-images", *arguments, "-o", space("x"), expect=65)
        check("nowhere" in text and not os.path.exists(space("x")), arguments, text)
    check("UINT" not in run("pack-verify", "--help"), "CLI11's words in the help")
    dry = run("pack-images", root, "--labels", labels, "-o", space("x"), "--fit", "64", "--dry-run")
    check("64 wide x 64 high" in dry, "--fit 64 was no square", dry)
    with open(labels) as file, open(space("headless.csv"), "w") as headless:
        headless.writelines(list(file)[1:])
    for mode in ([], ["--dry-run"], ["--plan", "2"]):
        text = run("pack-images", root, "--labels", space("headless.csv"), "-o", space("x"), *mode, expect=65)
        check('line 1: expected a header with a column "file" for --file-column, found "images/ant/00000.png", "ant"' in text, text)
    text = pack(root, space("x"), "--label-column", "nose", expect=65)
    check("nose" in text and "label" in text, text)
    text = pack(root, space("x"), "--label-column", "label,lable", expect=65)
    check('column "lable" for --label-column, found "file", "label"; did you mean "label"?\n' in text, text)
    check('column "file" is given twice' in pack(root, space("x"), "--label-column", "file,label", expect=2), "a file as its label")
    os.makedirs(space("taken"))
    open(space("taken/thesis.tex"), "w").write("years of work")
    check("thesis.tex" in pack(root, space("taken"), "--force", expect=73), "refuses a folder with other things")
    check(os.path.exists(space("taken/thesis.tex")), "the other thing is still there")

    with open(space("shapes.csv"), "w") as file:
        file.write("file,label\nimages/ant/00000.png,a\nodd.png,b\n")
    from PIL import Image
    Image.new("RGB", (10, 10)).save(f"{root}/odd.png")
    text = run("pack-images", root, "--labels", space("shapes.csv"), "-o", space("x"), expect=65)
    check("odd.png" in text and "00000.png" in text and "10x10" in text, text)
    print("bad data passed")

    os.symlink("/etc/passwd", f"{root}/out.jpg")
    os.mkfifo(f"{root}/pipe.jpg")
    open(f"{root}/empty.jpg", "w").close()
    hostile = ["../../etc/passwd", "/etc/passwd", "out.jpg", "pipe.jpg", "empty.jpg", "images", "missing.jpg", "labels.csv"]
    with open(space("hostile.csv"), "w", newline="") as file:
        csv.writer(file).writerows([("file", "label"), ("images/ant/00000.png", "a"), *((name, "a") for name in hostile)])
    run("pack-images", root, "--labels", space("hostile.csv"), "-o", space("hostile"), "--max-errors", "100%")
    with open(space("hostile/rejects.csv"), newline="") as file:
        reasons = {row["file"].removeprefix("./"): row["reason"] for row in csv.DictReader(file)}
    check(set(reasons) == set(hostile), reasons)
    check(all("root" in reasons[name] or "leads" in reasons[name] for name in hostile[:3]), reasons)
    print("hostile paths passed")

    text = run("pack-images", root, "--labels", space("hostile.csv"), "-o", space("stopped"), expect=1)
    check("--max-errors" in text and space("stopped/rejects.csv") in text and os.path.exists(space("stopped/rejects.csv")), text)
    check("--on-error fail" in run("pack-images", root, "--labels", space("hostile.csv"), "-o", space("failed"), "--on-error", "fail", expect=1), "fail")
    dry = run("pack-images", root, "--labels", labels, "-o", space("dry"), "--resize", "8x8", "--dry-run")
    check("30 rows" in dry and "3 classes: 0 = ant" in dry and not os.path.exists(space("dry")), dry)
    run("pack-images", root, "--labels", labels, "-o", space("recipe"), "--resize", "8x8", "--save-config", space("r.toml"))
    run("pack-images", root, "--labels", labels, "-o", space("recipe2"), "--config", space("r.toml"))
    open(space("bad.toml"), "w").write("rezise = '8x8'\n")
    # A recipe without an end was read until memory was out.
    for command in ("pack-images", "pack-sparse"):
        text = run(command, root, "-o", space("y"), "--config", "/dev/zero", expect=2)
        check("/dev/zero" in text and "bytes, expected a recipe" in text, text)
    text = run("pack-images", root, "-o", space("y"), "--config", space("bad.toml"), expect=2)
    check(f'unknown key "rezise" in {space("bad.toml")}; did you mean "resize"?' in text and "--help" in text, text)
    # A recipe of another command was said to have an unknown key, and a missing one had no reason.
    for command, path, words in (("pack-sparse", space("r.toml"), "is a recipe of pack-images, expected one of pack-sparse"),
                                 ("pack-images", space("none.toml"), "cannot be read: No such file or directory"),
                                 ("pack-images", root, "cannot be read: Is a directory")):
        text = run(command, root, "-o", space("y"), "--config", path, expect=2)
        check(f"{path}: {words}" in text, text)
    open(space("noted.toml"), "w").write("# Recipe of pack-sparse was a start\r\nseed = 3\r\n")
    check("seed: 0 before, 3 now" in run("pack-images", root, "-o", space("recipe"), "--resize", "8x8", "--labels", labels, "--config", space("noted.toml"),
                                                expect=73), "the note of a recipe")
    text = run("pack-images", root, "-o", space("y"), "--split", "0.2", expect=2)
    check("--split: expected names with shares, as train=0.8,val=0.2, found '0.2'" in text, text)
    print("limits, dry run and recipes passed")

    # What pack-info prints could not be pasted: spec entries of all fields, "test=0" among them.
    with open(space("ratings.csv"), "w") as file:
        file.write("user,item,rating,time\n" + "".join(f"{at % 9},{at * 7 % 40},{at % 5 + 1},{at}\n" for at in range(300)))
    for name, dimensions, content in (("images", (20, 6, 5), bytes(range(200)) * 3), ("labels", (20,), bytes(range(20)))):
        with open(space(f"idx-{name}"), "wb") as file:
            file.write(struct.pack(f">I{len(dimensions)}I", 0x800 + len(dimensions), *dimensions) + content)
    for number, (command, source, flags, values) in enumerate((
            ("pack-images", space("idx-images"), ["--labels", space("idx-labels"), "--resize", "8x8"], {"FILE.csv": space("idx-labels")}),
            ("pack-images", f"{root}/images", ["--resize", "8x8", "--seed", "3", "--split", "train=0.5,my val=0.5"], {}),
            ("pack-images", f"{root}/images", ["--sizes", "own", "--max-side", "9", "--exif", "ignore"], {}),
            ("pack-images", root, ["--labels", labels, "--label-column", "label", "--fit", "9x9", "--container", "shard"], {"FILE.csv": labels}),
            ("pack-sparse", space("ratings.csv"), ["--duplicates", "last", "--split-by", "leave-one-out", "--min-user", "3", "--binarize"], {}),
            ("pack-sparse", space("ratings.csv"), ["--duplicates", "max", "--above", "2.5", "--keep-times"], {}))):
        first, again = space(f"made{number}"), space(f"again{number}")
        run(command, source, *flags, "-o", first)
        text = run("pack-info", first)
        line = next(line for line in text.splitlines() if line.startswith("made by"))
        name, _, *words = shlex.split(line.split(": ", 1)[1])
        check(name == command and "--memory-bytes" not in words, line)
        run(command, source, *(values.get(word, word) for word in words), "-o", again)
        found, made = ({os.path.relpath(path, folder): fingerprint(path) for path, _, names in os.walk(folder) if "manifest.json" in names}
                       for folder in (first, again))
        check(found == made and found, line)
    print("recipes of packs passed")
