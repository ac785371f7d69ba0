#include "model/rope_table.h"

#include <cmath>
#include <vector>

namespace openelm {

RopeTable::RopeTable(std::int32_t head_dim, double base, std::int32_t n_positions)
    : half_(head_dim / 2),
      table_(static_cast<std::size_t>(n_positions) * static_cast<std::size_t>(head_dim),
             "the RoPE table") {
  std::vector<double> frequency(static_cast<std::size_t>(half_));
  for (std::size_t j = 0; j < frequency.size(); ++j) {
    frequency[j] = 1.0 / std::pow(base, 2.0 * static_cast<double>(j) / head_dim);
  }
  float* row = table_.data();
  for (std::int32_t p = 0; p < n_positions; ++p) {
    for (std::size_t j = 0; j < frequency.size(); ++j) {
      const double angle = p * frequency[j];
      row[j] = static_cast<float>(std::cos(angle));
      row[frequency.size() + j] = static_cast<float>(std::sin(angle));
    }
    row += head_dim;
  }
}

}  // namespace openelm
