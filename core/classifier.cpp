#include "classifier.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace limes {

// Classifies the rows of one thread: the prediction kernel, then the rule.
template <class Real>
class ThreadClassifier {
public:
    ThreadClassifier(const PackedMaps<Real>& maps, const PackedMaps<Real>* pairs, const Rule& rule,
                     const TieBreaker& tie_breaker, const ExactSums* exact, double fallback_margin,
                     size_t max_rows)
        : maps_(maps),
          pairs_(pairs),
          rule_(rule),
          tie_breaker_(tie_breaker),
          max_rows_(max_rows),
          fallback_margin_(Real(fallback_margin)),
          exact_(exact ? std::make_unique<ExactThread>(*exact, max_rows) : nullptr),
          workspace_(allocate(maps, task(), 0)),
          coupling_(rule.n_classes) {
        if (task() == Task::decide) values_.resize(max_rows * maps.model().n_values);
        if (!pairs) return;
        pair_workspace_ = allocate(*pairs, Task::decide_selected, rule.n_pairs());
        gathered_.resize(max_rows * maps.model().n_features * sizeof(double));
        pair_numbers_.resize(max_rows * rule.n_pairs());
        pair_values_.resize(max_rows * rule.n_pairs());
        selected_.resize(max_rows * rule.max_selected);
        n_selected_.resize(max_rows);
    }

    // Whether ambiguous rows are left to exact sums: only after `finish` do they have a class.
    bool has_fallback() const { return exact_ != nullptr; }

    // The classes of at most max_rows rows.
    void classify(const Rows& rows, int32_t* classes) {
        if (task() != Task::decide)
            return run(
                maps_, *workspace_,
                {nullptr, rows, task(), 0, nullptr, 0, nullptr, classes, rule_.children.data()});
        run(maps_, *workspace_,
            {nullptr, rows, Task::decide, 0, nullptr, 0, values_.data(), nullptr});
        if (rule_.kind == Rule::Kind::shortlist) return evaluate_pairs(rows, classes);
        const size_t n_values = maps_.model().n_values;
        if (exact_) return classify_or_queue(rows, classes);
        for (size_t r = 0; r < rows.count; ++r) {
            const Real* values = values_.data() + r * n_values;
            classes[r] =
                rule_.kind == Rule::Kind::highest ? argmax(values, n_values) : couple(values);
        }
    }

    // The probabilities of at most max_rows rows by the maps alone: out[row][class].
    void probabilities(const Rows& rows, double* out) {
        const size_t n_values = maps_.model().n_values;
        if (!probability_workspace_) {
            constexpr size_t max_lanes = 8;
            probability_workspace_ = std::make_unique<Aligned<double>>(n_values * max_lanes);
            values_.resize(max_rows_ * n_values);
        }
        run(maps_, *workspace_,
            {nullptr, rows, Task::decide, 0, nullptr, 0, values_.data(), nullptr});
        maps_.kernel().probabilities(values_.data(), n_values, rows.count,
                                     rule_.kind == Rule::Kind::highest,
                                     probability_workspace_->get(), out);
    }

    // Leave the ambiguous ones of the rows whose probabilities were computed last to the exact
    // sums; the others have the class -1.
    void queue_ambiguous_rows(const Rows& rows, int32_t* classes) {
        for (size_t r = 0; r < rows.count; ++r) {
            classes[r] = -1;
            if (is_ambiguous(values_.data() + r * maps_.model().n_values))
                queue(rows, r, classes + r);
        }
    }

    // Leave a row to the exact sums.
    void queue(const Rows& rows, size_t row, int32_t* place) {
        const size_t n = maps_.model().n_features;
        const size_t start = queued_.size();
        queued_.resize(start + n);
        for (size_t k = 0; k < n; ++k) queued_[start + k] = ExactSums::read_number(rows, row, k);
        places_.push_back(place);
    }

