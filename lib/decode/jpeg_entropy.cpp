// libjpeg may report an error by longjmp from its decoder, through `decode_mcu`: no local there needs a
// destructor, and memory is taken before.
#include "decode/jpeg_entropy.h"

#include <cstddef>
// jpeglib.h needs FILE and size_t before it.
#include <jpeglib.h>

#if CHUNKHIT_OWN_JPEG_ENTROPY
#include <jpegint.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "decode/jpeg_codes.h"

// Of libjpeg, which exports it: the shortest codes of symbols by their counts, which it changes.
extern "C" void jpeg_gen_optimal_table(j_compress_ptr info, JHUFF_TBL* table, long counts[]);

namespace chunkhit {
namespace {

/// The codes of one block of an MCU.
struct BlockCodes {
  const HuffmanTable* dc = nullptr;
  const HuffmanTable* ac = nullptr;
  unsigned component = 0;
  unsigned place = 0;  ///< among its component's blocks of the MCU
};

}  // namespace

struct JpegEntropy::Decoder {
  /// False where the file is libjpeg's.
  bool start(jpeg_decompress_struct& info);
  /// Decodes the next MCU, where `out` is null for nobody. False where its codes, or what is behind the last
  /// ones, are not in order.
  bool decode(jpeg_decompress_struct& info, JBLOCKROW* out);
  /// Reads all codes, as `out` is to have them; false where libjpeg has to.
  bool read_codes(jpeg_decompress_struct& info, const jpeg_compress_struct& out, JpegCodes& codes);
  /// Lets libjpeg decode from the MCU on for which `decode` was false.
  boolean hand_back(jpeg_decompress_struct& info, JBLOCKROW* out);

 private:
  bool build_tables(const jpeg_decompress_struct& info);
  bool decode_blocks(JBLOCKROW* out);
  bool decode_blocks_bmi2(JBLOCKROW* out);
  bool read_blocks(JBLOCKROW* out);
  struct Mcu {
    JDIMENSION x;
    JDIMENSION y;
  };
  bool read_mcu(const jpeg_decompress_struct& info, const jpeg_compress_struct& out, Mcu mcu,
                JpegCodes& codes);
  bool read_mcu_bmi2(const jpeg_decompress_struct& info, const jpeg_compress_struct& out, Mcu mcu,
                     JpegCodes& codes);
  bool take_mcu(const jpeg_decompress_struct& info, const jpeg_compress_struct& out, Mcu mcu,
                JpegCodes& codes);
  [[nodiscard]] bool is_at_marker() const;
  bool pass_restart();

