#include "runtime/quantize_folder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <span>
#include <system_error>

#include <openelm/error.h>

#include "base/mapped_file.h"
#include "base/staged_folder.h"
#include "checkpoint/quantization_config.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/tensor_source.h"
#include "model/quantize_plan.h"
#include "model/row_major.h"
#include "quant/quantize.h"
#include "quant/quantized_format.h"

namespace openelm {
namespace {

namespace fs = std::filesystem;

// Weights that a worker takes at a time, and how many such blocks each has between two looks at the
// progress and at the wish to stop.
constexpr std::int64_t kBlockWeights = std::int64_t{1} << 18;
constexpr std::int64_t kBlocksPerRound = 8;

/// Files that go with the weights, copied where they are there.
constexpr std::array kCompanions = {
    "tokenizer.model",   "tokenizer.json",      "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja", "generation_config.json"};

/// "layers.3.ffn.proj_1.weight" -> "layers.3.ffn.proj_1"
std::string module_of(const std::string& weight) { return weight.substr(0, weight.rfind('.')); }

/// A tensor of the source, the format it gets, and where it goes: `item` in the new file, followed
/// by scales and biases if it is quantised.
struct Job {
  const TensorView* tensor;
  WeightFormat target;
  std::size_t item;

  std::int64_t rows() const { return tensor->shape[0]; }
  std::int64_t row_weights() const { return tensor->shape.size() == 2 ? tensor->shape[1] : 1; }
  std::int64_t weights() const { return rows() * row_weights(); }
};

/// What is written, in which order, and what the configuration says of it.
struct Plan {
  std::vector<Job> jobs;
  std::vector<SafetensorsItem> items;
  QuantizationConfig quantization;
  std::int64_t weights = 0;
};

Plan plan_file(const Checkpoint& checkpoint, const QuantizeOptions& options,
               QuantizedFolder& summary) {
  Plan plan;
  plan.quantization = QuantizationConfig({.bits = options.bits, .group_size = options.group_size});
  for (const auto& [name, tensor] : checkpoint.tensors.all()) {
    const Job job{&tensor, planned_format(options, name, tensor), plan.items.size()};
    const bool matrix = tensor.shape.size() == 2;
    const std::size_t first_item = plan.items.size();
    summary.bytes_in += tensor.bytes();
    if (job.target.affine()) {
      const std::int64_t bits = job.target.bits;
      const std::int64_t words = job.row_weights() * bits / 32;
      const std::int64_t groups = job.row_weights() / job.target.group_size;
      const std::string module = module_of(tensor.name);
      const auto numbers =
          static_cast<std::uint64_t>(job.rows() * groups) * size_of(job.target.type);
      plan.items.push_back({tensor.name,
                            "U32",
                            {job.rows(), words},
                            static_cast<std::uint64_t>(job.rows() * words) * 4});
      for (const char* part : {".scales", ".biases"}) {
        plan.items.push_back(
            {module + part, dtype_of(job.target.type), {job.rows(), groups}, numbers});
      }
      plan.quantization.set(module, AffineGroups{job.target.bits, job.target.group_size});
      ++summary.quantized;
    } else {
      plan.items.push_back(
          {tensor.name, dtype_of(tensor.format.type), tensor.shape, tensor.bytes()});
      if (matrix) plan.quantization.set(module_of(tensor.name), std::nullopt);
      summary.kept.push_back(tensor.name);
    }
    if (matrix) {
      QuantizedPart& part = is_vocabulary(name) ? summary.head : summary.body;
      part.weights += job.weights();
      for (std::size_t i = first_item; i < plan.items.size(); ++i) {
        part.bytes += plan.items[i].bytes;
      }
    }
    plan.weights += job.weights();
    plan.jobs.push_back(job);
  }
  return plan;
}

/// One worker's memory for a block of rows, and what went wrong there.
struct Block {
  AffineBuffers buffers;
  std::optional<std::int64_t> fault;  // a row that cannot be quantised
  int error = 0;                      // of the system
};

/// Writes rows of a plain tensor as they are.
void copy_rows(const Job& job, Range rows, const SafetensorsWriter& file, Block& block) noexcept {
  const auto row_bytes =
      static_cast<std::size_t>(job.row_weights()) * size_of(job.tensor->format.type);
  const std::size_t offset = static_cast<std::size_t>(rows.begin) * row_bytes;
  block.error = file.write(
      job.item, offset,
      job.tensor->data.subspan(offset, static_cast<std::size_t>(rows.size()) * row_bytes));
}

void quantize_block(const Job& job, Range rows, const SafetensorsWriter& file,
                    Block& block) noexcept {
  block.fault = quantize_rows(row_major(*job.tensor), rows, job.target, block.buffers.rows());
  std::size_t item = job.item;
  for (const auto* part : {&block.buffers.data, &block.buffers.scales, &block.buffers.biases}) {
    if (block.fault || block.error != 0) return;
    // The buffers are as long as a full block; the last one has fewer rows.
    const std::size_t row_bytes =
        part == &block.buffers.data
            ? static_cast<std::size_t>(job.row_weights() * job.target.bits / 8)
            : static_cast<std::size_t>(job.row_weights() / job.target.group_size) *
                  size_of(job.target.type);
    block.error =
        file.write(item++, static_cast<std::uint64_t>(rows.begin) * row_bytes,
                   std::span(*part).first(static_cast<std::size_t>(rows.size()) * row_bytes));
  }
}

class FolderWriter {
 public:
  FolderWriter(const Checkpoint& checkpoint, const Plan& plan, const SafetensorsWriter& file,
               const QuantizeFolderOptions& options, ThreadPool& pool)
      : checkpoint_(checkpoint),
        plan_(plan),
        file_(file),
        options_(options),
        pool_(pool),
        blocks_(static_cast<std::size_t>(pool.size())) {}

