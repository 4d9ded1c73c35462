// Arrays of NumPy as images.
#include <gtest/gtest.h>

#include <string>

#include "decoded.h"

namespace chunkhit {
namespace {

/// An npy file of this dictionary and these numbers, as numpy.save writes version 1 and, with `is_wide`, 2.
std::string npy(const std::string& dictionary, const std::string& numbers, bool is_wide = false) {
  std::string file = "\x93NUMPY";
  file += is_wide ? '\2' : '\1';
  file += '\0';
  for (std::size_t at = 0; at < (is_wide ? 4u : 2u); ++at)
    file += static_cast<char>((dictionary.size() >> (8 * at)) & 0xff);
  return file + dictionary + numbers;
}

std::string array(const std::string& shape, const std::string& numbers, const std::string& descr = "|u1",
                  const std::string& fortran_order = "False") {
  return npy("{'descr': '" + descr + "', 'fortran_order': " + fortran_order + ", 'shape': " + shape + ", }\n",
             numbers);
}

/// The pixels of a file, or what is wrong with it.
std::string pixels(const std::string& file, DecodePlan plan = {}) {
  const Decoded decoded = decode(as_bytes(file), plan);
  return decoded.error.empty() ? std::string(as_text(decoded.image.pixels)) : decoded.error;
}

TEST(Npy, GivesItsNumbersAsPixels) {
  EXPECT_EQ(pixels(array("(2, 3)", "abcdef")), "abcdef");
  EXPECT_EQ(pixels(array("(2, 3, 1)", "abcdef")), "abcdef");
  EXPECT_EQ(pixels(array("(1, 2, 3)", "abcdef")), "abcdef");
  EXPECT_EQ(pixels(array("(2, 1, 4)", "abcdefgh")), "abcdefgh");
  EXPECT_EQ(pixels(npy("{'descr':'u1','fortran_order':False,'shape':(1,2)}", "ab", true)), "ab");
}

TEST(Npy, GivesRegionsAndOtherChannels) {
  const std::string file = array("(2, 3, 3)", "aaabbbcccdddeeefff");
  EXPECT_EQ(pixels(file, {.region = {1, 1, 2, 1}}), "eeefff");
  EXPECT_EQ(pixels(array("(2, 2)", "abcd"), {.channels = 3}), "aaabbbcccddd");
  EXPECT_EQ(decode(as_bytes(file)).header.channels, 3u);
}

TEST(NpyError, NamesTheTypeTheOrderAndTheShape) {
  EXPECT_EQ(pixels(array("(2, 3)", "…", "<f4")), "NPY: has type \"<f4\", expected uint8 (\"|u1\")");
  EXPECT_EQ(pixels(array("(2, 3)", "…", "|b1")), "NPY: has type \"|b1\", expected uint8 (\"|u1\")");
  EXPECT_NE(pixels(array("(2, 3)", "…", "|O")).find("Python objects, which are never loaded"),
            std::string::npos);
  EXPECT_EQ(pixels(array("(2, 3)", "abcdef", "|u1", "True")),
            "NPY: is in Fortran order, expected C order; numpy.ascontiguousarray makes it so");
  EXPECT_EQ(pixels(array("(3, 8, 8)", std::string(192, 'a'))),
            "NPY: has shape 3 x 8 x 8, expected H x W, or H x W x 1, 3 or 4");
  EXPECT_EQ(pixels(array("(5,)", "abcde")), "NPY: has shape 5, expected H x W, or H x W x 1, 3 or 4");
  EXPECT_EQ(pixels(array("()", "a")), "NPY: has shape of one number, expected H x W, or H x W x 1, 3 or 4");
  EXPECT_EQ(pixels(array("(0, 4)", "")), "has no pixels: 4 x 0");
  EXPECT_NE(pixels(array("(99999, 99999)", "a")).find("over the limit of 256000000 pixels"),
            std::string::npos);
  EXPECT_NE(pixels(array("(1, 4294967296)", "a")).find("sides of over 32 bits"), std::string::npos);
  EXPECT_NE(pixels(array("(4294967295, 4294967295, 4294967295)", "a")).find("impossibly many"),
            std::string::npos);
}

TEST(NpyError, FindsTruncationAtEveryLength) {
  const std::string file = array("(2, 3)", "abcdef");
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(decode(as_bytes(file.substr(0, size))).error, "") << size;
  EXPECT_EQ(pixels(file.substr(0, file.size() - 1)), "truncated: the data ends near row 1 of 2");
}

TEST(NpyError, OfAHeaderThatNumpyDoesNotWrite) {
  EXPECT_NE(pixels(npy("{'descr': '|u1'}", "a")).find("broken npy header"), std::string::npos);
  EXPECT_NE(pixels(npy("__import__('os')", "a")).find("broken npy header"), std::string::npos);
  std::string version = array("(1, 1)", "a");
  version[6] = '\4';
  EXPECT_EQ(pixels(version), "NPY: has npy version 4, expected 1 to 3");
  EXPECT_NE(pixels(npy(std::string(70000, ' '), "a", true)).find("has an npy header of 70000 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace chunkhit
