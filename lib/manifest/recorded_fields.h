// Visitors of a table of fields: a spec → its recorded entries, and back.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/throw_error.h"
#include "manifest/manifest.h"
#include "types/fields.h"

namespace chunkhit {

/// Records fields in their order.
class FieldRecorder : public FieldVisitor<FieldRecorder> {
 public:
  /// `computed`, by flag: what is recorded in place of a field's own value; an empty text leaves it out.
  explicit FieldRecorder(std::map<std::string, std::string> computed) : computed_(std::move(computed)) {}
  template <class Value, class Form>
  void operator()(const Field& field, const Value& value, const Form& form) {
    const std::string name = dashed(field.name);
    const auto found = computed_.find(name);
    if (found == computed_.end())
      entries.push_back({name, form.text(value)});
    else if (!found->second.empty())
      entries.push_back({name, found->second});
  }
  template <class Value, class Form>
  void record_if(bool is_chosen, const Field& field, const Value& value, const Form& form) {
    if (is_chosen) (*this)(field, value, form);
  }
  template <class Value, class Form>
  void recorded_only(bool is_chosen, const Field& field, const Value& value, const Form& form) {
    if (is_chosen) (*this)(field, value, form);
  }
  template <class Value, class Form>
  void unrecorded(const Field&, const Value&, const Form&) {}

  RecordedSpec entries;

 private:
  std::map<std::string, std::string> computed_;
};

/// Sets fields from recorded entries; throws bad_data where an entry is missing or has a value that no spec
/// has.
class RecordReader : public FieldVisitor<RecordReader> {
 public:
  explicit RecordReader(const RecordedSpec& entries) : entries_(entries) {}
  template <class Value, class Form>
  void operator()(const Field& field, Value& value, const Form& form) {
    if (!has(field)) throw_bad_data("spec: " + dashed(field.name) + " is missing");
    read(field, value, form);
  }
  template <class Value, class Form>
  void record_if(bool, const Field& field, Value& value, const Form& form) {
    if (has(field)) read(field, value, form);
  }
  template <class Value, class Form>
  void recorded_only(bool, const Field& field, Value& value, const Form& form) {
    if (has(field)) read(field, value, form);
  }
  template <class Value, class Form>
  void unrecorded(const Field&, Value&, const Form&) {}

 private:
  [[nodiscard]] bool has(const Field& field) const { return entries_.has(dashed(field.name)); }
  template <class Value, class Form>
  void read(const Field& field, Value& value, const Form& form) const {
    const std::string text = entries_.get(dashed(field.name));
    try {
      form.parse(field.name, text, value);
    } catch (const Error&) {
      throw_bad_data("spec: " + dashed(field.name) + ": found '" + text + "'");
    }
  }

  const RecordedSpec& entries_;
};

}  // namespace chunkhit
