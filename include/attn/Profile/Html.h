//===- Html.h - Reports as one self-contained page --------------*- C++ -*-===//

#ifndef ATTN_PROFILE_HTML_H
#define ATTN_PROFILE_HTML_H

#include "attn/Profile/Print.h"

namespace attn {

/// Fails where this build has no chart library, and says which one it needs;
/// the writers below must not be called then.
llvm::Error checkCanWriteHtml();

/// The profile with the guesses and the comparison that the options ask for: a
/// page that needs no network, whose numbers are those of the JSON in it.
void writeHtmlReport(llvm::raw_ostream &os, const ProfileFile &file,
                     const PrintOptions &options);

/// A page whose content `script` makes from `json`, with what all pages have:
/// style, chart library, and the functions of lib/Profile/Html/page.js.
void writeHtmlPage(llvm::raw_ostream &os, llvm::StringRef title,
                   llvm::StringRef script, llvm::StringRef json);

} // namespace attn

#endif // ATTN_PROFILE_HTML_H
