// The curved part of a map (see Curve), for a tile of rows or for one row.
//
// In a tile the lanes are rows; for one row they are outputs, or the terms i of the squares. Both
// take the same operations in the same order for each sum, so that they give the same bits.
#pragma once
#include "blend_weights.hpp"
#include "nearest.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace limes {
namespace {

// Outputs whose squares are summed together for one row.
constexpr size_t row_outputs = 8;
// A number of outputs as a type.
template <size_t n>
struct Count {
    static constexpr size_t value = n;
};
// Independent parts of the sum of the squares of v: a single chain would wait for each addition.
constexpr size_t n_chains = 4;

// Scratch memory of the curved part, for a tile; one row needs less of each.
template <class Real>
struct CurveWorkspace {
    Real* terms;          // [term, then t][row]: y, and t after the last
    Real* squares;        // [term][row]: y^2 of the shape 'diagonal'
    Real* sums;           // [output][row]
    Real* square_sums;    // [output][row]: of the shape 'diagonal' with a list
    Real* row;            // [term]: y of one row, with a list
    Real* inner;          // [row_outputs][term]
    Real* listed_values;  // [n_listed]
    int32_t* listed;      // [n_listed]
};

// ---- A tile of rows ----

// lines[term][row] = v; lines after the last term, up to a multiple of n_chains, are zero.
template <class Real>
inline void curve_terms(const Curve<Real>& curve, const Real* panel, Real* partial, Real* lines) {
    constexpr size_t height = tile_rows<Real>;
    if (!curve.columns) return project_tile(panel, curve.matrix, partial, lines);
    for (size_t j = 0; j < curve.n_terms; ++j) {
        const Real* from = panel + size_t(curve.columns[j]) * height;
        const Vector<Real> scale = broadcast(curve.scale[j]), shift = broadcast(curve.shift[j]);
        for (size_t r = 0; r < height; r += lanes<Real>)
            store(lines + j * height + r, fnmadd(scale, load(from + r), shift));
    }
    const size_t n_padded = round_up(curve.n_terms, n_chains);
    __builtin_memset(lines + curve.n_terms * height, 0,
                     (n_padded - curve.n_terms) * height * sizeof(Real));
}

// t from minus the sum of the squares of v. Where it overflows, t is 0.
template <class Real>
inline Vector<Real> envelope(const Curve<Real>& curve, const Vector<Real> (&sums)[n_chains]) {
    const Vector<Real> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    return broadcast(Real(1)) / fnmadd(broadcast(curve.rate), sum, broadcast(Real(1)));
}

// Replace v by y, and add the line of t.
template <class Real>
inline void apply_envelope(const Curve<Real>& curve, Real* lines) {
    constexpr size_t height = tile_rows<Real>;
    for (size_t r = 0; r < height; r += lanes<Real>) {
        Vector<Real> sums[n_chains] = {};
        for (size_t j = 0; j < curve.n_terms; j += n_chains)
            for (size_t i = 0; i < n_chains; ++i) {
                const Vector<Real> v = load(lines + (j + i) * height + r);
                sums[i] = fnmadd(v, v, sums[i]);
            }
        const Vector<Real> t = envelope(curve, sums);
        for (size_t j = 0; j < curve.n_terms; ++j) {
            Real* line = lines + j * height + r;
            store(line, load(line) * t);
        }
        store(lines + curve.n_terms * height + r, t);
    }
}

// sums[column][row] += the products of the lines with `count` columns from `first` on.
template <class Real, size_t count>
inline void add_columns(const Real* lines, const Panels<Real>& panels, size_t first, Real* sums) {
    constexpr size_t height = tile_rows<Real>;
    const Real* columns = panels.tiles + first / block * panels.n_terms * block + first % block;
    Real* to = sums + first * height;
    Vector<Real> totals[row_vectors][count];
    for (size_t p = 0; p < count; ++p)
        for (size_t r = 0; r < row_vectors; ++r)
            totals[r][p] = load(to + p * height + r * lanes<Real>);
    for (size_t k = 0; k < panels.n_terms; ++k, lines += height, columns += block) {
        Vector<Real> terms[row_vectors];
        for (size_t r = 0; r < row_vectors; ++r)
            terms[r] = keep_in_register(load(lines + r * lanes<Real>));
#pragma GCC unroll 8
        for (size_t p = 0; p < count; ++p) {
            const Vector<Real> column = broadcast(columns[p]);
#pragma GCC unroll 4
            for (size_t r = 0; r < row_vectors; ++r)
                totals[r][p] = fnmadd(terms[r], column, totals[r][p]);
        }
    }
    for (size_t p = 0; p < count; ++p)
        for (size_t r = 0; r < row_vectors; ++r)
            store(to + p * height + r * lanes<Real>, totals[r][p]);
}

// The same for all columns: whole blocks, then as many as are left.
template <class Real>
inline void add_all_columns(const Real* lines, const Panels<Real>& panels, Real* sums) {
    const size_t n = panels.n_columns;
    size_t c = 0;
    for (; c + block <= n; c += block) add_columns<Real, block>(lines, panels, c, sums);
    if (block > 4 && c + 4 <= n) add_columns<Real, 4>(lines, panels, c, sums), c += 4;
    if (c + 2 <= n) add_columns<Real, 2>(lines, panels, c, sums), c += 2;
    if (c < n) add_columns<Real, 1>(lines, panels, c, sums);
}

// inner -= the terms of a block with themselves: those with i <= j only.
template <class Real>
__attribute__((always_inline)) inline void subtract_triangle(const Real* lines, const Real* squares,
                                                             Scores<Real>& inner) {
#pragma GCC unroll 8
    for (size_t j = 0; j < block; ++j) {
        Vector<Real> terms[row_vectors];
        for (size_t r = 0; r < row_vectors; ++r)
            terms[r] = keep_in_register(load(lines + j * tile_rows<Real> + r * lanes<Real>));
#pragma GCC unroll 8
        for (size_t i = 0; i <= j; ++i) {
            const Vector<Real> square = broadcast(squares[j * block + i]);
#pragma GCC unroll 4
            for (size_t r = 0; r < row_vectors; ++r)
                inner.at[r][i] = fnmadd(terms[r], square, inner.at[r][i]);
        }
    }
}

// sums[row] += sum_i y_i sum_{j >= i} squares_ij y_j, of one output. Nothing is stored but sums:
// the inner sums of a block of i are in registers, and no product of two terms is made.
template <class Real>
inline void add_quadratic(const Real* lines, size_t n_terms, const Real* squares, Real* sums) {
    constexpr size_t height = tile_rows<Real>;
    for (size_t i = 0; i < n_terms; i += block, lines += block * height) {
        const size_t left = n_terms - i, n = left < block ? left : block;
        Scores<Real> inner = {};
        if (n == block) {
            subtract_triangle(lines, squares, inner);
            inner.subtract(lines + block * height, squares + block * block, left - block);
        } else {
            inner.subtract(lines, squares, left);
        }
        squares += left * block;
        Vector<Real> totals[row_vectors];
        for (size_t r = 0; r < row_vectors; ++r) totals[r] = load(sums + r * lanes<Real>);
#pragma GCC unroll 8
        for (size_t p = 0; p < block; ++p) {
            if (p == n) break;
            for (size_t r = 0; r < row_vectors; ++r)
                totals[r] =
                    fnmadd(inner.at[r][p], load(lines + p * height + r * lanes<Real>), totals[r]);
        }
        for (size_t r = 0; r < row_vectors; ++r) store(sums + r * lanes<Real>, totals[r]);
    }
}

// sums[output][row] = t (slopes . y + constant t), the values without squares.
template <class Real>
inline void plain_sums(const Curve<Real>& curve, const Real* lines, Real* sums) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n = curve.plain.n_columns;
    __builtin_memset(sums, 0, n * height * sizeof(Real));
    add_all_columns(lines, curve.plain, sums);
    const Real* t = lines + curve.n_terms * height;
    for (size_t c = 0; c < n; ++c)
        for (size_t r = 0; r < height; r += lanes<Real>)
            store(sums + c * height + r, load(t + r) * load(sums + c * height + r));
}

