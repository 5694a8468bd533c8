//===- Safetensors.cpp - Reading .safetensors files -----------------------===//
//
// The format: a little-endian u64 with the length of the header, a JSON header
// {name: {dtype, shape, data_offsets: [begin, end]}}, then the data, to which
// the offsets are relative.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/JSONUtils.h"
#include "attn/Runtime/TensorFile.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;

/// The limit of the reference implementation.
static constexpr uint64_t kMaxHeaderBytes = 100'000'000;

static constexpr llvm::StringLiteral kSupportedDTypes =
    "F8_E4M3, F8_E5M2, F16, BF16, F32, F64, BOOL, I8, I16, I32, I64";

static std::optional<DType> parseSafetensorsDType(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<DType>>(name)
      .Case("F8_E4M3", DType::F8E4M3FN)
      .Case("F8_E5M2", DType::F8E5M2)
      .Case("F16", DType::F16)
      .Case("BF16", DType::BF16)
      .Case("F32", DType::F32)
      .Case("F64", DType::F64)
      .Case("BOOL", DType::I1)
      .Case("I8", DType::I8)
      .Case("I16", DType::I16)
      .Case("I32", DType::I32)
      .Case("I64", DType::I64)
      .Default(std::nullopt);
}

/// `value[key]` as nonnegative integers.
static llvm::Expected<llvm::SmallVector<int64_t, 4>>
getIntegers(const llvm::json::Object &object, llvm::StringRef key) {
  const llvm::json::Array *array = object.getArray(key);
  if (!array)
    return llvm::createStringError("needs an array '" + key + "'");
  llvm::SmallVector<int64_t, 4> values;
  for (const llvm::json::Value &value : *array) {
    std::optional<int64_t> integer = value.getAsInteger();
    if (!integer || *integer < 0)
      return llvm::createStringError("'" + key +
                                     "' needs nonnegative integers");
    values.push_back(*integer);
  }
  return values;
}

/// Copies the tensor that `value` describes out of `data`.
static llvm::Expected<Tensor> readEntry(const llvm::json::Value &value,
                                        llvm::StringRef data) {
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return llvm::createStringError("needs an object");
  const std::optional<llvm::StringRef> dtypeName = object->getString("dtype");
  if (!dtypeName)
    return llvm::createStringError("needs a string 'dtype'");
  const std::optional<DType> dtype = parseSafetensorsDType(*dtypeName);
  if (!dtype)
    return llvm::createStringError("dtype '" + *dtypeName +
                                   "' is not supported: supported are " +
                                   kSupportedDTypes);
  auto shape = getIntegers(*object, "shape");
  if (!shape)
    return shape.takeError();
  auto offsets = getIntegers(*object, "data_offsets");
  if (!offsets)
    return offsets.takeError();
  if (offsets->size() != 2 || (*offsets)[0] > (*offsets)[1])
    return llvm::createStringError("'data_offsets' needs [begin, end]");
  const int64_t begin = (*offsets)[0], end = (*offsets)[1];
  if (uint64_t(end) > data.size())
    return llvm::createStringError("truncated: data ends at byte " +
                                   llvm::Twine(end) + ", the file holds " +
                                   llvm::Twine(data.size()));
  const std::optional<int64_t> bytes = getDenseBytes(*dtype, *shape);
  if (!bytes || *bytes != end - begin)
    return llvm::createStringError("shape and 'data_offsets' disagree");

  return Tensor::copyOf(*dtype, *shape, data.slice(begin, end));
}

static llvm::Expected<llvm::StringMap<Tensor>>
parseSafetensorsBytes(llvm::StringRef bytes) {
  if (bytes.size() < 8)
    return llvm::createStringError("truncated in the header");
  const uint64_t headerBytes = llvm::support::endian::read64le(bytes.data());
  bytes = bytes.drop_front(8);
  if (headerBytes > kMaxHeaderBytes)
    return llvm::createStringError("header of " + llvm::Twine(headerBytes) +
                                   " bytes: not a .safetensors file");
  if (headerBytes > bytes.size())
    return llvm::createStringError("truncated in the header");
  auto header = parseUntrustedJSON(bytes.take_front(headerBytes));
  if (!header)
    return llvm::createStringError("malformed header: " +
                                   llvm::toString(header.takeError()));
  const llvm::json::Object *entries = header->getAsObject();
  if (!entries)
    return llvm::createStringError("malformed header: needs an object");

  llvm::StringMap<Tensor> tensors;
  for (const auto &[key, value] : *entries) {
    if (key == "__metadata__")
      continue;
    llvm::Expected<Tensor> tensor =
        readEntry(value, bytes.drop_front(headerBytes));
    if (!tensor)
      return llvm::createStringError(
          "tensor '" + key.str() + "': " + llvm::toString(tensor.takeError()));
    tensors.try_emplace(key.str(), std::move(*tensor));
  }
  return tensors;
}

llvm::Expected<llvm::StringMap<Tensor>>
attn::parseSafetensors(llvm::MemoryBufferRef buffer) {
  auto tensors = parseSafetensorsBytes(buffer.getBuffer());
  if (!tensors)
    return llvm::createFileError(buffer.getBufferIdentifier(),
                                 tensors.takeError());
  return tensors;
}

llvm::Expected<llvm::StringMap<Tensor>>
attn::readSafetensors(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return llvm::createFileError(path, buffer.getError());
  return parseSafetensors(**buffer);
}
