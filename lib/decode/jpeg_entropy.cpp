// libjpeg may report an error by longjmp from its decoder, through `decode_mcu`: no local there needs a
// destructor, and memory is taken before.
#include "decode/jpeg_entropy.h"

#include <cstddef>
// jpeglib.h needs FILE and size_t before it.
#include <jpeglib.h>

#if CHUNKHIT_OWN_JPEG_ENTROPY
#include <jpegint.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace chunkhit {
namespace {

constexpr unsigned kPeekBits = 11;
constexpr unsigned kMaxCodeBits = 16;
constexpr unsigned kMaxDcSize = 15;
constexpr unsigned kBlockValues = DCTSIZE2;
constexpr unsigned kRunOf16 = 0xf0;
// How far a code moves in a block: an end of the block goes beyond what any run reaches.
constexpr unsigned kEndOfBlock = 128;
// Codes of kPeekBits that one refill serves.
constexpr unsigned kCodesARefill = 5;
constexpr int kRefilledBits = 56;
static_assert(kCodesARefill * kPeekBits <= kRefilledBits);

// The position in a block of its values in the order of the file (ITU-T T.81, figure A.6), by the number of
// values up to and with it. What is beyond the block goes to the last one, as in libjpeg.
constexpr std::array<std::uint8_t, kBlockValues + kEndOfBlock> make_positions() {
  std::array<std::uint8_t, kBlockValues + kEndOfBlock> positions{};
  positions.fill(kBlockValues - 1);
  unsigned next = 1;
  for (int diagonal = 0; diagonal < 2 * DCTSIZE - 1; ++diagonal)
    for (int step = 0; step <= diagonal; ++step) {
      const int row = diagonal % 2 == 0 ? diagonal - step : step, column = diagonal - row;
      if (row < DCTSIZE && column < DCTSIZE)
        positions[next++] = static_cast<std::uint8_t>(row * DCTSIZE + column);
    }
  return positions;
}
alignas(64) constexpr auto kPositions = make_positions();
static_assert(kPositions[1] == 0 && kPositions[2] == 1 && kPositions[3] == 8 && kPositions[64] == 63);

/// The number of `size` bits, as JPEG writes numbers: those that begin with 0 are negative.
constexpr int signed_value(unsigned bits, unsigned size) {
  return size == 0 || bits >> (size - 1) != 0 ? static_cast<int>(bits)
                                              : static_cast<int>(bits) - (1 << size) + 1;
}

/// How many values of a block a code stands for, behind the first one.
constexpr unsigned values_passed(unsigned symbol) {
  const bool ends = (symbol & 15) == 0 && symbol != kRunOf16;
  return ends ? kEndOfBlock : (symbol >> 4) + 1;
}

constexpr std::uint32_t kPassedMask = 0xff00;

/// Codes of one table. An entry stands for the next kPeekBits: their code and its value where both are in
/// them, as bits used | values passed << 8 | value << 16; the code alone, as bits used | symbol << 16; or 0.
class HuffmanTable {
 public:
  /// False where the table is none.
  bool build(const JHUFF_TBL& table, bool is_dc);
  [[nodiscard]] std::uint32_t find(std::uint64_t bits) const { return entries_[bits >> (64 - kPeekBits)]; }
  /// The length of a code of more than kPeekBits, and its symbol; 0 where there is no such code.
  [[nodiscard]] unsigned find_long(std::uint64_t bits, unsigned& symbol) const {
    for (unsigned length = kPeekBits + 1; length <= kMaxCodeBits; ++length) {
      const auto code = static_cast<std::int32_t>(bits >> (64 - length));
      if (code > last_codes_[length]) continue;
      symbol = symbols_[static_cast<std::uint8_t>(code + symbol_offsets_[length])];
      return length;
    }
    return 0;
  }

 private:
  void add(std::uint32_t code, unsigned length, unsigned symbol, bool is_dc);

