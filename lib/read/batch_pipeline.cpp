#include "read/batch_pipeline.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <utility>

namespace chunkhit {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Keeps a thread that is woken for a freed batch from preempting the caller that freed it: threads of
/// SCHED_BATCH wait for a free CPU or for their turn. Failure is ignored: it costs only time.
void leave_cpu_to_caller() {
  const sched_param priority{};
  ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &priority);
}

}  // namespace

void PipelineStats::add(const PipelineStats& other) {
  idle_seconds += other.idle_seconds;
  batches += other.batches;
  samples += other.samples;
  batch_bytes += other.batch_bytes;
  corrupt_samples += other.corrupt_samples;
  made.add(other.made);
}

BatchPipeline::BatchPipeline(const LoaderOrder& order, ChunkCache& cache, BatchSlots& ring,
                             const MakeBatchAssembler& make_assembler, const PipelineSpec& spec,
                             const PipelineSize& size, const EpochStart& start)
    : order_(order),
      cache_(cache),
      ring_(ring),
      make_assembler_(make_assembler),
      spec_(spec),
      given_out_(ring_.max_size()),
      slices_left_(ring_.max_size()),
      start_(start),
      batches_(batches_of(order, spec.batches, start, spec.streams)),
      next_batch_(start.first_batch) {
  ring_.restart();
  free_slots_.reserve(ring_.max_size());
  for (std::size_t slot = ring_.size(); slot > 0; --slot) free_slots_.push_back(slot - 1);
  plans_.push_back(std::make_shared<EpochPlan>(order_, spec_, start));
  if (spec_.keeps_chunks && !spec_.loads_ahead && !cache_.reads_some()) plans_.front()->list_first_chunks();
  loading_.reserve(spec_.max_threads);
  assemblers_.reserve(spec_.max_threads);
  resize(size);
}

BatchPipeline::~BatchPipeline() {
  for (std::jthread& thread : threads_) thread.request_stop();
  // A thread may be waiting for what does not arrive, or be about to.
  while (running_ > 0 && cache_.forget_asked()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  threads_.clear();
  cache_.forget_asked();
  for (const auto& plan : plans_) release(*plan, plan->next_slot);
}

/// New threads are parked until `resize` counts them in.
void BatchPipeline::start_threads(std::uint32_t count) {
  while (assemblers_.size() < count) assemblers_.push_back(make_assembler_());
  for (auto thread = static_cast<std::uint32_t>(threads_.size()); thread < count; ++thread)
    threads_.emplace_back([this, thread, &assembler = *assemblers_[thread]](const std::stop_token& stop) {
      ++running_;
      run(thread, assembler, stop);
      --running_;
    });
}

void BatchPipeline::resize(const PipelineSize& size) {
  const std::size_t slots_before = ring_.size();
  const auto add_slots = [&] {
    for (std::size_t slot = ring_.size(); slot > slots_before; --slot)
      free_slots_.insert(free_slots_.begin(), slot - 1);
  };
  try {
    ring_.grow(size.slots);
    start_threads(size.threads);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    add_slots();
    throw;
  }
  const std::lock_guard lock(mutex_);
  add_slots();
  size_ = size;
  work_changed_.notify_all();  // those that are to be parked, and those for which there is more room
  size_changed_.notify_all();
}

void BatchPipeline::run(std::uint32_t thread, BatchAssembler& assembler, const std::stop_token& stop) {
  leave_cpu_to_caller();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    Work work;
    if (thread >= size_.threads) {
      size_changed_.wait(lock, stop, [&] { return thread < size_.threads; });
      continue;
    }
    if (!take_work(work)) wait_for_work(thread, work, lock, stop);
    if (work.plan == nullptr) continue;
    do_work(work, assembler, lock);
  }
}

// Called under the lock, which it gives up meanwhile.
void BatchPipeline::do_work(const Work& work, BatchAssembler& assembler, std::unique_lock<std::mutex>& lock) {
  const Loading loading{work.plan->epoch, work.slot};
  std::shared_ptr<EpochPlan> planned;
  bool is_complete = false;
  lock.unlock();
  std::exception_ptr error;
  if (work.plans)
    planned = make_plan(work.plan->epoch + 1, error);
  else
    load(work, assembler);
  if (!work.plans && !work.loads) is_complete = make(work, assembler);
  lock.lock();
  if (work.plans) {
    plan_error_ = error;
    is_planning_ = planned == nullptr;
    if (planned) plans_.push_back(std::move(planned));
    work_changed_.notify_all();
    batch_ready_.notify_one();
  } else if (work.loads) {
    std::erase(loading_, loading);
  } else {
    stats_.made.add(assembler.counts());
    if (is_complete) finish(work);
  }
}

