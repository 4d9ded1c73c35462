// Prints a page of the flags of a command that is no program of ours, but of the Python package:
// table_pages TABLE.json FORM. Run while building; cmake/python_flags.py writes the table.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "flag_pages.h"

namespace {

/// Adds what stands for the flag in the pages; nothing is parsed by it.
void add(CLI::App& app, const nlohmann::json& flag) {
  const std::string shape = flag.at("shape");
  std::string names;
  for (const std::string name : flag.at("names")) names += (names.empty() ? "" : ",") + name;
  const bool is_argument = !names.starts_with('-');
  const std::string about = flag.at("about");
  if (shape.empty()) {
    app.add_flag(names, about);
    return;
  }
  CLI::Option* const option = app.add_option(
      is_argument ? shape : names, [](const CLI::results_t&) { return true; }, about);
  option->option_text(shape)->required(flag.at("required"));
  if (flag.at("repeats")) option->expected(1, -1);
  const std::vector<std::string> words = flag.at("words");
  if (!words.empty()) option->check(CLI::IsMember(words));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  try {
    const nlohmann::json table = nlohmann::json::parse(std::ifstream(arguments[1]));
    CLI::App app(table.at("about").get<std::string>(), table.at("name").get<std::string>());
    app.set_help_flag();  // the table has it
    for (const nlohmann::json& flag : table.at("flags")) add(app, flag);
    std::cout << chunkhit::flag_page(arguments[2], app);
    return std::cout.flush() ? 0 : 73;
  } catch (const std::exception& error) {
    std::cerr << arguments[1] << ": " << error.what() << "\n";
    return 65;
  }
}
