// From numbers of classes to labels of any fixed size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace limes {

template <size_t size>
inline void copy_labels(const int32_t* codes, size_t n, const char* table, char* out) {
    for (size_t r = 0; r < n; ++r)
        std::memcpy(out + r * size, table + size_t(codes[r]) * size, size);
}

// Write table[code] for each of n rows, `size` bytes each, at any address.
inline void write_labels(const int32_t* codes, size_t n, const char* table, size_t size, char* out) {
    switch (size) {
        case 1: return copy_labels<1>(codes, n, table, out);
        case 2: return copy_labels<2>(codes, n, table, out);
        case 4: return copy_labels<4>(codes, n, table, out);
        case 8: return copy_labels<8>(codes, n, table, out);
        default:
            for (size_t r = 0; r < n; ++r)
                std::memcpy(out + r * size, table + size_t(codes[r]) * size, size);
    }
}

}  // namespace limes
