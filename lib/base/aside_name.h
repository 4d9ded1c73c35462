// Names of files that are written aside, `.NAME.HOST-PID-START-RANDOM.tmp`, and whether their writer lives.
#pragma once

#include <string>
#include <string_view>

namespace chunkhit {

/// Gives a new name in the folder of `path` under which this process writes that file.
[[nodiscard]] std::string make_aside_path(const std::string& path);

/// Gives NAME of an entry that is written aside (or was by version 0.1, as `.NAME.tmp`); empty where the
/// entry has no such name.
[[nodiscard]] std::string_view name_written_aside(std::string_view entry);

/// Names the writer of an aside file, for messages: "host node7, process 4711"; empty where its name does
/// not say.
[[nodiscard]] std::string aside_writer_text(std::string_view entry);

/// NAME of an aside file in a folder and its writer, for messages: "part-00003.h5 (host node7, process
/// 4711)";
/// ": left over" is added where the writer is gone.
[[nodiscard]] std::string begun_text(const std::string& folder, const std::string& entry);

/// What is known of the writer of an aside file.
enum class AsideWriter {
  lives,    ///< on this machine
  is_gone,  ///< its process ended, or the file is of another machine and a day old
  unknown,  ///< on another machine
};

/// Looks for the writer of a file that is written aside. A process of this machine is known by its id and
/// start time, and by the lock that PendingFile holds where processes do not see each other (containers).
[[nodiscard]] AsideWriter find_aside_writer(const std::string& folder, const std::string& entry);

}  // namespace chunkhit
