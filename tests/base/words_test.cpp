#include "base/words.h"

#include <gtest/gtest.h>

namespace chunkhit {
namespace {

TEST(BytesText, CountsInPowersOfAThousand) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(1 << 20), "1.0 MB");
  EXPECT_EQ(bytes_text(31'100'000), "31.1 MB");
}

TEST(BytesText, NeverSaysAThousandOfAUnit) {
  EXPECT_EQ(bytes_text(999'949), "999.9 kB");
  EXPECT_EQ(bytes_text(999'950), "1.0 MB");
}

TEST(CountText, SeparatesThousandsAndKnowsOne) {
  EXPECT_EQ(count_text(1'234'567), "1,234,567");
  EXPECT_EQ(count_text(1, "part"), "1 part");
  EXPECT_EQ(count_text(1'000, "part"), "1,000 parts");
  EXPECT_EQ(count_text(2, "batch") + ", " + count_text(0, "class"), "2 batches, 0 classes");
}

TEST(PrintableText, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable_text("a\x1b[31m\nb\t\r\x7f"), "a\\x1b[31m\\nb\\t\\r\\x7f");
  EXPECT_EQ(printable_text("\xc2\x9b"
                           "31m"),
            "\\xc2\\x9b31m");
}

TEST(PrintableText, LeavesOtherTextAsItIs) {
  EXPECT_EQ(printable_text("größe 犬 …\xc2\xa0"), "größe 犬 …\xc2\xa0");
  EXPECT_EQ(printable_text("cut \xc2"), "cut \xc2");
}

TEST(PrintableText, EscapesMarksThatTurnTheDirectionOfText) {
  EXPECT_EQ(printable_text("a\xe2\x80\xaegnp.exe"), "a\\xe2\\x80\\xaegnp.exe");
  for (const char* const mark :
       {"\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xd8\x9c"})
    EXPECT_EQ(printable_text(mark).find(mark), std::string::npos);
  EXPECT_EQ(printable_text("\xe2\x80\xa6 \xe2\x86\x92 \xd8\xa7"), "\xe2\x80\xa6 \xe2\x86\x92 \xd8\xa7");
}

TEST(MayBeIds, TookCategoriesAndWordsThatEndInIdForIds) {
  EXPECT_TRUE(may_be_ids("patient_id", false, 98, 500));
  EXPECT_TRUE(may_be_ids("scanID", false, 12, 5000)) << "frames of a few videos";
  EXPECT_TRUE(may_be_ids("name", true, 290, 300));
  EXPECT_FALSE(may_be_ids("name", false, 290, 300));
  EXPECT_FALSE(may_be_ids("covid", false, 40, 300));
  EXPECT_FALSE(may_be_ids("patient", false, 2, 300)) << "one of two";
  EXPECT_FALSE(may_be_ids("hospital", true, 10, 300)) << "each has many images";
}

}  // namespace
}  // namespace chunkhit
