//===- Backend.cpp - Whose code computes an attention ---------------------===//

#include "attn/Compiler/Backend.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;
using mlir::attn::Variant;

static constexpr std::pair<Backend, llvm::StringLiteral> kNames[] = {
    {Backend::Auto, "auto"},   {Backend::Fused, "fused"},
    {Backend::Naive, "naive"}, {Backend::Inplace, "inplace"},
    {Backend::Math, "math"},   {Backend::Cudnn, "cudnn"}};

llvm::StringRef attn::stringifyBackend(Backend backend) {
  return llvm::find_if(kNames,
                       [&](auto &entry) { return entry.first == backend; })
      ->second;
}

llvm::Expected<Backend> attn::parseBackend(llvm::StringRef name) {
  for (auto [backend, backendName] : kNames)
    if (name == backendName)
      return backend;
  return llvm::createStringError(
      "unknown backend '" + name + "'; known are " +
      llvm::join(llvm::map_range(kNames, [](auto &e) { return e.second; }),
                 ", "));
}

llvm::ArrayRef<Backend> attn::getAllBackends() {
  static constexpr Backend kAll[] = {Backend::Naive, Backend::Inplace,
                                     Backend::Math, Backend::Fused,
                                     Backend::Cudnn};
  return kAll;
}

Backend attn::getBackend(Variant variant) {
  switch (variant) {
  case Variant::Naive:
    return Backend::Naive;
  case Variant::Inplace:
    return Backend::Inplace;
  case Variant::Math:
    return Backend::Math;
  case Variant::Fused:
    return Backend::Fused;
  }
  llvm_unreachable("unknown variant");
}

std::optional<Variant> attn::getVariant(Backend backend) {
  switch (backend) {
  case Backend::Auto:
  case Backend::Fused:
    return Variant::Fused;
  case Backend::Naive:
    return Variant::Naive;
  case Backend::Inplace:
    return Variant::Inplace;
  case Backend::Math:
    return Variant::Math;
  case Backend::Cudnn:
    return std::nullopt;
  }
  llvm_unreachable("unknown backend");
}

static thread_local std::optional<Backend> current;

BackendScope::BackendScope(Backend backend) : outer(current) {
  current = backend;
}

BackendScope::~BackendScope() { current = outer; }

std::optional<Backend> BackendScope::getCurrent() { return current; }
