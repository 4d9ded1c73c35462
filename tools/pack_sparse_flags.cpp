#include "pack_sparse_flags.h"

#include "base/throw_error.h"
#include "cli.h"
#include "pack/ratings/sparse_fields.h"
#include "ratings/rating_packs.h"

namespace chunkhit {
namespace {

void add_files(FlagGroup& group, const std::string& flag, std::vector<std::string>& files,
               const std::string& words) {
  group.add(flag, "FILE", files, words)->default_str("")->allow_extra_args(false);
}

/// Returns the files without empty names, which a recipe has for an empty list.
std::vector<std::string> named(std::vector<std::string> files) {
  std::erase(files, "");
  return files;
}

}  // namespace

void add_pack_sparse_flags(CLI::App& app, PackSparseFlags& flags) {
  app.add_option("INPUT", flags.inputs, "Rating files, all of one format, or folders of packs; - reads stdin")
      ->option_text("...");
  flags.fields.add(PackSparseSpec());
  FlagGroup ratings(app, "Ratings");
  ratings
      .add("--preset", "vae-cf", flags.preset,
           "Mult-VAE paper: > 3.5 is 1, min-user 5, 10,000 users each held out")
      ->check(one_of({"", "vae-cf"}));
  FlagGroup split(app, "Split");
  add_files(split, "--train-file", flags.train_files,
            "given: training ratings, instead of INPUT; repeatable");
  add_files(split, "--validation-file", flags.validation_files, "given: validation ratings; repeatable");
  add_files(split, "--test-file", flags.test_files, "given: test ratings; repeatable");
  flags.fields.add(PackSparseOptions());
  FlagGroup group(app, "Run");
  add_progress_flag(group, flags.progress);
  group
      .add_switch("--count-items", flags.count_items,
                  "Instead of packing, write the items to the file -o: --reuse-ids of parts")
      ->configurable(false);
  group.add_switch("--dry-run", flags.dry_run, "Report what would be packed, write nothing; needs no -o")
      ->configurable(false);
  add_config_flags(app, group, flags.save_config);
}

PackSparseSpec pack_sparse_spec(PackSparseFlags& flags) {
  PackSparseSpec spec;
  RatingSplitSpec& split = spec.packs.split;
  if (!flags.preset.empty()) {
    spec.packs = vae_cf_spec();
    if (flags.fields.is_given("validation_users")) split.validation = {};
    if (flags.fields.is_given("test_users")) split.test = {};
  }
  flags.fields.read(spec);
  flags.fields.set_defaults(spec);
  split.files = {named(flags.train_files).size(), named(flags.validation_files).size(),
                 named(flags.test_files).size()};
  if (split.files.count() == 0) return spec;
  if (split.split_by != SplitKind::none && split.split_by != SplitKind::given)
    throw_usage("--train-file, --validation-file, --test-file: are a split of their own, found --split-by " +
                name_of(split.split_by));
  split.split_by = SplitKind::given;
  return spec;
}

PackSparseOptions pack_sparse_options(const PackSparseFlags& flags) {
  PackSparseOptions options;
  flags.fields.read(options);
  options.inputs = named(flags.inputs);
  for (const auto* given : {&flags.train_files, &flags.validation_files, &flags.test_files}) {
    const std::vector<std::string> files = named(*given);
    if (!files.empty() && !named(flags.inputs).empty())
      throw_usage("INPUT: found " + flags.inputs[0] +
                  " beside a split given as files; give it as --train-file");
    options.inputs.insert(options.inputs.end(), files.begin(), files.end());
  }
  return options;
}

}  // namespace chunkhit
