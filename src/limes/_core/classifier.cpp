// Classifier: arguments checked, rows shared among threads, labels written.
#include "classifier.hpp"

#include <cmath>
#include <limits>

#include "labels.hpp"
#include "tamed.hpp"

namespace limes {
namespace {

const Maps& as_maps(nb::handle object, const char* name) {
    if (nb::isinstance<Maps>(object)) return nb::cast<const Maps&>(object);
    const std::string text = std::string(name) + " must be a Maps of the core, got " +
                             nb::type_name(object.type()).c_str();
    throw nb::type_error(text.c_str());
}

Rule name_rule(const std::string& name) {
    Rule rule;
    if (name == "own") rule.kind = Kind::own;
    else if (name == "highest") rule.kind = Kind::highest;
    else if (name == "coupled") rule.kind = Kind::coupled;
    else if (name == "walk") rule.kind = Kind::walk;
    else if (name == "shortlist" || name == "coupled shortlist") rule.kind = Kind::shortlist;
    else
        throw nb::value_error(("rule must be one of 'own', 'highest', 'coupled', 'walk', 'shortlist', "
                               "'coupled shortlist', got '" + name + "'").c_str());
    rule.by_vote = name == "shortlist";
    return rule;
}

[[noreturn]] void refuse(const std::string& text) { throw nb::value_error(text.c_str()); }

size_t count_pairs(size_t n_classes) { return n_classes * (n_classes - 1) / 2; }

}  // namespace

Classifier::Classifier(nb::object maps, const std::string& rule, nb::object pairs,
                       nb::object children, nb::object shortlist, nb::object referee)
    : owner_(maps), owner_of_pairs_(pairs), python_referee_(referee), maps_(as_maps(maps, "maps")),
      pairs_(pairs.is_none() ? nullptr : &as_maps(pairs, "pairs")), rule_(name_rule(rule)),
      range_(maps_.range()) {
    if (rule_.kind == Kind::own) rule_.n_classes = maps_.n_classes();
    if (rule_.kind == Kind::highest) rule_.n_classes = maps_.n_values();
    if (rule_.kind == Kind::coupled)
        while (count_pairs(rule_.n_classes) < maps_.n_maps()) ++rule_.n_classes;
    if (rule_.kind == Kind::walk) read_children(children);
    if (rule_.kind == Kind::shortlist) read_shortlist(shortlist);
    check_rule();
    if (pairs_) range_ = std::min(range_, pairs_->range());
    limit_ = std::ldexp(1.0, range_);
    referee_ = [this](std::vector<double> values) { return ask_referee(values); };
}

void Classifier::read_children(nb::handle children) {
    const View view(children, "children");
    const size_t n = maps_.n_maps();
    if (!view.is_int32()) view.fail_type("must be int32, got elements of format '" + view.kind() + "'");
    view.require_shape({n, 2});
    view.require_plain();
    const int32_t* numbers = static_cast<const int32_t*>(view.data());
    rule_.children.assign(numbers, numbers + 2 * n);
    rule_.n_classes = n + 1;
    for (size_t i = 0; i < 2 * n; ++i) {
        const ptrdiff_t child = rule_.children[i];
        if (child < 0 ? -1 - child > ptrdiff_t(n) : child <= ptrdiff_t(i / 2) || child >= ptrdiff_t(n))
            view.fail_value("must lead to later maps, or to classes written -1 - c, got " +
                            std::to_string(child) + " at map " + std::to_string(i / 2));
    }
}

void Classifier::read_shortlist(nb::handle shortlist) {
    if (!PyTuple_Check(shortlist.ptr()) || nb::len(shortlist) != 3)
        throw nb::type_error("shortlist must be a tuple (n_named, reach, trust)");
    if (!pairs_) throw nb::type_error("a shortlist needs the maps of pairs");
    const nb::tuple parts = nb::borrow<nb::tuple>(shortlist);
    ptrdiff_t n_named = 0;
    if (!nb::try_cast(parts[0], n_named) || !nb::try_cast(parts[1], rule_.reach) ||
        !nb::try_cast(parts[2], rule_.trust))
        throw nb::type_error(("a shortlist must be an integer and two numbers, got " +
                              std::string(nb::repr(shortlist).c_str()))
                                 .c_str());
    if (n_named < 1 || !(rule_.reach >= 0) || !std::isfinite(rule_.reach) || !std::isfinite(rule_.trust))
        refuse("a shortlist must name at least 1 class, with a finite reach of 0 or more and a finite trust");
    rule_.n_classes = maps_.n_values();
    rule_.n_named = std::min(size_t(n_named), rule_.n_classes);
}

// Whether the maps are those that the rule speaks of.
void Classifier::check_rule() const {
    if (rule_.kind == Kind::coupled || rule_.kind == Kind::walk) {
        if (maps_.common_values() != 1) refuse("maps must have one linear function a point");
        if (rule_.kind == Kind::coupled && count_pairs(rule_.n_classes) != maps_.n_maps())
            refuse("maps must be those of all pairs of classes (1, 3, 6, 10 ...), got " +
                   std::to_string(maps_.n_maps()));
    }
    if (rule_.kind != Kind::shortlist) {
        if (pairs_) refuse("pairs are for a shortlist");
        return;
    }
    if (maps_.n_maps() != 1) refuse("a shortlist needs one map for all classes");
    if (pairs_->n_features() != n_features() || pairs_->is_double() != maps_.is_double())
        refuse("pairs must take the rows that maps take, in the same arithmetic");
    if (pairs_->common_values() != 1 || pairs_->n_maps() != count_pairs(rule_.n_classes))
        refuse("pairs must be " + std::to_string(count_pairs(rule_.n_classes)) +
               " maps of one linear function, got " + std::to_string(pairs_->n_maps()));
}

// From any thread; Python's errors stay here, as no thread could raise them.
int32_t Classifier::ask_referee(const std::vector<double>& values) const {
    const nb::gil_scoped_acquire acquire;
    if (python_referee_.is_none()) return 0;
    try {
        nb::list numbers;
        for (double value : values) numbers.append(value);
        const ptrdiff_t code = nb::cast<ptrdiff_t>(python_referee_(numbers));
        return code >= 0 && size_t(code) < rule_.n_classes ? int32_t(code) : 0;
    } catch (const std::exception&) {
        return 0;
    }
}

// Rows that are looked at, searched and labelled while they are in the second-level cache; rows that
// name their maps are better off in many, which share a map.
size_t Classifier::chunk_rows(size_t row_bytes, size_t number_bytes) const {
    const bool is_named = rule_.kind == Kind::walk || rule_.kind == Kind::shortlist;
    const size_t most_bytes = is_named ? 1 << 20 : 1 << 17;
    const size_t fit = most_bytes / std::max(row_bytes, number_bytes * maps_.n_values());
    return std::min(std::max(fit, size_t(240)), size_t(is_named ? 8160 : 4080)) / 240 * 240;
}

template <class Real>
int32_t Classifier::classify_beyond(const Rows& row, Worker<Real>& worker, bool& is_refused) const {
    const Tamed tamed(row, n_features(), range_);
    is_refused = !(tamed.most <= double(std::numeric_limits<Real>::max()));
    int32_t code = 0;
    if (std::isfinite(tamed.most)) worker.classify(tamed.row(), &code);
    return code;
}

template <class Real>
void Classifier::run_chunk(const Rows& rows, size_t first, size_t last, Worker<Real>& worker,
                           int32_t* codes, std::atomic<size_t>& refused) const {
    while (first < last) {
        const size_t stop = maps_.path().first_beyond(rows, n_features(), first, last, limit_);
        if (stop > first) worker.classify(take_rows(rows, first, stop - first), codes);
        codes += stop - first;
        first = stop;
        if (stop == last) return;
        bool is_refused;
        *codes++ = classify_beyond(take_rows(rows, first, 1), worker, is_refused);
        for (size_t least = refused; is_refused && first < least;)
            if (refused.compare_exchange_weak(least, first)) break;
        ++first;
    }
}

template <class Real>
ptrdiff_t Classifier::run(const Rows& rows, const char* table, size_t size, char* out,
                          size_t n_threads) const {
    if (rows.count == 0) return -1;
    const size_t row_bytes = n_features() * (rows.is_double ? sizeof(double) : sizeof(float));
    // Looking at a row and labelling it is as much as some multiply-adds.
    const double work = work_per_row(maps_.engine(Real()).packed.model()) + 16;
    n_threads = worthwhile_threads(double(rows.count) * work, std::min(n_threads, rows.count));
    size_t chunk = std::min(chunk_rows(row_bytes, sizeof(Real)), rows.count);
    // Several chunks a thread, so that a thread that starts late does not hold up the rest.
    if (n_threads > 1) chunk = std::min(chunk, (rows.count / (4 * n_threads) / 240 + 1) * 240);
    std::vector<Worker<Real>> workers;
    for (size_t i = 0; i < n_threads; ++i) workers.push_back(make_worker<Real>(chunk));
    std::vector<std::vector<int32_t>> codes(n_threads, std::vector<int32_t>(chunk));
    std::atomic<size_t> refused{rows.count};
    share_rows(rows.count, chunk, n_threads, [&](size_t number, size_t first, size_t last) {
        run_chunk(rows, first, last, workers[number], codes[number].data(), refused);
        write_labels(codes[number].data(), last - first, table, size, out + first * size);
    });
    return refused == rows.count ? -1 : ptrdiff_t(refused);
}

ptrdiff_t Classifier::label(nb::handle X, nb::handle table, nb::handle out, ptrdiff_t n_threads) const {
    const View rows(X, "X"), labels(table, "table"), place(out, "out", true);
    const Rows read = read_rows(rows, n_features());
    const size_t count = read_threads(n_threads);
    if (labels.item_size() != 1 || labels.dimensions() != 2)
        labels.fail_type("must be bytes of shape (n_classes, size), got elements of format '" +
                         labels.kind() + "' of shape " + labels.shape());
    if (place.item_size() != 1) place.fail_type("must be bytes, got elements of format '" + place.kind() + "'");
    const size_t size = labels.extent(1);
    labels.require_shape({n_classes(), size});
    labels.require_plain();
    place.require_shape({read.count, size});
    place.require_plain();
    // A copy of the labels: the caller's may change while the threads run.
    const char* from = static_cast<const char*>(labels.data());
    const std::vector<char> copied(from, from + n_classes() * size);
    char* to = static_cast<char*>(place.data());
    const nb::gil_scoped_release release;
    return maps_.is_double() ? run<double>(read, copied.data(), size, to, count)
                             : run<float>(read, copied.data(), size, to, count);
}

ptrdiff_t Classifier::first_beyond(nb::handle X) const {
    const View view(X, "X");
    const Rows rows = read_rows(view, n_features());
    const nb::gil_scoped_release release;
    const size_t found = maps_.path().first_beyond(rows, n_features(), 0, rows.count, limit_);
    return found == rows.count ? -1 : ptrdiff_t(found);
}

std::vector<int32_t> Classifier::classify(const Rows& rows) const {
    std::vector<int32_t> codes(rows.count), numbers(n_classes());
    for (size_t c = 0; c < numbers.size(); ++c) numbers[c] = int32_t(c);
    const char* table = reinterpret_cast<const char*>(numbers.data());
    char* out = reinterpret_cast<char*>(codes.data());
    const nb::gil_scoped_release release;
    if (maps_.is_double()) run<double>(rows, table, sizeof(int32_t), out, 1);
    else run<float>(rows, table, sizeof(int32_t), out, 1);
    return codes;
}

Classifier::Single::Single(const Classifier& owner) : owner_(owner) {
    if (owner.maps_.is_double())
        twice_ = std::make_unique<Worker<double>>(owner.make_worker<double>(1));
    else
        single_ = std::make_unique<Worker<float>>(owner.make_worker<float>(1));
}

int32_t Classifier::Single::classify(const Rows& row) {
    const Path& path = owner_.maps_.path();
    bool is_refused;
    if (path.first_beyond(row, owner_.n_features(), 0, 1, owner_.limit_) == 0)
        return twice_ ? owner_.classify_beyond(row, *twice_, is_refused)
                      : owner_.classify_beyond(row, *single_, is_refused);
    int32_t code = 0;
    if (twice_) twice_->classify(row, &code);
    else single_->classify(row, &code);
    return code;
}

}  // namespace limes
