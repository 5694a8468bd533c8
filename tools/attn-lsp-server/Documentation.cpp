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

static constexpr unsigned char kUpstreamOps[] = {
#include "UpstreamOps.inc"
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

/// By subject.
using Sections = llvm::StringMap<llvm::StringRef>;

static Sections readSections() {
  Sections sections;
  for (llvm::ArrayRef<unsigned char> page :
       {llvm::ArrayRef(kAttnOps), llvm::ArrayRef(kAttnPasses),
        llvm::ArrayRef(kConversionPasses), llvm::ArrayRef(kHopperOps),
        llvm::ArrayRef(kHopperPasses), llvm::ArrayRef(kTileOps),
        llvm::ArrayRef(kTilePasses), llvm::ArrayRef(kUpstreamOps)}) {
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

/// Of a table the head and the rows that are about a name; else the paragraph.
static std::string takeAbout(llvm::StringRef paragraph, llvm::StringRef name) {
  if (!paragraph.starts_with("| "))
    return paragraph.str();
  std::string text;
  int numLines = 0;
  for (llvm::StringRef line : llvm::split(paragraph, '\n'))
    if (numLines++ < 2 || line.contains(name))
      text += line.str() + '\n';
  return text;
}

/// What an operation's section says of a word of its syntax, or of an attribute
/// ("mask_mod" of attn.attention).
static std::string describeClause(llvm::StringRef section,
                                  llvm::StringRef name) {
  const std::string quoted = ("`" + name + "`").str();
  auto [syntax, description] = section.split("\n```\n\n");
  if (!syntax.contains(quoted) &&
      !section.contains(("<code>" + name + "</code>").str()))
    return "";
  description = description.split("\nTraits:").first;
  std::string text;
  for (llvm::StringRef paragraph : llvm::split(description, "\n\n"))
    if (paragraph.contains(quoted))
      text += "\n\n" + takeAbout(paragraph.trim('\n'), quoted);
  return text;
}

std::string attn::getDocumentation(llvm::StringRef name) {
  static const Sections sections = readSections();
  if (auto found = sections.find(name); found != sections.end())
    return found->second.str();
  if (std::string text =
          describeClause(sections.lookup("attn.attention"), name);
      !text.empty())
    return llvm::formatv("`{0}` of attn.attention{1}", name, text);
  if (const auto *pass = mlir::PassInfo::lookup(name))
    return describe(*pass);
  if (const auto *pipeline = mlir::PassPipelineInfo::lookup(name))
    return describe(*pipeline);
  return "";
}
