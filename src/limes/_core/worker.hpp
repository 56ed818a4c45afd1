// One thread's way from rows to classes: the kernel, then the rule that joins its values.
#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "joins.hpp"
#include "maps.hpp"

namespace limes {

enum class Kind { own, highest, coupled, shortlist, walk };

// How the values of maps become a class.
struct Rule {
    Kind kind = Kind::own;
    size_t n_classes = 0;
    bool by_vote = true;  // shortlist: votes of the named classes, or their coupled probabilities
    size_t n_named = 0;
    double reach = 0, trust = 0;
    std::vector<int32_t> children;  // walk

    size_t n_slots() const { return n_named * (n_named - 1) / 2; }
};

// Name the class of one row by the definition itself, from all its values: for those few where
// rounding decides.
using Referee = std::function<int32_t(std::vector<double>)>;

template <class Real>
class Worker {
public:
    Worker(const Engine<Real>& maps, const Engine<Real>* pairs, const Rule& rule,
           const Referee& referee, size_t most_rows)
        : maps_(maps), pairs_(pairs), rule_(rule), referee_(referee), most_rows_(most_rows),
          coupling_(rule.n_classes) {
        const bool is_joined = rule.kind != Kind::own && rule.kind != Kind::walk;
        const size_t n_values = maps.packed.model().n_values;
        if (is_joined) values_.resize(most_rows * n_values);
        room_ = make_room(maps, task(), 0);
        if (!pairs) return;
        room_of_pairs_ = make_room(*pairs, Task::decide_some, rule.n_slots());
        const size_t n_features = maps.packed.model().n_features;
        gathered_.resize(most_rows * n_features * sizeof(double));
        which_.resize(most_rows * rule.n_slots());
        asked_.resize(most_rows * rule.n_slots());
        named_.resize(most_rows * rule.n_named);
        n_named_.resize(most_rows);
    }

    // The classes of at most `most_rows` rows.
    void classify(const Rows& rows, int32_t* codes) {
        if (rule_.kind == Kind::own || rule_.kind == Kind::walk)
            return run(maps_, *room_, {nullptr, rows, task(), 0, nullptr, 0, nullptr, codes,
                                       rule_.children.data()});
        run(maps_, *room_, {nullptr, rows, Task::decide, 0, nullptr, 0, values_.data(), nullptr});
        if (rule_.kind == Kind::shortlist) return ask_pairs(rows, codes);
        const size_t n_values = maps_.packed.model().n_values;
        for (size_t r = 0; r < rows.count; ++r) {
            const Real* values = values_.data() + r * n_values;
            codes[r] = rule_.kind == Kind::highest ? highest(values, n_values) : couple(values);
        }
    }

private:
    Task task() const {
        if (rule_.kind == Kind::walk) return Task::walk;
        if (rule_.kind != Kind::own) return Task::decide;
        return maps_.packed.model().n_classes > 0 ? Task::vote : Task::classify;
    }

    std::unique_ptr<Aligned<Real>> make_room(const Engine<Real>& engine, Task wanted,
                                             size_t n_slots) const {
        const Rows rows{nullptr, most_rows_, 0, 0, false};
        const Job<Real> job{&engine.packed.model(), rows, wanted, 0, nullptr, n_slots, nullptr, nullptr};
        return std::make_unique<Aligned<Real>>(engine.kernel.scratch(job));
    }

    static void run(const Engine<Real>& engine, const Aligned<Real>& room, Job<Real> job) {
        job.model = &engine.packed.model();
        engine.kernel.run(job, 0, job.rows.count, room.get());
    }

    int32_t couple(const Real* values) {
        const size_t n_values = maps_.packed.model().n_values;
        chosen_.assign(values, values + n_values);
        const int32_t winner = coupling_.winner(chosen_.data(), rule_.n_classes);
        return winner >= 0 ? winner : referee_(chosen_);
    }

