// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Runs a fuzz target over files, where the compiler has no fuzzer: what was
// found once stays mended in every build.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv)
    __attribute__((weak));

namespace {

bool Replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file.is_open()) {
    std::fprintf(stderr, "replay: can't read %s\n", path.c_str());
    return false;
  }
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  return true;
}

// Each file in `folder`; how many, -1 if one can't be read.
int ReplayAll(const std::string& folder) {
  std::error_code error;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!Replay(entry.path())) return -1;
    ++count;
  }
  return error ? -1 : count;
}

}  // namespace

int main(int argc, char** argv) {
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  for (int i = 1; i < argc; ++i) {
    const int count = ReplayAll(argv[i]);
    if (count <= 0) {
      std::fprintf(stderr, "replay: %s has no input that can be read\n",
                   argv[i]);
      return 1;
    }
    std::printf("%d inputs of %s\n", count, argv[i]);
  }
  return 0;
}
