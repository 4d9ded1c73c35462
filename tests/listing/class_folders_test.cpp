#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "chunkhit/error.h"
#include "listing/sample_list.h"
#include "support/temporary_folder.h"

namespace chunkhit {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

Texts files_of(const SampleList& list) {
  Texts files;
  for (std::size_t index = 0; index < list.size(); ++index) files.emplace_back(list.file(index));
  return files;
}

ErrorCode code_of(const std::string& root) {
  try {
    (void)list_class_folders(root);
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find(root), std::string_view::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << root << " was listed";
  return ErrorCode::cannot_write;
}

TEST(ClassFolders, TakesASubFolderAsAClass) {
  const TemporaryFolder root;
  for (const char* file : {"dog/b.jpg", "dog/a.jpg", "cat/z.jpg", "Cow/1.png"}) root.write(file, "x");
  const SampleList list = list_class_folders(root.path());
  EXPECT_EQ(list.label_kind, LabelKind::class_id);
  EXPECT_EQ(list.classes, (Texts{"Cow", "cat", "dog"}));
  EXPECT_EQ(files_of(list), (Texts{"Cow/1.png", "cat/z.jpg", "dog/a.jpg", "dog/b.jpg"}));
  EXPECT_EQ(list.class_ids, (std::vector<std::int64_t>{0, 1, 2, 2}));
  EXPECT_EQ(list.label_columns, Texts{"label"});
  EXPECT_EQ(list.row_count, 4u);
  EXPECT_EQ(list.label_text(1), Texts{"cat"});
  EXPECT_EQ(list.notices, Texts{});
}

// The order that torchvision 0.14's ImageFolder gave for these files.
TEST(ClassFolders, SortsNestedFoldersAsImageFolder) {
  const TemporaryFolder root;
  const Texts in_order = {"cat/10.jpg",  "cat/2.jpg",       "cat/B.jpg",        "cat/a.jpg",
                          "cat/z-1.jpg", "cat/z_1.jpg",     "cat/\xc3\xa9.jpg", "cat/A/1.jpg",
                          "cat/a/1.jpg", "cat/a-b/1.jpg",   "cat/a.b/1.jpg",    "cat/a/b/1.jpg",
                          "cat-b/1.jpg", "dog/x y/z/1.jpg", "new\nline/1.jpg"};
  for (auto file = in_order.rbegin(); file != in_order.rend(); ++file) root.write(*file, "x");
  EXPECT_EQ(files_of(list_class_folders(root.path())), in_order);
}

TEST(ClassFolders, SkipsWhatIsHidden) {
  const TemporaryFolder root;
  for (const char* file : {".git/a.jpg", "cat/.DS_Store", "cat/.thumbs/b.jpg", "cat/a.jpg"})
    root.write(file, "x");
  const SampleList list = list_class_folders(root.path());
  EXPECT_EQ(files_of(list), Texts{"cat/a.jpg"});
  EXPECT_EQ(list.row_count, 1u);
}

TEST(ClassFolders, CountsFilesThatHaveNoClass) {
  const TemporaryFolder root;
  for (const char* file : {"labels.csv", "b.jpg", "cat/a.jpg", "dog/a.jpg"}) root.write(file, "x");
  const SampleList list = list_class_folders(root.path());
  EXPECT_EQ(list.row_count, 2u);
  EXPECT_EQ(list.notices,
            Texts{"2 files directly under " + root.path() + " have no class and will not be packed"});
}

TEST(ClassFolders, SaysThatThereIsOnlyOneClass) {
  const TemporaryFolder root;
  root.write("cat/a.jpg", "x");
  EXPECT_EQ(list_class_folders(root.path()).notices,
            Texts{"there is only one class, cat: a class is a folder directly under " + root.path()});
}

TEST(ClassFolders, AsksForTheFolderBelowWhenNoClassHoldsAImageItself) {
  const TemporaryFolder root;
  for (const char* file : {"images/cat/a.jpg", "masks/cat/a.jpg"}) root.write(file, "x");
  EXPECT_EQ(
      list_class_folders(root.path()).notices,
      Texts{"no class folder holds an image itself, only in sub-folders like images/cat; did you mean " +
            root.path() + "/images as `root`, or `split_folders` images,…?"});
  root.write("masks/b.jpg", "x");
  EXPECT_EQ(list_class_folders(root.path()).notices, Texts{});
}

// They became two classes, of which a user heard only where no image lay directly in them.
TEST(ClassFolders, AsksWhetherTrainAndValAreASplit) {
  const TemporaryFolder root;
  for (const char* file : {"train/a.jpg", "val/a.jpg"}) root.write(file, "x");
  const Texts notices{
      "the classes train,val have the names of a split; `split_folders` train,val makes a pack of each, "
      "whose "
      "sub-folders are the classes"};
  EXPECT_EQ(list_class_folders(root.path()).notices, notices);
  root.write("cat/train/a.jpg", "x");
  EXPECT_EQ(list_class_folders(root.path()).notices, notices);
  const TemporaryFolder railway;
  for (const char* file : {"train/a.jpg", "tram/a.jpg"}) railway.write(file, "x");
  EXPECT_EQ(list_class_folders(railway.path()).notices, Texts{});
}

TEST(ClassFolders, LeavesOutEmptyFolders) {
  const TemporaryFolder root;
  root.write("dog/a.jpg", "x");
  root.write("eel/a.jpg", "x");
  root.make_folder("ant/nothing/here");
  root.make_folder("cat");
  const SampleList list = list_class_folders(root.path());
  EXPECT_EQ(list.classes, (Texts{"dog", "eel"}));
  EXPECT_EQ(list.class_ids, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(list.notices, Texts{"2 sub-folders hold no files to pack and are no class: ant, cat"});
}

TEST(ClassFolders, NamesAllThatHoldNothingToPack) {
  const TemporaryFolder root;
  root.write("dog/a.jpg", "x");
  root.write("eel/a.jpg", "x");
  for (const char* file : {"a/x.pyc", "b/x.mp4", "c/x.npz", "d/x.zip", "e/.DS_Store", "f/x.TXT"})
    root.write(file, "x");
  root.make_folder("g");
  fs::create_directory_symlink("../dog", root.path("g/link"));
  const SampleList list = list_class_folders(root.path());
  EXPECT_EQ(list.classes, (Texts{"dog", "eel"}));
  ASSERT_FALSE(list.notices.empty());
  EXPECT_EQ(list.notices.back(), "7 sub-folders hold no files to pack and are no class: a, b, c, d, e, f, g");
}

TEST(ClassFolders, ListsLinksToFilesAndRejectsLinksToFolders) {
  const TemporaryFolder root;
  root.write("cat/a.jpg", "x");
  fs::create_symlink("a.jpg", root.path("cat/link.jpg"));
  fs::create_symlink("nowhere", root.path("cat/dangling.jpg"));
  fs::create_directory_symlink("..", root.path("cat/loop"));
  fs::create_directory_symlink("cat", root.path("cats"));
  const SampleList list = list_class_folders(root.path());
  EXPECT_EQ(files_of(list), (Texts{"cat/a.jpg", "cat/dangling.jpg", "cat/link.jpg"}));
  ASSERT_EQ(list.rejects.size(), 2u);
  EXPECT_EQ(list.rejects[0].file, "cat/loop");
  EXPECT_EQ(list.rejects[0].row, 3u);
  EXPECT_EQ(list.rejects[0].labels, Texts{"cat"});
  EXPECT_EQ(list.rejects[0].reason, "a link to a folder, which is not followed");
  EXPECT_EQ(list.rejects[1].file, "cats");
  EXPECT_EQ(list.classes, Texts{"cat"});
}

TEST(ClassFolders, FollowsLinksToFoldersWhereThatIsAskedFor) {
  const TemporaryFolder root;
  root.write("outside/1.jpg", "x");
  root.write("root/cat/a.jpg", "x");
  fs::create_directory_symlink("../outside", root.path("root/dog"));
  fs::create_directory_symlink("../../outside", root.path("root/cat/more"));
  fs::create_directory_symlink("..", root.path("root/cat/loop"));
  fs::create_directory_symlink(".", root.path("root/cat/self"));
  const SampleList list = list_class_folders(root.path("root"), {}, {.follow_symlinks = true});
  EXPECT_EQ(files_of(list), (Texts{"cat/a.jpg", "cat/loop/dog/1.jpg", "cat/more/1.jpg", "dog/1.jpg"}));
  EXPECT_EQ(list.classes, (Texts{"cat", "dog"}));
  ASSERT_GE(list.rejects.size(), 2u);
  for (const Reject& reject : list.rejects) EXPECT_EQ(reject.reason, "a link to a folder that holds it");
}

TEST(ClassFolders, GiveAClassOneIdInAllFoldersOfASplit) {
  const TemporaryFolder root;
  for (const char* file : {"train/ant/1.jpg", "train/bee/1.jpg", "train/cat/1.jpg", "val/ant/2.jpg",
                           "val/cat/2.jpg", "val/eel/2.jpg", "other/dog/1.jpg"})
    root.write(file, "x");
  fs::create_directory_symlink("cat", root.path("val/loop"));
  const SampleList list = list_class_folders(root.path(), {.split_folders = {"train", "val"}});
  EXPECT_EQ(list.classes, (Texts{"ant", "bee", "cat", "eel"}));
  EXPECT_EQ(files_of(list), (Texts{"train/ant/1.jpg", "train/bee/1.jpg", "train/cat/1.jpg", "val/ant/2.jpg",
                                   "val/cat/2.jpg", "val/eel/2.jpg"}));
  EXPECT_EQ(list.class_ids, (std::vector<std::int64_t>{0, 1, 2, 0, 2, 3}));
  ASSERT_EQ(list.folders.size(), 2u);
  EXPECT_EQ(list.folders[0].row_end, 3u);
  EXPECT_EQ(list.folders[1].row_end, 7u);
  EXPECT_EQ(list.notices,
            (Texts{"train has no samples of 1 class: eel", "val has no samples of 1 class: bee"}));
  const std::vector<std::string> missing{"train", "test"};
  EXPECT_THROW(static_cast<void>(list_class_folders(root.path(), {.split_folders = missing})), Error);
}

TEST(ClassFolders, SkipWhatIsEvidentlyNoImage) {
  const TemporaryFolder root;
  for (const char* file : {"cat/a.jpg", "cat/Thumbs.db", "cat/notes.TXT", "dog/a.weird", "dog/more/list.txt"})
    root.write(file, "x");
  const SampleList list = list_class_folders(root.path());
  EXPECT_EQ(files_of(list), (Texts{"cat/a.jpg", "dog/a.weird"}));
  EXPECT_EQ(list.row_count, 2u);
  EXPECT_EQ(list.notices, Texts{"3 files are skipped as evidently no images (2 .txt, 1 thumbs.db); `include` "
                                "'*' takes all"});
  EXPECT_EQ(list_class_folders(root.path(), {.include = {"*"}}).size(), 5u);
}

TEST(ClassFolders, AFolderOfSkippedFilesWasNoClassWithoutAWord) {
  const TemporaryFolder root;
  for (const char* file : {"cat/a.jpg", "cat/notes.txt", "dog/list.txt", "dog/more/list.txt"})
    root.write(file, "x");
  const SampleList list = list_class_folders(root.path());
  EXPECT_EQ(list.classes, Texts{"cat"});
  ASSERT_GE(list.notices.size(), 2u);
  EXPECT_EQ(list.notices[1], "1 sub-folder holds no files to pack and is no class: dog");
}

TEST(ClassFolders, ListOnlyWhatIsIncluded) {
  const TemporaryFolder root;
  for (const char* file : {"cat/a.jpg", "cat/b.JPG", "cat/deep/c.jpg", "dog/d.png", "dog/e.jpeg"})
    root.write(file, "x");
  const auto included = [&](const Texts& globs) {
    return files_of(list_class_folders(root.path(), {.include = globs}));
  };
  EXPECT_EQ(included({"*.jpg"}), (Texts{"cat/a.jpg", "cat/deep/c.jpg"}));
  EXPECT_EQ(included({"*.jpg", "*.png"}), (Texts{"cat/a.jpg", "cat/deep/c.jpg", "dog/d.png"}));
  EXPECT_EQ(included({"*/*.jp*g"}), (Texts{"cat/a.jpg", "dog/e.jpeg"}));
  EXPECT_EQ(list_class_folders(root.path(), {.include = {"*.jp*g"}}).notices[0],
            "2 files match no `include`; the first is cat/b.JPG");
}

TEST(ClassFolders, RejectsWhatIsNoFile) {
  const TemporaryFolder root;
  root.write("cat/z.jpg", "x");
  ASSERT_EQ(::mkfifo(root.path("cat/fifo").c_str(), 0600), 0);
  const SampleList list = list_class_folders(root.path());
  ASSERT_EQ(list.rejects.size(), 1u);
  EXPECT_EQ(list.rejects[0].row, 0u);
  EXPECT_EQ(list.rejects[0].reason, "not a regular file");
  EXPECT_EQ(list.row(0), 1u);
  EXPECT_EQ(list.row_count, 2u);
}

TEST(ClassFolders, RejectsNamesThatAreNotUtf8) {
  const TemporaryFolder root;
  for (const char* file : {"cat/a.jpg", "cat/b\xe9.jpg", "caf\xe9/a.jpg"}) root.write(file, "x");
  const SampleList list = list_class_folders(root.path());
  EXPECT_EQ(files_of(list), Texts{"cat/a.jpg"});
  EXPECT_EQ(list.classes, Texts{"cat"});
  ASSERT_EQ(list.rejects.size(), 2u);
  for (const Reject& reject : list.rejects) EXPECT_EQ(reject.reason, "file name is not UTF-8");
}

TEST(ClassFolders, HashesTheNames) {
  const TemporaryFolder first;
  const TemporaryFolder second;
  for (const TemporaryFolder* root : {&first, &second})
    for (const char* file : {"cat/a.jpg", "dog/b.jpg"}) root->write(file, root->path());
  EXPECT_EQ(list_class_folders(first.path()).xxh3, list_class_folders(second.path()).xxh3);
  second.write("dog/c.jpg", "x");
  EXPECT_NE(list_class_folders(first.path()).xxh3, list_class_folders(second.path()).xxh3);
}

TEST(ClassFolders, NeedsAFolderWithFilesInSubFolders) {
  const TemporaryFolder root;
  EXPECT_EQ(code_of(root.path("none")), ErrorCode::bad_data);
  EXPECT_EQ(code_of(root.write("a.jpg", "x")), ErrorCode::bad_data);
  EXPECT_EQ(code_of(root.path()), ErrorCode::bad_data);
  root.make_folder("cat");
  EXPECT_EQ(code_of(root.path()), ErrorCode::bad_data);
}

TEST(ClassFolders, NamesAFolderThatCannotBeRead) {
  const TemporaryFolder root;
  root.write("cat/locked/a.jpg", "x");
  fs::permissions(root.path(), fs::perms(0755));
  fs::permissions(root.path("cat/locked"), fs::perms::none);
  const bool as_root = ::geteuid() == 0;
  if (as_root) {
    ASSERT_EQ(::seteuid(65534), 0) << "root could read every folder";
  }
  std::string error = "none";
  try {
    (void)list_class_folders(root.path());
  } catch (const Error& thrown) {
    EXPECT_EQ(thrown.code(), ErrorCode::bad_data);
    error = thrown.what();
  }
  if (as_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  fs::permissions(root.path("cat/locked"), fs::perms::owner_all);
  EXPECT_EQ(error, root.path("cat/locked") + ": the folder cannot be read: Permission denied");
}

}  // namespace
}  // namespace chunkhit
