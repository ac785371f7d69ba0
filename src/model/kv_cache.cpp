#include "model/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "kernels/kernels.h"

namespace openelm {
namespace {

/// Writes value i of a key to lane `lane` of row i of its tile.
template <typename T>
void scatter(const std::byte* values, std::int32_t n, std::int32_t lane, std::byte* tile) noexcept {
  for (std::int32_t i = 0; i < n; ++i) {
    std::memcpy(tile + static_cast<std::size_t>(i * KvCache::kPageSize + lane) * sizeof(T),
                values + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  }
}

/// Scales of a page's keys or of its values.
std::size_t scale_page_bytes(KvType type) {
  return type == KvType::q8 ? KvCache::kPageSize * sizeof(float) : 0;
}

}  // namespace

static_assert(KvCache::kPageSize == kernels::kKvTile);

KvCache::KvCache(const ModelConfig& config, KvType type, std::int32_t n_pages)
    : type_(type),
      head_dim_(config.head_dim),
      n_pages_(n_pages),
      key_page_bytes_(static_cast<std::size_t>(config.head_dim * kPageSize) * size_of(type)),
      value_page_bytes_(static_cast<std::size_t>(kernels::v_stride(config.head_dim) * kPageSize) *
                        size_of(type)),
      head_bytes_(static_cast<std::size_t>(n_pages) *
                  (key_page_bytes_ + value_page_bytes_ + 2 * scale_page_bytes(type))) {
  for (const LayerConfig& layer : config.layers) {
    first_head_.push_back(n_heads_);
    n_heads_ += static_cast<std::size_t>(layer.n_kv_heads);
  }
  storage_ = AlignedBuffer(n_heads_ * head_bytes_, "the KV cache");
  free_.reserve(static_cast<std::size_t>(n_pages));
  for (std::int32_t page = n_pages; page-- > 0;) free_.push_back(page);
  owners_.resize(free_.size(), 0);
}

std::int32_t KvCache::add_sequence() {
  if (!free_sequences_.empty()) {
    const std::int32_t sequence = free_sequences_.back();
    free_sequences_.pop_back();
    return sequence;
  }
  sequences_.emplace_back();
  return static_cast<std::int32_t>(sequences_.size()) - 1;
}

void KvCache::remove_sequence(std::int32_t sequence) {
  shrink(sequence, 0);
  free_sequences_.push_back(sequence);
}

std::int32_t KvCache::take_page() {
  const std::int32_t page = free_.back();
  free_.pop_back();
  owners_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void KvCache::drop_last_page(Sequence& sequence) {
  const std::int32_t page = sequence.pages.back();
  sequence.pages.pop_back();
  if (--owners_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
}

void KvCache::copy_page(std::int32_t from, std::int32_t to) noexcept {
  for (std::size_t layer = 0; layer < first_head_.size(); ++layer) {
    const std::size_t end = layer + 1 < first_head_.size() ? first_head_[layer + 1] : n_heads_;
    const auto n_kv_heads = static_cast<std::int32_t>(end - first_head_[layer]);
    for (std::int32_t h = 0; h < n_kv_heads; ++h) {
      std::memcpy(keys(layer, h, to), keys(layer, h, from), key_page_bytes_);
      std::memcpy(values(layer, h, to), values(layer, h, from), value_page_bytes_);
      if (type_ == KvType::q8) {
        std::memcpy(key_scales(layer, h, to), key_scales(layer, h, from), scale_page_bytes(type_));
        std::memcpy(value_scales(layer, h, to), value_scales(layer, h, from),
                    scale_page_bytes(type_));
      }
    }
  }
}

std::optional<std::int32_t> KvCache::fork(std::int32_t sequence, std::int32_t length) {
  const std::size_t whole = static_cast<std::size_t>(length / kPageSize);
  const bool part = length % kPageSize != 0;
  if (part && free_.empty()) return std::nullopt;
  const std::int32_t child = add_sequence();
  const Sequence& from = sequences_[static_cast<std::size_t>(sequence)];
  Sequence& to = sequences_[static_cast<std::size_t>(child)];
  to.pages.assign(from.pages.begin(), from.pages.begin() + static_cast<std::ptrdiff_t>(whole));
  for (const std::int32_t page : to.pages) ++owners_[static_cast<std::size_t>(page)];
  if (part) {
    to.pages.push_back(take_page());
    copy_page(from.pages[whole], to.pages.back());
  }
  to.length = length;
  return child;
}

bool KvCache::grow(std::int32_t sequence, std::int32_t length) {
  Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  if (length <= s.length) return true;
  // After a rewind the first position to write may lie in a page that others read.
  const bool inside = s.length % kPageSize != 0;
  const bool shared = inside && owners_[static_cast<std::size_t>(s.pages.back())] > 1;
  const auto wanted = static_cast<std::size_t>(kv_pages(length));
  if (wanted + (shared ? 1 : 0) > s.pages.size() + free_.size()) return false;
  if (shared) {
    const std::int32_t copy = take_page();
    copy_page(s.pages.back(), copy);
    drop_last_page(s);
    s.pages.push_back(copy);
  }
  while (s.pages.size() < wanted) s.pages.push_back(take_page());
  s.length = length;
  return true;
}

void KvCache::shrink(std::int32_t sequence, std::int32_t length) {
  Sequence& s = sequences_[static_cast<std::size_t>(sequence)];
  while (std::ssize(s.pages) > kv_pages(length)) drop_last_page(s);
  s.length = std::min(s.length, length);
}

void KvCache::store(std::size_t layer, std::int32_t kv_head, std::int32_t sequence,
                    std::int32_t position, const Narrowed& key,
                    const Narrowed& value) const noexcept {
  const std::int32_t page = pages(sequence)[static_cast<std::size_t>(position / kPageSize)];
  const std::int32_t slot = position % kPageSize;
  std::byte* const tile = keys(layer, kv_head, page);
  switch (size_of(type_)) {
    case 4:
      scatter<std::uint32_t>(key.values, head_dim_, slot, tile);
      break;
    case 2:
      scatter<std::uint16_t>(key.values, head_dim_, slot, tile);
      break;
    default:
      scatter<std::uint8_t>(key.values, head_dim_, slot, tile);
  }
  const std::size_t row_bytes =
      static_cast<std::size_t>(kernels::v_stride(head_dim_)) * size_of(type_);
  std::memcpy(values(layer, kv_head, page) + static_cast<std::size_t>(slot) * row_bytes,
              value.values, static_cast<std::size_t>(head_dim_) * size_of(type_));
  if (type_ == KvType::q8) {
    key_scales(layer, kv_head, page)[slot] = key.scale;
    value_scales(layer, kv_head, page)[slot] = value.scale;
  }
}

std::uint64_t kv_bytes(const ModelConfig& config, KvType type, std::int32_t n_positions) {
  std::uint64_t n_heads = 0;
  for (const LayerConfig& layer : config.layers) {
    n_heads += static_cast<std::uint64_t>(layer.n_kv_heads);
  }
  const auto values_per_position =
      static_cast<std::uint64_t>(config.head_dim + kernels::v_stride(config.head_dim));
  const std::uint64_t page_bytes =
      values_per_position * size_of(type) * KvCache::kPageSize + 2 * scale_page_bytes(type);
  return n_heads * page_bytes * static_cast<std::size_t>(kv_pages(n_positions));
}

}  // namespace openelm