template <class Real>
inline void square_terms(const Real* terms, size_t n, Real* squares) {
    for (size_t k = 0; k < n; k += lanes<Real>) {
        const Vector<Real> y = load(terms + k);
        store(squares + k, y * y);
    }
}

// values[row][output] += sums[output][row].
template <class Real>
inline void add_sums(const Real* sums, size_t n_rows, size_t n_outputs, Real* values) {
    for (size_t c = 0; c < n_outputs; ++c)
        for (size_t r = 0; r < n_rows; ++r)
            values[r * n_outputs + c] += sums[c * tile_rows<Real> + r];
}

// ---- One row ----

// The terms of one row, and t after the last.
template <class Real>
inline void curve_row_terms(const Curve<Real>& curve, const Real* row, Real* terms) {
    const size_t n = curve.n_terms;
    if (curve.columns) {
        for (size_t j = 0; j < n; ++j) terms[j] = row[curve.columns[j]];
        for (size_t j = n; j < round_up(n, lanes<Real>); ++j) terms[j] = 0;
        for (size_t j = 0; j < n; j += lanes<Real>)
            store(terms + j, fnmadd(load(curve.scale + j), load(terms + j), load(curve.shift + j)));
    } else {
        score_row(row, curve.matrix, terms);
    }
    // Vectors of two numbers do not reach the padding of the sums.
    for (size_t j = n; j < round_up(n, n_chains); ++j) terms[j] = 0;
    Vector<Real> sums[n_chains] = {};
    for (size_t j = 0; j < n; j += n_chains)
        for (size_t i = 0; i < n_chains; ++i) {
            const Vector<Real> v = broadcast(terms[j + i]);
            sums[i] = fnmadd(v, v, sums[i]);
        }
    const Vector<Real> t = envelope(curve, sums);
    for (size_t j = 0; j < n; j += lanes<Real>) store(terms + j, load(terms + j) * t);
    terms[n] = t[0];
}

