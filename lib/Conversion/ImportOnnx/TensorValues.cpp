//===- TensorValues.cpp - The values of ONNX tensors ----------------------===//

#include "TensorValues.h"
#include "AttentionNode.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using ::attnc::onnx::TensorProto;

/// Initializers become text.
static constexpr int64_t kMaxBytes = int64_t(64) << 20;

/// The little-endian bytes of the values in a field of numbers.
template <typename T, typename Field>
static std::string getBytes(const Field &field) {
  std::string bytes(field.size() * sizeof(T), '\0');
  char *out = bytes.data();
  for (auto value : field) {
    llvm::support::endian::write(out, static_cast<T>(value),
                                 llvm::endianness::little);
    out += sizeof(T);
  }
  return bytes;
}

/// As raw_data holds them, whichever field the tensor uses.
static std::string getBytes(const TensorProto &tensor) {
  if (tensor.has_raw_data())
    return tensor.raw_data();
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    return getBytes<float>(tensor.float_data());
  case TensorProto::INT64:
    return getBytes<int64_t>(tensor.int64_data());
  case TensorProto::BOOL:
    return getBytes<uint8_t>(tensor.int32_data());
  default:
    return getBytes<uint16_t>(tensor.int32_data());
  }
}

FailureOr<DenseElementsAttr>
attn::readTensor(Location loc, const TensorProto &tensor, Type type) {
  auto shaped = cast<ShapedType>(type);
  auto tensorType =
      RankedTensorType::get(shaped.getShape(), shaped.getElementType());
  auto error = [&] {
    return emitError(loc) << "initializer '" << tensor.name() << "' ";
  };
  if (tensor.data_location() == TensorProto::EXTERNAL)
    return error() << "has its data in another file; load the model with "
                      "onnx.load and save it in one";
  int64_t elementBytes = llvm::divideCeil(shaped.getElementTypeBitWidth(), 8),
          bytes;
  int64_t count = 1;
  for (int64_t size : shaped.getShape())
    if (llvm::MulOverflow(count, size, count))
      count = kMaxBytes + 1;
  if (count > kMaxBytes || (bytes = count * elementBytes) > kMaxBytes)
    return error() << "is larger than " << kMaxBytes
                   << " bytes; make it an input of the model";
  std::string data = getBytes(tensor);
  if (static_cast<int64_t>(data.size()) != bytes)
    return error() << "has " << data.size() << " bytes of data, not the "
                   << bytes << " of its shape";
  if (shaped.getElementType().isInteger(1))
    return DenseElementsAttr::get(
        tensorType, llvm::map_to_vector(data, [](char c) { return c != 0; }));
  return DenseElementsAttr::getFromRawBuffer(tensorType,
                                             ArrayRef(data.data(), bytes));
}
