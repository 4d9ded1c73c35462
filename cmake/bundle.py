#!/usr/bin/python3
"""Writes the wheel and the bundle of the commands, which carry their libraries, to build/dist. Runs on Debian 12, whose C library is
the oldest that they run with; installs what is missing.

usage: /usr/bin/python3 cmake/bundle.py [PYTHON...]
PYTHON are the interpreters that the wheel is for, with their headers; without them /usr/bin/python3 and pyenv's of 3.9 and later."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD, DIST, PYBIND11 = ROOT / "build/bundle", ROOT / "build/dist", ROOT / "build/pybind11"
STAGE = BUILD / "stage"
PACKAGES = ["file", "libbz2-dev", "libjxl-dev", "mmdebstrap", "debian-archive-keyring", "nettle-dev", "patchelf", "python3-numpy", "python3-pip",
            "python3-setuptools", "python3-wheel", "zstd"]
PLATFORM = "manylinux_2_36_x86_64"
# What that platform has, by PEP 600, and the newest versions of symbols that it may be asked for.
SYSTEM = re.compile(r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so\.|ld-linux")
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
PLATFORM_PACKAGES = {"libc6-dev", "libgcc-12-dev", "libstdc++-12-dev"}
# Code of headers.
HEADERS = ["libcli11-dev", "libhwy-dev", "libstb-dev", "nlohmann-json3-dev"]


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


def read(*command):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def interpreters(given):
    """The interpreters of each version once, the system's first: it makes the stubs."""
    found = {}
    for path in ["/usr/bin/python3", *given, *(() if given else sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python"))))]:
        version = tuple(map(int, read(path, "-c", "import sys; print(*sys.version_info[:2])").split()))
        if version >= (3, 9):
            found.setdefault(version, path)
    return found


def fetch_pybind11():
    """Unpacks the headers of Debian 13, which know Python 3.13 and NumPy 2, from the registry of this machine's packages."""
    if not PYBIND11.exists():
        registry = read("apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian").split()[0]
        unpacked = BUILD / "trixie"
        shutil.rmtree(unpacked, ignore_errors=True)
        BUILD.mkdir(parents=True, exist_ok=True)
        run("mmdebstrap", "--quiet", "--variant=extract", "--include=pybind11-dev", "trixie", unpacked,
            f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {registry} trixie main")
        for folder in ("usr/include/pybind11", "usr/lib/cmake/pybind11", "usr/share/doc/pybind11-dev"):
            shutil.copytree(unpacked / folder, f"{PYBIND11}.new/{folder}")
        os.rename(f"{PYBIND11}.new", PYBIND11)
        shutil.rmtree(unpacked)


def build(pythons):
    """Builds the library and the commands, and a binding for each interpreter; returns the bindings."""
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DCHUNKHIT_BUNDLE=ON", "-DCHUNKHIT_TESTS=OFF", "-DCHUNKHIT_SAMPLES=OFF", "-DCHUNKHIT_AVIF=OFF",
               f"-Dpybind11_DIR={PYBIND11}/usr/lib/cmake/pybind11"]
    forgotten = [f"-U{names}" for names in ("Python_*", "_Python*", "PYTHON*", "PYBIND11*", "pybind11*")]
    bindings = []
    for index, path in enumerate(pythons.values()):
        run("cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", *forgotten, *options, f"-DPython_EXECUTABLE={path}")
        targets = ["bundle", "chunkhit_python", "python_stubs"] if index == 0 else ["chunkhit_python"]
        run("cmake", "--build", BUILD, "--target", *targets)
        suffix = read(path, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))").strip()
        bindings.append(BUILD / "lib/python/chunkhit" / f"_chunkhit{suffix}")
    return bindings


def dynamic(path, entry):
    return re.findall(rf"\({entry}\).*\[(.*)\]", read("readelf", "-d", path))


def stage_libraries(lib):
    """Copies libchunkhit_bundle and what it needs beyond the platform; returns where the latter were found. Their names are
    their own, so that the loader takes no other library of the process for them."""
    found, waiting = {}, [BUILD / "lib/libchunkhit_bundle.so.0"]
    for path in waiting:
        name = dynamic(path, "SONAME")[0]
        if name in found:
            continue
        found[name] = path
        located = dict(re.findall(r"(\S+) => (/\S+)", read("ldd", path)))
        waiting += [located[needed] for needed in dynamic(path, "NEEDED") if not SYSTEM.match(needed)]
    own = {name: name if "chunkhit" in name else name.replace(".so", "-chunkhit.so", 1) for name in found}
    for name, path in found.items():
        copy = lib / own[name]
        run("strip", "--strip-unneeded", "-o", copy, path)
        # patchelf 0.14 mixes up the changes of one call.
        run("patchelf", "--set-rpath", "$ORIGIN", copy)
        run("patchelf", "--set-soname", own[name], copy)
        for needed in own.keys() & set(dynamic(path, "NEEDED")):
            run("patchelf", "--replace-needed", needed, own[needed], copy)
    return [path for name, path in found.items() if name != own[name]]


def package_of(path):
    """The Debian package of a file, whose name dpkg may know with or without /usr."""
    real = os.path.realpath(path)
    for name in (real, real.removeprefix("/usr"), path):
        done = subprocess.run(["dpkg", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    sys.exit(f"{path}: no Debian package has it, expected one for its licence")


def stage_licences(folder, libraries):
    """Copies the licence of each library, of which the linker took something or that lies beside, and lists them."""
    archives = set(re.findall(r"^(/\S+\.a)\(", (BUILD / "bundle.map").read_text(), re.MULTILINE))
    inside = ({package_of(path) for path in archives} | set(HEADERS)) - PLATFORM_PACKAGES
    beside = {package_of(path) for path in libraries}
    folder.mkdir()
    shutil.copy(ROOT / "LICENSE", folder / "chunkhit")
    rows = []
    for package in sorted(inside | beside):
        source, version = read("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package).split("\n")[0].split()
        shutil.copy(f"/usr/share/doc/{package}/copyright", folder / source)
        rows.append(f"| {source} | {version} | {'inside' if package in inside else 'beside'} | [{source}]({source}) |\n")
    changes = (PYBIND11 / "usr/share/doc/pybind11-dev/changelog.Debian.gz")
    version = re.search(r"\((.*)\)", subprocess.run(["zcat", changes], stdout=subprocess.PIPE, text=True, check=True).stdout)[1]
    shutil.copy(PYBIND11 / "usr/share/doc/pybind11-dev/copyright", folder / "pybind11")
    rows.append(f"| pybind11 | {version} | inside the Python package | [pybind11](pybind11) |\n")
    text = "Debian's source packages of the libraries inside libchunkhit_bundle and beside it, with their licences.\n\n"
    (folder / "README.md").write_text(text + "| source | version | where | licence |\n|---|---|---|---|\n" + "".join(sorted(set(rows))))


def stage_commands(prefix):
    """bin, lib and LICENSES: what the wheel and the bundle have in common."""
    shutil.rmtree(prefix, ignore_errors=True)
    for name in ("bin", "lib"):
        (prefix / name).mkdir(parents=True)
    for path in sorted((BUILD / "bin").iterdir()):
        run("strip", "-o", prefix / "bin" / path.name, path)
    stage_licences(prefix / "LICENSES", stage_libraries(prefix / "lib"))


def check_versions(folder):
    """Every symbol that is asked for is one that the platform has."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
            for name, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)", read("readelf", "-VW", path)):
                if tuple(map(int, version.split("."))) > NEWEST[name]:
                    sys.exit(f"{path}: needs {name}_{version}, expected {'.'.join(map(str, NEWEST[name]))} or older: build on Debian 12")


def write_wheel(pythons, bindings):
    package = STAGE / "wheel"
    stage_commands(package)
    for path in bindings:
        run("strip", "--strip-unneeded", "-o", package / path.name, path)
        run("patchelf", "--set-rpath", "$ORIGIN/lib", package / path.name)
    check_versions(package)
    tag = ".".join(f"cp{major}{minor}" for major, minor in sorted(pythons)) + f"-none-{PLATFORM}"
    environment = {**os.environ, "CHUNKHIT_BUILD_FOLDER": str(BUILD), "CHUNKHIT_BUNDLED": str(package), "CHUNKHIT_WHEEL_TAG": tag}
    for copy in (ROOT / "build").glob("lib*"):  # setuptools' of the last package
        shutil.rmtree(copy)
    run("/usr/bin/python3", "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", DIST, ROOT,
        env=environment)


def write_bundle():
    version = re.search(r"project\(chunkhit VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    name = f"chunkhit-{version}-linux-x86_64"
    folder = STAGE / name
    stage_commands(folder)
    for form, target in (("man/*.1", "man/man1"), ("bash/*", "bash-completion/completions"), ("zsh/*", "zsh/site-functions"),
                         ("fish/*", "fish/vendor_completions.d")):
        (folder / "share" / target).mkdir(parents=True)
        for path in (BUILD / "tools").glob(form):
            if not re.search("pack-(export|report)", path.name):  # of the Python package
                shutil.copy(path, folder / "share" / target)
    shutil.copytree(ROOT / "samples/jobs", folder / "share/doc/chunkhit/examples/jobs")
    check_versions(folder)
    run("tar", "-C", STAGE, "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-I", "zstd -19 -T0", "-cf", DIST / f"{name}.tar.zst",
        name)


def main(given):
    packages = (ROOT / "samples/build_packages.txt").read_text().split()
    run("bash", ROOT / "samples/install_packages.sh", *packages, *PACKAGES)
    pythons = interpreters(given)
    fetch_pybind11()
    bindings = build(pythons)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    write_wheel(pythons, bindings)
    write_bundle()
    for path in sorted(DIST.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
