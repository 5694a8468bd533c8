//===- Npy.cpp - Reading and writing NumPy arrays -------------------------===//
//
// The format is NEP 1: magic, version, header length, a Python dict literal
// with 'descr', 'fortran_order' and 'shape', then the data.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/TensorFile.h"
#include "attn/Runtime/WholeFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;

static constexpr llvm::StringLiteral kMagic("\x93NUMPY");

/// NumPy itself refuses headers above 10000 characters unless told otherwise.
static constexpr uint64_t kMaxHeaderBytes = 1 << 16;

static constexpr llvm::StringLiteral kSupportedDescrs =
    "'<f2', '<f4', '<f8', '|b1', '|i1', '<i2', '<i4', '<i8', and as ml_dtypes "
    "writes them '|V2' (bf16), '|V1' (f8E4M3FN) and '<f1' (f8E5M2)";

namespace {

struct Header {
  std::optional<DType> dtype;
  std::optional<bool> fortranOrder;
  std::optional<llvm::SmallVector<int64_t, 4>> shape;
};

/// Parses the dict literal of a header.
class HeaderParser {
public:
  explicit HeaderParser(llvm::StringRef text) : rest(text) {}

  llvm::Expected<Header> parse();

private:
  bool consume(llvm::StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }
  llvm::Error expect(llvm::StringRef token) {
    if (consume(token))
      return llvm::Error::success();
    return llvm::createStringError("malformed header: expected '" + token +
                                   "' before '" + rest.take_front(16) + "'");
  }
  llvm::Expected<llvm::StringRef> parseString();
  llvm::Error parseField(llvm::StringRef key, Header &header);
  llvm::Error parseDescr(Header &header);
  llvm::Error parseShape(Header &header);

  llvm::StringRef rest;
};

} // namespace

llvm::Expected<llvm::StringRef> HeaderParser::parseString() {
  const bool isDouble = rest.ltrim().starts_with("\"");
  const llvm::StringRef quote = isDouble ? "\"" : "'";
  if (llvm::Error error = expect(quote))
    return std::move(error);
  const size_t end = rest.find(quote);
  if (end == llvm::StringRef::npos)
    return llvm::createStringError("malformed header: string without an end");
  const llvm::StringRef value = rest.take_front(end);
  rest = rest.drop_front(end + 1);
  return value;
}

llvm::Error HeaderParser::parseDescr(Header &header) {
  if (rest.ltrim().starts_with("["))
    return llvm::createStringError(
        "structured dtype: supported are the plain dtypes " + kSupportedDescrs);
  llvm::Expected<llvm::StringRef> descr = parseString();
  if (!descr)
    return descr.takeError();
  header.dtype = llvm::StringSwitch<std::optional<DType>>(*descr)
                     .Cases({"<f2", "=f2"}, DType::F16)
                     .Cases({"|V2", "<V2"}, DType::BF16)
                     .Cases({"|V1", "<V1"}, DType::F8E4M3FN)
                     .Cases({"|f1", "<f1"}, DType::F8E5M2)
                     .Cases({"<f4", "=f4"}, DType::F32)
                     .Cases({"<f8", "=f8"}, DType::F64)
                     .Cases({"|b1", "?"}, DType::I1)
                     .Cases({"|i1", "<i1"}, DType::I8)
                     .Cases({"<i2", "=i2"}, DType::I16)
                     .Cases({"<i4", "=i4"}, DType::I32)
                     .Cases({"<i8", "=i8"}, DType::I64)
                     .Default(std::nullopt);
  if (!header.dtype)
    return llvm::createStringError("dtype '" + *descr +
                                   "' is not supported: supported are " +
                                   kSupportedDescrs);
  return llvm::Error::success();
}

llvm::Error HeaderParser::parseShape(Header &header) {
  if (llvm::Error error = expect("("))
    return error;
  header.shape.emplace();
  while (!consume(")")) {
    int64_t size;
    rest = rest.ltrim();
    if (rest.consumeInteger(10, size) || size < 0)
      return llvm::createStringError(
          "malformed header: the shape needs nonnegative integers");
    header.shape->push_back(size);
    if (consume(","))
      continue;
    if (llvm::Error error = expect(")"))
      return error;
    break;
  }
  return llvm::Error::success();
}

llvm::Error HeaderParser::parseField(llvm::StringRef key, Header &header) {
  if (key == "descr")
    return parseDescr(header);
  if (key == "shape")
    return parseShape(header);
  if (key != "fortran_order")
    return llvm::createStringError("malformed header: unknown key '" + key +
                                   "'");
  if (consume("True")) {
    header.fortranOrder = true;
    return llvm::Error::success();
  }
  header.fortranOrder = false;
  return expect("False");
}

llvm::Expected<Header> HeaderParser::parse() {
  Header header;
  if (llvm::Error error = expect("{"))
    return std::move(error);
  while (!consume("}")) {
    llvm::Expected<llvm::StringRef> key = parseString();
    if (!key)
      return key.takeError();
    if (llvm::Error error = expect(":"))
      return std::move(error);
    if (llvm::Error error = parseField(*key, header))
      return std::move(error);
    if (consume(","))
      continue;
    if (llvm::Error error = expect("}"))
      return std::move(error);
    break;
  }
  if (!header.dtype || !header.fortranOrder || !header.shape)
    return llvm::createStringError(
        "malformed header: needs 'descr', 'fortran_order' and 'shape'");
  return header;
}

