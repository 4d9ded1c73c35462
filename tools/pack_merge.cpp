// pack-merge: finished packs → one pack of their parts.
#include <cstdio>
#include <string>

#include "chunkhit/pack.h"
#include "cli.h"
#include "command.h"

namespace chunkhit {
namespace {

constexpr const char* kDescription =
    "Merges finished packs into one, by metadata alone: parts are hard-linked, or copied where the file\n"
    "system has no links, and never rewritten. If OUT is one of the packs, the others are appended to it.";
constexpr const char* kExamples =
    "Classes are joined by name: the first pack's ids stay, new names follow. Ratings: all packs have the\n"
    "same items (pack-sparse --reuse-ids), and no user is in two of them.\n"
    "The same command resumes after a kill; OUT is as it was until its manifest is replaced.\n"
    "Examples:\n"
    "  pack-merge all monday tuesday\n"
    "  pack-merge train train day2";

void print_report(const MergeReport& report) {
  const std::string path = printable_text(report.path);
  for (const std::string& notice : report.notices)
    std::printf("note: %s\n", printable_text(flag_text(notice)).c_str());
  if (report.interrupted) {
    std::printf("%s: stopped; the same command resumes\n", path.c_str());
    return;
  }
  std::printf("%s: %s%s of %s in %s, %s\n", path.c_str(), report.already_finished ? "already merged: " : "",
              count_text(report.samples, "sample").c_str(), count_text(report.packs, "pack").c_str(),
              count_text(report.parts, "part").c_str(),
              bytes_text(static_cast<double>(report.bytes)).c_str());
  if (report.already_finished) return;
  std::printf("  %s linked, %s copied, %s kept, in %.2f s\n", count_text(report.parts_linked).c_str(),
              count_text(report.parts_copied).c_str(),
              count_text(report.parts - report.parts_linked - report.parts_copied).c_str(), report.seconds);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): only without memory for the flags
  using namespace chunkhit;
  Command command("pack-merge", kDescription, kExamples);
  command.add_argument("OUT", "Folder of the merged pack");
  command.add_argument("PACK", "Folders of finished packs, in this order", true, Flag::Takes::list);
  return command.run(argc, argv, [&] {
    handle_signals();
    MergeOptions options;
    options.output = command["OUT"].text();
    options.packs = command["PACK"].given;
    options.command_line = command_line(argc, argv);
    options.stop = &stop_requested;
    const MergeReport report = merge_packs(options);
    print_report(report);
    return exit_code(report.interrupted);
  });
}
