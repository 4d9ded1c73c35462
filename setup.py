"""`pip install .`: CMake builds the binding and the libraries, which are put beside the package's Python files.

CHUNKHIT_BUILD_FOLDER names a finished build (build/release) whose binaries are taken; else they are built in build/pip-….
cmake/bundle.py makes a wheel for several interpreters: CHUNKHIT_BUNDLED names the folder of its binaries, CHUNKHIT_WHEEL_TAG its tag.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import SetupError
from wheel.bdist_wheel import bdist_wheel

ROOT = pathlib.Path(__file__).resolve().parent
CMAKE = (ROOT / "CMakeLists.txt").read_text()
ABI = re.search(r"CHUNKHIT_SOVERSION ([0-9]+)", CMAKE)[1]
LIBRARIES = (f"libchunkhit.so.{ABI}", f"libchunkhit_pack.so.{ABI}")
BUNDLED = os.environ.get("CHUNKHIT_BUNDLED")
SCRIPTS = ["pack-export = chunkhit.export:main", "pack-report = chunkhit.report:main"]
if BUNDLED:
    for command in sorted(os.listdir(f"{BUNDLED}/bin")):
        SCRIPTS.append(f"{command} = chunkhit_commands:{command.replace('-', '_')}")


def cmake_build():
    """Builds the binding for this interpreter, and returns the build folder."""
    folder = ROOT / "build" / f"pip-{sys.implementation.cache_tag}"
    options = [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release", "-DCHUNKHIT_TESTS=OFF",
               "-DCHUNKHIT_SAMPLES=OFF", "-DCMAKE_REQUIRE_FIND_PACKAGE_pybind11=ON"]
    try:
        import pybind11
        options.append(f"-Dpybind11_DIR={pybind11.get_cmake_dir()}")
    except ImportError:
        pass  # the system's, where CMake finds it
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "chunkhit_python", "python_stubs"], check=True)
    return folder


class CMakeBuild(build_ext):
    def build_extension(self, ext):
        given = os.environ.get("CHUNKHIT_BUILD_FOLDER")
        built = pathlib.Path(given).resolve() if given else cmake_build()
        package = pathlib.Path(self.get_ext_fullpath(ext.name)).parent
        package.mkdir(parents=True, exist_ok=True)
        for path in (built / "lib" / "python" / "chunkhit").glob("*.pyi"):
            shutil.copy(path, package / path.name)
        if BUNDLED:
            shutil.copytree(BUNDLED, package, dirs_exist_ok=True)
            return
        binding = built / "lib" / "python" / self.get_ext_filename(ext.name)
        for path in (binding, *(built / "lib" / name for name in LIBRARIES)):
            if not path.exists():
                raise SetupError(f"{path}: not found; expected a build of the target chunkhit_python for {sys.executable}")
            shutil.copy(path, package / path.name)


class Wheel(bdist_wheel):
    def get_tag(self):
        tag = os.environ.get("CHUNKHIT_WHEEL_TAG")
        return tuple(tag.split("-")) if tag else super().get_tag()


version = re.search(r"project\(chunkhit VERSION ([0-9.]+)", CMAKE)[1]
setup(version=version, ext_modules=[Extension("chunkhit._chunkhit", sources=[])],
      cmdclass={"build_ext": CMakeBuild, "bdist_wheel": Wheel}, py_modules=["chunkhit_commands"] if BUNDLED else [],
      entry_points={"console_scripts": SCRIPTS})
