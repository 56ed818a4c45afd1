"""C99 header from the template."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

import limes
from limes.classifier import BordersClassifier
from limes.export.packed import Packed, fitted_scheme, pack, resolve_dtype, unknown_scheme
from limes.model.schemes import WINNER_MARGIN, PairwiseScheme, Scheme, ShortlistScheme, TreeScheme

# C's names for the two types of number.
TYPES = {"float": "float32", "double": "float64"}
# Of a number in the list of branches of a tree.
BRANCH_BYTES = 2
SCHEMES = ("one-vs-rest", "pairwise", "shared", "shortlist", "tree")
WIDTH = 96
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
# Where the first point of a map stands: no table of it, since few maps are asked.
FIRST = """\
static inline size_t @name@_first(size_t map) {
    size_t i, first = 0;
    for (i = 0; i < map; ++i) first += @name@_sizes[i];
    return first;
}

"""
PREPARE = """\
/* The centred row. */
static inline void @name@_prepare(const @name@_real *x, @name@_real *t) {
    size_t k;
    for (k = 0; k < @NAME@_FEATURES; ++k) t[k] = x[k] - @name@_center[k];
}

"""
PROJECTED_PREPARE = """\
/* The centred row, then its projection. */
static inline void @name@_prepare(const @name@_real *x, @name@_real *t) {
    size_t j, k;
    for (k = 0; k < @NAME@_FEATURES; ++k) t[k] = x[k] - @name@_center[k];
    for (j = 0; j < @NAME@_SEARCH; ++j) {
        @name@_real sum = 0;
        for (k = 0; k < @NAME@_FEATURES; ++k)
            sum += t[k] * @name@_projection[k * @NAME@_SEARCH + j];
        t[@NAME@_FEATURES + j] = sum;
    }
}

"""
# The first map has a function a class, all others have one.
SHORTLIST_FUNCTIONS = """\
/* The linear functions of one point. */
static inline void @name@_functions_of(size_t point, const @name@_real *t, @name@_real *values) {
    size_t n = @name@_sizes[0], k;
    size_t c = point < n ? point * @NAME@_EACH : n * @NAME@_EACH + (point - n);
    size_t end = c + (point < n ? @NAME@_EACH : 1);
    for (; c < end; ++c) {
        @name@_real sum = 0;
        for (k = 0; k < @NAME@_FEATURES; ++k)
            sum += @name@_functions[c * @NAME@_FEATURES + k] * t[k];
        *values++ = sum + @name@_offsets[c];
    }
}

"""
NAME = """\
/* The likeliest classes, ascending; returns how many. */
static inline int @name@_name(const @name@_real *scores, int *named) {
    @name@_real least = scores[@name@_highest(scores)] - @reach@;
    int c, i, j, n = 0;
    for (c = 0; c < @NAME@_CLASSES; ++c) {
        if (!(scores[c] >= least)) continue;
        if (n == @n_named@ && !(scores[c] > scores[named[n - 1]])) continue;
        j = n < @n_named@ ? n++ : n - 1;
        for (; j > 0 && scores[c] > scores[named[j - 1]]; --j) named[j] = named[j - 1];
        named[j] = c;
    }
    for (i = 1; i < n; ++i) {
        c = named[i];
        for (j = i; j > 0 && named[j - 1] > c; --j) named[j] = named[j - 1];
        named[j] = c;
    }
    return n;
}

"""
SHORTLIST_VALUES = """\
/* The values of the first map, then those of the pairs of the classes that it names. */
static inline void @name@_values(const @name@_real *x, @name@_real *values) {
    @name@_real t[@room@], *asked = values + @NAME@_CLASSES;
    int named[@n_named@], i, j, n;
    @name@_prepare(x, t);
    @name@_map(0, @name@_sizes[0], @z@, t, values);
    n = @name@_name(values, named);
    for (i = 0; i < n; ++i)
        for (j = i + 1; j < n; ++j) {
            int a = named[i], b = named[j];
            size_t map = (size_t)(1 + a * (2 * @NAME@_CLASSES - a - 1) / 2 + b - a - 1);
            @name@_map(@name@_first(map), @name@_sizes[map], @z@, t, asked++);
        }
}

