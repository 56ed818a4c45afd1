// Plain structures that the SIMD levels and their callers share.
//
// The files of a SIMD level (predict.cpp, kernel_sums.cpp, exact_sums.cpp, trainer.cpp) are
// compiled once for each level, with LIMES_SIMD_LEVEL as its name. They must not emit inline
// functions that another level could end up running: neither this header nor those that they
// include use the C++ library, and all their functions have internal linkage.
#pragma once
#include <cstddef>
#include <cstdint>

namespace limes {

static inline constexpr size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

// ---- Prediction ----

// Rows as the caller holds them: any strides in bytes, float32 or float64, any alignment.
struct Rows {
    const char* data;
    size_t count;
    ptrdiff_t row_stride;
    ptrdiff_t column_stride;
    bool is_double;
};

// Rows of integers that float32 holds exactly, as the caller holds them: a chunk is converted when it
// is read.
enum class IntegerType { uint8, int16, uint16 };
struct IntegerRows {
    const char* data;
    size_t count;
    ptrdiff_t row_stride;
    ptrdiff_t column_stride;
    IntegerType type;
};

// Columns to take inner products with, packed twice: for tiles of rows and for single rows. Arrays
// are padded to a multiple of `panel_padding` columns.
constexpr size_t panel_padding = 64;
template <class Real>
struct Panels {
    size_t n_columns;
    size_t n_terms;
    const Real* tiles;   // [block of Layout::points columns][term][column of the block]
    const Real* lanes;   // [block of Layout::lanes columns][term][column of the block]
    const Real* biases;  // padded with +infinity, which is never the lowest score
};

// Points of a large map in groups. With z' = z + origin, |z'|^2 = sum (z'_k inverse_scale_k)^2 and
// w the point, a score is  constant + |w|^2 / 2 - z'.w  to within `residual`, that is half a
// squared distance less |z'|^2 / 2: the triangle inequality rules out whole groups.
template <class Real>
struct Groups {
    size_t n_groups;
    Panels<Real> centers;       // their scores are comparable with those of the points
    const Real* radii;          // [group], rounded up
    const Real* origin;         // [term]
    const Real* inverse_scale;  // [term]; 0 where all points are 0
    Real constant;
    // The score of any point or centre is off by at most  error + error_slope * |z'|.
    Real error, error_slope;
    // Points by group, each group starts a new vector: [vector][term][lane], [vector][lane]. The
    // last vector is followed by one without points.
    const Real* lanes;
    const Real* biases;
    const int32_t* indices;
    const uint32_t* starts;  // [group]: its first vector
    size_t n_vectors;
};

// Linear functions, one or several per point.
template <class Real>
struct Functions {
    size_t n_values;      // per point
    size_t width;         // terms, rounded up to whole vectors
    const Real* slopes;   // [point][value][width], negated
    const Real* offsets;  // [point][value]
};

// The curved part of a map: a polynomial of second degree with an envelope. With the terms v of a
// row, t = 1 / (1 + rate |v|^2) and y = t v, the value of an output is
//   t (slopes . y + constant t) + sum_i y_i sum_{j >= i} squares_ij y_j,
// where t is at most 1 and y stays small, however large v is.
template <class Real>
struct Curve {
    size_t n_terms;
    // v = scale * row[columns] + shift, or, without columns, the scores of `matrix`.
    const int32_t* columns;  // [term]; null with a matrix
    const Real* scale;       // [term, whole vectors], negated
    const Real* shift;       // [term, whole vectors]
    Panels<Real> matrix;
    Real rate;
    Panels<Real> plain;     // [output], over y and t, negated
    Panels<Real> diagonal;  // [output], over y^2, negated; no columns in another shape
    // All squares_ij, null in another shape. For tiles, the blocks of one output after another:
    // [block of Layout::points i][j from the first i of the block on][i of the block]; for single
    // rows, with Layout::lanes instead. `tile_size` and `lane_size` are the numbers of an output.
    const Real* tiles;
    const Real* lanes;
    size_t tile_size, lane_size;
    // Outputs with squares for each row, those with the largest values without; the others get at
    // most the lowest of these. All: the number of outputs.
    size_t n_listed;
};

// A blend of a small map evaluates all its functions for every row ("dense") if it has at most
// max_dense_points points, blends at most max_dense_blended of them, and takes at most
// max_dense_products products; a map of at most tiny_map_points points may take more.
constexpr size_t max_dense_points = 96, max_dense_blended = 15, max_dense_products = 2048;
constexpr size_t tiny_map_points = 16, max_tiny_map_products = 8192;

// One border map: points to search, and the linear functions of each point.
template <class Real>
struct Map {
    Panels<Real> points;
    const Groups<Real>* groups;  // null: every point is scored
    size_t n_values;
    size_t n_blended;  // number of points that a value blends; 1: the nearest alone
    // Functions of a row's features; with a base, functions of the terms of its search, to which
    // the values of `base`, a function of all features, are added.
    Functions<Real> functions, base;
    bool has_base;
    // All functions, negated, for a dense blend: [value][point, rounded up to whole blocks].
    bool is_dense;
    Panels<Real> all_functions;
    const Curve<Real>* curve;  // null: none
};

// Maps that share rows, centre and projection. `max_...` is the maximum over the maps.
template <class Real>
struct Model {
    size_t n_features;
    size_t n_padded;  // n_features, rounded up to whole vectors
    const Real* center;
    const Panels<Real>* projection;  // null: the search uses the features themselves
    size_t n_search;                 // terms of a search: features or projected features
    size_t n_maps;
    const Map<Real>* maps;
    size_t n_values;  // of all maps together
    size_t max_points;
    size_t max_values;
    size_t max_blended;
    size_t max_all_functions;  // functions of a dense map, padding included
    bool has_bases;
    size_t max_groups, max_group_vectors;
    const int32_t* pairs;  // [map][2]: the classes that a map votes between; null: no votes
    size_t n_classes;      // with votes: number of classes
    int max_exponent;      // no sum overflows for rows of numbers up to 2 to this power
};

// Relative: added to the probability of the winner where it equals others, against rounding.
constexpr double winner_margin = 1e-9;

enum class Task { nearest, decide, decide_selected, classify, vote, descend };

// One prediction request; each thread runs a range of its rows.
template <class Real>
struct PredictJob {
    const Model<Real>* model;
    Rows rows;
    Task task;
    size_t index;                // nearest: number of the map
    const int32_t* map_numbers;  // decide_selected: [row][n_selected], -1 for none
    size_t n_selected;
    Real* values;
    int32_t* indices;
    // descend: the children of each map (a node of the tree), [map][2]: a later map, or the class c
    // as -1 - c.
    const int32_t* children = nullptr;
};

// Packing of a level: lanes of a vector, rows of a tile, points of a block.
struct Layout {
    size_t lanes;
    size_t rows;
    size_t points;
};

template <class Real>
struct PredictKernel {
    Layout layout;
    // Size of a thread's workspace in Real; it must be aligned to 64 bytes.
    size_t (*workspace_size)(const PredictJob<Real>&);
    void (*run)(const PredictJob<Real>&, size_t first, size_t last, Real* workspace);
    // out[row][class] from values[row][value]; the largest is that of the class of the values. One
    // value is half the logarithm of the odds of the second of two classes, several are logits, or,
    // with is_one_vs_rest, half the logarithm of the odds of each class against the best other. The
    // workspace has n_values * lanes<double> numbers and is aligned to 64 bytes.
    void (*probabilities)(const Real* values, size_t n_values, size_t n_rows, bool is_one_vs_rest,
                          double* workspace, double* out);
};

struct PredictKernels {
    PredictKernel<float> float32;
    PredictKernel<double> float64;
    // The first of the rows first ... last - 1 with a number that is NaN or above the limit in
    // magnitude; `last` if there is none.
    size_t (*first_out_of_range)(const Rows&, size_t n_features, size_t first, size_t last,
                                 double limit);
    // Write the rows first ... last - 1 as contiguous float32 rows.
    void (*convert)(const IntegerRows&, size_t n_features, size_t first, size_t last, float* to);
};

// ---- Sums of Gaussian kernels ----

// sum_i c_iq exp(-gamma |x - s_i|^2) for every row, and for one output its gradient by x.
struct SumsJob {
    Rows rows;
    size_t n_features, n_padded;
    const double* center;  // subtracted from rows and vectors
    double gamma;
    // Scores of the vectors are 2 gamma x.s - gamma |s|^2; of the padding, minus infinity.
    Panels<double> vectors;
    size_t n_outputs;
    const double* weights;  // [block of outputs][padded vector][output of the block], negated
    const double* gradient_weights;  // gradients: [padded vector], the weights of the one output
    const double* features;  // gradients: [block of features][padded vector][feature], negated
    double* sums;            // [row][output]
    double* gradients;       // [row][feature], or null
};

struct SumsKernel {
    Layout layout;
    size_t (*workspace_size)(const SumsJob&);
    void (*run)(const SumsJob&, size_t first, size_t last, double* workspace);
};

// ---- Sums of kernels that decide the class of a row ----

enum class KernelFunction { gaussian, polynomial, sigmoid, linear };

// From a row as the caller holds it to the terms of the products, in float64:
// (x - shift)[columns] * scale - center, or (x - shift) @ matrix - center.
struct RowTransform {
    size_t n_features, n_terms;
    size_t width;            // n_terms, rounded up to a multiple of 16
    const double* shift;     // [feature]; null: neither shift nor scale nor matrix
    const int32_t* columns;  // [term]: its feature; null with a matrix
    const double* scale;     // [term]
    const double* matrix;    // [feature][width]; null with columns
    const double* center;    // [width]
};

// Blocks of vectors whose sums are added one after another: of a segment of at most
// max_chain_blocks all, else chain_blocks at a time.
constexpr size_t max_chain_blocks = 32, chain_blocks = 16;
// Blocks of zeros after the last vectors, which may be read.
constexpr size_t spare_blocks = 8;

// Blocks of vectors of one class, and the sums that they add to.
struct ExactSegment {
    size_t first_block, n_blocks;
    size_t first_slot, n_slots;
};

// Vectors and weights of one precision. The exponent of a Gaussian is
//   2 c z.s - c |s|^2 - c |z|^2,   c = gamma, or gamma / log 2 in float32,
// the argument of the other kernels gamma z.s + coef0. All weights of a slot have one sign, so that
// its sum is also the sum of the magnitudes of its terms, to which its error is proportional.
template <class Real>
struct ExactModel {
    RowTransform transform;
    KernelFunction function;
    bool is_density;   // logarithms of sums of exponentials, one for each class
    bool breaks_ties;  // a tie of votes is uncertain
    int degree;
    size_t n_padded;       // terms, rounded up to whole vectors
    double square_factor;  // c
    Panels<Real> vectors;  // whole blocks, each of one segment; linear: a function for each value
    size_t n_segments;
    const ExactSegment* segments;
    const uint32_t* entry_starts;  // [block + 1]: the slots in which a block has weights
    const uint32_t* entry_slots;   // [entry]: slot of the segment
    const Real* weights;           // [entry][vector of the block], 0 or more
    const uint32_t* slot_values;   // [slot]: the value that its sum belongs to; densities: one
                                   // slot for each segment, without weights
    const Real* slot_signs;        // [slot]: 1 or -1
    size_t max_slots;              // of a segment
    size_t n_classes, n_values;    // a value for each pair of classes, or for each class
    const Real* intercepts;        // [value]: subtracted from the sums
    // A bound of the error of a value, with A the sum of the magnitudes of its terms, C the largest
    // weight, and m the larger of the length of the row and typical_length:
    //   common A + random min(A, 2 sqrt(C A)) + absolute,
    //   common = common_error[0] + common_error[1] (m^2 + 2 m |z|) + common_error[2] |z|^2,
    // and random alike: see PackedExact. Above max_error nothing is certain.
    double common_error[3], random_error[2], typical_length, max_error;
    const Real* absolute_errors;  // [value]
    const Real* largest_weights;  // [value]
    // Beyond a distance of far_distance from the centre, all Gaussians count as 0.
    double far_distance;
    const double* magnitudes;  // [value]: other kernels, the sum of the magnitudes of the weights
    double longest, coef0;     // the longest vector: the kernel is at most
    double gamma;              // (gamma |z| longest + |coef0|)^degree, or 1, or |z|
};

// One logit for each class of an SVM: the least over its pairs of scale value + offset, negated for
// the first class of a pair.
template <class Real>
struct ExactLogits {
    const Real *scales, *offsets;  // [value]
    const int32_t* columns;        // [class]: its column in `out`, or null for the same order
    float* out;                    // [row][class]
};

// Classes of rows, -1 where the error leaves it open; or values and bounds of their errors.
template <class Real>
struct ExactJob {
    const ExactModel<Real>* model;
    Rows rows;
    int32_t* classes;  // [row], or null
    double* values;    // [row][value]
    double* errors;    // [row][value]
    // Few rows are run one by one, unless a value must not depend on how many rows there are.
    bool by_tiles = false;
    // Not null: the classes are those of the largest logits, by tiles.
    const ExactLogits<Real>* logits = nullptr;
};

template <class Real>
struct ExactKernel {
    Layout layout;
    size_t (*workspace_size)(const ExactJob<Real>&);
    void (*run)(const ExactJob<Real>&, size_t first, size_t last, Real* workspace);
};

struct ExactKernels {
    ExactKernel<float> float32;
    ExactKernel<double> float64;
};

// ---- Training ----

// Further inputs of the base function, computed from the features x of each row. With
//   v = directions @ (x - center), or scale * (x - center) without directions,
//   u = 1 / (1 + decay mean(v^2))^2,
// they are u and u v_i (envelope), also u v_i^2 (diagonal), or also u v_i v_j with i <= j, in the
// order of i (quadratic); each less its mean and times its inverse deviation.
enum class BaseShape { linear, envelope, diagonal, quadratic };

struct CurvedInputs {
    BaseShape shape;
    size_t n_terms;                           // of v: n_features without directions
    const float* center;                      // [n_features]
    const float* directions;                  // [n_terms][n_features], or null
    const float *means, *inverse_deviations;  // [input]
    float scale, decay;