    // Name the likely classes of every row, and ask the pairs of those where they are several.
    void ask_pairs(const Rows& rows, int32_t* codes) {
        const size_t n_classes = rule_.n_classes;
        size_t n_doubtful = 0;
        for (size_t r = 0; r < rows.count; ++r) {
            const Real* scores = values_.data() + r * n_classes;
            int32_t* named = named_.data() + n_doubtful * rule_.n_named;
            const size_t n = name_classes(scores, n_classes, Real(rule_.reach), rule_.n_named, named);
            codes[r] = n > 1 ? -1 : highest(scores, n_classes);
            if (n > 1) note_doubtful(rows, r, n, n_doubtful++);
        }
        if (n_doubtful == 0) return;
        const size_t size = rows.is_double ? sizeof(double) : sizeof(float);
        const ptrdiff_t width = ptrdiff_t(maps_.packed.model().n_features * size);
        const Rows gathered{gathered_.data(), n_doubtful, width, ptrdiff_t(size), rows.is_double};
        run(*pairs_, *room_of_pairs_, {nullptr, gathered, Task::decide_some, 0, which_.data(),
                                       rule_.n_slots(), asked_.data(), nullptr});
        for (size_t r = 0, i = 0; r < rows.count; ++r)
            if (codes[r] < 0) codes[r] = join_pairs(values_.data() + r * n_classes, i++);
    }

    // Copy a row, and list the pairs of its named classes.
    void note_doubtful(const Rows& rows, size_t row, size_t n, size_t place) {
        const size_t n_features = maps_.packed.model().n_features;
        const size_t size = rows.is_double ? sizeof(double) : sizeof(float);
        const char* from = rows.data + ptrdiff_t(row) * rows.row_stride;
        char* to = gathered_.data() + place * n_features * size;
        if (rows.column_stride == ptrdiff_t(size))
            std::memcpy(to, from, n_features * size);
        else
            for (size_t k = 0; k < n_features; ++k)
                std::memcpy(to + k * size, from + ptrdiff_t(k) * rows.column_stride, size);
        const int32_t* named = named_.data() + place * rule_.n_named;
        int32_t* which = which_.data() + place * rule_.n_slots();
        size_t slot = 0;
        for (size_t i = 0; i < n; ++i)
            for (size_t j = i + 1; j < n; ++j)
                which[slot++] = int32_t(pair_number(size_t(named[i]), size_t(named[j]), rule_.n_classes));
        std::fill(which + slot, which + rule_.n_slots(), -1);
        n_named_[place] = n;
    }

    // The class that the pairs of a doubtful row decide for.
    int32_t join_pairs(const Real* scores, size_t place) {
        const size_t n = n_named_[place];
        const int32_t* named = named_.data() + place * rule_.n_named;
        const Real* asked = asked_.data() + place * rule_.n_slots();
        chosen_.clear();
        for (size_t i = 0; i < n; ++i)
            for (size_t j = i + 1; j < n; ++j) {
                const double rough = 0.5 * (double(scores[named[j]]) - double(scores[named[i]]));
                const Real own = Real(rule_.trust) * asked[chosen_.size()];
                chosen_.push_back(double(own) + (1 - rule_.trust) * rough);
            }
        if (rule_.by_vote) return named[most_voted(chosen_.data(), n, votes_)];
        const int32_t winner = coupling_.winner(chosen_.data(), n);
        if (winner >= 0) return named[winner];
        std::vector<double> values(scores, scores + rule_.n_classes);
        values.insert(values.end(), asked, asked + rule_.n_slots());
        return referee_(values);
    }

    const Engine<Real>& maps_;
    const Engine<Real>* pairs_;
    const Rule& rule_;
    const Referee& referee_;
    size_t most_rows_;
    std::unique_ptr<Aligned<Real>> room_, room_of_pairs_;
    std::vector<Real> values_, asked_;
    std::vector<char> gathered_;
    std::vector<int32_t> which_, named_;
    std::vector<size_t> n_named_;
    std::vector<double> chosen_, votes_;
    Coupling coupling_;
};

}  // namespace limes
