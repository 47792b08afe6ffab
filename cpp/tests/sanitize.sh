#!/usr/bin/env bash
# The core under the sanitizers of GCC or Clang: address and undefined behaviour, then races.
#
#   cpp/tests/sanitize.sh [ROUNDS]            the C++ tests (cpp/tests/stress.cpp), about a minute
#   cpp/tests/sanitize.sh --python [ARGS...]  the Python tests on a core built with address,undefined; ARGS go to pytest
#
# Needs CMake, ninja, nanobind, and for --python the package's test requirements, in the environment of `python`.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
python="$(command -v python)"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1" TSAN_OPTIONS="halt_on_error=1"

build() {  # build SANITIZERS TARGET
    local folder="$scratch/${1//,/-}"
    cmake -G Ninja -S "$root" -B "$folder" -DPython_EXECUTABLE="$python" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DTREEFOCUS_SANITIZE="$1" -DTREEFOCUS_TESTS=ON >"$folder.log" 2>&1 || { cat "$folder.log"; return 1; }
    ninja -C "$folder" "$2" >"$folder.log" 2>&1 || { cat "$folder.log"; return 1; }
    echo "$folder"
}

if [[ "${1:-}" == "--python" ]]; then
    shift
    folder="$(build address,undefined _core)"
    cp -r "$root/src/treefocus" "$scratch/treefocus"
    rm -f "$scratch"/treefocus/kernels/_core*.so
    cp "$folder"/_core*.so "$scratch/treefocus/kernels/"
    # The interpreter itself is not built for it, so the sanitizer has to be there first, and leaks are Python's.
    preload="$("${CXX:-c++}" -print-file-name=libasan.so):$("${CXX:-c++}" -print-file-name=libstdc++.so)"
    cd "$root"
    LD_PRELOAD="$preload" ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0" PYTHONPATH="$scratch" \
        PYTHONMALLOC=malloc "$python" -m pytest -q -p no:cacheprovider "$@"
    exit
fi

rounds="${1:-200}"
for sanitizers in address,undefined thread; do
    folder="$(build "$sanitizers" treefocus_stress)"
    printf '%s: ' "$sanitizers"
    "$folder/treefocus_stress" "$rounds" "$RANDOM"
done
