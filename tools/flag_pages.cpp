#include "flag_pages.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"
#include "chunkhit/version.h"

namespace chunkhit {
namespace {

using WordList = std::vector<std::string>;

/// What may be typed for a value.
enum class Completes { nothing, words, files, folders };

/// What stands for the value: "FOLDER"; empty: the flag takes none.
const std::string& shape_of(const Flag& flag) { return flag.is_argument() ? flag.name : flag.shape; }

/// The words that complete a value: an empty one is none.
WordList words_of(const Flag& flag) {
  WordList words = flag.words;
  std::erase(words, "");
  return words;
}

Completes completes(const Flag& flag) {
  const auto names = [&](std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(
        parts, [&](std::string_view part) { return shape_of(flag).find(part) != std::string::npos; });
  };
  if (!words_of(flag).empty()) return Completes::words;
  if (names({"FILE", "PATH", "INPUT"})) return Completes::files;
  return names({"FOLDER", "PACK", "ROOT", "OUT"}) ? Completes::folders : Completes::nothing;
}

bool repeats(const Flag& flag) { return flag.takes == Flag::Takes::list; }

/// All flags or all arguments of a command, in the order of its help.
std::vector<Flag> flags_of(const Command& command, bool arguments) {
  std::vector<Flag> flags;
  for (const Flag& flag : command.flags())
    if (!flag.group.empty() && flag.is_argument() == arguments) flags.push_back(flag);
  return flags;
}

/// The headings of the flags, in the order of the help.
WordList groups_of(const std::vector<Flag>& flags) {
  WordList groups;
  for (const Flag& flag : flags)
    if (std::ranges::find(groups, flag.group) == groups.end()) groups.push_back(flag.group);
  return groups;
}

std::string replaced(const std::string& text, const std::vector<std::pair<char, std::string>>& rules) {
  std::string result;
  for (const char c : text) {
    const auto rule = std::ranges::find(rules, c, &std::pair<char, std::string>::first);
    result += rule == rules.end() ? std::string(1, c) : rule->second;
  }
  return result;
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
  for (const std::string& name : flag.is_argument() ? WordList{} : flag.names())
    entry += (entry.ends_with('\n') ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  if (!shape_of(flag).empty())
    entry += (flag.is_argument() ? "\\fI" : " \\fI") + roff(shape_of(flag)) + "\\fR";
  return entry + "\n" + roff(flag.help) + "\n";
}

std::string man_synopsis(const Command& command) {
  std::string text = ".SH SYNOPSIS\n\\fB" + roff(command.name()) + "\\fR [\\fIOPTION\\fR]...";
  for (const Flag& argument : flags_of(command, true)) {
    const std::string name = "\\fI" + roff(argument.name) + "\\fR" + (repeats(argument) ? "..." : "");
    text += argument.is_required ? " " + name : " [" + name + "]";
  }
  return text + "\n";
}

std::string man_options(const Command& command) {
  std::string page = ".SH OPTIONS\n";
  for (const Flag& argument : flags_of(command, true)) page += man_entry(argument);
  const std::vector<Flag> flags = flags_of(command, false);
  const WordList groups = groups_of(flags);
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

std::string man_see_also(const Command& command) {
  std::istringstream names(CHUNKHIT_COMMANDS);
  WordList others;
  for (std::string name; names >> name;)
    if (name != command.name()) others.push_back("\\fB" + roff(name) + "\\fR(1)");
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
  const std::string shape = replaced(shape_of(flag), {{':', "\\:"}, {'\'', "'\\''"}});
  switch (completes(flag)) {
    case Completes::words:
      return ":" + shape + ":(" + joined(words_of(flag), " ") + ")";
    case Completes::files:
      return ":" + shape + ":_files";
    case Completes::folders:
      return ":" + shape + ":_files -/";
    case Completes::nothing:
      break;
  }
  return shape_of(flag).empty() ? "" : ":" + shape + ": ";
}

std::string zsh_flag(const Flag& flag) {
  const std::string about =
      "'[" + replaced(flag.help, {{'[', "\\["}, {']', "\\]"}, {':', "\\:"}, {'\'', "'\\''"}}) + "]";
  WordList names;
  for (const std::string& name : flag.names())
    names.push_back(shape_of(flag).empty() ? name : name + (name.starts_with("--") ? "=" : "+"));
  const bool has_one = names.size() == 1;
  const std::string others = repeats(flag) ? "*" : has_one ? "" : "(" + joined(flag.names(), " ") + ")";
  return (others.empty() ? "" : "'" + others + "'") + (has_one ? names[0] : "{" + joined(names, ",") + "}") +
         about + zsh_value(flag) + "'";
}

/// What fish does for a value.
std::string fish_value(const Flag& flag) {
  switch (completes(flag)) {
    case Completes::words:
      return " -x -a '" + joined(words_of(flag), " ") + "'";
    case Completes::files:
      return " -r -F";
    case Completes::folders:
      return " -x -a '(__fish_complete_directories)'";
    case Completes::nothing:
      break;
  }
  return shape_of(flag).empty() ? "" : " -x";
}

std::string man_page(const Command& command) {
  constexpr std::string_view kHeading = "Examples:\n";
  std::string title = command.name();
  std::ranges::transform(title, title.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string about = command.about().substr(0, command.about().find_first_of(".:\n"));
  about[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(about[0])));
  const std::string& footer = command.examples();
  const std::size_t examples = std::min(footer.find("Examples"), footer.size());
  const std::size_t first =
      footer.compare(examples, kHeading.size(), kHeading) == 0 ? examples + kHeading.size() : examples;
  return ".TH " + roff(title) + " 1 " CHUNKHIT_RELEASE_DATE " \"chunkhit " + version() + "\" chunkhit\n" +
         ".SH NAME\n" + roff(command.name()) + " \\- " + roff(about) + "\n" + man_synopsis(command) +
         ".SH DESCRIPTION\n" + roff_lines(command.about() + "\n" + footer.substr(0, examples)) +
         man_options(command) + kManStatus +
         (footer.empty() ? "" : ".SH EXAMPLES\n" + roff_lines(footer.substr(first))) + man_see_also(command);
}

std::string bash_completion(const Command& command) {
  const std::string name = "_" + replaced(command.name(), {{'-', "_"}});
  std::string cases;
  WordList names;
  for (const Flag& flag : flags_of(command, false)) {
    for (const std::string& each : flag.names()) names.push_back(each);
    if (!shape_of(flag).empty())
      cases += bash_case(joined(flag.names(), " | "), completes(flag), words_of(flag));
  }
  const std::vector<Flag> arguments = flags_of(command, true);
  const Flag argument = arguments.empty() ? Flag() : arguments.back();
  return "# Completes " + command.name() + " in bash.\n" + name + "() {\n" +
         "  local word=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  # To bash --flag=word is three words.\n"
         "  if [[ $word == = ]]; then word=; elif [[ $flag == = ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}; "
         "fi\n"
         "  case $flag in\n" +
         cases + "    *)\n" + "      case $word in\n  " + bash_case("-*", Completes::words, names) + "  " +
         bash_case("*", completes(argument), words_of(argument)) + "      esac ;;\n  esac\n}\n" +
         "complete -F " + name + " " + command.name() + "\n";
}

std::string zsh_completion(const Command& command) {
  std::string text = "#compdef " + command.name() + "\n_arguments -S";
  for (const Flag& flag : flags_of(command, false)) text += " \\\n  " + zsh_flag(flag);
  for (const Flag& argument : flags_of(command, true))
    text += " \\\n  '" +
            std::string(repeats(argument)      ? "*"
                        : argument.is_required ? ""
                                               : ":") +
            zsh_value(argument) + "'";
  return text + "\n";
}

std::string fish_completion(const Command& command) {
  const std::string complete = "complete -c " + command.name();
  std::string text;
  for (const Flag& argument : flags_of(command, true))
    if (completes(argument) == Completes::folders) text = complete + fish_value(argument) + "\n";
  for (const Flag& flag : flags_of(command, false)) {
    text += complete;
    for (const std::string& name : flag.names())
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    text += fish_value(flag) + " -d '" + replaced(flag.help, {{'\\', "\\\\"}, {'\'', "\\'"}}) + "'\n";
  }
  return text;
}

/// A text in a cell of a table.
std::string cell(const std::string& text) {
  return replaced(text, {{'|', "\\|"}, {'<', "&lt;"}, {'>', "&gt;"}, {'*', "\\*"}, {'_', "\\_"}});
}

std::string markdown_row(const Flag& flag) {
  const std::string shape = flag.is_argument() || shape_of(flag).empty() ? "" : " " + shape_of(flag);
  const std::string shown = " (" + flag.shown + ")";
  std::string help = flag.help;
  const bool has_default = !flag.shown.empty() && help.ends_with(shown);
  if (has_default) help.resize(help.size() - shown.size());
  return "| `" + joined(flag.names(), "`, `") + shape + "` | " + (has_default ? cell(flag.shown) : "") +
         " | " + cell(help) + " |\n";
}

std::string markdown_page(const Command& command) {
  constexpr const char* kHead = "\n| flag | default | what it does |\n|---|---|---|\n";
  std::string page = "# " + command.name() + "\n" +
                     cell(command.about().substr(0, command.about().find("\nDefaults"))) + "\n" + kHead;
  for (const Flag& argument : flags_of(command, true)) page += markdown_row(argument);
  const std::vector<Flag> flags = flags_of(command, false);
  for (const std::string& group : groups_of(flags)) {
    page += "\n## " + group + "\n" + kHead;
    for (const Flag& flag : flags)
      if (flag.group == group) page += markdown_row(flag);
  }
  return page + (command.examples().empty() ? "" : "\n````text\n" + command.examples() + "\n````\n");
}

struct Page {
  const char* form;
  std::string (*text)(const Command&);
};
constexpr std::array<Page, 5> kPages{{{"man", man_page},
                                      {"bash", bash_completion},
                                      {"zsh", zsh_completion},
                                      {"fish", fish_completion},
                                      {"markdown", markdown_page}}};

}  // namespace

std::vector<std::string> page_forms() {
  WordList forms;
  for (const Page& page : kPages) forms.emplace_back(page.form);
  return forms;
}

std::string flag_page(const std::string& form, const Command& command) {
  const auto* const page = std::ranges::find(kPages, std::string_view(form), &Page::form);
  if (page == kPages.end()) throw std::invalid_argument("found the form " + form);
  return page->text(command);
}

}  // namespace chunkhit