/* The named classes, and the values of their pairs, in which the first map has a share. */
static inline int @name@_join(const @name@_real *values, int *named, @name@_real *pairs) {
    const @name@_real *asked = values + @NAME@_CLASSES;
    int i, j, n = @name@_name(values, named);
    for (i = 0; i < n; ++i)
        for (j = i + 1; j < n; ++j)
            *pairs++ = @trust@ * *asked++ + @rest@ * (values[named[j]] - values[named[i]]);
    return n;
}

"""
SHORTLIST_VOTED = """\
/* The named class that wins most pairs; the first of equals. */
static inline int @name@_class(const @name@_real *values) {
    @name@_real room[@n_slots@ + 1] = {0}, *pairs = room;
    int named[@n_named@] = {0}, votes[@n_named@] = {0}, i, j, best = 0;
    int n = @name@_join(values, named, room);
    for (i = 0; i < n; ++i)
        for (j = i + 1; j < n; ++j) ++votes[*pairs++ > 0 ? j : i];
    for (i = 1; i < n; ++i)
        if (votes[i] > votes[best]) best = i;
    return named[best];
}

"""
# The system of limes.coupling.couple: symmetric and positive, so that no row is exchanged.
COUPLE = """\
/* Probabilities of n classes from those of their pairs (Wu, Lin & Weng 2004). */
static inline void @name@_couple(int n, const @name@_real *values, @name@_real *p) {
    @name@_real a[@n_named@][@n_named@], sum = 0;
    int i, j, k;
    for (i = 0; i < n; ++i) p[i] = a[i][i] = 1;
    for (i = 0; i < n; ++i)
        for (j = i + 1; j < n; ++j, ++values) {
            @name@_real second = @name@_sigmoid(2 * *values), first = @name@_sigmoid(-2 * *values);
            a[i][j] = a[j][i] = 1 - first * second;
            a[i][i] += second * second;
            a[j][j] += first * first;
        }
    for (k = 0; k < n; ++k)
        for (i = k + 1; i < n; ++i) {
            @name@_real factor = a[i][k] / a[k][k];
            for (j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
            p[i] -= factor * p[k];
        }
    for (i = n - 1; i >= 0; --i) {
        for (j = i + 1; j < n; ++j) p[i] -= a[i][j] * p[j];
        p[i] /= a[i][i];
    }
    for (i = 0; i < n; ++i) sum += p[i] = p[i] > 0 ? p[i] : 0;
    for (i = 0; i < n; ++i) p[i] /= sum;
}

"""
SHORTLIST_COUPLED = """\
/* The named class of the largest coupled probability; the first of equals. */
static inline int @name@_class(const @name@_real *values) {
    @name@_real pairs[@n_slots@ + 1] = {0}, q[@n_named@] = {0};
    int named[@n_named@] = {0}, i, best = 0, n = @name@_join(values, named, pairs);
    @name@_couple(n, pairs, q);
    for (i = 1; i < n; ++i)
        if (q[i] > q[best]) best = i;
    return named[best];
}

"""
# What the first map gives to the named classes is shared as their pairs say.
SHORTLIST_OWN = """\
static inline void @name@_own(const @name@_real *values, @name@_real *p) {
    @name@_real pairs[@n_slots@ + 1] = {0}, q[@n_named@] = {0}, sum = 0, own = 0;
    @name@_real most = values[@name@_highest(values)];
    int named[@n_named@] = {0}, c, n = @name@_join(values, named, pairs);
    for (c = 0; c < @NAME@_CLASSES; ++c) sum += p[c] = @exp@(values[c] - most);
    for (c = 0; c < @NAME@_CLASSES; ++c) p[c] /= sum;
    @name@_couple(n, pairs, q);
    for (c = 0; c < n; ++c) own += p[named[c]];
    for (c = 0; c < n; ++c) p[named[c]] = own * q[c];
}

"""
TREE_PREDICT = """\
/* The class of one row of @NAME@_FEATURES numbers: its place in @name@_labels. */
static inline int @name@_predict(const @name@_real *x) {
    @name@_real t[@room@], value = 0;
    int fork = 0;
    @name@_prepare(x, t);
    while (fork >= 0) {
        @name@_map(@name@_first((size_t)fork), @name@_sizes[fork], @z@, t, &value);
        fork = @name@_children[2 * fork + (value > 0)];
    }
    return -1 - fork;
}

"""
TREE_CLASS = """\
/* The class at the end of the way that the values show. */
static inline int @name@_class(const @name@_real *values) {
    int fork = 0;
    while (fork >= 0) fork = @name@_children[2 * fork + (values[fork] > 0)];
    return -1 - fork;
}

"""
# A fork comes after its parent.
TREE_OWN = """\
/* Probabilities of classes: products of those of the branches on the way. */
static inline void @name@_own(const @name@_real *values, @name@_real *p) {
    @name@_real arriving[@NAME@_MAPS];
    int fork, side;
    arriving[0] = 1;
    for (fork = 0; fork < @NAME@_MAPS; ++fork)
        for (side = 0; side < 2; ++side) {
            int child = @name@_children[2 * fork + side];
            @name@_real chance = @name@_sigmoid(side ? 2 * values[fork] : -2 * values[fork]);
            *(child < 0 ? &p[-1 - child] : &arriving[child]) = arriving[fork] * chance;
        }
}

"""


def to_c(
    fast: BordersClassifier,
    *,
    name: str = "limes_model",
    dtype: str | None = None,
    max_bytes: int | None = None,
) -> str:
    """Return a fitted classifier as a C99 header.

    ``name_predict(x)`` takes a row and returns the number of its class, ``name_labels`` has the
    labels. With the macro ``NAME_PROBABILITIES`` defined before the header is included there is
    also ``name_probabilities(x, p)``, which needs ``math.h``. Nothing is allocated, and all
    constants have every bit. Rows with a NaN have no answer that means anything.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted.
    name : str, default='limes_model'
        First part of every name in the header.
    dtype : {'float', 'double', 'float32', 'float64'} or None, default=None
        Of rows and arithmetic; None for that of the classifier.
    max_bytes : int or None, default=None
        The most that the constants may take.

    Returns
    -------
    str
        The header; its first lines tell its size.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> fast = BordersClassifier(n_borders=20, random_state=0).fit(X, y)
    >>> print(to_c(fast, name="moons", max_bytes=2048).splitlines()[3])
     * Constants: 490 bytes. Stack of a prediction: about 12 bytes and the compiler's own.
    """
    scheme, name = fitted_scheme(fast), check_name(name)
    if scheme.name not in SCHEMES:
        raise unknown_scheme(scheme, SCHEMES, "C")
    packed = pack(scheme, resolve_dtype(scheme, TYPES.get(dtype or "", dtype)))
    n_bytes = _constant_bytes(scheme, packed)
    if max_bytes is not None and n_bytes > max_bytes:
        raise _too_large(packed, n_bytes, max_bytes)
    parts = [_describe(fast, packed, name), FRONT, *_arrays(scheme, packed)]
    parts += [labels("@name@_labels", fast.classes_), "\n", *_functions(scheme, packed)]
    return _put_in("".join(parts), _words(fast, scheme, packed, name))


def constant_bytes(fast: BordersClassifier, *, dtype: str | None = None) -> int:
    """Return how many bytes the constants of a header take, labels left out.

    Parameters
    ----------
    fast : BordersClassifier
        Fitted.
    dtype : {'float', 'double', 'float32', 'float64'} or None, default=None
        As for ``to_c``.

    Returns
    -------
    int
        Bytes.
    """
    scheme = fitted_scheme(fast)
    packed = pack(scheme, resolve_dtype(scheme, TYPES.get(dtype or "", dtype)))
    return _constant_bytes(scheme, packed)


def _constant_bytes(scheme: Scheme, packed: Packed) -> int:
    """Return the bytes of floats, of the sizes of maps and of the branches of a tree."""
    floats = packed.center.nbytes
    floats += 0 if packed.projection is None else packed.projection.nbytes
    for one in packed.maps:
        floats += one.weights.nbytes + one.biases.nbytes + one.functions.nbytes + one.offsets.nbytes
    n_branches = 2 * len(packed.maps) if isinstance(scheme, TreeScheme) else 0
    return int(floats) + _size_bytes(packed) * len(packed.maps) + BRANCH_BYTES * n_branches


def _size_bytes(packed: Packed) -> int:
    """Return the bytes of the number of points of one map."""
    return 2 if max(one.n_points for one in packed.maps) < 2**16 else 4


def _too_large(packed: Packed, n_bytes: int, max_bytes: int) -> ValueError:
    """Say how many border points would fit."""
    # Points are counted a map, but for the map of a shortlist that names classes.
    maps = [one for one in packed.maps if one.n_values == packed.maps[-1].n_values]
    one = maps[0]
    each = (one.weights[0].size + 1 + one.functions[0].size + one.n_values) * one.weights.itemsize
    fixed = n_bytes - each * sum(one.n_points for one in maps)
    fitting = max(0, (max_bytes - fixed) // each // len(maps))
    return ValueError(
        f"the constants must fit max_bytes={max_bytes!r}, got {n_bytes} bytes: fit with "
        f"n_borders={fitting}, which is what has room."
        if fitting
        else f"the constants must fit max_bytes={max_bytes!r}, got {n_bytes} bytes: fit with fewer "
        "features or another scheme, since not one border point a map has room."
    )


def _describe(fast: BordersClassifier, packed: Packed, name: str) -> str:
    """Return the first comment: what this is, its size, and how to use it."""
    n_points = sum(one.n_points for one in packed.maps)
    itemsize = packed.center.itemsize
    stack = itemsize * (packed.n_features + _count_values(fast.scheme_, packed))
    stack += 0 if packed.projection is None else itemsize * packed.projection.shape[1]
    names = getattr(fast, "feature_names_in_", None)
    lines = [
        f"/* {name}: {len(fast.classes_)} classes, {packed.n_features} features, scheme "
        f"{fast.scheme_.name}, {n_points} border points in",
        f" * {len(packed.maps)} maps; by limes {limes.__version__}.",
        " *",
        f" * Constants: {_constant_bytes(fast.scheme_, packed)} bytes. Stack of a prediction: "
        f"about {stack} bytes and the compiler's own.",
        " *",
        f" * int {name}_predict(const {name}_real *x) returns the place of a row's class in "
        f"{name}_labels.",
        f" * With {name.upper()}_PROBABILITIES defined before this is included:",
        f" * int {name}_probabilities(const {name}_real *x, {name}_real *p) also fills the "
        "probabilities.",
    ]
    if names is not None:
        lines += [" *", " * Features, in this order:"]
        lines += [f" * {place} {comment(str(one))}" for place, one in enumerate(names)]
    return "\n".join([*lines, " */"]) + "\n"


def _count_values(scheme: Scheme, packed: Packed) -> int:
    """Return how many values a prediction keeps."""
    if isinstance(scheme, ShortlistScheme):
        return scheme.n_classes + scheme.max_pairs
    return packed.n_values


def _arrays(scheme: Scheme, packed: Packed) -> list[str]:
    """Return the constants, those of all maps one after the other."""
    kind, maps = "@NAME@_CONST @name@_real", packed.maps
    size = "unsigned short" if _size_bytes(packed) == 2 else "unsigned long"
    parts = [
        numbers(kind, "@name@_center", packed.center),
        array(f"@NAME@_CONST {size}", "@name@_sizes", [str(one.n_points) for one in maps]),
    ]
    if packed.projection is not None:
        parts.append(numbers(kind, "@name@_projection", packed.projection))
    for field in ("weights", "biases", "functions", "offsets"):
        joined = np.concatenate([getattr(one, field).ravel() for one in maps])
        parts.append(numbers(kind, f"@name@_{field}", joined))
    if isinstance(scheme, TreeScheme):
        branches = [str(child) for child in scheme.children.ravel()]
        parts.append(array("@NAME@_CONST short", "@name@_children", branches))
    return parts


def _functions(scheme: Scheme, packed: Packed) -> list[str]:
    """Return the functions, each after those that it calls."""
    is_blended = max(one.n_blended for one in packed.maps) > 1
    code = [BLENDED if is_blended else NEAREST]
    values = VALUES if packed.projection is None else PROJECTED_VALUES
    if isinstance(scheme, ShortlistScheme):
        code = [SHORTLIST_FUNCTIONS, *code, *_shortlist_functions(scheme, packed)]
    elif isinstance(scheme, TreeScheme):
        code = [FUNCTIONS, *code, values, HIGHEST, *_tree_functions(packed)]
    else:
        code = [FUNCTIONS, *code, values, HIGHEST, *_joining_functions(scheme)]
    code += [PUT_FIRST, PROBABILITIES, END_IF_ASKED, END]
    return code


def _shortlist_functions(scheme: ShortlistScheme, packed: Packed) -> list[str]:
    """Return those that name classes and ask their pairs."""
    coupling = [SIGMOID, COUPLE]
    code = [FIRST, _prepare_code(packed), HIGHEST, NAME]
    code += [SHORTLIST_VALUES]
    if scheme.by_vote:
        code += [SHORTLIST_VOTED, PREDICT, IF_ASKED, *coupling]
    else:
        code += [*coupling, SHORTLIST_COUPLED, PREDICT, IF_ASKED]
    return [*code, SHORTLIST_OWN]


def _tree_functions(packed: Packed) -> list[str]:
    """Return those that walk down a tree."""
    code = [FIRST, _prepare_code(packed), TREE_PREDICT, IF_ASKED]
    return [*code, SIGMOID, TREE_CLASS, TREE_OWN]


def _prepare_code(packed: Packed) -> str:
    """Return the function that makes a row ready for the search."""
    return PREPARE if packed.projection is None else PROJECTED_PREPARE


def _joining_functions(scheme: Scheme) -> list[str]:
    """Return those from the values of all maps to classes and probabilities."""
    own = _own_probabilities(scheme)
    if _is_coupled(scheme):
        return [*own, COUPLED_CLASS, PREDICT, IF_ASKED]
    return [_class_code(scheme), PREDICT, IF_ASKED, *own]


def _is_coupled(scheme: Scheme) -> bool:
    """Tell whether the class is that of the largest probability, which needs exponentials."""
    if isinstance(scheme, ShortlistScheme):
        return not scheme.by_vote
    return isinstance(scheme, PairwiseScheme) and scheme.n_classes > 2 and not scheme.by_vote


def _class_code(scheme: Scheme) -> str:
    """Return the function from values to a class."""
    if scheme.name == "pairwise":
        return TWO_CLASS if scheme.n_classes == 2 else VOTED_CLASS
    return HIGHEST_CLASS


def _own_probabilities(scheme: Scheme) -> list[str]:
    """Return the functions from values to probabilities."""
    if scheme.name == "pairwise":
        return [SIGMOID, TWO_OWN if scheme.n_classes == 2 else COUPLED_OWN]
    return [SHARED_OWN if scheme.name == "shared" else REST_OWN]


def _words(
    fast: BordersClassifier, scheme: Scheme, packed: Packed, name: str
) -> dict[str, str | int]:
    """Return what stands for the words between @ in the code."""
    first, is_double = packed.maps[0], packed.center.dtype == np.float64
    margin = max(WINNER_MARGIN, 4 * float(np.finfo(packed.center.dtype).eps))
    return {
        **_asking_words(scheme, packed),
        "math": MATH if _is_coupled(scheme) else MATH_IF_ASKED,
        "n_features": packed.n_features,
        "n_classes": len(fast.classes_),
        "n_values": _count_values(scheme, packed),
        "n_maps": len(packed.maps),
        "n_search": first.weights.shape[1],
        "n_each": first.n_values,
        "blend": max(one.n_blended for one in packed.maps),
        "n_bytes": _constant_bytes(scheme, packed),
        "margin": number(packed.center.dtype.type(margin)),
        "exp": "exp" if is_double else "expf",
        "real": "double" if is_double else "float",
        "name": name,
        "NAME": name.upper(),
    }


def _asking_words(scheme: Scheme, packed: Packed) -> dict[str, str | int]:
    """Return the words of the schemes that ask some of their maps."""
    is_plain, real = packed.projection is None, packed.center.dtype.type
    words: dict[str, str | int] = {
        "each": "@NAME@_EACH",
        "room": "@NAME@_FEATURES" if is_plain else "@NAME@_FEATURES + @NAME@_SEARCH",
        "z": "t" if is_plain else "t + @NAME@_FEATURES",
    }
    if isinstance(scheme, ShortlistScheme):
        words |= {
            "each": "(first < @name@_sizes[0] ? (size_t)@NAME@_EACH : (size_t)1)",
            "n_named": min(scheme.max_classes, scheme.n_classes),
            "n_slots": scheme.max_pairs,
            "reach": number(real(scheme.logit_margin)),
            "trust": number(real(scheme.pair_weight)),
            "rest": number(real(0.5 * (1.0 - scheme.pair_weight))),
        }
    return words


def _put_in(text: str, words: dict[str, Any]) -> str:
    """Replace the words between @."""
    for word, value in words.items():
        text = text.replace(f"@{word}@", str(value))
    return text


def check_name(name: str) -> str:
    """Return a name that C can have."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", name):
        raise ValueError(
            f"name must be letters, digits and underscores after a letter, got {name!r}."
        )
    return name


