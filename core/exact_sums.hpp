// The sums of kernels of a trained classifier, from which its classes follow: packed for a SIMD
// level, evaluated in float32 and, where rounding could change the class, again in float64.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "class_rules.hpp"
#include "packed.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace limes {

// How values become a class.
enum class ExactRule {
    votes,        // of the pairs, as LIBSVM counts them: 0 is a vote for the second class
    strict,       // of one pair, where 0 is the first class
    ties_broken,  // the highest of scikit-learn's one-vs-rest decision function
    density       // the highest logarithm of a density
};

// A trained classifier: arrays of float64, of shapes that the caller has checked.
struct ExactArrays {
    KernelFunction function = KernelFunction::gaussian;
    ExactRule rule = ExactRule::votes;
    double gamma = 1, coef0 = 0;
    int degree = 3;
    size_t n_features = 0, n_terms = 0;  // of a raw row, of a vector
    std::vector<double> vectors;         // (n_vectors, n_terms), class by class
    std::vector<size_t> n_support;       // (n_classes): number of vectors of each class
    std::vector<double>
        coefficients;  // (n_classes - 1, n_vectors): LIBSVM's sv_coef; not for densities
    std::vector<double> intercepts;    // (n_values); for densities, logarithms of the priors
    std::vector<int32_t> class_order;  // (n_classes): the class that is returned for each
    // See RowTransform; empty where rows are not transformed.
    std::vector<double> shift, scale, matrix;
    std::vector<int32_t> columns;

    size_t n_vectors() const { return n_terms ? vectors.size() / n_terms : 0; }
    size_t n_classes() const { return n_support.size(); }
    bool is_density() const { return rule == ExactRule::density; }
    size_t n_values() const { return is_density() ? n_classes() : count_pairs(n_classes()); }

    // The weight of a vector of one class in the pair with another: positive means the second.
    double weight(size_t vector, size_t own, size_t other) const {
        return -coefficients[(other > own ? other - 1 : other) * n_vectors() + vector];
    }
    size_t value_of(size_t own, size_t other) const {
        return pair_number(std::min(own, other), std::max(own, other), n_classes());
    }
};

// Values of one row by their definition, without any trick that costs digits.
class ExactDefinition {
public:
    explicit ExactDefinition(const ExactArrays& arrays) : arrays_(arrays) {}

    // `terms` is a row after its transformation, not centred.
    void evaluate(const double* terms, double* values) const {
        kernels_.resize(arrays_.n_vectors());
        for (size_t i = 0; i < kernels_.size(); ++i)
            kernels_[i] = kernel(terms, &arrays_.vectors[i * arrays_.n_terms]);
        if (arrays_.is_density()) return add_exponentials(values);
        for (size_t v = 0; v < arrays_.n_values(); ++v) values[v] = -arrays_.intercepts[v];
        size_t vector = 0;
        for (size_t own = 0; own < arrays_.n_classes(); ++own)
            for (const size_t end = vector + arrays_.n_support[own]; vector < end; ++vector)
                for (size_t other = 0; other < arrays_.n_classes(); ++other)
                    if (other != own)
                        values[arrays_.value_of(own, other)] +=
                            arrays_.weight(vector, own, other) * kernels_[vector];
    }

private:
    // The kernel; for densities its logarithm.
    double kernel(const double* z, const double* s) const {
        double sums[4] = {};
        const bool is_gaussian = arrays_.function == KernelFunction::gaussian;
        for (size_t k = 0; k < arrays_.n_terms; ++k)
            sums[k % 4] += is_gaussian ? (z[k] - s[k]) * (z[k] - s[k]) : z[k] * s[k];
        const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        const double argument = arrays_.gamma * sum + arrays_.coef0;
        // With a width of 0, the exponent is 0 for an infinite distance too.
        const double exponent = -arrays_.gamma * std::min(sum, std::numeric_limits<double>::max());
        switch (arrays_.function) {
            case KernelFunction::linear: return sum;
            case KernelFunction::polynomial: return std::pow(argument, arrays_.degree);
            case KernelFunction::sigmoid: return std::tanh(argument);
            default: return arrays_.is_density() ? exponent : std::exp(exponent);
        }
    }

    void add_exponentials(double* values) const {
        size_t first = 0;
        for (size_t c = 0; c < arrays_.n_classes(); first += arrays_.n_support[c++]) {
            const size_t last = first + arrays_.n_support[c];
            double most = -std::numeric_limits<double>::infinity(), sum = 0;
            for (size_t i = first; i < last; ++i) most = std::max(most, kernels_[i]);
            for (size_t i = first; i < last; ++i) sum += std::exp(kernels_[i] - most);
            values[c] = std::isfinite(most) ? std::log(sum) + most + arrays_.intercepts[c] : most;
        }
    }

    const ExactArrays& arrays_;
    mutable std::vector<double> kernels_;
};

// The vectors of each class in blocks, those with weights in the same pairs together. Equal vectors
// are merged: their rounding errors would be equal too.
struct ExactBlocks {
    // A slot is a value with the weights of one sign.
    struct Slot {
        size_t value;
        double sign;
    };
    std::vector<ExactSegment> segments;
    std::vector<Slot> slots;
    std::vector<size_t> vectors;  // [block][vector of the block]; none is `absent`
    std::vector<uint32_t> entry_starts{0}, entry_slots;
    std::vector<double> weights;     // [entry][vector of the block]
    std::vector<double> magnitudes;  // [value]: the sum of all weights
    std::vector<double> largest;     // [value]: the largest weight
    size_t max_slots = 0;
    static constexpr size_t absent = size_t(-1);

