#!/usr/bin/env python3
"""The Debian packages of a build: lintian finds no error, each library that is needed is a dependency's, and in a copy of this
system they are installed, used and removed, and nothing is left. The copy is an overlay: what is written is in memory, and its
other files are this system's. Usage: deb_packages_test.py BUILD_FOLDER TESTS_FOLDER; 77 without root or mount namespaces."""
import glob
import os
import re
import stat
import subprocess
import sys
import tempfile

BUILD, TESTS = sys.argv[1:3]
NAMES = ["chunkhit", "libchunkhit0", "libchunkhit-dev", "python3-chunkhit"]
DOCUMENTS = "usr/share/doc/chunkhit"
# What dpkg, ldconfig and man keep about all packages.
BOOKS = re.compile(r"/(var/(lib/dpkg|cache|log)|etc/ld\.so\.cache|run)(/|$)")
# Run in the copy: /tmp/debs are the packages, /tmp/consumer is tests/consumer.
USE = r"""
set -euo pipefail
cd /tmp
dpkg -i debs/*.deb >dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
bash consumer/run.sh - /tmp/work /usr >consumer.log 2>&1 || { cat consumer.log; exit 1; }
for command in pack-bench pack-export pack-images pack-info pack-merge pack-report pack-run pack-sparse pack-verify; do
  test "$(command -v $command)" = /usr/bin/$command
  $command --version >/dev/null
done
test "$(pkg-config --cflags --libs chunkhit | xargs)" = -lchunkhit
test "$(pkg-config --variable=libdir chunkhit)" = "/usr/lib/$(gcc -print-multiarch)"
pack-images work/images --codec zstd -o train --progress none >/dev/null
pack-verify train
/usr/bin/python3 - <<'python'
import chunkhit, h5py, numpy
assert chunkhit.__file__ == "/usr/lib/python3/dist-packages/chunkhit/__init__.py", chunkhit.__file__
loader = chunkhit.ImageLoader("train", batch_size=4)
read = numpy.concatenate([images for images, _ in loader])
assert read.shape == (10, 1, 2, 3), read.shape
chunkhit.pack_sparse("work/ratings.csv", "ratings")
assert len(chunkhit.SparseDataset("ratings")) == 3
with h5py.File("train/part-00000.h5") as part:  # by the plug-in
    assert (part["images"][:] == read).all()
python
dpkg -P python3-chunkhit libchunkhit-dev libchunkhit0 chunkhit >>dpkg.log 2>&1 || { cat dpkg.log; exit 1; }
! dpkg-query -W '*chunkhit*' 2>/dev/null | grep -q '[0-9]'
"""
COPY = r"""
set -euo pipefail
mount -t tmpfs tmpfs "$1"
mkdir "$1"/upper "$1"/work "$1"/root
mount -t overlay overlay -o lowerdir=/,upperdir="$1"/upper,workdir="$1"/work "$1"/root || exit 77
mount --rbind /dev "$1"/root/dev && mount --bind /proc "$1"/root/proc && mount -t tmpfs tmpfs "$1"/root/tmp
cp -r "$2" "$1"/root/tmp/debs && cp -r "$3" "$1"/root/tmp/consumer
printf %s "$4" >"$1"/root/tmp/use.sh
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HDF5_PLUGIN_PATH="/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/chunkhit/hdf5-plugins" \
  DEBIAN_FRONTEND=noninteractive chroot "$1"/root bash /tmp/use.sh
umount "$1"/root/tmp "$1"/root/proc && umount -R "$1"/root/dev && umount "$1"/root
exec "$5" "$6" --left "$1"/upper
"""


