"""The C of a classifier, as text: @name@, @NAME@ and @real@ are put in afterwards."""

FRONT = """\
#ifndef @NAME@_H
#define @NAME@_H

#include <stddef.h>
@math@
/* Where constants are kept; a processor may need more, such as `static const __flash`. */
#ifndef @NAME@_CONST
#define @NAME@_CONST static const
#endif

#define @NAME@_FEATURES @n_features@
#define @NAME@_CLASSES @n_classes@
#define @NAME@_VALUES @n_values@
#define @NAME@_MAPS @n_maps@
#define @NAME@_SEARCH @n_search@
#define @NAME@_EACH @n_each@
#define @NAME@_BLEND @blend@
/* Bytes of all constants but labels. */
#define @NAME@_BYTES @n_bytes@

typedef @real@ @name@_real;

"""

MATH_IF_ASKED = """\
#ifdef @NAME@_PROBABILITIES
#include <math.h>
#endif
"""
MATH = "#include <math.h>\n"

# The nearest point of one map: the lowest score, the first of equals.
NEAREST = """\
static inline void @name@_map(size_t first, size_t n_points, const @name@_real *z,
                              const @name@_real *t, @name@_real *values) {
    @name@_real least = 0;
    size_t i, k, best = first;
    for (i = first; i < first + n_points; ++i) {
        @name@_real score = @name@_biases[i];
        for (k = 0; k < @NAME@_SEARCH; ++k) score -= @name@_weights[i * @NAME@_SEARCH + k] * z[k];
        if (i == first || score < least) {
            least = score;
            best = i;
        }
    }
    @name@_functions_of(best, t, values);
}

"""

# The k nearest points of one map, each weighted by how much nearer it is than the next after them.
BLENDED = """\
static inline size_t @name@_rank(size_t first, size_t n_points, size_t size,
                                 const @name@_real *z, @name@_real *scores, size_t *places) {
    size_t i, j, k, filled = 0;
    for (i = first; i < first + n_points; ++i) {
        @name@_real score = @name@_biases[i];
        for (k = 0; k < @NAME@_SEARCH; ++k) score -= @name@_weights[i * @NAME@_SEARCH + k] * z[k];
        if (filled == size && !(score < scores[size - 1])) continue;
        j = filled < size ? filled++ : size - 1;
        for (; j > 0 && score < scores[j - 1]; --j) {
            scores[j] = scores[j - 1];
            places[j] = places[j - 1];
        }
        scores[j] = score;
        places[j] = i;
    }
    return filled;
}

static inline void @name@_map(size_t first, size_t n_points, const @name@_real *z,
                              const @name@_real *t, @name@_real *values) {
    @name@_real scores[@NAME@_BLEND + 1] = {0}, each[@NAME@_EACH] = {0}, sum = 0;
    size_t places[@NAME@_BLEND + 1] = {0}, i, c;
    size_t n = n_points > @NAME@_BLEND ? @NAME@_BLEND : n_points > 1 ? n_points - 1 : 1;
    size_t filled = @name@_rank(first, n_points, n + 1, z, scores, places);
    for (i = 0; i < n; ++i) sum += filled > n ? scores[n] - scores[i] : 1;
    for (c = 0; c < @each@; ++c) values[c] = 0;
    for (i = 0; i < n; ++i) {
        @name@_real reach = filled > n ? scores[n] - scores[i] : 1;
        @name@_real weight = sum == 0 ? (@name@_real)1 / (@name@_real)n : reach / sum;
        @name@_functions_of(places[i], t, each);
        for (c = 0; c < @each@; ++c) values[c] += weight * each[c];
    }
}

"""

FUNCTIONS = """\
/* The linear functions of one point. */
static inline void @name@_functions_of(size_t point, const @name@_real *t, @name@_real *values) {
    size_t c, k;
    for (c = point * @NAME@_EACH; c < (point + 1) * @NAME@_EACH; ++c) {
        @name@_real sum = 0;
        for (k = 0; k < @NAME@_FEATURES; ++k)
            sum += @name@_functions[c * @NAME@_FEATURES + k] * t[k];
        *values++ = sum + @name@_offsets[c];
    }
}

"""

