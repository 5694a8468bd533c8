//===- Profiler.cpp - Profiles from C -------------------------------------===//

#include "attn/Profile/Profiler.h"
#include "Common.h"
#include "attn/Profile/Html.h"
#include "attn/Profile/Trace.h"

using namespace attn;
using namespace attn::capi;

namespace {
/// What has begun and not ended.
enum class State { Idle, Region, Phase };
} // namespace

struct attnc_profiler {
  explicit attnc_profiler(std::shared_ptr<Device> device)
      : device(std::move(device)), profiler(*this->device) {}

  const std::shared_ptr<Device> device;
  Profiler profiler;
  State state = State::Idle;
  ProfileFile file;
  bool knowsEnvironment = false;
  std::string text;
};

static llvm::Expected<attnc_profiler *> create(const attnc_options *caller) {
  llvm::Expected<KernelOptions> options = getOptions(caller);
  if (!options)
    return options.takeError();
  llvm::Expected<std::shared_ptr<Device>> device = getSharedDevice(*options);
  if (!device)
    return device.takeError();
  auto profiler = std::make_unique<attnc_profiler>(std::move(*device));
  if (llvm::Error error = profiler->profiler.checkSeesAll())
    return std::move(error);
  return profiler.release();
}

attnc_profiler *attnc_profiler_create(const attnc_options *options) {
  llvm::Expected<attnc_profiler *> profiler = create(options);
  if (profiler)
    return *profiler;
  keep(profiler.takeError());
  return nullptr;
}

void attnc_profiler_release(attnc_profiler *profiler) { delete profiler; }

int attnc_profiler_set_command(attnc_profiler *profiler, const char *command) {
  if (!isGiven(profiler, "profiler") || !isGiven(command, "command"))
    return -1;
  profiler->file.command = command;
  return 0;
}

int attnc_profiler_begin(attnc_profiler *profiler, const char *name) {
  if (!isGiven(profiler, "profiler") || !isGiven(name, "name"))
    return -1;
  if (profiler->state != State::Idle)
    return report(llvm::createStringError("a region has begun: end it first"));
  if (llvm::Error error =
          profiler->profiler.begin(name, getBestTarget(*profiler->device)))
    return report(std::move(error));
  profiler->state = State::Region;
  return 0;
}

int attnc_profiler_begin_phase(attnc_profiler *profiler, const char *name) {
  if (!isGiven(profiler, "profiler") || !isGiven(name, "name"))
    return -1;
  if (profiler->state != State::Region)
    return report(llvm::createStringError(
        "a phase begins in a region, behind the end of the one before"));
  profiler->state = State::Phase;
  profiler->profiler.beginPhase(name);
  return 0;
}

int attnc_profiler_end_phase(attnc_profiler *profiler, int64_t calls) {
  if (!isGiven(profiler, "profiler"))
    return -1;
  if (profiler->state != State::Phase)
    return report(llvm::createStringError("no phase has begun"));
  if (calls < 1)
    return report(llvm::createStringError("a phase has one call or more"));
  profiler->state = State::Region;
  return report(profiler->profiler.endPhase(calls));
}

int attnc_profiler_end(attnc_profiler *profiler) {
  if (!isGiven(profiler, "profiler"))
    return -1;
  if (profiler->state != State::Region)
    return report(llvm::createStringError(
        profiler->state == State::Idle ? "no region has begun"
                                       : "a phase has begun: end it first"));
  profiler->state = State::Idle;
  llvm::Expected<RegionProfile> region = profiler->profiler.end();
  if (!region)
    return report(region.takeError());
  profiler->file.regions.push_back(std::move(*region));
  return 0;
}

/// Measures the device's rates the first time; clocks are those of the regions.
static llvm::Error describeEnvironment(attnc_profiler &profiler) {
  if (profiler.knowsEnvironment)
    return llvm::Error::success();
  llvm::Expected<ProfileEnvironment> environment =
      profiler.profiler.describeEnvironment();
  if (!environment)
    return environment.takeError();
  profiler.file.environment = std::move(*environment);
  profiler.file.environment.versions["attnc"] = attnc_version();
  profiler.knowsEnvironment = true;
  return llvm::Error::success();
}

const char *attnc_profiler_save(attnc_profiler *profiler) {
  if (!isGiven(profiler, "profiler"))
    return nullptr;
  if (llvm::Error error = describeEnvironment(*profiler)) {
    keep(std::move(error));
    return nullptr;
  }
  profiler->text.clear();
  llvm::raw_string_ostream os(profiler->text);
  writeProfile(os, profiler->file);
  return profiler->text.c_str();
}

//===----------------------------------------------------------------------===//
// Saved profiles
//===----------------------------------------------------------------------===//

namespace {

/// A saved profile, what is guessed about it, and the layers of the model.
struct GuessedProfile {
  ProfileFile file;
  std::vector<Expectation> expectations;
  int64_t layers;
};

} // namespace

static llvm::Expected<GuessedProfile>
parse(llvm::StringRef profile, const char *expect, int64_t layers) {
  if (layers < 0)
    return llvm::createStringError("layers is " + llvm::Twine(layers) +
                                   "; a model has 1 or more, 0 is for none");
  llvm::Expected<ProfileFile> file = parseProfile(profile);
  if (!file)
    return file.takeError();
  GuessedProfile parsed = {std::move(*file), {}, layers};
  if (!expect)
    return parsed;
  auto expectations = parseExpectations(expect);
  if (!expectations)
    return expectations.takeError();
  parsed.expectations = std::move(*expectations);
  if (llvm::Error error =
          checkRegionNames(parsed.expectations, parsed.file.getRegionNames()))
    return std::move(error);
  return parsed;
}

static PrintOptions getOptions(const GuessedProfile &profile) {
  PrintOptions options;
  options.expectations = profile.expectations;
  options.layers = profile.layers;
  return options;
}

const char *attnc_profile_show(const char *profile, size_t length,
                               const char *expect, int64_t layers,
                               int *all_right) {
  if (!isGiven(profile, "profile"))
    return nullptr;
  llvm::Expected<GuessedProfile> parsed =
      parse(llvm::StringRef(profile, length), expect, layers);
  if (!parsed) {
    keep(parsed.takeError());
    return nullptr;
  }
  std::string &text = getText();
  llvm::raw_string_ostream os(text);
  const bool allRight = printProfile(os, parsed->file, getOptions(*parsed));
  if (all_right)
    *all_right = allRight;
  return text.c_str();
}

const char *attnc_profile_report(const char *profile, size_t length,
                                 const char *expect, int64_t layers) {
  if (!isGiven(profile, "profile"))
    return nullptr;
  llvm::Expected<GuessedProfile> parsed =
      parse(llvm::StringRef(profile, length), expect, layers);
  if (!parsed) {
    keep(parsed.takeError());
    return nullptr;
  }
  if (llvm::Error error = checkCanWriteHtml()) {
    keep(std::move(error));
    return nullptr;
  }
  std::string &text = getText();
  llvm::raw_string_ostream os(text);
  writeHtmlReport(os, parsed->file, getOptions(*parsed));
  return text.c_str();
}

const char *attnc_profile_trace(const char *profile, size_t length) {
  if (!isGiven(profile, "profile"))
    return nullptr;
  llvm::Expected<ProfileFile> file =
      parseProfile(llvm::StringRef(profile, length));
  if (!file) {
    keep(file.takeError());
    return nullptr;
  }
  std::string &text = getText();
  llvm::raw_string_ostream os(text);
  writeTrace(os, *file);
  return text.c_str();
}