/// Makes the plan of an epoch; nothing, and an error, where it cannot be made.
std::shared_ptr<EpochPlan> BatchPipeline::make_plan(std::uint64_t epoch, std::exception_ptr& error) const {
  try {
    return std::make_shared<EpochPlan>(order_, spec_, EpochStart{.epoch = epoch});
  } catch (...) {
    error = std::current_exception();
    return nullptr;
  }
}

/// Leaves `work` without a plan where the thread is to stop or to be parked.
void BatchPipeline::wait_for_work(std::uint32_t thread, Work& work, std::unique_lock<std::mutex>& lock,
                                  const std::stop_token& stop) {
  const auto begin = Clock::now();
  work_changed_.wait(lock, stop, [&] { return thread >= size_.threads || take_work(work); });
  stats_.idle_seconds += seconds_between(begin, Clock::now());
}

// Called under the lock. Prefers what is left of a batch, then the next one if its chunks are loaded, then
// loading chunks, and takes a batch whose chunks are still loading last, because its thread can only wait.
bool BatchPipeline::take_work(Work& work) {
  if (take_slice(work)) return true;
  if (!plans_.back()->has_batches()) {
    if (order_.makes_epochs(spec_.streams)) return take_plan(work);
    plans_.push_back(
        std::make_shared<EpochPlan>(order_, spec_, EpochStart{.epoch = plans_.back()->epoch + 1}));
  }
  EpochPlan& plan =
      **std::find_if(plans_.begin(), plans_.end(), [](const auto& each) { return each->has_batches(); });
  if (makes_at_once(plan)) return take_batch(work, plan);
  if (!plan.first_chunks.empty()) {
    work = {.plan = &plan, .kept = plans_.front(), .chunk = plan.first_chunks.back(), .loads = true};
    plan.first_chunks.pop_back();
    return true;
  }
  const bool has_room = next_number_ - used_up_ < size_.slots;
  if (!spec_.loads_ahead) return has_room && take_batch(work, plan);
  const std::uint64_t end_slot = plan.slots_of(plan.next_batch).end;
  const bool lacks_chunks = plan.next_slot < end_slot;
  if (has_room && !lacks_chunks && is_loaded(plan, end_slot)) return take_batch(work, plan);
  if (wanted_chunks_ < size_.chunks_ahead || (has_room && lacks_chunks)) {
    if (take_load(work)) return true;
  }
  return has_room && !lacks_chunks && take_batch(work, plan);
}

/// Returns whether no chunk of a slot before `end_slot` is still being loaded.
bool BatchPipeline::is_loaded(const EpochPlan& plan, std::uint64_t end_slot) const {
  return std::ranges::none_of(
      loading_, [&](const Loading& each) { return each.epoch == plan.epoch && each.slot < end_slot; });
}

/// One thread makes a plan that takes time, without the lock: the caller gets the last batches meanwhile.
bool BatchPipeline::take_plan(Work& work) {
  if (is_planning_) return false;
  is_planning_ = true;
  work = {.plan = plans_.back().get(), .plans = true};
  return true;
}

/// Whether a batch is the very first, and needs few samples of each of many chunks: the threads make it
/// together from these samples, before the chunks are loaded.
bool BatchPipeline::makes_at_once(const EpochPlan& plan) const {
  constexpr std::uint64_t kManyChunks = 16;
  if (next_number_ > 0 || !cache_.reads_some()) return false;
  if (!spec_.loads_ahead) return true;
  const PositionOrder::Slots slots = plan.slots_of(plan.next_batch);
  return slots.end - slots.first >= kManyChunks;
}

bool BatchPipeline::take_batch(Work& work, EpochPlan& plan) {
  const bool at_once = makes_at_once(plan);
  const std::uint64_t number = next_number_++, batch = plan.next_batch++;
  const std::uint64_t size = plan.batches.batch(batch).size;
  const std::uint64_t share = at_once ? (size - 1) / size_.threads + 1 : size;
  const std::uint64_t slice = std::min(spec_.slice_samples, share);
  given_out(number) = {.plan = &plan,
                       .batch = batch,
                       .size = size,
                       .slice = slice,
                       .target = free_slots_.back(),
                       .sorts_batch = at_once && slice < size};
  free_slots_.pop_back();
  slices_left_[entry(number)] = (size - 1) / slice + 1;
  ring_.state(given_out(number).target).error = nullptr;
  return take_slice(work);
}

/// Takes a slice of the batch that was given out last; returns whether one was left.
bool BatchPipeline::take_slice(Work& work) {
  if (oldest_number_ == next_number_) return false;
  const std::uint64_t number = next_number_ - 1;
  GivenOut& batch = given_out(number);
  if (batch.given == batch.size) return false;
  const std::uint64_t begin = batch.given;
  batch.given += std::min(batch.slice, batch.size - begin);
  work = {.plan = batch.plan,
          .batch = batch.batch,
          .number = number,
          .begin = begin,
          .end = batch.given,
          .sorts_batch = batch.sorts_batch,
          .target = batch.target};
  // Another thread may now find work: the next slice, the following batch or its chunks.
  work_changed_.notify_one();
  return true;
}

