#include "command.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <istream>
#include <memory>
#include <new>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "chunkhit/version.h"
#include "cli.h"
#include "flag_pages.h"

namespace chunkhit {

std::vector<std::string> Flag::list() const {
  std::vector<std::string> texts = given;
  std::erase(texts, "");
  return texts;
}

std::vector<std::string> Flag::names() const {
  const std::size_t comma = name.find(',');
  if (comma == std::string::npos) return {name};
  return {name.substr(0, comma), name.substr(comma + 1)};
}

Command::Command(std::string name, std::string about, std::string examples)
    : name_(std::move(name)), about_(std::move(about)), examples_(std::move(examples)) {}

Flag& Command::add(Flag flag) {
  flag.group = group_;
  return flags_.emplace_back(std::move(flag));
}

Flag& Command::add_switch(const std::string& name, const std::string& help) {
  return add({name, "", help, Flag::Takes::nothing});
}

Flag& Command::add_argument(const std::string& name, const std::string& help, bool is_required,
                            Flag::Takes takes) {
  Flag& argument = add({name, takes == Flag::Takes::list ? "..." : "", help, takes});
  argument.is_required = is_required;
  return argument;
}

void Command::add_progress_flag() {
  Flag& flag = add({"--progress", "WORD", "Progress output: auto, json, none (auto)"});
  flag.words = {"auto", "json", "none"};
  flag.shown = "auto";
}

void Command::add_config_flags() {
  add({"--config", "FILE", "Read options from a TOML file, as --save-config writes it"}).in_recipes = false;
  add({"--save-config", "FILE", "Write all options, defaults included, to a TOML file"}).in_recipes = false;
}

void Command::add_dataset_flags() {
  add({"--images", "NAME", "Image dataset of an external HDF5 file (images)"});
  add({"--labels", "NAME", "Label dataset of that file; empty: no labels (labels next to the images)"});
}

Flag* Command::find(std::string_view name) {
  const auto found = std::ranges::find_if(flags_, [&](const Flag& flag) {
    return std::ranges::any_of(flag.names(), [&](const std::string& each) { return each == name; });
  });
  return found == flags_.end() ? nullptr : &*found;
}

Flag& Command::operator[](std::string_view name) {
  if (Flag* const flag = find(name)) return *flag;
  throw std::logic_error(name_ + " has no flag " + std::string(name));
}

void Command::save_recipe() {
  const Flag& flag = (*this)["--save-config"];
  if (flag.text().empty()) return;
  errno = 0;
  std::ofstream file(flag.text());
  file << recipe_();
  if (!file.flush()) throw_write_error("--save-config: " + flag.text(), "cannot write", errno);
}

namespace {

std::string version_text(const std::string& command) {
  std::string text = command + " " + version();
  for (const auto& [name, number] : library_versions()) text += "\n  " + name + " " + number;
  return text;
}

// Opens closed standard descriptors on /dev/null: otherwise the next file opened would get one of them, and
// messages would be written into a part.
void open_standard_descriptors() {
  int fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) ::close(fd);
}

// oneTBB throws from a noexcept function if the system denies a thread, so the message is printed here.
[[noreturn]] void on_terminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    if (std::string_view(error.what()).starts_with("pthread_create has failed")) {
      std::cerr << "no more threads can be started (" << error.what()
                << "); rerun the same command with fewer --threads or more memory\n";
      ::_exit(static_cast<int>(ErrorCode::try_again));
    }
    std::cerr << error.what() << "\n";
  } catch (...) {
  }
  std::abort();
}

/// Returns the exit code after flushing stdout: a full disk behind `>` is an error, a closed pipe is not.
int check_output(const std::string& name, int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  // The reason of an earlier write is lost; another byte fails for the same one.
  if (errno == 0) static_cast<void>(!::write(STDOUT_FILENO, "\n", 1));
  if (errno == EPIPE) return code;
  const std::string reason = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  std::cerr << name << ": standard output cannot be written" << reason << "\n";
  return code != 0 ? code : static_cast<int>(ErrorCode::cannot_write);
}

/// Begins arguments in brackets: CLI11 takes "[a,b]" for a list of two.
constexpr char kLiteral = '\x1f';

std::string without_literal(std::string text) {
  std::erase(text, kLiteral);
  return text;
}

