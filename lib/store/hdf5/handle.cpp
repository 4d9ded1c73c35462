#include "store/hdf5/handle.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>

#include "base/per_thread.h"
#include "base/resources.h"

namespace chunkhit {
namespace {

/// Keeps the description of the deepest failure, or the system's error text if a description quotes one.
herr_t keep_reason(unsigned, const H5E_error2_t* error, void* reason) {
  constexpr std::string_view kQuoted = "error message = '";
  auto& text = *static_cast<std::string*>(reason);
  const std::string description = error->desc == nullptr ? "" : error->desc;
  const std::size_t quoted = description.find(kQuoted);
  if (quoted != std::string::npos) {
    const std::size_t begin = quoted + kQuoted.size();
    text = description.substr(begin, description.find('\'', begin) - begin);
    return 1;
  }
  if (text.empty()) text = description;
  return 0;
}

/// Notes whether a call failed for lack of memory.
herr_t look_for_memory(unsigned, const H5E_error2_t* error, void* denied) {
  const bool is_memory = error->maj_num == H5E_RESOURCE || error->min_num == H5E_NOSPACE;
  if (is_memory) *static_cast<bool*>(denied) = true;
  return is_memory ? 1 : 0;
}

PerThread<std::optional<Error>> machine_error;

std::recursive_mutex library_mutex;

}  // namespace

void note_machine_error(const Error& error) { machine_error.get() = error; }

void forget_machine_error() { machine_error.get().reset(); }

Hdf5Session::Hdf5Session() : lock_(library_mutex) {
  // HDF5 1.10 crashes if it runs out of memory during its start, which needs some 3 MiB: allocated and freed
  // here, so that the lack is an exception.
  static const std::size_t room = ByteBuffer(8 << 20).size();
  static_cast<void>(room);
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

herr_t Hdf5Handle::close() {
  if (id_ < 0) return 0;
  const std::lock_guard lock(library_mutex);
  return close_(std::exchange(id_, -1));
}

Hdf5Session::~Hdf5Session() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

void Hdf5Check::refuse(const std::string& what) const {
  if (const std::optional<Error>& noted = machine_error.get()) throw Error(*noted);
  throw Error(code_, path_ + ": " + what);
}

void Hdf5Check::fail(const char* what) const {
  bool denied = false;
  // Without a memory limit only absurd sizes are denied, which come from a damaged file.
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, look_for_memory, &denied);
  if (denied && has_memory_limit())
    throw Hdf5MemoryError(ErrorCode::try_again, path_ + ": " + memory_limit_text());
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, &reason);
  refuse("cannot " + std::string(what) + (reason.empty() ? "" : ": " + reason));
}

H5FD_class_t begin_driver(const char* name, std::size_t settings_bytes) {
  // The same limit as in HDF5's own drivers.
  constexpr haddr_t kMaxAddress = (haddr_t{1} << 63) - 1;
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 511;  // of those that HDF5 leaves to drivers without a number of their own
#endif
  driver.name = name;
  driver.maxaddr = kMaxAddress;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = settings_bytes;
  return driver;
}

Hdf5Handle open_hdf5_file(const Hdf5Check& check, const std::string& path) {
  const Hdf5Handle access(check(H5Pcreate(H5P_FILE_ACCESS), "create a property list"), H5Pclose);
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "set the way of closing");
  check(H5Pset_file_locking(access.get(), false, true), "leave out file locks");
  return {check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), "open"), H5Fclose};
}

/// While it is on, the driver records reads of array data instead of executing them.
struct ReadWatch {
  const InputFile* input = nullptr;
  bool is_on = false;
  unsigned read_count = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  haddr_t end_of_addresses = 0;
};

