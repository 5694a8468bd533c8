//===- Backends.cpp - Backends and reasons from C -------------------------===//

#include "Common.h"
#include "DLPack.h"
#include "attn/Compiler/Explain.h"
#include <memory>
#include <vector>

using namespace attn;
using namespace attn::capi;
using namespace attn::dlpack;

/// Of this thread, the innermost last.
static std::vector<std::unique_ptr<BackendScope>> &getScopes() {
  static thread_local std::vector<std::unique_ptr<BackendScope>> scopes;
  return scopes;
}

int attnc_push_backend(const char *backend) {
  if (!isGiven(backend, "backend"))
    return -1;
  llvm::Expected<Backend> parsed = parseBackend(backend);
  if (!parsed)
    return report(parsed.takeError());
  getScopes().push_back(std::make_unique<BackendScope>(*parsed));
  return 0;
}

int attnc_pop_backend(void) {
  if (getScopes().empty())
    return report(llvm::createStringError(
        "this thread has no backend to pop: push one first"));
  getScopes().pop_back();
  return 0;
}

/// Its sizes and strides; what it points to isn't looked at.
static llvm::Expected<Tensor> getSizes(size_t index, const void *pointer) {
  llvm::Expected<const DLTensor *> given =
      getTensor("input " + llvm::Twine(index), pointer);
  if (!given)
    return given.takeError();
  const DLTensor &tensor = **given;
  std::optional<DType> dtype = getDType(tensor.dtype);
  if (!dtype)
    return llvm::createStringError("input " + llvm::Twine(index) +
                                   " is of no type that an argument has");
  const llvm::ArrayRef<int64_t> shape(tensor.shape, tensor.rank);
  if (!tensor.strides || llvm::is_contained(shape, 0))
    return Tensor::borrow(*dtype, shape, getRowMajorStrides(shape), nullptr);
  return Tensor::borrow(*dtype, shape, {tensor.strides, shape.size()}, nullptr);
}

static llvm::Expected<std::string>
explainText(llvm::StringRef text, const attnc_options *caller,
            llvm::ArrayRef<const void *> inputs, bool asJSON) {
  llvm::Expected<KernelOptions> options = getOptions(caller);
  if (!options)
    return options.takeError();
  ExplainArguments arguments;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    llvm::Expected<Tensor> tensor = getSizes(index, input);
    if (!tensor)
      return tensor.takeError();
    arguments.inputs.push_back(std::move(*tensor));
  }
  llvm::Expected<Explanation> explanation = explain(text, *options, arguments);
  if (!explanation)
    return explanation.takeError();
  std::string result;
  llvm::raw_string_ostream os(result);
  asJSON ? writeExplanation(os, *explanation)
         : printExplanation(os, *explanation);
  return result;
}

const char *attnc_explain(const char *text, size_t length,
                          const attnc_options *options,
                          const void *const *inputs, size_t num_inputs,
                          int as_json) {
  if (!isGiven(text, "text") || (num_inputs && !isGiven(inputs, "inputs")))
    return nullptr;
  llvm::Expected<std::string> explained = explainText(
      llvm::StringRef(text, length), options, {inputs, num_inputs}, as_json);
  if (!explained) {
    keep(explained.takeError());
    return nullptr;
  }
  return (getText() = std::move(*explained)).c_str();
}
