// Fitting a map to its source by Adam: this file is built once for each path, as kernel.cpp is.
#include "fit.hpp"

#include "fit_products.hpp"
#include "fit_room.hpp"
#include "paths.hpp"

namespace limes {
namespace {

constexpr float warm_up = 0.05f;  // share of the steps

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

// Lay the points out for the scan, and find half their squared lengths.
void pack_points(Room& room) {
    const FitJob& job = room.job;
    const size_t r = job.n_search;
    lay_out(job.points, r, job.n_points, r, -1, room.point_panel, room.n_points);
    for (size_t i = 0; i < room.n_points; ++i) room.biases[i] = INFINITY;
    for (size_t i = 0; i < job.n_points; ++i)
        room.biases[i] = 0.5f * dot(job.points + i * r, job.points + i * r, r);
}

// Copy the rows of a batch, and multiply them with the components and base functions.
void place_rows(Room& room, const uint32_t* order, size_t n) {
    const FitJob& job = room.job;
    const size_t wide = room.n_wide, d = room.n_features;
    for (size_t r = 0; r < n; ++r)
        memcpy(room.rows + r * d, job.rows + order[r] * job.n_features, job.n_features * sizeof(float));
    const size_t used = room.n_components + job.n_outputs;
    lay_out(room.wide.values, d, used, job.n_features, 1, room.wide_panel, wide);
    for (size_t r = 0; r < n; r += abreast)
        multiply(room.rows + r * d, d, n - r, job.n_features, room.wide_panel, wide, nullptr,
                 room.wide_values + r * wide);
}

// Half the squared distance of several rows to all points, but for the rows' own lengths; and the
// lowest of every few points.
void scan(Room& room, size_t start, size_t n) {
    const FitJob& job = room.job;
    const size_t n_all = room.n_points, stride = job.components ? room.n_wide : room.n_features;
    multiply(room.search(start), stride, n, job.n_search, room.point_panel, n_all, room.biases, room.scores);
    for (size_t i = 0; i < abreast * n_all / lanes; ++i) {
        Vector low = load(room.scores + i * lanes);
        for (size_t v = 1; v < vectors; ++v) {
            const Vector next = load(room.scores + i * lanes + v * width);
            low = next < low ? next : low;
        }
        room.lowest[i] = least_of(low);
    }
}

// The nearest points of a row in order, the lowest index first among equals.
void rank(Room& room, size_t row) {
    const size_t n_near = room.n_near, n_points = room.job.n_points;
    const float* scores = room.scores + row * room.n_points;
    const float* lowest = room.lowest + row * room.n_points / lanes;
    size_t found = 0;
    for (size_t block = 0; block * lanes < n_points; ++block) {
        if (found == n_near && lowest[block] >= room.near_scores[n_near - 1]) continue;
        const size_t first = block * lanes, left = n_points - first;
        for (size_t i = first; i < first + (left < lanes ? left : lanes); ++i) {
            if (found == n_near && scores[i] >= room.near_scores[n_near - 1]) continue;
            size_t place = found < n_near ? found++ : n_near - 1;
            for (; place > 0 && room.near_scores[place - 1] > scores[i]; --place) {
                room.near_scores[place] = room.near_scores[place - 1];
                room.near[place] = room.near[place - 1];
            }
            room.near_scores[place] = scores[i];
            room.near[place] = uint32_t(i);
        }
    }
}

// The share of each nearest point in the values of a row; return what they are parts of.
float share_out(Room& room) {
    float total = 0;
    const size_t n = room.job.n_blended;
    for (size_t j = 0; j < n; ++j) total += room.shares[j] = room.near_scores[n] - room.near_scores[j];
    for (size_t j = 0; j < n; ++j) room.shares[j] = total > 1e-12f ? room.shares[j] / total : 1.0f / n;
    return total;
}

// The values of one point's functions, at a place given from its anchor.
void evaluate_point(const Room& room, size_t point, const float* shift, float* out) {
    const size_t r = room.job.n_search, q = room.n_outputs;
    const float *slopes = room.slopes.values + point * r * q, *levels = room.levels.values + point * q;
    if (q == 1) {
        out[0] = levels[0] + dot(slopes, shift, r);
        return;
    }
    for (size_t first = 0; first < q; first += width) {
        Vector even = load(levels + first), odd = {};
        size_t a = 0;
        for (; a + 2 <= r; a += 2) {
            even += shift[a] * load(slopes + a * q + first);
            odd += shift[a + 1] * load(slopes + (a + 1) * q + first);
        }
        if (a < r) even += shift[a] * load(slopes + a * q + first);
        store(out + first, even + odd);
    }
}

// The values of a row of the batch, as the map stands.
void evaluate(Room& room, size_t row) {
    const FitJob& job = room.job;
    const size_t q = room.n_outputs, r = job.n_search;
    const float *base = room.base_values(row), *search = room.search(row);
    for (size_t c = 0; c < job.n_outputs; ++c) room.values[c] = job.base_levels[c] + base[c];
    if (job.n_points == 1) return;
    for (size_t j = 0; j < job.n_blended; ++j) {
        const float* anchor = job.anchors + room.near[j] * r;
        float *shift = room.shift + j * r, *local = room.local + j * q;
        for (size_t a = 0; a < r; ++a) shift[a] = (search[a] - anchor[a]) * job.inverse_radius;
        evaluate_point(room, room.near[j], shift, local);
        add(room.values, local, room.shares[j], job.n_outputs);
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
    const size_t q = room.n_outputs, r = job.n_search;
    for (size_t a = 0; a < r; ++a) slack[a] = 0;
    for (size_t j = 0; j < job.n_blended; ++j) {
        const float* slopes = room.slopes.values + room.near[j] * r * q;
        const float scale = room.shares[j] * job.inverse_radius;
        if (q == 1) add(slack, slopes, scale * room.slack[0], r);
        else
            for (size_t a = 0; a < r; ++a) slack[a] += scale * dot(slopes + a * q, room.slack, q);
    }
}

// Add one point's part of a row to the gradients of its functions.
void spread_point(Room& room, size_t near, float share) {
    const size_t q = room.n_outputs, r = room.job.n_search, point = room.near[near];
    float *slopes = room.slopes.gradient + point * r * q, *levels = room.levels.gradient + point * q;
    const float* shift = room.shift + near * r;
    add(levels, room.slack, share, q);
    if (q == 1) add(slopes, shift, share * room.slack[0], r);
    else
        for (size_t a = 0; a < r; ++a) add(slopes + a * q, room.slack, share * shift[a], q);
}

// Add one row's part to the gradients; those of all features are left for the whole batch.
void spread_slack(Room& room, size_t row, float total) {
    const FitJob& job = room.job;
    float* slack = room.wide_slack + row * room.n_wide;
    for (size_t c = 0; c < job.n_outputs; ++c) {
        slack[room.n_components + c] = room.slack[c];
        room.base_levels.gradient[c] += room.slack[c];
    }
    if (job.n_points == 1) return;
    float mean_pull = 0;
    for (size_t j = 0; j < job.n_blended; ++j) {
        room.pulls[j] = dot(room.slack, room.local + j * room.n_outputs, job.n_outputs);
        mean_pull += room.shares[j] * room.pulls[j];
        spread_point(room, j, room.shares[j]);
    }
    if (job.components) pull_row(room, slack);
    if (job.n_blended > 1 && total > 1e-6f)
        pull_points(room, room.search(row), job.components ? slack : nullptr, total, mean_pull);
}

double run_batch(Room& room, const uint32_t* order, size_t n) {
    const FitJob& job = room.job;
    double loss = 0;
    const bool is_local = job.n_points > 1;
    place_rows(room, order, n);
    if (is_local) pack_points(room);
    for (size_t r = 0; r < n; ++r) {
        const size_t number = order[r];
        if (is_local && r % abreast == 0) scan(room, r, n - r);
        if (is_local) rank(room, r % abreast);
        const float total = is_local ? share_out(room) : 0, weight = job.weights[number];
        evaluate(room, r);
        loss += weight * loss_and_slack(room, job.targets + number * job.n_outputs, weight / float(n));
        spread_slack(room, r, total);
    }
    multiply_back(room.wide_slack, room.n_wide, room.n_components + job.n_outputs, room.rows,
                  room.n_features, n, room.wide.gradient);
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

void shuffle(uint32_t* order, size_t n, Random& random) {
    for (size_t i = n; i > 1; --i) {
        const uint32_t other = random.below(uint32_t(i)), kept = order[other];
        order[other] = order[i - 1];
        order[i - 1] = kept;
    }
}

double fit(const FitJob& job, float* memory, uint32_t* order) {
    Room room(job, memory);
    Random random(job.seed);
    room.read_parameters();
    const size_t per_epoch = (job.n_rows + job.n_batch - 1) / job.n_batch;
    double loss = 0, weight = 0;
    for (size_t i = 0; i < job.n_rows; ++i) order[i] = uint32_t(i), weight += job.weights[i];
    for (size_t epoch = 0, step = 0; epoch < job.n_epochs; ++epoch) {
        shuffle(order, job.n_rows, random);
        loss = 0;
        for (size_t first = 0; first < job.n_rows; first += job.n_batch) {
            const size_t left = job.n_rows - first;
            loss += run_batch(room, order + first, left < job.n_batch ? left : job.n_batch);
            step_all(room, ++step, per_epoch * job.n_epochs);
        }
    }
    room.write_parameters();
    return loss / weight;
}

size_t room_size(const FitJob& job) { return Room(job, nullptr).size; }

}  // namespace

extern const FitPath LIMES_JOIN(fit_path_, LIMES_PATH);
const FitPath LIMES_JOIN(fit_path_, LIMES_PATH) = {LIMES_TEXT(LIMES_PATH), &room_size, &fit};

}  // namespace limes
