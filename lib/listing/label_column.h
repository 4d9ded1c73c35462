// One column of labels, and a pool of its texts: what they are decides whether labels are class ids, class
// names or numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "listing/sample_list.h"

namespace chunkhit {

/// Numbers different texts from 0 in the order in which they come: about 12 bytes a text beside its own.
class TextPool {
 public:
  /// Gives the number of a text, a new one where it was not there. Throws bad_data beyond 2^32 - 1 texts.
  [[nodiscard]] std::uint32_t add(std::string_view text);
  /// Whether a text was added.
  [[nodiscard]] bool contains(std::string_view text) const {
    return !slots_.empty() && slots_[slot_of(text)] != 0;
  }
  [[nodiscard]] std::string_view operator[](std::uint32_t index) const { return list_[index]; }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(list_.size()); }
  [[nodiscard]] std::size_t capacity_bytes() const {
    return list_.capacity_bytes() + slots_.capacity() * sizeof slots_[0];
  }

 private:
  [[nodiscard]] std::size_t slot_of(std::string_view text) const;
  void grow();

  TextList list_;
  std::vector<std::uint32_t> slots_;  // open addressing, at most 3/4 full; number + 1, 0 where free
};

/// What stands between several names in one text.
inline constexpr std::array kJoints{'|', ';', ',', ' '};

/// Counts labels that are whole numbers in the input and others as 32-bit floats, from 2^24 on.
class RoundedNumbers {
 public:
  /// Compares a label's text with the value that is packed.
  void check(std::string_view text, float value);
  /// Adds a notice with the first one, where there are any.
  void add_notice(SampleList& list) const;

 private:
  std::uint64_t count_ = 0;
  std::string first_;
  float first_value_ = 0;
};

/// Gathers the labels of samples, four bytes each beside their different texts, until all are known.
class LabelColumn {
 public:
  /// Takes the label of the next sample, unless it can never be one (missing, not finite, not UTF-8); gives
  /// its form.
  [[nodiscard]] LabelForm add(std::string_view text);
  /// Decides the column's kind, gives each sample of the list its label, and rejects the samples whose label
  /// breaks the rule of the others. Where fewer than 1 % are no integers, the labels are integers; else,
  /// where fewer than 1 % are no numbers, floats; else, and where `are_names`, names. Throws bad_data, with
  /// the first row, where at least 90 % (and ten) are numbers and more than these few are not. Where `type`
  /// is classes and none is a name, what is no whole number is a reject however many there are.
  void finish(SampleList& list, bool are_names = false, LabelType type = LabelType::automatic);
  [[nodiscard]] std::size_t capacity_bytes() const;

 private:
  [[nodiscard]] std::uint64_t count(LabelForm form) const {
    return form_counts_[static_cast<std::size_t>(form)];
  }
  void finish_integers(SampleList& list, LabelType type);
  void finish_numbers(SampleList& list);
  void take_whole_numbers();
  void notice_fractions(SampleList& list) const;
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
