//===- MachineCode.cpp - Which unit a kernel multiplies with --------------===//

#include "attn/Profile/MachineCode.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"

using namespace attn;

/// From Volta on an instruction has 16 bytes.
static constexpr size_t kInstructionBytes = 16;

/// Its lowest 9 bits say what it does, the 3 above which operands it takes.
static constexpr uint64_t kOpcodeMask = 0x1FF;

/// ELF's machine of a cubin.
static constexpr uint16_t kMachineCUDA = 190;

namespace {

struct Opcode {
  uint64_t bits;
  llvm::StringLiteral name;
  llvm::StringLiteral ptx;
};

} // namespace

/// Read off nvdisasm 13.5 for code of ptxas 13.0, sm_80 and sm_90a; the first
/// that occurs is the kernel's path.
static constexpr Opcode kOpcodes[] = {
    {0x1F3, "QGMMA", ""},     {0x1F0, "HGMMA", "wgmma.mma_async"},
    {0x1F1, "IGMMA", ""},     {0x03C, "HMMA", "mma.sync"},
    {0x037, "IMMA", ""},      {0x03F, "DMMA", ""},
    {0x023, "FFMA", "fma.rn"}};

static llvm::StringRef findPath(llvm::ArrayRef<uint8_t> code) {
  std::array<bool, std::size(kOpcodes)> occurs = {};
  for (; code.size() >= kInstructionBytes;
       code = code.drop_front(kInstructionBytes)) {
    const uint64_t bits = llvm::support::endian::read64le(code.data());
    for (size_t i = 0; i < std::size(kOpcodes); ++i)
      occurs[i] |= (bits & kOpcodeMask) == kOpcodes[i].bits;
  }
  for (size_t i = 0; i < std::size(kOpcodes); ++i)
    if (occurs[i])
      return kOpcodes[i].name;
  return "none";
}

bool attn::isCubin(llvm::StringRef image) {
  return image.starts_with(llvm::StringRef("\x7f"
                                           "ELF",
                                           4));
}

llvm::Expected<MatrixPaths> attn::readMatrixPaths(llvm::StringRef cubin) {
  using ELF = llvm::object::ELFFile<llvm::object::ELF64LE>;
  llvm::Expected<ELF> elf = ELF::create(cubin);
  if (!elf)
    return elf.takeError();
  if (!isCubin(cubin) || elf->getHeader().e_machine != kMachineCUDA)
    return llvm::createStringError("it is no cubin");
  auto sections = elf->sections();
  if (!sections)
    return sections.takeError();
  MatrixPaths paths;
  for (const auto &section : *sections) {
    llvm::Expected<llvm::StringRef> name = elf->getSectionName(section);
    if (!name)
      return name.takeError();
    if (!name->consume_front(".text."))
      continue;
    auto code = elf->getSectionContents(section);
    if (!code)
      return code.takeError();
    paths[*name] = findPath(*code).str();
  }
  return paths;
}

static llvm::StringRef findPathInPTX(llvm::StringRef entry) {
  for (const Opcode &opcode : kOpcodes) {
    if (opcode.ptx.empty() || !entry.contains(opcode.ptx))
      continue;
    // One instruction for all types: m64n8k32.f32.e4m3.e4m3.
    const bool is8Bit =
        entry.contains(".f32.e4m3") || entry.contains(".f32.e5m2");
    return opcode.name == "HGMMA" && is8Bit ? "QGMMA"
                                            : llvm::StringRef(opcode.name);
  }
  return "none";
}

MatrixPaths attn::readMatrixPathsOfPTX(llvm::StringRef ptx) {
  MatrixPaths paths;
  llvm::StringRef rest = ptx.split(".entry").second;
  while (!rest.empty()) {
    auto [entry, next] = rest.split(".entry");
    const llvm::StringRef name =
        entry.ltrim().take_until([](char c) { return c == '(' || c == ' '; });
    paths[name.trim()] = findPathInPTX(entry).str();
    rest = next;
  }
  return paths;
}

llvm::StringRef attn::getPTXTarget(llvm::StringRef ptx) {
  return ptx.split(".target").second.ltrim().take_until(
      [](char c) { return c == '\n' || c == ',' || c == ' '; });
}