  /// Returns false if it was cancelled.
  bool write() {
    for (const Job& job : plan_.jobs) {
      if (!write_tensor(job)) return false;
    }
    return true;
  }

 private:
  bool write_tensor(const Job& job) {
    const std::int64_t block_rows = std::max<std::int64_t>(1, kBlockWeights / job.row_weights());
    const std::int64_t round_rows = block_rows * kBlocksPerRound * pool_.size();
    if (job.target.affine()) {
      const auto n_weights =
          static_cast<std::size_t>(std::min(block_rows, job.rows()) * job.row_weights());
      for (Block& block : blocks_) block.buffers.resize(job.target, n_weights);
    }
    for (std::int64_t begin = 0; begin < job.rows(); begin += round_rows) {
      if (options_.cancel != nullptr && options_.cancel->load()) return false;
      const Range round{begin, std::min(begin + round_rows, job.rows())};
      pool_.run([&](const Worker& worker) noexcept {
        work(job, round, block_rows, worker, blocks_[static_cast<std::size_t>(worker.index())]);
      });
      check(job);
      release(job, round);
      done_ += round.size() * job.row_weights();
      if (options_.progress) {
        options_.progress(static_cast<std::uint64_t>(done_),
                          static_cast<std::uint64_t>(plan_.weights));
      }
    }
    return true;
  }

  void work(const Job& job, Range round, std::int64_t block_rows, const Worker& worker,
            Block& block) const noexcept {
    const Range share = worker.share(round.size());
    const std::int64_t end = round.begin + share.end;
    for (std::int64_t row = round.begin + share.begin; row < end; row += block_rows) {
      const Range rows{row, std::min(row + block_rows, end)};
      if (job.target.affine()) {
        quantize_block(job, rows, file_, block);
      } else {
        copy_rows(job, rows, file_, block);
      }
      if (block.fault || block.error != 0) return;
    }
  }

