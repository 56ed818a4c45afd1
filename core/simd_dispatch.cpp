#include "simd_dispatch.hpp"

#include <stdexcept>

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
#endif

static std::vector<const SimdLevel*> find_usable_levels() {
    std::vector<const SimdLevel*> levels;
#if defined(LIMES_X86_LEVELS)
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (has_avx2 && has_avx512) levels.push_back(&level_avx512);
    if (has_avx2) levels.push_back(&level_avx2);
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
