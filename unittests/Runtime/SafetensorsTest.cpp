//===- SafetensorsTest.cpp - .safetensors files ---------------------------===//

#include "TestUtils.h"
#include "attn/Runtime/TensorFile.h"

using namespace attn;
using namespace attn::test;

static std::string makeFile(const std::string &header,
                            const std::string &data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char *>(&size), 8) + header + data;
}

static llvm::Expected<llvm::StringMap<Tensor>> parse(llvm::StringRef bytes) {
  return parseSafetensors(llvm::MemoryBufferRef(bytes, "in.safetensors"));
}

static const char kHeader[] =
    R"({"__metadata__": {"format": "pt"},
        "q": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [4, 8]},
        "m": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}})";
static const std::string kData("\x00\x01\x02\x00\x80\x3f\x00\xc0", 8);

TEST(SafetensorsTest, ReadsByName) {
  auto tensors = get(parse(makeFile(kHeader, kData)));
  ASSERT_EQ(tensors.size(), 2u);
  const Tensor &q = tensors.find("q")->second;
  EXPECT_EQ(q.getDType(), DType::BF16);
  EXPECT_EQ(q.getShape(), llvm::ArrayRef<int64_t>({2, 1}));
  EXPECT_EQ(q.toDoubles(), (std::vector<double>{1, -2}));
  EXPECT_EQ(tensors.find("m")->second.toDoubles(),
            (std::vector<double>{0, 1, 1, 0}));
}

TEST(SafetensorsTest, ErrorsNameTheFileAndTheProblem) {
  auto expectError = [](const std::string &file, const char *message) {
    const std::string error = getError(parse(file));
    EXPECT_TRUE(contains(error, message));
    EXPECT_TRUE(contains(error, "in.safetensors"));
  };
  auto entry = [](const std::string &text) {
    return makeFile("{\"q\": " + text + "}", std::string(8, '\0'));
  };
  expectError("abc", "truncated in the header");
  expectError(std::string(8, '\xff'), "not a .safetensors file");
  expectError(std::string("\x09\0\0\0\0\0\0\0{}", 10),
              "truncated in the header");
  expectError(makeFile("{", ""), "malformed header");
  expectError(makeFile("[]", ""), "needs an object");
  expectError(makeFile(std::string(1000000, '['), ""), "nested deeper");
  expectError(makeFile(kHeader, kData.substr(0, 6)),
              "tensor 'q': truncated: data ends at byte 8, the file holds 6");
  expectError(entry(R"({"dtype": "F8_E8M0", "shape": [8],
                        "data_offsets": [0, 8]})"),
              "dtype 'F8_E8M0' is not supported: supported are F8_E4M3");
  expectError(entry(R"({"dtype": "F32", "shape": [3],
                        "data_offsets": [0, 8]})"),
              "disagree");
  expectError(entry(R"({"dtype": "F32", "shape": [2],
                        "data_offsets": [8, 0]})"),
              "[begin, end]");
  expectError(entry(R"({"dtype": "F32", "shape": [-2],
                        "data_offsets": [0, 8]})"),
              "nonnegative");
  expectError(entry("1"), "tensor 'q': needs an object");
}

TEST(SafetensorsTest, SurvivesDamage) {
  fuzz(makeFile(kHeader, kData), 5000, [](const std::string &bytes) {
    auto tensors = parse(bytes);
    if (!tensors)
      llvm::consumeError(tensors.takeError());
  });
}
