// pack-verify: checks a pack or a part from end to end.
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chunkhit/verify.h"
#include "cli.h"
#include "field_flags.h"
#include "pack/run_fields.h"
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
  std::printf("%s: %s, %s, %s, %s in %.2f s: %s\n", printable_text(path).c_str(),
              count_text(report.parts, "part").c_str(), count_text(report.chunks, "chunk").c_str(),
              count_text(report.samples, "sample").c_str(),
              bytes_text(static_cast<double>(report.bytes)).c_str(), seconds, outcome(report, quick).c_str());
  for (const std::string& notice : report.notices)
    std::printf("note: %s\n", printable_text(flag_text(notice)).c_str());
  print_repair(report);
}

constexpr const char* kDescription =
    "Checks a pack or a part: manifest against parts, every chunk's hash, every chunk decoded.\n"
    "Of a folder: all packs and splits in it, and that no split lacks a pack.";
constexpr const char* kExamples =
    "Exit code 65: something is wrong; 75: it could not be checked, for lack of memory, file descriptors\n"
    "or readable storage.\n"
    "Examples:\n"
    "  pack-verify train\n"
    "  pack-verify --quick train";

void add_flags(Command& command) {
  command.add_argument("PATH", "Pack, folder of packs or splits, manifest.json, part, or external HDF5 file");
  command.add_switch("--quick", "Manifest, sizes and structure only; no sample is read");
  command.add_switch("--json", "Print JSON; for several packs one object with their folders as keys");
  command.add_switch("--structure", "External HDF5 file: only open it, within limits of time and memory");
  command.add({"--layer", "NAME", ""}).group.clear();
  command.add_dataset_flags();
  command.add({"--threads", "N", "Worker threads (all available CPUs)"});
}

/// Verifies one of several packs: that it is unfinished, or cannot be opened, is its problem, and the others
/// are looked at.
VerifyReport verify_one_of(const std::string& pack, const VerifyOptions& options) {
  try {
    return verify_pack(pack, options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    VerifyReport report;
    report.problems.push_back(flag_text(error.what()));
    return report;
  }
}

int verify(Command& command) {
  const std::string& path = command["PATH"].text();
  VerifyOptions options;
  options.quick = command["--quick"].is_on();
  options.names = dataset_names(command);
  read_flag(command["--threads"], options.threads, CountForm{1, kMaxThreads, "all"});
  if (command["--structure"].is_on()) {
    std::optional<std::string> layer;
    if (command["--layer"].is_given()) layer = command["--layer"].text();
    open_within_limits(path, {.names = options.names, .matrix = layer});
    std::printf("%s: can be opened\n", printable_text(path).c_str());
    return 0;
  }
  const std::map<std::string, std::string> missing = missing_packs(path);
  std::vector<std::string> packs = packs_of(path);
  for (const auto& [pack, problem] : missing) packs.push_back(pack);
  return scan_packs(path, packs, [&](const std::string& pack, std::string& text) {
    const auto begin = std::chrono::steady_clock::now();
    VerifyReport report;
    if (const auto problem = missing.find(pack); problem != missing.end())
      report.problems.push_back(problem->second);
    else
      report = pack == path ? verify_pack(pack, options) : verify_one_of(pack, options);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (command["--json"].is_on())
      text = verify_report_json(report);
    else
      print_report(pack, report, seconds, options.quick);
    return report.problems.empty() ? 0 : static_cast<int>(ErrorCode::bad_data);
  });
}

}  // namespace
}  // namespace chunkhit

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): only without memory for the flags
  using namespace chunkhit;
  Command command("pack-verify", kDescription, kExamples);
  add_flags(command);
  const auto run = [&] { return verify(command); };
  return command.run(argc, argv, [&] { return command["--json"].is_on() ? with_json_error(run) : run(); });
}
