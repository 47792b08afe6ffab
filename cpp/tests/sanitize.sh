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

rounds="${1:-200}"
for sanitizers in address,undefined thread; do
    "${CXX:-c++}" -std=c++20 -O1 -g -fno-omit-frame-pointer -ffp-contract=off -Wall -Wextra -fsanitize="$sanitizers" \
        -I"$root/cpp" "$root"/cpp/treefocus/*.cpp "$root/cpp/tests/stress.cpp" -pthread -o "$scratch/${sanitizers%%,*}" &
done
wait
for sanitizers in address,undefined thread; do
    printf '%s: ' "$sanitizers"
    "$scratch/${sanitizers%%,*}" "$rounds" "$RANDOM"
done
