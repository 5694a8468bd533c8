//===- Documentation.cpp - What the reference says of a name --------------===//

#include "Documentation.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;

static constexpr unsigned char kAttnOps[] = {
#include "AttnOps.inc"
};
static constexpr unsigned char kAttnPasses[] = {
#include "AttnPasses.inc"
};
static constexpr unsigned char kConversionPasses[] = {
#include "ConversionPasses.inc"
};
static constexpr unsigned char kHopperOps[] = {
#include "HopperOps.inc"
};
static constexpr unsigned char kHopperPasses[] = {
#include "HopperPasses.inc"
};
static constexpr unsigned char kTileOps[] = {
#include "TileOps.inc"
};
static constexpr unsigned char kTilePasses[] = {
#include "TilePasses.inc"
};

static constexpr llvm::StringLiteral kHeading = "\n### ";

/// What a section is about: its heading names an operation or a pass, in
/// backquotes; an attribute or type is named by its syntax ("#attn.schedule<").
static llvm::StringRef getSubject(llvm::StringRef section) {
  llvm::StringRef title = section.split('\n').first;
  if (title.consume_front("`"))
    return title.split('`').first.ltrim('-');
  for (llvm::StringRef line : llvm::split(section, '\n'))
    if (line.consume_front("#") || line.consume_front("!"))
      if (llvm::StringRef name = line.take_while(
              [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
          name.contains('.'))
        return name;
  return "";
}

static llvm::StringMap<llvm::StringRef> readSections() {
  llvm::StringMap<llvm::StringRef> sections;
  for (llvm::ArrayRef<unsigned char> page :
       {llvm::ArrayRef(kAttnOps), llvm::ArrayRef(kAttnPasses),
        llvm::ArrayRef(kConversionPasses), llvm::ArrayRef(kHopperOps),
        llvm::ArrayRef(kHopperPasses), llvm::ArrayRef(kTileOps),
        llvm::ArrayRef(kTilePasses)}) {
    llvm::StringRef rest = llvm::toStringRef(page).split(kHeading).second;
    while (!rest.empty()) {
      auto [section, next] = rest.split(kHeading);
      // A chapter ends the last section before it.
      section = section.split("\n## ").first;
      if (llvm::StringRef subject = getSubject(section); !subject.empty())
        sections.try_emplace(subject, section.trim());
      rest = next;
    }
  }
  return sections;
}

static std::string describe(const mlir::PassRegistryEntry &entry) {
  return llvm::formatv("`-{0}`\n\n_{1}_", entry.getPassArgument(),
                       entry.getPassDescription());
}

std::string attn::getDocumentation(llvm::StringRef name) {
  static const llvm::StringMap<llvm::StringRef> sections = readSections();
  if (auto found = sections.find(name); found != sections.end())
    return found->second.str();
  if (const auto *pass = mlir::PassInfo::lookup(name))
    return describe(*pass);
  if (const auto *pipeline = mlir::PassPipelineInfo::lookup(name))
    return describe(*pipeline);
  return "";
}