    // Classify the rows that were left to the exact sums.
    void finish() {
        if (places_.empty()) return;
        const ptrdiff_t width = ptrdiff_t(maps_.model().n_features * sizeof(double));
        queued_classes_.resize(places_.size());
        exact_->classify({reinterpret_cast<const char*>(queued_.data()), places_.size(), width,
                          sizeof(double), true},
                         queued_classes_.data());
        for (size_t i = 0; i < places_.size(); ++i) *places_[i] = queued_classes_[i];
        places_.clear();
        queued_.clear();
    }

private:
    // The class of the values of one map; rows whose margin is below that of the fallback are left
    // to the exact sums.
    void classify_or_queue(const Rows& rows, int32_t* classes) {
        for (size_t r = 0; r < rows.count; ++r)
            if (is_ambiguous(values_.data() + r * maps_.model().n_values, classes + r))
                queue(rows, r, classes + r);
    }

    // Whether the margin of the values of one map is below that of the fallback; with their class.
    bool is_ambiguous(const Real* values, int32_t* class_index = nullptr) const {
        const size_t n = maps_.model().n_values;
        Real margin = std::abs(2 * values[0]);
        int32_t index = values[0] > 0;
        if (n > 1) {
            // Both in one pass; a NaN makes the margin zero.
            Real best = values[0], second = -std::numeric_limits<Real>::infinity();
            index = 0;
            for (size_t c = 1; c < n; ++c) {
                second = std::max(second, std::min(best, values[c]));
                index = values[c] > best ? int32_t(c) : index;
                best = std::max(best, values[c]);
            }
            margin = best - second;
        }
        if (class_index) *class_index = index;
        return !(margin >= fallback_margin_);
    }

    Task task() const {
        if (exact_) return Task::decide;
        if (rule_.kind == Rule::Kind::tree) return Task::descend;
        if (rule_.kind != Rule::Kind::direct) return Task::decide;
        return maps_.model().n_classes > 0 ? Task::vote : Task::classify;
    }

    std::unique_ptr<Aligned<Real>> allocate(const PackedMaps<Real>& maps, Task task,
                                            size_t n_selected) const {
        const Rows rows{nullptr, max_rows_, 0, 0, false};
        const PredictJob<Real> job{&maps.model(), rows,       task,    0,
                                   nullptr,       n_selected, nullptr, nullptr};
        return std::make_unique<Aligned<Real>>(maps.kernel().workspace_size(job));
    }

    static void run(const PackedMaps<Real>& maps, const Aligned<Real>& workspace,
                    PredictJob<Real> job) {
        job.model = &maps.model();
        maps.kernel().run(job, 0, job.rows.count, workspace.get());
    }

    int32_t couple(const Real* values) {
        combined_.assign(values, values + maps_.model().n_values);
        const int32_t best = coupling_.most_probable(combined_.data(), rule_.n_classes);
        return best >= 0 ? best : call_tie_breaker(combined_);
    }

    // Select the likely classes of every row, and evaluate the pairs of those rows with several.
    void evaluate_pairs(const Rows& rows, int32_t* classes) {
        const size_t n_classes = rule_.n_classes;
        size_t n_ambiguous = 0;
        for (size_t r = 0; r < rows.count; ++r) {
            const Real* scores = values_.data() + r * n_classes;
            int32_t* selected = selected_.data() + n_ambiguous * rule_.max_selected;
            const size_t n = select_classes(scores, n_classes, Real(rule_.logit_margin),
                                            rule_.max_selected, selected);
            classes[r] = n > 1 ? -1 : argmax(scores, n_classes);
            if (n > 1) queue_ambiguous(rows, r, n, n_ambiguous++);
        }
        if (n_ambiguous == 0) return;
        const size_t size = rows.is_double ? sizeof(double) : sizeof(float);
        const ptrdiff_t width = ptrdiff_t(maps_.model().n_features * size);
        const Rows gathered{gathered_.data(), n_ambiguous, width, ptrdiff_t(size), rows.is_double};
        run(*pairs_, *pair_workspace_,
            {nullptr, gathered, Task::decide_selected, 0, pair_numbers_.data(), rule_.n_pairs(),
             pair_values_.data(), nullptr});
        for (size_t r = 0, i = 0; r < rows.count; ++r)
            if (classes[r] < 0) classes[r] = decide_by_pairs(values_.data() + r * n_classes, i++);
    }

