//===- HoverFilter.cpp - Adds the reference to what a server says ---------===//

#include "HoverFilter.h"
#include "Documentation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LSP/Protocol.h"

using namespace attn;
namespace json = llvm::json;
namespace lsp = llvm::lsp;

/// A request's parameters, if they are what the protocol says.
template <typename T>
static std::optional<T> read(const json::Value &params) {
  T result;
  json::Path::Root root;
  if (!fromJSON(params, result, root))
    return std::nullopt;
  return result;
}

/// The name at a position: of an operation, attribute or type with its dialect,
/// or of a pass, also in a comment.
static llvm::StringRef getNameAt(llvm::StringRef text, lsp::Position at) {
  for (int line = 0; line < at.line; ++line)
    text = text.split('\n').second;
  text = text.split('\n').first;
  auto isPart = [](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '.' || c == '-';
  };
  const size_t column =
      std::min<size_t>(std::max(at.character, 0), text.size());
  size_t begin = column;
  while (begin > 0 && isPart(text[begin - 1]))
    --begin;
  return text.drop_front(begin).take_while(isPart).ltrim('-');
}

static std::string getKey(const json::Value &id) {
  return llvm::formatv("{0}", id).str();
}

void HoverFilter::seeRequest(const json::Value &message) {
  const json::Object *object = message.getAsObject();
  if (!object || !object->get("params"))
    return;
  const llvm::StringRef method = object->getString("method").value_or("");
  const json::Value &params = *object->get("params");
  std::lock_guard<std::mutex> lock(mutex);
  if (method == "textDocument/didOpen") {
    if (auto opened = read<lsp::DidOpenTextDocumentParams>(params))
      documents[opened->textDocument.uri.uri()] = opened->textDocument.text;
  } else if (method == "textDocument/didChange") {
    if (auto changed = read<lsp::DidChangeTextDocumentParams>(params)) {
      std::string &text = documents[changed->textDocument.uri.uri()];
      (void)lsp::TextDocumentContentChangeEvent::applyTo(
          changed->contentChanges, text);
    }
  } else if (method == "textDocument/didClose") {
    if (auto closed = read<lsp::DidCloseTextDocumentParams>(params))
      documents.erase(closed->textDocument.uri.uri());
  } else if (method == "textDocument/hover" && object->get("id")) {
    auto hover = read<lsp::TextDocumentPositionParams>(params);
    if (!hover)
      return;
    std::string text = getDocumentation(getNameAt(
        documents.lookup(hover->textDocument.uri.uri()), hover->position));
    if (!text.empty())
      documentation[getKey(*object->get("id"))] = std::move(text);
  }
}

bool HoverFilter::amendResponse(json::Value &message) {
  json::Object *object = message.getAsObject();
  if (!object || !object->get("id") || !object->get("result"))
    return false;
  std::string contents;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = documentation.find(getKey(*object->get("id")));
    if (found == documentation.end())
      return false;
    contents = std::move(found->second);
    documentation.erase(found);
  }
  json::Object hover;
  if (const json::Object *shown = object->getObject("result")) {
    hover = *shown;
    if (const json::Object *old = shown->getObject("contents"))
      contents =
          old->getString("value").value_or("").str() + "\n***\n" + contents;
  }
  hover["contents"] =
      json::Object{{"kind", "markdown"}, {"value", std::move(contents)}};
  (*object)["result"] = std::move(hover);
  return true;
}
