#include "base/file_error.h"

#include "base/file.h"

namespace chunkhit {

std::string FileError::reason() const {
  switch (kind) {
    case Kind::none:
      return "";
    case Kind::no_name:
      return "no file name";
    case Kind::nul_in_name:
      return "a NUL in the file name";
    case Kind::missing:
      return "no such file";
    case Kind::below_no_folder:
      return "no such file: a part of its path is not a folder";
    case Kind::outside:
      return "leads out of the root folder (by .., an absolute path or a symbolic link)";
    case Kind::circular:
      return "symbolic links that go round in circles or lead through /proc";
    case Kind::denied:
      return "may not be read: permission denied";
    case Kind::folder:
      return "is a folder";
    case Kind::not_regular:
      return "not a regular file";
    case Kind::empty:
      return "is empty";
    case Kind::changed:
      return "changed while it was read";
    case Kind::other:
      return std::string("cannot be opened: ") + error_text(error_number);
  }
  return "";
}

}  // namespace chunkhit