    ExactBlocks(const ExactArrays& arrays, size_t block)
        : magnitudes(arrays.n_values(), 0.0),
          largest(arrays.n_values(), 0.0),
          block_(block) {
        size_t first = 0;
        for (size_t c = 0; c < arrays.n_classes(); first += arrays.n_support[c++])
            if (arrays.n_support[c] > 0) add_class(arrays, c, first);
    }

private:
    struct Member {
        size_t vector;
        std::vector<double> weights;  // [slot of the class]
        uint64_t used;                // slots with a weight, the first 64 as bits
    };

    void add_class(const ExactArrays& arrays, size_t own, size_t first) {
        std::vector<Member> members = find_members(arrays, own, first);
        ExactSegment segment{vectors.size() / block_, 0, slots.size(), 0};
        if (arrays.is_density()) {
            slots.push_back({own, 1.0});
        } else {
            segment.n_slots = add_slots(arrays, own, members);
            order_by_slots(members);
        }
        for (size_t i = 0; i < members.size(); i += block_, ++segment.n_blocks)
            add_block(&members[i], std::min(block_, members.size() - i), segment.n_slots);
        max_slots = std::max(max_slots, segment.n_slots);
        if (segment.n_blocks > 0) segments.push_back(segment);
    }

    // The vectors of a class with their weights in the pairs with each other class.
    static std::vector<Member> find_members(const ExactArrays& arrays, size_t own, size_t first) {
        const size_t d = arrays.n_terms, n = arrays.n_support[own];
        std::vector<size_t> order(n);
        for (size_t i = 0; i < n; ++i) order[i] = first + i;
        const auto row = [&](size_t i) { return arrays.vectors.begin() + ptrdiff_t(i * d); };
        const bool is_density = arrays.is_density();
        if (!is_density)
            std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
                return std::lexicographical_compare(row(a), row(a + 1), row(b), row(b + 1));
            });
        std::vector<Member> members;
        for (size_t i : order) {
            const bool is_new = members.empty() || is_density ||
                                !std::equal(row(i), row(i + 1), row(members.back().vector));
            if (is_new)
                members.push_back(
                    {i, std::vector<double>(is_density ? 0 : arrays.n_classes(), 0.0), 0});
            for (size_t other = 0; other < members.back().weights.size(); ++other)
                if (other != own) members.back().weights[other] += arrays.weight(i, own, other);
        }
        return members;
    }

    // Replace the weights in pairs by those in slots, of one sign each; leave out vectors without.
    size_t add_slots(const ExactArrays& arrays, size_t own, std::vector<Member>& members) {
        std::vector<std::pair<size_t, double>> kept;  // partner and sign
        for (size_t other = 0; other < arrays.n_classes(); ++other)
            for (double sign : {1.0, -1.0}) {
                double sum = 0, most = 0;
                for (const Member& member : members) {
                    sum += std::max(0.0, sign * member.weights[other]);
                    most = std::max(most, sign * member.weights[other]);
                }
                if (other == own || !(most > 0)) continue;
                const size_t value = arrays.value_of(own, other);
                slots.push_back({value, sign});
                magnitudes[value] += sum;
                largest[value] = std::max(largest[value], most);
                kept.push_back({other, sign});
            }
        for (Member& member : members) {
            std::vector<double> by_slot;
            for (size_t s = 0; s < kept.size(); ++s) {
                by_slot.push_back(std::max(0.0, kept[s].second * member.weights[kept[s].first]));
                if (by_slot.back() > 0) member.used |= uint64_t(1) << (s % 64);
            }
            member.weights = by_slot;
        }
        members.erase(std::remove_if(members.begin(), members.end(),
                                     [](const Member& member) { return member.used == 0; }),
                      members.end());
        return kept.size();
    }

    // Fill each block with the vectors that add the fewest slots to those of its first one.
    void order_by_slots(std::vector<Member>& members) const {
        constexpr size_t max_searched = 2048;  // the search takes quadratic time
        const auto count = [](uint64_t bits) { return __builtin_popcountll(bits); };
        std::stable_sort(members.begin(), members.end(), [&](const Member& a, const Member& b) {
            const int n_a = count(a.used), n_b = count(b.used);
            return n_a != n_b ? n_a > n_b : a.used > b.used;
        });
        for (size_t i = 0; i < members.size(); ++i) {
            if (i % block_ == 0) continue;
            uint64_t used = 0;
            for (size_t j = i / block_ * block_; j < i; ++j) used |= members[j].used;
            const size_t last = std::min(members.size(), i + max_searched);
            size_t best = i;
            int least = 65, most = -1;  // slots added, slots shared
            for (size_t j = i; j < last && !(least == 0 && most == count(used)); ++j) {
                const int added = count(members[j].used & ~used);
                const int shared = count(members[j].used & used);
                if (added < least || (added == least && shared > most))
                    best = j, least = added, most = shared;
            }
            std::swap(members[i], members[best]);
        }
    }

    void add_block(const Member* members, size_t n, size_t n_slots) {
        for (size_t p = 0; p < block_; ++p) vectors.push_back(p < n ? members[p].vector : absent);
        for (size_t s = 0; s < n_slots; ++s) {
            const size_t start = weights.size();
            bool is_used = false;
            for (size_t p = 0; p < block_; ++p) {
                weights.push_back(p < n ? members[p].weights[s] : 0.0);
                is_used = is_used || weights.back() > 0;
            }
            if (is_used)
                entry_slots.push_back(uint32_t(s));
            else
                weights.resize(start);
        }
        entry_starts.push_back(uint32_t(entry_slots.size()));
    }

    size_t block_;
};

