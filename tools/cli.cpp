#include "cli.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <istream>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/words.h"
#include "chunkhit/error.h"
#include "chunkhit/version.h"
#include "flag_pages.h"

namespace chunkhit {
namespace {

/// TOML of bounded size, so that a device like /dev/zero is not read forever.
class BoundedToml : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    constexpr std::size_t kMaxRecipeBytes = 128 << 10;  // the library's time grows by their square
    std::string text(kMaxRecipeBytes + 1, '\0');
    input.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(input.gcount()));
    if (text.size() > kMaxRecipeBytes)
      throw CLI::ConfigError("has more than " + std::to_string(kMaxRecipeBytes) +
                             " bytes, expected a recipe");
    std::istringstream recipe(text);
    return CLI::ConfigTOML::from_config(recipe);
  }
};

}  // namespace

void add_progress_flag(FlagGroup& group, std::string& progress) {
  group.add("--progress", "WORD", progress, "Progress output: auto, json, none (auto)")
      ->check(one_of({"auto", "json", "none"}));
}

void add_config_flags(CLI::App& app, FlagGroup& group, std::string& save_config) {
  app.set_config("--config", "", "Read options from a TOML file, as --save-config writes it")
      ->option_text("FILE")
      ->group(group.name());
  group.add("--save-config", "FILE", save_config, "Write all options, defaults included, to a TOML file")
      ->configurable(false);
  app.config_formatter(std::make_shared<BoundedToml>());
  app.allow_config_extras(CLI::config_extras_mode::error);
}

void add_dataset_flags(CLI::App& app, std::string& images, std::optional<std::string>& labels,
                       const std::string& group) {
  app.add_option("--images", images, "Image dataset of an external HDF5 file (images)")
      ->option_text("NAME")
      ->group(group);
  // CLI11 takes an empty text for an optional that is not set; here it is "no labels".
  const auto set_labels = [&labels](const std::string& name) { labels = name; };
  app.add_option_function<std::string>(
         "--labels", set_labels, "Label dataset of that file; empty: no labels (labels next to the images)")
      ->option_text("NAME")
      ->group(group);
}

void save_config(const CLI::App& app, const std::string& path) {
  errno = 0;
  std::ofstream file(path);
  file << app.config_to_str(/*default_also=*/true, /*write_description=*/false);
  if (!file.flush()) throw_write_error("--save-config: " + path, "cannot write", errno);
}

namespace {

/// True when all of `text` is one number of the kind of `value`.
template <class Number>
bool read_number(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

std::string plan_folder(std::string path) {
  const std::string name = "plan.json";
  if (path == name) return ".";
  if (path.ends_with("/" + name)) path.resize(path.size() - name.size());
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::vector<std::uint64_t> parse_tasks(const std::string& flag, const std::string& text) {
  constexpr std::uint64_t kMaxTasks = 1'000'000;
  std::vector<std::uint64_t> tasks;
  std::istringstream entries(text);
  std::string entry;
  if (text.empty() || text.ends_with(',')) refuse_text(flag, "tasks as 3,17,40-42", text);
  while (std::getline(entries, entry, ',')) {
    const std::size_t dash = entry.find('-');
    std::uint64_t first = 0;
    const bool is_first = read_number(entry.substr(0, dash), first) && first <= UINT32_MAX;
    std::uint64_t last = first;
    const bool is_last =
        dash == std::string::npos || (read_number(entry.substr(dash + 1), last) && last <= UINT32_MAX);
    if (!is_first || !is_last || last < first) refuse_text(flag, "tasks as 3,17,40-42", text);
    if (last - first >= kMaxTasks - tasks.size()) refuse_text(flag, "at most a million tasks", text);
    for (std::uint64_t task = first; task <= last; ++task) tasks.push_back(task);
  }
  return tasks;
}

std::atomic<bool> stop_requested{false};

namespace {

std::atomic<int> seen_signal{0};

/// The first signal asks for an orderly stop, the second one exits at once. Only async-signal-safe calls.
extern "C" void on_signal(int signal) {
  if (seen_signal.exchange(signal) != 0) ::_exit(128 + signal);
  stop_requested = true;
  constexpr char kMessage[] = "\nstopping after what is in hand; once more to stop at once\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage, sizeof kMessage - 1));
}

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

/// Returns the name of the recipe for messages.
std::string recipe_name(const CLI::App& app) {
  const CLI::Option* config = app.get_config_ptr();
  return config == nullptr || config->count() == 0 ? "the recipe" : config->as<std::string>();
}

/// The long names of all flags, with or without their "--".
std::vector<std::string> names_of_flags(const CLI::App& app, bool with_dashes) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back((with_dashes ? "--" : "") + name);
  return names;
}

std::string unknown_key_text(const CLI::App& app, const std::string& key) {
  return "unknown key \"" + key + "\" in " + recipe_name(app) + did_you_mean(key, names_of_flags(app, false));
}

/// Words CLI11's errors like our own messages.
std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error) {
  constexpr std::string_view kUnknownKey = "INI was not able to parse ";
  std::string text = error.what();
  if (text.starts_with(kUnknownKey)) return unknown_key_text(app, text.substr(kUnknownKey.size()));
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr) return recipe_name(app) + ": " + text;
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) return recipe_name(app) + " cannot be read";
  constexpr std::string_view kNoValue = ": 1 required TEXT missing";
  if (text.ends_with(kNoValue)) return text.substr(0, text.size() - kNoValue.size()) + ": expected a value";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return text;
  // In the order of the command line, the mistyped flag first.
  std::string unknown, near;
  for (const std::string& argument : app.remaining()) {
    unknown += " " + argument;
    const std::string flag = argument.substr(0, argument.find('='));
    if (near.empty() && flag.starts_with("--")) near = did_you_mean(flag, names_of_flags(app, true));
  }
  return "not expected:" + unknown + near;
}