  std::array<std::uint32_t, 1 << kPeekBits> entries_;
  std::array<std::int32_t, kMaxCodeBits + 1> last_codes_;  // of a length; -1: there is none
  std::array<std::int32_t, kMaxCodeBits + 1> symbol_offsets_;
  std::array<std::uint8_t, 256> symbols_;
};

bool HuffmanTable::build(const JHUFF_TBL& table, bool is_dc) {
  entries_.fill(0);
  std::memcpy(symbols_.data(), table.huffval, symbols_.size());
  std::uint32_t code = 0, used = 0;
  for (unsigned length = 1; length <= kMaxCodeBits; ++length, code <<= 1) {
    const std::uint32_t count = table.bits[length];
    // No code is all ones.
    if (used + count > symbols_.size() || code + count >= 1u << length) return false;
    symbol_offsets_[length] = static_cast<std::int32_t>(used) - static_cast<std::int32_t>(code);
    for (std::uint32_t i = 0; i < count; ++i, ++code, ++used) {
      if (is_dc && symbols_[used] > kMaxDcSize) return false;
      if (length <= kPeekBits) add(code, length, symbols_[used], is_dc);
    }
    last_codes_[length] = count == 0 ? -1 : static_cast<std::int32_t>(code) - 1;
  }
  return true;
}

void HuffmanTable::add(std::uint32_t code, unsigned length, unsigned symbol, bool is_dc) {
  const unsigned spare = kPeekBits - length, size = symbol & 15;
  std::uint32_t* const entries = entries_.data() + (std::size_t{code} << spare);
  const std::uint32_t passed = is_dc ? 1 : values_passed(symbol);
  for (std::uint32_t rest = 0; rest < 1u << spare; ++rest)
    entries[rest] = size > spare
                        ? length | symbol << 16
                        : (length + size) | passed << 8 |
                              static_cast<std::uint32_t>(signed_value(rest >> (spare - size), size)) << 16;
}

/// The bits of a scan, the next one highest. Those behind `count` are of the next byte, or 0.
struct BitReader {
  std::uint64_t bits = 0;
  int count = 0;  // negative where more were used than there were
  const std::uint8_t* next = nullptr;

