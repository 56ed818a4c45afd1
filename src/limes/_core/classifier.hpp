// Maps and the rule that joins them, as a Python object: from rows to labels in one call.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "maps.hpp"
#include "worker.hpp"

namespace limes {

class Classifier {
public:
    // `rule`: "own" (what Maps.classify does), "highest" value, "coupled" pairs, "walk" down a tree
    // (`children`), "shortlist" or "coupled shortlist" (`pairs`, and (n_named, reach, trust)).
    // `referee`: a function from the list of a row's values to its class, asked by coupled rules.
    Classifier(nb::object maps, const std::string& rule, nb::object pairs, nb::object children,
               nb::object shortlist, nb::object referee);

    size_t n_features() const { return maps_.n_features(); }
    size_t n_classes() const { return rule_.n_classes; }
    // The power of two that the numbers of a row may reach; beyond, a row is moved towards zero.
    int range() const { return range_; }

    // Write the label of each row, `table[class]`, to `out`: both are arrays of bytes, a label a
    // line. A row without a number is class 0. Returns the first row that a prediction should
    // refuse, having a number that is not finite in the arithmetic, or -1.
    ptrdiff_t label(nb::handle X, nb::handle table, nb::handle out, ptrdiff_t n_threads) const;
    // The first row with a number beyond the range, or -1.
    ptrdiff_t first_beyond(nb::handle X) const;
    // The classes of rows.
    std::vector<int32_t> classify(const Rows& rows) const;

    // The class of one row at a time, in memory that is kept; for one Python thread at a time.
    class Single {
    public:
        explicit Single(const Classifier& owner);
        int32_t classify(const Rows& row);

    private:
        const Classifier& owner_;
        std::unique_ptr<Worker<float>> single_;
        std::unique_ptr<Worker<double>> twice_;
    };

private:
    template <class Real>
    Worker<Real> make_worker(size_t most_rows) const {
        return Worker<Real>(maps_.engine(Real()), pairs_ ? &pairs_->engine(Real()) : nullptr, rule_,
                            referee_, most_rows);
    }
    template <class Real>
    ptrdiff_t run(const Rows& rows, const char* table, size_t size, char* out, size_t n_threads) const;
    template <class Real>
    void run_chunk(const Rows& rows, size_t first, size_t last, Worker<Real>& worker,
                   int32_t* codes, std::atomic<size_t>& refused) const;
    template <class Real>
    int32_t classify_beyond(const Rows& row, Worker<Real>& worker, bool& is_refused) const;
    void read_children(nb::handle children);
    void read_shortlist(nb::handle shortlist);
    void check_rule() const;
    int32_t ask_referee(const std::vector<double>& values) const;
    size_t chunk_rows(size_t row_bytes, size_t number_bytes) const;

    nb::object owner_, owner_of_pairs_, python_referee_;
    const Maps& maps_;
    const Maps* pairs_;
    Rule rule_;
    Referee referee_;
    int range_;
    double limit_;
};

}  // namespace limes