/// Loads ahead in the order of slots, across the end of an epoch into the next one.
bool BatchPipeline::take_load(Work& work) {
  for (const auto& plan : plans_) {
    if (plan->next_slot >= plan->end_slot) continue;
    const std::uint64_t slot = plan->next_slot++;
    plan->skip_empty_slots();
    work = {
        .plan = plan.get(), .kept = plan, .chunk = plan->order->chunk_at(slot), .loads = true, .slot = slot};
    loading_.push_back({plan->epoch, slot});
    ++wanted_chunks_;
    work.begins_epoch = cache_.keeps_on_disk() && !std::exchange(plan->is_begun, true);
    cache_.want(work.chunk);
    return true;
  }
  return false;
}

/// Asks for what is needed next, and loads the chunk that is to be loaded.
void BatchPipeline::load(const Work& work, BatchAssembler& assembler) {
  try {
    if (work.begins_epoch) begin_visits(*work.plan);
    if (cache_.can_ask()) ask_ahead(work);
    if (work.loads) static_cast<void>(cache_.acquire(work.chunk, assembler.stored()));
  } catch (...) {
    // The error is thrown again by the thread that uses the chunk.
  }
}

/// Asks for the chunk that is to be loaded, and for those that are loaded after it.
void BatchPipeline::ask_ahead(const Work& work) {
  if (work.loads) cache_.ask(work.chunk);
  if (!spec_.loads_ahead) return ask_for_batches(work);
  while (work.loads && cache_.can_ask()) {
    std::uint64_t chunk = 0;
    bool is_empty = false;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find_if(plans_, [](const auto& each) {
        return std::max(each->next_asked, each->next_slot) < each->end_slot;
      });
      if (found == plans_.end()) return;
      EpochPlan& plan = **found;
      plan.next_asked = std::max(plan.next_asked, plan.next_slot);
      if (plan.next_asked >= plan.next_slot + cache_.max_asked()) return;
      chunk = plan.order->chunk_at(plan.next_asked);
      is_empty = !plan.has_samples(plan.next_asked++);
    }
    if (!is_empty) cache_.ask(chunk);
  }
}

/// Asks for the chunks of the batches that follow one, in an order without slots.
void BatchPipeline::ask_for_batches(const Work& work) {
  constexpr std::uint64_t kBatchesAhead = 2;
  if (!work.loads && work.begin > 0) return;
  const std::uint64_t first = work.loads ? 0 : work.batch + 1;
  const std::uint64_t end = std::min(work.plan->batches.batch_count(), first + kBatchesAhead);
  for (std::uint64_t batch = first; batch < end; ++batch)
    for (const std::uint64_t chunk : work.plan->chunks_of(batch))
      if (cache_.can_ask()) cache_.ask(chunk);
}

/// Tells the cache when the next epoch needs which chunk first.
void BatchPipeline::begin_visits(const EpochPlan& plan) {
  const EpochStart start{.epoch = plan.epoch + 1};
  const auto next = order_.epoch(start.epoch, streams_of(spec_.batches, start, spec_.streams));
  std::vector<std::uint64_t> visits(cache_.chunk_count(), ~std::uint64_t{0});
  for (std::uint64_t slot = next->slots_of(0, plan.position_count).end; slot > 0; --slot)
    visits[next->chunk_at(slot - 1)] = slot - 1;
  cache_.begin_epoch([visits = std::move(visits)](std::uint64_t chunk) { return visits[chunk]; });
}

/// Makes a slice, and completes the batch where it was the last one; returns whether it was.
bool BatchPipeline::make(const Work& work, BatchAssembler& assembler) {
  const BatchTask task{work.plan->epoch, *work.plan->order, work.plan->batches, work.batch,
                       work.begin,       work.end,          work.sorts_batch};
  try {
    assembler.make(task, work.target);
  } catch (...) {
    fail(work);
  }
  if (--slices_left_[entry(work.number)] != 0) return false;
  BatchSlots::State& made = ring_.state(work.target);
  if (made.error == nullptr) made.made = assembler.complete(task, work.target);
  return true;
}

/// Records an exception that is being handled; of several, the caller has the one of the first slice.
void BatchPipeline::fail(const Work& work) {
  const std::lock_guard lock(mutex_);
  std::exception_ptr& error = ring_.state(work.target).error;
  GivenOut& batch = given_out(work.number);
  if (error != nullptr && batch.failed_from < work.begin) return;
  error = std::current_exception();
  batch.failed_from = work.begin;
}

