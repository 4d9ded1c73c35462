#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/csv_reader.h"
#include "chunkhit/error.h"
#include "listing/label_column.h"
#include "listing/label_sets.h"
#include "listing/sample_list.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

using Texts = std::vector<std::string>;
using Ids = std::vector<std::int64_t>;

SampleList list_text(std::string_view text, const LabelColumns& spec = {}) {
  CsvReader table(
      "t.csv",
      [&](MutableBytes out) {
        const std::size_t count = std::min(text.size(), out.size());
        std::copy_n(text.begin(), count, out.begin());
        text.remove_prefix(count);
        return count;
      },
      0);
  return list_label_rows(table, spec);
}

std::string error_of(std::string_view text, const LabelColumns& spec = {},
                     ErrorCode code = ErrorCode::bad_data) {
  try {
    (void)list_text(text, spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "none";
}

Texts files_of(const SampleList& list) {
  Texts files;
  for (std::size_t index = 0; index < list.size(); ++index) files.emplace_back(list.file(index));
  return files;
}

Texts reasons_of(const SampleList& list) {
  Texts reasons;
  for (const Reject& reject : list.rejects)
    reasons.push_back(std::to_string(reject.row) + ": " + reject.reason);
  return reasons;
}

/// A table of `count` rows with one label, and then more rows.
std::string table_of(int count, const std::string& label, const std::string& more = "") {
  std::string text = "file,label\n";
  for (int row = 0; row < count; ++row) text += std::to_string(row) + ".jpg," + label + "\n";
  return text + more;
}

/// What the list would be written as, read again.
SampleList listed_again(const SampleList& list) {
  std::string text = "row,file,label,reason\n";
  for (std::size_t index = 0; index < list.size(); ++index)
    text += std::to_string(list.row(index)) + "," + std::string(list.file(index)) + ",\"" +
            list.label_text(index)[0] + "\",\"why, \"\"so\"\"\"\n";
  return list_text(text);
}

TEST(LabelCsv, ListsFilesWithIntegersAsTheyAre) {
  const SampleList list = list_text("file,label\na.jpg,7\nb/c.jpg,-1\n./d.jpg,9007199254740993\n");
  EXPECT_EQ(list.label_kind, LabelKind::class_id);
  EXPECT_EQ(files_of(list), (Texts{"a.jpg", "b/c.jpg", "./d.jpg"}));
  EXPECT_EQ(list.class_ids, (Ids{7, -1, 9007199254740993}));
  EXPECT_EQ(list.classes, Texts{});
  EXPECT_EQ(list.row_count, 3u);
  EXPECT_TRUE(list.rows.empty());
  EXPECT_EQ(list.notices,
            Texts{"column \"label\": 1 label is -1, which readers give for samples without a class"});
}

TEST(LabelCsv, SaysThatSpellingsOfANumberAreOneClass) {
  EXPECT_EQ(list_text("file,label\na,01\nb,2\nc,001\nd,1\n").notices,
            Texts{"column \"label\": labels are read as numbers, so that \"01\" and \"001\" are one class; 4 "
                  "spellings are 2 classes (`classes` FILE takes them as names)"});
}

TEST(LabelCsv, SaysThatFloatsRoundLargeWholeNumbers) {
  LabelColumns spec;
  spec.label_column = {"x", "id"};
  EXPECT_EQ(list_text("file,x,id\na,0,123456789\nb,1,16777217\nc,2,16777216\nd,3e20,-5\n", spec).notices,
            Texts{"2 labels are whole numbers that no 32-bit float is equal to: 123456789 is packed as "
                  "123456792"});
  EXPECT_EQ(list_text("file,label\na,0.5\nb,123456789.0\nc,16777218\n").notices,
            Texts{"1 label is a whole number that no 32-bit float is equal to: 123456789.0 is packed as "
                  "123456792"});
}

TEST(LabelCsv, TakesSeveralLabelColumnsFromOneName) {
  const std::string text = "file,a,b-c,d,\"e,f\"\nx,0,1,2,3\n";
  const auto columns_of = [&](Texts names) {
    LabelColumns spec;
    spec.label_column = std::move(names);
    return list_text(text, spec).label_columns;
  };
  EXPECT_EQ(columns_of({"a,d"}), (Texts{"a", "d"}));
  EXPECT_EQ(columns_of({"a-d"}), (Texts{"a", "b-c", "d"}));
  EXPECT_EQ(columns_of({"a-b-c"}), (Texts{"a", "b-c"}));
  EXPECT_EQ(columns_of({"b-c-d", "a"}), (Texts{"b-c", "d", "a"}));
  EXPECT_EQ(columns_of({"d,a-b-c"}), (Texts{"d", "a", "b-c"}));
  EXPECT_EQ(columns_of({"b-c"}), Texts{"b-c"}) << "a name of its own";
  EXPECT_EQ(columns_of({"e,f"}), Texts{"e,f"}) << "a name of its own";
  LabelColumns spec;
  const auto error = [&](const char* name, ErrorCode code) {
    spec.label_column = {name};
    return error_of(text, spec, code);
  };
  EXPECT_EQ(error("d-a", ErrorCode::usage),
            "`label_column` d-a: column \"d\" stands behind \"a\"; write a-d");
  EXPECT_EQ(error("file-a", ErrorCode::usage), "column \"file\" is given twice");
  EXPECT_EQ(error("a,g", ErrorCode::bad_data),
            "t.csv: line 1: expected a header with a column \"g\" for `label_column`, found \"file\", \"a\", "
            "\"b-c\", \"d\", \"e,f\"");
  spec.label_type = LabelType::classes;
  EXPECT_EQ(error("a,d", ErrorCode::usage),
            "`label_type` classes: is for one `label_column`; several are numbers");
}

TEST(LabelCsv, PacksBlanksOfColumnsOfNumbersAs0OrNaN) {
  LabelColumns spec;
  spec.label_column = {"x", "y"};
  const std::string text = "file,x,y\na,1,\nb, NA ,NaN\nc,True,inf\nd,,0.5\n";
  EXPECT_EQ(
      error_of(text, spec),
      "t.csv: none of its 4 rows can be used; the first: column \"y\": label is missing; 3 rows lack a label "
      "and are rejected; `missing` 0 or nan packs them");
  spec.missing = MissingLabels::zero;
  const SampleList zeros = list_text(text, spec);
  EXPECT_EQ(files_of(zeros), (Texts{"a", "b", "d"}));
  EXPECT_EQ(zeros.values, (std::vector<float>{1, 0, 0, 0, 0, 0.5}));
  EXPECT_EQ(zeros.notices, Texts{"4 labels are blank and packed as 0"});
  EXPECT_EQ(reasons_of(zeros), Texts{"2: column \"y\": label is not a finite number"});
  spec.missing = MissingLabels::nan;
  const SampleList list = list_text(text, spec);
  EXPECT_EQ(list.label_text(0), (Texts{"1", ""}));
  EXPECT_EQ(list.label_text(1), (Texts{"", ""}));
  EXPECT_TRUE(std::isnan(list.values[1]) && std::isnan(list.values[2]));
  EXPECT_EQ(list.xxh3, zeros.xxh3) << "the spec says what is made of them";
}

TEST(LabelCsv, PacksImagesWithoutAnyOfTheLabels) {
  LabelColumns spec;
  spec.label_separator = "|";
  const SampleList list = list_text("file,label\na,dog|cat\nc,| \nd,\n", spec);
  EXPECT_EQ(files_of(list), (Texts{"a", "c", "d"}));
  EXPECT_EQ(list.values, (std::vector<float>{1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(list.empty_labels, 2);
  EXPECT_TRUE(list.rejects.empty());
}

TEST(LabelCsv, TakesSetsOfNamesAsAColumnOf0And1ForEach) {
  LabelColumns spec;
  spec.label_separator = "|";
  spec.empty_labels = EmptyLabels::reject;
  const SampleList list =
      list_text("file,label\na,dog|cat\nb,owl\nc,| \nd,\n,cat|dog\n,ape\ne,cat | cat|\n", spec);
  EXPECT_EQ(list.label_kind, LabelKind::numbers);
  EXPECT_EQ(list.label_columns, (Texts{"cat", "dog", "owl"}));
  EXPECT_EQ(files_of(list), (Texts{"a", "b", "e"}));
  EXPECT_EQ(list.values, (std::vector<float>{1, 1, 0, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(list.label_text(0), (Texts{"cat|dog"}));
  EXPECT_EQ(list.label_headers(), (Texts{"label"}));
  EXPECT_EQ(reasons_of(list), (Texts{"2: label is missing", "3: label is missing", "4: file name is missing",
                                     "5: file name is missing"}));
  EXPECT_EQ(list.rejects[2].labels, (Texts{"cat|dog"}));
  EXPECT_EQ(list.rejects[3].labels, (Texts{"ape"}));
}

TEST(LabelCsv, ReordersSetsOfNamesAsAListOfClassesSays) {
  LabelColumns spec;
  spec.label_separator = " ";
  SampleList list = list_text("file,label\na,dog cat\nb,owl\n,dog\n", spec);
  reorder_label_sets(list, {"owl", "ape", "dog", "cat"});
  EXPECT_EQ(list.label_columns, (Texts{"owl", "ape", "dog", "cat"}));
  EXPECT_EQ(list.values, (std::vector<float>{0, 0, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(list.rejects[0].labels, (Texts{"dog"}));
  try {
    reorder_label_sets(list, {"ape", "dog", "cat", "owls"});
    ADD_FAILURE() << "no error for a name that is not listed";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "`classes`: class \"owl\" of b is not among the 4 that are listed; did you mean \"owls\"?");
  }
}

TEST(LabelCsv, NumbersNamesInTheOrderOfTheirBytes) {
  const SampleList list = list_text("file,label\na,dog\nb,cat\nc,Zebra\nd,dog\ne,\xc3\xa9\n");
  EXPECT_EQ(list.classes, (Texts{"Zebra", "cat", "dog", "\xc3\xa9"}));
  EXPECT_EQ(list.class_ids, (Ids{2, 1, 0, 2, 3}));
}

TEST(LabelCsv, TakesNumbersThatAreNoIntegersAsFloats) {
  const SampleList list = list_text("file,label\na,0.5\nb,2\nc,-1e2\n");
  EXPECT_EQ(list.label_kind, LabelKind::numbers);
  EXPECT_EQ(list.values, (std::vector<float>{0.5f, 2.0f, -100.0f}));
  EXPECT_TRUE(list.class_ids.empty());
  EXPECT_EQ(list.notices, Texts{});
}

TEST(LabelCsv, GivesANoticeForFloatsThatAreAllWhole) {
  const SampleList list = list_text("file,label\na,7.0\nb,8.0\n");
  EXPECT_EQ(list.label_kind, LabelKind::numbers);
  ASSERT_EQ(list.notices.size(), 1u);
  EXPECT_NE(list.notices[0].find("7, not 7.0"), std::string::npos);
}

TEST(LabelCsv, RejectsFewerThanOnePercentThatAreNoIntegers) {
  const SampleList list = list_text("file,label\nx.jpg,cat\n" + table_of(198, "7", "y.jpg,7.5\n").substr(11));
  EXPECT_EQ(list.label_kind, LabelKind::numbers) << "2 of 200 are not fewer than 1 %, but 1 name is";
  const SampleList more =
      list_text(table_of(100, "7", "x.jpg,cat\n") + table_of(101, "8", "y.jpg,7.5\nz.jpg,9\n").substr(11));
  EXPECT_EQ(more.label_kind, LabelKind::class_id);
  EXPECT_EQ(reasons_of(more), (Texts{"100: label is not an integer, as the others are",
                                     "202: label is not an integer, as the others are"}));
  EXPECT_EQ(more.rejects[1].file, "y.jpg");
  EXPECT_EQ(more.rejects[1].labels, Texts{"7.5"});
  EXPECT_EQ(more.size(), 202u);
  EXPECT_EQ(more.row_count, 204u);
  EXPECT_EQ(more.file(100), "0.jpg");
  EXPECT_EQ(more.row(100), 101u);
  EXPECT_EQ(more.file(201), "z.jpg");
  EXPECT_EQ(more.row(201), 203u);
  EXPECT_EQ(more.class_ids[99], 7);
  EXPECT_EQ(more.class_ids[100], 8);
  EXPECT_EQ(more.class_ids[201], 9);
}

TEST(LabelCsv, RejectsFewerThanOnePercentThatAreNoNumbers) {
  const SampleList list = list_text(table_of(50, "0.5", "x.jpg,cat\n") + table_of(50, "3", "").substr(11));
  EXPECT_EQ(list.label_kind, LabelKind::numbers);
  EXPECT_EQ(reasons_of(list), Texts{"50: label is not a number, as the others are"});
  EXPECT_EQ(list.values.size(), 100u);
  EXPECT_EQ(list.values[50], 3.0f);
}

TEST(LabelCsv, TakesAllAsNamesWhereMoreThanATenthAre) {
  std::string cats;
  for (int row = 0; row < 11; ++row) cats += "cat" + std::to_string(row) + ".jpg,cat\n";
  const SampleList list = list_text(table_of(89, "7", cats));
  EXPECT_EQ(list.classes, (Texts{"7", "cat"}));
  EXPECT_EQ(list.size(), 100u);
  EXPECT_EQ(list.notices,
            Texts{"column \"label\": 89 of 100 labels are numbers but others are not (\"cat\"); all are "
                  "taken as names of classes"});
}

TEST(LabelCsv, LetsNoBadCellMakeNamesOfNumbers) {
  const std::string words =
      "column \"label\": label \"cat\" of row 99 (x.jpg) is no number, but 99 of 100 are; mend it, or "
      "`classes` "
      "FILE takes all labels as names of classes";
  EXPECT_EQ(error_of(table_of(99, "7", "x.jpg,cat\n")), words);
  EXPECT_EQ(error_of(table_of(99, "7.5", "x.jpg,cat\n")), words);
  EXPECT_NE(error_of(table_of(10, "7", "x.jpg,1O\n")), "none");
  EXPECT_EQ(error_of(table_of(9, "7", "x.jpg,cat\n")), "none") << "too few to be sure";
  LabelColumns names;
  names.labels_are_names = true;
  EXPECT_EQ(list_text(table_of(99, "7", "x.jpg,cat\n"), names).classes, (Texts{"7", "cat"}));
}

TEST(LabelCsv, SaysThatAFractionMakesFloatsOfIds) {
  const SampleList list = list_text(table_of(19, "7", "x.jpg,7.5\n"));
  EXPECT_EQ(list.label_kind, LabelKind::numbers);
  EXPECT_EQ(
      list.notices,
      Texts{"column \"label\": 1 label of 20 (the first: \"7.5\" of x.jpg) is no whole number; all are "
            "packed as floats, none is a class id: `label_type` numbers says so, classes makes rejects of "
            "the former"});
}

TEST(LabelCsv, TakesLabelsAsTheirTypeIsGiven) {
  LabelColumns classes, numbers;
  classes.label_type = LabelType::classes;
  numbers.label_type = LabelType::numbers;
  const std::string mixed = table_of(3, "7", "x.jpg,7.5\ny.jpg,8.0\n");
  const SampleList ids = list_text(mixed, classes);
  EXPECT_EQ(ids.class_ids, (std::vector<std::int64_t>{7, 7, 7, 8}));
  EXPECT_EQ(reasons_of(ids), Texts{"3: label is not a whole number, as `label_type` classes needs"});
  EXPECT_FALSE(ids.is_detected);
  const SampleList whole = list_text(table_of(3, "7"), numbers);
  EXPECT_EQ(whole.values, (std::vector<float>{7, 7, 7}));
  EXPECT_EQ(whole.label_kind, LabelKind::numbers);
  EXPECT_EQ(whole.notices, Texts{});
  const SampleList some = list_text(table_of(3, "cat", "x.jpg,7.5\n"), numbers);
  EXPECT_EQ(some.values, std::vector<float>{7.5});
  EXPECT_EQ(reasons_of(some).front(), "0: label is not a number, as `label_type` numbers needs");
  EXPECT_EQ(list_text(table_of(3, "cat"), classes).classes, Texts{"cat"});
}

TEST(LabelCsv, KeepsIntegersThatExceedSixtyFourBitsAsNames) {
  const SampleList list = list_text("file,label\na,99999999999999999999\nb,99999999999999999998\n");
  EXPECT_EQ(list.classes, (Texts{"99999999999999999998", "99999999999999999999"}));
}

TEST(LabelCsv, MakesAVectorOfSeveralLabelColumns) {
  LabelColumns spec;
  spec.label_column = {"smile", "age"};
  const SampleList list =
      list_text("age,file,smile\n30,a,-1\n31.5,b,1\nold,c,1\n32,d,\n33,e,nan\n34,f,1e99\n35,g,0\n", spec);
  EXPECT_EQ(list.label_kind, LabelKind::numbers);
  EXPECT_EQ(files_of(list), (Texts{"a", "b", "g"}));
  EXPECT_EQ(list.values, (std::vector<float>{-1, 30, 1, 31.5f, 0, 35}));
  EXPECT_EQ(list.rows, (std::vector<std::uint32_t>{0, 1, 6}));
  EXPECT_EQ(
      reasons_of(list),
      (Texts{"2: column \"age\": label is not a number that a 32-bit float holds",
             "3: column \"smile\": label is missing", "4: column \"smile\": label is not a finite number",
             "5: column \"smile\": label is not a number that a 32-bit float holds"}));
  EXPECT_EQ(list.rejects[0].labels, (Texts{"1", "old"}));
  EXPECT_EQ(list.label_text(1), (Texts{"1", "31.5"}));
}

TEST(LabelCsv, RejectsRowsThatLackSomething) {
  const SampleList list = list_text("file,other,label\na,,3\nb\n,,4\nc,,\nd,,nan\ne\xe9,,5\nf,,5,\n\ng,,6\n");
  EXPECT_EQ(files_of(list), (Texts{"a", "f", "g"}));
  EXPECT_EQ(list.class_ids, (Ids{3, 5, 6}));
  EXPECT_EQ(reasons_of(list),
            (Texts{"1: row has 1 field, expected at least 3", "2: file name is missing",
                   "3: label is missing", "4: label is not a finite number",
                   "5: file name is not UTF-8; iconv -f cp1252 -t utf-8 converts texts of Windows"}));
  EXPECT_EQ(list.rejects[0].file, "b");
  EXPECT_EQ(list.rejects[0].labels, Texts{""});
  EXPECT_EQ(list.rejects[3].labels, Texts{"nan"});
  EXPECT_EQ(list.rows, (std::vector<std::uint32_t>{0, 6, 7}));
  EXPECT_EQ(list.row_count, list.size() + list.rejects.size());
}

TEST(LabelCsv, TakesNaForAMissingLabelAndSaysSo) {
  const SampleList list = list_text("file,label\na,cat\nb,NA\nc,nan\nd,\n");
  EXPECT_EQ(files_of(list), Texts{"a"});
  EXPECT_EQ(reasons_of(list),
            (Texts{"1: label is missing", "2: label is not a finite number", "3: label is missing"}));
  ASSERT_FALSE(list.notices.empty());
  EXPECT_EQ(
      list.notices[0],
      "1 row has the label NA, which is a missing one, and is rejected; a class of this name needs another");
}

TEST(LabelCsv, PacksNoRowWithMoreFieldsThanTheHeader) {
  const SampleList list =
      list_text("file,label\na,New York, NY\nb,\"New York, NY\"\nc,Bonn,,\nd,0,5\ne,Bonn,, \n");
  EXPECT_EQ(files_of(list), (Texts{"b", "c"})) << "delimiters at the end of a line add nothing";
  EXPECT_EQ(list.classes, (Texts{"Bonn", "New York, NY"}));
  const Texts reasons = reasons_of(list);
  ASSERT_EQ(reasons.size(), 3u);
  EXPECT_EQ(reasons[0],
            "0: row has 3 fields, expected 2 as in the header; quote fields that hold the delimiter");
  EXPECT_NE(list_text("file,label\na,0\nb,1,\n").xxh3, list_text("file,label\na,0\nb,1,5\n").xxh3);
}

TEST(LabelCsv, KeepsRowsWhenTheFirstOneIsRejected) {
  const SampleList list = list_text("file,label\n,1\na,2\nb,3\n");
  EXPECT_EQ(list.row(0), 1u);
  EXPECT_EQ(list.row(1), 2u);
}

TEST(LabelCsv, RejectsALabelThatIsNotUtf8) {
  const SampleList list = list_text("file,label\na,caf\xe9\nb,cat\n");
  EXPECT_EQ(list.classes, Texts{"cat"});
  EXPECT_EQ(reasons_of(list),
            Texts{"0: label is not UTF-8; iconv -f cp1252 -t utf-8 converts texts of Windows"});
}

TEST(LabelCsv, FindsColumnsByNameWhateverTheDelimiter) {
  LabelColumns spec;
  spec.file_column = "path";
  spec.label_column = {"class"};
  EXPECT_EQ(files_of(list_text("\xef\xbb\xbf"
                               "class\tx\tpath\r\n1\t2\ta b.jpg\r\n",
                               spec)),
            Texts{"a b.jpg"});
  EXPECT_EQ(files_of(list_text("path;class\n\"a;b\n.jpg\";1\n", spec)), Texts{"a;b\n.jpg"});
}

TEST(LabelCsv, ListsTheColumnsThatAreThere) {
  EXPECT_EQ(error_of("path,label\na,1\n"),
            "t.csv: line 1: expected a header with a column \"file\" for `file_column`, found \"path\", "
            "\"label\"; give "
            "`file_column` path");
  EXPECT_EQ(error_of("class,filename\n1,a\n"),
            "t.csv: line 1: expected a header with a column \"file\" for `file_column`, found \"class\", "
            "\"filename\"; give "
            "`file_column` "
            "filename `label_column` class");
  EXPECT_EQ(error_of("image_id,tags\n1,a\n"),
            "t.csv: line 1: expected a header with a column \"file\" for `file_column`, found \"image_id\", "
            "\"tags\"; give `file_column` image_id `label_column` tags");
  EXPECT_EQ(error_of("file,label\ra,1\rb,2\r"),
            "t.csv: line 1: expected a header with a column \"label\" for `label_column`, found \"file\", "
            "\"label\ra\", "
            "\"1\rb\", \"2\"; "
            "lines must end in "
            "LF or CR LF");
}

TEST(LabelCsv, RefusesAColumnThatIsThereTwice) {
  EXPECT_EQ(error_of("file,label,label\na,1,2\n"), "t.csv: line 1: two columns are named \"label\"");
  EXPECT_EQ(error_of("file,other,other,label\na,x,y,2\n"), "none");
}

TEST(LabelCsv, RefusesASpecThatNamesAColumnTwiceOrNone) {
  LabelColumns spec;
  spec.label_column = {"file"};
  EXPECT_EQ(error_of("file\n", spec, ErrorCode::usage), "column \"file\" is given twice");
  spec.label_column = {};
  EXPECT_EQ(error_of("file\n", spec, ErrorCode::usage), "`label_column`: at least one is needed");
}

TEST(LabelCsv, RefusesATableWithoutRows) {
  EXPECT_EQ(error_of(""), "t.csv: is empty, expected a header line");
  EXPECT_EQ(error_of("file,label\n\n"), "t.csv: holds no rows below its header");
  EXPECT_EQ(error_of("file,label\na,\nb\n"),
            "t.csv: none of its 2 rows can be used; the first: label is missing");
}

TEST(LabelCsv, WritesLabelsThatReadTheSame) {
  const SampleList integers = list_text("file,label\na,+7\nb,-3\n");
  EXPECT_EQ(listed_again(integers).class_ids, integers.class_ids);
  const SampleList names = list_text("file,label\na,cat and dog\nb,7\n");
  EXPECT_EQ(listed_again(names).classes, names.classes);
  const SampleList numbers = list_text("file,label\na,2.0\nb,3e20\nc,1e-7\n");
  EXPECT_EQ(listed_again(numbers).values, numbers.values);
  const SampleList whole = list_text("file,label\na,2.0\nb,3.0\n");
  EXPECT_EQ(listed_again(whole).label_kind, LabelKind::numbers) << "2 would read as a class id";
}

TEST(LabelCsv, CountsFilesThatAreNamedTwice) {
  const SampleList list = list_text("file,label\na,1\nb,2\na,1\n./a,1\n");
  EXPECT_EQ(list.size(), 4u);
  EXPECT_EQ(list.notices, Texts{"2 of 4 rows name a file that another row names too"});
  EXPECT_EQ(list_text("file,label\na,1\nb,2\na,3\na,1\n").notices,
            Texts{"2 of 4 rows name a file that another row names too; 1 file has different labels: a"});
  EXPECT_EQ(list_text("file,label\na,1.5\nb,2\na,1.5\nb,2.5\n").notices,
            Texts{"2 of 4 rows name a file that another row names too; 1 file has different labels: b"});
}

TEST(LabelCsv, AsksWhetherAColumnOfKeysIsTheRightOne) {
  std::string text = "file,label\n";
  for (int row = 0; row < 200; ++row) text += std::to_string(row) + ".jpg,id" + std::to_string(row) + "\n";
  const SampleList list = list_text(text);
  EXPECT_EQ(list.notices,
            Texts{"column \"label\": 200 different classes for 200 samples; is it the right column?"});
}

TEST(LabelCsv, HashesTheRowsAndNotTheirSpelling) {
  const std::uint64_t hash = list_text("file,label\na,1\nb,2\n").xxh3;
  EXPECT_EQ(list_text("file\tx\tlabel\r\n\"a\"\t\t1\r\n\r\nb\t9\t\"2\"").xxh3, hash);
  EXPECT_NE(list_text("file,label\na,1\nb,3\n").xxh3, hash);
  EXPECT_NE(list_text("file,label\nb,2\na,1\n").xxh3, hash);
  EXPECT_NE(list_text("file,label\na,1\nb,2\nc\n").xxh3, hash) << "a rejected row counts";
  EXPECT_NE(list_text("file,label\na,1\nb,2\nc\n").xxh3, list_text("file,label\na,1\nb,2\nc,\n").xxh3);
  EXPECT_NE(list_text("file,label\na1,1\n").xxh3, list_text("file,label\na,11\n").xxh3);
}

TEST(LabelCsv, StaysBelowTwoHundredBytesASample) {
  constexpr std::size_t kCount = 100'000;
  std::string text = "file,label\n";
  for (std::size_t row = 0; row < kCount; ++row)
    text += "images/0001/p" + std::to_string(1'000'000 + row) + ".jpg,0." + std::to_string(row) + "\n";
  const SampleList list = list_text(text);
  ASSERT_EQ(list.size(), kCount);
  LabelColumn labels;
  for (std::size_t row = 0; row < kCount; ++row) (void)labels.add("0." + std::to_string(row));
  const std::size_t kept = list.files.capacity_bytes() + list.rows.capacity() * 4 +
                           list.class_ids.capacity() * 8 + list.values.capacity() * 4;
  EXPECT_LT(kept + labels.capacity_bytes(), 200 * kCount);
}

TEST(LabelCsv, ReadsStdin) {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", "file,label\na,1\n");
  const int saved = ::dup(STDIN_FILENO);
  const int file = ::open(path.c_str(), O_RDONLY);
  ASSERT_EQ(::dup2(file, STDIN_FILENO), STDIN_FILENO);
  EXPECT_EQ(files_of(list_label_csv("-", {})), Texts{"a"});
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  ::close(file);
}

}  // namespace
}  // namespace chunkhit
