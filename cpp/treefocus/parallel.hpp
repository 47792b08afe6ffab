// Threads: one place, one shape.
//
// Rows are independent, so every kernel is a loop over rows cut into chunks that idle threads fetch
// from a counter: a hard row never holds the others up, and the answer cannot depend on who
// computed it. The threads live for one call (tens of microseconds), which keeps the library safe
// to fork and free of global state. The calling thread computes nothing; it polls, so that Ctrl-C
// and progress work while the others are busy.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

// One build, several instruction sets, chosen when the library is loaded; sanitizers are not awake
// by then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TREEFOCUS_VECTORISED
#elif defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    defined(__GLIBC__)
#define TREEFOCUS_VECTORISED \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TREEFOCUS_VECTORISED
#endif

namespace treefocus {

// How a caller watches and stops a running kernel.
struct Control {
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> done{0};
    // Called every 50 ms by the calling thread; true asks to stop.
    std::function<bool(std::int64_t done)> poll;
};

// Calls work(begin, end) for chunks that cover 0 .. n, on n_threads threads. Chunks that take next
// to no time (is_short) are not worth a thread if there is only one. With `idle`, all threads are
// started, and those that find no more chunks call it.
template <class Work>
void parallel_for(std::int64_t n, std::int64_t chunk, int n_threads, Control& control,
                  const Work& work, bool is_short = false, const std::function<void()>& idle = {}) {
    const std::int64_t n_chunks = (n + chunk - 1) / chunk;
    if (n_chunks == 0) return;
    // On the calling thread, without a poll: it is over before anyone could press a key.
    if (n_chunks == 1 && is_short) {
        work(0, n);
        control.done += n;
        return;
    }
    std::atomic<std::int64_t> next{0};
    std::mutex mutex;
    std::condition_variable finished;
    std::exception_ptr failure;
    const std::int64_t most = std::max(n_threads, 1);
    const int n_workers = static_cast<int>(idle ? most : std::min(most, n_chunks));
    int n_running = n_workers;

    auto run = [&] {
        try {
            for (std::int64_t i = next++; i < n_chunks && !control.stop; i = next++) {
                const std::int64_t begin = i * chunk, end = std::min(n, begin + chunk);
                work(begin, end);
                control.done += end - begin;
            }
            if (idle) idle();
        } catch (...) {
            std::lock_guard lock(mutex);
            failure = std::current_exception();
            control.stop = true;
        }
        std::lock_guard lock(mutex);
        --n_running;
        finished.notify_one();
    };

    std::vector<std::thread> threads;
    for (int i = 0; i < n_workers; ++i) threads.emplace_back(run);
    {
        std::unique_lock lock(mutex);
        while (!finished.wait_for(lock, std::chrono::milliseconds(50),
                                  [&] { return n_running == 0; })) {
            if (!control.poll) continue;
            lock.unlock();
            if (control.poll(control.done)) control.stop = true;
            lock.lock();
        }
    }
    for (auto& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace treefocus