  BitReader bits_;
  std::array<unsigned, MAX_COMPS_IN_SCAN> last_dc_{};
  std::array<int, MAX_COMPS_IN_SCAN> codes_dc_{};  // of what is written
  std::array<BlockCodes, D_MAX_BLOCKS_IN_MCU> blocks_;
  unsigned block_count_ = 0;
  unsigned restart_interval_ = 0;  // MCUs
  unsigned until_restart_ = 0;
  unsigned restarts_ = 0;
  std::uint64_t mcu_count_ = 0;
  std::uint64_t decoded_mcus_ = 0;
  const std::uint8_t* scan_ = nullptr;
  const std::uint8_t* end_ = nullptr;  // of the file
  bool has_bmi2_ = false;
  decltype(jpeg_entropy_decoder::decode_mcu) stock_ = nullptr;
  std::array<HuffmanTable, NUM_HUFF_TBLS> dc_tables_;
  std::array<HuffmanTable, NUM_HUFF_TBLS> ac_tables_;
};

JpegEntropy::JpegEntropy() = default;
JpegEntropy::~JpegEntropy() = default;

bool JpegEntropy::is_built() { return true; }

void JpegEntropy::take_over(jpeg_decompress_struct& info) {
  auto decoder = std::make_unique_for_overwrite<Decoder>();
  if (!decoder->start(info)) return;
  decoder_ = std::move(decoder);
  info.entropy->decode_mcu = [](j_decompress_ptr decompressed, JBLOCKROW* out) -> boolean {
    auto& self = *static_cast<JpegEntropy*>(decompressed->client_data);
    if (self.decoder_->decode(*decompressed, out)) return TRUE;
    self.is_handed_back_ = true;
    return self.decoder_->hand_back(*decompressed, out);
  };
}

bool JpegEntropy::Decoder::start(jpeg_decompress_struct& info) {
  const bool is_baseline = info.progressive_mode == FALSE && info.arith_code == FALSE &&
                           info.data_precision == 8 && info.Ss == 0 && info.Se == DCTSIZE2 - 1 &&
                           info.Ah == 0 && info.Al == 0;
  if (!is_baseline || jpeg_has_multiple_scans(&info) || info.unread_marker != 0) return false;
  scan_ = info.src->next_input_byte;
  // Where there is an end, libjpeg never meets that of the file while it decodes codes.
  const Bytes scan(scan_, info.src->bytes_in_buffer);
  if (as_text(scan).rfind("\xff\xd9") == std::string_view::npos || !build_tables(info)) return false;
  bits_.next = scan_;
  end_ = scan_ + scan.size();
  bits_.refill(end_);
  restart_interval_ = until_restart_ = info.restart_interval;
  mcu_count_ = std::uint64_t{info.MCUs_per_row} * info.MCU_rows_in_scan;
#if defined(__x86_64__)
  has_bmi2_ = __builtin_cpu_supports("bmi2") != 0;
#endif
  stock_ = info.entropy->decode_mcu;
  return true;
}

bool JpegEntropy::Decoder::build_tables(const jpeg_decompress_struct& info) {
  std::array<bool, NUM_HUFF_TBLS> has_dc{}, has_ac{};
  block_count_ = static_cast<unsigned>(info.blocks_in_MCU);
  if (block_count_ > blocks_.size()) return false;
  for (unsigned i = 0; i < block_count_; ++i) {
    const auto component = static_cast<unsigned>(info.MCU_membership[i]);
    if (component >= last_dc_.size()) return false;
    const auto dc = static_cast<unsigned>(info.cur_comp_info[component]->dc_tbl_no);
    const auto ac = static_cast<unsigned>(info.cur_comp_info[component]->ac_tbl_no);
    if (dc >= has_dc.size() || ac >= has_ac.size()) return false;
    const JHUFF_TBL *const dc_codes = info.dc_huff_tbl_ptrs[dc], *const ac_codes = info.ac_huff_tbl_ptrs[ac];
    if (dc_codes == nullptr || ac_codes == nullptr) return false;
    if (!has_dc[dc] && !dc_tables_[dc].build(*dc_codes, true)) return false;
    if (!has_ac[ac] && !ac_tables_[ac].build(*ac_codes, false)) return false;
    has_dc[dc] = has_ac[ac] = true;
    const auto place = i > 0 && blocks_[i - 1].component == component ? blocks_[i - 1].place + 1 : 0;
    blocks_[i] = {&dc_tables_[dc], &ac_tables_[ac], component, place};
  }
  return true;
}

bool JpegEntropy::Decoder::decode(jpeg_decompress_struct& info, JBLOCKROW* out) {
  if (decoded_mcus_ == mcu_count_) return false;
  if (restart_interval_ != 0 && until_restart_ == 0 && !pass_restart()) return false;
  if (has_bmi2_ ? !decode_blocks_bmi2(out) : !decode_blocks(out)) return false;
  --until_restart_;
  if (++decoded_mcus_ != mcu_count_) return true;
  if (!is_at_marker()) {
    --decoded_mcus_;
    return false;
  }
  info.src->next_input_byte = bits_.next;
  info.src->bytes_in_buffer = static_cast<std::size_t>(end_ - bits_.next);
  return true;
}

/// Whether the codes end where they should: behind them there are less than eight bits, then a marker.
bool JpegEntropy::Decoder::is_at_marker() const {
  return bits_.count < 8 && end_ - bits_.next >= 2 && bits_.next[0] == 0xff && bits_.next[1] != 0 &&
         bits_.next[1] != 0xff;
}

bool JpegEntropy::Decoder::pass_restart() {
  if (!is_at_marker() || bits_.next[1] != JPEG_RST0 + restarts_ % 8) return false;
  ++restarts_;
  bits_ = {0, 0, bits_.next + 2};
  bits_.refill(end_);
  last_dc_.fill(0);
  until_restart_ = restart_interval_;
  return true;
}

boolean JpegEntropy::Decoder::hand_back(jpeg_decompress_struct& info, JBLOCKROW* out) {
  info.entropy->decode_mcu = stock_;
  info.src->next_input_byte = scan_;
  info.src->bytes_in_buffer = static_cast<std::size_t>(end_ - scan_);
  for (std::uint64_t mcu = 0; mcu < decoded_mcus_; ++mcu) stock_(&info, nullptr);
  for (unsigned i = 0; i < block_count_ && out != nullptr; ++i) std::memset(out[i], 0, sizeof(JBLOCK));
  return stock_(&info, out);
}

bool JpegEntropy::Decoder::decode_blocks(JBLOCKROW* out) { return read_blocks(out); }

#if defined(__x86_64__)
[[gnu::target("bmi2")]]
#endif
bool JpegEntropy::Decoder::decode_blocks_bmi2(JBLOCKROW* out) {
  return read_blocks(out);
}

[[gnu::always_inline]] inline bool JpegEntropy::Decoder::read_blocks(JBLOCKROW* out) {
  JBLOCK passed;
  BitReader bits = bits_;
  for (unsigned i = 0; i < block_count_; ++i) {
    JCOEF* const block = out == nullptr ? passed : *out[i];
    int difference = 0;
    if (!read_dc(bits, end_, *blocks_[i].dc, difference)) return false;
    // Sums of damaged files wrap, as in libjpeg.
    block[0] = static_cast<JCOEF>(last_dc_[blocks_[i].component] += static_cast<unsigned>(difference));
    if (!read_ac(bits, end_, *blocks_[i].ac, block)) return false;
  }
  bits_ = bits;
  return true;
}

namespace {

// Values that libjpeg's encoder takes.
constexpr unsigned kMaxDcBits = 11, kMaxAcBits = 10;

/// The bits that a number is written as, and how many.
struct NumberBits {
  std::uint32_t bits;
  unsigned size;
};

[[gnu::always_inline]] inline NumberBits bits_of(int value) {
  const auto size = static_cast<unsigned>(std::bit_width(static_cast<unsigned>(value < 0 ? -value : value)));
  return {static_cast<std::uint32_t>(value < 0 ? value - 1 : value) & ((1u << size) - 1), size};
}

/// Reads the codes of a block behind its first value; null where they are not in order. libjpeg writes the
/// same codes of these values.
[[gnu::always_inline]] inline std::uint32_t* take_ac(BitReader& bits, const std::uint8_t* end,
                                                     const HuffmanTable& table, std::uint32_t slot,
                                                     std::uint32_t* out) {
  unsigned at = 1, zeros = 0;
  do {
    for (unsigned step = 1; step < kCodesARefill && at < kBlockValues; ++step) {
      const std::uint32_t entry = table.find(bits.bits);
      unsigned passed = entry >> 8 & 0xff;
      int value = static_cast<std::int32_t>(entry) >> 16;
      const bool is_short = passed != 0;
      if (is_short) [[likely]] {
        bits.use(entry & 0xff);
      } else {
        const LongCode code = read_long(bits, end, table, entry);
        if (code.symbol == kNoSymbol) return nullptr;
        passed = values_passed(code.symbol);
        value = code.value;
      }
      at += passed;
      zeros += passed;
      if (value != 0) {
        for (--zeros; zeros > 15; zeros -= 16) *out++ = slot | kRunOf16 << 16;
        const NumberBits number = bits_of(value);
        if (number.size > kMaxAcBits) return nullptr;
        *out++ = slot | (zeros << 4 | number.size) << 16 | number.bits;
        zeros = 0;
      }
      if (!is_short) break;  // its bits are more than those of a step
    }
    bits.refill(end);
  } while (at < kBlockValues);
  if (bits.count < 0 || (at > kBlockValues && at < kEndOfBlock)) return nullptr;
  if (zeros > 0) *out++ = slot;  // end of block
  return out;
}

}  // namespace

bool JpegEntropy::Decoder::read_codes(jpeg_decompress_struct& info, const jpeg_compress_struct& out,
                                      JpegCodes& codes) {
  codes.reserve(2 * info.src->bytes_in_buffer);  // a code of less than four bits is rare
  unsigned until_restart = out.restart_interval;
  for (Mcu mcu{0, 0}; mcu.y < info.MCU_rows_in_scan; ++mcu.y) {
    if (info.progress != nullptr) info.progress->progress_monitor(reinterpret_cast<j_common_ptr>(&info));
    for (mcu.x = 0; mcu.x < info.MCUs_per_row; ++mcu.x) {
      if (restart_interval_ != 0 && until_restart_ == 0 && !pass_restart()) return false;
      --until_restart_;
      if (out.restart_interval != 0 && until_restart-- == 0) {
        codes.add_restart();
        codes_dc_.fill(0);
        until_restart = out.restart_interval - 1;
      }
      codes.reserve(std::size_t{block_count_} * kBlockValues);
      if (has_bmi2_ ? !read_mcu_bmi2(info, out, mcu, codes) : !read_mcu(info, out, mcu, codes)) return false;
    }
  }
  return is_at_marker() && bits_.next[1] == JPEG_EOI;
}

bool JpegEntropy::Decoder::read_mcu(const jpeg_decompress_struct& info, const jpeg_compress_struct& out,
                                    Mcu mcu, JpegCodes& codes) {
  return take_mcu(info, out, mcu, codes);
}

#if defined(__x86_64__)
[[gnu::target("bmi2")]]
#endif
bool JpegEntropy::Decoder::read_mcu_bmi2(const jpeg_decompress_struct& info, const jpeg_compress_struct& out,
                                         Mcu mcu, JpegCodes& codes) {
  return take_mcu(info, out, mcu, codes);
}

[[gnu::always_inline]] inline bool JpegEntropy::Decoder::take_mcu(const jpeg_decompress_struct& info,
                                                                  const jpeg_compress_struct& out, Mcu mcu,
                                                                  JpegCodes& codes) {
  BitReader bits = bits_;
  std::uint32_t* token = codes.end();
  for (unsigned i = 0; i < block_count_; ++i) {
    const auto& [dc, ac, component, place] = blocks_[i];
    const jpeg_component_info& from = *info.cur_comp_info[component];
    const jpeg_component_info& to = out.comp_info[component];
    int difference = 0;
    if (!read_dc(bits, end_, *dc, difference)) return false;
    last_dc_[component] += static_cast<unsigned>(difference);
    const auto value = static_cast<int>(last_dc_[component]);
    // Blocks beyond the image repeat the one before, whatever the file has there: so libjpeg writes them.
    const auto width = static_cast<unsigned>(from.MCU_width), height = static_cast<unsigned>(from.MCU_height);
    const bool is_beyond = mcu.x * width + place % width >= from.width_in_blocks ||
                           mcu.y * height + place / width >= from.height_in_blocks;
    const NumberBits number = bits_of(is_beyond ? 0 : value - codes_dc_[component]);
    if (value != static_cast<JCOEF>(value) || number.size > kMaxDcBits) return false;
    *token++ = JpegCodes::dc_slot(to) | number.size << 16 | number.bits;
    const std::uint32_t slot = JpegCodes::ac_slot(to);
    std::uint32_t* const behind = take_ac(bits, end_, *ac, slot, token);
    if (behind == nullptr) return false;
    if (!is_beyond) codes_dc_[component] = value;
    if (is_beyond) *token = slot;
    token = is_beyond ? token + 1 : behind;
  }
  bits_ = bits;
  codes.set_end(token);
  return true;
}

JpegCodes::JpegCodes() = default;
JpegCodes::~JpegCodes() = default;

bool JpegCodes::read(jpeg_decompress_struct& info, const jpeg_compress_struct& out) {
  for (int i = 0; i < info.comps_in_scan; ++i)
    if (info.cur_comp_info[i]->component_index != i) return false;
  decoder_ = std::make_unique_for_overwrite<JpegEntropy::Decoder>();
  const bool is_read = decoder_->start(info) && decoder_->read_codes(info, out, *this);
  decoder_.reset();
  if (!is_read) {
    tokens_.reset();
    count_ = capacity_ = 0;
  }
  return is_read;
}

namespace {

struct Code {
  std::uint32_t bits;
  unsigned length;
};

JHUFF_TBL*& table_of(jpeg_compress_struct& out, unsigned slot) {
  return slot < NUM_HUFF_TBLS ? out.dc_huff_tbl_ptrs[slot] : out.ac_huff_tbl_ptrs[slot - NUM_HUFF_TBLS];
}

}  // namespace

void JpegCodes::set_tables(jpeg_compress_struct& out) const {
  // In two turns, as a count waits for the one before where both are of the same symbol.
  std::array<std::array<std::uint32_t, std::size_t{kSlots} * kSymbols>, 2> turns{};
  std::size_t turn = 0;
  for (const std::uint32_t token : tokens())
    if ((token & kRestart) == 0) ++turns[turn++ % 2][token >> 16];
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    std::array<std::uint32_t, kSymbols> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i)
      counts[i] = turns[0][slot * counts.size() + i] + turns[1][slot * counts.size() + i];
    if (std::ranges::all_of(counts, [](std::uint32_t count) { return count == 0; })) continue;
    JHUFF_TBL*& table = table_of(out, slot);
    if (table == nullptr) table = jpeg_alloc_huff_table(reinterpret_cast<j_common_ptr>(&out));
    if (make_optimal_table(counts, *table)) continue;
    std::array<long, kSymbols + 1> all{};  // which libjpeg says to be too many
    std::ranges::copy(counts, all.begin());
    jpeg_gen_optimal_table(&out, table, all.data());
  }
}

