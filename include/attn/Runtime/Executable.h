//===- Executable.h - A manifest and its code, ready to run -----*- C++ -*-===//

#ifndef ATTN_RUNTIME_EXECUTABLE_H
#define ATTN_RUNTIME_EXECUTABLE_H

#include "attn/Runtime/BoundPlan.h"
#include "attn/Runtime/Device.h"
#include "attn/Runtime/Manifest.h"
#include "attn/Runtime/Tensor.h"

namespace attn {

class Invocation;

/// Makes the GPU code of an entry point's kernels when it is first needed, in
/// parts that are loaded by themselves. Everything may be called from any
/// thread.
class KernelSource {
public:
  virtual ~KernelSource();

  virtual unsigned getNumParts() const = 0;
  /// The part that holds Manifest::kernels[kernel].
  virtual unsigned getPart(unsigned kernel) const = 0;
  /// Makes those of `parts` that aren't made yet, and keeps what is new.
  virtual llvm::Error make(llvm::ArrayRef<unsigned> parts) = 0;
  /// PTX or a cubin, of a part that is made.
  virtual std::string getImage(unsigned part) const = 0;
  /// Makes the image of a part anew, since the device refuses the one that it
  /// has; it is kept by the next make(). Gives `refusal` back where no other
  /// way is left.
  virtual llvm::Error remake(unsigned part, llvm::Error refusal) = 0;
};

/// A loaded entry point. The device must outlive it.
class Executable {
public:
  static llvm::Expected<std::unique_ptr<Executable>>
  create(Manifest manifest, const KernelCode &code, Device &device);

  /// Its kernels are made and loaded by prepare().
  static llvm::Expected<std::unique_ptr<Executable>>
  createLazily(Manifest manifest, std::shared_ptr<KernelSource> source,
               Device &device);

  ~Executable();

  /// Loads what isn't loaded yet of the kernels with such indices in the
  /// manifest. Safe to call from any thread, also while a stream is captured.
  llvm::Error prepare(llvm::ArrayRef<unsigned> kernels) const;
  /// The kernels that `plan` launches.
  llvm::Error prepare(const BoundPlan &plan) const;
  /// All kernels.
  llvm::Error prepare() const;

  /// Binds one tensor an argument of the manifest, in order; scalars are rank-0
  /// tensors. Refuses what the manifest or its checks don't allow, or with an
  /// UnsupportedLayout what the kernels can't read, then gets device memory and
  /// uploads the inputs. The result must not outlive this.
  llvm::Expected<std::unique_ptr<Invocation>>
  bind(llvm::ArrayRef<Tensor> arguments) const;

  /// One forward: binds, runs, and downloads the outputs into their tensors.
  llvm::Error run(llvm::ArrayRef<Tensor> arguments) const;

  const Manifest &getManifest() const { return manifest; }
  Device &getDevice() const { return device; }

  /// The kernel of Manifest::kernels[index], which must be prepared, as those
  /// of an Invocation are.
  LoadedKernel &getKernel(unsigned index) const;

private:
  struct Loaded;

  Executable(Manifest manifest, std::shared_ptr<KernelSource> source,
             unsigned numParts, Device &device);

  llvm::Error addModule(std::unique_ptr<LoadedModule> module,
                        unsigned part) const;
  llvm::Error loadPart(unsigned part) const;

  Manifest manifest;
  /// Null if all is loaded from the start.
  std::shared_ptr<KernelSource> source;
  Device &device;
  std::unique_ptr<Loaded> loaded;
};

struct ProfileOptions {
  int64_t repeat = 20;
  int64_t warmup = 3;
  /// Each forward takes other copies of the arguments, together more than twice
  /// the last-level cache, so that nothing is found there by chance.
  bool rotateArguments = true;
};

/// Microseconds, one sample a repetition.
struct Profile {
  /// Parallel to Invocation::getSteps().
  std::vector<std::vector<double>> stepSamples;
  /// Of whole forwards, in which no step is timed by itself.
  std::vector<double> totalSamples;
  /// Whether forwards may have found their inputs in the cache.
  bool isWarm;
};

/// A plan with all its sizes known and its memory in place: running it again
/// costs only the launches.
class Invocation {
public:
  /// Runs one forward and waits for it.
  llvm::Error run();

  /// Fills the outputs with 0xFF bytes (NaN in every float format), so that
  /// what no kernel writes is seen.
  llvm::Error poisonOutputs();

  /// Copies the outputs into the tensors that were bound.
  llvm::Error downloadOutputs();

  llvm::Expected<Profile> profile(const ProfileOptions &options);

  /// Makes the copies of the arguments that `options` asks for, runs the
  /// forwards that warm up, and waits for them.
  llvm::Error warmUp(const ProfileOptions &options);
  /// Enqueues forwards on one copy of the arguments after the other.
  llvm::Error enqueueForwards(int64_t count);

  const Executable &getExecutable() const { return executable; }

  /// The steps that take time, in order; launches of an empty grid don't.
  llvm::ArrayRef<TimedStep> getSteps() const { return plan.steps; }
  int64_t getMinBytes() const { return plan.minBytes; }
  int64_t getMaxIntermediateBytes() const { return plan.maxIntermediateBytes; }

  /// Names of the tensors whose base is not aligned to 16 bytes in memory, so
  /// that kernels can't use their widest loads.
  std::vector<std::string> getMisalignedArguments() const;

private:
  friend class Executable;

  /// One copy of all tensor arguments on the device.
  struct ArgumentSet {
    DeviceMemory memory;
    /// By argument; 0 for scalars.
    std::vector<DeviceAddress> addresses;
    /// By step; the values of a launch's parameters.
    std::vector<std::vector<uint64_t>> parameters;
    /// By step; the tensor maps of a launch, in the order of its parameters.
    std::vector<std::vector<EncodedTensorMap>> tensorMaps;
  };

  Invocation(const Executable &executable, llvm::ArrayRef<Tensor> arguments,
             BoundPlan plan)
      : executable(executable), arguments(arguments.begin(), arguments.end()),
        plan(std::move(plan)) {}

  uint64_t getValue(const BoundPlan::Parameter &parameter,
                    const ArgumentSet &set) const;
  DeviceAddress resolve(const BoundPlan::BufferRef &buffer,
                        const ArgumentSet &set) const;
  llvm::Error addArgumentSet();
  llvm::Expected<ArgumentSet> placeArguments() const;
  llvm::Error setParameters(ArgumentSet &set) const;
  llvm::Error enqueueStep(size_t index, ArgumentSet &set);
  llvm::Error enqueueForward(ArgumentSet &set);
  llvm::Error prepareArgumentSets(const ProfileOptions &options);
  int64_t getArgumentSetBytes() const;
  llvm::Error profileSteps(const ProfileOptions &options, Profile &profile);
  llvm::Error profileForwards(const ProfileOptions &options, Profile &profile);

  const Executable &executable;
  std::vector<Tensor> arguments;
  BoundPlan plan;
  /// All allocations of the plan.
  DeviceMemory arena;
  std::vector<ArgumentSet> argumentSets;
};

} // namespace attn

#endif // ATTN_RUNTIME_EXECUTABLE_H
