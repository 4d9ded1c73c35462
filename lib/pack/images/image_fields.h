// The fields of PackImagesSpec and PackImagesOptions: one table for the record of a pack, flags, recipes and
// Python's keywords.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chunkhit/image_spec.h"
#include "chunkhit/pack.h"
#include "pack/images/pack_spec.h"
#include "pack/run_fields.h"
#include "types/fields.h"

namespace chunkhit {

/// The container where none is given.
[[nodiscard]] inline const char* default_container(Sizes sizes) {
  return sizes == Sizes::own ? "shard" : "hdf5";
}

/// Sizes that images are resized to: "WxH", or "N" for the short side; none where they are not, or fitted.
struct ResizeForm {
  static constexpr const char* kShape = "WxH|N";
  static constexpr const char* kPythonType = "types.Side";
  [[nodiscard]] std::string text(const TransformSpec& value) const;
  void parse(const std::string& name, const std::string& text, TransformSpec& value) const;
};

/// The size that images are fitted into: "WxH", or "N" for NxN.
struct FitForm {
  static constexpr const char* kShape = "WxH|N";
  static constexpr const char* kPythonType = "types.Side";
  [[nodiscard]] std::string text(const TransformSpec& value) const;
  void parse(const std::string& name, const std::string& text, TransformSpec& value) const;
};

/// The size that is cropped: "WxH", or "N" for NxN.
struct CropForm {
  static constexpr const char* kShape = "WxH|N";
  static constexpr const char* kPythonType = "types.Side";
  [[nodiscard]] std::string text(const TransformSpec& value) const;
  void parse(const std::string& name, const std::string& text, TransformSpec& value) const;
};

/// A color: "black", "white", "#rrggbb" or "r,g,b".
struct ColorForm {
  static constexpr const char* kShape = "COLOR";
  static constexpr const char* kPythonType = "Union[str, Sequence[int]]";
  [[nodiscard]] std::string text(const std::array<std::uint8_t, 3>& value) const;
  void parse(const std::string& name, const std::string& text, std::array<std::uint8_t, 3>& value) const;
};

/// A color, or none.
struct OptionalColorForm {
  static constexpr const char* kShape = "COLOR";
  static constexpr const char* kPythonType = "Union[str, Sequence[int]]";
  using Color = std::array<std::uint8_t, 3>;
  [[nodiscard]] std::string text(const std::optional<Color>& value) const {
    return value ? ColorForm().text(*value) : "none";
  }
  void parse(const std::string& name, const std::string& text, std::optional<Color>& value) const {
    value.reset();
    if (!text.empty() && text != "none") ColorForm().parse(name, text, value.emplace());
  }
};

/// Two 16-bit values, the lower one first: "0,4095".
struct RangeForm {
  static constexpr const char* kShape = "MIN,MAX";
  static constexpr const char* kPythonType = "Sequence[int]";
  using Range = std::array<std::uint16_t, 2>;
  [[nodiscard]] std::string text(const Range& value) const;
  void parse(const std::string& name, const std::string& text, Range& value) const;
};

/// Packs and their shares, "train=0.9,val=0.1", or their values of a column, "train=1-3,5,val=0".
struct SharesForm {
  static constexpr const char* kShape = "SHARES";
  static constexpr const char* kPythonType = "Dict[str, Union[float, str]]";
  [[nodiscard]] std::string text(const std::vector<SplitShare>& value) const;
  void parse(const std::string& name, const std::string& text, std::vector<SplitShare>& value) const;
};

/// Folders of fields, each with its name: in Python also a dict of folders by name.
struct PairsForm : RepeatedForm {
  static constexpr const char* kShape = "[NAME=]FOLDER[:view]";
  static constexpr const char* kPythonType = "types.Pairs";
};

/// Columns of fields, likewise.
struct FieldColumnsForm : PairsForm {
  static constexpr const char* kShape = "[NAME=]COLUMN[:view]";
};

// What is recorded of `pair` where samples have one field, of its usual name.
inline constexpr const char* kOneMask = "folder";
inline constexpr const char* kOneView = "folder:view";

// Fields stand in the order in which they are recorded. `Spec` is const for a recorder.

template <class Spec, class Fields>
void show_pairs(Spec& spec, Fields& fields) {
  fields.record_if(!spec.pair.empty(),
                   Field{"pair", "Masks, or second images (:view): a file of each image's name; repeatable"}
                       .that_may_differ(),
                   spec.pair, PairsForm{});
  FieldRole kind = FieldRole::view;
  fields.recorded_only(spec.pair == std::vector<std::string>{kOneView}, Field{"pair_kind", ""}, kind,
                       WordForm{});
  fields(Field{"classes", "Take class ids from a list (one name per line) or a pack", "FILE|PACK"}
             .that_may_differ(),
         spec.classes, PathForm{});
  fields(Field{"follow_symlinks", "Follow links to folders and out of ROOT (DVC, git-annex, Hugging Face)"}
             .that_may_differ(),
         spec.follow_symlinks, SwitchForm{});
}

template <class Spec, class Fields>
void show_labels(Spec& spec, Fields& fields) {
  auto& columns = spec.columns;
  fields.group("Input");
  fields(
      Field{"labels", "CSV or JSON lines of files and labels, - for stdin; labels of an IDX file", "FILE.csv"}
          .that_may_differ(),
      spec.labels, PathForm{});
  fields.record_if(!spec.labels.empty(),
                   Field{"file_column", "CSV column of the file paths, below ROOT", "NAME"}.that_may_differ(),
                   columns.file_column, TextForm{});
  fields.record_if(
      !columns.mask_column.empty(),
      Field{"mask_column", "CSV column of mask paths; tars: how the name of a mask ends, seg.png"}
          .that_may_differ(),
      columns.mask_column, FieldColumnsForm{});
  fields.record_if(true,
                   Field{"label_column", "CSV column (key of a tar's .json) of the label; a,b or a-d: floats"}
                       .that_may_differ(),
                   columns.label_column, RepeatedForm{});
  fields.record_if(
      !columns.keep_columns.empty(),
      Field{"keep_columns", "More columns, or keys of a tar's .json, to store: a,b"}.that_may_differ(),
      columns.keep_columns, NamesForm{});
  fields.record_if(columns.label_type != LabelType::automatic,
                   Field{"label_type", "Kind of one label column"}, columns.label_type, WordForm{});
  fields.record_if(!columns.label_separator.empty(),
                   Field{"label_separator",
                         "Text between the names in one label; labels are 0 or 1 for each name", "TEXT"},
                   columns.label_separator, TextForm{});
  fields.record_if(
      !columns.label_separator.empty(),
      Field{"empty_labels", "label-separator: images without a label get zeros, or reject"}.that_may_differ(),
      columns.empty_labels, WordForm{});
  fields.record_if(columns.missing != MissingLabels::reject,
                   Field{"missing", "Blanks in label columns of numbers: 0, nan, or reject the row"},
                   columns.missing, WordForm{});
  fields.record_if(spec.labels.empty(),
                   Field{"include", "Without labels: pack only files whose names match these globs", "GLOBS"}
                       .that_may_differ(),
                   spec.folders.include, NamesForm{});
  show_pairs(spec, fields);
}

template <class Spec, class Fields>
void show_samples(Spec& spec, Fields& fields) {
  auto& transform = spec.transform;
  const bool is_fitted = transform.resize == Resize::fit;
  fields.group("Samples");
  fields.record_if(!is_fitted, Field{"resize", "Resize to WxH, or the short side to N"}, transform,
                   ResizeForm{});
  fields.record_if(is_fitted, Field{"fit", "Resize to fit into WxH (N: NxN), pad with pad-color"}, transform,
                   FitForm{});
  fields.record_if(is_fitted, Field{"pad_color", "Padding: black, white, #rrggbb or r,g,b"},
                   transform.pad_color, ColorForm{});
  fields.record_if(spec.mask_pad != 0,
                   Field{"mask_pad", "Padding of masks, by fit and by crops beyond the image: a class id"},
                   spec.mask_pad, CountForm{0, 255});
  fields(Field{"resample", "Filter", "NAME"}, transform.resample, WordForm{});
  fields(Field{"crop", "Center crop; N: NxN"}, transform, CropForm{});
  fields(Field{"channels", "Channels of the samples", "NAME"}, transform.channels, WordForm{});
  fields.record_if(transform.background.has_value(),
                   Field{"background", "Color behind transparent pixels; none drops alpha"},
                   transform.background, OptionalColorForm{});
}

template <class Spec, class Fields>
void show_own_sizes(Spec& spec, Fields& fields) {
  auto& own = spec.own_sizes;
  const bool is_own = spec.sizes == Sizes::own;
  fields.group("Images of their own sizes");
  fields.record_if(is_own, Field{"sizes", "fixed: one shape; own: each image its own size"}.that_may_differ(),
                   spec.sizes, WordForm{});
  fields.record_if(is_own, Field{"max_side", "Shrink images to a long side of at most N pixels"},
                   own.max_side, CountForm{0, kMaxSide});
  fields.record_if(is_own, Field{"short_side", "Shrink images to a short side of at most N pixels"},
                   own.short_side, CountForm{0, kMaxSide});
  fields.record_if(is_own, Field{"store", "jpeg as it is; pixels by photo, zstd or raw"}, own.store,
                   WordForm{});
  fields.record_if(is_own, Field{"quality", "Quality of JPEG that is encoded, 1 to 100"}, own.quality,
                   CountForm{1, 100});
  fields.record_if(
      is_own,
      Field{"jpeg_tile", "Tile width in MCUs, for decoding crops; 0: keep the bytes"}.that_may_differ(),
      own.jpeg_tile, CountForm{0, 8192});
  fields.group("Output");
  fields.record_if(is_own, Field{"chunk_bytes", "Maximum raw bytes per chunk"}.that_may_differ(),
                   spec.chunk_bytes, BytesForm{"auto"});
  fields.record_if(is_own,
                   Field{"part_samples", "Images of their own sizes per part; auto: as part-bytes holds"}
                       .that_may_differ(),
                   own.part_samples, CountForm{0, UINT64_MAX, "auto"});
}

template <class Spec, class Fields>
void show_decoding(Spec& spec, Fields& fields) {
  fields.group("Input");
  fields(Field{"exif", "EXIF orientation"}, spec.exif, WordForm{});
  fields(Field{"decode", "exact: Pillow's pixels; fast: scale large JPEG files"}, spec.transform.decode,
         WordForm{});
  fields.record_if(spec.scale_from != PackImagesSpec().scale_from,
                   Field{"scale_from", "Values of 16-bit images that become 0 and 255: 0,4095"},
                   spec.scale_from, RangeForm{});
  fields(Field{"check", "Decode whole files, or JPEG to the last row used: region"}.that_may_differ(),
         spec.check, WordForm{});
  fields(Field{"accept_warnings", "Accept images that decode with warnings (not PNG)"}, spec.accept_warnings,
         SwitchForm{});
  fields(Field{"max_decode_bytes", "Reject images that need more memory: the file, decoding and resizing"}
             .that_may_differ(),
         spec.max_decode_bytes, BytesForm{});
  fields(Field{"max_seconds_per_image", "CPU time limit for decoding; 0: none"}.that_may_differ(),
         spec.max_seconds_per_image, CountForm{0, 1'000'000});
}

template <class Spec, class Fields>
void show(Spec& spec, Fields& fields) requires std::is_same_v<std::remove_const_t<Spec>, PackImagesSpec> {
  show_labels(spec, fields);
  show_samples(spec, fields);
  show_own_sizes(spec, fields);
  show_decoding(spec, fields);
  fields.group("Output");
  fields(Field{"container", "File format: hdf5, shard; images of their own sizes: shard"}.that_may_differ(),
         spec.container, ChoiceForm{{""}, "hdf5 shard"});
  fields(Field{"layout", "Axis order of samples", "NAME"}, spec.transform.layout, WordForm{});
  fields(Field{"codec", "hdf5: none, deflate, zstd; shard: photo, zstd, none", "NAME[:N]"}.that_may_differ(),
         spec.codec, TextForm{});
  fields(Field{"chunk_samples", "Samples per chunk"}.that_may_differ(), spec.chunk_samples,
         CountForm{0, UINT64_MAX, "auto"});
  fields(Field{"part_bytes", "Maximum raw bytes per part, at least one chunk"}.that_may_differ(),
         spec.part_bytes, BytesForm{});
  fields(Field{"order", "Order of samples"}.that_may_differ(), spec.order, WordForm{});
  fields(Field{"seed", "Seed of the shuffle and the split"}.that_may_differ(), spec.seed, CountForm{});
  fields(Field{"split", "Stratified split into packs: train=0.9,val=0.1"}.that_may_differ(), spec.split,
         SharesForm{});
  fields.record_if(
      !spec.split_group.empty(),
      Field{"split_group", "split: keep images of one value of this column in one pack: patient", "NAME"}
          .that_may_differ(),
      spec.split_group, TextForm{});
  fields.record_if(
      !spec.split_column.empty(),
      Field{"split_column", "split: packs by values of this column: fold, with train=1-4,val=0", "NAME"}
          .that_may_differ(),
      spec.split_column, TextForm{});
  fields(Field{"split_folders", "One pack per named subfolder of ROOT, e.g. train,val"}.that_may_differ(),
         spec.folders.split_folders, NamesForm{});
}

template <class Options, class Fields>
void show(Options& options,
          Fields& fields) requires std::is_same_v<std::remove_const_t<Options>, PackImagesOptions> {
  show_run(options, "Output folder (with a split: one subfolder per pack)",
           "Bad images: skip them (listed in rejects.csv), or fail", "Maximum rejects, count or share",
           fields);
  fields.unrecorded(Field{"trust_inputs", "Resume without checking whether inputs changed"},
                    options.trust_inputs, SwitchForm{});
}

}  // namespace chunkhit