/// Splits `bytes` into the header text and the data.
static llvm::Expected<std::pair<llvm::StringRef, llvm::StringRef>>
splitFile(llvm::StringRef bytes) {
  if (!bytes.consume_front(kMagic))
    return llvm::createStringError("not a .npy file (wrong magic)");
  if (bytes.size() < 4)
    return llvm::createStringError("truncated in the header");
  const int version = bytes[0];
  if (version < 1 || version > 3)
    return llvm::createStringError("format version " + llvm::Twine(version) +
                                   " is not supported: supported are 1 to 3");
  const unsigned lengthBytes = version == 1 ? 2 : 4;
  bytes = bytes.drop_front(2);
  if (bytes.size() < lengthBytes)
    return llvm::createStringError("truncated in the header");
  const uint64_t headerBytes =
      version == 1 ? llvm::support::endian::read16le(bytes.data())
                   : llvm::support::endian::read32le(bytes.data());
  bytes = bytes.drop_front(lengthBytes);
  if (headerBytes > kMaxHeaderBytes)
    return llvm::createStringError(
        "header of " + llvm::Twine(headerBytes) + " bytes; at most " +
        llvm::Twine(kMaxHeaderBytes) + " are accepted");
  if (bytes.size() < headerBytes)
    return llvm::createStringError("truncated in the header");
  return std::pair(bytes.take_front(headerBytes),
                   bytes.drop_front(headerBytes));
}

static llvm::Expected<Tensor> parseNpyBytes(llvm::StringRef bytes) {
  auto parts = splitFile(bytes);
  if (!parts)
    return parts.takeError();
  auto [text, data] = *parts;
  llvm::Expected<Header> header = HeaderParser(text).parse();
  if (!header)
    return header.takeError();

  // Before allocating: a header may claim any size.
  const std::optional<int64_t> size =
      getDenseBytes(*header->dtype, *header->shape);
  if (!size)
    return llvm::createStringError("the size of the array overflows 64 bits");
  if (uint64_t(*size) > data.size())
    return llvm::createStringError(
        "truncated: the header promises " + llvm::Twine(*size) +
        " bytes of data, the file holds " + llvm::Twine(data.size()));
  if (uint64_t(*size) < data.size())
    return llvm::createStringError(llvm::Twine(data.size() - *size) +
                                   " bytes too many after the data");

  llvm::Expected<Tensor> tensor =
      Tensor::copyOf(*header->dtype, *header->shape, data);
  if (!tensor)
    return tensor;
  if (!*header->fortranOrder)
    return tensor;
  llvm::SmallVector<int64_t, 4> reversed(llvm::reverse(*header->shape));
  llvm::SmallVector<int64_t, 4> strides = getRowMajorStrides(reversed);
  std::reverse(strides.begin(), strides.end());
  return tensor->withView(*header->shape, strides);
}

llvm::Expected<Tensor> attn::parseNpy(llvm::MemoryBufferRef buffer) {
  llvm::Expected<Tensor> tensor = parseNpyBytes(buffer.getBuffer());
  if (!tensor)
    return llvm::createFileError(buffer.getBufferIdentifier(),
                                 tensor.takeError());
  return tensor;
}

llvm::Expected<Tensor> attn::readNpy(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return llvm::createFileError(path, buffer.getError());
  return parseNpy(**buffer);
}

static llvm::StringRef getDescr(DType dtype) {
  switch (dtype) {
  case DType::F8E4M3FN:
    return "|V1";
  case DType::F8E5M2:
    return "<f1";
  case DType::F16:
    return "<f2";
  case DType::BF16:
    return "|V2";
  case DType::F32:
    return "<f4";
  case DType::F64:
    return "<f8";
  case DType::I1:
    return "|b1";
  case DType::I8:
    return "|i1";
  case DType::I16:
    return "<i2";
  case DType::I32:
    return "<i4";
  case DType::I64:
    return "<i8";
  }
  llvm_unreachable("unknown dtype");
}

/// Magic, version 1.0, and the header, padded so that the data starts at a
/// multiple of 64.
static std::string makeHeader(const Tensor &tensor) {
  std::string dict;
  llvm::raw_string_ostream os(dict);
  os << "{'descr': '" << getDescr(tensor.getDType())
     << "', 'fortran_order': False, 'shape': (";
  llvm::interleaveComma(tensor.getShape(), os);
  os << (tensor.getRank() == 1 ? ",), }" : "), }");

  const size_t prefix = kMagic.size() + 2 + 2;
  dict.resize(llvm::alignTo(prefix + dict.size() + 1, 64) - prefix - 1, ' ');
  dict += '\n';
  char length[2];
  llvm::support::endian::write16le(length, dict.size());
  return (kMagic + llvm::StringRef("\x01\x00", 2) + llvm::StringRef(length, 2) +
          dict)
      .str();
}

llvm::Error attn::writeNpy(llvm::StringRef path, const Tensor &tensor) {
  llvm::Expected<Tensor> dense = tensor.toRowMajor();
  if (!dense)
    return dense.takeError();
  return writeWholeFile(path, [&](llvm::raw_ostream &os) {
    os << makeHeader(*dense);
    os.write(static_cast<const char *>(dense->getData()),
             dense->getFootprintBytes());
  });
}
