# What the scripts that build WebAssembly from C have in common: they source this file.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
compiler='clang-19 --target=wasm32-wasi'
flags=(-O3 -msimd128 -mnontrapping-fptoint -mbulk-memory -fno-math-errno -fno-trapping-math -w -DNDEBUG)

# unpack ARCHIVE SHA256: unpacks it to a temporary folder, and enters that.
unpack() {
  local archive
  archive=$(realpath "$1")
  echo "$2  $archive" | sha256sum --check --quiet
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  tar -xf "$archive" -C "$work" --strip-components 1
  cd "$work"
}

# link NAME STACK_BYTES ARGUMENT...: makes workers/audio/NAME.wasm.
link() {
  local name=$1 stack=$2
  shift 2
  $compiler -mexec-model=reactor "${flags[@]}" -I. "-Wl,--strip-all,--stack-first,-z,stack-size=$stack" "$@" -o "$name.wasm"
  cp "$name.wasm" "$here/../../workers/audio/$name.wasm"
}