// Mean of the vectors, subtracted from vectors and rows where the kernel allows it.
inline std::vector<double> find_center(const ExactArrays& arrays) {
    std::vector<double> center(arrays.n_terms, 0.0);
    if (arrays.function != KernelFunction::gaussian) return center;
    const double n = double(std::max(arrays.n_vectors(), size_t(1)));
    for (size_t i = 0; i < arrays.n_vectors(); ++i)
        for (size_t k = 0; k < arrays.n_terms; ++k)
            center[k] += arrays.vectors[i * arrays.n_terms + k] / n;
    return center;
}

// Vectors and weights in float32 or float64.
template <class Real>
class PackedExact {
public:
    PackedExact(const ExactArrays& arrays, const ExactBlocks& blocks,
                const ExactKernel<Real>& kernel)
        : kernel_(kernel),
          center_(find_center(arrays)),
          columns_(arrays.columns) {
        model_.function = arrays.function;
        model_.is_density = arrays.is_density();
        model_.breaks_ties = arrays.rule == ExactRule::ties_broken;
        model_.degree = arrays.degree;
        model_.coef0 = arrays.coef0;
        model_.gamma = arrays.gamma;
        model_.n_padded = round_up(arrays.n_terms, kernel.layout.lanes);
        model_.n_classes = arrays.n_classes();
        model_.n_values = arrays.n_values();
        model_.square_factor = is_gaussian() ? unit * arrays.gamma : 1;
        pack_transform(arrays);
        if (arrays.function == KernelFunction::linear)
            pack_functions(arrays, blocks);
        else
            pack_vectors(arrays, blocks);
        pack_weights(arrays, blocks);
        bound_errors(arrays, blocks);
    }
    PackedExact(const PackedExact&) = delete;
    PackedExact& operator=(const PackedExact&) = delete;

    const ExactModel<Real>& model() const { return model_; }
    const ExactKernel<Real>& kernel() const { return kernel_; }
    // What a value of 1 stands for.
    double unit_of_values() const { return model_.is_density ? 1 / unit : scale_weights_; }
    // Whether any row can be certain.
    bool is_useful() const {
        return model_.common_error[0] + model_.random_error[0] < model_.max_error;
    }

private:
    static constexpr bool is_float = sizeof(Real) == sizeof(float);
    static constexpr double u = std::numeric_limits<Real>::epsilon() / 2;
    // In float32, exponentials are powers of two.
    static constexpr double unit = is_float ? 1.4426950408889634 : 1.0;

    bool is_gaussian() const { return model_.function == KernelFunction::gaussian; }

    Real* store(size_t n) {
        memory_.emplace_back(std::max(n, size_t(1)), Real());
        return memory_.back().get();
    }

    void pack_transform(const ExactArrays& arrays) {
        const size_t n = arrays.n_terms, width = round_up(n, 16);
        shift_ = arrays.shift;
        scale_ = arrays.scale;
        const auto store_double = [&](size_t size) {
            doubles_.emplace_back(size, 0.0);
            return doubles_.back().get();
        };
        double* center = store_double(width);
        std::copy(center_.begin(), center_.end(), center);
        double* matrix = nullptr;
        if (!arrays.matrix.empty()) matrix = store_double(arrays.n_features * width);
        for (size_t i = 0; i < arrays.matrix.size(); ++i)
            matrix[i / n * width + i % n] = arrays.matrix[i];
        const auto data = [](const auto& array) { return array.empty() ? nullptr : array.data(); };
        model_.transform = {arrays.n_features, n,      width, data(shift_), data(columns_),
                            data(scale_),      matrix, center};
    }

    void pack_vectors(const ExactArrays& arrays, const ExactBlocks& blocks) {
        const size_t n = blocks.vectors.size(), points = kernel_.layout.points, d = arrays.n_terms;
        Real* tiles = store((n + spare_blocks * points) * d);
        Real* biases = store(n + spare_blocks * points);
        const double factor = is_gaussian() ? 2 * model_.square_factor : arrays.gamma;
        size_t n_present = 0;
        for (size_t i = 0; i < n; ++i) {
            biases[i] = Real(is_gaussian() ? -1e30 : arrays.coef0);
            if (blocks.vectors[i] == ExactBlocks::absent) continue;
            const double* vector = &arrays.vectors[blocks.vectors[i] * d];
            Real* to = tiles + i / points * d * points + i % points;
            double square = 0;
            for (size_t k = 0; k < d; ++k) {
                const double value = vector[k] - center_[k];
                square += value * value;
                to[k * points] = Real(-factor * value);
            }
            longest_ = std::max(longest_, std::sqrt(square));
            squares_ += square;
            ++n_present;
            if (is_gaussian()) biases[i] = Real(-model_.square_factor * square);
        }
        squares_ /= double(std::max(n_present, size_t(1)));
        model_.vectors = {n, d, tiles, nullptr, biases};
        segments_ = blocks.segments;
    }

