// Rows distributed to threads in chunks; the results of a row do not depend on its chunk.
#pragma once
#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "packed.hpp"
#include "types.hpp"

namespace limes {

// Multiply-adds below which another thread costs more than it saves (measured: a thread takes
// some 30 microseconds to start and join).
constexpr double min_work_per_thread = 4e6;

template <class Real>
double work_per_row(const Curve<Real>& curve) {
    return double(curve.matrix.n_columns) * double(curve.matrix.n_terms) +
           double(curve.plain.n_columns) * double(curve.n_terms) +
           double(curve.diagonal.n_columns) * double(curve.n_terms) +
           double(curve.n_listed) * double(curve.tile_size);
}

template <class Real>
double work_per_row(const Model<Real>& model) {
    double work = model.projection ? double(model.n_search) * double(model.n_features) : 0.0;
    for (size_t i = 0; i < model.n_maps; ++i) {
        const Map<Real>& map = model.maps[i];
        work += double(map.points.n_columns) * double(model.n_search) +
                double(map.n_blended * map.n_values) * double(map.functions.width) +
                (map.has_base ? double(map.n_values) * double(model.n_features) : 0.0);
        if (map.curve) work += work_per_row(*map.curve);
    }
    return work + double(model.n_features);
}

template <class Real>
double work_per_row(const PredictJob<Real>& job) {
    return work_per_row(*job.model);
}

inline double work_per_row(const SumsJob& job) {
    // An exponential costs as much as some twenty multiply-adds.
    const size_t products = job.n_features * (job.gradients ? 2 : 1) + job.n_outputs + 20;
    return double(job.vectors.n_columns) * double(products);
}

template <class Real>
double work_per_row(const ExactJob<Real>& job) {
    // An exponential and the weights of a vector cost as much as some ten multiply-adds.
    return double(job.model->vectors.n_columns) * double(job.model->transform.n_terms + 10);
}

// Number of threads that pays for so many multiply-adds.
inline size_t worthwhile_threads(double work, size_t n_threads) {
    const double limit = work / min_work_per_thread;
    return limit < double(n_threads) ? std::max(size_t(1), size_t(limit)) : n_threads;
}

// Call work(number of the thread, first, last) for chunks of n rows, from n_threads threads.
template <class Work>
void run_chunks(size_t n, size_t chunk, size_t n_threads, const Work& work) {
    std::atomic<size_t> next{0};
    const auto take = [&](size_t number) {
        for (;;) {
            const size_t first = next.fetch_add(chunk);
            if (first >= n) return;
            work(number, first, std::min(n, first + chunk));
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(n_threads - 1);
    try {
        for (size_t i = 1; i < n_threads; ++i) threads.emplace_back(take, i);
    } catch (const std::system_error&) {
        // No more threads available: those that started, and this one, do the work.
    }
    take(0);
    for (std::thread& thread : threads) thread.join();
}

// Run a job of a prediction or sums kernel with up to n_threads threads.
template <class Real, class AnyKernel, class AnyJob>
void run_parallel(const AnyKernel& kernel, const AnyJob& job, size_t n_threads) {
    const size_t n = job.rows.count;
    if (n == 0) return;
    const size_t tiles = round_up(n, kernel.layout.rows) / kernel.layout.rows;
    n_threads = worthwhile_threads(double(n) * work_per_row(job), std::min(n_threads, tiles));
    std::vector<Aligned<Real>> workspaces;
    const size_t size = kernel.workspace_size(job);
    for (size_t i = 0; i < n_threads; ++i) workspaces.emplace_back(size);
    if (n_threads == 1) return kernel.run(job, 0, n, workspaces[0].get());
    // Several chunks per thread, so that a thread that starts late does not delay the others.
    const size_t chunk = std::max(size_t(1), tiles / (16 * n_threads)) * kernel.layout.rows;
    run_chunks(n, chunk, n_threads, [&](size_t number, size_t first, size_t last) {
        kernel.run(job, first, last, workspaces[number].get());
    });
}

}  // namespace limes