// A pass over coefficients writes the headers first; there are none, and it goes no further.
void JpegCodes::write_headers(jpeg_compress_struct& out) {
  std::array<jvirt_barray_ptr, MAX_COMPONENTS> none{};
  out.optimize_coding = FALSE;
  jpeg_write_coefficients(&out, none.data());
  out.master->prepare_for_pass(&out);
  out.dest->term_destination(&out);
}

void JpegCodes::write(jpeg_compress_struct& out, ByteBuffer& to) const {
  std::array<Code, std::size_t{kSlots} * 256> codes{};
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    const JHUFF_TBL* const table = table_of(out, slot);
    if (table == nullptr) continue;
    std::uint32_t code = 0, used = 0;
    for (unsigned length = 1; length <= kMaxCodeBits; ++length, code <<= 1)
      for (unsigned i = 0; i < table->bits[length]; ++i)
        codes[std::size_t{slot} * 256 + table->huffval[used++]] = {code++, length};
  }
  constexpr std::size_t kBlock = 4096, kMaxTokenBytes = 8;  // 27 bits, each byte followed by 0; or a marker
  std::size_t written = to.size();
  unsigned restarts = 0;
  BitWriter bits;
  for (std::span<const std::uint32_t> left = tokens(); !left.empty();) {
    const auto block = left.first(std::min(left.size(), kBlock));
    left = left.subspan(block.size());
    to.resize(written + kMaxTokenBytes * (block.size() + 2));
    bits.move_to(to.data() + written);
    for (const std::uint32_t token : block) {
      if ((token & kRestart) != 0) {
        bits.put_marker(static_cast<std::uint8_t>(JPEG_RST0 + restarts++ % 8));
        continue;
      }
      const auto [code, length] = codes[token >> 16];
      const unsigned size = token >> 16 & 15;
      bits.put(code << size | (token & 0xffff), length + size);
    }
    written = static_cast<std::size_t>(bits.next() - to.data());
  }
  bits.put_marker(JPEG_EOI);
  to.resize(static_cast<std::size_t>(bits.next() - to.data()));
}

}  // namespace chunkhit

#else

namespace chunkhit {

struct JpegEntropy::Decoder {};
JpegEntropy::JpegEntropy() = default;
JpegEntropy::~JpegEntropy() = default;
bool JpegEntropy::is_built() { return false; }
void JpegEntropy::take_over(jpeg_decompress_struct&) {}
JpegCodes::JpegCodes() = default;
JpegCodes::~JpegCodes() = default;
bool JpegCodes::read(jpeg_decompress_struct&, const jpeg_compress_struct&) { return false; }
void JpegCodes::set_tables(jpeg_compress_struct&) const {}
void JpegCodes::write_headers(jpeg_compress_struct&) {}
void JpegCodes::write(jpeg_compress_struct&, ByteBuffer&) const {}

}  // namespace chunkhit
#endif
