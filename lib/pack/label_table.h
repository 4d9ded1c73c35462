// Labels that the input has of its rows, by user.
#pragma once

#include <string>
#include <vector>

#include "input/id_map.h"
#include "types/row_labels.h"

namespace chunkhit {

/// Labels of users: (users, columns); no columns: there are none.
struct LabelTable {
  std::vector<std::string> columns;
  std::vector<float> values;
};

/// Puts the labels of an svmlight file's rows, whose users have the rows' numbers as ids, in a table: "label"
/// or "label-1" and so on, then "qid". Says in `notices` what cannot be put there.
[[nodiscard]] LabelTable make_label_table(const RowLabels& labels, const IdMap& users,
                                          std::vector<std::string>& notices);

}  // namespace chunkhit