    // Copy a row, and list the pairs of its selected classes.
    void queue_ambiguous(const Rows& rows, size_t row, size_t n, size_t place) {
        const size_t n_features = maps_.model().n_features;
        const size_t size = rows.is_double ? sizeof(double) : sizeof(float);
        const char* from = rows.data + ptrdiff_t(row) * rows.row_stride;
        char* to = gathered_.data() + place * n_features * size;
        if (rows.column_stride == ptrdiff_t(size))
            std::memcpy(to, from, n_features * size);
        else
            for (size_t k = 0; k < n_features; ++k)
                std::memcpy(to + k * size, from + ptrdiff_t(k) * rows.column_stride, size);
        const int32_t* selected = selected_.data() + place * rule_.max_selected;
        int32_t* numbers = pair_numbers_.data() + place * rule_.n_pairs();
        size_t count = 0;
        for (size_t i = 0; i < n; ++i)
            for (size_t j = i + 1; j < n; ++j)
                numbers[count++] =
                    int32_t(pair_number(size_t(selected[i]), size_t(selected[j]), rule_.n_classes));
        std::fill(numbers + count, numbers + rule_.n_pairs(), -1);
        n_selected_[place] = n;
    }

    // The class that the pairs of an ambiguous row decide for.
    int32_t decide_by_pairs(const Real* scores, size_t place) {
        const size_t n = n_selected_[place];
        const int32_t* selected = selected_.data() + place * rule_.max_selected;
        const Real* pair_values = pair_values_.data() + place * rule_.n_pairs();
        combined_.clear();
        for (size_t i = 0; i < n; ++i)
            for (size_t j = i + 1; j < n; ++j) {
                const double shared =
                    0.5 * (double(scores[selected[j]]) - double(scores[selected[i]]));
                const Real own = Real(rule_.pair_weight) * pair_values[combined_.size()];
                combined_.push_back(double(own) + (1 - rule_.pair_weight) * shared);
            }
        if (rule_.by_vote) return selected[most_voted(combined_.data(), n, votes_)];
        const int32_t best = coupling_.most_probable(combined_.data(), n);
        if (best >= 0) return selected[best];
        std::vector<double> values(scores, scores + rule_.n_classes);
        values.insert(values.end(), pair_values, pair_values + rule_.n_pairs());
        return call_tie_breaker(values);
    }

    // Class 0 without a tie breaker, or if it does not return a class.
    int32_t call_tie_breaker(const std::vector<double>& values) const {
        const int32_t class_index = tie_breaker_ ? tie_breaker_(values) : 0;
        return class_index >= 0 && size_t(class_index) < rule_.n_classes ? class_index : 0;
    }

    const PackedMaps<Real>& maps_;
    const PackedMaps<Real>* pairs_;
    const Rule& rule_;
    const TieBreaker& tie_breaker_;
    size_t max_rows_;
    Real fallback_margin_;
    std::unique_ptr<ExactThread> exact_;
    std::vector<double> queued_;    // rows for the exact sums
    std::vector<int32_t*> places_;  // where their classes go
    std::vector<int32_t> queued_classes_;
    std::unique_ptr<Aligned<Real>> workspace_, pair_workspace_;
    std::unique_ptr<Aligned<double>> probability_workspace_;
    std::vector<Real> values_, pair_values_;
    std::vector<char> gathered_;  // ambiguous rows
    std::vector<int32_t> pair_numbers_, selected_;
    std::vector<size_t> n_selected_;
    std::vector<double> combined_, votes_;
    Coupling coupling_;
};

