// A row beyond the range of the arithmetic, moved towards zero until it is within.
#pragma once
#include <cmath>
#include <cstring>
#include <vector>

#include "core.hpp"

namespace limes {

// Some of the rows.
inline Rows take_rows(const Rows& rows, size_t first, size_t n) {
    return {rows.data + ptrdiff_t(first) * rows.row_stride, n, rows.row_stride, rows.column_stride,
            rows.is_double};
}

// So far away only the direction of a row tells which point is nearest and which side it is on, and
// a power of two takes no digit from it.
struct Tamed {
    std::vector<double> numbers;
    double most = 0;  // the largest magnitude as it was; not finite if a number is not

    Tamed(const Rows& row, size_t n_features, int range) : numbers(n_features) {
        for (size_t k = 0; k < n_features; ++k) {
            numbers[k] = read(row, k);
            const double size = std::abs(numbers[k]);
            if (!(size <= most)) most = size;
            if (std::isnan(most)) return;
        }
        int power = 0;
        std::frexp(most, &power);
        for (double& number : numbers) number = std::ldexp(number, range - power);
    }

    Rows row() const {
        return {reinterpret_cast<const char*>(numbers.data()), 1, 0, sizeof(double), true};
    }

private:
    static double read(const Rows& row, size_t k) {
        const char* from = row.data + ptrdiff_t(k) * row.column_stride;
        double number;
        float half;
        std::memcpy(row.is_double ? static_cast<void*>(&number) : &half, from,
                    row.is_double ? sizeof number : sizeof half);
        return row.is_double ? number : double(half);
    }
};

}  // namespace limes
