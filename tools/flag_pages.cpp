#include "flag_pages.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "chunkhit/version.h"

namespace chunkhit {
namespace {

using WordList = std::vector<std::string>;

/// What may be typed for a value.
enum class Completes { nothing, words, files, folders };

struct Flag {
  WordList names;     ///< "-o", "--output"; none of an argument
  std::string shape;  ///< stands for the value in the help: "FOLDER"; empty: takes none
  std::string about;
  std::string group;
  bool repeats = false;
  bool is_required = false;
  Completes completes = Completes::nothing;
  WordList words;  ///< the words that it takes, where only these are values
};

/// Reads CLI11's description of a set: "TEXT:{auto,hdf5,shard}". A comma may be a word, an empty word is none
/// to complete.
WordList words_of_set(const std::string& type) {
  const std::size_t open = type.find('{');
  if (open == std::string::npos) return {};
  const std::string set = type.substr(open + 1, type.rfind('}') - open - 1);
  WordList words;
  for (std::size_t begin = 0; begin < set.size();) {
    const bool is_comma = begin > 0 && set[begin] == ',';
    const std::size_t end = is_comma ? begin + 1 : std::min(set.find(',', begin), set.size());
    if (end > begin) words.push_back(set.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Completes completes(const std::string& shape, const WordList& words) {
  const auto names = [&](std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(parts,
                               [&](std::string_view part) { return shape.find(part) != std::string::npos; });
  };
  if (!words.empty()) return Completes::words;
  if (names({"FILE", "PATH", "INPUT"})) return Completes::files;
  return names({"FOLDER", "PACK", "ROOT", "OUT"}) ? Completes::folders : Completes::nothing;
}

Flag flag_of(const CLI::Option& option) {
  Flag flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  const bool takes_value = option.get_items_expected_max() > 0;
  if (takes_value) flag.shape = flag.names.empty() ? option.get_name(true) : option.get_option_text();
  flag.about = option.get_description();
  flag.group = option.get_group();
  flag.repeats = takes_value && option.get_items_expected_max() > 1;
  flag.is_required = option.get_required();
  if (takes_value) flag.words = words_of_set(option.get_type_name());
  flag.completes = completes(flag.shape, flag.words);
  return flag;
}

/// All flags or all arguments of a command, in the order of its help.
std::vector<Flag> flags_of(const CLI::App& app, bool arguments) {
  std::vector<Flag> flags;
  for (const CLI::Option* const option : app.get_options())
    if (!option->get_group().empty() && option->get_positional() == arguments)
      flags.push_back(flag_of(*option));
  return flags;
}

std::string replaced(const std::string& text, const std::vector<std::pair<char, std::string>>& rules) {
  std::string result;
  for (const char c : text) {
    const auto rule = std::ranges::find(rules, c, &std::pair<char, std::string>::first);
    result += rule == rules.end() ? std::string(1, c) : rule->second;
  }
  return result;
}

std::string joined(const WordList& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

/// A text as roff that prints it as it is.
std::string roff(const std::string& text) {
  const std::string plain = replaced(text, {{'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}});
  return plain.starts_with('.') ? "\\&" + plain : plain;
}

/// Lines as paragraphs; those that begin with blanks as they are, in a block of their own.
std::string roff_lines(const std::string& text) {
  std::string page;
  std::istringstream lines(text);
  bool is_block = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_indented = line.starts_with(' ');
    if (is_indented != is_block)
      page += is_indented ? (page.empty() ? ".nf\n.RS 2\n" : ".PP\n.nf\n.RS 2\n") : ".RE\n.fi\n";
    is_block = is_indented;
    page += roff(line.substr(std::min(line.find_first_not_of(' '), line.size()))) + "\n";
  }
  return page + (is_block ? ".RE\n.fi\n" : "");
}

std::string man_entry(const Flag& flag) {
  std::string entry = ".TP\n";
  for (const std::string& name : flag.names)
    entry += (&name == flag.names.data() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  if (!flag.shape.empty()) entry += (flag.names.empty() ? "\\fI" : " \\fI") + roff(flag.shape) + "\\fR";
  return entry + "\n" + roff(flag.about) + "\n";
}

std::string man_synopsis(const CLI::App& app) {
  std::string text = ".SH SYNOPSIS\n\\fB" + roff(app.get_name()) + "\\fR [\\fIOPTION\\fR]...";
  for (const Flag& argument : flags_of(app, true)) {
    const std::string name = "\\fI" + roff(argument.shape) + "\\fR" + (argument.repeats ? "..." : "");
    text += argument.is_required ? " " + name : " [" + name + "]";
  }
  return text + "\n";
}

std::string man_options(const CLI::App& app) {
  std::string page = ".SH OPTIONS\n";
  for (const Flag& argument : flags_of(app, true)) page += man_entry(argument);
  const std::vector<Flag> flags = flags_of(app, false);
  WordList groups;
  for (const Flag& flag : flags)
    if (std::ranges::find(groups, flag.group) == groups.end()) groups.push_back(flag.group);
  for (const std::string& group : groups) {
    if (groups.size() > 1) page += ".SS " + roff(group) + "\n";
    for (const Flag& flag : flags)
      if (flag.group == group) page += man_entry(flag);
  }
  return page;
}

constexpr const char* kManStatus =
    ".SH EXIT STATUS\n"
    ".TP\n0\nDone.\n"
    ".TP\n1\nMore rejects than \\-\\-max\\-errors.\n"
    ".TP\n2\nUsage.\n"
    ".TP\n65\nBad input data, or a missing folder or CSV.\n"
    ".TP\n73\nThe output cannot be written.\n"
    ".TP\n75\nA transient condition: run the same command again.\n"
    ".TP\n129, 130, 143\nStopped by SIGHUP, SIGINT or SIGTERM.\n";

std::string man_see_also(const CLI::App& app) {
  std::istringstream names(CHUNKHIT_COMMANDS);
  WordList others;
  for (std::string name; names >> name;)
    if (name != app.get_name()) others.push_back("\\fB" + roff(name) + "\\fR(1)");
  return ".SH SEE ALSO\n" + joined(others, ",\n") + "\n";
}

/// The body of a `case` of bash that completes a value.
std::string bash_value(Completes completes, const WordList& words) {
  switch (completes) {
    case Completes::words:
      return "compgen -W '" + joined(words, " ") + "'";
    case Completes::files:
      return "compgen -f";
    case Completes::folders:
      return "compgen -d";
    case Completes::nothing:
      break;
  }
  return "";
}

std::string bash_case(const std::string& pattern, Completes completes, const WordList& words) {
  const std::string value = bash_value(completes, words);
  const bool is_path = completes == Completes::files || completes == Completes::folders;
  return "    " + pattern + ")" + (is_path ? " compopt -o filenames;" : "") +
         (value.empty() ? " COMPREPLY=()" : " mapfile -t COMPREPLY < <(" + value + " -- \"$word\")") +
         " ;;\n";
}

/// What zsh does for a value.
std::string zsh_value(const Flag& flag) {
  const std::string shape = replaced(flag.shape, {{':', "\\:"}, {'\'', "'\\''"}});
  switch (flag.completes) {
    case Completes::words:
      return ":" + shape + ":(" + joined(flag.words, " ") + ")";
    case Completes::files:
      return ":" + shape + ":_files";
    case Completes::folders:
      return ":" + shape + ":_files -/";
    case Completes::nothing:
      break;
  }
  return flag.shape.empty() ? "" : ":" + shape + ": ";
}

std::string zsh_flag(const Flag& flag) {
  const std::string about =
      "'[" + replaced(flag.about, {{'[', "\\["}, {']', "\\]"}, {':', "\\:"}, {'\'', "'\\''"}}) + "]";
  WordList names;
  for (const std::string& name : flag.names)
    names.push_back(flag.shape.empty() ? name : name + (name.starts_with("--") ? "=" : "+"));
  const bool has_one = names.size() == 1;
  const std::string others = flag.repeats ? "*" : has_one ? "" : "(" + joined(flag.names, " ") + ")";
  return (others.empty() ? "" : "'" + others + "'") + (has_one ? names[0] : "{" + joined(names, ",") + "}") +
         about + zsh_value(flag) + "'";
}

/// What fish does for a value.
std::string fish_value(const Flag& flag) {
  switch (flag.completes) {
    case Completes::words:
      return " -x -a '" + joined(flag.words, " ") + "'";
    case Completes::files:
      return " -r -F";
    case Completes::folders:
      return " -x -a '(__fish_complete_directories)'";
    case Completes::nothing:
      break;
  }
  return flag.shape.empty() ? "" : " -x";
}

struct Page {
  const char* name;
  std::string (*text)(const CLI::App&);
};
constexpr std::array<Page, 4> kPages{
    {{"man", man_page}, {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}}};

}  // namespace

std::string man_page(const CLI::App& app) {
  constexpr std::string_view kHeading = "Examples:\n";
  std::string title = app.get_name();
  std::ranges::transform(title, title.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string about = app.get_description().substr(0, app.get_description().find_first_of(".:\n"));
  about[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(about[0])));
  const std::string footer = app.get_footer();
  const std::size_t examples = std::min(footer.find("Examples"), footer.size());
  const std::size_t first =
      footer.compare(examples, kHeading.size(), kHeading) == 0 ? examples + kHeading.size() : examples;
  return ".TH " + roff(title) + " 1 " CHUNKHIT_RELEASE_DATE " \"chunkhit " + version() + "\" chunkhit\n" +
         ".SH NAME\n" + roff(app.get_name()) + " \\- " + roff(about) + "\n" + man_synopsis(app) +
         ".SH DESCRIPTION\n" + roff_lines(app.get_description() + "\n" + footer.substr(0, examples)) +
         man_options(app) + kManStatus +
         (footer.empty() ? "" : ".SH EXAMPLES\n" + roff_lines(footer.substr(first))) + man_see_also(app);
}

std::string bash_completion(const CLI::App& app) {
  const std::string name = "_" + replaced(app.get_name(), {{'-', "_"}});
  std::string cases;
  WordList names;
  for (const Flag& flag : flags_of(app, false)) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
    if (!flag.shape.empty()) cases += bash_case(joined(flag.names, " | "), flag.completes, flag.words);
  }
  const std::vector<Flag> arguments = flags_of(app, true);
  const Flag argument = arguments.empty() ? Flag() : arguments.back();
  return "# Completes " + app.get_name() + " in bash.\n" + name + "() {\n" +
         "  local word=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  # To bash --flag=word is three words.\n"
         "  if [[ $word == = ]]; then word=; elif [[ $flag == = ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}; "
         "fi\n"
         "  case $flag in\n" +
         cases + "    *)\n" + "      case $word in\n  " + bash_case("-*", Completes::words, names) + "  " +
         bash_case("*", argument.completes, argument.words) + "      esac ;;\n  esac\n}\n" + "complete -F " +
         name + " " + app.get_name() + "\n";
}

std::string zsh_completion(const CLI::App& app) {
  std::string text = "#compdef " + app.get_name() + "\n_arguments -S";
  for (const Flag& flag : flags_of(app, false)) text += " \\\n  " + zsh_flag(flag);
  for (const Flag& argument : flags_of(app, true))
    text += " \\\n  '" +
            std::string(argument.repeats       ? "*"
                        : argument.is_required ? ""
                                               : ":") +
            zsh_value(argument) + "'";
  return text + "\n";
}

std::string fish_completion(const CLI::App& app) {
  const std::string command = "complete -c " + app.get_name();
  std::string text;
  for (const Flag& argument : flags_of(app, true))
    if (argument.completes == Completes::folders) text = command + fish_value(argument) + "\n";
  for (const Flag& flag : flags_of(app, false)) {
    text += command;
    for (const std::string& name : flag.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    text += fish_value(flag) + " -d '" + replaced(flag.about, {{'\\', "\\\\"}, {'\'', "\\'"}}) + "'\n";
  }
  return text;
}

std::string flag_page(const std::string& form, const CLI::App& app) {
  const auto* const page =
      std::ranges::find(kPages, form, [](const Page& each) { return std::string(each.name); });
  if (page == kPages.end())
    throw std::invalid_argument("found the form " + form + ", expected man, bash, zsh or fish");
  return page->text(app);
}

void add_flag_page(CLI::App& app) {
  WordList names;
  for (const Page& page : kPages) names.emplace_back(page.name);
  const auto print = [&app](const std::string& form) {
    std::string text = flag_page(form, app);
    text.pop_back();  // the line's end is printed behind it
    throw CLI::CallForVersion(text, 0);
  };
  app.add_option_function<std::string>("--flag-page", print)
      ->check(CLI::IsMember(names))
      ->group("")
      ->configurable(false);
}

}  // namespace chunkhit
