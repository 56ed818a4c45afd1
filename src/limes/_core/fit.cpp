// Fitting a map to its source by Adam: this file is built once for each path, as kernel.cpp is.
#include "fit.hpp"

#include <math.h>
#include <string.h>

#define LIMES_JOIN_(a, b) a##b
#define LIMES_JOIN(a, b) LIMES_JOIN_(a, b)
#define LIMES_TEXT_(a) #a
#define LIMES_TEXT(a) LIMES_TEXT_(a)

namespace limes {
namespace {

constexpr size_t lanes = 16;   // points scanned at once; the padding is never near
constexpr size_t abreast = 4;  // rows scanned at once
constexpr float first_decay = 0.9f, second_decay = 0.99f;  // Adam's averages
constexpr float warm_up = 0.05f;                            // share of the steps

inline size_t padded(size_t n) { return (n + lanes - 1) / lanes * lanes; }

// xoroshiro128+, seeded by splitmix64.
struct Random {
    uint64_t a, b;
    explicit Random(uint64_t seed) : a(mix(seed)), b(mix(seed + 0x9e3779b97f4a7c15u)) {}
    static uint64_t mix(uint64_t x) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return (x ^ (x >> 31)) | 1u;
    }
    uint32_t below(uint32_t n) {
        const uint64_t sum = a + b, c = a ^ b;
        a = ((a << 24) | (a >> 40)) ^ c ^ (c << 16);
        b = (c << 37) | (c >> 27);
        return uint32_t(((sum >> 32) * n) >> 32);
    }
};

inline float dot(const float* a, const float* b, size_t n) {
    float sum = 0;
    for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// The products of one vector with several, which keeps more sums under way than one at a time.
inline void dots(const float* a, const float* b, size_t stride, size_t n, float* out) {
    float sums[abreast] = {};
    for (size_t i = 0; i < n; ++i)
        for (size_t r = 0; r < abreast; ++r) sums[r] += a[i] * b[r * stride + i];
    for (size_t r = 0; r < abreast; ++r) out[r] = sums[r];
}

inline void add(float* to, const float* from, float scale, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] += scale * from[i];
}

// Parameters with the gradient of a batch and Adam's two averages.
struct Group {
    float *values, *gradient, *mean, *square;
    size_t size;
    float rate, decay;
    void step(float pace, float first, float second) {
        const float size_of_step = rate * pace / first, scale = 1 / second;
        const float keep = 1 - rate * pace * decay;
        for (size_t i = 0; i < size; ++i) {
            const float g = gradient[i];
            mean[i] = first_decay * mean[i] + (1 - first_decay) * g;
            square[i] = second_decay * square[i] + (1 - second_decay) * g * g;
            values[i] = keep * values[i] - size_of_step * mean[i] / (sqrtf(square[i] * scale) + 1e-8f);
            gradient[i] = 0;
        }
    }
};

// Everything that one job needs, cut from one piece of memory.
struct Room {
    const FitJob& job;
    float* memory;  // null: only the size is wanted
    size_t size = 0;
    Group slopes, levels, points, base_slopes, base_levels, components;
    float *panel, *biases;              // points by feature, padded; half their squared lengths
    float *scores;                      // [abreast][padded points]
    float *near_scores, *shares, *pulls;  // of the nearest points of one row
    float *local, *values, *slack, *shift;  // [near][output], [output], [output], [near][feature]
    float *search, *search_slack;  // [row of the batch][n_search]: places, and the loss by them
    uint32_t* near;