// sums[c] += the squares of `count` outputs, at `squares`, of one row.
template <class Real, size_t count>
inline void add_row_quadratic(const Curve<Real>& curve, const Real* terms,
                              const Real* const (&squares)[row_outputs], Real* inner, Real* sums) {
    const size_t n = curve.n_terms, width = round_up(n, lanes<Real>);
    size_t place = 0;
    for (size_t i = 0; i < n; i += lanes<Real>) {
        Vector<Real> parts[count] = {};
        for (size_t j = i; j < n; ++j, place += lanes<Real>) {
            const Vector<Real> term = broadcast(terms[j]);
            for (size_t c = 0; c < count; ++c)
                parts[c] = fnmadd(term, load(squares[c] + place), parts[c]);
        }
        for (size_t c = 0; c < count; ++c) store(inner + c * width + i, parts[c]);
    }
    Vector<Real> totals[count];
    for (size_t c = 0; c < count; ++c) totals[c] = broadcast(sums[c]);
    for (size_t i = 0; i < n; ++i) {
        const Vector<Real> term = broadcast(terms[i]);
        for (size_t c = 0; c < count; ++c)
            totals[c] = fnmadd(broadcast(inner[c * width + i]), term, totals[c]);
    }
    for (size_t c = 0; c < count; ++c) sums[c] = totals[c][0];
}

// sums[i] += the squares of n outputs of one row, whose numbers `output(i)` returns.
template <class Real, class Output>
inline void add_row_quadratics(const Curve<Real>& curve, const Real* terms, size_t n, Output output,
                               Real* inner, Real* sums) {
    const auto add = [&](auto count, size_t first) {
        const Real* squares[row_outputs];
        for (size_t i = 0; i < count.value; ++i)
            squares[i] = curve.lanes + output(first + i) * curve.lane_size;
        add_row_quadratic<Real, count.value>(curve, terms, squares, inner, sums + first);
    };
    size_t c = 0;
    for (; c + 8 <= n; c += 8) add(Count<8>(), c);
    if (c + 4 <= n) add(Count<4>(), c), c += 4;
    if (c + 2 <= n) add(Count<2>(), c), c += 2;
    if (c < n) add(Count<1>(), c);
}

// ---- Squares for the outputs with the largest values ----

