//===- Backend.h - Whose code computes an attention -------------*- C++ -*-===//

#ifndef ATTN_COMPILER_BACKEND_H
#define ATTN_COMPILER_BACKEND_H

#include "attn/Pipelines/Pipelines.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace attn {

/// Whose code computes an attention, on whatever target. A backend that is
/// named and can't serve an operator is an error; none is ever replaced by
/// another.
enum class Backend {
  /// The fused kernel. Never a sequence that writes the scores to memory.
  Auto,
  Fused,
  Naive,
  Inplace,
  Math,
  /// NVIDIA's library, loaded when it is first asked for.
  Cudnn
};

/// "auto", "fused", ...
llvm::StringRef stringifyBackend(Backend backend);
/// The error names all.
llvm::Expected<Backend> parseBackend(llvm::StringRef name);

/// Those that compute something: all but Auto.
llvm::ArrayRef<Backend> getAllBackends();

Backend getBackend(mlir::attn::Variant variant);
/// The kernels of our own that a backend is; none of cuDNN's.
std::optional<mlir::attn::Variant> getVariant(Backend backend);

/// While it lives, kernels that this thread compiles without a backend of their
/// own get this one. Scopes nest; the innermost counts.
class BackendScope {
public:
  explicit BackendScope(Backend backend);
  ~BackendScope();
  BackendScope(const BackendScope &) = delete;
  BackendScope &operator=(const BackendScope &) = delete;

  /// Of the innermost scope of this thread; none outside of any.
  static std::optional<Backend> getCurrent();

private:
  const std::optional<Backend> outer;
};

} // namespace attn

#endif // ATTN_COMPILER_BACKEND_H