def check(holds, *what):
    if not holds:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def read(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def left(upper):
    """What an overlay's upper folder has that the system below has not, has otherwise, or had."""
    for folder, folders, files in os.walk(upper):
        for name in folders + files:
            path = os.path.join(folder, name)
            below = path[len(upper):]
            state = os.lstat(path)
            is_removed = stat.S_ISCHR(state.st_mode) and state.st_rdev == 0
            is_written = not stat.S_ISDIR(state.st_mode) or not os.path.lexists(below)
            if (is_removed or is_written) and not BOOKS.match(below):
                yield below


def depends(package):
    fields = read("dpkg-deb", "-f", package, "Depends")
    return {re.match(r"[a-z0-9.+-]+", entry.strip())[0]: entry.strip() for entry in fields.split(",") if entry.strip()}


def check_libraries(package, folder):
    """Each library that a binary needs is in a package that is a dependency, or in the same one."""
    os.makedirs(folder)
    read("dpkg-deb", "-x", package, folder)
    paths = glob.glob(folder + "/usr/**", recursive=True)
    files = [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    own = {os.path.basename(path) for path in glob.glob(folder + "/usr/lib/**", recursive=True)}
    needed = set()
    for path in files:
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                dynamic = read("readelf", "-d", path)
                check("PATH)" not in dynamic, path, "has a RUNPATH")
                needed |= set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    for name in needed - own:
        owners = {"libchunkhit0"} if name.startswith("libchunkhit") else {
            line.split(":")[0] for line in read("dpkg", "-S", "*/" + name).splitlines()}
        check(owners & set(depends(package)), package, "needs", name, "of", *owners)


def check_documents(files):
    """Each command has its pages, each package what is new, and no link of a documentation's page leads nowhere."""
    installed = {os.path.relpath(path, folder) for folder in glob.glob(files + "/*")
                 for path in glob.glob(folder + "/**", recursive=True)}
    for command in (os.path.basename(path) for path in installed if path.startswith("usr/bin/")):
        for page in (f"man/man1/{command}.1.gz", f"bash-completion/completions/{command}",
                     f"zsh/vendor-completions/_{command}", f"fish/vendor_completions.d/{command}.fish"):
            check(f"usr/share/{page}" in installed, command, "has no", page)
    for name in NAMES:
        check(f"usr/share/doc/{name}/changelog.gz" in installed, name, "has no changelog.gz")
    root = os.path.join(files, "chunkhit", DOCUMENTS)
    pages = [path for path in glob.glob(root + "/**/*.md", recursive=True) if "/tests/" not in path]
    check(len(pages) > 15, pages)
    for page in pages:
        with open(page, encoding="utf-8") as file:
            targets = re.findall(r'\]\(([^)\s#]+)[^)\s]*\)|src="([^"]+)"', file.read())
        for target in map("".join, targets):
            path = os.path.relpath(os.path.join(os.path.dirname(page), target), root)
            found = os.path.normpath(os.path.join(DOCUMENTS, re.sub("^lib/include", "../../../include", path)))
            check("://" in target or found in installed, page, "links to", target, "which is not installed")


def check_packages(folder):
    version = read(BUILD + "/tools/pack-info", "--version").split()[1]
    packages = {name: glob.glob(f"{folder}/{name}_{version}-1_*.deb") for name in NAMES}
    check(all(len(found) == 1 for found in packages.values()), packages)
    for name, (package,) in packages.items():
        check_libraries(package, os.path.join(folder, "files", name))
        check(name != "libchunkhit0" or "libcurl4" in read("dpkg-deb", "-f", package, "Recommends"), package)
        scripts = re.findall(r"(?:pre|post)(?:inst|rm)\b", read("dpkg-deb", "-I", package))
        check(not scripts or name == "python3-chunkhit", package, "has scripts beside its triggers", *scripts)
    recommends = read("dpkg-deb", "-f", packages["python3-chunkhit"][0], "Recommends")
    check(recommends.strip() == "python3-jinja2, python3-matplotlib, python3-pil", recommends)
    check_documents(os.path.join(folder, "files"))
    exact = f"libchunkhit0 (= {version}-1)"
    for name in ("libchunkhit-dev", "python3-chunkhit"):
        check(depends(packages[name][0])["libchunkhit0"] == exact, name, depends(packages[name][0]))
    found = [package for (package,) in packages.values()]
    done = subprocess.run(["lintian", "--fail-on", "error", "--allow-root", *found], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    check(done.returncode == 0, "lintian")


def main():
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"]).returncode != 0:
        print("skipped: no root, or no mount namespaces")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        debs, copy = os.path.join(folder, "debs"), os.path.join(folder, "copy")
        os.mkdir(copy)
        # gzip takes a fifth of the time of xz.
        read("cpack", "-B", debs, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", cwd=BUILD)
        subprocess.run(["rm", "-r", os.path.join(debs, "_CPack_Packages")], check=True)
        check_packages(debs)
        subprocess.run(["rm", "-r", os.path.join(debs, "files")], check=True)
        consumer = os.path.join(TESTS, "consumer")
        done = subprocess.run(["unshare", "--mount", "bash", "-c", COPY, "bash", copy, debs, consumer, USE,
                               sys.executable, os.path.abspath(__file__)])
        check(done.returncode in (0, 77), "in the copy of this system: exit", done.returncode)
        sys.exit(done.returncode)


if sys.argv[1] == "--left":
    found = sorted(left(sys.argv[2]))
    check(not found, "left after the packages were removed:", *found)
    print("nothing is left")
else:
    main()
