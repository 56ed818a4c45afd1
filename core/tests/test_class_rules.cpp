// Class rules, and the classifier that applies them to rows.
#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "class_rules.hpp"
#include "classifier.hpp"
#include "simd_dispatch.hpp"

using namespace limes;

using Doubles = std::vector<double>;
using Ints = std::vector<int32_t>;

// ---- The rules themselves ----

static void test_the_first_of_equal_values_is_the_highest() {
    CHECK(argmax(Doubles{1, 3, 3}.data(), 3) == 1);
    CHECK(argmax(Doubles{2, 2, 2}.data(), 3) == 0);
}

static void test_pairs_are_numbered_row_by_row() {
    size_t expected = 0;
    for (size_t i = 0; i < 5; ++i)
        for (size_t j = i + 1; j < 5; ++j) CHECK(pair_number(i, j, 5) == expected++);
    CHECK(expected == count_pairs(5));
}

static void test_the_lowest_class_wins_a_tie_of_votes() {
    Doubles votes;
    CHECK(most_voted(Doubles{1, 1, 1}.data(), 3, votes) == 2);
    CHECK(most_voted(Doubles{-1, 1, -1}.data(), 3, votes) == 0);  // one vote each
    CHECK(most_voted(Doubles{0, 0, 0}.data(), 3, votes) == 0);    // zero votes for the first
}

static void test_coupling_recovers_consistent_probabilities() {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform(0.01, 1);
    for (size_t n = 2; n <= 12; ++n) {
        Coupling coupling(12);
        Doubles p(n), values;
        for (double& probability : p) probability = uniform(random);
        for (size_t i = 0; i < n; ++i)
            for (size_t j = i + 1; j < n; ++j) values.push_back(0.5 * std::log(p[j] / p[i]));
        CHECK(coupling.most_probable(values.data(), n) == argmax(p.data(), n));
    }
}

static void test_coupling_reports_a_tie() {
    Coupling coupling(4);
    CHECK(coupling.most_probable(Doubles(6, 0.0).data(), 4) == -1);
    CHECK(coupling.most_probable(Doubles{1, -1, 1}.data(), 3) == -1);  // each beats one other
    CHECK(coupling.most_probable(Doubles{1e-6}.data(), 2) == 1);
}

static void test_a_shortlist_has_the_classes_within_the_margin() {
    const auto select = [](const Doubles& scores, double logit_margin, size_t max_selected) {
        Ints selected(max_selected);
        selected.resize(select_classes(scores.data(), scores.size(), logit_margin, max_selected,
                                       selected.data()));
        return selected;
    };
    CHECK((select({1, 5, 4, 3}, 1.5, 4) == Ints{1, 2}));
    CHECK((select({1, 5, 4, 3}, 10, 2) == Ints{1, 2}));
    CHECK((select({4, 5, 4, 4}, 1, 2) == Ints{0, 1}));  // the lowest among equals
    CHECK((select({7, 7, 7}, 0, 3) == Ints{0, 1, 2}));
}

static void test_the_winner_and_the_classes_above_it_share_their_mean() {
    std::vector<size_t> order;
    Doubles p = {0.5, 0.3, 0.2};
    move_largest(p.data(), 3, 1, order);
    CHECK(argmax(p.data(), 3) == 1);
    for (size_t c = 0; c < 3; ++c) CHECK_CLOSE(p[c], (Doubles{0.4, 0.4, 0.2})[c], 1e-8);
    p = {0.1, 0.6, 0.28, 0.02};  // the mean of 0.02 and 0.6 is above 0.28
    move_largest(p.data(), 4, 3, order);
    for (size_t c = 0; c < 4; ++c) CHECK_CLOSE(p[c], (Doubles{0.1, 0.31, 0.28, 0.31})[c], 1e-8);
    const Doubles before = p;
    move_largest(p.data(), 4, 3, order);
    CHECK(p == before);
}