VALUES = """\
/* The values of all border maps for one row of @NAME@_FEATURES numbers. */
static inline void @name@_values(const @name@_real *x, @name@_real *values) {
    @name@_real t[@NAME@_FEATURES];
    size_t k, map, first = 0;
    for (k = 0; k < @NAME@_FEATURES; ++k) t[k] = x[k] - @name@_center[k];
    for (map = 0; map < @NAME@_MAPS; ++map) {
        @name@_map(first, @name@_sizes[map], t, t, values + map * @NAME@_EACH);
        first += @name@_sizes[map];
    }
}

"""

PROJECTED_VALUES = """\
/* The values of all border maps for one row of @NAME@_FEATURES numbers. */
static inline void @name@_values(const @name@_real *x, @name@_real *values) {
    @name@_real t[@NAME@_FEATURES], z[@NAME@_SEARCH];
    size_t j, k, map, first = 0;
    for (k = 0; k < @NAME@_FEATURES; ++k) t[k] = x[k] - @name@_center[k];
    for (j = 0; j < @NAME@_SEARCH; ++j) {
        z[j] = 0;
        for (k = 0; k < @NAME@_FEATURES; ++k)
            z[j] += t[k] * @name@_projection[k * @NAME@_SEARCH + j];
    }
    for (map = 0; map < @NAME@_MAPS; ++map) {
        @name@_map(first, @name@_sizes[map], z, t, values + map * @NAME@_EACH);
        first += @name@_sizes[map];
    }
}

"""

HIGHEST = """\
static inline int @name@_highest(const @name@_real *scores) {
    int c, best = 0;
    for (c = 1; c < @NAME@_CLASSES; ++c)
        if (scores[c] > scores[best]) best = c;
    return best;
}

"""

TWO_CLASS = """\
static inline int @name@_class(const @name@_real *values) { return values[0] > 0; }

"""

VOTED_CLASS = """\
/* The class that wins most pairs; the first of equals. */
static inline int @name@_class(const @name@_real *values) {
    int i, j, best = 0, votes[@NAME@_CLASSES] = {0};
    for (i = 0; i < @NAME@_CLASSES; ++i)
        for (j = i + 1; j < @NAME@_CLASSES; ++j) ++votes[*values++ > 0 ? j : i];
    for (i = 1; i < @NAME@_CLASSES; ++i)
        if (votes[i] > votes[best]) best = i;
    return best;
}

"""

HIGHEST_CLASS = """\
static inline int @name@_class(const @name@_real *values) { return @name@_highest(values); }

"""

COUPLED_CLASS = """\
static inline int @name@_class(const @name@_real *values) {
    @name@_real p[@NAME@_CLASSES];
    @name@_own(values, p);
    return @name@_highest(p);
}

"""

PREDICT = """\
/* The class of one row of @NAME@_FEATURES numbers: its place in @name@_labels. */
static inline int @name@_predict(const @name@_real *x) {
    @name@_real values[@NAME@_VALUES];
    @name@_values(x, values);
    return @name@_class(values);
}

"""

SIGMOID = """\
static inline @name@_real @name@_sigmoid(@name@_real value) {
    @name@_real e = @exp@(value < 0 ? value : -value);
    return value < 0 ? e / (1 + e) : 1 / (1 + e);
}

"""

TWO_OWN = """\
static inline void @name@_own(const @name@_real *values, @name@_real *p) {
    p[1] = @name@_sigmoid(2 * values[0]);
    p[0] = 1 - p[1];
}

"""

