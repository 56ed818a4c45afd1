// Choice of the compiled path at run time.
#include "dispatch.hpp"

namespace limes {

extern const Path path_generic;
extern const FitPath fit_path_generic;
extern const SumsPath sums_path_generic;
#if defined(LIMES_X86_PATHS)
extern const FitPath fit_path_avx2;
extern const FitPath fit_path_avx512;
extern const SumsPath sums_path_avx2;
extern const SumsPath sums_path_avx512;
extern const Path path_avx2;
extern const Path path_avx512;
#endif

static std::vector<const Path*> list_paths() {
    std::vector<const Path*> paths;
#if defined(LIMES_X86_PATHS)
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (has_avx2 && has_avx512) paths.push_back(&path_avx512);
    if (has_avx2) paths.push_back(&path_avx2);
#endif
    paths.push_back(&path_generic);
    return paths;
}

const std::vector<const Path*>& usable_paths() {
    static const std::vector<const Path*> paths = list_paths();
    return paths;
}

const Path* find_path(const std::string& name) {
    if (name.empty()) return usable_paths().front();
    for (const Path* path : usable_paths())
        if (name == path->name) return path;
    return nullptr;
}

const FitPath* find_fit_path(const std::string& name) {
    const Path* path = find_path(name);
    if (!path) return nullptr;
#if defined(LIMES_X86_PATHS)
    for (const FitPath* fit : {&fit_path_avx512, &fit_path_avx2})
        if (std::string(path->name) == fit->name) return fit;
#endif
    return &fit_path_generic;
}

const SumsPath* find_sums_path(const std::string& name) {
    const Path* path = find_path(name);
    if (!path) return nullptr;
#if defined(LIMES_X86_PATHS)
    for (const SumsPath* sums : {&sums_path_avx512, &sums_path_avx2})
        if (std::string(path->name) == sums->name) return sums;
#endif
    return &sums_path_generic;
}

}  // namespace limes