    // A linear kernel: one function for each value.
    void pack_functions(const ExactArrays& arrays, const ExactBlocks&) {
        const size_t points = kernel_.layout.points, d = arrays.n_terms;
        const size_t n = round_up(arrays.n_values(), points);
        std::vector<long double> slopes(arrays.n_values() * d, 0.0L);
        size_t vector = 0;
        for (size_t own = 0; own < arrays.n_classes(); ++own)
            for (const size_t end = vector + arrays.n_support[own]; vector < end; ++vector)
                for (size_t other = 0; other < arrays.n_classes(); ++other)
                    for (size_t k = 0; k < d && other != own; ++k)
                        slopes[arrays.value_of(own, other) * d + k] +=
                            static_cast<long double>(arrays.weight(vector, own, other)) *
                            arrays.vectors[vector * d + k];
        for (size_t i = 0; i < arrays.n_vectors(); ++i) {
            double square = 0;
            for (size_t k = 0; k < d; ++k) square += std::pow(arrays.vectors[i * d + k], 2);
            longest_ = std::max(longest_, std::sqrt(square));
        }
        Real* tiles = store(n * d);
        Real* biases = store(n);
        for (size_t v = 0; v < arrays.n_values(); ++v) {
            biases[v] = Real(-arrays.intercepts[v]);
            for (size_t k = 0; k < d; ++k)
                tiles[(v / points * d + k) * points + v % points] =
                    Real(double(-slopes[v * d + k]));
        }
        model_.vectors = {arrays.n_values(), d, tiles, nullptr, biases};
    }

    void pack_weights(const ExactArrays& arrays, const ExactBlocks& blocks) {
        // In float32 the largest weight is 1: the weights stay in range, and those of the vectors
        // at the penalty of an SVM, which are all equal, are not rounded.
        double largest = 0;
        for (double weight : blocks.weights) largest = std::max(largest, weight);
        if (is_float && largest > 0) scale_weights_ = largest;
        Real* weights = store(blocks.weights.size());
        for (size_t i = 0; i < blocks.weights.size(); ++i)
            weights[i] = Real(blocks.weights[i] / scale_weights_);
        Real* signs = store(blocks.slots.size());
        for (size_t s = 0; s < blocks.slots.size(); ++s) {
            signs[s] = Real(blocks.slots[s].sign);
            slot_values_.push_back(uint32_t(blocks.slots[s].value));
        }
        Real* intercepts = store(arrays.n_values());
        const double factor = arrays.is_density() ? -unit : 1 / scale_weights_;
        for (size_t v = 0; v < arrays.n_values(); ++v)
            intercepts[v] = Real(arrays.intercepts[v] * factor);
        entry_starts_ = blocks.entry_starts;
        entry_slots_ = blocks.entry_slots;
        model_.n_segments = segments_.size();
        model_.segments = segments_.data();
        model_.entry_starts = entry_starts_.data();
        model_.entry_slots = entry_slots_.data();
        model_.weights = weights;
        model_.slot_values = slot_values_.data();
        model_.slot_signs = signs;
        model_.max_slots = blocks.max_slots;
        model_.intercepts = intercepts;
    }

    // See ExactModel. With u the unit roundoff, S the longest vector and L the derivative of the
    // logarithm of a kernel by its exponent, an exponent c (2 z.s - |s|^2 - |z|^2) has an error of
    // at most
    //   u ((n_terms + 4) (c S^2 + 2 c S |z|) + c |z|^2 + reach),
    // since no partial sum of the chain of n_terms products exceeds c S^2 + 2 c S |z|; the rounding
    // of rows, vectors and biases is counted as four more. `reach` bounds the exponents that
    // matter. Then come the exponential, and a sum over blocks of vectors. This bound holds always;
    // it is that of float64.
    void bound_errors(const ExactArrays& arrays, const ExactBlocks& blocks) {
        model_.max_error = is_float ? 0.05 : 1e-9;
        model_.far_distance = std::numeric_limits<double>::infinity();
        model_.longest = longest_ * (1 + 1e-12);
        const double c = model_.square_factor;
        if (is_gaussian() && c > 0 && !arrays.is_density())
            model_.far_distance = model_.longest + std::sqrt((is_float ? 200 : 800) / c);
        double longest_chain = 0;
        for (const ExactSegment& segment : segments_)
            longest_chain = std::max(longest_chain, double(segment.n_blocks));
        if (is_float)
            expect_errors(arrays, longest_chain);
        else if (is_gaussian())
            limit_errors(arrays, longest_chain);
        else
            limit_other_errors(arrays, longest_chain);
        Real* errors = store(arrays.n_values());
        Real* largest = store(arrays.n_values());
        // Smaller exponentials are replaced by less than this.
        const double floor = is_float ? std::ldexp(1.0, -99) : 1e-305;
        for (size_t v = 0; v < arrays.n_values(); ++v) {
            const double size = blocks.magnitudes[v] / scale_weights_;
            const double intercept = std::abs(double(model_.intercepts[v]));
            errors[v] = Real(8 * u * intercept + floor * size);
            largest[v] = Real(blocks.largest[v] / scale_weights_);
            const bool is_linear = arrays.function == KernelFunction::linear;
            magnitudes_.push_back(blocks.magnitudes[v] * (is_linear ? model_.longest : 1));
        }
        model_.absolute_errors = errors;
        model_.largest_weights = largest;
        model_.magnitudes = magnitudes_.data();
    }

