// Members of a ZIP file, each read from front to back.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace chunkhit {

/// Lists the names of a ZIP file's members; throws bad_data when it is none, or has a name twice.
[[nodiscard]] std::vector<std::string> list_zip_members(const std::string& path);

/// Reads one member, undone, through a descriptor of its own, so that several can be read side by side.
class ZipMember {
 public:
  /// Finds the member; throws bad_data when the file has none of that name.
  ZipMember(const std::string& path, const std::string& name);
  ZipMember(ZipMember&&) noexcept;
  ~ZipMember();
  /// Fills the front of `out` and returns how many bytes, 0 at the end; throws bad_data when the member is
  /// broken, which a flipped byte shows only at its end.
  [[nodiscard]] std::size_t read(MutableBytes out);
  /// "FILE: MEMBER", for messages.
  [[nodiscard]] const std::string& location() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chunkhit
