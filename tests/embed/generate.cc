// A C++ program that uses the installed library: generates 12 ids with a model and its drafter, two turns of which the
// second takes back a part of the first.
//
// In: MODEL DRAFTER, or nothing. Out: the ids on one line; without arguments the library's version.
#include <forerun.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

template <auto close> struct Closer {
    template <typename T> void operator()(T *handle) const { close(handle); }
};
using Options = std::unique_ptr<fr_options, Closer<fr_options_free>>;
using Model = std::unique_ptr<fr_model, Closer<fr_model_close>>;
using Drafter = std::unique_ptr<fr_drafter, Closer<fr_drafter_close>>;
using Session = std::unique_ptr<fr_session, Closer<fr_session_close>>;

void require(fr_status status) {
    if (status != FR_OK) throw std::runtime_error(fr_last_error());
}

std::vector<int32_t> generate(fr_session *session, size_t wanted) {
    std::vector<int32_t> ids;
    while (ids.size() < wanted) {
        int32_t step[FR_STEP_MAX];
        size_t count, accepted;
        require(fr_session_step(session, step, std::min<size_t>(wanted - ids.size(), FR_STEP_MAX), &count, &accepted));
        if (count == 0) break;
        ids.insert(ids.end(), step, step + count);
    }
    return ids;
}

void run(const char *model_path, const char *drafter_path) {
    Options options(fr_options_new());
    require(fr_options_set(options.get(), FR_OPT_IGNORE_EOS, 1));
    fr_model *model;
    require(fr_model_open(model_path, options.get(), &model));
    Model model_owner(model);
    fr_drafter *drafter;
    require(fr_drafter_open(drafter_path, model, options.get(), &drafter));
    Drafter drafter_owner(drafter);
    fr_session *session;
    require(fr_session_open(model, drafter, options.get(), &session));
    Session session_owner(session);

    const std::vector<int32_t> wrong{2, 9, 40, 41, 42}, prompt{2, 9, 17, 5};
    require(fr_session_set_prompt(session, wrong.data(), wrong.size()));
    generate(session, 5);
    require(fr_session_set_prompt(session, prompt.data(), prompt.size()));
    const char *separator = "";
    for (int32_t id : generate(session, 12)) {
        std::cout << separator << id;
        separator = ",";
    }
    std::cout << '\n';
}

} // namespace

int main(int argc, char **argv) try {
    if (argc < 3) {
        std::cout << fr_version() << '\n';
        return 0;
    }
    run(argv[1], argv[2]);
    return 0;
} catch (const std::exception &failure) {
    std::cerr << failure.what() << '\n';
    return 1;
}
