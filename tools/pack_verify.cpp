// pack-verify: checks a pack or a part from end to end.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "chunkhit/verify.h"
#include "cli.h"
#include "pack_list.h"
#include "store/hdf5/external_check.h"

namespace chunkhit {
namespace {

/// What was found, and no more than what was looked at.
std::string outcome(const VerifyReport& report, bool quick) {
  if (!report.problems.empty()) return count_text(report.problems.size(), "error");
  if (quick) return "nothing wrong (quick: no sample was read)";
  if (!report.external) return "whole";
  return "every chunk can be decoded; an external file has no hashes and no manifest to compare with";
}

void print_repair(const VerifyReport& report) {
  if (report.remove_to_rebuild.empty()) return;
  std::printf("to repair, remove these and run the command that made it again (see run.json):\n");
  for (const std::string& file : report.remove_to_rebuild)
    std::printf("  %s\n", printable_text(file).c_str());
}

void print_report(const std::string& path, const VerifyReport& report, double seconds, bool quick) {
  for (const std::string& error : report.problems)
    std::printf("%s\n", printable_text(flag_text(error)).c_str());
  std::printf("%s: %s, %s, %s, %s in %.2f s: %s\n", path.c_str(), count_text(report.parts, "part").c_str(),
              count_text(report.chunks, "chunk").c_str(), count_text(report.samples, "sample").c_str(),
              bytes_text(static_cast<double>(report.bytes)).c_str(), seconds, outcome(report, quick).c_str());
  for (const std::string& notice : report.notices)
    std::printf("note: %s\n", printable_text(flag_text(notice)).c_str());
  print_repair(report);
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): only without memory for the flags
  using namespace chunkhit;
  CLI::App app("Checks a pack or a part: manifest against parts, every chunk's hash, every chunk decoded.",
               "pack-verify");
  std::string path;
  VerifyOptions options;
  bool json = false;
  bool structure = false;
  std::optional<std::string> layer;
  app.add_option("PATH", path, "Pack, folder of a split, manifest.json, part, or external HDF5 file")
      ->required();
  app.add_flag("--quick", options.quick, "Manifest, sizes and structure only; no sample is read");
  app.add_flag("--json", json, "Print JSON; for a split one object with the pack folders as keys");
  app.add_flag("--structure", structure,
               "External HDF5 file: only open it, within limits of time and memory");
  app.add_option("--layer", layer)->group("");
  add_dataset_flags(app, options.names.images, options.names.labels);
  app.add_option("--threads", options.threads, "Worker threads (all available CPUs)")
      ->check(CLI::Range(1, 4096))
      ->option_text("N");
  add_common_flags(app);
  app.footer(
      "Exit code 65: something is wrong; 75: it could not be checked, for lack of memory, file descriptors\n"
      "or readable storage.\nExamples:\n  pack-verify train\n  pack-verify --quick train");
  const auto verify = [&] {
    if (structure) {
      open_within_limits(path, {.names = options.names, .matrix = layer});
      std::printf("%s: can be opened\n", printable_text(path).c_str());
      return 0;
    }
    return scan_packs(path, [&](const std::string& pack, std::string& text) {
      const auto begin = std::chrono::steady_clock::now();
      const VerifyReport report = verify_pack(pack, options);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (json)
        text = verify_report_json(report);
      else
        print_report(pack, report, seconds, options.quick);
      return report.problems.empty() ? 0 : static_cast<int>(ErrorCode::bad_data);
    });
  };
  return run_command(app, argc, argv, [&] { return json ? with_json_error(verify) : verify(); });
}
