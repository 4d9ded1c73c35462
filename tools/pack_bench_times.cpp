#include "pack_bench_times.h"

#include <algorithm>
#include <cstddef>

namespace chunkhit {
namespace {

double of_its_seconds(double amount, const EpochTimes& times) {
  return times.seconds > 0 ? amount / times.seconds : 0;
}

}  // namespace

EpochTimes sum_of(const std::vector<EpochTimes>& epochs) {
  EpochTimes sum;
  if (!epochs.empty()) sum.first_batch_seconds = epochs.front().first_batch_seconds;
  for (const EpochTimes& epoch : epochs) {
    sum.samples += epoch.samples;
    sum.ratings += epoch.ratings;
    sum.bytes += epoch.bytes;
    sum.seconds += epoch.seconds;
    sum.wait_seconds += epoch.wait_seconds;
    sum.step_seconds += epoch.step_seconds;
    sum.batch_seconds.insert(sum.batch_seconds.end(), epoch.batch_seconds.begin(), epoch.batch_seconds.end());
  }
  return sum;
}

double samples_per_second(const EpochTimes& times) {
  return of_its_seconds(static_cast<double>(times.samples), times);
}

double ratings_per_second(const EpochTimes& times) {
  return of_its_seconds(static_cast<double>(times.ratings), times);
}

double bytes_per_second(const EpochTimes& times) {
  return of_its_seconds(static_cast<double>(times.bytes), times);
}

double wait_fraction(const EpochTimes& times) { return of_its_seconds(times.wait_seconds, times); }

double utilization(const EpochTimes& times) { return of_its_seconds(times.step_seconds, times); }

double batch_seconds_median(const EpochTimes& times) {
  std::vector<double> seconds = times.batch_seconds;
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace chunkhit
