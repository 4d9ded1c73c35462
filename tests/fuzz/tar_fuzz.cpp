// Any bytes as a tar of images: they end in a list whose samples lie in the tar, or in an Error.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "chunkhit/error.h"
#include "listing/sample_list.h"
#include "listing/tar_samples.h"

namespace {

using namespace chunkhit;

void require(bool holds) {
  if (!holds) std::abort();
}

InputFile file_of(Bytes bytes) {
  FileDescriptor fd(::memfd_create("fuzz.tar", MFD_CLOEXEC));
  require(fd.is_open());
  require(::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return {"fuzz.tar", std::move(fd)};
}

void check_list(const SampleList& list, std::uint64_t bytes) {
  require(list.size() > 0 && list.ranges.size() == list.size());
  require(list.row_count == list.size() + list.rejects.size());
  const bool ids = list.label_kind == LabelKind::class_id;
  require(list.class_ids.size() == (ids ? list.size() : 0));
  for (std::size_t index = 0; index < list.size(); ++index) {
    const FileRange& range = list.ranges[index];
    require(range.container == 0 && range.offset <= bytes && range.bytes <= bytes - range.offset);
    require(list.file(index).starts_with("fuzz.tar/") && !list.label_text(index).empty());
    if (ids && !list.classes.empty())
      require(static_cast<std::uint64_t>(list.class_ids[index]) < list.classes.size());
  }
}

void list_tar(const InputFile& file, const LabelColumns& columns, const std::vector<std::string>& include) {
  try {
    SampleList list;
    list.containers.push_back(make_container(file, {}));
    const TarInput input{"fuzz.tar", 0, 0, file.byte_count()};
    TarSamples samples(list, columns, include);
    samples.add(input, read_tar(list.containers[0], input, columns));
    samples.finish();
    check_list(list, file.byte_count());
  } catch (const Error& error) {
    require(error.code() == ErrorCode::bad_data);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const InputFile file = file_of({data, size});
  list_tar(file, {}, {});
  LabelColumns several;
  several.label_column = {"x", "y"};
  several.keep_columns = {"age"};
  list_tar(file, several, {"*.png", "cat/*"});
  return 0;
}
