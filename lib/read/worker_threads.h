// Threads that help their caller with one work.
#pragma once

#include <cstddef>
#include <functional>

namespace chunkhit {

/// Runs `work`, which throws nothing, on this thread and on up to `count - 1` more, and waits for all. They
/// end waiting for servers as this one does (StopScope). Where the system starts no more threads, those that
/// there are do the same work.
void run_on_threads(std::size_t count, const std::function<void()>& work);

}  // namespace chunkhit
