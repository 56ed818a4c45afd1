// What the binding and the compiled paths share: plain structures, no code.
//
// A path (kernel.cpp built with its own flags) must not emit inline functions that another
// path could end up running, so nothing here or in the kernel headers uses the C++ library.
#pragma once
#include <cstddef>
#include <cstdint>

namespace limes {

// Rows as Python holds them: any strides in bytes, float32 or float64, any alignment.
struct Rows {
    const char* data;
    size_t count;
    ptrdiff_t row_stride;
    ptrdiff_t column_stride;
    bool is_double;
};

// Columns to take inner products with, packed twice: for tiles of rows and for single rows.
template <class Real>
struct Panels {
    size_t n_columns;
    size_t n_terms;
    const Real* tiles;   // [block of Layout::points columns][term][column of the block]
    const Real* lanes;   // [block of Layout::lanes columns][term][column of the block]
    const Real* biases;  // padded with +infinity, which never wins
};

// Points of a large map in groups. With z' = z + origin, |z'|^2 = sum (z'_k inverse_scale_k)^2 and
// w the point, a score is  constant + |w|^2 / 2 - z'.w  to within `residual`, that is half a squared
// distance less |z'|^2 / 2: the triangle inequality rules out whole groups.
template <class Real>
struct Groups {
    size_t n_groups;
    Panels<Real> centers;       // their scores compare with those of the points
    const Real* radii;          // [group], rounded up
    const Real* origin;         // [term]
    const Real* inverse_scale;  // [term]; 0 where no point has a weight
    Real constant;
    // The score of any point or centre is off by at most  error + error_slope * |z'|.
    Real error, error_slope;
    // Points by group, each group begins a new vector: [vector][term][lane], [vector][lane]. Behind
    // the last comes one without a point.
    const Real* lanes;
    const Real* biases;
    const int32_t* indices;
    const uint32_t* starts;  // [group]: its first vector
    size_t n_vectors;
};

// Linear functions, several a point.
template <class Real>
struct Functions {
    size_t n_values;      // of a point
    size_t width;         // terms, rounded up to whole vectors
    const Real* slopes;   // [point][value][width], negated
    const Real* offsets;  // [point][value]
};

// A blend of a small map evaluates all its functions at once: no more points than these and no more
// blended, and few products in all, or not many and hardly more points than are blended.
constexpr size_t dense_points = 96, dense_blended = 15, dense_products = 2048;
constexpr size_t fewest_points = 16, most_dense_products = 8192;

// One border map: the search over its points, then the linear functions of the winners.
template <class Real>
struct Map {
    Panels<Real> points;
    const Groups<Real>* groups;  // null: every point is scored
    size_t n_values;
    size_t n_blended;  // how many points a value blends; 1 is the nearest alone
    // Of a row's features; where there is a base, of its terms in the search, and all rows have the
    // values of the base besides.
    Functions<Real> functions, base;
    bool has_base;
    // All functions, negated, for a dense blend: [value][point, rounded up to whole blocks].
    bool is_dense;
    Panels<Real> every;
};

// Maps that share rows, centre and projection.
template <class Real>
struct Model {
    size_t n_features;
    size_t n_padded;  // n_features, rounded up to whole vectors
    const Real* center;
    const Panels<Real>* projection;  // null: the search runs in the features themselves
    size_t n_search;                 // terms of a search: features or projected features
    size_t n_maps;
    const Map<Real>* maps;
    size_t n_values;     // of all maps together
    size_t most_points;  // in one map
    size_t most_values;  // of one map
    size_t most_blended;
    size_t most_every;  // functions of a dense map, padding included
    bool has_bases;
    size_t most_groups, most_group_vectors;  // of one map
    const int32_t* pairs;  // [map][2]: the classes that a map votes between; null: no votes
    size_t n_classes;      // that votes can name
    int range;             // no sum overflows for rows of numbers up to 2 to this power
};

enum class Task { nearest, decide, decide_some, classify, vote, walk };

// One request; a range of its rows is handed to each thread.
template <class Real>
struct Job {
    const Model<Real>* model;
    Rows rows;
    Task task;
    size_t index;          // nearest: which map
    const int32_t* which;  // decide_some: map numbers, [row][n_slots], -1 for none
    size_t n_slots;
    Real* values;
    int32_t* indices;
    // walk: where the two sides of each map lead, [map][2]: to a later map, or to the class c,
    // written -1 - c.
    const int32_t* children = nullptr;
};

// How a path packs: vector lanes, rows in a tile, points in a tile.
struct Layout {
    size_t lanes;
    size_t rows;
    size_t points;
};

template <class Real>
struct Kernel {
    Layout layout;
    // Number of Real that one thread needs beside its stack, aligned to 64 bytes.
    size_t (*scratch)(const Job<Real>&);
    void (*run)(const Job<Real>&, size_t first, size_t last, Real* scratch);
};

// One compiled path.
struct Path {
    const char* name;
    Kernel<float> single;
    Kernel<double> twice;
    // The first of the rows first ... last - 1 with a number beyond the limit (not a number is, too);
    // `last` if there is none.
    size_t (*first_beyond)(const Rows&, size_t n_features, size_t first, size_t last, double limit);
};

}  // namespace limes