    void limit_errors(const ExactArrays& arrays, double longest_chain) {
        const double c = model_.square_factor, S = model_.longest, n = double(arrays.n_terms) + 4;
        double offset = 0;
        for (double number : center_) offset += number * number;
        offset = 8 * u * std::sqrt(offset);  // rounding of the centred rows and vectors
        model_.typical_length = S;
        model_.common_error[0] = 1.1 * (745 * u + c * S * offset) + (longest_chain + 32) * u;
        model_.common_error[1] = 1.1 * c * (u * n + offset / std::max(S, 1e-300));
        model_.common_error[2] = 1.1 * u * c;
    }

    void limit_other_errors(const ExactArrays& arrays, double longest_chain) {
        const bool is_polynomial = arrays.function == KernelFunction::polynomial;
        const double degree = is_polynomial ? std::max(arrays.degree, 1) : 1;
        const double n = 2 * (double(arrays.n_terms) + 8);
        model_.typical_length = model_.longest;
        model_.common_error[0] = (degree * n + longest_chain) * u;
        if (arrays.function != KernelFunction::sigmoid) return;
        model_.common_error[0] += n * u * std::abs(arrays.coef0);
        model_.common_error[1] = n * u * arrays.gamma;
    }

    // In float32 the bound above is too wide for SVMs of many vectors. Instead, each rounding is
    // taken as a random number, of standard deviation 0.45 u of what is rounded, and six standard
    // deviations of each sum of them are allowed. The errors of the kernels of different vectors
    // are independent: their sum has the standard deviation sqrt(sum of squares) <= sqrt(C A)
    // instead of A; twice as much is allowed, as if always four vectors had the same error. Vectors
    // that matter are as long as the row, or as the vectors are on average. Errors that vectors may
    // have in common (of the row, of weights, of the polynomial in the exponential) and those of
    // the sums are proportional to A. On up to 3000 test rows of each of the paper's datasets
    // the largest error is 0.51 of its bound (humidity, AVX2); every other is at most 0.25.
    void expect_errors(const ExactArrays& arrays, double longest_chain) {
        const double c = model_.square_factor, d = double(arrays.n_terms);
        const bool is_short = longest_chain <= double(max_chain_blocks);
        const double chain = is_short ? longest_chain : double(chain_blocks);
        const double n_chains = std::max(1.0, longest_chain / chain / 2);
        const double sums = 0.45 * std::sqrt((chain + 8) / 3 / n_chains);
        const double step = 0.45 / unit * std::sqrt(d + 4);
        model_.typical_length = std::sqrt(squares_);
        model_.random_error[0] = 6 * u * (1.5 + step);
        model_.random_error[1] = 6 * u * step * c;
        model_.common_error[0] = u * (0.5 + 6 * sums);
        model_.common_error[1] = u / unit * c / std::sqrt(d);
        model_.common_error[2] = 0;
    }

    const ExactKernel<Real>& kernel_;
    ExactModel<Real> model_{};
    std::vector<Aligned<Real>> memory_;
    std::vector<Aligned<double>> doubles_;
    std::vector<double> center_, shift_, scale_, magnitudes_;
    std::vector<int32_t> columns_;
    std::vector<ExactSegment> segments_;
    std::vector<uint32_t> entry_starts_, entry_slots_, slot_values_;
    double longest_ = 0, squares_ = 0;  // of the vectors: the longest, the mean of |s|^2
    double scale_weights_ = 1;
};

class ExactSums {
public:
    ExactSums(ExactArrays arrays, const SimdLevel& level)
        : arrays_(std::move(arrays)),
          level_(level) {
        const ExactBlocks blocks(arrays_, level.exact.float64.layout.points);
        float64_ = std::make_unique<PackedExact<double>>(arrays_, blocks, level.exact.float64);
        if (arrays_.function != KernelFunction::gaussian) return;
        float32_ = std::make_unique<PackedExact<float>>(arrays_, blocks, level.exact.float32);
        if (!float32_->is_useful()) float32_.reset();
    }

    const SimdLevel& level() const { return level_; }
    const ExactArrays& arrays() const { return arrays_; }
    size_t n_features() const { return arrays_.n_features; }
    size_t n_classes() const { return arrays_.n_classes(); }
    size_t n_values() const { return arrays_.n_values(); }
    const PackedExact<float>* float32() const { return float32_.get(); }
    const PackedExact<double>& float64() const { return *float64_; }

    double work_per_row() const {
        return limes::work_per_row(
            ExactJob<double>{&float64_->model(), {}, nullptr, nullptr, nullptr});
    }

    // The values of each row, in float64: out[row][value]. Where rounding could change a sign, they
    // are those of the definition, so that the classes are those that the values give.
    void values(const Rows& rows, double* out, size_t n_threads) const {
        constexpr size_t max_errors = size_t(1) << 22;
        const size_t n = n_values(), most = std::max(max_errors / n, size_t(1024));
        std::vector<double> errors(std::min(most, rows.count) * n);
        for (size_t first = 0; first < rows.count; first += most, out += most * n) {
            const Rows some{rows.data + ptrdiff_t(first) * rows.row_stride,
                            std::min(most, rows.count - first), rows.row_stride, rows.column_stride,
                            rows.is_double};
            ExactJob<double> job{&float64_->model(), some, nullptr, out, errors.data()};
            job.by_tiles = true;
            run_parallel<double>(float64_->kernel(), job, n_threads);
            for (size_t r = 0; r < some.count; ++r)
                if (!is_accurate(out + r * n, &errors[r * n])) define_values(some, r, out + r * n);
        }
    }

