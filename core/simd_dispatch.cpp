#include "simd_dispatch.hpp"

#include <stdexcept>

#if defined(LIMES_X86_LEVELS)
#include <cpuid.h>
#endif

namespace limes {

#define LIMES_LEVEL(name)                                                                    \
    extern const PredictKernels predict_##name;                                              \
    extern const SumsKernel sums_##name;                                                     \
    extern const ExactKernels exact_##name;                                                  \
    extern const Trainer trainer_##name;                                                     \
    static const SimdLevel level_##name = {#name, predict_##name, sums_##name, exact_##name, \
                                           trainer_##name};

LIMES_LEVEL(generic)
#if defined(LIMES_X86_LEVELS)
LIMES_LEVEL(avx2)
LIMES_LEVEL(avx512)

// Registers that the operating system saves. Only for processors with OSXSAVE.
static unsigned saved_registers() {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

struct X86Features {
    bool has_avx2, has_avx512;
};

// __builtin_cpu_supports needs the compiler's own library, which clang-cl does not link.
static X86Features find_x86_features() {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return {false, false};
    const bool has_fma = c & bit_FMA;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {false, false};
    const unsigned avx_registers = 0x6, avx512_registers = 0xe6, saved = saved_registers();
    const unsigned avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    const bool has_avx2 = has_fma && (b & bit_AVX2) && (saved & avx_registers) == avx_registers;
    return {has_avx2, has_avx2 && (b & avx512) == avx512 &&
                          (saved & avx512_registers) == avx512_registers};
}
#endif

static std::vector<const SimdLevel*> find_usable_levels() {
    std::vector<const SimdLevel*> levels;
#if defined(LIMES_X86_LEVELS)
    const X86Features processor = find_x86_features();
    if (processor.has_avx512) levels.push_back(&level_avx512);
    if (processor.has_avx2) levels.push_back(&level_avx2);
#endif
    levels.push_back(&level_generic);
    return levels;
}

const std::vector<const SimdLevel*>& usable_levels() {
    static const std::vector<const SimdLevel*> levels = find_usable_levels();
    return levels;
}

const SimdLevel& choose_level(const std::string& name) {
    if (name.empty()) return *usable_levels().front();
    std::string text = "level must be one of";
    for (const SimdLevel* level : usable_levels()) {
        if (name == level->name) return *level;
        text += std::string(" '") + level->name + "'";
    }
    throw std::invalid_argument(text + " on this processor, got '" + name + "'");
}

}  // namespace limes