/// Writes as plain text what CLI11 2.4 and later escape, B"(caf\xc3\xa9)", because earlier ones take it
/// literally: any byte above ASCII, and kLiteral. Texts with other control characters stay escaped.
std::string with_plain_texts(std::string text) {
  constexpr std::string_view kBegin = "'B\"(", kEnd = ")\"'";
  for (std::size_t at = 0; (at = text.find(kBegin, at)) != std::string::npos; ++at) {
    const std::size_t end = text.find(kEnd, at);
    if (end == std::string::npos) break;
    std::string plain;
    for (std::size_t from = at + kBegin.size(); from < end; ++from) {
      int byte = 0;
      const char* const digits = text.data() + from + 2;
      const bool is_escape = text.compare(from, 2, "\\x") == 0 && end - from >= 4 &&
                             std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
      plain += is_escape ? static_cast<char>(byte) : text[from];
      from += is_escape ? 3 : 0;
    }
    plain = without_literal(std::move(plain));
    if (std::ranges::any_of(plain, [](unsigned char byte) { return byte < ' '; })) continue;
    const std::string quote = plain.find('"') == std::string::npos ? "\"" : "'";
    text.replace(at, end + kEnd.size() - at, quote + plain + quote);
  }
  return text;
}

/// Recipes of one command, as TOML of bounded size: a device like /dev/zero is not read forever.
class Recipe : public CLI::ConfigTOML {
 public:
  explicit Recipe(std::string command) : command_(std::move(command)) {}
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    constexpr std::size_t kMaxRecipeBytes = 128 << 10;  // the library's time grows by their square
    std::string text(kMaxRecipeBytes + 1, '\0');
    input.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(input.gcount()));
    if (text.size() > kMaxRecipeBytes)
      throw CLI::ConfigError("has more than " + std::to_string(kMaxRecipeBytes) +
                             " bytes, expected a recipe");
    const std::string first = text.substr(0, text.find_first_of("\r\n"));
    const std::string owner = first.starts_with(kOwner) ? first.substr(kOwner.size()) : command_;
    const bool is_command = owner.starts_with("pack-") && owner.find(' ') == std::string::npos;
    if (is_command && owner != command_)
      throw CLI::ConfigError("is a recipe of " + owner + ", expected one of " + command_);
    std::istringstream recipe(text);
    return CLI::ConfigTOML::from_config(recipe);
  }
  std::string to_config(const CLI::App* app, bool default_also, bool write_description,
                        std::string prefix) const override {
    return kOwner + command_ + "\n" +
           without_literal(with_plain_texts(
               CLI::ConfigTOML::to_config(app, default_also, write_description, std::move(prefix))));
  }

 private:
  inline static const std::string kOwner = "# Recipe of ";
  std::string command_;
};

/// CLI11's help without a heading for the arguments and without blank lines between the groups, so that the
/// longest one fits a screen.
class ShortHelp : public CLI::Formatter {
 public:
  ShortHelp() {
    column_width(25);
    label("TEXT", "");
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    const std::string text = Formatter::make_group(std::move(group), is_positional, std::move(options));
    return is_positional ? text.substr(text.find('\n', 1) + 1) : text;
  }

  /// What CLI11 adds where an option has no text of its own is left out: "REQUIRED", "Excludes: …".
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_option_text().empty() ? "" : std::string(" ").append(option->get_option_text());
  }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(Formatter::make_help(app, std::move(name), mode), "\n\n\n", "\n");
  }
};

/// What is none of the words is an error that lists them.
CLI::Validator one_of(const std::vector<std::string>& words) {
  return {[words](const std::string& found) -> std::string {
            if (std::ranges::find(words, found) != words.end()) return {};
            std::string expected;
            for (const std::string& word : words)
              if (!word.empty()) expected += (expected.empty() ? "" : ", ") + word;
            return "found " + (found.empty() ? "nothing" : found) + ", expected one of " + expected +
                   did_you_mean(found, words);
          },
          ""};
}

CLI::Option* make_option(CLI::App& app, const Flag& flag) {
  if (flag.name == "--version")
    return app.set_version_flag(flag.name, version_text(app.get_name()), flag.help);
  if (flag.name == "-h,--help") return app.set_help_flag(flag.name, flag.help);
  if (flag.name == "--config") return app.set_config(flag.name, "", flag.help);
  if (flag.takes == Flag::Takes::nothing) return app.add_flag(flag.name, flag.help);
  CLI::Option* const option = app.add_option(flag.name, flag.help)->type_name("TEXT");
  if (flag.takes == Flag::Takes::list) option->expected(CLI::detail::expected_max_vector_size);
  if (flag.takes == Flag::Takes::names)
    option->multi_option_policy(CLI::MultiOptionPolicy::Join)->delimiter(',');
  if (!flag.words.empty()) option->check(one_of(flag.words));
  return option->allow_extra_args(flag.is_argument() && flag.takes == Flag::Takes::list)
      ->required(flag.is_required)
      ->run_callback_for_default();  // else recipes leave out options whose default is empty
}