namespace {

Rows slice_rows(const Rows& rows, size_t first, size_t n) {
    return {rows.data + ptrdiff_t(first) * rows.row_stride, n, rows.row_stride, rows.column_stride,
            rows.is_double};
}

// The chunks of rows that a thread classifies: the caller's rows, or a conversion of them.
class ChunkReader {
public:
    ChunkReader(const PredictKernels& kernels, size_t n_features)
        : kernels_(kernels), n_features_(n_features) {}

    Rows read(const Rows& rows, size_t first, size_t last) {
        return slice_rows(rows, first, last - first);
    }
    Rows read(const IntegerRows& rows, size_t first, size_t last) {
        converted_.resize((last - first) * n_features_);
        kernels_.convert(rows, n_features_, first, last, converted_.data());
        return {reinterpret_cast<const char*>(converted_.data()), last - first,
                ptrdiff_t(n_features_ * sizeof(float)), sizeof(float), false};
    }

private:
    const PredictKernels& kernels_;
    size_t n_features_;
    std::vector<float> converted_;
};

size_t number_size(const Rows& rows) { return rows.is_double ? sizeof(double) : sizeof(float); }
size_t number_size(const IntegerRows&) { return sizeof(float); }

// A row that is out of range, multiplied by the power of two that brings it into range. So far from
// zero only the direction of a row determines its nearest point and the signs of its values, and
// the multiplication is exact.
struct ScaledRow {
    std::vector<double> numbers;
    double largest_magnitude = 0;  // before scaling; not finite if a number is not

    ScaledRow(const Rows& row, size_t n_features, int max_exponent) : numbers(n_features) {
        for (size_t k = 0; k < n_features; ++k) {
            numbers[k] = read(row, k);
            const double magnitude = std::abs(numbers[k]);
            if (!(magnitude <= largest_magnitude)) largest_magnitude = magnitude;
            if (std::isnan(largest_magnitude)) return;
        }
        int exponent = 0;
        std::frexp(largest_magnitude, &exponent);
        for (double& number : numbers) number = std::ldexp(number, max_exponent - exponent);
    }

    Rows row() const {
        return {reinterpret_cast<const char*>(numbers.data()), 1, 0, sizeof(double), true};
    }

private:
    static double read(const Rows& row, size_t k) {
        const char* from = row.data + ptrdiff_t(k) * row.column_stride;
        double number;
        float short_number;
        if (row.is_double) {
            std::memcpy(&number, from, sizeof number);
            return number;
        }
        std::memcpy(&short_number, from, sizeof short_number);
        return short_number;
    }
};

}  // namespace

Classifier::Classifier(const ExactSums& exact)
    : exact_(&exact),
      max_exponent_(std::numeric_limits<double>::max_exponent),
      limit_(std::numeric_limits<double>::max()) {
    rule_.n_classes = exact.n_classes();
}

Classifier::Classifier(const Maps& map, const ExactSums& exact, double fallback_margin)
    : Classifier(map, nullptr, Rule(), nullptr) {
    exact_ = &exact;
    fallback_margin_ = fallback_margin;
    const auto require = [](bool is_right, const char* text) {
        if (!is_right) throw std::invalid_argument(text);
    };
    require(map.n_maps() == 1, "a fallback needs a single map");
    require(exact.n_features() == map.n_features() && exact.n_classes() == n_classes(),
            "exact must take the rows and have the classes of the map");
    require(fallback_margin >= 0, "fallback_margin must be 0 or more, and not NaN");
}

Classifier::Classifier(const Maps& maps, const Maps* pairs, Rule rule, TieBreaker tie_breaker)
    : maps_(&maps),
      pairs_(pairs),
      rule_(std::move(rule)),
      tie_breaker_(std::move(tie_breaker)),
      max_exponent_(maps.max_exponent()) {
    complete_rule();
    check_rule();
    if (pairs_) max_exponent_ = std::min(max_exponent_, pairs_->max_exponent());
    limit_ = std::ldexp(1.0, max_exponent_);
}

