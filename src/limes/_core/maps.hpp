// Maps as a Python object: checks what it is given, then runs the packed maps.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "dispatch.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "views.hpp"

namespace limes {

// One arithmetic: packed maps and the kernel that reads them.
template <class Real>
struct Engine {
    PackedModel<Real> packed;
    const Kernel<Real>& kernel;

    Engine(const PlainModel& plain, const Kernel<Real>& chosen)
        : packed(plain, chosen.layout), kernel(chosen) {}

    void run(Job<Real>& job, size_t n_threads) const {
        job.model = &packed.model();
        const nb::gil_scoped_release release;
        run_parallel<Real>(kernel, job, n_threads);
    }

    // One row, in memory that the thread keeps for the next one.
    void run_one(Job<Real>& job) const {
        job.model = &packed.model();
        static thread_local std::unique_ptr<Aligned<Real>> kept;
        static thread_local size_t n_kept = 0;
        const size_t n = kernel.scratch(job);
        if (n > n_kept) {
            kept = std::make_unique<Aligned<Real>>(n);
            n_kept = n;
        }
        kernel.run(job, 0, 1, kept->get());
    }
};

class Maps {
public:
    Maps(nb::handle center, nb::handle maps, nb::handle projection, ptrdiff_t blend, bool is_double,
         nb::handle pairs, const std::string& cpu);

    size_t n_features() const { return n_features_; }
    size_t n_maps() const { return n_values_.size(); }
    size_t n_values() const;
    bool is_double() const { return is_double_; }
    const char* cpu() const { return path_.name; }
    // How many classes `classify` can name.
    size_t n_classes() const;

    void nearest(nb::handle X, nb::handle out, ptrdiff_t index, ptrdiff_t n_threads) const;
    void classify(nb::handle X, nb::handle out, ptrdiff_t n_threads) const;
    void decide(nb::handle X, nb::handle out, ptrdiff_t n_threads) const;
    void decide_some(nb::handle X, nb::handle which, nb::handle out, ptrdiff_t n_threads) const;

    // The class of one row, without letting other Python threads in.
    int32_t classify_one(const Rows& row) const;
    // The classes of several rows.
    std::vector<int32_t> classify_rows(const Rows& rows) const;

private:
    Task class_task() const;
    size_t common_values() const;
    void check_values(const View& values, const std::vector<size_t>& shape) const;
    size_t check_which(const View& which, size_t n_rows) const;
    void run_indices(Task task, nb::handle X, nb::handle out, size_t index, size_t n_threads) const;
    template <class Real>
    void run_values(const Engine<Real>& engine, Task task, const Rows& rows, const View& values,
                    const int32_t* which, size_t n_slots, size_t n_threads) const;

    const Path& path_;
    bool is_double_;
    size_t n_features_ = 0, n_pair_classes_ = 0;
    std::vector<size_t> n_values_;  // of each map
    std::unique_ptr<Engine<float>> single_;
    std::unique_ptr<Engine<double>> twice_;
};

}  // namespace limes
