"""The C of shortlists and trees, which ask only some of their maps, as text like that of c_code."""

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