void Classifier::complete_rule() {
    switch (rule_.kind) {
        case Rule::Kind::direct: rule_.n_classes = maps_->n_classes(); break;
        case Rule::Kind::tree: rule_.n_classes = maps_->n_maps() + 1; break;
        case Rule::Kind::highest: rule_.n_classes = maps_->n_values(); break;
        case Rule::Kind::coupled:
            rule_.n_classes = 0;
            while (count_pairs(rule_.n_classes) < maps_->n_maps()) ++rule_.n_classes;
            break;
        case Rule::Kind::shortlist:
            rule_.n_classes = maps_->n_values();
            rule_.max_selected = std::min(rule_.max_selected, rule_.n_classes);
    }
}

void Classifier::check_rule() const {
    const auto require = [](bool is_right, const std::string& text) {
        if (!is_right) throw std::invalid_argument(text);
    };
    const Rule::Kind kind = rule_.kind;
    if (kind == Rule::Kind::tree) check_children();
    if (kind == Rule::Kind::coupled || kind == Rule::Kind::tree)
        require(maps_->common_values() == 1, "maps must have one linear function per point");
    if (kind == Rule::Kind::coupled)
        require(count_pairs(rule_.n_classes) == maps_->n_maps(),
                "maps must be those of all pairs of classes (1, 3, 6, 10 ...), got " +
                    std::to_string(maps_->n_maps()));
    if (kind != Rule::Kind::shortlist) return require(!pairs_, "pairs are for a shortlist");
    require(pairs_, "a shortlist needs the maps of pairs");
    require(
        rule_.max_selected >= 1 && rule_.logit_margin >= 0 && std::isfinite(rule_.logit_margin) &&
            std::isfinite(rule_.pair_weight),
        "a shortlist must have at least 1 class, with a finite margin of 0 or more and a finite "
        "pair_weight");
    require(maps_->n_maps() == 1, "a shortlist needs one map for all classes");
    require(pairs_->n_features() == n_features() && pairs_->is_double() == maps_->is_double(),
            "pairs must take the rows that maps take, in the same precision");
    const size_t n_pairs = count_pairs(rule_.n_classes);
    require(pairs_->common_values() == 1 && pairs_->n_maps() == n_pairs,
            "pairs must be " + std::to_string(n_pairs) + " maps of one linear function, got " +
                std::to_string(pairs_->n_maps()));
}

// Children are later nodes, so that every descent ends.
void Classifier::check_children() const {
    const ptrdiff_t n = ptrdiff_t(maps_->n_maps());
    if (rule_.children.size() != size_t(2 * n))
        throw std::invalid_argument("children must be two per map");
    for (ptrdiff_t i = 0; i < 2 * n; ++i) {
        const ptrdiff_t child = rule_.children[size_t(i)];
        if (child < 0 ? -1 - child > n : child <= i / 2 || child >= n)
            throw std::invalid_argument(
                "children must lead to later maps, or to classes written -1 - c, got " +
                std::to_string(child) + " at map " + std::to_string(i / 2));
    }
}

template <class Real>
ThreadClassifier<Real> Classifier::thread_classifier(size_t max_rows) const {
    return ThreadClassifier<Real>(maps_->packed(Real()), pairs_ ? &pairs_->packed(Real()) : nullptr,
                                  rule_, tie_breaker_, exact_, fallback_margin_, max_rows);
}