namespace {

/// Settings that HDF5 passes to the driver's `open`, copied bytewise.
struct DriverSettings {
  ReadWatch* watch = nullptr;
};

/// The driver's state of an open file.
struct DriverFile : H5FD_t {
  ReadWatch* watch = nullptr;
};

DriverFile& driver_file(H5FD_t* file) { return *static_cast<DriverFile*>(file); }

const DriverFile& driver_file(const H5FD_t* file) { return *static_cast<const DriverFile*>(file); }

/// Reads like HDF5's own driver, with zeros past the end of the file. Exceptions must not pass through C.
herr_t read_bytes(const InputFile& input, haddr_t at, std::size_t bytes, void* to) {
  const std::uint64_t there =
      std::min<std::uint64_t>(bytes, input.byte_count() - std::min(at, input.byte_count()));
  try {
    const MutableBytes out(static_cast<std::uint8_t*>(to), bytes);
    if (there > 0) input.read_at(at, out.first(there));
    std::ranges::fill(out.subspan(there), std::uint8_t{0});
    return 0;
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    if (known != nullptr && known->code() == ErrorCode::try_again) note_machine_error(*known);
    H5Epush2(H5E_DEFAULT, "hdf5_source.cpp", __func__, __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR, "%s",
             error.what());
    return -1;
  }
}

herr_t read_or_note(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t at, std::size_t bytes, void* to) {
  ReadWatch& watch = *driver_file(file).watch;
  if (!watch.is_on || type != H5FD_MEM_DRAW) return read_bytes(*watch.input, at, bytes, to);
  ++watch.read_count;
  watch.offset = at;
  watch.bytes = bytes;
  return 0;
}

H5FD_t* open_driver_file(const char*, unsigned, hid_t access, haddr_t) {
  const void* info = H5Pget_driver_info(access);
  auto* file = new (std::nothrow) DriverFile{};
  if (file == nullptr || info == nullptr) {
    delete file;
    return nullptr;
  }
  file->watch = static_cast<const DriverSettings*>(info)->watch;
  return file;
}

/// A driver that only reads.
H5FD_class_t make_driver() {
  H5FD_class_t driver = begin_driver("chunkhit", sizeof(DriverSettings));
  driver.open = open_driver_file;
  driver.close = [](H5FD_t* file) -> herr_t {
    delete &driver_file(file);
    return 0;
  };
  driver.query = [](const H5FD_t*, unsigned long* flags) -> herr_t {
    *flags = 0;
    return 0;
  };
  driver.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return driver_file(file).watch->end_of_addresses; };
  driver.set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t address) -> herr_t {
    driver_file(file).watch->end_of_addresses = address;
    return 0;
  };
  driver.get_eof = [](const H5FD_t* file, H5FD_mem_t) -> haddr_t {
    return driver_file(file).watch->input->byte_count();
  };
  driver.read = read_or_note;
  driver.write = [](H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) -> herr_t { return -1; };
  return driver;
}

}  // namespace

Hdf5Source::Hdf5Source(InputFile input)
    : check_(ErrorCode::bad_data, input.path()),
      input_(std::move(input)),
      watch_(std::make_unique<ReadWatch>()) {
  input_.require_local("an external HDF5 file");
  const Hdf5Session session;
  const Hdf5Check& check = check_;
  forget_machine_error();
  watch_->input = &input_;
  const H5FD_class_t driver = make_driver();
  driver_ = Hdf5Handle(check(H5FDregister(&driver), "register a driver"), H5FDunregister);
  const Hdf5Handle access(check(H5Pcreate(H5P_FILE_ACCESS), "create a property list"), H5Pclose);
  const DriverSettings settings{watch_.get()};
  check(H5Pset_driver(access.get(), driver_.get(), &settings), "set the driver");
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "set the way of closing");
  check(H5Pset_file_locking(access.get(), false, true), "leave out file locks");
  file_ = Hdf5Handle(check(H5Fopen(input_.path().c_str(), H5F_ACC_RDONLY, access.get()), "open"), H5Fclose);
}

Hdf5Source::~Hdf5Source() = default;

std::uint64_t Hdf5Source::end_address() const { return watch_->end_of_addresses; }

/// Finds a chunk's file offset without walking over the chunks before it, which HDF5 1.10 has no call for: a
/// raw read of the chunk is started while the driver only records where it would read.
std::optional<Hdf5ChunkLocation> Hdf5Source::find_chunk(hid_t dataset, std::span<const hsize_t> first) {
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(dataset, first.data(), &bytes) < 0 || bytes == 0) return std::nullopt;
  if (bytes > byte_count())
    check_.refuse("the chunk of sample " + std::to_string(first[0]) + " has " + std::to_string(bytes) +
                  " bytes, the file " + std::to_string(byte_count()));
  if (untouched_.size() < bytes) untouched_ = ByteBuffer(bytes);
  Hdf5ChunkLocation location;
  watch_->is_on = true;
  watch_->read_count = 0;
  const herr_t status =
      H5Dread_chunk(dataset, H5P_DEFAULT, first.data(), &location.filter_mask, untouched_.data());
  watch_->is_on = false;
  check_(status, "look up a chunk");
  if (watch_->read_count != 1 || watch_->bytes != bytes)
    check_.refuse("the HDF5 library does not tell where the chunk of sample " + std::to_string(first[0]) +
                  " lies");
  location.offset = watch_->offset;
  location.stored_bytes = bytes;
  return location;
}

}  // namespace chunkhit