# The system of limes.coupling.couple: symmetric and positive, so that no row is exchanged.
COUPLED_OWN = """\
/* Probabilities of classes from those of pairs (Wu, Lin & Weng 2004). */
static inline void @name@_own(const @name@_real *values, @name@_real *p) {
    @name@_real a[@NAME@_CLASSES][@NAME@_CLASSES], sum = 0;
    int i, j, k;
    for (i = 0; i < @NAME@_CLASSES; ++i) p[i] = a[i][i] = 1;
    for (i = 0; i < @NAME@_CLASSES; ++i)
        for (j = i + 1; j < @NAME@_CLASSES; ++j, ++values) {
            @name@_real second = @name@_sigmoid(2 * *values), first = @name@_sigmoid(-2 * *values);
            a[i][j] = a[j][i] = 1 - first * second;
            a[i][i] += second * second;
            a[j][j] += first * first;
        }
    for (k = 0; k < @NAME@_CLASSES; ++k)
        for (i = k + 1; i < @NAME@_CLASSES; ++i) {
            @name@_real factor = a[i][k] / a[k][k];
            for (j = k; j < @NAME@_CLASSES; ++j) a[i][j] -= factor * a[k][j];
            p[i] -= factor * p[k];
        }
    for (i = @NAME@_CLASSES - 1; i >= 0; --i) {
        for (j = i + 1; j < @NAME@_CLASSES; ++j) p[i] -= a[i][j] * p[j];
        p[i] /= a[i][i];
    }
    for (i = 0; i < @NAME@_CLASSES; ++i) sum += p[i] = p[i] > 0 ? p[i] : 0;
    for (i = 0; i < @NAME@_CLASSES; ++i) p[i] /= sum;
}

"""

REST_OWN = """\
static inline void @name@_own(const @name@_real *values, @name@_real *p) {
    @name@_real sum = 0, most = values[0];
    int c;
    for (c = 1; c < @NAME@_CLASSES; ++c) most = values[c] > most ? values[c] : most;
    if (most > 0) most = 0;
    for (c = 0; c < @NAME@_CLASSES; ++c)
        sum += p[c] = @exp@(2 * ((values[c] < 0 ? values[c] : 0) - most));
    for (c = 0; c < @NAME@_CLASSES; ++c) p[c] /= sum;
}

"""

SHARED_OWN = """\
static inline void @name@_own(const @name@_real *values, @name@_real *p) {
    @name@_real sum = 0, most = values[@name@_highest(values)];
    int c;
    for (c = 0; c < @NAME@_CLASSES; ++c) sum += p[c] = @exp@(values[c] - most);
    for (c = 0; c < @NAME@_CLASSES; ++c) p[c] /= sum;
}

"""

PUT_FIRST = """\
/* Let the winner share with the classes above it, as little as it takes to be first. */
static inline void @name@_put_first(@name@_real *p, int winner) {
    @name@_real ranked[@NAME@_CLASSES] = {0}, sum = p[winner], level = p[winner];
    int i, j, n = 0;
    if (@name@_highest(p) == winner) return;
    for (i = 0; i < @NAME@_CLASSES; ++i) {
        if (i == winner) continue;
        for (j = n++; j > 0 && p[i] > ranked[j - 1]; --j) ranked[j] = ranked[j - 1];
        ranked[j] = p[i];
    }
    for (i = 0; i < n; ++i) {
        @name@_real average = (sum += ranked[i]) / (@name@_real)(i + 2);
        level = average > level ? average : level;
    }
    for (sum = 0, i = 0; i < @NAME@_CLASSES; ++i) {
        if (i == winner) p[i] = level + level * @margin@;
        else if (p[i] > level) p[i] = level;
        sum += p[i];
    }
    for (i = 0; i < @NAME@_CLASSES; ++i) p[i] /= sum;
}

"""

PROBABILITIES = """\
/* The probabilities of all classes; returns the class, whose probability is the largest. */
static inline int @name@_probabilities(const @name@_real *x, @name@_real *p) {
    @name@_real values[@NAME@_VALUES];
    int winner;
    @name@_values(x, values);
    winner = @name@_class(values);
    @name@_own(values, p);
    @name@_put_first(p, winner);
    return winner;
}

"""

IF_ASKED = "#ifdef @NAME@_PROBABILITIES\n"
END_IF_ASKED = "#endif\n\n"
END = "#endif\n"