// Rows that are checked, evaluated and labelled while they are in the second-level cache. Where
// rows select maps, larger chunks pay, since more rows select the same map; where some are left to
// exact sums, which take them by the tile, somewhat larger ones do.
size_t Classifier::chunk_rows(size_t row_bytes, size_t number_bytes) const {
    const bool selects = rule_.kind == Rule::Kind::tree || rule_.kind == Rule::Kind::shortlist;
    const size_t max_bytes = selects ? 1 << 20 : exact_ ? 1 << 18 : 1 << 17;
    const size_t fit = max_bytes / std::max(row_bytes, number_bytes * maps_->n_values());
    return std::min(std::max(fit, size_t(240)), size_t(selects || exact_ ? 8160 : 4080)) / 240 *
           240;
}

template <class Real>
void Classifier::classify_out_of_range(const Rows& row, ThreadClassifier<Real>& thread,
                                       int32_t* class_index, bool& is_finite) const {
    const ScaledRow scaled(row, n_features(), max_exponent_);
    is_finite = std::isfinite(scaled.largest_magnitude);
    *class_index = 0;
    if (is_finite && thread.has_fallback()) return thread.queue(row, 0, class_index);
    if (is_finite) thread.classify(scaled.row(), class_index);
    is_finite = scaled.largest_magnitude <= double(std::numeric_limits<Real>::max());
}

// Call in_range(first, n) for rows of a chunk without a number out of range, and is_finite =
// out_of_range(row) for each of the others. `start` is the number of the chunk's first row.
template <class InRange, class OutOfRange>
void Classifier::split_by_range(const Rows& chunk, size_t start,
                                std::atomic<size_t>& first_not_finite, const InRange& in_range,
                                const OutOfRange& out_of_range) const {
    for (size_t first = 0; first < chunk.count; ++first) {
        const size_t stop = maps_->level().predict.first_out_of_range(chunk, n_features(), first,
                                                                      chunk.count, limit_);
        if (stop > first) in_range(first, stop - first);
        first = stop;
        if (stop == chunk.count) return;
        const bool is_finite = out_of_range(first);
        for (size_t known = first_not_finite; !is_finite && start + first < known;)
            if (first_not_finite.compare_exchange_weak(known, start + first)) break;
    }
}

// Call work(thread classifier, classes, chunk, first, first_not_finite) for chunks of rows, where
// `first` is the number of the chunk's first row; `classes` is memory for those of a chunk. Returns
// the first row that is not finite, or -1.
template <class Real, class AnyRows, class Work>
ptrdiff_t Classifier::run_in_chunks(const AnyRows& rows, size_t n_threads, double work_per_row,
                                    const Work& work) const {
    if (rows.count == 0) return -1;
    const size_t row_bytes = n_features() * number_size(rows);
    if (exact_) work_per_row += 0.05 * exact_->work_per_row();  // a few rows are left to them
    n_threads =
        worthwhile_threads(double(rows.count) * work_per_row, std::min(n_threads, rows.count));
    size_t chunk = std::min(chunk_rows(row_bytes, sizeof(Real)), rows.count);
    // Several chunks per thread, so that a thread that starts late does not delay the others.
    if (n_threads > 1) chunk = std::min(chunk, (rows.count / (4 * n_threads) / 240 + 1) * 240);
    std::vector<ThreadClassifier<Real>> threads;
    for (size_t i = 0; i < n_threads; ++i) threads.push_back(thread_classifier<Real>(chunk));
    std::vector<std::vector<int32_t>> classes(n_threads, std::vector<int32_t>(chunk));
    std::vector<ChunkReader> readers(n_threads, {maps_->level().predict, n_features()});
    std::atomic<size_t> first_not_finite{rows.count};
    run_chunks(rows.count, chunk, n_threads, [&](size_t number, size_t first, size_t last) {
        work(threads[number], classes[number].data(), readers[number].read(rows, first, last), first,
             first_not_finite);
    });
    return first_not_finite == rows.count ? -1 : ptrdiff_t(first_not_finite);
}