// ---- The classifier ----

// Maps of a single point each: the values of map m are offsets[m] + slopes[m] x of one feature.
static Maps linear_maps(const std::vector<Doubles>& slopes, const std::vector<Doubles>& offsets,
                        const Ints& pairs = {}, bool is_double = true) {
    ModelArrays model;
    model.n_features = model.n_search = 1;
    model.center = {0.0};
    model.pairs = pairs;
    for (size_t m = 0; m < slopes.size(); ++m) {
        MapArrays map;
        map.n_points = 1;
        map.n_values = slopes[m].size();
        map.points = map.biases = {0.0};
        map.slopes = slopes[m];
        map.offsets = offsets[m];
        model.maps.push_back(map);
    }
    return Maps(model, is_double, choose_level(""));
}

static Rule rule_of(Rule::Kind kind) {
    Rule rule;
    rule.kind = kind;
    return rule;
}

// Classify rows together, one at a time and with threads: all must agree.
static Ints classify(const Classifier& classifier, const Doubles& numbers) {
    const Ints classes = classifier.classify(rows_of(numbers, 1));
    SingleRowClassifier single_row(classifier);
    for (size_t r = 0; r < numbers.size(); ++r)
        CHECK(single_row.classify(rows_of({numbers[r]}, 1)) == classes[r]);
    Doubles many;
    for (size_t i = 0; i < 3000; ++i) many.push_back(numbers[i % numbers.size()]);
    const Ints with_threads = classifier.classify(rows_of(many, 1), 2);
    for (size_t i = 0; i < many.size(); ++i) CHECK(with_threads[i] == classes[i % numbers.size()]);
    return classes;
}

static void test_one_map_gives_the_class_of_its_highest_value() {
    const Maps side = linear_maps({{1}}, {{-2}});
    CHECK((classify(Classifier(side, nullptr, Rule(), {}), {1, 2, 3}) == Ints{0, 0, 1}));
    const Maps three = linear_maps({{0, 1, 2}}, {{0, 0, -1}});
    const Classifier classifier(three, nullptr, Rule(), {});
    CHECK((classify(classifier, {-1, 0, 0.5, 1, 2}) == Ints{0, 0, 1, 1, 2}));
    const Classifier highest(three, nullptr, rule_of(Rule::Kind::highest), {});
    CHECK((classify(highest, {-1, 0, 0.5, 1, 2}) == Ints{0, 0, 1, 1, 2}));
}

static void test_pairs_vote() {
    const Maps maps = linear_maps({{1}, {1}, {1}}, {{-1}, {-2}, {-3}}, {0, 1, 0, 2, 1, 2});
    const Classifier classifier(maps, nullptr, Rule(), {});
    // At 2.5 class 1 beats 0, class 2 beats 0, class 1 beats 2.
    CHECK((classify(classifier, {0, 1.5, 2.5, 4}) == Ints{0, 1, 1, 2}));
}

static void test_coupled_pairs_ask_the_tie_breaker_only_in_a_tie() {
    const Maps maps = linear_maps({{1}, {1}, {0}}, {{0}, {0}, {0}});
    std::vector<Doubles> calls;
    const auto tie_breaker = [&](const Doubles& values) {
        calls.push_back(values);
        return int32_t(2);
    };
    const Classifier classifier(maps, nullptr, rule_of(Rule::Kind::coupled), tie_breaker);
    const Doubles numbers = {-1, 0, 1};
    CHECK((classifier.classify(rows_of(numbers, 1)) == Ints{0, 2, 2}));
    CHECK((calls == std::vector<Doubles>{{0, 0, 0}, {1, 1, 0}}));
    const auto failing = [](const Doubles&) { return int32_t(-1); };
    CHECK((classify(Classifier(maps, nullptr, rule_of(Rule::Kind::coupled), failing), {0}) ==
           Ints{0}));
    CHECK((classify(Classifier(maps, nullptr, rule_of(Rule::Kind::coupled), {}), {0}) == Ints{0}));
}