// The n_listed-th largest value of each row of a vector; lines[output] has the values, negated.
template <class Real>
inline Vector<Real> lowest_listed(const Curve<Real>& curve, const Real* lines) {
    return -bound_scores<Real, 1>(lines, curve.plain.n_columns, curve.n_listed);
}

// The same of one row, for longer lists.
template <class Real>
inline Real lowest_listed_of_many(const Real* values, size_t n, size_t n_listed, Real* ranked) {
    Ranking<Real> ranking{ranked, n_listed};
    for (size_t c = 0; c < n; ++c) ranking.offer(-values[c]);
    return -ranking.limit();
}

// The outputs with the largest values, of which `limit` is the lowest; the lowest of equals first.
template <class Real>
inline void list_outputs(const Real* values, size_t n, size_t n_listed, Real limit,
                         int32_t* listed) {
    size_t count = 0;
    for (size_t c = 0; c < n; ++c) {
        listed[count] = int32_t(c);
        // Fewer than n_listed are above the limit. Without a branch, which could not be predicted.
        count += values[c] > limit;
    }
    for (size_t c = 0; c < n && count < n_listed; ++c)
        if (values[c] == limit) listed[count++] = int32_t(c);
    // With NaN, any: what is made of them is NaN.
    if (count < n_listed)
        for (size_t i = 0; i < n_listed; ++i) listed[i] = int32_t(i);
}

// Replace the values of one row by those with squares for the outputs that are listed, whose
// squares are in own.listed_values; the others get at most the lowest of them.
template <class Real>
inline void merge_listed(size_t n_outputs, size_t n_listed, const CurveWorkspace<Real>& own,
                         Real* values) {
    Real lowest = infinity<Real>;
    for (size_t i = 0; i < n_listed; ++i) {
        own.listed_values[i] += values[own.listed[i]];
        lowest = own.listed_values[i] < lowest ? own.listed_values[i] : lowest;
    }
    for (size_t c = 0; c < n_outputs; ++c) values[c] = values[c] > lowest ? lowest : values[c];
    for (size_t i = 0; i < n_listed; ++i) values[own.listed[i]] = own.listed_values[i];
}

// The squares of the listed outputs of one row, with values without squares, of which `limit` is
// the lowest that is listed: from the terms of the row or, if these are null, from `square_sums` of
// all outputs, `step` apart.
template <class Real>
inline void add_listed_squares(const Curve<Real>& curve, const Real* terms, const Real* square_sums,
                               size_t step, Real limit, const CurveWorkspace<Real>& own,
                               Real* values) {
    const size_t n_outputs = curve.plain.n_columns, n = curve.n_listed;
    if (n > max_places) limit = lowest_listed_of_many(values, n_outputs, n, own.listed_values);
    list_outputs(values, n_outputs, n, limit, own.listed);
    const auto output = [&](size_t i) { return size_t(own.listed[i]); };
    for (size_t i = 0; i < n; ++i)
        own.listed_values[i] = terms ? Real(0) : square_sums[output(i) * step];
    if (terms) add_row_quadratics(curve, terms, n, output, own.inner, own.listed_values);
    merge_listed(n_outputs, n, own, values);
}

// ---- The curved part ----

// Whether squares are added to some outputs of a row only.
template <class Real>
inline bool has_list(const Curve<Real>& curve) {
    return curve.n_listed < curve.plain.n_columns;
}

// Add the squares of a tile to sums[output][row].
template <class Real>
inline void add_tile_squares(const Curve<Real>& curve, const CurveWorkspace<Real>& own,
                             Real* sums) {
    constexpr size_t height = tile_rows<Real>;
    for (size_t c = 0; curve.tiles && c < curve.plain.n_columns; ++c)
        add_quadratic(own.terms, curve.n_terms, curve.tiles + c * curve.tile_size,
                      sums + c * height);
    if (curve.diagonal.n_columns == 0) return;
    square_terms(own.terms, curve.n_terms * height, own.squares);
    add_all_columns(own.squares, curve.diagonal, sums);
}