template <class Real, class AnyRows>
ptrdiff_t Classifier::run(const AnyRows& rows, const char* table, size_t size, char* out,
                          size_t n_threads) const {
    // Checking and labelling a row costs as much as some multiply-adds.
    const double work = work_per_row(maps_->packed(Real()).model()) + 16;
    return run_in_chunks<Real>(
        rows, n_threads, work,
        [&](ThreadClassifier<Real>& thread, int32_t* classes, const Rows& chunk, size_t first,
            std::atomic<size_t>& first_not_finite) {
            const auto in_range = [&](size_t start, size_t n) {
                thread.classify(slice_rows(chunk, start, n), classes + start);
            };
            const auto out_of_range = [&](size_t row) {
                bool is_finite;
                classify_out_of_range(slice_rows(chunk, row, 1), thread, classes + row, is_finite);
                return is_finite;
            };
            split_by_range(chunk, first, first_not_finite, in_range, out_of_range);
            thread.finish();
            write_labels(classes, chunk.count, table, size, out + first * size);
        });
}

template <class Real>
ptrdiff_t Classifier::run_probabilities(const Rows& rows, double* out, size_t n_threads) const {
    const size_t n = n_classes();
    // An exponential costs as much as some ten multiply-adds.
    const double work = work_per_row(maps_->packed(Real()).model()) + 16 + 10 * double(n);
    return run_in_chunks<Real>(
        rows, n_threads, work,
        [&](ThreadClassifier<Real>& thread, int32_t* classes, const Rows& chunk, size_t first,
            std::atomic<size_t>& first_not_finite) {
            double* places = out + first * n;
            const auto in_range = [&](size_t start, size_t count) {
                const Rows some = slice_rows(chunk, start, count);
                thread.probabilities(some, places + start * n);
                if (thread.has_fallback()) thread.queue_ambiguous_rows(some, classes + start);
            };
            const auto out_of_range = [&](size_t row) {
                const Rows one = slice_rows(chunk, row, 1);
                const ScaledRow scaled(one, n_features(), max_exponent_);
                double* place = places + row * n;
                classes[row] = -1;
                std::fill(place, place + n, std::numeric_limits<double>::quiet_NaN());
                if (!std::isfinite(scaled.largest_magnitude)) return false;
                thread.probabilities(scaled.row(), place);
                if (thread.has_fallback()) thread.queue(one, 0, classes + row);
                return thread.has_fallback() ||
                       scaled.largest_magnitude <= double(std::numeric_limits<Real>::max());
            };
            split_by_range(chunk, first, first_not_finite, in_range, out_of_range);
            if (!thread.has_fallback()) return;
            thread.finish();
            std::vector<size_t> order;
            for (size_t r = 0; r < chunk.count; ++r)
                if (classes[r] >= 0) move_largest(places + r * n, n, size_t(classes[r]), order);
        });
}

bool Classifier::has_probabilities() const {
    if (!maps_) return false;
    if (rule_.kind == Rule::Kind::highest) return maps_->n_values() > 1;
    const bool has_votes =
        maps_->visit([](const auto& maps) { return maps.model().n_classes > 0; });
    return rule_.kind == Rule::Kind::direct && maps_->n_maps() == 1 && !has_votes;
}

ptrdiff_t Classifier::probabilities(const Rows& rows, double* out, size_t n_threads) const {
    if (!has_probabilities())
        throw std::invalid_argument(
            "probabilities need a single map, or the rule 'highest' with a map for each class");
    return maps_->is_double() ? run_probabilities<double>(rows, out, n_threads)
                              : run_probabilities<float>(rows, out, n_threads);
}

