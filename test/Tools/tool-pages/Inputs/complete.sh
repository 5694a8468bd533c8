# bash complete.sh FILE WORD...: what the completion in FILE offers for the last word of a command line.
# Words are given as bash splits them, at = too.
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
function=$(complete -p "${1##*/}" | sed 's/.*-F \([^ ]*\).*/\1/')
"$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf 'offered: %s\n' "${COMPREPLY[@]}"
