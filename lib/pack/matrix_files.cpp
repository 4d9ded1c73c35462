#include "pack/matrix_files.h"

#include <utility>

#include "chunkhit/error.h"
#include "decode/matrix_market.h"
#include "decode/npz.h"
#include "decode/svmlight.h"
#include "pack/hdf5_ratings.h"

namespace chunkhit {
namespace {

std::string place_of_layer(const std::string& layer) {
  if (layer.empty() || layer == "X" || layer.find('/') != std::string::npos) return layer;
  return layer == "raw" ? "raw/X" : "layers/" + layer;
}

std::unique_ptr<RatingReader> open_one(RatingFormat format, const std::string& path,
                                       const MatrixFileSpec& spec, std::unique_ptr<TextStream> opened) {
  if (format == RatingFormat::matrix_market)
    return std::make_unique<MatrixMarketReader>(
        path, MatrixMarketSpec{.transpose = spec.transpose, .rounds_values = spec.rounds_values},
        std::move(opened));
  if (format == RatingFormat::npz) return std::make_unique<NpzReader>(path, spec.transpose);
  return std::make_unique<Hdf5RatingReader>(path, Hdf5RatingsSpec{.transpose = spec.transpose,
                                                                  .place = place_of_layer(spec.layer),
                                                                  .memory_bytes = spec.memory_bytes});
}

void check_options(RatingFormat format, const MatrixFileSpec& spec) {
  const std::string name(kRatingFormatNames[static_cast<std::size_t>(format)]);
  if (!is_matrix_format(format)) throw Error(ErrorCode::usage, "--format " + name + ": is no matrix");
  if (spec.index_base && format != RatingFormat::svmlight)
    throw Error(ErrorCode::usage, "--index-base: has no meaning for " + name + ", only for svmlight");
  if (!spec.layer.empty() && format != RatingFormat::hdf5)
    throw Error(ErrorCode::usage, "--layer: has no meaning for " + name + ", only for hdf5");
  if (spec.transpose == Transpose::yes && format == RatingFormat::svmlight)
    throw Error(ErrorCode::usage, "--transpose: rows of svmlight have labels and stay rows");
}

}  // namespace

bool is_matrix_format(RatingFormat format) { return format >= RatingFormat::matrix_market; }

std::vector<std::unique_ptr<RatingReader>> open_matrix_files(RatingFormat format,
                                                             const std::vector<std::string>& paths,
                                                             const MatrixFileSpec& spec,
                                                             std::unique_ptr<TextStream> opened) {
  check_options(format, spec);
  std::vector<std::unique_ptr<RatingReader>> readers;
  if (format == RatingFormat::svmlight) {
    readers.push_back(std::make_unique<SvmlightReader>(
        paths, SvmlightSpec{spec.index_base, spec.rounds_values}, std::move(opened)));
    return readers;
  }
  for (const std::string& path : paths)
    readers.push_back(open_one(format, path, spec, path == "-" ? std::move(opened) : nullptr));
  return readers;
}

}  // namespace chunkhit