void BatchPipeline::finish(const Work& work) {
  given_out(work.number).ready = given_out(work.number).done = true;
  while (oldest_number_ < next_number_ && given_out(oldest_number_).done) ++oldest_number_;
  const EpochPlan* const oldest = oldest_number_ == next_number_ ? nullptr : given_out(oldest_number_).plan;
  // An epoch's plan is dropped when all its batches are done; its chunks are released with it.
  while (plans_.size() > 1 && plans_.front().get() != oldest && !plans_.front()->has_batches()) {
    release(*plans_.front(), plans_.front()->next_slot);
    plans_.pop_front();
  }
  EpochPlan& plan = *plans_.front();
  const std::uint64_t batch = oldest == &plan ? given_out(oldest_number_).batch : plan.next_batch;
  if (spec_.loads_ahead && batch < plan.batches.batch_count()) release(plan, plan.slots_of(batch).first);
  batch_ready_.notify_one();
  if (spec_.loads_ahead) work_changed_.notify_all();  // released chunks make room for others
}

// Releases the chunks of slots before `end_slot`, which no batch needs any more.
void BatchPipeline::release(EpochPlan& plan, std::uint64_t end_slot) {
  for (; plan.first_slot < std::min(end_slot, plan.next_slot); ++plan.first_slot) {
    if (!plan.has_samples(plan.first_slot)) continue;
    cache_.unwant(plan.order->chunk_at(plan.first_slot));
    --wanted_chunks_;
  }
}

/// Wakes threads for a freed slot, at the latest in its destructor: after the lock was released, because a
/// woken thread would otherwise only wait for it.
class BatchPipeline::RoomNotice {
 public:
  explicit RoomNotice(BatchPipeline& pipeline) : pipeline_(pipeline) {}
  RoomNotice(const RoomNotice&) = delete;
  RoomNotice& operator=(const RoomNotice&) = delete;
  ~RoomNotice() { give(); }
  void note(bool is_freed) { is_due_ = is_freed; }
  void give() {
    if (!std::exchange(is_due_, false)) return;
    // A slot is work for one thread; the chunks that it lacks are work for all.
    if (pipeline_.spec_.loads_ahead)
      pipeline_.work_changed_.notify_all();
    else
      pipeline_.work_changed_.notify_one();
  }

 private:
  BatchPipeline& pipeline_;
  bool is_due_ = false;
};

// Takes the slot back from the caller and returns the lock. A retained buffer is replaced before, outside
// the lock.
std::unique_lock<std::mutex> BatchPipeline::take_back(RoomNotice& notice) {
  const bool is_freed = ring_.take_back();
  std::unique_lock lock(mutex_);
  if (is_freed) {
    GivenOut& freed = given_out(used_up_++);
    freed.ready = false;
    free_slots_.push_back(freed.target);
  }
  notice.note(is_freed);
  return lock;
}

bool BatchPipeline::wait_for(std::chrono::milliseconds timeout) {
  RoomNotice notice(*this);
  std::unique_lock lock = take_back(notice);
  if (next_batch_ >= batches_.batch_count()) return true;
  const GivenOut& wanted = given_out(used_up_);
  if (!wanted.ready) notice.give();
  // Longer times would overflow the clock's.
  const auto time = std::min<std::chrono::milliseconds>(timeout, std::chrono::hours(24));
  return batch_ready_.wait_for(lock, time, [&] { return wanted.ready || lacks_plan(); });
}

std::optional<std::size_t> BatchPipeline::next() {
  RoomNotice notice(*this);
  std::unique_lock lock = take_back(notice);
  if (next_batch_ >= batches_.batch_count()) {
    start_ = {.epoch = start_.epoch + 1};
    batches_ = batches_of(order_, spec_.batches, start_, spec_.streams);
    next_batch_ = 0;
    return std::nullopt;
  }
  const GivenOut& wanted = given_out(used_up_);
  if (!wanted.ready) notice.give();
  batch_ready_.wait(lock, [&] { return wanted.ready || lacks_plan(); });
  if (!wanted.ready) {
    failed_ = true;
    std::rethrow_exception(plan_error_);
  }
  const BatchSlots::State& state = ring_.state(wanted.target);
  failed_ = state.error != nullptr;
  if (failed_) std::rethrow_exception(state.error);
  ring_.hand_out(wanted.target);
  handed_samples_ = state.made.samples;
  ++next_batch_;
  if (handed_samples_ > 0) ++stats_.batches;
  idle_seconds_ = stats_.idle_seconds;
  stats_.samples += state.made.samples;
  stats_.batch_bytes += state.made.bytes;
  stats_.corrupt_samples += state.made.corrupt_samples;
  return wanted.target;
}

PipelineStats BatchPipeline::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void BatchPipeline::reset_stats() {
  const std::lock_guard lock(mutex_);
  stats_ = {};
}

}  // namespace chunkhit
