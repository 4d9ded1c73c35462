#include "input/file_names.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

namespace chunkhit {
namespace {

// What operating systems, annotators and people leave beside images. No format of images is among them: a
// file of any other name is opened, and its bytes tell.
constexpr auto kExtensions = std::to_array<std::string_view>(
    {".7z",   ".avi",     ".bib",         ".bz2",    ".c",     ".cfg",    ".ckpt", ".cpp",  ".css",
     ".csv",  ".db",      ".doc",         ".docx",   ".exe",   ".flac",   ".gz",   ".h",    ".h5",
     ".hdf5", ".htm",     ".html",        ".ini",    ".ipynb", ".jar",    ".js",   ".json", ".jsonl",
     ".lmdb", ".lnk",     ".lock",        ".log",    ".m4a",   ".mat",    ".md",   ".md5",  ".mdb",
     ".mkv",  ".mov",     ".mp3",         ".mp4",    ".mpeg",  ".mpg",    ".npy",  ".npz",  ".ogg",
     ".onnx", ".parquet", ".pdf",         ".pickle", ".pkl",   ".pt",     ".pth",  ".py",   ".pyc",
     ".rar",  ".rst",     ".safetensors", ".sh",     ".sha1",  ".sha256", ".so",   ".sql",  ".sqlite",
     ".srt",  ".tar",     ".tfrecord",    ".tgz",    ".toml",  ".tsv",    ".txt",  ".wav",  ".webm",
     ".wmv",  ".xls",     ".xlsx",        ".xml",    ".xz",    ".yaml",   ".yml",  ".zip",  ".zst"});
constexpr auto kNames = std::to_array<std::string_view>(
    {"thumbs.db", "desktop.ini", "license", "readme", "checksums", "makefile", "ds_store"});

std::string lower(std::string_view text) {
  std::string letters(text);
  for (char& letter : letters)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return letters;
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string files_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " file" : " files");
}

}  // namespace

std::string evident_kind(std::string_view name) {
  std::string letters = lower(name);
  if (std::ranges::find(kNames, letters) != kNames.end()) return letters;
  const std::size_t dot = letters.rfind('.');
  if (dot == std::string::npos) return "";
  const std::string extension = letters.substr(dot);
  return std::ranges::find(kExtensions, extension) != kExtensions.end() ? extension : "";
}

bool FileNames::take(const std::string& path) {
  const std::string name(name_of(path));
  if (include_.empty()) {
    const std::string kind = evident_kind(name);
    if (kind.empty()) return true;
    ++kinds_[kind];
  } else {
    const auto matches = [&](const std::string& glob) {
      const bool of_path = glob.find('/') != std::string::npos;
      return ::fnmatch(glob.c_str(), (of_path ? path : name).c_str(), of_path ? FNM_PATHNAME : 0) == 0;
    };
    if (std::ranges::any_of(include_, matches)) return true;
  }
  if (left_out_++ == 0) first_ = path;
  return false;
}

std::vector<std::string> FileNames::notices() const {
  if (left_out_ == 0) return {};
  if (!include_.empty()) return {files_text(left_out_) + " match no --include, " + first_ + " say"};
  std::string kinds;
  for (const auto& [kind, count] : kinds_)
    kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
  return {files_text(left_out_) +
          (left_out_ == 1 ? " is skipped as evidently no image (" : " are skipped as evidently no images (") +
          kinds + "); --include '*' takes all"};
}

}  // namespace chunkhit