    size_t n_inputs() const {
        if (shape == BaseShape::linear) return 0;
        if (shape == BaseShape::envelope) return 1 + n_terms;
        if (shape == BaseShape::diagonal) return 1 + 2 * n_terms;
        return 1 + n_terms + n_terms * (n_terms + 1) / 2;
    }
};

// Parameters of a map in training, or their gradients. The value of output c at a row x with
// the curved inputs e(x) is
//   base_offsets[c] + base_slopes[c] . [x, e(x)] + sum_j w_j local_jc(z),
//   local_jc(z) = offsets[j][c] + slopes[j][c] . (z - anchor_j) / radius,
// over the n_blended points nearest to z, with the weights w_j of a blend. A map of a single point
// has no local function. z is x itself or, with components, the projection components @ x;
// components are trained too.
struct TrainParameters {
    float* components;    // [n_search][n_features], or null
    float* points;        // [point][n_search]
    float* slopes;        // [point][output][n_search]
    float* offsets;       // [point][output]
    float* base_slopes;   // [output][n_features + curved inputs]
    float* base_offsets;  // [output]
};

struct TrainJob {
    size_t n_rows, n_features, n_search, n_outputs, n_points, n_blended;
    const float* rows;     // [row][n_features]
    const float* targets;  // [row][n_outputs]: probabilities
    const float* anchors;  // [point][n_search]
    float inverse_radius;
    CurvedInputs curved;
    TrainParameters parameters;
    size_t n_samples;  // over all epochs; rounded up to whole batches
    size_t n_batch;    // at most n_rows
    float local_rate, point_rate, base_rate, component_rate, weight_decay;
    uint64_t seed;
};

struct Trainer {
    // Size of the workspace in float; it must be zero.
    size_t (*workspace_size)(const TrainJob&);
    // Train in place; return the mean loss over the last tenth of the batches. `order` has n_rows
    // elements.
    double (*train)(const TrainJob&, float* workspace, uint32_t* order);
    // The mean loss of the first n_batch rows, and its gradient; the parameters are not changed.
    double (*loss_and_gradient)(const TrainJob&, const TrainParameters& gradient, float* workspace,
                                uint32_t* order);
};

// ---- SIMD levels ----

struct SimdLevel {
    const char* name;
    const PredictKernels& predict;
    const SumsKernel& sums;
    const ExactKernels& exact;
    const Trainer& trainer;
};

}  // namespace limes

// `LIMES_OF_LEVEL(predict)` is the name of a variable of the level being compiled: predict_avx2.
#define LIMES_JOIN_(a, b) a##_##b
#define LIMES_JOIN(a, b) LIMES_JOIN_(a, b)
#define LIMES_OF_LEVEL(name) LIMES_JOIN(name, LIMES_SIMD_LEVEL)