/// Makes CLI11's command of the rows.
void add_options(CLI::App& app, const Command& command) {
  app.footer(command.examples());
  app.formatter(std::make_shared<ShortHelp>());
  app.config_formatter(std::make_shared<Recipe>(command.name()));
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_help_flag();
  for (const Flag& flag : command.flags()) {
    CLI::Option* const option = make_option(app, flag);
    option->option_text(flag.shape)->group(flag.group)->configurable(flag.in_recipes);
    for (const std::string& other : flag.excludes) option->excludes(app.get_option(other));
  }
  const auto print = [&command](const std::string& form) {
    std::string text = flag_page(form, command);
    text.pop_back();  // the line's end is printed behind it
    throw CLI::CallForVersion(text, 0);
  };
  app.add_option_function<std::string>("--flag-page", print)
      ->check(one_of(page_forms()))
      ->group("")
      ->configurable(false);
}

CLI::Option* option_of(CLI::App& app, const Flag& flag) { return app.get_option(flag.names().front()); }

std::vector<std::string> given_of(const CLI::Option& option, const Flag& flag) {
  if (option.count() == 0) return {};
  if (flag.takes == Flag::Takes::nothing) return {option.as<bool>() ? "true" : "false"};
  std::vector<std::string> given = option.reduced_results();
  for (std::string& text : given) text = without_literal(std::move(text));
  return given;
}

/// Returns the name of the recipe for messages.
std::string recipe_name(const CLI::App& app) {
  const CLI::Option* config = app.get_config_ptr();
  return config == nullptr || config->count() == 0 ? "the recipe"
                                                   : without_literal(config->as<std::string>());
}

/// The long names of all flags, with or without their "--".
std::vector<std::string> long_names(const Command& command, bool with_dashes) {
  std::vector<std::string> names;
  for (const Flag& flag : command.flags())
    if (const std::string name = flag.names().back(); name.starts_with("--"))
      names.push_back(with_dashes ? name : name.substr(2));
  return names;
}

/// What a mistyped flag means by its value: `--size own` is no size, but one of the words of --sizes.
std::string flag_of_word(const Command& command, const std::string& flag, const std::string& value) {
  for (const Flag& each : command.flags())
    if (each.names().back().starts_with(flag) && std::ranges::find(each.words, value) != each.words.end())
      return "; did you mean \"" + each.names().back() + "\"?";
  return {};
}

/// What the first mistyped flag of `unknown` means, by its value or its name.
std::string near_flag(const Command& command, const std::vector<std::string>& unknown,
                      std::span<char* const> given) {
  for (const std::string& argument : unknown) {
    if (!argument.starts_with("--")) continue;
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::string flag = argument.substr(0, equals);
    const auto found = std::ranges::find(given, argument);
    const bool is_followed = found != given.end() && std::next(found) != given.end();
    std::string near = flag_of_word(command, flag,
                                    equals < argument.size() ? argument.substr(equals + 1)
                                    : is_followed            ? *std::next(found)
                                                             : "");
    if (near.empty()) near = did_you_mean(flag, long_names(command, true));
    if (!near.empty()) return near;
  }
  return {};
}

