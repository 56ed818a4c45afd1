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

// The number of threads that Python asks for.
inline size_t read_threads(ptrdiff_t n_threads) {
    if (n_threads >= 1) return size_t(n_threads);
    const std::string text = "n_threads must be at least 1, got " + std::to_string(n_threads) +
                             "; limes._core.thread_count turns an n_jobs into one";
    throw nb::value_error(text.c_str());
}

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

    // What `classify` does: it needs a single map, or pairs that vote.
    Task class_task() const;
    // Linear functions of each map, which must be as many.
    size_t common_values() const;
    const Path& path() const { return path_; }
    // The arithmetic in use.
    const Engine<float>& engine(float) const { return *single_; }
    const Engine<double>& engine(double) const { return *twice_; }
    int range() const {
        return is_double_ ? twice_->packed.model().range : single_->packed.model().range;
    }

private:
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
