// Maps with the rule that turns their values into classes, or exact sums, or maps that leave
// ambiguous rows to exact sums: from rows to labels in one call.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "class_rules.hpp"
#include "exact_sums.hpp"
#include "maps.hpp"
#include "types.hpp"

namespace limes {

// Decides the class of a row from all its values, by the definition of the rule: called by coupled
// rules for the few rows where two classes are equally probable to within rounding. It is called
// from several threads, and returns -1 if it fails.
using TieBreaker = std::function<int32_t(const std::vector<double>& values)>;

template <class Real>
class ThreadClassifier;

class Classifier {
public:
    // `pairs` are the maps of a shortlist, or null. The maps must outlive the classifier. Of the
    // rule, n_classes is computed. Throws std::invalid_argument if the maps do not fit the rule.
    Classifier(const Maps& maps, const Maps* pairs, Rule rule, TieBreaker tie_breaker);
    // By exact sums alone, which must outlive the classifier.
    explicit Classifier(const ExactSums& exact);
    // By a single map, or by exact sums where the difference between the two highest values of the
    // map (a single value counts twice) is below the margin, or the row out of the map's range.
    Classifier(const Maps& map, const ExactSums& exact, double fallback_margin);

    size_t n_features() const { return maps_ ? maps_->n_features() : exact_->n_features(); }
    size_t n_classes() const { return rule_.n_classes; }
    // Rows with larger numbers than 2 to this power are scaled down before they are classified by
    // maps, or left to exact sums.
    int max_exponent() const { return max_exponent_; }

    // Write the label table[class], of `size` bytes, of each row. A row with a NaN or an infinity
    // is class 0. Returns the first row that has a number that is not finite in the precision of
    // the maps (with exact sums: in that of the row), or -1.
    ptrdiff_t label(const Rows& rows, const char* table, size_t size, char* out,
                    size_t n_threads) const;
    ptrdiff_t label(const IntegerRows& rows, const char* table, size_t size, char* out,
                    size_t n_threads) const;
    // Whether the values of a row are logits or odds of all classes, so that `probabilities`
    // exists: a single map, or one for each class.
    bool has_probabilities() const;
    // Write the probability of each class: out[row][class]; the largest is that of the label. A row
    // with a NaN or an infinity has NaN. Returns what `label` returns.
    ptrdiff_t probabilities(const Rows& rows, double* out, size_t n_threads) const;
    // The first row with a number above 2 to max_exponent or not finite, or -1.
    ptrdiff_t first_out_of_range(const Rows& rows) const;
    // The class of each row.
    std::vector<int32_t> classify(const Rows& rows, size_t n_threads = 1) const;

private:
    friend class SingleRowClassifier;

    void complete_rule();
    void check_children() const;
    void check_rule() const;
    template <class Real>
    ThreadClassifier<Real> thread_classifier(size_t max_rows) const;
    template <class AnyRows>
    ptrdiff_t label_any(const AnyRows& rows, const char* table, size_t size, char* out,
                        size_t n_threads) const;
    template <class Real, class AnyRows>
    ptrdiff_t run(const AnyRows& rows, const char* table, size_t size, char* out,
                  size_t n_threads) const;
    template <class Real>
    ptrdiff_t run_probabilities(const Rows& rows, double* out, size_t n_threads) const;
    template <class Real, class AnyRows, class Work>
    ptrdiff_t run_in_chunks(const AnyRows& rows, size_t n_threads, double work_per_row,
                            const Work& work) const;
    template <class InRange, class OutOfRange>
    void split_by_range(const Rows& chunk, size_t start, std::atomic<size_t>& first_not_finite,
                        const InRange& in_range, const OutOfRange& out_of_range) const;
    template <class Real>
    void classify_out_of_range(const Rows& row, ThreadClassifier<Real>& thread,
                               int32_t* class_index, bool& is_finite) const;
    size_t chunk_rows(size_t row_bytes, size_t number_bytes) const;
    template <class AnyRows>
    ptrdiff_t run_exact(const AnyRows& rows, const char* table, size_t size, char* out,
                        size_t n_threads) const;

    const Maps* maps_ = nullptr;  // null: exact sums alone
    const Maps* pairs_ = nullptr;
    const ExactSums* exact_ = nullptr;
    Rule rule_;
    TieBreaker tie_breaker_;
    double fallback_margin_ = 0;
    int max_exponent_;
    double limit_;
};

// Classifies one row at a time with a workspace that is kept: for one thread at a time.
class SingleRowClassifier {
public:
    explicit SingleRowClassifier(const Classifier& classifier);
    ~SingleRowClassifier();
    int32_t classify(const Rows& row);

private:
    template <class Real>
    void classify_by_map(const Rows& row, ThreadClassifier<Real>& thread,
                         int32_t* class_index) const;

    const Classifier& classifier_;
    std::unique_ptr<ThreadClassifier<float>> float32_;
    std::unique_ptr<ThreadClassifier<double>> float64_;
    std::unique_ptr<ExactThread> exact_;
};

}  // namespace limes