static void test_a_tree_descends_to_its_leaf() {
    // Node 0 separates class 1 (below 0) from node 1, which separates classes 0 and 2 at 5.
    const Maps maps = linear_maps({{1}, {1}}, {{0}, {-5}});
    Rule rule = rule_of(Rule::Kind::tree);
    rule.children = {-2, 1, -1, -3};
    const Classifier classifier(maps, nullptr, rule, {});
    CHECK((classify(classifier, {-1, 0, 1, 5, 6}) == Ints{1, 1, 0, 0, 2}));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK((classify(classifier, {nan}) == Ints{0}));
}

static void test_a_shortlist_is_decided_by_its_pairs() {
    // All classes are within logit_margin; the pairs prefer 1 to 0, 0 to 2 and 1 to 2.
    const Maps shared = linear_maps({{0, 0, 1}}, {{2, 1, 0}});
    const Maps pairs = linear_maps({{0}, {0}, {0}}, {{1}, {-1}, {-1}});
    Rule rule = rule_of(Rule::Kind::shortlist);
    rule.max_selected = 3;
    rule.logit_margin = 5;
    rule.pair_weight = 1;
    for (bool by_vote : {true, false}) {
        rule.by_vote = by_vote;
        // At 100 only class 2 is within logit_margin, and no pair is evaluated.
        CHECK((classify(Classifier(shared, &pairs, rule, {}), {0, 100}) == Ints{1, 2}));
    }
    rule.pair_weight = 0;  // the scores of the shared map alone
    CHECK((classify(Classifier(shared, &pairs, rule, {}), {0, 100}) == Ints{0, 2}));
}

static void test_probabilities_are_those_of_logits_and_odds() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Doubles numbers = {-1, 0, 0.5, nan, 1e300};
    for (bool is_double : {false, true}) {
        const double tolerance = is_double ? 1e-14 : 1e-7;
        const Maps side = linear_maps({{1}}, {{0}}, {}, is_double);
        const Classifier two(side, nullptr, Rule(), {});
        Doubles out(10);
        CHECK(two.probabilities(rows_of(numbers, 1), out.data(), 1) == 3);
        for (size_t r = 0; r < 3; ++r) {
            CHECK_CLOSE(out[2 * r + 1], 1 / (1 + std::exp(-2 * numbers[r])), tolerance);
            CHECK_CLOSE(out[2 * r] + out[2 * r + 1], 1, 1e-15);
        }
        CHECK(std::isnan(out[6]) && out[9] == 1);
        const Maps three = linear_maps({{0, 1, 2}}, {{0, 0, -1}}, {}, is_double);
        const Classifier logits(three, nullptr, Rule(), {});
        out.resize(15);
        CHECK(logits.probabilities(rows_of(numbers, 1), out.data(), 1) == 3);
        for (size_t r = 0; r < 3; ++r) {
            const double x = numbers[r], sum = 1 + std::exp(x) + std::exp(2 * x - 1);
            CHECK_CLOSE(out[3 * r], 1 / sum, tolerance);
            CHECK_CLOSE(out[3 * r + 2], std::exp(2 * x - 1) / sum, tolerance);
        }
        CHECK(out[14] == 1);
    }
    const Maps maps = linear_maps({{1}, {1}, {1}}, {{-1}, {-2}, {-3}}, {0, 1, 0, 2, 1, 2});
    CHECK(!Classifier(maps, nullptr, Rule(), {}).has_probabilities());
}

