// One column of labels: what its texts are decides whether they are class ids, class names or numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "input/label_text.h"
#include "input/sample_list.h"
#include "input/text_pool.h"

namespace chunkhit {

/// Gathers the labels of samples, four bytes each beside their different texts, until all are known.
class LabelColumn {
 public:
  /// Takes the label of the next sample, unless it can never be one (missing, not finite, not UTF-8); gives
  /// its form.
  [[nodiscard]] LabelForm add(std::string_view text);
  /// Decides the column's kind, gives each sample of the list its label, and rejects the samples whose label
  /// breaks the rule of the others. Where fewer than 1 % are no integers, the labels are integers; else,
  /// where fewer than 1 % are no numbers, floats; else, and where `are_names`, names. Throws bad_data, with
  /// the first row, where at least 90 % (and ten) are numbers and more than these few are not.
  void finish(SampleList& list, bool are_names = false);
  [[nodiscard]] std::size_t capacity_bytes() const;

 private:
  [[nodiscard]] std::uint64_t count(LabelForm form) const {
    return form_counts_[static_cast<std::size_t>(form)];
  }
  void finish_integers(SampleList& list);
  void finish_numbers(SampleList& list);
  void finish_names(SampleList& list);
  [[noreturn]] void fail_name(const SampleList& list) const;
  void notice_spellings(SampleList& list, const std::vector<std::int64_t>& ids) const;
  void reject_form(SampleList& list, LabelForm form, const std::string& reason);
  [[nodiscard]] std::string example(LabelForm form) const;
  /// The index of the first sample whose label has this form, which there must be.
  [[nodiscard]] std::size_t first_of(LabelForm form) const;

  TextPool texts_;
  std::vector<LabelForm> forms_;       // by text
  std::vector<std::uint32_t> labels_;  // by sample: the number of its text
  std::array<std::uint64_t, kLabelFormCount> form_counts_{};
};

}  // namespace chunkhit