    // For each row, the largest error of a float32 value as a multiple of its bound; 0 without
    // float32. For tests and measurements.
    void error_ratios(const Rows& rows, double* out) const {
        const size_t n = rows.count * n_values();
        std::fill(out, out + rows.count, 0.0);
        if (!float32_ || n == 0) return;
        std::vector<double> exact(n), values_32(n), errors(n);
        values(rows, exact.data(), 1);
        const ExactJob<float> job{&float32_->model(), rows, nullptr, values_32.data(),
                                  errors.data()};
        run_parallel<float>(float32_->kernel(), job, 1);
        const double unit = float32_->unit_of_values();
        for (size_t i = 0; i < n; ++i) {
            const double ratio = std::abs(values_32[i] - exact[i] / unit) / errors[i];
            if (ratio > out[i / n_values()]) out[i / n_values()] = ratio;
        }
    }

    // The values of one row by their definition.
    void define_values(const Rows& rows, size_t row, double* out) const {
        std::vector<double> raw(n_features()), terms(arrays_.n_terms);
        for (size_t k = 0; k < raw.size(); ++k) raw[k] = read_number(rows, row, k);
        transform(raw, terms);
        ExactDefinition(arrays_).evaluate(terms.data(), out);
    }

    // The class of a row, or -1 where errors of the values could change it; null: no errors.
    int32_t decide(const double* values, const double* errors) const {
        if (arrays_.is_density()) return decide_density(values, errors);
        const size_t n = n_classes();
        std::vector<size_t> certain(n, 0), possible(n, 0);
        for (size_t i = 0, v = 0; i < n; ++i)
            for (size_t j = i + 1; j < n; ++j, ++v) {
                const double error = errors ? errors[v] : 0;
                bool is_first = values[v]<-error, is_second = values[v]> error;
                if (!errors && arrays_.rule == ExactRule::votes) is_second = !is_first;
                if (!errors && arrays_.rule != ExactRule::votes) is_first = !is_second;
                certain[i] += is_first, certain[j] += is_second;
                possible[i] += !is_second, possible[j] += !is_first;
            }
        const size_t best = size_t(argmax(certain.data(), n));
        bool is_tie = false;
        for (size_t c = 0; c < n; ++c) {
            if (c == best) continue;
            if (possible[c] > certain[best] || (possible[c] == certain[best] && c < best))
                return -1;
            is_tie = is_tie || possible[c] == certain[best];
        }
        return is_tie && arrays_.rule == ExactRule::ties_broken ? break_tie(values, errors, certain)
                                                                : int32_t(best);
    }

    static double read_number(const Rows& rows, size_t row, size_t k) {
        const char* from =
            rows.data + ptrdiff_t(row) * rows.row_stride + ptrdiff_t(k) * rows.column_stride;
        double number;
        float short_number;
        if (rows.is_double) {
            std::memcpy(&number, from, sizeof number);
            return number;
        }
        std::memcpy(&short_number, from, sizeof short_number);
        return double(short_number);
    }

private:
    // Whether no sign, or order of densities, can change by the errors.
    bool is_accurate(const double* values, const double* errors) const {
        if (arrays_.is_density()) return decide_density(values, errors) >= 0;
        for (size_t v = 0; v < n_values(); ++v) {
            const bool is_sure = std::abs(values[v]) > errors[v];
            if (!is_sure && !(values[v] == 0 && errors[v] == 0)) return false;
        }
        return true;
    }

    void transform(const std::vector<double>& raw, std::vector<double>& terms) const {
        if (arrays_.shift.empty()) {
            terms = raw;
        } else if (!arrays_.matrix.empty()) {
            for (size_t k = 0; k < terms.size(); ++k)
                for (size_t i = 0; i < raw.size(); ++i)
                    terms[k] += (raw[i] - arrays_.shift[i]) * arrays_.matrix[i * terms.size() + k];
        } else {
            for (size_t k = 0; k < terms.size(); ++k) {
                const size_t i = size_t(arrays_.columns[k]);
                terms[k] = (raw[i] - arrays_.shift[i]) * arrays_.scale[k] + 0.0;
            }
        }
    }

    int32_t decide_density(const double* values, const double* errors) const {
        const int32_t best = argmax(values, n_classes());
        for (size_t c = 0; c < n_classes() && errors; ++c)
            if (c != size_t(best) && !(values[best] - values[c] > errors[size_t(best)] + errors[c]))
                return -1;
        return best;
    }

    // The highest of scikit-learn's one-vs-rest decision function: votes, and below one vote the
    // sum of the values.
    int32_t break_tie(const double* values, const double* errors,
                      const std::vector<size_t>& votes) const {
        const size_t n = n_classes();
        std::vector<double> sums(n, 0.0), bounds(n, 0.0);
        for (size_t i = 0, v = 0; i < n; ++i)
            for (size_t j = i + 1; j < n; ++j, ++v) {
                sums[i] -= values[v], sums[j] += values[v];
                if (errors) bounds[i] += errors[v], bounds[j] += errors[v];
            }
        for (size_t c = 0; c < n; ++c)
            sums[c] = double(votes[c]) + sums[c] / (3 * (std::abs(sums[c]) + 1));
        const int32_t best = argmax(sums.data(), n);
        for (size_t c = 0; c < n && errors; ++c)
            if (c != size_t(best) &&
                !(sums[size_t(best)] - sums[c] > bounds[size_t(best)] + bounds[c] + 1e-12))
                return -1;
        return best;
    }

