// Masks: for each image of a list a class map, in the file of its name below another folder, in a file or
// member that the list names, or as a program added it. And the files of views, which are found likewise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "chunkhit/image_spec.h"
#include "listing/root_folder.h"
#include "listing/sample_list.h"
#include "transform/image_transform.h"
#include "types/image.h"

namespace chunkhit {

/// The fields of a spec and their folders, in their order; throws usage.
[[nodiscard]] std::vector<FieldPlace> pairs_of(const PackImagesSpec& spec);
/// The fields of a list's samples: those of the spec, or those that the list names or was given.
[[nodiscard]] std::vector<SampleField> fields_of(const PackImagesSpec& spec, const SampleList& list);

/// The files of a field; no folder where they are members of tars, or were given by a program.
struct PairFolder {
  SampleField field;
  std::optional<RootFolder> folder;
};

/// Opens the folders of fields; throws as RootFolder.
[[nodiscard]] std::vector<PairFolder> pair_folders(const PackImagesSpec& spec,
                                                   const std::vector<SampleField>& fields);

/// Where the files of a list lie.
struct InputFolders {
  const RootFolder& images;
  const std::vector<PairFolder>& pairs;
};

/// The mask, or view, of an image's file.
struct MaskFile {
  std::string name;  ///< below the folder, or a member; empty of a program's pixels
  SampleFile file;
  bool is_there = false;
};

/// Opens the file of a sample's field: the file or member that the list names, else the file of the image's
/// name with the first extension of a mask that is there. Throws ImageError where there is none,
/// MachineError.
[[nodiscard]] MaskFile open_pair(const RootFolder& images, const PairFolder& pair, const SampleList& list,
                                 std::size_t index);
/// The same for an image of which a list names no mask. A view is the file of the image's name, or of its
/// name with another extension.
[[nodiscard]] MaskFile open_pair(const RootFolder& images, const PairFolder& pair, std::string_view image);

/// The hash of what `open_pair` opens; 0 where it cannot be read.
[[nodiscard]] std::uint64_t pair_hash(const RootFolder& images, const PairFolder& pair,
                                      const SampleList& list, std::size_t index);

/// Throws bad_data, with what the folder holds, where no image of a list has a mask, or view, of its name.
void check_pairs(const PackImagesSpec& spec, const InputFolders& folders, const SampleList& list);

/// The stamp of an image and of its mask or view as one: another one where either changed. The image's own
/// where the other has none.
[[nodiscard]] FileStamp joined_stamp(const FileStamp& image, const FileStamp& mask);
/// The stamp of an image joined with those of its fields from number `first` on.
[[nodiscard]] FileStamp joined_stamps(FileStamp image, const InputFolders& folders, const SampleList& list,
                                      std::size_t index, std::size_t first = 0);

/// "its mask cat/1.png: ", which begins what is wrong with it.
[[nodiscard]] std::string pair_text(const PairFolder& pair, std::string_view file);

/// Reads masks; each thread has its own.
class MaskDecoder {
 public:
  explicit MaskDecoder(const PackImagesSpec& spec);
  /// The upright image that a mask is of, pixels.
  struct Size {
    std::uint32_t width;
    std::uint32_t height;
  };
  /// Writes a sample's mask, resized and cropped as the image, by nearest pixels, to `out`, of
  /// `plan(image).sample`, and returns 0; writes nothing where that takes more memory than `max_bytes`, and
  /// returns how much. Throws ImageError, and MachineError.
  [[nodiscard]] std::uint64_t make(const RootFolder& images, const PairFolder& pair, const SampleList& list,
                                   std::size_t index, const Size& image, std::uint64_t max_bytes,
                                   std::uint8_t* out);
  [[nodiscard]] TransformPlan plan(const Size& image) const;
  /// The stamp of the last mask's file.
  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }
  void release();

 private:
  void transform(const Size& image, Bytes pixels, std::uint8_t* out);

  PackImagesSpec spec_;  // of masks
  ImageTransform transform_;
  FileStamp stamp_;
  ByteBuffer file_;
  Image pixels_;
};

}  // namespace chunkhit
