#include <gtest/gtest.h>

#include "chunkhit/error.h"
#include "ratings/npz.h"

namespace chunkhit {
namespace {

std::string error(std::string_view dictionary) {
  try {
    static_cast<void>(parse_npy_header(dictionary, "a.npz: data.npy"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    return error.what();
  }
  return "none";
}

TEST(NpyHeader, ReadsWhatNumpyWrites) {
  const NpyHeader header =
      parse_npy_header("{'descr': '>f8', 'fortran_order': True, 'shape': (3, 4), }     \n", "a");
  EXPECT_EQ(header.type.kind, 'f');
  EXPECT_EQ(header.type.bytes, 8u);
  EXPECT_TRUE(header.type.big_endian);
  EXPECT_TRUE(header.fortran_order);
  EXPECT_EQ(header.shape, std::vector<std::uint64_t>({3, 4}));
  EXPECT_EQ(header.count(), 12u);
}

TEST(NpyHeader, ReadsOtherSpellings) {
  EXPECT_EQ(parse_npy_header("{\"shape\":(),\"descr\":\"|S3\",\"fortran_order\":False}", "a").count(), 1u);
  EXPECT_EQ(parse_npy_header("{'descr': '<U3', 'fortran_order': False, 'shape': (5L,)}", "a").type.bytes,
            12u);
  EXPECT_EQ(parse_npy_header("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 7)}", "a").count(), 0u);
}

TEST(NpyHeader, RefusesWhatIsNoArrayOfNumbers) {
  const auto refuse = [](const std::string& descr) {
    return error("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (3,)}");
  };
  EXPECT_NE(refuse("|O").find("Python objects, which are never loaded"), std::string::npos);
  EXPECT_NE(refuse("<c16").find("complex"), std::string::npos);
  EXPECT_NE(refuse("<M8[ns]").find("expected numbers or text"), std::string::npos);
  EXPECT_NE(refuse("<f16").find("no numbers of this size"), std::string::npos);
  EXPECT_NE(refuse("<i3").find("no numbers of this size"), std::string::npos);
  EXPECT_NE(refuse("<i").find("expected a size"), std::string::npos);
  EXPECT_NE(refuse("").find("expected numbers or text"), std::string::npos);
  EXPECT_NE(error("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,)}").find("expected a text"),
            std::string::npos);
}

TEST(NpyHeader, RefusesBrokenDictionaries) {
  for (const char* broken :
       {"", "{", "{}", "[]", "{'descr': '<f8'}", "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': ()}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3 4)}",
        "{'descr': '<f8, 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}"})
    EXPECT_NE(error(broken).find("a.npz: data.npy: broken npy header"), std::string::npos) << broken;
}

TEST(NpyHeader, RefusesAShapeWhoseBytesNoFileHas) {
  EXPECT_NE(error("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}")
                .find("impossibly many"),
            std::string::npos);
}

}  // namespace
}  // namespace chunkhit
