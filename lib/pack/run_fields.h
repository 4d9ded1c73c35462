// The fields that PackImagesOptions and PackSparseOptions share.
#pragma once

#include <string>

#include "base/throw_error.h"
#include "chunkhit/pack.h"
#include "types/fields.h"

namespace chunkhit {

/// Largest number of worker threads that can be asked for.
inline constexpr std::uint64_t kMaxThreads = 4096;

/// Shows how a run runs; its help has words of its own for what each kind of pack calls otherwise.
template <class Options, class Fields>
void show_run(Options& options, const char* output, const char* on_error, const char* max_errors,
              Fields& fields) {
  fields.group("Output");
  fields.unrecorded(Field{"output", output, "FOLDER"}, options.output, PathForm{});
  fields.group("Run");
  fields.unrecorded(Field{"on_error", on_error}, options.on_error, WordForm{});
  fields.unrecorded(Field{"max_errors", max_errors}, options.max_errors, AmountForm{});
  fields.unrecorded(Field{"threads", "Worker threads, if memory-bytes has room; all: available CPUs"},
                    options.threads, CountForm{1, kMaxThreads, "all"});
  fields.unrecorded(Field{"memory_bytes", "Memory limit of the process"}, options.memory_bytes, BytesForm{});
  // A recipe must not remove another user's pack.
  fields.not_in_recipes(Field{"force", "Delete the pack in the output first"}, options.force, SwitchForm{});
}

/// Throws usage where `bad` things are limited that end the run at the first one.
template <class Options>
void check_error_limit(const Options& options, const std::string& bad) {
  const ErrorLimit plain;
  if (options.on_error == OnError::fail &&
      (options.max_errors.count != plain.count || options.max_errors.share != plain.share))
    throw_usage("`max_errors` is for " + bad + " that are left out: give `on_error` skip");
}

}  // namespace chunkhit