  /// Gives the pages of rows that have been read back, so that memory holds a few blocks at a time.
  void release(const Job& job, Range rows) const {
    TensorView done = *job.tensor;
    const std::size_t row_bytes = done.data.size() / static_cast<std::size_t>(job.rows());
    done.data = done.data.subspan(static_cast<std::size_t>(rows.begin) * row_bytes,
                                  static_cast<std::size_t>(rows.size()) * row_bytes);
    checkpoint_.tensors.release(done);
  }

  void check(const Job& job) const {
    for (const Block& block : blocks_) {
      if (block.error != 0) file_.fail(block.error);
      if (block.fault) fail_unquantizable(*job.tensor, *block.fault);
    }
  }

  const Checkpoint& checkpoint_;
  const Plan& plan_;
  const SafetensorsWriter& file_;
  const QuantizeFolderOptions& options_;
  ThreadPool& pool_;
  std::vector<Block> blocks_;
  std::int64_t done_ = 0;
};

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) throw Error(path.string() + ": cannot write");
}

void copy_companions(const fs::path& in, const fs::path& out) {
  for (const char* name : kCompanions) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(in / name, error))) continue;
    if (!fs::copy_file(in / name, out / name, error)) {
      throw Error((in / name).string() + ": cannot copy to " + out.string() + ": " +
                  error.message());
    }
  }
}

/// The destination without links, so that its parent is where the new folder must be made.
fs::path resolve(const fs::path& out) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(out, error);
  if (error) throw Error(out.string() + ": " + error.message());
  path = fs::absolute(path).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

/// Whether `path` is `folder` or lies in it; both without links.
bool lies_in(const fs::path& path, const fs::path& folder) {
  return std::ranges::mismatch(path, folder).in2 == folder.end();
}

void check_destination(const fs::path& in, const fs::path& out, bool replace) {
  if (lies_in(resolve(in), out)) {
    throw UsageError(out.string() + ": is or holds the model that is read, name another folder");
  }
  if (!fs::is_directory(out.parent_path())) {
    throw Error(out.parent_path().string() + ": no such folder, it was to hold " +
                out.filename().string());
  }
  std::error_code error;
  if (!fs::exists(fs::symlink_status(out, error))) return;
  if (!fs::is_directory(out)) throw Error(out.string() + ": is a file, expected a new folder");
  if (fs::is_empty(out)) return;
  if (!fs::exists(out / "config.json")) {
    throw Error(out.string() + ": holds other things than a model and is left alone");
  }
  if (!replace) throw Error(out.string() + ": exists already, --force replaces it");
}

}  // namespace

std::optional<QuantizedFolder> quantize_folder(const fs::path& in, const fs::path& out,
                                               const QuantizeFolderOptions& options,
                                               ThreadPool& pool) {
  check_quantize_options(options.quantize);
  const Checkpoint checkpoint = open_checkpoint(in);
  require_plain(checkpoint.tensors);
  const fs::path destination = resolve(out);
  check_destination(in, destination, options.replace);

  QuantizedFolder summary;
  summary.warnings = checkpoint.warnings;
  summary.note = describe_kept(options.quantize, checkpoint.tensors);
  const Plan plan = plan_file(checkpoint, options.quantize, summary);
  if (summary.quantized == 0) {
    throw Error(in.string() + ": nothing to quantise: " + summary.note.value_or("no matrices"));
  }
  StagedFolder staged(destination);
  {
    const SafetensorsWriter file(staged.path() / "model.safetensors", plan.items);
    summary.bytes_out = file.bytes();
    if (!FolderWriter(checkpoint, plan, file, options, pool).write()) return std::nullopt;
  }
  write_text(staged.path() / "config.json", plan.quantization.add_to(in / "config.json"));
  copy_companions(in, staged.path());
  open_checkpoint(staged.path());  // what cannot be read again is worth nothing
  staged.sync();
  if (options.cancel != nullptr && options.cancel->load()) return std::nullopt;
  staged.commit();
  return summary;
}

}  // namespace openelm
