#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <openelm/config.h>

#include "base/aligned_buffer.h"

namespace openelm {

/// Keys (rotated) and values of several sequences, in pages of 16 positions.
///
/// Every layer and KV head has its own run of key pages and of value pages, so that a head's keys
/// and values lie one after the other for as long as a sequence's pages do. A key page is one tile
/// [head_dim][16 positions]; a value page is 16 rows of v_stride(head_dim) values (see kernels.h).
/// A page number means the same page in every layer and head. Type q8 keeps the scales of each
/// position's key and value apart, [page][16] for all of a head's keys and for its values.
///
/// Sequences that begin alike may share pages (fork). A shared page is not written: who is about to
/// write in one gets a copy first.
class KvCache {
 public:
  static constexpr std::int32_t kPageSize = 16;

  /// Room for `n_pages` pages in all; memory is committed as pages are written.
  KvCache(const ModelConfig& config, KvType type, std::int32_t n_pages);

  KvType type() const noexcept { return type_; }
  std::uint64_t bytes() const noexcept { return storage_.size(); }
  std::int32_t free_pages() const noexcept { return static_cast<std::int32_t>(free_.size()); }

  /// A new, empty sequence; its number stays valid until it is removed.
  std::int32_t add_sequence();
  void remove_sequence(std::int32_t sequence);

  /// A new sequence that begins with the first `length` positions of another: whole pages are
  /// shared, a last one in part is copied. Nothing, and nothing changed, when the copy finds no
  /// free page.
  std::optional<std::int32_t> fork(std::int32_t sequence, std::int32_t length);

  /// Positions the sequence has pages for, as last said by grow, shrink or fork.
  std::int32_t length(std::int32_t sequence) const noexcept {
    return sequences_[static_cast<std::size_t>(sequence)].length;
  }

  /// Gives the sequence pages of its own for positions [its length, length). False, and nothing
  /// changed, when there are not enough free pages.
  bool grow(std::int32_t sequence, std::int32_t length);

  /// Gives up the pages past the first `length` positions.
  void shrink(std::int32_t sequence, std::int32_t length);

  std::span<const std::int32_t> pages(std::int32_t sequence) const noexcept {
    return sequences_[static_cast<std::size_t>(sequence)].pages;
  }

  std::byte* keys(std::size_t layer, std::int32_t kv_head, std::int32_t page) const noexcept {
    return head(layer, kv_head) + static_cast<std::size_t>(page) * key_page_bytes_;
  }
  std::byte* values(std::size_t layer, std::int32_t kv_head, std::int32_t page) const noexcept {
    return head(layer, kv_head) + static_cast<std::size_t>(n_pages_) * key_page_bytes_ +
           static_cast<std::size_t>(page) * value_page_bytes_;
  }

  /// Scales of a page's keys and values, 16 each; type q8 only.
  float* key_scales(std::size_t layer, std::int32_t kv_head, std::int32_t page) const noexcept {
    std::byte* const behind_values =
        head(layer, kv_head) +
        static_cast<std::size_t>(n_pages_) * (key_page_bytes_ + value_page_bytes_);
    return reinterpret_cast<float*>(behind_values) + page * kPageSize;
  }
  float* value_scales(std::size_t layer, std::int32_t kv_head, std::int32_t page) const noexcept {
    return key_scales(layer, kv_head, n_pages_ + page);
  }

  /// A head's key or value in the cache's type: head_dim values and, for q8, their scale.
  struct Narrowed {
    const std::byte* values;
    float scale;
  };

  /// Stores the key and value of one head at `position` of the sequence.
  void store(std::size_t layer, std::int32_t kv_head, std::int32_t sequence, std::int32_t position,
             const Narrowed& key, const Narrowed& value) const noexcept;

 private:
  struct Sequence {
    std::vector<std::int32_t> pages;  // their numbers, in order of position
    std::int32_t length = 0;
  };

  std::int32_t take_page();
  void drop_last_page(Sequence& sequence);
  void copy_page(std::int32_t from, std::int32_t to) noexcept;
  std::byte* head(std::size_t layer, std::int32_t kv_head) const noexcept {
    return storage_.data() + (first_head_[layer] + static_cast<std::size_t>(kv_head)) * head_bytes_;
  }

  KvType type_;
  std::int32_t head_dim_;
  std::int32_t n_pages_;
  std::size_t key_page_bytes_;
  std::size_t value_page_bytes_;
  std::size_t head_bytes_;               // all pages of one layer's KV head
  std::vector<std::size_t> first_head_;  // per layer: KV heads of the layers before it
  std::size_t n_heads_ = 0;              // KV heads of all layers
  AlignedBuffer storage_;
  std::vector<std::int32_t> free_;    // page numbers, the next one to give last
  std::vector<std::int32_t> owners_;  // of each page: sequences that hold it
  std::vector<Sequence> sequences_;
  std::vector<std::int32_t> free_sequences_;
};

/// Pages that `positions` of a sequence take.
constexpr std::int32_t kv_pages(std::int64_t positions) noexcept {
  return static_cast<std::int32_t>((positions + KvCache::kPageSize - 1) / KvCache::kPageSize);
}

/// Bytes of keys and values for `n_positions` positions.
std::uint64_t kv_bytes(const ModelConfig& config, KvType type, std::int32_t n_positions);

}  // namespace openelm