// By exact sums alone.
template <class AnyRows>
ptrdiff_t Classifier::run_exact(const AnyRows& rows, const char* table, size_t size, char* out,
                                size_t n_threads) const {
    if (rows.count == 0) return -1;
    const double work = double(rows.count) * exact_->work_per_row();
    n_threads = worthwhile_threads(work, std::min(n_threads, rows.count));
    const size_t unit = exact_->level().exact.float32.layout.rows;
    const size_t share = n_threads > 1 ? rows.count / (4 * n_threads) : rows.count;
    const size_t chunk = std::min(share / unit + 1, 4096 / unit) * unit;
    std::vector<ExactThread> threads;
    threads.reserve(n_threads);
    for (size_t i = 0; i < n_threads; ++i) threads.emplace_back(*exact_, chunk);
    std::vector<std::vector<int32_t>> classes(n_threads, std::vector<int32_t>(chunk));
    std::vector<ChunkReader> readers(n_threads, {exact_->level().predict, n_features()});
    std::atomic<size_t> first_not_finite{rows.count};
    run_chunks(rows.count, chunk, n_threads, [&](size_t number, size_t first, size_t last) {
        threads[number].classify(readers[number].read(rows, first, last), classes[number].data());
        const size_t found = first + threads[number].first_not_finite();
        for (size_t known = first_not_finite; found < last && found < known;)
            if (first_not_finite.compare_exchange_weak(known, found)) break;
        write_labels(classes[number].data(), last - first, table, size, out + first * size);
    });
    return first_not_finite == rows.count ? -1 : ptrdiff_t(first_not_finite);
}

template <class AnyRows>
ptrdiff_t Classifier::label_any(const AnyRows& rows, const char* table, size_t size, char* out,
                                size_t n_threads) const {
    if (!maps_) return run_exact(rows, table, size, out, n_threads);
    return maps_->is_double() ? run<double>(rows, table, size, out, n_threads)
                              : run<float>(rows, table, size, out, n_threads);
}

ptrdiff_t Classifier::label(const Rows& rows, const char* table, size_t size, char* out,
                            size_t n_threads) const {
    return label_any(rows, table, size, out, n_threads);
}

ptrdiff_t Classifier::label(const IntegerRows& rows, const char* table, size_t size, char* out,
                            size_t n_threads) const {
    return label_any(rows, table, size, out, n_threads);
}

ptrdiff_t Classifier::first_out_of_range(const Rows& rows) const {
    const SimdLevel& level = maps_ ? maps_->level() : exact_->level();
    const size_t found =
        level.predict.first_out_of_range(rows, n_features(), 0, rows.count, limit_);
    return found == rows.count ? -1 : ptrdiff_t(found);
}

std::vector<int32_t> Classifier::classify(const Rows& rows, size_t n_threads) const {
    std::vector<int32_t> classes(rows.count), numbers(n_classes());
    for (size_t c = 0; c < numbers.size(); ++c) numbers[c] = int32_t(c);
    label(rows, reinterpret_cast<const char*>(numbers.data()), sizeof(int32_t),
          reinterpret_cast<char*>(classes.data()), n_threads);
    return classes;
}

SingleRowClassifier::SingleRowClassifier(const Classifier& classifier) : classifier_(classifier) {
    if (!classifier.maps_)
        exact_ = std::make_unique<ExactThread>(*classifier.exact_, 1);
    else if (classifier.maps_->is_double())
        float64_ =
            std::make_unique<ThreadClassifier<double>>(classifier.thread_classifier<double>(1));
    else
        float32_ =
            std::make_unique<ThreadClassifier<float>>(classifier.thread_classifier<float>(1));
}

SingleRowClassifier::~SingleRowClassifier() = default;

int32_t SingleRowClassifier::classify(const Rows& row) {
    int32_t class_index = 0;
    if (exact_)
        exact_->classify(row, &class_index);
    else if (float64_)
        classify_by_map(row, *float64_, &class_index);
    else
        classify_by_map(row, *float32_, &class_index);
    return class_index;
}

template <class Real>
void SingleRowClassifier::classify_by_map(const Rows& row, ThreadClassifier<Real>& thread,
                                          int32_t* class_index) const {
    bool is_finite;
    if (classifier_.first_out_of_range(row) == 0)
        classifier_.classify_out_of_range(row, thread, class_index, is_finite);
    else
        thread.classify(row, class_index);
    thread.finish();
}

}  // namespace limes