/// CLI11's help without a heading for the arguments and without blank lines between the groups, so that the
/// longest one fits a screen.
class ShortHelp : public CLI::Formatter {
 public:
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
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

}  // namespace

std::string flag_text(const std::string& message) {
  std::string text;
  std::size_t at = 0;
  for (std::size_t open = 0; (open = message.find('`', at)) != std::string::npos;) {
    const std::size_t close = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", open + 1);
    const bool is_field = close != std::string::npos && close > open + 1 && message[close] == '`';
    text.append(message, at, (is_field ? open : open + 1) - at);
    at = is_field ? close + 1 : open + 1;
    if (!is_field) continue;
    std::string field = message.substr(open + 1, close - open - 1);
    if (field == "root")
      field = "ROOT";
    else if (field == "inputs")
      field = "INPUT";
    else
      field = "--" + field;
    std::ranges::replace(field, '_', '-');
    text += field;
  }
  return text.append(message, at);
}

std::string shell_word(const std::string& path) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+=:,@").find(c) != std::string_view::npos;
  };
  if (!path.empty() && std::ranges::all_of(path, is_plain)) return path;
  std::string word = "'";
  for (const char c : path) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

int run_command(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  open_standard_descriptors();
  std::set_terminate(on_terminate);
  // A limit on file sizes is an error of the write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  const std::string name = app.get_name();
  try {
    std::vector<std::string> arguments = reversed_arguments(argc, argv);
    app.parse(arguments);
    return check_output(name, warn_of_servers(name, {argv, argv + argc}, body));
  } catch (const CLI::Success& asked) {
    std::ostringstream text;  // --help, --version
    const int code = app.exit(asked, text, text);
    std::fputs(text.str().c_str(), stdout);
    return check_output(name, code);
  } catch (const CLI::ParseError& error) {
    std::cerr << name << ": " << printable_text(parse_error_text(app, error)) << "\nTry '" << name
              << " --help'.\n";
    return static_cast<int>(ErrorCode::usage);
  } catch (const Error& error) {
    std::cerr << name << ": " << printable_text(flag_text(error.what())) << "\n";
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    std::cerr << name << ": out of memory; a lower --memory-bytes or fewer --threads need less\n";
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << "\n";
  }
  return static_cast<int>(ErrorCode::try_again);
}

void add_common_flags(CLI::App& app, const std::string& group) {
  app.set_version_flag("--version", version_text(app.get_name()),
                       "Print the version and those of the libraries")
      ->group(group);
  app.set_help_flag("-h,--help", "Print this help")->group(group);
  add_flag_page(app);
  app.formatter(std::make_shared<ShortHelp>());
  app.get_formatter()->column_width(25);
  app.get_formatter()->label("TEXT", "");
}

std::string value_text(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

void handle_signals() {
  // A run continues when the reader of its progress exits.
  std::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // nohup
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

int signal_exit_code() { return seen_signal == 0 ? 0 : 128 + seen_signal; }

int exit_code(bool interrupted) {
  if (!interrupted) return 0;
  return signal_exit_code() != 0 ? signal_exit_code() : static_cast<int>(ErrorCode::try_again);
}

/// Quotes arguments for a shell, so that the recorded command can be pasted.
std::string command_line(int argc, char** argv) {
  std::string line;
  for (int index = 0; index < argc; ++index) {
    const std::string argument = argv[index];
    const bool plain = argument.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,%+-@") ==
                           std::string::npos &&
                       !argument.empty();
    line += index == 0 ? "" : " ";
    if (plain) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace chunkhit
