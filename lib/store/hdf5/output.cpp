#include "store/hdf5/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "chunkhit/error.h"

namespace chunkhit {

/// What the driver knows of its file.
struct Hdf5OutputState {
  explicit Hdf5OutputState(PendingFile file) : pending(std::move(file)) {}

  PendingFile pending;
  haddr_t end_of_addresses = 0;
  haddr_t end_of_file = 0;  ///< of what the driver wrote
  const void* chunk = nullptr;
  std::optional<haddr_t> chunk_offset;
  std::optional<Error> error;  ///< of the first write that failed; the library sees no write fail
};

namespace {

/// The driver's state of an open file. HDF5 copies the settings, a pointer, bytewise.
struct DriverFile : H5FD_t {
  Hdf5OutputState* state = nullptr;
};

Hdf5OutputState& state_of(const H5FD_t* file) { return *static_cast<const DriverFile*>(file)->state; }

/// Runs a step on the file; keeps its error. Exceptions must not pass through C.
template <class Step>
bool succeeds(Hdf5OutputState& state, Step step) {
  try {
    step();
    return true;
  } catch (const Error& error) {
    if (!state.error) state.error = error;
  } catch (const std::exception& error) {
    if (!state.error)
      state.error = Error(ErrorCode::cannot_write, state.pending.path() + ": " + error.what());
  }
  // What the library says of a file without these bytes does not matter.
  note_machine_error(*state.error);
  return false;
}

H5FD_t* open_file(const char*, unsigned, hid_t access, haddr_t) {
  const void* settings = H5Pget_driver_info(access);
  auto* file = new (std::nothrow) DriverFile{};
  if (file == nullptr || settings == nullptr) {
    delete file;
    return nullptr;
  }
  file->state = *static_cast<Hdf5OutputState* const*>(settings);
  return file;
}

/// Reads with zeros past the end of the file, like HDF5's own driver.
herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t bytes, void* to) {
  Hdf5OutputState& state = state_of(file);
  const MutableBytes out(static_cast<std::uint8_t*>(to), bytes);
  const std::uint64_t there = std::min<haddr_t>(bytes, state.end_of_file - std::min(at, state.end_of_file));
  std::ranges::fill(out.subspan(there), std::uint8_t{0});
  return succeeds(state, [&] { state.pending.read_at(at, out.first(there)); }) ? 0 : -1;
}

herr_t write_or_note(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t bytes, const void* from) {
  Hdf5OutputState& state = state_of(file);
  if (from == state.chunk) {
    state.chunk_offset = at;
  } else if (!state.error) {
    state.end_of_file = std::max<haddr_t>(state.end_of_file, at + bytes);
    const Bytes written(static_cast<const std::uint8_t*>(from), bytes);
    succeeds(state, [&] { state.pending.write_at(at, written); });
  }
  return 0;
}

/// Ends the file where its addresses end, also if the last chunk is not written yet.
herr_t set_size(H5FD_t* file, hid_t, hbool_t) {
  Hdf5OutputState& state = state_of(file);
  if (state.end_of_file == state.end_of_addresses || state.error) return 0;
  state.end_of_file = state.end_of_addresses;
  succeeds(state, [&] {
    if (::ftruncate(state.pending.fd(), static_cast<off_t>(state.end_of_file)) != 0)
      throw_write_error(state.pending.path(), "cannot set the size", errno);
  });
  return 0;
}

/// A driver that lays files out as HDF5's own one does.
H5FD_class_t make_driver() {
  constexpr H5FD_mem_t kTypes[] = H5FD_FLMAP_DICHOTOMY;
  H5FD_class_t driver = begin_driver("chunkhit output", sizeof(void*));
  driver.open = open_file;
  driver.close = [](H5FD_t* file) -> herr_t {
    delete static_cast<DriverFile*>(file);
    return 0;
  };
  driver.query = [](const H5FD_t*, unsigned long* flags) -> herr_t {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
  };
  driver.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return state_of(file).end_of_addresses; };
  driver.set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t address) -> herr_t {
    state_of(file).end_of_addresses = address;
    return 0;
  };
  driver.get_eof = [](const H5FD_t* file, H5FD_mem_t) { return state_of(file).end_of_file; };
  driver.read = read_bytes;
  driver.write = write_or_note;
  driver.truncate = set_size;
  std::ranges::copy(kTypes, driver.fl_map);
  return driver;
}

}  // namespace

Hdf5Output::Hdf5Output(const std::string& path, std::uint64_t metadata_block_bytes)
    : check_(ErrorCode::cannot_write, path), state_(std::make_unique<Hdf5OutputState>(PendingFile(path))) {
  const Hdf5Session session;
  const Hdf5Check& check = check_;
  forget_machine_error();  // of another file
  const H5FD_class_t driver = make_driver();
  driver_ = Hdf5Handle(check(H5FDregister(&driver), "register a driver"), H5FDunregister);
  const Hdf5Handle access(check(H5Pcreate(H5P_FILE_ACCESS), "create a property list"), H5Pclose);
  const Hdf5Handle creation(check(H5Pcreate(H5P_FILE_CREATE), "create a property list"), H5Pclose);
  Hdf5OutputState* const settings = state_.get();
  check(H5Pset_driver(access.get(), driver_.get(), &settings), "set the driver");
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V18), "set the version bounds");
  check(H5Pset_meta_block_size(access.get(), metadata_block_bytes), "set the metadata block");
  // Small chunks are written at the end of the file like large ones, so that their offsets ascend.
  check(H5Pset_small_data_block_size(access.get(), 0), "set the data block");
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "set the way of closing");
  check(H5Pset_file_locking(access.get(), false, true), "leave out file locks");
  check(H5Pset_obj_track_times(creation.get(), false), "leave out times");
  file_ = Hdf5Handle(
      check(H5Fcreate(state_->pending.aside_path().c_str(), H5F_ACC_TRUNC, creation.get(), access.get()),
            "create"),
      H5Fclose);
}

Hdf5Output::~Hdf5Output() {
  const Hdf5Session session;
  file_.close();
  driver_.close();
}

PendingFile& Hdf5Output::pending() { return state_->pending; }

void Hdf5Output::rethrow() const {
  if (state_->error) throw Error(*state_->error);
}

std::uint64_t Hdf5Output::add_chunk(hid_t dataset, std::span<const hsize_t> first, std::uint32_t filter_mask,
                                    Bytes stored) {
  const Hdf5Session session;
  state_->chunk = stored.data();
  state_->chunk_offset.reset();
  const herr_t status =
      H5Dwrite_chunk(dataset, H5P_DEFAULT, filter_mask, first.data(), stored.size(), stored.data());
  state_->chunk = nullptr;
  check_(status, "write");
  rethrow();
  if (!state_->chunk_offset) check_.refuse("the HDF5 library does not say where a chunk lies");
  return *state_->chunk_offset;
}

void Hdf5Output::close() {
  const Hdf5Session session;
  check_(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "flush");
  check_(file_.close(), "close");
  rethrow();
}

void leave_files_alone_at_exit() {
  static const herr_t left_alone = H5dont_atexit();
  static_cast<void>(left_alone);
}

}  // namespace chunkhit