def number(value: Any) -> str:
    """Return the shortest decimal that C reads as the same bits.

    Examples
    --------
    >>> number(np.float32(0.1)), number(np.float64(2.0))
    ('0.1f', '2.0')
    """
    return f"{value!s}f" if value.dtype == np.float32 else str(value)


def array(kind: str, name: str, values: list[str]) -> str:
    """Return the definition of an array of constants."""
    lines, line = [], "   "
    for value in values:
        if len(line) + len(value) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {value},"
    return "\n".join([f"{kind} {name}[{len(values)}] = {{", *lines, line, "};"]) + "\n"


def numbers(kind: str, name: str, values: NDArray[Any]) -> str:
    """Return the definition of an array of floats."""
    return array(kind, name, [number(value) for value in values.ravel()])


def labels(name: str, classes: NDArray[Any]) -> str:
    """Return the definition of the labels: text, whole numbers or floats."""
    if classes.dtype.kind in "OU":
        return array("static const char *const", name, [text(str(one)) for one in classes])
    if classes.dtype.kind == "f":
        return array("static const double", name, [repr(float(one)) for one in classes])
    whole = [int(one) for one in classes]
    if all(abs(one) < 2**31 for one in whole):
        return array("static const long", name, [str(one) for one in whole])
    if max(whole) >= 2**63:
        return array("static const unsigned long long", name, [f"{one}ULL" for one in whole])
    # The lowest number has no literal of its own in C.
    shown = [f"{one}LL" if one > -(2**63) else f"({one + 1}LL - 1)" for one in whole]
    return array("static const long long", name, shown)


def text(value: str) -> str:
    r"""Return a text as a C literal: UTF-8, all but plain characters as octal numbers.

    Examples
    --------
    >>> print(text('a"b\n?é'))
    "a\042b\012\077\303\251"
    """
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _-+.,:;()[]/*=<>"
    data = value.encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(one) if one in plain else f"\\{one:03o}" for one in data) + '"'


def comment(value: str) -> str:
    """Return a text that can stand in a comment: plain characters, the others by their numbers."""
    return ascii(re.sub("[@*/?]", lambda one: f"\\x{ord(one[0]):02x}", value))