    ExactArrays arrays_;
    const SimdLevel& level_;
    std::unique_ptr<PackedExact<double>> float64_;
    std::unique_ptr<PackedExact<float>> float32_;
};

// Slopes and shifts of the pairs of an SVM, in the units of the values of the two precisions: a
// logit is the least over the pairs of a class of slope (value + shift), negated for the first.
class LogitScales {
public:
    LogitScales(const ExactSums& sums, const std::vector<double>& slopes,
                const std::vector<double>& shifts)
        : columns_(sums.arrays().class_order),
          double_scales_(slopes),
          has_float32_(sums.float32() != nullptr) {
        const double unit = has_float32_ ? sums.float32()->unit_of_values() : 1;
        for (size_t v = 0; v < slopes.size(); ++v) {
            double_offsets_.push_back(slopes[v] * shifts[v]);
            const double scale = std::abs(slopes[v] * unit), offset = std::abs(double_offsets_[v]);
            // Far from the limits of float32.
            const bool is_normal = (scale == 0 || scale > 1e-30) && scale < 1e30 && offset < 1e30;
            has_float32_ = has_float32_ && is_normal;
            scales_.push_back(float(is_normal ? slopes[v] * unit : 0));
            offsets_.push_back(float(is_normal ? double_offsets_[v] : 0));
        }
    }

    bool has_float32() const { return has_float32_; }
    ExactLogits<float> float32(float* out) const {
        return {scales_.data(), offsets_.data(), columns(), out};
    }
    ExactLogits<double> float64(float* out) const {
        return {double_scales_.data(), double_offsets_.data(), columns(), out};
    }

    // The logits of one row from its values; a NaN makes those of its classes NaN.
    void apply(const double* values, size_t n_classes, float* out) const {
        std::vector<double> logits(n_classes, std::numeric_limits<double>::infinity());
        const auto lower = [](double& logit, double value) {
            if (!(value >= logit) && !std::isnan(logit)) logit = value;
        };
        for (size_t i = 0, v = 0; i < n_classes; ++i)
            for (size_t j = i + 1; j < n_classes; ++j, ++v) {
                const double value = double_scales_[v] * values[v] + double_offsets_[v];
                lower(logits[i], -value);
                lower(logits[j], value);
            }
        const double largest = std::numeric_limits<float>::max() / 4;
        for (size_t c = 0; c < n_classes; ++c)
            out[columns_.empty() ? c : size_t(columns_[c])] =
                float(std::max(std::min(logits[c], largest), -largest));
    }

private:
    const int32_t* columns() const { return columns_.empty() ? nullptr : columns_.data(); }

    const std::vector<int32_t>& columns_;
    std::vector<double> double_scales_, double_offsets_;
    std::vector<float> scales_, offsets_;
    bool has_float32_;
};

// Classifies the rows of one thread by exact sums.
class ExactThread {
public:
    ExactThread(const ExactSums& sums, size_t max_rows)
        : sums_(sums),
          workspace64_(size64()),
          max_batch_(std::min(max_rows, batch_rows())),
          values_(max_batch_ * sums.n_values()),
          errors_(values_.size()) {
        if (!sums.float32()) return;
        workspace32_ = std::make_unique<Aligned<float>>(sums.float32()->kernel().workspace_size(
            {&sums.float32()->model(), {}, nullptr, nullptr, nullptr}));
    }

    // The class of each row; class 0 and, in not_finite(), the number of the first row with a
    // number that is not finite.
    void classify(const Rows& rows, int32_t* classes) {
        first_not_finite_ = rows.count;
        if (sums_.float32()) {
            const PackedExact<float>& packed = *sums_.float32();
            packed.kernel().run({&packed.model(), rows, classes, nullptr, nullptr}, 0, rows.count,
                                workspace32_->get());
        } else {
            std::fill(classes, classes + rows.count, -1);
        }
        gather_uncertain(rows, classes);
        again_.resize(uncertain_.size());
        classify_in_float64(gathered_rows(), again_.data());
        for (size_t i = 0; i < uncertain_.size(); ++i) classes[uncertain_[i]] = again_[i];
        const std::vector<int32_t>& order = sums_.arrays().class_order;
        for (size_t r = 0; r < rows.count && !order.empty(); ++r)
            classes[r] = order[size_t(classes[r])];
        if (first_not_finite_ == rows.count) return;
        for (size_t r : not_finite_) classes[r] = 0;
    }