  [[gnu::always_inline]] void use(unsigned used) {
    bits <<= used;
    count -= static_cast<int>(used);
  }
  /// Afterwards there are kRefilledBits, or all up to a marker or the end of the file.
  [[gnu::always_inline]] void refill(const std::uint8_t* end) {
    constexpr std::uint64_t kOnes = 0x0101010101010101, kHighest = kOnes << 7;
    if (end - next >= 8) [[likely]] {
      const std::uint64_t eight = __builtin_bswap64(load_little<std::uint64_t>(next));
      if (((~eight - kOnes) & eight & kHighest) == 0) [[likely]] {  // no byte is 0xff
        bits |= eight >> count;
        next += (63 - count) >> 3;
        count |= kRefilledBits;
        return;
      }
    }
    BitReader slow = *this;  // so that `this` stays in registers
    refill_bytes(slow, end);
    *this = slow;
  }
  /// The same byte by byte: 0xff is followed by 0, but for markers.
  [[gnu::noinline]] static void refill_bytes(BitReader& to, const std::uint8_t* end) {
    while (to.count < kRefilledBits && to.next != end) {
      const std::uint64_t byte = *to.next;
      if (byte == 0xff && (end - to.next < 2 || to.next[1] != 0)) break;
      to.next += byte == 0xff ? 2 : 1;
      to.bits |= byte << (kRefilledBits - to.count);
      to.count += 8;
    }
  }
};

constexpr unsigned kNoSymbol = 0x100;

/// A code that a table's entries do not hold with its value.
struct LongCode {
  unsigned symbol;
  int value;
};

[[gnu::noinline]] LongCode read_long_code(BitReader& bits, const std::uint8_t* end, const HuffmanTable& table,
                                          std::uint32_t entry) {
  bits.refill(end);
  LongCode code{entry >> 16, 0};
  unsigned length = entry & 0xff;
  if (length == 0) length = table.find_long(bits.bits, code.symbol);
  bits.use(length);
  const unsigned size = code.symbol & 15;
  if (size != 0) code.value = signed_value(static_cast<unsigned>(bits.bits >> (64 - size)), size);
  bits.use(size);
  return length == 0 ? LongCode{kNoSymbol, 0} : code;
}

[[gnu::always_inline]] inline LongCode read_long(BitReader& bits, const std::uint8_t* end,
                                                 const HuffmanTable& table, std::uint32_t entry) {
  BitReader slow = bits;
  const LongCode code = read_long_code(slow, end, table, entry);
  bits = slow;
  return code;
}

/// False where there is no such code.
[[gnu::always_inline]] inline bool read_dc(BitReader& bits, const std::uint8_t* end,
                                           const HuffmanTable& table, int& difference) {
  const std::uint32_t entry = table.find(bits.bits);
  if ((entry & kPassedMask) != 0) [[likely]] {
    bits.use(entry & 0xff);
    difference = static_cast<std::int32_t>(entry) >> 16;
    return true;
  }
  const LongCode code = read_long(bits, end, table, entry);
  difference = code.value;
  bits.refill(end);
  return code.symbol != kNoSymbol;
}

/// Writes what is not zero of a block behind its first value. False where codes are not in order.
[[gnu::always_inline]] inline bool read_ac(BitReader& bits, const std::uint8_t* end,
                                           const HuffmanTable& table, JCOEF* block) {
  unsigned at = 1;  // values so far
  do {
    for (unsigned step = 1; step < kCodesARefill && at < kBlockValues; ++step) {
      const std::uint32_t entry = table.find(bits.bits);
      if ((entry & kPassedMask) != 0) [[likely]] {
        bits.use(entry & 0xff);
        at += entry >> 8 & 0xff;
        block[kPositions[at]] = static_cast<JCOEF>(entry >> 16);
        continue;
      }
      const LongCode code = read_long(bits, end, table, entry);
      if (code.symbol == kNoSymbol) return false;
      at += values_passed(code.symbol);
      block[kPositions[at]] = static_cast<JCOEF>(code.value);
      break;  // its bits are more than those of a step
    }
    bits.refill(end);
  } while (at < kBlockValues);
  return bits.count >= 0 && (at == kBlockValues || at >= kEndOfBlock);
}

/// The codes of one block of an MCU.
struct BlockCodes {
  const HuffmanTable* dc = nullptr;
  const HuffmanTable* ac = nullptr;
  unsigned component = 0;
};

}  // namespace

struct JpegEntropy::Decoder {
  /// False where the file is libjpeg's.
  bool start(jpeg_decompress_struct& info);
  /// Decodes the next MCU, where `out` is null for nobody. False where its codes, or what is behind the last
  /// ones, are not in order.
  bool decode(jpeg_decompress_struct& info, JBLOCKROW* out);
  /// Lets libjpeg decode from the MCU on for which `decode` was false.
  boolean hand_back(jpeg_decompress_struct& info, JBLOCKROW* out);

 private:
  bool build_tables(const jpeg_decompress_struct& info);
  bool decode_blocks(JBLOCKROW* out);
  bool decode_blocks_bmi2(JBLOCKROW* out);
  bool read_blocks(JBLOCKROW* out);
  [[nodiscard]] bool is_at_marker() const;
  bool pass_restart();

  BitReader bits_;
  std::array<unsigned, MAX_COMPS_IN_SCAN> last_dc_{};
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
    blocks_[i] = {&dc_tables_[dc], &ac_tables_[ac], component};
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

}  // namespace chunkhit

#else

namespace chunkhit {

struct JpegEntropy::Decoder {};
JpegEntropy::JpegEntropy() = default;
JpegEntropy::~JpegEntropy() = default;
bool JpegEntropy::is_built() { return false; }
void JpegEntropy::take_over(jpeg_decompress_struct&) {}

}  // namespace chunkhit
#endif
