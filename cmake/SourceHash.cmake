# Writes OUTPUT, a header with ATTNC_SOURCE_HASH: a hash of the files that LIST
# names. It tells builds of the compiler apart, so that no cache serves the code
# of another one.
file(STRINGS "${LIST}" sources)
set(all "")
foreach(source IN LISTS sources)
  file(SHA256 "${source}" hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 hash "${all}")
file(WRITE "${OUTPUT}" "#define ATTNC_SOURCE_HASH \"${hash}\"\n")