    // The logits of each row: out[row][class]. Where float32 leaves the largest one open, they are
    // those of float64 or of the definition. Rows that are not finite have NaN.
    void logits(const Rows& rows, const LogitScales& scales, float* out) {
        const size_t n_classes = sums_.n_classes(), n_values = sums_.n_values();
        classes_.assign(rows.count, -1);
        if (scales.has_float32()) {
            const ExactLogits<float> job = scales.float32(out);
            const PackedExact<float>& packed = *sums_.float32();
            packed.kernel().run(
                {&packed.model(), rows, classes_.data(), nullptr, nullptr, true, &job}, 0,
                rows.count, workspace32_->get());
        }
        gather_uncertain(rows, classes_.data());
        again_.resize(uncertain_.size());
        logits_.resize(uncertain_.size() * n_classes);
        const Rows gathered = gathered_rows();
        const ExactLogits<double> job = scales.float64(logits_.data());
        sums_.float64().kernel().run(
            {&sums_.float64().model(), gathered, again_.data(), nullptr, nullptr, true, &job}, 0,
            gathered.count, workspace64_.get());
        values_.resize(std::max(values_.size(), n_values));
        for (size_t i = 0; i < uncertain_.size(); ++i) {
            float* to = out + uncertain_[i] * n_classes;
            std::copy_n(&logits_[i * n_classes], n_classes, to);
            if (again_[i] >= 0) continue;
            sums_.define_values(gathered, i, values_.data());
            scales.apply(values_.data(), n_classes, to);
        }
        for (size_t r : not_finite_)
            std::fill_n(out + r * n_classes, n_classes, std::numeric_limits<float>::quiet_NaN());
    }

    // Of the last call: the first row with a number that is not finite, or the number of rows.
    size_t first_not_finite() const { return first_not_finite_; }
    // Of the last call: the number of rows that were summed in float64.
    size_t n_uncertain() const { return uncertain_.size(); }

private:
    ExactJob<double> job64() const {
        return {&sums_.float64().model(), {}, nullptr, nullptr, nullptr};
    }
    size_t size64() const { return sums_.float64().kernel().workspace_size(job64()); }
    // Rows whose values stay in the second-level cache: whole tiles.
    size_t batch_rows() const {
        const size_t unit = sums_.float64().kernel().layout.rows;
        const size_t fit =
            (size_t(1) << 18) / (2 * sizeof(double) * sums_.n_values()) / unit * unit;
        return std::min(std::max(fit, unit), size_t(960));
    }

    Rows gathered_rows() const {
        return {reinterpret_cast<const char*>(gathered_.data()), uncertain_.size(),
                ptrdiff_t(sums_.n_features() * sizeof(double)), sizeof(double), true};
    }

    void classify_in_float64(const Rows& rows, int32_t* classes) {
        for (size_t first = 0; first < rows.count; first += max_batch_) {
            const size_t n = std::min(max_batch_, rows.count - first);
            ExactJob<double> job = job64();
            job.rows = {rows.data + ptrdiff_t(first) * rows.row_stride, n, rows.row_stride,
                        rows.column_stride, rows.is_double};
            job.values = values_.data();
            job.errors = errors_.data();
            sums_.float64().kernel().run(job, 0, n, workspace64_.get());
            for (size_t r = 0; r < n; ++r) {
                double* values = values_.data() + r * sums_.n_values();
                classes[first + r] = sums_.decide(values, errors_.data() + r * sums_.n_values());
                if (classes[first + r] >= 0) continue;
                sums_.define_values(job.rows, r, values);
                classes[first + r] = sums_.decide(values, nullptr);
            }
        }
    }

    // Copy the rows without a class that are finite; the others are not certain either.
    void gather_uncertain(const Rows& rows, int32_t* classes) {
        uncertain_.clear();
        gathered_.clear();
        not_finite_.clear();
        for (size_t r = 0; r < rows.count; ++r) {
            if (classes[r] >= 0) continue;
            const size_t start = gathered_.size();
            bool is_finite = true;
            for (size_t k = 0; k < sums_.n_features(); ++k) {
                gathered_.push_back(ExactSums::read_number(rows, r, k));
                is_finite = is_finite && std::isfinite(gathered_.back());
            }
            if (is_finite) {
                uncertain_.push_back(r);
                continue;
            }
            gathered_.resize(start);
            classes[r] = 0;
            first_not_finite_ = std::min(first_not_finite_, r);
            not_finite_.push_back(r);
        }
    }

    const ExactSums& sums_;
    Aligned<double> workspace64_;
    std::unique_ptr<Aligned<float>> workspace32_;
    size_t max_batch_;
    std::vector<double> values_, errors_, gathered_;
    std::vector<size_t> uncertain_, not_finite_;
    std::vector<int32_t> again_, classes_;
    std::vector<float> logits_;
    size_t first_not_finite_ = 0;
};

// The logits of each row of an SVM: out[row][class]; see LogitScales.
inline void find_logits(const ExactSums& sums, const LogitScales& scales, const Rows& rows,
                        float* out, size_t n_threads) {
    // Enough rows that those which float64 sums again fill whole tiles.
    constexpr size_t max_chunk = 2048;
    if (rows.count == 0) return;
    const size_t unit = sums.level().exact.float32.layout.rows;
    const size_t tiles = round_up(rows.count, unit) / unit;
    n_threads = worthwhile_threads(double(rows.count) * sums.work_per_row(),
                                   std::min(n_threads, tiles));
    const size_t share = std::max(tiles / (4 * n_threads), size_t(1)) * unit;
    std::vector<std::unique_ptr<ExactThread>> threads;
    for (size_t i = 0; i < n_threads; ++i)
        threads.push_back(std::make_unique<ExactThread>(sums, size_t(1)));
    run_chunks(rows.count, std::min(share, max_chunk / unit * unit), n_threads,
               [&](size_t number, size_t first, size_t last) {
                   const Rows some{rows.data + ptrdiff_t(first) * rows.row_stride, last - first,
                                   rows.row_stride, rows.column_stride, rows.is_double};
                   threads[number]->logits(some, scales, out + first * sums.n_classes());
               });
}

}  // namespace limes
