#include "checkpoint/quantized_model.h"

#include <algorithm>

namespace openelm::test {
namespace {

using Shape = std::vector<std::int64_t>;

std::string made_up_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  // Below 0x70, so that any two or four of them are a finite number.
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>((i * 37 + i / 251) % 0x70);
  return bytes;
}

std::size_t bytes_of(const std::string& dtype, const Shape& shape) {
  std::size_t count = dtype.ends_with("16") ? 2 : dtype.ends_with("32") ? 4 : 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

}  // namespace

void remove_tensor(ModelFolder& model, const std::string& name) {
  std::vector<std::string> names = model.weights.names();
  std::erase(names, name);
  model.weights = model.weights.subset(names);
}

void replace_tensor(ModelFolder& model, const std::string& name, const std::string& dtype,
                    const Shape& shape) {
  remove_tensor(model, name);
  const std::size_t bytes = bytes_of(dtype, shape);
  model.weights.append(name, dtype, shape, bytes);
  model.weights.data.replace(model.weights.data.size() - bytes, bytes, made_up_bytes(bytes));
}

void quantize_matrices(ModelFolder& model, const Groups& groups) {
  for (const std::string& name : model.weights.names()) {
    const auto shape = model.weights.header[name]["shape"].get<Shape>();
    if (shape.size() != 2 || shape[1] % groups.size != 0) continue;
    const std::string module = name.substr(0, name.rfind(".weight"));
    replace_tensor(model, name, "U32", {shape[0], shape[1] * groups.bits / 32});
    for (const char* part : {".scales", ".biases"}) {
      replace_tensor(model, module + part, groups.dtype, {shape[0], shape[1] / groups.size});
    }
  }
  model.config["quantization"] = {{"group_size", groups.size}, {"bits", groups.bits}};
}

}  // namespace openelm::test