static void test_rows_out_of_range_are_classified_by_their_direction() {
    for (bool is_double : {false, true}) {
        const Maps maps = linear_maps({{1}}, {{-2}}, {}, is_double);
        const Classifier classifier(maps, nullptr, Rule(), {});
        const double far = std::ldexp(1.9, classifier.max_exponent());
        CHECK((classify(classifier, {far, -far, 3}) == Ints{1, 0, 1}));
        CHECK(classifier.first_out_of_range(rows_of({3, far}, 1)) == 1);
        CHECK(classifier.first_out_of_range(rows_of({3, -3}, 1)) == -1);
    }
}

static void test_labels_of_any_size_are_written() {
    const Maps maps = linear_maps({{1}}, {{0}});
    const Classifier classifier(maps, nullptr, Rule(), {});
    const double infinity = std::numeric_limits<double>::infinity();
    for (size_t size : {1, 2, 3, 4, 8, 11}) {
        const std::string table = std::string(size, 'a') + std::string(size, 'b');
        std::string out(3 * size, ' ');
        const Doubles numbers = {1, -1, infinity};
        const ptrdiff_t refused =
            classifier.label(rows_of(numbers, 1), table.data(), size, out.data(), 1);
        CHECK(refused == 2);
        CHECK(out == std::string(size, 'b') + std::string(2 * size, 'a'));
    }
}

static void test_integers_are_classified_as_their_numbers() {
    const Maps maps = linear_maps({{1}}, {{-200}});
    const Classifier classifier(maps, nullptr, Rule(), {});
    const unsigned char bytes[] = {255, 200, 201, 0};
    const int16_t shorts[] = {-300, 201, 32767};
    const uint16_t words[] = {65535, 200};
    const auto labels = [&](const void* data, size_t n, ptrdiff_t stride, IntegerType type) {
        std::string out(n, ' ');
        const IntegerRows rows{static_cast<const char*>(data), n, stride, stride, type};
        CHECK(classifier.label(rows, "ab", 1, out.data(), 1) == -1);
        return out;
    };
    CHECK(labels(bytes, 4, 1, IntegerType::uint8) == "baba");
    CHECK(labels(bytes, 2, 2, IntegerType::uint8) == "bb");  // every other row
    CHECK(labels(shorts, 3, 2, IntegerType::int16) == "abb");
    CHECK(labels(words, 2, 2, IntegerType::uint16) == "ba");
}

static void test_rules_that_do_not_fit_the_maps_are_refused() {
    const auto is_refused = [](const Maps& maps, const Maps* pairs, const Rule& rule) {
        try {
            Classifier(maps, pairs, rule, {});
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    const Maps two = linear_maps({{1}, {1}}, {{0}, {0}});
    CHECK(is_refused(two, nullptr, Rule()));  // neither a single map nor pairs
    CHECK(is_refused(two, nullptr, rule_of(Rule::Kind::coupled)));
    CHECK(is_refused(two, nullptr, rule_of(Rule::Kind::shortlist)));
    Rule tree = rule_of(Rule::Kind::tree);
    tree.children = {-1, 1, 0, -3};  // a cycle
    CHECK(is_refused(two, nullptr, tree));
}

int main() {
    test_the_first_of_equal_values_is_the_highest();
    test_pairs_are_numbered_row_by_row();
    test_the_lowest_class_wins_a_tie_of_votes();
    test_coupling_recovers_consistent_probabilities();
    test_coupling_reports_a_tie();
    test_a_shortlist_has_the_classes_within_the_margin();
    test_the_winner_and_the_classes_above_it_share_their_mean();
    test_one_map_gives_the_class_of_its_highest_value();
    test_probabilities_are_those_of_logits_and_odds();
    test_pairs_vote();
    test_coupled_pairs_ask_the_tie_breaker_only_in_a_tie();
    test_a_tree_descends_to_its_leaf();
    test_a_shortlist_is_decided_by_its_pairs();
    test_rows_out_of_range_are_classified_by_their_direction();
    test_labels_of_any_size_are_written();
    test_integers_are_classified_as_their_numbers();
    test_rules_that_do_not_fit_the_maps_are_refused();
    return report();
}
