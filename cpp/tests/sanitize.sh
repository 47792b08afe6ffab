#!/usr/bin/env bash
# The core under the sanitizers of GCC or Clang: address and undefined behaviour, then races.
#
#   cpp/tests/sanitize.sh [ROUNDS]            the C++ tests (cpp/tests/stress.cpp), a minute or two
#   cpp/tests/sanitize.sh --python [ARGS...]  the Python tests on a core built with address,undefined; ARGS go to pytest
#
# The first needs a compiler only, the second CMake, ninja, nanobind and the test requirements in the environment of
# `python`.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
python="$(command -v python)"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1" TSAN_OPTIONS="halt_on_error=1"

if [[ "${1:-}" == "--python" ]]; then
    shift
    folder="$scratch/build"
    cmake -G Ninja -S "$root" -B "$folder" -DPython_EXECUTABLE="$python" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DTREEFOCUS_SANITIZE=address,undefined >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
    ninja -C "$folder" _core >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
    cp -r "$root/src/treefocus" "$scratch/treefocus"
    rm -f "$scratch"/treefocus/kernels/_core*.so
    cp "$folder"/_core*.so "$scratch/treefocus/kernels/"
    # The interpreter itself is not built for it, so the sanitizer has to be there first, and leaks are Python's.
    preload="$("${CXX:-c++}" -print-file-name=libasan.so):$("${CXX:-c++}" -print-file-name=libstdc++.so)"
    cd "$root"
    LD_PRELOAD="$preload" ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0" PYTHONPATH="$scratch" \
        PYTHONMALLOC=malloc "$python" -m pytest -q -n 0 -p no:cacheprovider "$@"
    exit
fi

# One object file a job, the two sanitizers mixed, so that every core is busy to the end: compiling is what takes long.
# -g1 has the lines for the stacks, and leaves out variables, which would take half as long again.
rounds="${1:-200}"
compile() {
    local kind="${1%%,*}"
    "${CXX:-c++}" -std=c++20 -O1 -g1 -fno-omit-frame-pointer -ffp-contract=off -Wall -Wextra -fsanitize="$1" \
        -I"$root/cpp" -c "$2" -o "$scratch/$kind/$(basename "$2").o"
}
export -f compile
export root scratch
mkdir "$scratch/address" "$scratch/thread"
for sanitizers in address,undefined thread; do
    printf '%s\0' "$root"/cpp/treefocus/*.cpp "$root/cpp/tests/stress.cpp" |
        xargs -0 -I{} printf '%s\0%s\0' "$sanitizers" {}
done | xargs -0 -n 2 -P "$(getconf _NPROCESSORS_ONLN)" bash -c 'compile "$@"' compile
for sanitizers in address,undefined thread; do
    folder="$scratch/${sanitizers%%,*}"
    "${CXX:-c++}" -fsanitize="$sanitizers" "$folder"/*.o -pthread -o "$folder/stress"
    printf '%s: ' "$sanitizers"
    "$folder/stress" "$rounds" "$RANDOM"
done
