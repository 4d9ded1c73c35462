#!/usr/bin/env python3
"""pybind11 before 2.12 and NumPy 2 read each other's arrays wrongly, and say nothing: neither a build nor an import takes the pair.
Usage: numpy_pair_test.py BUILD_FOLDER ROOT; PYTHONPATH has the package."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

BUILD, ROOT = map(os.path.abspath, sys.argv[1:3])
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(pair LANGUAGES C CXX)
include({ROOT}/cmake/PythonPackage.cmake)
"""


def version_of_the_build():
    """pybind11's, as the build found it."""
    with open(f"{BUILD}/CMakeCache.txt") as file:
        folder = re.search(r"^pybind11_DIR:PATH=(.*)$", file.read(), re.M)[1]
    with open(f"{folder}/pybind11ConfigVersion.cmake") as file:
        return tuple(map(int, re.search(r'PACKAGE_VERSION "([0-9.]+)', file.read())[1].split(".")))


class NumpyPair(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, path, text):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def configure(self, pybind11, numpy):
        self.write("project/CMakeLists.txt", PROJECT)
        self.write("pybind11/pybind11Config.cmake", "")
        self.write("pybind11/pybind11ConfigVersion.cmake", f"set(PACKAGE_VERSION {pybind11})\n")
        self.write("modules/numpy.py", f"__version__ = '{numpy}'\n")
        return subprocess.run(["cmake", "-S", f"{self.folder}/project", "-B", f"{self.folder}/build", "-DCHUNKHIT_PYTHON=ON",
                               f"-Dpybind11_DIR={self.folder}/pybind11"],
                              env={**os.environ, "PYTHONPATH": f"{self.folder}/modules"}, capture_output=True, text=True)

    def test_configuring_an_old_pybind11_with_numpy_2_fails_by_name(self):
        done = self.configure("2.10.3", "2.1.0")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        message = " ".join(done.stderr.split())
        self.assertIn("found pybind11 2.10.3", message)
        self.assertIn("NumPy 2.1.0", message)
        self.assertIn("expected pybind11 2.12 or newer", message)

    def test_each_of_them_with_the_other_version_is_built(self):
        for pybind11, numpy in (("2.10.3", "1.24.2"), ("2.12.0", "2.1.0")):
            done = self.configure(pybind11, numpy)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Python package: for", done.stdout)

    def test_a_package_of_an_old_pybind11_is_not_imported_beside_numpy_2(self):
        code = "import numpy; numpy.__version__ = '2.1.0'; import chunkhit"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if version_of_the_build() >= (2, 12):
            self.assertEqual(done.returncode, 0, done.stderr)
            return
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "ImportError: found NumPy 2.1.0 and chunkhit built with pybind11 2[.]1., expected NumPy 1, or")


unittest.main(argv=sys.argv[:1])
