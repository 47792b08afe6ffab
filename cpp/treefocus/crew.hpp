// Threads that share rows: each has rows of its own as long as there are some, and then joins a row
// that is still searched.
//
// A row's search cuts its work into rounds of tasks (row.hpp). Which thread does a task, and how
// many there are, changes nothing but the time it takes: a task sees what was known when its round
// began, and what comes of a round is put together in the order of the tasks.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "treefocus/parallel.hpp"

namespace treefocus {

// The threads at one row: its owner, number 0, and those that have joined, until the row is over.
class Team {
public:
    using Task = std::function<void(std::size_t task, std::size_t member)>;

    // The owner's: do(task, member) for all tasks, by whoever is there; returns when all are done.
    void each(std::size_t n_tasks, const Task& task) {
        std::unique_lock lock(mutex_);
        task_ = &task;
        n_tasks_ = n_tasks;
        next_ = 0;
        if (n_members_ > 1 && n_tasks > 1) changed_.notify_all();
        run_tasks(0, lock);
        changed_.wait(lock, [&] { return n_running_ == 0; });
        n_tasks_ = 0;
        if (failure_) std::rethrow_exception(failure_);
    }

    // Another thread's: helps until the row is over.
    void join() {
        std::unique_lock lock(mutex_);
        const std::size_t member = n_members_++;
        while (true) {
            changed_.wait(lock, [&] { return is_over_ || next_ < n_tasks_; });
            if (is_over_) return;
            run_tasks(member, lock);
        }
    }

    void end() {
        std::lock_guard lock(mutex_);
        is_over_ = true;
        changed_.notify_all();
    }

    std::size_t n_members() {
        std::lock_guard lock(mutex_);
        return n_members_;
    }

private:
    // What a task throws is the owner's to hear, when the others are done.
    void run_tasks(std::size_t member, std::unique_lock<std::mutex>& lock) {
        while (next_ < n_tasks_) {
            const std::size_t task = next_++;
            ++n_running_;
            lock.unlock();
            std::exception_ptr failure;
            try {
                (*task_)(task, member);
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            if (failure) failure_ = failure, next_ = n_tasks_;
            if (--n_running_ == 0 && member != 0) changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const Task* task_ = nullptr;
    std::size_t n_tasks_ = 0, next_ = 0, n_running_ = 0, n_members_ = 1;
    bool is_over_ = false;
    std::exception_ptr failure_;
};

// The teams of a batch.
class Crew {
public:
    Crew(std::int64_t n_rows, const Control& control) : n_left_(n_rows), control_(control) {}

    // Around the search of a row. Declared before the search, it outlives it: those who have joined
    // leave when it ends, and have no task by then.
    struct Place {
        explicit Place(Crew& own) : crew(own), team(own.start()) {}
        ~Place() { crew.end(team); }
        Place(const Place&) = delete;
        Crew& crew;
        const std::shared_ptr<Team> team;
    };

    // A thread that finds no more rows: joins one row after another, the one with the fewest
    // helpers first, until all rows are over.
    void help() {
        while (const std::shared_ptr<Team> team = next_team()) team->join();
    }

private:
    std::shared_ptr<Team> start() {
        std::lock_guard lock(mutex_);
        teams_.push_back(std::make_shared<Team>());
        changed_.notify_all();
        return teams_.back();
    }
    void end(const std::shared_ptr<Team>& team) {
        team->end();
        std::lock_guard lock(mutex_);
        std::erase(teams_, team);
        --n_left_;
        changed_.notify_all();
    }
    std::shared_ptr<Team> next_team() {
        std::unique_lock lock(mutex_);
        // Rows that were never begun do not end: where somebody asks to stop, nobody waits.
        while (teams_.empty() && n_left_ > 0 && !control_.stop)
            changed_.wait_for(lock, std::chrono::milliseconds(50));
        if (teams_.empty() || control_.stop) return nullptr;
        return *std::min_element(teams_.begin(), teams_.end(), [](const auto& a, const auto& b) {
            return a->n_members() < b->n_members();
        });
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::shared_ptr<Team>> teams_;
    std::int64_t n_left_;
    const Control& control_;
};

}  // namespace treefocus
