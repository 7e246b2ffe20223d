// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Where the loader looks, in which order, and what it says of each place.
#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "loaded.h"

namespace mig::abi {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGood = MIG_FAKE_DIR "/good.so";

std::vector<std::string> SearchDirs() {
  std::vector<std::string> dirs;
  while (const char* dir = mig_loader_search_dir(dirs.size())) {
    dirs.emplace_back(dir);
  }
  return dirs;
}

void WriteFile(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int32_t Refuse(uint32_t, uint32_t, const mig_transport_ops**, mig_error*) {
  return MIG_E_VERSION;
}

int32_t RefuseToo(uint32_t, uint32_t, const mig_transport_ops**, mig_error*) {
  return MIG_E_VERSION;
}

TEST(LoaderSearch, LooksInTheVariableThenInTheBuiltInDirectory) {
  const PluginPath path("/first::/second:");
  EXPECT_THAT(SearchDirs(),
              ElementsAre("/first", "/second", MIG_BUILD_DIR, MIG_PLUGINDIR));
}

TEST(LoaderSearch, NeedsNoVariable) {
  const PluginPath path("");
  EXPECT_THAT(SearchDirs(), ElementsAre(MIG_BUILD_DIR, MIG_PLUGINDIR));
}

TEST(LoaderSearch, TakesTheFirstDirectoryThatHasIt) {
  const TempDir one;
  const TempDir two;
  fs::copy(kGood, one.path() / "twice.so");
  fs::copy(kGood, two.path() / "twice.so");
  const PluginPath path("/none:" + two.path().string() + ":" +
                        one.path().string());
  const Loaded loaded("twice");
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(loaded.path(), two.path() / "twice.so");
}

TEST(LoaderSearch, GoesOnAfterAFileThatCanNotBeUsed) {
  const TempDir one;
  const TempDir two;
  WriteFile(one.path() / "late.so", "no plugin");
  fs::copy(kGood, two.path() / "late.so");
  const PluginPath path(one.path().string() + ":" + two.path().string());
  const Loaded loaded("late");
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(loaded.path(), two.path() / "late.so");
}

TEST(LoaderSearch, ListsEveryPathThatItTriedAndWhy) {
  const TempDir dir;
  WriteFile(dir.path() / "odd.so", "no plugin");
  const PluginPath path("/none:" + dir.path().string());
  const Loaded loaded("odd");
  EXPECT_EQ(loaded.code(), MIG_E_UNSUPPORTED);
  EXPECT_THAT(loaded.message(),
              AllOf(HasSubstr("/none/odd.so: No such file"),
                    HasSubstr((dir.path() / "odd.so").string() +
                              ": can't be loaded: file too short"),
                    HasSubstr(MIG_BUILD_DIR "/odd.so: No such file"),
                    HasSubstr(MIG_PLUGINDIR "/odd.so: No such file")));
}

TEST(LoaderSearch, AnswersTheCodeOfWhatWasFoundNotOfWhatWasMissing) {
  const TempDir dir;
  fs::copy(MIG_FAKE_DIR "/version_2.so", dir.path() / "newer.so");
  const PluginPath path("/none:" + dir.path().string());
  EXPECT_EQ(Loaded("newer").code(), MIG_E_VERSION);
}

TEST(LoaderSearch, SaysWhatToDoAboutAMissingPlugin) {
  EXPECT_THAT(Loaded("none").message(), HasSubstr(MIG_LOADER_PATH_VARIABLE));
  EXPECT_THAT(Loaded("/none.so").message(),
              Not(HasSubstr(MIG_LOADER_PATH_VARIABLE)));
}

TEST(LoaderSearch, TakesANameWithASlashAsAPath) {
  const TempDir dir;
  fs::copy(kGood, dir.path() / "plugin");
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  const Loaded relative("./plugin");
  fs::current_path(before);
  ASSERT_TRUE(relative.ok()) << relative.message();
  EXPECT_EQ(relative.path(), dir.path() / "plugin");
}

TEST(LoaderSearch, RefusesFilesThatAreNoPlugins) {
  const TempDir dir;
  std::string other_class = ReadFile(kGood);
  other_class[EI_CLASS] = ELFCLASS32;
  std::string other_machine = ReadFile(kGood);
  other_machine[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_S390);
  WriteFile(dir.path() / "empty", "");
  WriteFile(dir.path() / "text", std::string(4096, 'x'));
  WriteFile(dir.path() / "class", other_class);
  WriteFile(dir.path() / "machine", other_machine);
  WriteFile(dir.path() / "cut", ReadFile(kGood).substr(0, 600));
  ASSERT_EQ(mkfifo((dir.path() / "fifo").c_str(), 0600), 0);
  fs::create_symlink("nowhere", dir.path() / "dangling");
  fs::create_directory(dir.path() / "directory");
  for (const char* name : {"empty", "text", "class", "machine", "cut", "fifo",
                           "dangling", "directory", "text/below"}) {
    const std::string path = dir.path() / name;
    const Loaded loaded(path);
    EXPECT_EQ(loaded.code(), MIG_E_UNSUPPORTED) << name;
    EXPECT_THAT(loaded.message(), HasSubstr("\n  " + path + ": "));
  }
  EXPECT_THAT(Loaded(dir.path() / "class").message(),
              HasSubstr("wrong ELF class"));
  EXPECT_THAT(Loaded(dir.path() / "cut").message(),
              HasSubstr("cut off after 600 bytes"));
  EXPECT_THAT(Loaded(dir.path() / "fifo").message(),
              HasSubstr("not a regular file"));
}

TEST(LoaderSearch, RefusesAnExecutable) {
  EXPECT_EQ(Loaded("/proc/self/exe").code(), MIG_E_UNSUPPORTED);
}

TEST(LoaderSearch, ExplainsNamesAndDirectoriesThatAreTooLong) {
  const std::string long_text(2 * PATH_MAX, 'd');
  const PluginPath path("/" + long_text);
  EXPECT_THAT(Loaded("good").message(), HasSubstr("longer than 4095 bytes"));
  EXPECT_EQ(Loaded(long_text).code(), MIG_E_ARGUMENT);
  EXPECT_EQ(Loaded("/" + long_text).code(), MIG_E_UNSUPPORTED);
  // The text is cut, and says so.
  EXPECT_THAT(Loaded(long_text).message(), HasSubstr("..."));
}

TEST(LoaderArguments, AreChecked) {
  mig_plugin* plugin = nullptr;
  mig_loader_error error = Sized<mig_loader_error>();
  EXPECT_EQ(mig_loader_open(nullptr, &plugin, &error), MIG_E_ARGUMENT);
  EXPECT_EQ(error.code, MIG_E_ARGUMENT);
  EXPECT_EQ(mig_loader_open("", &plugin, &error), MIG_E_ARGUMENT);
  EXPECT_EQ(mig_loader_open("x", nullptr, &error), MIG_E_ARGUMENT);
  EXPECT_EQ(mig_loader_open("x", &plugin, nullptr), MIG_E_UNSUPPORTED);
  mig_loader_close(nullptr);
}

TEST(LoaderArguments, ErrorsOfAnySizeAreFilledUpToIt) {
  mig_plugin* plugin = nullptr;
  struct {
    mig_loader_error error;
    char guard[8];
  } longer;
  memset(&longer, 0x55, sizeof(longer));
  longer.error.size = sizeof(longer);
  EXPECT_NE(mig_loader_open("none", &plugin, &longer.error), MIG_OK);
  EXPECT_THAT(longer.guard, ::testing::Each('\0'));  // rule 1.5
  memset(&longer, 0x55, sizeof(longer));
  longer.error.size = offsetof(mig_loader_error, message) + 10;
  EXPECT_NE(mig_loader_open("none", &plugin, &longer.error), MIG_OK);
  EXPECT_STREQ(longer.error.message, "transport");
  EXPECT_EQ(longer.error.message[10], 0x55);
}

TEST(LoaderArguments, ErrorIsLeftAloneOnSuccess) {
  mig_plugin* plugin = nullptr;
  mig_loader_error error = {sizeof(error), 1, "x"};
  ASSERT_EQ(mig_loader_open(kGood.c_str(), &plugin, &error), MIG_OK);
  EXPECT_EQ(error.code, 1);
  EXPECT_STREQ(error.message, "x");
  mig_loader_close(plugin);
}

TEST(LoaderRegistry, TakesANameForOneFunction) {
  EXPECT_EQ(mig_loader_register("one", Refuse), MIG_OK);
  EXPECT_EQ(mig_loader_register("one", Refuse), MIG_OK);
  EXPECT_EQ(mig_loader_register("one", RefuseToo), MIG_E_ARGUMENT);
  EXPECT_EQ(mig_loader_register("two", RefuseToo), MIG_OK);
}

TEST(LoaderRegistry, RefusesWhatCouldNeverBeFound) {
  EXPECT_EQ(mig_loader_register(nullptr, Refuse), MIG_E_ARGUMENT);
  EXPECT_EQ(mig_loader_register("", Refuse), MIG_E_ARGUMENT);
  EXPECT_EQ(mig_loader_register("a/b", Refuse), MIG_E_ARGUMENT);
  EXPECT_EQ(mig_loader_register("a", nullptr), MIG_E_ARGUMENT);
}

TEST(LoaderRegistry, CopiesTheName) {
  char name[] = "copied";
  ASSERT_EQ(mig_loader_register(name, Refuse), MIG_OK);
  memset(name, 'x', sizeof(name) - 1);
  EXPECT_THAT(Loaded("copied").message(), HasSubstr("(registered): "));
}

TEST(LoaderRegistry, ComesBeforeFiles) {
  const TempDir dir;
  fs::copy(kGood, dir.path() / "both.so");
  ASSERT_EQ(mig_loader_register("both", Refuse), MIG_OK);
  const PluginPath path(dir.path());
  const Loaded loaded("both");
  // It was asked first and refused; the file is what remains.
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded.path(), dir.path() / "both.so");
}

TEST(LoaderThreads, OpenRegisterAndSearchAtOnce) {
  const PluginPath path(MIG_FAKE_DIR);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([thread] {
      for (int i = 0; i < 50; ++i) {
        const std::string name = "t" + std::to_string((thread + i) % 20);
        EXPECT_EQ(mig_loader_register(name.c_str(), Refuse), MIG_OK);
        const Loaded good("good");
        EXPECT_TRUE(good.ok()) << good.message();
        EXPECT_EQ(Loaded("version_0").code(), MIG_E_VERSION);
        EXPECT_EQ(Loaded(name).code(), MIG_E_VERSION);
        EXPECT_STREQ(mig_loader_search_dir(0), MIG_FAKE_DIR);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mig::abi
