// Prints a page of the flags of a command that is no program of ours, but of the Python package:
// table_pages TABLE.json FORM. Run while building; cmake/python_flags.py writes the table.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/words.h"
#include "flag_pages.h"

namespace {

chunkhit::Flag flag_of(const nlohmann::json& row) {
  using Takes = chunkhit::Flag::Takes;
  chunkhit::Flag flag{"", row.at("shape"), row.at("about")};
  flag.name = chunkhit::joined(std::vector<std::string>(row.at("names")), ",");
  flag.takes = flag.shape.empty() ? Takes::nothing : row.at("repeats") ? Takes::list : Takes::text;
  flag.words = row.at("words");
  flag.is_required = row.at("required");
  if (flag.is_argument()) flag.name = flag.shape;
  return flag;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  try {
    const nlohmann::json table = nlohmann::json::parse(std::ifstream(arguments[1]));
    chunkhit::Command command(table.at("name"), table.at("about"));
    for (const nlohmann::json& row : table.at("flags")) command.add(flag_of(row));
    std::cout << chunkhit::flag_page(arguments[2], command);
    return std::cout.flush() ? 0 : 73;
  } catch (const std::exception& error) {
    std::cerr << arguments[1] << ": " << error.what() << "\n";
    return 65;
  }
}
