//===- NpyTest.cpp - NumPy files ------------------------------------------===//

#include "TestUtils.h"
#include "attn/Runtime/TensorFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace attn;
using namespace attn::test;

/// A version-1 file, built by hand.
static std::string makeFile(const std::string &header,
                            const std::string &data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += char(header.size() & 0xff);
  file += char(header.size() >> 8);
  return file + header + data;
}

static llvm::Expected<Tensor> parse(llvm::StringRef bytes) {
  return parseNpy(llvm::MemoryBufferRef(bytes, "q.npy"));
}

template <typename T>
static std::string toBytes(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char *>(values.begin()),
                     values.size() * sizeof(T));
}

static std::string makeHeader(const std::string &descr,
                              const std::string &shape,
                              const std::string &fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran +
         ", 'shape': " + shape + ", }\n";
}

TEST(NpyTest, ReadsCOrder) {
  Tensor tensor = get(parse(makeFile(makeHeader("<f4", "(2, 3)"),
                                     toBytes<float>({1, 2, 3, 4, 5, 6}))));
  EXPECT_EQ(tensor.getDType(), DType::F32);
  EXPECT_EQ(tensor.getShape(), llvm::ArrayRef<int64_t>({2, 3}));
  EXPECT_EQ(tensor.toDoubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(NpyTest, ReadsFortranOrderAsStrides) {
  Tensor tensor = get(parse(makeFile(makeHeader("<f8", "(2, 3)", "True"),
                                     toBytes<double>({1, 4, 2, 5, 3, 6}))));
  EXPECT_EQ(tensor.getStrides(), llvm::ArrayRef<int64_t>({1, 2}));
  EXPECT_EQ(tensor.toDoubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(NpyTest, ReadsEveryDType) {
  auto read = [](const std::string &descr, const std::string &bytes) {
    Tensor tensor = get(parse(makeFile(makeHeader(descr, "(2,)"), bytes)));
    return std::pair(tensor.getDType(), tensor.toDoubles());
  };
  using Values = std::vector<double>;
  // 1 and -2 as half and as bfloat16.
  EXPECT_EQ(read("<f2", toBytes<uint16_t>({0x3c00, 0xc000})),
            std::pair(DType::F16, Values({1, -2})));
  EXPECT_EQ(read("|V2", toBytes<uint16_t>({0x3f80, 0xc000})),
            std::pair(DType::BF16, Values({1, -2})));
  EXPECT_EQ(read("<V1", toBytes<uint8_t>({0x38, 0xc0})),
            std::pair(DType::F8E4M3FN, Values({1, -2})));
  EXPECT_EQ(read("<f1", toBytes<uint8_t>({0x3c, 0xc0})),
            std::pair(DType::F8E5M2, Values({1, -2})));
  EXPECT_EQ(read("|b1", toBytes<uint8_t>({0, 7})),
            std::pair(DType::I1, Values({0, 1})));
  EXPECT_EQ(read("|i1", toBytes<int8_t>({1, -2})),
            std::pair(DType::I8, Values({1, -2})));
  EXPECT_EQ(read("<i2", toBytes<int16_t>({1, -2})),
            std::pair(DType::I16, Values({1, -2})));
  EXPECT_EQ(read("<i4", toBytes<int32_t>({1, -2})),
            std::pair(DType::I32, Values({1, -2})));
  EXPECT_EQ(read("<i8", toBytes<int64_t>({1, -2})),
            std::pair(DType::I64, Values({1, -2})));
}

TEST(NpyTest, ReadsScalarsEmptyArraysAndVersion2) {
  EXPECT_EQ(get(parse(makeFile(makeHeader("<f4", "()"), toBytes<float>({3}))))
                .getRank(),
            0);
  EXPECT_EQ(
      get(parse(makeFile(makeHeader("<f4", "(0, 3)"), ""))).getNumElements(),
      0);
  const std::string header = makeHeader("<f4", "(1,)");
  std::string file("\x93NUMPY\x02\x00", 8);
  file += char(header.size());
  file += std::string(3, '\0') + header + toBytes<float>({3});
  EXPECT_EQ(get(parse(file)).toDoubles(), std::vector<double>{3});
}

TEST(NpyTest, ErrorsNameTheFileAndTheProblem) {
  auto expectError = [](const std::string &file, const char *message) {
    const std::string error = getError(parse(file));
    EXPECT_TRUE(contains(error, message));
    EXPECT_TRUE(contains(error, "q.npy"));
  };
  const std::string one = toBytes<float>({1});
  expectError("", "not a .npy file");
  expectError("PK\x03\x04", "not a .npy file");
  expectError("\x93NUMPY\x01", "truncated in the header");
  expectError(std::string("\x93NUMPY\x09\x00\x01\x00", 10), "format version 9");
  expectError(makeFile(makeHeader("<f4", "(2,)"), one),
              "truncated: the header promises 8 bytes of data, the file "
              "holds 4");
  expectError(makeFile(makeHeader("<f4", "()"), one + one), "4 bytes too many");
  expectError(makeFile(makeHeader(">f4", "()"), one),
              "dtype '>f4' is not supported: supported are '<f2'");
  expectError(makeFile(makeHeader("<u4", "()"), one), "dtype '<u4'");
  expectError(makeFile("{'descr': [('x', '<f4')]}", one), "structured dtype");
  expectError(makeFile(makeHeader("<f4", "(-1,)"), one),
              "nonnegative integers");
  expectError(makeFile(makeHeader("<f4", "(99999999999999999999,)"), one),
              "nonnegative integers");
  expectError(makeFile(makeHeader("<f4", "(4611686018427387904, 4)"), one),
              "overflows");
  expectError(makeFile(makeHeader("<f4", "(4611686018427387904, 0)"), ""),
              "overflows");
  expectError(makeFile("{'descr': '<f4'}", one), "malformed header: needs");
  expectError(makeFile("{'descr': '<f4", one), "string without an end");
  expectError(makeFile("hello", one), "malformed header: expected '{'");
  expectError(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12),
              "header of 4294967295 bytes");
  EXPECT_TRUE(
      contains(getError(readNpy("/nonexistent/q.npy")), "/nonexistent/q.npy"));
}

TEST(NpyTest, SurvivesDamage) {
  fuzz(makeFile(makeHeader("<f4", "(2, 1)", "True"), toBytes<float>({1, 2})),
       5000, [](const std::string &bytes) {
         llvm::Expected<Tensor> tensor = parse(bytes);
         if (tensor)
           (void)tensor->toDoubles();
         else
           llvm::consumeError(tensor.takeError());
       });
}

TEST(NpyTest, WritesWhatNumPyWrites) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("attnc", "npy", path));
  llvm::FileRemover remover(path);
  uint16_t data[6] = {1, 2, 3, 4, 5, 6};
  Tensor transposed = Tensor::borrow(DType::BF16, {3, 2}, {1, 3}, data);
  ASSERT_EQ(getError(writeNpy(path, transposed)), "");

  auto buffer = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(buffer);
  std::string header = "{'descr': '|V2', 'fortran_order': False, "
                       "'shape': (3, 2), }";
  // numpy.save pads with spaces up to a newline just before a multiple of 64.
  header += std::string(128 - 10 - header.size() - 1, ' ') + '\n';
  EXPECT_EQ((*buffer)->getBuffer(),
            makeFile(header, toBytes<uint16_t>({1, 4, 2, 5, 3, 6})));
}

TEST(NpyTest, WritesTuplesOfAnyLength) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("attnc", "npy", path));
  llvm::FileRemover remover(path);
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{}, {5}, {0, 3}, {1, 2, 3, 4}}) {
    Tensor tensor = get(Tensor::allocate(DType::F64, shape));
    ASSERT_EQ(getError(writeNpy(path, tensor)), "");
    EXPECT_EQ(get(readNpy(path)).getShape(), llvm::ArrayRef(shape));
  }
}

TEST(NpyTest, LeavesNothingBehindWhereItCannotWrite) {
  const std::string path = "/nonexistent/folder/o.npy";
  Tensor tensor = get(Tensor::allocate(DType::F32, {1}));
  EXPECT_TRUE(contains(getError(writeNpy(path, tensor)), path));
  EXPECT_FALSE(llvm::sys::fs::exists(path));
}