    Room(const FitJob& j, float* piece) : job(j), memory(piece) {
        const size_t q = j.n_outputs, m = j.n_points, d = j.n_features, near_points = n_near();
        slopes = group(j.slopes, m * q * j.n_search, j.local_rate, j.decay);
        levels = group(j.levels, m * q, j.local_rate, j.decay);
        points = group(j.points, m * j.n_search, j.point_rate, 0);
        base_slopes = group(j.base_slopes, q * d, j.base_rate, 0);
        base_levels = group(j.base_levels, q, j.base_rate, 0);
        components = group(j.components, j.components ? j.n_search * d : 0, j.component_rate, 0);
        panel = take(j.n_search * padded(m));
        biases = take(padded(m));
        scores = take(abreast * padded(m));
        near_scores = take(near_points);
        shares = take(near_points);
        pulls = take(near_points);
        local = take(near_points * q);
        values = take(q);
        slack = take(q);
        shift = take(near_points * j.n_search);
        search = take(j.n_batch * j.n_search);
        search_slack = take(j.components ? j.n_batch * j.n_search : 0);
        near = reinterpret_cast<uint32_t*>(take(near_points));
    }
    size_t n_near() const { return job.n_points > 1 ? job.n_blended + 1 : 1; }
    float* take(size_t n) {
        float* start = memory ? memory + size : nullptr;
        size += n;
        return start;
    }
    Group group(float* parameters, size_t n, float rate, float decay) {
        float *gradient = take(n), *mean = take(n), *square = take(n);
        return {parameters, gradient, mean, square, n, rate, decay};
    }
};

// Lay the points out by feature, and find half their squared lengths.
void pack_points(Room& room) {
    const FitJob& job = room.job;
    const size_t width = padded(job.n_points);
    for (size_t i = 0; i < width; ++i) room.biases[i] = INFINITY;
    for (size_t i = 0; i < job.n_points; ++i) {
        const float* point = job.points + i * job.n_search;
        for (size_t j = 0; j < job.n_search; ++j) room.panel[j * width + i] = point[j];
        room.biases[i] = 0.5f * dot(point, point, job.n_search);
    }
}

// Where the rows of a batch are searched from.
void place_rows(Room& room, const uint32_t* order, size_t n) {
    const FitJob& job = room.job;
    const size_t width = job.n_search, d = job.n_features;
    for (size_t r = 0; r < n; ++r) {
        float* place = room.search + r * width;
        if (!job.components) {
            memcpy(place, job.search + order[r] * width, width * sizeof(float));
            continue;
        }
        const float* row = job.rows + order[r] * d;
        size_t a = 0;
        for (; a + abreast <= width; a += abreast) dots(row, job.components + a * d, d, d, place + a);
        for (; a < width; ++a) place[a] = dot(row, job.components + a * d, d);
    }
}

// Half the squared distance of several rows to all points, but for the rows' own lengths.
void scan(Room& room, size_t start, size_t n) {
    const FitJob& job = room.job;
    const size_t width = padded(job.n_points);
    const float* rows[abreast];
    for (size_t r = 0; r < abreast; ++r) rows[r] = room.search + (start + (r < n ? r : 0)) * job.n_search;
    for (size_t first = 0; first < width; first += lanes) {
        float sums[abreast][lanes];
        for (size_t r = 0; r < abreast; ++r)
            for (size_t i = 0; i < lanes; ++i) sums[r][i] = room.biases[first + i];
        for (size_t j = 0; j < job.n_search; ++j) {
            const float* column = room.panel + j * width + first;
            for (size_t r = 0; r < abreast; ++r)
                for (size_t i = 0; i < lanes; ++i) sums[r][i] -= rows[r][j] * column[i];
        }
        for (size_t r = 0; r < abreast; ++r)
            memcpy(room.scores + r * width + first, sums[r], sizeof(sums[r]));
    }
}

// The nearest points of a row in order, and the share of each in its values.
float choose(Room& room, const float* scores) {
    const size_t n_near = room.n_near(), n_points = room.job.n_points;
    size_t found = 0;
    for (size_t i = 0; i < n_points; ++i) {
        if (found == n_near && scores[i] >= room.near_scores[n_near - 1]) continue;
        size_t place = found < n_near ? found++ : n_near - 1;
        for (; place > 0 && room.near_scores[place - 1] > scores[i]; --place) {
            room.near_scores[place] = room.near_scores[place - 1];
            room.near[place] = room.near[place - 1];
        }
        room.near_scores[place] = scores[i];
        room.near[place] = uint32_t(i);
    }
    float total = 0;
    const size_t n = room.job.n_blended;
    for (size_t j = 0; j < n; ++j) total += room.shares[j] = room.near_scores[n] - room.near_scores[j];
    for (size_t j = 0; j < n; ++j) room.shares[j] = total > 1e-12f ? room.shares[j] / total : 1.0f / n;
    return total;
}

// The values of a row, as the map stands.
void evaluate(Room& room, size_t number, const float* search) {
    const FitJob& job = room.job;
    const size_t q = job.n_outputs, d = job.n_features, r = job.n_search;
    const float* row = job.rows + number * d;
    for (size_t c = 0; c < q; ++c) room.values[c] = job.base_levels[c] + dot(job.base_slopes + c * d, row, d);
    if (job.n_points == 1) return;
    for (size_t j = 0; j < job.n_blended; ++j) {
        const size_t i = room.near[j];
        float* shift = room.shift + j * r;
        for (size_t a = 0; a < r; ++a) shift[a] = (search[a] - job.anchors[i * r + a]) * job.inverse_radius;
        for (size_t c = 0; c < q; ++c) {
            const float value = job.levels[i * q + c] + dot(job.slopes + (i * q + c) * r, shift, r);
            room.local[j * q + c] = value;
            room.values[c] += room.shares[j] * value;
        }
    }
}

// Cross-entropy against the source's probabilities, and its derivative in the values.
double loss_and_slack(Room& room, const float* targets, float scale) {
    const size_t q = room.job.n_outputs;
    const float* v = room.values;
    if (q == 1) {
        room.slack[0] = scale * (1 / (1 + expf(-v[0])) - targets[0]);
        return log1pf(expf(-fabsf(v[0]))) + fmaxf(v[0], 0.0f) - targets[0] * v[0];
    }
    float most = v[0], sum = 0;
    for (size_t c = 1; c < q; ++c) most = fmaxf(most, v[c]);
    for (size_t c = 0; c < q; ++c) sum += room.slack[c] = expf(v[c] - most);
    const float log_sum = logf(sum) + most;
    double loss = 0;
    for (size_t c = 0; c < q; ++c) {
        loss += targets[c] * (log_sum - v[c]);
        room.slack[c] = scale * (room.slack[c] / sum - targets[c]);
    }
    return loss;
}

// Points move by the derivative of the shares: each nearest score against the next one after them.
// Where rows lie is fitted too with components, and the same derivative moves the rows.
void pull_points(Room& room, const float* search, float* slack, float total, float mean_pull) {
    const FitJob& job = room.job;
    const size_t n = job.n_blended;
    float rest = 0;
    for (size_t j = 0; j <= n; ++j) {
        const float change = j < n ? (room.pulls[j] - mean_pull) / total : -rest;
        rest += j < n ? change : 0;
        const size_t i = room.near[j];
        float* gradient = room.points.gradient + i * job.n_search;
        for (size_t a = 0; a < job.n_search; ++a) {
            const float part = change * (job.points[i * job.n_search + a] - search[a]);
            gradient[a] -= part;
            if (slack) slack[a] += part;
        }
    }
}

// The loss by the place of a row, through the local functions.
void pull_row(Room& room, float* slack) {
    const FitJob& job = room.job;
    const size_t q = job.n_outputs, r = job.n_search;
    for (size_t a = 0; a < r; ++a) slack[a] = 0;
    for (size_t j = 0; j < job.n_blended; ++j)
        for (size_t c = 0; c < q; ++c)
            add(slack, job.slopes + (room.near[j] * q + c) * r,
                room.slack[c] * room.shares[j] * job.inverse_radius, r);
}

// The loss by the components: the sum over rows of each row times the loss by its place.
void spread_components(Room& room, const uint32_t* order, size_t n) {
    const FitJob& job = room.job;
    const size_t d = job.n_features, width = job.n_search;
    for (size_t first = 0; first < n; first += abreast) {
        const float *rows[abreast], *slacks[abreast];
        for (size_t r = 0; r < abreast; ++r) {
            const size_t place = first + r < n ? first + r : first;
            rows[r] = job.rows + order[place] * d;
            slacks[r] = room.search_slack + place * width;
        }
        const size_t n_rows = n - first < abreast ? n - first : abreast;
        for (size_t a = 0; a < width; ++a) {
            float* gradient = room.components.gradient + a * d;
            float s[abreast];
            for (size_t r = 0; r < abreast; ++r) s[r] = r < n_rows ? slacks[r][a] : 0;
            for (size_t i = 0; i < d; ++i)
                gradient[i] += s[0] * rows[0][i] + s[1] * rows[1][i] + s[2] * rows[2][i] + s[3] * rows[3][i];
        }
    }
}

// Add one row's part to the gradients.
void spread_slack(Room& room, size_t number, size_t place, float total) {
    const FitJob& job = room.job;
    const size_t q = job.n_outputs, d = job.n_features, r = job.n_search;
    const float* row = job.rows + number * d;
    for (size_t c = 0; c < q; ++c) {
        add(room.base_slopes.gradient + c * d, row, room.slack[c], d);
        room.base_levels.gradient[c] += room.slack[c];
    }
    if (job.n_points == 1) return;
    float mean_pull = 0;
    for (size_t j = 0; j < job.n_blended; ++j) {
        const size_t i = room.near[j];
        room.pulls[j] = dot(room.slack, room.local + j * q, q);
        mean_pull += room.shares[j] * room.pulls[j];
        for (size_t c = 0; c < q; ++c) {
            const float part = room.slack[c] * room.shares[j];
            room.levels.gradient[i * q + c] += part;
            add(room.slopes.gradient + (i * q + c) * r, room.shift + j * r, part, r);
        }
    }
    float* slack = job.components ? room.search_slack + place * r : nullptr;
    if (slack) pull_row(room, slack);
    if (job.n_blended > 1 && total > 1e-6f)
        pull_points(room, room.search + place * r, slack, total, mean_pull);
}

double run_batch(Room& room, const uint32_t* order, size_t n) {
    const FitJob& job = room.job;
    double loss = 0;
    const bool is_local = job.n_points > 1;
    if (is_local) pack_points(room), place_rows(room, order, n);
    for (size_t r = 0; r < n; ++r) {
        const size_t number = order[r];
        if (is_local && r % abreast == 0) scan(room, r, n - r);
        float total = 0;
        if (is_local) total = choose(room, room.scores + r % abreast * padded(job.n_points));
        evaluate(room, number, room.search + r * job.n_search);
        const float weight = job.weights[number];
        loss += weight * loss_and_slack(room, job.targets + number * job.n_outputs, weight / float(n));
        spread_slack(room, number, r, total);
    }
    if (is_local && job.components) spread_components(room, order, n);
    return loss;
}

// Rises at first, then falls to nothing along a cosine.
inline float pace(double done) {
    if (done < warm_up) return float(done / warm_up);
    return float(0.5 * (1 + cos(M_PI * (done - warm_up) / (1 - warm_up))));
}

void step_all(Room& room, size_t step, size_t n_steps) {
    const float first = float(1 - pow(first_decay, double(step)));
    const float second = float(1 - pow(second_decay, double(step)));
    const float now = pace(double(step) / double(n_steps));
    room.base_slopes.step(now, first, second);
    room.base_levels.step(now, first, second);
    if (room.job.n_points == 1) return;
    room.slopes.step(now, first, second);
    room.levels.step(now, first, second);
    if (room.points.rate > 0) room.points.step(now, first, second);
    if (room.job.components) room.components.step(now, first, second);
}

double fit(const FitJob& job, float* memory, uint32_t* order) {
    Room room(job, memory);
    Random random(job.seed);
    const size_t per_epoch = (job.n_rows + job.n_batch - 1) / job.n_batch;
    double loss = 0, weight = 0;
    for (size_t i = 0; i < job.n_rows; ++i) order[i] = uint32_t(i), weight += job.weights[i];
    for (size_t epoch = 0, step = 0; epoch < job.n_epochs; ++epoch) {
        for (size_t i = job.n_rows; i > 1; --i) {
            const uint32_t other = random.below(uint32_t(i)), kept = order[other];
            order[other] = order[i - 1];
            order[i - 1] = kept;
        }
        loss = 0;
        for (size_t first = 0; first < job.n_rows; first += job.n_batch) {
            const size_t left = job.n_rows - first;
            loss += run_batch(room, order + first, left < job.n_batch ? left : job.n_batch);
            step_all(room, ++step, per_epoch * job.n_epochs);
        }
    }
    return loss / weight;
}

size_t room_size(const FitJob& job) { return Room(job, nullptr).size; }

}  // namespace

extern const FitPath LIMES_JOIN(fit_path_, LIMES_PATH);
const FitPath LIMES_JOIN(fit_path_, LIMES_PATH) = {LIMES_TEXT(LIMES_PATH), &room_size, &fit};

}  // namespace limes
