// A command's flags as data, of which its parser, help, recipes and pages are made.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chunkhit {

/// A flag or an argument of a command: a row of its help, pages and recipes, and what was given.
struct Flag {
  enum class Takes { nothing, text, list, names };  ///< a list: one text each time; names: "a,b"
  std::string name;                                 ///< "-o,--output"; of an argument "ROOT"
  std::string shape;                                ///< stands for the value in the help
  std::string help;
  Takes takes = Takes::text;
  std::string shown = {};                  ///< default in recipes; of a switch "true", "false" or empty
  std::vector<std::string> words = {};     ///< all values; empty: any
  std::vector<std::string> excludes = {};  ///< flags above it that it does not go with
  bool is_required = false;
  bool in_recipes = true;
  std::string group = {};               ///< heading in the help; empty: hidden
  std::vector<std::string> given = {};  ///< values of the command line, else of the recipe

  [[nodiscard]] bool is_argument() const { return !name.starts_with('-'); }
  [[nodiscard]] bool is_given() const { return !given.empty(); }
  [[nodiscard]] bool is_on() const { return text() == "true"; }
  [[nodiscard]] const std::string& text() const { return given.empty() ? shown : given.front(); }
  /// Returns the values without empty ones, which a recipe has for an empty list.
  [[nodiscard]] std::vector<std::string> list() const;
  /// Returns "-o" and "--output"; of an argument its name.
  [[nodiscard]] std::vector<std::string> names() const;
};

/// A command: its flags, and how it runs.
class Command {
 public:
  Command(std::string name, std::string about, std::string examples = "");
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// Puts the flags that follow below a heading of the help.
  void group(std::string heading) { group_ = std::move(heading); }
  Flag& add(Flag flag);
  Flag& add_switch(const std::string& name, const std::string& help);
  /// Adds an argument; one that takes a list is shown with dots.
  Flag& add_argument(const std::string& name, const std::string& help, bool is_required = true,
                     Flag::Takes takes = Flag::Takes::text);
  void add_progress_flag();
  /// Adds --config and --save-config: a recipe with the flags' names as keys, whose unknown keys are errors.
  void add_config_flags();
  /// Adds --images and --labels.
  void add_dataset_flags();

  /// Returns a flag by one of its names, null without one.
  [[nodiscard]] Flag* find(std::string_view name);
  /// Returns a flag that the command has.
  [[nodiscard]] Flag& operator[](std::string_view name);
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& about() const { return about_; }
  [[nodiscard]] const std::string& examples() const { return examples_; }
  [[nodiscard]] const std::deque<Flag>& flags() const { return flags_; }

  /// Adds --version and --help, parses, calls `body`; turns every failure into a message on stderr and the
  /// documented exit code.
  int run(int argc, char** argv, const std::function<int()>& body);
  /// Writes the recipe that --save-config asks for, defaults included. To be called by run's `body`; throws
  /// cannot_write.
  void save_recipe();

 private:
  std::string name_, about_, examples_;
  std::string group_ = "Options";
  std::deque<Flag> flags_;  ///< references to them stay
  std::function<std::string()> recipe_;
};

}  // namespace chunkhit