// Add the squares of the outputs that each row of a tile lists.
template <class Real>
inline void add_listed_of_tile(const Curve<Real>& curve, size_t n, const CurveWorkspace<Real>& own,
                               Real* values) {
    constexpr size_t height = tile_rows<Real>;
    const size_t n_outputs = curve.plain.n_columns;
    // A tile takes a quarter of the time of its rows one by one.
    const bool is_by_row = curve.tiles && n_outputs > 4 * curve.n_listed;
    if (!is_by_row) {
        __builtin_memset(own.square_sums, 0, n_outputs * height * sizeof(Real));
        add_tile_squares(curve, own, own.square_sums);
    }
    for (size_t c = 0; c < n_outputs; ++c)
        for (size_t r = 0; r < n; ++r) own.sums[c * height + r] = -values[r * n_outputs + c];
    for (size_t first = 0; first < n; first += lanes<Real>) {
        const Vector<Real> limits =
            curve.n_listed > max_places ? Vector<Real>{} : lowest_listed(curve, own.sums + first);
        for (size_t r = first; r < n && r < first + lanes<Real>; ++r) {
            for (size_t j = 0; is_by_row && j < curve.n_terms; ++j)
                own.row[j] = own.terms[j * height + r];
            add_listed_squares(curve, is_by_row ? own.row : nullptr, own.square_sums + r, height,
                               limits[r - first], own, values + r * n_outputs);
        }
    }
}

// Add the curved part to values[row][output] of n rows; `panel` has the features of the tile.
template <class Real>
inline void add_tile_curve(const Curve<Real>& curve, const Real* panel, size_t n, Real* partial,
                           const CurveWorkspace<Real>& own, Real* values) {
    curve_terms(curve, panel, partial, own.terms);
    apply_envelope(curve, own.terms);
    plain_sums(curve, own.terms, own.sums);
    if (!has_list(curve)) add_tile_squares(curve, own, own.sums);
    add_sums(own.sums, n, curve.plain.n_columns, values);
    if (has_list(curve)) add_listed_of_tile(curve, n, own, values);
}

// sums[output] of one row, t (slopes . y + constant t).
template <class Real>
inline void plain_row_sums(const Curve<Real>& curve, const Real* terms, Real* sums) {
    score_row(terms, curve.plain, sums);
    const Vector<Real> t = broadcast(terms[curve.n_terms]);
    for (size_t c = 0; c < curve.plain.n_columns; c += lanes<Real>)
        store(sums + c, t * load(sums + c));
}

// Add the diagonal squares of one row to sums[output].
template <class Real>
inline void add_row_diagonal(const Curve<Real>& curve, const CurveWorkspace<Real>& own,
                             Real* sums) {
    if (curve.diagonal.n_columns == 0) return;
    square_terms(own.terms, curve.n_terms, own.squares);
    Panels<Real> onto = curve.diagonal;
    onto.biases = sums;
    score_row(own.squares, onto, sums);
}

// Add the curved part to values[output] of one row.
template <class Real>
inline void add_row_curve(const Curve<Real>& curve, const Real* row,
                          const CurveWorkspace<Real>& own, Real* values) {
    const size_t n_outputs = curve.plain.n_columns;
    curve_row_terms(curve, row, own.terms);
    plain_row_sums(curve, own.terms, own.sums);
    if (!has_list(curve)) {
        if (curve.tiles)
            add_row_quadratics(
                curve, own.terms, n_outputs, [](size_t c) { return c; }, own.inner, own.sums);
        add_row_diagonal(curve, own, own.sums);
        for (size_t c = 0; c < n_outputs; ++c) values[c] += own.sums[c];
        return;
    }
    for (size_t c = 0; c < n_outputs; ++c) values[c] += own.sums[c];
    __builtin_memset(own.square_sums, 0, round_up(n_outputs, lanes<Real>) * sizeof(Real));
    add_row_diagonal(curve, own, own.square_sums);
    for (size_t c = 0; c < n_outputs; ++c)
        store(own.sums + c * tile_rows<Real>, broadcast(-values[c]));
    const Real limit = curve.n_listed > max_places ? Real(0) : lowest_listed(curve, own.sums)[0];
    add_listed_squares(curve, curve.tiles ? own.terms : nullptr, own.square_sums, 1, limit, own,
                       values);
}

}  // namespace
}  // namespace limes
