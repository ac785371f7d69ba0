#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <openelm/batch.h>

#include "cli/input_text.h"

namespace openelm::cli {

/// A record of the input of `batch`.
struct BatchRecord {
  std::uint64_t index = 0;           ///< among all records of the input, from 0
  std::size_t line = 0;              ///< of the input, from 1
  nlohmann::json id;                 ///< null where there is none
  nlohmann::json carried;            ///< fields unknown here, an object; null unless asked for
  BatchRequest request;              ///< its `number` is the index
  std::optional<std::string> error;  ///< then there is no request
};

/// How records are read.
struct BatchRecordOptions {
  bool json = true;  ///< false: a line is a prompt
  bool no_bos = false;
  bool carry = false;
  GenerationOptions generation;  ///< what a record does not say itself; `seed` is the run's
};

/// The seed of a record without one of its own: the run's seed and the index, well mixed. 53 bits,
/// which every reader of JSON can hold.
std::uint64_t record_seed(std::uint64_t run_seed, std::uint64_t index);

/// From lines to records. What is wrong with a line becomes the record's error.
class BatchRecordParser {
 public:
  /// `tokenizer` and `config` must outlive the object.
  BatchRecordParser(BatchRecordOptions options, const Tokenizer& tokenizer,
                    const ModelConfig& config, std::int32_t context);

  BatchRecord parse(std::string_view text, std::size_t line, std::uint64_t index) const;

  /// The record of a line too long to be read.
  BatchRecord too_long(std::size_t longest, std::size_t line, std::uint64_t index) const;

  /// Whether a line is a record at all: blank lines of JSONL are none.
  bool is_record(std::string_view text) const;

 private:
  void fill(std::string_view text, BatchRecord& record) const;
  std::string read_fields(const nlohmann::json& object, BatchRecord& record) const;

  BatchRecordOptions options_;
  const Tokenizer& tokenizer_;
  const ModelConfig& config_;
  std::int32_t context_;
};

/// The line of output for a record: {"id", "index", "text", "finish_reason", "stop", "usage",
/// "seed"} with "logprobs" and "input" where asked for, or {"id", "index", "error": {"line",
/// "message"}}. Without a line end.
std::string batch_output_line(const BatchRecord& record, const GenerationResult& result,
                              const Tokenizer& tokenizer);
std::string batch_error_line(const BatchRecord& record, const std::string& message);

}  // namespace openelm::cli