/// Words CLI11's errors like our own messages.
std::string parse_error_text(const CLI::App& app, const Command& command, const CLI::ParseError& error,
                             std::span<char* const> given) {
  constexpr std::string_view kUnknownKey = "INI was not able to parse ";
  std::string text = error.what();
  if (const std::size_t at = text.find(": At Most 1 required"); at != std::string::npos)
    return text.substr(0, at) + ": is given twice, expected once";
  if (text.starts_with(kUnknownKey)) {
    const std::string key = text.substr(kUnknownKey.size());
    return "unknown key \"" + key + "\" in " + recipe_name(app) +
           did_you_mean(key, long_names(command, false));
  }
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr) return recipe_name(app) + ": " + text;
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) {
    errno = EISDIR;  // a folder can be opened
    static_cast<void>(std::ifstream(recipe_name(app)).is_open());
    return recipe_name(app) + ": cannot be read: " + std::generic_category().message(errno);
  }
  constexpr std::string_view kNoValue = ": 1 required TEXT missing";
  if (text.ends_with(kNoValue)) return text.substr(0, text.size() - kNoValue.size()) + ": expected a value";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return text;
  // In the order of the command line, the mistyped flag first.
  const std::string unknown = " " + joined(app.remaining(), " ");
  std::string near = near_flag(command, app.remaining(), given);
  const auto is_path = [](const Flag& flag) { return flag.names().back() == "PATH"; };
  if (unknown.find(" -") == std::string::npos && std::ranges::any_of(command.flags(), is_path))
    near = "; PATH is one: run the command for each, or for the folder that holds them";
  return "not expected:" + unknown + near;
}

/// The arguments in the order that CLI11 takes them, the last one first. `--flag=` becomes `--flag` and an
/// empty value, which CLI11 would take for a missing one.
std::vector<std::string> reversed_arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int index = argc - 1; index > 0; --index) {
    std::string argument = argv[index];
    const bool is_empty_value = argument.starts_with("--") && argument.find('=') == argument.size() - 1;
    if (is_empty_value) {
      arguments.emplace_back();
      argument.pop_back();
    }
    if (argument.starts_with('[') && argument.ends_with(']')) argument.insert(0, 1, kLiteral);
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

/// CLI11 takes a flag for the value of the one before it: `--time -o out` would write nowhere.
void check_values(const std::deque<Flag>& flags, std::span<char* const> arguments) {
  const auto flag_named = [&](std::string_view name) {
    return std::ranges::find_if(flags, [&](const Flag& flag) {
      const std::vector<std::string> names = flag.names();
      return !flag.is_argument() && std::ranges::find(names, name) != names.end();
    });
  };
  for (std::size_t i = 1; i + 1 < arguments.size(); ++i) {
    const std::string name = arguments[i], next = arguments[i + 1];
    const auto flag = flag_named(name);
    if (flag == flags.end() || flag->takes == Flag::Takes::nothing || flag_named(next) == flags.end())
      continue;
    const std::string as_it_is = name.starts_with("--") ? "; " + name + "=" + next + " is that text" : "";
    throw Error(ErrorCode::usage, name + ": expected a value, found the flag " + next + as_it_is);
  }
}

}  // namespace

int Command::run(int argc, char** argv, const std::function<int()>& body) {
  open_standard_descriptors();
  std::set_terminate(on_terminate);
  // A limit on file sizes is an error of the write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  add_switch("--version", "Print the version and those of the libraries").in_recipes = false;
  add_switch("-h,--help", "Print this help").in_recipes = false;
  CLI::App app(about_, name_);
  add_options(app, *this);
  recipe_ = [&] {
    for (const Flag& flag : flags_) option_of(app, flag)->default_str(flag.shown);
    return app.config_to_str(/*default_also=*/true, /*write_description=*/false);
  };
  try {
    check_values(flags_, {argv, argv + argc});
    std::vector<std::string> arguments = reversed_arguments(argc, argv);
    app.parse(arguments);
    for (Flag& flag : flags_) flag.given = given_of(*option_of(app, flag), flag);
    return check_output(name_, warn_of_servers(name_, {argv, argv + argc}, body));
  } catch (const CLI::Success& asked) {
    std::ostringstream text;  // --help, --version
    const int code = app.exit(asked, text, text);
    std::fputs(text.str().c_str(), stdout);
    return check_output(name_, code);
  } catch (const CLI::ParseError& error) {
    std::cerr << name_ << ": " << printable_text(parse_error_text(app, *this, error, {argv, argv + argc}))
              << "\nTry '" << name_ << " --help'.\n";
    return static_cast<int>(ErrorCode::usage);
  } catch (const Error& error) {
    std::cerr << name_ << ": " << printable_text(flag_text(error.what())) << "\n";
    if (error.code() == ErrorCode::usage) std::cerr << "Try '" << name_ << " --help'.\n";
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    std::cerr << name_ << ": out of memory; a lower --memory-bytes or fewer --threads need less\n";
  } catch (const std::exception& error) {
    std::cerr << name_ << ": " << error.what() << "\n";
  }
  return static_cast<int>(ErrorCode::try_again);
}

}  // namespace chunkhit
